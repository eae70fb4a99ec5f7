"""Every row gives through Python the bits that it gives in C++: with the same gradients, in the same simulated world, which repeats
the order of all messages, and the rows whose numbers do not depend on that order also between processes."""
import os
import subprocess
import tempfile
import unittest

import numpy as np
import skein
import two_layers

PROGRAM = os.environ.get("SKEIN_RECORDED_GRADIENTS")
DEPEND_ON_ORDER = {"osgp", "ad-psgd", "lsgd", "downpour", "dynsgd", "agn", "easgd-async", "eamsgd-async", "gem"}
ROWS = [row for row in skein.algorithms() if row != "sgd"]


def flat(arrays):
    return np.concatenate([np.asarray(a).ravel() for a in arrays])


class Rows(unittest.TestCase):
    @unittest.skipUnless(PROGRAM, "SKEIN_RECORDED_GRADIENTS does not name the C++ side")
    def test_python_and_cpp_give_the_same_bits(self):
        for row in ROWS:
            with self.subTest(row), tempfile.TemporaryDirectory() as place:
                model, record = self.in_python(row)
                np.testing.assert_array_equal(self.in_cpp(place, row, model.size, record), model)

    def in_python(self, row):
        """The model, and what recorded_gradients reads."""
        n, seen = flat(two_layers.start()).size, {}

        def gradient(parameters, rank, step):
            loss, own = two_layers.gradient(parameters, rank, step)
            seen[rank, step] = np.concatenate([flat(parameters), flat(own), [np.float32(loss)]])
            return loss, own
        model = flat(two_layers.simulate(row, gradient)["model"])
        blank = np.zeros(2 * n + 1, np.float32)  # of a step in which the row asks for no gradient
        steps = [seen.get((rank, step), blank) for rank in range(two_layers.WORLD) for step in range(two_layers.STEPS)]
        return model, np.concatenate([flat(two_layers.start()), *steps]).astype(np.float32)

    def in_cpp(self, place, row, elements, record):
        files = [os.path.join(place, name) for name in ("world.toml", "record", "model")]
        with open(files[0], "w") as f:
            f.write(skein.plain_world(two_layers.WORLD))
        record.tofile(files[1])
        flags = [f"{name.replace('_', '-')}={value}" for name, value in two_layers.FLAGS.get(row, {}).items()]
        ended = subprocess.run([PROGRAM, files[0], files[1], row, str(two_layers.STEPS), str(elements), files[2], *flags],
                               capture_output=True, text=True, timeout=60)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        return np.fromfile(files[2], np.float32)

    def test_processes_and_a_simulated_world_give_the_same_bits(self):
        rows = [row for row in ROWS if row not in DEPEND_ON_ORDER]
        by_processes = two_layers.hashes_of_processes(rows)
        for row in rows:
            with self.subTest(row):
                self.assertEqual(two_layers.hash_of_simulation(row), by_processes[row])


if __name__ == "__main__":
    unittest.main()

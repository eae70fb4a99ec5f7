"""skein.simulate: a Python gradient in a simulated world, and the notebook."""
import _thread
import json
import os
import threading
import time
import unittest

import numpy as np
import skein

HERE = os.path.dirname(os.path.abspath(__file__))
NOTEBOOK = os.path.join(HERE, "..", "..", "examples", "python", "simulate.ipynb")
TWO_OF_WHICH_ONE_DIES = skein.plain_world(2) + """[[fault]]
at_s = 0.5
kind = "kill"
worker = 1
"""


def bowl(x, rank, step):
    """A quadratic whose minimum is at 1 for all workers together: those of rank 0 and 1 pull apart."""
    g = np.asarray(x) - 1 + np.float32(0.5 - rank % 2)
    return float(g @ g), g


class Simulate(unittest.TestCase):
    def simulate(self, world=2, algorithm="allreduce", gradient=bowl, steps=40, **options):
        return skein.simulate(world, algorithm, gradient, np.zeros(5, np.float32), steps=steps, **{"lr": 0.05, **options})

    def test_learns_and_tells_a_curve(self):
        f = self.simulate(4, evaluate=lambda x: float(np.abs(np.asarray(x) - 1).max()), every=15, steps=60)
        self.assertEqual([p["step"] for p in f["curve"]], [15, 30, 45, 60])
        self.assertLess(f["value"], 0.05)
        self.assertAlmostEqual(f["value"], f["curve"][-1]["value"], places=5)
        self.assertEqual((f["workers"], f["steps"], f["apart"]), (4, 60, 0))
        self.assertAlmostEqual(f["seconds"], 6, delta=0.5)  # 60 steps of 100 ms, and the network
        self.assertEqual(np.asarray(f["model"]).shape, (5,))
        self.assertGreater(f["bytes"], f["curve"][0]["bytes"])

    def test_the_same_call_gives_the_same_numbers(self):
        a, b = ({**self.simulate(3, "downpour"), "model": None} for _ in range(2))
        self.assertEqual(a, b)

    def test_a_number_of_workers_may_be_numpys(self):
        self.assertEqual(self.simulate(np.int64(3), steps=2)["workers"], 3)

    def test_time_is_that_of_the_world(self):
        slow, fast = (self.simulate(skein.plain_world(2, step_ms=ms), steps=10)["seconds"] for ms in (1000, 10))
        self.assertAlmostEqual(slow - fast, 9.9, delta=0.01)

    def test_lists_of_arrays_keep_their_shapes(self):
        seen = set()

        def gradient(p, rank, step):
            seen.update(np.asarray(a).shape for a in p)
            return 0.0, [np.asarray(a) - 1 for a in p]
        start = [np.zeros((2, 3), np.float32), np.zeros(7, np.float32)]
        for optimizer in ("sgd", "muon"):
            f = skein.simulate(2, "sgp", gradient, start, steps=5, optimizer=optimizer)
            self.assertEqual([np.asarray(a).shape for a in f["model"]], [(2, 3), (7,)])
            self.assertGreater(min(np.asarray(a).min() for a in f["model"]), 0)
        self.assertEqual(seen, {(2, 3), (7,)})

    def test_an_exception_of_the_gradient_reaches_the_caller(self):
        def gradient(x, rank, step):
            if (rank, step) == (1, 3):
                raise ZeroDivisionError("no gradient today")
            return bowl(x, rank, step)
        for row in ("allreduce", "sgp", "downpour"):
            with self.subTest(row), self.assertRaisesRegex(ZeroDivisionError, "no gradient today"):
                self.simulate(3, row, gradient)

    def test_a_lost_worker_is_an_exception(self):
        with self.assertRaises(skein.PeerLost):
            self.simulate(TWO_OF_WHICH_ONE_DIES)

    def test_refuses_in_one_sentence(self):
        for arguments, words in [
                ({"algorithm": "sgpp"}, "did you mean sgp?"),
                ({"taau": 3}, "allreduce does not read taau"),
                ({"steps": 0}, "steps=0: one or more are needed"),
                ({"every": 0}, "every=0"),
                ({"gradient": lambda x, rank, step: 1.0}, "returns (loss, gradient)"),
                ({"gradient": lambda x, rank, step: (1.0, np.zeros(4, np.float32))}, "has the shape [4], its parameter [5]"),
                ({"gradient": lambda x, rank, step: (1.0, np.zeros(5))}, "float32 is wanted, not float64"),
                ({"world": skein.plain_world(2) + "[tpyo]\n"}, "tpyo"),
                ({"world": skein.plain_world(2).replace("step_ms", 'gradient = "ghost"\nstep_ms')}, "the caller computes"),
        ]:
            with self.subTest(words), self.assertRaises(skein.BadOption) as caught:
                self.simulate(**arguments)
            self.assertIn(words, str(caught.exception))
        with self.assertRaises(skein.BadFile):
            self.simulate("nowhere.toml")

    def test_parameters_cannot_be_written_by_a_gradient(self):
        def gradient(x, rank, step):
            np.asarray(x)[0] = 1
        with self.assertRaisesRegex(ValueError, "read-only"):
            self.simulate(gradient=gradient)

    def test_ctrl_c_ends_it(self):
        began = time.monotonic()
        threading.Timer(0.3, _thread.interrupt_main).start()
        with self.assertRaises(KeyboardInterrupt):
            self.simulate(steps=10**8)
        self.assertLess(time.monotonic() - began, 30)


class Notebook(unittest.TestCase):
    def test_its_cells_run(self):
        with open(NOTEBOOK) as f:
            cells = [c for c in json.load(f)["cells"] if c["cell_type"] == "code"]
        names = {"quick": True, "__name__": "notebook"}
        for number, cell in enumerate(cells):
            if "matplotlib" not in "".join(cell["source"]):
                exec(compile("".join(cell["source"]), f"cell {number}", "exec"), names)
        curves = names["curves"]
        self.assertEqual(len(curves), 6)
        values = {row: points[-1]["value"] for row, points in curves.items()}
        self.assertGreater(values["allreduce"], 0.95)
        self.assertEqual(len(set(values.values())), 6, values)  # the task tells the rows apart
        self.assertGreater(values["allreduce"] - min(values.values()), 0.1, values)
        self.assertLess(curves["diloco"][-1]["bytes"], curves["allreduce"][-1]["bytes"] / 4)
        self.assertTrue(all(not c.get("outputs") for c in cells))


if __name__ == "__main__":
    unittest.main()

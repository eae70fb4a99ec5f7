"""Real JAX arrays: immutable, so they are copied into the worker, and gradients are given back. Skipped without jax."""
import unittest

import numpy as np
import skein

try:
    import jax
    import jax.numpy as jnp
except ImportError:
    jax = None


@unittest.skipUnless(jax, "jax is not installed")
class Jax(unittest.TestCase):
    def setUp(self):
        self.job = skein.init()

    def tearDown(self):
        self.job.close()

    def test_a_dict_of_arrays_learns_by_returned_gradients(self):
        start = {"w": jnp.zeros((3, 2)), "b": jnp.zeros(2)}
        worker = self.job.worker(start, "sgd", lr=0.1, momentum=0)
        loss_and_gradient = jax.jit(jax.value_and_grad(
            lambda p: ((jnp.ones((5, 3)) @ p["w"] + p["b"] - 1) ** 2).mean()))

        def gradient():
            loss, g = loss_and_gradient({n: jnp.array(np.asarray(x)) for n, x in zip(start, worker.parameters)})
            return loss, [g[n] for n in start]
        losses = [float(worker.step(gradient)[0]) for _ in range(30)]
        self.assertEqual(losses[0], 1)
        self.assertLess(losses[-1], 1e-9)
        self.assertEqual(float(jnp.abs(start["w"]).max()), 0)

    def test_nothing_writes_an_immutable_array(self):
        with self.assertRaisesRegex(skein.BadOption, "read-only"):
            self.job.worker(jnp.zeros(3), "sgd")
        with self.assertRaisesRegex(skein.BadOption, "worker 0 gives no such array"):
            self.job.average(jnp.zeros(3))


if __name__ == "__main__":
    unittest.main()

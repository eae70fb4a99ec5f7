"""The optimizers of the Python package: their steps against NumPy's, what they refuse, and between processes."""
import unittest

import numpy as np
import skein
import workers
from test_skein import Net, hash_of

STEPS = 12
SHAPES = {"first": (6, 11), "bias": (7,), "tall": (16, 5), "head": (4, 6)}


def start(shape, s):
    return (0.5 * np.cos(0.37 * np.arange(np.prod(shape)) + s)).astype(np.float32).reshape(shape)


def slope(x, s, k):
    return 0.3 * x + np.sin(0.7 * np.arange(x.size) + 1.3 * k + 2 * s).reshape(x.shape)


class Adam:
    def __init__(self, beta1=0.9, beta2=0.999, epsilon=1e-8):
        self.beta1, self.beta2, self.epsilon, self.m, self.v, self.t = beta1, beta2, epsilon, 0, 0, 0

    def direction(self, g):
        self.t += 1
        self.m = self.beta1 * self.m + (1 - self.beta1) * g
        self.v = self.beta2 * self.v + (1 - self.beta2) * g * g
        return self.m / (1 - self.beta1**self.t) / (np.sqrt(self.v / (1 - self.beta2**self.t)) + self.epsilon)


def adamw(shape, lr, decay):
    adam = Adam()
    decay *= len(shape) > 1
    return lambda x, g: x - lr * (adam.direction(g) + decay * x)


def lamb(shape, lr, decay):
    adam = Adam(epsilon=1e-6)
    decay *= len(shape) > 1

    def step(x, g):
        u = adam.direction(g) + decay * x
        return x - lr * u * (np.linalg.norm(x) / np.linalg.norm(u) if decay else 1)
    return step


def muon(shape, lr, decay, hidden):
    adam, b = Adam(epsilon=1e-10), 0

    def step(x, g):
        nonlocal b
        if not hidden:
            return x - lr * 0.1 * (adam.direction(g) + decay * (len(shape) > 1) * x)
        b = 0.95 * b + 0.05 * g
        u = 0.05 * g + 0.95 * b
        u = u / np.linalg.norm(u)
        u = u.T if shape[0] > shape[1] else u
        for _ in range(5):
            a = u @ u.T
            u = 3.4445 * u + (-4.7750 * a + 2.0315 * a @ a) @ u
        u = u.T if shape[0] > shape[1] else u
        return x - lr * (max(1, shape[0] / shape[1])**0.5 * u + decay * x)
    return step


def learn_with(job, optimizer, flags):
    net = Net(job, "sgp", optimizer=optimizer, **flags)
    losses = net.steps(120)
    net.worker.finish()
    return {"first": losses[0], "last": sum(losses[-10:]) / 10, "hash": hash_of(net.worker)}


def disagree_about_one(job):
    try:
        job.worker([np.zeros((3, 3), np.float32)], "sgp", optimizer=["adamw", "lamb"][job.rank])
    except skein.BadOption as e:
        return str(e)


class Steps(unittest.TestCase):
    def setUp(self):
        self.job = skein.init()

    def trained(self, optimizer, **flags):
        w = self.job.worker({name: start(shape, s) for s, (name, shape) in enumerate(SHAPES.items())}, "sgd",
                            optimizer=optimizer, lr=0.02, weight_decay=0.1, **flags)
        for k in range(STEPS):
            w.step(lambda: (0.0, [slope(np.asarray(p), s, k).astype(np.float32) for s, p in enumerate(w.parameters)]))
        return [np.asarray(p) for p in w.parameters]

    def expect(self, trained, rules):
        for s, (got, shape) in enumerate(zip(trained, SHAPES.values())):
            x = start(shape, s).astype(np.float64)
            for k in range(STEPS):
                x = rules[s](x, slope(x, s, k))
            np.testing.assert_allclose(got, x, atol=2e-5)

    def test_adamw_and_lamb(self):
        for name, rule in (("adamw", adamw), ("lamb", lamb)):
            with self.subTest(name):
                self.expect(self.trained(name), [rule(shape, 0.02, 0.1) for shape in SHAPES.values()])

    def test_muon_orthogonalizes_all_matrices_but_the_last_or_those_named(self):
        for given, hidden in ({}, (0, 2)), ({"matrices": ["head", 0]}, (0, 3)):
            with self.subTest(given):
                self.expect(self.trained("muon", **given),
                            [muon(shape, 0.02, 0.1, s in hidden) for s, shape in enumerate(SHAPES.values())])

    def test_a_vector_has_the_segments_of_the_shapes_given(self):
        shapes = [(6, 11), (7,), (4, 6)]
        begins = [0, 128, 192]
        x = np.zeros(192 + 24, np.float32)
        expected = []
        for s, (shape, at) in enumerate(zip(shapes, begins)):
            x[at:at + np.prod(shape)] = start(shape, s).ravel()
            expected.append(lamb(shape, 0.02, 0.1)(start(shape, s).astype(np.float64), slope(start(shape, s), s, 0)))
        w = self.job.worker(x, "sgd", optimizer="lamb", lr=0.02, weight_decay=0.1, matrices=shapes)

        def gradient():
            g = np.asarray(w.gradients[0])
            for s, (shape, at) in enumerate(zip(shapes, begins)):
                g[at:at + np.prod(shape)] = slope(start(shape, s), s, 0).ravel()
            return 0.0
        w.step(gradient)
        for want, shape, at in zip(expected, shapes, begins):
            np.testing.assert_allclose(x[at:at + np.prod(shape)], want.ravel(), atol=1e-5)

    def test_sam_asks_twice_and_gives_the_first_answer(self):
        w = self.job.worker([np.ones((2, 2), np.float32)], "sgd", optimizer="sam", sam_rho=0.5, lr=0.1, weight_decay=0)
        seen = []

        def gradient():
            seen.append(np.asarray(w.parameters[0]).copy())
            return float(seen[-1].sum()), [np.ones((2, 2), np.float32)]
        self.assertEqual(w.step(gradient)[0], 4.0)
        self.assertEqual(len(seen), 2)
        np.testing.assert_allclose(seen[1], 1.25)

    def test_lists_them_with_their_defaults(self):
        all = skein.optimizers()
        self.assertEqual(set(all), {"sgd", "adamw", "lamb", "muon", "gpa", "sam"})
        self.assertEqual(all["adamw"], {"lr": 0.004, "weight_decay": 0.05, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8})
        self.assertEqual(all["sgd"], {"lr": 0.1, "weight_decay": 0, "momentum": 0.9, "nesterov": True})
        self.assertEqual(all["muon"]["muon_iterations"], 5)

    def test_refuses_in_one_sentence(self):
        x = np.zeros((3, 3), np.float32)
        for parameters, options, words in [
                ([x], {"optimizer": "adamv"}, "did you mean adamw?"),
                ([x], {"optimizer": "adamw", "momentum": 0.9}, "does not read momentum, nor does adamw; they read: "),
                ([x], {"optimizer": "sgd", "beta1": 0.9}, "does not read beta1, nor does sgd"),
                ([x], {"optimizer": "adamw", "beta1": 1}, "--beta1 1"),
                ([x], {"optimizer": "adamw", "weight_decay": -1}, "--weight-decay -1"),
                ([x.astype(np.float64)], {"optimizer": "lamb"}, "parameters are float32, not float64"),
                ([x], {"matrices": [0]}, "matrices: sgd treats all parameters alike"),
                ([x], {"optimizer": "muon", "matrices": ["x"]}, "matrices: 'x' is no parameter of two axes or more"),
                ({"b": x[0].copy(), "x": x}, {"optimizer": "muon", "matrices": ["b"]}, "matrices: 'b' is no parameter"),
                (x.ravel(), {"optimizer": "lamb", "matrices": [(3, 3), (3,)]}, "take 67 numbers; the array has 9"),
        ]:
            with self.subTest(words), self.assertRaises(skein.BadOption) as caught:
                self.job.worker(parameters, "sgd", **options)
            self.assertIn(words, str(caught.exception))


class Between(unittest.TestCase):
    def ended(self, function, *arguments):
        return workers.results(self, __file__, function, 2, *arguments)

    def test_every_optimizer_learns_and_ends_with_one_model(self):
        for name, values in skein.optimizers().items():
            with self.subTest(name):
                a, b = self.ended("learn_with", name, {"gpa_x": 0.5} if name == "gpa" else {})
                self.assertEqual(a["hash"], b["hash"])
                self.assertLess(a["last"], 0.9 * a["first"], values)

    def test_workers_that_disagree_about_it_are_told(self):
        for words in self.ended("disagree_about_one"):
            self.assertIn("by adamw, lr 0.004", words)
            self.assertIn("by lamb, lr 0.02", words)


if __name__ == "__main__":
    unittest.main()

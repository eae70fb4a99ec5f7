"""The Python package: rows, memory, models, checkpoints, errors, alone and between processes."""
import gc
import hashlib
import os
import sys
import tempfile
import time
import unittest
import weakref

import numpy as np
import skein
import workers

HERE = __file__


def hash_of(worker):
    digest = hashlib.sha256()
    for p in worker.parameters:
        digest.update(np.asarray(p).tobytes())
    return digest.hexdigest()


class Net:
    """Two layers in NumPy, on a task that depends on the worker's rank."""

    def __init__(self, job, algorithm, **options):
        draw = np.random.default_rng(7)
        start = [draw.normal(size=s).astype(np.float32) * 0.3 for s in [(6, 8), (8,), (8, 3), (3,)]]
        self.worker = job.worker(start, algorithm, **{"lr": 0.05, **options})
        self.data, self.true = np.random.default_rng(100 + job.rank), np.random.default_rng(1).normal(size=(6, 3))

    def gradient(self):
        x = self.data.normal(size=(16, 6)).astype(np.float32)
        label = (x @ self.true).argmax(1)
        w1, b1, w2, b2 = map(np.asarray, self.worker.parameters)
        h = np.maximum(x @ w1 + b1, 0)
        z = h @ w2 + b2
        p = np.exp(z - z.max(1, keepdims=True))
        p /= p.sum(1, keepdims=True)
        loss = -np.log(p[range(16), label] + 1e-9).mean()
        p[range(16), label] -= 1
        p /= 16
        back = (p @ w2.T) * (h > 0)
        for to, g in zip(self.worker.gradients, [x.T @ back, back.sum(0), h.T @ p, p.sum(0)]):
            np.asarray(to)[...] = g
        return float(loss)

    def steps(self, count):
        return [self.worker.step(self.gradient) for _ in range(count)]


def learn(job, algorithm, flags):
    net = Net(job, algorithm, **flags)
    losses = [loss for loss in net.steps(120) if loss is not None]
    with net.worker.model():
        shown = hash_of(net.worker)
    apart = net.worker.finish()
    return {"first": losses[0], "last": sum(losses[-10:]) / 10, "shown": shown, "hash": hash_of(net.worker),
            "apart": apart, "figures": net.worker.figures()}


def learn_by_slices(job, algorithm):
    net = Net(job, algorithm)

    def gradient():
        loss = net.gradient()
        for i in (2, 3, 0, 1):
            net.worker.ready(i)
        return loss
    for _ in range(20):
        net.worker.step(gradient)
    try:
        net.worker.ready(0)
    except skein.Error as e:
        return {"hash": hash_of(net.worker), "error": str(e)}


def learn_at_once(job, algorithm):
    net = Net(job, algorithm)
    net.steps(20)
    return {"hash": hash_of(net.worker)}


def save_and_load(job, directory):
    net = Net(job, "sgp")
    net.steps(5)
    net.worker.save(directory)
    at_save = hash_of(net.worker)
    net.steps(3)
    later = hash_of(net.worker)
    again = Net(job, "sgp")
    again.worker.load(directory)
    loaded = hash_of(again.worker)
    again.data = np.random.default_rng(100 + job.rank)
    for _ in range(5):
        again.data.normal(size=(16, 6))
    again.steps(3)
    return {"same": at_save == loaded, "continues": hash_of(again.worker) == later,
            "steps": again.worker.figures()["steps"]}


def average(job):
    singles, doubles = np.full(5, float(job.rank), np.float32), np.array([0.1 * job.rank, 1e300])
    job.average(singles), job.average(doubles)
    return {"singles": singles.tolist(), "doubles": doubles.tolist()}


def average_unlike(job, what):
    arrays = {"size": [np.zeros(5, np.float32), np.zeros(6, np.float32)],
              "size of doubles": [np.zeros(5), np.zeros(6)],
              "type": [np.zeros(5, np.float32), np.zeros(5)],
              "whole": [np.zeros(5, np.float32), np.zeros(5, np.int32)],
              "gaps": [np.zeros(5, np.float32), np.zeros(10, np.float32)[::2]],
              "all with gaps": [np.zeros(10, np.float32)[::2]] * 2,
              "none": [np.zeros(5, np.float32), 7]}
    began = time.monotonic()
    try:
        job.average(arrays[what][job.rank])
    except skein.BadOption as e:
        job.average(np.zeros(3))  # the job goes on
        return {"error": str(e), "seconds": time.monotonic() - began}


def leave_with_a_server_at_work(job):
    net = Net(job, "downpour")
    net.steps(5)
    net.worker.finish()
    job.barrier()
    job.close()
    job.close()
    try:
        net.steps(1)
    except skein.Error as e:
        return str(e)


def raise_once(job):
    net = Net(job, "allreduce")
    net.steps(2)
    before = hash_of(net.worker)

    def gradient():
        raise ZeroDivisionError("no gradient today")
    began = time.monotonic()
    try:
        net.worker.step(gradient if job.rank == 1 else net.gradient)
    except Exception as e:
        return {"error": type(e).__name__, "words": str(e), "seconds": time.monotonic() - began,
                "same": hash_of(net.worker) == before}
    return {}


def fork_once(job, end):
    """Rank 1 forks in its third gradient, and the child ends in that way."""
    net = Net(job, "allreduce")
    children = []

    def gradient():
        if net.worker.steps == 2 and job.rank == 1 and not children:
            children.append(os.fork())
            if children == [0]:
                if end == "raises":
                    raise ZeroDivisionError("in the child")
                if end == "goes on":
                    return net.gradient()
                os._exit(0)
        return net.gradient()
    for _ in range(6):
        try:
            net.worker.step(gradient)
        except BaseException as e:
            if children == [0]:
                print("CHILD", type(e).__name__, e, flush=True)
                sys.exit(0)  # with all destructors
            raise
    if children:
        os.waitpid(children[0], 0)
    return hash_of(net.worker)


def close_and_go_on(job):
    """Rank 1 leaves between two steps, and its functions are called all the same."""
    net = Net(job, "allreduce")
    net.steps(2)
    if job.rank == 1:
        job.close()
    errors = []
    for call in (lambda: net.worker.step(net.gradient), lambda: net.worker.ready(0), lambda: net.worker.set_rate(0.1)):
        try:
            call()
        except skein.Error as e:
            errors.append([type(e).__name__, str(e)])
    return errors


def disagree(job):
    try:
        job.worker([np.zeros(3 + job.rank, np.float32)], "allreduce")
    except skein.BadOption as e:
        return str(e)


class Workers(unittest.TestCase):
    def ended(self, function, world, *arguments):
        return workers.results(self, HERE, function, world, *arguments)

    def test_every_row_learns_and_ends_with_one_model(self):
        flags = {"bmuf": {"beta": 0.3}, "post-local": {"switch_step": 10}, "qsr": {"qsr_c": 0.1}, "lsgd": {"groups": 1},
                 "sparseloco": {"tau": 4, "density": 0.3}}
        for row in skein.algorithms():
            if row == "sgd":
                continue
            with self.subTest(row):
                a, b = self.ended("learn", 2, row, flags.get(row, {}))
                self.assertEqual(a["hash"], b["hash"])
                self.assertEqual(a["shown"], b["shown"])
                self.assertLess(a["last"], 0.75 * a["first"])
                self.assertGreater(a["figures"]["bytes"], 0)

    def test_gradients_that_are_handed_out_early_give_the_same_bits(self):
        for row in ["allreduce", "sgp"]:
            early, late = self.ended("learn_by_slices", 2, row), self.ended("learn_at_once", 2, row)
            self.assertEqual([r["hash"] for r in early], [r["hash"] for r in late])
            self.assertIn("ready() belongs into the gradient function", early[0]["error"])

    def test_a_checkpoint_goes_on_as_if_nothing_had_happened(self):
        with tempfile.TemporaryDirectory() as d:
            for r in self.ended("save_and_load", 2, os.path.join(d, "run")):
                self.assertEqual(r, {"same": True, "continues": True, "steps": 8})

    def test_averages_singles_and_doubles(self):
        for r in self.ended("average", 2):
            self.assertEqual(r["singles"], [0.5] * 5)
            self.assertEqual(r["doubles"], [0.05, 1e300])

    def test_averages_of_what_cannot_be_averaged_fail_on_all_sides(self):
        for what in ["size", "size of doubles", "type", "whole", "gaps", "all with gaps", "none"]:
            with self.subTest(what):
                for r in self.ended("average_unlike", 2, what):
                    self.assertIn("contiguous, writable arrays of one size are wanted", r["error"])
                    self.assertLess(r["seconds"], 20)

    def test_a_job_ends_its_workers_before_its_network(self):
        for words in self.ended("leave_with_a_server_at_work", 2):
            self.assertIn("left", words)

    def test_a_gradient_that_raises_is_an_exception_and_the_others_hear_of_it(self):
        other, raised = self.ended("raise_once", 2)
        self.assertEqual((raised["error"], raised["words"]), ("ZeroDivisionError", "no gradient today"))
        self.assertEqual(other["error"], "PeerLost")
        self.assertLess(other["seconds"], 30)
        self.assertTrue(raised["same"] and other["same"])

    def test_a_gradient_that_forks_leaves_the_job_as_it_was(self):
        hashes = []
        for end in ("ends", "raises", "goes on"):
            with self.subTest(end):
                hashes += self.ended("fork_once", 2, end)
        self.assertEqual(hashes, [hashes[0]] * 6)

    def test_a_worker_whose_job_is_closed_says_so_and_the_others_hear_of_it(self):
        other, closed = self.ended("close_and_go_on", 2)
        self.assertEqual(other[0][0], "PeerLost")
        for kind, words in closed:
            self.assertEqual(kind, "Error")
            self.assertRegex(words, "has been left|belongs into the gradient function")
        self.assertEqual(len(closed), 3)

    def test_workers_that_disagree_are_told_on_all_sides(self):
        for words in self.ended("disagree", 2):
            self.assertIn("worker 0 makes allreduce over 3 by sgd,", words)


class OnDevice:
    """What an array on a device that is not there shows of itself: nothing but its device is looked at."""
    shape, dtype = (3,), np.dtype(np.float32)

    def __init__(self, kind=2):
        self.kind = kind

    def __dlpack_device__(self):
        return self.kind, 77

    def __dlpack__(self, **_):
        raise AssertionError("an array on a device was asked for its memory")


class Alone(unittest.TestCase):
    def setUp(self):
        self.job = skein.init()

    def test_imports_no_framework(self):
        self.assertEqual({"torch", "jax", "tensorflow"} & set(sys.modules), set())

    def test_trains_in_the_memory_of_an_array(self):
        x = np.arange(5, dtype=np.float32)
        w = self.job.worker(x, "sgd", lr=0.5, momentum=0, nesterov=False)
        self.assertEqual(w.step(lambda: (7.0, [x - 1]))[0], 7.0)
        np.testing.assert_array_equal(x, [0.5, 1, 1.5, 2, 2.5])
        self.assertTrue(np.shares_memory(x, np.asarray(w.parameters[0])))

    def test_gradients_are_zero_before_each_step(self):
        w = self.job.worker([np.ones((2, 2), np.float32)], "sgd", momentum=0, nesterov=False)
        seen = []

        def gradient():
            g = np.asarray(w.gradients[0])
            seen.append(g.sum())
            g += 1
            return 0.0
        w.step(gradient), w.step(gradient)
        self.assertEqual(seen, [0, 0])

    def test_refuses_in_one_sentence(self):
        x = np.zeros(3, np.float32)
        frozen = np.zeros(3, np.float32)
        frozen.flags.writeable = False
        for parameters, options, words in [
                ([], {}, "no parameters"),
                (x.astype(np.float64), {}, "parameters are float32, not float64"),
                (frozen, {}, "read-only"),
                (np.zeros(6, np.float32)[::2], {}, "has gaps between its numbers"),
                ([x, x], {}, "is given twice"),
                (OnDevice(), {}, "parameter 0 (OnDevice[3]) is on CUDA device 77: "),
                ([x, OnDevice()], {}, "parameter 1 (OnDevice[3]) is on CUDA device 77, and parameter 0 (ndarray[3]) on the host"),
                (OnDevice(10), {}, "parameter 0 (OnDevice[3]) is on ROCm device 77: parameters lie on the host or on a CUDA"),
                ([x, np.zeros(3)], {}, "parameter 1 (ndarray[3]): parameters are float32, not float64"),
                ([x[:2], x[1:]], {}, "parameter 1 (ndarray[2]) overlaps parameter 0"),
                (x, {"algorithm": "sgpp"}, "did you mean sgp?"),
                (x, {"algorithm": "local-sgd", "taau": 3}, "local-sgd does not read taau"),
                (x, {"algorithm": "local-sgd", "tau": "often"}, "--tau often"),
        ]:
            with self.subTest(words), self.assertRaises(skein.BadOption) as caught:
                self.job.worker(parameters, **options)
            self.assertIn(words, str(caught.exception))
            self.assertIsInstance(caught.exception, ValueError)

    def test_makes_no_copy_of_the_parameters(self):
        def resident():
            with open("/proc/self/statm") as f:
                return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        size = 8 << 20
        x = np.ones(size, np.float32)
        before = resident()
        w = self.job.worker(x, "allreduce", lr=0.5)
        for _ in range(3):
            w.step(lambda: 0.0)
        self.assertLess(resident() - before, 2.25 * 4 * size)  # gradient and momentum

    def test_keeps_no_array_that_it_has_copied(self):
        x, y = np.ones(3, np.float32), np.ones((2, 2), np.float32)
        seen = [weakref.ref(x), weakref.ref(y)]
        w = self.job.worker([x], "sgd", buffers=[y])
        del x, y
        gc.collect()
        self.assertEqual([one() for one in seen], [None, None])
        np.testing.assert_array_equal(np.asarray(w.parameters[0]), np.ones(3))

    def test_a_worker_that_is_gone_lets_go_of_its_memory(self):
        x = np.zeros(3, np.float32)
        seen = weakref.ref(x)
        w = self.job.worker(x, "sgd")
        del x
        gc.collect()
        w.step(lambda: 0.0)
        self.assertIsNotNone(seen())
        del w
        gc.collect()
        self.assertIsNone(seen())

    def test_a_job_cannot_be_left_in_a_step(self):
        w = self.job.worker(np.zeros(3, np.float32), "sgd")

        def gradient():
            self.job.close()
        with self.assertRaisesRegex(skein.Error, "in the middle of a step"):
            w.step(gradient)
        w.step(lambda: 0.0)

    def test_takes_columns_of_one_array(self):
        x = np.arange(8, dtype=np.float32).reshape(2, 4)
        w = self.job.worker([x[:, :2], x[:, 2:]], "sgd")
        self.assertEqual([np.asarray(p).sum() for p in w.parameters], [10, 18])

    def test_a_process_that_was_forked_is_no_worker(self):
        w = self.job.worker(np.zeros(3, np.float32), "sgd")

        def gradient():  # it may fork, for instance to load data
            reads, writes = os.pipe()
            child = os.fork()
            if child == 0:
                try:
                    w.model().__enter__()
                except skein.Error as e:
                    os.write(writes, str(e).encode())
                os._exit(0)
            os.waitpid(child, 0)
            return float("was forked" in os.read(reads, 1000).decode())
        self.assertEqual(w.step(gradient), 1)

    def test_a_job_that_was_left_says_so(self):
        w = self.job.worker(np.zeros(3, np.float32), "sgd")
        self.job.close()
        for call in [lambda: w.step(lambda: 0.0), lambda: self.job.worker(np.zeros(3, np.float32)), w.finish, w.figures]:
            with self.assertRaisesRegex(skein.Error, "left"):
                call()

    def test_a_damaged_checkpoint_is_named(self):
        with tempfile.TemporaryDirectory() as d:
            w = self.job.worker(np.zeros(3, np.float32), "sgd")
            w.save(d)
            [folder] = os.listdir(os.path.join(d, "checkpoints"))
            path = os.path.join(d, "checkpoints", folder, "rank-0000.safetensors")
            with open(path, "r+b") as f:
                f.seek(-1, 2)
                f.write(b"?")
            with self.assertRaisesRegex(skein.BadFile, "rank-0000"):
                w.load(d)
            with self.assertRaises(OSError):
                w.load(d + "/nowhere")


if __name__ == "__main__":
    unittest.main()

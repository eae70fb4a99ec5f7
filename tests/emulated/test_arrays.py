"""The Python package over arrays on an emulated GPU: DLPack with its streams, __cuda_array_interface__, one device a worker."""
import ctypes
import hashlib
import os
import tempfile
import unittest

import numpy as np
import skein
import workers

HERE = __file__
CUDA, PINNED, MANAGED = 2, 3, 13  # DLPack's DLDeviceType
cuda = ctypes.CDLL(skein._skein.__file__)
DEFAULT_STREAM = ctypes.c_void_p(1)


def call(name, *arguments):
    status = getattr(cuda, name)(*arguments)
    if status:
        raise RuntimeError(f"{name}: {status}")


def made(name, *arguments):
    p = ctypes.c_void_p()
    call(name, ctypes.byref(p), *arguments)
    return p


def copy(to, source, size, stream):
    call("cudaMemcpyAsync", ctypes.c_void_p(to), ctypes.c_void_p(source), ctypes.c_size_t(size), 4, stream)


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("kind", ctypes.c_int32), ("device", ctypes.c_int32), ("axes", ctypes.c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("offset", ctypes.c_uint64)]


class Managed(ctypes.Structure):
    pass


DELETER = ctypes.CFUNCTYPE(None, ctypes.POINTER(Managed))
Managed._fields_ = [("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", DELETER)]
capsule_new = ctypes.pythonapi.PyCapsule_New
capsule_new.restype, capsule_new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
capsule_pointer.restype, capsule_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
lent = {}  # what consumers hold, by the address of its Managed


@DELETER
def give_back(p):
    del lent[ctypes.addressof(p.contents)]


class DeviceArray:
    """An array of a library of its own. It works in a stream that no one else waits for unless asked by DLPack."""

    def __init__(self, values, device=0, kind=CUDA):
        values = np.ascontiguousarray(values)
        self.dtype, self.shape, self.kind, self.device = str(values.dtype), values.shape, kind, device
        call("cudaSetDevice", device)
        self.stream = made("cudaStreamCreateWithFlags", 1)
        self.size = values.nbytes
        self.p = made("cudaMallocHost" if kind == PINNED else "cudaMalloc", ctypes.c_size_t(max(1, self.size))).value
        self.write(values)
        if device:
            call("cudaSetDevice", 0)

    def __del__(self):
        call("cudaFreeHost" if self.kind == PINNED else "cudaFree", ctypes.c_void_p(self.p))

    def write(self, values):
        copy(self.p, values.ctypes.data, self.size, self.stream)

    def read(self):
        values = np.empty(self.shape, self.dtype)
        copy(values.ctypes.data, self.p, self.size, self.stream)
        return values

    def __dlpack_device__(self):
        return self.kind, self.device

    def __dlpack__(self, stream=None):
        if self.kind == PINNED:
            call("cudaStreamSynchronize", self.stream)
        else:
            event = made("cudaEventCreateWithFlags", 2)
            call("cudaEventRecord", event, self.stream)
            call("cudaStreamWaitEvent", ctypes.c_void_p(stream), event, 0)
        shape = (ctypes.c_int64 * len(self.shape))(*self.shape)
        m = Managed(Tensor(self.p, self.kind, self.device, len(self.shape), 2, 8 * np.dtype(self.dtype).itemsize, 1, shape,
                           None, 0), None, give_back)
        lent[ctypes.addressof(m)] = (m, shape, self)
        return capsule_new(ctypes.addressof(m), b"dltensor", None)


class Described:
    """An array that offers __cuda_array_interface__ alone."""

    def __init__(self, array, read_only=False, strides=None):
        self.array, self.dtype, self.shape = array, array.dtype, array.shape
        self.__cuda_array_interface__ = {"data": (array.p, read_only), "shape": array.shape, "typestr": "<f4",
                                         "strides": strides, "version": 3, "stream": array.stream.value}


def address_of(window):
    capsule = window.__dlpack__()
    return Managed.from_address(capsule_pointer(capsule, b"dltensor")).tensor.data


def values_of(window, shape):
    """What a program reads in CUDA's default stream."""
    values = np.empty(shape, np.float32)
    copy(values.ctypes.data, address_of(window), values.nbytes, DEFAULT_STREAM)
    return values


def slope(x, k, rank):
    return (0.3 * x + np.sin(0.7 * np.arange(x.size) + k + rank).reshape(x.shape)).astype(np.float32)


SHAPES = [(5, 7), (3,), (4, 6)]


def train(job, where, directory, algorithm, flags):
    """A hash of the model after some steps. Gradients are returned at even steps, and written in place at odd ones."""
    on_gpu = where == "cuda"
    start = [np.cos(np.arange(np.prod(s))).astype(np.float32).reshape(s) for s in SHAPES]
    put = DeviceArray if on_gpu else np.array
    statistics = put(np.full(4, job.rank, np.float32))
    w = job.worker([put(a) for a in start], algorithm, lr=0.05, buffers=[statistics], **flags)

    def read():
        return [values_of(p, s) if on_gpu else np.array(p) for p, s in zip(w.parameters, SHAPES)]

    def gradient():
        g = [slope(x, w.steps, job.rank) for x in read()]
        if w.steps % 2 == 0:
            return 1.0, [put(a) for a in g]
        for to, a in zip(w.gradients, g):
            copy(address_of(to), a.ctypes.data, a.nbytes, DEFAULT_STREAM) if on_gpu else np.copyto(np.asarray(to), a)
        w.ready(2), w.ready(0), w.ready(1)
        return 1.0
    for _ in range(8):
        w.step(gradient)
    with w.model():
        shown = read()
    w.save(directory)
    w.step(gradient)
    w.load(directory)
    w.finish()
    return {"hash": hashlib.sha256(b"".join(a.tobytes() for a in shown + read())).hexdigest()}


def average(job):
    x, y = (DeviceArray(np.full(5, job.rank + 1, t)) for t in (np.float32, np.float64))
    job.average(x), job.average(y)
    return {"singles": x.read().tolist(), "doubles": y.read().tolist()}


class Alone(unittest.TestCase):
    def setUp(self):
        self.job = skein.init()
        self.addCleanup(self.job.close)

    def step_of(self, x):
        w = self.job.worker(x, "sgd", lr=0.5, momentum=0, nesterov=False)
        array = getattr(x, "array", x)
        self.assertEqual(w.step(lambda: (7.0, [DeviceArray(np.arange(5, dtype=np.float32) - 1)]))[0], 7)
        np.testing.assert_array_equal(array.read(), [0.5, 1, 1.5, 2, 2.5])
        return w

    def test_trains_in_the_memory_of_an_array_on_a_gpu(self):
        x = DeviceArray(np.arange(5, dtype=np.float32))
        w = self.step_of(x)
        self.assertEqual(w.parameters[0].__dlpack_device__(), (CUDA, 0))
        self.assertEqual(address_of(w.parameters[0]), x.p)

    def test_trains_in_managed_memory(self):
        self.step_of(DeviceArray(np.arange(5, dtype=np.float32), kind=MANAGED))

    def test_trains_in_memory_that_only_has_cuda_array_interface(self):
        x = DeviceArray(np.arange(5, dtype=np.float32))
        w = self.step_of(Described(x))
        self.assertEqual(address_of(w.parameters[0]), x.p)

    def test_memory_that_cuda_has_pinned_is_the_hosts(self):
        x = DeviceArray(np.arange(5, dtype=np.float32), kind=PINNED)
        w = self.job.worker(x, "sgd", lr=0.5, momentum=0, nesterov=False)
        w.step(lambda: (7.0, [np.arange(5, dtype=np.float32) - 1]))
        np.testing.assert_array_equal(np.asarray(w.parameters[0]), [0.5, 1, 1.5, 2, 2.5])
        np.testing.assert_array_equal(x.read(), [0.5, 1, 1.5, 2, 2.5])

    def test_a_vector_is_held_as_long_as_its_worker(self):
        held = len(lent)
        w = self.step_of(DeviceArray(np.arange(5, dtype=np.float32)))
        self.assertEqual(len(lent), held + 1)
        del w
        self.assertEqual(len(lent), held)

    def test_refuses_in_one_sentence(self):
        x, other = DeviceArray(np.zeros(3, np.float32)), DeviceArray(np.zeros(3, np.float32), device=1)
        for parameters, words in [
                ([x, other], "parameter 1 (DeviceArray[3]) is on CUDA device 1, and parameter 0 (DeviceArray[3]) on CUDA device 0"),
                ([x, np.zeros(3, np.float32)], "parameter 1 (ndarray[3]) is on the host, and parameter 0"),
                (DeviceArray(np.zeros(3)), "parameters are float32, not float64"),
                (Described(x, read_only=True), "contiguous, writable and of float32"),
                (Described(x, strides=(8,)), "contiguous, writable and of float32"),
                ([Described(x), Described(x)], "overlaps parameter 0"),
                (np.zeros(3, np.float32)[::2], "has gaps")]:
            with self.subTest(words), self.assertRaises(skein.BadOption) as caught:
                self.job.worker(parameters, "sgd")
            self.assertIn(words, str(caught.exception))
        with self.assertRaisesRegex(skein.BadOption, "a buffer is on the host, and the parameters on CUDA device 0"):
            self.job.worker([x], "sgd", buffers=[np.zeros(2, np.float32)])
        with self.assertRaisesRegex(skein.BadOption, "a simulation's parameters lie on the host"):
            skein.simulate(2, "sgd", None, x, steps=1)

    def test_a_worker_of_the_second_gpu(self):
        call("cudaSetDevice", 1)
        self.addCleanup(call, "cudaSetDevice", 0)
        x = DeviceArray(np.arange(5, dtype=np.float32), device=1)
        call("cudaSetDevice", 1)
        w = self.job.worker([x], "sgd", lr=0.5, momentum=0, nesterov=False)
        self.assertEqual(w.parameters[0].__dlpack_device__(), (CUDA, 1))
        w.step(lambda: (7.0, [np.arange(5, dtype=np.float32) - 1]))
        np.testing.assert_array_equal(values_of(w.parameters[0], 5), [0.5, 1, 1.5, 2, 2.5])


class Workers(unittest.TestCase):
    def ended(self, function, world, *arguments):
        return workers.results(self, HERE, function, world, *arguments)

    def test_trains_to_the_bits_of_the_host(self):
        for algorithm, flags in [("allreduce", {}), ("sgp", {}), ("local-sgd", {"tau": 3}), ("diloco", {"tau": 2}),
                                 ("allreduce", {"optimizer": "adamw"}), ("easgd", {}), ("sgp", {"optimizer": "sam"})]:
            with self.subTest(f"{algorithm} {flags}"):
                with tempfile.TemporaryDirectory() as d:
                    (a, b), (c, _) = (self.ended("train", 2, where, os.path.join(d, where), algorithm, flags)
                                      for where in ("cuda", "cpu"))
                self.assertEqual(a, b)
                self.assertEqual(a, c)

    def test_averages_singles_and_doubles(self):
        for r in self.ended("average", 2):
            self.assertEqual(r, {"singles": [1.5] * 5, "doubles": [1.5] * 5})


if __name__ == "__main__":
    unittest.main()

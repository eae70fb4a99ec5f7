"""Where parameters of several arrays lie in a worker's vector."""
import contextlib
import sys

from . import _skein
from ._arrays import (copy_into, device_of, exported, is_float32, is_jax, is_torch, place_of, shape_of, size_of,
                      stream_of)
from ._skein import BLOCK, BadOption


def _in_blocks(size):
    return (size + BLOCK - 1) // BLOCK * BLOCK


def _named(parameters):
    """Names, or None, and arrays: of a mapping, of pairs as named_parameters() has them, of arrays, or of a tensor."""
    if hasattr(parameters, "shape"):  # else its rows would be taken for the parameters
        return None, [parameters]
    given = list(parameters.items() if hasattr(parameters, "items") else parameters)
    if given and all(isinstance(p, tuple) and len(p) == 2 and isinstance(p[0], str) for p in given):
        return [name for name, _ in given], [array for _, array in given]
    return None, given


class Layout:
    """given            the parameters as they were given, until make_memory() has been called
    shapes           theirs
    vector           the array, or its DLPack capsule, whose memory is the worker's, or None
    device           the index of the GPU where all lie, or None for the host
    parameters, gradients  one array a parameter, once make_memory() was called
    words               the same for equal layouts
    sizes               of the parameters as they lie in the vector, with the padding behind them
    segments            (begin, end, rows, columns, hidden, decays) of each, for optimizers that ask; or empty
    """

    def __init__(self, parameters, buffers, optimizer="sgd", matrices=None):
        single = hasattr(parameters, "shape") and not is_torch(parameters)
        self._names, self.given = _named(parameters)
        self._given_buffers = [b for b in buffers if is_float32(b)]
        if not self.given:
            raise BadOption("no parameters: an empty list, or a generator that was read before")
        for i, array in enumerate(self.given):
            self._check(i, array)
        self.shapes = [shape_of(p) for p in self.given]
        self._buffer_shapes = [shape_of(b) for b in self._given_buffers]
        self.count = sum(map(size_of, self.shapes))
        if self.count == 0:
            raise BadOption("these parameters have no elements")
        self.buffer_count = sum(map(size_of, self._buffer_shapes))
        self._find_device()
        self._check_overlaps()
        self.vector = self._own_memory_of(parameters) if single and len(shape_of(parameters)) == 1 else None
        self._find_segments(optimizer, matrices)
        self.parameter_count = sum(self.sizes)
        self.words = ",".join("x".join(map(str, s)) for s in self.shapes + self._buffer_shapes)
        if self.segments:
            self.words += " in segments " + ",".join(
                f"{rows}x{columns}" + "*" * hidden for _, _, rows, columns, hidden, _ in self.segments)
        self._torch = {}  # of a parameter's index: the tensor, and its gradient

    def _name(self, i):
        array = self.given[i]
        name = f" '{self._names[i]}'" if self._names else ""
        return f"parameter {i}{name} ({type(array).__name__}{shape_of(array)})"

    def _check(self, i, array):
        if not is_float32(array):
            raise BadOption(f"{self._name(i)}: parameters are float32, not {getattr(array, 'dtype', 'others')}")
        if any(other is array for other in self.given[:i]):
            raise BadOption(f"{self._name(i)} is given twice")

    def _check_overlaps(self):
        places = sorted((*place_of(array), i) for i, array in enumerate(self.given) if place_of(array))
        for (_, end, i), (begin, _, j) in zip(places, places[1:]):
            if begin < end:
                raise BadOption(f"{self._name(j)} overlaps {self._name(i)}: each has memory of its own")

    def _find_device(self):
        self.device, first = device_of(self.given[0])
        for i, array in enumerate(self.given):
            index, where = device_of(array)
            name = f"{self._name(i)} is on {where}"
            if index is not None and index < 0:
                raise BadOption(f"{name}: parameters lie on the host or on a CUDA device")
            if index != self.device:
                raise BadOption(f"{name}, and {self._name(0)} on {first}: a worker's parameters lie on one device")
            if index is not None and (why := _skein.trouble_with(index)):
                raise BadOption(f"{name}: {why}")
        for array in self._given_buffers:
            if device_of(array)[0] != self.device:
                raise BadOption(f"a buffer is on {device_of(array)[1]}, and the parameters on {first}")

    def _own_memory_of(self, array):
        """What the worker trains in place: the array itself, or its capsule if it is on a GPU."""
        if self.device is None:
            try:
                memory = memoryview(array)
            except TypeError:  # it knows DLPack alone, such as memory that CUDA has pinned
                return array
            self._check_memory(memory)
            return array
        if is_jax(array):
            raise BadOption("this array is read-only: give a writable one, or [array], which is copied once")
        return exported(array)

    @staticmethod
    def _check_memory(memory):
        for wrong, what in ((memory.readonly, "is read-only: give a writable one"),
                            (not memory.c_contiguous, "has gaps between its numbers: give a contiguous one")):
            if wrong:
                raise BadOption(f"this array {what}, or [array], which is copied once")

    # ---- segments: what optimizers other than SGD treat as one, a parameter or a part of the single vector

    def _find_segments(self, optimizer, matrices):
        self.segments, self.sizes = [], [size_of(s) for s in self.shapes]
        if optimizer == "sgd":
            if matrices is not None:
                raise BadOption("matrices: sgd treats all parameters alike; leave it out, or choose another optimizer")
            return
        shapes = self.shapes
        if self.vector is not None:
            shapes = [[self.count]] if matrices is None else [[int(n) for n in shape] for shape in matrices]
            if not shapes or any(not s or min(s) < 1 for s in shapes):
                raise BadOption("matrices: shapes of one number or more each are wanted, in the order of the vector")
            matrices = None
        hidden = self._hidden(shapes, matrices)
        begin = 0
        for i, shape in enumerate(shapes):
            size = size_of(shape)
            if size == 0:
                continue
            rows = shape[0] if len(shape) > 1 else 1
            end = begin + _in_blocks(size)
            self.segments.append((begin, end, rows, size // rows, i in hidden, len(shape) > 1 or shapes == [[size]]))
            begin = end
        if self.vector is None:
            self.sizes = [_in_blocks(n) for n in self.sizes]
        else:
            self._end_with_the_vector()

    def _end_with_the_vector(self):
        begin, end, rows, columns, *kind = self.segments[-1]
        if not begin + rows * columns <= self.count <= end:
            raise BadOption(f"matrices: segments of these shapes, each from a multiple of {BLOCK} on, take "
                            f"{begin + rows * columns} numbers; the array has {self.count}")
        self.segments[-1] = (begin, self.count, rows, columns, *kind)

    def _hidden(self, shapes, matrices):
        """Indices of what Muon orthogonalizes: those named, or all of two axes or more but the last, which is the head."""
        candidates = [i for i, shape in enumerate(shapes) if len(shape) > 1]
        if matrices is None:
            return set(candidates[:-1])
        named = {name: i for i, name in enumerate(self._names or [])}
        chosen = set()
        for one in matrices:
            index = named.get(one) if isinstance(one, str) else one
            if index not in candidates:
                raise BadOption(f"matrices: {one!r} is no parameter of two axes or more")
            chosen.add(index)
        return chosen

    # ---- memory

    def make_memory(self, job):
        """The vectors of a worker of this job, with the values that were given."""
        device = -1 if self.device is None else self.device
        try:
            self._memory = memory = _skein.Memory(job, self.parameter_count, self.buffer_count, self.vector, device)
        except TypeError:
            raise BadOption("this array is read-only or has gaps between its numbers: give a contiguous, writable one, or "
                            "[array], which is copied once") from None
        self.end_call()
        self._lay_into(memory)
        self.given = self._given_buffers = ()  # those that were copied are the caller's alone
        self.begin_call()
        return memory

    def _lay_into(self, memory):
        self.parameters, self.gradients, at = [], [], 0
        for i, (array, shape) in enumerate(zip(self.given, self.shapes)):
            x, g = memory.parameters(at, shape), memory.gradients(at, shape)
            self.parameters.append(x)
            self.gradients.append(g)
            at += self.sizes[i]
            if is_torch(array):
                _move(array, x)
                self._torch[i] = (array, sys.modules["torch"].from_dlpack(g))
            elif self.vector is None:
                copy_into(x, array)
        at = 0
        for array, shape in zip(self._given_buffers, self._buffer_shapes):
            window = memory.buffers(at, shape)
            _move(array, window) if is_torch(array) else copy_into(window, array)
            at += size_of(shape)

    # ---- order between the program's work on a GPU and the worker's; on the host all is done when a call returns

    def begin_call(self):
        """The worker's stream waits for what the program has queued so far."""
        if self.device is not None:
            self._memory.wait_for(stream_of(self.device, self._torch))

    def end_call(self):
        """Waits for the worker's work, so that any stream of the program may use its vectors."""
        if self.device is not None:
            self._memory.finish()

    @contextlib.contextmanager
    def call(self):
        self.begin_call()
        try:
            yield
        finally:
            self.end_call()

    def clear(self):
        self._memory.clear_gradient()
        self.end_call()
        for tensor, g in self._torch.values():
            tensor.grad = g

    def fetch(self, index):
        """Copies a tensor's gradient to the worker's memory, if `grad` was replaced; otherwise backward() wrote it there."""
        if index not in self._torch:
            return
        tensor, g = self._torch[index]
        if tensor.grad is None:
            g.zero_()
        elif tensor.grad.data_ptr() != g.data_ptr():
            g.copy_(tensor.grad)

    def take(self, given):
        """The loss, once the gradient that came with it is in the worker's memory."""
        for index in self._torch:
            self.fetch(index)
        if isinstance(given, tuple):
            loss, gradients = given
            self.copy_gradients(self.gradients, gradients)
        else:
            loss = given
        self.begin_call()
        return float(loss.detach() if hasattr(loss, "detach") else loss)

    def copy_gradients(self, to, gradients):
        if len(gradients) != len(to):
            raise BadOption(f"{len(gradients)} gradients for {len(to)} parameters")
        for i, (window, array) in enumerate(zip(to, gradients)):
            if shape_of(array) != self.shapes[i]:
                raise BadOption(f"gradient {i} has the shape {shape_of(array)}, its parameter {self.shapes[i]}")
            copy_into(window, array)


def _move(tensor, window):
    """From now on the tensor is this window of the worker's memory, with the values that it has."""
    torch = sys.modules["torch"]
    with torch.no_grad():
        window = torch.from_dlpack(window)
        window.copy_(tensor)
        tensor.data = window

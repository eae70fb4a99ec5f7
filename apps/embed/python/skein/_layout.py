"""Where parameters of several arrays lie in a worker's vector."""
import sys

from ._skein import BLOCK, BadOption

_CPU = 1  # DLPack's DLDeviceType, as are
_DEVICES = {2: "CUDA device", 8: "Metal device", 10: "ROCm device"}


def _place(array):
    """(first byte, byte after the last one) of a contiguous array or tensor of float32; None of others."""
    if is_torch(array):
        begin = array.data_ptr() if array.is_contiguous() else None
    else:
        said = getattr(array, "__array_interface__", {"strides": ()})
        begin = said["data"][0] if said.get("strides") is None else None
    size = _size(_shape(array))
    return (begin, begin + 4 * size) if begin and size else None


def is_torch(array):
    return type(array).__module__.split(".")[0] == "torch" or (
        "torch" in sys.modules and isinstance(array, sys.modules["torch"].Tensor))


def _other_device(array):
    """The device of an array that does not lie in the host's memory; else None."""
    if is_torch(array):
        return None if array.device.type == "cpu" else array.device
    kind, number = array.__dlpack_device__() if hasattr(array, "__dlpack_device__") else (_CPU, 0)
    return None if kind == _CPU else f"{_DEVICES.get(kind, f'device of kind {kind}, number')} {number}"


def _shape(array):
    if hasattr(array, "shape"):
        return [int(n) for n in array.shape]
    return list(memoryview(array).shape)


def _is_float32(array):
    if hasattr(array, "dtype"):
        return str(array.dtype).endswith("float32")
    return memoryview(array).format == "f"


def _size(shape):
    size = 1
    for n in shape:
        size *= n
    return size


def _in_blocks(size):
    return (size + BLOCK - 1) // BLOCK * BLOCK


def _named(parameters):
    """Names, or None, and arrays: of a mapping, of pairs as named_parameters() has them, or of arrays."""
    given = list(parameters.items() if hasattr(parameters, "items") else parameters)
    if given and all(isinstance(p, tuple) and len(p) == 2 and isinstance(p[0], str) for p in given):
        return [name for name, _ in given], [array for _, array in given]
    return None, given


class Layout:
    """given, shapes       the parameters as they were given
    vector           the array whose memory is the worker's, or None
    parameters, gradients  one array a parameter, once bind() was called
    words               the same for equal layouts
    sizes               of the parameters as they lie in the vector, with the padding behind them
    segments            (begin, end, rows, columns, hidden, decays) of each, for optimizers that ask; or empty
    """

    def __init__(self, parameters, buffers, optimizer="sgd", matrices=None):
        single = hasattr(parameters, "shape") and not is_torch(parameters)
        self._names, self.given = (None, [parameters]) if single else _named(parameters)
        self._given_buffers = [b for b in buffers if _is_float32(b)]
        if not self.given:
            raise BadOption("no parameters: an empty list, or a generator that was read before")
        for i, array in enumerate(self.given):
            self._check(i, array)
        self.shapes = [_shape(p) for p in self.given]
        self._buffer_shapes = [_shape(b) for b in self._given_buffers]
        self.count = sum(map(_size, self.shapes))
        if self.count == 0:
            raise BadOption("these parameters have no elements")
        self.buffer_count = sum(map(_size, self._buffer_shapes))
        self._check_overlaps()
        self.vector = parameters if single and len(_shape(parameters)) == 1 else None
        if self.vector is not None:
            self._check_memory(memoryview(self.vector))
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
        return f"parameter {i}{name} ({type(array).__name__}{_shape(array)})"

    def _check(self, i, array):
        if not _is_float32(array):
            raise BadOption(f"{self._name(i)}: parameters are float32, not {getattr(array, 'dtype', 'others')}")
        if where := _other_device(array):
            raise BadOption(f"{self._name(i)} is on {where}: parameters of this package lie on the host")
        if any(other is array for other in self.given[:i]):
            raise BadOption(f"{self._name(i)} is given twice")

    def _check_overlaps(self):
        places = sorted((*_place(array), i) for i, array in enumerate(self.given) if _place(array))
        for (_, end, i), (begin, _, j) in zip(places, places[1:]):
            if begin < end:
                raise BadOption(f"{self._name(j)} overlaps {self._name(i)}: each has memory of its own")

    @staticmethod
    def _check_memory(memory):
        for wrong, what in ((memory.readonly, "is read-only: give a writable one"),
                            (not memory.c_contiguous, "has gaps between its numbers: give a contiguous one")):
            if wrong:
                raise BadOption(f"this array {what}, or [array], which is copied once")

    # ---- segments: what optimizers other than SGD treat as one, a parameter or a part of the single vector

    def _find_segments(self, optimizer, matrices):
        self.segments, self.sizes = [], [_size(s) for s in self.shapes]
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
            size = _size(shape)
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

    def bind(self, memory):
        self._memory = memory
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
            at += _size(shape)

    def clear(self):
        self._memory.clear_gradient()
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
        return float(loss.detach() if hasattr(loss, "detach") else loss)

    def copy_gradients(self, to, gradients):
        if len(gradients) != len(to):
            raise BadOption(f"{len(gradients)} gradients for {len(to)} parameters")
        for i, (window, array) in enumerate(zip(to, gradients)):
            if _shape(array) != self.shapes[i]:
                raise BadOption(f"gradient {i} has the shape {_shape(array)}, its parameter {self.shapes[i]}")
            copy_into(window, array)


def _move(tensor, window):
    """From now on the tensor is this window of the worker's memory, with the values that it has."""
    torch = sys.modules["torch"]
    with torch.no_grad():
        window = torch.from_dlpack(window)
        window.copy_(tensor)
        tensor.data = window


def copy_into(to, array):
    """Copies between contiguous arrays of one shape. `array` supports the buffer protocol or __array__."""
    if not _is_float32(array):
        raise BadOption(f"float32 is wanted, not {array.dtype}")
    try:
        source = memoryview(array)
    except TypeError:
        source = memoryview(array.__array__())
    if not source.c_contiguous:
        source = memoryview(source.tobytes())
    source = source.cast("B") if source.nbytes else source
    if source.nbytes:
        memoryview(to).cast("B")[:] = source

"""Where parameters of several arrays lie in a worker's vector."""
import sys

from ._skein import BadOption


def _is_torch(array):
    return type(array).__module__.split(".")[0] == "torch" or (
        "torch" in sys.modules and isinstance(array, sys.modules["torch"].Tensor))


def _shape(array):
    if hasattr(array, "shape"):
        return [int(n) for n in array.shape]
    return list(memoryview(array).shape)


def _is_float32(array):
    if hasattr(array, "dtype"):
        return str(array.dtype).endswith("float32")
    return memoryview(array).format == "f"


def _name(index, array):
    return f"parameter {index} ({type(array).__name__}{_shape(array)})"


def _size(shape):
    size = 1
    for n in shape:
        size *= n
    return size


class Layout:
    """vector           the array whose memory is the worker's, or None
    parameters, gradients  one array a parameter, once bind() was called
    words               the same for equal layouts
    """

    def __init__(self, parameters, buffers):
        single = hasattr(parameters, "shape") and not _is_torch(parameters)
        self._given = [parameters] if single else list(parameters)
        self._given_buffers = [b for b in buffers if _is_float32(b)]
        if not self._given:
            raise BadOption("no parameters: an empty list, or a generator that was read before")
        for i, array in enumerate(self._given):
            self._check(i, array)
        self._shapes = [_shape(p) for p in self._given]
        self._buffer_shapes = [_shape(b) for b in self._given_buffers]
        self.sizes = [_size(s) for s in self._shapes]
        self.parameter_count = sum(self.sizes)
        if self.parameter_count == 0:
            raise BadOption("these parameters have no elements")
        self.buffer_count = sum(map(_size, self._buffer_shapes))
        self.vector = parameters if single and len(_shape(parameters)) == 1 else None
        if self.vector is not None and memoryview(self.vector).readonly:
            raise BadOption("this array is read-only: give a writable one, or [array], which is copied once")
        self.words = ",".join("x".join(map(str, s)) for s in self._shapes + self._buffer_shapes)
        self._torch = {}  # of a parameter's index: the tensor, and its gradient

    def _check(self, i, array):
        if not _is_float32(array):
            raise BadOption(f"{_name(i, array)}: parameters are float32, not {getattr(array, 'dtype', 'others')}")
        if _is_torch(array) and array.device.type != "cpu":
            raise BadOption(f"{_name(i, array)} is on {array.device}: parameters of this package lie on the host")
        if any(other is array for other in self._given[:i]):
            raise BadOption(f"{_name(i, array)} is given twice")

    def bind(self, memory):
        self._memory = memory
        self.parameters, self.gradients, at = [], [], 0
        for i, (array, shape) in enumerate(zip(self._given, self._shapes)):
            x, g = memory.parameters(at, shape), memory.gradients(at, shape)
            self.parameters.append(x)
            self.gradients.append(g)
            at += _size(shape)
            if _is_torch(array):
                _move(array, x)
                self._torch[i] = (array, sys.modules["torch"].from_dlpack(g))
            elif self.vector is None:
                _copy(x, array)
        at = 0
        for array, shape in zip(self._given_buffers, self._buffer_shapes):
            window = memory.buffers(at, shape)
            _move(array, window) if _is_torch(array) else _copy(window, array)
            at += _size(shape)

    def clear(self):
        self._memory.clear_gradient()
        for tensor, g in self._torch.values():
            tensor.grad = g

    def fetch(self, index):
        """The gradient of a tensor into the worker's memory, where backward() has it unless `grad` was set anew."""
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
            if len(gradients) != len(self.gradients):
                raise BadOption(f"{len(gradients)} gradients for {len(self.gradients)} parameters")
            for i, (to, array) in enumerate(zip(self.gradients, gradients)):
                if _shape(array) != self._shapes[i]:
                    raise BadOption(f"gradient {i} has the shape {_shape(array)}, its parameter {self._shapes[i]}")
                _copy(to, array)
        else:
            loss = given
        return float(loss.detach() if hasattr(loss, "detach") else loss)


def _move(tensor, window):
    """From now on the tensor is this window of the worker's memory, with the values that it has."""
    torch = sys.modules["torch"]
    with torch.no_grad():
        window = torch.from_dlpack(window)
        window.copy_(tensor)
        tensor.data = window


def _copy(to, array):
    """Between contiguous arrays of one shape, of anybody who knows the buffer protocol or __array__."""
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

"""What an array or tensor says of itself: shape, type, device, memory. Frameworks are asked, never imported."""
import sys

from . import _skein
from ._skein import BadOption

_HOST = {1, 3}   # DLPack's DLDeviceType: the host's memory, and that which CUDA has pinned
_CUDA = {2, 13}  # a GPU's, and memory that CUDA moves between it and the host
_OTHERS = {8: "Metal device", 10: "ROCm device"}
_DEFAULT_STREAM = 1  # cudaStreamLegacy


def is_torch(array):
    return type(array).__module__.split(".")[0] == "torch" or (
        "torch" in sys.modules and isinstance(array, sys.modules["torch"].Tensor))


def is_jax(array):
    """JAX's arrays cannot be written, and do not say so by DLPack."""
    return type(array).__module__.startswith("jax")


def shape_of(array):
    if hasattr(array, "shape"):
        return [int(n) for n in array.shape]
    return list(memoryview(array).shape)


def size_of(shape):
    size = 1
    for n in shape:
        size *= n
    return size


def is_float32(array):
    if hasattr(array, "dtype"):
        return str(array.dtype).endswith("float32")
    return memoryview(array).format == "f"


def device_of(array):
    """(index, words) of the device that has the array's memory. The index is None for the host, negative for devices that
    are not CUDA's."""
    if is_torch(array):
        kind = array.device.type
        return {"cpu": (None, "the host"), "cuda": (array.device.index, f"CUDA device {array.device.index}")}.get(
            kind, (-1, str(array.device)))
    if hasattr(array, "__dlpack_device__"):
        kind, number = map(int, array.__dlpack_device__())
        if kind in _HOST:
            return None, "the host"
        if kind in _CUDA:
            return number, f"CUDA device {number}"
        return -1, f"{_OTHERS.get(kind, f'device of kind {kind}, number')} {number}"
    if hasattr(array, "__cuda_array_interface__"):
        index = adopted(array).__dlpack_device__()[1]
        return index, f"CUDA device {index}"
    return None, "the host"


def adopted(array):
    """An array that only has __cuda_array_interface__, as one that knows DLPack, of the same memory."""
    said = array.__cuda_array_interface__
    address, read_only = said["data"]
    if read_only or said.get("strides") is not None or said["typestr"] != "<f4":
        raise BadOption(f"{type(array).__name__}: an array on a GPU is contiguous, writable and of float32")
    return _skein.array_at(address, list(said["shape"]), said.get("stream"), array)


def exported(array):
    """An array on a GPU as a DLPack capsule. Its library lets the worker's stream wait for the array."""
    if is_torch(array):
        array = array.detach()
    if not hasattr(array, "__dlpack__"):
        array = adopted(array)
    stream = _skein.stream(device_of(array)[0])
    try:
        return array.__dlpack__(stream=stream, max_version=(1, 0))
    except TypeError:  # from before DLPack 1.0
        return array.__dlpack__(stream=stream)


def stream_of(device, tensors):
    """The stream in which the program works on this GPU: PyTorch's current one where there are tensors, else the default."""
    handle = sys.modules["torch"].cuda.current_stream(device).cuda_stream if tensors else 0
    return handle or _DEFAULT_STREAM


def place_of(array):
    """(first byte, byte after the last one) of a contiguous array or tensor of float32; None of others."""
    if is_torch(array):
        begin = array.data_ptr() if array.is_contiguous() else None
    else:
        said = getattr(array, "__array_interface__", None) or getattr(array, "__cuda_array_interface__", {"strides": ()})
        begin = said["data"][0] if said.get("strides") is None else None
    size = size_of(shape_of(array))
    return (begin, begin + 4 * size) if begin and size else None


def copy_into(to, array):
    """Copies between contiguous arrays of one shape. `array` supports the buffer protocol or __array__, or lies on a GPU."""
    if not is_float32(array):
        raise BadOption(f"float32 is wanted, not {getattr(array, 'dtype', 'another type')}")
    index = device_of(array)[0]
    if index is not None or device_of(to)[0] is not None:
        return _copy_on_gpu(to, array if index is None else exported(array))
    try:
        source = memoryview(array)
    except TypeError:
        source = memoryview(array.__array__())
    if not source.c_contiguous:
        source = memoryview(source.tobytes())
    source = source.cast("B") if source.nbytes else source
    if source.nbytes:
        memoryview(to).cast("B")[:] = source


def _copy_on_gpu(to, source):
    try:
        _skein.copy_into(to, source)
    except TypeError:
        raise BadOption("arrays with gaps between their numbers, or of a type that is not float32, are not copied to or "
                        "from a GPU: give a contiguous one of float32") from None

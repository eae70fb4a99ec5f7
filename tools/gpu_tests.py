"""Which tests use a GPU: make_bundle packs the program that holds them, gpu_check runs them, in this order."""
import pathlib
import re

PROGRAM = "device_tests"
FIRST = ["library", "caching_allocator", "cuda_memory", "cuda_kernels", "cuda_norm", "vec", "cuda_gemm", "conv_run",
         "cuda_conv_bn", "cuda_chain"]  # what the others stand on
WITHOUT_EMULATION = ["nccl"]


def names():
    """Those that run on the emulated device, by the list they are built from, and the others."""
    listed = (pathlib.Path(__file__).resolve().parent.parent / "tests/tests.cmake").read_text()
    emulated = re.search(r"set\(on_devices ([^)]*)\)", listed).group(1).split()
    return [f"{n}_test" for n in dict.fromkeys(FIRST + emulated + WITHOUT_EMULATION)]

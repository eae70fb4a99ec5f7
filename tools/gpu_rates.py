"""The first command of tools/gpu_check: what is here, and how fast it is."""
import pathlib
import re
import shutil
import subprocess

from gpu_pieces import SMALL, bench, last_words, one_test_program, torch_modes, training
from gpu_run import ROOT, kernel_table


def machine(c):
    asked = "name,driver_version,memory.total,clocks.max.sm,power.limit"
    versions = ("import torch; print(torch.__version__, torch.version.cuda, torch.backends.cudnn.version(), "
                "torch.cuda.nccl.version())")
    for what, command in [("GPU", ["nvidia-smi", f"--query-gpu={asked}", "--format=csv,noheader"]),
                          ("compiler", ["nvcc", "--version"]), ("kernel", ["uname", "-sr"]),
                          ("PyTorch", ["python3", "-c", versions])]:
        status, said = c.run(command, 60)
        c.row(what, said.strip().splitlines()[-1] if said.strip() else f"status {status}")
    for library in ("libcudnn.so.9", "libcublasLt.so.13", "libnccl.so.2"):
        folders = c.env["LD_LIBRARY_PATH"].split(":") + ["/usr/local/cuda/lib64"]
        c.row(library, next((f for f in folders if (pathlib.Path(f) / library).exists()), "not found"))
    if c.o.dry_run:
        shutil.copy(ROOT / "tests/cuda/h200.json", c.work / "device.json")
        c.row("cuDNN's description of the device", "tests/cuda/h200.json, in the place of a device's")
    elif c.has("gpu_bench"):
        status, said = c.run([c.program("gpu_bench"), "--only", "none", "--describe", c.work / "device.json"], 60)
        c.row("cuDNN's description of the device", "device.json" if status == 0 else said.strip()[-200:],
              good=status == 0)


def smoke(c):
    for name in ("cuda_kernels_test", "cuda_norm_test"):
        one_test_program(c, name, "--gtest_filter=*device", 30)


def step(c):
    with beside(c):
        for precision in ("fp16", "bf16"):
            c.once(precision, bench, c, 40, "--only", "step", "--models", "resnet50", "--precision", precision)


class beside:
    """Clocks, power and memory of the GPU, once a second into a log, while something is measured."""

    def __init__(self, c):
        self.file, self.tool, self.child = c.work / "logs/clocks.log", shutil.which("nvidia-smi"), None

    def __enter__(self):
        if self.tool:
            with open(self.file, "ab") as log:
                self.child = subprocess.Popen([self.tool, "dmon", "-s", "pucm", "-d", "1", "-o", "T"], stdout=log,
                                              stderr=subprocess.STDOUT, start_new_session=True)

    def __exit__(self, *_):
        if self.child:
            self.child.kill()
            self.child.wait()


METRICS = ("gpu__time_duration.sum,dram__bytes_read.sum,dram__bytes_write.sum,"
           "sm__warps_active.avg.pct_of_peak_sustained_active")


def kernels(c):
    for precision in ("fp16", "bf16"):
        c.once(precision, kernels_of_a_step, c, precision)


def kernels_of_a_step(c, precision):
    key = f"kernels of a step, resnet50 b256 {precision}"
    tool = shutil.which("ncu") or "/usr/local/cuda/bin/ncu"
    status, said = c.run([tool, "--clock-control", "none", "--profile-from-start", "off", "--metrics", METRICS,
                          "--csv", c.program("gpu_bench"), "--only", "step", "--models", "resnet50", "--precision",
                          precision, "--profile", "1"], 75)
    table = kernel_table(said)
    if not table:  # a machine may keep its counters to root
        return c.row(key, f"no table (status {status}): " + (said.strip().splitlines() or [""])[-1][-200:])
    with open(c.work / "kernels.csv", "a") as f:
        if f.tell() == 0:
            f.write("precision,kernel,calls,ms,GB read,GB written,warps active %\n")
        for name, calls, ms, read, written, warps in table:
            f.write(f'{precision},"{name}",{calls},{ms:.4f},{read:.4f},{written:.4f},{warps:.1f}\n')
    c.row(key, f"{sum(r[1] for r in table)} kernels, {len(table)} kinds: kernels.csv",
          value=sum(r[2] for r in table), unit="ms")
    for name, calls, ms, read, written, warps in table[:12]:
        c.row(f"{key}: {name[:60]}", f"{calls} calls, {read + written:.2f} GB", value=ms, unit="ms")


def norms(c):
    bench(c, 60, "--only", "norm")


def end_to_end(c):
    """The rate of a training, its data and its loop included."""
    model = ["--model", "small-cnn", *SMALL] if c.o.dry_run else \
            ["--model", "resnet50", "--data", "synthetic:224x224x3,classes=1000,train=25600,test=256",
             "--batch-size", "256"]
    for precision in ("fp16", "bf16"):
        c.once(precision, rate_of_training, c, precision, model)


def rate_of_training(c, precision, model):
    status, said = training(c, *model, "--precision", "fp32" if c.o.dry_run else precision, "--steps",
                            "10" if c.o.dry_run else "100", limit=60)
    rates = re.findall(r"([\d.]+) images/s", said)
    figures = {"value": float(rates[-1]), "unit": "img/s"} if rates else {}
    c.row(f"train_imagenet resnet50 b256 {precision}", last_words(said), good=status == 0 and bool(rates), **figures)


def torch(c):
    for modes in (["graph_fp16", "graph_bf16"], ["eager_fp16", "eager_bf16"]):
        c.once(modes[0], torch_modes, c, modes, 60)

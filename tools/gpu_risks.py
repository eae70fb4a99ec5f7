"""The third command of tools/gpu_check: what may hang or break the machine."""
import hashlib
import pathlib
import re
import shutil
import tempfile

import gpu_tests
from gpu_pieces import COLORED, SMALL, last_words, summary, training

ON_DEVICE = "--gtest_filter=*cuda*:*device*"


def messages(c):
    """Gossip between two processes on the GPU, their messages by way of the host, from GPU to GPU, and as measured."""
    for wish in ("off", "on", "auto"):
        c.once(wish, messages_by, c, wish)


def messages_by(c, wish):
    status, said = training(c, *COLORED, "--model", "small-cnn" if c.o.dry_run else "resnet20", "--workers", "2",
                            "--algorithm", "sgp", "--steps", "40", "--batch-size", "16", "--device-messages", wish)
    known = r"messages between|top-1|train_imagenet:|\d+ images/s"
    told = [line for line in said.splitlines() if re.match(known, line)]
    # Without a GPU, or with a UCX that knows no CUDA, "on" cannot be, and says so.
    refused = wish == "on" and (c.o.dry_run or "does not move a GPU's memory" in said)
    c.row(f"--device-messages {wish}", " / ".join(told)[:400] or f"status {status}",
          good=status == (2 if refused else 0))


def repeatable(c):
    """The same training twice with --deterministic: the same model, bit for bit."""
    found = []
    for _ in range(2):
        with tempfile.TemporaryDirectory() as place:
            status, said = training(c, "--model", "small-cnn", *SMALL, "--steps", "40", "--deterministic", limit=45,
                                    output=f"{place}/run")
            weights = pathlib.Path(place, "run/model.safetensors")
            digest = hashlib.sha256(weights.read_bytes()).hexdigest()[:16] if weights.exists() else last_words(said)
            found.append((status, digest))
    same = found[0] == found[1] and found[0][0] == 0
    c.row("--deterministic, twice", f"{'the same model' if same else 'differs'}: {found[0][1]} / {found[1][1]}",
          good=same)


def memory(c):
    """What is said when memory runs out: the batch that fits."""
    large = ["--model", "resnet50", "--data", "synthetic:224x224x3,classes=1000,train=1024,test=64"]
    limit, model = ("0.01", ["--model", "small-cnn", *SMALL, "--batch-size", "1024"]) if c.o.dry_run else \
        ("1", [*large, "--batch-size", "256"])
    status, said = training(c, *model, "--memory-limit", limit, "--steps", "2", limit=60)
    c.row("out of memory", last_words(said, r"train_imagenet:"), good=status not in (0, 124) and "--accumulate" in said)


def sanitizer(c):
    for check, name, chosen in [("memcheck", "cuda_kernels_test", ON_DEVICE),
                                ("memcheck", "cuda_norm_test", ON_DEVICE),
                                ("racecheck", "cuda_kernels_test", "--gtest_filter=*Pooling*device:*Nan*device"),
                                ("racecheck", "cuda_norm_test", "--gtest_filter=*Nan*device"),
                                *[("memcheck", f"{name}_test", ON_DEVICE)
                                  for name in ("vec", "mixing", "gem", "ops", "reduce", "softmax", "layout")]]:
        c.once(f"{check} {name}", sanitized, c, check, name, chosen)


def sanitized(c, check, name, chosen):
    tool = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
    key = f"{check} {name}"
    if not c.has(gpu_tests.PROGRAM):
        return c.row(key, "not in the bundle")
    status, said = c.run([tool, "--tool", check, "--error-exitcode", "99", *c.test(name), chosen], 120)
    found = re.findall(r"(?:ERROR|RACECHECK) SUMMARY: .*", said)
    c.row(key, found[-1] if found else f"status {status}: {said.strip()[-120:]}",
          good=status in (0, None) or c.o.dry_run)


def two_ranks(c):
    """Two members of an NCCL group on one GPU, which NVIDIA calls unsupported: a failure proves nothing, sums that
    are right do."""
    if not c.has(gpu_tests.PROGRAM):
        return c.row("two NCCL members on one GPU", "not in the bundle")
    status, said = c.run([*c.test("nccl_test"), "--gtest_filter=*NcclPair*"], 40, env={"SKEIN_NCCL_PAIR": "1"})
    found = summary(said)
    words = "skipped" if found and found[1] else "20 sums of 4 MB are right" if status == 0 else f"status {status}"
    c.row("two NCCL members on one GPU", words)

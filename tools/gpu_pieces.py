"""What several sections of tools/gpu_check do. A section adds rows to its run, under names that do not change
from run to run; what may take long goes through once(), so that a later command continues behind it."""
import pathlib
import re
import sys
import tempfile

import gpu_tests

SMALL = ["--data", "synthetic:28x28x1,classes=10,train=2048,test=256"]
COLORED = ["--data", "synthetic:32x32x3,classes=10,train=2048,test=256"]


def bench(c, limit, *words, prefix="", key=None):
    """Rows of gpu_bench, as they are made."""
    key = key or " ".join(words)
    if not c.has("gpu_bench"):
        return c.row(key, "gpu_bench is not in the bundle", good=False)
    part = c.work / "part.json"
    part.unlink(missing_ok=True)
    keep = lambda: c.bench_rows(part, prefix)
    try:
        status, said = c.run([c.program("gpu_bench"), "--json", part, *words], limit, meanwhile=keep)
    finally:
        any_rows = keep()
    if status == 124:
        c.row(key, f"ended after {limit} s; what it has measured is above", good=any_rows)
    elif status != 0 or not any_rows:
        c.row(key, said.strip()[-200:] or f"status {status}", good=status == 0)


def training(c, *words, limit=90, output=None):
    """(exit status, what it said) of a short training; on the CPU in a rehearsal."""
    with tempfile.TemporaryDirectory() as place:
        command = [c.program("train_imagenet"), "--device", "cpu" if c.o.dry_run else "cuda", "--output",
                   output or f"{place}/run", *words]
        return c.run(command, limit)


def last_words(said, pattern=r"top-1|train_imagenet:"):
    told = [line for line in said.splitlines() if re.match(pattern, line)]
    return (told or said.strip().splitlines() or [""])[-1][:200]


def torch_modes(c, modes, limit):
    if c.o.dry_run:
        status, said = c.run([sys.executable, "-m", "py_compile", "bench/peers/torch_gpu_bench.py"], 30)
        return c.row("torch_gpu_bench.py", "compiles" if status == 0 else said, good=status == 0)
    status, said = c.run(["python3", "bench/peers/torch_gpu_bench.py", "256", ",".join(modes)], limit)
    for mode in modes:
        found = re.search(rf"torch (\S+) resnet50 b256 {mode}: (\d+) img/s(.*)", said)
        if found:
            c.row(f"torch resnet50 b256 {mode}", f"torch {found[1]}{found[3]}", value=float(found[2]), unit="img/s")
        else:
            c.row(f"torch resnet50 b256 {mode}", "ended at its limit" if status == 124 else said.strip()[-200:])


def tests(c):
    for name in gpu_tests.names():  # of those that run on the CPU too, what runs on a device
        c.once(name, one_test_program, c, name, "--gtest_filter=" + ("*" if "cuda" in name else "*/cuda*:*/device*"))


def summary(said):
    """How many tests a GoogleTest program ran and skipped, and which failed; none where it did not come to its end."""
    ran = re.search(r"\[==========\] (\d+) tests? from .* ran", said)
    skipped = re.search(r"\[  SKIPPED \] (\d+) test", said)
    failed = sorted(set(re.findall(r"\[  FAILED  \] ([\w./]+)(?:,| \()", said)))
    return (int(ran[1]), int(skipped[1]) if skipped else 0, failed) if ran else None


def one_test_program(c, name, chosen, limit=150):
    if not c.has(gpu_tests.PROGRAM):
        return c.row(name, "not in the bundle")
    status, said = c.run([*c.test(name), chosen], limit)
    found = summary(said)
    if found and not found[2]:
        ran, skipped, _ = found
        at_end = f", status {status}" if status else ""
        return c.row(name, f"{ran - skipped} ran, {skipped} skipped, none failed{at_end}",
                     good=status == 0 and (ran > skipped or c.o.dry_run))
    c.row(name, f"status {status}" + ("" if found else ", not to its end"), good=False)
    one_by_one(c, name, chosen, said)


def one_by_one(c, name, chosen, said):
    """Once a kernel has failed, all that follows in that process fails too: each test that did not pass runs alone."""
    passed = set(re.findall(r"\[ +(?:OK|SKIPPED) +\] ([\w./]+)", said))
    _, listing = c.run([*c.test(name), chosen, "--gtest_list_tests"], 30)
    left, bad, suite = [], [], ""
    for line in listing.splitlines():
        if re.match(r"[\w/]+\.(\s|$)", line):
            suite = line.split()[0]
        elif re.match(r"  \w", line):
            left.append(suite + line.split()[0])
    left = [test for test in left if test not in passed]
    for test in left:
        status, _ = c.run([*c.test(name), f"--gtest_filter={test}"], 30)
        if status:
            bad.append(f"{test} (status {status})")
    c.row(f"{name}, what did not pass, alone", f"{len(left) - len(bad)} of {len(left)} pass; " +
          (f"fail: {' '.join(bad)}"[:600] if bad else "none fails"), good=not bad)

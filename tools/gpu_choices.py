"""The second command of tools/gpu_check: plans by measurement, other sizes and models, single kernels."""
import re

from gpu_pieces import COLORED, SMALL, bench, last_words, torch_modes, training


def measured(c):
    """Steps by measured plans. A choice is kept as soon as it is made, so an attempt continues the last one."""
    for precision in ("fp16", "bf16"):
        for attempt in range(3):
            c.once(f"{precision}, attempt {attempt}", bench, c, 90, "--only", "step", "--models", "resnet50",
                   "--precision", precision, "--measure", "1")


def sizes(c):
    for batch in (128, 400, 512, 1024):
        c.once(str(batch), bench, c, 30, "--only", "step", "--models", "resnet50", "--precision", "fp16",
               "--batch", str(batch))
    c.once("others", bench, c, 60, "--only", "step", "--models", "resnet18,resnet20", "--precision", "fp16,bf16")


def parts(c):
    for only in ("fusion", "conv", "copy,vec,gemm", "launch"):
        c.once(only, bench, c, 45, "--only", only)
    c.once("vectors", vectors, c)


def vectors(c):
    if c.has("vec_bench"):
        part = c.work / "part.json"
        part.unlink(missing_ok=True)
        status, said = c.run([c.program("vec_bench"), "--device", "cuda", "--json", part], 45)
        if not c.bench_rows(part):
            c.row("vec_bench", said.strip()[-200:] or f"status {status}", good=status == 0)


def losses(c):
    """The same training by each type: losses that should lie close together."""
    model = ["--model", "small-cnn", *SMALL, "--steps", "10"] if c.o.dry_run else \
            ["--model", "resnet20", *COLORED, "--steps", "100"]
    for precision in ("fp32", "bf16", "fp16"):
        c.once(precision, loss_of_training, c, precision, model)


def loss_of_training(c, precision, model):
    status, said = training(c, *model, "--precision", "fp32" if c.o.dry_run else precision, limit=45)
    loss = re.search(r"loss ([\d.]+) on", said)
    c.row(f"resnet20 after 100 steps, {precision}", last_words(said), good=status == 0 and bool(loss),
          **({"value": float(loss[1]), "unit": "loss"} if loss else {}))


def trainings(c):
    """A short training a model; the same through several processes that share the GPU."""
    runs = [("small-cnn", SMALL), ("cnn7", SMALL), ("resnet18-cifar", COLORED),
            ("small-cnn, 2 workers, allreduce", SMALL + ["--workers", "2", "--algorithm", "allreduce"]),
            ("small-cnn, 4 workers, sgp", SMALL + ["--workers", "4", "--algorithm", "sgp"]),
            ("small-cnn, 2 workers, allreduce over UCX",
             SMALL + ["--workers", "2", "--algorithm", "allreduce", "--transport", "ucx", "--elastic", "off"])]
    for name, words in runs[:1] if c.o.dry_run else runs:
        c.once(name, short_training, c, name, words)


def short_training(c, name, words):
    status, said = training(c, "--model", re.match(r"[\w-]+", name)[0], "--steps", "40", *words)
    c.row(name, f"{'done' if status == 0 else f'status {status}'}: {last_words(said)}", good=status == 0)


def torch_compiled(c):
    for mode in ("compile_graph_fp16", "compile_graph_bf16"):
        c.once(mode, torch_modes, c, [mode], 150)

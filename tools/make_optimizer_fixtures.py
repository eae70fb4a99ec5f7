#!/usr/bin/env python3
"""Makes tests/fixtures/optimizers.json: 20 steps of optimizers in float64, for tests/optim/rule.

    python3 -m venv /tmp/optimizers && /tmp/optimizers/bin/pip install torch timm
    /tmp/optimizers/bin/python tools/make_optimizer_fixtures.py

AdamW is torch.optim.AdamW, LAMB is timm.optim.Lamb without its clipping (ours is --clip-norm). Muon is its authors' formula
in float64; how far torch.optim.Muon is from that, which iterates in bfloat16, is printed and kept. Parameters, gradients and
rates are formulas, which the test repeats; a fixture holds the parameters after some of the steps.
"""
import json
import math
import pathlib

import timm
import timm.optim
import torch

torch.set_default_dtype(torch.float64)
STEPS, KEPT = 20, (1, 2, 5, 20)
# name, rows, columns, part of the rate, whether it decays
HIDDEN = ("a", "b")  # what Muon orthogonalizes; the others take AdamW's step
SEGMENTS = [("a", 6, 11, 1, True), ("b", 16, 5, 0.5, True), ("head", 4, 6, 2, True), ("bias", 1, 16, 1, False),
            ("norm", 1, 7, 0.25, False)]


def start(s, i):
    return 0.5 * math.cos(0.37 * i + s)


def gradient(s, i, k, x):
    return 0.3 * x + math.sin(0.7 * i + 1.3 * k + 2 * s)


def rate(lr, k):
    return lr * min(1.0, (k + 1) / 5)


class Muon(torch.optim.Optimizer):
    """github.com/KellerJordan/Muon, with all of Newton-Schulz in the type of the parameter."""

    def __init__(self, groups, momentum, iterations, bfloat16=False):
        super().__init__(groups, dict(lr=0.02, weight_decay=0))
        self.momentum, self.iterations, self.bfloat16 = momentum, iterations, bfloat16

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                b = self.state[p].setdefault("b", torch.zeros_like(p))
                b.lerp_(p.grad, 1 - self.momentum)
                x = p.grad.lerp(b, self.momentum)
                x = self.orthogonal(x / x.norm())
                p.mul_(1 - group["lr"] * group["weight_decay"])
                p.add_(x, alpha=-group["lr"] * max(1, p.size(0) / p.size(1))**0.5)

    def orthogonal(self, x):
        kind = x.dtype
        x = x.bfloat16() if self.bfloat16 else x
        tall = x.size(0) > x.size(1)
        x = x.T if tall else x
        for _ in range(self.iterations):
            a = x @ x.T
            x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
        return (x.T if tall else x).to(kind)


class MuonAndAdamW:
    def __init__(self, groups, adam_rate, betas, epsilon, **muon):
        hidden = [g for g, s in zip(groups, SEGMENTS) if s[0] in HIDDEN]
        rest = [dict(g) for g, s in zip(groups, SEGMENTS) if s[0] not in HIDDEN]
        self.adam_rate, self.rest = adam_rate, [g for g, s in zip(groups, SEGMENTS) if s[0] not in HIDDEN]
        self.muon, self.adamw = Muon(hidden, **muon), torch.optim.AdamW(rest, betas=betas, eps=epsilon)
        self.hidden, self.param_groups = hidden, groups

    def step(self):
        for own, group in zip(self.muon.param_groups, self.hidden):
            own["lr"] = group["lr"]
        for own, group in zip(self.adamw.param_groups, self.rest):
            own["lr"] = group["lr"] * self.adam_rate
        self.muon.step()
        self.adamw.step()


def run(make, lr, decay):
    """make(groups) -> optimizer, of one group for each segment. Returns {step: all parameters in order}."""
    params = [torch.nn.Parameter(torch.tensor([[start(s, r * cols + c) for c in range(cols)] for r in range(rows)]))
              for s, (_, rows, cols, _, _) in enumerate(SEGMENTS)]
    groups = [{"params": [p], "lr": lr * part, "weight_decay": decay if decays else 0.0}
              for p, (_, _, _, part, decays) in zip(params, SEGMENTS)]
    optimizer = make(groups)
    kept = {}
    for k in range(STEPS):
        for s, p in enumerate(params):
            x = p.detach().reshape(-1).tolist()
            p.grad = torch.tensor([gradient(s, i, k, v) for i, v in enumerate(x)]).reshape(p.shape)
        for group, (_, _, _, part, _) in zip(optimizer.param_groups, SEGMENTS):
            group["lr"] = rate(lr, k) * part
        optimizer.step()
        if k + 1 in KEPT:
            kept[k + 1] = [v for p in params for v in p.detach().reshape(-1).tolist()]
    return kept


def cases():
    """The optimizer's name, its flags, the rate, the decay, and how it is made."""
    for betas, epsilon, decay in (((0.9, 0.999), 1e-8, 0.05), ((0.8, 0.95), 1e-3, 0.0), ((0.0, 0.99), 1e-8, 0.5)):
        flags = {"beta1": betas[0], "beta2": betas[1], "epsilon": epsilon}
        yield "adamw", flags, 0.01, decay, lambda g, b=betas, e=epsilon: torch.optim.AdamW(g, betas=b, eps=e)
    for betas, epsilon, decay in (((0.9, 0.999), 1e-6, 0.02), ((0.8, 0.95), 1e-3, 0.3)):
        flags = {"beta1": betas[0], "beta2": betas[1], "epsilon": epsilon}
        yield "lamb", flags, 0.02, decay, lambda g, b=betas, e=epsilon: timm.optim.Lamb(
            g, betas=b, eps=e, max_grad_norm=None)
    for momentum, iterations, decay in ((0.95, 5, 0.0), (0.95, 5, 0.1), (0.6, 3, 0.01)):
        flags = {"muon-momentum": momentum, "muon-iterations": iterations, "adam-rate": 0.5, "beta1": 0.9,
                 "beta2": 0.95, "epsilon": 1e-10}
        yield "muon", flags, 0.02, decay, lambda g, m=momentum, i=iterations: MuonAndAdamW(
            g, 0.5, (0.9, 0.95), 1e-10, momentum=m, iterations=i)


def torch_muon_apart():
    """How far 20 steps of torch.optim.Muon are from the formula in float64, in hidden weights of these segments."""
    def ours(bfloat16):
        return run(lambda g: MuonAndAdamW(g, 0.5, (0.9, 0.95), 1e-10, momentum=0.95, iterations=5, bfloat16=bfloat16),
                   0.02, 0.0)[STEPS]

    def theirs(groups):
        made = MuonAndAdamW(groups, 0.5, (0.9, 0.95), 1e-10, momentum=0.95, iterations=5)
        made.muon = torch.optim.Muon([{"params": g["params"]} for g in made.hidden], lr=0.02, weight_decay=0,
                                     momentum=0.95, nesterov=True, ns_steps=5)
        return made

    exact, n = ours(False), sum(r * c for name, r, c, _, _ in SEGMENTS if name in HIDDEN)
    return {kind: max(abs(a - b) for a, b in zip(exact[:n], other[:n]))
            for kind, other in (("torch.optim.Muon", run(theirs, 0.02, 0.0)[STEPS]), ("the formula in bfloat16", ours(True)))}


def main():
    fixture = {"by": f"torch {torch.__version__}, timm {timm.__version__}, float64", "steps": STEPS,
               "apart": torch_muon_apart(),
               "segments": [{"rows": r, "columns": c, "rate": part, "decays": d, "hidden": name in HIDDEN}
                            for name, r, c, part, d in SEGMENTS],
               "cases": []}
    for name, flags, lr, decay, make in cases():
        after = run(make, lr, decay)
        fixture["cases"].append({"optimizer": name, **flags, "lr": lr, "decay": decay,
                                 "after": {str(k): [round(v, 9) for v in x] for k, x in after.items()}})
    path = pathlib.Path(__file__).parent.parent / "tests/fixtures/optimizers.json"
    text = json.dumps(fixture, separators=(",", ":")).replace('{"optimizer"', '\n{"optimizer"')
    path.write_text(text + "\n")
    print(path, len(text), "bytes,", fixture["by"], fixture["apart"])


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Makes tests/fixtures/*: what PyTorch in float64 computes for our models, for torch_parity_test.

Run with PyTorch 1.13.1 and torchvision (Debian 12: python3-torch python3-torchvision), from the root:
    /usr/bin/python3 tools/make_fixtures.py [fixture ...]

Nothing large is stored. Weights and inputs are drawn on both sides from the generator of
engine/random.h, in torchvision's order and layout of elements. Of every tensor a fixture holds its
norm, 8 projections on random vectors and 64 of its elements; an error vector e shows in them as |e|
does, whatever its direction.

ReLU and max pooling have kinks: where a value is within rounding of zero, float32 may take the
other branch and the gradient jumps. So each channel's shift before a ReLU is chosen, from 64
values, to keep all its values away from zero; the choices are part of the fixture. The margins left
are printed.

A fixture whose name ends in -bf16 is for 16 bits, which would cross those kinks everywhere: its norms'
scales are small against their shifts, so that few values come near one. It holds logits and gradients,
and how far PyTorch's own bf16 is from them, which is what ours is measured by.
"""
import json
import sys
from typing import NamedTuple

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torchvision

TEST = 9  # Purpose::kTest
SCALE, INPUT, LABEL, PROJECTION, SAMPLE = 0, 1, 2, 100, 200  # lanes
PERIOD = 65521  # projections repeat after this prime number of elements
SMOOTHING, MOMENTUM, DECAY, STEPS = 0.1, 0.9, 5e-4, 3
NOTHING = 1e-9  # the norm of a gradient that is zero, up to rounding: a bias before a norm


def philox(seed, lane, step, blocks):
    """Blocks 0 .. blocks-1 of Draw{seed, kTest, step, lane} as uint32 [4 * blocks]."""
    out = np.empty((blocks, 4), np.uint32)
    mask = np.uint64(0xFFFFFFFF)
    for at in range(0, blocks, 1 << 20):
        i = np.arange(at, min(blocks, at + (1 << 20)), dtype=np.uint64)
        c0, c1 = i & mask, np.full_like(i, (TEST << 24) ^ lane)
        c2, c3 = np.full_like(i, step & 0xFFFFFFFF), np.full_like(i, step >> 32)
        k0, k1 = seed & 0xFFFFFFFF, seed >> 32
        for _ in range(10):
            p0, p1 = np.uint64(0xD2511F53) * c0, np.uint64(0xCD9E8D57) * c2
            c0, c1, c2, c3 = ((p1 >> np.uint64(32)) ^ c1 ^ np.uint64(k0), p1 & mask,
                              (p0 >> np.uint64(32)) ^ c3 ^ np.uint64(k1), p0 & mask)
            k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
        out[at:at + len(i)] = np.stack([c0, c1, c2, c3], 1).astype(np.uint32)
    return out.reshape(-1)


def bits(seed, lane, step, n):
    return philox(seed, lane, step, (n + 3) // 4)[:n]


def uniform(seed, lane, step, n, center, half):
    """What fill_uniform(center - half, center + half) draws, in float64."""
    u = (bits(seed, lane, step, n) >> np.uint32(8)).astype(np.float64) / 2**24
    lo, hi = np.float32(center - half), np.float32(center + half)
    return np.float64(lo) + np.float64(np.float32(hi - lo)) * u


# ---- models that torchvision has not ----

class BasicBlock(nn.Module):
    def __init__(self, inp, out, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inp, out, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(out)
        self.conv2 = nn.Conv2d(out, out, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(out)
        self.relu = nn.ReLU()
        self.stride, self.extra = stride, out - inp

    def forward(self, x):
        y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        if self.stride == 2:  # option A
            x = F.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, self.extra // 2, self.extra // 2))
        return self.relu(y + x)


class ResNet20(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        self.relu = nn.ReLU()
        inp = 16
        for s, out in enumerate((16, 32, 64)):
            blocks = [BasicBlock(inp if b == 0 else out, out, 2 if b == 0 and s else 1) for b in range(3)]
            setattr(self, f"layer{s + 1}", nn.Sequential(*blocks))
            inp = out
        self.fc = nn.Linear(64, classes)

    def forward(self, x):
        x = self.layer3(self.layer2(self.layer1(self.relu(self.bn1(self.conv1(x))))))
        return self.fc(x.mean((2, 3)))


class Cnn7(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.conv1, self.conv2, self.conv3 = nn.Conv2d(3, 64, 5), nn.Conv2d(64, 128, 5), nn.Conv2d(128, 64, 3)
        self.fc1, self.fc2 = nn.Linear(256, 256), nn.Linear(256, classes)
        self.relu, self.pool = nn.ReLU(), nn.MaxPool2d(2)

    def forward(self, x):
        x = self.pool(self.relu(self.conv1(x)))
        x = self.pool(self.relu(self.conv2(x)))
        x = self.relu(self.conv3(x))
        return self.fc2(self.fc1(x.flatten(1)))


MODELS = {
    "cnn7": Cnn7,
    "resnet20": ResNet20,
    "resnet50": lambda classes: torchvision.models.resnet50(num_classes=classes),
    "vgg16-bn": lambda classes: torchvision.models.vgg16_bn(num_classes=classes),
}


class Trial(NamedTuple):
    """What one fixture is made of."""
    model: str
    batch: int
    side: int
    classes: int
    seed: int
    lr: float = 0  # so small that no value crosses a kink in three steps; 0: no steps
    scale: float = 1.0  # center of the norms' scales
    reach: float = 0.2  # shifts before a ReLU are chosen from -reach to reach
    projections: int = 8
    samples: int = 64

    @property
    def shift_divisor(self):
        return float(np.float32(31.5 / self.reach))


def bf16_trial(*args, **more):
    return Trial(*args, scale=0.5, reach=1.0, projections=32, samples=32, **more)


TRIALS = {
    "cnn7": Trial("cnn7", 8, 28, 10, 1, 1e-5),
    "resnet20": Trial("resnet20", 4, 32, 10, 1, 1e-4),
    "resnet50": Trial("resnet50", 4, 64, 1000, 2, 1e-6),
    "vgg16-bn": Trial("vgg16-bn", 4, 32, 1000, 7, 1e-5),
    "cnn7-bf16": bf16_trial("cnn7", 8, 28, 10, 1),
    "resnet20-bf16": bf16_trial("resnet20", 8, 32, 10, 1),
    "resnet50-bf16": bf16_trial("resnet50", 8, 64, 100, 2),
    "vgg16-bn-bf16": bf16_trial("vgg16-bn", 16, 32, 10, 7),
}

# ---- weights ----


def is_last_norm(net, name):
    """The norm scale at the end of a residual branch."""
    parts = name.rsplit(".", 2)
    if len(parts) < 3 or not parts[1].startswith("bn"):
        return False
    block = net.get_submodule(parts[0])
    return parts[1] == ("bn3" if hasattr(block, "bn3") else "bn2") and hasattr(block, "conv2")


def draw_weights(net, t):
    """Center and half width of each parameter, which are part of the fixture."""
    ranges = []
    for k, (name, p) in enumerate(net.named_parameters()):
        if p.dim() > 1:
            center, half = 0.0, float((6 if p.dim() == 4 else 3) / p[0].numel()) ** 0.5
        elif name.endswith("weight"):
            center, half = (t.scale, 0.2 * t.scale)
            if t.lr and is_last_norm(net, name):
                center, half = 0.5, 0.0
        else:
            center, half = 0.0, 0.1
        center, half = float(np.float32(center)), float(np.float32(half))
        values = uniform(t.seed, SCALE, k, p.numel(), center, half)
        p.data = torch.from_numpy(values.astype(np.float32).astype(np.float64)).view(p.shape)
        ranges.append((center, half))
    return ranges


def shift_of(choice, divisor):
    return ((choice.astype(np.float32) - np.float32(31.5)) / np.float32(divisor)).astype(np.float64)


class Kinks:
    """Hooks on a net: how far what ReLU and pooling see is from their kinks; chooses shifts, of the divisor
    given, if it is asked to."""

    def __init__(self, net, choose=None):
        self.relu, self.pool, self.last, self.choices, self.hooks = 1e9, 1e9, None, {}, []
        names = {m: n for n, m in net.named_modules()}
        for m in net.modules():
            if isinstance(m, (nn.Conv2d, nn.Linear, nn.BatchNorm2d)) and m.bias is not None:
                self.hooks.append(m.register_forward_hook(lambda m, i, o: setattr(self, "last", m)))
            if isinstance(m, nn.MaxPool2d):
                self.hooks.append(m.register_forward_pre_hook(lambda m, i: self.see_pool(m, i[0])))
            if isinstance(m, nn.ReLU):
                m.inplace = False
                self.hooks.append(m.register_forward_pre_hook(
                    lambda m, i: self.see_relu(i[0], names, choose)))

    def see_relu(self, z, names, choose):
        z = z.detach()
        if choose:
            by_channel = z.transpose(0, 1).reshape(z.shape[1], -1).numpy()
            bias = self.last.bias.data.numpy()
            margin = np.stack([np.abs(by_channel + (shift_of(np.array(c), choose) - bias)[:, None]).min(1)
                               for c in range(64)])
            choice = margin.argmax(0)
            shift = torch.from_numpy(shift_of(choice, choose))
            shape = (1, -1) + (1,) * (z.dim() - 2)
            z = z + (shift - self.last.bias.data).view(shape)
            self.last.bias.data = shift
            self.choices[names[self.last] + ".bias"] = "".join(chr(48 + c) for c in choice)
        self.relu = min(self.relu, z.abs().min().item())
        if choose:
            return z

    def see_pool(self, m, x):
        x = x.detach()
        x = F.pad(x, (m.padding,) * 4)
        w = x.unfold(2, m.kernel_size, m.stride).unfold(3, m.kernel_size, m.stride).flatten(4)
        top = w.topk(2, -1).values
        gap = (top[..., 0] - top[..., 1])[top[..., 0] > 0]
        self.pool = min(self.pool, gap.min().item())

    def remove(self):
        for h in self.hooks:
            h.remove()


# ---- what is kept of a tensor ----

def digest(tensor, t, k):
    v = tensor.detach().double().reshape(-1).numpy()
    out = [np.linalg.norm(v)]
    for j in range(t.projections):
        r = uniform(t.seed, PROJECTION + j, 0, PERIOD, 0, 1)
        out.append(sum(v[at:at + PERIOD] @ r[:len(v[at:at + PERIOD])] for at in range(0, len(v), PERIOD)))
    at = bits(t.seed, SAMPLE, k, t.samples).astype(np.int64) % len(v)
    return np.concatenate([out, v[at]]).astype("<f4")


def run(net, x, labels, lr, see=None):
    """Forward, backward and three steps; everything as float64 copies."""
    decays = [p for p in net.parameters() if p.dim() > 1]
    others = [p for p in net.parameters() if p.dim() == 1]
    rule = torch.optim.SGD([{"params": decays, "weight_decay": DECAY}, {"params": others}], lr=lr,
                           momentum=MOMENTUM)
    before = [p.detach().clone() for p in net.parameters()]
    got = {}
    for step in range(STEPS):
        rule.zero_grad()
        logits = net(x)
        loss = F.cross_entropy(logits, labels, label_smoothing=SMOOTHING)
        loss.backward()
        if step == 0:
            got["logits"], got["loss"] = logits.detach().clone(), loss.item()
            got["grads"] = [p.grad.clone() for p in net.parameters()]
        rule.step()
        got["last loss"] = loss.item()
        if see:
            see(step)
    got["velocities"] = [rule.state[p]["momentum_buffer"].clone() for p in net.parameters()]
    got["changes"] = [p.detach() - b for p, b in zip(net.parameters(), before)]
    got["buffers"] = [b.clone() for n, b in net.named_buffers() if not n.endswith("num_batches_tracked")]
    return got


def prepared(t):
    """A trial's net with its weights and chosen shifts, its batch, and what the fixture says of them."""
    torch.manual_seed(0)
    net = MODELS[t.model](t.classes).double()
    for m in net.modules():
        if isinstance(m, nn.Dropout):
            m.p = 0.0
    ranges = draw_weights(net, t)
    x = uniform(t.seed, INPUT, 0, t.batch * 3 * t.side**2, 0, np.sqrt(3))
    x = torch.from_numpy(x).view(t.batch, 3, t.side, t.side)
    labels = torch.from_numpy((bits(t.seed, LABEL, 0, t.batch) % np.uint32(t.classes)).astype(np.int64))
    fresh = {n: b.clone() for n, b in net.named_buffers()}
    kinks = Kinks(net, t.shift_divisor)
    with torch.no_grad():
        net(x)
    kinks.remove()
    for n, b in net.named_buffers():
        b.copy_(fresh[n])
    header = {
        "model": t.model, "batch": t.batch, "side": t.side, "classes": t.classes, "seed": t.seed,
        "smoothing": SMOOTHING, "period": PERIOD, "projections": t.projections, "samples": t.samples,
        "torch": torch.__version__,
        "params": [[n, c, h] for (n, _), (c, h) in zip(net.named_parameters(), ranges)],
        "shifts": kinks.choices, "shift_divisor": t.shift_divisor,
    }
    return net, x, labels, header


def gradients(net, x, labels, autocast=False):
    net.zero_grad()
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        logits = net(x)
    logits = logits.to(x.dtype)
    loss = F.cross_entropy(logits, labels, label_smoothing=SMOOTHING)
    loss.backward()
    return {"logits": logits.detach().double(), "loss": loss.item(),
            "grads": [p.grad.double().clone() for p in net.parameters()]}


def apart(ours, exact):
    """How far a tensor is from the exact one, and how far their norms are, relative to the exact norm."""
    n = exact.norm()
    return [float(f"{v:.3g}") for v in ((ours - exact).norm() / n, (ours.norm() - n).abs() / n)]


def write(name, t, header, kinds):
    with open(f"tests/fixtures/{name}.fixture", "wb") as f:
        f.write(json.dumps(header, separators=(",", ":")).encode() + b"\n")
        for tensors in kinds:
            for k, tensor in enumerate(tensors):
                f.write(digest(tensor, t, k).tobytes())


def make_bf16(name, t):
    net, x, labels, header = prepared(t)
    start = {n: v.clone() for n, v in net.state_dict().items()}
    kinks = Kinks(net)
    exact = gradients(net, x, labels)
    kinks.remove()
    net.load_state_dict(start)
    rough = gradients(net.float(), x.float(), labels, autocast=True)
    logits = apart(rough["logits"], exact["logits"])
    grads = [apart(g, e) if e.norm() > NOTHING else None for g, e in zip(rough["grads"], exact["grads"])]
    header.update(loss=exact["loss"], bf16={"logits": logits, "gradients": grads})
    errors, norms = (sorted(g[i] for g in grads if g) for i in (0, 1))
    print(f"{name}: loss {exact['loss']}, margins {kinks.relu:.2g} {kinks.pool:.2g}; PyTorch's own bfloat16: "
          f"logits {logits[0]}, gradients median {errors[len(errors) // 2]}, worst {errors[-1]}, of norms "
          f"{norms[len(norms) // 2]}, {norms[-1]}", flush=True)
    write(name, t, header, ([exact["logits"]], exact["grads"]))


def make(name):
    t = TRIALS[name]
    if not t.lr:
        return make_bf16(name, t)
    net, x, labels, header = prepared(t)
    start = {n: v.clone() for n, v in net.state_dict().items()}
    kinks = Kinks(net)
    margins = []
    exact = run(net, x, labels, t.lr, lambda step: margins.append((kinks.relu, kinks.pool)))
    kinks.remove()
    print(name, "loss", exact["loss"], "->", exact["last loss"], "margins (relu, pool) by step:", margins)
    net.load_state_dict(start)
    rough = run(net.float(), x.float(), labels, t.lr)
    names = [n for n, _ in net.named_parameters()]

    def worst(kind):
        errors = [(float((u.double() - v).norm() / v.norm()), n)
                  for n, u, v in zip(names, rough[kind], exact[kind]) if v.norm() > 1e-10]
        return f"{kind} {max(errors)[0]:.1e} ({max(errors)[1]})"

    print("  PyTorch's own float32, worst tensor:", worst("grads"), worst("velocities"), worst("changes"),
          flush=True)
    header.update(
        lr=t.lr, momentum=MOMENTUM, decay=DECAY, steps=STEPS, loss=exact["loss"],
        last_loss=exact["last loss"],
        buffers=[n for n, _ in net.named_buffers() if not n.endswith("num_batches_tracked")])
    write(name, t, header,
          ([exact["logits"]], exact["grads"], exact["velocities"], exact["changes"], exact["buffers"]))


def state_names():
    """torchvision's names and shapes: a line a tensor, running statistics marked."""
    with open("tests/fixtures/torchvision_names.txt", "w") as f:
        for model in ("resnet18", "resnet34", "resnet50", "vgg16_bn"):
            net = getattr(torchvision.models, model)()
            buffers = {n for n, _ in net.named_buffers()}
            for n, t in net.state_dict().items():
                if not n.endswith("num_batches_tracked"):
                    kind = "buffer" if n in buffers else "param"
                    f.write(f"{model.replace('_', '-')} {kind} {n} {'x'.join(map(str, t.shape))}\n")


if __name__ == "__main__":
    torch.set_num_threads(2)
    if len(sys.argv) == 1:
        state_names()
    for name in sys.argv[1:] or TRIALS:
        make(name)

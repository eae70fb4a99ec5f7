#!/usr/bin/env python3
"""Makes tests/fixtures/*: what PyTorch in float64 computes for our models, to be compared by torch_parity_test.

Run with PyTorch 1.13.1 and torchvision (Debian 12: python3-torch python3-torchvision), from the repository root:
    /usr/bin/python3 tools/make_fixtures.py [model ...]

Nothing large is stored. Weights and inputs are drawn on both sides from the generator of engine/random.h, in
torchvision's order and layout of elements. Of every tensor a fixture holds its norm, 8 projections on random
vectors and 64 of its elements; an error vector e shows in them as |e| does, whatever its direction.

ReLU and max pooling have kinks: where a value is within rounding of zero, float32 may take the other branch and the
gradient jumps. So each channel's shift before a ReLU is chosen, from 64 values, to keep all its values away from
zero; the choices are part of the fixture. The margins left are printed.
"""
import json
import sys

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torchvision

TEST = 9  # Purpose::kTest
SCALE, INPUT, LABEL, PROJECTION, SAMPLE = 0, 1, 2, 100, 200  # lanes
PERIOD = 65521  # projections repeat after this prime number of elements
PROJECTIONS, SAMPLES = 8, 64
SMOOTHING, MOMENTUM, DECAY, STEPS = 0.1, 0.9, 5e-4, 3


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


# ---- models that torchvision has not --------------------------------------------------------------------------------

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


MODELS = {  # name: make, batch, side, classes, seed, lr: so small that no value crosses a kink in three steps
    "cnn7": (Cnn7, 8, 28, 10, 1, 1e-5),
    "resnet20": (ResNet20, 4, 32, 10, 1, 1e-4),
    "resnet50": (lambda c: torchvision.models.resnet50(num_classes=c), 4, 64, 1000, 2, 1e-6),
    "vgg16-bn": (lambda c: torchvision.models.vgg16_bn(num_classes=c), 4, 32, 1000, 7, 1e-5),
}

# ---- weights ----------------------------------------------------------------------------------------------------------


def is_last_norm(net, name):
    """The norm scale at the end of a residual branch."""
    parts = name.rsplit(".", 2)
    if len(parts) < 3 or not parts[1].startswith("bn"):
        return False
    block = net.get_submodule(parts[0])
    return parts[1] == ("bn3" if hasattr(block, "bn3") else "bn2") and hasattr(block, "conv2")


def draw_weights(net, seed):
    """Center and half width of each parameter, which are part of the fixture."""
    ranges = []
    for k, (name, p) in enumerate(net.named_parameters()):
        if p.dim() > 1:
            center, half = 0.0, float((6 if p.dim() == 4 else 3) / p[0].numel()) ** 0.5
        elif name.endswith("weight"):
            center, half = (0.5, 0.0) if is_last_norm(net, name) else (1.0, 0.2)
        else:
            center, half = 0.0, 0.1
        center, half = float(np.float32(center)), float(np.float32(half))
        values = uniform(seed, SCALE, k, p.numel(), center, half)
        p.data = torch.from_numpy(values.astype(np.float32).astype(np.float64)).view(p.shape)
        ranges.append((center, half))
    return ranges


def shift_of(choice):
    return ((choice.astype(np.float32) - np.float32(31.5)) / np.float32(157.5)).astype(np.float64)


class Kinks:
    """Hooks on a net: the distance of what ReLU and pooling see from their kinks; chooses shifts if asked to."""

    def __init__(self, net, choose):
        self.relu, self.pool, self.last, self.choices, self.hooks = 1e9, 1e9, None, {}, []
        names = {m: n for n, m in net.named_modules()}
        for m in net.modules():
            if isinstance(m, (nn.Conv2d, nn.Linear, nn.BatchNorm2d)) and m.bias is not None:
                self.hooks.append(m.register_forward_hook(lambda m, i, o: setattr(self, "last", m)))
            if isinstance(m, nn.MaxPool2d):
                self.hooks.append(m.register_forward_pre_hook(lambda m, i: self.see_pool(m, i[0])))
            if isinstance(m, nn.ReLU):
                m.inplace = False
                self.hooks.append(m.register_forward_pre_hook(lambda m, i: self.see_relu(i[0], names, choose)))

    def see_relu(self, z, names, choose):
        z = z.detach()
        if choose:
            by_channel = z.transpose(0, 1).reshape(z.shape[1], -1).numpy()
            bias = self.last.bias.data.numpy()
            margin = np.stack([np.abs(by_channel + (shift_of(np.array(c)) - bias)[:, None]).min(1)
                               for c in range(64)])
            choice = margin.argmax(0)
            shift = torch.from_numpy(shift_of(choice))
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


# ---- what is kept of a tensor -----------------------------------------------------------------------------------------

def digest(t, seed, k):
    v = t.detach().double().reshape(-1).numpy()
    out = [np.linalg.norm(v)]
    for j in range(PROJECTIONS):
        r = uniform(seed, PROJECTION + j, 0, PERIOD, 0, 1)
        out.append(sum(v[at:at + PERIOD] @ r[:len(v[at:at + PERIOD])] for at in range(0, len(v), PERIOD)))
    at = bits(seed, SAMPLE, k, SAMPLES).astype(np.int64) % len(v)
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


def make(name):
    maker, batch, side, classes, seed, lr = MODELS[name]
    torch.manual_seed(0)
    net = maker(classes).double()
    for m in net.modules():
        if isinstance(m, nn.Dropout):
            m.p = 0.0
    ranges = draw_weights(net, seed)
    x = torch.from_numpy(uniform(seed, INPUT, 0, batch * 3 * side * side, 0, np.sqrt(3))).view(batch, 3, side, side)
    labels = torch.from_numpy((bits(seed, LABEL, 0, batch) % np.uint32(classes)).astype(np.int64))
    fresh = {n: b.clone() for n, b in net.named_buffers()}
    kinks = Kinks(net, choose=True)
    with torch.no_grad():
        net(x)
    kinks.remove()
    choices = kinks.choices
    for n, b in net.named_buffers():
        b.copy_(fresh[n])
    start = {n: t.clone() for n, t in net.state_dict().items()}

    kinks = Kinks(net, choose=False)
    margins = []
    exact = run(net, x, labels, lr, lambda step: margins.append((kinks.relu, kinks.pool)))
    kinks.remove()
    print(name, "loss", exact["loss"], "->", exact["last loss"], "margins (relu, pool) up to each step:", margins)

    net.load_state_dict(start)
    net.float().zero_grad()
    with torch.autocast("cpu", torch.bfloat16):
        logits = net(x.float()).float()
    F.cross_entropy(logits, labels, label_smoothing=SMOOTHING).backward()
    errors = sorted(float((p.grad.double() - g).norm() / g.norm())
                    for p, g in zip(net.parameters(), exact["grads"]) if g.norm() > 1e-9)
    print("  PyTorch's own bfloat16: logits %.2g, gradients median %.2g, worst %.2g" % (
        (logits.double() - exact["logits"]).norm() / exact["logits"].norm(), errors[len(errors) // 2], errors[-1]),
        flush=True)
    net.load_state_dict(start)
    rough = run(net, x.float(), labels, lr)
    names = [n for n, _ in net.named_parameters()]

    def worst(kind):
        errors = [(float((u.double() - v).norm() / v.norm()), n)
                  for n, u, v in zip(names, rough[kind], exact[kind]) if v.norm() > 1e-10]
        return f"{kind} {max(errors)[0]:.1e} ({max(errors)[1]})"

    print("  PyTorch's own float32, worst tensor:", worst("grads"), worst("velocities"), worst("changes"), flush=True)
    header = {
        "model": name, "batch": batch, "side": side, "classes": classes, "seed": seed, "smoothing": SMOOTHING,
        "lr": lr, "momentum": MOMENTUM, "decay": DECAY, "steps": STEPS, "loss": exact["loss"],
        "last_loss": exact["last loss"], "period": PERIOD, "projections": PROJECTIONS, "samples": SAMPLES,
        "torch": torch.__version__,
        "params": [[n, c, h] for n, (c, h) in zip(names, ranges)],
        "buffers": [n for n, _ in net.named_buffers() if not n.endswith("num_batches_tracked")],
        "shifts": choices,
    }
    kinds = [exact["logits"]], exact["grads"], exact["velocities"], exact["changes"], exact["buffers"]
    digests = [digest(t, seed, k) for tensors in kinds for k, t in enumerate(tensors)]
    with open(f"tests/fixtures/{name}.fixture", "wb") as f:
        f.write(json.dumps(header, separators=(",", ":")).encode() + b"\n")
        for d in digests:
            f.write(d.tobytes())


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
    for model in sys.argv[1:] or MODELS:
        make(model)

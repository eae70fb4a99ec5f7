#!/usr/bin/env python3
"""Pillow and torchvision on one core, what bench/loader_bench.cc does: images a second.

usage: loader_py.py DIRECTORY [SECONDS]     DIRECTORY/CLASS/*.jpg
"""
import glob, io, sys, time

import PIL
import torch
import torchvision
import torchvision.transforms as T
from PIL import Image

SECONDS = float(sys.argv[2]) if len(sys.argv) > 2 else 5
FILES = [open(f, "rb").read() for f in sorted(glob.glob(sys.argv[1] + "/*/*.jpg"))]
TRAIN = T.Compose([T.RandomResizedCrop(224), T.RandomHorizontalFlip(), T.ToTensor(),
                   T.Normalize((.485, .456, .406), (.229, .224, .225))])
EVALUATE = T.Compose([T.Resize(256), T.CenterCrop(224), T.ToTensor(),
                      T.Normalize((.485, .456, .406), (.229, .224, .225))])


def measure(name, some):
    """The best of five spans, by the wall and by processor seconds."""
    some()
    best = [0, 0]
    for _ in range(5):
        wall, busy, n = time.perf_counter(), time.process_time(), 0
        while time.perf_counter() - wall < SECONDS / 5:
            n += some()
        best[0] = max(best[0], n / (time.perf_counter() - wall))
        best[1] = max(best[1], n / (time.process_time() - busy))
    print(f"{name:60} {best[0]:7.0f} img/s {best[1]:7.0f} img/s by processor time", flush=True)


at = 0


def image():
    global at
    at += 1
    return Image.open(io.BytesIO(FILES[at % len(FILES)])).convert("RGB")


def once(f):
    def g():
        f()
        return 1
    return g


torch.set_num_threads(1)
print(f"Pillow {PIL.__version__}, torch {torch.__version__}, torchvision {torchvision.__version__}")
measure("Pillow: whole image decoded (in memory)", once(lambda: image().load()))
measure("Pillow + torchvision: decode, crop 224, flip, normalize", once(lambda: TRAIN(image())))
measure("Pillow + torchvision: resize 256, center crop, normalize", once(lambda: EVALUATE(image())))
folder = torchvision.datasets.ImageFolder(sys.argv[1], TRAIN)
batches = iter(())


def batch():
    global batches
    b = next(batches, None)
    if b is None:
        batches = iter(torch.utils.data.DataLoader(folder, batch_size=64, shuffle=True))
        b = next(batches)
    return len(b[1])


measure("torchvision DataLoader (ImageFolder, no worker processes)", batch)

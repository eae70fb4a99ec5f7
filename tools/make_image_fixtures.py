#!/usr/bin/env python3
"""Makes tests/fixtures/pillow/*: what Pillow makes of boxes of JPEGs, for pillow_test.

Run with Pillow (Debian 12: python3-pil 9.4, python3-numpy), from the root:
    /usr/bin/python3 tools/make_image_fixtures.py

The images have a natural spectrum (bench/peers/jpeg_gen.py), the hardest sort to resize alike. `crop` is torchvision's
random-resized-crop: cut first, then resize. `box` resizes from a box that need not lie on pixels, and sees beyond it.
"""
import os

import numpy as np
from PIL import Image

PLACE = "tests/fixtures/pillow"
IMAGES = {  # name: height, width, quality, chroma subsampling of Pillow (0: none, 1: 4:2:2, 2: 4:2:0)
    "wide": (150, 200, 93, 2), "tall": (200, 150, 85, 2), "full": (140, 180, 90, 0), "half": (140, 180, 90, 1)}
VIEWS = [  # kind, fractions of the image: top, left, height, width; side of the output
    ("crop", 0, 0, 1, 1, 80), ("crop", 0.13, 0.2, 0.7, 0.6, 64), ("crop", 0.5, 0.41, 0.3, 0.37, 80),
    ("box", 0.0625, 0.113, 0.87, 0.77, 80)]


def picture(h, w, rng):
    fy, fx = np.fft.fftfreq(h)[:, None], np.fft.fftfreq(w)[None, :]
    f = np.sqrt(fx * fx + fy * fy)
    f[0, 0] = 1
    fields = [np.real(np.fft.ifft2(np.fft.fft2(rng.standard_normal((h, w))) / f**e)) for e in (1.15, 1.6, 1.6)]
    y, cb, cr = [(c - c.mean()) / c.std() for c in fields]
    rgb = np.stack([y + .5 * cr, y - .3 * cr - .2 * cb, y + .6 * cb], -1) * 45 + 120
    return Image.fromarray(np.clip(rgb, 0, 255).astype(np.uint8))


def main():
    os.makedirs(PLACE, exist_ok=True)
    rng = np.random.default_rng(1)
    lines = []
    for name, (h, w, quality, subsampling) in IMAGES.items():
        picture(h, w, rng).save(f"{PLACE}/{name}.jpg", quality=quality, subsampling=subsampling)
        image = Image.open(f"{PLACE}/{name}.jpg").convert("RGB")
        for i, (kind, top, left, height, width, side) in enumerate(VIEWS):
            t, l, bh, bw = top * h, left * w, height * h, width * w
            if kind == "crop":
                t, l, bh, bw = round(t), round(l), round(bh), round(bw)
                out = image.crop((l, t, l + bw, t + bh)).resize((side, side), Image.BILINEAR)
            else:
                out = image.resize((side, side), Image.BILINEAR, box=(l, t, l + bw, t + bh))
            out.save(f"{PLACE}/{name}-{i}.png", optimize=True)
            lines.append(f"{kind} {name}.jpg {t} {l} {bh} {bw} {side} {name}-{i}.png")
    with open(f"{PLACE}/views.txt", "w") as f:
        f.write("\n".join(lines) + "\n")


main()

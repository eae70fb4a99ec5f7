"""The torchvision side of torchvision_test.cc: loads our weights strictly, makes others, and says what both give.

    torchvision_weights.py DIR SIDE MODEL...
Reads DIR/ours-MODEL.safetensors and the pictures DIR/pictures/*.png, of which the SIDE x SIDE center is seen. Writes
DIR/theirs-MODEL.safetensors (random weights, saved as .pth and converted) and the logits DIR/{ours,theirs}-MODEL.npy.
Exit code 77: no torch or no torchvision here."""
import glob
import importlib.machinery
import importlib.util
import json
import os
import struct
import sys

try:
    import numpy
    import torch
    import torchvision
    from PIL import Image
except ImportError as e:
    print(e)
    sys.exit(77)

CLASSES = 7


def converter():
    path = os.path.join(os.path.dirname(__file__), "..", "tools", "convert_weights")
    loader = importlib.machinery.SourceFileLoader("convert_weights", path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("convert_weights", loader))
    loader.exec_module(module)
    return module


def read_safetensors(path):
    """By the format's description, independent of what wrote the file."""
    with open(path, "rb") as f:
        (n,) = struct.unpack("<Q", f.read(8))
        header = json.loads(f.read(n))
        data = numpy.fromfile(f, dtype=numpy.uint8)
    header.pop("__metadata__")
    types = {"F32": numpy.float32, "I64": numpy.int64}
    return {k: torch.from_numpy(data[v["data_offsets"][0]:v["data_offsets"][1]].view(types[v["dtype"]])
                                .reshape(v["shape"])) for k, v in header.items()}


def make(name):
    maker = getattr(torchvision.models, name.replace("-", "_"))
    return maker(weights=None, num_classes=CLASSES).eval()


def randomize(model):
    """No norm is trivial: scales, shifts and running statistics are random."""
    for m in model.modules():
        if isinstance(m, torch.nn.BatchNorm2d):
            m.weight.data.uniform_(0.6, 1.1)
            m.bias.data.uniform_(-0.4, 0.4)
            m.running_mean.uniform_(-0.3, 0.3)
            m.running_var.uniform_(0.5, 2)
            m.num_batches_tracked.fill_(5)
    last = model.fc if hasattr(model, "fc") else model.classifier[-1]
    last.weight.data.uniform_(-0.2, 0.2)


def images(directory, side):
    mean, std = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])
    all_ = []
    for path in sorted(glob.glob(directory + "/pictures/*.png")):
        pixels = numpy.asarray(Image.open(path).convert("RGB"))
        y, x = (pixels.shape[0] - side) // 2, (pixels.shape[1] - side) // 2
        x = torch.from_numpy(pixels[y:y + side, x:x + side].copy()).float() / 255
        all_.append(((x - mean) / std).permute(2, 0, 1))
    return torch.stack(all_)


def main(directory, side, models):
    torch.manual_seed(5)
    torch.set_num_threads(2)
    x = images(directory, int(side))
    with torch.no_grad():
        for name in models:
            model = make(name)
            randomize(model)
            torch.save(model.state_dict(), f"{directory}/{name}-5f.pth")
            converter().convert(f"{directory}/{name}-5f.pth", f"{directory}/theirs-{name}.safetensors")
            os.remove(f"{directory}/{name}-5f.pth")  # of vgg16-bn half a gigabyte
            numpy.save(f"{directory}/theirs-{name}.npy", model(x).numpy())
            model.load_state_dict(read_safetensors(f"{directory}/ours-{name}.safetensors"), strict=True)
            numpy.save(f"{directory}/ours-{name}.npy", model(x).numpy())


main(sys.argv[1], sys.argv[2], sys.argv[3:])

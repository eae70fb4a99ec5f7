"""One worker of bench/ddp: trains a torchvision model on Fashion-MNIST by PyTorch's DDP or through the package skein.

usage: ddp_worker.py TASK       a JSON object: bench/ddp writes it. RANK, WORLD_SIZE and MASTER_* as for torchrun.
Prints RESULT and a JSON object.
"""
import gzip, json, os, sys, time

import numpy as np
import torch
import torch.distributed as dist
import torch.nn.functional as F

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "examples", "python"))
RANK, WORLD = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])


# ---- what is learned: the same for all ways ------------------------------------------------------------------------


class Pictures:
    """Fashion-MNIST, enlarged to 64x64 with three channels. Batch k of a rank is the same in all ways."""

    def __init__(self, task):
        self.batch = task["batch"]
        self.train = [self.read(f"train-{kind}", task["pictures"]) for kind in ("images-idx3", "labels-idx1")]
        self.test = [self.read(f"t10k-{kind}", task["tests"]) for kind in ("images-idx3", "labels-idx1")]

    def read(self, name, count):
        with gzip.open(f"/usr/share/datasets/fashion-mnist/{name}-ubyte.gz") as f:
            raw = f.read()
        shape = (-1, 28, 28) if "images" in name else (-1,)
        return torch.from_numpy(np.frombuffer(raw, np.uint8, offset=16 if "images" in name else 8).reshape(shape)[:count].copy())

    def enlarge(self, images):
        images = (images[:, None].float() / 255 - 0.286) / 0.353
        return F.interpolate(images, size=64, mode="bilinear").expand(-1, 3, -1, -1).contiguous()

    def at(self, step):
        images, labels = self.train
        begin = (step * WORLD + RANK) * self.batch
        order = np.random.default_rng(begin // len(labels)).permutation(len(labels))
        chosen = torch.from_numpy(order[np.arange(begin, begin + self.batch) % len(labels)])
        return self.enlarge(images[chosen]), labels[chosen].long()

    def right(self, model):
        """How many of this rank's share of the test pictures the model names rightly, and of how many."""
        model.eval()
        images, labels = (part[RANK::WORLD] for part in self.test)
        with torch.no_grad():
            right = sum((model(self.enlarge(images[i:i + 50])).argmax(1) == labels[i:i + 50]).sum().item()
                        for i in range(0, len(labels), 50))
        model.train()
        return torch.tensor([right, len(labels)], dtype=torch.float64)


def make_model(name):
    import torchvision
    torch.manual_seed(1)
    if name == "resnet18":
        return torchvision.models.resnet18(num_classes=10)
    dim, depth = (128, 6) if name == "vit" else (32, 1)
    return torchvision.models.VisionTransformer(image_size=64, patch_size=8, num_layers=depth, num_heads=dim // 32, hidden_dim=dim,
                                                mlp_dim=4 * dim, num_classes=10)


def torch_optimizer(model, task):
    if task["optimizer"] == "sgd":
        return torch.optim.SGD(model.parameters(), lr=task["lr"], momentum=0.9, nesterov=True)
    return torch.optim.AdamW(model.parameters(), lr=task["lr"], weight_decay=0)


# ---- the ways ------------------------------------------------------------------------------------------------------


class Ddp:
    """DistributedDataParallel over gloo at its fastest: gradients are views of its buckets, and no buffers are broadcast."""

    def __init__(self, task, pictures):
        self.model, self.pictures = make_model(task["model"]), pictures
        self.ddp = torch.nn.parallel.DistributedDataParallel(self.model, gradient_as_bucket_view=True, broadcast_buffers=False)
        self.optimizer = torch_optimizer(self.model, task)

    def step(self, k):
        images, labels = self.pictures.at(k)
        self.optimizer.zero_grad(set_to_none=True)
        loss = F.cross_entropy(self.ddp(images), labels)
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def accuracy(self):
        """With the mean of the ranks' running statistics, as the other way has it."""
        for buffer in self.model.buffers():
            if buffer.is_floating_point():
                dist.all_reduce(buffer)
                buffer /= WORLD
        counts = self.pictures.right(self.model)
        dist.all_reduce(counts)
        return 100 * counts[0].item() / counts[1].item()

    barrier = staticmethod(lambda: dist.barrier())
    end = staticmethod(lambda: None)


class Skein:
    def __init__(self, task, pictures):
        import skein
        from overlap import overlap
        self.model, self.pictures = make_model(task["model"]), pictures
        self.job = skein.init(deadline=120)
        decay = {} if task["optimizer"] == "sgd" else {"weight_decay": 0.0}
        self.worker = self.job.worker(self.model.parameters(), task["algorithm"], optimizer=task["optimizer"], lr=task["lr"],
                                      buffers=self.model.buffers(), **decay, **task.get("flags", {}))
        overlap(self.worker, self.model.parameters())

    def step(self, k):
        images, labels = self.pictures.at(k)

        def gradient():
            loss = F.cross_entropy(self.model(images), labels)
            loss.backward()
            return loss
        return self.worker.step(gradient).item()

    def accuracy(self):
        with self.worker.model():
            counts = self.pictures.right(self.model).numpy()
        self.job.average(counts)
        return 100 * float(counts[0] / counts[1])

    def barrier(self):
        self.job.barrier()

    def end(self):
        self.job.close()


def join_torch(task):
    dist.init_process_group("gloo", init_method=f"tcp://{os.environ['MASTER_ADDR']}:{task['torch_port']}", rank=RANK, world_size=WORLD)


def sent():
    """Bytes that have left this host, where it has a network of its own."""
    try:
        with open("/sys/class/net/eth0/statistics/tx_bytes") as f:
            return int(f.read())
    except OSError:
        return 0


# ---- tasks ---------------------------------------------------------------------------------------------------------


def beside(task):
    """Both ways in blocks of steps, in turn: seconds of each block's step, losses, accuracies."""
    pictures = Pictures(task)
    join_torch(task)
    ways = {"ddp": Ddp(task, pictures), "skein": Skein(task, pictures)}
    seconds, losses = {name: [] for name in ways}, {name: [] for name in ways}
    for block in range(task["blocks"]):
        for name in sorted(ways, reverse=block % 2 == 1):
            dist.barrier()
            began = time.perf_counter()
            for k in range(block * task["steps"], (block + 1) * task["steps"]):
                losses[name].append(ways[name].step(k))
            dist.barrier()
            seconds[name].append((time.perf_counter() - began) / task["steps"])
    accuracies = {name: way.accuracy() for name, way in ways.items()}
    dist.barrier()
    ways["skein"].end()
    count = sum(p.numel() for p in ways["ddp"].model.parameters())
    return {"seconds": seconds, "loss": {n: sum(l[-20:]) / len(l[-20:]) for n, l in losses.items()}, "accuracy": accuracies,
            "first": {n: l[0] for n, l in losses.items()}, "parameters": count}


def alone(task):
    """One way: seconds of all steps, bytes, accuracy."""
    pictures = Pictures(task)
    if task["way"] == "skein":
        way = Skein(task, pictures)
    else:
        join_torch(task)
        if task["way"] == "torchft":
            from torchft_way import TorchFt
            way = TorchFt(task, pictures, make_model, torch_optimizer)
        else:
            way = Ddp(task, pictures)
    way.step(0)  # buckets are made, connections are opened
    way.barrier()
    before, began = sent(), time.perf_counter()
    losses = [way.step(k) for k in range(1, task["steps"])]
    way.barrier()
    seconds, wire = time.perf_counter() - began, sent() - before
    result = {"seconds": seconds / len(losses), "sent": wire / len(losses), "loss": sum(losses[-20:]) / len(losses[-20:]),
              "accuracy": way.accuracy(), "parameters": sum(p.numel() for p in way.model.parameters())}
    way.barrier()
    way.end()
    return result


def main():
    torch.set_num_threads(1)
    task = json.loads(sys.argv[1])
    print("RESULT", json.dumps({"beside": beside, "alone": alone}[task["task"]](task)), flush=True)


if __name__ == "__main__":
    main()

"""A PyTorch loop that a few machines train together: the lines with `skein`, `job` and `worker` are all that it takes.

    torchrun --nproc-per-node 4 torch_loop.py --algorithm local-sgd --tau 8
"""
import argparse

import skein
import torch


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--algorithm", default="local-sgd", choices=skein.algorithms())
    p.add_argument("--tau", type=int, help="local steps between two exchanges, for algorithms that have them")
    p.add_argument("--steps", type=int, default=300)
    args = p.parse_args()

    torch.set_num_threads(1)
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(20, 64), torch.nn.BatchNorm1d(64), torch.nn.ReLU(),
                                torch.nn.Linear(64, 4))
    truth = torch.randn(20, 4)  # the same on all workers, by the seed
    job = skein.init()
    flags = {"tau": args.tau} if args.tau else {}
    worker = job.worker(model.parameters(), args.algorithm, lr=0.05, buffers=model.buffers(), **flags)

    draw = torch.Generator().manual_seed(100 + job.rank)  # each worker has pictures of its own
    for step in range(args.steps):
        images = torch.randn(32, 20, generator=draw)
        labels = (images @ truth).argmax(1)

        def gradient():
            loss = torch.nn.functional.cross_entropy(model(images), labels)
            loss.backward()
            return loss
        loss = worker.step(gradient)
        if job.rank == 0 and step % 100 == 99:
            print(f"step {step + 1}  loss {loss.item():.3f}", flush=True)

    worker.finish()  # from here on the parameters are the same model on all workers
    model.eval()
    images = torch.randn(2000, 20, generator=torch.Generator().manual_seed(9))
    with torch.no_grad():
        right = (model(images).argmax(1) == (images @ truth).argmax(1)).float().mean()
    if job.rank == 0:
        figures = worker.figures()
        print(f"{100 * float(right):.1f} % right; {figures['bytes'] / args.steps:.0f} bytes a step")
    job.close()
    return model


if __name__ == "__main__":
    main()

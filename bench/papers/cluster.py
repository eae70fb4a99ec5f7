"""The cluster of the papers on SGP and SlowMo, as far as they tell of it: nodes of 8 GPUs that are one worker
each, joined by 10 Gbit/s Ethernet, resnet50 at 256 images a node."""
from paper import world

COMPUTE_MS = 271  # SlowMo's Table 2: the step of OSGP, which hides all of its communication
AHEAD_MS = 120    # of it, what goes on while messages travel: the one number that is fitted to the table
LINE = 10000      # Mbit/s
# Share of the line that NCCL's rings over TCP reach: at most 60 % (github.com/NVIDIA/nccl/issues/209).
NCCL = 0.57


def nodes(n, goodput, sigma=0.0):
    network = f"mbit_per_s = {LINE}\nlatency_ms = 0.1\ngoodput = {goodput:.4g}\n"
    return world(n, COMPUTE_MS, compute=f"forward = 1\nahead_ms = {AHEAD_MS}\n", network=network, sigma=sigma)


def step_ms(runs, name, n, goodput, flags, steps, sigma=0.0, skipped=0):
    """Milliseconds of a step of ghosts of resnet50."""
    flags = f"--model resnet50 --batch-size 256 --log-every 1 --steps {steps} {flags}"
    runs.train(name, nodes(n, goodput, sigma), flags)
    return 1e3 * runs.step_seconds(name, skipped or steps // 3)

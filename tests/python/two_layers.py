"""A net of two layers in NumPy, trained by processes and in a simulated world, with the same numbers to the last bit."""
import hashlib

import numpy as np
import skein
import workers

SHAPES = [(6, 8), (8,), (8, 3), (3,)]
WORLD, STEPS, BATCH = 2, 20, 16
TRUE = np.random.default_rng(1).normal(size=(6, 3))
FLAGS = {"bmuf": {"beta": 0.3, "tau": 4}, "post-local": {"switch_step": 6}, "qsr": {"qsr_c": 0.1}, "lsgd": {"groups": 1},
         "sparseloco": {"tau": 4, "density": 0.3}}
RATE = 0.05


def start():
    draw = np.random.default_rng(7)
    return [draw.normal(size=s).astype(np.float32) * np.float32(0.3) for s in SHAPES]


def gradient(parameters, rank, step):
    """(loss, gradients) of this worker's batch of this step."""
    x = np.random.default_rng([rank, step]).normal(size=(BATCH, 6)).astype(np.float32)
    label = (x @ TRUE).argmax(1)
    w1, b1, w2, b2 = map(np.asarray, parameters)
    h = np.maximum(x @ w1 + b1, 0)
    z = h @ w2 + b2
    p = np.exp(z - z.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    loss = -np.log(p[range(BATCH), label] + 1e-9).mean()
    p[range(BATCH), label] -= 1
    p /= BATCH
    back = (p @ w2.T) * (h > 0)
    return float(loss), [x.T @ back, back.sum(0), h.T @ p, p.sum(0)]


def hash_of(parameters):
    return hashlib.sha256(b"".join(np.asarray(p).tobytes() for p in parameters)).hexdigest()


def train(job, rows):
    """As a worker of a job of processes, one row after the other."""
    return {row: train_by(job, row) for row in rows}


def train_by(job, row):
    w = job.worker(start(), row, lr=RATE, **FLAGS.get(row, {}))
    while w.steps < STEPS:
        w.step(lambda: gradient(w.parameters, job.rank, w.steps))
    w.finish()
    return hash_of(w.parameters)


def hashes_of_processes(rows):
    """By row."""
    first, *others = [ended.result or ended.err for ended in workers.run(__file__, "train", WORLD, rows)]
    assert all(other == first for other in others), [first, *others]
    return first


def simulate(row, gradient=gradient):
    return skein.simulate(WORLD, row, gradient, start(), steps=STEPS, lr=RATE, **FLAGS.get(row, {}))


def hash_of_simulation(row):
    return hash_of(simulate(row)["model"])

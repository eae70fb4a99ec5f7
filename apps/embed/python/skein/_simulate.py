"""Training in a simulated world: all workers in this process, on virtual time."""
from . import _skein
from ._arrays import copy_into, is_torch
from ._flags import words_of
from ._layout import Layout
from ._skein import BadOption

_PLAIN = """
[compute]
step_ms = {step_ms}
[network]
mbit_per_s = {mbit_per_s}
latency_ms = {latency_ms}
[[host]]
name = "worker"
count = {count}
"""


def plain_world(workers, step_ms=100, mbit_per_s=1000, latency_ms=0.2):
    """The text of a world of so many equal hosts, with a worker on each."""
    return _PLAIN.format(count=int(workers), step_ms=step_ms, mbit_per_s=mbit_per_s, latency_ms=latency_ms)


def simulate(world, algorithm, gradient, start, *, steps, evaluate=None, every=1, optimizer="sgd", lr=None,
             weight_decay=None, matrices=None, seed=1, **flags):
    """Trains in a simulated world and returns its figures. Everything but computing time and network is the real program:
    the same call gives the same numbers, those that as many processes would have.

    world      a world file (docs/simulation.md), its text, or a number of workers: skein.plain_world(8)
    algorithm  a row of skein.algorithms(); it, `optimizer`, `lr` and all others are as in Job.worker
    gradient   gradient(parameters, rank, step) returns (loss, gradient) of this worker for its step, counted from 0.
               `parameters` are as `start` is, one array or a list, to be read by numpy.asarray without a copy and only
               within the call; the gradient is returned in the same shape
    start      the parameters with which all workers begin: a float32 array or a list of them
    steps      of each worker
    evaluate   evaluate(parameters) is called with the mean of the workers' parameters when the last worker has taken
               `every` more steps, and with the algorithm's model at the end. Takes no virtual time
    every      steps between two points of `curve`

    Returns a dict: workers, steps, seconds (of virtual time), bytes and messages that a worker has sent, the seconds that it
    waited (waited_s) and had messages under way (in_flight_s), each on average; the last loss; how far the workers were
    apart; `model`, as `start` is; `value`, what evaluate(model) returned; and `curve`, a list of dicts: step, seconds, bytes,
    loss and value.
    """
    optimizer = optimizer.replace("_", "-")
    layout = Layout(start, (), optimizer, matrices)
    if layout.device is not None:
        raise BadOption("start: a simulation's parameters lie on the host")
    one = hasattr(start, "shape")
    curve = []

    def shaped(flat, shapes=layout.shapes):
        windows, at, flat = [], 0, memoryview(flat)
        for shape, size in zip(shapes, layout.sizes):
            count = 1
            for n in shape:
                count *= n
            window = flat[at:at + count]
            windows.append(window if shape == [count] else window.cast("B").cast("f", shape))
            at += size
        return windows[0] if one else windows

    def compute(x, g, rank, step):
        result = gradient(shaped(x), rank, step)
        if not isinstance(result, tuple) or len(result) != 2:
            raise BadOption("gradient() of a simulation returns (loss, gradient)")
        loss, own = result
        layout.copy_gradients([shaped(g)] if one else shaped(g), [own] if one else list(own))
        return float(loss.detach() if hasattr(loss, "detach") else loss)

    def look(moment, mean):
        curve.append(moment)
        if evaluate:
            moment["value"] = evaluate(shaped(mean))

    flat = memoryview(bytearray(4 * layout.parameter_count)).cast("f")
    for window, array in zip([shaped(flat)] if one else shaped(flat), layout.given):
        copy_into(window, array.detach().numpy() if is_torch(array) else array)
    text = plain_world(world) if hasattr(world, "__index__") else str(world)
    figures = _skein.simulate(text, flat, int(steps), int(every), compute, look, algorithm.replace("_", "-"), optimizer,
                              lr, weight_decay, seed, words_of(flags), layout.count, layout.segments)
    figures["model"] = shaped(figures["model"])
    if evaluate:
        figures["value"] = evaluate(figures["model"])
    return {**figures, "steps": int(figures["steps"]), "curve": curve}

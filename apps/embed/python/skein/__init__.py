"""Distributed training of any program's parameters: Skein's algorithms in a loop of your own.

    import skein
    job = skein.init()                                   # torchrun, srun, mpirun, RANK and WORLD_SIZE, or alone
    w = job.worker(model.parameters(), algorithm="diloco", optimizer="adamw", lr=3e-4, tau=100, outer_lr=0.7)
    for images, labels in loader:
        def gradient():
            loss = loss_fn(model(images), labels)
            loss.backward()
            return loss
        loss = w.step(gradient)
    with w.model():                                      # the parameters are the common model in here
        evaluate(model)

Every worker makes the same calls in the same order. No framework is imported: arrays are exchanged by the buffer
protocol and DLPack.
"""
import contextlib
import weakref

from . import _skein
from ._arrays import device_of, exported, is_jax
from ._flags import values_of, words_of
from ._layout import Layout
from ._simulate import plain_world, simulate
from ._skein import BadFile, BadOption, Error, PeerLost, Timeout, WorkersChanged, algorithms

__version__ = _skein.__version__
__all__ = ["BadFile", "BadOption", "Error", "Job", "PeerLost", "Timeout", "Worker", "WorkersChanged", "algorithms",
           "init", "optimizers", "plain_world", "simulate"]


def init(place=".", deadline=60.0, transport="auto", seal="auto", wire="fp32", elastic=False):
    """Joins the job that the environment describes, or makes one of a single worker.

    place      a directory that all workers share, where they meet if no launcher names an address
    deadline   seconds for the workers to meet, and for any single wait
    transport  auto, shared, tcp or ucx
    seal       auto, on or off: what is encrypted between hosts
    wire       fp32 or bf16: the type in which numbers travel
    elastic    workers may die, and others join while it runs. `place` is then a directory of this job alone: a process
               that finds the job at work there joins it, whatever rank its environment says
    """
    return Job(_skein.Job.join(str(place), float(deadline), transport, seal, wire, bool(elastic)))


def optimizers():
    """Of each optimizer, by name: what it reads, and the value of each unless it is given."""
    return {name: values_of(flags) for name, flags in _skein.optimizers().items()}


class Job:
    """This process among the workers. Use it from one thread, and end it with close() or a `with` block."""

    def __init__(self, native):
        self._native = native

    rank = property(lambda self: self._native.rank, doc="of this worker, from 0; of an elastic job, at present")
    world = property(lambda self: self._native.world, doc="the number of workers; of an elastic job, at present")
    local_rank = property(lambda self: self._native.local_rank, doc="among the workers of this host")
    ways = property(lambda self: self._native.ways, doc="how each peer is reached, a line each")

    def worker(self, parameters, algorithm="sgp", *, optimizer="sgd", lr=None, weight_decay=None, matrices=None,
               seed=1, buffers=(), **flags):
        """A worker that trains these parameters, together with those of the other workers.

        parameters  float32, all on the host or on one GPU: one array of one axis, whose memory is then the worker's, or any number
                    of arrays and tensors, or a dict or pairs of names and arrays, as model.named_parameters(). PyTorch's are
                    moved into the worker's memory, with their `grad`. Other arrays give their values:
                    Worker.parameters are the live ones. All workers start with those of worker 0.
        algorithm   a row of skein.algorithms()
        optimizer   a row of skein.optimizers(), which has the defaults of lr, weight_decay and the optimizer's own flags.
                    sgd decays all parameters, the others those of two axes or more
        matrices    what muon orthogonalizes: names or indices of parameters; None: all of two axes or more but the last
                    one, which is the head. Of a single vector: the shapes of the segments in it, each of which begins at
                    a multiple of 64
        buffers     arrays of numbers that are averaged but not trained, such as running statistics; others than of
                    float32 are left alone
        flags       the algorithm's and the optimizer's own, as docs/flags.md names them, with underscores: tau=8,
                    outer_lr=0.7, momentum=0.8, beta2=0.95
        """
        optimizer = optimizer.replace("_", "-")
        return Worker(self, Layout(parameters, buffers, optimizer, matrices), algorithm, optimizer, lr, weight_decay,
                      seed, flags)

    def average(self, array):
        """array <- its mean over all workers, in place. All give contiguous, writable arrays of one size, of float32 or
        float64, on the host or on a GPU; else all get an exception."""
        try:
            if is_jax(array):
                raise TypeError("it is immutable")
            array = array.detach() if hasattr(array, "detach") else array
            array = array if device_of(array)[0] is None else exported(array)
        except (TypeError, BufferError, BadOption):  # it is none of these, and the others must hear of it
            array = None
        try:
            _skein.average(self._native, array)
        except TypeError:
            _skein.average(self._native, None)

    def barrier(self):
        self._native.barrier()

    def close(self):
        """Ends this job's workers and leaves the job. The other workers' waits for this one fail at once."""
        self._native.leave()

    def leave_unless_alone(self):
        """Call it after a step that failed here but not on the other workers, which wait for this one."""
        if not self._native.left and self.world > 1:
            self.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Worker:
    """Made by Job.worker()."""

    def __init__(self, job, layout, algorithm, optimizer, lr, weight_decay, seed, flags):
        self._job, self._layout = job, layout
        self._gradient = self._given = None  # of the last step, and what it returned
        self._failed = False                 # gradient() has raised
        memory = layout.make_memory(job._native)
        self._native = _skein.Worker(job._native, memory, algorithm.replace("_", "-"), optimizer, lr, weight_decay, seed,
                                     words_of(flags), layout.words, layout.sizes, layout.count, layout.segments)
        layout.end_call()

    parameters = property(lambda self: self._layout.parameters,
                          doc="the live parameters, one array each, to be read by the buffer protocol or DLPack")
    gradients = property(lambda self: self._layout.gradients, doc="where gradient() leaves the gradient, alike")

    def step(self, gradient):
        """One step of the algorithm, of which it returns what gradient() returns.

        gradient() computes the loss and its gradient at the parameters as they are: into Worker.gradients, which are
        zero when it is called, or into the `grad` of PyTorch's parameters. It returns the loss, or (loss, gradients)
        with one array a parameter. Under `sam` it is called twice, for the same samples, and the first result is returned.
        palsgd does not call it in some steps, and returns None then. If it raises, the parameters are as before and this
        worker leaves its job: the others cannot go on without its part of the step, unless the job is elastic.

        In an elastic job the last gradient() may be called again, also by model(), save() and finish(): where a worker was
        lost, the others continue from the last step that all of them have taken.
        """
        self._gradient, self._given = gradient, None
        me = weakref.ref(self)  # what is native keeps this function, and must not keep this worker
        try:
            with self._layout.call():
                self._native.step(lambda: me()._compute())
        except BaseException:
            self._job.leave_unless_alone()
            raise
        return self._given and self._given[0]

    def _compute(self):
        """The loss, with the gradient where the algorithm expects it."""
        self._failed = True
        self._layout.clear()
        result = self._gradient()
        loss = self._layout.take(result)
        self._given = self._given or (result,)
        self._failed = False
        return loss

    @contextlib.contextmanager
    def _leaving_if_it_fails(self):
        """Around calls that may take a step once more, in which gradient() may raise: the others wait for its part."""
        try:
            with self._layout.call():
                yield
        except BaseException:
            if self._failed:
                self._job.leave_unless_alone()
            raise

    def ready(self, index):
        """Within gradient(): the gradient of parameters[index] is final, so that its sum over the workers may be under
        way while others are computed. In any order, or not at all; what is not named is sent when gradient() returns.
        Under any algorithm each call also moves on what travels meanwhile."""
        self._layout.fetch(index)
        self._layout.begin_call()
        self._native.ready(index)

    steps = property(lambda self: self._native.steps,
                     doc="that the job has taken: for a newcomer to an elastic job, those before it came, too")

    def set_rate(self, lr):
        self._native.set_rate(lr)

    @contextlib.contextmanager
    def model(self):
        """In this block the parameters are the model that the algorithm stands for, the same on all workers. All enter
        it together, and take no step in it."""
        with self._leaving_if_it_fails():
            self._native.show_model()
        try:
            yield self
        finally:
            with self._layout.call():
                self._native.hide_model()

    def finish(self):
        """After the last step, once: the parameters of all workers are now that model. Returns how far apart they
        were: sqrt(mean |x_i - mean|^2 / n)."""
        with self._leaving_if_it_fails():
            return self._native.finish()

    def save(self, directory, keep=3):
        """Writes a checkpoint, DIRECTORY/checkpoints/step-NNNNNNNN, of which `keep` stay. All workers together."""
        with self._leaving_if_it_fails():
            self._native.save(str(directory), keep)

    def load(self, path):
        """Loads the newest checkpoint of a directory, or that one. All workers together, as many as have saved it or not.
        In an elastic job it comes before the first step; in a newcomer, which has the state of the others, it does nothing."""
        with self._layout.call():
            self._native.load(str(path))

    def figures(self):
        """What was sent, and how long this worker waited for others."""
        figures = self._native.figures()
        return {k: v if k.endswith("_s") else int(v) for k, v in figures.items()}

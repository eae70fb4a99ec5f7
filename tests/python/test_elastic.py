"""Elastic jobs of Python programs: workers that die, and others that join while the loop goes on."""
import faulthandler
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import numpy as np
import skein
import workers

STEPS = 120
DEADLINE = 240  # seconds for a single wait of a worker, which a busy machine does not reach
IDLE = 300  # seconds in which no worker writes anything: they hang, and say where


def loop(directory, algorithm, flags, checkpoint):
    """Trains until the job has taken STEPS steps, and writes down what happens."""
    own = pathlib.Path(directory, f"worker-{os.getpid()}")
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    job = skein.init(place=directory, elastic=True, deadline=DEADLINE)
    draw = np.random.default_rng(1 + job.rank)
    w = job.worker(np.zeros(300, np.float32), algorithm, lr=0.05, **flags)
    true = np.random.default_rng(0).normal(size=300).astype(np.float32)
    if checkpoint:
        w.load(checkpoint)
    met = {job.world}
    while w.steps < STEPS:
        def gradient():
            x = np.asarray(w.parameters[0])
            np.asarray(w.gradients[0])[...] = x - true + 0.01 * draw.normal(size=300).astype(np.float32)
            w.ready(0)
            return float(((x - true) ** 2).mean())
        loss = w.step(gradient)
        time.sleep(0.3 if pathlib.Path(directory, "slowly").exists() else 0.005)  # a newcomer is to find the job at work
        if w.steps % 3 == 0:  # so that a death meets this, too
            with w.model():
                loss = float(((np.asarray(w.parameters[0]) - true) ** 2).mean())
        if w.steps % 30 == 0:
            w.save(directory)
        met.add(job.world)
        own.write_text(f"{w.steps} {job.world} {loss}\n")
    w.finish()
    x = np.asarray(w.parameters[0])
    print("END", w.steps, job.world, w.figures()["changes"], x.tobytes().hex()[:64], float(np.abs(x - true).max()),
          sorted(met), flush=True)
    job.close()


class Elastic(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.key = tempfile.NamedTemporaryFile()
        self.key.write(os.urandom(32))
        self.key.flush()
        self.port = workers.free_port()
        self.all = []

    def tearDown(self):
        for p in self.all:
            p.kill()
            p.communicate()
        self.directory.cleanup()
        self.key.close()

    def start(self, rank, world, algorithm, flags=None, checkpoint=""):
        code = (f"import test_elastic as t; t.loop({self.directory.name!r}, {algorithm!r}, {flags or {}!r}, "
                f"{str(checkpoint)!r})")
        p = subprocess.Popen([sys.executable, "-c", code], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             env=workers.environment(rank, world, self.port, self.key.name))
        self.all.append(p)
        return p

    def written(self):
        return [(path.name, path.stat().st_mtime_ns) for path in sorted(pathlib.Path(self.directory.name).glob("worker-*"))]

    def watch(self, p, done, seconds=0.02):
        """Until done(p), as long as any worker takes steps. Where none does for IDLE seconds, all say where they are."""
        seen, since = self.written(), time.monotonic()
        while not done(p):
            now = self.written()
            if now != seen:
                seen, since = now, time.monotonic()
            if time.monotonic() - since > IDLE:
                self.fail(f"worker {p.pid} waits, and no worker takes a step:\n{self.where_they_are()}")
            time.sleep(seconds)

    def where_they_are(self):
        for p in self.all:
            if p.poll() is None:
                p.send_signal(signal.SIGUSR1)
        time.sleep(1)
        for p in self.all:
            p.kill()
        return "\n".join(f"worker {p.pid}: {p.communicate()}" for p in self.all)

    def wait_until(self, p, what):
        """Until what a worker has written last satisfies what(steps, world)."""
        own = pathlib.Path(self.directory.name, f"worker-{p.pid}")

        def there(p):
            words = own.read_text().split() if own.exists() else []
            if len(words) == 3 and what(int(words[0]), int(words[1])):
                return True
            if p.poll() is not None:
                self.fail(f"worker {p.pid} has ended before: {p.communicate()}")
            return False
        self.watch(p, there)

    def slowly(self, on):
        note = pathlib.Path(self.directory.name, "slowly")
        note.touch() if on else note.unlink()

    def ends(self, left):
        """[words] of those who are left; all have one model, which is near the best."""
        said = []
        for p in left:
            self.watch(p, lambda p: p.poll() is not None)
            out, err = p.communicate()
            self.assertEqual(p.returncode, 0, err)
            said.append(out.split("END ")[1].split(maxsplit=5))
        for words in said:
            self.assertEqual(words[0], str(STEPS))
            self.assertEqual(words[3], said[0][3])
            self.assertLess(float(words[4]), 0.2)
        return said

    def test_anyone_may_die_and_somebody_else_joins(self):
        for algorithm, flags, victim in [("allreduce", {}, 0), ("sgp", {"topology": "complete", "peers": 3}, 2),
                                         ("local-sgd", {"tau": 4}, 0)]:
            with self.subTest(algorithm=algorithm):
                self.tearDown(), self.setUp()
                first = [self.start(r, 4, algorithm, flags) for r in range(4)]
                self.wait_until(first[1], lambda steps, _: steps >= 5)
                self.slowly(True)
                first[victim].send_signal(signal.SIGKILL)
                self.wait_until(first[1], lambda _, world: world == 3)
                self.assertEqual(first[victim].wait(), -signal.SIGKILL)
                late = self.start(victim, 4, algorithm, flags)
                self.wait_until(late, lambda steps, world: steps > 5 and world == 4)
                self.slowly(False)
                said = self.ends([p for p in first if p is not first[victim]] + [late])
                self.assertEqual({words[1] for words in said}, {"4"})
                self.assertEqual({words[2] for words in said[:3]}, {"2"})
                self.assertIn(f"step-{STEPS:08}", os.listdir(pathlib.Path(self.directory.name, "checkpoints")))

    def test_a_death_before_the_first_step_and_a_newcomer_of_another_kind(self):
        self.slowly(True)
        first = [self.start(r, 3, "allreduce") for r in range(2)]
        short = self.run_once(2, 3, "")
        self.assertEqual(short.returncode, 0, short.stderr)
        self.wait_until(first[0], lambda steps, world: steps >= 2 and world == 2)
        other = self.run_once(2, 3, """
try:
    job.worker(np.zeros(300, np.float32), "allreduce", lr=0.06)
except skein.BadOption as e:
    print(e)
try:
    print(job.rank)
except skein.Error as e:
    print(e)
""")
        self.assertIn("the job's workers make allreduce over 300", other.stdout, other.stderr)
        self.assertIn("this worker makes allreduce over 300", other.stdout)
        self.assertIn("has been left", other.stdout)
        self.slowly(False)
        said = self.ends(first)
        self.assertEqual({words[1] for words in said}, {"2"})
        self.assertEqual({words[2] for words in said}, {"3"})

    def test_a_checkpoint_of_another_number_of_workers(self):
        said = self.ends([self.start(r, 3, "local-sgd", {"tau": 4}) for r in range(3)])
        self.assertEqual({words[2] for words in said}, {"0"})
        checkpoint = pathlib.Path(self.directory.name, "checkpoints", "step-00000090")
        again = [self.start(r, 2, "local-sgd", {"tau": 4}, checkpoint) for r in range(2)]
        self.wait_until(again[0], lambda steps, world: steps >= 91)
        self.ends(again)

    def run_once(self, rank, world, code):
        code = f"import numpy as np, skein\njob = skein.init(place={self.directory.name!r}, elastic=True, deadline={DEADLINE})\n{code}"
        return subprocess.run([sys.executable, "-c", code], text=True, capture_output=True, timeout=IDLE,
                              env=workers.environment(rank, world, self.port, self.key.name))

    def test_a_gradient_that_fails_is_the_loss_of_one_worker(self):
        first = [self.start(r, 3, "allreduce") for r in range(2)]
        third = self.run_once(2, 3, """
w = job.worker(np.zeros(300, np.float32), "allreduce", lr=0.05)
def fails():
    raise KeyError("no such batch")
try:
    w.step(fails)
except KeyError as e:
    print(e)
""")
        self.assertIn("no such batch", third.stdout, third.stderr)
        self.assertEqual({words[1] for words in self.ends(first)}, {"2"})

    def test_a_death_that_ready_meets_is_no_failure_of_the_gradient(self):
        code = f"""
import os, signal, time
import numpy as np, skein
job = skein.init(place={self.directory.name!r}, elastic=True, deadline={DEADLINE})
w = job.worker([np.zeros(1100000, np.float32) for _ in range(4)], "allreduce", lr=0.05)  # four slices
died = False
def gradient():
    global died
    if w.steps == 3 and job.world == 3:
        if job.rank == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        died = True
        for i in reversed(range(100)):
            time.sleep(0.02)
            w.ready(i // 25)
    return 0.0
while w.steps < 6:
    w.step(gradient)
w.finish()
print("END", died, w.steps, job.world, flush=True)
job.close()
"""
        self.all = [subprocess.Popen([sys.executable, "-c", code], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                     env=workers.environment(r, 3, self.port, self.key.name)) for r in range(3)]
        for p in self.all[:2]:
            out, err = p.communicate(timeout=IDLE)
            self.assertIn("END True 6 2", out, err)
        self.assertEqual(self.all[2].wait(), -signal.SIGKILL)

    def test_what_an_elastic_job_cannot_have(self):
        code = f"""
import numpy as np, skein
job = skein.init(place={self.directory.name!r}, elastic=True, deadline={DEADLINE})
for algorithm in ("osgp", "gem"):
    try:
        job.worker(np.zeros(3, np.float32), algorithm)
    except skein.BadOption as e:
        print(e)
w = job.worker(np.zeros(3, np.float32), "allreduce")
try:
    job.worker(np.zeros(3, np.float32), "allreduce")
except skein.BadOption as e:
    print(e)
"""
        both = [subprocess.Popen([sys.executable, "-c", code], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                 env=workers.environment(r, 2, self.port, self.key.name)) for r in range(2)]
        for p in both:
            out, err = p.communicate(timeout=IDLE)
            self.assertIn("osgp: its workers are at different steps", out, err)
            self.assertIn("gem: its workers are at different steps", out, err)
            self.assertIn("an elastic job has one worker in each process", out, err)


if __name__ == "__main__":
    unittest.main()

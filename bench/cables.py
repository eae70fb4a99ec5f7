"""Four hosts joined by cables of a rate, on one machine: network namespaces, and the workers of a job in them, one each."""
import os, re, subprocess, time

from pages import fail

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
HOSTS, NAME = 4, f"bc{os.getpid()}"
ADDRESS = "10.99.0.10"  # of the first host


class Hosts:
    """The namespaces, while it lasts (tests/hosts; needs root)."""

    def __init__(self, rate):
        self.rate = rate

    def __enter__(self):
        done = subprocess.run([f"{ROOT}/tests/hosts", "up", NAME, str(HOSTS), self.rate], capture_output=True, text=True)
        if done.returncode:
            fail(done.stdout.strip() or done.stderr.strip())

    def __exit__(self, *_):
        subprocess.run([f"{ROOT}/tests/hosts", "down", NAME, str(HOSTS)])


def megabits(rate):
    m = re.fullmatch(r"(\d+)([kmg])bit", rate) or fail(f"--rate {rate}: as in 100mbit")
    return int(m[1]) * {"k": 1e-3, "m": 1, "g": 1e3}[m[2]]


def on_wire():
    """Bytes that the hosts' cables have carried away from them, headers included."""
    read = lambda r: subprocess.run(["ip", "netns", "exec", f"{NAME}-{r}", "cat", "/sys/class/net/eth0/statistics/tx_bytes"],
                                    capture_output=True, text=True, check=True).stdout
    return sum(int(read(r)) for r in range(HOSTS))


def words_of(flags):
    return [w for k, v in flags.items() for w in ([f"--{k}", str(v)] if not isinstance(v, bool) else [f"--{'' if v else 'no-'}{k}"])]


def run_job(program, words, log, key, limit):
    """One worker a host, each of one thread, with its output in LOG.RANK. Gives what went wrong in words, or None."""
    env = dict(os.environ, WORLD_SIZE=str(HOSTS), MASTER_ADDR=ADDRESS, MASTER_PORT="29500", SKEIN_KEY_FILE=key,
               OMP_NUM_THREADS="1", OMP_WAIT_POLICY="passive")
    began, running = time.time(), []
    for r in range(HOSTS):
        with open(f"{log}.{r}", "w") as out:
            running.append(subprocess.Popen(["ip", "netns", "exec", f"{NAME}-{r}", program, *words], env=dict(env, RANK=str(r)),
                                            stdout=out, stderr=out))
    try:
        bad = [r for r, p in enumerate(running) if p.wait(timeout=max(1, limit - (time.time() - began)))]
    except subprocess.TimeoutExpired:
        return f"not done after {limit:.0f} s"
    finally:
        for p in running:
            p.kill()
    if bad:
        with open(f"{log}.{bad[0]}") as f:
            return f.read().strip()[-300:] or f"worker {bad[0]} failed"
    return None

"""Runs a function of a test module as several worker processes, and returns what each returned."""
import json
import os
import socket
import subprocess
import sys
import tempfile


class Ended:
    def __init__(self, status, out, err):
        self.status, self.out, self.err = status, out, err
        lines = [line for line in out.splitlines() if line.startswith("RESULT ")]
        self.result = json.loads(lines[-1][7:]) if lines else None


def environment(rank, world, port, key):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM_", "OMPI_", "PMI_", "LOCAL_"))}
    return {**env, "RANK": str(rank), "WORLD_SIZE": str(world), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
            "SKEIN_KEY_FILE": key, "OMP_NUM_THREADS": "1"}


def free_port():
    with socket.socket() as s:
        s.bind(("", 0))
        return s.getsockname()[1]


def run(path, function, world, *arguments, seconds=120):
    """[Ended] of `world` processes that call this function of a Python file, f(job, *arguments) and may return what JSON can say."""
    port = free_port()
    with tempfile.NamedTemporaryFile() as key:
        key.write(os.urandom(32))
        key.flush()
        words = [sys.executable, __file__, path, function, json.dumps(arguments)]
        workers = [subprocess.Popen(words, env=environment(r, world, port, key.name), text=True,
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE) for r in range(world)]
        try:
            said = [w.communicate(timeout=seconds) for w in workers]
        finally:
            for w in workers:
                w.kill()
    return [Ended(w.returncode, *both) for w, both in zip(workers, said)]


def results(test, path, function, world, *arguments):
    """What each of these processes has returned; a unittest fails if one of them has not ended well."""
    all = run(path, function, world, *arguments)
    for e in all:
        test.assertEqual(e.status, 0, e.out + e.err)
    return [e.result for e in all]


def main():
    import importlib.util

    import skein
    path, function, arguments = sys.argv[1:]
    spec = importlib.util.spec_from_file_location("tested", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with skein.init(deadline=60) as job:
        print("RESULT", json.dumps(getattr(module, function)(job, *json.loads(arguments))), flush=True)


if __name__ == "__main__":
    main()

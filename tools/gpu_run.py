"""What tools/gpu_check stands on: commands with limits, and results that outlive a command that is cut off."""
import contextlib
import csv
import io
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tarfile
import time

import gpu_tests

ROOT = pathlib.Path(__file__).resolve().parent.parent
# All that a run hands over, whatever became of it.
FILES = ["gpu_check.json", "gpu_check.txt", "device.json", "kernels.csv", "choices.tar.gz", "logs.tar.gz"]


class OutOfTime(Exception):
    """A command was cut off, or not begun, for want of time rather than for its own limit."""


def said_by(row):
    """A row of results in words."""
    parts = []
    if "value" in row:
        value = f"{row['value']:.1f}" if row["value"] >= 100 else f"{row['value']:.4g}"
        parts.append(f"{value} {row['unit']}" + (f" ({row['ms']:.3f} ms)" if "ms" in row else ""))
    if row.get("note"):
        parts.append(row["note"])
    return ", ".join(parts)


class Results:
    """Sections with rows, in a file that is whole after every row. A later command reads it and continues."""

    def __init__(self, work, out, about):
        self.file, self.out, self.about = work / "gpu_check.json", out, about
        self.all = {"about": about, "commands": 0, "sections": {}}
        with contextlib.suppress(OSError, ValueError, KeyError):
            before = json.loads(self.file.read_text())
            if before["about"] == about:  # of other programs there is nothing to continue
                self.all = before

    def section(self, name):
        return self.all["sections"].setdefault(name, {"state": "begun", "good": True, "seconds": 0, "finished": [],
                                                      "rows": {}})

    def done(self, name):
        return self.all["sections"].get(name, {}).get("state") == "done"

    def write(self):
        text = json.dumps(self.all, indent=1) + "\n"
        for place in {self.file, self.out / "gpu_check.json"}:
            aside = place.with_suffix(".part")
            aside.write_text(text)
            aside.replace(place)
        (self.out / "gpu_check.txt").write_text(self.words())

    def words(self):
        lines = ["A rehearsal: no figure here was measured on a GPU."] if self.about.get("dry_run") else []
        for name, s in self.all["sections"].items():
            state = "good" if s["good"] else "NOT GOOD"
            lines.append(f"== {name}: {state}{'' if s['state'] == 'done' else ', not finished'}, {s['seconds']:.0f} s")
            lines += [f"  {key:<72} {said_by(row)}" for key, row in s["rows"].items()]
        return "\n".join(lines) + "\n"


class Run:
    """One command of gpu_check: where programs are, how long is left, what was found."""

    def __init__(self, o, programs, libraries, about):
        self.o, self.bin, self.began = o, pathlib.Path(programs), time.time()
        self.work, self.out = pathlib.Path(o.work).resolve(), pathlib.Path(o.out).resolve()
        self.results = Results(self.work, self.out, about)
        if self.results.all["commands"] == 0:  # what others left here is not ours; choices hold for all programs
            shutil.rmtree(self.work / "logs", ignore_errors=True)
            for name in ("device.json", "kernels.csv"):
                (self.work / name).unlink(missing_ok=True)
        for folder in (self.work / "logs", self.work / "cache/skein", self.out):
            folder.mkdir(parents=True, exist_ok=True)
        self.env = dict(os.environ, OMP_WAIT_POLICY="passive", PYTHONUNBUFFERED="1",
                        XDG_CACHE_HOME=str(self.work / "cache"))
        self.env["LD_LIBRARY_PATH"] = ":".join(libraries + [p for p in [os.environ.get("LD_LIBRARY_PATH")] if p])
        self.name, self.until, self.child = "", 0, None

    # ---- time
    def left(self):
        """Seconds for the command that runs now, and for its section."""
        return min(self.began + self.o.minutes * 60, self.until or float("inf")) - time.time()

    def once(self, key, f, *arguments):
        """Does a piece of the section, unless an earlier command has done it."""
        finished = self.results.section(self.name)["finished"]
        if key not in finished:
            f(*arguments)
            finished.append(key)
            self.results.write()

    def do(self, name, budget, f):
        """Runs a section; what it finds is kept even if it fails or is cut off."""
        self.name, self.until = name, time.time() + budget
        section, began = self.results.section(name), time.time()
        try:
            f(self)
            section["state"] = "done"
        except OutOfTime:
            section["state"] = "cut off"
        except Exception as e:  # a broken section must not cost the others
            section["state"] = "done"
            self.row("gpu_check itself", repr(e), good=False)
        section["seconds"] = round(section["seconds"] + time.time() - began, 1)
        self.until = 0
        self.results.write()
        self.pack()

    # ---- results
    def row(self, key, note="", good=True, **figures):
        section = self.results.section(self.name)
        section["rows"][key] = {**figures, "note": note, **({} if good else {"bad": True})}
        section["good"] = not any("bad" in row for row in section["rows"].values())
        self.results.write()

    def bench_rows(self, file, prefix=""):
        """The rows that a benchmark has written so far; whether there are any."""
        with contextlib.suppress(OSError, ValueError):
            rows = json.loads(pathlib.Path(file).read_text())
            for r in rows:
                figures = {k: r[k] for k in ("value", "unit", "ms") if k in r}
                note = f"failed: {r['failed']}" if "failed" in r else r.get("note", "")
                key, section = prefix + r["what"], self.results.section(self.name)
                known = {k: v for k, v in section["rows"].get(key, {}).items() if k != "bad"}
                if known != {**figures, "note": note}:
                    self.row(key, note, good="failed" not in r, **figures)
            return bool(rows)
        return False

    def pack(self):
        """Files for the way home: always the same ones."""
        for name, folder in (("logs.tar.gz", self.work / "logs"), ("choices.tar.gz", self.work / "cache/skein")):
            with tarfile.open(self.out / name, "w:gz") as tar:
                for file in sorted(folder.iterdir()):
                    tar.add(file, file.name)
        for name, nothing in (("device.json", "{}\n"), ("kernels.csv", "")):
            kept = self.work / name
            if not kept.exists():
                kept.write_text(nothing)
            shutil.copy(kept, self.out / name)
        self.results.write()

    # ---- commands
    def program(self, name):
        return self.bin / name

    def test(self, name):
        """The command that runs the tests of one source file."""
        return [self.program(gpu_tests.PROGRAM), f"--file={name}"]

    def has(self, name):
        return self.program(name).exists()

    def run(self, command, limit, env=None, meanwhile=None):
        """(exit status, output); the status is None if there is no such program, 124 if it ran into its own limit.

        Raises OutOfTime where the section's or the whole command's time ends first. Nothing that it started is left."""
        if not shutil.which(str(command[0])):
            return None, f"{command[0]} is not here"
        seconds = min(limit, self.left())
        if seconds < min(limit, 5):
            raise OutOfTime
        log = self.work / "logs" / f"{self.name}.log"
        ours = any(str(c).startswith(str(self.bin)) for c in command)
        environment = {**(self.env if ours else os.environ), **(env or {})}  # what is not ours keeps its own libraries
        with open(log, "ab") as f:
            f.write(f"$ {' '.join(str(c) for c in command)}\n".encode())
            f.flush()
            start, began = f.tell(), time.time()
            self.child = subprocess.Popen([str(c) for c in command], env=environment, cwd=ROOT, stdout=f,
                                          stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True)
            status = self.wait(began + seconds, meanwhile)
        with open(log, "rb+") as f:
            f.seek(start)
            said = f.read().decode(errors="replace")
            f.write(f"\n[status {status}, {time.time() - began:.1f} s]\n\n".encode())
        if status == 124 and seconds < limit:
            raise OutOfTime
        return status, said

    def wait(self, until, meanwhile):
        try:
            while self.child.poll() is None and time.time() < until:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self.child.wait(min(1, max(0, until - time.time())))
                if meanwhile:
                    meanwhile()
            return 124 if self.child.poll() is None else self.child.returncode
        finally:
            self.end_group()

    def end_group(self):
        """Ends what is left of the last command's group: workers and sanitized programs would keep using the GPU."""
        child, self.child = self.child, None
        if not child:
            return
        for sign, patience in ((signal.SIGTERM, 5), (signal.SIGKILL, 5)):
            with contextlib.suppress(ProcessLookupError, subprocess.TimeoutExpired):
                os.killpg(child.pid, sign)
                child.wait(patience)
        child.wait()


def kernel_table(said):
    """Rows (kernel, calls, ms, GB read, GB written, warps %) from ncu's CSV, the longest first; none if it has none."""
    start = said.find('"ID"')
    if start < 0:
        return []
    found, calls = {}, {}
    for line in csv.DictReader(io.StringIO(said[start:])):
        with contextlib.suppress(TypeError, ValueError, KeyError, AttributeError):
            value, name = float(line["Metric Value"].replace(",", "")), line["Kernel Name"]
            scale = {"ns": 1e-6, "us": 1e-3, "usecond": 1e-3, "nsecond": 1e-6, "ms": 1, "msecond": 1, "s": 1e3,
                     "byte": 1e-9, "Kbyte": 1e-6, "Mbyte": 1e-3, "Gbyte": 1, "%": 1}[line["Metric Unit"]]
            sums = found.setdefault(name, {})
            sums[line["Metric Name"]] = sums.get(line["Metric Name"], 0) + value * scale
            calls.setdefault(name, set()).add(line["ID"])
    rows = []
    for name, sums in found.items():
        n, of = len(calls[name]), lambda metric: next((v for k, v in sums.items() if k.startswith(metric)), 0.0)
        rows.append((name, n, of("gpu__time_duration"), of("dram__bytes_read"), of("dram__bytes_write"),
                     of("sm__warps_active") / n))
    return sorted(rows, key=lambda r: -r[2])

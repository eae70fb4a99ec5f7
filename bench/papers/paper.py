"""What the scripts of this folder share: worlds, runs of train_imagenet in them, and a table with the published
figures beside ours, which goes with its pictures to docs/papers.md."""
import argparse, datetime, json, os, re, shutil, subprocess, sys, time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.dirname(HERE))
from pages import fail, machine, marked, put_between  # noqa: E402

TRAINING = ("data", "forward", "backward", "update", "peers")  # of seconds_by_work


def options(words):
    """The flags of every script here."""
    parser = argparse.ArgumentParser(description=words, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help="smaller and fewer runs, for a test; the page stays")
    parser.add_argument("--resume", action="store_true", help="keep runs of before that were asked for in the same words")
    parser.add_argument("--build", default="build/bin", help="where train_imagenet is")
    parser.add_argument("--runs", default="build/papers", help="directory of the runs")
    parser.add_argument("--page", default=os.path.join(ROOT, "docs", "papers.md"), help="the page that gets the table")
    parser.add_argument("--dry", action="store_true", help="only show the table")
    return parser.parse_args()


def world(hosts, step_ms, gradient="ghost", compute="", network="", sigma=0.0, more=""):
    """A world file of so many workers, each on a host of its own, whose steps vary by a lognormal law."""
    law = f'law = "lognormal"\nsigma = {sigma}\n' if sigma else ""
    return (f'[compute]\nstep_ms = {step_ms:.6g}\ngradient = "{gradient}"\n{law}{compute}\n[network]\n{network}\n'
            f'[[host]]\nname = "h"\ncount = {hosts}\n{more}')


def read(path):
    with open(path) as f:
        return f.read()


class Runs:
    """Trainings in simulated worlds, each in a directory of its own."""

    def __init__(self, o, paper):
        self.program = os.path.join(ROOT, o.build, "train_imagenet")
        if not os.access(self.program, os.X_OK):
            fail(f"{self.program}: no such program; build it first")
        self.resumes = o.resume
        self.directory = os.path.join(ROOT, o.runs, paper)
        os.makedirs(self.directory, exist_ok=True)

    def path(self, *names):
        return os.path.join(self.directory, *names)

    def train(self, name, text, flags, may_diverge=False, may_fail=False):
        """The summary of a run in the world of this text. None if it has diverged and may; if it may fail, the problem."""
        path, asked, summary = self.path(name + ".toml"), self.path(name + ".asked"), self.path(name, "summary.json")
        there = os.path.exists(summary) and os.path.exists(asked)
        if self.resumes and there and read(asked) == text + flags:
            return json.loads(read(summary))
        shutil.rmtree(self.path(name), ignore_errors=True)
        for file, words in ((path, text), (asked, text + flags)):
            with open(file, "w") as f:
                f.write(words)
        command = [self.program, "--simulate", path, "--output", self.path(name), "--progress", "none", "--no-tensorboard"]
        began = time.time()
        done = subprocess.run(command + flags.split(), capture_output=True, text=True, cwd=self.directory)
        if may_diverge and re.search("diverged|not finite", done.stderr):
            return None
        if done.returncode and may_fail:
            return {"problem": (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]}
        if done.returncode:
            fail(f"{name}: {done.stderr.strip()[-400:]}")
        print(f"  {name}: {time.time() - began:.0f} s", file=sys.stderr, flush=True)
        return json.loads(read(summary))

    def events(self, name, kind):
        with open(self.path(name, "metrics.jsonl")) as f:
            return [e for e in map(json.loads, f) if e["event"] == kind]

    def step_seconds(self, name, skipped):
        """Seconds of a step of worker 0, once so many steps are past."""
        at = {e["step"]: e["seconds"] for e in self.events(name, "step")}
        last = max(at)
        return (at[last] - at[skipped]) / (last - skipped)


def waiting(summary):
    """What workers stand still for others, as a share of what they compute."""
    each = summary["seconds_by_worker"]
    return sum(each["peers"]) / (sum(each["forward"]) + sum(each["backward"]))


class Table:
    """Figures, the published one beside ours. `within`: how far the ratio of both may be from 1. A row without it was used
    to calibrate the world, or has no published figure."""

    def __init__(self):
        self.rows, self.misses = [], 0

    def add(self, what, published, ours, within=None, note=""):
        """Figures are pairs of a number and its words, or words alone."""
        verdict = note
        if within is not None:
            good = abs(ours[0] / published[0] - 1) <= within
            verdict = f"{'within' if good else '**miss**: not within'} {100 * within:g} %" + (f"; {note}" if note else "")
            self.misses += not good
        ratio = f"{ours[0] / published[0]:.2f}" if isinstance(published, tuple) and isinstance(ours, tuple) else ""
        said = [f[1] if isinstance(f, tuple) else f for f in (published, ours)]
        self.rows.append([what, *said, ratio, verdict])

    def claim(self, what, published, ours, holds, threshold):
        """A claim in words, and the threshold that was stated for it before the run."""
        self.misses += not holds
        self.rows.append([what, published, ours, "", f"{'holds' if holds else '**miss**'}: {threshold}"])

    def lines(self):
        head = ["", "published", "ours", "ours / published", ""]
        return ["| " + " | ".join(r) + " |" for r in [head, ["---"] * len(head)] + self.rows]


def deliver(o, paper, introduction, table, pictures):
    """Shows the table, and unless it is a short or a dry run writes it to the page, its pictures (name, title, SVG) beside."""
    print("\n".join(table.lines()), flush=True)
    for name, _, svg in pictures:
        if not svg.startswith("<svg ") or len(svg) > 60000:
            fail(f"{name}: not an SVG of at most 60 kB")
    if not o.short and not o.dry:
        marked(o.page, paper)
        folder = os.path.join(os.path.dirname(o.page), "papers")
        os.makedirs(folder, exist_ok=True)
        shown = []
        for name, title, svg in pictures:
            with open(os.path.join(folder, name + ".svg"), "w") as f:
                f.write(svg)
            shown += ["", f"![{title}](papers/{name}.svg)"]
        made = f"`bench/papers/{paper}` on {datetime.date.today()}, {machine()}. "
        put_between(o.page, paper, [made + " ".join(introduction.split()), ""] + table.lines() + shown)
    print(f"{paper}: {table.misses} {'miss' if table.misses == 1 else 'misses'}")

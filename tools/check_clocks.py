#!/usr/bin/env python3
"""Fails if a run could tell simulated time from real time: comm, optim and apps read one clock, nap in one way and start
their threads in one way (comm/clock.h, comm/threads.h), so that a simulated world can serve all three."""
import pathlib
import re
import sys

FOLDERS = ("comm", "optim", "apps")
OTHERS = re.compile(r"steady_clock|system_clock|high_resolution_clock|steady_seconds|clock_gettime|gettimeofday|\btime\(nullptr\)|"
                    r"last_write_time|sleep_for|sleep_until|\busleep\(|nanosleep|this_thread::yield|condition_variable|"
                    r"std::j?thread\b(?!::)|std::async")
# Files, or folders, that use another one, and why a simulated world does not miss it.
EXCEPTIONS = {
    "comm/clock.h": "is the clock",
    "comm/threads.h": "is the threads",
    "comm/threads.cc": "is the threads, the naps and the time of day",
    "comm/sim/": "makes the simulated time, by threads of the machine",
    "comm/join/": "real sockets: ranks of a world meet without",
    "comm/tcp/": "real sockets",
    "comm/ucx/": "a real network",
    "comm/communicator/device_messages.cc": "times copies to and from a GPU",
    "apps/checkpoint/run_directory.cc": "names a run by the day on which it was started",
    "apps/command_line/resumed_run.cc": "times of files",
    "apps/embed/python/simulating.cc": "looks for Ctrl-C while a world is at work",
    "apps/launch/": "processes and their signals: workers of a world are threads",
}


def excepted(name: str) -> bool:
    return any(name == e or (e.endswith("/") and name.startswith(e)) for e in EXCEPTIONS)


def problems(root: pathlib.Path):
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*.*")):
            name = path.relative_to(root).as_posix()
            if path.suffix not in {".h", ".cc", ".cu", ".cuh"} or excepted(name):
                continue
            for number, line in enumerate(path.read_text().splitlines(), 1):
                if m := OTHERS.search(line.split("//")[0]):
                    yield f"{name}:{number}: {m[0]}: use comm/clock.h and comm/threads.h, or say in {__file__} why not"
    for e in EXCEPTIONS:
        if not (root / e).exists():
            yield f"tools/check_clocks.py: {e} is an exception, and not there"


if __name__ == "__main__":
    found = list(problems(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")))
    print("\n".join(found) if found else "one clock: kept")
    sys.exit(bool(found))

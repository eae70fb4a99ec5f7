"""What scripts of this folder that write tables share: where a table goes in a page, and the machine in words."""
import os, re, sys


def fail(message):
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    sys.exit(f"{os.path.relpath(sys.argv[0], here)}: {message}")


def machine():
    cpu = re.search(r"model name\s*:\s*(.*)", open("/proc/cpuinfo").read())
    return f"{cpu.group(1) if cpu else 'unknown processor'}, {os.cpu_count()} cores"


def marked(path, name):
    """A file's text, and where the table of this name goes in it: from the end of one mark to the other."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    try:
        with open(path) as f:
            text = f.read()
    except OSError as e:
        fail(f"{path}: {e.strerror}")
    first, last = text.find(begin), text.find(end)
    if first < 0 or last < first:
        fail(f"{path}: a line {begin} and, below it, one {end} are needed to say where the table goes")
    return text, first + len(begin), last


def put_between(path, name, lines):
    text, begin, end = marked(path, name)
    with open(path + ".part", "w") as f:
        f.write(text[:begin] + "\n" + "\n".join(lines) + "\n" + text[end:])
    os.replace(path + ".part", path)

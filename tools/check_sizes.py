#!/usr/bin/env python3
"""Fails if a file, a class, a folder or the reading path is larger than a reader can hold in mind, a line is too wide, or a comment is badly broken.

The limits are the constants below. A class or a file that has a reason to be larger says so, the class in a comment above it
that begins with "Large class:", the file in one at its beginning that begins with "Large file:"; nothing else is exempt.
usage: check_sizes.py [--table]     --table: the largest of each kind, whether or not they keep the limit"""
import collections
import itertools
import pathlib
import re
import subprocess
import sys

FILE_LINES = 350      # of a file of code, tests included
CLASS_LINES = 280     # its definition and its member functions, wherever they are
CLASS_MEMBERS = 15    # data members
CLASS_SOURCES = 3     # .cc files that define its member functions
FOLDER_FILES = 40     # files of code directly in a folder
READING_PATH = 1250   # lines of the files that CONTRIBUTING.md lists under "Read these first"
FRAGMENT = 20         # a header of at most so many lines that one file includes may belong into that file: --table lists them
COLUMNS = 110         # of a line of a .h, .cc, .cu or .cuh; rows of .def tables are as wide as they need to be
FOLDERS = ("engine", "comm", "nn", "data", "optim", "apps")
EVERYTHING = (*FOLDERS, "tests", "bench", "examples", "tools")
EXEMPT = "Large class:"
EXEMPT_FILE = "Large file:"

CLASS = re.compile(r"^( *)(?:template <.*> )?(class|struct) (?:alignas\(\w+\) )?(\w+(?:::\w+)*)(?: final)?(?: : [^;{]*?)? ?\{$")
MEMBER = re.compile(r"^[\w:<>,*&\[\]() ~]*?\b((?:\w+::)+)(?:~?\w+|operator[^ (]+)\(")
NO_DATA = re.compile(r"^(public|private|protected|using|typedef|friend|static|enum|class|struct|union|template|return|#|//)")


def sources(folders=FOLDERS):
    names = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "--", *folders], capture_output=True, text=True, check=True)
    paths = [pathlib.Path(n) for n in names.stdout.split("\n") if n]
    return [p for p in paths if p.suffix in {".h", ".cc", ".cu", ".cuh"} and p.exists()]


def without_templates(text):
    """Text without what stands between < and >, so that the parentheses left are those of functions."""
    depth, out = 0, []
    for at, c in enumerate(text):
        if c == "<" and (depth or (at and (text[at - 1].isalnum() or text[at - 1] == "_"))):
            depth += 1
        elif c == ">" and depth:
            depth -= 1
        elif not depth:
            out.append(c)
    return "".join(out)


def data_members(body):
    """How many variables the statements of a class's own level declare. body: its lines, without first and last."""
    indent = min((len(l) - len(l.lstrip()) for l in body if l.strip() and not re.match(r" ?\w+:$", l)), default=0)
    count, statement, inside = 0, "", False
    for line in body:
        own = len(line) - len(line.lstrip()) == indent
        line = line.split("//")[0].strip()
        if not statement and not own:
            continue  # the body of a function, or of a class inside
        if not line or (not statement and (NO_DATA.match(line) or line.startswith("}") or line in {"public:", "private:", "protected:"})):
            continue
        statement += " " + line
        if line.endswith("{") or line.endswith("}"):
            statement = ""
        elif line.endswith(";"):
            plain = without_templates(statement)
            declared = re.split(r"=|\{", plain)[0]
            if "(" not in declared and re.search(r"\w[\s*&]+\w+", declared):
                count += 1 + re.sub(r"\{[^}]*\}|\([^)]*\)|\[[^\]]*\]", "", plain).count(",")
            statement = ""
    return count


class Class:
    def __init__(self):
        self.lines, self.members, self.files, self.at, self.reason = 0, 0, set(), "", False


def classes():
    found = collections.defaultdict(Class)
    for path in sources():
        lines = path.read_text().split("\n")
        for n, line in enumerate(lines):
            if m := CLASS.match(line):
                end = next((e for e in range(n + 1, len(lines)) if lines[e].startswith(m[1] + "}")), n)
                if m[1]:
                    continue  # part of the class around it
                c = found[path.parts[0], m[3]]
                c.lines += end - n + 1
                members = data_members(lines[n + 1:end])
                if members >= c.members:
                    c.members, c.at = members, f"{path}:{n + 1}"
                above = n - 1
                while above >= 0 and lines[above].startswith("//"):
                    c.reason = c.reason or EXEMPT in lines[above]
                    above -= 1
            elif line and not line[0].isspace() and not line.startswith(("//", "#", "}", "using", "namespace", "class", "struct")):
                head = line.split("{")[0]
                if (m := MEMBER.match(without_templates(head))) and not line.rstrip().endswith(";"):
                    name = m[1][:-2]
                    end = n
                    if not line.rstrip().endswith("}"):
                        end = next((e for e in range(n + 1, len(lines)) if lines[e].startswith("}")), n)
                    found[path.parts[0], name].lines += end - n + 1
                    found[path.parts[0], name].files.add(str(path))
    return {k: c for k, c in found.items() if c.at}


def orphans():
    """Lines of one or two words that end a paragraph of a comment after a full line: it was broken and not refilled."""
    for path in sources((*FOLDERS, "tests", "bench", "examples")):
        if path.as_posix().startswith("bench/peers/"):
            continue
        lines = path.read_text().split("\n")
        for n in range(1, len(lines)):
            own, before = re.match(r"^( *)// (\w\S*(?: \S+)?)$", lines[n]), re.match(r"^( *)// \S.*$", lines[n - 1])
            follows = n + 1 < len(lines) and re.match(r"^ *// \S", lines[n + 1])
            if own and before and own[1] == before[1] and len(lines[n - 1]) > 80 and "  " not in before[0].strip() and not follows:
                yield f"{path}:{n + 1}: one or two words on a line of their own; refill the comment"


def reading_path():
    text = pathlib.Path("CONTRIBUTING.md").read_text()
    section = text[text.index("## Read these first"):]
    section = section[:section.find("\n## ", 5)]
    files = dict.fromkeys(f for f in re.findall(r"`(\w+/[\w/]+\.(?:h|cc|cu|def))`", section))
    return {f: len(pathlib.Path(f).read_text().split("\n")) - 1 for f in files}


def files():
    """Lines of each file of code, and whether its first comment gives a reason for their number."""
    for path in sources(EVERYTHING):
        if not path.as_posix().startswith("bench/peers/"):
            lines = path.read_text().split("\n")
            yield path, len(lines) - 1, any(EXEMPT_FILE in l for l in itertools.takewhile(lambda l: l.startswith("//"), lines))


def wide_lines():
    """Lines of code that are too wide."""
    for path in sources(EVERYTHING):
        for n, line in enumerate(path.read_text().split("\n")):
            if len(line) > COLUMNS:
                yield f"{path}:{n + 1}: {len(line)} columns, {COLUMNS} at most; refill the comment, or cut the line"


def folders():
    return collections.Counter(p.parent.as_posix() for p in sources((*FOLDERS, "tests")))


def fragments():
    """Short headers that a single file outside their own room (x.h, x.cc) includes."""
    includers = collections.defaultdict(set)
    for path in sources():
        for header in re.findall(r'^#include "([^"]+)"', path.read_text(), re.M):
            if pathlib.Path(header).with_suffix("") != path.with_suffix(""):
                includers[header].add(path.as_posix())
    for path in sources():
        lines = len(path.read_text().split("\n")) - 1
        if path.suffix == ".h" and lines <= FRAGMENT and len(includers[path.as_posix()]) == 1:
            yield f"{path} {lines}, by {includers[path.as_posix()].pop()}"


def problems(all_classes):
    yield from wide_lines()
    for (folder, name), c in sorted(all_classes.items()):
        over = [f"{c.lines} lines, {CLASS_LINES} at most"] * (c.lines > CLASS_LINES)
        over += [f"{c.members} data members, {CLASS_MEMBERS} at most"] * (c.members > CLASS_MEMBERS)
        over += [f"member functions in {len(c.files)} files, {CLASS_SOURCES} at most"] * (len(c.files) > CLASS_SOURCES)
        if over and not c.reason:
            yield f"{c.at}: {name} has {' and '.join(over)}; split it, or say why in a comment above: \"{EXEMPT} ...\""
        if c.reason and not over:
            yield f"{c.at}: {name} is no longer large; its comment \"{EXEMPT}\" can go"
    for path, lines, reason in files():
        if lines > FILE_LINES and not reason:
            yield f"{path}: {lines} lines, {FILE_LINES} at most; split it by what it does, or say why in its first comment: \"{EXEMPT_FILE} ...\""
        if reason and lines <= FILE_LINES:
            yield f"{path}: it is no longer large; its comment \"{EXEMPT_FILE}\" can go"
    for folder, count in folders().items():
        if count > FOLDER_FILES:
            yield f"{folder}/: {count} files of code, {FOLDER_FILES} at most; make rooms"
    path = reading_path()
    if sum(path.values()) > READING_PATH:
        yield f"CONTRIBUTING.md: the reading path has {sum(path.values())} lines, {READING_PATH} at most"
    yield from orphans()


def table(all_classes):
    print(f"reading path: {sum(reading_path().values())} lines")
    for file, lines in reading_path().items():
        print(f"  {lines:4} {file}")
    for what, key in [("lines", lambda c: c.lines), ("data members", lambda c: c.members), ("files", lambda c: len(c.files))]:
        print(f"classes by {what}:")
        for (folder, name), c in sorted(all_classes.items(), key=lambda i: -key(i[1]))[:12]:
            print(f"  {key(c):4} {folder} {name}  {c.at}")
    print("lines a file:", ", ".join(f"{p} {n}" for p, n, _ in sorted(files(), key=lambda f: -f[1])[:8]))
    print("files a folder:", ", ".join(f"{f} {n}" for f, n in folders().most_common(8)))
    print(f"headers of at most {FRAGMENT} lines with one includer:", *fragments(), sep="\n  ")


if __name__ == "__main__":
    if "--table" in sys.argv:
        table(classes())
        sys.exit(0)
    found = list(problems(classes()))
    print("\n".join(found) if found else "sizes: kept")
    sys.exit(bool(found))

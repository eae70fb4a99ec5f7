#!/usr/bin/env python3
"""Makes the seeds of the harnesses, which are checked in: tests/fuzz/make_corpus.py rewrites tests/fuzz/corpus.

A seed is what a harness takes: often a byte that says how, then the bytes of a file. Needs Pillow."""
import gzip
import io
import json
import pathlib
import shutil
import struct
import tarfile

from PIL import Image

HERE = pathlib.Path(__file__).resolve().parent / "corpus"


def put(harness, name, *parts):
    path = HERE / harness / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(p.encode() if isinstance(p, str) else bytes(p) for p in parts))


def encoded(image, kind, **options):
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def images():
    flat = Image.frombytes("RGB", (19, 13), bytes((x * 37 + y * 11 + c * 80) % 256 for y in range(13) for x in range(19) for c in range(3)))
    jpegs = {"baseline": (flat, {}), "progressive": (flat, {"progressive": True}), "gray": (flat.convert("L"), {}),
             "cmyk": (flat.convert("CMYK"), {}), "restarts": (flat, {"restart_marker_blocks": 1}), "whole": (flat, {"subsampling": 0})}
    for n, (name, (image, options)) in enumerate(jpegs.items()):
        put("image", name + ".jpg", [n % 4, 100, 100, 100, 100], encoded(image, "JPEG", quality=60, **options))
    clear = flat.convert("RGBA")
    clear.putalpha(100)
    pngs = {"rgb": flat, "gray": flat.convert("L"), "rgba": clear, "palette": flat.convert("P"), "one_bit": flat.convert("1"),
            "sixteen": Image.new("I;16", (5, 4), 40000), "gray_alpha": clear.convert("LA")}
    for n, (name, image) in enumerate(pngs.items()):
        put("image", name + ".png", [8 + n % 4, 9, 9, 9, 9], encoded(image, "PNG"))


def data_sets():
    idx = struct.pack(">IIII", 0x803, 2, 3, 3) + b"x" * 18
    put("idx", "images", [0], idx)
    put("idx", "images.gz", [0], gzip.compress(idx, mtime=0))
    put("idx", "labels", [1], struct.pack(">II", 0x801, 2), [1, 2])
    put("unpacking", "plain", [1], "abc")
    put("unpacking", "beginning", [0, 10], gzip.compress(b"abc" * 100, mtime=0))
    put("unpacking", "gzipped", [1], gzip.compress(b"abc" * 100, mtime=0))
    put("unpacking", "members", [1], gzip.compress(b"abc", mtime=0), gzip.compress(b"def", mtime=0))
    put("cifar", "ten", [0, 0], b"\1" * 3073)
    put("cifar", "hundred", [1, 0], b"\1" * 3074)
    put("cifar", "names", [1, 1], "apple\nbear\n\ncan\n")
    put("leftover", "some", [60], "1 3-9 12-40")
    put("leftover", "all", [0], "0")
    put("odd_files", "some", "3:4,17:128,9000000000:256")
    put("folder_index", "two", "2\na\n1\n2\n1\nx.jpg\n0\nb/c\n1\n2\n1\ny.jpg\n1\n.txt\n3\n")
    put("folder_index", "outside", "1\na/../..\n1\n2\n1\nx.jpg\n0\n")
    put("shard_index", "one", "1\ns.tar\n1\n2\n2048\n1\na.jpg\n512\n10\n3\n")


def tars():
    def tar(members, kind):
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w", format=kind) as t:
            for name, content in members:
                info = tarfile.TarInfo(name)
                info.size = len(content)
                t.addfile(info, io.BytesIO(content))
        return out.getvalue()
    some = [("a/1.jpg", b"\xff\xd8\xff"), ("a/1.cls", b"3"), ("a/2.png", b"x" * 20), ("a/2.json", b'{"label": 2}')]
    long = [("x" * 150 + ".jpg", b""), ("x" * 150 + ".cls", b"0\n")]
    for name, kind, members in (("ustar", tarfile.USTAR_FORMAT, some), ("gnu", tarfile.GNU_FORMAT, long), ("pax", tarfile.PAX_FORMAT, long)):
        put("tar", name, tar(members, kind).rstrip(b"\0"), bytes(1536))
    put("tar", "word", tar([("1.json", b'{"label": "7"}'), ("1.jpg", b"")], tarfile.USTAR_FORMAT)[:3584])


def headed(header, body=b""):
    return json.dumps(header) + "\n", body


def tensors():
    about = {"classes": '["a","b","c"]', "model": "mlp", "steps": "3", "image": "4x4x1", "view": "whole", "mean": "[0.5]", "std": "[0.2]"}
    put("safetensors", "described", [1], *headed({"__metadata__": about, "w": {"dtype": "F32", "shape": [2, 1], "data_offsets": [0, 8]}}, b"12345678"))
    put("safetensors", "narrow", [1], *headed({"x": {"dtype": "BF16", "shape": [], "data_offsets": [0, 2]},
                                              "y": {"dtype": "I64", "shape": [1], "data_offsets": [2, 10]}}, b"12" + b"1" * 8))
    put("safetensors", "bare", [0], struct.pack("<Q", 2), "{}")
    for name, kind, shape, size in (("f4", "<f4", "(2,)", 8), ("f8", "<f8", "(1, 2)", 16), ("f2", "<f2", "()", 2)):
        put("npy", name, [1], f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}\n", bytes(size))
    put("npy", "version2", [0], b"\x93NUMPY\x02\x00\x36\0\0\0", "{'descr': '<f4', 'fortran_order': True, 'shape': (1,), }\n", bytes(4))
    manifest = {"format": 1, "version": "0.1.0", "step": 10, "model": "mlp", "layout": "x", "algorithm": "sgp", "world": 1, "data": "d",
                "seed": 1, "global_batch": 12, "images": {k: {"count": 3, "blake2b": "ab"} for k in ("train", "test")},
                "files": [{"name": "rank-0000.safetensors", "blake2b": "ab"}]}
    put("manifest", "mended", [1], json.dumps(manifest))
    put("manifest", "unmended", [0], json.dumps(dict(manifest, blake2b="00")))
    fields = {"x": ("F32", [8], 32), "rule.v": ("F32", [2, 2], 16), "n": ("I64", [3], 24), "words": ("U8", [3], 3)}
    header, at = {"__metadata__": {"k": "int 4", "meters.images": "int 9", "r": "real 0.5"}}, 0
    for name, (kind, shape, size) in fields.items():
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [at, at + size]}
        at += size
    for harness in ("state", "reshared_state"):
        put(harness, "all", *headed(header, bytes(at - 3) + b"3:4"))
    gossip = dict(header, **{"strategy.x": {"dtype": "F32", "shape": [8], "data_offsets": [at, at + 32]}})
    gossip["__metadata__"] = {"k": "int 4", "meters.images": "int 9", "r": "real 0.5", "strategy.w": "real 0.5"}
    put("reshared_state", "gossip", *headed(gossip, bytes(at - 3) + b"3:4" + bytes(32)))
    put("pool_table", "all", json.dumps({"has_state": True, "tensors": {"x": [0, [2, 3], "ab"]}, "wholes": {"k": -4}, "reals": {"w": 1}}))


def texts():
    for depth in (63, 64, 65):
        put("nesting", str(depth), "[" * depth + "]" * depth)
    put("nesting", "strings", '{"a.b": ["[[[", "\\"{", {"c": 1.5e3}]}')
    put("config", "flags", 'data = "synthetic"\nlr = 0.1\nbatch-size = 8\nnesterov = true\npeers = "1@0,2@30"\nalgorithm = "sgp"\n'
        'checkpoint-every = "50steps"\n')
    put("config", "forms", 'lr-schedule = "step:30,60:0.1"\nsteps = 1_000\nwarmup_epochs = 1e3\n')
    put("world_file", "hosts", 'seed = 3\n[compute]\nstep_ms = 100\nlaw = "markov"\nslow = 4\nenter = 0.1\nleave = 0.3\n[network]\nmbit_per_s = 100\n'
        '[[host]]\nname = "a"\ncount = 3\nworkers = 2\ncores = 4\n[[fault]]\nat_s = 1\nkind = "cut"\nhost = "a-1"\nseconds = 2\n')
    put("world_file", "switches", '[compute]\nstep_ms = 1\nlaw = "lognormal"\nsigma = 0.5\n[[machine]]\nname = "m"\ncores = 2\n[[switch]]\nname = "s"\n'
        '[[switch]]\nname = "t"\nabove = "s"\nup_mbit_per_s = 10\n[[host]]\nname = "a"\nswitch = "t"\nmachine = "m"\n[faults]\nkills_per_hour = 1\n')
    put("world_file", "trace", '[compute]\nlaw = "trace"\ntrace = "trace"\n[[host]]\nname = "a"\n', [1], "12.5\n3\n")
    put("config", "section", "[section]\na = [1, {b = 2}]\n")
    put("config", "unquoted", "model = resnet18\n")
    put("command_line", "flags", [0], "--data\nsynthetic\n--lr\n0.1\n--algorithm=sgp\n--no-nesterov\n--print")
    put("command_line", "actions", [0], "--help\nsgp\n--workers\n4")
    put("command_line", "predict", [0], "--predict\na.jpg\nb\n--weights\nm.safetensors\n--top\n3\n--json")
    put("command_line", "unknown", [0], "--learning-rate\n0.1\nphotos")
    put("command_line", "recipe", [0], "--recipe\nfashion-mnist\n--resume\nauto\n--output\nrun")
    put("command_line", "averaging", [1], "--workers\n4\n--input\npart{rank}.npy\n--topology\nring\n--peers\n1\n--tolerance\n1e-3\n--json")
    for n, value in enumerate(("step:30,60:0.1", "dirichlet:0.3", "region", "train-{000..012}-{a,b}.tar", "500steps")):
        put("option_values", str(n), [n], value)
    put("option_values", "poly", [0], "poly:1.5")
    put("environment", "hosts", "a:2,user@b:2")
    put("environment", "variables", "a,b\n", [0], "1\n", [1], "4\n", [2], "0\n")
    put("environment", "slurm", "a\n", [4], "0\n", [5], "8\n", [8], "node[01-03,7]-ib,login\n", [10], "4(x2),1\n", [9], "1\n")
    put("environment", "mpi", "a\n", [13], "1\n", [14], "2\n", [19], "500\n")
    put("graph", "file", [2], json.dumps({"n": 2, "rounds": [{"edges": [[0, 0, 0.5], [0, 1, 0.5], [1, 1, 0.5], [1, 0, 0.5]]}]}))
    for name in ("ring", "exponential", "base", "random", "complete", "bipartite-linear", "file:x"):
        put("graph", name.replace(":", "_"), [15], name)
    put("recording", "served", "skein order of arrivals 1\n3\n-1\n5\n")
    put("choices", "one", "skein choices 1\n0123456789abcdef\tk\tv\n")
    put("note", "whole", f"skein meeting 1\nhosts a,10.0.0.1\nport 500\nkey {'ab' * 32}\n")
    members = [{"hosts": ["a", "10.0.0.1"], "port": 500}, {"hosts": ["fe80::1"], "port": 65535}]
    put("membership", "note", [1], json.dumps({"skein_membership": 1, "epoch": 3, "members": members, "key": "ab" * 32}))
    put("membership", "without_key", [1], json.dumps({"skein_membership": 1, "epoch": 3, "members": members[:1]}))
    put("membership", "address", [0], "node1:4711")
    put("membership", "brackets", [0], "[fe80::1%eth0]:4711")
    put("claim", "some", "register 3 00ff")
    put("claim", "odd", "register 4294967296 0")
    put("first_view", "two", "17 4711 10.0.0.1 @word\n18446744073709551615 4712 10.0.0.1 10.1.0.1 @word\n")
    put("first_view", "twice", "17 4711 10.0.0.1\n17 4712 10.0.0.1\n")
    put("networks", "two", "4711 0 2 eth0 10.0.0.1 10.0.0.0/24 10000 eth1 10.1.0.1 10.1.0.0/24 1000\n"
        "4712 0 2 eth0 10.0.0.2 10.0.0.0/24 10000 eth1 10.1.0.2 10.1.0.0/24 1000\n", b"\1", "9400 930 9300 940")
    put("networks", "apart", "4711 0 1 eth0 10.0.0.1 10.0.0.0/24 -1\n4712 1 1 ib0 10.1.0.2 10.1.0.0/24 -1\n", b"\1", "9 8")
    run = [{"event": "run", "step": 0, "workers": 2, "config": {"model": "mlp", "seed": 1}, "environment": {"device": "cpu"}},
           {"event": "step", "step": 3, "loss": 0.3, "loss_min": 0.2, "epoch": 0.1, "seconds": 1.5, "learning_rate": 0.1},
           {"event": "eval", "step": 3, "loss": 0.3, "top1": 40.5}, {"event": "epoch", "step": 3, "epoch": 1},
           {"event": "lost", "step": 3, "worker": 1, "why": "killed"}]
    summary = {"steps": 3, "config": {"lr": 0.1, "model": "mlp"}, "workers": 2, "top1": 40.5, "seconds": 2}
    lines = "".join(json.dumps(e) + "\n" for e in run)
    put("metrics", "run", [1], lines, [1], json.dumps(summary))
    put("metrics", "running", [0], lines)
    timeline = {"steps": [1, 3], "seconds": 0.1, "tracks": ["a"], "names": ["b"], "workers": [{"rank": 0, "spans": [[0, 0, 0.1, 0.2]]}]}
    evaluation = {"classes": ["a", "b"], "confusions": [[0, 1, 5]], "mistakes": [{"image": "x.jpg", "label": 0, "taken_for": 1}]}
    put("metrics", "all", [1], lines, [1], json.dumps(summary), [1], json.dumps(timeline), [1], json.dumps(evaluation))
    put("resumed_metrics", "run", [3], lines)
    parts = struct.pack("<HBB", 133, 1, 2) + bytes([15, 2, 5]) + bytes([11, 5, 1])
    put("c_interface", "steps", "sgd\noptimizer=muon\nlr=0.1\n\n", parts, [0, 32, 2], struct.pack("<f", 0.5), [160, 37, 5, 44], "steps")
    put("c_interface", "flags", "local_sgd\ntau=4\nweight-decay=1e-4\n\n", struct.pack("<HBB", 10, 0, 0), [0, 0, 3, 0, 0, 6])


def messages():
    def header(kind, sender, pieces=1, piece=0, size=16, codec=0, epoch=1):
        return struct.pack("<IHHIIiIqIIqBBHId", 0x4E454B53, 1, kind, 1, epoch, sender, 2, 3, piece, pieces, size, codec, codec, 0, 0, 1.0)
    whole, later = 16, 32
    put("mailbox", "short", [whole], header(1, 1), [whole], header(1, 2))
    put("mailbox", "pieces", [whole | later], header(1, 1, 2, 0, 1 << 21), [whole], header(1, 1, 2, 1, 1 << 21), [8], header(1, 1), [0])
    put("mailbox", "goodbye", [0], header(3, 1, size=4, codec=3), struct.pack("<H", 4))
    put("mailbox", "likely", [1 | 2 | whole], header(1, 1, size=1 << 21), [1 | 2 | whole], header(1, 2, size=5000))
    hello = struct.pack("<IHHiiiIBB6x32s", 0x5A444B53, 2, 1, 1, 0, 2, 0, 0, 1, b"salt")
    put("caller", "member", [7], hello, bytes(32))
    put("caller", "stranger", [0], hello, bytes(32))
    put("answer", "whole", [1, 255])
    put("answer", "cipher", [1, 0], [2])
    put("table", "two", [1], struct.pack("<Q", 4), "mine", struct.pack("<Q", 5), "yours")
    put("inflow", "messages", [4], header(1, 1), bytes(16), header(1, 1, size=0))
    put("inflow", "goodbye", [6], header(3, 1, size=4, codec=3), bytes(4))
    put("inflow", "changed", [5], header(1, 1), bytes(16))
    put("inflow", "pieces", [0], header(1, 1, 2, 0, 1 << 21), [9], bytes(9))
    request = struct.pack("<IHHQiiq", 0x494E4B53, 1, 2, 0, 1, 3, 5) + bytes(16)
    put("notice", "given_up", [0], header(4, 1, size=4, codec=3), [4], struct.pack("<i", 2), [1])
    put("notice", "refusal", [0], header(2, 1, size=4), [4], "stop", [1])
    put("lease_words", "word", [0], struct.pack("<4q", 1, 0, 3, 0))
    put("lease_words", "standing", [1], struct.pack("<3q", -1, 0, 0))
    put("lease_words", "answer", [2], struct.pack("<5q", 0, 8, 1, 2, 3))
    put("lease_words", "short", [0], struct.pack("<q", 1))
    put("datagram", "request", [2], request)
    put("datagram", "acknowledged", [2], struct.pack("<IHHQiiq", 0x494E4B53, 1, 0x8000, 0, 1, 0, 7) + bytes(16))
    put("datagram", "long", [4], request, request)
    def letter(sender, word, content, epoch=2):
        bytes_ = struct.pack("<IBBI", 0x55534B53, 1, word, epoch) + content
        return struct.pack("<BH", sender, len(bytes_)) + bytes_
    ballot, own = struct.pack("<QQ", 1, 1), struct.pack("<QQ", 1, 2)
    view = struct.pack("<IqIQBI", 3, 5, 1, 2, 1, 1) + b"b"
    card = struct.pack("<qqBI", 7, 6, 0, 1) + b"a" + struct.pack("<IQBI", 1, 9, 0, 1) + b"n"
    put("succession", "follows", [0], letter(1, 1, ballot), letter(1, 3, ballot + view), letter(1, 6, view, 3))
    put("succession", "proposes", [2], letter(3, 2, own + card + b"\0"), letter(3, 4, own))
    put("succession", "votes", [2], letter(3, 2, own + card + b"\1" + ballot + view), letter(3, 5, own + struct.pack("<QQ", 2, 3)))
    put("succession", "register", [3], letter(3, 2, own + card + b"\0"), letter(3, 7, b"", 1))
    put("succession", "ends", [0], letter(3, 8, struct.pack("<qB", 12, 0), 1), letter(1, 1, ballot))
    def told(layout, content, how=0, codec=4, size=None):
        return bytes([how if size is None else how | 32, codec, len(content)]) + content + (b"" if size is None else struct.pack("<H", size)) + bytes([layout])
    put("collectives", "numbers", [0, 0, 0, 0], told(2, bytes(16)))
    put("collectives", "table", [1, 0, 0, 0], told(4, bytes(32)))
    put("collectives", "texts", [0, 1, 1, 1], told(3, b"yours", codec=2), told(3, b"", 4, 2))
    put("collectives", "text", [1, 2, 0, 0], told(0, struct.pack("<q", 5)), told(1, b"yours", 4, 2))
    put("collectives", "small_mean", [0, 3, 0, 0], told(5, bytes(16), codec=0))
    put("collectives", "large_mean", [0, 4, 0, 0], told(69, b"", codec=0, size=4100), told(134, b"", 1, 0, 4100))
    put("collectives", "told", [0, 5, 0, 0], [2, 4, 4, 16], bytes(17))
    put("collectives", "coded_int8", [0, 6, 0, 0], [64, 2, 0, 0, 1, 0x4F], [65, 2, 0, 0, 0, 0xC7])
    put("collectives", "coded_topk", [1, 34, 0, 0], [64, 2, 0, 2, 0, 0xEF], [65, 2, 0, 2, 1, 0x67])
    put("codes", "int8", [4], struct.pack("<Hff", 300, 0.5, 0.25), bytes(range(256)))
    put("codes", "int4", [5], struct.pack("<Hff", 300, 0.5, 0.25), bytes(range(160)))
    put("codes", "topk", [6], struct.pack("<H", 5000), struct.pack("<HH", 3, 0x3F80) * 50)
    put("codes", "numbers", [0], struct.pack("<H8f", 8, 1, 2, 3, -4, 1e30, 1e-30, float("inf"), float("nan")))
    put("welcome", "view", [1], struct.pack("<IBBI", 0x55534B53, 1, 6, 3) + view)
    put("welcome", "trouble", [0], [8], b"\xff" * 8, [8], struct.pack("<Q", 4), [4], "full")
    put("welcome", "long", [0], [8], struct.pack("<Q", 1 << 40), [3], "abc")
    put("replies", "right", [3], bytes(48), [9], [1])
    put("replies", "changed", [11], bytes(48), [9, 4, 1], [1])
    put("replies", "short", [16], request, [47], [1])
    put("application", "newcomer", struct.pack("<QI", 7, 14), "4711 127.0.0.1", struct.pack("<I", 8), "this job")
    put("datagram", "invitation", [1], "inbox 00ff00ff00ff00ff00ff00ff00ff00ff 5000 127.0.0.1 10.0.0.1")


if HERE.exists():
    shutil.rmtree(HERE)
for make in (images, data_sets, tars, tensors, texts, messages):
    make()

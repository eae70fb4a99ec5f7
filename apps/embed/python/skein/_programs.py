"""The programs that come with the package, as commands."""
import os
import sys


def _run(name):
    program = os.path.join(os.path.dirname(__file__), "bin", name)
    os.execv(program, [program, *sys.argv[1:]])


def train_imagenet():
    _run("train_imagenet")


def gossip_avg():
    _run("gossip_avg")

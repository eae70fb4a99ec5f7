#!/usr/bin/env python3
"""Adds up GoogleTest's XML results: how many tests ran, were skipped (and why), failed.

usage: count_tests.py RESULTS_DIR [--no-minimum]
Fails if a test failed, or fewer ran than tests/minimum_count says: a suite that silently lost tests is not green."""
import collections
import pathlib
import sys
import xml.etree.ElementTree


def main():
    results = pathlib.Path(sys.argv[1])
    ran = failed = 0
    skipped = collections.Counter()
    for path in sorted(results.glob("*.xml")):
        for test in xml.etree.ElementTree.parse(path).getroot().iter("testcase"):
            if (skip := test.find("skipped")) is not None:
                said = (skip.get("message") or "no reason given").strip().splitlines()
                skipped[said[-1]] += 1
            elif test.get("status") == "run":
                ran += 1
                failed += test.find("failure") is not None
    print(f"{ran} tests ran, {failed} failed, {sum(skipped.values())} skipped")
    for reason, count in skipped.most_common():
        print(f"  {count} skipped: {reason}")
    least = int((pathlib.Path(__file__).parent.parent / "tests/minimum_count").read_text())
    if "--no-minimum" not in sys.argv and ran < least:
        print(f"Only {ran} tests ran; tests/minimum_count says at least {least}. Were some lost?")
        return 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

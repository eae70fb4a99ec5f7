#!/usr/bin/env python3
"""Adds up GoogleTest's JSON results: how many tests ran, were skipped (and why), failed.

usage: count_tests.py RESULTS_DIR [--no-minimum]
Fails if a test failed, or fewer ran than tests/minimum_count says: a suite that silently lost tests is not green."""
import collections
import json
import pathlib
import sys


def main():
    results = pathlib.Path(sys.argv[1])
    ran = failed = 0
    skipped = collections.Counter()
    for path in sorted(results.glob("*.json")):
        for suite in json.loads(path.read_text())["testsuites"]:
            for test in suite["testsuite"]:
                if test.get("result") == "SKIPPED":
                    said = [s.get("message", "") for s in test.get("skipped", [])]
                    skipped[(said[0].strip().splitlines() or [""])[-1] if said else "no reason given"] += 1
                elif test.get("status") == "RUN":
                    ran += 1
                    failed += bool(test.get("failures"))
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

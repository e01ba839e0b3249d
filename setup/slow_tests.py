"""Writes tests/slow.txt: the slow test functions of tests/unit, which `make quick` leaves out.

usage: python -m pytest tests/unit --durations=0 --durations-min=0.1 | python setup/slow_tests.py
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from pathlib import Path

SLOW_S = 0.1
"""A function is slow if all its cases together take longer."""
_DURATION = re.compile(r"([0-9.]+)s (?:call|setup|teardown) +([^ \[\n]+)")


def main() -> None:
    took_s: dict[str, float] = defaultdict(float)
    for line in sys.stdin:
        if duration := _DURATION.match(line):
            took_s[duration[2]] += float(duration[1])
    if not took_s:
        sys.exit(f"No test took any time in what was read; slow.txt stays as it is.\n{__doc__}")
    slow = sorted(name for name, seconds in took_s.items() if seconds > SLOW_S)
    Path(__file__).parent.parent.joinpath("tests", "slow.txt").write_text("".join(f"{name}\n" for name in slow))
    sys.stderr.write(f"{len(slow)} functions, {sum(took_s[name] for name in slow):.0f} s\n")


if __name__ == "__main__":
    main()

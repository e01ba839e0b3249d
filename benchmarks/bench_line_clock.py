"""How often the stated errors of console lines hold the truth, and how large they are, for adapters that hold back.

python benchmarks/bench_line_clock.py
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from sizes import sized

from tests.unit.devices.wire.held_lines import ADAPTERS, Covered, covered

SEEDS = sized(100, 1)


def main() -> None:
    print(f"{'adapter':24}{'with the board’s time':>30}{'without':>30}")
    for adapter in ADAPTERS:
        with_time, without_time = (
            _text(covered(adapter, range(SEEDS), lines=120, with_time=has_time)) for has_time in (True, False)
        )
        print(f"{adapter.name:24}{with_time:>30}{without_time:>30}")


def _text(lines: Covered) -> str:
    median_s = lines.errors_s[len(lines.errors_s) // 2]
    return f"{lines.share:8.2%} covered, ± {median_s * 1000:5.1f} ms"


if __name__ == "__main__":
    main()

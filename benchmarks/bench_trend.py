"""How often `harness trend` shows a change in unchanged nights (at most 5 % is right), and how often it finds one.

python benchmarks/bench_trend.py [SERIES]; with a folder in place of SERIES it writes 20 simulated nights there.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[1]))

from sizes import sized

from harness.statistics.change_points import Scan, SeriesToScan, scan_series
from tests.unit.report.test_comparison import wake_session

NIGHTS, TRIALS, HOURS = 20, 60, 8.0
SPREAD = 0.3
"""Standard deviation of the logarithm of a share or rate between nights: each night differs from every other one."""


@dataclass(frozen=True, slots=True)
class Change:
    """Of a share of false rejects: its factor from the eleventh night up to the night `last`.

    - trials: of each night.
    - others: unchanged measures that are scanned together with it.
    """

    factor: int
    trials: int = TRIALS
    last: int = NIGHTS
    others: int = 0


CHANGES = (
    Change(2), Change(2, others=5), Change(2, trials=5 * TRIALS),
    Change(2, trials=5 * TRIALS, last=15), Change(4, last=15),
)  # fmt: skip
UNCHANGED = Change(1)


def draw_series(rng: np.random.Generator, scan: Scan, change: Change = UNCHANGED) -> SeriesToScan:
    nights = np.arange(NIGHTS)
    is_changed = (nights >= 10) & (nights < change.last)
    means = np.exp(rng.normal(0, SPREAD, NIGHTS)) * np.where(is_changed, change.factor, 1)
    counts: NDArray[Any]
    match scan:
        case Scan.SHARE:
            counts, total = rng.binomial(change.trials, np.minimum(1, 0.08 * means)), float(change.trials)
        case Scan.RATE:
            counts, total = rng.poisson(0.5 * HOURS * means), HOURS
        case Scan.RANK:
            counts, total = 0.15 * means, 1.0
    return SeriesToScan(scan, tuple(map(float, counts)), (total,) * NIGHTS)


def measure(count: int) -> None:
    """Prints how many of `count` series show a change, without a change and with each of CHANGES."""
    rng = np.random.default_rng(1)
    for scan in Scan:
        shown = sum(bool(scan_series([draw_series(rng, scan)])[0].changes) for _ in range(count))
        print(f"unchanged, {scan.value}: a change in {shown} of {count} series of {NIGHTS} nights", flush=True)
    shown = 0
    for _ in range(count):
        folder = [draw_series(rng, scan) for scan in [*Scan] * 2]
        shown += any(series.changes for series in scan_series(folder))
    print(f"unchanged, 6 measures together: a change in {shown} of {count} folders")
    for change in CHANGES:
        shown = near = 0
        for _ in range(count):
            changed = draw_series(rng, Scan.SHARE, change)
            others = [draw_series(rng, Scan.SHARE) for _ in range(change.others)]
            nights = [shown_change.at for shown_change in scan_series([changed, *others])[0].changes]
            shown += bool(nights)
            near += any(abs(night - 10) <= 1 for night in nights)
        print(
            f"false rejects × {change.factor} in nights 11 to {change.last}, {change.trials} trials a night,"
            f" {1 + change.others} measures: found in {shown} of {count}, within one night of the right one in {near}",
            flush=True,
        )


def write_nights(folder: Path) -> None:
    """Writes sessions in which the share of false rejects rises from 5 % to 20 % in the twelfth night."""
    for night in range(NIGHTS):
        began_s = 1_767_232_800.0 + 86_400 * night  # 2026-01-01 02:00 UTC
        false_rejects = 0.05 if night < 11 else 0.2
        wake_session(folder / f"night-{night + 1:02}", false_rejects, night, wall_s=lambda at_s=began_s: at_s)


def main() -> None:
    argument = sys.argv[1] if len(sys.argv) > 1 else sized("200", "1")
    if argument.isdigit():
        measure(int(argument))
    else:
        write_nights(Path(argument))


if __name__ == "__main__":
    main()

"""How often `harness trend` shows a change in unchanged nights (at most 5 % is right), and how often it finds one.

python benchmarks/bench_trend.py [SERIES]; with a folder in place of SERIES it writes 20 simulated nights there.
"""

from __future__ import annotations

import sys
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


def series(
    rng: np.random.Generator, scan: Scan, factor: float = 1.0, trials: int = TRIALS, last: int = NIGHTS
) -> SeriesToScan:
    """20 nights; the mean is multiplied by `factor` from the eleventh on, up to the night `last`."""
    nights = np.arange(NIGHTS)
    means = np.exp(rng.normal(0, SPREAD, NIGHTS)) * np.where((nights < 10) | (nights >= last), 1, factor)
    counts: NDArray[Any]
    match scan:
        case Scan.SHARE:
            counts, of = rng.binomial(trials, np.minimum(1, 0.08 * means)), float(trials)
        case Scan.RATE:
            counts, of = rng.poisson(0.5 * HOURS * means), HOURS
        case Scan.RANK:
            counts, of = 0.15 * means, 1.0
    return SeriesToScan(scan, tuple(map(float, counts)), (of,) * NIGHTS)


def main(count: int) -> None:
    """Prints shares of series with a change."""
    rng = np.random.default_rng(1)
    for scan in Scan:
        shown = sum(bool(scan_series([series(rng, scan)])[0].changes) for _ in range(count))
        print(f"unchanged, {scan.value}: a change in {shown} of {count} series of {NIGHTS} nights", flush=True)
    shown = sum(
        any(one.changes for one in scan_series([series(rng, Scan(s)) for s in [*Scan] * 2])) for _ in range(count)
    )
    print(f"unchanged, 6 measures together: a change in {shown} of {count} folders")
    for factor, trials, last, others in (
        (2, TRIALS, NIGHTS, 0), (2, TRIALS, NIGHTS, 5), (2, 5 * TRIALS, NIGHTS, 0),
        (2, 5 * TRIALS, 15, 0), (4, TRIALS, 15, 0),
    ):  # fmt: skip
        found = near = 0
        for _ in range(count):
            together = [
                series(rng, Scan.SHARE, factor, trials, last),
                *(series(rng, Scan.SHARE) for _ in range(others)),
            ]
            places = [one.at for one in scan_series(together)[0].changes]
            found += bool(places)
            near += any(abs(at - 10) <= 1 for at in places)
        what = f"false rejects × {factor} in nights 11 to {last}, {trials} trials a night, {1 + others} measures"
        print(f"{what}: found in {found} of {count}, within one night of the right one in {near}", flush=True)


def simulated(folder: Path) -> None:
    """Nights in which the share of false rejects rises from 5 % to 20 % at the twelfth."""
    for at in range(NIGHTS):
        began_s = 1_767_232_800.0 + 86_400 * at  # 2026-01-01 02:00 UTC
        wake_session(folder / f"night-{at + 1:02}", 0.05 if at < 11 else 0.2, at, wall_s=lambda at_s=began_s: at_s)


if __name__ == "__main__":
    given = sys.argv[1] if len(sys.argv) > 1 else sized("200", "1")
    main(int(given)) if given.isdigit() else simulated(Path(given))

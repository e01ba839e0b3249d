"""Runs of made-up devices with a known truth, for intervals and tests that promise how often they are right."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from harness.model.scenario import SequentialTest
from harness.statistics.intervals import Interval
from harness.statistics.sequential import SequentialVerdict, rate_verdict, share_sequence, share_verdict


def kept_rate(
    random: np.random.Generator, rate: float, runs: int, looks: int, interval: Callable[[int, float], Interval | None]
) -> int:
    """Of `runs` runs with a look each hour, those in which no look excluded the true rate."""
    counts = random.poisson(rate, (runs, looks)).cumsum(axis=1)
    kept = 0
    for run in counts:
        ends = [interval(int(count), float(hour)) for hour, count in enumerate(run, start=1)]
        kept += all(one is not None and one[0] <= rate <= one[1] for one in ends)
    return kept


def kept_share(random: np.random.Generator, share: float, runs: int, trials: int, every: int) -> int:
    """Of `runs` runs with a look after each `every` trials, those in which no look excluded the true share."""
    counts = (random.random((runs, trials)) < share).cumsum(axis=1)[:, every - 1 :: every]
    kept = 0
    for run in counts:
        ends = [share_sequence(int(count), (look + 1) * every) for look, count in enumerate(run)]
        kept += all(one is not None and one[0] <= share <= one[1] for one in ends)
    return kept


def rate_verdicts(
    random: np.random.Generator, test: SequentialTest, rate: float, runs: int, look_hours: float
) -> dict[SequentialVerdict, int]:
    """Verdicts of runs that are looked at after each `look_hours`, each followed until it is decided."""
    found = dict.fromkeys(SequentialVerdict, 0)
    for _ in range(runs):
        count, hours, verdict = 0, 0.0, SequentialVerdict.OPEN
        while verdict is SequentialVerdict.OPEN:
            for more in random.poisson(rate * look_hours, 512):
                count, hours = count + int(more), hours + look_hours
                verdict = rate_verdict(test, count, hours)
                if verdict is not SequentialVerdict.OPEN:
                    break
        found[verdict] += 1
    return found


def share_verdicts(
    random: np.random.Generator, test: SequentialTest, share: float, runs: int
) -> dict[SequentialVerdict, int]:
    """Verdicts of runs that are looked at after every trial, each followed until it is decided."""
    found = dict.fromkeys(SequentialVerdict, 0)
    for _ in range(runs):
        count, total, verdict = 0, 0, SequentialVerdict.OPEN
        while verdict is SequentialVerdict.OPEN:
            for missed in random.random(512) < share:
                count, total = count + int(missed), total + 1
                verdict = share_verdict(test, count, total)
                if verdict is not SequentialVerdict.OPEN:
                    break
        found[verdict] += 1
    return found

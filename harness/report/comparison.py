"""Devices against each other on the same stimuli."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from harness.base.foreign import plain_text
from harness.statistics.significance import Discordance, poisson_rates
from harness.wake.wake import WakeFigures
from harness.wake.wake_comparison import discordance


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two devices on the wake trials that count for both. only_first, only_second: trials heard by that one alone.

    rates_p: that their false accepts an hour (after review) are the same; None without exposure of both.
    """

    first: str
    second: str
    counts: Discordance
    only_first: tuple[str, ...] = ()
    only_second: tuple[str, ...] = ()
    rates_p: float | None = None


def compare(hits: Mapping[str, Mapping[str, bool]]) -> tuple[Comparison, ...]:
    """Every pair of devices; hits: device → trial → did it wake."""
    return tuple(_pair(first, second, hits[first], hits[second]) for first, second in combinations(hits, 2))


def compare_devices(figures: WakeFigures) -> tuple[Comparison, ...]:
    """Every pair of a session's devices, with their false accept rates."""
    devices = {one.device: one for one in figures.snapshot().devices}
    found = []
    for one in compare({name: figures.hits(name) for name in devices}):
        a, b = devices[one.first].after_review, devices[one.second].after_review
        p = poisson_rates(a.count, a.hours, b.count, b.hours)
        found.append(Comparison(one.first, one.second, one.counts, one.only_first, one.only_second, p))
    return tuple(found)


def lines(comparisons: Sequence[Comparison], most_trials: int = 20) -> list[str]:
    """The comparisons in words, with the trials on which the devices differ."""
    found: list[str] = []
    for one in comparisons:
        first, second = plain_text(one.first, 40), plain_text(one.second, 40)
        counts = one.counts
        found.append(
            f"{first} and {second} on {counts.total} same stimuli: both {counts.both}, only {first} "
            f"{counts.only_first}, only {second} {counts.only_second}, neither {counts.neither}; "
            f"McNemar p = {_p(counts.p)}; false accepts an hour, same rate: p = {_p(one.rates_p)}"
        )
        for name, trials in ((first, one.only_first), (second, one.only_second)):
            if trials:
                shown = ", ".join(plain_text(trial, 60) for trial in trials[:most_trials])
                more = f" and {len(trials) - most_trials} more" if len(trials) > most_trials else ""
                found.append(f"  only {name}: {shown}{more}")
    return found


def _pair(first: str, second: str, a: Mapping[str, bool], b: Mapping[str, bool]) -> Comparison:
    shared = [trial for trial in a if trial in b]
    only_first = tuple(trial for trial in shared if a[trial] and not b[trial])
    only_second = tuple(trial for trial in shared if b[trial] and not a[trial])
    return Comparison(first, second, discordance(a, b), only_first, only_second)


def _p(value: float | None) -> str:
    return "n/a" if value is None else f"{value:.3g}"

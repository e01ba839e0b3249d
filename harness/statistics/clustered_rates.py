"""Do events come in clusters, where stretches are of unequal length; and how far a rate may be off when they do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from harness.statistics.exact import Interval, garwood
from harness.statistics.intervals import CONFIDENCE

Column = NDArray[np.float64]
MOST_SIMULATED = 5000
"""Events; of more the normal distribution tells as much."""
SIMULATIONS = 999
REPLICATES = 2000
MOST_DRAWS = 20_000_000
FEWEST_REPLICATES = 200


@dataclass(frozen=True, slots=True)
class Clustering:
    """index: of dispersion, 1 for events that come by themselves, more in clusters. p: one-sided, that they come so
    clustered by chance. interval: of the rate, per unit of exposure, with whole stretches drawn anew; it holds
    Garwood's, since clusters never tell more than as many events by themselves."""

    index: float
    p: float
    interval: Interval
    stretches: int


def clustering(
    counts: ArrayLike, exposures: ArrayLike, *, seed: int = 1, confidence: float = CONFIDENCE
) -> Clustering | None:
    """Index of dispersion over stretches of any length, with its p and a cluster bootstrap; None without two
    stretches and two events. The same numbers give the same answer.

    index: Pearson's chi-square over its degrees of freedom, of which only pairs of events in one stretch count: of
    single events Pearson's depends on how short their stretches are, which says nothing of clusters. Over stretches
    of one length the two are equal. p: by drawing the events anew in proportion to the exposures (few events), or by
    the exact mean and variance of that sum, which are those of stretches of one length. Sources: Fisher, Statistical
    Methods, 16; Haldane, Biometrika 29 (1937); Efron & Tibshirani, An Introduction to the Bootstrap, 8.
    """
    events, exposure = np.asarray(counts, np.float64), np.asarray(exposures, np.float64)
    heard = exposure > 0
    events, exposure = events[heard], exposure[heard]
    total, length = float(events.sum()), float(exposure.sum())
    stretches = len(events)
    if stretches < 2 or total < 2:
        return None
    some = events > 0
    pairs = _pairs(events[some], exposure[some])
    chi_square = pairs * length / total + stretches - total
    random = np.random.Generator(np.random.PCG64(seed))
    if total <= MOST_SIMULATED:
        p = _p_simulated(random, exposure, int(total), pairs) if pairs else 1.0
    else:
        deviation = (2 * (stretches - 1) * (total - 1) / total) ** 0.5
        p = float(ndtr(-(chi_square - (stretches - 1)) / deviation))
    by_stretch = _bootstrap(random, events[some], exposure[some], exposure[~some], confidence)
    by_event = garwood(int(total), length, confidence)
    assert by_event is not None  # a stretch has a length
    interval = min(by_stretch[0], by_event[0]), max(by_stretch[1], by_event[1])
    return Clustering(chi_square / (stretches - 1), p, interval, stretches)


def _pairs(events: Column, exposure: Column) -> float:
    """Ordered pairs of events in one stretch, each by how little it was to be expected there."""
    return float((events * (events - 1) / exposure).sum())


def _p_simulated(random: np.random.Generator, exposure: Column, events: int, pairs: float) -> float:
    edges = np.cumsum(exposure)
    as_much = 0
    for _ in range(SIMULATIONS):
        drawn = np.searchsorted(edges, random.random(events) * edges[-1], side="right")
        where, held = np.unique(np.minimum(drawn, len(exposure) - 1), return_counts=True)
        as_much += _pairs(held.astype(np.float64), exposure[where]) >= pairs * (1 - 1e-12)
    return (1 + as_much) / (1 + SIMULATIONS)


def _bootstrap(
    random: np.random.Generator, events: Column, exposure: Column, silent: Column, confidence: float
) -> Interval:
    """Percentiles of the rate over stretches drawn with replacement.

    Of the stretches without an event only the sum of their exposures matters; for many of them it is normal.
    """
    with_events, without = len(events), len(silent)
    stretches = with_events + without
    replicates = max(FEWEST_REPLICATES, min(REPLICATES, MOST_DRAWS // with_events))
    mean = float(silent.mean()) if without else 0.0
    deviation = float(silent.std()) if without else 0.0
    rates = np.empty(replicates)
    drawn: NDArray[np.integer[Any]]
    for index in range(replicates):
        lively = int(random.binomial(stretches, with_events / stretches))
        drawn = random.integers(0, with_events, lively)
        rest = stretches - lively
        quiet = rest * mean + deviation * rest**0.5 * float(random.standard_normal())
        heard = float(exposure[drawn].sum()) + max(0.0, quiet)
        rates[index] = float(events[drawn].sum()) / heard if heard > 0 else 0.0
    tail = 50 * (1 - confidence)
    low, high = np.percentile(rates, [tail, 100 - tail])
    return float(low), float(high)

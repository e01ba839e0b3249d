"""How far a share may be off where what is counted comes in clusters, as repetitions of a query do."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, stdtrit

from harness.statistics.intervals import CONFIDENCE

IMAGINED = 3.0
"""Clusters that are imagined to be all alike within: a few that happen not to differ do not tell that none do."""
Interval = tuple[float, float]
Column = NDArray[np.float64]


def clustered_interval(
    counts: Sequence[int], totals: Sequence[int], confidence: float = CONFIDENCE, least_effect: float | None = None
) -> Interval | None:
    """Interval of the share sum(counts) / sum(totals), from how clusters differ; None over nothing or one cluster.

    counts, totals: of each cluster. It is the exact interval over as many units as would vary alike. least_effect: of
    the clustering (`design_effect`), where other shares of the same clusters tell more of it than this one, which may
    be of a rare thing; without it, what never or always occurs says as much as there are clusters.
    Sources: Korn & Graubard, Survey Methodology 24 (1998); the delete-one variance of a ratio, Cochran, Sampling
    Techniques.
    """
    units = independent_units(counts, totals, confidence, least_effect)
    if units is None:
        return None
    tail = (1 - confidence) / 2
    share = sum(counts) / sum(totals)
    low = float(betaincinv(share * units, (1 - share) * units + 1, tail)) if share > 0 else 0.0
    high = float(betaincinv(share * units + 1, (1 - share) * units, 1 - tail)) if share < 1 else 1.0
    return low, high


def independent_units(
    counts: Sequence[int], totals: Sequence[int], confidence: float = CONFIDENCE, least_effect: float | None = None
) -> float | None:
    """How many independent units tell as much of the share as these clusters; None over nothing or one cluster.

    Arguments and sources as for `clustered_interval`.
    """
    held, of = _held(counts, totals)
    total = float(of.sum())
    if len(of) < 2:
        return None
    tail = (1 - confidence) / 2
    share = float(held.sum()) / total
    alone = share * (1 - share) / total
    if not alone and least_effect is None:
        return total**2 / float((of * of).sum())
    own = _variance(held, of) / alone if alone else 0.0
    effect = max(1.0, own, least_effect or 0.0)
    degrees = max(1.0, total**2 / float((of * of).sum()) - 1)
    narrowing = (float(stdtrit(max(1.0, total - 1), 1 - tail)) / float(stdtrit(degrees, 1 - tail))) ** 2
    return total / effect * narrowing


def design_effect(figures: Sequence[Sequence[int]], totals: Sequence[int]) -> float | None:
    """How many times the variance of shares is what it would be without clusters, over several shares together.

    figures: for each share the counts of each cluster. At least 1; None where no share varies, or with one cluster.
    It is the larger of two: how much clusters differ, and how alike a cluster is within. A few clusters may happen to
    be the same; that each of them is alike within says all the same that there are no more units than clusters.
    Sources: the mean generalised design effect, Rao & Scott, J. Am. Stat. Assoc. 76 (1981); the effect of unequal
    clusters, Kish, Survey Sampling (1965), from the analysis-of-variance correlation, Ridout, Demétrio & Firth,
    Biometrics 55 (1999).
    """
    clustered = alone = between = within = 0.0
    for counts in figures:
        held, of = _held(counts, totals)
        if len(of) < 2:
            return None
        share, total = float(held.sum() / of.sum()), float(of.sum())
        clustered += _variance(held, of)
        alone += share * (1 - share) / total
        between += float(((held - share * of) ** 2 / of).sum()) / (len(of) - 1)
        within += float((held * (of - held) / of).sum()) / max(1.0, total - len(of))
    if not alone:
        return None
    _, of = _held(totals, totals)
    total, squares = float(of.sum()), float((of * of).sum())
    usual = (total - squares / total) / (len(of) - 1)
    correlation = max(0.0, (between - within) / (between + (usual - 1) * within))
    seen = max(1.0, clustered / alone, 1 + correlation * (squares / total - 1))
    return (len(of) * seen + IMAGINED * squares / total) / (len(of) + IMAGINED)


def _held(counts: Sequence[int], totals: Sequence[int]) -> tuple[Column, Column]:
    held, of = np.asarray(counts, np.float64), np.asarray(totals, np.float64)
    some = of > 0
    return held[some], of[some]


def _variance(held: Column, of: Column) -> float:
    total, clusters = float(of.sum()), len(of)
    share = float(held.sum()) / total
    # How far the share moves when a cluster is left out.
    moves = (held - share * of) / (total - of)
    return (clusters - 1) / clusters * float((moves * moves).sum())

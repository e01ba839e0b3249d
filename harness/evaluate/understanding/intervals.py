"""How far figures of understanding may be off: 95 % intervals over further utterances like these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from harness.evaluate.understanding.columns import SHARES, Columns, Figure, Numbers, basis, columns
from harness.metrics.intervals import CONFIDENCE, wilson
from harness.metrics.understanding.counts import FrameCounts
from harness.metrics.understanding.zero_division import ZERO, ZeroDivision

Interval = tuple[float, float]
DRAWS = 1000
LEAST_UTTERANCES = 10
"""With fewer, samples of them say too little of further ones."""


def intervals(
    counts: Sequence[FrameCounts],
    zero: ZeroDivision = ZERO,
    labels: Sequence[str] | None = None,
    *,
    draws: int = DRAWS,
    seed: int = 0,
) -> Mapping[Figure, Interval | None]:
    """Of the counts of each utterance; labels: declared ones, as in `figures`.

    EMR and SFA: Wilson's. The others: the middle 95 % of the figure over samples of the utterances with replacement.
    None over nothing, over fewer than LEAST_UTTERANCES, and where all samples are the same (no error at all, or nothing
    right): what did not happen cannot be drawn, which says nothing of whether it can happen.
    Source: Efron & Tibshirani, An Introduction to the Bootstrap, 13.
    """
    if not counts:
        return dict.fromkeys(Figure)
    made = columns([counts], basis([counts], zero, labels))
    drawn = made.resampled(draws, seed) if len(counts) >= LEAST_UTTERANCES else {}
    return {
        figure: _share(made, figure) if figure in SHARES else middle(drawn[figure][0]) if drawn else None
        for figure in Figure
    }


def _share(made: Columns, figure: Figure) -> Interval | None:
    at = made.of[figure]
    right, of = (round(float((made.number @ side[0][:, at]).sum())) for side in (made.tops, made.bottoms))
    return wilson(right, of)


def middle(values: Numbers) -> Interval | None:
    """The middle 95 % of what was drawn; samples over nothing do not count."""
    held = values[~np.isnan(values)]
    if not held.size or held.min() == held.max():
        return None
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(held, [tail, 1 - tail])
    return float(low), float(high)

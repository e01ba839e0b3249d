"""How far a share may be off where what is counted comes in clusters, as repetitions of a query do."""

from __future__ import annotations

from collections.abc import Sequence

from harness.metrics.intervals import CONFIDENCE
from harness.metrics.word_intervals import wer_interval

Interval = tuple[float, float]


def clustered_interval(counts: Sequence[int], totals: Sequence[int], confidence: float = CONFIDENCE) -> Interval | None:
    """Interval of the share sum(counts) / sum(totals), from how clusters differ; None over nothing or one cluster.

    counts, totals: of each cluster. The share of the others has the mirrored interval. Method and sources as in
    `word_intervals.wer_interval`: an exact interval over as many units as would vary alike (Korn & Graubard).
    """
    # A share ends at 1, as a word error rate need not: so the smaller of the two shares is the one that is asked for.
    if 2 * sum(counts) <= sum(totals):
        return wer_interval(counts, totals, confidence=confidence)
    rest = [of - count for count, of in zip(counts, totals, strict=True)]
    found = wer_interval(rest, totals, confidence=confidence)
    return None if found is None else (1 - found[1], 1 - found[0])

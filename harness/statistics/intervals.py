"""Shares with their intervals. Counts are kept; a rate over nothing is None."""

from __future__ import annotations

import math
from dataclasses import dataclass

from harness.model.choices import CONFIDENCE as CONFIDENCE
from harness.statistics import special


@dataclass(frozen=True, slots=True)
class Share:
    """`count` of `total` (0 ≤ count ≤ total)."""

    count: int = 0
    total: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.count <= self.total:
            raise ValueError(f"a share cannot be {self.count} of {self.total}")

    @property
    def value(self) -> float | None:
        """The share, 0–1; None of nothing."""
        return self.count / self.total if self.total else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """95 % Wilson score interval."""
        return wilson(self.count, self.total)

    def __add__(self, other: Share) -> Share:
        return Share(self.count + other.count, self.total + other.total)


def wilson(count: int, total: int, confidence: float = CONFIDENCE) -> tuple[float, float] | None:
    """Wilson score interval of a share, without continuity correction; None over nothing.

    Source: Wilson, J. Am. Stat. Assoc. 22 (1927).
    """
    if total == 0:
        return None
    z = float(special.ndtri(0.5 + confidence / 2))
    share = count / total
    centre = share + z * z / (2 * total)
    spread = z * math.sqrt(share * (1 - share) / total + z * z / (4 * total * total))
    scale = 1 + z * z / total
    low = 0.0 if count == 0 else max(0.0, (centre - spread) / scale)
    high = 1.0 if count == total else min(1.0, (centre + spread) / scale)
    return low, high


def quantile_ranks(total: int, quantile: float, confidence: float = CONFIDENCE) -> tuple[int | None, int | None]:
    """Ranks (from 1) of the order statistics that enclose a quantile; no assumption on the distribution.

    Each side keeps (1 − confidence)/2. None on a side where no observation is far enough out, which is the rule for
    a high quantile of few values. Source: David & Nagaraja, Order Statistics, 7.1.
    """
    tail = (1 - confidence) / 2
    low: int | None = None
    high: int | None = None
    # P(X_(r) > q) = P(fewer than r values ≤ q) = bdtr(r − 1, total, quantile), which grows with r.
    first, last = 1, total
    while first <= last:
        rank = (first + last) // 2
        if special.bdtr(rank - 1, total, quantile) <= tail:
            low, first = rank, rank + 1
        else:
            last = rank - 1
    first, last = 1, total
    while first <= last:
        rank = (first + last) // 2
        if special.bdtr(rank - 1, total, quantile) >= 1 - tail:
            high, last = rank, rank - 1
        else:
            first = rank + 1
    return low, high

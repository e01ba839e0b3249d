"""The difference of two shares of the same stimuli, with its interval."""

from __future__ import annotations

import math
from dataclasses import dataclass

from harness.statistics.comparison import Discordance
from harness.statistics.intervals import wilson
from harness.statistics.swapping import in_keeping


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """Share of the first less share of the second; low, high: 95 % interval."""

    value: float
    low: float
    high: float


def paired_difference(counts: Discordance) -> PairedDifference | None:
    """Of stimuli heard by the first and by the second; None over nothing.

    The square-and-add interval of Wilson's ends, with the correlation of the pairs corrected for continuity; it agrees
    on 0 with McNemar's exact test, which stands beside it.
    Source: Newcombe, Statistics in Medicine 17 (1998), 2635–2650, method 10.
    """
    a, b, c, d = counts.both, counts.only_first, counts.only_second, counts.neither
    total = a + b + c + d
    first, second = wilson(a + b, total), wilson(a + c, total)
    if first is None or second is None:
        return None
    share, other = (a + b) / total, (a + c) / total
    cross = a * d - b * c
    corrected = max(cross - total / 2, 0.0) if cross > 0 else float(cross)
    margins = (a + b) * (c + d) * (a + c) * (b + d)
    phi = corrected / math.sqrt(margins) if margins else 0.0
    value = (b - c) / total
    down, up = share - first[0], first[1] - share
    other_down, other_up = other - second[0], second[1] - other
    low = value - math.sqrt(max(0.0, down**2 - 2 * phi * down * other_up + other_up**2))
    high = value + math.sqrt(max(0.0, up**2 - 2 * phi * up * other_down + other_down**2))
    p = 1.0 if counts.p is None else counts.p
    return PairedDifference(value, *in_keeping(value, (max(-1.0, low), min(1.0, high)), p))

"""How much must be played before a claim can be made."""

from __future__ import annotations

from scipy.special import gammaincinv

from harness.statistics.exact import clopper_pearson
from harness.statistics.intervals import CONFIDENCE

MOST_UTTERANCES = 1_000_000


def hours_for_claim(below_per_hour: float, events: int = 0, confidence: float = CONFIDENCE) -> float:
    """Hours after which `events` false accepts still show a rate below `below_per_hour` (one-sided, exact)."""
    if below_per_hour <= 0 or events < 0:
        raise ValueError(f"no hours show a rate below {below_per_hour} with {events} events")
    return float(gammaincinv(events + 1, confidence)) / below_per_hour


def utterances_for_claim(below: float, expected: float, confidence: float = CONFIDENCE) -> int:
    """Utterances that show a share of false rejects below `below` when it is `expected`.

    The least number whose exact two-sided interval, at the expected count (rounded), ends below `below`.
    """
    if not 0 <= expected < below < 1:
        raise ValueError(f"a share of {expected} cannot be shown to lie below {below}")
    for total in range(1, MOST_UTTERANCES):
        interval = clopper_pearson.__wrapped__(round(expected * total), total, confidence)
        if interval is not None and interval[1] < below:
            return total
    raise ValueError(f"more than {MOST_UTTERANCES} utterances are needed to tell {expected} from {below}")

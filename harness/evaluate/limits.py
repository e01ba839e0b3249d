"""A scenario's declared limits against what was found."""

from __future__ import annotations

from dataclasses import dataclass

from harness.evaluate.totals import Totals
from harness.model.scenario import Limits
from harness.model.trial import Outcome


@dataclass(frozen=True, slots=True)
class LimitVerdict:
    """One limit that was asked for. `found` None: nothing was measured, which does not hold any limit.

    wanted, found: in the unit of the name (a share 0–1, milliseconds, or trials).
    """

    name: str
    wanted: float
    found: float | None
    ok: bool


def check_limits(limits: Limits, totals: Totals) -> tuple[LimitVerdict, ...]:
    """A verdict for each limit that is asked for, in the order of `Limits`."""
    p95 = totals.latency.p95
    found: tuple[tuple[str, float | None, float | None], ...] = (
        ("min_recognised_share", limits.min_recognised_share, totals.recognised.value),
        ("min_first_attempt_share", limits.min_first_attempt_share, totals.first_attempt.value),
        ("max_latency_p95_ms", limits.max_latency_p95_ms, None if p95 is None else p95.value_s * 1000),
        ("max_inconclusive", limits.max_inconclusive, totals.count(Outcome.INCONCLUSIVE)),
        ("max_interrupted", limits.max_interrupted, totals.count(Outcome.INTERRUPTED)),
    )
    return tuple(
        LimitVerdict(name, wanted, value, value is not None and _holds(name, wanted, value))
        for name, wanted, value in found
        if wanted is not None
    )


def _holds(name: str, wanted: float, found: float) -> bool:
    return found >= wanted if name.startswith("min_") else found <= wanted

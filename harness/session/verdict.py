"""The verdict on a trial follows from the verdicts on its attempts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from harness.model.record import AttemptFinished
from harness.model.scenario import RepromptRule
from harness.model.trial import Outcome

ENGINE_ENDED = "engine_ended"
"""Cause code of an attempt that was under way when its engine was killed; it is not held against the bench."""

_DECISIVE = (
    Outcome.RESPONDED,
    Outcome.LATE,
    Outcome.INCONCLUSIVE,
    Outcome.COUNTED,
    Outcome.UNDERSTOOD,
    Outcome.SKIPPED,
    Outcome.ABORTED,
)


class Verdict(NamedTuple):
    """How a trial ends; deciding_attempt None when no attempt decided it."""

    outcome: Outcome
    deciding_attempt: int | None
    cause: str


def trial_verdict(rule: RepromptRule, rows: Mapping[int, AttemptFinished]) -> Verdict | None:
    """The verdict that the finished attempts amount to, or None when another attempt is due.

    rows: attempt number → its latest row. An inconclusive attempt ends the trial, since nothing says that the query was
    not recognised. Interrupted attempts do not count towards `max_attempts`.
    """
    ordered = [rows[number] for number in sorted(rows)]
    for row in ordered:
        if row.outcome in _DECISIVE:
            by_operator = row.outcome in (Outcome.SKIPPED, Outcome.ABORTED)
            return Verdict(row.outcome, None if by_operator else row.attempt, row.cause)
    counted = [row for row in ordered if row.outcome is not Outcome.INTERRUPTED]
    if len(counted) >= rule.max_attempts:
        return Verdict(counted[-1].outcome, counted[-1].attempt, counted[-1].cause)
    interrupted = [row for row in ordered if row.outcome is Outcome.INTERRUPTED and code(row.cause) != ENGINE_ENDED]
    if len(interrupted) > rule.max_interruptions:
        return Verdict(Outcome.INTERRUPTED, None, f"too_many_interruptions: last {interrupted[-1].cause}")
    return None


def code(cause: str) -> str:
    """The code word of a cause: what stands before its colon."""
    return cause.partition(":")[0]

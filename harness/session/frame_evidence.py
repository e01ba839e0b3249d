"""When what a device has told of a query is taken to be all, and what the operator is asked where it tells nothing."""

from __future__ import annotations

from harness.model.trial import Recognition, Trial
from harness.model.understanding import frame_text
from harness.session.attempt import Attempt

SETTLE_S = 0.5
"""Several intents of one query are told one after another: so long after the last word that makes it right."""


def settled_s(attempt: Attempt, since_s: float) -> float | None:
    """When an attempt can be concluded by the evidence that is there; None while that decides nothing.

    At once (`since_s`) where nothing is expected, or the operator has answered. Of a frame not before the query's end:
    a right one soon, a wrong or missing one after evidence_wait_s, since more may be told.
    """
    standing = attempt.standing()
    if standing is Recognition.UNKNOWN:
        return None
    found, end = attempt.understood(), attempt.query_end
    if found is None or attempt.answer is not None:
        return since_s
    last_s = max(since_s if end is None else end.at_s, attempt.told_s or 0.0)
    whole = standing is Recognition.YES and found.right is not None
    return last_s + (SETTLE_S if whole else attempt.trial.reprompt.evidence_wait_s)


def frame_question(trial: Trial) -> str:
    """What is asked about a frame; "" where the words decide."""
    if trial.expects is None or not trial.until_understood:
        return ""
    return f"Did the device understand {frame_text(trial.expects.intents, trial.expects.slots)}? (y / n)"

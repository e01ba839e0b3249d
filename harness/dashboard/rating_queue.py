"""Which responses a rater has yet to judge."""

from __future__ import annotations

from harness.model.judgment import Judgment, JudgmentStatus
from harness.session.figures.progress import Progress
from harness.session.figures.trials import FirstResponse


def own_judgment(item: FirstResponse, rater: str) -> Judgment | None:
    """The rater's latest row in force on an item."""
    return next((one for one in reversed(item.judgments) if one.rater == rater), None)


def queue(progress: Progress, rater: str) -> tuple[FirstResponse, ...]:
    """Responses without a judgment of this rater, in the order of playing; those left for later last."""
    fresh: list[FirstResponse] = []
    later: list[FirstResponse] = []
    for trial in progress.trials:
        item = trial.response
        if item is None:
            continue
        own = own_judgment(item, rater)
        if own is None:
            fresh.append(item)
        elif own.status in (JudgmentStatus.SKIPPED, JudgmentStatus.HELD):
            later.append(item)
    return (*fresh, *later)


def in_log(progress: Progress, judgment: Judgment) -> bool:
    """True when the rows so far show the effect of a judgment."""
    trial = progress.trial(judgment.trial_id)
    if trial is None:
        return True
    ids = {one.id for one in trial.judgments}
    return judgment.replaces not in ids if judgment.status is JudgmentStatus.WITHDRAWN else judgment.id in ids

"""Whether an attempt's effect is still to be seen, and what the operator is asked about it."""

from __future__ import annotations

from harness.model.bench import ObservationKind
from harness.model.effect import StateWanted
from harness.session.attempt import Attempt


def missing(attempt: Attempt) -> tuple[StateWanted, ...]:
    """What the device has not told yet of the state that is wanted; () when none is, or it tells no state."""
    check, end = attempt.trial.effect, attempt.query_end
    if check is None or end is None or not _tells_state(attempt):
        return ()
    told = [one for one in attempt.told if one.at.at_s + one.at.error_s >= end.at_s]
    return tuple(wanted for wanted in check.state if not any(wanted.fits(one.name, one.value) for one in told))


def looks_until_s(attempt: Attempt) -> float | None:
    """Until when the device may tell it; None when nothing is awaited of it."""
    check, end = attempt.trial.effect, attempt.query_end
    if check is None or end is None or not missing(attempt):
        return None
    by_check_s = end.at_s + check.within_s
    return by_check_s if attempt.frozen is None else max(by_check_s, attempt.frozen.ends.at_s)


def question(attempt: Attempt) -> str:
    """What is to be asked in the run; "" when nobody is asked now, or the device or somebody has said it."""
    check = attempt.trial.effect
    if check is None or check.later or attempt.effect_answered:
        return ""
    told = bool(check.state) and _tells_state(attempt) and not missing(attempt)
    return "" if told else check.question


def _tells_state(attempt: Attempt) -> bool:
    return bool(attempt.trial.connection) and ObservationKind.STATE in attempt.trial.reports

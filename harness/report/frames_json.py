"""What devices understood against what was expected, as JSON: counts with intervals, and every attempt's frame."""

from __future__ import annotations

from typing import Any

from harness.model.trial import Trial
from harness.model.understanding import Slot
from harness.session.figures.progress import Progress
from harness.session.figures.trials import AttemptProgress, TrialProgress
from harness.session.figures.understood import tested
from harness.statistics.intervals import Share
from harness.understanding.scoring.parts import parts_of

Json = dict[str, Any]


def as_json(progress: Progress) -> Json:
    """A share over nothing has null for its value; what nobody knows of an attempt is null too."""
    found = progress.totals.understood
    return {
        "frames": _share(found.right),
        "intents": _share(found.intents),
        "first_attempt": {"frames": _share(found.first_right), "intents": _share(found.first_intents)},
        "attempts": [{"attempts": n, "trials": share.count, "of": share.total} for n, share in found.attempts_needed],
        "not_known": found.unknown,
        "trials": [_trial(one) for one in progress.trials if one.trial.expects is not None],
    }


def _trial(one: TrialProgress) -> Json:
    wanted, take = one.trial.expects, one.counting
    return {
        "trial": one.trial.id,
        "device": one.trial.device,
        "expected": None if wanted is None else _frame(wanted.intents, wanted.slots),
        "outcome": None if take is None or take.outcome is None else take.outcome.value,
        "attempts": [_attempt(one.trial, attempt) for attempt in (tested(take) if take else ())],
    }


def _attempt(trial: Trial, attempt: AttemptProgress) -> Json:
    verdict = attempt.verdict
    told = verdict.understood if verdict else None
    if verdict is None or told is None:
        return {"attempt": attempt.attempt, "understood": None, "intents_right": None, "right": None}
    return {
        "attempt": attempt.attempt,
        "understood": None if told.intents is None else _frame(told.intents, told.slots),
        "intents_right": told.intents_right,
        "right": told.right,
        "source": told.source.value,
        "parts": [
            {"mark": part.mark.value, "slot" if part.slot else "intent": part.name}
            | ({"value": part.value} if part.slot else {})
            | ({} if part.wanted is None else {"wanted": part.wanted})
            for part in parts_of(trial, verdict)
        ],
    }


def _frame(intents: tuple[str, ...], slots: tuple[Slot, ...] | None) -> Json:
    listed = None if slots is None else [{"concept": slot.concept, "value": slot.value} for slot in slots]
    return {"intents": list(intents), "slots": listed}


def _share(share: Share) -> Json:
    return {"right": share.count, "of": share.total, "value": share.value, "interval": share.interval}

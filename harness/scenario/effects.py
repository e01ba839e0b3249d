"""The effect check of a trial: read, and checked as a whole."""

from __future__ import annotations

from collections.abc import Callable

from harness.base.findings import Findings
from harness.base.findings import Path as KeyPath
from harness.model.bench import Device, ObservationKind
from harness.model.effect import EffectCheck, StateWanted
from harness.model.errors import Place, UnmetNeed
from harness.model.scenario import TrialKind, TrialTemplate
from harness.scenario.effect_file import EffectKeys
from harness.scenario.trial_file import TrialKeys

TextOf = Callable[[str, KeyPath], str]


def effect(keys: TrialKeys, at: KeyPath, found: Findings, text_of: TextOf) -> EffectCheck | None:
    """The check of a trial; None when it has none, or one that is wrong, which is noted."""
    written = keys.effect
    if written is None:
        return None
    at = (*at, "effect")
    if keys.kind is not TrialKind.QUERY:
        what = f"the key 'effect' has no meaning in a trial of kind {keys.kind.value}"
        found.add(at, what, f"Remove it; it belongs to kind {TrialKind.QUERY.value}", key=True)
    _check(written, at, found)
    state = tuple(
        StateWanted(name, value if value is None else text_of(value, (*at, "state", name)))
        for name, value in written.state.items()
    )
    return EffectCheck(
        wanted=text_of(written.wanted, (*at, "wanted")),
        state=state,
        within_s=written.within_s,
        question=text_of(written.question, (*at, "question")) if written.question is not None else "",
        after_s=written.after_s,
        at=written.at,
    )


def demand_state(trial: TrialTemplate, device: Device, place: Place) -> None:
    """UnmetNeed when only the device could say what became of the query, and it tells no state."""
    check = trial.effect
    if check is None or not check.state or check.question:
        return
    if device.connection is None or ObservationKind.STATE not in device.profile.reports:
        what = f"the trial {trial.id!r} wants the state of {device.id!r}, which reports none"
        remedy = "Use a device with a connection, whose profile reports state, or add `question: …` to the effect"
        raise UnmetNeed(what, place=place, remedy=remedy)


def _check(written: EffectKeys, at: KeyPath, found: Findings) -> None:
    later = next((key for key in ("at", "after_s") if key in written.model_fields_set), None)
    if written.at is not None and written.after_s is not None:
        remedy = 'Remove one of the two: `at: "01:00"` is a time of day, `after_s: 60` a wait'
        found.add((*at, "at"), "the effect has both at and after_s", remedy, key=True)
    if not written.state and written.question is None:
        remedy = "Add `state: {name: value}` that the device tells, or a `question: …` for the operator"
        found.add(at, "nobody can say what became of it: the effect has neither state nor question", remedy, key=True)
    elif later is not None and written.question is None:
        remedy = f"Add `question: …`, or remove `{later}`: a device has `within_s`"
        found.add((*at, later), f"`{later}` says when a person looks, and no question is asked", remedy, key=True)
    if "within_s" in written.model_fields_set and not written.state:
        remedy = "Remove it, or add `state: {name: value}`"
        found.add(
            (*at, "within_s"), "`within_s` is for what the device tells, and no state is wanted", remedy, key=True
        )

"""What an understand trial expects: read, checked as a whole, and whether anybody on the bench can tell it."""

from __future__ import annotations

from collections.abc import Callable

from harness.base.findings import Findings
from harness.base.findings import Path as KeyPath
from harness.model.bench import Bench, Device, ObservationKind, OperatorPresence
from harness.model.errors import Place, UnmetNeed
from harness.model.scenario import Evidence, Route, Scenario, TrialKind, TrialTemplate, Until
from harness.model.understanding import Expected, Slot, intent_set
from harness.scenario.expects_file import ExpectsKeys
from harness.scenario.scenario_file import DefaultsKeys
from harness.scenario.trial_file import TrialKeys

TextOf = Callable[[str, KeyPath], str]


def expected(keys: TrialKeys, at: KeyPath, found: Findings, text_of: TextOf) -> Expected | None:
    """What the device should understand; None when nothing is written, or in another kind of trial."""
    written = keys.expects
    if written is None or keys.kind is not TrialKind.UNDERSTAND:
        return None
    at = (*at, "expects")
    named: list[str] = []
    for number, text in enumerate([written.intents] if isinstance(written.intents, str) else written.intents):
        where = (*at, "intents", number) if isinstance(written.intents, list) else (*at, "intents")
        for name in intent_set(text_of(text, where)):
            if name in named:
                found.add(where, f"the intent {name!r} is there twice", "Remove one: intents are a set")
            named.append(name)
    return Expected(tuple(sorted(set(named))), _slots(written, (*at, "slots"), text_of))


def check_rule(keys: TrialKeys, defaults: DefaultsKeys | None, at: KeyPath, found: Findings) -> None:
    """Notes a rule or evidence that does not go with what is expected, or with nothing being expected."""
    default = defaults or DefaultsKeys()
    if keys.kind is TrialKind.UNDERSTAND:
        evidence, where = keys.evidence or default.evidence, "" if keys.evidence else " (from the defaults)"
        if evidence is Evidence.NONE:
            what = f"with evidence none{where} nobody says what the device understood"
            remedy = "Write `evidence: auto`, `device` or `operator` in the trial"
            found.add((*at, "evidence") if keys.evidence else at, what, remedy)
        return
    own = keys.reprompt.until if keys.reprompt else None
    if own is Until.UNDERSTOOD or (own is None and keys.kind.asks and default.reprompt.until is Until.UNDERSTOOD):
        place = (*at, "reprompt", "until") if own else ("defaults", "reprompt", "until")
        name = keys.id or keys.query or keys.kind.value
        what = f"nothing is expected of the trial {name!r} (kind {keys.kind.value}), so it cannot be understood"
        remedy = "Write `until: recognised`, or `kind: understand` and `expects: {intents: […]}`"
        found.add(place, what, remedy, key=True)


def demand_intents(trial: TrialTemplate, scenario: Scenario, device: Device, bench: Bench, place: Place) -> None:
    """UnmetNeed when nobody could say what the device understood, or heard where that decides; or it gets no sound."""
    reports = device.profile.reports if device.connection is not None else frozenset[ObservationKind]()
    evidence = trial.evidence or scenario.defaults.evidence
    rule = trial.reprompt or scenario.defaults.reprompt
    by_words = rule.until is Until.RECOGNISED
    told = ObservationKind.INTENT in reports
    if not told and (by_words or evidence is Evidence.DEVICE):
        what = f"the trial {trial.id!r} asks what {device.id!r} understood, which reports no intents"
        remedy = "Use a device with a connection, whose profile reports intent"
        if not by_words:
            remedy += "; or write `evidence: operator`, and the operator says whether it was right"
        raise UnmetNeed(what, place=place, remedy=remedy)
    if by_words and evidence is Evidence.DEVICE and ObservationKind.TRANSCRIPT not in reports:
        what = f"{trial.id!r} is said until its words are recognised, and {device.id!r} reports no transcript"
        raise UnmetNeed(what, place=place, remedy="Write `reprompt: {until: understood}`, or `evidence: auto`")
    asks_operator = evidence is Evidence.OPERATOR or (evidence is Evidence.AUTO and not told)
    if not by_words and asks_operator and bench.operator is OperatorPresence.ABSENT:
        what = f"nobody can say what {device.id!r} understands in {trial.id!r}: it reports no intents"
        if told:
            what = f"the trial {trial.id!r} asks the operator what {device.id!r} understood, and there is none"
        remedy = "Use a device whose profile reports intent, or write `operator: auto` in the bench"
        raise UnmetNeed(what, place=place, remedy=remedy)
    if trial.route is Route.INJECTION and not (device.connection and device.connection.injects):
        driver = device.connection.driver if device.connection else "none"
        what = f"the trial {trial.id!r} injects sound into {device.id!r}, whose connection ({driver}) carries none"
        raise UnmetNeed(what, place=place, remedy="Use a device whose connection carries audio, by serial or mqtt")


def _slots(written: ExpectsKeys, at: KeyPath, text_of: TextOf) -> tuple[Slot, ...] | None:
    match written.slots:
        case None:
            return None
        case dict() as by_concept:
            pairs = [(concept, value, (*at, concept)) for concept, value in by_concept.items()]
        case several:
            pairs = [(one.concept, one.value, (*at, number, "value")) for number, one in enumerate(several)]
    return tuple(Slot(concept, None if value is None else text_of(value, where)) for concept, value, where in pairs)

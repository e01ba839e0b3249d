"""Queries become trials: what is asked of one device, how it sounds, and who says whether it was right."""

from __future__ import annotations

from dataclasses import replace

from harness.model.bench import Bench, Device, DeviceProfile, ObservationKind
from harness.model.errors import InputError, Place, UnmetNeed
from harness.model.scenario import (
    AxisName,
    AxisValue,
    CloseDialogue,
    Evidence,
    Query,
    RepromptRule,
    Scenario,
    TrialTemplate,
    Until,
    axes_of,
)
from harness.model.stimulus import NoiseSpec, SpokenText, StimulusRecipe, VoiceSpec
from harness.model.trial import Trial
from harness.session.listening_plan import INJECTED_HZ, is_injected

Cell = tuple[tuple[AxisName, str, AxisValue], ...]
"""One combination of the matrix: axis, label, value."""


def own_cells(scenario: Scenario, bench: Bench, template: TrialTemplate, cells: tuple[Cell, ...]) -> tuple[Cell, ...]:
    """The cells that make a difference to a query, each once: what is injected has no position."""
    injected = _is_injected(scenario, template, device_of(scenario, bench, template))
    axes = axes_of(template, through_air=not injected)
    return tuple(dict.fromkeys(tuple(part for part in cell if part[0] in axes) for cell in cells))


def asked_trial(scenario: Scenario, bench: Bench, template: TrialTemplate, cell: Cell, trial_id: str) -> Trial:
    defaults = scenario.defaults
    rule = template.reprompt or defaults.reprompt
    query = query_of(scenario, template)
    device = device_of(scenario, bench, template)
    axis: dict[AxisName, AxisValue] = {name: value for name, _, value in cell}
    profile = device.profile
    wakes = template.wake and bool(profile.wake_phrases)
    reports = tuple(sorted(profile.reports)) if device.connection else ()
    recipe = replace(
        recipe_of(scenario, template, query, profile, axis),
        query=query.utterance,
        wake_phrase=SpokenText(profile.wake_phrases[0]) if wakes else None,
    )
    if _is_injected(scenario, template, device) and device.connection is not None:
        player, recipe = device.connection.id, replace(recipe, rate_hz=INJECTED_HZ)
    else:
        player = loudspeaker_of(scenario, bench, axis.get("position"))
    return Trial(
        id=trial_id,
        number=0,
        template=template.id,
        query_id=query.id,
        device=device.id,
        loudspeaker=player,
        recipe=recipe,
        reference=query.reference,
        alternatives=query.alternatives,
        recognised=replace(scenario.recognised, language=recipe.voice.language),
        evidence=_evidence(template.evidence or defaults.evidence, reports, _decides(rule, template)),
        reprompt=_rule(rule, profile),
        close_dialogue=_close(template.close_dialogue or defaults.close_dialogue, profile),
        conditions=tuple((name, label) for name, label, _ in cell),
        query_class=template.query_class,
        core_capability=template.core_capability,
        note=template.note,
        microphone=bench.microphone.id if bench.microphone else "",
        connection=device.connection.id if device.connection else "",
        reports=reports,
        wake_phrases=profile.wake_phrases,
        effect=template.effect,
        expects=template.expects,
        responds=template.expects is None or (profile.responds and bench.microphone is not None),
    )


def recipe_of(
    scenario: Scenario,
    template: TrialTemplate,
    query: Query | None,
    profile: DeviceProfile,
    axis: dict[AxisName, AxisValue],
) -> StimulusRecipe:
    """How it sounds, by the matrix, else the trial, the query or the defaults; what it says the caller puts in."""
    defaults = scenario.defaults
    own = query.voice if query else None
    voice = next(v for v in (axis.get("voice"), template.voice, own, defaults.voice) if v is not None)
    level = next(v for v in (axis.get("level_dbfs"), template.level_dbfs, defaults.level_dbfs) if v is not None)
    gap = next(v for v in (axis.get("gap_ms"), template.gap_ms, defaults.gap_ms) if v is not None)
    noise = axis.get("noise", defaults.noise)
    assert isinstance(voice, VoiceSpec), voice
    assert isinstance(level, int | float), level
    assert isinstance(gap, int | float), gap
    assert noise is None or isinstance(noise, NoiseSpec), noise
    return StimulusRecipe(
        query=SpokenText(""),
        wake_phrase=None,
        voice=_in_language(voice, profile),
        gap_ms=int(gap),
        level_dbfs=float(level),
        noise=noise,
    )


def query_of(scenario: Scenario, template: TrialTemplate) -> Query:
    for query in scenario.queries:
        if query.id == template.query:
            return query
    raise InputError(
        f"trial {template.id!r} asks {template.query!r}, which is no stimulus of this scenario",
        place=Place(scenario.path),
        remedy=f"There are: {', '.join(query.id for query in scenario.queries)}",
    )


def device_of(scenario: Scenario, bench: Bench, template: TrialTemplate) -> Device:
    if template.device is None and bench.devices:
        return bench.devices[0]
    for device in bench.devices:
        if device.id == template.device:
            return device
    raise InputError(
        f"trial {template.id!r} asks device {template.device!r}, which is not on bench {bench.id!r}",
        place=Place(scenario.path),
        remedy=f"There are: {', '.join(device.id for device in bench.devices) or 'none'}",
    )


def loudspeaker_of(scenario: Scenario, bench: Bench, position: AxisValue) -> str:
    for loudspeaker in bench.loudspeakers:
        if position is None or loudspeaker.position == position:
            return loudspeaker.id
    where = "" if position is None else f" at position {position!r}"
    raise UnmetNeed(
        f"bench {bench.id!r} has no loudspeaker{where}", place=Place(scenario.path), remedy=f"Add one to {bench.path}"
    )


def _in_language(voice: VoiceSpec, profile: DeviceProfile) -> VoiceSpec:
    """A voice that names no language of its own speaks the device's."""
    return replace(voice, language=profile.language) if voice.language == VoiceSpec().language else voice


def _is_injected(scenario: Scenario, template: TrialTemplate, device: Device) -> bool:
    """Whether a query comes over the wire; those that nothing is expected of are always said through the air."""
    return template.expects is not None and is_injected(device, template, scenario)


def _decides(rule: RepromptRule, template: TrialTemplate) -> ObservationKind:
    """What of the device's word decides whether a query is said again."""
    by_words = template.expects is None or rule.until is Until.RECOGNISED
    return ObservationKind.TRANSCRIPT if by_words else ObservationKind.INTENT


def _evidence(asked: Evidence, reports: tuple[ObservationKind, ...], decides: ObservationKind) -> Evidence:
    if asked is not Evidence.AUTO:
        return asked
    return Evidence.DEVICE if decides in reports else Evidence.OPERATOR


def _rule(rule: RepromptRule, profile: DeviceProfile) -> RepromptRule:
    return replace(rule, context_wait_s=max(rule.context_wait_s, profile.context_wait_s or 0.0))


def _close(asked: CloseDialogue | None, profile: DeviceProfile) -> CloseDialogue | None:
    if asked is None and profile.close_dialogue_say is not None:
        return CloseDialogue(say=profile.close_dialogue_say)
    return asked

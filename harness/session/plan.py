"""A scenario and a bench become the list of trials that will be played."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from harness.model.bench import Bench, Device, DeviceProfile, ObservationKind
from harness.model.errors import InputError, Place, UnmetNeed
from harness.model.scenario import (
    AxisName,
    AxisValue,
    CloseDialogue,
    Evidence,
    Matrix,
    MemorySpec,
    Order,
    Query,
    RecordingFacts,
    RepromptRule,
    Route,
    Scenario,
    TrialKind,
    TrialTemplate,
    Until,
    axes_of,
)
from harness.model.stimulus import NoiseSpec, Recording, SpokenText, StimulusRecipe, Utterance, VoiceSpec
from harness.model.trial import Listening, MemoryPart, Target, Trial
from harness.session.soak import segments, with_probes

INJECTED_HZ = 16_000
"""Rate of stimuli that no loudspeaker plays."""
AIR_HZ = 48_000


def listeners(scenario: Scenario, bench: Bench, template: TrialTemplate) -> tuple[Device, ...]:
    """The devices that listen in a template's trials; UnmetNeed when wake events are not reported, or InputError."""
    place = Place(scenario.path)
    named = template.devices or ((template.device,) if template.device is not None else ())
    if not named:
        found = tuple(device for device in bench.devices if reports_wake(device))
        if not found:
            raise UnmetNeed(
                f"trial {template.id!r} counts wake events, and no device of bench {bench.id!r} reports any",
                place=place,
                remedy="Use a device with a connection, whose profile reports wake",
            )
        return found
    devices = []
    for name in named:
        device = next((one for one in bench.devices if one.id == name), None)
        if device is None:
            raise InputError(
                f"trial {template.id!r} listens to {name!r}, which is not on bench {bench.id!r}",
                place=place,
                remedy=f"There are: {', '.join(one.id for one in bench.devices)}",
            )
        if not reports_wake(device):
            raise UnmetNeed(
                f"trial {template.id!r} counts the wake events of {name!r}, which reports none",
                place=place,
                remedy="Use a device with a connection, whose profile reports wake",
            )
        devices.append(device)
    return tuple(devices)


def reports_wake(device: Device) -> bool:
    """Whether wake events of that device can be counted."""
    return device.connection is not None and ObservationKind.WAKE in device.profile.reports


def is_injected(device: Device, template: TrialTemplate, scenario: Scenario) -> bool:
    """Whether the sound reaches it over its connection; UnmetNeed when that is asked for and cannot be."""
    can = device.connection is not None and device.connection.injects
    if template.route is Route.INJECTION and not can:
        driver = device.connection.driver if device.connection else "none"
        raise UnmetNeed(
            f"trial {template.id!r} injects sound into {device.id!r}, whose connection ({driver}) carries none",
            place=Place(scenario.path),
            remedy="Write `route: loudspeaker`, or use a connection that carries audio",
        )
    return can and template.route is not Route.LOUDSPEAKER


def target(device: Device, player: str) -> Target:
    """The device as a target that `player` brings the sound to."""
    assert device.connection is not None
    profile = device.profile
    return Target(
        device.id, device.connection.id, player, tuple(sorted(profile.reports)), tuple(sorted(profile.listening_states))
    )


def phrase_of(scenario: Scenario, devices: tuple[Device, ...], template: TrialTemplate) -> str:
    """What is said to wake them: one phrase for all; InputError when they do not agree."""
    if template.phrase is not None:
        return template.phrase
    phrases = {device.id: next(iter(device.profile.wake_phrases), "") for device in devices}
    different = set(phrases.values())
    if len(different) == 1 and "" not in different:
        return different.pop()
    listed = ", ".join(f"{name}: {phrase or 'none'}" for name, phrase in phrases.items())
    raise InputError(
        f"the devices of trial {template.id!r} do not wake to one phrase ({listed})",
        place=Place(scenario.path),
        remedy="Write `phrase: …`, or one trial for each with `devices: [...]`",
    )


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


Pair = tuple[Trial, Trial]
"""A prime and its follow-up, which are always played one after the other."""


def pair(asked: Trial, follow_up: Trial, spec: MemorySpec, wait_s: float) -> Pair:
    """The prime and the follow-up of one wait. asked, follow_up: the two queries as trials with the follow-up's id.

    Neither closes a dialogue: closing words would be what the device has to remember. The follow-up is said once, since
    after it the memory is another; interrupted, it does not count.
    """
    prime = replace(asked, id=f"{follow_up.id}.prime", close_dialogue=None, effect=None, memory=MemoryPart())
    once = replace(follow_up.reprompt, max_attempts=1, max_interruptions=0)
    part = MemoryPart(prime.id, wait_s, spec.shows, spec.forgets)
    return prime, replace(follow_up, reprompt=once, close_dialogue=None, effect=None, memory=part)


def wait_slug(wait_s: float) -> str:
    """The part of an id that names a wait: w8, w0.5."""
    return f"w{wait_s:g}"


def in_blocks(repetitions: Sequence[Sequence[Pair]], seed: str) -> Iterator[Pair]:
    """The pairs of a template, repetition after repetition, each in an order of its own.

    So waits are not confused with what changes in the course of a session, and a session that is cut off has tried
    each wait about as often.
    """
    chance = random.Random(seed)
    for one in repetitions:
        shuffled = list(one)
        chance.shuffle(shuffled)
        yield from shuffled


_SHORT: dict[AxisName, str] = {"voice": "v", "level_dbfs": "l", "gap_ms": "g", "position": "p", "noise": "n"}


def plan(scenario: Scenario, bench: Bench, seed: int | None = None) -> tuple[Trial, ...]:
    """The trials in the order of playing; the same scenario, bench and seed give the same ids in the same order.

    seed: for a shuffled order, the pairs of a memory probe, and ambient sound; None takes the matrix's (of the order),
    else the scenario's.
    InputError when a trial names a query or device that does not exist, UnmetNeed when the bench has no loudspeaker
    (at a position that is asked for), or when wake events are to be counted that no device reports.
    """
    taken: set[str] = set()
    # What is played in one go; only the two trials of a memory probe are more than one.
    units: list[tuple[Trial, ...]] = []
    cells = tuple(_cells(scenario.matrix))
    for template in scenario.trials:
        if template.memory is not None:
            units.extend(_memory_pairs(scenario, bench, template, cells, taken, seed))
            continue
        if not template.kind.asks:
            units.extend((trial,) for trial in _listening_trials(scenario, bench, template, cells, taken, seed))
            continue
        own = own_cells(scenario, bench, template, cells)
        for cell, repetition in itertools.product(own, range(1, template.repeat + 1)):
            units.append((asked_trial(scenario, bench, template, cell, _trial_id(template, cell, repetition, taken)),))
    if scenario.matrix.order is Order.SHUFFLED:
        chosen = next(s for s in (seed, scenario.matrix.seed, scenario.seed) if s is not None)
        random.Random(chosen).shuffle(units)
    trials = [trial for unit in units for trial in unit]
    makers = {
        one.id: partial(_probe, scenario, bench, one)
        for one in scenario.trials
        if one.ambient is not None and one.ambient.probe is not None
    }
    probed = with_probes(trials, makers) if makers else trials
    return tuple(replace(trial, number=number) for number, trial in enumerate(probed, start=1))


def _cells(matrix: Matrix) -> Iterator[Cell]:
    choices = [
        [(axis.name, label, value) for value, label in zip(axis.values, axis.labels, strict=True)]
        for axis in matrix.axes
    ]
    for cell in itertools.product(*choices):
        here = {name: label for name, label, _ in cell}
        if not any(rule and all(here.get(axis) == label for axis, label in rule) for rule in matrix.exclude):  # type: ignore[call-overload]
            yield cell


def _memory_pairs(
    scenario: Scenario,
    bench: Bench,
    template: TrialTemplate,
    cells: tuple[Cell, ...],
    taken: set[str],
    seed: int | None,
) -> Iterator[Pair]:
    """A prime and a follow-up for each wait, repetition and cell, in a random order of the pairs."""
    spec = template.memory
    assert spec is not None, template.id
    asked_again = replace(template, query=spec.follow_up)
    repetitions: list[list[Pair]] = []
    for repetition in range(1, template.repeat + 1):
        block: list[Pair] = []
        for cell, wait_s in itertools.product(cells, spec.waits_s):
            trial_id = _trial_id(template, cell, repetition, taken, wait_slug(wait_s))
            prime = asked_trial(scenario, bench, template, cell, trial_id)
            block.append(pair(prime, asked_trial(scenario, bench, asked_again, cell, trial_id), spec, wait_s))
        repetitions.append(block)
    return in_blocks(repetitions, f"{scenario.seed if seed is None else seed}:{template.id}")


def _trial_id(template: TrialTemplate, cell: Cell, repetition: int, taken: set[str], wait: str = "") -> str:
    parts = [template.id]
    for name, label, _ in cell:
        slug = re.sub(r"[^\w+-]+", "_", label).strip("_") or "none"
        parts.append(_SHORT[name] + (slug if slug[0] in "-+0123456789" else f"-{slug}"))
    stem = ".".join([*parts, *([wait] if wait else []), f"r{repetition}"])
    found, count = stem, 1
    while found in taken:  # labels that differ only in signs that an id does not carry
        count += 1
        found = f"{stem}~{count}"
    taken.add(found)
    return found


def _listening_trials(
    scenario: Scenario,
    bench: Bench,
    template: TrialTemplate,
    cells: tuple[Cell, ...],
    taken: set[str],
    seed: int | None,
) -> Iterator[Trial]:
    devices = listeners(scenario, bench, template)
    injected = {device.id for device in devices if is_injected(device, template, scenario)}
    phrase = "" if template.kind is TrialKind.AMBIENT else phrase_of(scenario, devices, template)
    axes = axes_of(template, through_air=len(injected) < len(devices))
    own = dict.fromkeys(tuple(part for part in cell if part[0] in axes) for cell in cells)
    chosen = scenario.seed if seed is None else seed
    for cell, repetition in itertools.product(own, range(1, template.repeat + 1)):
        trial_id = _trial_id(template, cell, repetition, taken)
        position = next((value for name, _, value in cell if name == "position"), None)
        targets = tuple(_target(scenario, bench, template, device, position) for device in devices)
        heard = Listening(template.kind, targets, scenario.wake, template.lead_in_s, template.tail_s, phrase)
        if template.ambient is None:
            yield _listening_trial(scenario, bench, template, cell, repetition, trial_id, heard)
            continue
        for segment in segments(template.ambient, f"{chosen}:{trial_id}"):
            every_s = template.ambient.probe.every_s if template.ambient.probe else 0.0
            one = replace(heard, lead_in_s=0.0, tail_s=0.0, source=segment.source, probe_every_s=every_s)
            made = _listening_trial(
                scenario, bench, template, cell, repetition, f"{trial_id}.s{segment.number:04}", one
            )
            yield replace(made, recipe=replace(made.recipe, query=segment.ambience, lead_in_s=0.0, tail_s=0.0))


def _probe(scenario: Scenario, bench: Bench, template: TrialTemplate, number: int) -> Trial:
    """A probe of an ambient template; it is played once more when a device has not heard it."""
    spec = template.ambient.probe if template.ambient else None
    assert spec is not None, template.id
    said = replace(
        template,
        kind=TrialKind.PROBE,
        phrase=spec.phrase,
        voice=spec.voice,
        recordings=(spec.recording,) if spec.recording else (),
        level_dbfs=scenario.defaults.level_dbfs if spec.level_dbfs is None else spec.level_dbfs,
        reprompt=replace(template.reprompt or scenario.defaults.reprompt, max_attempts=2),
        ambient=None,
    )
    devices = listeners(scenario, bench, said)
    heard = Listening(
        TrialKind.PROBE,
        tuple(_target(scenario, bench, said, device, None) for device in devices),
        scenario.wake,
        scenario.wake.refractory_s,
        spec.tail_s,
        phrase_of(scenario, devices, said),
        probe_every_s=spec.every_s,
    )
    made = _listening_trial(scenario, bench, said, (), 1, f"{template.id}.p{number:04}", heard)
    return replace(made, recipe=replace(made.recipe, noise=None))


def _target(scenario: Scenario, bench: Bench, template: TrialTemplate, device: Device, position: AxisValue) -> Target:
    injected = is_injected(device, template, scenario) and device.connection is not None
    player = device.connection.id if injected and device.connection else loudspeaker_of(scenario, bench, position)
    return target(device, player)


def _listening_trial(
    scenario: Scenario,
    bench: Bench,
    template: TrialTemplate,
    cell: Cell,
    repetition: int,
    trial_id: str,
    heard: Listening,
) -> Trial:
    """A trial of the phrase, or of phrase and command; the sound of an ambient one is put in by the caller."""
    first = heard.targets[0]
    device = bench.device(first.device)
    phrase: Utterance = SpokenText(heard.phrase)
    facts = RecordingFacts()
    if template.recordings:
        turn = (repetition - 1) % len(template.recordings)
        facts = template.recording_facts[turn] if template.recording_facts else facts
        phrase = Recording(template.recordings[turn], phrase_end_s=facts.phrase_end_s)
    asked = query_of(scenario, template) if template.kind is TrialKind.COMMAND else None
    common = recipe_of(scenario, template, asked, device.profile, {name: value for name, _, value in cell})
    rate_hz = INJECTED_HZ if all(one.injected for one in heard.targets) else AIR_HZ
    # The same samples again would tell a deterministic device nothing new, and make intervals too narrow.
    timed = replace(
        common,
        lead_in_s=heard.lead_in_s,
        tail_s=heard.tail_s,
        rate_hz=rate_hz,
        variant=repetition,
        as_recorded=template.as_recorded,
    )
    recipe = replace(timed, query=asked.utterance, wake_phrase=phrase) if asked else replace(timed, query=phrase)
    if template.kind is TrialKind.AMBIENT:
        recipe = replace(recipe, noise=None)
    return Trial(
        id=trial_id,
        number=0,
        template=template.id,
        query_id=asked.id if asked else "",
        device=first.device,
        loudspeaker=first.player,
        recipe=recipe,
        reference=asked.reference if asked else heard.phrase,
        alternatives=asked.alternatives if asked else (),
        recognised=replace(scenario.recognised, language=recipe.voice.language),
        evidence=Evidence.DEVICE if asked else Evidence.NONE,
        reprompt=template.reprompt or scenario.defaults.reprompt,
        close_dialogue=None,
        conditions=(*((name, label) for name, label, _ in cell), *facts.traits),
        query_class=template.query_class,
        core_capability=template.core_capability,
        note=template.note,
        microphone=bench.microphone.id if bench.microphone else "",
        connection=first.connection,
        reports=first.reports,
        wake_phrases=device.profile.wake_phrases,
        listening=heard,
    )

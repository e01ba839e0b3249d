"""A scenario and a bench become the list of trials that will be played."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from harness.model.bench import Bench, Device
from harness.model.scenario import (
    AxisName,
    AxisValue,
    Evidence,
    Matrix,
    Order,
    RecordingFacts,
    Scenario,
    TrialKind,
    TrialTemplate,
    axes_of,
)
from harness.model.stimulus import Recording, SpokenText, Utterance
from harness.model.trial import Listening, Target, Trial
from harness.session.listening_plan import AIR_HZ, INJECTED_HZ, is_injected, listeners, phrase_of, segments, target
from harness.session.memory_plan import Pair, in_blocks, pair, wait_slug
from harness.session.probes import with_probes
from harness.session.query_plan import Cell, asked_trial, loudspeaker_of, own_cells, query_of, recipe_of

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

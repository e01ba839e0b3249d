"""Turns a scenario and a bench into the list of trials to play."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from harness.model.bench import Bench, Device, DeviceProfile, Equipment, ObservationKind
from harness.model.calibration import Calibration
from harness.model.numbers import exact
from harness.model.scenario import (
    AxisName,
    AxisValue,
    CloseDialogue,
    Evidence,
    Matrix,
    Order,
    Query,
    RecordingFacts,
    RepeatUntil,
    RepromptRule,
    Route,
    Scenario,
    SettingValues,
    TrialKind,
    TrialTemplate,
    axes_of,
    channel_of,
    placement_of,
    power_cycle_of,
    requested_level,
    requested_voice,
)
from harness.model.stimulus import (
    AIR_HZ,
    INJECTED_HZ,
    NoiseSpec,
    Opening,
    Recording,
    SpokenText,
    StimulusRecipe,
    Utterance,
    VoiceSpec,
)
from harness.model.trial import ListeningSpec, MemoryPart, Target, Trial
from harness.scenario.trial_playback import asked_device, listening_devices
from harness.session.soak import segments, with_probes

_ID_PREFIXES: dict[AxisName, str] = {
    "voice": "v",
    "level_dbfs": "l",
    "level_spl": "spl",
    "gap_ms": "g",
    "position": "p",
    "noise": "n",
    "opening": "o",
    "room": "rm",
    "distance_m": "d",
    "angle_deg": "a",
    "speed": "sp",
    "gain_db": "gn",
    "band_hz": "b",
    "clipping_db": "cl",
    "codec": "c",
    "device_settings": "s",
}
"""Axis → prefix of its label in the id of a trial."""

Cell = tuple[tuple[AxisName, str, AxisValue], ...]
"""One combination of the matrix: (axis, label, value) for each axis."""
PrimedPair = tuple[Trial, Trial]
"""A prime and its follow-up, which are always played one after the other."""


def plan(scenario: Scenario, bench: Bench, seed: int | None = None) -> tuple[Trial, ...]:
    """The trials in the order of playing; the same scenario, bench and seed give the same ids in the same order.

    Scenario and bench have passed `check_compatibility`. seed: seed of a shuffled order, of the pairs of memory probes,
    and of ambient sound. None takes the matrix's seed for the order, and the scenario's for all else.
    """
    session_seed = scenario.seed if seed is None else seed
    planner = _Planner(scenario, bench, session_seed)
    # A unit is played without a break. It has one trial, except for the two of a memory probe.
    units = [unit for template in scenario.trials for unit in planner.units(template)]
    if scenario.matrix.order is Order.SHUFFLED:
        order_seed = session_seed if seed is not None or scenario.matrix.seed is None else scenario.matrix.seed
        random.Random(order_seed).shuffle(units)
    if scenario.matrix.group_by:
        ranks = _group_ranks(scenario.matrix)

        def rank(unit: tuple[Trial, ...]) -> int:
            labels = dict(unit[0].conditions)
            return ranks[tuple(labels.get(axis) for axis in scenario.matrix.group_by)]

        units.sort(key=rank)
    trials = [trial for unit in units for trial in unit]
    probe_makers = {
        template.id: partial(planner.probe, template)
        for template in scenario.trials
        if template.ambient is not None and template.ambient.probe is not None
    }
    probed = with_probes(trials, probe_makers) if probe_makers else trials
    return tuple(replace(trial, number=number) for number, trial in enumerate(probed, start=1))


def _group_ranks(matrix: Matrix) -> dict[tuple[str | None, ...], int]:
    """Labels on the axes of `group_by` → position in the order of groups. Between two groups, only one label changes.

    The label is None if an axis does not multiply a trial.
    """
    labels: dict[AxisName, tuple[str | None, ...]] = {axis.name: (None, *axis.labels) for axis in matrix.axes}
    order: list[tuple[str | None, ...]] = [()]
    for name in matrix.group_by:
        axis_labels = labels[name]
        # Every second outer group runs backwards, so that only one label changes where two of them meet.
        order = [
            (*outer, label)
            for number, outer in enumerate(order)
            for label in (axis_labels if number % 2 == 0 else axis_labels[::-1])
        ]
    return {group: rank for rank, group in enumerate(order)}


def _cells(matrix: Matrix) -> Iterator[Cell]:
    """All combinations of the matrix except the excluded ones."""
    choices = [
        [(axis.name, label, value) for value, label in zip(axis.values, axis.labels, strict=True)]
        for axis in matrix.axes
    ]
    for cell in itertools.product(*choices):
        labels: dict[str, str] = {name: label for name, label, _ in cell}
        if not any(_is_excluded(labels, rule) for rule in matrix.exclude):
            yield cell


def _is_excluded(labels: Mapping[str, str], rule: Sequence[tuple[str, str]]) -> bool:
    """Whether a rule excludes the cell with these labels. An empty rule excludes nothing."""
    return bool(rule) and all(labels.get(axis) == label for axis, label in rule)


class _Planner:
    """Turns the templates of a scenario into trials, each with an id of its own."""

    def __init__(self, scenario: Scenario, bench: Bench, seed: int) -> None:
        self._scenario = scenario
        self._bench = bench
        self._seed = seed
        self._cells = tuple(_cells(scenario.matrix))
        self._taken_ids: set[str] = set()

    def units(self, template: TrialTemplate) -> Iterator[tuple[Trial, ...]]:
        """The trials of a template, grouped into units that are played without a break."""
        if template.memory is not None:
            yield from self._memory_pairs(template)
        elif template.kind.asks:
            injected = self._is_asked_by_wire(template)
            for cell, repetition in self._list_cells(template, through_air=not injected):
                yield (self._plan_query(template, cell, self._new_id(template, cell, repetition)),)
        else:
            yield from ((trial,) for trial in self._listening_trials(template))

    def _list_cells(self, template: TrialTemplate, *, through_air: bool) -> Iterator[tuple[Cell, int]]:
        """The cells that make a difference to a template, each with the number of every repetition."""
        return itertools.product(self._cells_of(template, through_air=through_air), range(1, template.repeat + 1))

    def _cells_of(self, template: TrialTemplate, *, through_air: bool = True) -> list[Cell]:
        """The cells, reduced to the axes that make a difference to a template, each once."""
        axes = axes_of(template, through_air=through_air)
        return list(dict.fromkeys(tuple(part for part in cell if part[0] in axes) for cell in self._cells))

    def _new_id(self, template: TrialTemplate, cell: Cell, repetition: int, wait: str = "") -> str:
        """An id that no other trial has, such as `time.v-anna.n-pink_10_dB.r1`. wait: of a memory probe, as `w8`."""
        parts = [template.id]
        for name, label, _ in cell:
            slug = re.sub(r"[^\w+-]+", "_", label).strip("_") or "none"
            parts.append(_ID_PREFIXES[name] + (slug if slug[0] in "-+0123456789" else f"-{slug}"))
        if wait:
            parts.append(wait)
        stem = ".".join([*parts, f"r{repetition}"])
        trial_id, count = stem, 1
        while trial_id in self._taken_ids:  # labels that differ only in characters that an id omits
            count += 1
            trial_id = f"{stem}~{count}"
        self._taken_ids.add(trial_id)
        return trial_id

    # Sound

    def _is_injected(self, device: Device, template: TrialTemplate) -> bool:
        can_inject = device.connection is not None and device.connection.injects
        return can_inject and template.route is not Route.LOUDSPEAKER

    def _is_asked_by_wire(self, template: TrialTemplate) -> bool:
        """Whether the query goes over a wire. Queries without `expects` always go through the air."""
        return template.expects is not None and self._is_injected(asked_device(template, self._bench), template)

    def _loudspeaker(self, position: AxisValue) -> Equipment:
        """The loudspeaker at a position; the first one without a position."""
        return next(speaker for speaker in self._bench.loudspeakers if position is None or speaker.position == position)

    def _player(self, voice: VoiceSpec, position: AxisValue) -> str:
        """Id of what makes the sound in the room: a loudspeaker, or TALKER for a person."""
        return voice.label() if voice.is_person else self._loudspeaker(position).id

    def _query(self, template: TrialTemplate) -> Query:
        return next(query for query in self._scenario.queries if query.id == template.query)

    def _recipe(
        self, template: TrialTemplate, query: Query | None, profile: DeviceProfile, cell: Cell
    ) -> StimulusRecipe:
        """How a trial sounds: by the matrix, else the trial, the query or the defaults. The caller adds its words."""
        defaults, axis = self._scenario.defaults, {name: value for name, _, value in cell}
        voice = requested_voice(defaults, template, query, axis)
        level, in_spl = (defaults.level_dbfs, False) if voice.is_person else requested_level(defaults, template, axis)
        level = self._calibration(axis).dbfs(level) if in_spl else level
        template_gap_ms = defaults.gap_ms if template.gap_ms is None else template.gap_ms
        gap_ms = axis.get("gap_ms", template_gap_ms)
        noise = axis.get("noise", defaults.noise)
        assert isinstance(gap_ms, int | float), gap_ms
        assert noise is None or isinstance(noise, NoiseSpec), noise
        if noise is not None and noise.positions:
            noise = replace(noise, players=self._noise_players(noise, axis))
        if noise is not None and noise.level_spl is not None:
            noise_dbfs, a_weighted = self._calibration(axis).noise_dbfs(noise.level_spl)
            noise = replace(noise, level_dbfs=noise_dbfs, a_weighted=a_weighted, level_spl=None)
        opening = axis.get("opening", template.opening)
        assert opening is None or isinstance(opening, Opening), opening
        if opening is not None and opening.level_spl is not None:
            opening_dbfs = self._calibration(axis).dbfs(opening.level_spl)
            opening = replace(opening, level_dbfs=opening_dbfs, level_spl=None)
        if voice.language == VoiceSpec().language:  # a voice without a language speaks the device's
            voice = replace(voice, language=profile.language)
        return StimulusRecipe(
            query=SpokenText(""),
            wake_phrase=None,
            voice=voice,
            gap_ms=int(gap_ms),
            level_dbfs=level,
            noise=noise,
            opening=opening,
            placement=placement_of(defaults, axis),
            channel=channel_of(axis),
        )

    def _noise_players(self, noise: NoiseSpec, axis: Mapping[AxisName, AxisValue]) -> tuple[tuple[str, float], ...]:
        """The loudspeakers that play noise, and their gains: from the calibrations, or 0 dB for a level in dBFS."""
        loudspeakers = [self._loudspeaker(position) for position in noise.positions]
        if noise.level_dbfs is not None:
            return tuple((loudspeaker.id, 0.0) for loudspeaker in loudspeakers)
        speech_calibration = self._calibration(axis)
        return tuple(
            (loudspeaker.id, noise.gain_db(speech_calibration, loudspeaker.calibration))
            for loudspeaker in loudspeakers
            if loudspeaker.calibration
        )

    def _calibration(self, axis: Mapping[AxisName, AxisValue]) -> Calibration:
        """The calibration of the loudspeaker of a cell; `check_compatibility` demands one for levels in dB SPL."""
        loudspeaker = self._loudspeaker(axis.get("position"))
        assert loudspeaker.calibration is not None, loudspeaker.id
        return loudspeaker.calibration

    # Queries

    def _plan_query(self, template: TrialTemplate, cell: Cell, trial_id: str) -> Trial:
        """A query or understand trial. Its number follows once the order is known."""
        defaults, bench = self._scenario.defaults, self._bench
        rule = template.reprompt or defaults.reprompt
        query, device = self._query(template), asked_device(template, bench)
        profile = device.profile
        has_wake_phrase = template.wake and bool(profile.wake_phrases)
        reports = tuple(sorted(device.reports))
        recipe = replace(
            self._recipe(template, query, profile, cell),
            query=query.utterance,
            wake_phrase=SpokenText(profile.wake_phrases[0]) if has_wake_phrase else None,
        )
        if self._is_asked_by_wire(template) and device.connection is not None:
            player, recipe = device.connection.id, replace(recipe, rate_hz=INJECTED_HZ)
        else:
            position = {name: value for name, _, value in cell}.get("position")
            player = self._player(recipe.voice, position)
        close = template.close_dialogue or defaults.close_dialogue
        if close is None and profile.close_dialogue_say is not None:
            close = CloseDialogue(say=profile.close_dialogue_say)
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
            recognised=replace(self._scenario.recognised, language=recipe.voice.language),
            evidence=_evidence(template, template.evidence or defaults.evidence, reports, rule),
            reprompt=replace(rule, context_wait_s=max(rule.context_wait_s, profile.context_wait_s or 0.0)),
            close_dialogue=close,
            conditions=tuple((name, label) for name, label, _ in cell),
            query_class=template.query_class,
            core_capability=template.core_capability,
            note=template.note,
            microphone=bench.microphone.id if bench.microphone else "",
            connection=device.sources[0] if device.sources else "",
            also=device.sources[1:],
            reports=reports,
            wake_phrases=profile.wake_phrases,
            effect=template.effect,
            expects=template.expects,
            responds=template.expects is None or (profile.responds and bench.microphone is not None),
            settings=_settings(cell, bench),
            stands=_stand_settings(cell, bench, in_room=recipe.placement is not None),
            power_cycle=power_cycle_of(defaults, template),
        )

    # Memory probes

    def _memory_pairs(self, template: TrialTemplate) -> Iterator[PrimedPair]:
        """A prime and a follow-up for each wait, repetition and cell.

        Each repetition has its own order. Drift during a session then does not look like an effect of the wait, and an
        interrupted session has tested each wait about equally often. Neither trial closes a dialogue, because the
        device would have to remember the closing words. The follow-up is played once, because it changes the memory.
        An interrupted one does not count.
        """
        spec = template.memory
        assert spec is not None, template.id
        asked_again = replace(template, query=spec.follow_up)
        cells = self._cells_of(template)
        repetitions: list[list[PrimedPair]] = []
        for repetition in range(1, template.repeat + 1):
            block: list[PrimedPair] = []
            for cell, wait_s in itertools.product(cells, spec.waits_s):
                trial_id = self._new_id(template, cell, repetition, f"w{exact(wait_s)}")
                prime = replace(
                    self._plan_query(template, cell, trial_id),
                    id=f"{trial_id}.prime",
                    memory=MemoryPart(),
                    close_dialogue=None,
                    effect=None,
                )
                follow_up = self._plan_query(asked_again, cell, trial_id)
                single_attempt = replace(follow_up.reprompt, max_attempts=1, max_interruptions=0)
                part = MemoryPart(prime.id, wait_s, spec.shows, spec.forgets)
                follow_up = replace(follow_up, reprompt=single_attempt, memory=part, close_dialogue=None, effect=None)
                block.append((prime, follow_up))
            repetitions.append(block)
        chance = random.Random(f"{self._seed}:{template.id}")
        for block in repetitions:
            chance.shuffle(block)
            yield from block

    # Trials that devices listen to

    def _listening_trials(self, template: TrialTemplate) -> Iterator[Trial]:
        """The wake, command or ambient trials of a template. Ambient sound is cut into segments, each a trial."""
        devices = listening_devices(template, self._bench)
        injected = {device.id for device in devices if self._is_injected(device, template)}
        phrase = "" if template.kind is TrialKind.AMBIENT else _phrase(devices, template)
        for cell, repetition in self._list_cells(template, through_air=len(injected) < len(devices)):
            trial_id = self._new_id(template, cell, repetition)
            targets = self._targets(template, devices, cell)
            wake = self._scenario.wake
            spec = ListeningSpec(template.kind, targets, wake, template.lead_in_s, template.tail_s, phrase)
            if template.ambient is None:
                yield self._plan_listening(template, cell, repetition, trial_id, spec)
                continue
            every_s = template.ambient.probe.every_s if template.ambient.probe else 0.0
            axis = {name: value for name, _, value in cell}
            _, in_spl = requested_level(self._scenario.defaults, template, axis)
            calibration = self._calibration(axis) if in_spl else None
            soak = segments(template.ambient, f"{self._seed}:{trial_id}", calibration)
            for number, (source, ambience) in enumerate(soak, start=1):
                segment_spec = replace(spec, lead_in_s=0.0, tail_s=0.0, source=source, probe_every_s=every_s)
                trial = self._plan_listening(template, cell, repetition, f"{trial_id}.s{number:04}", segment_spec)
                yield replace(trial, recipe=replace(trial.recipe, query=ambience, lead_in_s=0.0, tail_s=0.0))

    def probe(self, template: TrialTemplate, number: int) -> Trial:
        """A probe of an ambient template. It is played a second time if a device did not react to it."""
        spec, scenario = template.ambient.probe if template.ambient else None, self._scenario
        assert spec is not None, template.id
        probe_template = replace(
            template,
            kind=TrialKind.PROBE,
            phrase=spec.phrase,
            voice=spec.voice,
            recordings=(spec.recording,) if spec.recording else (),
            level_dbfs=spec.level_dbfs,
            reprompt=replace(template.reprompt or scenario.defaults.reprompt, max_attempts=2),
            ambient=None,
        )
        devices = listening_devices(probe_template, self._bench)
        listening = ListeningSpec(
            TrialKind.PROBE,
            self._targets(probe_template, devices, ()),
            scenario.wake,
            scenario.wake.refractory_s,
            spec.tail_s,
            _phrase(devices, probe_template),
            probe_every_s=spec.every_s,
        )
        trial = self._plan_listening(probe_template, (), 1, f"{template.id}.p{number:04}", listening)
        return replace(trial, recipe=replace(trial.recipe, noise=None))

    def _targets(self, template: TrialTemplate, devices: list[Device], cell: Cell) -> tuple[Target, ...]:
        """What each device of a listening trial hears, and what it reports."""
        axis = {name: value for name, _, value in cell}
        query = self._query(template) if template.kind is TrialKind.COMMAND else None
        voice = requested_voice(self._scenario.defaults, template, query, axis)
        if template.recordings or template.kind is TrialKind.AMBIENT:
            voice = VoiceSpec()
        targets = []
        for device in devices:
            source, *further_sources = device.sources
            player = source if self._is_injected(device, template) else self._player(voice, axis.get("position"))
            states = {state for _, profile in device.equipment for state in profile.listening_states}
            targets.append(
                Target(
                    device.id,
                    source,
                    player,
                    tuple(sorted(device.reports)),
                    tuple(sorted(states)),
                    also=tuple(further_sources),
                    merge_within_s=device.merge_within_ms / 1000 if further_sources else 0.0,
                    driver=device.connection.driver if further_sources and device.connection else "",
                )
            )
        return tuple(targets)

    def _plan_listening(
        self, template: TrialTemplate, cell: Cell, repetition: int, trial_id: str, listening: ListeningSpec
    ) -> Trial:
        """A trial with the phrase, or with phrase and command. For an ambient trial, the caller adds the sound."""
        scenario, bench, first = self._scenario, self._bench, listening.targets[0]
        profile = bench.device(first.device).profile
        phrase: Utterance = SpokenText(listening.phrase)
        facts = RecordingFacts()
        if template.recordings:
            turn = (repetition - 1) % len(template.recordings)
            facts = template.recording_facts[turn] if template.recording_facts else facts
            phrase = Recording(template.recordings[turn], phrase_end_s=facts.phrase_end_s)
        query = self._query(template) if template.kind is TrialKind.COMMAND else None
        # With a deterministic device, the same samples would add no evidence and make intervals too narrow.
        recipe = replace(
            self._recipe(template, query, profile, cell),
            lead_in_s=listening.lead_in_s,
            tail_s=listening.tail_s,
            rate_hz=INJECTED_HZ if all(target.injected for target in listening.targets) else AIR_HZ,
            variant=repetition,
            as_recorded=template.as_recorded,
        )
        is_bare = not (recipe.lead_in_s or recipe.tail_s or recipe.opening)
        if template.as_recorded and template.recordings and query is None and is_bare:
            recipe = replace(recipe, whole=True, variant=(repetition - 1) // len(template.recordings))
        if query is not None:
            recipe = replace(recipe, query=query.utterance, wake_phrase=phrase)
        else:
            recipe = replace(recipe, query=phrase)
        if template.kind is TrialKind.AMBIENT:
            recipe = replace(recipe, noise=None)
        return Trial(
            id=trial_id,
            number=0,
            template=template.id,
            query_id=query.id if query else "",
            device=first.device,
            loudspeaker=first.player,
            recipe=recipe,
            reference=query.reference if query else listening.phrase,
            alternatives=query.alternatives if query else (),
            recognised=replace(scenario.recognised, language=recipe.voice.language),
            evidence=Evidence.DEVICE if query else Evidence.NONE,
            reprompt=template.reprompt or scenario.defaults.reprompt,
            close_dialogue=None,
            conditions=(*((name, label) for name, label, _ in cell), *facts.traits),
            query_class=template.query_class,
            core_capability=template.core_capability,
            note=template.note,
            microphone=bench.microphone.id if bench.microphone else "",
            connection=first.connection,
            also=first.also,
            reports=first.reports,
            wake_phrases=profile.wake_phrases,
            listening=listening,
            settings=_settings(cell, bench),
            stands=_stand_settings(cell, bench, in_room=recipe.placement is not None),
            power_cycle=power_cycle_of(scenario.defaults, template),
        )


def _settings(cell: Cell, bench: Bench) -> SettingValues:
    """The device settings of a cell; `_stand_settings` gives those of the stands."""
    moved = {stand.moves for stand in bench.stands}
    return tuple((name, value) for name, value in _setting_values(cell) if name not in moved)


def _stand_settings(cell: Cell, bench: Bench, *, in_room: bool) -> SettingValues:
    """(id, value) of each stand of the bench for the trials of a cell. in_room: the talker is in a simulated room."""
    stand_by_name = {stand.moves: stand.id for stand in bench.stands}
    # In a simulated room, an axis such as the distance moves the talker there, and not a stand.
    positions = [] if in_room else [(name, exact(value)) for name, _, value in cell if isinstance(value, int | float)]
    values = (*positions, *_setting_values(cell))
    return tuple((stand_by_name[name], value) for name, value in values if name in stand_by_name)


def _setting_values(cell: Cell) -> SettingValues:
    """The values of the axis `device_settings`; () without it."""
    return next((value for _, _, value in cell if isinstance(value, tuple)), ())


def _phrase(devices: list[Device], template: TrialTemplate) -> str:
    """The wake phrase for all of these devices."""
    return template.phrase if template.phrase is not None else devices[0].profile.wake_phrases[0]


def _evidence(
    template: TrialTemplate, evidence: Evidence, reports: tuple[ObservationKind, ...], rule: RepromptRule
) -> Evidence:
    """The source of evidence: the device, if its reports can decide whether the query is repeated."""
    if evidence is not Evidence.AUTO:
        return evidence
    by_words = template.expects is None or rule.until is RepeatUntil.RECOGNISED
    decides = ObservationKind.TRANSCRIPT if by_words else ObservationKind.INTENT
    return Evidence.DEVICE if decides in reports else Evidence.OPERATOR

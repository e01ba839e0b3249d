"""Checks whether a scenario can run on a bench, before anything is played."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import date, datetime
from pathlib import Path

from harness.base import plugins, strict_yaml
from harness.base.findings import Findings, KeyPath
from harness.base.gathering import gathered
from harness.base.strict_yaml import Mark, Node
from harness.devices.declared import by_hand
from harness.model.bench import Bench, Device, Equipment, ObservationKind, OperatorPresence
from harness.model.errors import InputError, Place, UnmetNeed, nearest
from harness.model.numbers import exact, fixed
from harness.model.scenario import (
    PLACING,
    AxisName,
    AxisValue,
    Evidence,
    Need,
    Normalisation,
    Route,
    Scenario,
    TrialKind,
    TrialTemplate,
    Until,
    axes_of,
    channel_of,
    level_asked,
    placement_of,
    power_cycle_of,
    voice_asked,
)
from harness.model.stands import Stand
from harness.model.stimulus import Channel, NoiseSpec, Opening, Recording
from harness.scenario.matrix import cells
from harness.sound.calibration import problem_of
from harness.sound.level import active_speech_level
from harness.sound.recordings import read as read_recording
from harness.transcripts.words import normalise

_LOUD: frozenset[AxisName] = frozenset(("level_spl", "level_dbfs", "position", "noise", "opening"))
"""The axes that decide how loud a loudspeaker plays."""
ADD: dict[Need, str] = {
    Need.LOUDSPEAKER: "Add `loudspeakers: {near: {driver: loudspeaker, …}}` to the bench. A board that takes sound "
    "over its wire (`audio` in its profile) does not need one",
    Need.MICROPHONE: "Add `microphone: {driver: microphone, …}` to the bench",
    Need.TRANSCRIPTS: "Use a device that has a connection and reports transcript",
    Need.WAKE_EVENTS: "Use a device that has a connection and reports wake",
    Need.OPERATOR: "Write `operator: auto` or `operator: present` in the bench",
    Need.MONITOR: "Add `monitor: {driver: loudspeaker, …}` to the bench",
    Need.NOISE: "Add a loudspeaker to the bench; it plays the noise with the stimulus",
    Need.INJECTION: "Use a device whose connection accepts audio, over serial or mqtt",
    Need.INTENTS: "Use a device that has a connection and reports intent",
    Need.POSITIONS: "Add a second loudspeaker at another position to the bench",
}
"""Remedy for each need that is not met."""


def check_together(scenario: Scenario, bench: Bench) -> None:
    """InputProblems if the scenario names something that the bench lacks; then UnmetNeed for the first unmet need."""
    found = Findings(scenario.path, _tree(scenario))
    devices = _check_devices(scenario, bench, found)
    _check_positions(scenario, bench, found)
    _check_places(scenario, bench, found)
    _check_settings(scenario, bench, found)
    _check_power(scenario, bench, found)
    _check_talkers(scenario, bench, found)
    _check_noise(scenario, bench, found)
    _check_levels(scenario, bench, found)
    _check_listening(scenario, bench, found)
    found.refuse()
    silent = _all_injected(scenario, bench) or _all_spoken(scenario)
    by_loudspeaker = () if silent else (Need.LOUDSPEAKER,)
    for need in (*by_loudspeaker, *scenario.needs):
        if not _met(need, bench, devices):
            asked = ("needs", scenario.needs.index(need)) if need in scenario.needs else ("scenario",)
            what = f"the bench {bench.id!r} does not offer {need.value!r}, which {scenario.id!r} needs"
            raise UnmetNeed(what, place=found.place(asked), remedy=ADD[need])
    for number, trial in enumerate(scenario.trials):
        if trial.kind.asks:
            device = asked_device(trial, bench)
            wanted = trial.evidence or scenario.defaults.evidence
            if trial.expects is not None:
                _demand_intents(trial, scenario, device, bench, found.place(("trials", number)))
                continue
            if wanted is Evidence.DEVICE and not _reports(device, ObservationKind.TRANSCRIPT):
                what = f"the trial {trial.id!r} requires evidence: device, but {device.id!r} reports no transcript"
                remedy = "Write `evidence: auto` or `operator`"
                raise UnmetNeed(what, place=found.place(("trials", number)), remedy=remedy)
            _demand_state(trial, device, found.place(("trials", number, "effect")))
            if trial.memory is not None:
                _demand_evidence(trial, scenario, device, bench, found.place(("trials", number)))
        else:
            _demand_wake_events(trial, bench, found.place(("trials", number)))


def _demand_wake_events(trial: TrialTemplate, bench: Bench, place: Place) -> None:
    """UnmetNeed if a listening device reports no wake events, or cannot be reached by the route of the trial."""
    listening = listening_devices(trial, bench)
    if not listening:
        what = f"the trial {trial.id!r} counts wake events, but no device on the bench {bench.id!r} reports any"
        raise UnmetNeed(what, place=place, remedy=ADD[Need.WAKE_EVENTS])
    for device in listening:
        if not _reports(device, ObservationKind.WAKE):
            what = f"the trial {trial.id!r} counts wake events of {device.id!r}, which reports none"
            raise UnmetNeed(what, place=place, remedy=ADD[Need.WAKE_EVENTS])
        if trial.route is Route.INJECTION and not (device.connection and device.connection.injects):
            driver = device.connection.driver if device.connection else "none"
            what = f"the trial {trial.id!r} injects sound into {device.id!r}, whose connection ({driver}) cannot inject"
            raise UnmetNeed(what, place=place, remedy=ADD[Need.INJECTION])


def _demand_state(trial: TrialTemplate, device: Device, place: Place) -> None:
    """UnmetNeed if only the device could report the effect of the query, and it reports no state."""
    check = trial.effect
    if check is None or not check.state or check.question:
        return
    if ObservationKind.STATE not in device.reports:
        what = f"the trial {trial.id!r} checks the state of {device.id!r}, which reports none"
        remedy = "Use a device that has a connection and reports state, or add `question: …` to the effect"
        raise UnmetNeed(what, place=place, remedy=remedy)


def _demand_intents(trial: TrialTemplate, scenario: Scenario, device: Device, bench: Bench, place: Place) -> None:
    """UnmetNeed if nothing shows what the device understood (or heard, if that decides), or no sound reaches it."""
    reports = device.reports
    evidence = trial.evidence or scenario.defaults.evidence
    rule = trial.reprompt or scenario.defaults.reprompt
    by_words = rule.until is Until.RECOGNISED
    told = ObservationKind.INTENT in reports
    if not told and (by_words or evidence is Evidence.DEVICE):
        what = f"the trial {trial.id!r} checks what {device.id!r} understood, but it reports no intents"
        remedy = "Use a device that has a connection and reports intent"
        if not by_words:
            remedy += ", or write `evidence: operator`"
        raise UnmetNeed(what, place=place, remedy=remedy)
    if by_words and evidence is Evidence.DEVICE and ObservationKind.TRANSCRIPT not in reports:
        what = f"the trial {trial.id!r} repeats until its words are recognised, but {device.id!r} reports no transcript"
        raise UnmetNeed(what, place=place, remedy="Write `reprompt: {until: understood}` or `evidence: auto`")
    asks_operator = evidence is Evidence.OPERATOR or (evidence is Evidence.AUTO and not told)
    if not by_words and asks_operator and bench.operator is OperatorPresence.ABSENT:
        what = (
            f"nothing shows what {device.id!r} understands in {trial.id!r}: it reports no intents, "
            "and the operator is absent"
        )
        if told:
            what = f"the trial {trial.id!r} asks the operator what {device.id!r} understood, but the operator is absent"
        remedy = "Use a device whose profile reports intent, or write `operator: auto` in the bench"
        raise UnmetNeed(what, place=place, remedy=remedy)
    if trial.route is Route.INJECTION and not (device.connection and device.connection.injects):
        driver = device.connection.driver if device.connection else "none"
        what = f"the trial {trial.id!r} injects sound into {device.id!r}, whose connection ({driver}) cannot inject"
        raise UnmetNeed(what, place=place, remedy="Use a device whose connection accepts audio, over serial or mqtt")


def _demand_evidence(trial: TrialTemplate, scenario: Scenario, device: Device, bench: Bench, place: Place) -> None:
    """UnmetNeed if nothing shows whether the first query was understood, or what the follow-up was answered with."""
    reports = device.reports
    wanted = trial.evidence or scenario.defaults.evidence
    asks_operator = wanted is Evidence.OPERATOR or (
        wanted is Evidence.AUTO and ObservationKind.TRANSCRIPT not in reports
    )
    if asks_operator and bench.operator is OperatorPresence.ABSENT:
        what = (
            f"nothing shows whether {device.id!r} understood the first query of {trial.id!r}: it reports no transcript"
        )
        remedy = "Write `operator: auto` in the bench, or `evidence: none` (every answer then counts as understood)"
        raise UnmetNeed(what, place=place, remedy=remedy)
    if bench.microphone is None:
        what = f"the trial {trial.id!r} waits from the end of an answer, but the bench has no microphone"
        raise UnmetNeed(what, place=place, remedy="Add `microphone: {driver: microphone, …}` to the bench")
    if ObservationKind.RESPONSE not in reports and not plugins.names(plugins.Group.RECOGNISERS):
        what = f"nothing shows what {device.id!r} answers in {trial.id!r}: it reports no response"
        remedy = "Use a device whose profile reports response, or install a recogniser (extra `recogniser`)"
        raise UnmetNeed(what, place=place, remedy=remedy)


def listening_devices(trial: TrialTemplate, bench: Bench) -> list[Device]:
    """The devices that listen in a template's trials: those that it names, else all that report wake events."""
    named = trial.devices or ((trial.device,) if trial.device else ())
    if named:
        return [device for name in named for device in bench.devices if device.id == name]
    return [device for device in bench.devices if _reports(device, ObservationKind.WAKE)]


def _hearing(trial: TrialTemplate, bench: Bench) -> list[Device]:
    return [asked_device(trial, bench)] if trial.kind.asks else listening_devices(trial, bench)


def _all_injected(scenario: Scenario, bench: Bench) -> bool:
    return all(
        (trial.expects is not None or not trial.kind.asks)
        and trial.route is not Route.LOUDSPEAKER
        and (
            trial.route is Route.INJECTION  # a connection that cannot inject is reported below
            or all(device.connection and device.connection.injects for device in _hearing(trial, bench))
        )
        for trial in scenario.trials
    )


def _check_listening(scenario: Scenario, bench: Bench, found: Findings) -> None:
    """Checks that the devices share a wake phrase, and that no ambient text contains it."""
    phrases: set[str] = set()
    for number, trial in enumerate(scenario.trials):
        openings = [axis.get("opening", trial.opening) for axis in _cells_of(scenario, trial)]
        if bench.microphone is None and any(isinstance(one, Opening) and one.sounds for one in openings):
            what = f"an opening of {trial.id!r} asks whether the device is heard, but the bench has no microphone"
            found.add(("trials", number), what, f"{ADD[Need.MICROPHONE]}, or write `sounds: false`")
        if trial.kind.asks:
            continue
        devices = listening_devices(trial, bench)
        own = {next(iter(device.profile.wake_phrases), "") for device in devices}
        probe = trial.ambient.probe if trial.ambient else None
        phrase = probe.phrase if probe else trial.phrase
        phrases |= {phrase} if phrase else own
        says_it = trial.kind is not TrialKind.AMBIENT or probe is not None
        if says_it and not phrase and devices and (len(own) > 1 or "" in own):
            said = ", ".join(f"{one.id}: {next(iter(one.profile.wake_phrases), 'none')}" for one in devices)
            what = f"the devices of the trial {trial.id!r} have different wake phrases ({said})"
            where = ("trials", number, "probe") if probe else ("trials", number)
            found.add(where, what, "Write `phrase: …`, or one trial per device with `devices: [...]`")
    for number, trial in enumerate(scenario.trials):
        for at, source in enumerate(trial.ambient.sources if trial.ambient else ()):
            for line, text in enumerate(source.texts):
                heard = next((phrase for phrase in sorted(phrases - {""}) if _holds(text, phrase)), None)
                if heard is not None:
                    what = f"an ambient text contains the wake phrase {heard!r}: waking to it would be correct"
                    found.add(("trials", number, "sources", at, "texts", line), what, "Remove the phrase")


def _holds(text: str, phrase: str) -> bool:
    words, wanted = normalise(text, Normalisation.PLAIN), normalise(phrase, Normalisation.PLAIN)
    return any(words[at : at + len(wanted)] == wanted for at in range(len(words) - len(wanted) + 1))


def _check_devices(scenario: Scenario, bench: Bench, found: Findings) -> list[Device]:
    names = [device.id for device in bench.devices]
    devices: list[Device] = []
    for number, trial in enumerate(scenario.trials):
        if trial.device is not None and trial.device not in names:
            what = f"the bench {bench.id!r} has no device {trial.device!r}"
            found.add(("trials", number, "device"), what, nearest(trial.device, names, listed="Devices"))
            continue
        for at, name in enumerate(trial.devices):
            if name not in names:
                what = f"the bench {bench.id!r} has no device {name!r}"
                found.add(("trials", number, "devices", at), what, nearest(name, names, listed="Devices"))
        devices += _hearing(trial, bench)
    return devices


def _check_positions(scenario: Scenario, bench: Bench, found: Findings) -> None:
    """Notes positions at which nothing plays. A person may stand anywhere."""
    positions = sorted({speaker.position for speaker in bench.loudspeakers if speaker.position})
    played = {axis.get("position") for axis in _played_cells(scenario)}
    for axis in scenario.matrix.axes:
        for number, value in enumerate(axis.values if axis.name == "position" else ()):
            if value not in positions and value in played:
                what = f"the bench {bench.id!r} has no loudspeaker at position {value!r}"
                remedy = nearest(value, positions, listed="Positions")
                found.add(("matrix", "axes", "position", number), what, remedy)


def _check_places(scenario: Scenario, bench: Bench, found: Findings) -> None:
    """Notes distances and angles that nothing brings about: no simulated room, and no stand that can go there."""
    stands = {stand.moves: stand for stand in bench.stands}
    in_room = scenario.defaults.room is not None or any(axis.name == "room" for axis in scenario.matrix.axes)
    for axis in scenario.matrix.axes if not in_room else ():
        if axis.name in stands:
            for number, value in enumerate(axis.values):
                _check_place(bench, stands[axis.name], f"{value}", ("matrix", "axes", axis.name, number), found)
        elif axis.name in PLACING and any(axis.name in cell for cell in _played_cells(scenario)):
            what = f"the matrix varies {axis.name}, but the scenario has no room, and the bench no stand for it"
            remedy = (
                f"Add `rooms:` and `defaults: {{room: …}}`, or `stands: {{…: {{moves: {axis.name}, …}}}}` to the bench"
            )
            found.add(("matrix", "axes", axis.name), what, remedy, key=True)


def _check_place(bench: Bench, stand: Stand, value: str, at: KeyPath, found: Findings) -> None:
    if refusal := stand.refusal(value):
        found.add(at, f"the stand {stand.id!r} of the bench cannot go there: {value} {refusal}", "Change the value")
    if _needs_absent(bench, stand.connection):
        what = f"the operator moves the stand {stand.id!r} by hand, but is absent"
        found.add(at[:3], what, "Write `operator: auto` in the bench, or name another driver for the stand", key=True)


def _needs_absent(bench: Bench, connection: str) -> bool:
    """Whether its orders wait for an operator who is absent."""
    driver = next(one.driver for one in bench.actuators if one.id == connection)
    return bench.operator is OperatorPresence.ABSENT and by_hand(driver)


def _check_power(scenario: Scenario, bench: Bench, found: Findings) -> None:
    """Notes trials that power cycle a device without a switch, or by an operator who is absent."""
    switches = {switch.device: switch for switch in bench.power}
    for number, trial in enumerate(scenario.trials):
        if not power_cycle_of(scenario.defaults, trial):
            continue
        at: KeyPath = ("defaults", "power_cycle") if trial.power_cycle is None else ("trials", number, "power_cycle")
        for device in () if found.problems else _hearing(trial, bench):
            if device.id not in switches:
                what = f"the trial {trial.id!r} power cycles {device.id!r}, which has no switch on the bench"
                remedy = f"Add `power: {{{device.id}: {{driver: …}}}}` to the bench"
                found.add(at, what, remedy, key=True)
            elif _needs_absent(bench, switches[device.id].connection):
                what = f"the operator switches the power of {device.id!r} by hand, but is absent"
                found.add(at, what, "Write `operator: auto` in the bench, or name another driver", key=True)


def _cells_of(scenario: Scenario, trial: TrialTemplate) -> Iterator[dict[AxisName, AxisValue]]:
    """The cells of the matrix that differ for a trial, as axis → value."""
    axes = {axis.name: axis for axis in scenario.matrix.axes if axis.name in axes_of(trial)}
    for cell in dict.fromkeys(tuple(one for one in cell if one[0] in axes) for cell in cells(scenario.matrix)):
        yield {name: axes[name].values[axes[name].labels.index(text)] for name, text in cell}


def _talker(scenario: Scenario, trial: TrialTemplate, axis: Mapping[AxisName, AxisValue]) -> str:
    """Who says the trial at the bench in a cell of the matrix; "" if it is played."""
    if trial.ambient is not None or (trial.recordings and trial.kind is not TrialKind.COMMAND):
        return ""
    query = next((one for one in scenario.queries if one.id == trial.query), None)
    voice = voice_asked(scenario.defaults, trial, query, axis)
    return voice.name if voice.is_person else ""


def _played_cells(scenario: Scenario) -> Iterator[Mapping[AxisName, AxisValue]]:
    """The cells of the matrix in which something is played."""
    for trial in scenario.trials:
        yield from (axis for axis in _cells_of(scenario, trial) if not _talker(scenario, trial, axis))


def _all_spoken(scenario: Scenario) -> bool:
    """Whether people say everything, so that nothing is played."""
    return next(iter(_played_cells(scenario)), None) is None


_PLAYED_ONLY: tuple[AxisName, ...] = ("level_dbfs", "level_spl", "gap_ms")
"""Axes that change what is played, and not what a person says."""


def _check_talkers(scenario: Scenario, bench: Bench, found: Findings) -> None:
    """Notes what a person at the bench cannot do."""
    defaults = scenario.defaults
    for number, trial in enumerate(scenario.trials):
        at: KeyPath = ("trials", number)
        if trial.ambient is not None:
            probe = trial.ambient.probe
            voices = [voice for source in trial.ambient.sources for voice in source.voices]
            if probe is not None and not probe.recording:
                voices.append(probe.voice or defaults.voice)
            if any(voice.is_person for voice in voices):
                what = f"a talker cannot speak in the ambient trial {trial.id!r}"
                found.add(at, what, "Write `voices: […]` or `voice: …` with a voice of a computer")
            continue
        said = gathered((name, axis) for axis in _cells_of(scenario, trial) if (name := _talker(scenario, trial, axis)))
        for name, own in said.items():
            refusals = (_not_for_talkers(scenario, bench, trial, axis) for axis in own)
            what, remedy = next((one for one in refusals if one), ("", ""))
            varied = next((one for one in _PLAYED_ONLY if len({axis.get(one) for axis in own}) > 1), "")
            if varied and not what:
                what = f"the matrix varies {varied}, which a person cannot set"
                remedy = f"Exclude all but one {varied} for the talker"
            if what:
                found.add(at, f"the talker {name!r} speaks in {trial.id!r}, but {what}", remedy)


def _not_for_talkers(
    scenario: Scenario, bench: Bench, trial: TrialTemplate, axis: Mapping[AxisName, AxisValue]
) -> tuple[str, str] | None:
    """Why a person cannot say the trial in a cell of the matrix, and what to do; None if they can."""
    query = next((one for one in scenario.queries if one.id == trial.query), None)
    if bench.operator is OperatorPresence.ABSENT:
        return "the operator is absent", "Write `operator: present` in the bench, or run with --attended"
    if bench.microphone is None:
        return "the bench has no microphone", ADD[Need.MICROPHONE]
    if trial.kind is TrialKind.MEMORY:
        return "the waits of a memory probe are too exact for a person", "Use a voice of a computer"
    if trial.recordings or (query is not None and isinstance(query.utterance, Recording)):
        return "it has a recording", "Write `text: …`, or use a voice of a computer"
    if any(_injected(device, trial) for device in _hearing(trial, bench)):
        return "it goes to the device over its connection", "Write `route: loudspeaker`"
    if axis.get("noise", scenario.defaults.noise) is not None:
        return "there is noise under it, which is played with a stimulus", "Exclude the noise for the talker"
    if axis.get("opening", trial.opening) is not None:
        return "an opening is played before it", "Exclude the openings for the talker, or remove `opening`"
    if placement_of(scenario.defaults, axis) is not None:
        return "it is in a simulated room", "Exclude the rooms for the talker"
    if channel_of(axis) != Channel():
        return "its sound is changed on the way", "Exclude speed, gain, band, clipping and codec for the talker"
    return None


def _check_settings(scenario: Scenario, bench: Bench, found: Findings) -> None:
    axis = next((axis for axis in scenario.matrix.axes if axis.name == "device_settings"), None)
    written = [value if isinstance(value, tuple) else () for value in axis.values] if axis else []
    if not any(written):
        return
    varied = [trial for trial in scenario.trials if "device_settings" in axes_of(trial)]
    if not varied:
        what = "the matrix varies settings of devices, but no trial takes them: ambient trials do not"
        found.add(("matrix", "axes", "device_settings"), what, "Add a trial with speech, or remove the axis", key=True)
    stands = {stand.moves: stand for stand in bench.stands}
    for number, values in enumerate(written):
        for name, value in values:
            if name in stands:
                _check_place(bench, stands[name], value, ("matrix", "axes", "device_settings", number, name), found)
    if all(name in stands for values in written for name, _ in values):
        return
    for device in dict.fromkeys(device.id for trial in varied for device in _hearing(trial, bench)):
        connection = bench.device(device).connection
        if connection is None or not connection.sets:
            by = f"its connection ({connection.driver}) cannot set them" if connection else "it has no connection"
            what = f"the matrix varies settings of {device!r}, but {by}"
            found.add(("matrix", "axes", "device_settings"), what, "Use a driver that can, such as esphome", key=True)


def _check_noise(scenario: Scenario, bench: Bench, found: Findings) -> None:
    """Notes noise from loudspeakers of its own that cannot be played, or whose level at the device is not known."""
    for number, trial in enumerate(scenario.trials):
        cells_with_noise = [
            (axis, noise)
            for axis in (_cells_of(scenario, trial) if "noise" in axes_of(trial) else ())
            if isinstance(noise := axis.get("noise", scenario.defaults.noise), NoiseSpec) and noise.positions
        ]
        problems = (one for axis, noise in cells_with_noise for one in _problems_of_noise(bench, trial, noise, axis))
        for problem in dict.fromkeys(problems):
            found.add(("trials", number), *problem)


def _problems_of_noise(
    bench: Bench, trial: TrialTemplate, noise: NoiseSpec, axis: Mapping[AxisName, AxisValue]
) -> Iterator[tuple[str, str]]:
    what = f"the noise of {trial.id!r} has positions"
    if trial.kind not in (TrialKind.WAKE, TrialKind.COMMAND):
        yield f"{what}, which apply to wake trials and commands", "Exclude it for this trial, or remove positions"
        return
    if any(_injected(device, trial) for device in listening_devices(trial, bench)):
        yield f"{what}, but a device gets the sound over its connection", "Write `route: loudspeaker`"
    speakers = {one.position: one for one in reversed(bench.loudspeakers)}
    for position in noise.positions:
        if position not in speakers:
            listed = nearest(position, sorted(one for one in speakers if one), listed="Positions")
            yield f"{what}, but the bench {bench.id!r} has no loudspeaker at {position!r}", listed
    speech = _speaker_of(bench, axis)
    if speech is None or any(position not in speakers for position in noise.positions):
        return
    used = [speakers[position] for position in noise.positions]
    if speech in used:
        yield f"{what}, and {speech.id!r} plays the speech", "Name other positions, or remove positions"
    if noise.level_dbfs is None:
        for one in (speech, *used):
            if one.calibration is None:
                remedy = f"Run: harness admin calibrate {bench.path} {one.id}. Or write level_dbfs in the noise"
                yield f"{what}, but the level of {one.id!r} at the device is not known", remedy
        places = {one.calibration.at for one in (speech, *used) if one.calibration}
        if len(places) > 1:
            yield f"{what}, but their loudspeakers were calibrated at different places", "Calibrate them at the device"


def _speaker_of(bench: Bench, axis: Mapping[AxisName, AxisValue]) -> Equipment | None:
    """What plays the speech of a cell."""
    there = (one for one in bench.loudspeakers if one.position == axis.get("position"))
    return next(there, bench.loudspeakers[0] if bench.loudspeakers else None)


def _check_levels(scenario: Scenario, bench: Bench, found: Findings) -> None:
    """Each level that a loudspeaker shall play: whether it can."""
    if found.problems:  # a device may not be there
        return
    today = datetime.now().astimezone().date()
    told: set[tuple[KeyPath, str]] = set()
    for number, trial in enumerate(scenario.trials):
        if all(_talker(scenario, trial, axis) for axis in _cells_of(scenario, trial)):
            continue
        through_air = any(not _injected(device, trial) for device in _hearing(trial, bench))
        for at, level, in_spl, axis in _levels(scenario, number, any(one.calibration for one in bench.loudspeakers)):
            noise = axis.get("noise")
            noise_spl = noise.level_spl if isinstance(noise, NoiseSpec) else None
            if not through_air and (in_spl or noise_spl is not None):
                found.add(at, f"{trial.id!r} is played over a wire, where no level is in dB SPL", "Use level_dbfs")
            if not through_air or not bench.loudspeakers:
                continue
            speaker = _speaker_of(bench, axis)
            assert speaker is not None, bench.id
            for what, problem in _unplayable(bench, speaker, level, in_spl, noise, today):
                lower = "Lower the level, or that of the noise" if "noise" in problem else "Lower the level"
                remedy = lower if "above" in problem else f"Run: harness admin calibrate {bench.path} {speaker.id}"
                if (at, what) not in told:
                    found.add(at, f"{what}: {problem}", remedy)
                told.add((at, what))


def _unplayable(
    bench: Bench, speaker: Equipment, level: float, in_spl: bool, noise: AxisValue, today: date
) -> Iterator[tuple[str, str]]:
    """What a loudspeaker cannot play of a level and the noise with it, and why."""
    known, noise_dbfs = speaker.calibration, None
    dbfs = level if not in_spl else known.dbfs(level) if known else 0.0
    if isinstance(noise, NoiseSpec) and (spl := noise.level_spl) is not None:
        noise_dbfs = known.dbfs(spl) if known else 0.0
        if problem := problem_of(speaker, spl, noise_dbfs, today):
            yield f"the loudspeaker {speaker.id!r} cannot play noise of {exact(spl)} dB SPL", problem
            return
    elif isinstance(noise, NoiseSpec):
        noise_dbfs = noise.dbfs(dbfs)
    if problem := problem_of(speaker, level if in_spl else None, dbfs, today, noise_dbfs):
        stated = f"{exact(round(level, 1))} {'dB SPL' if in_spl else 'dBFS'}"
        yield f"the loudspeaker {speaker.id!r} cannot play {stated}", problem
    if not isinstance(noise, NoiseSpec) or noise_dbfs is None:
        return
    for one in bench.loudspeakers:
        if one.position in noise.positions and (own := one.calibration) is not None:
            own_dbfs = noise_dbfs + noise.gain_db(known or own, own)
            if problem := problem_of(one, None, own_dbfs, today):
                yield f"the loudspeaker {one.id!r} cannot play noise of {fixed(own_dbfs, 1)} dBFS", problem


def _levels(
    scenario: Scenario, number: int, measured: bool
) -> Iterator[tuple[KeyPath, float, bool, Mapping[AxisName, AxisValue]]]:
    """Where each level of a trial is written, the level, whether it is in dB SPL, and position and noise with it.

    Also that of an opening, which has no noise. measured: also those of recordings that keep their own level.
    """
    trial, defaults = scenario.trials[number], scenario.defaults
    own: KeyPath = ("trials", number)
    by_default: KeyPath = own if defaults.level_spl is None else ("defaults", "level_spl")
    axes = {axis.name: axis for axis in scenario.matrix.axes if axis.name in _LOUD & axes_of(trial)}
    recorded = [read_recording(path) for path in trial.recordings if trial.as_recorded and measured]
    quiet: dict[AxisName, AxisValue] = {"noise": defaults.noise} if "noise" in axes_of(trial) else {}
    for cell in dict.fromkeys(tuple(one for one in cell if one[0] in axes) for cell in cells(scenario.matrix)):
        numbers = {name: axes[name].labels.index(text) for name, text in cell}
        values = quiet | {name: axes[name].values[nth] for name, nth in numbers.items()}
        if not trial.as_recorded or trial.kind is TrialKind.COMMAND:
            level, in_spl = level_asked(defaults, trial, values)
            by_axis = [("matrix", "axes", name, nth) for name, nth in numbers.items() if name.startswith("level_")]
            yield by_axis[0] if by_axis else by_default if in_spl else own, level, in_spl, values
        opening, nth = values.get("opening", trial.opening), numbers.get("opening")
        if isinstance(opening, Opening):
            place: KeyPath = (*own, "opening") if nth is None else ("matrix", "axes", "opening", nth)
            level = opening.level_dbfs if opening.level_spl is None else opening.level_spl
            yield place, level, opening.level_spl is not None, values | {"noise": None}
        for sound in recorded:
            if (active := active_speech_level(sound)) is not None:
                yield (*own, "recordings"), active.level_dbfs, False, values
    if trial.ambient is not None and trial.ambient.probe is not None:
        level, in_spl = level_asked(defaults, replace(trial, level_dbfs=trial.ambient.probe.level_dbfs), {})
        yield by_default if in_spl else (*own, "probe"), level, in_spl, {}


def _injected(device: Device, trial: TrialTemplate) -> bool:
    """Whether it gets the sound of the trial over its connection. Queries without `expects` go through the air."""
    can = device.connection is not None and device.connection.injects
    return can and trial.route is not Route.LOUDSPEAKER and (not trial.kind.asks or trial.expects is not None)


def asked_device(trial: TrialTemplate, bench: Bench) -> Device:
    """The device that a template's queries are for."""
    return bench.devices[0] if trial.device is None else bench.device(trial.device)


def _reports(device: Device, kind: ObservationKind) -> bool:
    return kind in device.reports


def _met(need: Need, bench: Bench, devices: list[Device]) -> bool:
    match need:
        case Need.LOUDSPEAKER | Need.NOISE:
            return bool(bench.loudspeakers)
        case Need.MICROPHONE:
            return bench.microphone is not None
        case Need.TRANSCRIPTS:
            return any(_reports(device, ObservationKind.TRANSCRIPT) for device in devices)
        case Need.INTENTS:
            return any(_reports(device, ObservationKind.INTENT) for device in devices)
        case Need.WAKE_EVENTS:
            return any(_reports(device, ObservationKind.WAKE) for device in devices)
        case Need.OPERATOR:
            return bench.operator is not OperatorPresence.ABSENT
        case Need.MONITOR:
            return bench.monitor is not None
        case Need.POSITIONS:
            return len({speaker.position for speaker in bench.loudspeakers}) > 1
        case Need.INJECTION:
            return any(device.connection is not None and device.connection.injects for device in devices)


def _tree(scenario: Scenario) -> Node:
    """The scenario's file, read again for places; an empty tree if the file has gone or is broken now."""
    try:
        return strict_yaml.parse(strict_yaml.read_bytes(Path(scenario.path)), scenario.path)
    except InputError:
        return Node({}, Mark(0, 0))

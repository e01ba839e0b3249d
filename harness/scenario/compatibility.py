"""Checks whether a scenario can run on a bench, before anything is played."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from harness.base import plugins, strict_yaml
from harness.base.findings import Findings, KeyPath
from harness.base.grouping import group_by
from harness.base.strict_yaml import Mark, Node
from harness.devices.declared import by_hand
from harness.model.bench import Bench, Device, ObservationKind, OperatorPresence
from harness.model.errors import InputError, Place, UnmetNeed, nearest
from harness.model.positioners import Positioner
from harness.model.scenario import (
    PLACING_AXES,
    AxisName,
    AxisValue,
    Evidence,
    Need,
    Normalisation,
    RepeatUntil,
    Route,
    Scenario,
    TrialKind,
    TrialTemplate,
    axes_of,
    channel_of,
    placement_of,
    power_cycle_of,
)
from harness.model.stimulus import Channel, Opening, Recording
from harness.scenario.levels import check_levels, check_noise
from harness.scenario.trial_playback import (
    addressed_devices,
    asked_device,
    cells_of,
    is_injected,
    listening_devices,
    played_cells,
    reports,
    talker_of,
)
from harness.transcripts.words import normalise

REMEDIES: dict[Need, str] = {
    Need.LOUDSPEAKER: "Add `loudspeakers: {near: {driver: loudspeaker, …}}` to the bench. A board that receives "
    "sound over its connection (`audio` in its profile) needs no loudspeaker",
    Need.MICROPHONE: "Add `microphone: {driver: microphone, …}` to the bench",
    Need.TRANSCRIPTS: "Use a device that has a connection and reports `transcript`",
    Need.WAKE_EVENTS: "Use a device that has a connection and reports `wake`",
    Need.OPERATOR: "Write `operator: auto` or `operator: present` in the bench",
    Need.MONITOR: "Add `monitor: {driver: loudspeaker, …}` to the bench",
    Need.NOISE: "Add a loudspeaker to the bench; it plays the noise with the stimulus",
    Need.INJECTION: "Use a device whose connection accepts sound (`serial` or `mqtt`)",
    Need.INTENTS: "Use a device that has a connection and reports `intent`",
    Need.POSITIONS: "Add a second loudspeaker at another position to the bench",
}


def check_compatibility(scenario: Scenario, bench: Bench) -> None:
    """Raises InputProblems if the scenario names something that the bench lacks; then UnmetNeed for the first unmet
    need."""
    findings = Findings(scenario.path, _read_tree(scenario))
    devices = _check_devices(scenario, bench, findings)
    _check_positions(scenario, bench, findings)
    _check_places(scenario, bench, findings)
    _check_settings(scenario, bench, findings)
    _check_power(scenario, bench, findings)
    _check_talkers(scenario, bench, findings)
    check_noise(scenario, bench, findings)
    check_levels(scenario, bench, findings)
    _check_listening(scenario, bench, findings)
    findings.refuse()
    needs = list(scenario.needs)
    if not _injects_everything(scenario, bench) and not _people_say_everything(scenario):
        needs.insert(0, Need.LOUDSPEAKER)
    for need in needs:
        if not _is_met(need, bench, devices):
            key_path = ("needs", scenario.needs.index(need)) if need in scenario.needs else ("scenario",)
            problem = f"the bench {bench.id!r} does not offer {need.value!r}, which {scenario.id!r} needs"
            raise UnmetNeed(problem, place=findings.place(key_path), remedy=REMEDIES[need])
    for number, trial in enumerate(scenario.trials):
        _demand_reports(trial, scenario, bench, ("trials", number), findings)


def _demand_reports(
    trial: TrialTemplate, scenario: Scenario, bench: Bench, key_path: KeyPath, findings: Findings
) -> None:
    """Raises UnmetNeed if the devices do not report what the trial needs."""
    place = findings.place(key_path)
    if not trial.kind.asks:
        _demand_wake_events(trial, bench, place)
        return
    device = asked_device(trial, bench)
    if trial.expects is not None:
        _demand_intents(trial, scenario, device, bench, place)
        return
    evidence = trial.evidence or scenario.defaults.evidence
    if evidence is Evidence.DEVICE and not reports(device, ObservationKind.TRANSCRIPT):
        problem = f"the trial {trial.id!r} requires `evidence: device`, but {device.id!r} reports no transcripts"
        raise UnmetNeed(problem, place=place, remedy="Write `evidence: auto` or `evidence: operator`")
    _demand_state(trial, device, findings.place((*key_path, "effect")))
    if trial.memory is not None:
        _demand_evidence(trial, scenario, device, bench, place)


def _demand_wake_events(trial: TrialTemplate, bench: Bench, place: Place) -> None:
    """Raises UnmetNeed if a listening device reports no wake events, or cannot be reached by the route of the trial."""
    listening = listening_devices(trial, bench)
    if not listening:
        problem = f"the trial {trial.id!r} counts wake events, but no device on the bench {bench.id!r} reports any"
        raise UnmetNeed(problem, place=place, remedy=REMEDIES[Need.WAKE_EVENTS])
    for device in listening:
        if not reports(device, ObservationKind.WAKE):
            problem = f"the trial {trial.id!r} counts wake events of {device.id!r}, which reports none"
            raise UnmetNeed(problem, place=place, remedy=REMEDIES[Need.WAKE_EVENTS])
        _demand_route(trial, device, place)


def _demand_route(trial: TrialTemplate, device: Device, place: Place) -> None:
    """Raises UnmetNeed if sound cannot reach the device by the route of the trial."""
    if trial.route is Route.INJECTION and not (device.connection and device.connection.injects):
        driver = device.connection.driver if device.connection else "none"
        problem = f"the trial {trial.id!r} injects sound into {device.id!r}, whose connection ({driver}) cannot inject"
        raise UnmetNeed(problem, place=place, remedy=REMEDIES[Need.INJECTION])


def _demand_state(trial: TrialTemplate, device: Device, place: Place) -> None:
    """Raises UnmetNeed if only the device could report the effect of the query, and it reports no state."""
    check = trial.effect
    if check is None or not check.state or check.question:
        return
    if ObservationKind.STATE not in device.reports:
        problem = f"the trial {trial.id!r} checks the state of {device.id!r}, which reports no state"
        remedy = "Use a device that has a connection and reports `state`, or add `question: …` to the effect"
        raise UnmetNeed(problem, place=place, remedy=remedy)


def _demand_intents(trial: TrialTemplate, scenario: Scenario, device: Device, bench: Bench, place: Place) -> None:
    """Raises UnmetNeed if no sound reaches the device, or nothing shows what it understood (or heard, if needed)."""
    reported = device.reports
    evidence = trial.evidence or scenario.defaults.evidence
    rule = trial.reprompt or scenario.defaults.reprompt
    repeats_until_recognised = rule.until is RepeatUntil.RECOGNISED
    reports_intents = ObservationKind.INTENT in reported
    if not reports_intents and (repeats_until_recognised or evidence is Evidence.DEVICE):
        problem = f"the trial {trial.id!r} checks what {device.id!r} understood, but it reports no intents"
        remedy = "Use a device that has a connection and reports `intent`"
        if not repeats_until_recognised:
            remedy += ", or write `evidence: operator`"
        raise UnmetNeed(problem, place=place, remedy=remedy)
    if repeats_until_recognised and evidence is Evidence.DEVICE and ObservationKind.TRANSCRIPT not in reported:
        problem = (
            f"the trial {trial.id!r} repeats until its words are recognised, but {device.id!r} reports no transcript"
        )
        raise UnmetNeed(problem, place=place, remedy="Write `reprompt: {until: understood}` or `evidence: auto`")
    asks_operator = evidence is Evidence.OPERATOR or (evidence is Evidence.AUTO and not reports_intents)
    if not repeats_until_recognised and asks_operator and bench.operator is OperatorPresence.ABSENT:
        problem = (
            f"nothing shows what {device.id!r} understands in {trial.id!r}: it reports no intents, "
            "and the operator is absent"
        )
        if reports_intents:
            problem = (
                f"the trial {trial.id!r} asks the operator what {device.id!r} understood, but the operator is absent"
            )
        remedy = "Use a device whose profile reports `intent`, or write `operator: auto` in the bench"
        raise UnmetNeed(problem, place=place, remedy=remedy)
    _demand_route(trial, device, place)


def _demand_evidence(trial: TrialTemplate, scenario: Scenario, device: Device, bench: Bench, place: Place) -> None:
    """Raises UnmetNeed if nothing shows whether the first query was understood, or what the follow-up was answered
    with."""
    reported = device.reports
    evidence = trial.evidence or scenario.defaults.evidence
    asks_operator = evidence is Evidence.OPERATOR or (
        evidence is Evidence.AUTO and ObservationKind.TRANSCRIPT not in reported
    )
    if asks_operator and bench.operator is OperatorPresence.ABSENT:
        problem = f"{device.id!r} reports no transcript, so nothing shows whether it understood a query of {trial.id!r}"
        remedy = "Write `operator: auto` in the bench, or `evidence: none` (every answer then counts as understood)"
        raise UnmetNeed(problem, place=place, remedy=remedy)
    if bench.microphone is None:
        problem = f"the trial {trial.id!r} needs a microphone to find the end of an answer, but the bench has none"
        raise UnmetNeed(problem, place=place, remedy="Add `microphone: {driver: microphone, …}` to the bench")
    if ObservationKind.RESPONSE not in reported and not plugins.names(plugins.Group.RECOGNISERS):
        problem = f"nothing shows what {device.id!r} answers in {trial.id!r}: it reports no response"
        remedy = "Use a device whose profile reports `response`, or install a recogniser (extra `recogniser`)"
        raise UnmetNeed(problem, place=place, remedy=remedy)


def _injects_everything(scenario: Scenario, bench: Bench) -> bool:
    """Whether all sound goes to the devices over their connections, so that no loudspeaker is needed."""
    return all(
        (trial.expects is not None or not trial.kind.asks)
        and trial.route is not Route.LOUDSPEAKER
        and (
            trial.route is Route.INJECTION  # A connection that cannot inject is reported below.
            or all(device.connection and device.connection.injects for device in addressed_devices(trial, bench))
        )
        for trial in scenario.trials
    )


def _check_listening(scenario: Scenario, bench: Bench, findings: Findings) -> None:
    """Checks that the devices share a wake phrase, and that no ambient text contains it."""
    phrases: set[str] = set()
    for number, trial in enumerate(scenario.trials):
        openings = [cell.get("opening", trial.opening) for cell in cells_of(scenario, trial)]
        if bench.microphone is None and any(isinstance(opening, Opening) and opening.sounds for opening in openings):
            problem = f"an opening of {trial.id!r} asks whether the device is heard, but the bench has no microphone"
            findings.add(("trials", number), problem, f"{REMEDIES[Need.MICROPHONE]}, or write `sounds: false`")
        if trial.kind.asks:
            continue
        devices = listening_devices(trial, bench)
        wake_phrases = {next(iter(device.profile.wake_phrases), "") for device in devices}
        probe = trial.ambient.probe if trial.ambient else None
        phrase = probe.phrase if probe else trial.phrase
        phrases |= {phrase} if phrase else wake_phrases
        if trial.ambient is not None:  # a probe says one phrase, and the devices may wake to others
            phrases.update(*(device.profile.wake_phrases for device in devices))
        plays_phrase = trial.kind is not TrialKind.AMBIENT or probe is not None
        if plays_phrase and not phrase and devices and (len(wake_phrases) > 1 or "" in wake_phrases):
            listing = ", ".join(f"{device.id}: {next(iter(device.profile.wake_phrases), 'none')}" for device in devices)
            problem = f"the devices of the trial {trial.id!r} have different wake phrases ({listing})"
            key_path = ("trials", number, "probe") if probe else ("trials", number)
            findings.add(key_path, problem, "Write `phrase: …`, or one trial per device with `devices: [...]`")
    for number, trial in enumerate(scenario.trials):
        for index, source in enumerate(trial.ambient.sources if trial.ambient else ()):
            for line, text in enumerate(source.texts):
                contained_phrase = next(
                    (phrase for phrase in sorted(phrases - {""}) if _contains_phrase(text, phrase)), None
                )
                if contained_phrase is not None:
                    problem = (
                        f"an ambient text contains the wake phrase {contained_phrase!r}: waking to it would be correct"
                    )
                    findings.add(("trials", number, "sources", index, "texts", line), problem, "Remove the phrase")


def _contains_phrase(text: str, phrase: str) -> bool:
    """Whether the words of a phrase follow one another in a text; case and punctuation do not matter."""
    words, phrase_words = normalise(text, Normalisation.PLAIN), normalise(phrase, Normalisation.PLAIN)
    return any(
        words[start : start + len(phrase_words)] == phrase_words for start in range(len(words) - len(phrase_words) + 1)
    )


def _check_devices(scenario: Scenario, bench: Bench, findings: Findings) -> list[Device]:
    """Notes devices that the bench lacks. Returns those that the trials are for."""
    names = [device.id for device in bench.devices]
    devices: list[Device] = []
    for number, trial in enumerate(scenario.trials):
        if trial.device is not None and trial.device not in names:
            problem = f"the bench {bench.id!r} has no device {trial.device!r}"
            findings.add(("trials", number, "device"), problem, nearest(trial.device, names, listed="Devices"))
            continue
        for index, name in enumerate(trial.devices):
            if name not in names:
                problem = f"the bench {bench.id!r} has no device {name!r}"
                findings.add(("trials", number, "devices", index), problem, nearest(name, names, listed="Devices"))
        devices += addressed_devices(trial, bench)
    return devices


def _check_positions(scenario: Scenario, bench: Bench, findings: Findings) -> None:
    """Notes positions at which nothing plays. A person may stand anywhere."""
    positions = sorted({speaker.position for speaker in bench.loudspeakers if speaker.position})
    played = {cell.get("position") for cell in played_cells(scenario)}
    for number, value in enumerate(_axis_values(scenario, "position")):
        if value not in positions and value in played:
            problem = f"the bench {bench.id!r} has no loudspeaker at position {value!r}"
            remedy = nearest(value, positions, listed="Positions")
            findings.add(("matrix", "axes", "position", number), problem, remedy)


def _axis_values(scenario: Scenario, name: AxisName) -> tuple[AxisValue, ...]:
    return next((axis.values for axis in scenario.matrix.axes if axis.name == name), ())


def _check_places(scenario: Scenario, bench: Bench, findings: Findings) -> None:
    """Notes distances and angles of the matrix that the bench cannot produce.

    Without a simulated room, each needs a stand that can move to it.
    """
    stands = {stand.moves: stand for stand in bench.stands}
    if scenario.defaults.room is not None or any(axis.name == "room" for axis in scenario.matrix.axes):
        roomless_cells = [cell for cell in played_cells(scenario) if cell.get("room", scenario.defaults.room) is None]
        for axis in scenario.matrix.axes:
            values = {cell[axis.name] for cell in roomless_cells if axis.name in cell}
            if axis.name in PLACING_AXES and axis.name not in stands and len(values) > 1:
                problem = f"without a room, {axis.name} makes no difference, but {len(values)} of its values are played"
                remedy = f"Exclude all but one {axis.name} for `room: null`"
                findings.add(("matrix", "axes", axis.name), problem, remedy, key=True)
        return
    for axis in scenario.matrix.axes:
        if axis.name in stands:
            for number, value in enumerate(axis.values):
                _check_place(bench, stands[axis.name], f"{value}", ("matrix", "axes", axis.name, number), findings)
        elif axis.name in PLACING_AXES and any(axis.name in cell for cell in played_cells(scenario)):
            problem = f"the matrix varies {axis.name}, but the scenario has no room, and the bench has no stand for it"
            remedy = (
                f"Add `rooms:` and `defaults: {{room: …}}`, or `stands: {{…: {{moves: {axis.name}, …}}}}` to the bench"
            )
            findings.add(("matrix", "axes", axis.name), problem, remedy, key=True)


def _check_place(bench: Bench, stand: Positioner, value: str, key_path: KeyPath, findings: Findings) -> None:
    """Notes a value to which a stand cannot move, or only by an operator who is absent. key_path: that of the value."""
    if refusal := stand.refusal(value):
        findings.add(
            key_path, f"the stand {stand.id!r} of the bench cannot move there: {value} {refusal}", "Change the value"
        )
    if _needs_absent_operator(bench, stand.connection):
        problem = f"the operator moves the stand {stand.id!r} by hand, but is absent"
        findings.add(
            key_path[:3], problem, "Write `operator: auto` in the bench, or use another driver for the stand", key=True
        )


def _needs_absent_operator(bench: Bench, connection: str) -> bool:
    """Whether the orders of a stand or switch wait for an operator who is absent. connection: id of its actuator."""
    driver = next(actuator.driver for actuator in bench.actuators if actuator.id == connection)
    return bench.operator is OperatorPresence.ABSENT and by_hand(driver)


def _check_power(scenario: Scenario, bench: Bench, findings: Findings) -> None:
    """Notes trials that power cycle a device without a switch, or by an operator who is absent."""
    switches = {switch.device: switch for switch in bench.power}
    for number, trial in enumerate(scenario.trials):
        if not power_cycle_of(scenario.defaults, trial):
            continue
        key_path: KeyPath = (
            ("defaults", "power_cycle") if trial.power_cycle is None else ("trials", number, "power_cycle")
        )
        for device in addressed_devices(trial, bench):
            if device.id not in switches:
                problem = f"the trial {trial.id!r} power-cycles {device.id!r}, but the bench has no power switch for it"
                remedy = f"Add `power: {{{device.id}: {{driver: …}}}}` to the bench"
                findings.add(key_path, problem, remedy, key=True)
            elif _needs_absent_operator(bench, switches[device.id].connection):
                problem = f"the operator switches the power of {device.id!r} by hand, but is absent"
                findings.add(key_path, problem, "Write `operator: auto` in the bench, or use another driver", key=True)


def _people_say_everything(scenario: Scenario) -> bool:
    """Whether people say everything, so that nothing is played."""
    return not list(played_cells(scenario))


_PLAYED_ONLY: tuple[AxisName, ...] = ("level_dbfs", "level_spl", "gap_ms")
"""Axes that change what is played, and not what a person says."""


def _check_talkers(scenario: Scenario, bench: Bench, findings: Findings) -> None:
    """Notes parts of the scenario that a person who speaks at the bench cannot do."""
    defaults = scenario.defaults
    for number, trial in enumerate(scenario.trials):
        key_path: KeyPath = ("trials", number)
        if trial.ambient is not None:
            probe = trial.ambient.probe
            voices = [voice for source in trial.ambient.sources for voice in source.voices]
            if probe is not None and not probe.recording:
                voices.append(probe.voice or defaults.voice)
            if any(voice.is_person for voice in voices):
                problem = f"a talker cannot speak in the ambient trial {trial.id!r}"
                findings.add(key_path, problem, "Write `voices: […]` or `voice: …` with a synthetic voice")
            continue
        cells_by_talker = group_by((talker_of(scenario, trial, cell), cell) for cell in cells_of(scenario, trial))
        cells_by_talker.pop("", None)  # what is played
        for talker, talker_cells in cells_by_talker.items():
            refusals = (_talker_refusal(scenario, bench, trial, cell) for cell in talker_cells)
            problem, remedy = next((refusal for refusal in refusals if refusal), ("", ""))
            varied = next((name for name in _PLAYED_ONLY if len({cell.get(name) for cell in talker_cells}) > 1), "")
            if varied and not problem:
                problem = f"the matrix varies {varied}, which a person cannot set"
                remedy = f"Exclude all but one {varied} for the talker"
            if problem:
                findings.add(key_path, f"the talker {talker!r} speaks in {trial.id!r}, but {problem}", remedy)


def _talker_refusal(
    scenario: Scenario, bench: Bench, trial: TrialTemplate, cell: Mapping[AxisName, AxisValue]
) -> tuple[str, str] | None:
    """Why a person cannot say the trial in a cell of the matrix, and what to do; None if they can."""
    query = next((candidate for candidate in scenario.queries if candidate.id == trial.query), None)
    if bench.operator is OperatorPresence.ABSENT:
        return "the operator is absent", "Write `operator: present` in the bench, or run with --attended"
    if bench.microphone is None:
        return "the bench has no microphone", REMEDIES[Need.MICROPHONE]
    if trial.kind is TrialKind.MEMORY:
        return "a person cannot time the waits of a memory trial exactly", "Use a synthetic voice"
    if trial.recordings or (query is not None and isinstance(query.utterance, Recording)):
        return "the trial plays a recording", "Write `text: …`, or use a synthetic voice"
    if any(is_injected(device, trial) for device in addressed_devices(trial, bench)):
        return "the sound of the trial goes to the device over the connection", "Write `route: loudspeaker`"
    if cell.get("noise", scenario.defaults.noise) is not None:
        return "the noise can be played only with a stimulus", "Exclude the noise for the talker"
    if cell.get("opening", trial.opening) is not None:
        return "an opening is played before the trial", "Exclude the openings for the talker, or remove `opening`"
    if placement_of(scenario.defaults, cell) is not None:
        return "the trial is in a simulated room", "Exclude the rooms for the talker"
    if channel_of(cell) != Channel():
        return (
            "its sound is processed before it is played",
            "Exclude speed, gain, band, clipping and codec for the talker",
        )
    return None


def _check_settings(scenario: Scenario, bench: Bench, findings: Findings) -> None:
    """Notes device settings of the matrix that no stand and no connection can set."""
    axis_values = _axis_values(scenario, "device_settings")
    settings_by_value = [value if isinstance(value, tuple) else () for value in axis_values]
    if not any(settings_by_value):
        return
    varied_trials = [trial for trial in scenario.trials if "device_settings" in axes_of(trial)]
    if not varied_trials:
        problem = "the matrix varies device settings, which do not apply to ambient trials, and all trials are ambient"
        findings.add(
            ("matrix", "axes", "device_settings"), problem, "Add a trial with speech, or remove the axis", key=True
        )
    stands = {stand.moves: stand for stand in bench.stands}
    for number, values in enumerate(settings_by_value):
        for name, value in values:
            if name in stands:
                _check_place(bench, stands[name], value, ("matrix", "axes", "device_settings", number, name), findings)
    if all(name in stands for values in settings_by_value for name, _ in values):
        return
    for device in dict.fromkeys(device.id for trial in varied_trials for device in addressed_devices(trial, bench)):
        connection = bench.device(device).connection
        if connection is None or not connection.sets:
            reason = f"its connection ({connection.driver}) cannot set them" if connection else "it has no connection"
            problem = f"the matrix varies settings of {device!r}, but {reason}"
            findings.add(
                ("matrix", "axes", "device_settings"),
                problem,
                "Use a driver that can set them, such as `esphome`",
                key=True,
            )


def _is_met(need: Need, bench: Bench, devices: list[Device]) -> bool:
    match need:
        case Need.LOUDSPEAKER | Need.NOISE:
            return bool(bench.loudspeakers)
        case Need.MICROPHONE:
            return bench.microphone is not None
        case Need.TRANSCRIPTS:
            return any(reports(device, ObservationKind.TRANSCRIPT) for device in devices)
        case Need.INTENTS:
            return any(reports(device, ObservationKind.INTENT) for device in devices)
        case Need.WAKE_EVENTS:
            return any(reports(device, ObservationKind.WAKE) for device in devices)
        case Need.OPERATOR:
            return bench.operator is not OperatorPresence.ABSENT
        case Need.MONITOR:
            return bench.monitor is not None
        case Need.POSITIONS:
            return len({speaker.position for speaker in bench.loudspeakers}) > 1
        case Need.INJECTION:
            return any(device.connection is not None and device.connection.injects for device in devices)


def _read_tree(scenario: Scenario) -> Node:
    """The scenario's file, read again for places; an empty tree if the file has gone or is broken now."""
    try:
        return strict_yaml.parse(strict_yaml.read_bytes(Path(scenario.path)), scenario.path)
    except InputError:
        return Node({}, Mark(0, 0))

"""Whether a scenario can be run on a bench: known before anything is played."""

from __future__ import annotations

from pathlib import Path

from harness.library import strict_yaml
from harness.library.findings import Findings, nearest
from harness.library.strict_yaml import Mark, Node
from harness.model.bench import Bench, Device, ObservationKind, OperatorPresence
from harness.model.errors import InputError, UnmetNeed
from harness.model.scenario import Evidence, Need, Scenario

ADD: dict[Need, str] = {
    Need.LOUDSPEAKER: "Add `loudspeakers: {near: {driver: loudspeaker, …}}` to the bench",
    Need.MICROPHONE: "Add `microphone: {driver: microphone, …}` to the bench",
    Need.TRANSCRIPTS: "Use a device with a connection, whose profile reports transcript",
    Need.WAKE_EVENTS: "Use a device with a connection, whose profile reports wake",
    Need.OPERATOR: "Write `operator: auto` or `operator: present` in the bench",
    Need.MONITOR: "Add `monitor: {driver: loudspeaker, …}` to the bench",
    Need.NOISE: "Add a loudspeaker to the bench: noise is played with the stimulus",
    Need.POSITIONS: "Add a second loudspeaker at another position to the bench",
}
"""What to do about a need that is not met."""


def check_together(scenario: Scenario, bench: Bench) -> None:
    """InputProblems when the scenario names what the bench has not; then UnmetNeed for the first need not met."""
    found = Findings(scenario.path, _tree(scenario))
    devices = _check_devices(scenario, bench, found)
    _check_positions(scenario, bench, found)
    found.refuse()
    for need in (Need.LOUDSPEAKER, *scenario.needs):
        if not _met(need, bench, devices):
            asked = ("needs", scenario.needs.index(need)) if need in scenario.needs else ("scenario",)
            what = f"the bench {bench.id!r} does not offer {need.value!r}, which {scenario.id!r} needs"
            raise UnmetNeed(what, place=found.place(asked), remedy=ADD[need])
    for number, trial in enumerate(scenario.trials):
        device = _device(trial.device, bench)
        wanted = trial.evidence or scenario.defaults.evidence
        if wanted is Evidence.DEVICE and not _reports(device, ObservationKind.TRANSCRIPT):
            what = f"the trial {trial.id!r} wants the device's own evidence, and {device.id!r} reports no transcript"
            raise UnmetNeed(what, place=found.place(("trials", number)), remedy="Write `evidence: auto` or `operator`")


def _check_devices(scenario: Scenario, bench: Bench, found: Findings) -> list[Device]:
    names = [device.id for device in bench.devices]
    devices: list[Device] = []
    for number, trial in enumerate(scenario.trials):
        if trial.device is not None and trial.device not in names:
            what = f"the bench {bench.id!r} has no device {trial.device!r}"
            found.add(("trials", number, "device"), what, nearest(trial.device, names, listed="Devices"))
            continue
        devices.append(_device(trial.device, bench))
    return devices


def _check_positions(scenario: Scenario, bench: Bench, found: Findings) -> None:
    positions = sorted({speaker.position for speaker in bench.loudspeakers if speaker.position})
    for axis in scenario.matrix.axes:
        for number, value in enumerate(axis.values if axis.name == "position" else ()):
            if value not in positions:
                what = f"the bench {bench.id!r} has no loudspeaker at position {value!r}"
                remedy = nearest(value, positions, listed="Positions")
                found.add(("matrix", "axes", "position", number), what, remedy)


def _device(name: str | None, bench: Bench) -> Device:
    return bench.devices[0] if name is None else bench.device(name)


def _reports(device: Device, kind: ObservationKind) -> bool:
    return device.connection is not None and kind in device.profile.reports


def _met(need: Need, bench: Bench, devices: list[Device]) -> bool:
    match need:
        case Need.LOUDSPEAKER | Need.NOISE:
            return bool(bench.loudspeakers)
        case Need.MICROPHONE:
            return bench.microphone is not None
        case Need.TRANSCRIPTS:
            return any(_reports(device, ObservationKind.TRANSCRIPT) for device in devices)
        case Need.WAKE_EVENTS:
            return any(_reports(device, ObservationKind.WAKE) for device in devices)
        case Need.OPERATOR:
            return bench.operator is not OperatorPresence.ABSENT
        case Need.MONITOR:
            return bench.monitor is not None
        case Need.POSITIONS:
            return len({speaker.position for speaker in bench.loudspeakers}) > 1


def _tree(scenario: Scenario) -> Node:
    """The scenario's file once more, for places; nothing but its beginning when it is gone or broken by now."""
    try:
        return strict_yaml.parse(strict_yaml.read_bytes(Path(scenario.path)), scenario.path)
    except InputError:
        return Node({}, Mark(0, 0))

"""What a trial plays, who says it, and which devices hear it, for each cell of the matrix."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from harness.model.bench import Bench, Device, ObservationKind
from harness.model.scenario import (
    AxisName,
    AxisValue,
    Route,
    Scenario,
    TrialKind,
    TrialTemplate,
    axes_of,
    requested_voice,
)
from harness.scenario.matrix import cells


def asked_device(trial: TrialTemplate, bench: Bench) -> Device:
    """The device that a template's queries are for."""
    return bench.devices[0] if trial.device is None else bench.device(trial.device)


def listening_devices(trial: TrialTemplate, bench: Bench) -> list[Device]:
    """The devices that listen in a template's trials: those that it names, else all that report wake events."""
    names = trial.devices or ((trial.device,) if trial.device else ())
    if names:
        return [device for name in names for device in bench.devices if device.id == name]
    return [device for device in bench.devices if reports(device, ObservationKind.WAKE)]


def addressed_devices(trial: TrialTemplate, bench: Bench) -> list[Device]:
    """The devices for which a template's sound is played, without one that the bench lacks."""
    if not trial.kind.asks:
        return listening_devices(trial, bench)
    return [device for device in bench.devices if device.id == (trial.device or bench.devices[0].id)]


def is_injected(device: Device, trial: TrialTemplate) -> bool:
    """Whether the device gets the sound of the trial over its connection, and not through the air.

    Queries without `expects` always go through the air.
    """
    can_inject = device.connection is not None and device.connection.injects
    return can_inject and trial.route is not Route.LOUDSPEAKER and (not trial.kind.asks or trial.expects is not None)


def reports(device: Device, kind: ObservationKind) -> bool:
    return kind in device.reports


def cells_of(scenario: Scenario, trial: TrialTemplate) -> Iterator[dict[AxisName, AxisValue]]:
    """The cells of the matrix, as axis → value, with only the axes that apply to the trial; each cell once."""
    axes = {axis.name: axis for axis in scenario.matrix.axes if axis.name in axes_of(trial)}
    for cell in dict.fromkeys(tuple(pair for pair in cell if pair[0] in axes) for cell in cells(scenario.matrix)):
        yield {name: axes[name].values[axes[name].labels.index(text)] for name, text in cell}


def talker_of(scenario: Scenario, trial: TrialTemplate, cell: Mapping[AxisName, AxisValue]) -> str:
    """Who says the trial at the bench in a cell of the matrix; "" if it is played."""
    if trial.ambient is not None or (trial.recordings and trial.kind is not TrialKind.COMMAND):
        return ""
    query = next((candidate for candidate in scenario.queries if candidate.id == trial.query), None)
    voice = requested_voice(scenario.defaults, trial, query, cell)
    return voice.name if voice.is_person else ""


def played_cells(scenario: Scenario) -> Iterator[Mapping[AxisName, AxisValue]]:
    """The cells of the matrix in which something is played."""
    for trial in scenario.trials:
        yield from (cell for cell in cells_of(scenario, trial) if not talker_of(scenario, trial, cell))

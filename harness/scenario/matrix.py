"""The matrix of a scenario: its axes, what it excludes, and the cells that are left."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product
from typing import cast

from harness.base.findings import Findings, KeyPath
from harness.model.errors import nearest
from harness.model.numbers import exact
from harness.model.scenario import (
    PLACING,
    Axis,
    AxisName,
    AxisValue,
    Defaults,
    Matrix,
    TrialTemplate,
    axes_of,
    placement_of,
)
from harness.model.stimulus import NOISE_BEFORE_S, QUIET, Band, NoiseSpec, Opening, Placement, RoomSpec, VoiceSpec
from harness.scenario.keys import ExcludeKeys, MatrixKeys

MAX_CELLS = 10_000
LEAST_PAUSE_S = 1.5
"""Of an opening after which the device must be heard."""
Cell = tuple[tuple[AxisName, str], ...]
Labelled = tuple[AxisValue, str]
Resolve = Callable[[str, object, KeyPath], Labelled | None]
"""Axis name, written value and its path → value and label; None after a problem, which was noted."""


def label(value: AxisValue) -> str:
    """The text for a value of an axis in tables."""
    match value:
        case None:
            return QUIET
        case RoomSpec():
            return value.id
        case VoiceSpec() | NoiseSpec() | Opening() | Band():
            return value.label()
        case float() | int():
            return exact(value)
        case tuple():
            return ", ".join(f"{name}={text}" for name, text in value) or "as it is"
        case str():
            return value


def read_matrix(keys: MatrixKeys, order: tuple[str, ...], resolve: Resolve, found: Findings) -> Matrix:
    """The matrix; `order` is the order in which the axes were written. Notes problems in `found`."""
    before = len(found.problems)
    axes = tuple(_axis(cast(AxisName, name), getattr(keys.axes, name) or [], resolve, found) for name in order)
    if not axes:
        found.add(("matrix", "axes"), "the matrix has no axes", "Add one, such as `level_dbfs: [-26, -36]`")
    if {"level_dbfs", "level_spl"} <= {axis.name for axis in axes}:
        found.add(
            ("matrix", "axes", "level_spl"), "there is also an axis level_dbfs", "Remove one of the two", key=True
        )
    size = 1
    for axis in axes:
        size *= max(1, len(axis.values))
    if size > MAX_CELLS:
        found.add(("matrix", "axes"), f"the matrix has {size} cells", f"Shorten the axes; the maximum is {MAX_CELLS}")
        return Matrix()
    exclude = tuple(_excluded(entry, number, axes, resolve, found) for number, entry in enumerate(keys.exclude))
    _refuse_idle(exclude, found)
    group_by = _grouping(keys.group_by, axes, found)
    matrix = Matrix(axes, tuple(cell for cell in exclude if cell), keys.order, keys.seed, group_by)
    if len(found.problems) == before and not cells(matrix):
        found.add(("matrix", "exclude"), "the exclusions leave no combination", "Remove some", key=True)
    return matrix


def cells(matrix: Matrix) -> tuple[Cell, ...]:
    """The cells to run in listed order, as (axis name, label) pairs in the order of the axes."""
    every = product(*([(axis.name, text) for text in axis.labels] for axis in matrix.axes))
    return tuple(cell for cell in every if not any(set(out) <= set(cell) for out in matrix.exclude))


def _grouping(written: list[str], axes: tuple[Axis, ...], found: Findings) -> tuple[AxisName, ...]:
    by_name = {axis.name: axis for axis in axes}
    for number, name in enumerate(written):
        at = ("matrix", "group_by", number)
        if name not in by_name:
            found.add(at, f"the matrix has no axis {name!r}", nearest(name, by_name, listed="Axes"))
        elif name in written[:number]:
            found.add(at, f"{name} is named twice", "Remove one")
    return tuple(by_name[name].name for name in dict.fromkeys(written) if name in by_name)


def _axis(name: AxisName, written: list[object], resolve: Resolve, found: Findings) -> Axis:
    values: dict[str, AxisValue] = {}
    for number, one in enumerate(written):
        at = ("matrix", "axes", name, number)
        resolved = resolve(name, one, at)
        if resolved is None:
            continue
        value, text = resolved
        if text in values:
            remedy = "Remove one" if values[text] == value else "Give the voices names under `voices:`"
            found.add(at, f"the axis {name} has {text!r} twice", remedy)
        values[text] = value
    return Axis(name, tuple(values.values()), tuple(values))


def _excluded(entry: ExcludeKeys, number: int, axes: tuple[Axis, ...], resolve: Resolve, found: Findings) -> Cell:
    """One entry as (axis, label) pairs; () when there was a problem."""
    above = ("matrix", "exclude", number)
    by_name: Mapping[str, Axis] = {axis.name: axis for axis in axes}
    pairs: list[tuple[AxisName, str]] = []
    good = True
    if not entry.model_fields_set:
        found.add(above, "the exclusion names no axis", "Name at least one, such as {level_dbfs: -36}")
    for name in ExcludeKeys.model_fields:
        if name not in entry.model_fields_set:
            continue
        at = (*above, name)
        if name not in by_name:
            found.add(at, f"the matrix has no axis {name!r}", nearest(name, by_name, listed="Axes"), key=True)
            good = False
            continue
        resolved = resolve(name, getattr(entry, name), at)
        if resolved is None:
            good = False
        elif resolved[1] not in by_name[name].labels:
            what = f"{resolved[1]!r} is not a value of the axis {name}"
            found.add(at, what, nearest(resolved[1], by_name[name].labels, listed="Values"))
            good = False
        else:
            pairs.append((by_name[name].name, resolved[1]))
    return tuple(pairs) if good else ()


def _refuse_idle(exclude: tuple[Cell, ...], found: Findings) -> None:
    """Notes an exclusion that another one covers: it excludes nothing, so it must be a slip."""
    for number, one in enumerate(exclude):
        for other_number, other in enumerate(exclude):
            contained = other and set(other) <= set(one) and (set(other) != set(one) or other_number < number)
            if other_number != number and contained:
                at = ("matrix", "exclude", number)
                first = found.place(("matrix", "exclude", other_number)).line
                found.add(at, "another exclusion covers this one", f"Remove it; see line {first}")
                break


def check_placements(matrix: Matrix, trials: tuple[TrialTemplate, ...], defaults: Defaults, found: Findings) -> None:
    """Notes places from which no sound reaches the device, and axes that a list of recordings has as columns."""
    for number, trial in enumerate(trials):
        columns = {name for one in trial.recording_facts for name, _ in one.traits}
        for axis in matrix.axes:
            if axis.name in PLACING and axis.name in columns:
                what = f"the recordings of {trial.id!r} have a column {axis.name!r}, which the matrix varies"
                found.add(("trials", number), what, f"Rename the column, to recorded_{axis.name} for example")
    said = any(trial.ambient is None or trial.ambient.probe is not None for trial in trials)
    values = {axis.name: dict(zip(axis.labels, axis.values, strict=True)) for axis in matrix.axes}
    refused: set[str] = set()
    for cell in cells(matrix) if said else ():
        placement = placement_of(defaults, {axis: values[axis][text] for axis, text in cell if axis in PLACING})
        if placement is not None:
            refuse_placement(placement, refused, found)


def refuse_placement(placement: Placement, refused: set[str], found: Findings) -> None:
    """Notes a place from which no sound reaches the device. refused: labels of those already noted."""
    if placement.problem and placement.label() not in refused and (placement.room.box or placement.room.recorded):
        refused.add(placement.label())
        what = f"{placement.label()}: {placement.problem}"
        remedy = "Correct the room, distance_m or angle_deg, or exclude the combination"
        found.add(("rooms", placement.room.id), what, remedy, key=True)


def check_openings(matrix: Matrix, trials: tuple[TrialTemplate, ...], defaults: Defaults, found: Findings) -> None:
    """Notes openings whose pause is too short to hear the device in it, and those that do not fit before a query."""
    axes = {axis.name: axis for axis in matrix.axes}
    noisy = any(axes["noise"].values) if "noise" in axes else defaults.noise is not None
    for number, trial in enumerate(trials):
        varied = "opening" in axes and "opening" in axes_of(trial)
        values = axes["opening"].values if varied else (trial.opening,)
        for at, opening in enumerate(values):
            if not isinstance(opening, Opening):
                continue
            above: KeyPath = ("matrix", "axes", "opening", at) if varied else ("trials", number, "opening")
            if trial.kind.asks and opening.then:
                what = f"{trial.id!r} is a query: the device answers where `then` would be said"
                found.add((*above, "then"), what, "Remove it; `close_dialogue` says something after the answer")
            if trial.kind.asks and not trial.wake:
                what = f"{trial.id!r} has no wake phrase, which an opening needs"
                found.add(above, what, "Remove `wake: false`, or exclude the opening")
            least_s = LEAST_PAUSE_S
            if noisy:
                least_s += NOISE_BEFORE_S if trial.kind.asks else trial.lead_in_s
            if opening.sounds and opening.pause_s < least_s:
                lead_in = ", and the noise begins before the phrase" if noisy else ""
                what = f"the pause is too short to hear the device in it{lead_in}"
                remedy = f"Write pause_s: {exact(least_s)} or more, or sounds: false"
                found.add((*above, "pause_s"), what, remedy)

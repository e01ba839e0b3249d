"""The matrix of a scenario: its axes, what it excludes, and the cells that are left."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product
from typing import cast

from harness.base.findings import Findings, KeyPath
from harness.model.errors import nearest
from harness.model.numbers import exact
from harness.model.scenario import (
    PLACING_AXES,
    Axis,
    AxisName,
    AxisValue,
    Defaults,
    Matrix,
    Order,
    TrialTemplate,
    axes_of,
    placement_of,
)
from harness.model.stimulus import QUIET, Band, NoiseSpec, Opening, Placement, RoomSpec, VoiceSpec
from harness.scenario.keys import ExcludeKeys, MatrixKeys

MAX_CELLS = 10_000
MIN_LISTENING_PAUSE_S = 1.5
"""The shortest pause of an opening, in seconds, in which the harness can hear the device."""
Cell = tuple[tuple[AxisName, str], ...]
LabelledValue = tuple[AxisValue, str]
Resolve = Callable[[str, object, KeyPath], LabelledValue | None]
"""Takes the name of an axis, a written value, and its path. Returns value and label; None after a noted problem."""


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


def read_matrix(keys: MatrixKeys, order: tuple[str, ...], resolve: Resolve, findings: Findings) -> Matrix:
    """The matrix; an empty one if it is too large. Notes problems in `findings`.

    order: names of the axes in the order in which they were written.
    """
    problem_count = len(findings.problems)
    axes = tuple(_read_axis(cast(AxisName, name), getattr(keys.axes, name) or [], resolve, findings) for name in order)
    if not axes:
        findings.add(("matrix", "axes"), "the matrix has no axes", "Add an axis, such as `level_dbfs: [-26, -36]`")
    if {"level_dbfs", "level_spl"} <= {axis.name for axis in axes}:
        findings.add(
            ("matrix", "axes", "level_spl"),
            "the matrix has both `level_dbfs` and `level_spl`",
            "Remove one of the two",
            key=True,
        )
    size = 1
    for axis in axes:
        size *= max(1, len(axis.values))
    if size > MAX_CELLS:
        findings.add(
            ("matrix", "axes"), f"the matrix has {size} cells", f"Shorten the axes; the maximum is {MAX_CELLS}"
        )
        return Matrix()
    exclude = tuple(
        _read_exclusion(entry, number, axes, resolve, findings) for number, entry in enumerate(keys.exclude)
    )
    _refuse_redundant(exclude, findings)
    group_by = _read_grouping(keys.group_by, axes, findings)
    if keys.seed is not None and keys.order is Order.LISTED:
        findings.add(
            ("matrix", "seed"), "trials in listed order need no seed", "Remove `seed`, or add `order: shuffled`"
        )
    matrix = Matrix(axes, tuple(cell for cell in exclude if cell), keys.order, keys.seed, group_by)
    if len(findings.problems) == problem_count and not cells(matrix):
        findings.add(("matrix", "exclude"), "the exclusions leave no combinations", "Remove an exclusion", key=True)
    return matrix


def cells(matrix: Matrix) -> tuple[Cell, ...]:
    """The cells to run in listed order, as (axis name, label) pairs in the order of the axes."""
    combinations = product(*([(axis.name, text) for text in axis.labels] for axis in matrix.axes))
    return tuple(cell for cell in combinations if not any(set(excluded) <= set(cell) for excluded in matrix.exclude))


def _read_grouping(names: list[str], axes: tuple[Axis, ...], findings: Findings) -> tuple[AxisName, ...]:
    axes_by_name = {axis.name: axis for axis in axes}
    for number, name in enumerate(names):
        key_path = ("matrix", "group_by", number)
        if name not in axes_by_name:
            findings.add(key_path, f"the matrix has no axis {name!r}", nearest(name, axes_by_name, listed="Axes"))
        elif name in names[:number]:
            findings.add(key_path, f"{name} is listed twice", "Remove one")
    return tuple(axes_by_name[name].name for name in dict.fromkeys(names) if name in axes_by_name)


def _read_axis(name: AxisName, entries: list[object], resolve: Resolve, findings: Findings) -> Axis:
    values: dict[str, AxisValue] = {}
    for number, entry in enumerate(entries):
        key_path = ("matrix", "axes", name, number)
        resolved = resolve(name, entry, key_path)
        if resolved is None:
            continue
        value, text = resolved
        if text in values:
            remedy = "Remove one"
            if values[text] != value and name == "voice":
                remedy = "Give the voices names under `voices:`"
            elif values[text] != value:
                remedy = "Remove one, or use a scenario for each: they would have the same label in tables"
            findings.add(key_path, f"the axis {name} lists {text!r} twice", remedy)
        values[text] = value
    return Axis(name, tuple(values.values()), tuple(values))


def _read_exclusion(
    entry: ExcludeKeys, number: int, axes: tuple[Axis, ...], resolve: Resolve, findings: Findings
) -> Cell:
    """One exclusion as (axis, label) pairs; () if there was a problem, which is noted. number: of the entry, from 0."""
    entry_path = ("matrix", "exclude", number)
    axes_by_name: Mapping[str, Axis] = {axis.name: axis for axis in axes}
    pairs: list[tuple[AxisName, str]] = []
    is_valid = True
    if not entry.model_fields_set:
        findings.add(entry_path, "the exclusion lists no axis", "List at least one axis, such as `{level_dbfs: -36}`")
    for name in ExcludeKeys.model_fields:
        if name not in entry.model_fields_set:
            continue
        key_path = (*entry_path, name)
        if name not in axes_by_name:
            findings.add(
                key_path, f"the matrix has no axis {name!r}", nearest(name, axes_by_name, listed="Axes"), key=True
            )
            is_valid = False
            continue
        resolved = resolve(name, getattr(entry, name), key_path)
        if resolved is None:
            is_valid = False
            continue
        _, text = resolved
        if text not in axes_by_name[name].labels:
            problem = f"{text!r} is not a value of the axis {name}"
            findings.add(key_path, problem, nearest(text, axes_by_name[name].labels, listed="Values"))
            is_valid = False
        else:
            pairs.append((axes_by_name[name].name, text))
    return tuple(pairs) if is_valid else ()


def _refuse_redundant(exclude: tuple[Cell, ...], findings: Findings) -> None:
    """Notes each exclusion that another one covers. It excludes nothing more, so it must be a mistake."""
    for number, cell in enumerate(exclude):
        for other_number, other in enumerate(exclude):
            # Of two equal exclusions, the second one is noted. An exclusion without axes has a problem already.
            is_covered = other and set(other) <= set(cell) and (set(other) != set(cell) or other_number < number)
            if other_number != number and is_covered:
                key_path = ("matrix", "exclude", number)
                first = findings.place(("matrix", "exclude", other_number)).line
                findings.add(
                    key_path,
                    "another exclusion covers this one",
                    f"Remove this exclusion; the other one is on line {first}",
                )
                break


def check_placements(matrix: Matrix, trials: tuple[TrialTemplate, ...], defaults: Defaults, findings: Findings) -> None:
    """Notes places from which no sound reaches the device, and axes that a list of recordings has as columns."""
    for number, trial in enumerate(trials):
        columns = {name for facts in trial.recording_facts for name, _ in facts.traits}
        for axis in matrix.axes:
            if axis.name in PLACING_AXES and axis.name in columns:
                problem = f"the recordings of {trial.id!r} have a column {axis.name!r}, which the matrix varies"
                findings.add(("trials", number), problem, f"Rename the column, for example to `recorded_{axis.name}`")
    has_speech = any(trial.ambient is None or trial.ambient.probe is not None for trial in trials)
    values = {axis.name: dict(zip(axis.labels, axis.values, strict=True)) for axis in matrix.axes}
    refused: set[str] = set()
    for cell in cells(matrix) if has_speech else ():
        placement = placement_of(defaults, {axis: values[axis][text] for axis, text in cell if axis in PLACING_AXES})
        if placement is not None:
            refuse_placement(placement, refused, findings)


def refuse_placement(placement: Placement, refused: set[str], findings: Findings) -> None:
    """Notes a place from which no sound reaches the device. refused: labels of those already noted."""
    if placement.problem and placement.label() not in refused and (placement.room.box or placement.room.recorded):
        refused.add(placement.label())
        problem = f"{placement.label()}: {placement.problem}"
        remedy = "Correct the room, `distance_m` or `angle_deg`, or exclude the combination"
        findings.add(("rooms", placement.room.id), problem, remedy, key=True)


def check_openings(matrix: Matrix, trials: tuple[TrialTemplate, ...], defaults: Defaults, findings: Findings) -> None:
    """Notes openings whose pause is too short to hear the device in it, and those that do not fit before a query."""
    axes = {axis.name: axis for axis in matrix.axes}
    noises = axes["noise"].values if "noise" in axes else (defaults.noise,)
    noise_before_s = max((noise.before_s for noise in noises if isinstance(noise, NoiseSpec)), default=0.0)
    for number, trial in enumerate(trials):
        is_varied = "opening" in axes and "opening" in axes_of(trial)
        values = axes["opening"].values if is_varied else (trial.opening,)
        for index, opening in enumerate(values):
            if not isinstance(opening, Opening):
                continue
            entry_path: KeyPath = ("matrix", "axes", "opening", index) if is_varied else ("trials", number, "opening")
            if trial.kind.asks and opening.then:
                problem = f"{trial.id!r} is a query: the device answers where `then` would be said"
                findings.add(
                    (*entry_path, "then"), problem, "Remove `then`; `close_dialogue` says something after the answer"
                )
            if trial.kind.asks and not trial.wake:
                problem = f"{trial.id!r} has no wake phrase, which an opening needs"
                findings.add(entry_path, problem, "Remove `wake: false` or the opening")
            min_pause_s = MIN_LISTENING_PAUSE_S
            if noise_before_s:
                min_pause_s += noise_before_s if trial.kind.asks else trial.lead_in_s
            if opening.sounds and opening.pause_s < min_pause_s:
                lead_in = ", since the noise begins before the phrase" if noise_before_s else ""
                problem = f"the pause is too short for the microphone to hear the device{lead_in}"
                remedy = f"Write `pause_s: {exact(min_pause_s)}` or more, or `sounds: false`"
                findings.add((*entry_path, "pause_s"), problem, remedy)

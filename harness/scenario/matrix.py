"""The matrix of a scenario: axes with labels, and what is left out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product
from typing import cast

from harness.base.findings import Findings, Path, nearest
from harness.model.scenario import Axis, AxisName, AxisValue, Matrix
from harness.model.stimulus import QUIET, NoiseSpec, VoiceSpec
from harness.scenario.scenario_file import ExcludeKeys, MatrixKeys

MAX_CELLS = 10_000
Cell = tuple[tuple[str, str], ...]
Labelled = tuple[AxisValue, str]
Resolve = Callable[[str, object, Path], Labelled | None]
"""Axis name, written value and its path → value and label; None when there was a problem, which was noted."""


def label(value: AxisValue) -> str:
    """What tables show for a value of an axis."""
    match value:
        case None:
            return QUIET
        case VoiceSpec() | NoiseSpec():
            return value.label()
        case float() | int():
            return f"{value:g}"
        case str():
            return value


def read_matrix(keys: MatrixKeys, order: tuple[str, ...], resolve: Resolve, found: Findings) -> Matrix:
    """The matrix; `order` is the order in which the axes were written. Problems are noted in `found`."""
    before = len(found.problems)
    axes = tuple(_axis(cast(AxisName, name), getattr(keys.axes, name) or [], resolve, found) for name in order)
    if not axes:
        found.add(("matrix", "axes"), "the matrix has no axes", "Add one, such as `level_dbfs: [-26, -36]`")
    size = 1
    for axis in axes:
        size *= max(1, len(axis.values))
    if size > MAX_CELLS:
        found.add(("matrix", "axes"), f"the matrix has {size} cells", f"Shorten the axes: at most {MAX_CELLS} are run")
        return Matrix()
    exclude = tuple(_excluded(entry, number, axes, resolve, found) for number, entry in enumerate(keys.exclude))
    _refuse_idle(exclude, found)
    matrix = Matrix(axes, tuple(cell for cell in exclude if cell), keys.order, keys.seed)
    if len(found.problems) == before and not cells(matrix):
        found.add(("matrix", "exclude"), "everything is excluded: no cell is left", "Exclude less", key=True)
    return matrix


def cells(matrix: Matrix) -> tuple[Cell, ...]:
    """The cells that are run, as (axis name, label) pairs in the order of the axes, in listed order."""
    every = product(*([(axis.name, text) for text in axis.labels] for axis in matrix.axes))
    return tuple(cell for cell in every if not any(set(out) <= set(cell) for out in matrix.exclude))


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
    pairs: list[tuple[str, str]] = []
    good = True
    if not entry.model_fields_set:
        found.add(above, "an exclusion names no axis", "Name at least one, such as {level_dbfs: -36}")
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
            what = f"{resolved[1]!r} is no value of the axis {name}"
            found.add(at, what, nearest(resolved[1], by_name[name].labels, listed="Values"))
            good = False
        else:
            pairs.append((name, resolved[1]))
    return tuple(pairs) if good else ()


def _refuse_idle(exclude: tuple[Cell, ...], found: Findings) -> None:
    """An exclusion that another one contains excludes nothing by itself: a slip of whoever wrote it."""
    for number, one in enumerate(exclude):
        for other_number, other in enumerate(exclude):
            contained = other and set(other) <= set(one) and (set(other) != set(one) or other_number < number)
            if other_number != number and contained:
                at = ("matrix", "exclude", number)
                first = found.place(("matrix", "exclude", other_number)).line
                found.add(at, "this is excluded already", f"Remove it; line {first} excludes it")
                break

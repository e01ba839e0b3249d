"""Queries parted by device, class, condition or attempts, or by two of these at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from harness.model.choices import CONDITIONS as CONDITIONS
from harness.model.choices import PARTINGS as PARTINGS
from harness.model.choices import By as By
from harness.model.choices import Parting
from harness.rating.figures.categories import CategoryFigures, figures_of
from harness.rating.figures.rated_trials import RatedTrial
from harness.session.figures.heard import label_of
from harness.transcripts.groups import sorted_labels

MANY_ATTEMPTS = "3 or more"
NEVER = ""


def label_by(one: RatedTrial, by: By) -> str:
    """The label of a query; "" where it has none."""
    match by:
        case Parting.DEVICE:
            return one.trial.device
        case Parting.CLASS:
            return one.trial.query_class
        case Parting.QUERY:
            return one.trial.query_id
        case Parting.SESSION:
            return one.session_id
        case Parting.ATTEMPTS:
            needed = one.attempts
            return NEVER if needed is None else str(needed) if needed < 3 else MANY_ATTEMPTS
        case _:
            return label_of(one.trial, one.trial.device, by)


def grouped(trials: Iterable[RatedTrial], by: By) -> tuple[tuple[str, tuple[RatedTrial, ...]], ...]:
    """Label → queries; labels sorted, numbers by size, "" last."""
    groups: dict[str, list[RatedTrial]] = {}
    for one in trials:
        groups.setdefault(label_by(one, by), []).append(one)
    return tuple((name, tuple(groups[name])) for name in sorted_labels(list(groups)))


@dataclass(frozen=True, slots=True)
class CrossedFigures:
    """Queries by two partings at once. cells: by rows, then columns; None where there is no query."""

    by: tuple[By, By]
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: tuple[tuple[CategoryFigures | None, ...], ...]


def crossed(trials: Sequence[RatedTrial], first: By, second: By) -> CrossedFigures:
    """The figures of each pair of labels."""
    rows = [label for label, _ in grouped(trials, first)]
    columns = [label for label, _ in grouped(trials, second)]
    pairs: dict[tuple[str, str], list[RatedTrial]] = {}
    for one in trials:
        pairs.setdefault((label_by(one, first), label_by(one, second)), []).append(one)
    cells = tuple(
        tuple(figures_of(pairs[row, column]) if (row, column) in pairs else None for column in columns) for row in rows
    )
    return CrossedFigures((first, second), tuple(rows), tuple(columns), cells)

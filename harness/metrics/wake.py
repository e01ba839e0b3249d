"""Wake events against stimuli: which event is which stimulus's, and which is nobody's. Pure; times in seconds.

All times are on one line (the host's clock, or the audio that a device was given) and in ascending order.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import min_weight_full_bipartite_matching


@dataclass(frozen=True, slots=True)
class Window:
    """Where an event may lie to be a stimulus's, ends included; near_s: where it is expected, the end of the phrase."""

    start_s: float
    end_s: float
    near_s: float

    def __post_init__(self) -> None:
        if not self.start_s <= self.end_s:
            raise ValueError(f"a window cannot go from {self.start_s} to {self.end_s}")


@dataclass(frozen=True, slots=True)
class Matching:
    """Indices of windows and events. pairs: (window, event), ascending. same: further event → the event it is part of.

    Every event is in exactly one of pairs, unmatched and same.
    """

    pairs: tuple[tuple[int, int], ...] = ()
    missed: tuple[int, ...] = ()
    unmatched: tuple[int, ...] = ()
    same: tuple[tuple[int, int], ...] = ()


def match_events(windows: Sequence[Window], events_s: Sequence[float], refractory_s: float) -> Matching:
    """Merges events within the refractory time, then matches the rest one to one with windows.

    As many pairs as there can be, and of those choices the one with the least total distance from `near_s`. Windows
    in the order of their starts, events of theirs. ValueError when they are not.
    """
    starts = [window.start_s for window in windows]
    if starts != sorted(starts) or any(a > b for a, b in pairwise(events_s)):
        raise ValueError("windows and events are to be in the order of their times")
    kept, same = merge(windows, events_s, refractory_s)
    pairs = _pairs(windows, [(index, events_s[index]) for index in kept])
    matched = {event for _, event in pairs}
    heard = {window for window, _ in pairs}
    return Matching(
        pairs=pairs,
        missed=tuple(index for index in range(len(windows)) if index not in heard),
        unmatched=tuple(index for index in kept if index not in matched),
        same=same,
    )


def merge(
    windows: Sequence[Window], events_s: Sequence[float], refractory_s: float
) -> tuple[list[int], tuple[tuple[int, int], ...]]:
    """Events that stand for themselves, and (further event, the one that it is part of).

    An event within `refractory_s` of the last that stands is part of it, unless it lies in a stimulus's window that
    the other lies before: a spot in the lead-in does not hide the one of the phrase. The first event always stands,
    and the time counts from the event that stands, so a stuck device goes on being counted.
    """
    starts = [window.start_s for window in windows]
    kept: list[int] = []
    same: list[tuple[int, int]] = []
    for index, at_s in enumerate(events_s):
        if kept and at_s - events_s[kept[-1]] < refractory_s:
            opened = range(bisect_right(starts, events_s[kept[-1]]), bisect_right(starts, at_s))
            if not any(windows[number].end_s >= at_s for number in opened):
                same.append((index, kept[-1]))
                continue
        kept.append(index)
    return kept, tuple(same)


def _pairs(windows: Sequence[Window], events: Sequence[tuple[int, float]]) -> tuple[tuple[int, int], ...]:
    """(window, event) of the best matching; events: (index, time)."""
    times = [at_s for _, at_s in events]
    rows: list[int] = []
    columns: list[int] = []
    costs: list[float] = []
    for row, window in enumerate(windows):
        for column in range(bisect_left(times, window.start_s), bisect_right(times, window.end_s)):
            rows.append(row)
            columns.append(column)
            costs.append(abs(times[column] - window.near_s))
    if not rows:
        return ()
    contested = _contested(rows, columns)
    pairs = [(rows[edge], columns[edge]) for edge, open_ in enumerate(contested) if not open_]
    edges = [edge for edge, open_ in enumerate(contested) if open_]
    if edges:
        pairs += _assign(
            [rows[edge] for edge in edges], [columns[edge] for edge in edges], [costs[edge] for edge in edges]
        )
    return tuple(sorted((row, events[column][0]) for row, column in pairs))


def _contested(rows: Sequence[int], columns: Sequence[int]) -> list[bool]:
    """For each edge: does its window or its event have another one? The others need no search."""
    of_row, of_column = np.bincount(rows), np.bincount(columns)
    return [bool(of_row[row] > 1 or of_column[column] > 1) for row, column in zip(rows, columns, strict=True)]


def _assign(rows: Sequence[int], columns: Sequence[int], costs: Sequence[float]) -> list[tuple[int, int]]:
    """Maximum matching of least total cost. Each row gets a column of its own as a way out, dearer than all else."""
    row_of = {row: index for index, row in enumerate(dict.fromkeys(rows))}
    column_of = {column: index for index, column in enumerate(sorted(set(columns)))}
    n, m = len(row_of), len(column_of)
    # Costs must not be 0, which a sparse matrix takes for "no edge".
    way_out = (max(costs) + 1.0) * (n + 1)
    graph = csr_array(
        (
            np.concatenate([np.asarray(costs) + 1.0, np.full(n, way_out)]),
            (
                np.concatenate([[row_of[row] for row in rows], np.arange(n)]),
                np.concatenate([[column_of[column] for column in columns], m + np.arange(n)]),
            ),
        ),
        shape=(n, m + n),
    )
    found_rows, found_columns = min_weight_full_bipartite_matching(graph)
    names, places = list(row_of), list(column_of)
    return [(names[row], places[column]) for row, column in zip(found_rows, found_columns, strict=True) if column < m]

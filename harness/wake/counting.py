"""Matches wake events with stimuli, without I/O; times in seconds.

All times are on one time line (the host's clock, or the samples sent to a device) and in ascending order.

1. `_merge`: an event within the refractory time of the last separate event is part of that one.
2. `_pairs`: as many windows as possible get a separate event each. Of the matchings with that many pairs, the one with
   the least total distance from `near_s` counts. Windows of which none lies within another are matched by dynamic
   programming (`_match_in_order`), others as an assignment problem (`_assign`).
3. A window without an event was missed, and a separate event without a window is unmatched.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence

import numpy as np

from harness.base.refractory import is_within_refractory
from harness.model.frozen import frozen


@frozen
class Window:
    """The window in which a stimulus's event may lie, ends included. near_s: expected time, the end of the phrase."""

    start_s: float
    end_s: float
    near_s: float

    def __post_init__(self) -> None:
        if not self.start_s <= self.end_s:
            raise ValueError(f"a window cannot go from {self.start_s} to {self.end_s}")


@frozen
class Matching:
    """The result of a matching, as indices of windows and events.

    Every event is in exactly one of pairs, unmatched and repeats.

    - pairs: (window, event), ascending.
    - missed: windows without an event.
    - unmatched: events without a window.
    - repeats: (further event, the event that it is part of); -1 is the event before all of these.
    """

    pairs: tuple[tuple[int, int], ...] = ()
    missed: tuple[int, ...] = ()
    unmatched: tuple[int, ...] = ()
    repeats: tuple[tuple[int, int], ...] = ()


def match_events(
    windows: Sequence[Window],
    events_s: Sequence[float],
    refractory_s: float | Sequence[float],
    *,
    others: Sequence[Window] = (),
    before_s: float = -math.inf,
) -> Matching:
    """Merges events within the refractory time, then matches the rest one to one with windows.

    It forms as many pairs as possible. Among equal choices it takes the least total distance from `near_s`. Windows
    must be ordered by their starts, events by time; else ValueError.

    - refractory_s: one refractory time for all events, or one for each.
    - others: windows of further stimuli, whose events are kept separate too.
    - before_s: time of the last separate event before all of these.
    """
    starts = [window.start_s for window in windows]
    if starts != sorted(starts) or list(events_s) != sorted(events_s):
        raise ValueError("windows and events must be in chronological order")
    refractory_times_s = [refractory_s] * len(events_s) if isinstance(refractory_s, int | float) else refractory_s
    all_windows = sorted((*windows, *others), key=lambda window: window.start_s) if others else windows
    separate, repeats = _merge(all_windows, events_s, refractory_times_s, before_s)
    pairs = _pairs(windows, [(index, events_s[index]) for index in separate])
    matched_events = {event for _, event in pairs}
    hit_windows = {window for window, _ in pairs}
    return Matching(
        pairs=pairs,
        missed=tuple(index for index in range(len(windows)) if index not in hit_windows),
        unmatched=tuple(index for index in separate if index not in matched_events),
        repeats=repeats,
    )


def merge_sources(events: Sequence[tuple[int, float]], within_s: float) -> tuple[tuple[int, ...], ...]:
    """Groups reports of different sources that are one event. Returns their indices, in the order of the ranks.

    events: (rank of the source, in the order of the bench; time in s that it reported).
    Events of the first source are matched one to one with those of the next, at most `within_s` apart, ends included.
    As many pairs as possible are formed, with the least total distance. A report without a match is a separate event,
    which those of later sources may match. The groups depend neither on the order of the events nor of their arrival.
    """
    groups: list[list[int]] = []
    times_s = [at_s for _, at_s in events]
    for rank in sorted({rank for rank, _ in events}):
        new = sorted((index for index, event in enumerate(events) if event[0] == rank), key=times_s.__getitem__)
        starts = [times_s[group[0]] for group in groups]
        windows = [Window(at_s - within_s, at_s + within_s, at_s) for at_s in starts]
        pairs = _pairs(windows, [(index, times_s[index]) for index in new])
        for group, index in pairs:
            groups[group].append(index)
        matched_indices = {index for _, index in pairs}
        groups += [[index] for index in new if index not in matched_indices]
        groups.sort(key=lambda group: times_s[group[0]])
    return tuple(map(tuple, groups))


def _merge(
    windows: Sequence[Window], events_s: Sequence[float], refractory_s: Sequence[float], before_s: float
) -> tuple[list[int], tuple[tuple[int, int], ...]]:
    """The separate events, and pairs (further event, the event that it is part of).

    An event within the refractory time of the last separate event is part of that one. It is not if it lies in the
    window of a stimulus, and the last one before that window. So an event in the lead-in does not hide the phrase's.
    The refractory time runs from the separate event, so a device that keeps reporting adds new events.
    """
    starts = [window.start_s for window in windows]
    separate: list[int] = []
    repeats: list[tuple[int, int]] = []
    owner, owner_s = -1, before_s
    for index, at_s in enumerate(events_s):
        if is_within_refractory(at_s, owner_s, refractory_s[index]):
            begun_windows = windows[bisect_right(starts, owner_s) : bisect_right(starts, at_s)]
            if not begun_windows or all(window.end_s < at_s for window in begun_windows):
                repeats.append((index, owner))
                continue
        separate.append(index)
        owner, owner_s = index, at_s
    return separate, tuple(repeats)


def _pairs(windows: Sequence[Window], events: Sequence[tuple[int, float]]) -> tuple[tuple[int, int], ...]:
    """The pairs (window, event) of the best matching. events: (index, time)."""
    times = [at_s for _, at_s in events]
    ranges = [(bisect_left(times, window.start_s), bisect_right(times, window.end_s)) for window in windows]
    ends = [window.end_s for window in windows]
    nears = [window.near_s for window in windows]
    if ends == sorted(ends) and nears == sorted(nears):
        pairs = _match_in_order(ranges, times, nears)
    else:
        edges = [
            (row, column, abs(times[column] - nears[row]))
            for row, (first, last) in enumerate(ranges)
            for column in range(first, last)
        ]
        pairs = _assign(edges)
    return tuple(sorted((row, events[column][0]) for row, column in pairs))


_NO_WINDOW, _PAIR, _NO_EVENT = range(3)
"""Choices for a window and an event: to leave out the window, to pair both, to leave out the event."""


def _match_in_order(
    ranges: Sequence[tuple[int, int]], times: Sequence[float], nears: Sequence[float]
) -> list[tuple[int, int]]:
    """The best matching if no window lies within another: one then exists whose pairs do not cross.

    ranges: for each window, the events [first, last) that it may have. Time and memory are proportional to their sizes.
    """
    # The best matching of the windows so far with the first j events: its number of pairs, and their cost.
    count = [0] * (len(times) + 1)
    cost = [0.0] * (len(times) + 1)
    # The choices of the best matching so far, for each window and each event of its range.
    choices: list[bytearray] = []
    filled = 0
    for row, (first, last) in enumerate(ranges):
        for event in range(filled, last):  # new for this window
            count[event + 1], cost[event + 1] = count[event], cost[event]
        filled = max(filled, last)
        choice = bytearray(last - first)
        before_count, before_cost = count[first], cost[first]
        for event in range(first, last):
            pair = before_count + 1, before_cost + abs(times[event] - nears[row])
            before_count, before_cost = count[event + 1], cost[event + 1]
            # Alternatives: no pair for this window among these events, or an earlier one of them.
            best_without = min((-count[event + 1], cost[event + 1]), (-count[event], cost[event]))
            if (-pair[0], pair[1]) < best_without:
                choice[event - first] = _PAIR
                count[event + 1], cost[event + 1] = pair
            else:
                is_better_without_event = (-count[event], cost[event]) < (-count[event + 1], cost[event + 1])
                choice[event - first] = _NO_EVENT if is_better_without_event else _NO_WINDOW
                count[event + 1], cost[event + 1] = -best_without[0], best_without[1]
        choices.append(choice)
    return list(_trace_pairs(ranges, choices, len(times)))


def _trace_pairs(
    ranges: Sequence[tuple[int, int]], choices: Sequence[bytearray], events: int
) -> Iterator[tuple[int, int]]:
    """The pairs of the best matching, traced from the end. events: number of events."""
    upper_end = events
    for row in range(len(ranges) - 1, -1, -1):
        first, last = ranges[row]
        event = min(upper_end, last) - 1
        while event >= first and choices[row][event - first] == _NO_EVENT:
            event -= 1
        if event >= first and choices[row][event - first] == _PAIR:
            yield row, event
            upper_end = event
        elif upper_end > event + 1 and event + 1 < last:
            upper_end = event + 1


def _assign(edges: Sequence[tuple[int, int, float]]) -> list[tuple[int, int]]:
    """The maximum matching with the least total cost. edges: (row, column, cost).

    Each row gets a separate column for "no pair", which costs more than any edge.
    """
    if not edges:
        return []
    rows, columns, costs = zip(*edges, strict=True)
    row_of = {row: index for index, row in enumerate(sorted(set(rows)))}
    column_of = {column: index for index, column in enumerate(sorted(set(columns)))}
    row_count, column_count = len(row_of), len(column_of)
    # "No pair" costs more than all edges together, so that no pair is given up for a lower cost. Each cost is raised by
    # 1, since a sparse matrix reads a cost of 0 as "no edge".
    no_pair_cost = (max(costs) + 1.0) * (row_count + 1)
    from scipy.sparse import csr_array  # imported here because it is slow
    from scipy.sparse.csgraph import min_weight_full_bipartite_matching

    graph = csr_array(
        (
            np.concatenate([np.asarray(costs) + 1.0, np.full(row_count, no_pair_cost)]),
            (
                np.concatenate([[row_of[row] for row in rows], np.arange(row_count)]),
                np.concatenate([[column_of[column] for column in columns], column_count + np.arange(row_count)]),
            ),
        ),
        shape=(row_count, column_count + row_count),
    )
    chosen_rows, chosen_columns = min_weight_full_bipartite_matching(graph)
    row_names, column_names = list(row_of), list(column_of)
    return [
        (row_names[row], column_names[column])
        for row, column in zip(chosen_rows, chosen_columns, strict=True)
        if column < column_count
    ]

"""Change points in a series of sessions: scans of all splits and stretches, judged by permuting whole sessions.

Sessions are permuted as wholes, since trials of one session have much in common (room, noise, build). Without a change
the sessions must be exchangeable: of about the same size, and without a slow drift. A drift is reported as a change.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy
from scipy.stats import rankdata

from harness.model.frozen import frozen
from harness.statistics.intervals import CONFIDENCE
from harness.statistics.significance import holm

MIN_SESSIONS_PER_SIDE = 3
"""Least number of sessions before and after a change. A single bad night is not a change."""
MIN_SESSIONS = 8
"""With fewer sessions, p cannot fall below 0.05: there are only 35 ways to choose 3 of 7."""
ORDERS = 4_999
"""Number of random orders of the sessions. The real order counts as one more, so the least p is 1/5000."""
SEED = 1
"""Any fixed seed: the same sessions then give the same changes."""
_GRID = 40
"""In random orders, stretches begin and end at no more than about this many places, evenly spaced."""
_BLOCK_CELLS = 4_000_000
"""Most values in memory at once: orders times sessions or stretches."""

Table = NDArray[np.float64]
Positions = NDArray[np.intp]


class Scan(StrEnum):
    """How sides are compared. SHARE: by the binomial likelihood of counts out of totals. RATE: by the Poisson
    likelihood of counts in exposures. RANK: by the ranks of values."""

    SHARE = "share"
    RATE = "rate"
    RANK = "rank"


@frozen
class SeriesToScan:
    """A series with one entry for each session, in their order.

    - counts: numerators, or with RANK the values.
    - totals: denominators or exposures, all above 0; not used with RANK.
    """

    scan: Scan
    counts: tuple[float, ...]
    totals: tuple[float, ...]


@frozen
class ChangePoint:
    """A change.

    - at: index of the first session after it, from 0.
    - p_holm: p-value, corrected for all series.
    """

    at: int
    p_holm: float


@frozen
class SeriesScan:
    """The changes of one series, in their order.

    - p: p-value of the best split or stretch of the whole series; None with fewer than 8 sessions.
    - p_holm: the same, corrected for all series.
    """

    changes: tuple[ChangePoint, ...] = ()
    p: float | None = None
    p_holm: float | None = None


def scan_series(series: Sequence[SeriesToScan]) -> tuple[SeriesScan, ...]:
    """The change points of each series, by segmentation. The same numbers give the same answer.

    The two sides of every split are compared. So are the inside and the outside of every stretch, because no split
    shows a few bad nights between good ones. The p of the best of them is corrected for the number of series (Holm). If
    it is significant, its parts are scanned too. Their p is multiplied by the number of series, and by the length of
    the series over that of the part. It is never below that of the cut above, which bounds the number of false change
    points over all levels. Finally, a change point is removed if the two parts beside it do not differ by themselves.
    Sources: Scott & Knott, Biometrics 30 (1974), for splits. Olshen et al., Biostatistics 5 (2004), for stretches.
    Pettitt, Applied Statistics 28 (1979), for ranks. Meinshausen, Biometrika 95 (2008), for the levels.
    """
    best_cuts = [_best_cut(session_series, 0, len(session_series.counts)) for session_series in series]
    corrected = holm([None if best_cut is None else best_cut[1] for best_cut in best_cuts])
    test_count = sum(best_cut is not None for best_cut in best_cuts)
    scans = []
    for session_series, best_cut, p_holm in zip(series, best_cuts, corrected, strict=True):
        if best_cut is None or p_holm is None:
            scans.append(SeriesScan())
            continue
        cut, p = best_cut
        points = _change_points(session_series, cut, p_holm, test_count) if p_holm < 1 - CONFIDENCE else {}
        changes = tuple(ChangePoint(session, points[session]) for session in sorted(points))
        scans.append(SeriesScan(changes, p, p_holm))
    return tuple(scans)


def _change_points(series: SeriesToScan, cut: Sequence[int], p_holm: float, test_count: int) -> dict[int, float]:
    """The changes of a series whose best cut (with p_holm) is significant, by session, each with its corrected p.
    test_count: number of series that are tested."""
    length = len(series.counts)
    points = dict.fromkeys(cut, p_holm)
    parts = [(*part, p_holm) for part in pairwise((0, *cut, length))]
    while parts:
        start, end, p_above = parts.pop()
        inner = _best_cut(series, start, end)
        p = 1.0 if inner is None else max(p_above, inner[1] * test_count * length / (end - start))
        if inner is not None and p < 1 - CONFIDENCE:
            points |= dict.fromkeys(inner[0], p)
            parts += [(*part, p) for part in pairwise((start, *inner[0], end))]
    while points:  # removes changes without a difference between the parts beside them, the least significant first
        edges = [0, *sorted(points), length]
        p_values = {
            point: _best_stretch(series, start, end, [(np.array([0]), np.array([point - start]))] * 2)[1]
            for start, point, end in zip(edges, edges[1:], edges[2:], strict=False)
        }
        weakest = max(p_values, key=lambda point: p_values[point])
        if p_values[weakest] < 1 - CONFIDENCE:
            break
        del points[weakest]
    return points


def _best_cut(series: SeriesToScan, start: int, end: int) -> tuple[tuple[int, ...], float] | None:
    """The best cut of the sessions from `start` to `end`, and its p. A cut is given by the first session after each of
    its changes (one for a split, two for a stretch). None if there are too few sessions."""
    length = end - start
    if length < MIN_SESSIONS:
        return None
    splits = np.arange(MIN_SESSIONS_PER_SIDE, length - MIN_SESSIONS_PER_SIDE + 1)
    # Each with the stretches that are compared, and those that are compared in random orders.
    candidates = [((np.zeros_like(splits), splits),) * 2]
    if length >= 3 * MIN_SESSIONS_PER_SIDE:
        coarse = splits[:: -(-len(splits) // _GRID)]  # rounded up
        candidates.append((_stretches(splits), _stretches(coarse)))
    cuts = [_best_stretch(series, start, end, positions) for positions in candidates]
    # If both have the same p, takes the split: it is simpler.
    cut, p = min(cuts, key=lambda candidate: candidate[1])
    # A split is the stretch from 0.
    return tuple(start + position for position in cut if position), min(1.0, p * len(cuts))


def _stretches(positions: Positions) -> tuple[Positions, Positions]:
    """Where each stretch between two positions begins and ends, if it has enough sessions."""
    first, second = np.triu_indices(len(positions), 1)
    is_long_enough = positions[second] - positions[first] >= MIN_SESSIONS_PER_SIDE
    return positions[first][is_long_enough], positions[second][is_long_enough]


def _best_stretch(
    series: SeriesToScan, start: int, end: int, candidates: Sequence[tuple[Positions, Positions]]
) -> tuple[tuple[int, int], float]:
    """The best stretch (from, to) among the first of `candidates`. Its p is that of the best among the second, which
    may be fewer, since all of them are compared in every random order."""
    length = end - start
    counts, totals = (np.asarray(column[start:end], np.float64) for column in (series.counts, series.totals))
    if series.scan is Scan.RANK:
        counts, totals = rankdata(counts) - (length + 1) / 2, np.ones(length)
    best = int(_contrasts(series.scan, counts[None], totals[None], *candidates[0])[0].argmax())
    statistic = float(_contrasts(series.scan, counts[None], totals[None], *candidates[1]).max())
    statistic -= 1e-9 * max(1.0, abs(statistic))  # sums in another order may differ in their last digits
    rng = np.random.default_rng(SEED)
    as_far, orders_left = 0, ORDERS
    while orders_left:
        rows = min(orders_left, max(1, _BLOCK_CELLS // max(length, len(candidates[1][0]))))
        orders = rng.permuted(np.tile(np.arange(length), (rows, 1)), axis=1)
        as_far += int(
            (_contrasts(series.scan, counts[orders], totals[orders], *candidates[1]).max(axis=1) >= statistic).sum()
        )
        orders_left -= rows
    return (int(candidates[0][0][best]), int(candidates[0][1][best])), (1 + as_far) / (1 + ORDERS)


def _contrasts(scan: Scan, counts: Table, totals: Table, first: Positions, second: Positions) -> Table:
    """How far stretches differ from the rest: log likelihoods, or squared rank sums, shape (orders, stretches).

    - counts, totals: shape (orders, n).
    - first, second: where each stretch begins and ends. Terms that are the same for every order are left out.
    """
    sums, total_sums = (np.pad(column.cumsum(axis=1), ((0, 0), (1, 0))) for column in (counts, totals))
    inside, inside_total = sums[:, second] - sums[:, first], total_sums[:, second] - total_sums[:, first]
    outside, outside_total = sums[:, -1:] - inside, total_sums[:, -1:] - inside_total
    if scan is Scan.RANK:
        return np.asarray(inside**2 / (inside_total * outside_total))
    log_likelihoods = xlogy(inside, inside / inside_total) + xlogy(outside, outside / outside_total)
    if scan is Scan.SHARE:
        log_likelihoods += xlogy(inside_total - inside, 1 - inside / inside_total) + xlogy(
            outside_total - outside, 1 - outside / outside_total
        )
    return np.asarray(log_likelihoods)

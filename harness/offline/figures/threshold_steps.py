"""Counts as functions of a threshold: steps that are added up over many files, exact at every threshold that is asked.

`spans` turns a track of scores into what each score would be a spot for: all thresholds at once, in one pass.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from harness.model.offline import ScoreTrack

Scores = npt.NDArray[np.float32]
MOST_VALUES = 2_000_000
"""Distinct values up to which every one is kept; with more, thresholds are those of a grid."""
_PENDING = 1_000_000


@dataclass(frozen=True, slots=True, eq=False)
class Spans:
    """Thresholds for which scores begin a spot: score `index[k]` does for low[k] ≤ threshold < high[k]; shape (n,)."""

    low: Scores
    high: Scores
    index: npt.NDArray[np.intp]


def spans(track: ScoreTrack, refractory_samples: int) -> Spans:
    """For which thresholds each score begins a spot, by the rule of `harness.offline.figures.spots`.

    It is above the threshold itself, and the largest of those within the refractory time before is not.
    """
    from scipy.ndimage import maximum_filter1d  # here, since it takes long to import

    scores = track.scores
    before = math.ceil(max(refractory_samples / track.step, 1 + 1e-9)) - 1
    largest = np.full(len(scores), -np.inf, np.float32)
    if len(scores) > 1:
        # The window of score i is [i − before, i): of the scores moved by one, its last `before`.
        maximum_filter1d(
            scores[:-1], before, output=largest[1:], mode="constant", cval=-np.inf, origin=(before - 1) // 2
        )
    index = np.flatnonzero(scores > largest)
    return Spans(largest[index], scores[index], index)


def joined(low: Scores, high: Scores) -> tuple[Scores, Scores]:
    """Where at least one of the spans lies: spans that do not touch, from the lowest."""
    order = np.argsort(low, kind="stable")
    low, high = low[order], np.maximum.accumulate(high[order])
    fresh = np.ones(len(low), dtype=bool)
    np.greater(low[1:], high[:-1], out=fresh[1:])
    begins = np.flatnonzero(fresh)
    return low[begins], high[np.append(begins[1:], len(low)) - 1] if len(low) else high


class Grid:
    """Thresholds that steps are kept at once there are too many: `exact`, and others evenly in log odds between."""

    def __init__(self, exact: Scores, size: int = 40_000) -> None:
        odds = np.linspace(-14, 14, size)
        self.values: Scores = np.unique(np.concatenate([exact, (1 / (1 + np.exp(-odds))).astype(np.float32)]))

    def up(self, values: Scores) -> Scores:
        """The least threshold of the grid that is not below: what is counted at the grid's thresholds stays exact."""
        place = np.searchsorted(self.values, values, side="left")
        found: Scores = np.append(self.values, np.float32(np.inf))[place]
        return found


class Steps:
    """A whole-numbered function of the threshold, the sum of what was added; memory bounded by MOST_VALUES."""

    def __init__(self, grid: Grid, most: int = MOST_VALUES) -> None:
        self._grid, self._most = grid, most
        self._values = np.zeros(0, np.float32)
        self._deltas = np.zeros(0, np.int64)
        self._new: list[tuple[Scores, npt.NDArray[np.int64]]] = []
        self._pending = 0
        self.coarse = False
        """Were values given up? Then it is exact at the thresholds of the grid alone."""

    def add(self, low: Scores, high: Scores, weight: int = 1) -> None:
        """Adds `weight` for low[k] ≤ threshold < high[k], for every k."""
        if not len(low) or not weight:
            return
        values = np.concatenate([low, high])
        deltas = np.full(len(values), weight, np.int64)
        deltas[len(low) :] = -weight
        self._new.append((values, deltas))
        self._pending += len(values)
        if self._pending >= _PENDING:
            self._settle()

    def values(self) -> Scores:
        """Where it changes, ascending; may hold −inf and inf."""
        self._settle()
        return self._values

    def at(self, thresholds: Scores) -> npt.NDArray[np.int64]:
        """Its value at each threshold, shape (n,)."""
        self._settle()
        sums = np.concatenate([np.zeros(1, np.int64), np.cumsum(self._deltas)])
        found: npt.NDArray[np.int64] = sums[np.searchsorted(self._values, thresholds, side="right")]
        return found

    def _settle(self) -> None:
        if not self._new:
            return
        values = np.concatenate([self._values, *(one for one, _ in self._new)])
        deltas = np.concatenate([self._deltas, *(one for _, one in self._new)])
        self._new, self._pending = [], 0
        self._sum(self._grid.up(values) if self.coarse else values, deltas)
        if len(self._values) > self._most and not self.coarse:
            self.coarse = True
            self._sum(self._grid.up(self._values), self._deltas)

    def _sum(self, values: Scores, deltas: npt.NDArray[np.int64]) -> None:
        order = np.argsort(values, kind="stable")
        values, deltas = values[order], deltas[order]
        begins = np.flatnonzero(np.append(True, values[1:] != values[:-1])) if len(values) else np.zeros(0, np.intp)
        sums = np.add.reduceat(deltas, begins) if len(begins) else np.zeros(0, np.int64)
        kept = sums != 0
        self._values, self._deltas = values[begins][kept], sums[kept]

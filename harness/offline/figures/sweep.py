"""Counts of an offline evaluation at every threshold at once, from scores, by the rulings that the log counts by."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from harness.model.errors import InputError
from harness.model.offline import Counting, FileOutcome, LeadInRef, ListKind, OperatingPoint, ScoreTrack, SpotRule
from harness.offline.figures.det import Det
from harness.offline.figures.threshold_steps import MOST_VALUES, Grid, Scores, Spans, Steps, joined, spans
from harness.offline.figures.verdicts import judged

Samples = npt.NDArray[np.int64]


class Sweep:
    """Takes files with their scores, one by one, and then tells the counts at any thresholds.

    rule: refractory time and length of a spot; its threshold plays no part. points: operating points, at which the
    counts are exact however many files there are; so they are at all thresholds up to two million distinct scores,
    and on a grid of forty thousand with more.
    """

    def __init__(
        self, counting: Counting, rule: SpotRule, points: Iterable[OperatingPoint] = (), most: int = MOST_VALUES
    ) -> None:
        self.counting, self.rule = counting, rule
        self.points = tuple(points)
        own = np.array([one.threshold for one in self.points] + [rule.threshold], np.float32)
        self._grid = Grid(own)
        self._own: Scores = np.unique(own)
        self._found = Steps(self._grid, most)
        self._in_oov = Steps(self._grid, most)
        self._in_inv = Steps(self._grid, most)
        self._own_spots = Steps(self._grid, most)
        self._inv: Counter[int] = Counter()
        self._oov: Counter[int] = Counter()
        self._engine_rate_hz = 0
        self.inv_files = self.oov_files = self.rejected_files = 0

    def add(self, outcome: FileOutcome, tracks: Iterable[ScoreTrack]) -> None:
        """Counts a file; its spots are not looked at. InputError for a file with a reference."""
        if outcome.kind is ListKind.REFERENCED:
            raise InputError("a sweep is over wake phrases, not over commands or texts", remedy="Give the list by -i")
        if not self.wants(outcome):
            self.rejected_files += 1
            return
        if self._engine_rate_hz not in (0, outcome.engine_rate_hz):
            raise InputError(f"scores of engines at {self._engine_rate_hz} and {outcome.engine_rate_hz} Hz")
        self._engine_rate_hz = outcome.engine_rate_hz
        if outcome.kind is ListKind.OOV:
            self.oov_files += 1
            self._oov[outcome.rate_hz] += outcome.samples
            for track in tracks:
                found = spans(track, self.rule.refractory_samples)
                self._in_oov.add(found.low, found.high)
        else:
            self.inv_files += 1
            self._inv[outcome.rate_hz] += outcome.samples
            self._in_vocabulary(outcome, [(track, spans(track, self.rule.refractory_samples)) for track in tracks])

    def wants(self, outcome: FileOutcome) -> bool:
        """Is it a file that counts, so that its scores are needed?"""
        return judged(outcome, self.counting).rejected is None

    def thresholds(self, also: Iterable[float] = ()) -> Scores:
        """All at which a count changes, the operating points' and some others, 0 to 1; the strictest first."""
        named = np.concatenate([self._own, np.array([*also], np.float32)])
        every = [named, self._found.values(), self._in_oov.values()]
        if self.counting.count_in_vocabulary:
            every += [self._in_inv.values(), self._own_spots.values()]
        if any(steps.coarse for steps in (self._found, self._in_oov, self._in_inv, self._own_spots)):
            every = [named, self._grid.values]
        values = np.unique(np.concatenate(every))
        return np.ascontiguousarray(values[(values >= 0) & (values <= 1)][::-1])

    def at(self, thresholds: Scores | None = None) -> Det:
        """The counts at some thresholds, or at all; the strictest first."""
        asked = self.thresholds() if thresholds is None else np.unique(np.asarray(thresholds, np.float32))[::-1]
        accepted = self._found.at(asked)
        false_accepts = self._in_oov.at(asked)
        hours = np.full(len(asked), _ms(self._oov) / 3_600_000)
        if self.counting.count_in_vocabulary:
            false_accepts = false_accepts + self._in_inv.at(asked) - accepted
            rate = self._engine_rate_hz or 1
            hours = hours + np.round(float(_exact_ms(self._inv)) - self._own_spots.at(asked) * 1000 / rate) / 3_600_000
        targets = self.inv_files if self.counting.count_in_vocabulary else 0
        return Det(asked, self.inv_files - accepted, self.inv_files, false_accepts, hours, targets)

    def _in_vocabulary(self, outcome: FileOutcome, found: list[tuple[ScoreTrack, Spans]]) -> None:
        """The first spot after the lead-in is the file's own; there is one where any spot lies after the lead-in."""
        low = np.concatenate([np.zeros(0, np.float32), *(one.low for _, one in found)])
        high = np.concatenate([np.zeros(0, np.float32), *(one.high for _, one in found)])
        ends = np.concatenate(
            [np.zeros(0, np.int64), *(track.first_end + one.index * track.step for track, one in found)]
        )
        starts = np.maximum(0, ends - self.rule.spot_samples)
        judged_at = ends if self.counting.lead_in_ref is LeadInRef.END else starts
        after = judged_at * 1000 >= self.counting.lead_in_ms * outcome.engine_rate_hz
        self._found.add(*joined(low[after], high[after]))
        if self.counting.count_in_vocabulary:
            self._in_inv.add(low, high)
            last = outcome.samples * outcome.engine_rate_hz // outcome.rate_hz
            lengths = np.minimum(ends, last) - np.minimum(starts, last)
            self._add_own_spots(low[after], high[after], ends[after], lengths[after])

    def _add_own_spots(self, low: Scores, high: Scores, ends: Samples, lengths: Samples) -> None:
        """How long the file's own spot is, which is the first: at each threshold the one that ends first."""
        if not len(low):
            return
        if lengths.min() == lengths.max():
            self._own_spots.add(*joined(low, high), int(lengths[0]))
            return
        order = np.argsort(ends, kind="stable")
        low, high, lengths = low[order], high[order], lengths[order]
        edges = np.unique(np.concatenate([low, high]))
        for begin, end in pairwise(edges):
            covering = np.flatnonzero((low <= begin) & (begin < high))
            if len(covering):
                self._own_spots.add(np.array([begin]), np.array([end]), int(lengths[covering[0]]))


def _exact_ms(samples: Counter[int]) -> Fraction:
    return sum((Fraction(count * 1000, rate) for rate, count in samples.items()), Fraction(0))


def _ms(samples: Counter[int]) -> int:
    """Milliseconds, rounded once, as the log's hours are."""
    return round(_exact_ms(samples))

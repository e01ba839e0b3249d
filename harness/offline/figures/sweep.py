"""Counts of an offline evaluation at every threshold at once, from scores, by the same rules as the log.

A score begins a spot at all thresholds below it that no score of the preceding refractory time exceeds (`spans`). So
each count is a step function of the threshold, the sum of such intervals. `Steps` keeps the places and the heights of
its steps. Matching with labels depends on which spots are there together, so `matched_spans` matches them anew between
two neighbouring steps.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from harness.model.choices import TargetBasis
from harness.model.errors import InputError
from harness.model.frozen import frozen
from harness.model.offline import (
    CountingRules,
    FileOutcome,
    LabelledPhrase,
    LeadInRef,
    ListKind,
    OperatingPoint,
    ScoreTrack,
    SpotRule,
)
from harness.offline.figures.counts import TalkerOf, exact_seconds, judged, rounded_ms
from harness.offline.figures.det import (
    TWV_BETA,
    Det,
    at_most_false_accepts,
    at_most_false_rejects,
    best_twv,
    least_cost,
    term_weighted_value,
)
from harness.offline.figures.phrase_matching import by_phrase, compared, counting_labels, window
from harness.offline.request import SweepCriterion, SweepTarget
from harness.statistics.intervals import Interval, clopper_pearson, garwood
from harness.statistics.voices import over_clusters
from harness.wake.counting import Window, match_events

Scores = npt.NDArray[np.float32]
Samples = npt.NDArray[np.int64]
MAX_VALUES = 2_000_000
"""Up to this many distinct steps are kept exactly. With more, they are moved to the thresholds of a grid."""
_PENDING = 1_000_000
"""Number of values that are collected before they are sorted into the steps."""


Spans = tuple[Scores, Scores, Samples]
"""low, high, ends, each of shape (n,): a spot ends at sample ends[k] for low[k] ≤ threshold < high[k]."""


def spans(track: ScoreTrack, refractory_samples: int) -> Spans:
    """The thresholds at which each score begins a spot, by the rule of `harness.offline.one_file`. The score must be
    above the threshold, and no score of the preceding refractory time may be."""
    from scipy.ndimage import maximum_filter1d  # imported here, since it takes long

    scores = track.scores
    before = math.ceil(max(refractory_samples / track.step, 1 + 1e-9)) - 1
    largest = np.full(len(scores), -np.inf, np.float32)
    if len(scores) > 1:
        # The window of score i is [i − before, i): the last `before` of the scores shifted by one.
        maximum_filter1d(
            scores[:-1], before, output=largest[1:], mode="constant", cval=-np.inf, origin=(before - 1) // 2
        )
    index = np.flatnonzero(scores > largest)
    return largest[index], scores[index], track.first_end + index * track.step


def joined(low: Scores, high: Scores) -> tuple[Scores, Scores]:
    """The union of the spans from low[k] to high[k], as disjoint spans in ascending order."""
    order = np.argsort(low, kind="stable")
    low, high = low[order], np.maximum.accumulate(high[order])
    fresh = np.ones(len(low), dtype=bool)
    np.greater(low[1:], high[:-1], out=fresh[1:])
    begins = np.flatnonzero(fresh)
    return low[begins], high[np.append(begins[1:], len(low)) - 1] if len(low) else high


class Grid:
    """The thresholds to which steps are moved if there are too many steps. They are those in `exact`, and `size` others
    that are evenly spaced in log odds."""

    def __init__(self, exact: Scores, size: int = 40_000) -> None:
        odds = np.linspace(-14, 14, size)  # from 0.8 in a million to as near to 1
        self.values: Scores = np.unique(np.concatenate([exact, (1 / (1 + np.exp(-odds))).astype(np.float32)]))

    def up(self, values: Scores) -> Scores:
        """For each value, the least threshold of the grid that is not below it. Counts at the thresholds of the grid
        stay exact if steps are moved there."""
        place = np.searchsorted(self.values, values, side="left")
        thresholds: Scores = np.append(self.values, np.float32(np.inf))[place]
        return thresholds


class Steps:
    """An integer function of the threshold, the sum of what was added. MAX_VALUES bounds its memory."""

    def __init__(self, grid: Grid, most: int = MAX_VALUES) -> None:
        self._grid, self._most = grid, most
        self._values = np.zeros(0, np.float32)
        self._deltas = np.zeros(0, np.int64)
        self._new_steps: list[tuple[Scores, npt.NDArray[np.int64]]] = []
        self._pending = 0
        self.coarse = False
        """Whether steps were moved to the grid. The function is then exact only at the thresholds of the grid."""

    def add(self, low: Scores, high: Scores, weight: int = 1) -> None:
        """Adds `weight` for low[k] ≤ threshold < high[k], for every k."""
        if not len(low) or not weight:
            return
        values = np.concatenate([low, high])
        deltas = np.full(len(values), weight, np.int64)
        deltas[len(low) :] = -weight
        self._new_steps.append((values, deltas))
        self._pending += len(values)
        if self._pending >= _PENDING:
            self._settle()

    def values(self) -> Scores:
        """The thresholds at which the function changes, ascending; may contain −inf and inf."""
        self._settle()
        return self._values

    def counts_at(self, thresholds: Scores) -> npt.NDArray[np.int64]:
        """The value of the function at each threshold, shape (n,)."""
        self._settle()
        sums = np.concatenate([np.zeros(1, np.int64), np.cumsum(self._deltas)])
        counts: npt.NDArray[np.int64] = sums[np.searchsorted(self._values, thresholds, side="right")]
        return counts

    def _settle(self) -> None:
        if not self._new_steps:
            return
        values = np.concatenate([self._values, *(new_values for new_values, _ in self._new_steps)])
        deltas = np.concatenate([self._deltas, *(new_deltas for _, new_deltas in self._new_steps)])
        self._new_steps, self._pending = [], 0
        self._sum(self._grid.up(values) if self.coarse else values, deltas)
        if len(self._values) > self._most and not self.coarse:
            self.coarse = True
            self._sum(self._grid.up(self._values), self._deltas)

    def _sum(self, values: Scores, deltas: npt.NDArray[np.int64]) -> None:
        order = np.argsort(values, kind="stable")
        values, deltas = values[order], deltas[order]
        begins = np.flatnonzero(np.append(True, values[1:] != values[:-1])) if len(values) else np.zeros(0, np.intp)
        sums = np.add.reduceat(deltas, begins) if len(begins) else np.zeros(0, np.int64)
        nonzero = sums != 0
        self._values, self._deltas = values[begins][nonzero], sums[nonzero]


def matched_spans(
    windows: Sequence[Window], at_s: npt.NDArray[np.float64], low: Scores, high: Scores
) -> Iterator[tuple[Scores, Scores, list[int]]]:
    """Matches windows with spots one to one. Yields (low, high, indices): the windows with these indices are matched at
    thresholds from low to high.

    windows: in order of their starts. at_s: end of each spot in seconds, ascending. low, high: the thresholds between
    which each spot exists.
    """
    end_of_group = 0
    for group in _overlapping(windows):
        first_window = end_of_group
        end_of_group += len(group)
        first = int(np.searchsorted(at_s, group[0].start_s, side="left"))
        last = int(np.searchsorted(at_s, max(event_window.end_s for event_window in group), side="right"))
        if first == last:
            continue
        if len(group) == 1:  # a window that overlaps no other is matched wherever there is a spot
            yield *joined(low[first:last], high[first:last]), [first_window]
            continue
        for begin, end in pairwise(np.unique(np.concatenate([low[first:last], high[first:last]]))):
            inside = at_s[first:last][(low[first:last] <= begin) & (begin < high[first:last])]
            if pairs := match_events(group, inside.tolist(), 0.0).pairs:
                yield np.array([begin]), np.array([end]), [first_window + place for place, _ in pairs]


def _overlapping(windows: Sequence[Window]) -> Iterator[list[Window]]:
    """Splits the windows into groups, so that windows of different groups do not overlap."""
    group: list[Window] = []
    until_s = 0.0
    for event_window in windows:
        if group and event_window.start_s > until_s:
            yield group
            group = []
        group.append(event_window)
        until_s = max(until_s, event_window.end_s) if len(group) > 1 else event_window.end_s
    if group:
        yield group


class Sweep:
    """Takes files with their scores one by one, and returns the counts at any thresholds.

    Up to two million distinct scores, counts are exact at all thresholds. With more, they are exact at the operating
    points and on a grid of forty thousand thresholds.

    rule: refractory time and assumed length of a spot. points: the engine's operating points. phrase: the only phrase
    that counts, as compared; None for all. repeats: number of times that each recording is played, as in `Det`.
    talker_of: the talker of a phrase, as in `Tally`; None if talkers are not known.
    """

    def __init__(
        self,
        counting: CountingRules,
        rule: SpotRule,
        points: Iterable[OperatingPoint] = (),
        most: int = MAX_VALUES,
        phrase: str | None = None,
        repeats: int = 1,
        talker_of: TalkerOf | None = None,
    ) -> None:
        self.counting, self.rule, self._phrase, self._repeats = counting, rule, phrase, repeats
        self._talker_of, self._most = talker_of, most
        self.points = tuple(points)
        thresholds = np.array([point.threshold for point in self.points] + [rule.threshold], np.float32)
        self._grid = Grid(thresholds)
        self._own: Scores = np.unique(thresholds)
        self._found = Steps(self._grid, most)
        self._found_of: dict[str, Steps] = {}
        self._phrases_of: Counter[str] = Counter()
        self._in_oov = Steps(self._grid, most)
        self._in_inv = Steps(self._grid, most)
        self._own_spots = Steps(self._grid, most)
        self._inv: Counter[int] = Counter()
        self._oov: Counter[int] = Counter()
        self._engine_rate_hz = 0
        self.inv_files = self.oov_files = self.rejected_files = 0

    def add(self, outcome: FileOutcome, tracks: Iterable[ScoreTrack]) -> None:
        """Counts a file by its scores; the spots of its outcome are ignored. InputError for a file with a reference."""
        if self._phrase is not None:
            tracks = [track for track in tracks if compared(track.phrase) == self._phrase]
        if outcome.kind is ListKind.REFERENCED:
            raise InputError(
                "a sweep applies to wake phrases, not to commands or texts", remedy="Give the list with -i"
            )
        if not self.wants(outcome):
            self.rejected_files += 1
            return
        if self._engine_rate_hz not in (0, outcome.engine_rate_hz):
            raise InputError(f"scores of engines at {self._engine_rate_hz} and {outcome.engine_rate_hz} Hz")
        self._engine_rate_hz = outcome.engine_rate_hz
        phrase_spans = [(track.phrase, spans(track, self.rule.refractory_samples)) for track in tracks]
        if outcome.kind in (ListKind.OOV, ListKind.LABELLED):
            self.oov_files += 1
            self._oov[outcome.rate_hz] += outcome.samples
            for _, (low, high, _) in phrase_spans:
                self._in_oov.add(low, high)
            if outcome.kind is ListKind.LABELLED:
                self._labelled(outcome, phrase_spans)
        else:
            self.inv_files += 1
            self._inv[outcome.rate_hz] += outcome.samples
            self._in_vocabulary(outcome, [phrase_hits for _, phrase_hits in phrase_spans])

    def wants(self, outcome: FileOutcome) -> bool:
        """Whether the file counts, so that its scores are needed. False for a rejected file."""
        return judged(outcome, self.counting).rejected is None

    def thresholds(self, also: Iterable[float] = ()) -> Scores:
        """The strictest first: all thresholds from 0 to 1 at which a count changes, those of the operating points, and
        those in `also`."""
        required = np.concatenate([self._own, np.array([*also], np.float32)])
        every = [required, self._found.values(), self._in_oov.values()]
        if self.counting.count_in_vocabulary:
            every += [self._in_inv.values(), self._own_spots.values()]
        if any(steps.coarse for steps in (self._found, self._in_oov, self._in_inv, self._own_spots)):
            every = [required, self._grid.values]
        values = np.unique(np.concatenate(every))
        return np.ascontiguousarray(values[(values >= 0) & (values <= 1)][::-1])

    def det_at(self, thresholds: Scores | None = None) -> Det:
        """The counts at some thresholds, or (None) at all; the strictest first."""
        cutoffs = self.thresholds() if thresholds is None else np.unique(np.asarray(thresholds, np.float32))[::-1]
        accepted = self._found.counts_at(cutoffs)
        false_accepts = self._in_oov.counts_at(cutoffs)
        hours = np.full(len(cutoffs), rounded_ms(exact_seconds(self._oov)) / 3_600_000)
        if self.counting.count_in_vocabulary:
            false_accepts = false_accepts + self._in_inv.counts_at(cutoffs) - accepted
            rate = self._engine_rate_hz or 1
            inv_ms = float(1000 * exact_seconds(self._inv))
            hours = hours + np.round(inv_ms - self._own_spots.counts_at(cutoffs) * 1000 / rate) / 3_600_000
        targets = self.inv_files if self.counting.count_in_vocabulary else 0
        return Det(
            thresholds=cutoffs,
            misses=self.inv_files - accepted,
            files=self.inv_files,
            false_accepts=false_accepts,
            hours=hours,
            targets=targets,
            repeats=self._repeats,
        )

    def _in_vocabulary(self, outcome: FileOutcome, track_spans: list[Spans]) -> None:
        """Counts a file with the phrase. It has a true accept at each threshold at which a spot lies after the
        lead-in: the first such spot."""
        low = np.concatenate([np.zeros(0, np.float32), *(low for low, _, _ in track_spans)])
        high = np.concatenate([np.zeros(0, np.float32), *(high for _, high, _ in track_spans)])
        ends = np.concatenate([np.zeros(0, np.int64), *(ends for _, _, ends in track_spans)])
        starts = np.maximum(0, ends - self.rule.spot_samples)
        judged_at = ends if self.counting.lead_in_ref is LeadInRef.END else starts
        after = judged_at * 1000 >= self.counting.lead_in_ms * outcome.engine_rate_hz
        for steps in self._found_steps(outcome):
            steps.add(*joined(low[after], high[after]))
        if self.counting.count_in_vocabulary:
            self._in_inv.add(low, high)
            last = outcome.samples * outcome.engine_rate_hz // outcome.rate_hz
            lengths = np.minimum(ends, last) - np.minimum(starts, last)
            self._add_own_spots(low[after], high[after], ends[after], lengths[after])

    def _labelled(self, outcome: FileOutcome, phrase_spans: Sequence[tuple[str, Spans]]) -> None:
        """Counts the labelled phrases of a long recording. At each threshold, the spots that can be matched with
        phrases are true accepts; the others stay false accepts."""
        labels = tuple(counting_labels(outcome, self.counting).values())
        if self._phrase is not None:
            labels = tuple(label for label in labels if compared(label.phrase) == self._phrase)
        self.inv_files += len(labels)
        label_steps = [self._found_steps(outcome, label) for label in labels]
        compared_spans = [(compared(name), phrase_hits) for name, phrase_hits in phrase_spans]
        for phrase, label_indices in by_phrase(labels):
            heard = [phrase_hits for name, phrase_hits in compared_spans if not phrase or name == phrase]
            if not heard:
                continue
            low, high, ends = map(np.concatenate, zip(*heard, strict=True))
            order = np.argsort(ends, kind="stable")
            at_s = ends[order] / outcome.engine_rate_hz
            windows = [window(labels[index], self.counting.tolerance_s) for index in label_indices]
            for begin, end, places in matched_spans(windows, at_s, low[order], high[order]):
                for place in places:
                    for steps in label_steps[label_indices[place]]:
                        steps.add(begin, end)
                self._in_oov.add(begin, end, -len(places))
                if self.counting.count_in_vocabulary:
                    self._in_inv.add(begin, end, len(places))  # `det_at` subtracts all true accepts again

    def _found_steps(self, outcome: FileOutcome, label: LabelledPhrase | None = None) -> tuple[Steps, ...]:
        """The step functions that count the phrase where it is detected: that of all phrases, and its talker's."""
        if self._talker_of is None:
            return (self._found,)
        talker = self._talker_of(outcome.kind, outcome.number, label)
        self._phrases_of[talker] += 1
        return self._found, self._found_of.setdefault(talker, Steps(self._grid, self._most))

    def figures_at(self, threshold: float) -> PointFigures:
        """The counts at a threshold, with the interval over talkers if some are known."""
        thresholds = np.array([threshold], np.float32)
        figures = point_figures(self.det_at(thresholds), 0, self.points)
        if not any(self._phrases_of):
            return figures
        phrases = self._phrases_of.values()
        missed = [
            total - int(self._found_of[name].counts_at(thresholds)[0]) for name, total in self._phrases_of.items()
        ]
        return replace(
            figures, talkers=len(phrases), unknown_talkers="" in self._phrases_of,
            talkers_interval=over_clusters(missed, phrases),
        )  # fmt: skip

    def _add_own_spots(self, low: Scores, high: Scores, ends: Samples, lengths: Samples) -> None:
        """Adds the length of the true accept at each threshold. It is the spot that ends first there."""
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


@frozen
class PointFigures:
    """The counts at one threshold.

    - point: number of the operating point with this threshold; None if there is none.
    - misses: number of missed phrases out of `files`.
    - repeats: number of times that each recording is played, as in `Det`.
    - talkers: number of talkers that are clusters in talkers_interval, all unknown ones as one; 0 if not known.
    - talkers_interval: the interval of the share of false rejects over talkers.
    """

    threshold: float
    point: int | None
    misses: int
    files: int
    false_accepts: int
    hours: float
    repeats: int = 1
    talkers: int = 0
    unknown_talkers: bool = False
    talkers_interval: Interval | None = None

    @property
    def false_rejects(self) -> float | None:
        return self.misses / self.files if self.files else None

    @property
    def false_reject_interval(self) -> Interval | None:
        if self.talkers:
            return self.talkers_interval
        return clopper_pearson(self.misses / self.repeats, self.files / self.repeats)

    @property
    def per_hour(self) -> float | None:
        return self.false_accepts / self.hours if self.hours else None

    @property
    def per_hour_interval(self) -> Interval | None:
        return garwood(self.false_accepts / self.repeats, self.hours / self.repeats)

    def keeps(self, target: SweepTarget) -> bool | None:
        """Whether the counts meet the target, by the target's basis; None for a target of cost, or without data."""
        match target.criterion:
            case SweepCriterion.FALSE_ACCEPTS:
                estimate, interval = self.per_hour, self.per_hour_interval
            case SweepCriterion.FALSE_REJECTS:
                estimate, interval = self.false_rejects, self.false_reject_interval
            case SweepCriterion.COST:
                return None
        if estimate is None or interval is None:
            return None
        return (estimate if target.basis is TargetBasis.ESTIMATE else interval[1]) <= target.limit


@frozen
class ChosenPoint:
    """A chosen threshold, with the counts on the list on which it was chosen, and on the list that reports it. If both
    are the same list, `reported` is None, and the results look better than they are."""

    chosen: PointFigures
    reported: PointFigures | None

    @property
    def shown(self) -> PointFigures:
        """The counts to show: those on the list that reports the point."""
        return self.reported or self.chosen


@frozen
class TermWeighted:
    """Term-weighted values (see `term_weighted_value`).

    best: the largest value (MTWV), at the threshold best_at; both None without data. actual: the value (ATWV) at
    at_point, the threshold with which the engine ran; None without data.
    """

    beta: float
    speech_s: float | None
    best: float | None
    best_at: PointFigures | None
    actual: float | None
    at_point: PointFigures


def choose(target: SweepTarget, det: Det, points: Sequence[OperatingPoint], report: Sweep | None) -> ChosenPoint | None:
    """Chooses a threshold on the curve of one list, and counts another list at it. det: the curve of the list for
    choosing. report: the other list; None if there is none. None if no threshold meets the target."""
    match target.criterion:
        case SweepCriterion.FALSE_ACCEPTS:
            index = at_most_false_accepts(det, target.limit, target.basis)
        case SweepCriterion.FALSE_REJECTS:
            index = at_most_false_rejects(det, target.limit, target.basis)
        case SweepCriterion.COST:
            index = least_cost(det, target.miss_cost, target.accept_cost, target.uses_per_hour)
    if index is None:
        return None
    chosen = point_figures(det, index, points)
    return ChosenPoint(chosen, report.figures_at(chosen.threshold) if report is not None else None)


def term_weighted(sweep: Sweep, det: Det, beta: float = TWV_BETA, speech_s: float | None = None) -> TermWeighted:
    """The largest term-weighted value, and the one at the threshold with which the engine ran."""
    values = term_weighted_value(det, beta, speech_s)
    index = best_twv(values)
    point = sweep.figures_at(sweep.rule.threshold)
    rule_index = int(np.flatnonzero(det.thresholds == np.float32(sweep.rule.threshold))[0])
    return TermWeighted(
        beta,
        speech_s,
        None if index is None else float(values[index]),
        None if index is None else point_figures(det, index, sweep.points),
        float(values[rule_index]) if np.isfinite(values[rule_index]) else None,
        point,
    )


def point_figures(det: Det, index: int, points: Sequence[OperatingPoint]) -> PointFigures:
    """The counts in row `index` of a curve."""
    threshold = det.thresholds[index]
    return PointFigures(
        threshold=float(threshold),
        point=point_of(threshold, points),
        misses=int(det.misses[index]),
        files=det.files,
        false_accepts=int(det.false_accepts[index]),
        hours=float(det.hours[index]),
        repeats=det.repeats,
    )


def point_of(threshold: np.float32, points: Sequence[OperatingPoint]) -> int | None:
    return next((point.number for point in points if np.float32(point.threshold) == threshold), None)

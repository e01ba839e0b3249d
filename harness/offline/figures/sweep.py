"""Counts of an offline evaluation at every threshold at once, from scores, by the same rules as the log.

A score begins a spot at all thresholds below it that no score of the preceding refractory time exceeds
(`spans_of_track`). So each count is a step function of the threshold, the sum of such intervals. `Steps` keeps the
places and the heights of its steps. Matching with labels depends on which spots are there together, so `matched_spans`
matches them anew between two neighbouring steps.
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
from harness.offline.figures.counts import TalkerOf, exact_seconds, judge_file, rounded_ms
from harness.offline.figures.det import (
    TWV_BETA,
    Det,
    at_most_false_accepts,
    at_most_false_rejects,
    best_twv,
    least_cost,
    term_weighted_value,
)
from harness.offline.figures.phrase_matching import comparable_phrase, counting_labels, label_window, labels_by_phrase
from harness.offline.one_file import MIN_SPOT_STEPS
from harness.offline.request import SweepCriterion, SweepTarget
from harness.statistics.intervals import Interval, clopper_pearson, garwood
from harness.statistics.voices import over_clusters
from harness.wake.counting import Window, match_events

Scores = npt.NDArray[np.float32]
Samples = npt.NDArray[np.int64]
MAX_STEPS = 2_000_000
"""Up to this many distinct steps are kept exactly. With more, they are moved to the thresholds of a grid."""
_PENDING = 1_000_000
"""Number of values that are collected before they are sorted into the steps."""


Spans = tuple[Scores, Scores, Samples]
"""low, high, ends, each of shape (n,): a spot ends at sample ends[k] for low[k] ≤ threshold < high[k]."""


def spans_of_track(track: ScoreTrack, refractory_samples: int) -> Spans:
    """The thresholds at which each score begins a spot, by the rule of `harness.offline.one_file`. The score must be
    above the threshold, and no score of the preceding refractory time may be."""
    from scipy.ndimage import maximum_filter1d  # imported here, since it takes long

    scores = track.scores
    # How many earlier scores lie within the refractory time: at least one (see MIN_SPOT_STEPS).
    earlier_scores = math.ceil(max(refractory_samples / track.step, MIN_SPOT_STEPS)) - 1
    largest = np.full(len(scores), -np.inf, np.float32)
    if len(scores) > 1:
        # The window of score i is [i − earlier_scores, i): the last `earlier_scores` of the scores shifted by one.
        maximum_filter1d(
            scores[:-1],
            earlier_scores,
            output=largest[1:],
            mode="constant",
            cval=-np.inf,
            origin=(earlier_scores - 1) // 2,
        )
    index = np.flatnonzero(scores > largest)
    return largest[index], scores[index], track.first_end + index * track.step


def union_of_spans(low: Scores, high: Scores) -> tuple[Scores, Scores]:
    """The union of the spans from low[k] to high[k], as disjoint spans in ascending order."""
    order = np.argsort(low, kind="stable")
    low, high = low[order], np.maximum.accumulate(high[order])
    begins_span = np.ones(len(low), dtype=bool)
    np.greater(low[1:], high[:-1], out=begins_span[1:])
    begins = np.flatnonzero(begins_span)
    if not len(begins):
        return low, high
    lasts = np.append(begins[1:], len(low)) - 1
    return low[begins], high[lasts]


class Grid:
    """The thresholds to which steps are moved if there are too many steps. They are those in `exact`, and `size` others
    that are evenly spaced in log odds."""

    def __init__(self, exact: Scores, size: int = 40_000) -> None:
        odds = np.linspace(-14, 14, size)  # from 0.8 in a million to as near to 1
        self.values: Scores = np.unique(np.concatenate([exact, (1 / (1 + np.exp(-odds))).astype(np.float32)]))

    def up(self, values: Scores) -> Scores:
        """For each value, the least threshold of the grid that is not below it. Counts at the thresholds of the grid
        stay exact if steps are moved there."""
        indices = np.searchsorted(self.values, values, side="left")
        thresholds: Scores = np.append(self.values, np.float32(np.inf))[indices]
        return thresholds


class Steps:
    """An integer function of the threshold, the sum of what was added. MAX_STEPS bounds its memory."""

    def __init__(self, grid: Grid, max_steps: int = MAX_STEPS) -> None:
        self._grid, self._max_steps = grid, max_steps
        self._values = np.zeros(0, np.float32)
        self._deltas = np.zeros(0, np.int64)
        self._new_steps: list[tuple[Scores, npt.NDArray[np.int64]]] = []
        self._new_values = 0
        self.is_coarse = False
        """Whether steps were moved to the grid. The function is then exact only at the thresholds of the grid."""

    def add(self, low: Scores, high: Scores, weight: int = 1) -> None:
        """Adds `weight` for low[k] ≤ threshold < high[k], for every k."""
        if not len(low) or not weight:
            return
        values = np.concatenate([low, high])
        deltas = np.full(len(values), weight, np.int64)
        deltas[len(low) :] = -weight
        self._new_steps.append((values, deltas))
        self._new_values += len(values)
        if self._new_values >= _PENDING:
            self._merge_new_steps()

    def values(self) -> Scores:
        """The thresholds at which the function changes, ascending; may contain −inf and inf."""
        self._merge_new_steps()
        return self._values

    def counts_at(self, thresholds: Scores) -> npt.NDArray[np.int64]:
        """The value of the function at each threshold, shape (n,)."""
        self._merge_new_steps()
        sums = np.concatenate([np.zeros(1, np.int64), np.cumsum(self._deltas)])
        counts: npt.NDArray[np.int64] = sums[np.searchsorted(self._values, thresholds, side="right")]
        return counts

    def _merge_new_steps(self) -> None:
        """Merges the steps that were added since the last merge. Moves all to the grid if there are too many."""
        if not self._new_steps:
            return
        values = np.concatenate([self._values, *(new_values for new_values, _ in self._new_steps)])
        deltas = np.concatenate([self._deltas, *(new_deltas for _, new_deltas in self._new_steps)])
        self._new_steps, self._new_values = [], 0
        self._set_sum(self._grid.up(values) if self.is_coarse else values, deltas)
        if len(self._values) > self._max_steps and not self.is_coarse:
            self.is_coarse = True
            self._set_sum(self._grid.up(self._values), self._deltas)

    def _set_sum(self, values: Scores, deltas: npt.NDArray[np.int64]) -> None:
        """Keeps one step for each value: the sum of its deltas. Steps of height 0 are dropped."""
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

    - windows: in order of their starts.
    - at_s: end of each spot in seconds, ascending.
    - low, high: the thresholds between which each spot exists.
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
            yield *union_of_spans(low[first:last], high[first:last]), [first_window]
            continue
        for lower, upper in pairwise(np.unique(np.concatenate([low[first:last], high[first:last]]))):
            inside = at_s[first:last][(low[first:last] <= lower) & (lower < high[first:last])]
            pairs = match_events(group, inside.tolist(), 0.0).pairs
            if pairs:
                yield np.array([lower]), np.array([upper]), [first_window + index for index, _ in pairs]


def _overlapping(windows: Sequence[Window]) -> Iterator[list[Window]]:
    """Splits the windows into groups, so that windows of different groups do not overlap."""
    group: list[Window] = []
    until_s = 0.0
    for event_window in windows:
        if group and event_window.start_s > until_s:
            yield group
            group = []
        group.append(event_window)
        until_s = event_window.end_s if len(group) == 1 else max(until_s, event_window.end_s)
    if group:
        yield group


class Sweep:
    """Takes files with their scores one by one, and returns the counts at any thresholds.

    Up to two million distinct scores, counts are exact at all thresholds. With more, they are exact at the operating
    points and on a grid of forty thousand thresholds.

    - rule: refractory time and assumed length of a spot.
    - points: the engine's operating points.
    - phrase: the only phrase that counts, as compared; None for all.
    - repeats: number of times that each recording is played, as in `Det`.
    - talker_of: the talker of a phrase, as in `Tally`; None if talkers are not known.
    """

    def __init__(
        self,
        counting: CountingRules,
        rule: SpotRule,
        points: Iterable[OperatingPoint] = (),
        max_steps: int = MAX_STEPS,
        phrase: str | None = None,
        repeats: int = 1,
        talker_of: TalkerOf | None = None,
    ) -> None:
        self.counting, self.rule, self._phrase, self._repeats = counting, rule, phrase, repeats
        self._talker_of, self._max_steps = talker_of, max_steps
        self.points = tuple(points)
        thresholds = np.array([point.threshold for point in self.points] + [rule.threshold], np.float32)
        self._grid = Grid(thresholds)
        self._own_thresholds: Scores = np.unique(thresholds)
        self._accepted = Steps(self._grid, max_steps)
        """Number of true accepts."""
        self._accepted_by_talker: dict[str, Steps] = {}
        self._phrases_by_talker: Counter[str] = Counter()
        self._oov_spots = Steps(self._grid, max_steps)
        """Number of false accepts out of vocabulary: spots that match no labelled phrase."""
        self._inv_spots = Steps(self._grid, max_steps)
        """Number of spots in vocabulary, true accepts included."""
        self._accepted_lengths = Steps(self._grid, max_steps)
        """Samples of the true accepts."""
        self._inv_samples: Counter[int] = Counter()
        self._oov_samples: Counter[int] = Counter()
        self._engine_rate_hz = 0
        self.inv_files = self.oov_files = self.rejected_files = 0

    def add(self, outcome: FileOutcome, tracks: Iterable[ScoreTrack]) -> None:
        """Counts a file by its scores; the spots of its outcome are ignored.

        Raises InputError for a file with a reference.
        """
        if self._phrase is not None:
            tracks = [track for track in tracks if comparable_phrase(track.phrase) == self._phrase]
        if outcome.kind is ListKind.REFERENCED:
            raise InputError("a sweep applies to wake phrases, not to commands or texts", remedy="Use -i for the list")
        if not self.wants(outcome):
            self.rejected_files += 1
            return
        if self._engine_rate_hz not in (0, outcome.engine_rate_hz):
            raise InputError(f"the scores come from engines at {self._engine_rate_hz} and {outcome.engine_rate_hz} Hz")
        self._engine_rate_hz = outcome.engine_rate_hz
        phrase_spans = [(track.phrase, spans_of_track(track, self.rule.refractory_samples)) for track in tracks]
        if outcome.kind in (ListKind.OOV, ListKind.LABELLED):
            self.oov_files += 1
            self._oov_samples[outcome.rate_hz] += outcome.samples
            for _, (low, high, _) in phrase_spans:
                self._oov_spots.add(low, high)
            if outcome.kind is ListKind.LABELLED:
                self._add_labelled(outcome, phrase_spans)
        else:
            self.inv_files += 1
            self._inv_samples[outcome.rate_hz] += outcome.samples
            self._add_in_vocabulary(outcome, [spans for _, spans in phrase_spans])

    def wants(self, outcome: FileOutcome) -> bool:
        """Whether the file counts, so that its scores are needed. False for a rejected file."""
        return judge_file(outcome, self.counting).rejected is None

    def thresholds(self, also: Iterable[float] = ()) -> Scores:
        """The strictest first: all thresholds from 0 to 1 at which a count changes, those of the operating points, and
        those in `also`."""
        required = np.concatenate([self._own_thresholds, np.array([*also], np.float32)])
        candidates = [required, self._accepted.values(), self._oov_spots.values()]
        if self.counting.count_in_vocabulary:
            candidates += [self._inv_spots.values(), self._accepted_lengths.values()]
        if any(steps.is_coarse for steps in (self._accepted, self._oov_spots, self._inv_spots, self._accepted_lengths)):
            candidates = [required, self._grid.values]
        values = np.unique(np.concatenate(candidates))
        return np.ascontiguousarray(values[(values >= 0) & (values <= 1)][::-1])

    def det_at(self, thresholds: Scores | None = None) -> Det:
        """The counts at some thresholds, or (None) at all; the strictest first."""
        cutoffs = self.thresholds() if thresholds is None else np.unique(np.asarray(thresholds, np.float32))[::-1]
        accepted = self._accepted.counts_at(cutoffs)
        false_accepts = self._oov_spots.counts_at(cutoffs)
        hours = np.full(len(cutoffs), rounded_ms(exact_seconds(self._oov_samples)) / 3_600_000)
        if self.counting.count_in_vocabulary:
            false_accepts = false_accepts + self._inv_spots.counts_at(cutoffs) - accepted
            rate = self._engine_rate_hz or 1
            inv_ms = float(1000 * exact_seconds(self._inv_samples))
            hours = hours + np.round(inv_ms - self._accepted_lengths.counts_at(cutoffs) * 1000 / rate) / 3_600_000
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

    def _add_in_vocabulary(self, outcome: FileOutcome, track_spans: list[Spans]) -> None:
        """Counts a file with the phrase. It has a true accept at each threshold at which a spot lies after the
        lead-in: the first such spot."""
        low = np.concatenate([np.zeros(0, np.float32), *(low for low, _, _ in track_spans)])
        high = np.concatenate([np.zeros(0, np.float32), *(high for _, high, _ in track_spans)])
        ends = np.concatenate([np.zeros(0, np.int64), *(ends for _, _, ends in track_spans)])
        starts = np.maximum(0, ends - self.rule.spot_samples)
        judged_at = ends if self.counting.lead_in_ref is LeadInRef.END else starts
        after = judged_at * 1000 >= self.counting.lead_in_ms * outcome.engine_rate_hz
        for steps in self._accepted_steps(outcome):
            steps.add(*union_of_spans(low[after], high[after]))
        if self.counting.count_in_vocabulary:
            self._inv_spots.add(low, high)
            last = outcome.samples * outcome.engine_rate_hz // outcome.rate_hz
            lengths = np.minimum(ends, last) - np.minimum(starts, last)
            self._add_accepted_lengths(low[after], high[after], ends[after], lengths[after])

    def _add_labelled(self, outcome: FileOutcome, phrase_spans: Sequence[tuple[str, Spans]]) -> None:
        """Counts the labelled phrases of a long recording. At each threshold, the spots that can be matched with
        phrases are true accepts; the others stay false accepts."""
        labels = tuple(counting_labels(outcome, self.counting).values())
        if self._phrase is not None:
            labels = tuple(label for label in labels if comparable_phrase(label.phrase) == self._phrase)
        self.inv_files += len(labels)
        label_steps = [self._accepted_steps(outcome, label) for label in labels]
        compared_spans = [(comparable_phrase(name), spans) for name, spans in phrase_spans]
        for phrase, label_indices in labels_by_phrase(labels):
            matching_spans = [spans for name, spans in compared_spans if not phrase or name == phrase]
            if not matching_spans:
                continue
            low, high, ends = map(np.concatenate, zip(*matching_spans, strict=True))
            order = np.argsort(ends, kind="stable")
            at_s = ends[order] / outcome.engine_rate_hz
            windows = [label_window(labels[index], self.counting.tolerance_s) for index in label_indices]
            for lower, upper, window_indices in matched_spans(windows, at_s, low[order], high[order]):
                for index in window_indices:
                    for steps in label_steps[label_indices[index]]:
                        steps.add(lower, upper)
                self._oov_spots.add(lower, upper, -len(window_indices))
                if self.counting.count_in_vocabulary:
                    self._inv_spots.add(lower, upper, len(window_indices))  # `det_at` subtracts all true accepts again

    def _accepted_steps(self, outcome: FileOutcome, label: LabelledPhrase | None = None) -> tuple[Steps, ...]:
        """The step functions that count the phrase where it is detected: that of all phrases, and its talker's. Notes
        the phrase for its talker."""
        if self._talker_of is None:
            return (self._accepted,)
        talker = self._talker_of(outcome.kind, outcome.number, label)
        self._phrases_by_talker[talker] += 1
        return self._accepted, self._accepted_by_talker.setdefault(talker, Steps(self._grid, self._max_steps))

    def figures_at(self, threshold: float) -> PointFigures:
        """The counts at a threshold, with the interval over talkers if some are known."""
        thresholds = np.array([threshold], np.float32)
        figures = point_figures(self.det_at(thresholds), 0, self.points)
        if not any(self._phrases_by_talker):
            return figures
        phrases = self._phrases_by_talker.values()
        missed = [
            total - int(self._accepted_by_talker[name].counts_at(thresholds)[0])
            for name, total in self._phrases_by_talker.items()
        ]
        return replace(
            figures, talkers=len(phrases), unknown_talkers="" in self._phrases_by_talker,
            talkers_interval=over_clusters(missed, phrases),
        )  # fmt: skip

    def _add_accepted_lengths(self, low: Scores, high: Scores, ends: Samples, lengths: Samples) -> None:
        """Adds the length of the true accept at each threshold. It is the spot that ends first there."""
        if not len(low):
            return
        if lengths.min() == lengths.max():
            self._accepted_lengths.add(*union_of_spans(low, high), int(lengths[0]))
            return
        order = np.argsort(ends, kind="stable")
        low, high, lengths = low[order], high[order], lengths[order]
        edges = np.unique(np.concatenate([low, high]))
        for lower, upper in pairwise(edges):
            spots = np.flatnonzero((low <= lower) & (lower < high))
            if len(spots):
                self._accepted_lengths.add(np.array([lower]), np.array([upper]), int(lengths[spots[0]]))


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

    def meets(self, target: SweepTarget) -> bool | None:
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
        compared_value = estimate if target.basis is TargetBasis.ESTIMATE else interval[1]
        return compared_value <= target.limit


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

    - best: the largest value (MTWV), at the threshold best_at; both None without data.
    - actual: the value (ATWV) at at_point, the threshold with which the engine ran; None without data.
    """

    beta: float
    speech_s: float | None
    best: float | None
    best_at: PointFigures | None
    actual: float | None
    at_point: PointFigures


def choose(target: SweepTarget, det: Det, points: Sequence[OperatingPoint], report: Sweep | None) -> ChosenPoint | None:
    """Chooses a threshold on the curve of one list, and counts another list at it.

    - det: the curve of the list for choosing.
    - report: the other list; None if there is none. None if no threshold meets the target.
    """
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
    """The largest term-weighted value, and the one at the threshold with which the engine ran. That threshold must be
    on the curve."""
    values = term_weighted_value(det, beta, speech_s)
    index = best_twv(values)
    point = sweep.figures_at(sweep.rule.threshold)
    rule_index = int(np.flatnonzero(det.thresholds == np.float32(sweep.rule.threshold))[0])
    return TermWeighted(
        beta=beta,
        speech_s=speech_s,
        best=None if index is None else float(values[index]),
        best_at=None if index is None else point_figures(det, index, sweep.points),
        actual=float(values[rule_index]) if np.isfinite(values[rule_index]) else None,
        at_point=point,
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
    """Number of the operating point with this threshold; None if there is none."""
    return next((point.number for point in points if np.float32(point.threshold) == threshold), None)

"""Several engines on the same recordings: false rejects at equal false accepts per hour, delays, processor, memory."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from harness.model.errors import InputError
from harness.model.frozen import frozen
from harness.model.offline import FileOutcome, LabelledPhrase, ListKind, OperatingPoint
from harness.model.time import MeasuredDuration
from harness.offline.figures.counts import ACCEPTED, FileVerdict
from harness.offline.figures.det import Det
from harness.offline.figures.figures import Figures
from harness.offline.figures.sweep import ChosenPoint, PointFigures, Sweep, choose
from harness.offline.journal import JournalFile
from harness.offline.request import SweepCriterion, SweepTarget
from harness.statistics.comparison import ComparedColumns, MeasureKind, difference_of
from harness.statistics.intervals import Interval, LatencyFigures, latency_figures
from harness.statistics.significance import Difference

SpokenKey = tuple[str, int, int]
"""Identifies a phrase: kind and number of the recording, and the index of the label as in `Fact` (-1 without
labels)."""
Ends = Mapping[SpokenKey, MeasuredDuration]
"""Where phrases, or speech, end in their recordings, in seconds."""


@frozen
class SpokenPhrase:
    """A phrase that was said: a recording that holds one, or a label in a long recording.

    detected_s: seconds from the start of the recording to its true accept. None if it was missed; 0 if it is right
    without a detection.
    """

    key: SpokenKey
    detected_s: float | None
    label: LabelledPhrase | None = None


def phrases_in(outcome: FileOutcome, verdict: FileVerdict) -> Iterator[SpokenPhrase]:
    """The phrases of a recording that count. Empty for out-of-vocabulary and rejected recordings."""
    if outcome.kind is ListKind.OOV or verdict.rejected is not None:
        return
    if outcome.kind is not ListKind.LABELLED:
        detected_s = None
        if verdict.accepted is not None:
            detected_s = verdict.accepted.end / outcome.engine_rate_hz
        elif any(fact.key in ACCEPTED for fact in verdict.facts):
            detected_s = 0.0
        yield SpokenPhrase((outcome.kind.value, outcome.number, -1), detected_s)
        return
    for fact in verdict.facts:
        if fact.label is not None:
            key = outcome.kind.value, outcome.number, fact.label_index
            detected_s = None if fact.spot is None else fact.spot.end / outcome.engine_rate_hz
            yield SpokenPhrase(key, detected_s, fact.label)


MissedPhrases = Mapping[SpokenKey, bool]
"""For each phrase, whether it was missed."""


@dataclass(frozen=True, eq=False)
class EvaluatedEngine:
    """One evaluation, read for a comparison.

    - name: what tables and files call it.
    - results: those of the log, as it ran.
    - sweep: the counts at every threshold; None if the scores of a file are missing, and no_scores then says why.
    - phrases: the phrases that count, with the results as it ran.
    - missed_at: the phrases that are missed at a threshold. Without scores, always those missed when it ran.
    - dev_sweep: the sweep of the development lists; None without such lists.
    - chosen: the point that meets the target; None without a target, or if none meets it.
    """

    name: str
    log: Path
    journal: JournalFile
    results: Figures
    sweep: Sweep | None
    no_scores: str
    phrases: Mapping[SpokenKey, SpokenPhrase]
    missed_at: Callable[[float], MissedPhrases]
    dev_sweep: Sweep | None = None
    target: SweepTarget | None = None
    chosen: ChosenPoint | None = None

    @property
    def as_run(self) -> PointFigures:
        """The counts at the threshold with which it ran; its threshold is 0 for an engine without one."""
        counts, facts = self.results.counts, self.journal.header.facts
        wrong = counts.rejects_and_substitutions
        return PointFigures(
            threshold=0.0 if facts.rule is None else facts.rule.threshold,
            point=facts.operating_point,
            misses=wrong,
            files=wrong + counts.true_accepts,
            false_accepts=counts.false_accepts(self.results.counting),
            hours=counts.exposure_hours(self.results.counting),
            repeats=max(1, len(self.journal.header.evaluation.conditions)),
        )

    @property
    def as_run_interval(self) -> Interval | None:
        """The interval of the share of false rejects as it ran; with references, of all errors."""
        return self.results.with_substitutions or self.results.false_rejects

    @property
    def points(self) -> Sequence[OperatingPoint]:
        return self.journal.header.facts.operating_points

    @cached_property
    def det(self) -> Det:
        """The counts at every threshold; without scores, only at the one with which the engine ran. Computed once,
        since there may be millions of thresholds."""
        if self.sweep is not None:
            return self.sweep.det_at()
        point = self.as_run
        return Det(
            np.array([point.threshold], np.float32),
            np.array([point.misses]),
            point.files,
            np.array([point.false_accepts]),
            np.array([point.hours]),
            repeats=point.repeats,
        )

    def choice(self, target: SweepTarget) -> ChosenPoint | None:
        """The point that meets a target best; None if none does."""
        if self.dev_sweep is None:
            return choose(target, self.det, self.points, None)
        return choose(target, self.dev_sweep.det_at(), self.points, self.sweep)


@frozen
class EngineRow:
    """An engine's results.

    - as_run: the counts as it ran.
    - as_run_interval, as_run_rate_interval: the intervals of its false rejects and of its false accepts per hour, as in
      the log.
    - equal: the counts at the threshold that gives the rate of false accepts at which all are compared. None without
      such a threshold.
    - equal_interval: the interval of the false rejects at `equal`, with each cluster as a whole.
    - difference: share of false rejects at `equal` minus that of the first engine, on the phrases that both have.
    - wer: word error rate as a share 0–1; None without words.
    - delays: from the end of a phrase to its detection, where the end is known.
    - cpu_s_per_hour: seconds of processor time per hour of audio; None if most of the scores were stored ones.
    - memory_mb: peak memory of a worker; None if unknown.
    """

    name: str
    as_run: PointFigures
    as_run_interval: Interval | None
    as_run_rate_interval: Interval | None
    equal: PointFigures | None
    equal_interval: Interval | None
    difference: Difference | None
    wer: float | None
    delays: LatencyFigures
    cpu_s_per_hour: float | None
    memory_mb: float | None


@frozen
class EnginesTable:
    """The results of several engines, in the order in which they were given.

    - target: the most false accepts per hour at which they are compared; None without data.
    - one_list: whether some engine's point was chosen on the same recordings that its results come from, which makes
      them look better than they are. None if no point was chosen.
    - clustered_by: the column whose values are clusters in intervals; "" for none.
    - ends_are_labels: whether the ends of phrases were stated, not found by the speech detector.
    """

    rows: tuple[EngineRow, ...]
    target: SweepTarget | None
    one_list: bool | None
    clustered_by: str
    ends_are_labels: bool


def engines_table(
    engines: Sequence[EvaluatedEngine],
    target: SweepTarget | None = None,
    *,
    ends: Ends,
    ends_are_labels: bool = False,
    clusters: Mapping[SpokenKey, str],
    clustered_by: str = "",
) -> EnginesTable:
    """Compares engines, given in the order of the rows; the first is the one with which others are compared.

    - target: the most false accepts at which they are compared; None for the rate of the first engine as it ran.
    - clusters: for each phrase, the value of the column clustered_by, such as its talker; empty for independent
      phrases. Raises InputError if an engine and the first one have no phrase in common.
    """
    first = engines[0]
    own_rate = first.as_run.per_hour
    if target is None and own_rate is not None:
        target = SweepTarget(SweepCriterion.FALSE_ACCEPTS, own_rate)
    rows: list[EngineRow] = []
    first_missed: MissedPhrases = {}
    for engine in engines:
        if engine is not first and engine.phrases and not (first.phrases.keys() & engine.phrases.keys()):
            raise InputError(
                f"{first.name} and {engine.name} have no file in common",
                remedy="Evaluate both engines on the same lists",
            )
        choice = None if target is None else engine.choice(target)
        equal = None if choice is None else choice.shown
        missed = {} if equal is None else engine.missed_at(equal.threshold)
        difference = None
        if engine is first:
            first_missed = missed
        elif first_missed and missed:
            difference = _missed_difference(missed, first_missed, clusters)
        equal_interval = None if equal is None else _equal_interval(equal, missed, clusters)
        rows.append(_engine_row(engine, equal, equal_interval, difference, ends))
    swept = [engine for engine in engines if engine.sweep is not None]
    one_list = None
    if target is not None and swept:
        one_list = any(engine.dev_sweep is None for engine in swept)
    return EnginesTable(tuple(rows), target, one_list, clustered_by if clusters else "", ends_are_labels)


def _engine_row(
    engine: EvaluatedEngine,
    equal: PointFigures | None,
    equal_interval: Interval | None,
    difference: Difference | None,
    ends: Ends,
) -> EngineRow:
    """A row of the table. equal, equal_interval, difference: as in EngineRow."""
    counts, used = engine.results.counts, engine.journal.used
    usable_s = (counts.inv_ms + counts.oov_ms) / 1000
    played_s = usable_s - used.cached_s
    cpu_s = counts.cpu_s + used.programs_cpu_s
    wer_percent = engine.results.totals.get("WER")
    delays = [
        MeasuredDuration(phrase.detected_s - ends[key].value_s, ends[key].error_s)
        for key, phrase in engine.phrases.items()
        if key in ends and phrase.detected_s
    ]
    return EngineRow(
        name=engine.name,
        as_run=engine.as_run,
        as_run_interval=engine.as_run_interval,
        as_run_rate_interval=engine.results.false_accepts,
        equal=equal,
        equal_interval=equal_interval,
        difference=difference,
        wer=None if wer_percent is None else wer_percent / 100,
        delays=latency_figures(delays),
        cpu_s_per_hour=cpu_s * 3600 / played_s if played_s > usable_s / 2 else None,
        memory_mb=used.memory_mb or None,
    )


def _equal_interval(equal: PointFigures, missed: MissedPhrases, clusters: Mapping[SpokenKey, str]) -> Interval | None:
    if not clusters:
        return equal.false_reject_interval
    return _missed_columns(missed, missed, clusters).share_interval


def _missed_difference(
    missed: MissedPhrases, first: MissedPhrases, clusters: Mapping[SpokenKey, str]
) -> Difference | None:
    """The difference in the share of misses, over the phrases that both engines have."""
    shared_keys = [key for key in first if key in missed]
    columns = _missed_columns(missed, shared_keys, clusters)
    first_columns = _missed_columns(first, shared_keys, clusters)
    return difference_of(MeasureKind.SHARE, columns, first_columns, paired=True)


def _missed_columns(
    missed: MissedPhrases, keys: Collection[SpokenKey], clusters: Mapping[SpokenKey, str]
) -> ComparedColumns:
    """A column of misses (True or False) for some phrases. A phrase without a cluster is its own cluster."""
    names = [clusters.get(key, f"\0{key}") for key in keys] if clusters else None
    return ComparedColumns([missed[key] for key in keys], clusters=names)

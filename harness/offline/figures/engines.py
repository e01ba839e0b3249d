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
"""A recording with the phrase, by kind and number, and -1; or a labelled phrase in it, by its place as in `Fact`."""
Ends = Mapping[SpokenKey, MeasuredDuration]
"""Where phrases, or speech, end in their recordings, in seconds."""


@frozen
class SpokenPhrase:
    """A phrase that was said: a recording that holds one, or a label in a long recording.

    known_s: when its true accept was known, from the start of the recording; None if it was missed.
    """

    key: SpokenKey
    known_s: float | None
    label: LabelledPhrase | None = None


def spoken_in(outcome: FileOutcome, verdict: FileVerdict) -> Iterator[SpokenPhrase]:
    """The phrases of a recording that count."""
    if outcome.kind is ListKind.OOV or verdict.rejected is not None:
        return
    if outcome.kind is not ListKind.LABELLED:
        right = any(fact.key in ACCEPTED for fact in verdict.facts)
        spot = verdict.accepted
        known_s = 0.0 if right else None
        if spot is not None:
            known_s = spot.end / outcome.engine_rate_hz
        yield SpokenPhrase((outcome.kind.value, outcome.number, -1), known_s)
        return
    for fact in verdict.facts:
        if fact.label is not None:
            key = outcome.kind.value, outcome.number, fact.place
            known_s = None if fact.spot is None else fact.spot.end / outcome.engine_rate_hz
            yield SpokenPhrase(key, known_s, fact.label)


MissedPhrases = Mapping[SpokenKey, bool]


@dataclass(frozen=True, eq=False)
class EvaluatedEngine:
    """One evaluation, read for a comparison. log: its name for people and files.

    sweep: None, for the reason no_scores, if there is no score of every file. phrases: those that count, as it ran.
    missed_at: which of them are missed at a threshold; without scores at the one that it ran with.

    developed: the sweep of the development lists, if there are some. chosen: the point that meets the target, if one
    does and a target was given.
    """

    name: str
    log: Path
    journal: JournalFile
    counted: Figures
    sweep: Sweep | None
    no_scores: str
    phrases: Mapping[SpokenKey, SpokenPhrase]
    missed_at: Callable[[float], MissedPhrases]
    developed: Sweep | None = None
    target: SweepTarget | None = None
    chosen: ChosenPoint | None = None

    @property
    def as_run(self) -> PointFigures:
        """As it ran."""
        counts, facts = self.counted.counts, self.journal.header.facts
        wrong = counts.rejects_and_substitutions
        return PointFigures(
            threshold=0.0 if facts.rule is None else facts.rule.threshold,
            point=facts.operating_point,
            misses=wrong,
            files=wrong + counts.true_accepts,
            false_accepts=counts.false_accepts(self.counted.counting),
            hours=counts.exposure_hours(self.counted.counting),
            repeats=max(1, len(self.journal.header.evaluation.conditions)),
        )

    @property
    def own_interval(self) -> Interval | None:
        """Of false rejects, as it ran."""
        return self.counted.with_substitutions or self.counted.false_rejects

    @property
    def points(self) -> Sequence[OperatingPoint]:
        return self.journal.header.facts.operating_points

    @cached_property
    def det(self) -> Det:
        """At every threshold; without scores at the one that the engine ran with. Kept, since it may have millions."""
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
        if self.developed is None:
            return choose(target, self.det, self.points, None)
        return choose(target, self.developed.det_at(), self.points, self.sweep)


@frozen
class EngineRow:
    """An engine's results. own: as it ran. equal: at its point for the rate at which all are compared; its interval
    takes each cluster as a whole.

    difference: false rejects at `equal` less those of the first engine, on the files of both. wer: a share 0–1.
    delays: from the end of the phrase to the detection, of files whose end is known. cpu_s_per_hour: of audio; None
    where the scores of most had been stored.
    """

    name: str
    own: PointFigures
    equal: PointFigures | None
    equal_interval: Interval | None
    difference: Difference | None
    wer: float | None
    delays: LatencyFigures
    cpu_s_per_hour: float | None
    memory_mb: float | None


@frozen
class EnginesTable:
    """rows: in the order given. target: the most false accepts at which they are compared; None without data.

    one_list: whether a point was chosen on the recordings that report it; None where none was chosen.
    clustered_by: the column whose values intervals take as a whole, or ""."""

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
    """target: the most false accepts at which they are compared; None for those of the first engine as it ran.

    clusters: the talker of each phrase, or what else clustered_by names; none: each phrase by itself. InputError if
    two engines have no phrase in common."""
    rows = []
    own_rate = engines[0].as_run.per_hour
    if target is None and own_rate is not None:
        target = SweepTarget(SweepCriterion.FALSE_ACCEPTS, own_rate)
    first: MissedPhrases = {}
    for place, engine in enumerate(engines):
        if place and engine.phrases and not (engines[0].phrases.keys() & engine.phrases.keys()):
            raise InputError(
                f"{engines[0].name} and {engine.name} have no file in common", remedy="Give the same lists"
            )
        choice = None if target is None else engine.choice(target)
        equal = None if choice is None else choice.shown
        missed = {} if equal is None else engine.missed_at(equal.threshold)
        difference = _missed_difference(missed, first, clusters) if place and first and missed else None
        first = first if place else missed
        counts, used = engine.counted.counts, engine.journal.used
        heard_s = (counts.inv_ms + counts.oov_ms) / 1000
        played_s = heard_s - used.cached_s
        cpu_s = counts.cpu_s + used.programs_cpu_s
        errors = engine.counted.totals.get("WER")
        delays = [
            MeasuredDuration(phrase.known_s - ends[key].value_s, ends[key].error_s)
            for key, phrase in engine.phrases.items()
            if key in ends and phrase.known_s
        ]
        rows.append(
            EngineRow(
                name=engine.name,
                own=engine.as_run,
                equal=equal,
                equal_interval=None if equal is None else _interval(equal, missed, clusters),
                difference=difference,
                wer=None if errors is None else errors / 100,
                delays=latency_figures(delays),
                cpu_s_per_hour=cpu_s * 3600 / played_s if played_s > heard_s / 2 else None,
                memory_mb=used.memory_mb or None,
            )
        )
    swept = [engine for engine in engines if engine.sweep is not None]
    one_list = any(engine.developed is None for engine in swept) if target is not None and swept else None
    return EnginesTable(tuple(rows), target, one_list, clustered_by if clusters else "", ends_are_labels)


def _interval(equal: PointFigures, missed: MissedPhrases, clusters: Mapping[SpokenKey, str]) -> Interval | None:
    if not clusters:
        return equal.false_reject_interval
    return _missed_columns(missed, missed, clusters).share_interval


def _missed_difference(
    missed: MissedPhrases, first: MissedPhrases, clusters: Mapping[SpokenKey, str]
) -> Difference | None:
    shared_keys = [key for key in first if key in missed]
    return difference_of(
        MeasureKind.SHARE, *(_missed_columns(side, shared_keys, clusters) for side in (missed, first)), paired=True
    )


def _missed_columns(
    missed: MissedPhrases, keys: Collection[SpokenKey], clusters: Mapping[SpokenKey, str]
) -> ComparedColumns:
    """What an engine missed of some phrases; a phrase of no cluster is one by itself."""
    names = [clusters.get(key, f"\0{key}") for key in keys] if clusters else None
    return ComparedColumns([missed[key] for key in keys], clusters=names)

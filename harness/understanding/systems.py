"""Compares systems on the same utterances: metrics, differences, and the stage at which each loses utterances.

    gold's words ──────────── model ── frames      transcripts: no word is wrong
    sound ── recogniser ───── model ── frames      a cascade
    sound ────────── system ────────── frames      from sound, with words of its own or without
    sound ────────── device ────────── frames      live, in a session

A system loses an utterance at its first wrong stage, in the order words, intent, slot, value. The words that count are
those of gold's slot values; a system without words begins with intents.
Source: the MEDIA paper, 5 and Table 8.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from functools import reduce
from itertools import combinations
from operator import add

import numpy as np

from harness.base.grouping import group_by
from harness.model.errors import InputError, Place
from harness.model.frozen import frozen
from harness.model.transcript import WordCounts
from harness.model.understanding import Corpus, SoundCost, Utterance
from harness.statistics.intervals import Interval, wilson
from harness.statistics.ratios import (
    MIN_RESAMPLED_UNITS,
    MetricDifference,
    RatioColumns,
    jackknife_interval,
    middle_interval,
    sum_by_cluster,
)
from harness.statistics.significance import holm
from harness.transcripts.groups import interval_of
from harness.transcripts.scoring import score as score_words
from harness.transcripts.words import WordRules, normalise
from harness.understanding.cascade import transcripts_of
from harness.understanding.comparison import DRAWS, SHARES, FigureBasis, Metric, basis, columns
from harness.understanding.counts import FrameCounts, Rule, slot_items, total
from harness.understanding.figures import ZERO, ZeroDivision
from harness.understanding.scoring import FrameScoring, ScoredFrame, is_annotated, score

METRICS = (
    Metric.ACCURACY, Metric.EMR, Metric.F1MH, Metric.CER, Metric.VALUED_CER, Metric.SFA, Metric.VALUED_SFA,
)  # fmt: skip
_SEED = 20221  # As in `figures`.


class SystemKind(StrEnum):
    """How a system gets its frames; see the picture above."""

    TRANSCRIPTS = "transcripts"
    CASCADE = "cascade"
    SOUND = "sound"
    LIVE = "live"


class LostStage(StrEnum):
    """The first wrong stage of an utterance whose frame is wrong.

    - WORDS: the words of a slot's value were not recognised.
    - INTENT, SLOT, VALUE: the intents, the concepts, or the values of slots are wrong.
    """

    WORDS = "words"
    INTENT = "intent"
    SLOT = "slot"
    VALUE = "value"


@frozen
class ModelCost:
    """Processor time and elapsed time of a model for a text, in seconds."""

    cpu_s: float = 0.0
    elapsed_s: float = 0.0


@frozen
class ComparedSystem:
    """A system to compare.

    - frames: its predictions.
    - heard: its words; None if it has none, or if they are gold's.
    - model: mean cost of the model that reads the words, for each utterance. The costs of utterances do not include it.
    """

    name: str
    kind: SystemKind
    frames: Corpus
    heard: Corpus | None = None
    model: ModelCost = ModelCost()

    @property
    def ids(self) -> set[str]:
        """Ids of the utterances that it answered."""
        corpora = (self.frames,) if self.heard is None else (self.frames, self.heard)
        return set.intersection(*({utterance.id for utterance in corpus.utterances} for corpus in corpora))


@frozen
class MetricValue:
    """A metric, 0–1 (error rates may be more), with its intervals over utterances and over talkers.

    An interval is None if there are too few utterances or talkers.
    """

    value: float | None
    interval: Interval | None
    over_talkers: Interval | None


@frozen
class SystemResult:
    """The results of a system.

    - lost: for each utterance of `ComparedSystems.ids`, the stage at which it was lost; None if its frame is right. It
      is () if the system never gives the intents or the slots that gold has: no frame can be judged as a whole.
    - words, wer_interval: its word errors against gold, with the interval of the WER; None without words.
    - cost: cost of the answered utterances together; None unless each has one.
    """

    system: ComparedSystem
    counts: FrameCounts
    metrics: Mapping[Metric, MetricValue]
    lost: tuple[LostStage | None, ...]
    words: WordCounts | None
    wer_interval: Interval | None
    cost: SoundCost | None

    @property
    def stages(self) -> Mapping[LostStage | None, int]:
        """Number of utterances by the stage at which they were lost; None counts those that are right."""
        return Counter(self.lost)


@frozen
class SystemDifference:
    """The first system minus the second.

    - over_talkers: interval of each difference over talkers.
    - p_holm: p of each metric, corrected for the number of pairs of systems.
    """

    first: str
    second: str
    metrics: Mapping[Metric, MetricDifference]
    over_talkers: Mapping[Metric, Interval | None]
    p_holm: Mapping[Metric, float | None]


@frozen
class ComparedSystems:
    """The results of all systems on the same utterances."""

    gold: Corpus
    """The utterances that count."""
    rule: Rule
    normalisation: str
    ids: tuple[str, ...]
    """Ids of the utterances that count, in the order of gold."""
    unanswered: Mapping[str, tuple[str, ...]]
    """For each system, the ids that it did not answer."""
    unannotated: int
    """Number of utterances of gold without intents and slots, which do not count."""
    talker_column: str
    """The column of groups that names talkers."""
    talkers: int
    """Number of talkers; 0 unless every utterance names one."""
    nameless: int
    """Number of utterances that do not name a talker."""
    missing_is_empty: bool
    """Whether a missing answer counts as an empty one."""
    results: tuple[SystemResult, ...]
    differences: tuple[SystemDifference, ...]


def compare_systems(
    gold: Corpus,
    systems: Sequence[ComparedSystem],
    rule: Rule,
    wording: WordRules,
    *,
    talker_column: str = "voice",
    missing_is_empty: bool = False,
    zero: ZeroDivision = ZERO,
    labels: Sequence[str] | None = None,
    draws: int = DRAWS,
) -> ComparedSystems:
    """Scores systems on the utterances that all of them answered. Raises InputError if there are none.

    - rule: how frames are compared; places are ignored, since words differ.
    - missing_is_empty: whether an utterance without an answer gets an empty one, and is not left out.
    - draws: number of resamples for intervals.
    """
    annotated = [utterance for utterance in gold.utterances if is_annotated(utterance)]
    answered_ids = [system.ids for system in systems]
    shared = [
        utterance for utterance in annotated if missing_is_empty or all(utterance.id in ids for ids in answered_ids)
    ]
    if not shared:
        problem = "no utterance of gold was answered by every system"
        raise InputError(problem, place=Place(gold.path), remedy="Use the utterance ids of the gold file in every file")
    counted_gold = Corpus(gold.path, tuple(shared))
    rule_without_places = replace(rule, places=False)
    scorings = [
        score(counted_gold, system.frames, rule_without_places, (), missing_is_empty=missing_is_empty)
        for system in systems
    ]
    counts = [[frame.counts for frame in scoring.frames] for scoring in scorings]
    talker_names = [dict(utterance.groups).get(talker_column, "") for utterance in shared]
    talkers = _talker_indices(talker_names)
    values = _metric_values(counts, basis(counts, zero, labels), talkers, draws)
    pairs = list(combinations(range(len(systems)), 2))
    pair_results = [
        _compare_pair((counts[first], counts[second]), talkers, zero, labels, draws) for first, second in pairs
    ]
    corrected_p = {metric: holm([metrics[metric].p for metrics, _ in pair_results]) for metric in METRICS}
    differences: list[SystemDifference] = []
    for (first, second), (metrics, over_talkers) in zip(pairs, pair_results, strict=True):
        p_holm = {metric: corrected_p[metric][len(differences)] for metric in METRICS}
        names = systems[first].name, systems[second].name
        differences.append(SystemDifference(*names, metrics, over_talkers, p_holm))
    return ComparedSystems(
        gold=counted_gold,
        rule=rule,
        normalisation=wording.normalisation.value,
        ids=tuple(utterance.id for utterance in shared),
        unanswered={
            system.name: tuple(utterance.id for utterance in annotated if utterance.id not in ids)
            for system, ids in zip(systems, answered_ids, strict=True)
        },
        unannotated=len(gold.utterances) - len(annotated),
        talker_column=talker_column,
        talkers=len(talkers),
        nameless=talker_names.count(""),
        missing_is_empty=missing_is_empty,
        results=tuple(
            _system_result(system, counted_gold, scoring, metric_values, rule, wording)
            for system, scoring, metric_values in zip(systems, scorings, values, strict=True)
        ),
        differences=tuple(differences),
    )


def lost_stage(frame: ScoredFrame, heard: Utterance | None, rule: Rule, wording: WordRules) -> LostStage | None:
    """The first wrong stage of an utterance; None if its frame is right.

    heard: the words that the system recognised; None to leave out this stage.
    """
    counts = frame.counts
    intents_right = counts.intents.exact.count == counts.intents.exact.total
    if intents_right and not counts.slots.edits.errors and not counts.valued.edits.errors:
        return None
    if heard is not None and not _hears_values(frame.gold, heard, rule, wording):
        return LostStage.WORDS
    if not intents_right:
        return LostStage.INTENT
    return LostStage.SLOT if counts.slots.edits.errors else LostStage.VALUE


def _hears_values(gold: Utterance, heard: Utterance, rule: Rule, wording: WordRules) -> bool:
    """Whether the words of every slot value of gold are in the transcript, together and in order."""
    words = normalise(heard.text, wording.normalisation)
    for slot in slot_items(gold, rule) or ():
        text = slot.value or ""
        if slot.place is not None and gold.words:
            text = " ".join(gold.words[slice(*slot.place)])
        value_words = normalise(text, wording.normalisation)
        if not any(
            words[start : start + len(value_words)] == value_words for start in range(len(words) - len(value_words) + 1)
        ):
            return False
    return True


def _talker_indices(labels: Sequence[str]) -> list[list[int]]:
    """For each talker, the indices of their utterances; [] unless every utterance names a talker."""
    return list(group_by((label, index) for index, label in enumerate(labels)).values()) if all(labels) else []


def _by_talker(
    counts: Sequence[Sequence[FrameCounts]], figure_basis: FigureBasis, talkers: Sequence[Sequence[int]]
) -> RatioColumns[Metric]:
    tables = []
    for indices in talkers:
        talker_counts = [[system_counts[index] for index in indices] for system_counts in counts]
        tables.append(columns(talker_counts, figure_basis))
    return sum_by_cluster(tables)


def _metric_values(
    counts: Sequence[Sequence[FrameCounts]], figure_basis: FigureBasis, talkers: Sequence[Sequence[int]], draws: int
) -> list[dict[Metric, MetricValue]]:
    """The metrics of each system."""
    table = columns(counts, figure_basis)
    estimates, resampled = table.estimates(), table.resampled(draws, _SEED)
    without_each = _by_talker(counts, figure_basis, talkers).without_each() if talkers else {}
    values: list[dict[Metric, MetricValue]] = [{} for _ in counts]
    for metric in METRICS:
        for system, value in enumerate(estimates[metric]):
            if np.isnan(value):
                values[system][metric] = MetricValue(None, None, None)
                continue
            if metric in SHARES:
                column = table.columns[metric].start
                numerator, denominator = (
                    float(table.unit_counts @ side[system, :, column])
                    for side in (table.numerators, table.denominators)
                )
                interval = wilson(round(numerator), round(denominator))
            else:
                interval = middle_interval(resampled[metric][system]) if table.units >= MIN_RESAMPLED_UNITS else None
            over_talkers = jackknife_interval(float(value), without_each[metric][system]) if talkers else None
            values[system][metric] = MetricValue(float(value), interval, _clip(over_talkers, metric))
    return values


def _clip(interval: Interval | None, metric: Metric) -> Interval | None:
    """The interval, clipped to the values that the metric can have."""
    if interval is None:
        return None
    upper = math.inf if metric in (Metric.CER, Metric.VALUED_CER) else 1.0
    return max(0.0, interval[0]), min(upper, interval[1])


def _compare_pair(
    counts: tuple[Sequence[FrameCounts], Sequence[FrameCounts]],
    talkers: Sequence[Sequence[int]],
    zero: ZeroDivision,
    labels: Sequence[str] | None,
    draws: int,
) -> tuple[dict[Metric, MetricDifference], dict[Metric, Interval | None]]:
    """The differences of two systems, and their intervals over talkers."""
    figure_basis = basis(counts, zero, labels)
    by_metric = columns(counts, figure_basis).differences(SHARES, draws=draws, seed=_SEED)
    metrics = {metric: by_metric[metric] for metric in METRICS}
    if not talkers:
        return metrics, dict.fromkeys(METRICS)
    without_each = _by_talker(counts, figure_basis, talkers).without_each()
    return metrics, {
        metric: jackknife_interval(metrics[metric].difference, without_each[metric][0] - without_each[metric][1])
        for metric in METRICS
    }


def _system_result(
    system: ComparedSystem,
    gold: Corpus,
    scoring: FrameScoring,
    metrics: Mapping[Metric, MetricValue],
    rule: Rule,
    wording: WordRules,
) -> SystemResult:
    """The results of a system. gold: the utterances that count, in the order of `scoring`."""
    heard = None if system.heard is None else _in_gold_order(system.heard, gold)
    frames = scoring.frames
    transcripts = (None,) * len(frames) if heard is None else heard.utterances
    lacks_intents = not scoring.intents_given and any(utterance.intents is not None for utterance in gold.utterances)
    lacks_slots = not scoring.slots_given and any(
        utterance.tags is not None or utterance.slots is not None for utterance in gold.utterances
    )
    judged_frames = () if lacks_intents or lacks_slots else zip(frames, transcripts, strict=True)
    words = None
    if heard is not None:
        words = score_words(transcripts_of(gold), transcripts_of(heard), wording, title=heard.path)
    return SystemResult(
        system=system,
        counts=total(frame.counts for frame in frames),
        metrics=metrics,
        lost=tuple(lost_stage(frame, transcript, rule, wording) for frame, transcript in judged_frames),
        words=None if words is None else words.totals,
        wer_interval=None if words is None else interval_of(words),
        cost=_cost(system, gold),
    )


def _cost(system: ComparedSystem, gold: Corpus) -> SoundCost | None:
    """The cost of a system for all answered utterances; None unless each of them has a cost.

    It is the cost of recognising the words (or of the whole system), and of the model that reads them.
    """
    answered_ids = {utterance.id for utterance in gold.utterances} & system.ids
    costs = [utterance.cost for utterance in (system.heard or system.frames).utterances if utterance.id in answered_ids]
    known_costs = [cost for cost in costs if cost is not None]
    if not known_costs or len(known_costs) < len(costs):
        return None
    cost = reduce(add, known_costs)
    model_cpu_s, model_elapsed_s = len(costs) * system.model.cpu_s, len(costs) * system.model.elapsed_s
    return replace(cost, cpu_s=cost.cpu_s + model_cpu_s, elapsed_s=cost.elapsed_s + model_elapsed_s)


def _in_gold_order(corpus: Corpus, gold: Corpus) -> Corpus:
    """The utterances of a corpus in the order of gold. An utterance that it does not have is empty."""
    by_id = {utterance.id: utterance for utterance in corpus.utterances}
    return Corpus(corpus.path, tuple(by_id.get(utterance.id, Utterance(utterance.id)) for utterance in gold.utterances))

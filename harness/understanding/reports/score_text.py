"""A scored system for people: metrics, labels, confusions and comparisons. The HTML page has the same `sections`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from statistics import fmean
from typing import TYPE_CHECKING, Any

from harness.base.plain_json import to_plain
from harness.base.table import NO_LABEL, Field, Notes, Occurrences, Section, Table
from harness.base.text_table import heading, join_blocks, note, shown
from harness.model.choices import MAX_CONFUSIONS, CountedAttempt
from harness.model.frozen import frozen
from harness.model.numbers import exact, percent, points, probability
from harness.model.understanding import Chunking, Detail
from harness.statistics.confidence import ConfidenceFigures
from harness.statistics.intervals import Interval, Share
from harness.statistics.text import percent_interval, points_interval
from harness.understanding.counts import FrameCounts, MatchCounts, Rule, SlotCounts, ValueRule, pooled
from harness.understanding.figures import (
    ZERO,
    AverageIntervals,
    Averages,
    FrameFigures,
    SlotFigures,
    ZeroDivision,
    accuracy_interval,
    cer_interval,
    concept_f1,
    frame_figures,
    pooled_f1_interval,
    pooled_intervals,
    samples_intervals,
    scope_figures,
    share_interval,
    slu_f1s,
    sum_columns,
)
from harness.understanding.scoring import DetailCounts, Samples, SystemCounts

if TYPE_CHECKING:  # limits need the names of metrics, but no arrays
    from harness.statistics.ratios import MetricDifference
    from harness.understanding.comparison import FrameComparison, Metric

MAX_ROWS = 100


per_cent = partial(percent, digits=2)
short_interval = partial(percent_interval, digits=1)


def chunking_in_words(rule: Rule) -> str:
    """How tags become slots, in words."""
    iob2 = rule.chunking is Chunking.IOB2
    return f"{rule.chunking} ({'only B- begins a slot' if iob2 else 'an I- may begin a slot'})"


def details_in_words(rules: Sequence[Rule]) -> str:
    """Which part of concepts is compared, in words."""
    rule = rules[0]
    details = " and ".join(rule.detail.value for rule in rules)
    if len(rules) == 1 and rule.detail.value == "full":
        return f"{details} (whole concepts)"
    attributes = f", except in {len(rule.attributes)} attributes" if rule.attributes else ""
    return f"{details} (relax drops the part after the last {shown(rule.separator, 8)!r}{attributes})"


def zero_in_words(zero: ZeroDivision) -> str:
    """The values of 0/0, in words."""
    parts = {"precision": zero.precision, "recall": zero.recall, "F1": zero.f1, "accuracy": zero.accuracy}
    if len(set(parts.values())) == 1:
        return f"{exact(zero.precision)} ({zero.name})"
    return f"{', '.join(f'{exact(value)} for {name}' for name, value in parts.items())} ({zero.name})"


def comparison_in_words(rule: Rule) -> str:
    """How slots and values are compared, if not in the default way; else ""."""
    notes = []
    if not rule.ordered:
        notes.append("slots have no order: both sides are sorted by concept and value")
    if not rule.places:
        notes.append("slot positions are ignored")
    if rule.values is not ValueRule.NONE:
        notes.append(f"values compared {rule.values}, if both sides have them")
    return "; ".join(notes)


NO_INTENTS = "no intents in gold, or none in the predictions"
NO_SLOTS = "no slots in gold, or none in the predictions"
NO_PLACES = "slots have no positions, or the words differ"


@frozen
class FigureRow:
    """One metric.

    - key: its name in JSON and in limits.
    - value: 0–1 (a CER may exceed 1); None without data.
    - interval: 95 % interval; None without one.
    - counts: the counts in words, or why there is no value.
    - detail: the detail of concepts; None for metrics that do not depend on it.
    """

    key: str
    name: str
    value: float | None
    interval: Interval | None
    counts: str
    detail: Detail | None = None
    more_is_better: bool = True


@dataclass(frozen=True)
class SystemReport:
    """A system's counts, and the choices for its metrics.

    - labels: all declared intents; None if none are declared.
    - outside: the intent that means "out of scope". "" if no intent means it, None if out of scope is not measured.
    - confidence: how reliable the scores of intents are; None if the predictions have no scores.
    """

    counts: SystemCounts
    zero: ZeroDivision = ZERO
    labels: tuple[str, ...] | None = None
    outside: str | None = None
    confidence: ConfidenceFigures | None = None

    @cached_property
    def figures(self) -> tuple[FrameFigures, ...]:
        """The metrics for each detail of concepts."""
        return tuple(frame_figures(detail.totals, self.zero, self.labels) for detail in self.counts.details)

    @cached_property
    def rows(self) -> tuple[FigureRow, ...]:
        """The rows of intents once, and the rows of slots and SFA for each detail of concepts."""
        rows = list(self._intent_rows())
        for detail, figures in zip(self.counts.details, self.figures, strict=True):
            rows += _slot_rows(detail, figures.slots, detail.totals.slots, detail.samples, valued=False)
            clusters = detail.totals.clusters
            tagged, frames = detail.totals.frames_tagged, figures.slots.frames
            if tagged.total == frames.total and tagged != frames:
                text = f"{_of_utterances(tagged)}; all tags the same as in gold"
                interval = share_interval(tagged, [cluster.frames_tagged for cluster in clusters])
                rows.append(FigureRow("sfa_tags", "SFA by tags", tagged.value, interval, text, detail.rule.detail))
            if figures.valued is not None:
                rows += _slot_rows(detail, figures.valued, detail.totals.valued, None, valued=True)
                rows += _slu_rows(detail)
        return tuple(rows)

    def row(self, key: str, detail: Detail | None = None) -> FigureRow | None:
        """The row of a metric; None if there is none. detail: None for the first detail that has it."""
        return next((row for row in self.rows if row.key == key and detail in (None, row.detail)), None)

    def row_name(self, row: FigureRow) -> str:
        """The name of a row, with its detail if there are several details."""
        return f"{row.name} ({row.detail})" if len(self.counts.details) > 1 and row.detail else row.name

    @property
    def table(self) -> Table[FigureRow]:
        """The table of all metrics."""
        fields: tuple[Field[FigureRow], ...] = (
            Field("", "metric", self.row_name),
            Field("", "value", lambda row: per_cent(row.value), main=True),
            Field("", "95 % interval", lambda row: short_interval(row.interval)),
            Field("", "counts", lambda row: row.counts, left=True, folds=True),
        )
        return Table(fields, self.rows)

    def _intent_rows(self) -> Iterator[FigureRow]:
        figures, counts = self.figures[0].intents, self.counts.details[0].totals.intents
        overlaps, number = counts.judged_overlaps, figures.utterances
        clusters = [cluster.intents for cluster in self.counts.details[0].totals.clusters]
        cluster_overlaps = [cluster.judged_overlaps for cluster in clusters]
        if not number:
            yield FigureRow("emr", "EMR (exact match)", None, None, NO_INTENTS)
            return
        basis = f"mean over {_counted_utterances(number)}"
        if figures.empty_rightly:
            basis += f"; {figures.empty_rightly:,} {'is' if figures.empty_rightly == 1 else 'are'} 0/0"
        zero = self.zero
        accuracy = accuracy_interval(overlaps, zero, cluster_overlaps)
        yield FigureRow("intent_accuracy", "intent accuracy", figures.accuracy, accuracy, basis)
        yield FigureRow(
            "emr", "EMR (exact match)", figures.exact.value, figures.exact_interval, _of_utterances(figures.exact)
        )
        intervals = samples_intervals(overlaps, zero, cluster_overlaps)
        yield from _average_rows("{}_samples", "{}, samples", figures.samples, intervals, (basis,) * 3)
        labels = f"mean over {len(figures.labels):,} {'declared' if figures.declared else 'seen'} labels"
        yield from _average_rows("{}_macro", "{}, macro", figures.macro, _NO_INTERVALS, (labels,) * 3)
        text = "mean over labels, each weighted by its frequency in gold"
        yield from _average_rows("{}_weighted", "{}, weighted", figures.weighted, _NO_INTERVALS, (text,) * 3)
        intervals = pooled_intervals(counts.overlaps, [cluster.overlaps for cluster in clusters])
        texts = _count_texts(pooled(counts.labels.values()), "intents")
        yield from _average_rows("{}_micro", "{}, micro", figures.micro, intervals, texts)
        if self.outside is not None:
            shares = zip(*(scope_figures(intents, self.outside) for intents in (counts, *clusters)), strict=True)
            for (key, name, more_is_better), (share, *cluster_shares) in zip(_SCOPE, shares, strict=True):
                interval, text = share_interval(share, cluster_shares), _of_utterances(share)
                yield FigureRow(key, name, share.value, interval, text, more_is_better=more_is_better)
        for index, part in enumerate(counts.parts or ()):
            name = ("scenario", "action")[index]
            text = _count_texts(sum_columns(part), f"{name}s")[2]
            cluster_parts = [cluster.part_counts(index) for cluster in clusters]
            yield FigureRow(f"{name}_f1", f"{name} F1", *concept_f1(part, cluster_parts), text)


def _slot_rows(
    detail_counts: DetailCounts, figures: SlotFigures, counts: SlotCounts, samples: Samples | None, *, valued: bool
) -> Iterator[FigureRow]:
    """The rows of slots. samples: for intervals; None if only shares have intervals, as for metrics with values."""
    detail = detail_counts.rule.detail
    clusters = [cluster.valued if valued else cluster.slots for cluster in detail_counts.totals.clusters]
    key, name = ("value_", " with values") if valued else ("", "")
    if not figures.utterances:
        yield FigureRow("slot_f1", "slot F1", None, None, NO_SLOTS, detail)
        return
    chunks = pooled(counts.chunks.values())
    intervals = _NO_INTERVALS
    if samples:
        intervals = pooled_intervals(samples.chunks, [{pooled(slots.chunks.values()): 1} for slots in clusters])
    if figures.unplaced == figures.utterances:
        yield FigureRow(f"{key}slot_f1", f"slot F1{name}", None, None, NO_PLACES, detail)
    else:
        left_out = ""
        if figures.unplaced:
            left_out = f"; {_counted_utterances(figures.unplaced)} without slot positions left out"
        *texts, f1_text = _count_texts(chunks, "chunks")
        texts.append(f1_text + left_out)
        yield from _average_rows(f"{key}slot_{{}}", f"slot {{}}{name}", figures.micro, intervals, texts, detail)
        text = "mean over concepts, each weighted by its frequency in gold"
        yield FigureRow(f"{key}slot_f1_weighted", f"slot F1, weighted{name}", figures.weighted.f1, None, text, detail)
    concepts = pooled(counts.concepts.values())
    interval = None
    if samples:
        interval = pooled_f1_interval(samples.concepts, [{pooled(slots.concepts.values()): 1} for slots in clusters])
    text = _count_texts(concepts, "concepts")[2]
    yield FigureRow(f"{key}f1mh", f"F1mh{name}", figures.concept_sets.f1, interval, text, detail)
    if valued or figures.unplaced:
        text = f"{_count_texts(sum_columns(counts.multisets), 'slots')[2]}; each counted as often as it occurs"
        f1 = concept_f1(counts.multisets, [slots.multisets for slots in clusters])
        yield FigureRow(f"{key}concept_f1", f"concept F1{name}", *f1, text, detail)
    edits = counts.edits
    sums = f"{edits.substitutions:,} S + {edits.deletions:,} D + {edits.insertions:,} I of {edits.words:,} concepts"
    interval = None
    if samples:
        interval = cer_interval(samples.edits, [{(slots.edits.errors, slots.edits.words): 1} for slots in clusters])
    yield FigureRow(f"{key}cer", f"CER{name}", figures.cer, interval, sums, detail, more_is_better=False)
    if not figures.frames.total:
        yield FigureRow(f"{key}sfa", f"SFA{name}", None, None, "no utterance has both intents and slots", detail)
        return
    matching = "slots with their positions" if figures.by_place else "slots as lists of concepts"
    sfa = f"{_of_utterances(figures.frames)}; {matching}"
    yield FigureRow(f"{key}sfa", f"SFA{name}", figures.frames.value, figures.frames_interval, sfa, detail)


def _counted_utterances(number: int) -> str:
    return f"{number:,} {'utterance' if number == 1 else 'utterances'}"


def _of_utterances(share: Share) -> str:
    return f"{share.count:,} of {share.total:,} utterances"


def _slu_rows(detail_counts: DetailCounts) -> Iterator[FigureRow]:
    """The rows of SLURP's metrics of slots with values. No rows without such slots."""
    entities = detail_counts.totals.entities
    clusters = [cluster.entities for cluster in detail_counts.totals.clusters]
    sums = sum_columns(entities)
    text = f"{sums.right:,} paired by concept, {sums.gold:,} slots, {sums.predicted:,} predicted"
    for (key, name), (value, interval) in zip(_SLU.items(), slu_f1s(entities, clusters), strict=True):
        if value is not None:
            yield FigureRow(key, name, value, interval, text, detail_counts.rule.detail)


_SCOPE = (
    ("out_of_scope_found", "out of scope found", True),
    ("in_scope_refused", "in scope refused", False),
    ("emr_in_scope", "EMR in scope", True),
)
_SLU = {"slu_f1": "SLU-F1", "slu_word_f1": "SLU-F1, words", "slu_character_f1": "SLU-F1, characters"}


_NO_INTERVALS: AverageIntervals = None, None, None


def _average_rows(
    key: str,
    name: str,
    averages: Averages,
    intervals: AverageIntervals,
    texts: Sequence[str],
    detail: Detail | None = None,
) -> Iterator[FigureRow]:
    """The rows of precision, recall and F1.

    - key, name: with {} in the place of these words.
    - texts: the counts of each in words.
    """
    values = averages.precision, averages.recall, averages.f1
    for word, value, interval, text in zip(("precision", "recall", "F1"), values, intervals, texts, strict=True):
        yield FigureRow(key.format(word.lower()), name.format(word), value, interval, text, detail)


def _count_texts(counts: MatchCounts, noun: str) -> tuple[str, str, str]:
    right = f"{counts.right:,} right"
    return (
        f"{right} of {counts.predicted:,} predicted {noun}",
        f"{right} of {counts.gold:,} {noun}",
        f"{right}, {counts.gold:,} {noun}, {counts.predicted:,} predicted",
    )


NOTE_WIDTH = 14
"""Width of the names of notes, in characters."""


def systems_lines(
    systems: Sequence[SystemReport], width: int, *, confusions: int = MAX_CONFUSIONS, colour: bool
) -> Iterator[str]:
    """The reports on all systems, each below its name if there are several. confusions: as for `system_lines`."""
    for index, system in enumerate(systems):
        if index > 0:
            yield ""
        if len(systems) > 1:
            yield heading(system.counts.predicted, width, colour)
        yield from system_lines(system, width, confusions=confusions)


def system_lines(system: SystemReport, width: int, *, confusions: int = MAX_CONFUSIONS) -> Iterator[str]:
    """The report on one system. confusions: most rows of confusions; 0 for all."""
    max_rows_by_section = {"confusions": confusions or None}
    return join_blocks(
        *(section.lines(width, max_rows_by_section.get(section.key, MAX_ROWS)) for section in sections(system))
    )


def sections(system: SystemReport, ids: int = 5) -> Iterator[Section]:
    """The sections on one system. Metrics come last, so that a terminal still shows them.

    ids: number of ids that are listed with a count of utterances.
    """
    counts, first = system.counts, system.figures[0]
    yield Section("basis", "Basis", (_basis(system),))
    if first.intents.utterances:
        yield Section("intents", "Intents", (label_table("intent", first.intents.labels),))
        yield Section("confusions", "Confusions of single intents", (_confusions(first),))
    concepts = []
    for detail, figures in zip(counts.details, system.figures, strict=True):
        if labels := figures.slots.per_concept or figures.slots.per_concept_set:
            once = "" if figures.slots.per_concept else ", once per utterance"
            concepts.append(label_table(f"concept ({detail.rule.detail}{once})", labels))
    if concepts:
        yield Section("concepts", "Concepts", concepts)
    groups = [
        group_table(column, labels, detail, system)
        for detail in counts.details
        for column, labels in detail.groups
        if len(labels) > 1
    ]
    if groups:
        yield Section("groups", "Groups", groups)
    if system.confidence is not None:
        from harness.transcripts.reports.text import confidence  # here, since few predictions have scores

        yield confidence(system.confidence, "utterances", "Scores of intents")
    yield Section("figures", "Results", (_remarks(system, ids),))
    yield Section("metrics", "All metrics", (system.table,))


def _basis(system: SystemReport) -> Notes:
    counts = system.counts
    rules = [detail.rule for detail in counts.details]
    pairs = [
        ("gold", shown(counts.gold, 200)),
        ("predicted", shown(counts.predicted, 200)),
        ("chunking", chunking_in_words(rules[0])),
        ("concepts", details_in_words(rules)),
        ("0/0", zero_in_words(system.zero)),
    ]
    if slots := comparison_in_words(rules[0]):
        pairs.append(("slots", slots))
    return Notes(pairs, NOTE_WIDTH)


LabelRow = tuple[str, MatchCounts, Averages]
GroupRow = tuple[str, FrameFigures]


def label_table(title: str, rows: Sequence[LabelRow]) -> Table[LabelRow]:
    """A table with a row for each intent or concept, most frequent first."""
    fields: tuple[Field[LabelRow], ...] = (
        Field("", title, lambda row: row[0]),
        Field("", "gold", lambda row: f"{row[1].gold:,}"),
        Field("", "predicted", lambda row: f"{row[1].predicted:,}"),
        Field("", "right", lambda row: f"{row[1].right:,}"),
        Field("", "precision", lambda row: per_cent(row[2].precision)),
        Field("", "recall", lambda row: per_cent(row[2].recall)),
        Field("", "F1", lambda row: per_cent(row[2].f1), main=True),
    )
    rows = sorted(rows, key=lambda row: (-row[1].gold, row[0]))
    return Table(fields, rows, plots=[(averages.f1, None) for *_, averages in rows])


def _confusions(figures: FrameFigures) -> Occurrences:
    """The confusions of utterances with one intent on each side."""
    single = sum(count for _, count in figures.intents.confusions)
    title = f"confusions of single intents, over {single:,} utterances with one intent on each side"
    return Occurrences(title, [(pair, count) for pair, count in figures.intents.confusions if pair[0] != pair[1]])


def _remarks(system: SystemReport, ids: int) -> Notes:
    counts, intents = system.counts, system.figures[0].intents
    pairs = []
    if intents.utterances:
        zero = " (0/0)" if intents.empty_rightly else ""
        predictions = "prediction" if intents.empty == 1 else "predictions"
        empty = f"{intents.empty:,} {predictions} with no intent, {intents.empty_rightly:,} of them correct{zero}"
        pairs.append(("empty", empty))
        if intents.never_predicted:
            names = ", ".join(shown(label, 40) for label in intents.never_predicted[: 4 * ids])
            more = ", …" if len(intents.never_predicted) > 4 * ids else ""
            pairs.append(("never", f"{len(intents.never_predicted):,} never predicted: {names}{more}"))
    if unit := interval_unit(counts.details[0].totals):
        pairs.append(("intervals", unit))
    missing_effect = "; counted as empty predictions, and never as right" if counts.missing else ""
    pairs.append(("missing", f"{listed(counts.missing, ids)}{missing_effect}"))
    unknown_effect = "; not counted" if counts.unknown else ""
    pairs.append(("without gold", f"{listed(counts.unknown, ids)}{unknown_effect}"))
    for name, utterances, effect in (
        ("not annotated", counts.unannotated, "; not counted"),
        ("other words", counts.other_words, ": words of gold and prediction differ"),
        ("blanks", counts.surplus_blanks, ": a slot value has extra spaces, which count"),
    ):
        if utterances:
            pairs.append((name, f"{listed(utterances, ids)}{effect}"))
    return Notes(pairs, NOTE_WIDTH)


def interval_unit(totals: FrameCounts) -> str:
    """What the intervals are over if queries are repeated; else ""."""
    if totals.clusters:
        return f"over {len(totals.clusters):,} queries, since some are repeated"
    if 0 < len(totals.queries) < totals.utterances:
        return "over utterances of few queries; for other queries, they are too narrow"
    return ""


def _metric_field(
    key: str, title: str, figure: Callable[[FrameFigures], float | None], *, main: bool = False
) -> Field[GroupRow]:
    return Field(key, title, lambda row: figure(row[1]), lambda row: per_cent(figure(row[1])), main=main)


_GROUP_FIELDS: tuple[Field[GroupRow], ...] = (
    Field("", "utterances", lambda row: f"{row[1].utterances:,}"),
    _metric_field("emr", "EMR", lambda figures: figures.intents.exact.value, main=True),
    Field("", "95 %", lambda row: short_interval(row[1].intents.exact_interval)),
    _metric_field("intent_accuracy", "", lambda figures: figures.intents.accuracy),
    _metric_field("slot_f1", "slot F1", lambda figures: figures.slots.micro.f1),
    _metric_field("f1mh", "F1mh", lambda figures: figures.slots.concept_sets.f1),
    _metric_field("cer", "CER", lambda figures: figures.slots.cer),
    _metric_field("sfa", "SFA", lambda figures: figures.slots.frames.value, main=True),
    Field("", "95 %", lambda row: short_interval(row[1].slots.frames_interval)),
)


def group_table(
    column: str, labels: Sequence[tuple[str, FrameCounts]], detail: DetailCounts, system: SystemReport
) -> Table[GroupRow]:
    """A table with a row for each label of a column, then their means."""
    detail_name = f" ({detail.rule.detail})" if len(system.counts.details) > 1 else ""
    label: Field[GroupRow] = Field(
        "label", f"by {column}{detail_name}", lambda row: row[0], lambda row: row[0] or NO_LABEL
    )
    rows = [(name, frame_figures(counts, system.zero, system.labels, detail.totals)) for name, counts in labels]
    if detail.totals.clusters and not any(counts.queries for _, counts in labels):
        rows = [(name, _without_intervals(figures)) for name, figures in rows]  # merged files name no queries of groups
    table = Table((label, *_GROUP_FIELDS), rows)
    means = group_means(table)
    cells = [per_cent(means.get(field.key)) if field.key else "" for field in table.titled[1:]]
    return replace(table, ends=[(f"mean of {len(rows)}", *cells)] if means else ())


def _without_intervals(figures: FrameFigures) -> FrameFigures:
    return replace(
        figures,
        intents=replace(figures.intents, exact_interval=None),
        slots=replace(figures.slots, frames_interval=None),
    )


def group_means(table: Table[GroupRow]) -> dict[str, float | None]:
    """Means over groups with equal weights, as usual over locales.

    A mean is None if a group has no value. {} for a single group.
    """
    rows = table.json()
    if len(rows) < 2:
        return {}
    means: dict[str, float | None] = {}
    for key in rows[0]:
        if key != "label":
            values = [row[key] for row in rows if row[key] is not None]
            means[key] = fmean(values) if len(values) == len(rows) else None
    return means


def listed(ids: Sequence[str], max_ids: int = 5) -> str:
    """The number of ids, and the first of them. max_ids: number of ids to list."""
    if not ids:
        return "0"
    first = ", ".join(shown(id_, 40) for id_ in ids[:max_ids])
    return f"{len(ids):,} ({first}{', …' if len(ids) > max_ids else ''})"


@frozen
class SessionNotes:
    """What the scores of sessions leave out.

    - attempt: which attempt of each trial is scored.
    - not_counted: ids of trials without a report of what was understood.
    - unfinished: sessions whose run was not completed, each with what was finished.
    """

    attempt: CountedAttempt
    not_counted: tuple[str, ...]
    unfinished: tuple[str, ...]

    def __add__(self, other: SessionNotes) -> SessionNotes:
        return SessionNotes(self.attempt, self.not_counted + other.not_counted, self.unfinished + other.unfinished)

    def lines(self) -> Iterator[str]:
        yield f"attempt       the {self.attempt} of each trial"
        yield from (f"unfinished    {session}" for session in self.unfinished)
        if self.not_counted:
            yield f"unknown       {listed(self.not_counted)}: no report of what was understood; not counted"


def comparison_lines(comparisons: Sequence[FrameComparison], width: int) -> Iterator[str]:
    """A table for each pair of systems: difference in percentage points, interval, and p."""
    for comparison in comparisons:
        yield ""
        shared = f"{_counted_utterances(len(comparison.utterances))} that both have"
        yield shown(f"first: {comparison.first}, second: {comparison.second}; on {shared}", width)
        counted_nowhere = comparison.only_first + comparison.only_second + comparison.neither
        if counted_nowhere:
            yield (
                f"left out: {comparison.only_first:,} only in the first, "
                f"{comparison.only_second:,} only in the second, {comparison.neither:,} in neither"
            )
        yield from difference_table(comparison.differences).lines(width, max_rows=MAX_ROWS)
        yield from note("difference", f"first minus second, {IN_POINTS}", width, NOTE_WIDTH)


IN_POINTS = "in percentage points; higher is better, except for error rates (CER)"
"""The unit and the direction of differences."""
DifferenceRow = tuple[str, "MetricDifference"]
DIFFERENCE_FIELDS: tuple[Field[DifferenceRow], ...] = (
    Field("", "difference", lambda row: points(row[1].difference), main=True),
    Field("", "95 % interval", lambda row: points_interval(row[1].interval)),
    Field("", "p", lambda row: probability(row[1].p)),
)


def difference_table(differences: Mapping[Metric, MetricDifference]) -> Table[DifferenceRow]:
    """A table of the differences of all metrics that both systems have."""
    fields: tuple[Field[DifferenceRow], ...] = (
        Field("", "metric", lambda row: row[0]),
        Field("", "first", lambda row: per_cent(row[1].first)),
        Field("", "second", lambda row: per_cent(row[1].second)),
        *DIFFERENCE_FIELDS,
    )
    rows = [(key.in_words, difference) for key, difference in differences.items() if difference.difference is not None]
    return Table(fields, rows)


def comparison_json(comparison: FrameComparison) -> dict[str, Any]:
    """A comparison for JSON: the differences, 0–1, with two-sided p."""
    entry: dict[str, Any] = to_plain(comparison)
    return {**entry, "utterances": len(comparison.utterances)}

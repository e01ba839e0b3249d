"""Scored transcripts as lines for people: speakers, totals, groups, systems compared, confusions, alignments.

As the reports sys, lur, dtl and pra of NIST's sclite.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from harness.base.table import Field, Table
from harness.base.text_table import GAP, LEAST_LABEL, Column, note, padded, shown, text_table, width_of
from harness.model.choices import ERROR_RATES, UNIT_NOUNS, Aligned, TextUnit
from harness.model.numbers import NOTHING, fixed, p_is, percent, points, probability
from harness.model.transcript import AlignedWord, Edit, WordCounts
from harness.statistics.confidence import ConfidenceBin, ConfidenceFigures
from harness.statistics.intervals import Interval, Share
from harness.statistics.significance import Discordance, paired_difference
from harness.statistics.text import percent_interval, points_interval
from harness.transcripts.entities import EntityErrors
from harness.transcripts.groups import (
    Crossed,
    Grouped,
    GroupedComparison,
    GroupFigures,
    GroupWords,
    SystemComparison,
    Unit,
    unit_of,
)
from harness.transcripts.paired_tests import PairedBy, PairedTest
from harness.transcripts.reports.scoring_json import Scored
from harness.transcripts.scoring import Confusions, ScoredUtterance, Scoring, confusions
from harness.transcripts.talkers import TalkerPair

NO_LABEL = "(none)"
ALL = "all"
INTERVALS = {
    Unit.SPEAKERS: "for further speakers like these",
    Unit.UTTERANCES: "for further utterances of these speakers",
    Unit.QUERIES: "for further queries like these",
}
TESTS = {
    PairedBy.WORDS: "{rate}",
    PairedBy.RECOGNISED: "recognised or not (McNemar)",
    PairedBy.SEGMENTS: "errors by segment (MAPSSWE)",
    PairedBy.SIGNS: "lower {rate} (sign test)",
    PairedBy.RANKS: "lower {rate} (Wilcoxon)",
}
MOST_ROWS = 100
"""Rows of a table of groups that a person reads; the JSON has all."""
_LISTED_IDS = 5
_WIDEST_TITLE, _LEAST_CROSSED, _WIDEST_LABEL = 40, 14, 40

_SPEAKERS = (
    Column("correct", gives_way=5),
    Column("sub", gives_way=1),
    Column("del", gives_way=2),
    Column("ins", gives_way=3),
    Column("err"),
    Column("sent.err", gives_way=4),
)
_DIFFERENCES = (
    Column("sentences", gives_way=4),
    Column("first", gives_way=1),
    Column("second", gives_way=2),
    Column("difference"),
    Column("95 % interval"),
    Column("p", gives_way=3),
)

_TESTS = (Column("test"), Column("over"), Column("first better"), Column("second better"), Column("p"))


def report(
    of: Scored, alignments: Aligned | None, confusions_listed: int | None, width: int, *, colour: bool
) -> Iterator[str]:
    """The lines on one system; its summary and groups come last, where a terminal still shows them."""

    def marked(line: str) -> str:
        return f"\x1b[1m{line}\x1b[0m" if colour else line

    scoring = of.scoring
    if alignments is not None:
        for utterance in scoring.utterances(scoring.with_errors() if alignments is Aligned.ERRORS else None):
            yield from aligned(utterance, width, colour=colour)
            yield ""
    if confusions_listed is not None:
        yield from confused(confusions(scoring), confusions_listed, width, scoring.unit)
        yield ""
    yield marked(f"system: {shown(scoring.title, width - 8)}")
    yield ""
    yield from summary(scoring, width)
    yield ""
    for line in notes(scoring, of.interval, width):
        yield marked(line) if line.startswith(ERROR_RATES[scoring.unit]) else line
    if of.confidence is not None:
        yield ""
        yield from confidence(of.confidence, width)
    if of.entities is not None:
        yield ""
        yield from entities(of.entities, width)
    if of.talkers:
        yield ""
        yield from talkers(of.talkers, width)
    if of.groups is not None:
        yield ""
        yield from groups(of.groups, width, scoring.unit)


def summary(scoring: Scoring, width: int) -> Iterator[str]:
    """A line for each speaker, then all together, and the spread over speakers, each as heavy as the others."""
    speakers = [counts for _, counts in scoring.by_speaker]
    columns = [[value for value in column if value is not None] for column in zip(*map(_values, speakers), strict=True)]
    columns = columns or [[] for _ in _values(WordCounts())]
    spread = {
        "Mean": [float(np.mean(column)) if column else None for column in columns],
        "S.D.": [float(np.std(column, ddof=1)) if len(column) > 1 else None for column in columns],
        "Median": [float(np.median(column)) if column else None for column in columns],
    }
    counted = (Column("speaker"), Column("sentences", gives_way=6), Column(f"{UNIT_NOUNS[scoring.unit]}s"))
    yield from text_table(
        (*counted, *_SPEAKERS),
        [(name or "(no speaker)", *_cells(counts)) for name, counts in scoring.by_speaker],
        width,
        ends=[
            ("Sum / avg", *_cells(scoring.totals)),
            *((name, *map(_decimal, values)) for name, values in spread.items()),
        ],
    )


def _values(counts: WordCounts) -> tuple[float | None, ...]:
    """Sentences, words; correct, substitutions, deletions, insertions, errors and sentences with error per cent."""
    of = (counts.correct, counts.substitutions, counts.deletions, counts.insertions, counts.errors)
    shares = (100 * count / counts.words if counts.words else None for count in of)
    return counts.sentences, counts.words, *shares, _sentence_errors(counts)


def _sentence_errors(counts: WordCounts) -> float | None:
    return 100 * counts.sentences_with_error / counts.sentences if counts.sentences else None


def _cells(counts: WordCounts) -> tuple[str, ...]:
    return str(counts.sentences), str(counts.words), *map(_decimal, _values(counts)[2:])


def _decimal(value: float | None) -> str:
    return fixed(value, 1)


def notes(scoring: Scoring, interval: Interval | None, width: int) -> Iterator[str]:
    """The basis of the results: normalisation, rate with its 95 % interval, utterances without a partner or words."""
    yield from note("normalisation", shown(scoring.normalisation, max(20, width - 21)), width)
    yield from note(ERROR_RATES[scoring.unit], wer_in_words(scoring.totals, interval, scoring.unit), width)
    if interval is not None:
        yield from note("interval", INTERVALS[unit_of(scoring)], width)
    lost = f"; each {UNIT_NOUNS[scoring.unit]} counts as deleted"
    counted = "; left out" if scoring.dropped else lost if scoring.missing else ""
    missing = _listed(scoring.dropped or scoring.missing, scoring.without_hypothesis, width)
    yield from note("missing hypotheses", missing + counted, width)
    nowhere = "; counted nowhere" if scoring.surplus else ""
    yield from note("surplus hypotheses", _listed(len(scoring.surplus), scoring.surplus, width) + nowhere, width)
    yield from note("empty references", f"{scoring.empty_references:,}", width)


def entity_table(of: EntityErrors, *, with_all: bool = True) -> Table[tuple[str, Share]]:
    """A row for each tag, then all together."""
    fields: tuple[Field[tuple[str, Share]], ...] = (
        Field("", "tag", lambda row: row[0]),
        Field("", "entities", lambda row: row[1].total),
        Field("", "with error", lambda row: row[1].count),
        Field("", "error", lambda row: percent(row[1].value, 2), main=True),
        Field("", "95 % interval", lambda row: percent_interval(row[1].interval, 2)),
    )
    return Table(fields, (*of.by_tag, (ALL, of.total)) if with_all else of.by_tag)


def entities(of: EntityErrors, width: int) -> Iterator[str]:
    """The errors of marked spans, by tag."""
    ends = entity_table(of).cells[-1:] if len(of.by_tag) > 1 else []
    yield from entity_table(of, with_all=False).lines(width, ends=ends)
    if of.left_out:
        yield ""
        yield from note("entities left out", f"{of.left_out:,}", width)


def talkers(of: Sequence[TalkerPair], width: int) -> Iterator[str]:
    """Who is whom in each recording."""
    rows = [(shown(one.recording), *(shown(name or NOTHING) for name in (one.reference, one.hypothesis))) for one in of]
    columns = (Column("recording"), Column("speaker"), Column("in the hypothesis"))
    yield from text_table(columns, rows, width)


def confidence_table(of: ConfidenceFigures, what: str) -> Table[ConfidenceBin]:
    """What the confidences of words, or what else there is, are worth."""
    fields: tuple[Field[ConfidenceBin], ...] = (
        Field("", "confidence", lambda row: f"{fixed(row.low, 1)}–{fixed(row.high, 1)}"),
        Field("", what, lambda row: row.correct.total),
        Field("", "mean", lambda row: percent(row.mean, 1)),
        Field("", "correct", lambda row: percent(row.correct.value, 1), main=True),
        Field("", "95 % interval", lambda row: percent_interval(row.correct.interval, 1)),
    )
    return Table(fields, of.bins)


def confidence(of: ConfidenceFigures, width: int, what: str = "words") -> Iterator[str]:
    """A reliability table, and what it comes to."""
    yield from confidence_table(of, what).lines(width)
    yield ""
    yield from note("NCE", f"{fixed(of.nce, 3)} (1: perfect; 0: no better than the share of correct {what})", width)
    yield from note("calibration error", percent(of.calibration_error, 1), width)
    yield from note("equal error", percent(of.equal_error, 1), width)
    if of.left_out:
        yield from note("without confidence", f"{of.left_out:,} {what}", width)


def wer_in_words(counts: WordCounts, interval: Interval | None, unit: TextUnit = TextUnit.WORD) -> str:
    """`12 of 120 = 10.00 % (95 % interval 5.10–16.30 %)`; over no words n/a, and the insertions are stated."""
    if counts.wer is None:
        return f"{NOTHING} (of no {UNIT_NOUNS[unit]}s; {counts.insertions:,} inserted)"
    of = f"{counts.errors:,} of {counts.words:,} = {percent(counts.wer, 2)}"
    return f"{of} (95 % interval {percent_interval(interval, 2)})"


def _listed(count: int, ids: Sequence[str], width: int) -> str:
    if not count:
        return "0"
    each = max(8, (width - 40) // _LISTED_IDS)
    first = ", ".join(shown(id_, each) for id_ in ids[:_LISTED_IDS])
    return f"{count:,} ({first}{', …' if len(ids) > _LISTED_IDS else ''})"


def groups(found: GroupFigures, width: int, unit: TextUnit = TextUnit.WORD) -> Iterator[str]:
    """A table for each grouping, then the crossed ones, then what belongs to none; blank lines between."""
    for one in found.grouped:
        if len(one.values) > 1:
            yield from _grouped(one, width, unit)
            yield ""
    for both in found.crossed:
        yield from _crossed(both, width, unit)
        yield ""
    for one in found.grouped:
        if len(one.values) == 1:
            yield shown(f"{one.by}: {one.values[0][0] or NO_LABEL} in every utterance", width)
    for name, labels in found.left_out:
        yield shown(f"{name}: {labels:,} different labels are too many for a table", width)
    units = {words.unit for one in found.grouped for _, words in one.values}
    for varying in sorted(units):
        over = f"over {varying.value}: " if len(units) > 1 else ""
        yield from note("intervals", f"{over}{INTERVALS[varying]}", width)
    without, strangers = found.without_row, found.strangers
    if without:
        yield from note("without a row", f"{_listed(len(without), without, width)}; their group is {NO_LABEL}", width)
    if strangers:
        listed = _listed(len(strangers), strangers, width)
        yield from note("rows of no utterance", f"{listed}; counted nowhere", width)


def _grouped(one: Grouped, width: int, unit: TextUnit) -> Iterator[str]:
    alike = len({words.unit for _, words in one.values}) == 1
    fields: tuple[Field[tuple[str, GroupWords]], ...] = (
        Field("", f"by {one.by}", lambda row: row[0] or NO_LABEL),
        Field("", "sentences", lambda row: row[1].counts.sentences, gives_way=5),
        Field("", f"{UNIT_NOUNS[unit]}s", lambda row: row[1].counts.words, gives_way=1),
        Field("", "errors", lambda row: row[1].counts.errors, gives_way=4),
        Field("", ERROR_RATES[unit], lambda row: percent(row[1].counts.wer, 2)),
        Field("", "95 % interval", lambda row: percent_interval(row[1].interval, 1)),
        Field("", "" if alike else "over", lambda row: row[1].unit.value, gives_way=2),
        Field("", "sent.err", lambda row: _decimal(_sentence_errors(row[1].counts)), gives_way=3),
    )
    yield from Table(fields, one.values).lines(width, most=MOST_ROWS)


def _crossed(one: Crossed, width: int, unit: TextUnit) -> Iterator[str]:
    """In as many tables below each other as the terminal asks for; below each cell its interval."""
    side = max(_LEAST_CROSSED, min(_WIDEST_LABEL, width // 5))
    above = max(_LEAST_CROSSED, min(_WIDEST_LABEL, (width - side) // (len(one.columns) + 1) - len(GAP)))
    names = [shown(label or NO_LABEL, side) for label in (*one.rows, ALL)]
    heads = [shown(label or NO_LABEL, above) for label in (*one.columns, ALL)]
    of = [
        (*cells, total) for cells, total in zip((*one.cells, one.column_sums), (*one.row_sums, one.total), strict=True)
    ]
    rows = [[_crossed_cell(words) for words in row] for row in of]
    first, second = (shown(name, side) for name in one.by)
    each = max(*map(width_of, heads), *(len(text) for row in rows for cell in row for text in cell))
    room = max(LEAST_LABEL, width_of(first), *map(width_of, names))
    at_once = max(1, (width - room) // (each + len(GAP)))
    yield shown(
        f"{first} by {second}: {ERROR_RATES[unit]} in % of so many {UNIT_NOUNS[unit]}s, 95 % interval below", width
    )
    for begin in range(0, len(heads), at_once):
        yield ""
        part = slice(begin, begin + at_once)
        columns = (Column(padded(first, room)), *(Column(head.rjust(each)) for head in heads[part]))
        lines = [
            [(name, *(cell[0] for cell in row[part])), ("", *(cell[1] for cell in row[part]))]
            for name, row in zip(names, rows, strict=True)
        ]
        filled = [[line for line in two if any(line)] for two in lines]
        *body, end = filled
        yield from text_table(columns, [line for two in body for line in two], width, ends=end)


def _crossed_cell(words: GroupWords | None) -> tuple[str, str]:
    if words is None:
        return NOTHING, ""
    rate = percent(words.counts.wer, 2).removesuffix(" %")
    return f"{rate} of {words.counts.words}", percent_interval(words.interval, 1).removesuffix(" %")


def compared(
    systems: Sequence[Scored],
    found: Sequence[SystemComparison],
    width: int,
    by_groups: Sequence[Sequence[GroupedComparison]] = (),
) -> Iterator[str]:
    """A line for each system, then one block for each two. by_groups: each two of them by groups, one for one."""
    room = max(8, min(_WIDEST_TITLE, width // 3))
    unit = systems[0].scoring.unit
    titles = [shown(one.scoring.title, room) for one in systems]
    widest = max(map(width_of, titles))
    for title, one in zip(titles, systems, strict=True):
        found_of = f"{ERROR_RATES[unit]} {wer_in_words(one.scoring.totals, one.interval, unit)}"
        yield from note(title, found_of, width, widest + 2)
    for index, pair in enumerate(found):
        first, second = shown(pair.first, room), shown(pair.second, room)
        wers = f"{percent(pair.first_counts.wer, 2)} against {percent(pair.second_counts.wer, 2)}"
        yield from ("", f"{first} against {second}", f"  on the same {pair.utterances:,} utterances: {wers}")
        for name, count in ((first, pair.first_missing), (second, pair.second_missing)):
            if count:
                yield f"  {name} has no hypothesis for {count:,} of them: each {UNIT_NOUNS[unit]} counts as deleted"
        if pair.difference is None:
            yield f"  difference {NOTHING} (of no {UNIT_NOUNS[unit]}s)"
        else:
            within = f"95 % interval {points_interval(pair.interval)}"
            yield f"  difference {points(pair.difference)} points ({within}), {p_is(pair.p)}"
        yield from _recognised(pair.recognised)
        yield ""
        yield from _tests(pair.tests, len(found), width, unit)
        if by_groups:
            yield from _differences(by_groups[index], width)


def _recognised(counts: Discordance) -> Iterator[str]:
    found = paired_difference(counts)
    if found is not None:
        first, second = counts.both + counts.only_first, counts.both + counts.only_second
        shares = (percent(count / counts.total, 2) for count in (first, second))
        within = f"95 % interval {points_interval(found.interval)}"
        yield f"  without an error: {' against '.join(shares)} of the utterances"
        yield f"  difference {points(found.difference)} points ({within}), {p_is(counts.p)}"


def _tests(found: Sequence[PairedTest], pairs: int, width: int, unit: TextUnit) -> Iterator[str]:
    """A line for each test; pairs: how many of systems there are, for which p is corrected."""
    several = pairs > 1
    rows = []
    for one in found:
        cells = (f"{one.units:,} {one.unit}", f"{one.first_better:,}", f"{one.second_better:,}", probability(one.p))
        rows.append(
            (TESTS[one.by].format(rate=ERROR_RATES[unit]), *cells, *([probability(one.adjusted)] if several else []))
        )
    columns = (*_TESTS, *([Column(f"p of {pairs} pairs")] if several else []))
    yield from text_table(columns, rows, width)


def _differences(found: Sequence[GroupedComparison], width: int) -> Iterator[str]:
    """A table for each grouping that parts the utterances: the first system against the second within each label."""
    for one in found:
        if len(one.values) < 2:
            continue
        rows = []
        for label, pair in one.values:
            figures = (str(pair.utterances), percent(pair.first_counts.wer, 2), percent(pair.second_counts.wer, 2))
            rest = (points(pair.difference), points_interval(pair.interval), probability(pair.p))
            rows.append((label or NO_LABEL, *figures, *rest))
        yield ""
        yield from text_table((Column(f"by {one.by}"), *_DIFFERENCES), rows, width, most=MOST_ROWS)


ARROW = " → "


def confused(found: Confusions, most: int, width: int, unit: TextUnit = TextUnit.WORD) -> Iterator[str]:
    """The `most` most frequent of each list (0: all), none wider than `width` columns."""
    lists: tuple[tuple[str, Sequence[tuple[tuple[str, ...], int]]], ...] = (
        ("substitution pairs, reference → hypothesis", found.pairs),
        (f"inserted {UNIT_NOUNS[unit]}s", [((word,), count) for word, count in found.inserted]),
        (f"deleted {UNIT_NOUNS[unit]}s", [((word,), count) for word, count in found.deleted]),
        (f"substituted {UNIT_NOUNS[unit]}s of the references", [((word,), count) for word, count in found.substituted]),
        (
            f"falsely recognised {UNIT_NOUNS[unit]}s of the hypotheses",
            [((word,), count) for word, count in found.falsely_recognised],
        ),
    )
    for number, (title, rows) in enumerate(lists):
        if number:
            yield ""
        yield f"{title}: {sum(count for _, count in rows):,} in all, {len(rows):,} different"
        listed = rows[:most] if most else rows
        digits = max((len(str(count)) for _, count in listed), default=1)
        for words, count in listed:
            room = max(4, (width - digits - 4 - len(ARROW)) // len(words))
            yield f"  {count:{digits}}  {ARROW.join(shown(word, room) for word in words)}"
        if len(listed) < len(rows):
            yield f"  … and {len(rows) - len(listed):,} more"


REFERENCE, HYPOTHESIS, MARKS = "REF:  ", "HYP:  ", "Eval: "
_COLOURS = {Edit.SUBSTITUTION: "31", Edit.DELETION: "33", Edit.INSERTION: "34"}
"""Red, yellow, blue; the letter below says the same without them."""


@dataclass(frozen=True, slots=True)
class _Step:
    """A word of either side, escaped, and the columns that the two need."""

    edit: Edit
    reference: str
    hypothesis: str
    width: int

    @classmethod
    def of(cls, word: AlignedWord, room: int) -> _Step:
        of, said = shown(word.reference, room), shown(word.hypothesis, room)
        return cls(word.edit, of, said, max(1, width_of(of), width_of(said)))

    def cell(self, text: str, colour: bool) -> str:
        """A word of either side, or the letter, in as many columns as the step needs."""
        if self.edit is Edit.CORRECT:
            return padded(text, self.width)
        text = text or "*" * self.width
        blank = " " * (self.width - width_of(text))
        return f"\x1b[{_COLOURS[self.edit]}m{text}\x1b[0m{blank}" if colour else text + blank


def aligned(utterance: ScoredUtterance, width: int, *, colour: bool) -> Iterator[str]:
    """A heading, then rows of three lines, none wider than `width` columns (20 and more).

    Reference and hypothesis stand word below word, with a letter below each that is wrong.
    """
    counts = utterance.counts
    named = f"id: {shown(utterance.id, max(8, width - 4))}"
    speaker = f"speaker: {shown(utterance.speaker, max(8, width - 9))}" if utterance.speaker else ""
    figures = f"C {counts.correct}  S {counts.substitutions}  D {counts.deletions}  I {counts.insertions}"
    line = named
    for part in filter(None, (speaker, figures + "  (no hypothesis)" * utterance.missing)):
        if width_of(line) + 3 + width_of(part) > width:
            yield line
            line = part
        else:
            line = f"{line}   {part}"
    yield line
    room = max(8, width - len(REFERENCE))
    row: list[_Step] = []
    left = room
    for word in utterance.words:
        step = _Step.of(word, room)
        if row and step.width > left:
            yield from _row(row, colour)
            row, left = [], room
        row.append(step)
        left -= step.width + 1
    yield from _row(row, colour)


def _row(steps: Sequence[_Step], colour: bool) -> Iterator[str]:
    yield (REFERENCE + " ".join(step.cell(step.reference, colour) for step in steps)).rstrip()
    yield (HYPOTHESIS + " ".join(step.cell(step.hypothesis, colour) for step in steps)).rstrip()
    marked = [(step, step.edit is not Edit.CORRECT) for step in steps]
    if any(wrong for _, wrong in marked):
        cells = (step.cell(step.edit.value if wrong else "", colour) for step, wrong in marked)
        yield (MARKS + " ".join(cells)).rstrip()

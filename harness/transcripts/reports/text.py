"""Scored transcripts for people: speakers, totals, groups, systems compared, confusions, alignments.

The reports follow sys, lur, dtl and pra of NIST's sclite. The HTML page has the same `sections`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

import numpy as np

from harness.base.table import NO_LABEL, CrossTable, Field, Notes, Occurrences, Section, Table
from harness.base.text_table import Column, bold, heading, note, padded, shown, width_of
from harness.model.choices import ERROR_RATES, UNIT_NOUNS, AlignmentSelection, TextUnit
from harness.model.frozen import frozen
from harness.model.numbers import NOTHING, fixed, hundredths, percent, points, probability
from harness.model.transcript import AlignedWord, Edit, WordCounts
from harness.statistics.confidence import ConfidenceBin, ConfidenceFigures
from harness.statistics.intervals import Interval, Share
from harness.statistics.text import hundredths_interval, percent_interval, points_interval
from harness.transcripts.entities import EntityErrors
from harness.transcripts.groups import (
    CrossedScoring,
    GroupedComparison,
    GroupedScoring,
    GroupFigures,
    GroupWords,
    IntervalUnit,
    SystemComparison,
    interval_unit,
)
from harness.transcripts.paired_tests import PairedBy, PairedTest
from harness.transcripts.reports.scoring_json import SourcedScoring
from harness.transcripts.scoring import ScoredUtterance, Scoring, confusions
from harness.transcripts.talkers import TalkerPair

NO_SPEAKER = "(no speaker)"
ALL = "all"
POPULATION_OF = {
    IntervalUnit.SPEAKERS: "further speakers like these",
    IntervalUnit.UTTERANCES: "further utterances of these speakers",
    IntervalUnit.QUERIES: "further queries like these",
}
TEST_NAMES = {
    PairedBy.WORDS: "{rate}",
    PairedBy.RECOGNISED: "recognised or not (McNemar)",
    PairedBy.SEGMENTS: "errors by segment (MAPSSWE)",
    PairedBy.SIGNS: "lower {rate} (sign test)",
    PairedBy.RANKS: "lower {rate} (Wilcoxon)",
}
MAX_ROWS = 100
"""Most rows of a table of groups. The JSON has all."""
_MAX_TITLE_COLUMNS, _MAX_ID_COLUMNS = 40, 80

_SPEAKERS = (
    Column("correct", gives_way=5),
    Column("sub", gives_way=1),
    Column("del", gives_way=2),
    Column("ins", gives_way=3),
    Column("err"),
    Column("sent.err", gives_way=4),
)


def lines(
    systems: Sequence[SourcedScoring],
    comparisons: Sequence[SystemComparison],
    by_groups: Sequence[Sequence[GroupedComparison]],
    alignments: AlignmentSelection | None,
    confusions_listed: int | None,
    width: int,
    *,
    colour: bool,
) -> Iterator[str]:
    """The lines on all systems, each below its title if there are several, then their comparisons. Arguments: as for
    `report` and `comparison_lines`."""
    for index, system in enumerate(systems):
        if index:
            yield ""
        if len(systems) > 1:
            yield from (heading(system.scoring.title, width, colour), "")
        yield from report(system, alignments, confusions_listed, width, colour=colour)
    if len(systems) > 1:
        yield ""
        yield from comparison_lines(systems, comparisons, width, by_groups)


def report(
    sourced: SourcedScoring,
    alignments: AlignmentSelection | None,
    confusions_listed: int | None,
    width: int,
    *,
    colour: bool,
) -> Iterator[str]:
    """The lines on one system. Its summary and groups come last, so that a terminal still shows them.

    - alignments: which utterances to show word by word; None for none.
    - confusions_listed: most rows of each table of confusions, 0 for all; None for no tables.
    - width: of a line, in characters.
    - colour: whether to write the codes of a terminal.
    """
    scoring = sourced.scoring
    if alignments is not None:
        rows = scoring.with_errors() if alignments is AlignmentSelection.ERRORS else None
        for utterance in scoring.utterances(rows):
            yield from alignment_lines(utterance, width, colour=colour)
            yield ""
    if confusions_listed is not None:
        yield from confusions_section(scoring).lines(width, confusions_listed or None)
        yield ""
    yield bold(f"system: {shown(scoring.title, width - 8)}", colour)
    for section in sections(sourced, width):
        yield ""
        for line in section.lines(width, MAX_ROWS):
            yield bold(line, colour) if line.startswith(f"{ERROR_RATES[scoring.unit]} ") else line


def sections(sourced: SourcedScoring, width: int, max_ids: int = 5, scale: float | None = None) -> Iterator[Section]:
    """The results of a system.

    - width: of a line, in characters.
    - max_ids: number of ids that are listed in a note that counts utterances.
    - scale: the value at which the plots of groups end; None for the highest end of the system's intervals.
    """
    yield Section(
        "speakers", "Speakers", (summary(sourced.scoring), notes(sourced.scoring, sourced.interval, width, max_ids))
    )
    if sourced.confidence is not None:
        yield confidence(sourced.confidence)
    if sourced.entities is not None:
        yield entities(sourced.entities)
    if sourced.talkers:
        yield talkers(sourced.talkers)
    if sourced.groups is not None:
        yield groups(sourced.groups, width, sourced.scoring.unit, max_ids, scale)


def summary(scoring: Scoring) -> Table[Sequence[str]]:
    """A line for each speaker, a line for all together, and the spread over speakers (each with the same weight)."""
    speakers = [counts for _, counts in scoring.by_speaker]
    count_columns = (Column("sentences", gives_way=6), Column(f"{UNIT_NOUNS[scoring.unit]}s"), *_SPEAKERS)
    by_column = zip(*map(_sentence_and_edit_rates, speakers), strict=True) if speakers else [()] * len(count_columns)
    columns = [[value for value in column if value is not None] for column in by_column]
    spread = {
        "Mean": [float(np.mean(column)) if column else None for column in columns],
        "S.D.": [float(np.std(column, ddof=1)) if len(column) > 1 else None for column in columns],
        "Median": [median(column) if column else None for column in columns],
    }
    return Table.of(
        (Column("speaker"), *count_columns),
        [(name or NO_SPEAKER, *_cells(counts)) for name, counts in scoring.by_speaker],
        ends=[
            ("Sum / avg", *_cells(scoring.totals)),
            *((name, *map(_one_decimal, values)) for name, values in spread.items()),
        ],
        plots=[(counts.wer, None) for counts in speakers],
    )


def _sentence_and_edit_rates(counts: WordCounts) -> tuple[float | None, ...]:
    """Numbers of sentences and words. Then in per cent: correct words, substitutions, deletions, insertions, errors,
    and sentences with an error."""
    edits = (counts.correct, counts.substitutions, counts.deletions, counts.insertions, counts.errors)
    shares = (100 * count / counts.words if counts.words else None for count in edits)
    return counts.sentences, counts.words, *shares, _sentence_errors(counts)


def _sentence_errors(counts: WordCounts) -> float | None:
    return 100 * counts.sentences_with_error / counts.sentences if counts.sentences else None


def _cells(counts: WordCounts) -> tuple[str, ...]:
    return str(counts.sentences), str(counts.words), *map(_one_decimal, _sentence_and_edit_rates(counts)[2:])


def _one_decimal(value: float | None) -> str:
    return fixed(value, 1)


def notes(scoring: Scoring, interval: Interval | None, width: int, max_ids: int = 5) -> Notes:
    """Notes on the basis of the results: normalisation, rate with its 95 % interval, and utterances without a partner
    or without words."""
    missing = _list_ids(scoring.dropped or scoring.missing, scoring.without_hypothesis, width, max_ids)
    if scoring.dropped:
        missing += "; left out"
    elif scoring.missing:
        missing += f"; each {UNIT_NOUNS[scoring.unit]} counts as deleted"
    surplus = _list_ids(len(scoring.surplus), scoring.surplus, width, max_ids)
    if scoring.surplus:
        surplus += "; counted nowhere"
    pairs = [
        ("normalisation", shown(scoring.normalisation, max(20, width - 21))),
        (ERROR_RATES[scoring.unit], wer_in_words(scoring.totals, interval, scoring.unit)),
    ]
    if interval is not None:
        pairs.append(("interval", f"applies to {_applies_to(scoring)}"))
    return Notes(
        (
            *pairs,
            ("missing hypotheses", missing),
            ("surplus hypotheses", surplus),
            ("empty references", f"{scoring.empty_references:,}"),
        )
    )


def _applies_to(scoring: Scoring) -> str:
    """The population that the interval of all utterances is about."""
    unit = interval_unit(scoring)
    nameless = unit is IntervalUnit.UTTERANCES and not any(name for name, _ in scoring.by_speaker)
    return "further utterances like these" if nameless else POPULATION_OF[unit]


def entities(errors: EntityErrors) -> Section:
    """The section on errors of marked spans, by tag, then all together."""

    def cells(tag: str, share: Share) -> tuple[str, ...]:
        return tag, str(share.total), str(share.count), percent(share.value, 2), percent_interval(share.interval, 2)

    columns = (Column("tag"), Column("entities"), Column("with error"), Column("error"), Column("95 % interval"))
    ends = [cells(ALL, errors.total)] if len(errors.by_tag) > 1 else []
    table = Table.of(columns, [cells(*row) for row in errors.by_tag], ends)
    left_out = (Notes((("entities left out", f"{errors.left_out:,}"),)),) if errors.left_out else ()
    return Section("entities", "Entities with an error", (table, *left_out))


def talkers(pairs: Sequence[TalkerPair]) -> Section:
    """The section on paired speakers: in each recording, which speaker of the hypothesis is which of the reference."""
    rows = [(pair.recording, *(shown(name or NOTHING) for name in (pair.reference, pair.hypothesis))) for pair in pairs]
    columns = (Column("recording"), Column("speaker"), Column("in the hypothesis"))
    return Section("talkers", "Paired speakers", (Table.of(columns, rows),))


def confidence(figures: ConfidenceFigures, noun: str = "words", title: str = "Confidences of words") -> Section:
    """The section on how reliable confidences are: a reliability table, and its summary. noun: plural of what has the
    confidences."""
    fields: tuple[Field[ConfidenceBin], ...] = (
        Field("", "confidence", lambda row: f"{fixed(row.low, 1)}–{fixed(row.high, 1)}"),
        Field("", noun, lambda row: row.correct.total),
        Field("", "mean", lambda row: percent(row.mean, 1)),
        Field("", "correct", lambda row: percent(row.correct.value, 1), main=True),
        Field("", "95 % interval", lambda row: percent_interval(row.correct.interval, 1)),
    )
    pairs = [
        ("NCE", f"{fixed(figures.nce, 3)} (1: perfect; 0: no better than the share of correct {noun})"),
        ("calibration error", percent(figures.calibration_error, 1)),
        ("equal error", percent(figures.equal_error, 1)),
    ]
    if figures.left_out:
        pairs.append(("without confidence", f"{figures.left_out:,} {noun}"))
    return Section("confidence", title, (Table(fields, figures.bins), Notes(pairs)))


def wer_in_words(counts: WordCounts, interval: Interval | None, unit: TextUnit = TextUnit.WORD) -> str:
    """`12 of 120 = 10.00 % (95 % interval 5.10–16.30 %)`. Over no words, n/a and the number of insertions."""
    if counts.wer is None:
        return f"{NOTHING} (no {UNIT_NOUNS[unit]}s; {counts.insertions:,} inserted)"
    share = f"{counts.errors:,} of {counts.words:,} = {percent(counts.wer, 2)}"
    return f"{share} (95 % interval {percent_interval(interval, 2)})"


def _list_ids(count: int, ids: Sequence[str], width: int, max_ids: int) -> str:
    """A number of utterances, and the first of their ids.

    - width: of a line, in characters.
    - max_ids: most ids.
    """
    if not count:
        return "0"
    id_width = min(_MAX_ID_COLUMNS, max(8, (width - 40) // max_ids))
    first = ", ".join(shown(id_, id_width) for id_ in ids[:max_ids])
    return f"{count:,} ({first}{', …' if len(ids) > max_ids else ''})"


def group_scale(figures: GroupFigures) -> float:
    """The highest end of the intervals of all groups, so that all can be drawn on one scale."""
    words = (words for grouping in figures.grouped if len(grouping.values) > 1 for _, words in grouping.values)
    return max((group.interval[1] if group.interval else group.counts.wer or 0.0 for group in words), default=0.0)


def groups(
    figures: GroupFigures, width: int, unit: TextUnit = TextUnit.WORD, max_ids: int = 5, scale: float | None = None
) -> Section:
    """The section on groups: a table for each grouping, then the crossed ones, then notes on ids that do not match.
    scale: as for `sections`."""
    tabulated = [grouped for grouped in figures.grouped if len(grouped.values) > 1]
    tables = [_group_table(grouped, unit, scale or group_scale(figures) or 1.0) for grouped in tabulated]
    pairs = [
        ("", f"{grouped.by}: {grouped.values[0][0] or NO_LABEL} in every utterance")
        for grouped in figures.grouped
        if len(grouped.values) == 1
    ]
    pairs += [
        ("", f"{name}: {labels:,} different labels are too many for a table") for name, labels in figures.left_out
    ]
    units = {words.unit for grouped in figures.grouped for _, words in grouped.values}
    for varying_unit in sorted(units):
        scope = f"over {varying_unit.value} " if len(units) > 1 else ""
        pairs.append(("intervals", f"{scope}apply to {POPULATION_OF[varying_unit]}"))
    if figures.without_row:
        id_list = _list_ids(len(figures.without_row), figures.without_row, width, max_ids)
        pairs.append(("without a row", f"{id_list}; counted under {NO_LABEL}"))
    if figures.unmatched_ids:
        id_list = _list_ids(len(figures.unmatched_ids), figures.unmatched_ids, width, max_ids)
        pairs.append(("unmatched rows", f"{id_list}; counted nowhere"))
    return Section(
        "groups", "Groups", (*tables, *(_cross_table(crossed, unit) for crossed in figures.crossed), Notes(pairs))
    )


def _group_table(grouped: GroupedScoring, unit: TextUnit, scale: float) -> Table[tuple[str, GroupWords]]:
    same_unit = len({words.unit for _, words in grouped.values}) == 1
    fields: tuple[Field[tuple[str, GroupWords]], ...] = (
        Field("", f"by {grouped.by}", lambda row: row[0] or NO_LABEL),
        Field("", "sentences", lambda row: row[1].counts.sentences, gives_way=5),
        Field("", f"{UNIT_NOUNS[unit]}s", lambda row: row[1].counts.words, gives_way=1),
        Field("", "errors", lambda row: row[1].counts.errors, gives_way=4),
        Field("", ERROR_RATES[unit], lambda row: percent(row[1].counts.wer, 2), main=True),
        Field("", "95 % interval", lambda row: percent_interval(row[1].interval, 1)),
        Field("", "" if same_unit else "over", lambda row: row[1].unit.value, gives_way=2),
        Field("", "sent.err", lambda row: _one_decimal(_sentence_errors(row[1].counts)), gives_way=3),
    )
    return Table(
        fields, grouped.values, plots=[(words.counts.wer, words.interval) for _, words in grouped.values], scale=scale
    )


def _cross_table(crossed: CrossedScoring, unit: TextUnit) -> CrossTable:
    """A table of two crossed groupings. A cell has the rate with the number of words, and below it the interval."""
    cells = [(*row, total) for row, total in zip(crossed.cells, crossed.row_sums, strict=True)]
    rows = [(label or NO_LABEL, [*map(_crossed_cell, row)]) for label, row in zip(crossed.rows, cells, strict=True)]
    row_name, column_name = crossed.by
    rate = f"{ERROR_RATES[unit]} in %, and the number of {UNIT_NOUNS[unit]}s; 95 % interval below"
    title = f"{row_name} by {column_name}: {rate}"
    ends = [(ALL, [*map(_crossed_cell, (*crossed.column_sums, crossed.total))])]
    return CrossTable(title, row_name, [*(label or NO_LABEL for label in crossed.columns), ALL], rows, ends)


def _crossed_cell(words: GroupWords | None) -> tuple[str, str]:
    if words is None:
        return NOTHING, ""
    return f"{hundredths(words.counts.wer, 2)} of {words.counts.words}", hundredths_interval(words.interval, 1)


def comparison_lines(
    systems: Sequence[SourcedScoring],
    comparisons: Sequence[SystemComparison],
    width: int,
    by_groups: Sequence[Sequence[GroupedComparison]] = (),
) -> Iterator[str]:
    """A line for each system, then a block for each two systems. by_groups: for each comparison, the same by groups; ()
    without groups."""
    from harness.statistics.comparison import MeasureKind, sentence  # here, since one system needs neither

    max_columns = max(8, min(_MAX_TITLE_COLUMNS, width // 3))
    unit = systems[0].scoring.unit
    titles = [shown(system.scoring.title, max_columns) for system in systems]
    widest = max(map(width_of, titles))
    for title, system in zip(titles, systems, strict=True):
        rate = f"{ERROR_RATES[unit]} {wer_in_words(system.scoring.totals, system.interval, unit)}"
        yield from note(title, rate, width, widest + 2)
    for index, comparison in enumerate(comparisons):
        first, second = shown(comparison.first, max_columns), shown(comparison.second, max_columns)
        wers = f"{percent(comparison.first_counts.wer, 2)} against {percent(comparison.second_counts.wer, 2)}"
        yield from ("", f"{first} against {second}", f"  on the same {comparison.utterances:,} utterances: {wers}")
        for name, count in ((first, comparison.first_missing), (second, comparison.second_missing)):
            if count:
                yield f"  {name} has no hypothesis for {count:,} of them: each {UNIT_NOUNS[unit]} counts as deleted"
        yield f"  {sentence(first, second, comparison, MeasureKind.WORDS, more_is_better=False)}"
        counts = comparison.recognised
        if (difference := counts.difference) is not None:
            shares = (
                percent((counts.both + only) / counts.total, 2) for only in (counts.only_first, counts.only_second)
            )
            yield f"  without an error: {' against '.join(shares)} of the utterances"
            yield f"  {sentence(first, second, difference, MeasureKind.SHARE, more_is_better=True)}"
        yield ""
        yield from _test_table(comparison.tests, len(comparisons), unit).lines(width)
        for grouping in by_groups[index] if by_groups else ():
            if len(grouping.values) > 1:
                yield from ("", *_group_comparison_table(grouping).lines(width, MAX_ROWS))


def _test_table(tests: Sequence[PairedTest], pairs: int, unit: TextUnit) -> Table[PairedTest]:
    """A row for each test. pairs: number of pairs of systems, for which p is corrected."""
    fields: tuple[Field[PairedTest], ...] = (
        Field("", "test", lambda test: TEST_NAMES[test.by].format(rate=ERROR_RATES[unit])),
        Field("", "over", lambda test: f"{test.units:,} {test.unit}"),
        Field("", "first better", lambda test: f"{test.first_better:,}"),
        Field("", "second better", lambda test: f"{test.second_better:,}"),
        Field("", "p", lambda test: probability(test.p)),
        Field("", f"p of {pairs} pairs" if pairs > 1 else "", lambda test: probability(test.adjusted)),
    )
    return Table(fields, tests)


def _group_comparison_table(grouping: GroupedComparison) -> Table[tuple[str, SystemComparison]]:
    """The first system against the second within each label of a grouping."""
    fields: tuple[Field[tuple[str, SystemComparison]], ...] = (
        Field("", f"by {grouping.by}", lambda row: row[0] or NO_LABEL),
        Field("", "sentences", lambda row: row[1].utterances, gives_way=4),
        Field("", "first", lambda row: percent(row[1].first_counts.wer, 2), gives_way=1),
        Field("", "second", lambda row: percent(row[1].second_counts.wer, 2), gives_way=2),
        Field("", "difference", lambda row: points(row[1].difference)),
        Field("", "95 % interval", lambda row: points_interval(row[1].interval)),
        Field("", "p", lambda row: probability(row[1].p), gives_way=3),
    )
    return Table(fields, grouping.values)


def confusions_section(scoring: Scoring) -> Section:
    """The section with a table for each kind of confusion, the most frequent first."""
    errors, noun = confusions(scoring), UNIT_NOUNS[scoring.unit]
    lists = {
        f"inserted {noun}s": errors.inserted,
        f"deleted {noun}s": errors.deleted,
        f"substituted {noun}s of the references": errors.substituted,
        f"falsely recognised {noun}s of the hypotheses": errors.falsely_recognised,
    }
    alone = (Occurrences(title, [((word,), count) for word, count in rows]) for title, rows in lists.items())
    pairs = Occurrences("substitution pairs, reference → hypothesis", errors.pairs)
    return Section("confusions", "Confusions", (pairs, *alone))


REFERENCE, HYPOTHESIS, MARKS = "REF:  ", "HYP:  ", "Eval: "
_COLOURS = {Edit.SUBSTITUTION: "31", Edit.DELETION: "33", Edit.INSERTION: "34"}
"""Red, yellow and blue. The letter below a word says the same without colours."""


@frozen
class _Step:
    """A pair of aligned words, escaped. width: space that the wider one needs, in characters."""

    edit: Edit
    reference: str
    hypothesis: str
    width: int

    @classmethod
    def of(cls, word: AlignedWord, max_width: int) -> _Step:
        reference, hypothesis = shown(word.reference, max_width), shown(word.hypothesis, max_width)
        return cls(word.edit, reference, hypothesis, max(1, width_of(reference), width_of(hypothesis)))

    def cell(self, text: str, colour: bool) -> str:
        """A word of one side, or the letter, padded to the width of the step."""
        if self.edit is Edit.CORRECT:
            return padded(text, self.width)
        text = text or "*" * self.width
        blank = " " * (self.width - width_of(text))
        return f"\x1b[{_COLOURS[self.edit]}m{text}\x1b[0m{blank}" if colour else text + blank


def alignment_lines(utterance: ScoredUtterance, width: int, *, colour: bool) -> Iterator[str]:
    """A heading, then rows of three lines, none wider than `width` characters (at least 40).

    The words of the hypothesis stand below those of the reference, with a letter below each word that is wrong.
    """
    counts = utterance.counts
    line = f"id: {shown(utterance.id, max(8, width - 4))}"
    speaker = f"speaker: {shown(utterance.speaker, max(8, width - 9))}" if utterance.speaker else ""
    counts_text = f"C {counts.correct}  S {counts.substitutions}  D {counts.deletions}  I {counts.insertions}"
    if utterance.missing:
        counts_text += "  (no hypothesis)"
    for part in filter(None, (speaker, counts_text)):
        if width_of(line) + 3 + width_of(part) > width:
            yield line
            line = part
        else:
            line = f"{line}   {part}"
    yield line
    words_width = max(8, width - len(REFERENCE))
    row: list[_Step] = []
    columns_left = words_width
    for word in utterance.words:
        step = _Step.of(word, words_width)
        if row and step.width > columns_left:
            yield from _alignment_row(row, colour)
            row, columns_left = [], words_width
        row.append(step)
        columns_left -= step.width + 1
    yield from _alignment_row(row, colour)


def _alignment_row(steps: Sequence[_Step], colour: bool) -> Iterator[str]:
    """Two lines with the words of each side, and if a word is wrong, one with the letters of the errors."""
    yield (REFERENCE + " ".join(step.cell(step.reference, colour) for step in steps)).rstrip()
    yield (HYPOTHESIS + " ".join(step.cell(step.hypothesis, colour) for step in steps)).rstrip()
    letters = ["" if step.edit is Edit.CORRECT else step.edit.value for step in steps]
    if any(letters):
        cells = (step.cell(letter, colour) for step, letter in zip(steps, letters, strict=True))
        yield (MARKS + " ".join(cells)).rstrip()

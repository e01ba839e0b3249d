"""Scored transcripts as one page of HTML that needs nothing else: totals, speakers, confusions, alignments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from harness.base.foreign import plain_text
from harness.base.pages import filled_page
from harness.base.whole_file import write_whole
from harness.model.transcript import Edit, WordCounts
from harness.transcripts.groups import LEAST_SPEAKERS, GroupFigures, Interval, compare, interval_of, unit_of
from harness.transcripts.reports import html_alignment, html_groups
from harness.transcripts.reports.groups import interval_in_words
from harness.transcripts.reports.html_alignment import Block, blocks
from harness.transcripts.reports.html_selection import Selection, Shown
from harness.transcripts.reports.summary import NOTHING, per_cent, probability
from harness.transcripts.scoring import Confusions, Scoring, confusions

MOST_UTTERANCES = 2000
MOST_SPEAKERS = 500
MOST_CONFUSIONS = 200
FIRST_CONFUSIONS = 10
MOST_IDS = 30
LONGEST_NAME = 200
NO_SPEAKER = "(no speaker)"


@dataclass(frozen=True, slots=True)
class _System:
    """A row of the systems. whisker: where the WER and its interval lie on a scale that all systems share, per cent."""

    label: str
    title: str
    scoring: Scoring
    interval: Interval | None
    unit: str
    """Whether the interval speaks of further utterances or of further speakers."""
    whisker: tuple[float, float, float] | None


@dataclass(frozen=True, slots=True)
class _Utterance:
    place: int
    id: str
    speaker: str
    wer: str
    counts: WordCounts
    """Of all systems together."""
    kinds: str
    """Letters of the errors that it has, M where a hypothesis is missing, 0 without errors."""
    systems: tuple[tuple[str, WordCounts, bool], ...]
    blocks: list[Block]


def write_html(
    scorings: Sequence[Scoring],
    path: Path,
    *,
    title: str,
    references: str = "",
    intervals: Sequence[Interval | None] | None = None,
    groups: Sequence[GroupFigures | None] = (),
    most_utterances: int = MOST_UTTERANCES,
) -> None:
    """Writes a page on one system or several, whole or not at all; LogError when it cannot be written.

    references: the name of their file. intervals: 95 % intervals of the WERs, where they are known already. groups: of
    each system, where there are any.
    most_utterances: the worst are shown; the page says how many are not. ValueError without any scoring.
    """
    write_whole(path, page(scorings, title, references, intervals, most_utterances, groups).encode("utf-8"))


def page(
    scorings: Sequence[Scoring],
    title: str,
    references: str = "",
    intervals: Sequence[Interval | None] | None = None,
    most_utterances: int = MOST_UTTERANCES,
    groups: Sequence[GroupFigures | None] = (),
) -> str:
    """The page as text; see write_html."""
    if not scorings:
        raise ValueError("a page of no scoring")
    if intervals is None:
        intervals = [interval_of(one) for one in scorings]
    systems = _systems(scorings, intervals)
    selection = Selection(scorings, most_utterances, html_alignment.MOST_STEPS)
    speakers = _speakers(scorings)
    group_scale = html_groups.scale_of(groups)
    group_tables = html_groups.tables(scorings, groups, group_scale)
    utterances = [_utterance(one, systems) for one in selection.utterances()]
    return filled_page(
        "harness.transcripts.reports",
        "scoring.html",
        title=plain_text(title, LONGEST_NAME),
        references=plain_text(references, LONGEST_NAME),
        normalisations=list(dict.fromkeys(one.normalisation for one in scorings)),
        systems=systems,
        comparisons=list(zip(combinations(systems, 2), compare(scorings), strict=True)),
        has_groups=any(groups),
        group_tables=group_tables,
        group_scale=group_scale,
        span=interval_in_words,
        group_matrices=html_groups.matrices(groups),
        group_notes=html_groups.notes(groups),
        least_speakers=LEAST_SPEAKERS,
        speakers=speakers[:MOST_SPEAKERS],
        speakers_left_out=max(0, len(speakers) - MOST_SPEAKERS),
        confusions=[(system.label, _confusion_lists(confusions(system.scoring))) for system in systems],
        first_confusions=FIRST_CONFUSIONS,
        selection=selection,
        utterances=utterances,
        other_forms=any(_has_other_form(block) for one in utterances for block in one.blocks),
        most_ids=MOST_IDS,
        per_cent=per_cent,
        signed=_signed,
        probability=probability,
    )


def _signed(value: float | None, digits: int = 2) -> str:
    return NOTHING if value is None else f"{100 * value:+.{digits}f} %".replace("-", "−")


def _systems(scorings: Sequence[Scoring], intervals: Sequence[Interval | None]) -> list[_System]:
    """The scale of the whiskers begins at 0 and ends at the highest end of an interval."""
    ends = [max(of[1] if of else 0.0, one.totals.wer or 0.0) for one, of in zip(scorings, intervals, strict=True)]
    scale = max(ends) or 1.0
    found = []
    for number, (one, of) in enumerate(zip(scorings, intervals, strict=True), 1):
        name = plain_text(one.title, LONGEST_NAME) or f"system {number}"
        wer = one.totals.wer
        low, high = of or (wer or 0.0, wer or 0.0)
        whisker = None if wer is None else (100 * low / scale, 100 * wer / scale, 100 * high / scale)
        label = "HYP" if len(scorings) == 1 else f"{number} {Path(name).stem or name}"
        found.append(_System(label, name, one, of, unit_of(one).value, whisker))
    return found


def _speakers(scorings: Sequence[Scoring]) -> list[tuple[str, list[WordCounts | None]]]:
    """A row for each speaker with the counts of each system, None where it has none of that speaker."""
    by_system = [dict(one.by_speaker) for one in scorings]
    names = sorted({name for one in by_system for name in one})
    return [(_speaker(name), [one.get(name) for one in by_system]) for name in names]


def _speaker(name: str) -> str:
    return plain_text(name, 80) or NO_SPEAKER


def _confusion_lists(found: Confusions) -> list[tuple[str, int, int, list[tuple[str, str, int]]]]:
    """Name, how many in all, how many different, and the most frequent as (reference, hypothesis, times)."""
    pairs = [(of, said, count) for (of, said), count in found.pairs]
    lists = (
        ("Substitutions", pairs),
        ("Deletions", [(word, "", count) for word, count in found.deleted]),
        ("Insertions", [("", word, count) for word, count in found.inserted]),
    )
    return [(name, sum(row[2] for row in rows), len(rows), _harmless(rows)) for name, rows in lists]


def _harmless(rows: Sequence[tuple[str, str, int]]) -> list[tuple[str, str, int]]:
    return [(plain_text(of, 60), plain_text(said, 60), count) for of, said, count in rows[:MOST_CONFUSIONS]]


def _utterance(shown: Shown, systems: Sequence[_System]) -> _Utterance:
    labels = [systems[index].label for index in shown.systems]
    counts = sum((one.counts for one in shown.utterances), WordCounts())
    return _Utterance(
        shown.place,
        plain_text(shown.id, LONGEST_NAME),
        _speaker(shown.utterances[0].speaker),
        per_cent(counts.wer, 0),
        counts,
        "".join(_kinds(counts, any(one.missing for one in shown.utterances))),
        tuple((label, one.counts, one.missing) for label, one in zip(labels, shown.utterances, strict=True)),
        blocks(shown.utterances, labels),
    )


def _has_other_form(block: Block) -> bool:
    """Whether a word is correct that is not written as the reference is."""
    cells = (cell for column in block.columns for cell in column.cells)
    return any(cell.edit is Edit.CORRECT and not cell.same for cell in cells)


def _kinds(counts: WordCounts, missing: bool) -> Iterator[str]:
    if counts.substitutions:
        yield "S"
    if counts.deletions:
        yield "D"
    if counts.insertions:
        yield "I"
    if missing:
        yield "M"
    if not counts.errors:
        yield "0"

"""The summary of scored transcripts: a line for each speaker, totals, spread over speakers, and what was left out.

As the `sys` report of NIST's sclite.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from harness.base.cells import padded, shown, width_of
from harness.model.transcript import WordCounts
from harness.transcripts.groups import Interval, Unit, unit_of
from harness.transcripts.scoring import Scoring

NOTHING = "n/a"
WER = "WER"
NOTES = 21
"""Columns of the names of notes."""
_PARTS = re.compile(r" (?=\()|(?<=;) ")
LEAST_NAME, WIDEST_NAME = 8, 40
GAP = "  "
LISTED_IDS = 5
INTERVALS = {
    Unit.SPEAKERS: "for further speakers like these",
    Unit.UTTERANCES: "for further utterances of these speakers",
    Unit.QUERIES: "for further queries like these",
}
Percentages = tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class _Head:
    title: str
    whole: bool
    """Counts rather than per cent."""


_HEADS = (
    _Head("sentences", True),
    _Head("words", True),
    _Head("correct", False),
    _Head("sub", False),
    _Head("del", False),
    _Head("ins", False),
    _Head("err", False),
    _Head("sent.err", False),
)
_FIRST_TO_GO = (0, 2, 7, 5, 4, 3)
"""Columns that a narrow terminal does without, in this order."""


def percentages(counts: WordCounts) -> Percentages:
    """Correct, substitutions, deletions, insertions, errors per 100 words; sentences with error per 100 sentences."""
    of = (counts.correct, counts.substitutions, counts.deletions, counts.insertions, counts.errors)
    wrong = 100 * counts.sentences_with_error / counts.sentences if counts.sentences else None
    return (*(100 * count / counts.words if counts.words else None for count in of), wrong)


def table(scoring: Scoring, width: int) -> Iterator[str]:
    """Lines of the table by speaker, none wider than `width` columns where that can be (30 and more)."""
    rows = [(name or "(no speaker)", _cells(counts)) for name, counts in scoring.by_speaker]
    ends = [("Sum / avg", _cells(scoring.totals)), *_spread([counts for _, counts in scoring.by_speaker])]
    widths = [
        max(len(head.title), *(len(cells[index]) for _, cells in (*rows, *ends))) for index, head in enumerate(_HEADS)
    ]
    columns = list(range(len(_HEADS)))
    gone: list[str] = []
    for index in _FIRST_TO_GO:
        if LEAST_NAME + sum(widths[one] + len(GAP) for one in columns) <= width:
            break
        columns.remove(index)
        gone.append(_HEADS[index].title)
    figures = sum(widths[one] + len(GAP) for one in columns)
    room = max(LEAST_NAME, min(WIDEST_NAME, width - figures))
    names = [shown(name, room) for name, _ in rows]
    room = max(LEAST_NAME, len(ends[0][0]) if room > LEAST_NAME else 0, *map(width_of, names)) if names else room

    def line(name: str, cells: Sequence[str]) -> str:
        return padded(name, room) + "".join(GAP + cells[one].rjust(widths[one]) for one in columns)

    rule = "─" * (room + figures)
    yield line("speaker", [head.title for head in _HEADS])
    yield rule
    for name, (_, cells) in zip(names, rows, strict=True):
        yield line(name, cells)
    yield rule
    for name, cells in ends:
        yield line(name[:room], cells)
    if gone:
        yield f"(no room for: {', '.join(gone)})"


def notes(scoring: Scoring, interval: Interval | None, width: int) -> Iterator[str]:
    """What the figures rest on: normalisation, WER with its 95 % interval, what had no partner, what had no words."""
    yield from note("normalisation", shown(scoring.normalisation, max(20, width - 21)), width)
    yield from note(WER, wer_in_words(scoring.totals, interval), width)
    if interval is not None:
        yield from note("interval", INTERVALS[unit_of(scoring)], width)
    if scoring.dropped:
        missing = f"{listed(scoring.dropped, scoring.without_hypothesis, width)}; left out"
    else:
        counted = "; each word counts as deleted" if scoring.missing else ""
        missing = f"{listed(scoring.missing, scoring.without_hypothesis, width)}{counted}"
    yield from note("missing hypotheses", missing, width)
    nowhere = "; counted nowhere" if scoring.surplus else ""
    yield from note("surplus hypotheses", f"{listed(len(scoring.surplus), scoring.surplus, width)}{nowhere}", width)
    yield from note("empty references", f"{scoring.empty_references:,}", width)


def note(name: str, text: str, width: int, at: int = NOTES) -> Iterator[str]:
    """A name and what it says; what is wider than `width` columns goes on below, parted where it has parts."""
    line = padded(name, at)
    begun = False
    for part in _PARTS.split(text):
        if begun and width_of(line) + 1 + width_of(part) > width:
            yield line
            line, begun = " " * at, False
        line += f" {part}" if begun else part
        begun = True
    yield line


def wer_in_words(counts: WordCounts, interval: Interval | None) -> str:
    """`12 of 120 = 10.0 % (95 % interval 5.1 % to 16.3 %)`; the WER over no words is n/a, its insertions are stated."""
    if counts.wer is None:
        return f"{NOTHING} (of no words; {counts.insertions:,} inserted)"
    found = f"{counts.errors:,} of {counts.words:,} = {per_cent(counts.wer)}"
    if interval is None:
        return f"{found} (95 % interval {NOTHING})"
    return f"{found} (95 % interval {per_cent(interval[0])} to {per_cent(interval[1])})"


def per_cent(value: float | None, digits: int = 2) -> str:
    """`12.34 %`; n/a for None."""
    return NOTHING if value is None else f"{value:.{digits}%}".replace("%", " %")


def points(difference: float | None) -> str:
    """Of a difference of two shares: `+1.25`; n/a for None."""
    return NOTHING if difference is None else f"{100 * difference:+.2f}"


def probability(value: float | None) -> str:
    """Three digits after the point; what they cannot show is `< 0.001`."""
    if value is None:
        return NOTHING
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def _cells(counts: WordCounts) -> tuple[str, ...]:
    return (str(counts.sentences), str(counts.words), *map(_figure, percentages(counts)))


def _figure(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.1f}"


def _spread(speakers: Sequence[WordCounts]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Mean, standard deviation (of a sample) and median over speakers, each as heavy as the others."""
    columns: list[list[float]] = [[] for _ in _HEADS]
    for counts in speakers:
        for column, value in zip(columns, (counts.sentences, counts.words, *percentages(counts)), strict=True):
            if value is not None:
                column.append(value)
    yield "Mean", tuple(_figure(float(np.mean(column)) if column else None) for column in columns)
    yield "S.D.", tuple(_figure(float(np.std(column, ddof=1)) if len(column) > 1 else None) for column in columns)
    yield "Median", tuple(_figure(float(np.median(column)) if column else None) for column in columns)


def listed(count: int, ids: Sequence[str], width: int) -> str:
    if not count:
        return "0"
    each = max(8, (width - 40) // LISTED_IDS)
    first = ", ".join(shown(id_, each) for id_ in ids[:LISTED_IDS])
    return f"{count:,} ({first}{', …' if len(ids) > LISTED_IDS else ''})"

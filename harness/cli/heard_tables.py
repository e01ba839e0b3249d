"""What devices heard against what was said, in figures: lines for the totals, and tables by group."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Sequence

from harness.base.cells import fit
from harness.base.foreign import plain_text
from harness.model.choices import Grouping
from harness.session.figures.trials import Heard, HeardTrial, by_group, words_of
from harness.statistics.word_intervals import LEAST_QUERIES
from harness.transcripts.recognition import HeardUnit, WordsHeard

NOTHING = "n/a"
NO_LABEL = "(none)"
HEADS = ("try", "WER", "95 % interval", "by", "sub", "del", "ins", "words", "transcripts")
WIDTHS = (5, 7, 13, 5, 4, 4, 4, 6, 11)
UNITS = {HeardUnit.QUERIES: "query", HeardUnit.ATTEMPTS: "try"}
LEAST_LABEL, WIDEST_LABEL = 12, 40
GAP = " "


def lines(first: WordsHeard, final: WordsHeard, normalisation: str) -> list[str]:
    """Three lines for the totals of a session, a fourth where an operator typed; none where nothing could be heard."""
    if not first.attempts:
        return []
    told = (
        f"{words.counts.sentences} of {words.attempts} {which}" for words, which in ((first, "first"), (final, "final"))
    )
    return [
        f"WER, first attempt   {in_words(first)}",
        f"WER, final attempt   {in_words(final)}",
        f"transcripts          {' and '.join(told)} attempts; words compared as {plain_text(normalisation, 80)}",
        *(f"typed                {told}" for told in _typed(first, final)),
    ]


def _typed(first: WordsHeard, final: WordsHeard) -> Iterator[str]:
    if first.typed or final.typed:
        yield f"by the operator, mostly of what was misheard: {first.typed} first, {final.typed} final"


def in_words(words: WordsHeard) -> str:
    """`3 of 60 words = 5.00% (95 % over queries 1.20% to 9.00%)`; errors of reference words."""
    counts, low_high = words.counts, words.interval
    if counts.wer is None:
        return f"{NOTHING} (of no words{f', {counts.insertions} inserted' if counts.insertions else ''})"
    interval = "" if low_high is None else f" (95 % over {words.unit} {low_high[0]:.2%} to {low_high[1]:.2%})"
    return f"{counts.errors} of {counts.words} words = {counts.wer:.2%}{interval}"


def tables(
    trials: Sequence[HeardTrial], normalisation: str, groupings: Iterable[str] = (), width: int | None = None
) -> list[str]:
    """All trials together, then a table for each grouping; without one, for each that parts the trials.

    At most `width` columns wide (None: as wide as the terminal; 120 without one), 80 and more.
    """
    if not trials:
        return ["no attempt was made that could tell what was heard"]
    columns = shutil.get_terminal_size((120, 24)).columns if width is None else width
    label = max(LEAST_LABEL, min(WIDEST_LABEL, columns - sum(WIDTHS) - len(GAP) * len(WIDTHS)))
    widths = (label, *WIDTHS)
    out = [
        f"WER of what was heard, words compared as {normalisation}",
        f"intervals: by query from {LEAST_QUERIES} different ones on, else by try (attempt)",
        "",
    ]
    whole = words_of(trials)
    out[2:2] = [f"transcripts typed {told}" for told in _typed(whole.first, whole.final)]
    out += _table("", [("all", whole)], widths)
    asked = tuple(groupings)
    for grouping in asked or Grouping:
        groups = by_group(trials, grouping)
        if asked or (len(groups) > 1 and not _of_one_axis(trials, grouping)):
            out += ["", *_table(f"by {grouping}", groups, widths)]
    return out


def _of_one_axis(trials: Iterable[HeardTrial], grouping: str) -> bool:
    """Whether conditions say no more than their one axis, which has a table of its own."""
    return grouping is Grouping.CONDITION and all(len(one.trial.conditions) < 2 for one in trials)


def _table(title: str, groups: Sequence[tuple[str, Heard]], widths: Sequence[int]) -> Iterator[str]:
    yield _line((title, *HEADS), widths)
    yield _line(tuple("─" * width for width in widths), widths)
    for label, heard in groups:
        yield _line((label or NO_LABEL, "first", *_cells(heard.first)), widths)
        yield _line(("", "final", *_cells(heard.final)), widths)


def _cells(words: WordsHeard) -> tuple[str, ...]:
    counts = words.counts
    low_high = words.interval
    return (
        NOTHING if counts.wer is None else f"{counts.wer:.2%}",
        NOTHING if low_high is None else f"{low_high[0] * 100:.1f}–{low_high[1] * 100:.1f} %",
        "" if low_high is None else UNITS[words.unit],
        *map(str, (counts.substitutions, counts.deletions, counts.insertions, counts.words)),
        f"{counts.sentences} of {words.attempts}",
    )


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    sized = list(zip(cells, widths, strict=True))
    # A figure that is too wide moves its line: cut, it would be another figure.
    return GAP.join([*(fit(*one) for one in sized[:2]), *(cell.rjust(width) for cell, width in sized[2:])])

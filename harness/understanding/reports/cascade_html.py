"""A cascade as one page of HTML that needs nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from harness.base.foreign import plain_text
from harness.base.pages import filled_page
from harness.base.whole_file import write_whole
from harness.transcripts.groups import interval_of
from harness.transcripts.reports.summary import per_cent, points, probability, wer_in_words
from harness.understanding.reports.cascade import FATES, IN_GROUPS, NAMES, between, rows, slot_f1, too_many_in_words
from harness.understanding.reports.cascade_words import changes, frame_in_words
from harness.understanding.reports.words import chunking_in_words, details_in_words, zero_in_words
from harness.understanding.scoring.cascade import Cascade, Fate

MOST_UTTERANCES = 1000
MOST_IDS = 30


def write_html(of: Cascade, path: Path, notes: Sequence[str] = ()) -> None:
    """Writes the page whole or not at all; LogError when it cannot be written. notes: lines for people."""
    write_whole(path, page(of, notes).encode("utf-8"))


def page(of: Cascade, notes: Sequence[str] = (), most: int = MOST_UTTERANCES) -> str:
    """The page as text. most: utterances of a sort that are shown."""
    lists = [
        (FATES[fate], found[:most], max(0, len(found) - most))
        for fate in (Fate.BROKEN, Fate.REVALUED, Fate.MENDED)
        for found in [of.of(fate)]
    ]
    return filled_page(
        "harness.understanding.reports",
        "cascade.html",
        title="What recognition cost",
        of=of,
        notes=notes,
        chunking=chunking_in_words(of.rule),
        details=details_in_words([of.rule]),
        zero=zero_in_words(of.zero),
        wer=wer_in_words(of.total.words, interval_of(of.words)),
        fates=list(FATES.items()),
        slot_f1=slot_f1(of),
        rows=rows,
        group_names=[NAMES[figure] for figure in IN_GROUPS],
        in_groups=IN_GROUPS,
        too_many=[too_many_in_words(plain_text(column, 80), number) for column, number in of.too_many],
        lists=lists,
        change=partial(changes, rule=of.rule),
        frame=partial(frame_in_words, rule=of.rule),
        most_ids=MOST_IDS,
        per_cent=per_cent,
        points=points,
        between=between,
        probability=probability,
    )

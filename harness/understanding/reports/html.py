"""Scored intents and slots as one page of HTML that needs nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.base.foreign import plain_text
from harness.base.pages import filled_page
from harness.base.whole_file import write_whole
from harness.understanding.arithmetic.figures import FrameFigures, IntentFigures, figures
from harness.understanding.reports.figure_rows import FigureRow, Reported
from harness.understanding.reports.html_utterances import Selection, selection
from harness.understanding.reports.words import (
    between,
    chunking_in_words,
    comparison_in_words,
    details_in_words,
    per_cent,
    zero_in_words,
)
from harness.understanding.scoring.comparison import FrameComparison
from harness.understanding.scoring.scoring import Scoring

MOST_UTTERANCES = 2000
MOST_ROWS = 500
MOST_CONFUSIONS = 200
FIRST_CONFUSIONS = 10
MOST_IDS = 30
MATRIX = 16
"""Intents of the table of confusions; the most frequent."""
TILES = ("emr", "sfa", "slot_f1", "cer", "f1mh", "intent_accuracy")


@dataclass(frozen=True, slots=True)
class _System:
    """A system with what the page says of it. several: more than one detail is shown."""

    label: str
    name: str
    of: Reported
    several: bool

    @property
    def tiles(self) -> list[FigureRow]:
        return [row for row in (self.of.row(key) for key in TILES) if row is not None]

    def row_name(self, row: FigureRow) -> str:
        return f"{row.name} ({row.detail})" if self.several and row.detail else row.name


def write_html(
    systems: Sequence[Reported],
    path: Path,
    scorings: Sequence[Scoring] = (),
    comparisons: Sequence[FrameComparison] = (),
    most_utterances: int = MOST_UTTERANCES,
) -> None:
    """Writes a page on one system or several, whole or not at all; LogError when it cannot be written.

    scorings: of each system, where their utterances are to be shown; none where they are not there any more.
    """
    write_whole(path, page(systems, scorings, comparisons, most_utterances).encode("utf-8"))


def page(
    systems: Sequence[Reported],
    scorings: Sequence[Scoring] = (),
    comparisons: Sequence[FrameComparison] = (),
    most_utterances: int = MOST_UTTERANCES,
) -> str:
    """The page as text; ValueError without a system."""
    if not systems:
        raise ValueError("a page of no system")
    several = len(systems[0].counts.details) > 1
    rows = []
    for number, one in enumerate(systems, 1):
        name = plain_text(one.counts.predicted, 200)
        rows.append(
            _System("predicted" if len(systems) == 1 else f"{number} {Path(name).stem}"[:40], name, one, several)
        )
    shown: Selection | None = None
    if scorings:
        shown = selection(scorings, [one.label for one in rows], most_utterances)
    rules = [one.rule for one in systems[0].counts.details]
    return filled_page(
        "harness.understanding.reports",
        "understanding.html",
        title=f"Understanding against {plain_text(systems[0].counts.gold, 200)}",
        gold=plain_text(systems[0].counts.gold, 200),
        systems=rows,
        chunking=chunking_in_words(rules[0]),
        details=details_in_words(rules),
        zero=zero_in_words(systems[0].zero),
        compared=comparison_in_words(rules[0]),
        comparisons=[_compared(one, rows) for one in comparisons],
        labels_of=_labels,
        concepts_of=_concepts,
        groups_of=_groups,
        confusions_of=_confusions,
        matrix_of=_matrix,
        selection=shown,
        intents=_names(one for of in shown.utterances for one in of.intents) if shown else [],
        concepts=_names(one for of in shown.utterances for one in of.concepts) if shown else [],
        most_ids=MOST_IDS,
        per_cent=per_cent,
        between=between,
    )


def _names(names: Any) -> list[str]:
    return sorted(set(names))


def _labels(of: IntentFigures) -> tuple[list[tuple[str, Any, Any]], int]:
    """Intents, most frequent first, and how many are not listed."""
    found = sorted(of.labels, key=lambda row: (-row[1].gold, row[0]))
    return [(plain_text(name, 80), counts, one) for name, counts, one in found[:MOST_ROWS]], len(found[MOST_ROWS:])


def _concepts(of: FrameFigures) -> tuple[list[tuple[str, Any, Any]], int]:
    rows = of.slots.per_concept or of.slots.per_concept_set
    found = sorted(rows, key=lambda row: (-row[1].gold, row[0]))
    return [(plain_text(name, 80), counts, one) for name, counts, one in found[:MOST_ROWS]], len(found[MOST_ROWS:])


def _groups(system: _System) -> list[tuple[str, list[tuple[str, FrameFigures]], int]]:
    """Columns that part the utterances, under the first detail; and how many labels of each are not shown."""
    one = system.of.counts.details[0]
    return [
        (
            plain_text(column, 60),
            [
                (plain_text(label, 80) or "(none)", figures(counts, system.of.zero, system.of.labels))
                for label, counts in labels[:MOST_ROWS]
            ],
            len(labels[MOST_ROWS:]),
        )
        for column, labels in one.groups
        if len(labels) > 1
    ]


def _confusions(of: IntentFigures) -> tuple[list[tuple[str, str, int]], int]:
    """Of single intents, wrong ones, most frequent first; and how many there are in all."""
    wrong = [(gold, said, n) for (gold, said), n in of.confusions if gold != said]
    told = [(plain_text(gold, 60), plain_text(said, 60), n) for gold, said, n in wrong[:MOST_CONFUSIONS]]
    return told, sum(n for *_, n in wrong)


def _matrix(of: IntentFigures) -> tuple[list[str], list[tuple[str, list[tuple[int, float]]]]] | None:
    """Gold by predicted, of the most frequent intents: count, and share of the row; None of under two."""
    by_gold: dict[str, int] = {}
    for (gold, _), n in of.confusions:
        by_gold[gold] = by_gold.get(gold, 0) + n
    names = sorted(by_gold, key=lambda name: (-by_gold[name], name))[:MATRIX]
    if len(names) < 2:
        return None
    counts = dict(of.confusions)
    rows = []
    for gold in names:
        cells = [counts.get((gold, said), 0) for said in names]
        rows.append((plain_text(gold, 40), [(n, n / by_gold[gold]) for n in (*cells, by_gold[gold] - sum(cells))]))
    return [plain_text(name, 40) for name in names], rows


def _compared(one: FrameComparison, rows: Sequence[_System]) -> dict[str, Any]:
    labels = {row.of.counts.predicted: row.label for row in rows}
    return {
        "first": labels.get(one.first, plain_text(one.first, 40)),
        "second": labels.get(one.second, plain_text(one.second, 40)),
        "utterances": len(one.utterances),
        "rows": [(key, of) for key, of in one.differences.items() if of.value is not None],
    }

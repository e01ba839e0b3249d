"""Scored intents and slots as one self-contained HTML page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness.base.foreign import plain_text
from harness.base.pages import filled_page
from harness.statistics.confidence import DET_TICKS, deviate
from harness.understanding.comparison import FrameComparison
from harness.understanding.figures import IntentFigures
from harness.understanding.reports.score_text import (
    IN_POINTS,
    SystemReport,
    difference_table,
    per_cent,
    sections,
    short_interval,
)
from harness.understanding.reports.shown_utterances import selection
from harness.understanding.scoring import FrameScoring

MAX_UTTERANCES = 2000
MAX_IDS = 30
MAX_MATRIX_INTENTS = 16
"""Number of intents in the table of confusions. Only the most frequent are shown."""
TILE_METRICS = ("emr", "sfa", "slot_f1", "slu_f1", "cer", "f1mh", "intent_accuracy")


def page(
    systems: Sequence[SystemReport],
    scorings: Sequence[FrameScoring] = (),
    comparisons: Sequence[FrameComparison] = (),
    max_utterances: int = MAX_UTTERANCES,
) -> str:
    """The HTML page on one or several systems. ValueError without a system.

    scorings: the scoring of each system, to show utterances; () if they are not available.
    """
    if not systems:
        raise ValueError("the page has no system")
    rows: list[dict[str, Any]] = []
    for number, system in enumerate(systems, 1):
        name = plain_text(system.counts.predicted, 200)
        label = "predicted" if len(systems) == 1 else f"{number} {Path(name).stem}"[:40]
        tiles = [row for row in map(system.row, TILE_METRICS) if row is not None]
        rows.append(
            {"label": label, "name": name, "of": system, "sections": list(sections(system, MAX_IDS)), "tiles": tiles}
        )
    shown = selection(scorings, [row["label"] for row in rows], max_utterances) if scorings else None
    titles = {section.key: section.title for row in rows for section in row["sections"]}
    return filled_page(
        "harness.understanding.reports",
        "understanding.html",
        title=f"Understanding against {plain_text(systems[0].counts.gold, 200)}",
        systems=rows,
        basis=rows[0]["sections"][0].parts[0],
        titles={key: title for key, title in titles.items() if key != "basis"},
        comparisons=[_comparison_entry(comparison, rows) for comparison in comparisons],
        in_points=IN_POINTS,
        matrix_of=_matrix,
        selection=shown,
        intents=sorted({intent for utterance in shown.utterances for intent in utterance.intents}) if shown else [],
        concepts=sorted({concept for utterance in shown.utterances for concept in utterance.concepts}) if shown else [],
        per_cent=per_cent,
        between=short_interval,
        deviate=deviate,
        det_ticks=DET_TICKS,
    )


def _matrix(figures: IntentFigures) -> tuple[list[str], list[tuple[str, list[tuple[int, float]]]]] | None:
    """A matrix of the most frequent intents, gold (rows) by predicted; None for fewer than two intents.

    Each cell has a count and its share of the row. The last column is for all other predicted intents.
    """
    by_gold: Counter[str] = Counter()
    for (gold, _), count in figures.confusions:
        by_gold[gold] += count
    names = sorted(by_gold, key=lambda name: (-by_gold[name], name))[:MAX_MATRIX_INTENTS]
    if len(names) < 2:
        return None
    counts = dict(figures.confusions)
    rows = []
    for gold in names:
        cells = [counts.get((gold, prediction), 0) for prediction in names]
        rows.append(
            (plain_text(gold, 40), [(count, count / by_gold[gold]) for count in (*cells, by_gold[gold] - sum(cells))])
        )
    return [plain_text(name, 40) for name in names], rows


def _comparison_entry(comparison: FrameComparison, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    labels = {row["of"].counts.predicted: row["label"] for row in rows}
    return {
        "first": labels.get(comparison.first, plain_text(comparison.first, 40)),
        "second": labels.get(comparison.second, plain_text(comparison.second, 40)),
        "utterances": len(comparison.utterances),
        "table": difference_table(comparison.differences),
    }

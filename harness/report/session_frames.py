"""What the devices of a session understood, scored as by `harness understand score SESSION`."""

from __future__ import annotations

from typing import Any

from harness.base.table import Table
from harness.session.figures.frames_of_session import session_corpora
from harness.session.figures.progress import Progress
from harness.understanding.counts import Rule
from harness.understanding.reports.score_html import selection
from harness.understanding.reports.score_text import Reported, label_table
from harness.understanding.scoring import counted, score

RULE = Rule(ordered=False, places=False)
"""Devices report neither the order nor the place of slots."""


def session_frames(progress: Progress, most: int) -> dict[str, Any] | None:
    """What the page of a session shows of frames; None where no trial expects an intent, or nothing is known.

    most: utterances listed. metrics: those that have a value. wrong: utterances with errors, worst first; total: also
    those not listed. unknown: ids of trials without evidence of the frame, which count nowhere.
    """
    found = session_corpora([progress])
    if not found.gold.utterances:
        return None
    scoring = score(found.gold, found.predicted, RULE)
    reported = Reported(counted([scoring]))
    (figures,) = reported.figures
    shown = selection([scoring], ["told"], most)
    return {
        "utterances": len(found.gold.utterances),
        "metrics": Table(reported.table.fields, [one for one in reported.rows if one.value is not None]),
        "intents": label_table("intent", figures.intents.labels),
        "concepts": label_table("concept", figures.slots.per_concept_set),
        "wrong": [one for one in shown.utterances if one.kinds != "0"],
        "total": shown.with_errors,
        "unknown": found.unknown,
    }

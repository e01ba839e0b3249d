"""What the devices of a session understood, scored as by `harness understanding score SESSION`."""

from __future__ import annotations

from dataclasses import dataclass

from harness.base.table import Table
from harness.session.figures.frames_of_session import session_corpora
from harness.session.figures.progress import Progress
from harness.understanding.counts import Rule
from harness.understanding.reports.score_html import ShownFrames, selection
from harness.understanding.reports.score_text import FigureRow, LabelRow, Reported, label_table
from harness.understanding.scoring import counted, score

RULE = Rule(ordered=False, places=False)
"""Devices report neither the order nor the place of slots."""


@dataclass(frozen=True, slots=True)
class SessionFrames:
    """metrics: those that have a value. wrong: utterances with errors, worst first; total: also those not listed.

    unknown: ids of trials without evidence of the frame, which count nowhere.
    """

    utterances: int
    metrics: Table[FigureRow]
    intents: Table[LabelRow]
    concepts: Table[LabelRow]
    wrong: tuple[ShownFrames, ...]
    total: int
    unknown: tuple[str, ...]

    @classmethod
    def of(cls, progress: Progress, most: int) -> SessionFrames | None:
        """None where no trial expects an intent, or nothing is known. most: utterances listed."""
        found = session_corpora([progress])
        if not found.gold.utterances:
            return None
        scoring = score(found.gold, found.predicted, RULE)
        reported = Reported(counted([scoring]))
        (figures,) = reported.figures
        shown = selection([scoring], ["told"], most)
        return cls(
            len(found.gold.utterances),
            Table(reported.table.fields, [one for one in reported.rows if one.value is not None]),
            label_table("intent", figures.intents.labels),
            label_table("concept", figures.slots.per_concept_set),
            tuple(one for one in shown.utterances if one.kinds != "0"),
            shown.with_errors,
            found.unknown,
        )

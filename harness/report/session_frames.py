"""What the devices of a session understood, scored as by `harness understanding score SESSION`."""

from __future__ import annotations

from dataclasses import dataclass

from harness.session.figures.frames_of_session import session_corpora
from harness.session.figures.progress import Progress
from harness.understanding.counts import Matched, Rule
from harness.understanding.figures import Averages
from harness.understanding.reports.score_html import ShownFrames, by_label, selection
from harness.understanding.reports.score_text import FigureRow, Reported
from harness.understanding.scoring import counted, score

RULE = Rule(ordered=False, places=False)
"""Devices report neither the order nor the place of slots."""
Labels = tuple[list[tuple[str, Matched, Averages]], int]
"""Rows of intents or concepts, and how many are not listed."""


@dataclass(frozen=True, slots=True)
class SessionFrames:
    """rows: metrics that have a value. wrong: utterances with errors, worst first; total: also those not listed.

    unknown: ids of trials without evidence of the frame, which count nowhere.
    """

    utterances: int
    rows: tuple[FigureRow, ...]
    intents: Labels
    concepts: Labels
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
            tuple(one for one in reported.rows if one.value is not None),
            by_label(figures.intents.labels),
            by_label(figures.slots.per_concept_set),
            tuple(one for one in shown.utterances if one.kinds != "0"),
            shown.with_errors,
            found.unknown,
        )

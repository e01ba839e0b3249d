"""The figures so far, with their intervals."""

from __future__ import annotations

from rich.text import Text

from harness.dashboard import palette
from harness.dashboard.widgets.painted import Painted
from harness.dashboard.wording import OUTCOME_WORDS, quantile, share
from harness.evaluate.progress import Progress


class TotalsPanel(Painted):
    """Rates with their 95 % intervals; n/a where nothing was counted."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.border_title = "So far (95 % intervals)"
        self._progress = Progress()

    def show(self, progress: Progress) -> None:
        if progress != self._progress:
            self._progress = progress
            self.refresh()

    def paint(self, width: int, height: int) -> Text:
        progress, totals = self._progress, self._progress.totals
        attempts = "  ".join(f"{needed}: {n}" for needed, n in totals.attempts_to_recognition) or "n/a"
        rows: list[tuple[str, str]] = [
            ("Recognised", share(totals.recognised)),
            ("First try", share(totals.first_attempt)),
            ("Lat. p50", quantile(totals.latency.p50)),
            ("Lat. p95", quantile(totals.latency.p95)),
            ("Answered", share(totals.answered)),
            ("Judged", f"{totals.judged} of {totals.to_judge}"),
            ("Attempts", attempts),
            ("Faults", f"{progress.faults}   pauses {progress.pauses}   overruns {progress.overruns}"),
        ]
        if progress.unplaced:
            rows.insert(0, ("LOG", f"{progress.unplaced} rows of unknown trials"))
        text = Text()
        for name, value in rows:
            text.append(f"{name:<11}", style=palette.QUIET)
            text.append(f"{value}\n", style=palette.TEXT)
        for outcome, n in totals.by_outcome:
            text.append(f"{OUTCOME_WORDS[outcome]:<13}", style=palette.OUTCOMES[outcome])
            text.append(f"{n}\n", style=palette.TEXT)
        text.right_crop(1)
        return text

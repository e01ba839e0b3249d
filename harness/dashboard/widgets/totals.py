"""The figures so far, with their intervals."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text
from textual.content import Content

from harness.base.foreign import plain_text
from harness.dashboard import palette
from harness.dashboard.wake_wording import rate_interval, rate_value, ratio_interval, ratio_value
from harness.dashboard.widgets.painted import Painted
from harness.dashboard.wording import OUTCOME_WORDS, quantile, share, wer
from harness.session.figures.progress import Progress, normalisation_of, words_of_session
from harness.wake.wake_progress import WakeProgress

TITLE = "So far (95 % intervals)"
NAMES = 11  # columns


class TotalsPanel(Painted):
    """Rates with their 95 % intervals; n/a where nothing was counted."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.border_title = TITLE
        self._progress = Progress()
        self._wake = WakeProgress()

    def show(self, progress: Progress, wake: WakeProgress) -> None:
        if progress != self._progress or wake is not self._wake:
            self._progress, self._wake = progress, wake
            name = plain_text(normalisation_of(progress), 40)
            heard = words_of_session(progress.totals, wake)[0].attempts
            self.border_title = Content(f"95 % intervals · words: {name}" if heard else TITLE)
            self.refresh()

    def paint(self, width: int, height: int) -> Text:
        progress, totals = self._progress, self._progress.totals
        attempts = "  ".join(f"{needed}: {n}" for needed, n in totals.attempts_to_recognition) or "n/a"
        first, _ = words_of_session(totals, self._wake)
        heard = [("WER 1st", wer(first, width - NAMES))] if first.attempts else []
        rows: list[tuple[str, str]] = [
            *_frames(progress),
            *_recognised(progress),
            *heard,
            ("Lat. p50", quantile(totals.latency.p50)),
            ("Lat. p95", quantile(totals.latency.p95)),
            ("Answered", share(totals.answered)),
            ("Judged", f"{totals.judged} of {totals.to_judge}"),
            *([("Attempts", attempts)] if totals.attempts_to_recognition or not _until_understood(progress) else []),
            ("Faults", f"{progress.faults}   pauses {progress.pauses}   overruns {progress.overruns}"),
        ]
        if self._wake.planned:
            queries = any(one.trial.listening is None for one in progress.trials)
            rows = [*(rows if queries else [*heard, rows[-1]]), *_wake_rows(self._wake)]
        if progress.unread:
            rows.insert(0, ("NOT READ", f"{progress.unread} lines of devices"))
        if progress.unplaced:
            rows.insert(0, ("LOG", f"{progress.unplaced} rows of unknown trials"))
        text = Text()
        for name, value in rows:
            text.append(f"{name:<{NAMES}}", style=palette.QUIET)
            text.append(f"{value}\n", style=palette.TEXT)
        for outcome, n in totals.by_outcome:
            text.append(f"{OUTCOME_WORDS[outcome]:<13}", style=palette.OUTCOMES[outcome])
            text.append(f"{n}\n", style=palette.TEXT)
        text.right_crop(1)
        return text


def _until_understood(progress: Progress) -> bool:
    """Whether no trial is asked until its words are recognised, but some until they are understood."""
    asked = [one.trial for one in progress.trials if one.trial.listening is None]
    return bool(asked) and all(trial.until_understood for trial in asked)


def _frames(progress: Progress) -> Iterator[tuple[str, str]]:
    """Of trials that say what should be understood."""
    if not any(one.trial.expects is not None for one in progress.trials):
        return
    found = progress.totals.understood
    yield "Frames", share(found.right)
    yield "Intents", share(found.intents)
    yield "Frame 1st", share(found.first_right)
    tries = (f"{'never' if needed is None else needed}: {one.count}" for needed, one in found.attempts_needed)
    yield "Tries", "  ".join(tries) or "n/a"


def _recognised(progress: Progress) -> Iterator[tuple[str, str]]:
    if not _until_understood(progress):
        yield "Recognised", share(progress.totals.recognised)
        yield "First try", share(progress.totals.first_attempt)


def _wake_rows(wake: WakeProgress) -> Iterator[tuple[str, str]]:
    """Two lines a device, with the intervals that may be looked at at any time; the wake screen has the rest."""
    for device in wake.devices:
        ratio, rate = device.false_rejects, device.after_review
        name = plain_text(device.device, 10)
        yield name, f"FR {ratio_value(ratio)} ({ratio_interval(ratio.any_time)})"
        yield "", f"FA/h {rate_value(rate)} ({rate_interval(rate.any_time)})"

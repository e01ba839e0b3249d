"""The figures so far: the WER of what was heard stands among them where something could be heard."""

from __future__ import annotations

import pytest

from harness.dashboard.widgets.totals import TotalsPanel
from harness.dashboard.wording import wer
from harness.evaluate.progress import Progress, SessionFigures
from harness.evaluate.wake_progress import DeviceWake, WakeProgress
from harness.evaluate.words_heard import WordsHeard
from harness.model.record import TrialFinished, TrialStarted
from harness.model.scenario import TrialKind
from harness.model.transcript import WordCounts
from harness.model.trial import Outcome, Recognition
from tests.unit.evaluate.rows import Rows, planned
from tests.unit.evaluate.wake_rows import WakeRows, wake_trial


def progress_of(rows: Rows) -> Progress:
    figures = SessionFigures()
    for entry in rows.entries:
        figures.add(entry)
    return figures.snapshot()


def painted(progress: Progress, wake: WakeProgress) -> list[str]:
    panel = TotalsPanel()
    panel.show(progress, wake)
    return panel.paint(37, 8).plain.splitlines()


def test_queries() -> None:
    rows = Rows()
    rows.start(planned(1), planned(2))
    assert not [line for line in painted(progress_of(rows), WakeProgress()) if line.startswith("WER")]
    for number, heard in ((1, "what lime is it"), (2, None)):
        rows.add(TrialStarted(f"time-{number}", 1))
        rows.attempt(f"time-{number}", 1, Outcome.MISHEARD, Recognition.NO, heard=heard, latency_s=None)
        rows.add(TrialFinished(f"time-{number}", 1, Outcome.MISHEARD, 1, 1))
    lines = painted(progress_of(rows), WakeProgress())
    assert lines[2] == "WER 1st    25.0 %  1/2 spoken"


def test_commands_of_devices_that_tell_their_words() -> None:
    trial = wake_trial(1, TrialKind.COMMAND)
    rows = WakeRows()
    rows.plan(trial)
    rows.play(trial, words=[("kitchen", 2.6, "turn off the light")])
    assert painted(progress_of(rows), rows.progress)[0] == "WER 1st    25.0 %  1/1 spoken"
    assert not painted(progress_of(rows), WakeProgress((DeviceWake("kitchen"),), planned=1))[0].startswith("WER")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (WordsHeard.of([None, None]), "n/a  0/2 a\\eb"),
        (WordsHeard.of([WordCounts(8, 1, 1, 0, 1, 1)]), "20.0 %  1/1 a\\eb"),
    ],
)
def test_wording(words: WordsHeard, expected: str) -> None:
    assert wer(words, "a\x1bb") == expected
    assert "(" in wer(words + words, "plain") or words.wer is None

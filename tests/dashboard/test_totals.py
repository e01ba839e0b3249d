"""The figures so far: the WER of what was heard stands among them where something could be heard."""

from __future__ import annotations

from dataclasses import replace

import pytest
from textual.content import Content

from harness.dashboard.widgets.run import TotalsPanel
from harness.dashboard.wording import wer
from harness.model.record import TrialFinished, TrialStarted
from harness.model.scenario import Normalisation, Recognised, TrialKind
from harness.model.transcript import Rewriting, WordCounts
from harness.model.trial import Outcome, Recognition
from harness.session.figures.progress import Progress, SessionFigures
from harness.transcripts.recognition import WordsHeard
from harness.wake.wake_progress import DeviceWake, WakeProgress
from tests.unit.session.figures.rows import Rows, planned
from tests.unit.wake.wake_rows import WakeRows, wake_trial


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
    assert lines[2] == "WER 1st    25.0 %  1/2"


def test_commands_of_devices_that_tell_their_words() -> None:
    trial = wake_trial(1, TrialKind.COMMAND)
    rows = WakeRows()
    rows.plan(trial)
    rows.play(trial, words=[("kitchen", 2.6, "turn off the light")])
    assert painted(progress_of(rows), rows.progress)[0] == "WER 1st    25.0 %  1/1"
    assert not painted(progress_of(rows), WakeProgress((DeviceWake("kitchen"),), planned=1))[0].startswith("WER")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (WordsHeard.of([("time", None), ("time", None)]), "n/a  0/2"),
        (WordsHeard.of([("time", WordCounts(8, 1, 1, 0, 1, 1))]), "20.0 %  1/1"),
    ],
)
def test_wording(words: WordsHeard, expected: str) -> None:
    assert wer(words) == expected
    assert " by try  2/2" in wer(words + words) or words.wer is None


def test_the_unit_of_the_interval_gives_way_before_a_figure_does() -> None:
    words = WordsHeard.of((f"q{number}", WordCounts(8, number % 2, 0, 0, 1, number % 2)) for number in range(144))
    wide, narrow = wer(words, 33), wer(words, 24)
    assert wide.split()[3:] == ["by", "query", "144/144"]
    assert narrow.split() == [*wide.split()[:3], "144/144"]
    assert len(narrow) <= 24


def test_the_normalisation_stands_in_the_title_harmless() -> None:
    rows = Rows()
    rows.start(replace(planned(1), recognised=Recognised(rewriting=Rewriting("[red]a\x1bb", Normalisation.PLAIN, ()))))
    panel = TotalsPanel()
    panel.show(progress_of(rows), WakeProgress())
    assert panel.border_title == "So far (95 % intervals)"
    rows.add(TrialStarted("time-1", 1))
    rows.attempt("time-1", 1, Outcome.MISHEARD, Recognition.NO, heard="what", latency_s=None)
    rows.add(TrialFinished("time-1", 1, Outcome.MISHEARD, 1, 1))
    panel.show(progress_of(rows), WakeProgress())
    assert Content.from_markup(str(panel.border_title)).plain == r"95 % intervals · words: [red]a\eb"

"""What was understood, at the end of a session and in `harness show`."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from pathlib import Path

import pytest

from harness.cli.plain import end_of_session
from harness.model.record import TrialFinished, TrialStarted, Understood
from harness.model.scenario import RepromptRule, Until
from harness.model.trial import EvidenceSource, Outcome, Recognition
from harness.session import summary
from harness.session.figures.progress import Progress, SessionFigures
from harness.wake.wake import WakeFigures
from tests.dashboard.frame_bench import TIMER, some_frames, told, wanting
from tests.unit.session.figures.rows import Rows, planned

HOSTILE = "\x1b]0;owned\x07=1+1\r\n\u202e" + "x" * 3000


def progress_of(rows: Rows) -> Progress:
    figures = SessionFigures()
    for entry in rows.entries:
        figures.add(entry)
    return figures.snapshot()


def one(understood: Understood | None, outcome: Outcome = Outcome.MISHEARD) -> Rows:
    rows = Rows()
    rows.start(wanting(1, "set a timer for ten minutes", "timer", TIMER))
    rows.add(TrialStarted("timer", 1))
    rows.attempt("timer", 1, outcome, understood=understood)
    rows.add(TrialFinished("timer", 1, outcome, 1, 1))
    return rows


def cells(rows: Rows) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(summary.as_csv(progress_of(rows)))))


def test_a_table_with_signs(tmp_path: Path) -> None:
    lines = summary.frame_table(progress_of(some_frames(tmp_path)), 140)
    assert lines[0].startswith("#  ")
    assert lines[2].split() == ["1", "timer", "2", "understood:", "=", "set_timer,", "=", "duration", '"10', 'minutes"']
    assert lines[4].endswith("understood: nothing, as it should")
    assert lines[5].endswith('− add_to_list, = set_timer, + read_list, ≠ duration "9 minutes" (wanted "5 minutes")…')
    assert lines[6].split() == ["5", "read_list"]
    assert all(len(line) <= 60 for line in summary.frame_table(progress_of(some_frames(tmp_path)), 60))


def test_without_such_trials_there_is_no_table() -> None:
    rows = Rows()
    rows.start(planned(1))
    assert summary.frame_table(progress_of(rows)) == []
    assert not [line for line in summary.totals_lines(progress_of(rows).totals) if line.startswith("understood")]


def test_totals_of_frames_come_before_those_of_words(tmp_path: Path) -> None:
    lines = summary.totals_lines(progress_of(some_frames(tmp_path)).totals)
    assert lines[1:5] == [
        "understood           3 of 4 = 75.0 % (95 % interval 30.1–95.4 %)",
        "intents alone        3 of 4 = 75.0 % (95 % interval 30.1–95.4 %)",
        "understood at first  2 of 4 = 50.0 % (95 % interval 15.0–85.0 %); intents alone 3 of 4",
        "tries                1: 2 = 50.0 %, 2: 1 = 25.0 %, never: 1 = 25.0 %",
    ]
    assert not [line for line in lines if line.startswith("recognised")]
    whole = end_of_session(progress_of(some_frames(tmp_path)), WakeFigures(), None)
    assert [line for line in whole if "timer_and_eggs" in line and "− add_to_list" in line]


def test_words_that_decide_have_their_totals_too() -> None:
    trial = wanting(1, "set a timer for ten minutes", "timer", TIMER)
    rows = Rows()
    rows.start(replace(trial, reprompt=RepromptRule(until=Until.RECOGNISED)))
    rows.add(TrialStarted("timer", 1))
    rows.attempt("timer", understood=told("set_timer", right=False, intents_right=True))
    rows.add(TrialFinished("timer", 1, Outcome.RESPONDED, 1, 1))
    lines = summary.totals_lines(progress_of(rows).totals)
    assert lines[1].startswith("understood           0 of 1")
    assert [line for line in lines if line.startswith("recognised           1 of 1")]


@pytest.mark.parametrize(
    ("understood", "said"),
    [
        (None, ""),
        (Understood(), "nothing says what it understood"),
        (told("", right=False), "not understood: − set_timer, − duration \"10 minutes\""),
        (Understood(right=False, intents_right=None, source=EvidenceSource.OPERATOR), "not understood"),
    ],
)  # fmt: skip
def test_wording(understood: Understood | None, said: str) -> None:
    assert summary.frame_in_words(progress_of(one(understood)).trials[0]) == said


def test_what_nobody_knows_is_said_beside_the_shares() -> None:
    lines = list(summary.understood_lines(progress_of(one(Understood(), Outcome.NO_WAKE)).totals.understood))
    assert lines[0] == "understood           0 of 1 = 0.00 % (95 % interval 0.00–79.3 %)"
    unknown = progress_of(one(Understood(), Outcome.RESPONDED)).totals.understood
    assert list(summary.understood_lines(unknown))[-1] == "not known            of 1 nothing says what was understood"


def test_a_spreadsheet_has_both_frames_and_no_formula(tmp_path: Path) -> None:
    rows = cells(some_frames(tmp_path))
    assert [row["kind"] for row in rows] == ["understand"] * 5
    assert (rows[0]["expected"], rows[0]["understood"]) == ("set_timer (duration: 10 minutes)",) * 2
    assert [(row["intents_right"], row["frame_right"]) for row in rows] == [
        ("1", "1"), ("1", "1"), ("1", "1"), ("0", "0"), ("", ""),
    ]  # fmt: skip
    assert rows[4]["expected"] == "read_list"
    (hostile,) = cells(one(Understood(("=1+1",), (), False, False, EvidenceSource.DEVICE)))
    assert hostile["understood"] == "'=1+1"


def test_names_of_a_device_are_harmless() -> None:
    row = one(Understood((HOSTILE,), (), False, False, EvidenceSource.DEVICE))
    for line in summary.frame_table(progress_of(row), 100):
        assert line.isprintable()
        assert len(line) <= 100
    text = summary.as_csv(progress_of(row))
    assert not set(text) & set("\x1b\x07\u202e")


def test_a_trial_without_a_verdict_is_silent() -> None:
    rows = Rows()
    rows.start(wanting(1, "set a timer", "timer", TIMER))
    rows.trial("timer", Outcome.NO_WAKE, Recognition.UNKNOWN, latency_s=None)
    assert cells(rows)[0]["understood"] == ""

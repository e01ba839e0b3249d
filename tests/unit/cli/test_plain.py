"""The plain printer and the tables at the end of a session."""

import csv
import io
import json
from collections.abc import Iterable

import pytest

from harness.base.foreign import width_of
from harness.cli.plain import JsonPrinter, PlainPrinter
from harness.model.feed import Answered, Goodbye, Logged, StateChanged, StateWord, Welcome
from harness.model.record import EndReason, Entry, SessionFinished
from harness.model.trial import Outcome, Recognition
from harness.session import summary
from harness.session.figures.progress import Progress, SessionFigures
from tests.unit.session.figures.rows import Rows, clip_of, planned

HOSTILE = "\x1b]0;owned\x07[/red]\u202e\n" + "x" * 10_000


def session(transcript: str = "it is ten past nine") -> list[Entry]:
    rows = Rows()
    rows.start(planned(1), planned(2), planned(3, trial_id="北京 " * 20))
    rows.trial("time-1", attempts=2, clip=clip_of("1.flac"), text=transcript)
    rows.trial("time-2", Outcome.NO_WAKE, Recognition.UNKNOWN, latency_s=None)
    rows.add(SessionFinished(EndReason.STOPPED))
    return rows.entries


def progress_of(entries: Iterable[Entry]) -> Progress:
    figures = SessionFigures()
    for entry in entries:
        figures.add(entry)
    return figures.snapshot()


def welcome(last_seq: int = 0) -> Welcome:
    state = StateChanged(StateWord.PREPARING, 0.0)
    return Welcome("s1", "/tmp/no such folder/s1", 1, last_seq, state, "0", False)


def printed(entries: list[Entry], *, history: bool = True, colour: bool = False, last_seq: int = 0) -> str:
    stream = io.StringIO()
    printer = PlainPrinter(stream, history=history, colour=colour)
    printer.take(welcome(last_seq))
    for entry in entries:
        printer.take(Logged(entry))
    printer.take(Goodbye(3, "stopped"))
    return stream.getvalue()


def test_a_session_in_words_ends_with_figures_and_what_to_type() -> None:
    text = printed(session())
    assert "attempt 1: misheard, not recognised" in text
    assert 'it says "it is ten past nine"' in text
    assert "= time-2: DID NOT WAKE after 1 attempt" in text
    assert "finished             2 of 3: 1 responded, 1 did not wake" in text
    assert "latency              median 800 ms" in text
    assert text.endswith(
        "stopped\n\nsession folder: /tmp/no such folder/s1\n"
        "go on with:     harness resume /tmp/no such folder/s1\n"
        "look at it:     harness show /tmp/no such folder/s1\n"
        "judge it:       harness rate /tmp/no such folder/s1\n"
    )
    assert "\x1b" not in text


def test_colour_only_when_asked_for() -> None:
    assert "\x1b[1m" in printed(session(), colour=True)


def test_hostile_text_reaches_no_terminal() -> None:
    text = printed(session(HOSTILE))
    assert all(line.isprintable() for line in text.split("\n"))
    assert "\\e]0;owned" in text
    assert max(map(len, text.split("\n"))) < 1100


def test_who_comes_later_gets_a_line_on_what_was_before() -> None:
    entries = session()
    middle = next(entry.seq for entry in entries if "trial_finished" in entry.record.kind)
    text = printed(entries, history=False, last_seq=middle)
    assert "so far 1 of 3 trials are finished" in text
    assert "attempt 1: misheard" not in text
    assert "DID NOT WAKE" in text
    assert "finished             2 of 3" in text


def test_waits_refusals_and_a_full_disk_are_said_once() -> None:
    stream = io.StringIO()
    printer = PlainPrinter(stream, history=True, colour=False)
    printer.take(StateChanged(StateWord.WAITING, 10.0, 22.0, reason="until it has forgotten"))
    printer.take(StateChanged(StateWord.WAITING, 10.0, 22.0, reason="until it has forgotten"))
    printer.take(StateChanged(StateWord.PLAYING, 10.0))
    printer.take(StateChanged(StateWord.PAUSED, 10.0, reason="disk full: no room"))
    printer.take(Answered("1", True))
    printer.take(Answered("2", False, "no monitor"))
    lines = [line.split("  ", 1)[-1].strip() for line in stream.getvalue().splitlines()]
    assert lines == ["waiting 12.0 s: until it has forgotten", "paused: disk full: no room", "refused: no monitor"]


def test_json_lines() -> None:
    stream = io.StringIO()
    printer = JsonPrinter(stream)
    for entry in session(HOSTILE):
        printer.take(Logged(entry))
    found = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [message["entry"]["seq"] for message in found] == [entry.seq for entry in session()]


@pytest.mark.parametrize("width", [60, 80, 105, 120, 200])
def test_the_table_keeps_to_the_width(width: int) -> None:
    for line in summary.trial_table(progress_of(session(HOSTILE)).trials, width):
        assert width_of(line) <= max(width, 78)
        assert line.isprintable()


def test_what_was_not_played_is_said_and_nothing_over_nothing_is_a_number() -> None:
    rows = progress_of(session()).trials
    assert [summary.outcome_in_words(row) for row in rows] == ["responded", "did not wake", "not played"]
    empty = summary.totals_lines(Progress().totals)
    assert sum("n/a" in line for line in empty) == 6


def test_csv_has_one_row_a_trial_and_no_control_characters() -> None:
    text = summary.as_csv(progress_of(session(HOSTILE)))
    found = list(csv.DictReader(io.StringIO(text)))
    assert [(row["trial"], row["outcome"], row["attempts"]) for row in found][:2] == [
        ("time-1", "responded", "2"),
        ("time-2", "no_wake", "1"),
    ]
    assert found[0]["latency_ms"] == "800.0"
    assert found[2]["outcome"] == ""
    assert all(value.isprintable() for row in found for value in row.values())

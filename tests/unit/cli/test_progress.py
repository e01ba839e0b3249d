"""The progress line: what draws it, where, and that nothing stays of it."""

from __future__ import annotations

import io
import os
import pty
import sys
import termios
from pathlib import Path

import pytest

from harness.base.progress import report_progress_to, step, tracked
from harness.cli.streams import RedrawnLine, drawn_progress
from harness.model.bench import Bench
from harness.model.record import EndReason, SessionFinished
from harness.model.scenario import Scenario
from harness.session.engine.assemble import ResolvedSession, write_resolved
from tests.command import harness
from tests.unit.wake.wake_rows import WakeRows, wake_trial
from tests.written_sessions import written

CLEAR = "\r\x1b[K"


def stored(folder: Path) -> Path:
    rows = WakeRows()
    trial = wake_trial(0, devices=("a",))
    rows.plan(trial)
    rows.play(trial, [("a", 1.8)])
    rows.add(SessionFinished(EndReason.COMPLETED))
    written(folder, rows)
    write_resolved(folder, ResolvedSession(Scenario("s", "S", "/s.yaml", "a", (), ()), Bench("lab", "", "", "b", ())))
    return folder


def test_the_line_is_drawn_on_a_terminal_and_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = pty.openpty()
    with open(theirs, "w", encoding="utf-8") as terminal, open(ours, "rb", buffering=0) as screen:
        monkeypatch.setenv("TERM", "xterm")
        with monkeypatch.context() as patched:
            patched.setattr(sys, "stderr", terminal)
            with drawn_progress():
                assert [*tracked(range(3), "Reading rows")] == [0, 1, 2]
                step("Writing the page")
            assert tracked(items := [1], "Reading rows") is items
            terminal.write("END")
            terminal.flush()
        text = ""
        while not text.endswith("END"):
            text += os.read(screen.fileno(), 10_000).decode()
    assert text.startswith(f"{CLEAR}Reading rows: 0 of 3{CLEAR}")
    assert text.endswith(f"{CLEAR}Writing the page …{CLEAR}END")


def test_the_line_fits_its_terminal_whatever_standard_output_is(monkeypatch: pytest.MonkeyPatch) -> None:
    _, theirs = pty.openpty()
    with open(theirs, "w", encoding="utf-8") as terminal:
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.delenv("COLUMNS", raising=False)
        termios.tcsetwinsize(terminal.fileno(), (24, 22))
        drawn_texts: list[str] = []
        with monkeypatch.context() as patched:
            patched.setattr(sys, "stderr", terminal)
            line = RedrawnLine()
            patched.setattr(line, "_write", drawn_texts.append)
            line.draw("Reading profiles: 0 of 35 of them")
    assert len(drawn_texts[0].removeprefix(CLEAR)) == 21


def test_no_progress_line_is_drawn_without_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = io.StringIO()
    with monkeypatch.context() as patched:
        patched.setattr(sys, "stderr", pipe)
        with drawn_progress():
            step("Writing the page")
            assert tracked(items := [1], "Reading rows") is items
    assert not pipe.getvalue()


@pytest.mark.parametrize(
    ("words", "marked"),
    [
        ("check validate scenarios/understanding/hotel.yaml", {"Reading files"}),
        (
            "check rehearse scenarios/wake_boards.yaml --bench scenarios/benches/boards.yaml --runs 20 --nights 1",
            {"Planning", "Simulating runs", "Simulating nights"},
        ),
        ("admin voices list", {"Querying speech engines"}),
        ("admin devices list", {"Reading profiles"}),
        ("evaluate engines", {"Reading engines"}),
        ("admin pack SESSION -o FOLDER/s.tar.gz", {"Checking rows", "Reading files", "Packing files"}),
        ("report SESSION -o FOLDER/page.html", {"Reading rows of session", "Writing the page"}),
        ("report show SESSION --check", {"Checking rows"}),
        ("report trend FOLDER", {"Reading rows of session"}),
    ],
)
def test_long_running_commands_show_progress(words: str, marked: set[str], tmp_path: Path) -> None:
    session = stored(tmp_path / "session")
    labels: list[str] = []
    with report_progress_to(lambda label, done, total: labels.append(label)):
        arguments = words.replace("SESSION", str(session)).replace("FOLDER", str(tmp_path)).split()
        result = harness(*arguments)
    assert result.exit_code in (0, 1), result.output
    assert marked <= set(labels)

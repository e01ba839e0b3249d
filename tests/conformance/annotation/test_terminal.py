"""An annotator's terminal in tmux: killed after any key, asked to end, and never left in disorder."""

from __future__ import annotations

import os
import random
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.model.annotation import Accepted, AnnotationRow, Struck
from tests.annotation_projects import annotation_project, rows
from tests.conformance.rating.terminal import Hand, RatingTerminal, opened_terminal

HARNESS = Path(sys.executable).with_name("harness")
PAGES = 40
pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux")


@pytest.fixture
def terminal() -> Iterator[RatingTerminal]:
    with opened_terminal() as opened:
        yield opened


def review(terminal: RatingTerminal, project: Path) -> None:
    terminal.start(str(HARNESS), "annotate", "review", str(project), "--annotator", "ann")


def struck_or_accepted(given: list[AnnotationRow]) -> list[str]:
    return [one for row in given if isinstance(row, Accepted | Struck) for one in row.utterances]


def test_killed_after_any_key_it_loses_and_doubles_nothing(tmp_path: Path, terminal: RatingTerminal) -> None:
    talk = [(f"yes {n:03}", ("yes_please",)) for n in range(5 * PAGES)]
    project = annotation_project(tmp_path / "talk", talk, page_size=5)
    dice, hand = random.Random(3), Hand(terminal)
    done = 0
    for _ in range(2):
        review(terminal, project)
        terminal.wait(lambda screen, done=done: f"{done} of {5 * PAGES} done" in screen)  # type: ignore[misc]
        for _ in range(dice.randint(1, 2)):
            line = str(dice.randint(1, 5))
            hand.press_for(line, lambda screen, line=line: f"{line} ✗" in screen)  # type: ignore[misc]
            done += 4
            shown = f"{done} of {5 * PAGES} done"
            hand.press_for("Enter", lambda screen, shown=shown: shown in screen)  # type: ignore[misc]
        pid = terminal.pid
        hand.press("Enter")  # and killed at once: the page may be saved or not
        os.kill(pid, signal.SIGKILL)
        terminal.gone()
        given = rows(project)
        pages = [row.page for row in given if isinstance(row, Accepted)]
        assert len(pages) == len(set(pages))
        every = struck_or_accepted(given)
        assert len(every) == len(set(every))
        assert len(every) % 5 == 0, "a page is there as a whole or not at all"
        accepted = sum(len(row.utterances) for row in given if isinstance(row, Accepted))
        assert accepted in (done, done + 5)
        done = accepted


@pytest.mark.parametrize("asked", [signal.SIGHUP])
def test_a_signal_leaves_as_a_key_does(tmp_path: Path, terminal: RatingTerminal, asked: signal.Signals) -> None:
    project = annotation_project(tmp_path / "talk")
    review(terminal, project)
    terminal.wait(lambda screen: "group 1 of" in screen)
    Hand(terminal).press_for("Enter", lambda screen: "accepted" in screen)
    os.kill(terminal.pid, asked)
    assert terminal.ended() == str(128 + asked)
    assert terminal.ask("display-message -p '#{alternate_on} #{mouse_any_flag}'") == ["0 0"]
    assert len(rows(project)) == 1


def test_a_dumb_terminal_works_in_lines(tmp_path: Path) -> None:
    with opened_terminal("dumb") as terminal:
        review(terminal, annotation_project(tmp_path / "talk"))
        terminal.wait(lambda screen: "yes please" in screen)
        assert terminal.ask("display-message -p '#{alternate_on}'") == ["0"]

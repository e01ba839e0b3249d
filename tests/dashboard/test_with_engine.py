"""The dashboard with the real engine, over the in-process sound path: what its users do, and what the log says then."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from textual.pilot import Pilot

from harness.dashboard.app import Dashboard
from harness.dashboard.screens.questions import AskingPanel
from harness.dashboard.screens.rating import RatingScreen
from harness.dashboard.screens.wake import UnmatchedList, WakeScreen
from harness.model.bench import OperatorPresence
from harness.model.feed import Hello
from harness.model.judgment import Category, JudgmentStatus
from harness.model.record import (
    AttemptFinished,
    EndReason,
    EventReviewed,
    JudgmentGiven,
    MarkSet,
    NoteWritten,
    Record,
    RerunAsked,
    ReviewVerdict,
    SessionFinished,
    TrialFinished,
)
from harness.model.trial import EvidenceSource, Outcome, Recognition
from harness.session.engine.feed import EngineClient
from harness.session.engine.launch import EnginePlace, find, start_engine
from harness.wake.wake import WakeFigures
from tests.conformance.engine_runs import Runs, rows, wait_for
from tests.dashboard.bench import LARGE, SMALL, press_until, screen_text, shows, until
from tests.known import known
from tests.written_sessions import records, wake_of

R = TypeVar("R", bound=Record)


def begin(runs: Runs, scenario: str, bench: str = "attended_bench.yaml", **choices: Any) -> tuple[Path, EnginePlace]:
    folder = runs.prepare(scenario, bench, **choices)
    return folder, start_engine(folder)


def dashboard(place: EnginePlace) -> Dashboard:
    return Dashboard(partial(EngineClient, Path(place.socket)), "ann")


def found(folder: Path, kind: type[R]) -> list[R]:
    return records(folder, kind)


class Attached:
    """A command of ours in a terminal of its own."""

    def __init__(self, *arguments: str) -> None:
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(self._ours, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self._said = bytearray()
        environment = {**os.environ, "TERM": "xterm-256color", "LOGNAME": "ann"}
        self._process = subprocess.Popen(
            [sys.executable, "-c", "from harness.cli import main; main()", *arguments],
            stdin=theirs, stdout=theirs, stderr=theirs, env=environment, start_new_session=True,
        )  # fmt: skip
        os.close(theirs)

    def screen(self) -> str:
        """All that was written so far, without what steers the terminal."""
        while select.select([self._ours], [], [], 0)[0]:
            try:
                self._said += os.read(self._ours, 65536)
            except OSError:  # its end is closed
                break
        return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", self._said.decode("utf-8", "replace"))

    def type(self, keys: str) -> None:
        os.write(self._ours, keys.encode())

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        self.kill()
        os.close(self._ours)


async def leave(pilot: Pilot[int], app: Dashboard) -> int | None:
    """As ctrl+q, at the end of a session: the engine's last word is waited for."""
    await press_until(pilot, lambda: app.return_value is not None, "ctrl+q")
    return app.return_value


async def test_the_operator_is_asked_and_the_answer_is_evidence(runs: Runs) -> None:
    # Present from the start: a trial may be over before the dashboard has opened.
    folder, place = begin(runs, "asking.yaml", operator=OperatorPresence.PRESENT)
    app = dashboard(place)
    async with app.run_test(size=SMALL) as pilot:
        await until(pilot, lambda: isinstance(app.screen, AskingPanel))
        await until(pilot, shows(pilot, "of       unit, attempt 1"))
        await press_until(pilot, shows(pilot, "o shows the question"), "escape")
        await press_until(pilot, lambda: isinstance(app.screen, AskingPanel), "o")
        await press_until(pilot, lambda: found(folder, AttemptFinished), "n", *"what lime", "enter")
        await until(pilot, lambda: isinstance(app.screen, AskingPanel) and app.screen.question[:2] == ("time.r1", 2))
        await press_until(
            pilot, lambda: isinstance(app.screen, AskingPanel) and app.screen.question[:2] == ("time.r2", 1), "y"
        )
        await press_until(pilot, shows(pilot, "all played"), "u")
        assert await leave(pilot, app) == 0
    wait_for(lambda: not place.alive)
    first, second, third = found(folder, AttemptFinished)
    assert (first.recognition, first.heard, first.evidence) == (Recognition.NO, "what lime", EvidenceSource.OPERATOR)
    assert (second.recognition, second.outcome) == (Recognition.YES, Outcome.RESPONDED)
    assert (third.recognition, third.outcome) == (Recognition.UNKNOWN, Outcome.INCONCLUSIVE)
    assert found(folder, SessionFinished) == [SessionFinished(EndReason.COMPLETED)]


async def test_a_response_is_judged_while_the_run_goes_on_and_undone(runs: Runs) -> None:
    folder, place = begin(runs, "lasting.yaml")
    app = dashboard(place)
    async with app.run_test(size=LARGE) as pilot:
        await until(pilot, lambda: found(folder, TrialFinished))
        await press_until(pilot, lambda: isinstance(app.screen, RatingScreen), "j")
        await until(pilot, shows(pilot, "asked  “what"))
        await press_until(pilot, shows(pilot, "saved as “Wrong”: done"), "9")
        await press_until(pilot, lambda: len(found(folder, JudgmentGiven)) == 2, "u")
        await until(pilot, shows(pilot, "undone: done"))
        await press_until(pilot, lambda: len(found(folder, JudgmentGiven)) == 3, "1")
        wrong, undone, right = (row.judgment for row in found(folder, JudgmentGiven))
        assert (wrong.category, undone.status, right.category) == (
            Category.WRONG, JudgmentStatus.WITHDRAWN, Category.CORRECT,
        )  # fmt: skip
        assert undone.replaces == wrong.id
        assert wrong.trial_id == undone.trial_id == right.trial_id
        await press_until(pilot, lambda: app.return_value is not None, "escape", "ctrl+q")
    assert app.return_value == 0
    assert place.alive, "leaving a run that goes on must not end it"


async def test_notes_a_rerun_after_the_last_trial_and_the_end(runs: Runs) -> None:
    folder, place = begin(runs, "three.yaml")
    app = dashboard(place)
    async with app.run_test(size=SMALL) as pilot:
        await until(pilot, shows(pilot, "time.r3"))
        await press_until(pilot, shows(pilot, "note: done"), "n", *"door", "enter")
        await press_until(pilot, shows(pilot, "mark: done"), "m", *"bang", "enter")
        await until(pilot, shows(pilot, "all played"))
        await press_until(pilot, shows(pilot, "refused, no trial is running"), "s", *"late", "enter")
        await press_until(pilot, lambda: len(found(folder, TrialFinished)) == 4, "home", "down", "r")
        await until(pilot, shows(pilot, "all played"))
        assert await leave(pilot, app) == 0
    assert [row.text for row in found(folder, NoteWritten)] == ["door"]
    assert [row.label for row in found(folder, MarkSet)] == ["bang"]
    (rerun,) = found(folder, RerunAsked)
    assert [(row.trial_id, row.take) for row in found(folder, TrialFinished)][-1] == (rerun.trial_id, 2)
    wait_for(lambda: not place.alive)


async def test_a_run_is_paused_detached_reattached_and_aborted(runs: Runs) -> None:
    folder, place = begin(runs, "lasting.yaml")
    first = dashboard(place)
    async with first.run_test(size=SMALL) as pilot:
        await until(pilot, lambda: found(folder, TrialFinished))
        await press_until(pilot, shows(pilot, "paused by ann, p continues"), "p")
        await leave(pilot, first)
    assert first.return_value == 0
    assert place.alive
    second_app = dashboard(place)
    async with second_app.run_test(size=LARGE) as pilot:
        await until(pilot, shows(pilot, "paused by ann, p continues"))
        await press_until(pilot, shows(pilot, "continue: done"), "p")
        await press_until(pilot, shows(pilot, "Abort this session?"), "a")
        await press_until(pilot, shows(pilot, "The engine has ended: aborted (exit status 3)"), "y")
        await leave(pilot, second_app)
    assert second_app.return_value == 3
    assert found(folder, SessionFinished) == [SessionFinished(EndReason.ABORTED)]
    wait_for(lambda: not place.alive)


async def test_a_dashboard_killed_right_after_a_key_loses_nothing(runs: Runs) -> None:
    folder, place = begin(runs, "lasting.yaml")
    with closing(Attached("attach", str(folder))) as killed:
        wait_for(lambda: "responded" in killed.screen(), 90, "a finished trial on the screen")
        killed.type("j")
        wait_for(lambda: "asked  “what" in killed.screen(), 60, "a response to judge")
        killed.type("1")
        killed.kill()
    second_app = dashboard(place)
    async with second_app.run_test(size=SMALL) as pilot:
        await until(pilot, lambda: found(folder, TrialFinished))
        await press_until(pilot, shows(pilot, "Judging "), "j")
        # The engine may take the key of the one that was killed only now.
        await until(pilot, lambda: f"Judging {len(found(folder, JudgmentGiven))} of" in screen_text(pilot))
        categories = [row.judgment.category for row in found(folder, JudgmentGiven)]
        assert categories in ([], [Category.CORRECT])
        await leave(pilot, second_app)


async def test_two_dashboards_judge_the_same_response(runs: Runs) -> None:
    folder, place = begin(runs, "three.yaml")
    app, other = dashboard(place), dashboard(place)
    async with app.run_test(size=SMALL) as first:
        await until(first, shows(first, "all played"))
        async with other.run_test(size=SMALL) as second:
            for pilot in (first, second):
                await press_until(pilot, shows(pilot, "0 of 3 done"), "j")
            await first.press("1")
            # The other one's item is not open any more; its next key is for the next one.
            await until(second, shows(second, "1 of 3 done"))
            await press_until(first, shows(first, "2 of 3 done"), "2")
            judged = {row.judgment.trial_id: row.judgment.category for row in found(folder, JudgmentGiven)}
            assert list(judged.values()) == [Category.CORRECT, Category.PARTIALLY_CORRECT]
            await second.press("ctrl+q")
            with suppress(AssertionError):
                await until(second, lambda: other.return_value is not None, within_s=0.5)
            assert find(folder) == place, "somebody is still there"
        assert await leave(first, app) == 0


def figures(folder: Path) -> WakeFigures:
    return wake_of(rows(folder))


async def test_events_are_reviewed_during_the_run_and_who_comes_back_sees_the_same(runs: Runs) -> None:
    folder, place = begin(runs, "wake.yaml", "wake_bench.yaml")
    # Somebody who stays, so that a run that is over by then does not end when the first one leaves.
    stays = EngineClient(Path(place.socket), Hello("ben", 0, attended=True), lambda message: None, lambda reason: None)
    first = dashboard(place)
    async with first.run_test(size=LARGE) as pilot:
        await until(pilot, lambda: isinstance(first.screen, WakeScreen) and bool(first.screen.query(UnmatchedList)))
        events = first.screen.query_one(UnmatchedList)
        await until(pilot, lambda: events.selected is not None)
        event = known(events.selected)
        await press_until(pilot, lambda: found(folder, EventReviewed), "h")
        assert found(folder, EventReviewed) == [EventReviewed(event.seq, ReviewVerdict.REAL_PERSON, "ann")]
        await until(pilot, shows(pilot, f"event {event.seq}: real person: done"))
        await press_until(pilot, lambda: len(found(folder, EventReviewed)) == 2, "u")
        assert found(folder, EventReviewed)[-1] == EventReviewed(event.seq, None, "ann")
        await until(pilot, shows(pilot, f"event {event.seq}: taken back: done"))
        await press_until(pilot, lambda: len(found(folder, EventReviewed)) == 3, "h")
        await until(pilot, lambda: first.watch_.view().wake.counted >= 3)
        await leave(pilot, first)
    app = dashboard(place)
    async with app.run_test(size=SMALL) as pilot:
        await until(pilot, shows(pilot, "all played"))
        await until(pilot, shows(pilot, "same 20: only 1st"))
        progress = app.watch_.view().wake
        assert progress == figures(folder).snapshot(), "the screen and the log say the same"
        assert {row.device: row.false_rejects.share.total for row in progress.devices} == {"shelf": 20, "wired": 20}
        reviewed = next(unmatched for unmatched in progress.unmatched if unmatched.seq == event.seq)
        assert reviewed.verdict is ReviewVerdict.REAL_PERSON
        stays.close()
        assert await leave(pilot, app) == 0
    assert found(folder, SessionFinished) == [SessionFinished(EndReason.COMPLETED)]
    wait_for(lambda: not place.alive)

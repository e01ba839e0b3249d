"""The dashboard's state, computed from the engine's messages. A frozen `View` of it is drawn.

Does not import Textual. Call `receive` and `note_disconnect` from any thread, the rest from the drawing loop.
"""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import field, replace
from pathlib import Path

from harness.base.foreign import plain_text
from harness.base.garbage_collection import gc_paused
from harness.dashboard.events import EventLine, event_line
from harness.model.errors import LogError
from harness.model.feed import (
    Answered,
    Command,
    Goodbye,
    Hello,
    Logged,
    Message,
    Meters,
    StateChanged,
    StateWord,
    Welcome,
)
from harness.model.frozen import frozen
from harness.model.judgment import JudgmentStatus
from harness.model.numbers import fixed
from harness.model.record import EndReason, EngineStarted, Entry, JudgmentGiven
from harness.model.scenario import Limits, Stopping
from harness.session.engine.feed import RESUME
from harness.session.figures.progress import Progress, SessionFigures
from harness.session.log.reader import read_scenario
from harness.session.wording import RowWriter
from harness.wake.wake import DevicePair, WakeFigures, comparisons
from harness.wake.wake_progress import WakeProgress


@frozen
class DeclaredCriteria:
    """The scenario's limits and sequential tests; none when the folder cannot be read."""

    limits: Limits = field(default_factory=Limits)
    stopping: Stopping = field(default_factory=Stopping)


def read_criteria(folder: Path) -> DeclaredCriteria:
    """The limits and tests of the session in `folder`."""
    try:
        scenario = read_scenario(folder)
    except LogError:
        return DeclaredCriteria()
    return DeclaredCriteria(scenario.limits, scenario.stopping)


AnswerCallback = Callable[[Answered], None]
NOTICE_DURATION_S = 8.0
SLOW_ANSWER_S = 5.0
"""If the engine has not answered a command after this time, the notice says so."""
HANDLING_S = 0.06
"""Time for handling messages at each redraw, so that a burst does not block the keys."""
CATCHING_UP_S = 0.15
"""The same while many rows are still to come. A key waits no longer than for a redraw."""
MANY_ROWS = 10_000
"""If more rows than this are still to come, the notice shows the progress of reading them."""


@frozen
class Notice:
    """The line above the keys. ok: True for done, False for refused, None while waiting for the engine."""

    text: str
    ok: bool | None


@frozen
class View:
    """The session at one moment, as it is drawn."""

    progress: Progress
    wake: WakeProgress = field(default_factory=WakeProgress)
    comparisons: tuple[DevicePair, ...] = ()
    """All pairs of devices, compared by their wake words."""
    criteria: DeclaredCriteria = field(default_factory=DeclaredCriteria)
    session_s: float = 0.0
    """The present time on the session's clock, as `at_s` in the log."""
    state: StateChanged | None = None
    """The last state that the engine sent; None before the first."""
    remaining_s: float | None = None
    """Time until the state times out; None if it does not."""
    meters: Meters | None = None
    """The last levels; None before the first."""
    welcome: Welcome | None = None
    """The engine's first message; None before it."""
    goodbye: Goodbye | None = None
    """The engine's last message; None while it runs."""
    gone_reason: str | None = None
    """Why the engine is gone; None while it runs, or if it said goodbye."""
    notice: Notice | None = None

    @property
    def is_over(self) -> bool:
        return self.gone_reason is not None or self.goodbye is not None

    @property
    def all_played(self) -> bool:
        """Whether the engine only waits for the session to be closed."""
        return self.state is not None and self.state.word is StateWord.FINISHED

    @property
    def progress_for_limits(self) -> Progress:
        """The progress that is compared with limits. If the session only waits to be closed, that after closing it."""
        if self.all_played and self.progress.finished is None:
            return replace(self.progress, finished=EndReason.COMPLETED)
        return self.progress


@frozen
class _PendingCommand:
    """A command that the engine has not answered yet. then: gets the answer."""

    label: str
    since_s: float
    then: AnswerCallback | None


@frozen
class _Disconnect:
    why: str


class Watch:
    """Takes messages, and gives a view. now: returns CLOCK_MONOTONIC of this host, in s."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._figures, self._wake = SessionFigures(), WakeFigures()
        self._is_wake_current, self._compared_count = False, 0
        self._compute_after_s = 0.0
        self._view = View(Progress())
        self._messages: queue.SimpleQueue[Message | _Disconnect] = queue.SimpleQueue()
        self._speed = 1.0
        self.last_seq = 0
        self._pending_commands: dict[str, _PendingCommand] = {}
        self._notice: tuple[Notice, float] | None = None
        """The last notice, and the time since which it is shown."""
        self._rows = RowWriter()
        self._new_events: list[EventLine] = []

    def receive(self, message: Message) -> None:
        self._messages.put(message)

    def note_disconnect(self, why: str) -> None:
        self._messages.put(_Disconnect(why))

    def handle_messages(self) -> bool:
        """Handles messages for a bounded time; the next call handles the rest. Returns whether there were any."""
        deadline_s = time.perf_counter() + (CATCHING_UP_S if self._is_catching_up else HANDLING_S)
        has_new = False
        with gc_paused() if self._is_catching_up else nullcontext():  # rows that are read stay: nothing to collect
            while time.perf_counter() < deadline_s:
                try:
                    message = self._messages.get_nowait()
                except queue.Empty:
                    break
                has_new = True
                self._handle(message)
        return has_new

    def _handle(self, message: Message | _Disconnect) -> None:
        match message:
            case Logged(entry=entry):
                if isinstance(entry.record, EngineStarted):
                    self._speed = entry.record.clock_speed or 1.0
                self.last_seq = entry.seq
                self._figures.add(entry)
                self._wake.add(entry)
                self._is_wake_current = False
                line = event_line(entry, self._rows)
                if line is not None:
                    self._new_events.append(line)
            case StateChanged():
                self._view = replace(self._view, state=message)
            case Meters():
                self._view = replace(self._view, meters=message)
            case Welcome():
                criteria = read_criteria(Path(message.session_folder))
                self._view = replace(self._view, welcome=message, state=message.state, criteria=criteria)
            case Goodbye():
                self._view = replace(self._view, goodbye=message)
            case Answered():
                self._on_answer(message)
            case _Disconnect(why=why):
                self.note_lost_engine(why)

    def add_later_judgments(self, rows: Iterable[Entry]) -> None:
        """Adds judgments made away from the bench, so that these responses are not shown again.

        Responses skipped or held there are still shown: the engine has no row to replace.
        """
        for entry in rows:
            if not isinstance(entry.record, JudgmentGiven):
                continue
            if entry.record.judgment.status not in (JudgmentStatus.SKIPPED, JudgmentStatus.HELD):
                self._figures.add_later(entry)

    def _on_answer(self, answer: Answered) -> None:
        pending = self._pending_commands.pop(answer.command_id, None)
        if pending is None:
            return
        why = plain_text(answer.why, 120) or "the engine gave no reason"
        self.set_notice(f"{pending.label}: done" if answer.ok else f"{pending.label}: refused, {why}", answer.ok)
        if pending.then is not None:
            pending.then(answer)

    def note_lost_engine(self, why: str) -> None:
        """Records that the engine is gone, unless it said goodbye. Pending commands are answered with a refusal."""
        if self._view.goodbye is None:
            self._view = replace(
                self._view, gone_reason=plain_text(why.removesuffix(RESUME)) or "the connection was closed"
            )
        pending_commands, self._pending_commands = self._pending_commands, {}
        for command_id, pending in pending_commands.items():
            if pending.then is not None:
                pending.then(Answered(command_id, False, "the engine is gone"))

    def note_reconnect(self) -> None:
        """Records that a new connection follows one that was lost."""
        self._view = replace(self._view, gone_reason=None)

    def expect_answer(self, command: Command, label: str, then: AnswerCallback | None) -> None:
        """Records a command that is about to be sent. The engine answers all commands except Hello."""
        if not isinstance(command, Hello):
            self._pending_commands[command.id] = _PendingCommand(label, self._now(), then)
        self.set_notice(f"{label} …", None)

    def set_notice(self, text: str, ok: bool | None) -> None:
        self._notice = Notice(text, ok), self._now()

    def take_new_events(self) -> list[EventLine]:
        """The event lines since the last call."""
        new_events, self._new_events = self._new_events, []
        return new_events

    @property
    def is_awaiting_answer(self) -> bool:
        return bool(self._pending_commands)

    @property
    def is_over(self) -> bool:
        return self._view.is_over

    @property
    def _is_catching_up(self) -> bool:
        """Whether rows from before the connection are still to come."""
        welcome = self._view.welcome
        return welcome is not None and self.last_seq < welcome.last_seq and not self.is_over

    def _compute_results(self) -> None:
        """Computes the results. While catching up, it uses only a fifth of the time: many trials make it slow."""
        began_s = time.perf_counter()
        if self._is_catching_up and began_s < self._compute_after_s:
            return
        if not self._is_wake_current:
            self._view = replace(self._view, wake=self._wake.snapshot())
            self._is_wake_current = True
            if self._view.wake.counted != self._compared_count:
                self._compared_count = self._view.wake.counted
                self._view = replace(self._view, comparisons=comparisons(self._wake))
        self._view = replace(self._view, progress=self._figures.snapshot())
        ended_s = time.perf_counter()
        self._compute_after_s = ended_s + 4 * (ended_s - began_s)

    def view(self) -> View:
        """The present state of the session, with new results unless they are postponed while catching up."""
        now, state = self._now(), self._view.state
        self._compute_results()
        until_s = None if state is None else state.until_s
        return replace(
            self._view,
            session_s=now * self._speed,
            # The session's clock starts with the host's and may run faster.
            remaining_s=None if until_s is None else max(0.0, until_s / self._speed - now),
            notice=self._current_notice(now),
        )

    def _current_notice(self, now: float) -> Notice | None:
        """The notice to show: a slow answer, the progress of catching up, or the last notice while it is fresh."""
        for pending in self._pending_commands.values():
            if now - pending.since_s > SLOW_ANSWER_S:
                wait_text = fixed(now - pending.since_s, 0, "s")
                return Notice(f"{pending.label}: no answer from the engine for {wait_text}", None)
        welcome = self._view.welcome
        if welcome is not None and self._is_catching_up and welcome.last_seq - self.last_seq > MANY_ROWS:
            return Notice(f"Reading the session: row {self.last_seq:,} of {welcome.last_seq:,}", None)
        if self._notice is None:
            return None
        notice, noticed_s = self._notice
        is_fresh = now - noticed_s < NOTICE_DURATION_S
        is_waiting = notice.ok is None and bool(self._pending_commands)
        return notice if is_fresh or is_waiting else None

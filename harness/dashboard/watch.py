"""The dashboard's state, computed from the engine's messages. A frozen `View` of it is drawn.

Does not import Textual. Call `receive` and `closed` from any thread, the rest from the drawing loop.
"""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Iterable
from dataclasses import field, replace
from pathlib import Path

from harness.base.foreign import plain_text
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


def read_declared(folder: Path) -> DeclaredCriteria:
    """The limits and tests of the session in `folder`."""
    try:
        scenario = read_scenario(folder)
    except LogError:
        return DeclaredCriteria()
    return DeclaredCriteria(scenario.limits, scenario.stopping)


AnswerCallback = Callable[[Answered], None]
NOTICE_S = 8.0
SLOW_S = 5.0
CATCHING_UP_S = 0.15
"""Time for reading rows at each redraw while many are still to come, in s. A key waits no longer than for a redraw."""
MANY_ROWS = 10_000


@frozen
class Notice:
    """The line above the keys. ok: True for done, False for refused, None while waiting for the engine."""

    text: str
    ok: bool | None


@frozen
class View:
    """The session at one moment, as it is drawn.

    session_s: the present time on the session's clock, as `at_s` in the log.
    remaining_s: time until the state times out; None if it does not. meters: None without any.
    goodbye: the engine's last message; None while it runs. gone: why the engine is gone; None while it is there.
    """

    progress: Progress
    wake: WakeProgress = field(default_factory=WakeProgress)
    comparisons: tuple[DevicePair, ...] = ()
    declared: DeclaredCriteria = field(default_factory=DeclaredCriteria)
    session_s: float = 0.0
    state: StateChanged | None = None
    remaining_s: float | None = None
    meters: Meters | None = None
    welcome: Welcome | None = None
    goodbye: Goodbye | None = None
    gone: str | None = None
    notice: Notice | None = None

    @property
    def over(self) -> bool:
        return self.gone is not None or self.goodbye is not None

    @property
    def all_played(self) -> bool:
        """Whether the engine only waits for the session to be closed."""
        return self.state is not None and self.state.word is StateWord.FINISHED

    @property
    def judged(self) -> Progress:
        """The progress by which limits are judged; if the session only waits to be closed, that after closing it."""
        if self.all_played and self.progress.finished is None:
            return replace(self.progress, finished=EndReason.COMPLETED)
        return self.progress


@frozen
class _Pending:
    label: str
    since_s: float
    then: AnswerCallback | None


@frozen
class _Disconnect:
    why: str


class Watch:
    """Takes messages, and gives a view. now: returns CLOCK_MONOTONIC of this host."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._figures, self._wake = SessionFigures(), WakeFigures()
        self._wake_stands, self._compared = False, 0
        self._count_after_s = 0.0
        self._view = View(Progress())
        self._arrivals: queue.SimpleQueue[Message | _Disconnect] = queue.SimpleQueue()
        self._speed = 1.0
        self.last_seq = 0
        """The last `seq` of the rows received so far."""
        self._pending_commands: dict[str, _Pending] = {}
        self._notice: tuple[Notice, float] | None = None
        self._rows = RowWriter()
        self._new_events: list[EventLine] = []

    def receive(self, message: Message) -> None:
        self._arrivals.put(message)

    def closed(self, why: str) -> None:
        self._arrivals.put(_Disconnect(why))

    def drain(self, at_most_s: float = 0.06) -> bool:
        """Takes messages for a bounded time, so that a burst does not block the keys. True if there were any."""
        deadline_s = time.perf_counter() + (CATCHING_UP_S if self._catching_up else at_most_s)
        has_new = False
        while time.perf_counter() < deadline_s:
            try:
                message = self._arrivals.get_nowait()
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
                self._wake_stands = False
                if (line := event_line(entry, self._rows)) is not None:
                    self._new_events.append(line)
            case StateChanged():
                self._view = replace(self._view, state=message)
            case Meters():
                self._view = replace(self._view, meters=message)
            case Welcome():
                declared = read_declared(Path(message.session_folder))
                self._view = replace(self._view, welcome=message, state=message.state, declared=declared)
            case Goodbye():
                self._view = replace(self._view, goodbye=message)
            case Answered():
                self._on_answer(message)
            case _Disconnect(why=why):
                self.lost(why)

    def take_later_judgments(self, rows: Iterable[Entry]) -> None:
        """Takes judgments made away from the bench, so that these responses are not shown again.

        Responses skipped or held there are still shown: the engine has no row to replace.
        """
        for entry in rows:
            match entry.record:
                case JudgmentGiven(judgment=judgment) if judgment.status not in (
                    JudgmentStatus.SKIPPED,
                    JudgmentStatus.HELD,
                ):
                    self._figures.add_later(entry)
                case _:
                    pass

    def _on_answer(self, answer: Answered) -> None:
        pending = self._pending_commands.pop(answer.command_id, None)
        if pending is None:
            return
        why = plain_text(answer.why, 120) or "the engine gave no reason"
        self.tell(f"{pending.label}: done" if answer.ok else f"{pending.label}: refused, {why}", answer.ok)
        if pending.then is not None:
            pending.then(answer)

    def lost(self, why: str) -> None:
        if self._view.goodbye is None:
            self._view = replace(self._view, gone=plain_text(why) or "the connection was closed")
        for command_id, pending in list(self._pending_commands.items()):
            self._pending_commands.pop(command_id)
            if pending.then is not None:
                pending.then(Answered(command_id, False, "the engine is gone"))

    def reconnected(self) -> None:
        """Records that a new connection follows one that was lost."""
        self._view = replace(self._view, gone=None)

    def expect(self, command: Command, label: str, then: AnswerCallback | None) -> None:
        if not isinstance(command, Hello):
            self._pending_commands[command.id] = _Pending(label, self._now(), then)
        self.tell(f"{label} …", None)

    def tell(self, text: str, ok: bool | None) -> None:
        self._notice = Notice(text, ok), self._now()

    def take_events(self) -> list[EventLine]:
        new, self._new_events = self._new_events, []
        return new

    @property
    def waits_for_an_answer(self) -> bool:
        return bool(self._pending_commands)

    @property
    def over(self) -> bool:
        return self._view.over

    @property
    def _catching_up(self) -> bool:
        """Whether rows from before the connection are still to come."""
        welcome = self._view.welcome
        return welcome is not None and self.last_seq < welcome.last_seq and not self.over

    def _count(self) -> None:
        """Computes the results. While catching up, it uses only a fifth of the time: many trials make it slow."""
        began_s = time.perf_counter()
        if self._catching_up and began_s < self._count_after_s:
            return
        if not self._wake_stands:
            self._view, self._wake_stands = replace(self._view, wake=self._wake.snapshot()), True
            if self._view.wake.counted != self._compared:
                self._compared = self._view.wake.counted
                self._view = replace(self._view, comparisons=comparisons(self._wake))
        self._view = replace(self._view, progress=self._figures.snapshot())
        ended_s = time.perf_counter()
        self._count_after_s = ended_s + 4 * (ended_s - began_s)  # so that counting takes a fifth of the time at most

    def view(self) -> View:
        now, state = self._now(), self._view.state
        self._count()
        until_s = None if state is None else state.until_s
        return replace(
            self._view,
            session_s=now * self._speed,
            # The session's clock starts with the host's and may run faster.
            remaining_s=None if until_s is None else max(0.0, until_s / self._speed - now),
            notice=self._current_notice(now),
        )

    def _current_notice(self, now: float) -> Notice | None:
        for pending in self._pending_commands.values():
            if now - pending.since_s > SLOW_S:
                waited = fixed(now - pending.since_s, 0, "s")
                return Notice(f"{pending.label}: no answer from the engine for {waited}", None)
        welcome = self._view.welcome
        if welcome is not None and self._catching_up and welcome.last_seq - self.last_seq > MANY_ROWS:
            return Notice(f"Reading the session: row {self.last_seq:,} of {welcome.last_seq:,}", None)
        if self._notice is None:
            return None
        notice, noticed_s = self._notice
        return notice if now - noticed_s < NOTICE_S or (notice.ok is None and self._pending_commands) else None

"""Where a run stands: what its parts share, what people are shown of it, and how it writes while the disk is full."""

from __future__ import annotations

import contextlib
import queue
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from harness.base.ports import Clock, Hears, Renders, SessionLog, Stimulates
from harness.model.errors import DeviceError, LogFull
from harness.model.feed import Abort, Command, Hello, Resume, StateChanged, StateWord
from harness.model.observation import Observation
from harness.model.record import Clip, DecisionReached, EndReason, Entry, Paused, Record, Resumed
from harness.model.stimulus import RenderedStimulus, Waveform
from harness.model.trial import Trial
from harness.session.event_clips import Clipped, EventClips
from harness.session.listening_trial import ListeningMachine
from harness.session.liveness import Liveness
from harness.session.query_trial import TrialMachine
from harness.session.resumption import Resumption
from harness.session.take import BenchState


@dataclass(frozen=True, slots=True)
class Stage:
    """Everything that the conductor works with, made and closed by whoever calls it.

    loudspeakers: id → driver, of every id that the plan names, connections that inject sound among them.
    transcribe(waveform, told): our own recogniser, in the background: calls told(text) once from any thread, "" when it
    fails; None without one. attended: somebody is there to answer questions. on_state, answer(command_id, ok, why): to
    the clients; called from the conductor's thread.
    on_rendered: told of each trial's sound before it is played, from the rendering thread. linger: while true after the
    plan's end, notes, judgments and re-runs are still taken. needless(trial): why a listening trial need not be played
    any more, else "". life_check_after: trials in a row without a sign of life that make a device doubtful (0: never).
    decisions: rows about sequential tests that the log lacks; asked after each listening trial.
    explained(seq): whether the wake event of that row is a stimulus's or part of an earlier one; None if still open.
    """

    loudspeakers: Mapping[str, Stimulates]
    microphone: Hears | None
    log: SessionLog
    renders: Renders
    clock: Clock
    on_state: Callable[[StateChanged], None]
    answer: Callable[[str, bool, str], None]
    attended: Callable[[], bool] = lambda: False
    transcribe: Callable[[Waveform, Callable[[str], None]], None] | None = None
    recogniser_name: str = ""
    on_rendered: Callable[[Trial, RenderedStimulus], None] | None = None
    linger: Callable[[], bool] = lambda: False
    between_trials_s: float = 1.0
    needless: Callable[[Trial], str] = lambda trial: ""
    decisions: Callable[[], tuple[DecisionReached, ...]] = lambda: ()
    life_check_after: int = 0
    explained: Callable[[int], bool | None] = lambda seq: False


@dataclass(frozen=True, slots=True)
class Transcribed:
    """Our recogniser is done with the response of that attempt."""

    trial_id: str
    take: int
    attempt: int
    text: str


@dataclass(frozen=True, slots=True)
class Stop:
    """The engine is asked to end; the session stays open for a resume."""

    cause: str


@dataclass(frozen=True, slots=True)
class Nudge:
    """Something changed that has no message of its own (somebody came or went): look again."""


Told = Observation | Command | Transcribed | Clipped | Stop | Nudge


Arrived = tuple[Told, float]
"""What came, and when (session seconds)."""


class Inbox:
    """Things in the order of their arrival, each with its time: they may wait while a row is being stored."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._queue: queue.SimpleQueue[Arrived] = queue.SimpleQueue()
        self._first: deque[Arrived] = deque()

    def put(self, told: Told) -> None:
        """From any thread; never blocks."""
        self._queue.put((told, self._clock.now_s()))

    def get(self, wait_s: float) -> Arrived | None:
        """The next thing, waited for at most so many real seconds; None when nothing came."""
        if self._first:
            return self._first.popleft()
        return self.get_new(wait_s)

    def get_new(self, wait_s: float) -> Arrived | None:
        """As `get`, past what was put back."""
        try:
            return self._queue.get(timeout=wait_s) if wait_s > 0 else self._queue.get_nowait()
        except queue.Empty:
            return None

    def put_back(self, arrived: Iterable[Arrived]) -> None:
        """What was taken too early comes first again, in its order."""
        self._first.extendleft(reversed(list(arrived)))


T = TypeVar("T")

ROOM_AGAIN_S = 3.0
"""How often a full disk is tried again (real seconds)."""

Machine = TrialMachine | ListeningMachine


class Run:
    """What a run works with, what it was told and how far it has come; but for `arrivals` of the conductor's thread.

    trials: of the plan, by id. standing: the fold over the log's rows. arrivals: what came and was not yet taken in.
    seen: what drivers last said. liveness: which devices show that they are alive. machine: of the take in play.
    sounds: of that take, by the id of the playing; "" is the stimulus. last_sound_s: when the bench was last known to
    sound; None before anything has. paused: no attempt is begun. ending: why it ends, None while it goes on. aborted:
    by whom. was_full: set when something had to wait for room on the disk, for the attempt to be interrupted.
    """

    def __init__(self, plan: Sequence[Trial], stage: Stage, standing: Resumption) -> None:
        self.stage = stage
        self.trials = {trial.id: trial for trial in plan}
        self.standing = standing
        for trial in plan:
            standing.know((trial.id, 1))
        self.arrivals = Inbox(stage.clock)
        self.clips = EventClips(stage.log, stage.microphone, stage.clock, self.arrivals.put, stage.explained)
        self.seen = BenchState()
        self.liveness = Liveness(plan)
        self.machine: Machine | None = None
        self.sounds: dict[str, Waveform] = {}
        self.last_sound_s: float | None = None
        self.paused = False
        self.paused_because = ""
        self.ending: EndReason | None = None
        self.aborted = ""
        self.was_full = False
        self._shown: StateChanged | None = None

    def now_s(self) -> float:
        return self.stage.clock.now_s()

    # What people see: each state once, when it changes

    def show_machine(self) -> None:
        """Tells the clients the state of the trial, if it has changed."""
        machine = self.machine
        if machine is None or machine.finished:
            return
        shown = machine.state
        word, until_s, reason, asks = shown.word, shown.until_s, shown.reason, shown.asks
        if machine.held_now:
            word, until_s, reason, asks = StateWord.PAUSED, None, self.paused_because, None
        self._tell(StateChanged(word, shown.since_s, until_s, machine.trial.id, shown.attempt, reason, asks))

    def show(self, word: StateWord, reason: str, trial_id: str | None = None) -> None:
        """Tells the clients a state that is no trial's own."""
        if self._shown is None or (self._shown.word, self._shown.reason) != (word, reason):
            self._tell(StateChanged(word, self.now_s(), None, trial_id, None, reason))

    def _tell(self, state: StateChanged) -> None:
        if state != self._shown:
            self._shown = state
            self.stage.on_state(state)

    # The log: while the disk is full the run stands still, tries again, and loses nothing acknowledged

    def append(self, record: Record) -> Entry:
        """Commits a row as soon as there is room.

        LogError when the log cannot be written for another reason; LogFull when the run is to end while the disk is
        full.
        """
        entry = self._write(lambda: self.stage.log.append(record))
        self.standing.add(entry)
        self.clips.saw(entry)
        return entry

    def save_clip(self, waveform: Waveform, start_s: float) -> Clip:
        """Stores a sound, which a row may name from then on; errors as of `append`."""
        return self._write(lambda: self.stage.log.save_clip(waveform, start_s))

    def _write(self, write: Callable[[], T]) -> T:
        try:
            return write()
        except LogFull as error:
            full = error
        self.was_full = True
        if self.machine is not None:  # what is playing ends; that cannot be noted now, and its interruption is later
            for player in self.machine.trial.players:
                with contextlib.suppress(DeviceError):
                    self.stage.loudspeakers[player].stop()
        reason = f"disk full: {full.what}"
        self.show(StateWord.PAUSED, reason)
        resumed: list[Resume] = []
        kept: list[Arrived] = []
        while True:
            self._until_room_may_be(full, resumed, kept)
            try:
                written = write()
                break
            except LogFull as error:
                full = error
        for row in (Paused(reason, "engine"), Resumed(resumed[-1].by if resumed else "engine")):
            self.append(row)
        self.arrivals.put_back(kept)
        for command in resumed:
            self.stage.answer(command.id, True, "")
        return written

    def _until_room_may_be(self, full: LogFull, resumed: list[Resume], kept: list[Arrived]) -> None:
        """Waits for the next try. Observations are kept for later; only resuming and giving up are answered now."""
        answer = self.stage.answer
        until_s = time.monotonic() + ROOM_AGAIN_S
        while (left_s := until_s - time.monotonic()) > 0:
            found = self.arrivals.get_new(left_s)
            match found:
                case None:
                    return
                case (Resume() as command, _):
                    resumed.append(command)
                    return
                case (Stop(), _):
                    raise full
                case (Abort(id=command_id), _):
                    answer(command_id, False, f"{full}; the session ends as it is on the disk")
                    raise full
                case (Hello(), _):
                    pass
                case (told, _) if isinstance(told, Command):
                    answer(told.id, False, f"the disk is full: {full.what}")
                case _:
                    kept.append(found)

"""State of a run: shared data, messages to clients, and writing when the disk is full.

Threads: other threads only put messages into `Run.arrivals`. Everything else runs in the conductor's thread. Where it
must wait, it calls `Run.serve`, which processes the next arrival. So commands are answered during a wait, and pauses
can nest.

    run.append ──► log ── LogFull ──► players stop ──► wait for room ──► retry ──► Paused, Resumed
                                                       │ Resume: at once
                                                       │ Stop, Abort: LogFull is raised, and the run ends
                                                       └ observations: to the front of the inbox, afterwards
"""

from __future__ import annotations

import contextlib
import queue
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, TypeVar

from harness.base import threads
from harness.base.clocks import wall_offset_s
from harness.base.ports import Clock, HasSettings, Hears, Renders, SessionLog, Stimulates
from harness.devices.orders import DevicePower, PositionerSetting
from harness.model.bench import OnFault
from harness.model.errors import DeviceError, LogFull
from harness.model.feed import Abort, Command, Hello, Resume, StateChanged, StateWord, TalkerPrompt
from harness.model.frozen import frozen
from harness.model.numbers import fixed
from harness.model.observation import HostStalled, Observation
from harness.model.record import Clip, DecisionReached, EndReason, Entry, FaultMet, Paused, Question, Record, Resumed
from harness.model.row_times import CLOCK_JUMP_S
from harness.model.stimulus import RenderedStimulus, Waveform
from harness.model.trial import Trial
from harness.session.event_clips import ClipResult, EventClips
from harness.session.levels import LevelRule
from harness.session.listening_trial import ListeningMachine
from harness.session.query_trial import TrialMachine
from harness.session.resumption import Resumption
from harness.session.take import BenchState

if TYPE_CHECKING:
    from harness.session.bench_checks import BenchCheck


@frozen
class ConductorContext:
    """Everything that the conductor works with. The caller creates and closes it."""

    loudspeakers: Mapping[str, Stimulates]
    """Id → driver, for every id that the plan names, including connections that inject sound."""
    microphone: Hears | None
    log: SessionLog
    renders: Renders
    clock: Clock
    on_state: Callable[[StateChanged], None]
    """Sends the state of the run to the clients."""
    answer: Callable[[str, bool, str], None]
    """(command id, accepted, reason) → None: answers a command of a client."""
    attended: Callable[[], bool] = lambda: False
    """Whether an operator is there to answer questions."""
    transcribe: Callable[[Waveform, Callable[[str], None]], None] | None = None
    """The harness's own recogniser, in the background. It calls its second argument once from any thread, with the
    words, or with "" when it fails. None without a recogniser."""
    recogniser_name: str = ""
    read_clip: Callable[[Clip], Waveform] | None = None
    """Reads a stored sound of the session; HarnessError if it cannot. None without a recogniser."""
    on_rendered: Callable[[Trial, RenderedStimulus], None] | None = None
    """Called with each trial's sound before it is played, from the rendering thread."""
    linger: Callable[[], bool] = lambda: False
    """While it returns True after the plan's end, notes, judgments and re-runs are still accepted."""
    between_trials_s: float = 1.0
    """Quiet before each trial."""
    why_needless: Callable[[Trial], str] = lambda trial: ""
    """Why a listening trial need not be played any more; "" if it must be."""
    decisions: Callable[[], tuple[DecisionReached, ...]] = lambda: ()
    """Returns rows about sequential tests that the log lacks. Called after each listening trial."""
    life_check_after: int = 0
    """Number of trials in a row without a sign of life that make a device doubtful (0: never)."""
    is_explained: Callable[[int], bool | None] = lambda seq: False
    """`seq` of a wake event's row → whether a stimulus or an earlier event explains it; None: not known yet."""
    settings: Mapping[str, HasSettings] = field(default_factory=dict)
    """Id → driver, for connections that can change the settings of their devices."""
    on_fault: OnFault | None = None
    """What a run does about a fault that ends a trial; None: it plays the next trial."""
    levels: LevelRule | None = None
    """How the level of a stimulus is compared with that at the microphone; None: it is not."""
    max_noise_floor_dbfs: float | None = None
    """A run pauses before a trial while the microphone's noise floor is higher; None: no limit."""
    checks: BenchCheck | None = None
    """Checks of the bench that are repeated between trials; None: there are none."""
    disk_space_problem: Callable[[], str] = lambda: ""
    """Why the disk has too little space for another trial; "" if it has enough."""
    report_alive: Callable[[], None] = lambda: None
    """Called by the conductor's thread every few seconds or more often, while it is not stuck."""
    new_stalls: Callable[[], Iterable[HostStalled]] = tuple
    """Returns the stalls of the host that it has not returned before."""
    stands: Mapping[str, PositionerSetting] = field(default_factory=dict)
    """Id → stand of the bench."""
    power: Mapping[str, DevicePower] = field(default_factory=dict)
    """Device → its power switch."""


@frozen
class TranscriptReady:
    """The harness's recogniser has transcribed the response of that attempt."""

    trial_id: str
    take: int
    attempt: int
    text: str


@frozen
class Stop:
    """Request to end the engine; the session stays open for a resume."""

    cause: str


@frozen
class WakeUp:
    """Something changed that sends no message of its own, such as a client that connected or left."""


Arrival = Observation | Command | TranscriptReady | ClipResult | Stop | WakeUp


TimedArrival = tuple[Arrival, float]
"""An arrival, and when it came (session seconds)."""


class Inbox:
    """A queue of arrivals with their times. They may wait while a row is stored.

        any thread ── put ──► queue ──┐
                                      ├─ get ──► the conductor's thread
        put_back ──► to the front ────┘

    end_requested: whether a request to end the run has arrived. On a busy host, minutes of observations may wait before
    it. They are stored first, so that the log keeps the order of events, but nothing new begins until then.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._queue: queue.SimpleQueue[TimedArrival] = threads.simple_queue()
        self._returned: deque[TimedArrival] = deque()
        self.end_requested = False

    def put(self, message: Arrival) -> None:
        """Adds an arrival, with the time; may be called from any thread, and never blocks."""
        self.end_requested = self.end_requested or isinstance(message, Abort | Stop)
        self._queue.put((message, self._clock.now_s()))

    @property
    def waiting(self) -> int:
        """Number of arrivals that wait in the inbox."""
        return len(self._returned) + self._queue.qsize()

    def get(self, wait_s: float) -> TimedArrival | None:
        """The next arrival; None after that many real seconds."""
        if self._returned:
            return self._returned.popleft()
        return self.get_new(wait_s)

    def get_new(self, wait_s: float) -> TimedArrival | None:
        """As `get`, but skips arrivals that were put back."""
        try:
            return self._queue.get(timeout=wait_s) if wait_s > 0 else self._queue.get_nowait()
        except queue.Empty:
            return None

    def put_back(self, arrivals: Iterable[TimedArrival]) -> None:
        """Puts arrivals back to the front, in their order."""
        self._returned.extendleft(reversed(list(arrivals)))  # extendleft reverses them again


T = TypeVar("T")

ENDING = "the run is ending: it stores what happened before the request, and begins nothing new"
DISK_RETRY_S = 3.0
"""Interval of retries on a full disk (real seconds)."""

Machine = TrialMachine | ListeningMachine


class Run:
    """State of a run. Only the conductor's thread uses it, except for `arrivals`."""

    def __init__(
        self, plan: Sequence[Trial], context: ConductorContext, resumption: Resumption, serve: Callable[[], None]
    ) -> None:
        self.context = context
        self.serve = serve
        """Processes the next arrival, or lets time pass. Called while waiting."""
        self.trials = {trial.id: trial for trial in plan}
        self.resumption = resumption
        """State of the session after the rows of its log."""
        for trial in plan:
            resumption.add_take((trial.id, 1))
        self.arrivals = Inbox(context.clock)
        """Input that is not processed yet."""
        self.clips = EventClips(context.log, context.microphone, context.clock, self.arrivals.put, context.is_explained)
        self.bench_state = BenchState()
        """Latest reports of the drivers."""
        self.machine: Machine | None = None
        """Machine of the current take; None between takes."""
        self.stimulus: Waveform | None = None
        """Stimulus of the current take; None between takes."""
        self.sounds: dict[str, Waveform] = {}
        """play_id → sound of the current take."""
        self.noises: Mapping[str, Waveform] = {}
        """Loudspeaker → noise that it plays with the stimulus of the current take."""
        self.last_sound_s: float | None = None
        """When the bench last made a known sound; None before the first one."""
        self.paused = False
        """Whether no attempt may begin."""
        self.pause_reason = ""
        self.ending: EndReason | None = None
        """Why the run ends; None while it continues."""
        self.abort_cause = ""
        """Who aborted the run, as the cause of a verdict; "" if nobody did."""
        self.disk_was_full = False
        """Set when something had to wait for space on the disk, so that the attempt is interrupted."""
        self.prompt: tuple[TalkerPrompt, float | None] | None = None
        """What a person is asked to say, and until when; that time is None while they speak."""
        self._shown_state: StateChanged | None = None
        self._wall_offset_s = wall_offset_s()

    def watch_wall_clock(self) -> None:
        """Commits a row when the wall clock has jumped. No duration of a run depends on that clock."""
        before_s, wall_s, after_s = threads.monotonic(), threads.wall(), threads.monotonic()
        if after_s - before_s > CLOCK_JUMP_S / 4:
            return  # the host stood still between its two clocks
        offset_s = wall_s - after_s
        step_s, self._wall_offset_s = offset_s - self._wall_offset_s, offset_s
        if abs(step_s) > CLOCK_JUMP_S:
            direction = "ahead: it was set, or the host slept" if step_s > 0 else "back"
            self.append(FaultMet("clock", f"the clock of this host jumped {fixed(abs(step_s), 0)} s {direction}"))

    def now_s(self) -> float:
        return self.context.clock.now_s()

    def pause(self, reason: str, by: str) -> None:
        """Pauses: no attempt begins until `resume`, or until the operator resumes. by: who pauses, for the row."""
        self.paused, self.pause_reason = True, reason
        self.append(Paused(reason, by))

    def resume(self, by: str) -> None:
        """Ends a pause."""
        self.paused = False
        self.append(Resumed(by))

    def pause_for_operator(self, request: str, by: str) -> bool:
        """Pauses until the operator has done what the request says, and resumes. False if the run ends first."""
        self.pause(request, by)
        return self.await_resume()

    def await_resume(self) -> bool:
        """Waits until the run is not paused. False if the run ends first."""
        for _ in self.while_paused(self.pause_reason):
            pass
        return self.ending is None

    def while_paused(self, reason: str) -> Iterator[None]:
        """Serves until the pause or the run ends; after each arrival, the caller can check its own condition."""
        while self.paused and self.ending is None:
            self.show(StateWord.PAUSED, reason)
            self.serve()
            if self.paused and self.ending is None:
                yield

    def run_in_background(
        self, work: Callable[[threading.Event], object], until: Callable[[], bool] = lambda: False
    ) -> bool:
        """Does long work in a thread, while commands are answered. False if the run ends first.

        work: gets an event that is set when it should return early, because the run ends or `until` holds. Its errors
        are raised here. At the end of a run, when nothing more can end it, this waits until the work is done.
        """
        return_early, was_ending = threads.event(), self.ending is not None
        with threads.pool("meanwhile") as pool:
            future = pool.submit(work, return_early)
            future.add_done_callback(lambda _: self.arrivals.put(WakeUp()))
            try:
                while not future.done():
                    self.serve()
                    if until() or (self.ending is not None and not was_ending):
                        return_early.set()
                # What arrived during the work is processed first, even on a host that is slow to look.
                for _ in range(self.arrivals.waiting):
                    self.serve()
            except BaseException:
                return_early.set()
                raise
        if self.ending is not None and not was_ending:
            return False
        future.result()
        return True

    def wait(self, lasts_s: float, until: Callable[[], bool] = lambda: False) -> bool:
        """Waits for lasts_s, or until `until` holds. False if the run ends first."""
        real_s = self.context.clock.real_s(lasts_s)
        return self.run_in_background(lambda return_early: return_early.wait(real_s), until)

    def players(self) -> list[Stimulates]:
        """Drivers that play the current trial's sound; empty between trials, and if a person says it."""
        if self.machine is None or self.machine.trial.talker:
            return []
        trial = self.machine.trial
        return [self.context.loudspeakers[player_id] for player_id in (*trial.players, *trial.noise_players)]

    # States for clients, sent once at each change

    def show_machine(self) -> None:
        """Sends the state of the trial to the clients, if it has changed."""
        machine = self.machine
        if machine is None or machine.finished:
            return
        if self.arrivals.end_requested and self.ending is None:
            self.show(StateWord.INTERRUPTED, ENDING, machine.trial.id)
            return
        state = machine.state
        displayed = StateChanged(
            state.word,
            state.since_s,
            state.until_s,
            trial_id=machine.trial.id,
            attempt=state.attempt,
            reason=state.reason,
            asks=state.asks,
        )
        if self.prompt is not None:
            prompt, until_s = self.prompt
            displayed = replace(displayed, word=StateWord.ASKING, until_s=until_s, asks=Question.SPEECH, prompt=prompt)
        if machine.is_waiting_in_pause:
            displayed = replace(displayed, word=StateWord.PAUSED, until_s=None, reason=self.pause_reason, asks=None)
        self._send_state(displayed)

    def show(self, word: StateWord, reason: str, trial_id: str | None = None) -> None:
        """Sends the clients a state that does not belong to a trial."""
        if self._shown_state is None or (self._shown_state.word, self._shown_state.reason) != (word, reason):
            self._send_state(StateChanged(word, self.now_s(), until_s=None, trial_id=trial_id, reason=reason))

    def _send_state(self, state: StateChanged) -> None:
        if state != self._shown_state:
            self._shown_state = state
            self.context.on_state(state)

    # The log: while the disk is full, the run pauses and retries, and loses nothing acknowledged

    def append(self, record: Record) -> Entry:
        """Commits a row as soon as there is space.

        Raises LogFull when the run is to end while the disk is full. Raises LogError when the log cannot be written for
        another reason.
        """
        entry = self._write(lambda: self.context.log.append(record))
        self.resumption.add(entry)
        self.clips.add_row(entry)
        return entry

    def save_clip(self, waveform: Waveform, start_s: float) -> Clip:
        """Stores a sound, which a row may name from then on. Raises the errors of `append`."""
        return self._write(lambda: self.context.log.save_clip(waveform, start_s))

    def _write(self, write: Callable[[], T]) -> T:
        """Calls `write`, and repeats it until there is space. Returns its result.

        Meanwhile the run counts as paused, but the rows about that can be stored only afterwards.
        """
        try:
            return write()
        except LogFull as error:
            full = error
        self.disk_was_full = True
        for player in self.players():  # stops the sound; its interruption is logged later
            with contextlib.suppress(DeviceError):
                player.stop()
        reason = f"disk full: {full.what}"
        self.show(StateWord.PAUSED, reason)
        resume_commands: list[Resume] = []
        backlog: list[TimedArrival] = []
        while True:
            self.context.report_alive()
            self._await_disk_space(full, resume_commands, backlog)
            try:
                result = write()
                break
            except LogFull as error:
                full = error
        # After the row that had to wait, since there was no room for them earlier.
        for row in (Paused(reason, "engine"), Resumed(resume_commands[-1].by if resume_commands else "engine")):
            self.append(row)
        self.arrivals.put_back(backlog)
        for command in resume_commands:
            self.context.answer(command.id, True, "")
        return result

    def _await_disk_space(self, full: LogFull, resume_commands: list[Resume], backlog: list[TimedArrival]) -> None:
        """Waits for the next retry. A resume ends the wait; a stop or abort raises `full`. Other commands are refused.

        - resume_commands: gets a resume, which is answered once there is space.
        - backlog: gets the observations.
        """
        answer = self.context.answer
        until_s = threads.monotonic() + DISK_RETRY_S
        while (left_s := until_s - threads.monotonic()) > 0:
            arrival = self.arrivals.get_new(left_s)
            match arrival:
                case None:
                    return
                case (Resume() as command, _):
                    resume_commands.append(command)
                    return
                case (Stop(), _):
                    raise full
                case (Abort(id=command_id), _):
                    answer(command_id, False, f"{full}; the session ends with the rows on the disk")
                    raise full
                case (Hello(), _):
                    pass
                case (message, _) if isinstance(message, Command):
                    answer(message.id, False, f"the disk is full: {full.what}")
                case _:
                    backlog.append(arrival)

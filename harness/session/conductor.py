"""Runs a plan: one thread, one inbox, and a log that knows everything before anybody else does."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Sequence

from harness.model.errors import HarnessError
from harness.model.feed import StateWord
from harness.model.observation import Observation, SpeechEnded, SpeechStarted, StimulusStarted
from harness.model.record import (
    EndReason,
    Entry,
    EventClipped,
    FaultMet,
    Observed,
    OperatorAsked,
    Record,
    SessionFinished,
)
from harness.model.trial import Trial
from harness.session.actions import (
    Action,
    AskOperator,
    Credit,
    FinishAttempt,
    FinishTrial,
    FreezeResponse,
    SayClosing,
    StartAttempt,
    StopStimulus,
)
from harness.session.bench_state import BenchState
from harness.session.commands import Desk
from harness.session.event_clips import EventClips
from harness.session.full_disk import FullDisk
from harness.session.inbox import Inbox
from harness.session.listening_trial import ListeningMachine
from harness.session.players import Players
from harness.session.query_trial import TrialMachine
from harness.session.responses import Responses
from harness.session.resumption import Resumption
from harness.session.screen import Machine, Screen
from harness.session.stage import Clipped, Nudge, Stage, Stop, Told, Transcribed
from harness.session.takes import Takes

AHEAD = 2
"""Trials whose sounds are made while another one is played."""
LAST_WORDS_S = 20.0
"""How long the end of a run waits for transcriptions (real seconds)."""
LAST_CLIPS_S = 10.0
"""… and until the sound around the last wake events is stored (real seconds)."""
LOOK_S = 0.5
"""How often an idle conductor looks whether it still should linger (real seconds)."""


class Conductor:
    """Plays every take that the log does not know as finished, once.

    `inbox` may be called from any thread at any time; everything else happens in the thread that calls `run`.
    resumption: the fold over the log's rows so far (with `SessionStarted`, if the caller wrote one already).
    """

    def __init__(self, plan: Sequence[Trial], stage: Stage, resumption: Resumption) -> None:
        self.stage = stage
        self.standing = resumption
        self.trials = {trial.id: trial for trial in plan}
        for trial in plan:
            resumption.know((trial.id, 1))
        self.machine: Machine | None = None
        self.paused_because = ""
        self.paused = False
        self.ending: EndReason | None = None
        self.aborted = ""
        self.arrivals = Inbox(stage.clock)
        self.desk = Desk(self)
        self.room = FullDisk(self)
        self.seen = BenchState()
        self._clips = EventClips(stage.log, stage.microphone, stage.clock, self.arrivals.put)
        self._screen = Screen(stage)
        self._players = Players(stage, self.append)
        self._takes = Takes(self)
        self._responses = Responses(self)

    def inbox(self, told: Told) -> None:
        """Takes an observation or a command, with the time of its arrival; never blocks, never raises."""
        self.arrivals.put(told)

    def stop(self, cause: str = "stopped: the engine was asked to end") -> None:
        """Ends the run soon, so that it can be resumed; may be called from any thread."""
        self.arrivals.put(Stop(cause))

    def run(self) -> EndReason:
        """Plays what is pending and returns why it ended; the log's last row says the same.

        LogError when the log cannot be written for another reason than a full disk; LogFull when the operator gives up
        while the disk is full.
        """
        try:
            quiet_for_s = self.standing.quiet_for_s(self.stage.clock.wall_s(), self.stage.clock.speed)
            if quiet_for_s is not None:
                self._takes.last_sound_s = self.stage.clock.now_s() - quiet_for_s
            resumed = quiet_for_s is not None
            for row in self.standing.cut_off():
                self.append(row)
            while self.ending is None:
                pending = self.standing.pending()
                if pending:
                    self._takes.play(pending[0], pending[1 : 1 + AHEAD], resumed)
                    resumed = False
                elif self.stage.linger():
                    self.show(StateWord.FINISHED, "every trial is played; re-runs, notes and judgments are taken")
                    self.pump()
                else:
                    self._await_transcriptions()
                    self.ending = self.ending or EndReason.COMPLETED
            self._await_clips()
            self.append(SessionFinished(self.ending))
            self.desk.ended()
            self.show(StateWord.FINISHED, self.ending.value)
            return self.ending
        finally:
            self._takes.rendering.close()
            self._clips.close()

    def _await_transcriptions(self) -> None:
        """The last responses are transcribed too, if our recogniser is done with them soon."""
        until_s = time.monotonic() + LAST_WORDS_S
        while self._responses.transcribing and self.ending is None and time.monotonic() < until_s:
            self.pump()

    def _await_clips(self) -> None:
        """The sound after the last wake events is waited for after a whole plan; else what there is, is kept."""
        waited_s = self.stage.clock.real_s(self._clips.longest_s) if self.ending is EndReason.COMPLETED else 0.0
        begun_s = time.monotonic()
        while self._clips.pending and time.monotonic() < begun_s + waited_s + LAST_CLIPS_S:
            if self.ending is not EndReason.COMPLETED or time.monotonic() > begun_s + waited_s:
                self._clips.tick(self.stage.clock.now_s(), hurry=True)
            self.pump()

    # The inbox

    def pump(self) -> None:
        """Takes the next thing from the inbox, or lets time pass when nothing came before the deadline."""
        machine, clock = self.machine, self.stage.clock
        self._clips.tick(clock.now_s())
        if machine is not None:
            machine.attended = self.stage.attended()
        deadline_s = None if machine is None else machine.deadline_s
        now_s = clock.now_s()  # before the look into the inbox: what arrives later has a later time
        wait_s = LOOK_S if deadline_s is None else max(0.0, min(LOOK_S, clock.real_s(deadline_s - now_s)))
        found = self.arrivals.get(0.0 if deadline_s is not None and deadline_s <= now_s else wait_s)
        if found is not None:
            self._take_in(*found)
        elif machine is not None and deadline_s is not None and now_s >= deadline_s:
            self.perform(machine.tick(now_s))

    def _take_in(self, told: Told, arrived_s: float) -> None:
        match told:
            case Nudge():
                pass
            case Stop(cause=cause):
                self.ending = self.ending or EndReason.STOPPED  # an abort stands
                if self.machine is not None:
                    self.perform(self.machine.stop(arrived_s, cause))
            case Transcribed(trial_id=trial_id, take=take):
                self._responses.transcribed(told)
                if self.machine is not None and (self.machine.trial.id, self.machine.take) == (trial_id, take):
                    self.perform(self.machine.transcribed(arrived_s))
            case Clipped(event_seq=event_seq, clip=clip, why=why):
                self._clips.told(event_seq)
                kept = EventClipped(event_seq, clip) if clip else None
                self.append(kept or FaultMet("clips", f"the wake event in row {event_seq} has no clip: {why}"))
            case _ if self.desk.takes(told):
                self.desk.take(told, arrived_s)
            case _:
                self._observe(told, arrived_s)  # type: ignore[arg-type]

    def _observe(self, observation: Observation, arrived_s: float) -> None:
        self.seen.see(observation)
        match observation:
            case StimulusStarted(play_id=id, at=at, audio_s=None) if self.stage.microphone and id in self._takes.sounds:
                self.stage.microphone.own_sound(id, self._takes.sounds[id], at.at_s)
            case _:
                pass
        if self.machine is None:
            if isinstance(observation, SpeechStarted | SpeechEnded):
                self._takes.last_sound_s = max(self._takes.last_sound_s or 0.0, observation.at.at_s)
            self.append(Observed(observation))
        else:
            self.perform(self.machine.feed(observation, arrived_s))

    # Actions

    def perform(self, actions: Iterable[Action]) -> None:
        """Does what the machine asks for, in order, with what follows from that."""
        todo = deque(actions)
        machine = self.machine
        while todo and machine is not None:
            todo.extend(self._do(todo.popleft(), machine))
            if self.room.was_full:
                self.room.was_full = False
                todo.extend(machine.interrupt(self.stage.clock.now_s(), "disk_full"))
        self.show_machine()

    def _do(self, action: Action, machine: Machine) -> Sequence[Action]:
        trial_id, take = machine.trial.id, machine.take
        match action:
            case Credit(observation=observation, attempt=None):
                self.append(Observed(observation))
            case Credit(observation=observation, attempt=attempt):
                self.append(Observed(observation, trial_id, take, attempt))
            case StartAttempt(row=row):
                self._takes.sounds[row.play_id] = self._takes.sounds[""]
                if isinstance(machine, ListeningMachine):
                    self._clips.begins(machine.trial, row.play_id, machine.timing, self._takes.sounds[""])
                self.show_machine()
                self.append(row)
                return self._sound(machine, row.play_id)
            case SayClosing(play_id=play_id) if isinstance(machine, TrialMachine):
                return self._say_closing(machine, play_id)
            case StopStimulus():
                self._players.stop(machine)
            case FreezeResponse():
                return self._responses.freeze(action, machine)
            case AskOperator(attempt=attempt, question=question, about=about):
                self.append(OperatorAsked(trial_id, take, attempt, question, about))
            case FinishAttempt(row=attempt_row):
                self.append(attempt_row)
            case FinishTrial(row=trial_row):
                self.append(trial_row)
        return ()

    def _sound(self, machine: Machine, play_id: str) -> Sequence[Action]:
        """Plays, unless the disk was full meanwhile: then the attempt is interrupted without a sound."""
        return () if self.room.was_full else self._players.play(machine, play_id, self._takes.sounds[play_id])

    def _say_closing(self, machine: TrialMachine, play_id: str) -> Sequence[Action]:
        try:
            self._takes.sounds[play_id] = self._takes.rendering.closing(machine.trial).waveform
        except HarnessError as error:
            self.append(FaultMet("stimulus", str(error)))
            return machine.play_refused(self.stage.clock.now_s(), play_id, error.what)
        return self._sound(machine, play_id)

    # The log

    def append(self, record: Record) -> Entry:
        """Commits a row; while the disk is full, the run stands still here and says so."""
        entry = self.room.write(lambda: self.stage.log.append(record))
        self.standing.add(entry)
        self._clips.saw(entry)
        return entry

    # What people see

    def show_machine(self) -> None:
        """Tells the clients the state of the trial, if it has changed."""
        if self.machine is not None:
            self._screen.show_machine(self.machine, self.paused_because)

    def show(self, word: StateWord, reason: str, trial_id: str | None = None) -> None:
        """Tells the clients a state that is no trial's own."""
        self._screen.show(word, reason, trial_id)

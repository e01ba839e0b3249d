"""Runs a plan: one thread, one inbox, and a log that knows everything before anybody else does."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence

from harness.model.errors import DeviceError, HarnessError
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
    ResponseFrozen,
    ResponseTranscribed,
    SessionFinished,
    StimulusStored,
    TrialFinished,
    TrialStarted,
)
from harness.model.scenario import TrialKind
from harness.model.stimulus import RenderedStimulus, Waveform
from harness.model.trial import Outcome, Trial
from harness.session.actions import (
    Action,
    AskOperator,
    Credit,
    FinishAttempt,
    FinishTrial,
    FreezeResponse,
    SayClosing,
    StartAttempt,
    StimulusTiming,
    StopStimulus,
)
from harness.session.bench_state import BenchState
from harness.session.commands import Desk
from harness.session.event_clips import EventClips
from harness.session.full_disk import FullDisk
from harness.session.inbox import Inbox
from harness.session.listening_trial import ListeningMachine
from harness.session.players import Players
from harness.session.priming import Priming
from harness.session.query_trial import TrialMachine
from harness.session.rendering import Rendering
from harness.session.resumption import Resumption, Take
from harness.session.screen import Machine, Screen
from harness.session.stage import Clipped, Nudge, Stage, Stop, Told, Transcribed
from harness.session.verdict import trial_verdict

MARGIN_S = 0.2
"""Sound that a clip keeps before and after the response."""
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
        self._room = FullDisk(self)
        self._rendering = Rendering(stage.renders, stage.on_rendered)
        self._sounds: dict[str, Waveform] = {}
        self._seen = BenchState()
        self._clips = EventClips(stage.log, stage.microphone, stage.clock, self.arrivals.put)
        self._screen = Screen(stage)
        self._players = Players(stage, self.append)
        self._priming = Priming(self)
        self._last_sound_s: float | None = None
        self._transcribing: set[tuple[str, int, int]] = set()

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
                self._last_sound_s = self.stage.clock.now_s() - quiet_for_s
            resumed = quiet_for_s is not None
            for row in self.standing.cut_off():
                self.append(row)
            while self.ending is None:
                pending = self.standing.pending()
                if pending:
                    self.play(pending[0], pending[1 : 1 + AHEAD], resumed)
                    resumed = False
                elif self.stage.linger():
                    self.show(StateWord.FINISHED, "every trial is played; re-runs, notes and judgments are taken")
                    self._pump()
                else:
                    self._await_transcriptions()
                    self.ending = self.ending or EndReason.COMPLETED
            self._await_clips()
            self.append(SessionFinished(self.ending))
            self.desk.ended()
            self.show(StateWord.FINISHED, self.ending.value)
            return self.ending
        finally:
            self._rendering.close()
            self._clips.close()

    def _await_transcriptions(self) -> None:
        """The last responses are transcribed too, if our recogniser is done with them soon."""
        until_s = time.monotonic() + LAST_WORDS_S
        while self._transcribing and self.ending is None and time.monotonic() < until_s:
            self._pump()

    def _await_clips(self) -> None:
        """The sound after the last wake events is waited for after a whole plan; else what there is, is kept."""
        waited_s = self.stage.clock.real_s(self._clips.longest_s) if self.ending is EndReason.COMPLETED else 0.0
        begun_s = time.monotonic()
        while self._clips.pending and time.monotonic() < begun_s + waited_s + LAST_CLIPS_S:
            if self.ending is not EndReason.COMPLETED or time.monotonic() > begun_s + waited_s:
                self._clips.tick(self.stage.clock.now_s(), hurry=True)
            self._pump()

    # One take

    def play(self, take: Take, following: Iterable[Take], resumed: bool = False) -> None:
        """Plays one take to its end, or until the run ends."""
        if not self._priming.ready(take):
            return
        trial, number = self.trials[take[0]], take[1]
        before = self.standing.attempts.get(take, {})
        if take not in self.standing.begun:
            self.append(TrialStarted(trial.id, number))
        verdict = trial_verdict(trial.reprompt, before)
        if verdict is not None:
            self.append(
                TrialFinished(trial.id, number, verdict.outcome, max(before), verdict.deciding_attempt, verdict.cause)
            )
            return
        needless = self.stage.needless(trial) if trial.listening is not None else ""
        if needless:
            cause = f"needless: {needless}"
            self.append(TrialFinished(trial.id, number, Outcome.SKIPPED, max(before, default=0), None, cause))
            return
        stimulus = self._stimulus(trial, following)
        if isinstance(stimulus, HarnessError):
            self.append(FaultMet("stimulus", str(stimulus)))
            cause = f"no_stimulus: {stimulus.what}"
            self.append(TrialFinished(trial.id, number, Outcome.SKIPPED, max(before, default=0), None, cause))
        elif stimulus is None and self.ending is EndReason.ABORTED:
            self.append(TrialFinished(trial.id, number, Outcome.ABORTED, max(before, default=0), None, self.aborted))
        if not isinstance(stimulus, RenderedStimulus):
            return
        self._sounds[""] = stimulus.waveform
        if trial.listening is None:
            wait_s = self._priming.wait_s(trial, resumed)
            asking = self.machine = TrialMachine(
                trial,
                number,
                StimulusTiming.of(stimulus),
                before=tuple(before.values()),
                attended=self.stage.attended(),
            )
            last_sound_s = self._last_sound_s if before or trial.memory else None
            self._run(
                lambda now_s: asking.begin(
                    now_s,
                    not_before_s=self._after_last_sound(wait_s),
                    lost=self._seen.lost,
                    last_sound_s=last_sound_s,
                )
            )
        else:
            self._keep_sound(trial.listening.kind, stimulus)
            timing = StimulusTiming.of_listening(stimulus, trial.listening.kind)
            heard = self.machine = ListeningMachine(trial, number, timing, before=tuple(before.values()))
            through_air = not all(target.injected for target in trial.listening.targets)
            begins_s = self._after_last_sound(self.stage.between_trials_s) if through_air else None
            self._run(lambda now_s: heard.begin(now_s, not_before_s=begins_s, seen=self._seen))
            for row in self.stage.decisions():
                self.append(row)
        self._rendering.forget(trial)

    def _run(self, begin: Callable[[float], list[Action]]) -> None:
        """From the machine's beginning to its end."""
        machine = self.machine
        assert machine is not None
        if self.paused:
            machine.hold()
        self.perform(begin(self.stage.clock.now_s()))
        while not machine.finished:
            self._pump()
        if machine.last_sound_s is not None:
            self._last_sound_s = machine.last_sound_s
        self.machine = None
        self._sounds.clear()

    def _after_last_sound(self, wait_s: float) -> float | None:
        return None if self._last_sound_s is None else self._last_sound_s + wait_s

    def _keep_sound(self, kind: TrialKind, stimulus: RenderedStimulus) -> None:
        """The sound of a wake or command stimulus is kept, once; ambient sound can be made again from its recipe."""
        if kind is not TrialKind.AMBIENT and stimulus.sha256 not in self.standing.stored:
            clip = self._room.write(lambda: self.stage.log.save_clip(stimulus.waveform, self.stage.clock.now_s()))
            self.append(StimulusStored(stimulus.sha256, clip))

    def _stimulus(self, trial: Trial, following: Iterable[Take]) -> RenderedStimulus | HarnessError | None:
        """The trial's sound, or why there is none; None when the run ends meanwhile."""
        made = self._rendering.stimulus(trial)
        for trial_id, _ in following:
            self._rendering.ahead(self.trials[trial_id])
        if not made.done():
            made.add_done_callback(lambda _: self.arrivals.put(Nudge()))
            self.show(StateWord.PREPARING, "makes the stimulus", trial.id)
        while not made.done() and self.ending is None:
            self._pump()
        if self.ending is not None:
            return None
        try:
            return made.result()
        except HarnessError as error:
            self._rendering.forget(trial)
            return error

    # The inbox

    def _pump(self) -> None:
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
            case Transcribed(trial_id=trial_id, take=take, attempt=attempt, text=text):
                self._transcribing.discard((trial_id, take, attempt))
                self.append(ResponseTranscribed(trial_id, take, attempt, text, self.stage.recogniser_name))
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
        self._seen.see(observation)
        match observation:
            case StimulusStarted(play_id=id, at=at, audio_s=None) if self.stage.microphone and id in self._sounds:
                self.stage.microphone.own_sound(id, self._sounds[id], at.at_s)
            case _:
                pass
        if self.machine is None:
            if isinstance(observation, SpeechStarted | SpeechEnded):
                self._last_sound_s = max(self._last_sound_s or 0.0, observation.at.at_s)
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
            if self._room.was_full:
                self._room.was_full = False
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
                self._sounds[row.play_id] = self._sounds[""]
                if isinstance(machine, ListeningMachine):
                    self._clips.begins(machine.trial, row.play_id, machine.timing, self._sounds[""])
                self.show_machine()
                self.append(row)
                return self._sound(machine, row.play_id)
            case SayClosing(play_id=play_id) if isinstance(machine, TrialMachine):
                return self._say_closing(machine, play_id)
            case StopStimulus():
                self._players.stop(machine)
            case FreezeResponse():
                return self._freeze(action, machine)
            case AskOperator(attempt=attempt, question=question, about=about):
                self.append(OperatorAsked(trial_id, take, attempt, question, about))
            case FinishAttempt(row=attempt_row):
                self.append(attempt_row)
            case FinishTrial(row=trial_row):
                self.append(trial_row)
        return ()

    def _sound(self, machine: Machine, play_id: str) -> Sequence[Action]:
        """Plays, unless the disk was full meanwhile: then the attempt is interrupted without a sound."""
        return () if self._room.was_full else self._players.play(machine, play_id, self._sounds[play_id])

    def _say_closing(self, machine: TrialMachine, play_id: str) -> Sequence[Action]:
        try:
            self._sounds[play_id] = self._rendering.closing(machine.trial).waveform
        except HarnessError as error:
            self.append(FaultMet("stimulus", str(error)))
            return machine.play_refused(self.stage.clock.now_s(), play_id, error.what)
        return self._sound(machine, play_id)

    def _freeze(self, freeze: FreezeResponse, machine: Machine) -> Sequence[Action]:
        """Cuts, stores and names the clip, in this order, and has it transcribed for people."""
        microphone, clock = self.stage.microphone, self.stage.clock
        if microphone is None:
            return machine.response_lost(clock.now_s(), "there is no microphone")
        try:
            waveform, start_s = microphone.cut(freeze.starts.at_s - MARGIN_S, freeze.ends.at_s + MARGIN_S)
        except DeviceError as error:
            self.append(FaultMet(microphone.id, str(error)))
            return machine.response_lost(clock.now_s(), error.what)
        trial_id, take, attempt = machine.trial.id, machine.take, freeze.attempt
        clip = self._room.write(lambda: self.stage.log.save_clip(waveform, start_s))
        self.append(ResponseFrozen(trial_id, take, attempt, clip, freeze.starts, freeze.ends, freeze.truncated))
        transcribe = self.stage.transcribe if self._priming.transcribed(machine.trial) else None
        if transcribe is not None:
            self._transcribing.add((trial_id, take, attempt))
            transcribe(waveform, lambda text: self.arrivals.put(Transcribed(trial_id, take, attempt, text)))
        return machine.response_frozen(clock.now_s(), transcribing=transcribe is not None)

    # The log

    def append(self, record: Record) -> Entry:
        """Commits a row; while the disk is full, the run stands still here and says so."""
        entry = self._room.write(lambda: self.stage.log.append(record))
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

"""Does what trial machines ask for: plays, cuts, asks, and commits each of it as a row."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

from harness.model.errors import HarnessError
from harness.model.record import FaultMet, Observed, OperatorAsked
from harness.session.actions import (
    Action,
    AskOperator,
    Credit,
    FinishAttempt,
    FinishTrial,
    FreezeResponse,
    ReportFault,
    SayClosing,
    StartAttempt,
    StopStimulus,
)
from harness.session.event_clips import EventClips
from harness.session.listening_trial import ListeningMachine
from harness.session.patient_log import PatientLog
from harness.session.players import Players
from harness.session.query_trial import TrialMachine
from harness.session.rendering import Rendering
from harness.session.responses import Responses
from harness.session.run import Run
from harness.session.screen import Machine


class Stagehand:
    """Performs the actions of the machine of the take in play."""

    def __init__(
        self, run: Run, log: PatientLog, clips: EventClips, rendering: Rendering, responses: Responses
    ) -> None:
        self._run = run
        self._log = log
        self._clips = clips
        self._rendering = rendering
        self._responses = responses
        self._players = Players(run.stage, log.append)

    def perform(self, actions: Iterable[Action]) -> None:
        """Does what the machine asks for, in order, with what follows from that."""
        todo = deque(actions)
        machine = self._run.machine
        while todo and machine is not None:
            todo.extend(self._do(todo.popleft(), machine))
            if self._log.was_full:
                self._log.was_full = False
                todo.extend(machine.interrupt(self._run.stage.clock.now_s(), "disk_full"))
        self._run.show_machine()

    def _do(self, action: Action, machine: Machine) -> Sequence[Action]:
        trial_id, take = machine.trial.id, machine.take
        match action:
            case Credit(observation=observation, attempt=None):
                self._log.append(Observed(observation))
            case Credit(observation=observation, attempt=attempt):
                self._log.append(Observed(observation, trial_id, take, attempt))
            case StartAttempt(row=row):
                stimulus = self._run.sounds[row.play_id] = self._run.sounds[""]
                if isinstance(machine, ListeningMachine):
                    self._clips.begins(machine.trial, row.play_id, stimulus)
                self._run.show_machine()
                self._log.append(row)
                return self._sound(machine, row.play_id)
            case SayClosing(play_id=play_id) if isinstance(machine, TrialMachine):
                return self._say_closing(machine, play_id)
            case StopStimulus():
                self._players.stop(machine)
            case FreezeResponse():
                return self._responses.freeze(action, machine)
            case AskOperator(attempt=attempt, question=question, about=about):
                self._log.append(OperatorAsked(trial_id, take, attempt, question, about))
            case FinishAttempt(row=attempt_row):
                self._log.append(attempt_row)
            case FinishTrial(row=trial_row):
                self._log.append(trial_row)
            case ReportFault(row=fault):
                self._log.append(fault)
        return ()

    def _sound(self, machine: Machine, play_id: str) -> Sequence[Action]:
        """Plays, unless the disk was full meanwhile: then the attempt is interrupted without a sound."""
        return () if self._log.was_full else self._players.play(machine, play_id, self._run.sounds[play_id])

    def _say_closing(self, machine: TrialMachine, play_id: str) -> Sequence[Action]:
        try:
            self._run.sounds[play_id] = self._rendering.closing(machine.trial).waveform
        except HarnessError as error:
            self._log.append(FaultMet("stimulus", str(error)))
            return machine.play_refused(self._run.stage.clock.now_s(), play_id, error.what)
        return self._sound(machine, play_id)

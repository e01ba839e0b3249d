"""Commands of clients: done, committed, and only then answered."""

from __future__ import annotations

from harness.model.feed import (
    Abort,
    AnswerEffect,
    AnswerOperator,
    Command,
    Hello,
    Judge,
    Pause,
    Replay,
    Rerun,
    Resume,
    Review,
    SetMark,
    Skip,
    WriteNote,
)
from harness.model.observation import OperatorAnswer
from harness.model.record import EffectAnswered, EndReason, Paused, Resumed
from harness.model.time import Stamp
from harness.session.patient_log import PatientLog
from harness.session.query_trial import TrialMachine
from harness.session.requests import row_for
from harness.session.run import Run
from harness.session.stagehand import Stagehand


class Desk:
    """Where a run's commands are taken."""

    def __init__(self, run: Run, log: PatientLog, stagehand: Stagehand) -> None:
        self._run = run
        self._log = log
        self._stagehand = stagehand
        self._aborts: list[Abort] = []

    def take(self, command: Command, now_s: float) -> None:
        """Carries a command out and answers it."""
        if isinstance(command, Hello):
            return
        refusal = self._do(command, now_s)
        if not isinstance(command, Abort):
            self._run.stage.answer(command.id, not refusal, refusal)

    def ended(self) -> None:
        """The session's last row is committed, which is what an abort asked for."""
        for abort in self._aborts:
            self._run.stage.answer(abort.id, True, "")

    def _do(self, command: Command, now_s: float) -> str:
        """Carries it out; an empty text when that is committed, else why not."""
        run, perform = self._run, self._stagehand.perform
        machine = run.machine
        match command:
            case Pause(by=by, reason=reason):
                if run.paused:
                    return "the run is paused already"
                run.paused, run.paused_because = True, reason or f"by {by}"
                if machine is not None:
                    machine.hold()
                self._log.append(Paused(reason, by))
                run.show_machine()
            case Resume(by=by):
                if not run.paused:
                    return "the run is not paused"
                self._log.append(Resumed(by))
                run.paused = False
                if machine is not None:
                    perform(machine.release(now_s))
            case Skip(reason=reason):
                if machine is None:
                    return "no trial is running"
                if not reason.strip():
                    return "a skip needs a reason"
                perform(machine.skip(now_s, reason))
            case Abort(by=by):
                self._aborts.append(command)
                run.ending, run.aborted = EndReason.ABORTED, f"operator: by {by}"
                if machine is not None:
                    perform(machine.abort(now_s, f"by {by}"))
            case AnswerOperator(trial_id=trial_id, attempt=attempt):
                if machine is None or machine.trial.id != trial_id or not machine.takes_answer(attempt):
                    return f"nobody asks about attempt {attempt} of {trial_id} (any more)"
                answer = OperatorAnswer(command.by or "operator", Stamp(now_s), command.recognised, command.heard)
                perform(machine.feed(answer, now_s))
            case AnswerEffect():
                row = row_for(command, run.standing, run.trials)
                if isinstance(row, str):
                    return row
                assert isinstance(row, EffectAnswered), row
                self._log.append(row)
                if isinstance(machine, TrialMachine) and (machine.trial.id, machine.take) == (row.trial_id, row.take):
                    perform(machine.effect_answered(now_s, row.attempt))
            case WriteNote() | SetMark() | Rerun() | Judge() | Review():
                row = row_for(command, run.standing, run.trials)
                if isinstance(row, str):
                    return row
                if row is not None:
                    self._log.append(row)
            case Hello() | Replay():
                return "the session does not answer that"
        return ""

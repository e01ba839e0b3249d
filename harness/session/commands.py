"""Commands of clients: done, committed, and only then answered."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
from harness.session.query_trial import TrialMachine
from harness.session.requests import row_for
from harness.session.stage import Told

if TYPE_CHECKING:
    from harness.session.conductor import Conductor

_COMMANDS = (
    Hello,
    Pause,
    Resume,
    Skip,
    Rerun,
    WriteNote,
    SetMark,
    Abort,
    AnswerOperator,
    AnswerEffect,
    Judge,
    Review,
    Replay,
)


class Desk:
    """Where a conductor's commands are taken."""

    def __init__(self, conductor: Conductor) -> None:
        self._conductor = conductor
        self._aborts: list[Abort] = []

    def takes(self, told: Told) -> bool:
        return isinstance(told, _COMMANDS)

    def take(self, told: Told, now_s: float) -> None:
        """Carries a command out and answers it."""
        if not isinstance(told, _COMMANDS):
            raise TypeError(f"{told!r} is no command")
        if isinstance(told, Hello):
            return
        refusal = self._do(told, now_s)
        if not isinstance(told, Abort):
            self._conductor.stage.answer(told.id, not refusal, refusal)

    def refuse(self, told: Told, why: str) -> None:
        if isinstance(told, _COMMANDS) and not isinstance(told, Hello):
            self._conductor.stage.answer(told.id, False, why)

    def ended(self) -> None:
        """The session's last row is committed, which is what an abort asked for."""
        for abort in self._aborts:
            self._conductor.stage.answer(abort.id, True, "")

    def _do(self, command: Command, now_s: float) -> str:
        """Carries it out; an empty text when that is committed, else why not."""
        conductor = self._conductor
        machine = conductor.machine
        match command:
            case Pause(by=by, reason=reason):
                if conductor.paused:
                    return "the run is paused already"
                conductor.paused, conductor.paused_because = True, reason or f"by {by}"
                if machine is not None:
                    machine.hold()
                conductor.append(Paused(reason, by))
                conductor.show_machine()
            case Resume(by=by):
                if not conductor.paused:
                    return "the run is not paused"
                conductor.append(Resumed(by))
                conductor.paused = False
                if machine is not None:
                    conductor.perform(machine.release(now_s))
            case Skip(reason=reason):
                if machine is None:
                    return "no trial is running"
                if not reason.strip():
                    return "a skip needs a reason"
                conductor.perform(machine.skip(now_s, reason))
            case Abort(by=by):
                self._aborts.append(command)
                conductor.ending, conductor.aborted = EndReason.ABORTED, f"operator: by {by}"
                if machine is not None:
                    conductor.perform(machine.abort(now_s, f"by {by}"))
            case AnswerOperator(trial_id=trial_id, attempt=attempt):
                if machine is None or machine.trial.id != trial_id or not machine.takes_answer(attempt):
                    return f"nobody asks about attempt {attempt} of {trial_id} (any more)"
                answer = OperatorAnswer(command.by or "operator", Stamp(now_s), command.recognised, command.heard)
                conductor.perform(machine.feed(answer, now_s))
            case AnswerEffect():
                row = row_for(command, conductor.standing, conductor.trials)
                if isinstance(row, str):
                    return row
                assert isinstance(row, EffectAnswered), row
                conductor.append(row)
                if isinstance(machine, TrialMachine) and (machine.trial.id, machine.take) == (row.trial_id, row.take):
                    conductor.perform(machine.effect_answered(now_s, row.attempt))
            case WriteNote() | SetMark() | Rerun() | Judge() | Review():
                row = row_for(command, conductor.standing, conductor.trials)
                if isinstance(row, str):
                    return row
                if row is not None:
                    conductor.append(row)
            case Hello() | Replay():
                return "the session does not answer that"
        return ""

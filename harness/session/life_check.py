"""What a run does about a device without a sign of life: says a known-good stimulus again, and else pauses."""

from __future__ import annotations

from collections.abc import Callable

from harness.model.feed import StateWord
from harness.model.record import EndReason, FaultMet, NoteWritten, Paused, RerunAsked, Resumed, TrialFinished
from harness.model.trial import Outcome, Trial
from harness.session.patient_log import PatientLog
from harness.session.reception import Reception
from harness.session.run import Run

BY = "the life check"
GIVEN_UP_S = 600.0
"""So long (session seconds) a run without anybody there waits for a device to come back to life."""
ASKED_EVERY_S = 60.0
"""… and so often it says meanwhile what the device reacted to before: not every device has a heartbeat."""


class LifeCheck:
    """Asked before each take, and before the run ends.

    Takes that a device let pass without a sign of life count only once it has shown that it listens: by any word of its
    own, or by waking to what it has woken to before. Otherwise they are not proven, and are played again.
    """

    def __init__(self, run: Run, log: PatientLog, reception: Reception, say: Callable[[Trial], None]) -> None:
        self._run = run
        self._log = log
        self._reception = reception
        self._say = say

    def settle(self, *, at_end: bool = False) -> bool:
        """Returns when every device is known to listen, or nobody can say; whether anything was played.

        at_end: nothing else would show it any more.
        """
        run, after = self._run, self._run.stage.life_check_after
        played = False
        while after and run.ending is None and (doubtful := run.liveness.doubtful(1 if at_end else after)):
            for device in doubtful:
                trials = _trials(len(run.liveness.silent(device)))
                asked = self._ask(device)
                played |= asked
                if self._ended():
                    break
                if run.liveness.silent(device):
                    self._not_proven(device, asked)
                    self._pause(device, 0.0 if at_end else GIVEN_UP_S)
                else:
                    self._note(f"{device} reacts: it is alive, and the {trials} that it missed count")
        return played

    def _ask(self, device: str) -> bool:
        """Says what the device has reacted to once more; False when it has reacted to nothing."""
        trial = self._run.liveness.check(device, self._run.standing.rows)
        if trial is None:
            return False
        if silent := self._run.liveness.silent(device):
            self._note(
                f"no sign of life of {device} in {_trials(len(silent))}: what it reacted to before is said again"
            )
        self._run.liveness.checked = device
        try:
            self._say(trial)
        finally:
            self._run.liveness.checked = ""
        return True

    def _not_proven(self, device: str, asked: bool) -> None:
        """Takes the silent takes out of the figures, and asks for them again."""
        run, log = self._run, self._log
        takes = run.liveness.silent(device)
        run.liveness.forget(device)
        known = "not even to what it reacted to before" if asked else "and has reacted to nothing so far"
        log.append(
            FaultMet(device, f"no sign of life in {_trials(len(takes))}, {known}: not proven, to be played again")
        )
        for trial_id, _ in takes:
            number = run.standing.next_take(trial_id)
            cause = f"not_proven: nothing shows that {device} was listening"
            log.append(RerunAsked(trial_id, number, BY))
            log.append(TrialFinished(trial_id, number, Outcome.INTERRUPTED, 0, None, cause))
            log.append(RerunAsked(trial_id, number + 1, BY))

    def _pause(self, device: str, limit_s: float) -> None:
        """Until it gives a sign, somebody resumes, or nobody is there for so long."""
        run, clock = self._run, self._run.stage.clock
        reason = f"{device} gives no sign of life. See whether it runs and hears, then resume"
        run.paused, run.paused_because = True, reason
        self._log.append(Paused(reason, BY))
        since_s, signs = clock.now_s(), run.liveness.signs(device)
        asks_s = since_s + ASKED_EVERY_S
        while run.paused and run.ending is None:
            run.show(StateWord.PAUSED, reason)
            self._reception.serve()
            waited_s = clock.now_s() - since_s
            if run.liveness.signs(device) > signs and run.paused:
                run.paused = False
                self._log.append(Resumed(f"{BY}: {device} is back"))
            elif run.paused and not run.stage.attended() and waited_s < limit_s and clock.now_s() >= asks_s:
                asks_s = clock.now_s() + ASKED_EVERY_S
                run.paused = False  # for this sound only
                self._ask(device)
                run.paused = True
            elif not run.stage.attended() and waited_s >= limit_s:
                self._log.append(FaultMet(device, "no sign of life, and nobody is there: resume when it is back"))
                run.ending = EndReason.STOPPED

    def _ended(self) -> bool:
        return self._run.ending is not None

    def _note(self, text: str) -> None:
        self._log.append(NoteWritten(text, BY))


def _trials(count: int) -> str:
    return "1 trial" if count == 1 else f"{count} trials"

"""What a context-memory probe asks of a run: nothing comes between a prime and its follow-up but the wait."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from harness.model.record import RerunAsked, TrialFinished
from harness.model.trial import Outcome, Trial
from harness.session.patient_log import PatientLog
from harness.session.resumption import Take
from harness.session.run import Run
from harness.session.verdict import trial_verdict

BY = "the memory probe"
"""Who asks for another take of a prime."""


class Priming:
    """Sees to it that a follow-up is played only straight after its prime, and only if that was answered.

    A follow-up that is played otherwise (a run that was cut off between the two, a re-run) has its prime said again
    first, as a further take.
    """

    def __init__(self, run: Run, log: PatientLog, play: Callable[[Take, Iterable[Take]], None]) -> None:
        self._run = run
        self._log = log
        self._play = play
        self._last_played = ""

    def ready(self, take: Take) -> bool:
        """Whether the take may be played now; a follow-up without a memory to ask for ends here, and says why."""
        trial = self._run.trials[take[0]]
        before, self._last_played = self._last_played, trial.id
        part, standing = trial.memory, self._run.standing
        if part is None or not part.primed_by:
            return True
        if trial_verdict(trial.reprompt, standing.attempts.get(take, {})) is not None:
            return True  # it was played; only the verdict on the trial is missing
        prime = part.primed_by
        if before != prime:
            self._prime_again(prime, take)
            if self._run.ending is not None:
                return False
            self._last_played = trial.id
        ended = max((row for row in standing.finished.values() if row.trial_id == prime), key=_take_of, default=None)
        if ended is not None and ended.outcome.answered:
            return True
        why = "was not played" if ended is None else f"ended as {ended.outcome.value}"
        cause = f"not_primed: {prime} {why}"
        attempts = max(standing.attempts.get(take, {}), default=0)
        self._log.append(TrialFinished(take[0], take[1], Outcome.SKIPPED, attempts, None, cause))
        return False

    def wait_s(self, trial: Trial, resumed: bool) -> float:
        """Quiet before the trial begins.

        A prime waits as long as a query that is said again: it names its subject itself, so what the device still
        remembers of an earlier pair is replaced by it; it only must not be taken for a follow-up.
        """
        if trial.memory is not None and trial.memory.primed_by:
            return trial.memory.wait_s
        after_pause = resumed or trial.memory is not None
        return trial.reprompt.context_wait_s if after_pause else self._run.stage.between_trials_s

    def _prime_again(self, prime: str, take: Take) -> None:
        standing = self._run.standing
        if not standing.in_play(prime):
            self._log.append(RerunAsked(prime, standing.next_take(prime), BY))
        for one in standing.pending():
            if one[0] == prime and self._run.ending is None:
                self._play(one, (take,))


def _take_of(row: TrialFinished) -> int:
    return row.take

"""What people see of a run: each state once, when it changes."""

from __future__ import annotations

from harness.model.feed import StateChanged, StateWord
from harness.session.listening_trial import ListeningMachine
from harness.session.query_trial import TrialMachine
from harness.session.stage import Stage

Machine = TrialMachine | ListeningMachine


class Screen:
    """The last state that clients were told."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._shown: StateChanged | None = None

    def show_machine(self, machine: Machine, paused_because: str) -> None:
        """Tells the clients the state of the trial, if it has changed."""
        if machine.finished:
            return
        shown = machine.state
        if machine.held_now:
            word, until_s, reason = StateWord.PAUSED, None, paused_because
        else:
            word, until_s, reason = shown.word, shown.until_s, shown.reason
        asks = None if word is StateWord.PAUSED else shown.asks
        self._tell(StateChanged(word, shown.since_s, until_s, machine.trial.id, shown.attempt, reason, asks))

    def show(self, word: StateWord, reason: str, trial_id: str | None = None) -> None:
        """Tells the clients a state that is no trial's own."""
        if self._shown is None or (self._shown.word, self._shown.reason) != (word, reason):
            self._tell(StateChanged(word, self._stage.clock.now_s(), None, trial_id, None, reason))

    def _tell(self, state: StateChanged) -> None:
        if state != self._shown:
            self._shown = state
            self._stage.on_state(state)

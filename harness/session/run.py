"""Where a run stands: what the parts of a conductor share, and what people are shown of it."""

from __future__ import annotations

from collections.abc import Sequence

from harness.model.feed import StateWord
from harness.model.record import EndReason
from harness.model.stimulus import Waveform
from harness.model.trial import Trial
from harness.session.bench_state import BenchState
from harness.session.inbox import Inbox
from harness.session.liveness import Liveness
from harness.session.resumption import Resumption
from harness.session.screen import Machine, Screen
from harness.session.stage import Stage


class Run:
    """What a run works with, what it was told and how far it has come; but for `arrivals` of the conductor's thread.

    trials: of the plan, by id. standing: the fold over the log's rows. arrivals: what came and was not yet taken in.
    seen: what drivers last said. liveness: which devices show that they are alive. machine: of the take in play.
    sounds: of that take, by the id of the playing; "" is the stimulus. last_sound_s: when the bench was last known to
    sound; None before anything has. paused: no attempt is begun. ending: why it ends, None while it goes on. aborted:
    by whom.
    """

    def __init__(self, plan: Sequence[Trial], stage: Stage, standing: Resumption) -> None:
        self.stage = stage
        self.trials = {trial.id: trial for trial in plan}
        self.standing = standing
        for trial in plan:
            standing.know((trial.id, 1))
        self.arrivals = Inbox(stage.clock)
        self.seen = BenchState()
        self.liveness = Liveness(plan)
        self.machine: Machine | None = None
        self.sounds: dict[str, Waveform] = {}
        self.last_sound_s: float | None = None
        self.paused = False
        self.paused_because = ""
        self.ending: EndReason | None = None
        self.aborted = ""
        self._screen = Screen(stage)

    def show_machine(self) -> None:
        """Tells the clients the state of the trial, if it has changed."""
        if self.machine is not None:
            self._screen.show_machine(self.machine, self.paused_because)

    def show(self, word: StateWord, reason: str, trial_id: str | None = None) -> None:
        """Tells the clients a state that is no trial's own."""
        self._screen.show(word, reason, trial_id)

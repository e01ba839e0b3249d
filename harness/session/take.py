"""What the machines of all kinds of trials have in common: one take of one trial, its phases, its rows and its time."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto

from harness.model.feed import StateWord
from harness.model.record import AttemptFinished, AttemptStarted, Question, TrialFinished
from harness.model.trial import Outcome, Trial
from harness.session.actions import Action, FinishTrial, Shown, StartAttempt, StimulusTiming
from harness.session.verdict import Verdict


class Phase(Enum):
    """Where a machine is; `StateWord` is what people see of it. Not every kind of trial has all of them."""

    READY = auto()
    PLAYING = auto()
    LISTENING = auto()
    RESPONDING = auto()
    FREEZING = auto()
    CHECKING = auto()
    ASKING = auto()
    LOOKING = auto()
    ASKING_EFFECT = auto()
    CLOSING = auto()
    WAITING = auto()
    LINK = auto()
    DONE = auto()


_WORDS = {
    Phase.READY: StateWord.PREPARING,
    Phase.PLAYING: StateWord.PLAYING,
    Phase.LISTENING: StateWord.LISTENING,
    Phase.RESPONDING: StateWord.RESPONSE,
    Phase.FREEZING: StateWord.RESPONSE,
    Phase.CHECKING: StateWord.CHECKING,
    Phase.ASKING: StateWord.ASKING,
    Phase.LOOKING: StateWord.CHECKING,
    Phase.ASKING_EFFECT: StateWord.ASKING,
    Phase.CLOSING: StateWord.CLOSING,
    Phase.WAITING: StateWord.WAITING,
    Phase.LINK: StateWord.INTERRUPTED,
    Phase.DONE: StateWord.FINISHED,
}
_ASKS = {Phase.ASKING: Question.RECOGNITION, Phase.ASKING_EFFECT: Question.EFFECT}


class Take:
    """One take of one trial; the kinds of trials say when a phase ends (`_until`) and what follows (`_step`).

    before: rows of attempts that an earlier run of the session made of this take. attended: somebody is there to
    answer; may be set at any time. link_wait_s: how long a lost link is waited for before the trial is given up.
    """

    def __init__(
        self,
        trial: Trial,
        take: int,
        timing: StimulusTiming,
        *,
        before: Sequence[AttemptFinished] = (),
        attended: bool = False,
        link_wait_s: float = 600.0,
    ) -> None:
        self.trial = trial
        self.take = take
        self.attended = attended
        self._timing = timing
        self._rule = trial.reprompt
        self._link_wait_s = link_wait_s
        self._rows = {row.attempt: row for row in before}
        self._last_number = max(self._rows, default=0)
        self._phase = Phase.READY
        self._now_s = 0.0
        self._since_s = 0.0
        self._reason = ""
        self._not_before_s = 0.0
        self._held = False
        self._actions: list[Action] = []

    # What is asked of every machine

    def tick(self, now_s: float) -> list[Action]:
        """Lets time pass."""
        self._tell(now_s)
        return self._advance()

    def hold(self) -> None:
        """No new attempt begins until `release`."""
        self._held = True

    def release(self, now_s: float) -> list[Action]:
        self._held = False
        return self.tick(now_s)

    def skip(self, now_s: float, reason: str) -> list[Action]:
        """Ends the trial now."""
        return self._end(now_s, Outcome.SKIPPED, reason)

    def abort(self, now_s: float, reason: str) -> list[Action]:
        """As skip, when the whole session ends for good."""
        return self._end(now_s, Outcome.ABORTED, reason)

    @property
    def timing(self) -> StimulusTiming:
        """Where the parts of the stimulus lie."""
        return self._timing

    @property
    def phase(self) -> Phase:
        return self._phase

    @property
    def finished(self) -> bool:
        return self._phase is Phase.DONE

    @property
    def held(self) -> bool:
        return self._held

    @property
    def held_now(self) -> bool:
        """True when a pause keeps the next attempt from beginning."""
        return self._held and self._phase in (Phase.WAITING, Phase.LINK)

    @property
    def deadline_s(self) -> float | None:
        """When `tick` is wanted at the latest; None: only an observation or a command leads on."""
        return None if self._phase is Phase.DONE or self.held_now else self._until()

    @property
    def attempt(self) -> int | None:
        """Number of the latest attempt, None before the first."""
        return self._last_number or None

    @property
    def state(self) -> Shown:
        """What people see."""
        until_s = None if self.held_now else self._expected_end()
        return Shown(_WORDS[self._phase], self._since_s, until_s, self.attempt, self._reason, _ASKS.get(self._phase))

    # What each kind of trial decides

    def _until(self) -> float | None:
        """When the present phase ends by itself."""
        raise NotImplementedError

    def _expected_end(self) -> float | None:
        """When the present phase most likely ends: what people are told."""
        return self._until()

    def _step(self) -> None:
        """Goes on to the next phase when this one is over; called until nothing changes."""
        raise NotImplementedError

    def _end(self, now_s: float, outcome: Outcome, reason: str) -> list[Action]:
        """Ends the trial because somebody asked for it."""
        raise NotImplementedError

    def _standing(self) -> tuple[object, ...]:
        """What a step may change."""
        return self._phase, self._last_number

    # Time

    def _tell(self, now_s: float) -> None:
        self._now_s = max(self._now_s, now_s)

    def _enter(self, phase: Phase, reason: str) -> None:
        self._phase, self._since_s, self._reason = phase, self._now_s, reason

    def _taken(self) -> list[Action]:
        actions, self._actions = self._actions, []
        return actions

    def _advance(self) -> list[Action]:
        before: tuple[object, ...] | None = None
        while before != (now := self._standing()):
            before = now
            self._step()
        return self._taken()

    # Rows

    def _play_id(self, number: int) -> str:
        return f"{self.trial.id}.t{self.take}.a{number}"

    def _ask_for_sound(self, quiet_since_s: float | None) -> None:
        """Commits to the attempt of the last number, and has its stimulus played."""
        self._actions.append(
            StartAttempt(
                AttemptStarted(
                    trial_id=self.trial.id,
                    take=self.take,
                    attempt=self._last_number,
                    play_id=self._play_id(self._last_number),
                    stimulus_sha256=self._timing.sha256,
                    query_start_s=self._timing.query_start_s,
                    query_end_s=self._timing.query_end_s,
                    duration_s=self._timing.duration_s,
                    waited_s=None if quiet_since_s is None else max(0.0, self._now_s - quiet_since_s),
                )
            )
        )

    def _finish(self, verdict: Verdict) -> None:
        self._enter(Phase.DONE, "")
        self._actions.append(
            FinishTrial(
                TrialFinished(
                    self.trial.id,
                    self.take,
                    verdict.outcome,
                    self._last_number,
                    verdict.deciding_attempt,
                    verdict.cause,
                )
            )
        )

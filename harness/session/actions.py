"""What a trial machine asks for, and what it needs to know of its stimulus."""

from __future__ import annotations

from dataclasses import dataclass, replace

from harness.model.feed import StateWord
from harness.model.observation import Observation
from harness.model.record import AttemptFinished, AttemptStarted, FaultMet, Question, TrialFinished
from harness.model.scenario import TrialKind
from harness.model.stimulus import RenderedStimulus, Role
from harness.model.time import Stamp


@dataclass(frozen=True, slots=True)
class StimulusTiming:
    """Where the parts of a stimulus lie, in seconds from its first sample; wake_end_s None without a wake phrase."""

    sha256: str
    query_start_s: float
    query_end_s: float
    duration_s: float
    wake_end_s: float | None = None

    @classmethod
    def of(cls, stimulus: RenderedStimulus) -> StimulusTiming:
        """The timing of a rendered stimulus; one without a query part is all query."""
        duration_s = stimulus.waveform.duration_s
        query = stimulus.span_s(Role.QUERY) or (0.0, duration_s)
        wake = stimulus.span_s(Role.WAKE_PHRASE)
        return cls(stimulus.sha256, query[0], query[1], duration_s, wake[1] if wake else None)

    @classmethod
    def of_listening(cls, stimulus: RenderedStimulus, kind: TrialKind) -> StimulusTiming:
        """As `of`, the query being the phrase (wake), phrase and command (command) or all of it (ambient)."""
        found = cls.of(stimulus)
        wake = stimulus.span_s(Role.WAKE_PHRASE)
        if kind is TrialKind.COMMAND and wake is not None:
            return replace(found, query_start_s=wake[0])
        return found


@dataclass(frozen=True, slots=True)
class Credit:
    """The observation belongs to that attempt (None: to no attempt)."""

    observation: Observation
    attempt: int | None


@dataclass(frozen=True, slots=True)
class StartAttempt:
    """Commit the row, then play the trial's stimulus under its play_id."""

    row: AttemptStarted


@dataclass(frozen=True, slots=True)
class StopStimulus:
    """End what is playing."""


@dataclass(frozen=True, slots=True)
class FreezeResponse:
    """Cut and store the first response; then tell the machine by `response_frozen` or `response_lost`."""

    attempt: int
    starts: Stamp
    ends: Stamp
    truncated: bool


@dataclass(frozen=True, slots=True)
class AskOperator:
    """Put the question to the operator; the answer comes as an OperatorAnswer, or by `effect_answered`."""

    attempt: int
    question: str
    about: Question = Question.RECOGNITION


@dataclass(frozen=True, slots=True)
class SayClosing:
    """Speak the text with the trial's voice, without a wake phrase, under that play_id."""

    text: str
    play_id: str


@dataclass(frozen=True, slots=True)
class FinishAttempt:
    """The verdict on an attempt; a later one for the same attempt stands."""

    row: AttemptFinished


@dataclass(frozen=True, slots=True)
class FinishTrial:
    """The verdict on the trial: the last action of a machine, and the only one of its kind."""

    row: TrialFinished


@dataclass(frozen=True, slots=True)
class ReportFault:
    """Something is wrong with a device that the trial goes on in spite of."""

    row: FaultMet


Action = (
    Credit
    | StartAttempt
    | StopStimulus
    | FreezeResponse
    | AskOperator
    | SayClosing
    | FinishAttempt
    | FinishTrial
    | ReportFault
)


@dataclass(frozen=True, slots=True)
class Shown:
    """What people see of a machine's state. until_s: when it ends by itself, where that is known.

    asks: what the operator is asked about.
    """

    word: StateWord
    since_s: float
    until_s: float | None = None
    attempt: int | None = None
    reason: str = ""
    asks: Question | None = None

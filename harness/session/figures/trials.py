"""How far one trial is: its takes, their attempts, its first response, and what raters said of it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from harness.model.judgment import Judgment
from harness.model.record import AttemptFinished, Clip, ResponseFrozen, ResponseTranscribed
from harness.model.time import Measured
from harness.model.transcript import WordCounts
from harness.model.trial import Outcome, Recognition, Trial

DECIDED = frozenset(
    {
        Outcome.RESPONDED,
        Outcome.LATE,
        Outcome.MISHEARD,
        Outcome.NO_WAKE,
        Outcome.NO_RESPONSE,
        Outcome.UNDERSTOOD,
    }
)
"""Outcomes that say something of the device; the others say something of the bench or the operator."""


class TrialState(StrEnum):
    """PLANNED also when a re-run was asked for and has not begun."""

    PLANNED = "planned"
    RUNNING = "running"
    FINISHED = "finished"


@dataclass(frozen=True, slots=True)
class AttemptProgress:
    """One attempt of a take; `verdict` is the last AttemptFinished of it, None while it goes on.

    words: the counts of what was heard, None without a transcript.
    """

    attempt: int
    waited_s: float | None = None
    verdict: AttemptFinished | None = None
    words: WordCounts | None = None
    frozen: ResponseFrozen | None = None
    transcribed: ResponseTranscribed | None = None

    @property
    def outcome(self) -> Outcome | None:
        return self.verdict.outcome if self.verdict else None

    @property
    def recognition(self) -> Recognition | None:
        return self.verdict.recognition if self.verdict else None


@dataclass(frozen=True, slots=True)
class FirstResponse:
    """What a rater judges: the frozen first response of the attempt that decided a take.

    transcript: by our own recogniser, for people; None until it is there. judgments: those in force, oldest first.
    """

    trial: Trial
    take: int
    attempt: int
    clip: Clip
    truncated: bool
    transcript: str | None
    recogniser: str
    latency: Measured | None
    length: Measured | None
    judgments: tuple[Judgment, ...] = ()

    @property
    def judgment(self) -> Judgment | None:
        """The latest in force."""
        return self.judgments[-1] if self.judgments else None


@dataclass(frozen=True, slots=True)
class TakeProgress:
    """One playing of a trial; `outcome` is None while it goes on."""

    take: int
    attempts: tuple[AttemptProgress, ...] = ()
    outcome: Outcome | None = None
    deciding_attempt: int | None = None
    cause: str = ""

    def attempt(self, number: int) -> AttemptProgress | None:
        return next((one for one in self.attempts if one.attempt == number), None)

    @property
    def deciding(self) -> AttemptProgress | None:
        return None if self.deciding_attempt is None else self.attempt(self.deciding_attempt)

    @property
    def recognition(self) -> Recognition | None:
        return self.deciding.recognition if self.deciding else None

    @property
    def attempts_to_recognition(self) -> int | None:
        """How often the query was said until it was recognised; interrupted attempts, which test nothing, left out."""
        if self.deciding is None or self.recognition is not Recognition.YES:
            return None
        tested = [
            one
            for one in self.attempts
            if one.attempt < self.deciding.attempt and one.outcome is not Outcome.INTERRUPTED
        ]
        return len(tested) + 1


@dataclass(frozen=True, slots=True)
class TrialProgress:
    """One planned trial. takes: oldest first. rerun_asked: another take is to come."""

    trial: Trial
    takes: tuple[TakeProgress, ...] = ()
    judgments: tuple[Judgment, ...] = ()
    rerun_asked: bool = False

    @property
    def counting(self) -> TakeProgress | None:
        """The take that figures use: the latest that finished."""
        return next((take for take in reversed(self.takes) if take.outcome is not None), None)

    @property
    def current(self) -> TakeProgress | None:
        """The latest take, finished or not."""
        return self.takes[-1] if self.takes else None

    @property
    def state(self) -> TrialState:
        if self.current is not None and self.current.outcome is None:
            return TrialState.RUNNING
        return TrialState.PLANNED if self.rerun_asked or self.current is None else TrialState.FINISHED

    @property
    def outcome(self) -> Outcome | None:
        """Of the take that counts."""
        return self.counting.outcome if self.counting else None

    @property
    def response(self) -> FirstResponse | None:
        """The first response to judge; None unless the take that counts was answered, and in memory probes.

        Those ask the same two queries over and over, and their answers are read for words of memory.
        """
        return None if self.trial.memory is not None else self.answer

    @property
    def answer(self) -> FirstResponse | None:
        """The first response of the take that counts, judged or not; None unless it was answered."""
        take = self.counting
        if take is None or take.outcome is None or not take.outcome.answered or take.deciding is None:
            return None
        return self.response_of(take, take.deciding)

    @property
    def latest_response(self) -> FirstResponse | None:
        """The last response that was frozen, whatever became of it; for showing, not for judging."""
        for take in reversed(self.takes):
            for attempt in reversed(take.attempts):
                if found := self.response_of(take, attempt):
                    return found
        return None

    def response_of(self, take: TakeProgress, attempt: AttemptProgress) -> FirstResponse | None:
        """The response that was frozen in an attempt, with the judgments on that very clip."""
        if attempt.frozen is None:
            return None
        clip = attempt.frozen.clip
        return FirstResponse(
            trial=self.trial,
            take=take.take,
            attempt=attempt.attempt,
            clip=clip,
            truncated=attempt.frozen.truncated,
            transcript=attempt.transcribed.text if attempt.transcribed else None,
            recogniser=attempt.transcribed.recogniser if attempt.transcribed else "",
            latency=attempt.verdict.latency if attempt.verdict else None,
            length=attempt.verdict.length if attempt.verdict else None,
            judgments=tuple(
                one for one in self.judgments if one.clip_sha256 == clip.sha256 and one.attempt == attempt.attempt
            ),
        )

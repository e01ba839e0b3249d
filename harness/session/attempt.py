"""One attempt under way: what was observed of it, and what that amounts to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from harness.metrics.recognition import recognised
from harness.model.bench import ObservationKind
from harness.model.observation import OperatorAnswer, StateTold
from harness.model.record import AttemptFinished
from harness.model.scenario import Evidence, RepromptRule
from harness.model.time import Measured, Stamp, between
from harness.model.transcript import WordCounts
from harness.model.trial import EvidenceSource, Outcome, Recognition, Trial
from harness.session.actions import StimulusTiming

GUARD_S = 0.1
"""Speech that starts up to this much before the end of the query still counts as after it (error of the onset)."""
DETECTION_LAG_S = 0.3
"""How much later than its stamp an onset or end of speech may arrive from a detector."""


@dataclass(slots=True)
class Span:
    """Speech of the device; ends is None while it speaks."""

    starts: Stamp
    ends: Stamp | None = None


@dataclass(frozen=True, slots=True)
class Response:
    """The first response as far as it is known; closes_s: when it is complete if nothing more is heard."""

    starts: Stamp
    ends: Stamp
    closes_s: float
    complete: bool
    truncated: bool


def first_response(spans: Sequence[Span], query_end_s: float, now_s: float, rule: RepromptRule) -> Response | None:
    """The first speech after the query, with what follows it within `end_silence_ms`; None when there is none yet.

    Speech that began during the query is talked over and left out, unless it goes on past the query's end.
    """
    silence_s = rule.end_silence_ms / 1000
    chain: list[Span] = []
    broken = False
    for span in spans:
        if not chain:
            over = span.starts.at_s < query_end_s - GUARD_S
            until_s = now_s if span.ends is None else span.ends.at_s
            if not over or until_s > query_end_s:
                chain.append(span)
            continue
        ends = chain[-1].ends
        if ends is not None and span.starts.at_s - ends.at_s > silence_s:
            broken = True
            break
        chain.append(span)
    if not chain:
        return None
    starts, ends = chain[0].starts, chain[-1].ends
    limit_s = starts.at_s + rule.response_max_s
    if (now_s if ends is None else ends.at_s) >= limit_s:
        return Response(starts, Stamp(limit_s, starts.error_s), limit_s, complete=True, truncated=True)
    if ends is None:
        return Response(starts, Stamp(max(now_s, starts.at_s)), limit_s, complete=False, truncated=False)
    closes_s = ends.at_s + silence_s + DETECTION_LAG_S
    return Response(starts, ends, closes_s, complete=broken or now_s >= closes_s, truncated=False)


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the evidence says of recognition."""

    recognition: Recognition
    source: EvidenceSource
    heard: str | None = None
    counts: WordCounts | None = None


@dataclass(slots=True)
class Attempt:
    """What was observed of one attempt. Changed only by the machine of its trial."""

    trial: Trial
    take: int
    number: int
    play_id: str
    timing: StimulusTiming
    begun_s: float
    started: Stamp | None = None
    heard: Stamp | None = None
    ended: Stamp | None = None
    spans: list[Span] = field(default_factory=list)
    wake: Stamp | None = None
    transcripts: list[str] = field(default_factory=list)
    answer: OperatorAnswer | None = None
    asked: bool = False
    told: list[StateTold] = field(default_factory=list)
    effect_answered: bool = False
    frozen: Response | None = None
    interruption: str = ""
    closed_s: float | None = None

    @property
    def origin(self) -> Stamp | None:
        """Where the first sample lies: on the microphone's recording when it was found there."""
        return self.heard or self.started

    def moment(self, offset_s: float) -> Stamp | None:
        """The moment of a position in the stimulus."""
        origin = self.origin
        return None if origin is None else Stamp(origin.at_s + offset_s, origin.error_s)

    @property
    def query_end(self) -> Stamp | None:
        return self.moment(self.timing.query_end_s)

    def response(self, now_s: float) -> Response | None:
        """The first response so far; none before the stimulus has started."""
        end = self.query_end
        return None if end is None else first_response(self.spans, end.at_s, now_s, self.trial.reprompt)

    @property
    def is_open(self) -> bool:
        """True while a first response to it may still come: after closing words it may not."""
        return self.frozen is None and not self.interruption and self.closed_s is None

    def awaits(self, at_s: float) -> bool:
        """True when speech of that time may be its first response."""
        before_closing = self.closed_s is None or at_s < self.closed_s
        return self.frozen is None and not self.interruption and before_closing

    def before_answering(self, at_s: float) -> bool:
        """True when speech or a transcript of that time cannot be the answer to this attempt's query yet."""
        end = self.query_end
        return end is None or at_s < end.at_s - GUARD_S

    def may_have_heard(self, at: Stamp) -> bool:
        """False for words that came before any of this query was said, or before it ended without the device waking."""
        origin = self.origin
        begins_s = (self.begun_s if origin is None else origin.at_s) + self.timing.query_start_s
        if at.at_s + at.error_s < begins_s - GUARD_S:
            return False
        return not (self.missed_wake and self.before_answering(at.at_s))

    def judge(self) -> Judgement:
        """Recognised or not: by the device's transcripts, else by the operator; missing evidence is unknown."""
        if self.trial.evidence is Evidence.NONE:
            return Judgement(Recognition.NOT_ASSESSED, EvidenceSource.NONE)
        if self.trial.evidence is Evidence.DEVICE and self.transcripts:
            return self._by_device()
        if self.answer is not None:
            return self._by_operator(self.answer)
        by_operator = self.asked or self.trial.evidence is Evidence.OPERATOR
        return Judgement(Recognition.UNKNOWN, EvidenceSource.OPERATOR if by_operator else EvidenceSource.DEVICE)

    def _by_device(self) -> Judgement:
        judged = [(text, recognised(self.trial, text)) for text in self.transcripts]
        # A device may report an empty or half transcript first; the first right one counts, else the first with words.
        right = next((each for each in judged if each[1].recognised), None)
        text, found = right or next((each for each in judged if each[0].strip()), judged[0])
        recognition = Recognition.YES if found.recognised else Recognition.NO
        return Judgement(recognition, EvidenceSource.DEVICE, text, found.counts)

    def _by_operator(self, answer: OperatorAnswer) -> Judgement:
        says = answer.recognised
        if not answer.heard:
            plain = {True: Recognition.YES, False: Recognition.NO, None: Recognition.UNKNOWN}[says]
            return Judgement(plain, EvidenceSource.OPERATOR)
        found = recognised(self.trial, answer.heard)
        right = found.recognised if says is None else says
        recognition = Recognition.YES if right else Recognition.NO
        return Judgement(recognition, EvidenceSource.OPERATOR, answer.heard, found.counts)

    @property
    def missed_wake(self) -> bool:
        """True when the device says when it wakes, was called, and said nothing of having woken."""
        called = self.trial.recipe.wake_phrase is not None
        return called and ObservationKind.WAKE in self.trial.reports and self.wake is None

    def verdict(self) -> AttemptFinished:
        """The row that says how this attempt ended, from what is known now."""
        judged = self.judge()
        outcome, cause = self._outcome(judged)
        query_end, wake_end = self.query_end, None
        if self.timing.wake_end_s is not None:
            wake_end = self.moment(self.timing.wake_end_s)
        frozen = self.frozen
        wake_delay: Measured | None = None
        if self.wake is not None and wake_end is not None:
            wake_delay = between(wake_end, self.wake)
        return AttemptFinished(
            trial_id=self.trial.id,
            take=self.take,
            attempt=self.number,
            outcome=outcome,
            recognition=judged.recognition,
            evidence=judged.source,
            heard=judged.heard,
            errors=judged.counts.errors if judged.counts else None,
            words=judged.counts.words if judged.counts else None,
            wake_delay=wake_delay,
            latency=between(query_end, frozen.starts) if query_end and frozen else None,
            length=between(frozen.starts, frozen.ends) if frozen else None,
            cause=cause,
        )

    def _outcome(self, judged: Judgement) -> tuple[Outcome, str]:
        if self.interruption:
            return Outcome.INTERRUPTED, self.interruption
        if judged.recognition is Recognition.NO:
            differ = f": {judged.counts.errors} errors in {judged.counts.words} words" if judged.counts else ""
            return Outcome.MISHEARD, f"words_differ{differ}" if judged.heard is not None else "operator_says_no"
        if self.frozen is None:
            if self.missed_wake and judged.recognition is not Recognition.YES:
                return Outcome.NO_WAKE, "no_wake_event"
            limit_s = self.trial.reprompt.response_timeout_s
            return Outcome.NO_RESPONSE, f"silent: no speech within {limit_s:g} s after the query"
        if judged.recognition is Recognition.UNKNOWN:
            return Outcome.INCONCLUSIVE, self._why_unknown()
        return self._answered(self.frozen)

    def _answered(self, response: Response) -> tuple[Outcome, str]:
        query_end = self.query_end
        latency_s = response.starts.at_s - query_end.at_s if query_end else 0.0
        if latency_s > self.trial.reprompt.response_timeout_s:
            return Outcome.LATE, f"late: {latency_s:.2f} s after the query"
        if latency_s < -GUARD_S:
            return Outcome.RESPONDED, f"talked_over: began {-latency_s:.2f} s before the query ended"
        if response.truncated:
            return Outcome.RESPONDED, f"truncated: still going after {self.trial.reprompt.response_max_s:g} s"
        return Outcome.RESPONDED, ""

    def _why_unknown(self) -> str:
        if self.answer is not None:
            return "operator_unsure"
        if self.asked:
            return "operator_silent"
        if self.trial.evidence is Evidence.OPERATOR:
            return "nobody_to_ask"
        return "no_transcript: the device reported none, and nobody was there to ask"

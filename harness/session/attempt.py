"""The current attempt: its observations, and the verdict that follows from them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from harness.base.foreign import plain_text
from harness.model.bench import ObservationKind
from harness.model.effect import StateWanted
from harness.model.frozen import frozen
from harness.model.numbers import counted, exact, seconds
from harness.model.observation import (
    Earcon,
    HostStalled,
    Intent,
    Observation,
    OperatorAnswer,
    Overrun,
    SpeechStarted,
    StateTold,
    Transcript,
    Unread,
    Wake,
)
from harness.model.record import AttemptFinished, UnderstandingResult
from harness.model.scenario import Evidence
from harness.model.time import MeasuredDuration, Stamp, between
from harness.model.transcript import WordCounts
from harness.model.trial import EvidenceSource, Outcome, Recognition, Trial
from harness.model.understanding import frame_text, joined
from harness.session.device_speech import GUARD_S, Response, Span, first_response
from harness.session.disturbance import Disturbance
from harness.session.take import StimulusTiming
from harness.statistics.intervals import may_be_nothing
from harness.transcripts.recognition import recognised
from harness.understanding.reported_frames import understanding_result

MAX_INTENTS_CHARS = 200
"""How many characters of a device's own text a cause quotes, since a cause is one line."""
GAP_BEFORE_S = 0.3
GAP_REPORT_S = 1.2
"""A gap makes a response doubtful if it is reported from GAP_BEFORE_S before its start to GAP_REPORT_S after."""
TAIL_S = 0.5
"""How long after its expected end a query that gaps have delayed may still be heard."""
_BY_REPORTS = (Outcome.NO_WAKE, Outcome.MISHEARD, Outcome.NO_RESPONSE)
"""Outcomes that might have been different if no report of the device had been lost."""
_BY_TIME = (Outcome.LATE, Outcome.NO_RESPONSE)
"""Outcomes that a stall of the host, or sound that it lost, may have caused."""


@frozen
class RecognitionVerdict:
    """What the evidence says about recognition.

    - heard: words that the device understood; None if not known.
    - counts: errors of `heard` against the reference.
    """

    recognition: Recognition
    source: EvidenceSource
    heard: str | None = None
    counts: WordCounts | None = None


@dataclass(slots=True)
class Attempt:
    """Everything that was observed during one attempt. Only the machine of its trial changes it."""

    trial: Trial
    take: int
    number: int
    play_id: str
    timing: StimulusTiming
    begun_s: float
    started: Stamp | None = None
    """When the first sample of the stimulus left the driver."""
    started_audio_s: float | None = None
    """Position of that sample in the audio sent to the device, if its sound goes over a wire."""
    recorded: Stamp | None = None
    """When that sample was found in the microphone's recording."""
    ended: Stamp | None = None
    """When the stimulus ended."""
    spans: list[Span] = field(default_factory=list)
    """Speech of the device."""
    sounds: list[Stamp] = field(default_factory=list)
    """When the device began a sound, which may be speech or a chime."""
    opened: bool = False
    """Whether the device woke to the phrase of the opening."""
    wakes: list[Wake] = field(default_factory=list)
    """Its wake events. Some may be from before its sound, whose start is reported later; they are not its own."""
    transcripts: list[str] = field(default_factory=list)
    """Final transcripts that the device reported."""
    intents: list[Intent] = field(default_factory=list)
    """What the device reported that it understood."""
    last_words_s: float | None = None
    """When the last transcript or intent arrived."""
    answer: OperatorAnswer | None = None
    """The operator's answer about recognition."""
    asked: bool = False
    """Whether the operator was asked about recognition."""
    reported_states: list[StateTold] = field(default_factory=list)
    """Pieces of state that the device reported, for the effect check."""
    unread: str = ""
    """Why reports of the device were lost; "" if none were."""
    host: Disturbance = field(default_factory=Disturbance)
    effect_answered: bool = False
    """Whether a person has answered about the effect."""
    frozen: Response | None = None
    """The response, once it is stored."""
    interruption: str = ""
    """Why the attempt was interrupted; "" if it was not."""
    closed_s: float | None = None
    """When closing words ended the time for a response; None before."""

    def add(self, observation: Observation, now_s: float) -> bool:
        """Adds an observation. Returns whether it may change the verdict."""
        match observation:
            case Wake() if self._is_opening_wake(observation):
                self.opened = True
                return False
            case Wake():
                self.wakes.append(observation)
            case Transcript(final=True, text=text):
                self.transcripts.append(text)
                self.last_words_s = now_s
            case Intent():
                self.intents.append(observation)
                self.last_words_s = now_s
            case Unread(what=problem):
                self.unread = self.unread or problem
            case OperatorAnswer() if self.asked:
                self.answer = observation
            case StateTold():
                self.reported_states.append(observation)
                return False
            case SpeechStarted(at=at) | Earcon(at=at):
                self.sounds.append(at)
                return False
            case Overrun(source=self.trial.microphone):
                self.host.gaps.append(observation)
            case Overrun(source=self.trial.loudspeaker, at=at):
                if self.ended is not None and at.at_s > self.ended.at_s + TAIL_S:
                    return False  # late silence changes nothing
                self.host.late_sound.append(observation)
            case HostStalled():
                self.host.stalls.append(observation)
            case _:
                return False
        return True

    @property
    def wake(self) -> Wake | None:
        """The wake event that the attempt's sound caused; None if there is none."""
        return next((event for event in self.wakes if not self.began_after(event)), None)

    @property
    def has_evidence(self) -> bool:
        """Whether there is evidence for or against recognition."""
        return self.recognition() is not Recognition.UNKNOWN

    @property
    def origin(self) -> Stamp | None:
        """The time of the first sample, on the microphone's recording if it was found there."""
        return self.recorded or self.started

    def time_of(self, offset_s: float) -> Stamp | None:
        """The time of a position in the stimulus; None before it has started.

        Over a wire, sound is sent as fast as the device takes it, and that speed is known only at its end.
        """
        origin, ended = self.origin, self.ended
        if origin is None:
            return None
        if self.started_audio_s is None or ended is None:
            return Stamp(origin.at_s + offset_s, origin.error_s)
        real_s_per_s = max(0.0, ended.at_s - origin.at_s) / self.timing.duration_s
        return Stamp(origin.at_s + offset_s * real_s_per_s, origin.error_s + ended.error_s)

    def stimulus_offset_s(self, observation: Observation) -> float | None:
        """Position of a wired device's report in the stimulus; None if unknown."""
        match observation:
            case Wake(audio_s=float(at_s)) | Transcript(audio_s=float(at_s)) | Intent(audio_s=float(at_s)):
                return None if self.started_audio_s is None else at_s - self.started_audio_s
        return None

    def _is_opening_wake(self, wake: Wake) -> bool:
        """Whether the event lies nearer to the wake phrase of the opening than to that of the query."""
        timing = self.timing
        if not timing.other_phrases:
            return False
        own_s = timing.query_start_s if timing.wake_end_s is None else timing.wake_end_s
        until_s, stimulus_offset_s = (timing.other_phrases[0][1] + own_s) / 2, self.stimulus_offset_s(wake)
        if stimulus_offset_s is not None:
            return stimulus_offset_s < until_s
        end = self.time_of(until_s)
        return end is None or wake.at.at_s < end.at_s

    @property
    def query_end(self) -> Stamp | None:
        """When the query ends; None before the stimulus has started."""
        return self.time_of(self.timing.query_end_s)

    def response(self, now_s: float) -> Response | None:
        """The first response so far; None before the stimulus has started.

        Speech that began before the wake phrase does not count, however long it lasts. After an opening, all speech
        that began before the query answers the opening.
        """
        end = self.query_end
        if end is None:
            return None
        called = end if self.timing.other_phrases else self.time_of(self.timing.wake_end_s or 0.0)
        earliest_s = self.begun_s if called is None else called.at_s - GUARD_S
        spans = [span for span in self.spans if span.starts.at_s >= earliest_s]
        return first_response(spans, end.at_s, now_s, self.trial.reprompt)

    def doubt_about(self, response: Response) -> str:
        """Why a response may be the harness's own sound, shifted by a gap in a stream; "" if there is no doubt.

        The microphone reports a gap up to GAP_REPORT_S after it. Late blocks shift the rest of the stimulus.
        """
        begins_s = response.starts.at_s
        if any(begins_s - GAP_BEFORE_S <= gap.at.at_s <= begins_s + GAP_REPORT_S for gap in self.host.gaps):
            return "the recording has a gap where the response begins"
        end = self.query_end
        if self.host.late_sound and end is not None and begins_s <= end.at_s + TAIL_S:
            return "the stimulus had gaps, and something was heard at its end"
        return ""

    @property
    def is_open(self) -> bool:
        """Whether its first response may still come. After closing words it may not."""
        return self.frozen is None and not self.interruption and self.closed_s is None

    def expects_response_at(self, at_s: float) -> bool:
        """Whether speech at that time may be its first response."""
        before_closing = self.closed_s is None or at_s < self.closed_s
        return self.frozen is None and not self.interruption and before_closing

    def began_after(self, observation: Observation) -> bool:
        """Whether the attempt's sound began after the observation, so that it cannot be the cause."""
        stimulus_offset_s = self.stimulus_offset_s(observation)
        if stimulus_offset_s is not None:
            return stimulus_offset_s < 0
        return observation.at.at_s < (self.begun_s if self.origin is None else self.origin.at_s)

    def is_before_answer(self, observation: Observation) -> bool:
        """Whether speech or words are too early to be the answer to this attempt's query."""
        stimulus_offset_s = self.stimulus_offset_s(observation)
        if stimulus_offset_s is not None:
            return stimulus_offset_s < self.timing.query_end_s - GUARD_S
        end = self.query_end
        return end is None or observation.at.at_s < end.at_s - GUARD_S

    def may_have_heard(self, observation: Transcript | Intent) -> bool:
        """Whether words are not too early for this query: before it began, or before its end without a wake event."""
        return not self.is_before_query(observation) and not (self.missed_wake and self.is_before_answer(observation))

    def is_before_query(self, observation: Transcript | Intent) -> bool:
        """Whether reported words came before this query began."""
        stimulus_offset_s = self.stimulus_offset_s(observation)
        if stimulus_offset_s is not None:
            return stimulus_offset_s < self.timing.query_start_s - GUARD_S
        # The latest moment that the time may mean: in doubt, the words belong to this query.
        return observation.at.at_s + observation.at.error_s < self._query_starts_s - GUARD_S

    @property
    def _query_starts_s(self) -> float:
        """When the query begins; the earliest possible time until the speed of a wired transfer is known."""
        if self.started is not None and self.started_audio_s is not None and self.ended is None:
            return self.started.at_s
        query_start = self.time_of(self.timing.query_start_s)
        return self.begun_s + self.timing.query_start_s if query_start is None else query_start.at_s

    def recognition(self) -> Recognition:
        """Whether words (or, with `until_understood`, intents and slots) are right; decides whether it is repeated."""
        if not self.trial.until_understood:
            return self.recognition_verdict().recognition
        frame = self.understanding()
        if frame is None or frame.right is None:
            return Recognition.UNKNOWN
        return Recognition.YES if frame.right else Recognition.NO

    def understanding(self) -> UnderstandingResult | None:
        """What the device understood of the expected intents and slots; None if the trial expects none.

        It comes from the device's intents, else from the operator, who is asked about them if they decide.
        """
        expected, by_frame = self.trial.expects, self.trial.until_understood
        if expected is None:
            return None
        frame = understanding_result(expected, self.intents, self.trial.recognised)
        if (self.trial.evidence is Evidence.DEVICE and self.intents) or not by_frame:
            return frame
        operator_verdict = None if self.answer is None else self.answer.recognised
        source = EvidenceSource.NONE if operator_verdict is None else EvidenceSource.OPERATOR
        # "No" leaves open whether the intents or the slots are wrong.
        return replace(frame, intents_right=operator_verdict or None, right=operator_verdict, source=source)

    def recognition_verdict(self) -> RecognitionVerdict:
        """Whether the query was recognised, by the device's transcripts, else by the operator, else unknown.

        If intents and slots decide, nobody is asked about words. Without transcripts they are then not assessed.
        """
        if self.trial.until_understood:
            if self.transcripts:
                return self._device_verdict()
            if self.answer is not None and self.answer.heard:
                return self._operator_verdict(replace(self.answer, recognised=None))
            return RecognitionVerdict(Recognition.NOT_ASSESSED, EvidenceSource.NONE)
        if self.trial.evidence is Evidence.NONE:
            return RecognitionVerdict(Recognition.NOT_ASSESSED, EvidenceSource.NONE)
        if self.trial.evidence is Evidence.DEVICE and self.transcripts:
            return self._device_verdict()
        if self.answer is not None:
            return self._operator_verdict(self.answer)
        by_operator = self.asked or self.trial.evidence is Evidence.OPERATOR
        return RecognitionVerdict(
            Recognition.UNKNOWN, EvidenceSource.OPERATOR if by_operator else EvidenceSource.DEVICE
        )

    def _device_verdict(self) -> RecognitionVerdict:
        comparisons = [(text, recognised(self.trial, text)) for text in self.transcripts]
        # A device may report an empty or half transcript first; the first right one counts, else the first with words.
        right = [(text, comparison) for text, comparison in comparisons if comparison.recognised]
        with_words = [(text, comparison) for text, comparison in comparisons if text.strip()]
        text, comparison = (right or with_words or comparisons)[0]
        recognition = Recognition.YES if comparison.recognised else Recognition.NO
        return RecognitionVerdict(recognition, EvidenceSource.DEVICE, text, comparison.counts)

    def _operator_verdict(self, answer: OperatorAnswer) -> RecognitionVerdict:
        operator_verdict = answer.recognised
        if not answer.heard:
            recognition = Recognition.UNKNOWN
            if operator_verdict is not None:
                recognition = Recognition.YES if operator_verdict else Recognition.NO
            return RecognitionVerdict(recognition, EvidenceSource.OPERATOR)
        comparison = recognised(self.trial, answer.heard)
        right = comparison.recognised if operator_verdict is None else operator_verdict
        recognition = Recognition.YES if right else Recognition.NO
        return RecognitionVerdict(recognition, EvidenceSource.OPERATOR, answer.heard, comparison.counts)

    @property
    def missed_wake(self) -> bool:
        """Whether the device reports wake events, heard a wake phrase, and reported none."""
        has_wake_phrase = self.trial.recipe.wake_phrase is not None
        return has_wake_phrase and ObservationKind.WAKE in self.trial.reports and self.wake is None

    def verdict(self) -> AttemptFinished:
        """The row with the result of this attempt, from the present evidence."""
        recognition_verdict = self.recognition_verdict()
        outcome, cause = self._outcome(recognition_verdict)
        if self.unread and outcome in _BY_REPORTS:
            outcome, cause = Outcome.INCONCLUSIVE, f"unread: {self.unread}"
        call = self.time_of(self.timing.wake_start_s or 0.0) or Stamp(self.begun_s)
        unheard_chime = self.host.unheard_chime(self.trial.targets[0], call.at_s)
        if outcome is Outcome.NO_WAKE and unheard_chime:
            outcome, cause = Outcome.INTERRUPTED, unheard_chime
        query_end, frozen = self.query_end, self.frozen
        latency = None
        if query_end is not None and frozen is not None:
            latency = self.host.duration_between(self.begun_s, query_end, frozen.starts)
        disturbed = self.disturbed
        # What may have begun before the query's end may be the harness's own sound, which the host played late.
        unsure = outcome is Outcome.RESPONDED and latency is not None and may_be_nothing(latency)
        if disturbed and (outcome in _BY_TIME or unsure):
            outcome, cause = Outcome.INTERRUPTED, f"host_disturbed: {disturbed}"
        return AttemptFinished(
            trial_id=self.trial.id,
            take=self.take,
            attempt=self.number,
            outcome=outcome,
            recognition=recognition_verdict.recognition,
            evidence=recognition_verdict.source,
            heard=recognition_verdict.heard,
            errors=recognition_verdict.counts.errors if recognition_verdict.counts else None,
            words=recognition_verdict.counts.words if recognition_verdict.counts else None,
            wake_delay=self._wake_delay(),
            latency=latency,
            length=between(frozen.starts, frozen.ends) if frozen else None,
            cause=cause,
            understood=self.understanding(),
            disturbed=disturbed,
            first_sound=self._first_sound(),
        )

    def _first_sound(self) -> MeasuredDuration | None:
        """From the end of the query to the device's first sound. As in the latency, an earlier answer counts too."""
        end, frozen = self.query_end, self.frozen
        if end is None:
            return None
        until_s = math.inf if self.closed_s is None else self.closed_s
        sounds = [stamp for stamp in self.sounds if end.at_s - GUARD_S <= stamp.at_s < until_s]
        sounds += [frozen.starts] if frozen is not None else []
        first = min(sounds, key=lambda stamp: stamp.at_s, default=None)
        return None if first is None else self.host.duration_between(self.begun_s, end, first)

    @property
    def disturbed(self) -> str:
        """How the host disturbed it, up to its response or the latest time for one; "" if it did not."""
        if self.frozen is not None:
            until_s = self.frozen.starts.at_s
        else:
            end = self.query_end
            until_s = math.inf if end is None else end.at_s + self.trial.reprompt.response_timeout_s
        return self.host.in_words(self.begun_s, until_s)

    def _wake_delay(self) -> MeasuredDuration | None:
        wake, end_s = self.wake, self.timing.wake_end_s
        if wake is None or end_s is None:
            return None
        if (stimulus_offset_s := self.stimulus_offset_s(wake)) is not None:
            return MeasuredDuration(stimulus_offset_s - end_s)
        end = self.time_of(end_s)
        return None if end is None else self.host.duration_between(self.begun_s, end, wake.at)

    def _outcome(self, recognition_verdict: RecognitionVerdict) -> tuple[Outcome, str]:
        """The outcome and its cause, without regard to lost reports and to the host."""
        if self.interruption:
            return Outcome.INTERRUPTED, self.interruption
        if self.timing.other_phrases and ObservationKind.WAKE in self.trial.reports and not self.opened:
            return Outcome.INTERRUPTED, f"opening_missed: {self.trial.device} did not wake to the phrase of the opening"
        recognition = self.recognition()
        if self.timing.other_phrases and self.missed_wake and recognition is Recognition.UNKNOWN:
            return Outcome.NO_WAKE, "no_wake_event"  # what it says may be its answer to the opening
        if recognition is Recognition.NO:
            cause = self._frame_cause() if self.trial.until_understood else _words_cause(recognition_verdict)
            return Outcome.MISHEARD, cause
        if self.frozen is None:
            return self._silent_outcome(recognition)
        if recognition is Recognition.UNKNOWN:
            return Outcome.INCONCLUSIVE, self._unknown_cause()
        return self._answered_outcome(self.frozen)

    def _silent_outcome(self, recognition: Recognition) -> tuple[Outcome, str]:
        """The outcome and its cause if there is no response, and the query was not misheard."""
        if self.trial.expects is not None and recognition is not Recognition.UNKNOWN:
            frame = self.understanding()
            words_only = frame is None or not frame.right
            return Outcome.UNDERSTOOD, "words_only: its frame is wrong or unknown" if words_only else ""
        if self.missed_wake and recognition is not Recognition.YES:
            return Outcome.NO_WAKE, "no_wake_event"
        limit_s = self.trial.reprompt.response_timeout_s
        if self.trial.responds:
            return Outcome.NO_RESPONSE, f"silent: no speech within {exact(limit_s)} s after the query"
        if self.trial.evidence is Evidence.DEVICE and not self.asked:
            return Outcome.NO_RESPONSE, f"silent: it reported nothing within {exact(limit_s)} s after the query"
        return Outcome.INCONCLUSIVE, self._unknown_cause()

    def _frame_cause(self) -> str:
        """Why the intents and slots are wrong."""
        frame, expected = self.understanding(), self.trial.expects
        assert frame is not None, self.trial.id
        assert expected is not None, self.trial.id
        if frame.source is EvidenceSource.OPERATOR:
            return "operator_says_no"
        if not frame.intents:
            return "nothing_understood"
        if not frame.intents_right:
            intents = plain_text(joined(frame.intents), MAX_INTENTS_CHARS)
            expected_intents = plain_text(joined(expected.intents), MAX_INTENTS_CHARS)
            return f"intents_differ: {intents} instead of {expected_intents or 'none'}"
        return "slots_differ"

    def _answered_outcome(self, response: Response) -> tuple[Outcome, str]:
        query_end = self.query_end
        latency_s = response.starts.at_s - query_end.at_s if query_end else 0.0
        if latency_s > self.trial.reprompt.response_timeout_s:
            return Outcome.LATE, f"late: {seconds(latency_s)} after the query"
        if latency_s < -GUARD_S:
            return Outcome.RESPONDED, f"talked_over: began {seconds(-latency_s)} before the query ended"
        if response.truncated:
            return Outcome.RESPONDED, f"truncated: still going after {exact(self.trial.reprompt.response_max_s)} s"
        return Outcome.RESPONDED, ""

    def _unknown_cause(self) -> str:
        if self.answer is not None:
            return "operator_unsure"
        if self.asked:
            return "operator_silent"
        if self.trial.evidence is Evidence.OPERATOR:
            return "nobody_to_ask"
        if self.trial.until_understood:
            return "no_intent: the device reported none, and there was no operator"
        return "no_transcript: the device reported none, and there was no operator"


def _words_cause(verdict: RecognitionVerdict) -> str:
    """Why the words are wrong."""
    if verdict.heard is None:
        return "operator_says_no"
    if verdict.counts is None:
        return "words_differ"
    return f"words_differ: {counted(verdict.counts.errors, 'error')} in {counted(verdict.counts.words, 'word')}"


def missing_states(attempt: Attempt) -> tuple[StateWanted, ...]:
    """Parts of the wanted state that the device has not reported yet; () if none is wanted, or it reports no state."""
    check, end = attempt.trial.effect, attempt.query_end
    if check is None or end is None or not _reports_state(attempt):
        return ()
    # The latest moment that the time may mean: in doubt, the query caused the state.
    states = [state for state in attempt.reported_states if state.at.at_s + state.at.error_s >= end.at_s]
    return tuple(
        expected for expected in check.state if not any(expected.fits(state.name, state.value) for state in states)
    )


def state_deadline_s(attempt: Attempt) -> float | None:
    """Deadline for the device's report of the wanted state; None if the trial wants none."""
    check, end = attempt.trial.effect, attempt.query_end
    if check is None or end is None or not missing_states(attempt):
        return None
    by_check_s = end.at_s + check.within_s
    return by_check_s if attempt.frozen is None else max(by_check_s, attempt.frozen.ends.at_s)


def effect_question(attempt: Attempt) -> str:
    """The question to the operator about the effect; "" if it is not to be asked now, or already answered."""
    check = attempt.trial.effect
    if check is None or check.later or attempt.effect_answered:
        return ""
    is_reported = bool(check.state) and _reports_state(attempt) and not missing_states(attempt)
    return "" if is_reported else check.question


def _reports_state(attempt: Attempt) -> bool:
    return bool(attempt.trial.connection) and ObservationKind.STATE in attempt.trial.reports


FURTHER_REPORTS_S = 0.5
"""Wait after the report that makes a frame right, because a device reports the intents of a query one by one."""


def conclusion_due_s(attempt: Attempt, since_s: float, until_s: float) -> float:
    """When the present evidence is enough to conclude an attempt, but at the latest at until_s.

    It is enough at once (`since_s`) if no evidence is expected, or the operator has answered. Right intents and slots
    conclude it soon after the query's end; wrong or missing ones after evidence_wait_s, since more may be reported.
    """
    recognition = attempt.recognition()
    if recognition is Recognition.UNKNOWN:
        return until_s
    frame, end = attempt.understanding(), attempt.query_end
    if frame is None or attempt.answer is not None:
        return min(until_s, since_s)
    last_s = max(since_s if end is None else end.at_s, attempt.last_words_s or 0.0)
    all_right = recognition is Recognition.YES and frame.right is not None
    return min(until_s, last_s + (FURTHER_REPORTS_S if all_right else attempt.trial.reprompt.evidence_wait_s))


def frame_question(trial: Trial) -> str:
    """The question to the operator about intents and slots; "" if the words decide."""
    if trial.expects is None or not trial.until_understood:
        return ""
    return f"Did the device understand {frame_text(trial.expects.intents, trial.expects.slots)}? (y / n)"

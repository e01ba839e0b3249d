"""Rows of the session log. A closed set, append-only: nothing is ever changed, a correction is a new row.

Rows of a trial belong to one of its takes. Take 1 is the planned one, and each re-run adds another. Results use the
latest take that finished. Attempts count from 1 within a take.
"""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from functools import cache
from typing import Annotated, Any, Literal

from harness.model.effect import EffectOutcome
from harness.model.frozen import frozen
from harness.model.judgment import Judgment
from harness.model.observation import Observation
from harness.model.stimulus import Clip as Clip  # rows name clips
from harness.model.time import MeasuredDuration, Stamp
from harness.model.trial import EvidenceSource, Outcome, Recognition, Trial
from harness.model.understanding import Slot


class ByKind:
    """Annotates a union: a reader of JSON then tries only the member that `kind` names."""

    def __get_pydantic_core_schema__(self, union: Any, handler: Any) -> Any:
        return handler.generate_schema(_stand_in_with_schema(union))


@cache
def _stand_in_with_schema(union: Any) -> type:
    """A type that stands in for the union and brings its schema.

    Pydantic accepts a finished schema only from a type, and generating the schema takes long.
    """
    from pydantic import Field, TypeAdapter

    schema = TypeAdapter(Annotated[union, Field(discriminator="kind")]).core_schema
    return type("UnionByKind", (), {"__get_pydantic_core_schema__": classmethod(lambda *_: schema)})


@frozen
class UnderstandingResult:
    """What was understood in one attempt of a trial that expects something.

    - intents, slots: as the device reported them, those of several events together. () means that it reported that
      there are none; None means that it reported nothing. An operator may still know whether it was right.
    - intents_right: whether the intents are right.
    - right: whether the whole frame is right (the intents and, if the trial checks them, the slots). None: unknown.
    - source: who provided this evidence.
    """

    intents: tuple[str, ...] | None = None
    slots: tuple[Slot, ...] | None = None
    intents_right: bool | None = None
    right: bool | None = None
    source: EvidenceSource = EvidenceSource.NONE


@frozen
class SessionStarted:
    """The first row of a log. Hashes are SHA-256 of files, in hexadecimal.

    - sound_path: the equipment through which sound travels, in words.
    - versions: package → version.
    - files: the files of the session's folder that must not change, relative to it, each with its hash.
    - host: (name, value) of processor, instruction set and threads; () in logs of earlier versions.
    - tied: True if the hash chain of the session's judgments begins with the hash of this row. It may be False in
      sessions of earlier versions.
    """

    session_id: str
    scenario_id: str
    title: str
    scenario_sha256: str
    bench_id: str
    bench_sha256: str
    seed: int
    sound_path: str
    versions: tuple[tuple[str, str], ...]
    trials: tuple[Trial, ...]
    files: tuple[tuple[str, str], ...] = ()
    host: tuple[tuple[str, str], ...] = ()
    tied: bool = False
    kind: Literal["session_started"] = "session_started"

    @property
    def listens(self) -> bool:
        """Whether devices listen in any trial, so that wake events are counted."""
        return any(trial.listening is not None for trial in self.trials)


@frozen
class EngineStarted:
    """A process began to run the session.

    - run: 1, and one more for each resume.
    - clock_speed: 1.0 is real time; a simulation runs faster.
    """

    run: int
    pid: int
    boot_id: str
    clock_speed: float
    kind: Literal["engine_started"] = "engine_started"


@frozen
class TrialStarted:
    """A take of a trial begins."""

    trial_id: str
    take: int
    kind: Literal["trial_started"] = "trial_started"


@frozen
class AttemptRow:
    """What rows about an attempt have in common."""

    trial_id: str
    take: int
    attempt: int


@frozen
class AttemptStarted(AttemptRow):
    """An attempt begins. The row is committed before any sound is played.

    - query_start_s, query_end_s, duration_s: times from the first sample of the stimulus. If a person speaks, they are
      0 and stimulus_sha256 is "": the row StimulusSpoken has them.
    - waited_s: time since the device last heard or said anything of this trial; None if it has not yet.
    - other_phrases: where the wake phrases of an opening begin and end, s; a wake event there is neither a hit nor a
      false accept.
    """

    play_id: str
    stimulus_sha256: str
    query_start_s: float
    query_end_s: float
    duration_s: float
    waited_s: float | None
    other_phrases: tuple[tuple[float, float], ...] = ()
    kind: Literal["attempt_started"] = "attempt_started"


@frozen
class Observed:
    """An observation, credited to an attempt (None: between trials, or of the bench as a whole)."""

    observation: Annotated[Observation, ByKind()]
    trial_id: str | None = None
    take: int | None = None
    attempt: int | None = None
    kind: Literal["observed"] = "observed"


@frozen
class ResponseFrozen(AttemptRow):
    """The first response, cut from the recording and stored.

    truncated: it was cut at response_max_s, before the device stopped speaking.
    """

    clip: Clip
    starts: Stamp
    ends: Stamp
    truncated: bool = False
    kind: Literal["response_frozen"] = "response_frozen"


@frozen
class ResponseTranscribed(AttemptRow):
    """A response as the harness's own recogniser heard it: for people, never evidence of what the device understood."""

    text: str
    recogniser: str
    kind: Literal["response_transcribed"] = "response_transcribed"


class Question(StrEnum):
    """What the operator is asked: what the device understood, whether the effect happened, or to speak the query."""

    RECOGNITION = "recognition"
    EFFECT = "effect"
    SPEECH = "speech"


@frozen
class OperatorAsked(AttemptRow):
    """The operator was asked something about an attempt. question: the text that was shown."""

    question: str
    about: Question = Question.RECOGNITION
    kind: Literal["operator_asked"] = "operator_asked"


@frozen
class AttemptFinished(AttemptRow):
    """The verdict on an attempt."""

    outcome: Outcome
    recognition: Recognition
    evidence: EvidenceSource
    heard: str | None = None
    """The words that the device understood, by its own evidence or the operator's; None if not known."""
    errors: int | None = None
    words: int | None = None
    """Word errors of `heard`, and words of the reference or alternative that fits it best. None without a
    transcript."""
    wake_delay: MeasuredDuration | None = None
    """From the end of the wake phrase to the wake event."""
    latency: MeasuredDuration | None = None
    """From the end of the query to the device's first speech."""
    length: MeasuredDuration | None = None
    """Length of the response."""
    cause: str = ""
    """Why it ended so, in words; "" if the outcome says it all."""
    understood: UnderstandingResult | None = None
    """What the device understood of the expected intents and slots; None if the trial expects none."""
    disturbed: str = ""
    """How the host disturbed the attempt before its response, in words. "" if it did not, and in logs of earlier
    versions."""
    first_sound: MeasuredDuration | None = None
    """From the end of the query to the first sound, also a chime. None if there was no sound, and in logs of earlier
    versions."""
    kind: Literal["attempt_finished"] = "attempt_finished"


@frozen
class TrialFinished:
    """A take of a trial has ended.

    deciding_attempt: the attempt whose outcome this is; None when no attempt decided it (skipped, aborted).
    """

    trial_id: str
    take: int
    outcome: Outcome
    attempts: int
    deciding_attempt: int | None
    cause: str = ""
    kind: Literal["trial_finished"] = "trial_finished"


class ReviewVerdict(StrEnum):
    """What an unmatched wake event was. It is not known until somebody reviews the event, or a rule explains it."""

    FALSE_ACCEPT = "false_accept"
    REAL_PERSON = "real_person"
    SELF_WAKE = "self_wake"
    STIMULUS_FAULT = "stimulus_fault"


@frozen
class StimulusStored:
    """The sound of a wake or command stimulus was stored, once for each sha256; wake-evaluation logs name the clip."""

    sha256: str
    clip: Clip
    kind: Literal["stimulus_stored"] = "stimulus_stored"


@frozen
class StimulusSpoken(AttemptRow):
    """What a person said at the bench, in place of a stimulus that is played. Replaces the times of AttemptStarted.

    - place: where the person was asked to stand; "" if anywhere.
    - stimulus_sha256: hash of the sound, as in its StimulusStored row.
    - query_start_s, query_end_s: where the speech begins and ends, in seconds from the first sample of that sound.
    """

    talker: str
    text: str
    place: str
    stimulus_sha256: str
    query_start_s: float
    query_end_s: float
    duration_s: float
    kind: Literal["stimulus_spoken"] = "stimulus_spoken"

    def with_measured_times(self, start: AttemptStarted) -> AttemptStarted:
        """The start of the attempt, with the sound and the times of what the person said."""
        return replace(
            start,
            stimulus_sha256=self.stimulus_sha256,
            query_start_s=self.query_start_s,
            query_end_s=self.query_end_s,
            duration_s=self.duration_s,
        )


@frozen
class EventClipped:
    """The sound around an unmatched wake event was stored. event_seq: `seq` of the event's `Observed` row."""

    event_seq: int
    clip: Clip
    kind: Literal["event_clipped"] = "event_clipped"


@frozen
class EventReviewed:
    """Somebody has said what a wake event was; the latest row counts. word: None takes an earlier answer back."""

    event_seq: int
    word: ReviewVerdict | None
    by: str
    kind: Literal["event_reviewed"] = "event_reviewed"


@frozen
class DecisionReached:
    """A sequential test has decided about a device."""

    device: str
    figure: Literal["false_accepts", "false_rejects"]
    passed: bool
    kind: Literal["decision_reached"] = "decision_reached"


@frozen
class RerunAsked:
    """Somebody wants a trial to be run again. take: number of the new take."""

    trial_id: str
    take: int
    by: str
    kind: Literal["rerun_asked"] = "rerun_asked"


@frozen
class JudgmentGiven:
    """A rater has judged an item, or has changed or withdrawn a judgment."""

    judgment: Judgment
    kind: Literal["judgment_given"] = "judgment_given"


@frozen
class EffectAnswered(AttemptRow):
    """The operator says whether the effect of a query happened; the latest row counts.

    detail: what the operator saw, in their words; "" if they wrote nothing.
    """

    word: EffectOutcome
    by: str
    detail: str = ""
    kind: Literal["effect_answered"] = "effect_answered"


@frozen
class SharesMoved:
    """A coordinator gives the items that a rater has not judged to others.

    items: (blind id of an item, the rater who gets it; "" for nobody).
    """

    round: str
    rater: str
    items: tuple[tuple[str, str], ...]
    by: str
    kind: Literal["shares_moved"] = "shares_moved"


def _require_reason(reason: str) -> None:
    if not reason.strip():
        raise ValueError("sound is removed only for a stated reason")


@frozen
class SoundsRemoved:
    """A person removes clips, by their names, to make room; all numbers stay. Written before the first clip goes."""

    clips: tuple[str, ...]
    reason: str
    by: str
    kind: Literal["sounds_removed"] = "sounds_removed"

    def __post_init__(self) -> None:
        _require_reason(self.reason)


@frozen
class SoundRedacted:
    """A person silences parts of a clip. The row is written before the file is replaced.

    - clip: name of the clip. Other rows still give the SHA-256 of its original file.
    - sha256: hash of the file after the change.
    - spans_s: the silenced parts, (start, end) in seconds from its start.
    """

    clip: str
    sha256: str
    spans_s: tuple[tuple[float, float], ...]
    reason: str
    by: str
    kind: Literal["sound_redacted"] = "sound_redacted"

    def __post_init__(self) -> None:
        _require_reason(self.reason)


@frozen
class NoteWritten:
    """Somebody has written a note, about a trial or (None) about the session."""

    text: str
    by: str
    trial_id: str | None = None
    kind: Literal["note_written"] = "note_written"


@frozen
class MarkSet:
    """A moment that somebody wants to find again."""

    label: str
    by: str
    kind: Literal["mark_set"] = "mark_set"


@frozen
class Paused:
    """The run waits.

    - reason: for people.
    - by: who paused it.
    """

    reason: str
    by: str
    kind: Literal["paused"] = "paused"


@frozen
class Resumed:
    """The run continues after a pause."""

    by: str
    kind: Literal["resumed"] = "resumed"


@frozen
class FaultMet:
    """Something outside the harness went wrong; the rows that follow say what the run did about it.

    source: id of the equipment or the part of the harness that met the fault.
    """

    source: str
    what: str
    kind: Literal["fault_met"] = "fault_met"


class SettingsStage(StrEnum):
    """ORIGINAL: found on the device before the first change. TRIAL: set for a trial. RESTORED: set back."""

    ORIGINAL = "original"
    TRIAL = "trial"
    RESTORED = "restored"


@frozen
class SettingsNoted:
    """Settings of a device, as the device has reported them.

    - source: id of the device's connection.
    - of: when they were read.
    - settings: (name, value).
    """

    source: str
    of: SettingsStage
    settings: tuple[tuple[str, str], ...]
    kind: Literal["settings_noted"] = "settings_noted"


@frozen
class LevelMeasured(AttemptRow):
    """The level of a stimulus as requested and as the microphone heard it, in dB SPL.

    The row is written if both the loudspeaker and the microphone are calibrated.

    - asked_spl: the requested active speech level of the query, together with its noise.
    - heard_spl: asked_spl, plus the level at the microphone (without its noise floor) minus that of what was played.
      None: the microphone did not hear it.
    """

    loudspeaker: str
    asked_spl: float
    heard_spl: float | None
    kind: Literal["level_measured"] = "level_measured"

    @property
    def off_db(self) -> float | None:
        """How much louder it was heard than requested; None if it was not heard."""
        return None if self.heard_spl is None else self.heard_spl - self.asked_spl


@frozen
class PowerSwitched:
    """The power of a device was switched.

    - on: False is written before the power is cut; True when the device answers again, or its time to answer is over.
    - reason: for people.
    - answered_s: time from power on until the device answered; None if it did not, or cannot show that it does.
    - after_fault: whether the cause was a fault, or a device that gave no sign of life, rather than the plan.
    """

    device: str
    on: bool
    reason: str
    answered_s: float | None = None
    after_fault: bool = False
    kind: Literal["power_switched"] = "power_switched"


@frozen
class BenchChecked:
    """The result of one check of the bench between two trials.

    - says: the result in words, with the place that it is about.
    - remedy: what a person should do; "" if nothing.
    """

    check: str
    level: Literal["ok", "warn", "fail"]
    says: str
    remedy: str = ""
    kind: Literal["bench_checked"] = "bench_checked"


class EndReason(StrEnum):
    """Why a run of a session ended. A stopped session can be resumed, an aborted one cannot."""

    COMPLETED = "completed"
    ABORTED = "aborted"
    STOPPED = "stopped"


@frozen
class SessionFinished:
    """A run of the session ended in an orderly way."""

    reason: EndReason
    kind: Literal["session_finished"] = "session_finished"


Record = (
    SessionStarted | EngineStarted | TrialStarted | AttemptStarted | Observed | ResponseFrozen | ResponseTranscribed |
    OperatorAsked | AttemptFinished | TrialFinished | StimulusStored | StimulusSpoken | LevelMeasured | EventClipped
    | EventReviewed | DecisionReached | RerunAsked | JudgmentGiven | EffectAnswered | SharesMoved | SoundsRemoved
    | SoundRedacted | NoteWritten | MarkSet | Paused | Resumed | FaultMet | SettingsNoted | PowerSwitched
    | BenchChecked | SessionFinished
)  # fmt: skip
RatingRecord = JudgmentGiven | EffectAnswered | SharesMoved | SoundsRemoved | SoundRedacted
"""The rows of the file beside a session's log: those of raters, and of the people who coordinate them or its clips."""


@frozen
class Entry:
    """A row as stored.

    - seq: counts from 1 without gaps.
    - run: the run of the engine that wrote the row (see `EngineStarted`).
    - at_s, wall_s: when the row was committed, on the monotonic clock and in Unix time.
    """

    seq: int
    run: int
    at_s: float
    wall_s: float
    record: Annotated[Record, ByKind()]

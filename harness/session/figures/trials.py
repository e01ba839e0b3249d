"""The progress of one trial: its takes, their attempts, its first response and its judgments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from enum import StrEnum
from operator import attrgetter
from typing import TYPE_CHECKING, TypeVar

from harness.base.grouping import group_by
from harness.model.bench import ObservationKind
from harness.model.choices import Grouping
from harness.model.frozen import frozen
from harness.model.judgment import Judgment, in_force
from harness.model.numbers import exact
from harness.model.record import (
    AttemptFinished,
    AttemptStarted,
    Clip,
    JudgmentGiven,
    Record,
    RerunAsked,
    ResponseFrozen,
    ResponseTranscribed,
    SessionStarted,
    StimulusSpoken,
    TrialFinished,
    TrialStarted,
)
from harness.model.scenario import TrialKind
from harness.model.stimulus import NO_OPENING, QUIET, Recording
from harness.model.time import MeasuredDuration
from harness.model.transcript import WordCounts
from harness.model.trial import LIFE_CHECK, NOT_PROVEN, EvidenceSource, Outcome, Recognition, Trial

if TYPE_CHECKING:  # slow to load, and readers of ratings count no words
    from harness.transcripts.recognition import GroupTranscripts
    from harness.wake.wake import WakeFigures

T = TypeVar("T")

DECIDED = frozenset(
    {Outcome.RESPONDED, Outcome.LATE, Outcome.MISHEARD, Outcome.NO_WAKE, Outcome.NO_RESPONSE, Outcome.UNDERSTOOD}
)
"""Outcomes that test the device. The others concern the bench or the operator."""


class TrialState(StrEnum):
    """The state of a trial. It is PLANNED also if a requested re-run has not begun."""

    PLANNED = "planned"
    RUNNING = "running"
    FINISHED = "finished"


@frozen
class AttemptProgress:
    """One attempt of a take.

    - attempt: its number. waited_s: time since the last sound before it; None if unknown.
    - verdict: its last AttemptFinished; None while it is under way.
    - words: word counts of the transcript; None without one.
    - frozen, transcribed: its stored response, and the harness's transcription of it.
    - stimulus_sha256: hash of the sound that was played.
    """

    attempt: int
    waited_s: float | None = None
    verdict: AttemptFinished | None = None
    words: WordCounts | None = None
    frozen: ResponseFrozen | None = None
    transcribed: ResponseTranscribed | None = None
    stimulus_sha256: str = ""

    @property
    def outcome(self) -> Outcome | None:
        return self.verdict.outcome if self.verdict else None

    @property
    def recognition(self) -> Recognition | None:
        return self.verdict.recognition if self.verdict else None


@frozen
class FirstResponse:
    """What a rater judges: the stored first response of the attempt that decided a take.

    - take, attempt: their numbers. truncated: whether the device was still speaking at the end of the clip.
    - transcript: by the harness's recogniser, for people; None until it is done. recogniser: its name.
    - latency: from the end of the query to the response. length: of the response.
    - judgments: without replaced ones.
    """

    trial: Trial
    take: int
    attempt: int
    clip: Clip
    truncated: bool
    transcript: str | None
    recogniser: str
    latency: MeasuredDuration | None
    length: MeasuredDuration | None
    judgments: tuple[Judgment, ...] = ()

    @property
    def judgment(self) -> Judgment | None:
        """The latest judgment that counts."""
        return self.judgments[-1] if self.judgments else None


@frozen
class TakeProgress:
    """One take of a trial. outcome: None while it is under way."""

    take: int
    attempts: tuple[AttemptProgress, ...] = ()
    outcome: Outcome | None = None
    deciding_attempt: int | None = None
    cause: str = ""

    def attempt(self, number: int) -> AttemptProgress | None:
        for attempt in self.attempts:  # a loop, since a generator takes twice as long, and this is asked often
            if attempt.attempt == number:
                return attempt
        return None

    @property
    def interrupted(self) -> int:
        """Number of interrupted attempts, which do not count towards those that the scenario allows."""
        return sum(attempt.outcome is Outcome.INTERRUPTED for attempt in self.attempts)

    @property
    def deciding(self) -> AttemptProgress | None:
        return None if self.deciding_attempt is None else self.attempt(self.deciding_attempt)

    @property
    def recognition(self) -> Recognition | None:
        return self.deciding.recognition if self.deciding else None

    @property
    def attempts_to_recognition(self) -> int | None:
        """Number of attempts until the query was recognised, without interrupted ones; None if it never was."""
        if self.deciding is None or self.recognition is not Recognition.YES:
            return None
        earlier_count = sum(
            attempt.attempt < self.deciding.attempt and attempt.outcome is not Outcome.INTERRUPTED
            for attempt in self.attempts
        )
        return earlier_count + 1


@frozen
class TrialProgress:
    """One planned trial.

    - takes: oldest first.
    - rerun_asked: whether another take will follow.
    """

    trial: Trial
    takes: tuple[TakeProgress, ...] = ()
    judgments: tuple[Judgment, ...] = ()
    rerun_asked: bool = False

    @property
    def counting(self) -> TakeProgress | None:
        """The take that results use: the latest that finished."""
        for take in reversed(self.takes):
            if take.outcome is not None:
                return take
        return None

    @property
    def attempts(self) -> int | None:
        """Number of attempts of the take that counts, or of the unproven take before it; None before any take ends."""
        take = self.counting
        if take is not None and take.cause.startswith(NOT_PROVEN):
            before = self.takes[: self.takes.index(take)]
            take = next((earlier for earlier in reversed(before) if earlier.attempts), take)
        return None if take is None else len(take.attempts)

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
        """The outcome of the take that counts."""
        return self.counting.outcome if self.counting else None

    @property
    def response(self) -> FirstResponse | None:
        """The first response to judge; None unless the take that counts was answered, and always in memory probes.

        Memory probes repeat the same two queries, and their answers are only searched for words that show memory.
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
    def last_verdict(self) -> AttemptFinished | None:
        """The verdict of the attempt that decided the counting take, or of its last attempt; None if none has ended."""
        take = self.counting
        if take is None or not take.attempts:
            return None
        return (take.deciding or take.attempts[-1]).verdict

    @property
    def latest_response(self) -> FirstResponse | None:
        """The last stored response, for display but not for judging."""
        for take in reversed(self.takes):
            for attempt in reversed(take.attempts):
                if response := self.response_of(take, attempt):
                    return response
        return None

    def response_of(self, take: TakeProgress, attempt: AttemptProgress) -> FirstResponse | None:
        """The response stored in an attempt, with the judgments on its clip."""
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
                judgment
                for judgment in self.judgments
                if judgment.clip_sha256 == clip.sha256 and judgment.attempt == attempt.attempt
            ),
        )


AttemptRows = AttemptStarted | StimulusSpoken | AttemptFinished | ResponseFrozen | ResponseTranscribed
TrialRow = RerunAsked | TrialStarted | TrialFinished | AttemptRows
ROWS_OF_TRIALS = """
    'session_started', 'judgment_given', 'rerun_asked', 'trial_started', 'trial_finished', 'attempt_started',
    'stimulus_spoken', 'attempt_finished', 'response_frozen', 'response_transcribed'
"""
"""Kinds of the rows that `SessionTrials` needs, as SQL writes them in a list: a quarter of the rows, or less."""


class SessionTrials:
    """Takes a log's rows in their order, and keeps the state of each trial; not thread-safe.

    words: counts the words of an attempt; None skips counting, which is most of the work.
    """

    def __init__(self, words: Callable[[Trial, AttemptFinished], WordCounts | None] | None = None) -> None:
        self.session: SessionStarted | None = None
        self.unplanned_rows = 0
        """Number of rows that name a trial that is not planned."""
        self._words = words
        self._trials: dict[str, TrialProgress] = {}
        self._judgments: dict[str, list[Judgment]] = {}
        self._judgment_ids: set[str] = set()

    @property
    def trials(self) -> tuple[TrialProgress, ...]:
        """The trials in the order of playing."""
        return tuple(self._trials.values())

    def trial(self, trial_id: str) -> TrialProgress | None:
        return self._trials.get(trial_id)

    def add(self, record: Record) -> bool:
        """Adds one row. Returns whether it changes a trial."""
        match record:
            case SessionStarted():
                self.session = record
                self._trials = {trial.id: TrialProgress(trial) for trial in record.trials}
                return True
            case JudgmentGiven(judgment=judgment) if not judgment.program:  # programs are kept apart from people
                trial = self._find(judgment.trial_id)
                if trial is None or judgment.id in self._judgment_ids:
                    return False
                self._judgment_ids.add(judgment.id)
                rows = self._judgments.setdefault(judgment.trial_id, [])
                rows.append(judgment)
                self._trials[judgment.trial_id] = replace(trial, judgments=in_force(rows))
                return True
            case _ if isinstance(record, TrialRow):
                trial = self._find(record.trial_id)
                if trial is not None:
                    self._trials[record.trial_id] = self._apply(trial, record)
                return trial is not None
            case _:
                return False

    def _find(self, trial_id: str) -> TrialProgress | None:
        """The trial that a row names; None if it is not planned, which is counted. Life checks do not count."""
        trial = self._trials.get(trial_id)
        if trial is None and not trial_id.startswith(LIFE_CHECK):
            self.unplanned_rows += 1
        return trial

    def _apply(self, trial: TrialProgress, row: TrialRow) -> TrialProgress:
        """The trial after a row about it."""
        if isinstance(row, RerunAsked):
            return replace(trial, rerun_asked=True)
        # Made directly, not by `replace`, which takes three times as long: most rows of a trial come through here.
        take = next((candidate for candidate in trial.takes if candidate.take == row.take), None)
        take = take or TakeProgress(row.take)
        match row:
            case TrialStarted():
                return _with_take(trial, take, rerun_asked=False)
            case TrialFinished():
                # A trial may end before it began (skipped because the bench lacks something), re-runs included.
                take = TakeProgress(take.take, take.attempts, row.outcome, row.deciding_attempt, row.cause)
                return _with_take(trial, take, rerun_asked=False)
        attempts = _insert(take.attempts, self._attempt(trial.trial, take, row), key=attrgetter("attempt"))
        take = TakeProgress(take.take, attempts, take.outcome, take.deciding_attempt, take.cause)
        return _with_take(trial, take, rerun_asked=trial.rerun_asked)

    def _attempt(self, trial: Trial, take: TakeProgress, row: AttemptRows) -> AttemptProgress:
        """The attempt after a row about it."""
        attempt = take.attempt(row.attempt) or AttemptProgress(row.attempt)
        waited_s, sha256 = attempt.waited_s, attempt.stimulus_sha256
        verdict, words = attempt.verdict, attempt.words
        response, transcribed = attempt.frozen, attempt.transcribed
        match row:
            case AttemptStarted():
                waited_s, sha256 = row.waited_s, row.stimulus_sha256
            case StimulusSpoken():
                sha256 = row.stimulus_sha256
            case AttemptFinished():
                verdict, words = row, None if self._words is None else self._words(trial, row)
            case ResponseFrozen():
                response = row
            case ResponseTranscribed():
                transcribed = row
        return AttemptProgress(
            row.attempt,
            waited_s=waited_s,
            verdict=verdict,
            words=words,
            frozen=response,
            transcribed=transcribed,
            stimulus_sha256=sha256,
        )


def _with_take(trial: TrialProgress, take: TakeProgress, *, rerun_asked: bool) -> TrialProgress:
    takes = _insert(trial.takes, take, key=attrgetter("take"))
    return TrialProgress(trial.trial, takes, trial.judgments, rerun_asked)


def _insert(entries: tuple[T, ...], new: T, key: Callable[[T], int]) -> tuple[T, ...]:
    """The entries in the order of their keys, with `new` added, or in place of the one with the same key."""
    others = [entry for entry in entries if key(entry) != key(new)]
    return tuple(sorted((*others, new), key=key)) if others else (new,)


TESTED = DECIDED | {Outcome.INCONCLUSIVE}
"""Outcomes of takes whose attempts test the device."""


@frozen
class AttemptTranscript:
    """What a device understood in one attempt.

    - attempt: its number. heard: the transcript as it came; None without one. counts: its word counts.
    - typed: whether an operator typed it, who read it from the device or guessed it from the answer.
    """

    attempt: int
    heard: str | None = None
    counts: WordCounts | None = None
    typed: bool = False


@frozen
class TranscribedTrial:
    """One trial with one device.

    - first: its first attempt that tests the device.
    - final: the one that decided it.

    For a command, both are its only attempt.

    - final: None if the attempt that decided was interrupted.
    """

    trial: Trial
    device: str
    first: AttemptTranscript
    final: AttemptTranscript | None


def tested_attempts(take: TakeProgress) -> list[AttemptProgress]:
    """The attempts that test the device: ended, and not interrupted."""
    return [attempt for attempt in take.attempts if attempt.outcome not in (None, Outcome.INTERRUPTED)]


def query_transcript(trial: TrialProgress) -> TranscribedTrial | None:
    """The transcript of a query, from its latest finished take; None if it tests nothing, and for other kinds."""
    take = trial.counting
    is_query = trial.trial.listening is None and trial.trial.memory is None and _expects_transcripts(trial.trial)
    if take is None or take.outcome not in TESTED or not is_query:
        return None
    attempts = tested_attempts(take)
    if not attempts:
        return None
    final = next((_transcript_of(attempt) for attempt in attempts if attempt.attempt == take.deciding_attempt), None)
    return TranscribedTrial(trial.trial, trial.trial.device, _transcript_of(attempts[0]), final)


def _expects_transcripts(trial: Trial) -> bool:
    """Whether transcripts are expected, which they are not from a device that only reports intents."""
    return not trial.until_understood or ObservationKind.TRANSCRIPT in trial.reports


def command_transcripts(wake: WakeFigures) -> Iterator[TranscribedTrial]:
    """The transcripts of commands, one for each device that reports transcripts."""
    for device in wake.snapshot().devices:
        for play in wake.plays(device.device):
            if play.has_transcripts:
                counts = play.reading.counts
                attempt = AttemptTranscript(play.row.attempt, None if counts is None else play.reading.heard, counts)
                yield TranscribedTrial(play.trial, play.target.device, attempt, attempt)


def heard_in(trials: Iterable[TrialProgress], wake: WakeFigures | None = None) -> tuple[TranscribedTrial, ...]:
    """The transcripts of a session: its queries, then its commands, each in the order of the plan."""
    queries = (query for trial in trials if (query := query_transcript(trial)) is not None)
    return (*queries, *command_transcripts(wake)) if wake else tuple(queries)


@frozen
class FirstAndFinalWords:
    """The words understood in a group of trials, at the first attempt and at the one that decided."""

    first: GroupTranscripts
    final: GroupTranscripts


def words_of(trials: Iterable[TranscribedTrial]) -> FirstAndFinalWords:
    """The words of all these trials, added up."""
    heard_trials = list(trials)
    return FirstAndFinalWords(
        _words((heard.trial.query_id, heard.first) for heard in heard_trials),
        _words((heard.trial.query_id, heard.final) for heard in heard_trials if heard.final is not None),
    )


def _words(attempts: Iterable[tuple[str, AttemptTranscript]]) -> GroupTranscripts:
    """The words of these attempts, added up. attempts: (id of the query, transcript)."""
    from harness.transcripts.recognition import GroupTranscripts

    transcripts = list(attempts)
    typed_count = sum(transcript.typed for _, transcript in transcripts)
    return GroupTranscripts.of(((query, transcript.counts) for query, transcript in transcripts), typed_count)


def by_group(trials: Iterable[TranscribedTrial], grouping: str) -> tuple[tuple[str, FirstAndFinalWords], ...]:
    """Label → words, in the order in which labels first occur; "" for trials that have none."""
    groups = group_by((group_of(heard, grouping), heard) for heard in trials)
    return tuple((label, words_of(group)) for label, group in groups.items())


def group_of(heard: TranscribedTrial, grouping: str) -> str:
    """The label of one device's result of a trial; see `label_of`."""
    return label_of(heard.trial, heard.device, grouping)


def label_of(trial: Trial, device: str, grouping: str) -> str:
    """The label of a trial: from the matrix if that has such an axis, else from how it sounds; "" if it has none.

    grouping: a `Grouping`, or a column of a list of recordings. A column cannot replace what a trial is about, such as
    its device.
    """
    recipe = trial.recipe
    match grouping:
        case Grouping.CONDITION:
            return trial.condition
        case Grouping.DEVICE:
            return device
        case Grouping.QUERY:
            return trial.query_id
        case Grouping.QUERY_CLASS:
            return trial.query_class
        case Grouping.KIND:
            return (TrialKind.QUERY if trial.memory is not None else trial.kind).value
        case Grouping.RECORDING:
            return trial.recording
        case Grouping.VOICE if isinstance(recipe.query, Recording):
            return "recording"  # the voice of the matrix speaks only the wake phrase
    label = dict(trial.conditions).get(str(grouping))
    if label is not None:
        return label
    match grouping:
        case Grouping.VOICE:
            return recipe.voice.label()
        case Grouping.LEVEL if recipe.as_recorded:
            return "as recorded"
        case Grouping.LEVEL:
            return exact(recipe.level_dbfs)
        case Grouping.GAP:
            return exact(recipe.gap_ms)
        case Grouping.NOISE:
            return QUIET if recipe.noise is None else recipe.noise.label()
        case Grouping.OPENING:
            return NO_OPENING if recipe.opening is None else recipe.opening.label()
        case Grouping.ROOM if recipe.placement is not None:
            return recipe.placement.room.id
        case Grouping.DISTANCE if recipe.placement is not None:
            return exact(recipe.placement.distance_m)
        case Grouping.ANGLE if recipe.placement is not None:
            return exact(recipe.placement.angle_deg)
        case _:
            return ""


def _transcript_of(attempt: AttemptProgress) -> AttemptTranscript:
    verdict = attempt.verdict
    heard = verdict.heard if verdict else None
    typed = verdict is not None and heard is not None and verdict.evidence is EvidenceSource.OPERATOR
    return AttemptTranscript(attempt.attempt, heard, attempt.words, typed)


def deciding_words(take: TakeProgress | None) -> WordCounts | None:
    """The word counts of the attempt that decided a take; None without a transcript."""
    return take.deciding.words if take and take.deciding else None

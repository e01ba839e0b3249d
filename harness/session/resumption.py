"""State of a session, computed from the rows of its log, for resuming and for commands."""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from harness.base.places import SessionFolder
from harness.base.row_store import read_entries
from harness.base.user_text import checked_text
from harness.model.feed import (
    AnswerEffect,
    AnswerOperator,
    Command,
    Judge,
    Pause,
    Rerun,
    Review,
    SetMark,
    Skip,
    WriteNote,
)
from harness.model.observation import Earcon, SpeechEnded, SpeechStarted, StimulusEnded, StimulusStarted, Wake
from harness.model.record import (
    AttemptFinished,
    AttemptStarted,
    EffectAnswered,
    EndReason,
    EngineStarted,
    Entry,
    EventReviewed,
    JudgmentGiven,
    MarkSet,
    NoteWritten,
    Observed,
    PowerSwitched,
    RerunAsked,
    ResponseFrozen,
    ResponseTranscribed,
    SessionFinished,
    SessionStarted,
    SettingsNoted,
    SettingsStage,
    StimulusStored,
    TrialFinished,
    TrialStarted,
)
from harness.model.stimulus import Clip
from harness.model.trial import EvidenceSource, Outcome, Recognition, Trial
from harness.session.liveness import Liveness
from harness.session.take import ENGINE_ENDED

TakeKey = tuple[str, int]
"""A take: the trial's id, and the number of the take."""


@dataclass(slots=True)
class Resumption:
    """State of a session after the rows that were added. Without rows, the session has not begun."""

    takes: dict[TakeKey, None] = field(default_factory=dict)
    """All known takes, planned and re-run, in the order of playing."""
    begun: set[TakeKey] = field(default_factory=set)
    """Takes that have begun, finished or not."""
    finished: dict[TakeKey, TrialFinished] = field(default_factory=dict)
    """Take → its verdict."""
    attempts: dict[TakeKey, dict[int, AttemptFinished]] = field(default_factory=dict)
    """Take → number of the attempt → its latest row."""
    open_attempts: dict[TakeKey, set[int]] = field(default_factory=dict)
    """Take → numbers of attempts that have begun and have no verdict."""
    response_hashes: dict[tuple[str, int, int], str] = field(default_factory=dict)
    """(trial, take, attempt) → SHA-256 of the response's clip."""
    untranscribed: dict[tuple[str, int, int], Clip] = field(default_factory=dict)
    """(trial, take, attempt) → clip of a response without a transcription by the harness."""
    judgments: set[str] = field(default_factory=set)
    """Ids of the judgments."""
    wakes: set[int] = field(default_factory=set)
    """`seq` of the rows of wake events."""
    was_cut: bool = False
    """Whether the last attempt was interrupted or skipped, so that its device may still answer."""
    stored_stimuli: set[str] = field(default_factory=set)
    """SHA-256 of the stimuli whose sound is stored."""
    last_sound_s: float | None = None
    """When the last sound was committed, on the session's clock; None before the first."""
    clock_identity: tuple[str, float] | None = None
    """Boot id and speed of the session's clock in the last run; None before the first."""
    ended: EndReason | None = None
    """Why the session ended; None if it is open."""
    rows: int = 0
    """`seq` of the last row; 0 without rows."""
    originals: dict[str, dict[str, str]] = field(default_factory=dict)
    """Connection → its settings before the first change, name → value."""
    unpowered: set[str] = field(default_factory=set)
    """Devices whose power was cut and is not known to be back."""
    liveness: Liveness = field(default_factory=Liveness)

    @classmethod
    def of(cls, entries: Iterable[Entry], plan: Iterable[Trial] = ()) -> Resumption:
        """The state after all rows of a log. plan: the trials, if the log's first row does not list them."""
        trials = tuple(plan)
        resumption = cls(takes=dict.fromkeys((trial.id, 1) for trial in trials), liveness=Liveness(trials))
        for entry in entries:
            resumption.add(entry)
        return resumption

    def add(self, entry: Entry) -> None:
        """Adds the next row of the log."""
        self.rows = entry.seq
        self.liveness.add(entry.record, entry.at_s)
        match entry.record:
            case Observed(observation=Wake()):  # most rows
                self.wakes.add(entry.seq)
            case SessionStarted(trials=trials):
                for trial in trials:
                    self.add_take((trial.id, 1))
            case EngineStarted() as row:
                self.start_clock(row, entry.at_s)
            case TrialStarted(trial_id=trial_id, take=take):
                self.add_take((trial_id, take))
                self.begun.add((trial_id, take))
                self.ended = None
            case AttemptStarted() as row:
                self.open_attempts.setdefault((row.trial_id, row.take), set()).add(row.attempt)
                self.last_sound_s, self.was_cut = entry.at_s, False
            case AttemptFinished() as row:
                self.was_cut = row.outcome in (Outcome.INTERRUPTED, Outcome.SKIPPED)
                key = (row.trial_id, row.take)
                self.attempts.setdefault(key, {})[row.attempt] = row
                self.open_attempts.get(key, set()).discard(row.attempt)
            case TrialFinished() as row:
                self.finished.setdefault((row.trial_id, row.take), row)
            case RerunAsked(trial_id=trial_id, take=take):
                self.add_take((trial_id, take))
            case ResponseFrozen() as row:
                self.response_hashes[(row.trial_id, row.take, row.attempt)] = row.clip.sha256
                self.untranscribed[(row.trial_id, row.take, row.attempt)] = row.clip
            case ResponseTranscribed() as row:
                self.untranscribed.pop((row.trial_id, row.take, row.attempt), None)
            case JudgmentGiven(judgment=judgment):
                self.judgments.add(judgment.id)
            case SettingsNoted(source=source, of=SettingsStage.ORIGINAL, settings=settings):
                # The first value noted stays: a resumed run finds what an earlier one has set.
                self.originals[source] = {**dict(settings), **self.originals.get(source, {})}
            case PowerSwitched(device=device, on=on):
                if on:
                    self.unpowered.discard(device)
                else:
                    self.unpowered.add(device)
            case StimulusStored(sha256=sha256):
                self.stored_stimuli.add(sha256)
            case Observed(observation=StimulusStarted() | StimulusEnded() | SpeechStarted() | SpeechEnded() | Earcon()):
                self.last_sound_s = entry.at_s
            case SessionFinished(reason=reason):
                self.ended = reason
            case _:
                pass

    def start_clock(self, started: EngineStarted, at_s: float) -> None:
        """Records that a run begins. After a reboot its clock is another, so the full wait between sounds applies."""
        clock_identity = started.boot_id, started.clock_speed
        if self.last_sound_s is not None and self.clock_identity not in (None, clock_identity):
            self.last_sound_s = at_s
        self.clock_identity = clock_identity

    def add_take(self, take: TakeKey) -> None:
        """Adds a take to play, after the known ones."""
        self.takes[take] = None

    def pending(self) -> tuple[TakeKey, ...]:
        """Takes without a verdict: the one that has begun, then the others in the order of playing."""
        unfinished = [take for take in self.takes if take not in self.finished]
        # False sorts first, and ties keep their order.
        return tuple(sorted(unfinished, key=lambda take: take not in self.begun))

    def next_take(self, trial_id: str) -> int:
        """Number of a new take of that trial."""
        return 1 + max((take for earlier_id, take in self.takes if earlier_id == trial_id), default=0)

    def is_in_play(self, trial_id: str) -> bool:
        """Whether a take of that trial is waiting or being played."""
        return any(other_id == trial_id and (other_id, take) not in self.finished for other_id, take in self.takes)

    def interrupted_attempts(self) -> tuple[AttemptFinished, ...]:
        """Rows to add for the attempts that the end of an engine has interrupted."""
        return tuple(
            AttemptFinished(
                trial_id,
                take,
                number,
                outcome=Outcome.INTERRUPTED,
                recognition=Recognition.UNKNOWN,
                evidence=EvidenceSource.NONE,
                cause=f"{ENGINE_ENDED}: during the attempt",
            )
            for (trial_id, take), numbers in self.open_attempts.items()
            for number in sorted(numbers)
        )


def read_takes(folder: Path) -> Resumption:
    """Reads which takes of a session are finished, begun and left, and how it ended. The other fields stay empty.

    This reads a tenth of the rows. An engine that resumes the session reads them all. Raises LogError.
    """
    return Resumption.of(read_entries(SessionFolder(folder).demand().database, kinds=_ROWS_OF_TAKES))


_ROWS_OF_TAKES = "'session_started', 'trial_started', 'trial_finished', 'rerun_asked', 'session_finished'"


def with_checked_text(command: Command) -> Command:
    """The command with its free text as the log stores it. Raises InputError for a text that it cannot store."""
    match command:
        case Pause(reason=text) | Skip(reason=text):
            return replace(command, reason=checked_text(text, "the reason"))
        case WriteNote(text=text):
            return replace(command, text=checked_text(text, "the note"))
        case SetMark(label=text):
            return replace(command, label=checked_text(text, "the label"))
        case AnswerOperator(heard=text):
            return replace(command, heard=checked_text(text, "the answer"))
        case AnswerEffect(detail=text):
            return replace(command, detail=checked_text(text, "the answer"))
        case Judge(judgment=judgment):
            return replace(command, judgment=replace(judgment, comment=checked_text(judgment.comment)))
        case _:
            return command


Row = NoteWritten | MarkSet | RerunAsked | JudgmentGiven | EventReviewed | EffectAnswered
Request = WriteNote | SetMark | Rerun | Judge | Review | AnswerEffect


def row_for(request: Request, resumption: Resumption, trial_ids: Container[str]) -> Row | str | None:
    """The row to commit for a request, or the reason for refusing it; None if the request repeats a committed one."""
    match request:
        case WriteNote(text=text, by=by, trial_id=trial_id):
            if trial_id is not None and trial_id not in trial_ids:
                return _unknown_trial_text(trial_id)
            return NoteWritten(text, by, trial_id) if text.strip() else "a note needs some text"
        case SetMark(label=label, by=by):
            return MarkSet(label, by)
        case Rerun(trial_id=trial_id, by=by):
            if trial_id not in trial_ids:
                return _unknown_trial_text(trial_id)
            if resumption.is_in_play(trial_id):
                return f"{trial_id} is already waiting or being played"
            return RerunAsked(trial_id, resumption.next_take(trial_id), by)
        case Review(event_seq=event_seq, word=word, by=by):
            if event_seq not in resumption.wakes:
                return f"row {event_seq} of this session is not a wake event"
            return EventReviewed(event_seq, word, by)
        case AnswerEffect():
            return _effect_row(request, resumption, trial_ids)
        case Judge():
            return _judgment_row(request, resumption, trial_ids)


def _effect_row(request: AnswerEffect, resumption: Resumption, trial_ids: Container[str]) -> Row | str:
    """As `row_for`. An answer that names no take is about the latest take with a response in that attempt."""
    trial_id, attempt = request.trial_id, request.attempt
    if trial_id not in trial_ids:
        return _unknown_trial_text(trial_id)
    takes = [take for other_id, take, number in resumption.response_hashes if (other_id, number) == (trial_id, attempt)]
    take = max(takes, default=0) if request.take is None else request.take
    if take not in takes:
        return f"attempt {attempt} of {trial_id} has no response whose effect could be judged"
    return EffectAnswered(trial_id, take, attempt, request.word, request.by, request.detail)


def _judgment_row(request: Judge, resumption: Resumption, trial_ids: Container[str]) -> Row | str | None:
    judgment = request.judgment
    if judgment.id in resumption.judgments:
        return None
    if judgment.trial_id not in trial_ids:
        return _unknown_trial_text(judgment.trial_id)
    clip_hashes = {
        sha256
        for (trial_id, _, attempt), sha256 in resumption.response_hashes.items()
        if trial_id == judgment.trial_id and attempt == judgment.attempt
    }
    if not clip_hashes:
        return f"attempt {judgment.attempt} of {judgment.trial_id} has no response to judge"
    if judgment.clip_sha256 not in clip_hashes:
        return f"attempt {judgment.attempt} of {judgment.trial_id} has a different response"
    if judgment.replaces is not None and judgment.replaces not in resumption.judgments:
        return f"this session has no judgment {judgment.replaces}, which the new one replaces"
    return JudgmentGiven(judgment)


def _unknown_trial_text(trial_id: str) -> str:
    return f"this session has no trial {trial_id!r}"

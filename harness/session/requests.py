"""What clients may have written into the log: a command becomes a row, or a refusal that says why."""

from __future__ import annotations

from collections.abc import Container

from harness.model.feed import AnswerEffect, Judge, Rerun, Review, SetMark, WriteNote
from harness.model.record import EffectAnswered, EventReviewed, JudgmentGiven, MarkSet, NoteWritten, RerunAsked
from harness.session.resumption import Resumption

Row = NoteWritten | MarkSet | RerunAsked | JudgmentGiven | EventReviewed | EffectAnswered
Request = WriteNote | SetMark | Rerun | Judge | Review | AnswerEffect


def row_for(request: Request, standing: Resumption, trial_ids: Container[str]) -> Row | str | None:
    """The row to commit; a text that says why it is refused; None when it is committed already (sent again)."""
    match request:
        case WriteNote(text=text, by=by, trial_id=trial_id):
            if trial_id is not None and trial_id not in trial_ids:
                return _unknown(trial_id)
            return NoteWritten(text, by, trial_id) if text.strip() else "a note needs a text"
        case SetMark(label=label, by=by):
            return MarkSet(label, by)
        case Rerun(trial_id=trial_id, by=by):
            if trial_id not in trial_ids:
                return _unknown(trial_id)
            if standing.in_play(trial_id):
                return f"{trial_id} is still to be played"
            return RerunAsked(trial_id, standing.next_take(trial_id), by)
        case Review(event_seq=event_seq, word=word, by=by):
            if event_seq not in standing.wakes:
                return f"row {event_seq} of this session is no wake event"
            return EventReviewed(event_seq, word, by)
        case AnswerEffect():
            return _effect(request, standing, trial_ids)
        case Judge():
            return _judgment(request, standing, trial_ids)


def _effect(request: AnswerEffect, standing: Resumption, trial_ids: Container[str]) -> Row | str:
    trial_id, attempt = request.trial_id, request.attempt
    if trial_id not in trial_ids:
        return _unknown(trial_id)
    takes = [take for known, take, number in standing.frozen if (known, number) == (trial_id, attempt)]
    take = max(takes, default=0) if request.take is None else request.take
    if take not in takes:
        return f"attempt {attempt} of {trial_id} has no response whose effect could be told"
    return EffectAnswered(trial_id, take, attempt, request.word, request.by, request.detail)


def _judgment(request: Judge, standing: Resumption, trial_ids: Container[str]) -> Row | str | None:
    judgment = request.judgment
    if judgment.id in standing.judgments:
        return None
    if judgment.trial_id not in trial_ids:
        return _unknown(judgment.trial_id)
    clips = {
        clip
        for (trial_id, _, attempt), clip in standing.frozen.items()
        if trial_id == judgment.trial_id and attempt == judgment.attempt
    }
    if not clips:
        return f"attempt {judgment.attempt} of {judgment.trial_id} has no response to judge"
    if judgment.clip_sha256 not in clips:
        return f"the response of attempt {judgment.attempt} of {judgment.trial_id} is another one"
    if judgment.replaces is not None and judgment.replaces not in standing.judgments:
        return f"there is no judgment {judgment.replaces} to replace"
    return JudgmentGiven(judgment)


def _unknown(trial_id: str) -> str:
    return f"this session has no trial {trial_id!r}"

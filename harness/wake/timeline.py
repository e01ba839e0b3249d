"""The marks on a device's timeline."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from harness.model.scenario import TrialKind
from harness.wake.unmatched import UnmatchedEvents
from harness.wake.wake_plays import CommandResult, Play, PlayState
from harness.wake.wake_progress import MarkKind, TimelineMark

MAX_MARKS = 200


def timeline(subjects: Sequence[Play | int], events: UnmatchedEvents) -> tuple[TimelineMark, ...]:
    """The latest MAX_MARKS marks, in the order of their times.

    subjects: plays, and row numbers of events that lie in no play, in the order in which they became known.
    """
    marks: list[TimelineMark] = []
    for subject in reversed(subjects):
        new = _event_marks([subject], "", events) if isinstance(subject, int) else _play_marks(subject, events)
        marks.extend(reversed(list(new)))
        if len(marks) >= MAX_MARKS:
            break
    return tuple(sorted(marks[:MAX_MARKS], key=lambda mark: mark.start_s))


def _play_marks(play: Play, events: UnmatchedEvents) -> Iterator[TimelineMark]:
    if play.started is None:
        return
    trial_id = play.trial.id
    start_s, end_s = play.host_s(0.0), play.host_s(max(0.0, play.end_s - play.start_s))
    if play.state is PlayState.OUTSIDE:
        yield TimelineMark(MarkKind.INTERRUPTED, start_s, end_s, trial_id)
    elif play.kind is TrialKind.AMBIENT:
        yield TimelineMark(MarkKind.AMBIENT, start_s, end_s, trial_id)
    elif play.state is PlayState.COUNTED:
        phrase_start_s, phrase_end_s = play.host_s(play.row.query_start_s), play.host_s(play.row.query_end_s)
        hit_seq = play.reading.hit.seq if play.reading.hit else None
        yield TimelineMark(mark_of(play), phrase_start_s, phrase_end_s, trial_id, hit_seq)
    yield from _event_marks([event.seq for event in play.events[-MAX_MARKS:]], trial_id, events)


def mark_of(play: Play) -> MarkKind:
    """The mark for the result of a play."""
    woke = play.reading.hit is not None
    match play.kind:
        case TrialKind.AMBIENT:
            return MarkKind.AMBIENT
        case TrialKind.PROBE:
            return MarkKind.PROBE if woke else MarkKind.PROBE_UNHEARD
        case TrialKind.COMMAND:
            return MarkKind.HIT if play.reading.command is CommandResult.MATCH else MarkKind.FALSE_REJECT
        case _:
            return MarkKind.HIT if woke else MarkKind.FALSE_REJECT


def _event_marks(seqs: Iterable[int], trial_id: str, events: UnmatchedEvents) -> Iterator[TimelineMark]:
    for seq in seqs:
        event = events.event_with(seq)
        if event is not None:
            yield TimelineMark(MarkKind.UNMATCHED, event.at.at_s, event.at.at_s, trial_id, seq)

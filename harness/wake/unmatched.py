"""Wake events that match no stimulus, with their explanations, and their counts."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace

from harness.model.record import Clip, ReviewVerdict
from harness.wake.wake_progress import UnmatchedWake

SHOWN = 200


@dataclass(slots=True)
class EventCounts:
    """Numbers of unmatched events of one device.

    - words: by the explanation of a review or a rule; None for those without one.
    - before: false accepts before review: events that no rule explains. after: those after review, which neither a rule
      nor a review explains.
    - in_vocabulary: events in wake trials and commands that count. uncounted: events in other trials and in probes.
    - outside: events outside of exposure. pending: events in the current attempt.
    """

    words: Counter[ReviewVerdict | None] = field(default_factory=Counter)
    before: int = 0
    after: int = 0
    in_vocabulary: int = 0
    outside: int = 0
    uncounted: int = 0
    pending: int = 0


class UnmatchedEvents:
    """All unmatched events of a session by the number of their row; counts are updated with every change."""

    def __init__(self, count_in_vocabulary: bool = False) -> None:
        self.count_in_vocabulary = count_in_vocabulary
        self._events: dict[int, UnmatchedWake] = {}
        self._pending_events: set[int] = set()
        self._order: list[int] = []
        self._counts: defaultdict[str, EventCounts] = defaultdict(EventCounts)
        self._clips: dict[int, Clip] = {}
        self._reviews: dict[int, tuple[ReviewVerdict | None, str]] = {}

    def put(self, event: UnmatchedWake, pending: bool = False) -> None:
        """Adds or replaces an event. pending: whether it is shown, but not counted yet."""
        self.drop(event.seq)
        self._events[event.seq] = self._with_review(event)
        if pending:
            self._pending_events.add(event.seq)
        insort(self._order, event.seq)
        self._add(event.seq, 1)

    def drop(self, seq: int) -> None:
        """Removes an event that matches a stimulus, or is part of another event."""
        if seq not in self._events:
            return
        self._add(seq, -1)
        del self._events[seq]
        self._pending_events.discard(seq)
        del self._order[bisect_left(self._order, seq)]

    def review(self, seq: int, word: ReviewVerdict | None, reviewer: str) -> str | None:
        """Sets an event's review; None removes it. Returns the device whose counts changed, or None."""
        self._reviews[seq] = (word, reviewer)
        return self._update_event(seq)

    def clip(self, seq: int, clip: Clip) -> str | None:
        self._clips[seq] = clip
        return self._update_event(seq)

    def event_with(self, seq: int) -> UnmatchedWake | None:
        return self._events.get(seq)

    def latest(self) -> tuple[UnmatchedWake, ...]:
        return tuple(self._events[seq] for seq in reversed(self._order[-SHOWN:]))

    def every(self, device: str) -> tuple[UnmatchedWake, ...]:
        return tuple(event for seq in self._order if (event := self._events[seq]).device == device)

    def counts(self, device: str) -> EventCounts:
        return self._counts[device]

    def counted(self, event: UnmatchedWake, reviewed: bool) -> bool:
        if not event.exposed or (event.in_vocabulary and not self.count_in_vocabulary):
            return False
        return event.false_accept(reviewed)

    def _update_event(self, seq: int) -> str | None:
        if (event := self._events.get(seq)) is None:
            return None
        self._add(seq, -1)
        self._events[seq] = self._with_review(event)
        self._add(seq, 1)
        return event.device

    def _with_review(self, event: UnmatchedWake) -> UnmatchedWake:
        word, reviewer = self._reviews.get(event.seq, (None, ""))
        word, reviewer, clip = word or event.rule, reviewer if word else "", self._clips.get(event.seq)
        # Nearly always, and `replace` is slow.
        if (event.word, event.reviewed_by, event.clip) == (word, reviewer, clip):
            return event
        return replace(event, word=word, reviewed_by=reviewer, clip=clip)

    def _add(self, seq: int, sign: int) -> None:
        event = self._events[seq]
        counts = self.counts(event.device)
        counts.words[event.word] += sign
        if seq in self._pending_events:
            counts.pending += sign
            return
        if event.in_vocabulary and event.exposed:
            counts.in_vocabulary += sign
        elif event.in_vocabulary:
            counts.uncounted += sign
        elif not event.exposed:
            counts.outside += sign
        if self.counted(event, reviewed=False):
            counts.before += sign
        if self.counted(event, reviewed=True):
            counts.after += sign

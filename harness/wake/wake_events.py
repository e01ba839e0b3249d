"""Wake events that are no stimulus's: what they count as, before and after somebody has reviewed them."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from dataclasses import dataclass, field, replace

from harness.model.record import Clip, ReviewWord
from harness.wake.wake_progress import WakeEvent

SHOWN = 200


@dataclass(slots=True)
class EventCounts:
    """Of one device. before: less what a rule explains; after: less what a rule or a review explains.

    in_vocabulary, outside, uncounted, pending: in wake trials that count, outside of exposure, in wake trials that do
    not count, and in an attempt that is going on.
    """

    words: Counter[ReviewWord | None] = field(default_factory=Counter)
    before: int = 0
    after: int = 0
    in_vocabulary: int = 0
    outside: int = 0
    uncounted: int = 0
    pending: int = 0


class UnmatchedEvents:
    """All of a session by the number of their row; counts are kept up with every change."""

    def __init__(self, count_in_vocabulary: bool = False) -> None:
        self.count_in_vocabulary = count_in_vocabulary
        self._events: dict[int, WakeEvent] = {}
        self._pending: set[int] = set()
        self._order: list[int] = []
        self._counts: dict[str, EventCounts] = {}
        self._clips: dict[int, Clip] = {}
        self._reviews: dict[int, tuple[ReviewWord | None, str]] = {}

    def put(self, event: WakeEvent, pending: bool = False) -> None:
        """Takes an event, in place of what was said of it before. pending: shown, and not counted yet."""
        self.drop(event.seq)
        self._events[event.seq] = self._dressed(event)
        if pending:
            self._pending.add(event.seq)
        insort(self._order, event.seq)
        self._add(event.seq, 1)

    def drop(self, seq: int) -> None:
        """Forgets an event that turned out to be a stimulus's, or part of another one."""
        if seq not in self._events:
            return
        self._add(seq, -1)
        del self._events[seq]
        self._pending.discard(seq)
        del self._order[bisect_left(self._order, seq)]

    def review(self, seq: int, word: ReviewWord | None, by: str) -> str | None:
        """The latest word stands; None takes it back. The device whose counts changed, or None."""
        self._reviews[seq] = (word, by)
        return self._changed(seq)

    def clip(self, seq: int, clip: Clip) -> str | None:
        self._clips[seq] = clip
        return self._changed(seq)

    def of(self, seq: int) -> WakeEvent | None:
        return self._events.get(seq)

    def latest(self) -> tuple[WakeEvent, ...]:
        """The last ones, latest first."""
        return tuple(self._events[seq] for seq in reversed(self._order[-SHOWN:]))

    def every(self, device: str) -> tuple[WakeEvent, ...]:
        """All of a device, in their order."""
        return tuple(event for seq in self._order if (event := self._events[seq]).device == device)

    def counts(self, device: str) -> EventCounts:
        return self._counts.setdefault(device, EventCounts())

    def counted(self, event: WakeEvent, reviewed: bool) -> bool:
        """Is it a false accept: before any review, or after?"""
        if not event.exposed or (event.in_vocabulary and not self.count_in_vocabulary):
            return False
        return event.word in (None, ReviewWord.FALSE_ACCEPT) if reviewed else event.rule is None

    def _changed(self, seq: int) -> str | None:
        if (found := self._events.get(seq)) is None:
            return None
        self._add(seq, -1)
        self._events[seq] = self._dressed(found)
        self._add(seq, 1)
        return found.device

    def _dressed(self, event: WakeEvent) -> WakeEvent:
        word, by = self._reviews.get(event.seq, (None, ""))
        return replace(event, word=word or event.rule, reviewed_by=by if word else "", clip=self._clips.get(event.seq))

    def _add(self, seq: int, sign: int) -> None:
        event = self._events[seq]
        counts = self.counts(event.device)
        counts.words[event.word] += sign
        if seq in self._pending:
            counts.pending += sign
            return
        counts.in_vocabulary += sign * (event.exposed and event.in_vocabulary)
        counts.outside += sign * (not event.exposed and not event.in_vocabulary)
        counts.uncounted += sign * (not event.exposed and event.in_vocabulary)
        counts.before += sign * self.counted(event, reviewed=False)
        counts.after += sign * self.counted(event, reviewed=True)

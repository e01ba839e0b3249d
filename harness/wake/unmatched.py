"""Wake events that match no stimulus, with their explanations, and their counts."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace

from harness.model.record import Clip, ReviewVerdict
from harness.wake.wake_progress import UnmatchedWake

MAX_SHOWN = 200
"""`UnmatchedEvents.latest` returns at most this many events."""


@dataclass(slots=True)
class EventCounts:
    """Numbers of unmatched events of one device.

    - by_verdict: by the explanation of a review or a rule; None for those without one.
    - before_review: false accepts before review: events that no rule explains.
    - after_review: false accepts after review: events that are unreviewed, or that a review confirmed.
    - in_vocabulary: events in wake trials and commands that count.
    - outside: events in ambient sound, or between trials, that are outside of exposure.
    - uncounted: events in wake trials and commands that do not count, and in probes.
    - pending: events in the current attempt.
    """

    by_verdict: Counter[ReviewVerdict | None] = field(default_factory=Counter)
    before_review: int = 0
    after_review: int = 0
    in_vocabulary: int = 0
    outside: int = 0
    uncounted: int = 0
    pending: int = 0


class UnmatchedEvents:
    """All unmatched events of a session by the number of their row; counts are updated with every change.

    Reviews and clips are remembered also for rows whose event is matched now: it may become unmatched again.
    """

    def __init__(self, count_in_vocabulary: bool = False) -> None:
        self.count_in_vocabulary = count_in_vocabulary
        self._events: dict[int, UnmatchedWake] = {}
        self._pending_seqs: set[int] = set()
        self._ordered_seqs: list[int] = []
        self._counts: defaultdict[str, EventCounts] = defaultdict(EventCounts)
        self._clips: dict[int, Clip] = {}
        self._reviews: dict[int, tuple[ReviewVerdict | None, str]] = {}

    def put(self, event: UnmatchedWake, pending: bool = False) -> None:
        """Adds or replaces an event. pending: whether it is shown, but not counted yet."""
        self.drop(event.seq)
        self._events[event.seq] = self._with_review(event)
        if pending:
            self._pending_seqs.add(event.seq)
        insort(self._ordered_seqs, event.seq)
        self._count(event.seq, 1)

    def drop(self, seq: int) -> None:
        """Removes an event that matches a stimulus, or is part of another event. Other rows are ignored."""
        if seq not in self._events:
            return
        self._count(seq, -1)
        del self._events[seq]
        self._pending_seqs.discard(seq)
        del self._ordered_seqs[bisect_left(self._ordered_seqs, seq)]

    def set_review(self, seq: int, verdict: ReviewVerdict | None, reviewer: str) -> str | None:
        """Sets an event's review; None removes it. Returns the device whose counts changed, or None."""
        self._reviews[seq] = (verdict, reviewer)
        return self._update_event(seq)

    def set_clip(self, seq: int, clip: Clip) -> str | None:
        """Sets an event's clip. Returns the device that has this event, or None."""
        self._clips[seq] = clip
        return self._update_event(seq)

    def event_with(self, seq: int) -> UnmatchedWake | None:
        return self._events.get(seq)

    def latest(self) -> tuple[UnmatchedWake, ...]:
        """At most MAX_SHOWN events, the latest first."""
        return tuple(self._events[seq] for seq in reversed(self._ordered_seqs[-MAX_SHOWN:]))

    def of_device(self, device: str) -> tuple[UnmatchedWake, ...]:
        events = (self._events[seq] for seq in self._ordered_seqs)
        return tuple(event for event in events if event.device == device)

    def counts(self, device: str) -> EventCounts:
        return self._counts[device]

    def is_false_accept(self, event: UnmatchedWake, *, use_reviews: bool) -> bool:
        """Whether an event counts as a false accept, by the rules alone or also by the reviews."""
        if not event.exposed or (event.in_vocabulary and not self.count_in_vocabulary):
            return False
        return event.is_false_accept(use_reviews=use_reviews)

    def _update_event(self, seq: int) -> str | None:
        """Renews an event whose review or clip has changed. Returns its device; None if there is no such event."""
        event = self._events.get(seq)
        if event is None:
            return None
        self._count(seq, -1)
        self._events[seq] = self._with_review(event)
        self._count(seq, 1)
        return event.device

    def _with_review(self, event: UnmatchedWake) -> UnmatchedWake:
        review, reviewer = self._reviews.get(event.seq, (None, ""))
        verdict = review or event.rule
        reviewed_by = reviewer if review else ""
        clip = self._clips.get(event.seq)
        # Nearly always, and `replace` is slow.
        if (event.verdict, event.reviewed_by, event.clip) == (verdict, reviewed_by, clip):
            return event
        return replace(event, verdict=verdict, reviewed_by=reviewed_by, clip=clip)

    def _count(self, seq: int, sign: int) -> None:
        """Adds an event to the counts of its device (sign 1), or takes it out again (sign -1)."""
        event = self._events[seq]
        counts = self.counts(event.device)
        counts.by_verdict[event.verdict] += sign
        if seq in self._pending_seqs:
            counts.pending += sign
            return
        if event.in_vocabulary and event.exposed:
            counts.in_vocabulary += sign
        elif event.in_vocabulary:
            counts.uncounted += sign
        elif not event.exposed:
            counts.outside += sign
        if self.is_false_accept(event, use_reviews=False):
            counts.before_review += sign
        if self.is_false_accept(event, use_reviews=True):
            counts.after_review += sign

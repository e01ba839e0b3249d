"""One attempt of a wake, command or ambient trial as one device heard it, with all its sources, and its result."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import NamedTuple

from harness.base.refractory import is_same
from harness.model.bench import ObservationKind
from harness.model.observation import HostStalled, Intent, ListeningProved, Proof, Transcript, stalled_s
from harness.model.record import AttemptStarted
from harness.model.scenario import TrialKind, WakeSettings
from harness.model.stimulus import Recording
from harness.model.time import Measured, Stamp
from harness.model.transcript import WordCounts
from harness.model.trial import Target, Trial
from harness.transcripts.recognition import recognised
from harness.wake.counting import SourceEvent, Window, match_events, merge_sources

Span = tuple[float, float]


class PlayState(StrEnum):
    """OUTSIDE: interrupted, or replaced by a later take. It counts nowhere."""

    RUNNING = "running"
    COUNTED = "counted"
    OUTSIDE = "outside"


class CommandWord(StrEnum):
    """The result of a command."""

    MATCH = "match"
    SUBSTITUTION = "substitution"
    MISSING = "missing"


class HeardWake(NamedTuple):
    """A wake event as observed. seq: of its `Observed` row. A tuple, because a session may have a million.

    source: id of what reported it. reports: of each source, when the device has several; they were merged into this.
    inferred: what all of them were inferred from, such as network traffic; weak evidence.
    """

    seq: int
    at: Stamp
    wall_s: float
    phrase: str
    score: float | None
    audio_s: float | None
    source: str = ""
    reports: tuple[HeardWake, ...] = ()
    inferred: str = ""

    @property
    def error_s(self) -> float:
        """Error of its time; 0 on the device's audio line, where samples are counted."""
        return 0.0 if self.audio_s is not None else self.at.error_s

    @property
    def sources(self) -> tuple[str, ...]:
        return tuple(one.source for one in self.reports)


@dataclass(frozen=True, slots=True)
class PlayReading:
    """The result of one play for one device.

    - hit: the event of the phrase. None: a false reject (wake) or no wake event (command, ambient).
    - doubled: further events follow that of the phrase, also within the refractory time.
    - unmatched, exposed: further events, and for each whether it fell into exposure.
    - exposure_s: counts as audio without the phrase. unproven_s: played without proof of listening.
    - spot_s: length of the phrase up to its event.
    - heard, heard_s: what was understood of a command, and where in the stimulus. counts: of its words, None for an
      intent.
    """

    hit: HeardWake | None = None
    doubled: bool = False
    delay: Measured | None = None
    unmatched: tuple[HeardWake, ...] = ()
    exposed: tuple[bool, ...] = ()
    suppressed: int = 0
    exposure_s: float = 0.0
    unproven_s: float = 0.0
    spot_s: float = 0.0
    command: CommandWord | None = None
    heard: str = ""
    heard_s: float | None = None
    counts: WordCounts | None = None


@dataclass(slots=True, eq=False)
class Play:
    """One attempt as one device heard it; grows during the attempt.

    - started, ended: host times. audio_…: places on the device's audio line; None where it hears the room.
    - stalls: of the host, during it.
    - heard: where the harness's microphone found the first sample, through the air only.
    - previous: the device's previous play.
    - stood_s: place of the last event that was shown during the play.
    - last_s: place of the last separate event of a play that was heard in full, also when it is replaced.
    """

    trial: Trial
    target: Target
    row: AttemptStarted
    settings: WakeSettings
    kind: TrialKind
    started: Stamp | None = None
    ended: Stamp | None = None
    audio_start_s: float | None = None
    audio_end_s: float | None = None
    heard: Stamp | None = None
    stalls: list[HostStalled] = field(default_factory=list)
    state: PlayState = PlayState.RUNNING
    events: list[HeardWake] = field(default_factory=list)
    words: list[Transcript | Intent] = field(default_factory=list)
    reading: PlayReading = PlayReading()
    previous: Play | None = field(default=None, repr=False)
    last_s: float | None = None
    stood_s: float | None = None

    @property
    def transcribes(self) -> bool:
        """Whether it is a command whose words the device reports, or has reported."""
        told = self.reading.counts is not None or ObservationKind.TRANSCRIPT in self.target.reports
        return self.kind is TrialKind.COMMAND and told

    @property
    def on_audio_line(self) -> bool:
        return self.audio_start_s is not None

    @property
    def start_s(self) -> float:
        """Seconds on the line on which it is matched; 0 before the first sample."""
        if self.audio_start_s is not None:
            return self.audio_start_s
        origin = self.origin
        return origin.at_s if origin else 0.0

    @property
    def origin(self) -> Stamp | None:
        """Host time of the first sample: from the microphone if it found the stimulus, else from the player."""
        return self.heard or self.started

    @property
    def end_s(self) -> float:
        """… of its last sample; as planned while it plays."""
        if self.on_audio_line:
            if self.audio_end_s is not None:
                return max(self.start_s, self.audio_end_s)
        elif self.ended is not None and self.started is not None:
            # A player that paused has not played more.
            return self.start_s + min(max(0.0, self.ended.at_s - self.started.at_s), self.row.duration_s)
        return self.start_s + self.row.duration_s

    @property
    def window(self) -> Window | None:
        """The window for its event; None in ambient sound."""
        if self.kind is TrialKind.AMBIENT:
            return None
        near_s = self.start_s + self.row.query_end_s
        first_s = self.start_s + self.row.query_start_s - self.settings.window_before_s
        return Window(min(first_s, near_s), near_s + self.settings.window_after_s, near_s)

    @property
    def other_windows(self) -> tuple[Window, ...]:
        """The windows for the events of further phrases, which count nowhere."""
        before_s, after_s, origin_s = self.settings.window_before_s, self.settings.window_after_s, self.start_s
        return tuple(
            Window(origin_s + begins_s - before_s, origin_s + ends_s + after_s, origin_s + ends_s)
            for begins_s, ends_s in self.row.other_phrases
        )

    @property
    def from_s(self) -> float:
        """The earliest place of an event of its own: a window may begin before the sound."""
        window = self.window
        return min([self.start_s, *(one.start_s for one in (*([window] if window else []), *self.other_windows))])

    @property
    def reach_s(self) -> float:
        window = self.window
        if window is None:
            return self.end_s + self.settings.window_after_s
        return max(self.end_s, *(one.end_s for one in (window, *self.other_windows)))

    def position_s(self, at: Stamp, audio_s: float | None) -> float:
        """Place of an observation on its line. Without a sample number, the host's clock places it."""
        if self.audio_start_s is None:
            return at.at_s
        if audio_s is not None:
            return audio_s
        return self.start_s + (at.at_s - (self.started.at_s if self.started else 0.0)) * self._audio_per_host()

    def place(self, event: HeardWake) -> float:
        return self.position_s(event.at, event.audio_s)

    def host_s(self, offset_s: float) -> float:
        begun_s = self.origin.at_s if self.origin else 0.0
        return begun_s + offset_s / self._audio_per_host()

    def _audio_per_host(self) -> float:
        """Seconds of sound sent per second of the host's clock; 1 through the air."""
        if not self.on_audio_line or self.started is None or self.ended is None:
            return 1.0
        took_s = self.ended.at_s - self.started.at_s
        return (self.end_s - self.start_s) / took_s if took_s > 0 and self.end_s > self.start_s else 1.0

    def add(self, event: HeardWake) -> None:
        """Adds an event, in the order of places."""
        at = len(self.events)
        place = self.place(event)
        while at and self.place(self.events[at - 1]) > place:
            at -= 1
        self.events.insert(at, event)

    def has(self, seq: int) -> bool:
        return any(event.seq == seq for event in reversed(self.events))

    def remove(self, seq: int) -> None:
        self.events = [event for event in self.events if event.seq != seq]

    @property
    def separate(self) -> tuple[HeardWake, ...]:
        """Its events that are not part of another one."""
        return (*([self.reading.hit] if self.reading.hit else []), *self.reading.unmatched)

    def earlier_s(self) -> float | None:
        """Place of the last separate event of earlier plays, which the first events of this one may be part of."""
        found = self.previous
        while found is not None and found.last_s is None and found.reach_s > self.from_s - self.settings.refractory_s:
            found = found.previous
        return found.last_s if found is not None and found.on_audio_line is self.on_audio_line else None

    def stands(self, event: HeardWake) -> bool:
        """Whether the newest event counts by itself: the refractory time runs from the last event that does."""
        place_s = self.place(event)
        if self.stood_s is not None and is_same(place_s, self.stood_s, self.settings.refractory_s):
            return False
        self.stood_s = place_s
        return True


def read(play: Play, proven: Sequence[Span], before_s: float | None = None) -> PlayReading:
    """The result of a play.

    - proven: where on its line the device was known to listen.
    - before_s: place of the previous play's last event, which the first events of this one may be part of.
    """
    places = [play.place(event) for event in play.events]
    # A separate line for each play keeps sums small, and results independent of its place.
    start_s, end_s = play.start_s, play.end_s
    offsets = [place - start_s for place in places]
    window = play.window
    duration_s = end_s - start_s
    others = play.other_windows
    spans = sorted((*([window] if window else []), *others), key=lambda one: one.start_s)
    windows = tuple(Window(one.start_s - start_s, one.end_s - start_s, one.near_s - start_s) for one in spans)
    # The earlier event is merged as event 0, and then removed.
    earlier: list[float] = []
    if before_s is not None and before_s < min([*(start_s + one.start_s for one in windows), *places], default=start_s):
        earlier = [before_s - start_s]
    # Where the phrase follows another one, events may follow each other as fast.
    matching = match_events(windows, [*earlier, *offsets], 0.0 if others else play.settings.refractory_s)
    pairs = {spans[at]: index - len(earlier) for at, index in matching.pairs}
    found = pairs.get(window) if window is not None else None
    expected = set(pairs.values())
    missed = [index - len(earlier) for index in matching.unmatched if index >= len(earlier)]
    ends = [min(places[index], end_s) for index in missed]
    inside = [any(low <= at_s <= high for low, high in proven) for at_s in ends]
    hit = None if found is None else play.events[found]
    spot_s = 0.0 if found is None else max(0.0, offsets[found] - play.row.query_start_s)
    ambient = play.kind is TrialKind.AMBIENT
    heard_s = proven_s(play, proven) if ambient else 0.0
    reading = PlayReading(
        hit=hit,
        doubled=found is not None and any(index not in expected for index in range(found + 1, len(play.events))),
        delay=None if found is None or hit is None else _delay(play, hit, offsets[found]),
        unmatched=tuple([play.events[index] for index in missed]),
        exposed=tuple([not ambient or one for one in inside]),
        suppressed=len(matching.same),
        exposure_s=heard_s if ambient else max(0.0, duration_s - spot_s) * play.settings.count_in_vocabulary,
        unproven_s=max(0.0, duration_s - heard_s) if ambient else 0.0,
        spot_s=spot_s,
    )
    return reading if play.kind is not TrialKind.COMMAND or window is None else _of_command(play, reading, window)


def proven_s(play: Play, proven: Sequence[Span]) -> float:
    start_s, end_s = play.start_s, play.end_s
    return sum(max(0.0, min(high, end_s) - max(low, start_s)) for low, high in proven)


def _delay(play: Play, event: HeardWake, offset_s: float) -> Measured | None:
    """End of the phrase → event. Samples are counted exactly; on the host's clock the errors of both times add, and the
    length of stalls between them. None for a recording whose phrase ends nobody knows where: its energy is misled by
    breath, noise and further speech."""
    said = play.trial.recipe.spoken_by
    if isinstance(said, Recording) and said.phrase_end_s is None:
        return None
    exact = play.on_audio_line and event.audio_s is not None
    error_s = 0.0
    if not exact:
        shift_s = stalled_s(play.stalls, play.host_s(play.row.query_end_s), event.at.at_s)
        error_s = event.at.error_s + (play.origin.error_s if play.origin else 0.0) + shift_s
    return Measured(offset_s - play.row.query_end_s, error_s)


def _of_command(play: Play, reading: PlayReading, window: Window) -> PlayReading:
    """The first final transcript since the phrase began, or where there is none the first intent, and what it is worth.
    Words come when they come: those that the session credits to the attempt count, however late. The log does not say
    where the phrase of a command ends, so its event has no delay."""
    said = [one for one in play.words if play.position_s(one.at, one.audio_s) >= window.start_s]
    transcript = next((one for one in said if isinstance(one, Transcript)), None)
    first = transcript or next(iter(said), None)
    if first is None:
        return replace(reading, delay=None, command=CommandWord.MISSING)
    text = first.text if isinstance(first, Transcript) else first.name
    found = recognised(play.trial, text)
    word = CommandWord.MATCH if found.recognised else CommandWord.SUBSTITUTION
    at_s = play.position_s(first.at, first.audio_s) - play.start_s
    # The name of an intent does not count as a transcript.
    counts = found.counts if transcript is not None else None
    return replace(reading, delay=None, command=word, heard=text, heard_s=at_s, counts=counts)


SPANS_KEPT = 1000


@dataclass(slots=True)
class Proofs:
    """A device's proofs of listening, in their order. Between two proofs on the host's clock it listened when they lie
    no further apart than `within_s` and the link was not lost between them. A device that acknowledges audio has heard
    all of it, whenever it was given."""

    within_s: float
    spans: list[Span] = field(default_factory=list)
    heard_to_s: float | None = None
    last_s: float | None = None
    cuts_s: list[float] = field(default_factory=list)
    moments_s: list[float] = field(default_factory=list)

    def add(self, proof: ListeningProved) -> None:
        at_s = proof.at.at_s
        insort(self.moments_s, at_s)
        del self.moments_s[:-SPANS_KEPT]
        if proof.proof is Proof.ACKNOWLEDGED and proof.audio_s is not None:
            self.heard_to_s = max(proof.audio_s, -math.inf if self.heard_to_s is None else self.heard_to_s)
        if self.last_s is not None and at_s < self.last_s:
            self._add_late(at_s)
            return
        if self.last_s is None or not self._listened(self.last_s, at_s):
            self.spans.append((at_s, at_s))
        else:
            self.spans.append((self.spans.pop()[0], at_s))
        self.last_s = at_s
        del self.spans[:-SPANS_KEPT]

    def cut(self, at_s: float) -> bool:
        """Two proofs prove nothing across this moment. True if they did so before: it was reported late."""
        if at_s != self.last_s:
            at_s = math.nextafter(at_s, -math.inf)  # a proof of the same moment that follows is of after it
        insort(self.cuts_s, at_s)
        del self.cuts_s[:-SPANS_KEPT]
        number = bisect_left(self.spans, at_s, key=lambda span: span[1])
        if number == len(self.spans) or not self.spans[number][0] <= at_s < self.spans[number][1]:
            return False
        low_s, high_s = self.spans[number]
        earlier_s = max((moment_s for moment_s in self.moments_s if low_s <= moment_s <= at_s), default=low_s)
        later_s = min((moment_s for moment_s in self.moments_s if at_s < moment_s <= high_s), default=high_s)
        self.spans[number : number + 1] = [(low_s, earlier_s), (later_s, high_s)]
        return True

    def _add_late(self, at_s: float) -> None:
        """A proof whose report comes after that of a later one. It joins its neighbours as if it had come in time."""
        after = bisect_left(self.spans, (at_s, at_s))
        low_s = high_s = at_s
        first = last = after
        if after and self._listened(self.spans[after - 1][1], at_s):
            first, low_s, high_s = after - 1, self.spans[after - 1][0], max(at_s, self.spans[after - 1][1])
        if after < len(self.spans) and self._listened(high_s, self.spans[after][0]):
            last, high_s = after + 1, self.spans[after][1]
        self.spans[first:last] = [(low_s, high_s)]

    def _listened(self, from_s: float, to_s: float) -> bool:
        """Whether two proofs prove the time between them."""
        cut = bisect_left(self.cuts_s, from_s) < bisect_right(self.cuts_s, to_s)
        return to_s - from_s <= self.within_s and not cut

    def of(self, play: Play) -> list[Span]:
        """Spans of a play's line during which the device was known to listen."""
        if not play.on_audio_line:
            return list(self._since(play.start_s))
        if self.heard_to_s is not None:
            return [(play.start_s, self.heard_to_s)] if self.heard_to_s > play.start_s else []
        began_s = play.started.at_s if play.started else 0.0
        place = play.position_s
        return [(place(Stamp(low), None), place(Stamp(high), None)) for low, high in self._since(began_s)]

    def _since(self, at_s: float) -> list[Span]:
        found: list[Span] = []
        for span in reversed(self.spans):
            if span[1] < at_s:
                break
            found.append(span)
        return found[::-1]


PROBE_REACH = 2.0
"""Two probes prove what lies between them up to so many times the declared time apart (pauses, other trials)."""
PROBE_SLACK_S = 60.0


@dataclass(slots=True)
class Listened:
    """All proofs that a device listened: its own, and with probes also the phrases that woke it.

    doubtful: ambient plays since the last phrase that woke it; the next one may prove them.
    """

    own: Proofs
    woken: Proofs | None = None
    doubtful: list[Play] = field(default_factory=list)

    def expect_probes(self, every_s: float) -> None:
        within_s = PROBE_REACH * every_s + PROBE_SLACK_S
        if self.woken is None:
            self.woken = Proofs(within_s)
        self.woken.within_s = max(self.woken.within_s, within_s)

    def woke(self, source: str, at: Stamp) -> list[Play]:
        """Handles a phrase that woke the device; returns the plays that this may prove."""
        if self.woken is None:
            return []
        self.woken.add(ListeningProved(source, at, Proof.PROBE))
        plays, self.doubtful = self.doubtful, []
        return plays

    def begin_run(self) -> None:
        """Another process resumes the session. Audio lines, and after a restart of the host its clock, begin at 0."""
        self.own = Proofs(self.own.within_s)
        self.woken = Proofs(self.woken.within_s) if self.woken is not None else None
        self.doubtful.clear()

    def cut(self, at_s: float) -> bool:
        """As `Proofs.cut`."""
        changed = self.own.cut(at_s)
        return self.unheard(at_s) or changed

    def unheard(self, at_s: float) -> bool:
        """Handles a missed probe. Phrases prove nothing since the last one that woke the device."""
        self.doubtful.clear()
        return self.woken is not None and self.woken.cut(at_s)

    def of(self, play: Play) -> list[Span]:
        """Separate spans of a play's line during which the device was known to listen, in order."""
        if self.woken is None:
            return self.own.of(play)
        merged: list[Span] = []
        for low, high in sorted([*self.own.of(play), *self.woken.of(play)]):
            if merged and low <= merged[-1][1]:
                merged[-1] = (merged[-1][0], max(merged[-1][1], high))
            else:
                merged.append((low, high))
        return merged

    @property
    def last_s(self) -> float | None:
        found = [one.last_s for one in (self.own, self.woken) if one is not None and one.last_s is not None]
        return max(found, default=None)


KEPT = 64
"""Number of a device's latest reports that a later one may still be merged with."""


@dataclass(frozen=True, slots=True)
class Change:
    """What a report changes: these events are gone, and these are new in their place."""

    gone: tuple[HeardWake, ...] = ()
    new: tuple[HeardWake, ...] = ()


class Merging:
    """One device's reports by source, merged into events; for devices with several sources.

    Reports are grouped by their times, so a source may report seconds after the others. The time of an event is that
    of the report with the least error; a place on the device's audio line counts as exact. The event keeps the row
    number of its first report, so that reviews and clips still belong to it when another report joins.
    """

    def __init__(self, sources: tuple[str, ...], within_s: float) -> None:
        self._ranks = {source: rank for rank, source in enumerate(sources)}
        self._within_s = within_s
        self._reports: list[HeardWake] = []
        self._events: dict[tuple[int, ...], HeardWake] = {}

    @property
    def several(self) -> bool:
        return len(self._ranks) > 1

    def add(self, report: HeardWake) -> Change:
        self._reports.append(report)
        events = [SourceEvent(self._ranks[one.source], one.at.at_s, one.error_s) for one in self._reports]
        groups = merge_sources(events, self._within_s)
        found = [merged([self._reports[at] for at in group]) for group in groups]
        before, self._events = self._events, {_key(one): one for one in found}
        change = Change(
            tuple(one for key, one in before.items() if key not in self._events),
            tuple(one for key, one in self._events.items() if key not in before),
        )
        self._forget()
        return change

    def is_part(self, seq: int) -> bool:
        """Whether the report of that row belongs to an event that an earlier row began."""
        return any(seq in key and one.seq != seq for key, one in self._events.items())

    def begin_run(self) -> None:
        """Another process resumes the session; reports of the earlier one stay as they are."""
        self._reports.clear()
        self._events.clear()

    def _forget(self) -> None:
        """Forgets whole events, the earliest first, so that those that stay keep their groups."""
        for key in sorted(self._events, key=lambda key: self._events[key].at.at_s):
            if len(self._reports) <= KEPT:
                return
            del self._events[key]
            self._reports = [one for one in self._reports if one.seq not in key]


def merged(reports: list[HeardWake]) -> HeardWake:
    """One event from the reports of different sources, in the order of the sources."""
    best = min(reports, key=lambda one: (one.error_s, one.at.at_s))
    first = min(reports, key=lambda one: one.seq)
    phrases = [best.phrase, *(one.phrase for one in reports)]
    scores = [best.score, *(one.score for one in reports)]
    return best._replace(
        seq=first.seq,
        wall_s=first.wall_s,
        phrase=next(filter(None, phrases), ""),
        score=next((score for score in scores if score is not None), None),
        reports=tuple(reports),
        inferred=best.inferred if all(one.inferred for one in reports) else "",
    )


def _key(event: HeardWake) -> tuple[int, ...]:
    return tuple(one.seq for one in event.reports)

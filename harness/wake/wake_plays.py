"""One attempt of a wake, command or ambient trial as one device heard it, with all its sources, and its result.

    events of a Play ─assign_events─► PlayEvents ─reading_of─► PlayReading

`assign_events` takes neighbouring plays together, because a window may reach into the next play. All places are seconds
on one time line: the host's clock or, over a wire, the samples sent to the device.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import NamedTuple

from harness.base.refractory import is_within_refractory
from harness.model.bench import ObservationKind
from harness.model.frozen import frozen
from harness.model.observation import HostStalled, Intent, Transcript, stalled_s
from harness.model.record import AttemptStarted
from harness.model.scenario import TrialKind, WakeSettings
from harness.model.stimulus import Recording
from harness.model.time import MeasuredDuration, Stamp
from harness.model.transcript import WordCounts
from harness.model.trial import Target, Trial
from harness.transcripts.recognition import recognised
from harness.wake.counting import Window, match_events
from harness.wake.requests import RequestResult, words_arrived

Span = tuple[float, float]
MAX_ONSET_ERROR_S = 0.1
"""A sound that starts up to this much before the end of the command still counts as after it (error of the onset)."""


class PlayState(StrEnum):
    """The state of a play.

    - RUNNING: its attempt has not ended.
    - COUNTED: it is in the results.
    - OUTSIDE: it was interrupted, or replaced by a later take, and counts nowhere.
    """

    RUNNING = "running"
    COUNTED = "counted"
    OUTSIDE = "outside"


class CommandResult(StrEnum):
    """The result of a command: understood (MATCH), misunderstood (SUBSTITUTION), or without words and intent."""

    MATCH = "match"
    SUBSTITUTION = "substitution"
    MISSING = "missing"


class HeardWake(NamedTuple):
    """A wake event as observed. A tuple, because a session may have a million."""

    seq: int
    """`seq` of its `Observed` row; for merged reports, that of the first one."""
    at: Stamp
    wall_s: float
    """Unix time at which the row was written."""
    phrase: str
    score: float | None
    audio_s: float | None
    """Position in injected audio; None if the device hears the room, or does not report it."""
    source: str = ""
    reports: tuple[HeardWake, ...] = ()
    """The reports of several sources that were merged into this event; else ()."""
    inferred: str = ""
    """What all reports were inferred from, such as network traffic (weak evidence); "" if the device reported it."""
    plays_only: bool = False
    """Whether it counts only within a play: it was reported during a query trial or a life check, which have wake
    events of their own."""

    @property
    def error_s(self) -> float:
        """Error of its time; 0 if the time line is that of injected audio, where samples are counted."""
        return 0.0 if self.audio_s is not None else self.at.error_s

    @property
    def sources(self) -> tuple[str, ...]:
        return tuple(report.source for report in self.reports)


@frozen
class PlayReading:
    """The result of one play for one device."""

    hit: HeardWake | None = None
    """The event of the phrase. None: a false reject (wake) or no wake event (command, ambient)."""
    doubled: bool = False
    """Whether further events follow the hit, also within the refractory time or after the play."""
    delay: MeasuredDuration | None = None
    """Time from the end of the phrase to its event; None if one of them is not known."""
    unmatched: tuple[HeardWake, ...] = ()
    """Separate events besides the hit."""
    exposed: tuple[bool, ...] = ()
    """For each of `unmatched`: whether it fell into exposure."""
    suppressed: int = 0
    """Number of events that are part of another one."""
    expected: int = 0
    """Number of events of further phrases."""
    exposure_s: float = 0.0
    """Time that counts as exposure."""
    unproven_s: float = 0.0
    """Ambient sound without proof of listening."""
    spot_s: float = 0.0
    """Time from the start of the phrase to its event; 0 without an event."""
    command: CommandResult | None = None
    """The result of a command; None for other trials."""
    heard: str = ""
    """Words or name of the intent understood from a command."""
    heard_s: float | None = None
    """Position of `heard` in the sound."""
    counts: WordCounts | None = None
    """Word counts of a command's transcript; None for an intent."""


@dataclass(slots=True)
class PlayEvents:
    """The events of a play, each in exactly one of the fields.

    - hit: the event of the phrase.
    - doubled: whether further events follow the hit.
    - unmatched: separate events that match no phrase.
    - parts: events that are part of another one.
    - expected: events of further phrases.
    """

    hit: HeardWake | None = None
    doubled: bool = False
    unmatched: list[HeardWake] = field(default_factory=list)
    parts: list[HeardWake] = field(default_factory=list)
    expected: list[HeardWake] = field(default_factory=list)

    @property
    def separate(self) -> tuple[HeardWake, ...]:
        """The events that are not part of another one."""
        return tuple(self.unmatched) if self.hit is None else (self.hit, *self.unmatched)

    @property
    def every(self) -> tuple[HeardWake, ...]:
        return (*self.separate, *self.parts, *self.expected)


@dataclass(slots=True, eq=False)
class Play:
    """One attempt as one device heard it; grows during the attempt."""

    trial: Trial
    target: Target
    row: AttemptStarted
    settings: WakeSettings
    kind: TrialKind
    started: Stamp | None = None
    """Host time at which the player began; None before."""
    ended: Stamp | None = None
    """Host time at which the player ended; None before."""
    audio_start_s: float | None = None
    """Position of the first sample in injected audio; None if the device hears the room."""
    audio_end_s: float | None = None
    """Position of the end of the last sample in injected audio; None before that, or if the device hears the room."""
    found_at: Stamp | None = None
    """Host time at which the microphone found the first sample, for sound through the air only."""
    stalls: list[HostStalled] = field(default_factory=list)
    state: PlayState = PlayState.RUNNING
    events: list[HeardWake] = field(default_factory=list)
    """Its events, in the order of their places."""
    words: list[Transcript | Intent] = field(default_factory=list)
    """Final transcripts and intents that the session credits to the attempt."""
    sounds: list[Stamp] = field(default_factory=list)
    """When the microphone heard the device begin to make a sound, speech or a chime."""
    reading: PlayReading = PlayReading()
    assignment: PlayEvents = field(default_factory=PlayEvents)
    moved_places: dict[int, float] = field(default_factory=dict)
    """`seq` → place, for events without a sample number that came from a neighbouring play."""
    run_index: int = 0
    """Index of the engine's run; each has its own proofs of listening."""
    shown_s: float | None = None
    """Place of the last separate event that was shown during the play."""
    is_complete: bool = False
    """Whether it was heard completely, even if a later take replaces it. Its events are then settled."""
    _cached_span: tuple[object, Span] | None = field(default=None, init=False, repr=False)
    """`span`, after the values from which it was computed."""

    @property
    def has_transcripts(self) -> bool:
        """Whether it is a command whose words the device can report, or has reported."""
        has_words = self.reading.counts is not None or ObservationKind.TRANSCRIPT in self.target.reports
        return self.kind is TrialKind.COMMAND and has_words

    @property
    def request(self) -> RequestResult | None:
        """The result of a command as a request after its wake phrase; None if there is none, or a person said it."""
        command = self.reading.command
        if command is None or self.trial.recipe.wake_phrase is None or self.trial.talker:
            return None
        counts = self.reading.counts
        arrived = command is CommandResult.MATCH if counts is None else words_arrived(counts)
        woken = self.reading.hit is not None or ObservationKind.WAKE not in self.target.reports
        return RequestResult(self.trial.recipe.gap_ms, arrived, not self.has_transcripts, woken)

    @property
    def was_answered(self) -> bool:
        """Whether it is a command to which the device reacted, and the microphone hears no other device."""
        only_device = self.trial.listening is not None and len(self.trial.listening.targets) == 1
        understood = self.reading.command not in (None, CommandResult.MISSING)
        return only_device and understood and bool(self.trial.microphone)

    @property
    def first_sound(self) -> MeasuredDuration | None:
        """Time from the end of the command to the device's first sound; None without one."""
        end_s = self.host_s(self.row.query_end_s)
        sounds = [stamp for stamp in self.sounds if stamp.at_s >= end_s - MAX_ONSET_ERROR_S]
        if not sounds:
            return None
        first = min(sounds, key=lambda stamp: stamp.at_s)
        error_s = first.error_s + (self.origin.error_s if self.origin else 0.0)
        return MeasuredDuration(first.at_s - end_s, error_s + stalled_s(self.stalls, end_s, first.at_s))

    @property
    def on_audio_line(self) -> bool:
        return self.audio_start_s is not None

    @property
    def start_s(self) -> float:
        """Place of its first sample on its time line; 0 before that was played."""
        if self.audio_start_s is not None:
            return self.audio_start_s
        origin = self.origin
        return origin.at_s if origin else 0.0

    @property
    def origin(self) -> Stamp | None:
        """Host time of the first sample: from the microphone if it found the stimulus, else from the player."""
        return self.found_at or self.started

    @property
    def end_s(self) -> float:
        """Place of the end of its last sample on its time line; the planned one while it plays."""
        start_s = self.start_s
        if self.on_audio_line:
            if self.audio_end_s is not None:
                return max(start_s, self.audio_end_s)
        elif self.ended is not None and self.started is not None:
            # A player that paused has not played more.
            return start_s + min(max(0.0, self.ended.at_s - self.started.at_s), self.row.duration_s)
        return start_s + self.row.duration_s

    @property
    def window(self) -> Window | None:
        """The window for its event; None in ambient sound."""
        if self.kind is TrialKind.AMBIENT:
            return None
        start_s = self.start_s
        near_s = start_s + self.row.query_end_s
        first_s = self._opens_s(self.row.query_start_s)
        return Window(min(first_s, near_s), near_s + self.settings.window_after_s, near_s)

    @property
    def other_windows(self) -> tuple[Window, ...]:
        """The windows for events of further phrases, such as those of an opening; these events count nowhere."""
        if not self.row.other_phrases:
            return ()
        after_s, origin_s = self.settings.window_after_s, self.start_s
        return tuple(
            Window(self._opens_s(begins_s), origin_s + ends_s + after_s, origin_s + ends_s)
            for begins_s, ends_s in self.row.other_phrases
        )

    def _opens_s(self, begins_s: float) -> float:
        """Where the window opens of a phrase that begins at begins_s in the sound.

        It may open before the sound, except in injected audio: an event there belongs to the previous sound.
        """
        opens_s = self.start_s + begins_s - self.settings.window_before_s
        return max(opens_s, math.nextafter(self.start_s, math.inf)) if self.on_audio_line else opens_s

    @property
    def refractory_s(self) -> float:
        """The refractory time, shortened if the phrase follows another one: their events may be as close."""
        return 0.0 if self.row.other_phrases else self.settings.refractory_s

    @property
    def span(self) -> Span:
        """The first and last place that an event of this play may have: a window may begin before the sound."""
        # Cached, since it is needed for each event and each of the last plays, but changes rarely.
        times = self.started, self.ended, self.found_at, self.audio_start_s, self.audio_end_s, self.row
        if self._cached_span is None or self._cached_span[0] != times:
            self._cached_span = times, self._span()
        return self._cached_span[1]

    def _span(self) -> Span:
        window = self.window
        if window is None:
            return self.start_s, self.end_s + self.settings.window_after_s
        from_s, to_s = min(self.start_s, window.start_s), max(self.end_s, window.end_s)
        for other in self.other_windows:
            from_s, to_s = min(from_s, other.start_s), max(to_s, other.end_s)
        return from_s, to_s

    def position_s(self, stamp: Stamp, audio_s: float | None) -> float:
        """Place of an observation on the play's time line. Without a sample number, the host's clock gives it."""
        if self.audio_start_s is None:
            return stamp.at_s
        if audio_s is not None:
            return audio_s
        return self.start_s + (stamp.at_s - (self.started.at_s if self.started else 0.0)) * self._audio_per_host()

    def place(self, event: HeardWake) -> float:
        """Place of an event on the play's time line."""
        if self.moved_places and (moved_s := self.moved_places.get(event.seq)) is not None:
            return moved_s
        return self.position_s(event.at, event.audio_s)

    def host_s(self, offset_s: float) -> float:
        """Host time of a position in the sound."""
        begun_s = self.origin.at_s if self.origin else 0.0
        return begun_s + offset_s / self._audio_per_host()

    def _audio_per_host(self) -> float:
        """Seconds of sound sent per second of the host's clock; 1 through the air."""
        if not self.on_audio_line or self.started is None or self.ended is None:
            return 1.0
        took_s = self.ended.at_s - self.started.at_s
        return (self.end_s - self.start_s) / took_s if took_s > 0 and self.end_s > self.start_s else 1.0

    def add(self, event: HeardWake, moved_s: float | None = None) -> None:
        """Adds an event, in the order of places and rows. moved_s: its place if it comes from another play."""
        if moved_s is not None and self.on_audio_line and event.audio_s is None:
            self.moved_places[event.seq] = moved_s
        index = len(self.events)
        place = self.place(event), event.seq
        while index and (self.place(self.events[index - 1]), self.events[index - 1].seq) > place:
            index -= 1
        self.events.insert(index, event)

    def has_event(self, seq: int) -> bool:
        return any(event.seq == seq for event in reversed(self.events))

    def remove(self, seq: int) -> None:
        self.moved_places.pop(seq, None)
        self.events = [event for event in self.events if event.seq != seq]

    def is_before_sound(self, report: HeardWake) -> bool:
        """Whether a report belongs to an earlier sound: its sample number is not after the start of this one."""
        return report.audio_s is not None and self.audio_start_s is not None and report.audio_s <= self.audio_start_s

    def placed(self, events: Iterable[HeardWake]) -> Iterator[tuple[float, bool]]:
        """The place of each event, and whether a report of it lies in the play: its best time may lie just outside."""
        from_s, to_s = self.span
        for event in events:
            place_s = self.place(event)
            is_inside = from_s <= place_s <= to_s
            if event.reports and not is_inside:
                is_inside = any(from_s <= self.place(report) <= to_s for report in event.reports)
            yield place_s, is_inside

    @property
    def separate(self) -> tuple[HeardWake, ...]:
        """Its events that are not part of another one."""
        return (self.reading.hit, *self.reading.unmatched) if self.reading.hit else self.reading.unmatched

    @property
    def last_s(self) -> float | None:
        """Place of its last event that is not part of another one, also when the play is replaced."""
        return max(map(self.place, self.assignment.separate), default=None)

    def note_if_separate(self, event: HeardWake) -> bool:
        """Notes the newest event for the refractory time if it is separate, so far; returns whether it is.

        The refractory time runs from the last separate event.
        """
        place_s = self.place(event)
        if self.shown_s is None:
            self.shown_s = place_s
            return True
        if place_s < self.shown_s:  # reported late; whether it is separate is settled at the end
            return True
        if is_within_refractory(place_s, self.shown_s, self.settings.refractory_s):
            return False
        self.shown_s = place_s
        return True


def assign_events(
    plays: Sequence[Play], outside_events: Sequence[tuple[float, HeardWake]], before_s: float
) -> dict[Play, PlayEvents]:
    """Assigns the events on a time line to plays: merges them first, then matches them with the windows of all plays.

    - plays: neighbours on one time line that were heard completely, in their order.
    - outside_events: events outside of them, with their places. Those in a window of one of these plays, or part of an
      event of one, belong to it. The others are in none of the results.
    - before_s: place of the last separate event before these plays; the first events may be part of that one.
    """
    # A line that begins at the plays keeps sums small.
    origin_s = plays[0].start_s
    assignments = {play: PlayEvents(expected=_expected_events(play)) for play in plays}
    windows = sorted(
        ((_shift_window(window, origin_s), play) for play in plays if (window := play.window) is not None),
        key=lambda pair: pair[0].start_s,
    )
    line: list[tuple[float, HeardWake, Play | None]] = []
    for play, assignment in assignments.items():
        for event, (place_s, is_inside) in zip(play.events, play.placed(play.events), strict=True):
            if event not in assignment.expected:
                line.append((place_s - origin_s, event, play if is_inside else None))
    line += [(place_s - origin_s, event, None) for place_s, event in outside_events]
    placed, strays = _plays_of_events(line, windows)
    other_windows = tuple(_shift_window(window, origin_s) for play in plays for window in play.other_windows)
    starts_s = [window.start_s for window, _ in windows]
    starts_s += [window.start_s for window in other_windows]
    earliest_s = min([*starts_s, *(at_s for at_s, _, _ in placed)], default=math.inf)
    matching = match_events(
        [window for window, _ in windows],
        [at_s for at_s, _, _ in placed],
        [play.refractory_s for _, _, play in placed],
        others=other_windows,
        # An event that lies after some of these is not before all of them, as `match_events` requires.
        before_s=before_s - origin_s if before_s - origin_s < earliest_s else -math.inf,
    )
    hits = {index: windows[number][1] for number, index in matching.pairs}
    parts = dict(matching.repeats)
    for index, play in hits.items():
        assignments[play].hit = placed[index][1]
    for index, (at_s, event, play) in enumerate(placed):
        if index in hits:
            continue
        assignment = assignments[play]
        if (owner := parts.get(index)) is None:
            assignment.unmatched.append(event)
        else:
            assignment.parts.append(event)
            if owner in hits:
                assignments[hits[owner]].doubled = True
        if assignment.hit is not None and at_s >= play.place(assignment.hit) - origin_s:
            assignment.doubled = True
    if strays:
        separate = [
            (at_s, hits.get(index, play), index in hits)
            for index, (at_s, _, play) in enumerate(placed)
            if index not in parts
        ]
        _add_strays(assignments, strays, separate)
    return assignments


def _plays_of_events(
    line: Sequence[tuple[float, HeardWake, Play | None]], windows: Sequence[tuple[Window, Play]]
) -> tuple[list[tuple[float, HeardWake, Play]], list[tuple[float, HeardWake]]]:
    """The events in the order of their times, each with the play to which it belongs; and the strays, which have none.

    line: (time, event, the play in which it lies), in any order.
    """
    placed: list[tuple[float, HeardWake, Play]] = []
    strays: list[tuple[float, HeardWake]] = []
    for at_s, event, owner in sorted(line, key=lambda entry: entry[0]):
        event_play = owner
        # In the window of an earlier play, an event belongs to that one, although a later play has begun.
        for window, play in windows:
            if window.start_s <= at_s <= window.end_s:
                event_play = play
                break
        if event_play is None:
            strays.append((at_s, event))
        else:
            placed.append((at_s, event, event_play))
    return placed, strays


def _add_strays(
    assignments: Mapping[Play, PlayEvents],
    strays: Sequence[tuple[float, HeardWake]],
    separate: Sequence[tuple[float, Play, bool]],
) -> None:
    """Adds events outside of the plays that are part of the separate event before them; the others stay strays.

    - strays: (time, event).
    - separate: (time, play, whether it is a hit) of each separate event, in order.
    """
    for at_s, event in strays:
        count = bisect_right(separate, at_s, key=lambda earlier: earlier[0])
        if not count:
            continue
        earlier_s, play, is_hit = separate[count - 1]
        if is_within_refractory(at_s, earlier_s, play.refractory_s):
            assignments[play].parts.append(event)
            assignments[play].doubled |= is_hit


def _shift_window(window: Window, by_s: float) -> Window:
    return Window(window.start_s - by_s, window.end_s - by_s, window.near_s - by_s)


def _expected_events(play: Play) -> list[HeardWake]:
    """The events of its further phrases."""
    if not play.other_windows or play.window is None:
        return []
    windows = sorted((play.window, *play.other_windows), key=lambda window: window.start_s)
    matching = match_events(windows, [play.place(event) for event in play.events], 0.0)
    return [play.events[index] for number, index in matching.pairs if windows[number] != play.window]


def reading_of(play: Play, proven: Sequence[Span]) -> PlayReading:
    """The result of a play from its assigned events. proven: spans of its time line in which the device listened."""
    assignment, hit = play.assignment, play.assignment.hit
    end_s, duration_s = play.end_s, play.end_s - play.start_s
    # An event after the sound, within its window, counts as one at its end.
    ends = [min(play.place(event), end_s) for event in assignment.unmatched]
    offset_s = 0.0 if hit is None else play.place(hit) - play.start_s
    spot_s = 0.0 if hit is None else max(0.0, offset_s - play.row.query_start_s)
    is_ambient, is_probe = play.kind is TrialKind.AMBIENT, play.kind is TrialKind.PROBE
    heard_s = proven_s(play, proven) if is_ambient else 0.0
    in_vocabulary_s = 0.0
    counting_spans: Sequence[Span] = [(-math.inf, math.inf)]
    if is_ambient:
        counting_spans = proven
    elif is_probe:  # a probe gives no exposure
        counting_spans = []
    elif play.settings.count_in_vocabulary:
        in_vocabulary_s = max(0.0, duration_s - spot_s)
    reading = PlayReading(
        hit=hit,
        doubled=assignment.doubled,
        delay=None if hit is None else _delay(play, hit, offset_s),
        unmatched=tuple(assignment.unmatched),
        exposed=tuple([any(low <= at_s <= high for low, high in counting_spans) for at_s in ends]),
        suppressed=len(assignment.parts),
        expected=len(assignment.expected),
        exposure_s=heard_s if is_ambient else in_vocabulary_s,
        unproven_s=max(0.0, duration_s - heard_s) if is_ambient else 0.0,
        spot_s=spot_s,
    )
    if play.kind is TrialKind.COMMAND and (window := play.window) is not None:
        return _command_reading(play, reading, window)
    return reading


def proven_s(play: Play, proven: Sequence[Span]) -> float:
    """How much of a play lies within the spans in which the device listened."""
    start_s, end_s = play.start_s, play.end_s
    return sum(max(0.0, min(high, end_s) - max(low, start_s)) for low, high in proven)


def _delay(play: Play, event: HeardWake, offset_s: float) -> MeasuredDuration | None:
    """Time from the end of the phrase to its event.

    Sample numbers are exact; on the host's clock, the errors of both times and the length of stalls between them add
    up. None for a recording without a known end of its phrase: breath, noise and further speech would falsify an end
    that is found by energy.
    """
    voice = play.trial.recipe.spoken_by
    if isinstance(voice, Recording) and voice.phrase_end_s is None:
        return None
    exact = play.on_audio_line and event.audio_s is not None
    error_s = 0.0
    if not exact:
        shift_s = stalled_s(play.stalls, play.host_s(play.row.query_end_s), event.at.at_s)
        error_s = event.at.error_s + (play.origin.error_s if play.origin else 0.0) + shift_s
    return MeasuredDuration(offset_s - play.row.query_end_s, error_s)


def _command_reading(play: Play, reading: PlayReading, window: Window) -> PlayReading:
    """The result of a command by its first final transcript since the phrase began, else by its first intent.

    All words that the session credits to the attempt count, however late. The log does not say where the phrase of a
    command ends, so its event has no delay.
    """
    observations = [
        observation
        for observation in play.words
        if play.position_s(observation.at, observation.audio_s) >= window.start_s
    ]
    transcript = next((observation for observation in observations if isinstance(observation, Transcript)), None)
    first = transcript or next(iter(observations), None)
    if first is None:
        return replace(reading, delay=None, command=CommandResult.MISSING)
    text = first.text if isinstance(first, Transcript) else first.name
    recognition = recognised(play.trial, text)
    result = CommandResult.MATCH if recognition.recognised else CommandResult.SUBSTITUTION
    offset_s = play.position_s(first.at, first.audio_s) - play.start_s
    # The name of an intent does not count as a transcript.
    counts = recognition.counts if transcript is not None else None
    return replace(reading, delay=None, command=result, heard=text, heard_s=offset_s, counts=counts)

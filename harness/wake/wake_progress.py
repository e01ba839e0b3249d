"""The wake statistics of a session: counts, their intervals, and the events that wait for a review."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import field
from enum import StrEnum
from functools import lru_cache
from typing import Literal

from harness.model.frozen import frozen
from harness.model.record import Clip, DecisionReached, ReviewVerdict
from harness.model.scenario import Stopping, TrialKind
from harness.model.time import Stamp
from harness.model.trial import Trial
from harness.statistics.intervals import Interval, LatencyFigures, Share, clopper_pearson, garwood
from harness.statistics.sequential import SequentialVerdict, rate_sequence, rate_verdict, share_sequence, share_verdict
from harness.statistics.voices import over_voices, voices_verdict
from harness.transcripts.recognition import GroupTranscripts
from harness.wake.first_sounds import FirstSounds
from harness.wake.requests import GapRequests


@frozen
class Rate:
    """A rate: `count` events in `hours` of audio.

    interval: exact 95 % interval (Garwood). any_time: the time-uniform interval, for results watched during a run. Both
    are None without audio.
    """

    count: int = 0
    hours: float = 0.0
    interval: Interval | None = None
    any_time: Interval | None = None

    @property
    def per_hour(self) -> float | None:
        return self.count / self.hours if self.hours > 0 else None


@frozen
class Speakers:
    """False rejects by voice or talker.

    - shares: the share of each one that has been played.
    - several: whether the plan has more than one, so that results apply to other voices.
    - unknown: whether one of them stands for all recordings whose talker is not stated.
    """

    shares: tuple[Share, ...] = ()
    several: bool = False
    unknown: bool = False

    @classmethod
    def of(cls, shares: Mapping[str, Share], planned: Collection[str] = ()) -> Speakers:
        """planned: names of all speakers in the plan. A recording without a talker has the name ""."""
        measured = {name: share for name, share in shares.items() if share.total}
        return cls(tuple(measured.values()), len({*measured, *planned}) > 1, "" in measured)


@frozen
class Ratio:
    """A share with its 95 % interval and the time-uniform one; both are None without trials.

    Both intervals are over voices if there are several, because trials of one voice tend to fail together; they are
    None for too few voices. Otherwise they are over trials, by Clopper–Pearson, and apply to that voice only.
    """

    share: Share = field(default_factory=Share)
    interval: Interval | None = None
    any_time: Interval | None = None
    speakers: Speakers = field(default_factory=Speakers)

    @property
    def voices(self) -> int | None:
        """Number of voices over which the intervals are; None for intervals over trials."""
        return len(self.speakers.shares) if self.speakers.several else None


class MarkKind(StrEnum):
    """Kind of a mark on a device's timeline."""

    HIT = "hit"
    FALSE_REJECT = "false_reject"
    UNMATCHED = "unmatched"
    AMBIENT = "ambient"
    INTERRUPTED = "interrupted"
    PROBE = "probe"
    PROBE_UNHEARD = "probe_unheard"


@frozen
class TimelineMark:
    """Something on a device's timeline: a stimulus (from start_s to end_s) or an event (both times are equal).

    Times are those of the clock of the log's rows. event_seq: `seq` of an event's row; None for a stimulus.
    """

    kind: MarkKind
    start_s: float
    end_s: float
    trial_id: str = ""
    event_seq: int | None = None


@frozen
class SourceTime:
    """When one source of a device reported a wake event. seq: `seq` of the report's row.

    inferred: what it was inferred from, such as network traffic: weak evidence. "": it was reported or shown.
    """

    source: str
    at: Stamp
    seq: int
    inferred: str = ""


@frozen
class Disagreement:
    """Events that some sources of a device reported and the others did not. seen, missing: names of these sources."""

    seen: tuple[str, ...]
    missing: tuple[str, ...]
    count: int


@frozen
class UnmatchedWake:
    """A wake event that matched no stimulus. seq: `seq` of its `Observed` row.

    - audio_s, offset_s: position in injected audio, and in the trial's stimulus; None if it has none.
    - in_vocabulary: whether it fell into a wake or command trial (lead-in or second event), not into ambient sound.
    - exposed: whether it fell into exposure that counts.
    - rule, why: its explanation by a rule (a self-wake), before review, and the reason in words.
    - word: its explanation by the latest review, else by the rule, else None (unreviewed).
    - sources: the times of all reports, for a device with several sources.
    - inferred: what it was inferred from, such as network traffic: weak evidence. "": it was reported or shown.
    """

    seq: int
    device: str
    at: Stamp
    wall_s: float
    phrase: str
    score: float | None
    trial_id: str | None
    audio_s: float | None = None
    offset_s: float | None = None
    in_vocabulary: bool = False
    exposed: bool = True
    rule: ReviewVerdict | None = None
    why: str = ""
    word: ReviewVerdict | None = None
    reviewed_by: str = ""
    clip: Clip | None = None
    sources: tuple[SourceTime, ...] = ()
    inferred: str = ""

    def false_accept(self, reviewed: bool) -> bool:
        """Whether an event within exposure counts, by the rules alone or also by the reviews."""
        return self.word in (None, ReviewVerdict.FALSE_ACCEPT) if reviewed else self.rule is None


@frozen
class Look:
    """The results at one moment, for a plot of how the intervals narrow. wall_s: Unix time."""

    wall_s: float
    trials: int
    false_rejects: Ratio
    exposure_hours: float
    false_accepts: Rate


@frozen
class Recovery:
    """How soon a device wakes again after an opening. say: the request in the opening; "": the wake phrase alone.

    heard: (pause in s from the opening's last word to the phrase, share of phrases that woke it), ascending.
    """

    say: str
    heard: tuple[tuple[float, Share], ...]

    @property
    def between(self) -> tuple[tuple[float, Share] | None, tuple[float, Share] | None]:
        """The next shorter pause, and the shortest pause from which on at least half of the phrases woke the device."""
        first = len(self.heard)
        while first and 2 * self.heard[first - 1][1].count >= self.heard[first - 1][1].total:
            first -= 1
        reached = self.heard[first] if first < len(self.heard) else None
        return (self.heard[first - 1] if first else None), reached


def recoveries(pauses: Counter[tuple[str, float, bool]]) -> Iterator[Recovery]:
    """The recovery after each opening.

    pauses: (words of the opening, pause after it in s, whether the phrase woke the device) → number of trials.
    """
    for say in dict.fromkeys(say for say, _, _ in pauses):
        counts = {pause_s: (pauses[say, pause_s, True], pauses[say, pause_s, False]) for _, pause_s, _ in pauses}
        results = tuple((pause_s, Share(hits, hits + missed)) for pause_s, (hits, missed) in sorted(counts.items()))
        if len(tested := tuple(pair for pair in results if pair[1].total)) > 1:
            yield Recovery(say, tested)


@frozen
class DeviceWake:
    """One device's wake statistics.

    - hits + false_rejects.share.count = wake trials that count.
    - double_wakes: share of hits whose event is followed by further events.
    - false_accepts: before review: every unmatched event that counts, without those that a rule explains.
    - after_review: only events that are unreviewed or were confirmed. events: (word, number), None for unreviewed.
    - in_vocabulary_events, uncounted_events: unmatched events in wake trials and commands that count, and in others.
    - ambient_events_outside: unmatched events outside of exposure. pending_events: events in the current attempt.
    - exposure_s: ambient sound that counts. unproven_s: ambient sound without proof of listening, which does not.
    - delays: from the end of the phrase to its event.
    - commands: share that was understood, of those played; the rest is `substituted` or `missed`.
    - link_trouble: why its link is down. clock_error_s: error bound of its clock; None without one.
    - listening_proved_s: time of the last proof that it listens; None without one.
    - decisions: (name of a sequential test, whether the device passed).
    - probes: share that woke it, of those played. They prove exposure and count as nothing else.
    - words: word counts of commands, by transcripts.
    - source_events: separate events in trials that count, for a device with several sources. disagreements: those that
      not all sources reported, the most frequent first.
    - inferred: (what events were inferred from, number of separate events that rest on this weak evidence only), in
      trials that count.
    - recoveries: for each opening that the scenario combines with several pauses.
    - requests: results of commands, by the pause between wake phrase and command.
    - first_sounds: from the end of a command to the first sound. Only of commands to which the device reacted, and in
      which no other device listened.
    """

    device: str
    false_rejects: Ratio = field(default_factory=Ratio)
    hits: int = 0
    double_wakes: Share = field(default_factory=Share)
    missed: int = 0
    false_accepts: Rate = field(default_factory=Rate)
    after_review: Rate = field(default_factory=Rate)
    events: tuple[tuple[ReviewVerdict | None, int], ...] = ()
    in_vocabulary_events: int = 0
    suppressed: int = 0
    exposure_s: float = 0.0
    unproven_s: float = 0.0
    ambient_events_outside: int = 0
    uncounted_events: int = 0
    pending_events: int = 0
    delays: LatencyFigures = field(default_factory=LatencyFigures)
    commands: Share = field(default_factory=Share)
    substituted: int = 0
    link_up: bool = True
    link_trouble: str = ""
    clock_error_s: float | None = None
    listening_proved_s: float | None = None
    timeline: tuple[TimelineMark, ...] = ()
    looks: tuple[Look, ...] = ()
    decisions: tuple[tuple[str, bool], ...] = ()
    conditions: tuple[tuple[str, Ratio], ...] = ()
    probes: Share = field(default_factory=Share)
    words: GroupTranscripts = field(default_factory=GroupTranscripts)
    source_events: int = 0
    disagreements: tuple[Disagreement, ...] = ()
    inferred: tuple[tuple[str, int], ...] = ()
    recoveries: tuple[Recovery, ...] = ()
    requests: tuple[GapRequests, ...] = ()
    first_sounds: FirstSounds = field(default_factory=FirstSounds)


@frozen
class WakeProgress:
    """Wake statistics of all devices of a session, in the order of the plan.

    - unmatched: the latest events first, at most 200.
    - planned: number of planned wake, command and ambient trials. counted: number of those that ended as COUNTED.
    """

    devices: tuple[DeviceWake, ...] = ()
    unmatched: tuple[UnmatchedWake, ...] = ()
    planned: int = 0
    counted: int = 0

    def device(self, name: str) -> DeviceWake | None:
        return next((device for device in self.devices if device.device == name), None)


LOOKS = 240
"""Largest number of looks in a plot of a session."""


_NO_SPEAKERS = Speakers()


@lru_cache(maxsize=4096)
def ratio(share: Share, speakers: Speakers = _NO_SPEAKERS) -> Ratio:
    """A share with both of its intervals, over voices if there are several."""
    if not speakers.several:
        exact = clopper_pearson(share.count, share.total)
        return Ratio(share, exact, share_sequence(share.count, share.total), speakers)
    spans = over_voices(speakers.shares)
    return Ratio(share, speakers=speakers) if spans is None else Ratio(share, spans.interval, spans.any_time, speakers)


@lru_cache(maxsize=4096)
def rate(count: int, hours: float) -> Rate:
    return Rate(count, hours, garwood(count, hours), rate_sequence(count, hours))


RawLook = tuple[float, Share, Speakers, float, int]


class Looks:
    """One look for each trial that counts, thinned evenly to at most LOOKS. The latest one is always kept."""

    def __init__(self) -> None:
        self._raw: list[RawLook] = []
        self._last: RawLook | None = None
        self._stride, self._seen_count = 1, 0

    def add(
        self, wall_s: float, false_rejects: Share, speakers: Speakers, exposure_s: float, false_accepts: int
    ) -> None:
        self._last = (wall_s, false_rejects, speakers, exposure_s, false_accepts)
        if self._seen_count % self._stride == 0:
            self._raw.append(self._last)
            if len(self._raw) >= LOOKS:
                self._raw = self._raw[::2]
                self._stride *= 2
        self._seen_count += 1

    def snapshot(self) -> tuple[Look, ...]:
        chosen = list(self._raw)
        if self._last is not None and (not chosen or chosen[-1] is not self._last):
            chosen.append(self._last)
        return tuple(_look(*look) for look in chosen)


@lru_cache(maxsize=8192)
def _look(wall_s: float, false_rejects: Share, speakers: Speakers, exposure_s: float, false_accepts: int) -> Look:
    hours = exposure_s / 3600
    return Look(wall_s, false_rejects.total, ratio(false_rejects, speakers), hours, rate(false_accepts, hours))


def due_decisions(progress: WakeProgress, stopping: Stopping) -> tuple[DecisionReached, ...]:
    """Rows for the decisions of sequential tests that are not in the log yet. A decision is final."""
    return tuple(row for device in progress.devices for row in _due(device, stopping))


def needless(trial: Trial, progress: WakeProgress, stopping: Stopping) -> str:
    """Why a trial need not be played, since its question is decided for every device; "" if it must be played.
    Ambient trials are for false accepts, wake trials for false rejects; commands and queries must always be played."""
    if trial.listening is None:
        return ""
    match trial.listening.kind:
        # A probe only proves that ambient sound was heard.
        case TrialKind.AMBIENT | TrialKind.PROBE if stopping.false_accepts is not None:
            figure = "false_accepts"
        case TrialKind.WAKE if stopping.false_rejects is not None:
            figure = "false_rejects"
        case _:
            return ""
    for target in trial.listening.targets:
        device = progress.device(target.device)
        if device is None or figure not in dict(device.decisions):
            return ""
    return f"{figure.replace('_', ' ')} are decided for every device"


def _due(device: DeviceWake, stopping: Stopping) -> Iterator[DecisionReached]:
    accepts, rejects = device.after_review, device.false_rejects
    verdicts: dict[Literal["false_accepts", "false_rejects"], SequentialVerdict] = {}
    if stopping.false_accepts is not None:
        verdicts["false_accepts"] = rate_verdict(stopping.false_accepts, accepts.count, accepts.hours)
    if stopping.false_rejects is not None:
        test, speakers, share = stopping.false_rejects, rejects.speakers, rejects.share
        verdicts["false_rejects"] = (
            voices_verdict(test, speakers.shares) if speakers.several else share_verdict(test, share.count, share.total)
        )
    for figure, verdict in verdicts.items():
        if verdict is not SequentialVerdict.OPEN and figure not in dict(device.decisions):
            yield DecisionReached(device.device, figure, verdict is SequentialVerdict.PASSED)

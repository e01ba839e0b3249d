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
    """`count` events in `hours` of audio. interval: exact Garwood, 95 %; any_time: the time-uniform interval, for
    results watched during a run. None over nothing.
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
    """Trials by voice or talker.

    - shares: false rejects of each that has been heard.
    - several: whether the plan has more than one, so that results are for other voices.
    - unknown: whether one of them stands for all recordings whose talker is not stated.
    """

    shares: tuple[Share, ...] = ()
    several: bool = False
    unknown: bool = False

    @classmethod
    def of(cls, shares: Mapping[str, Share], planned: Collection[str] = ()) -> Speakers:
        """planned: all names of the plan. A recording without a talker has the name ""."""
        measured = {name: share for name, share in shares.items() if share.total}
        return cls(tuple(measured.values()), len({*measured, *planned}) > 1, "" in measured)


@frozen
class Ratio:
    """A share with its 95 % interval and the time-uniform one; None over nothing.

    Both intervals are over voices if there are several, because trials of one voice fail alike: None for too few of
    them. Else they are over trials, by Clopper–Pearson, and hold for that voice alone.
    """

    share: Share = field(default_factory=Share)
    interval: Interval | None = None
    any_time: Interval | None = None
    speakers: Speakers = field(default_factory=Speakers)

    @property
    def voices(self) -> int | None:
        """How many voices the intervals are over; None for intervals over trials."""
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
    """Something on a device's timeline: a stimulus (from start_s to end_s) or an event (both the same). Times are host
    seconds of the log rows' clock."""

    kind: MarkKind
    start_s: float
    end_s: float
    trial_id: str = ""
    event_seq: int | None = None


@frozen
class SourceTime:
    """When one source of a device reported a wake event. seq: of its row. inferred: what from; weak evidence."""

    source: str
    at: Stamp
    seq: int
    inferred: str = ""


@frozen
class Disagreement:
    """Events that some sources of a device reported, and the others did not; names as in tables."""

    seen: tuple[str, ...]
    missing: tuple[str, ...]
    count: int


@frozen
class UnmatchedWake:
    """A wake event that matched no stimulus. seq: of its `Observed` row.

    - in_vocabulary: it fell into a wake or command trial (lead-in or second event), not into ambient sound.
    - exposed: it fell into exposure that counts.
    - rule: its explanation by a rule (a self-wake), before review.
    - word: its explanation by the latest review, else by the rule, else None (unreviewed).
    - sources: the times of all sources, for a device with several.
    - inferred: what it was inferred from, such as network traffic; weak evidence.
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
    """How soon a device wakes again after an event. say: the request that made it, after the phrase; "": the phrase.

    heard: phrases that woke it, by the pause from the last word of the event to the phrase (s), in ascending order.
    """

    say: str
    heard: tuple[tuple[float, Share], ...]

    @property
    def between(self) -> tuple[tuple[float, Share] | None, tuple[float, Share] | None]:
        """The shortest pause from which on at least half of the phrases were heard, and the pause before that one."""
        first = len(self.heard)
        while first and 2 * self.heard[first - 1][1].count >= self.heard[first - 1][1].total:
            first -= 1
        reached = self.heard[first] if first < len(self.heard) else None
        return (self.heard[first - 1] if first else None), reached


def recoveries(pauses: Counter[tuple[str, float, bool]]) -> Iterator[Recovery]:
    """pauses: trials by what was said before, the pause after it, and whether the phrase woke the device."""
    for say in dict.fromkeys(say for say, _, _ in pauses):
        counts = {pause_s: (pauses[say, pause_s, True], pauses[say, pause_s, False]) for _, pause_s, _ in pauses}
        results = tuple((pause_s, Share(hits, hits + missed)) for pause_s, (hits, missed) in sorted(counts.items()))
        if len(tested := tuple(pair for pair in results if pair[1].total)) > 1:
            yield Recovery(say, tested)


@frozen
class DeviceWake:
    """One device's wake statistics.

    - hits + false_rejects = in-vocabulary trials counted.
    - double_wakes: phrases with further events after theirs, of the hits.
    - false_accepts: before review, every unmatched event that counts, less self-wakes by rule.
    - after_review: only events that are unreviewed or were confirmed. events: counts by word, None for unreviewed.
    - exposure_s: counts. unproven_s: played without proof of listening, does not count.
    - delays: end of phrase → event.
    - commands: understood, of those played; substituted and missed are the rest.
    - probes: those that woke it, of those played. They prove exposure and count as nothing else.
    - words: of what was heard of commands, by transcripts.
    - source_events: separate events in trials that count, for a device with several sources. disagreements: those that
      not all sources reported, the most frequent first.
    - inferred: separate events in trials that count and rest on weak evidence only, by what they were inferred from.
    - recoveries: by event, where openings of the scenario differ in their pause.
    - requests: commands by the pause between wake phrase and command.
    - first_sounds: end of the command → first sound, of commands that it took for one, where it listened alone.
    - clock_error_s: of the device's clock, None without one. decisions: name of the test → passed.
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
    - planned: wake, command and ambient trials. counted: those finished as COUNTED.
    """

    devices: tuple[DeviceWake, ...] = ()
    unmatched: tuple[UnmatchedWake, ...] = ()
    planned: int = 0
    counted: int = 0

    def device(self, name: str) -> DeviceWake | None:
        return next((device for device in self.devices if device.device == name), None)


LOOKS = 240
"""Looks that a plot of a session has at most."""


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
    """One look per counted trial, thinned evenly to at most LOOKS. The latest is always kept."""

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
    """Rows to write now: decisions of tests that are not in the log yet. A decision is final."""
    return tuple(row for device in progress.devices for row in _due(device, stopping))


def needless(trial: Trial, progress: WakeProgress, stopping: Stopping) -> str:
    """Why a trial need not be played: its question is decided for every device. "" if it must be played.
    Ambient trials are for false accepts, wake trials for false rejects; no test makes a command or a query needless."""
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

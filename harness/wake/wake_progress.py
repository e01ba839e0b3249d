"""The wake statistics of a session: counts, their intervals, and the events that wait for a review."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property, lru_cache
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

    - interval: exact 95 % interval (Garwood); None without audio.
    - any_time: the time-uniform interval, for results that are watched during a run; None without audio.
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
    """False rejects by speaker: a voice, or the talker of recordings.

    - shares: the share of each speaker that has been played.
    - several: whether there is more than one speaker in the plan, so that results apply to other voices too.
    - unknown: whether one of them stands for all recordings whose talker is not stated.
    """

    shares: tuple[Share, ...] = ()
    several: bool = False
    unknown: bool = False

    @classmethod
    def of(cls, shares: Mapping[str, Share], planned: Collection[str] = ()) -> Speakers:
        """The speakers from their shares by name; "" is the name for recordings without a talker.

        planned: names of all speakers in the plan.
        """
        measured = {name: share for name, share in shares.items() if share.total}
        return cls(tuple(measured.values()), len({*measured, *planned}) > 1, "" in measured)


@frozen
class Ratio:
    """A share with its 95 % interval and the time-uniform one (`any_time`); both are None without trials.

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
    """A mark on a device's timeline: a stimulus (from start_s to end_s) or an event (both times are equal).

    Both are times on the host's monotonic clock.
    event_seq: `seq` of the row of the event, or of the event that a stimulus caused; None if it caused none.
    """

    kind: MarkKind
    start_s: float
    end_s: float
    trial_id: str = ""
    event_seq: int | None = None


@frozen
class SourceTime:
    """When one source of a device reported a wake event.

    - seq: `seq` of the report's row.
    - inferred: what the event was inferred from, such as network traffic (weak evidence); "" if the device reported it.
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
    """A wake event that matched no stimulus."""

    seq: int
    """`seq` of its `Observed` row."""
    device: str
    at: Stamp
    wall_s: float
    """Unix time at which the row was written."""
    phrase: str
    """The wake phrase as the device names it; "" if it names none."""
    score: float | None
    trial_id: str | None
    """Id of the trial during whose sound it occurred; None between trials."""
    audio_s: float | None = None
    """Position in injected audio; None for sound through the air."""
    offset_s: float | None = None
    """Position in the trial's stimulus; None without one."""
    in_vocabulary: bool = False
    """Whether it fell into a wake or command trial (lead-in or second event), not into ambient sound."""
    exposed: bool = True
    """Whether it fell into exposure that counts."""
    rule: ReviewVerdict | None = None
    """Its explanation by a rule (a self-wake), before review; None if no rule applies."""
    why: str = ""
    """The reason for `rule` in words."""
    verdict: ReviewVerdict | None = None
    """Its explanation by the latest review, else by the rule, else None (unreviewed)."""
    reviewed_by: str = ""
    """Name of the reviewer; "" if the verdict is not from a review."""
    clip: Clip | None = None
    sources: tuple[SourceTime, ...] = ()
    """The times of all reports, for a device with several sources."""
    inferred: str = ""
    """What it was inferred from, such as network traffic (weak evidence); "" if the device reported it."""

    def is_false_accept(self, *, use_reviews: bool) -> bool:
        """Whether the event is a false accept, by the rules alone or also by the reviews.

        This holds only for an event within exposure: the caller checks `exposed`.
        """
        return self.verdict in (None, ReviewVerdict.FALSE_ACCEPT) if use_reviews else self.rule is None


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
    """How soon a device wakes again after an opening.

    - say: the request in the opening; "" if the opening is the wake phrase alone.
    - results: (pause in s from the opening's last word to the phrase, share of phrases that woke the device), by
      ascending pause.
    """

    say: str
    results: tuple[tuple[float, Share], ...]

    @property
    def bracket_of_half(self) -> tuple[tuple[float, Share] | None, tuple[float, Share] | None]:
        """Two neighbouring results between which half of the phrases wake the device.

        The second one is of the shortest pause from which on at least half of the phrases woke the device. It is None
        if the longest pause fails. The first is of the next shorter pause; None if every tested pause succeeds.
        """
        shorter, enough = None, None
        for result in reversed(self.results):
            _, woke = result
            if 2 * woke.count < woke.total:
                shorter = result
                break
            enough = result
        return shorter, enough


def recoveries(pauses: Counter[tuple[str, float, bool]]) -> Iterator[Recovery]:
    """The recovery after each opening, without openings of which only one pause was tested.

    pauses: (words of the opening, pause after it in s, whether the phrase woke the device) → number of trials.
    """
    for say in dict.fromkeys(say for say, _, _ in pauses):
        results: list[tuple[float, Share]] = []
        for pause_s in sorted({pause_s for _, pause_s, _ in pauses}):
            hits, missed = pauses[say, pause_s, True], pauses[say, pause_s, False]
            if hits + missed:
                results.append((pause_s, Share(hits, hits + missed)))
        if len(results) > 1:
            yield Recovery(say, tuple(results))


@frozen
class DeviceWake:
    """One device's wake statistics."""

    device: str
    false_rejects: Ratio = field(default_factory=Ratio)
    """Of wake trials that count. Their number is hits + false_rejects.share.count."""
    hits: int = 0
    double_wakes: Share = field(default_factory=Share)
    """Share of hits whose event is followed by further events."""
    missed: int = 0
    """Number of commands without a transcript or intent."""
    false_accepts: Rate = field(default_factory=Rate)
    """Before review: every unmatched event that counts, without those that a rule explains."""
    after_review: Rate = field(default_factory=Rate)
    """False accepts after review: only events that are unreviewed or were confirmed."""
    events: tuple[tuple[ReviewVerdict | None, int], ...] = ()
    """(Explanation, number of unmatched events with it); None is the explanation of those without a review or rule."""
    in_vocabulary_events: int = 0
    """Number of unmatched events in wake trials and commands that count."""
    suppressed: int = 0
    """Number of events within the refractory time, which are part of another event."""
    exposure_s: float = 0.0
    """Exposure: ambient sound with proof of listening and, if the scenario counts them, wake trials and commands."""
    unproven_s: float = 0.0
    """Ambient sound without proof of listening, which does not count."""
    ambient_events_outside: int = 0
    """Number of unmatched events in ambient sound, or between trials, that are outside of exposure."""
    uncounted_events: int = 0
    """Number of unmatched events in wake trials and commands that do not count, and in probes."""
    pending_events: int = 0
    """Number of unmatched events in the current attempt."""
    delays: LatencyFigures = field(default_factory=LatencyFigures)
    """Times from the end of the phrase to its event."""
    commands: Share = field(default_factory=Share)
    """Share that was understood, of those played; the rest is `substituted` or `missed`."""
    substituted: int = 0
    """Number of commands that were understood as something else."""
    link_up: bool = True
    """Whether all of its connections are up."""
    link_trouble: str = ""
    """Why the last lost connection is down; "" if all are up."""
    clock_error_s: float | None = None
    """Error bound of its clock; None before its clock is fitted."""
    listening_proved_s: float | None = None
    """Time of the last proof that it listens; None without one."""
    timeline: tuple[TimelineMark, ...] = ()
    """The latest marks, in the order of their times."""
    looks: tuple[Look, ...] = ()
    """Results after trials that count, in their order; thinned to fewer than MAX_LOOKS, besides the latest."""
    decisions: tuple[tuple[str, bool], ...] = ()
    """(Name of a sequential test, whether the device passed)."""
    conditions: tuple[tuple[str, Ratio], ...] = ()
    """("axis=label", false rejects under this condition)."""
    probes: Share = field(default_factory=Share)
    """Share that woke it, of those played. They prove exposure and count as nothing else."""
    words: GroupTranscripts = field(default_factory=GroupTranscripts)
    """Word counts of commands, by transcripts."""
    source_events: int = 0
    """Number of separate events in trials that count, for a device with several sources."""
    disagreements: tuple[Disagreement, ...] = ()
    """Those of `source_events` that not all sources reported, the most frequent first."""
    inferred: tuple[tuple[str, int], ...] = ()
    """(What events were inferred from, number of separate events that rest on this weak evidence only), in trials that
    count."""
    recoveries: tuple[Recovery, ...] = ()
    """One for each opening that the scenario combines with several pauses."""
    requests: tuple[GapRequests, ...] = ()
    """Results of commands, by the pause between wake phrase and command."""
    first_sounds: FirstSounds = field(default_factory=FirstSounds)
    """Times from the end of a command to the first sound. Only of commands to which the device reacted, and in which no
    other device listened."""


@frozen
class WakeProgress:
    """Wake statistics of all devices of a session, in the order of the plan.

    - unmatched: the latest events first, at most `unmatched.MAX_SHOWN`.
    - planned: number of planned trials in which devices listen.
    - counted: number of those that ended as COUNTED.
    """

    devices: tuple[DeviceWake, ...] = ()
    unmatched: tuple[UnmatchedWake, ...] = ()
    planned: int = 0
    counted: int = 0

    def device(self, name: str) -> DeviceWake | None:
        return next((device for device in self.devices if device.device == name), None)


MAX_LOOKS = 240
"""Number of looks at which every second one is dropped."""

_NO_SPEAKERS = Speakers()


@lru_cache(maxsize=4096)
def ratio_with_intervals(share: Share, speakers: Speakers = _NO_SPEAKERS) -> Ratio:
    """A share with both of its intervals, over voices if there are several; without them for too few voices."""
    if not speakers.several:
        exact = clopper_pearson(share.count, share.total)
        return Ratio(share, exact, share_sequence(share.count, share.total), speakers)
    intervals = over_voices(speakers.shares)
    if intervals is None:
        return Ratio(share, speakers=speakers)
    return Ratio(share, intervals.interval, intervals.any_time, speakers)


@lru_cache(maxsize=4096)
def rate_with_intervals(count: int, hours: float) -> Rate:
    return Rate(count, hours, garwood(count, hours), rate_sequence(count, hours))


@dataclass(frozen=True)
class LookCounts:
    """The counts of a look, before their intervals are computed.

    - wall_s: Unix time.
    - speakers, planned_speakers: as in `Speakers.of`.
    """

    wall_s: float
    false_rejects: Share
    speakers: Mapping[str, Share]
    planned_speakers: Collection[str]
    exposure_s: float
    false_accepts: int

    @cached_property
    def look(self) -> Look:
        """With intervals. Computed once, and not for looks that are dropped before."""
        hours = self.exposure_s / 3600
        speakers = Speakers.of(self.speakers, self.planned_speakers)
        return Look(
            wall_s=self.wall_s,
            trials=self.false_rejects.total,
            false_rejects=ratio_with_intervals(self.false_rejects, speakers),
            exposure_hours=hours,
            false_accepts=rate_with_intervals(self.false_accepts, hours),
        )


class Looks:
    """One look for each trial that counts, thinned evenly to fewer than MAX_LOOKS. The latest one is kept besides."""

    def __init__(self) -> None:
        self._thinned: list[LookCounts] = []
        self._last: LookCounts | None = None
        self._stride, self._added_count = 1, 0

    def add(self, counts: LookCounts) -> None:
        self._last = counts
        if self._added_count % self._stride == 0:
            self._thinned.append(counts)
            if len(self._thinned) >= MAX_LOOKS:
                self._thinned = self._thinned[::2]
                self._stride *= 2
        self._added_count += 1

    def snapshot(self) -> tuple[Look, ...]:
        """The looks with their intervals, in the order in which they were added."""
        chosen = list(self._thinned)
        if self._last is not None and (not chosen or chosen[-1] is not self._last):
            chosen.append(self._last)
        return tuple(counts.look for counts in chosen)


def due_decisions(progress: WakeProgress, stopping: Stopping) -> tuple[DecisionReached, ...]:
    """Rows for the decisions of sequential tests that are not in the log yet. A decision is final."""
    return tuple(row for device in progress.devices for row in _due(device, stopping))


def why_needless(trial: Trial, progress: WakeProgress, stopping: Stopping) -> str:
    """Why a trial need not be played, since its question is decided for every device; "" if it must be played.

    Ambient trials are for false accepts, wake trials for false rejects; commands and queries must always be played.
    """
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
    """The rows for one device: one for each test that has become decided since the last row."""
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

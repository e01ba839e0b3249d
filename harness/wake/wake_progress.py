"""What the wake figures of a session are made of: counts, their intervals, and the events that wait for a review."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from harness.model.record import Clip, ReviewWord
from harness.model.time import Stamp
from harness.statistics.intervals import Share
from harness.statistics.latency import LatencyFigures
from harness.transcripts.recognition import WordsHeard

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Rate:
    """`count` events in `hours` of audio.

    interval: exact Garwood, 95 %; any_time: the time-uniform one for a screen that is looked at while it grows.
    None over nothing.
    """

    count: int = 0
    hours: float = 0.0
    interval: Interval | None = None
    any_time: Interval | None = None

    @property
    def per_hour(self) -> float | None:
        return self.count / self.hours if self.hours > 0 else None


@dataclass(frozen=True, slots=True)
class Ratio:
    """A share with its 95 % interval and the time-uniform one; None over nothing.

    speakers: how many voices, talkers or recordings the trials come from, where more than one: both intervals are then
    over speakers, since trials of one speaker fail alike. Else over trials, by Clopper–Pearson.
    """

    share: Share = field(default_factory=Share)
    interval: Interval | None = None
    any_time: Interval | None = None
    speakers: int = 0


class MarkKind(StrEnum):
    """What a mark on a device's timeline is."""

    HIT = "hit"
    FALSE_REJECT = "false_reject"
    UNMATCHED = "unmatched"
    AMBIENT = "ambient"
    INTERRUPTED = "interrupted"
    PROBE = "probe"
    PROBE_UNHEARD = "probe_unheard"


@dataclass(frozen=True, slots=True)
class TimelineMark:
    """Something on a device's timeline: a stimulus (from start_s to end_s) or an event (both the same).

    Times are host seconds of the log rows' clock.
    """

    kind: MarkKind
    start_s: float
    end_s: float
    trial_id: str = ""
    event_seq: int | None = None


@dataclass(frozen=True, slots=True)
class WakeEvent:
    """A wake event that matched no stimulus. seq: of its `Observed` row.

    in_vocabulary: it fell into a wake or command trial (a lead-in, a second spot), not into ambient sound.
    exposed: it fell into exposure that counts. rule: what a rule says of it (a self-wake), before anybody reviewed it.
    word: what it is by the latest review, else by the rule, else None: unreviewed.
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
    rule: ReviewWord | None = None
    why: str = ""
    word: ReviewWord | None = None
    reviewed_by: str = ""
    clip: Clip | None = None


@dataclass(frozen=True, slots=True)
class Look:
    """The figures at one moment, for a picture of how they narrowed. wall_s: Unix time."""

    wall_s: float
    trials: int
    false_rejects: Ratio
    exposure_hours: float
    false_accepts: Rate


@dataclass(frozen=True, slots=True)
class DeviceWake:
    """One device's wake figures.

    hits + false_rejects = in-vocabulary trials counted. false_accepts: before any review: every unmatched event that
    counts, less self-wakes by rule. after_review: only events that are unreviewed or were confirmed. events: counts
    by word, None being unreviewed. exposure_s counts; unproven_s was played without proof of listening, and does not.
    delays: end of phrase → event. commands: understood, of those said; substituted and missed are the rest. probes:
    those that it woke to, of those played, which prove exposure and count as nothing else. words: of what was heard of
    commands, by transcripts. clock_error_s: of the device's clock, None without one. decisions: figure → passed.
    """

    device: str
    false_rejects: Ratio = field(default_factory=Ratio)
    hits: int = 0
    missed: int = 0
    false_accepts: Rate = field(default_factory=Rate)
    after_review: Rate = field(default_factory=Rate)
    events: tuple[tuple[ReviewWord | None, int], ...] = ()
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
    words: WordsHeard = field(default_factory=WordsHeard)


@dataclass(frozen=True, slots=True)
class WakeProgress:
    """Of all devices of a session, in the order of the plan; unmatched: the latest ones first, at most 200.

    planned: wake, command and ambient trials; counted: those finished as COUNTED. ambient_planned_s: sound asked for.
    """

    devices: tuple[DeviceWake, ...] = ()
    unmatched: tuple[WakeEvent, ...] = ()
    planned: int = 0
    counted: int = 0
    ambient_planned_s: float = 0.0

    def device(self, name: str) -> DeviceWake | None:
        return next((one for one in self.devices if one.device == name), None)

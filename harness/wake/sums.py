"""The sums of one device over the plays that count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from harness.base.grouping import group_by
from harness.model.scenario import TrialKind
from harness.statistics.intervals import Share
from harness.wake.requests import RequestResult
from harness.wake.wake_plays import CommandResult, Play

MissShares = dict[str, Share]
"""Name of a speaker → share of the wake trials that the device missed; 0 of 0 if none counts any more."""


@dataclass(slots=True)
class PlayTotals:
    """Sums over the plays that count."""

    wake_trials: int = 0
    hits: int = 0
    """Number of wake trials in which the phrase woke the device."""
    doubled_hits: int = 0
    """Number of hits whose event is followed by further events."""
    probes: int = 0
    probes_heard: int = 0
    """Number of probes that woke the device."""
    commands: Counter[CommandResult] = field(default_factory=Counter)
    speakers: MissShares = field(default_factory=dict)
    speakers_by_condition: dict[str, MissShares] = field(default_factory=dict)
    """"axis=label" → shares by speaker."""
    matched_events: int = 0
    """Number of events that match the phrase, also in commands and probes."""
    suppressed_events: int = 0
    """Number of events that are part of another event."""
    expected_events: int = 0
    """Number of events of further phrases, such as that of an opening."""
    exposure_ns: int = 0
    """Sound that counts as exposure, in nanoseconds."""
    unproven_ns: int = 0
    """Ambient sound without proof of listening, in nanoseconds."""
    events_by_sources: Counter[tuple[str, ...]] = field(default_factory=Counter)
    """Number of separate events by the sources that reported them; only for a device with several sources."""
    events_by_inference: Counter[str] = field(default_factory=Counter)
    """Number of separate events by what they were inferred from, such as network traffic."""
    pauses: Counter[tuple[str, float, bool]] = field(default_factory=Counter)
    """(Words of the opening, pause after it in s, whether the phrase woke the device) → number of wake trials."""
    requests: Counter[RequestResult] = field(default_factory=Counter)

    def add(self, play: Play, sign: int) -> None:
        """Adds a play (sign 1) or takes it out again (sign -1)."""
        reading = play.reading
        if play.kind is TrialKind.WAKE:
            self.wake_trials += sign
            if reading.hit is not None:
                self.hits += sign
            if reading.doubled:
                self.doubled_hits += sign
            is_missed, speaker = reading.hit is None, play.trial.speaker
            _count_trial(self.speakers, speaker, is_missed, sign)
            opening = play.trial.recipe.opening
            if opening is not None and not opening.sounds:
                self.pauses[opening.say, opening.pause_s, not is_missed] += sign
            for axis, label in play.trial.conditions:
                _count_trial(self.speakers_by_condition.setdefault(f"{axis}={label}", {}), speaker, is_missed, sign)
        if play.kind is TrialKind.PROBE:
            self.probes += sign
            if reading.hit is not None:
                self.probes_heard += sign
        if reading.command is not None:
            self.commands[reading.command] += sign
            if (request := play.request) is not None:
                self.requests[request] += sign
        for event in play.separate:
            if event.reports:
                self.events_by_sources[event.sources] += sign
            if event.inferred:
                self.events_by_inference[event.inferred] += sign
        if reading.hit is not None:
            self.matched_events += sign
        self.suppressed_events += sign * reading.suppressed
        self.expected_events += sign * reading.expected
        # Whole nanoseconds, so that subtracting is exact and a sample keeps its length.
        self.exposure_ns += sign * round(reading.exposure_s * 1e9)
        self.unproven_ns += sign * round(reading.unproven_s * 1e9)

    @property
    def exposure_s(self) -> float:
        return self.exposure_ns / 1e9

    @property
    def false_rejects(self) -> Share:
        return Share(self.wake_trials - self.hits, self.wake_trials)


def _count_trial(shares: MissShares, speaker: str, is_missed: bool, sign: int) -> None:
    share = shares.get(speaker, Share())
    missed = share.count + sign if is_missed else share.count
    shares[speaker] = Share(missed, share.total + sign)


def ordered_by_axis(speakers_by_condition: Mapping[str, MissShares]) -> list[tuple[str, MissShares]]:
    """The conditions ("axis=label") grouped by axis, in the order in which the axes first occurred."""
    by_axis = group_by(
        (condition.partition("=")[0], (condition, shares)) for condition, shares in speakers_by_condition.items()
    )
    return [condition for conditions in by_axis.values() for condition in conditions]

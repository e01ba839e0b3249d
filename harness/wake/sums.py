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


@dataclass(slots=True)
class MissCounts:
    missed: int = 0
    trials: int = 0


SpeakerCounts = dict[str, MissCounts]
"""Name of a speaker → counts."""


@dataclass(slots=True)
class PlayTotals:
    """Sums over the plays that count.

    - hits: wake trials in which the phrase woke the device. doubled_hits: those whose event is followed by further
      events.
    - commands, requests: number of commands by their result, and of requests by theirs.
    - speakers: counts of wake trials by speaker. speakers_by_condition: "axis=label" → the same.
    - matched_events: events that match the phrase, also in commands and probes.
    - suppressed_events: events that are part of another event. expected_events: events of further phrases.
    - exposure_ns, unproven_ns: ambient sound with and without proof of listening, in nanoseconds.
    - events_by_sources, events_by_inference: number of events by the sources that reported them, and by what they were
      inferred from.
    - pauses: (words of the opening, pause after it in s, whether the phrase woke the device) → number of trials.
    """

    wake_trials: int = 0
    hits: int = 0
    doubled_hits: int = 0
    probes: int = 0
    probes_heard: int = 0
    commands: Counter[CommandResult] = field(default_factory=Counter)
    speakers: SpeakerCounts = field(default_factory=dict)
    speakers_by_condition: dict[str, SpeakerCounts] = field(default_factory=dict)
    matched_events: int = 0
    suppressed_events: int = 0
    expected_events: int = 0
    exposure_ns: int = 0
    unproven_ns: int = 0
    events_by_sources: Counter[tuple[str, ...]] = field(default_factory=Counter)
    events_by_inference: Counter[str] = field(default_factory=Counter)
    pauses: Counter[tuple[str, float, bool]] = field(default_factory=Counter)
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
            _tally(self.speakers, speaker, is_missed, sign)
            opening = play.trial.recipe.opening
            if opening is not None and not opening.sounds:
                self.pauses[opening.say, opening.pause_s, not is_missed] += sign
            for axis, label in play.trial.conditions:
                _tally(self.speakers_by_condition.setdefault(f"{axis}={label}", {}), speaker, is_missed, sign)
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


def _tally(tally: SpeakerCounts, speaker: str, is_missed: bool, sign: int) -> None:
    counts = tally.setdefault(speaker, MissCounts())
    counts.trials += sign
    if is_missed:
        counts.missed += sign


def shares(tally: SpeakerCounts) -> dict[str, Share]:
    return {speaker: Share(counts.missed, counts.trials) for speaker, counts in tally.items()}


def by_axis(speakers_by_condition: Mapping[str, SpeakerCounts]) -> list[tuple[str, SpeakerCounts]]:
    """The conditions grouped by axis, in the order in which the axes first occurred."""
    groups = group_by((cell[0].partition("=")[0], cell) for cell in speakers_by_condition.items())
    return [cell for cells in groups.values() for cell in cells]

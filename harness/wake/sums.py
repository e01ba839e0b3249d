"""The sums of one device over the plays that count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from harness.model.scenario import TrialKind
from harness.statistics.intervals import Share
from harness.wake.requests import RequestResult
from harness.wake.wake_plays import CommandResult, Play

SpeakerCounts = dict[str, list[int]]
"""Speaker → [missed, trials]."""


@dataclass(slots=True)
class PlayTotals:
    """Counts over the plays that count."""

    wake_trials: int = 0
    hits: int = 0
    doubled: int = 0
    probes: int = 0
    probes_heard: int = 0
    commands: Counter[CommandResult] = field(default_factory=Counter)
    speakers: SpeakerCounts = field(default_factory=dict)
    cells: dict[str, SpeakerCounts] = field(default_factory=dict)
    matched: int = 0
    suppressed: int = 0
    expected: int = 0
    exposure_ns: int = 0
    unproven_ns: int = 0
    seen_by: Counter[tuple[str, ...]] = field(default_factory=Counter)
    inferred: Counter[str] = field(default_factory=Counter)
    pauses: Counter[tuple[str, float, bool]] = field(default_factory=Counter)
    requests: Counter[RequestResult] = field(default_factory=Counter)

    def add(self, play: Play, sign: int) -> None:
        reading = play.reading
        if play.kind is TrialKind.WAKE:
            self.wake_trials += sign
            if reading.hit is not None:
                self.hits += sign
            if reading.doubled:
                self.doubled += sign
            is_missed, speaker = reading.hit is None, play.trial.speaker
            _tally(self.speakers, speaker, is_missed, sign)
            opening = play.trial.recipe.opening
            if opening is not None and not opening.sounds:
                self.pauses[opening.say, opening.pause_s, not is_missed] += sign
            for axis, label in play.trial.conditions:
                _tally(self.cells.setdefault(f"{axis}={label}", {}), speaker, is_missed, sign)
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
                self.seen_by[event.sources] += sign
            if event.inferred:
                self.inferred[event.inferred] += sign
        if reading.hit is not None:
            self.matched += sign
        self.suppressed += sign * reading.suppressed
        self.expected += sign * reading.expected
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
    counts = tally.setdefault(speaker, [0, 0])
    counts[0] += sign * is_missed
    counts[1] += sign


def shares(tally: SpeakerCounts) -> dict[str, Share]:
    return {speaker: Share(*counts) for speaker, counts in tally.items()}


def by_axis(cells: Mapping[str, SpeakerCounts]) -> list[tuple[str, SpeakerCounts]]:
    axes = list(dict.fromkeys(name.partition("=")[0] for name in cells))
    return sorted(cells.items(), key=lambda cell: axes.index(cell[0].partition("=")[0]))

"""Ambient sound of a scenario: what it is made of, and the probes around it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from harness.model.stimulus import NoiseKind, VoiceSpec

SHORTEST_SEGMENT_S = 0.1


@dataclass(frozen=True, slots=True)
class AmbientSource:
    """One source of sound without the phrase: exactly one of recordings, noise and texts.

    recordings: absolute paths of sound files, in a fixed order, and durations_s their lengths, one for one.
    texts: spoken one after another by `voices`.
    share: part of the time that this source gets, relative to the others'.
    """

    id: str
    recordings: tuple[str, ...] = ()
    noise: NoiseKind | None = None
    texts: tuple[str, ...] = ()
    voices: tuple[VoiceSpec, ...] = ()
    share: float = 1.0
    durations_s: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class ProbeSpec:
    """A wake phrase before, after, and every `every_s` of ambient sound, which proves that devices listen.

    None is the devices' first phrase, the default voice and level. tail_s: sound after it, in which a device that says
    nothing of its state may come to rest. recording: absolute path of a sound file in which the phrase is said, instead
    of a voice.
    """

    every_s: float
    phrase: str | None = None
    voice: VoiceSpec | None = None
    level_dbfs: float | None = None
    tail_s: float = 1.5
    recording: str = ""


@dataclass(frozen=True, slots=True)
class AmbientSpec:
    """An ambient soak, in segments that are trials of their own; looped and shuffled by the scenario's seed.

    hours: of audio, per run of the template. segment_s: the longest segment.
    """

    hours: float
    sources: tuple[AmbientSource, ...]
    segment_s: float = 60.0
    probe: ProbeSpec | None = None

    @property
    def segments(self) -> int:
        """How many trials it takes; a rest of less than 0.1 s is not played."""
        return max(1, math.ceil((self.hours * 3600 - SHORTEST_SEGMENT_S) / self.segment_s))

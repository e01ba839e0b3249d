"""What is played: voices, texts, recordings, and the waveform that they become."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

import numpy as np
import numpy.typing as npt

Samples = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class VoiceSpec:
    """Which voice speaks and how; `engine` is an entry point of `harness.voices`, `name` one of that engine's voices.

    rate_wpm: words a minute; pitch: 0–99, 50 is the voice's own; language: BCP 47.
    An engine that cannot honour a field says so when it is asked to speak, rather than ignoring it.
    """

    engine: str = "espeak"
    name: str = "en-us"
    rate_wpm: int | None = None
    pitch: int | None = None
    language: str = "en-US"

    def label(self) -> str:
        """A short name for tables, e.g. `espeak:en-us`."""
        extra = "".join(
            f"/{value}{unit}" for value, unit in ((self.rate_wpm, "wpm"), (self.pitch, "p")) if value is not None
        )
        return f"{self.engine}:{self.name}{extra}"


@dataclass(frozen=True, slots=True)
class SpokenText:
    """A text for a voice."""

    text: str
    kind: Literal["text"] = "text"


@dataclass(frozen=True, slots=True)
class Recording:
    """A sound file; `path` is absolute and was checked to lie under an allowed root."""

    path: str
    kind: Literal["recording"] = "recording"


Utterance = SpokenText | Recording


class Role(StrEnum):
    """What a part of a stimulus is for."""

    WAKE_PHRASE = "wake_phrase"
    GAP = "gap"
    QUERY = "query"


@dataclass(frozen=True, slots=True)
class Part:
    """Samples [start_sample, end_sample) of a stimulus; for speech, the span of the active speech."""

    role: Role
    start_sample: int
    end_sample: int
    text: str = ""

    def __post_init__(self) -> None:
        if not 0 <= self.start_sample <= self.end_sample:
            raise ValueError(f"part {self.role} spans {self.start_sample}..{self.end_sample}")


class NoiseKind(StrEnum):
    WHITE = "white"
    PINK = "pink"
    RECORDING = "recording"


@dataclass(frozen=True, slots=True)
class NoiseSpec:
    """Noise under a stimulus, from 0.5 s before its first sample to 0.5 s after its last.

    snr_db: active speech level less noise level. path: absolute, for RECORDING only (looped as needed).
    """

    kind: NoiseKind
    snr_db: float
    path: str = ""


@dataclass(frozen=True, slots=True)
class StimulusRecipe:
    """Everything that decides how a stimulus sounds.

    wake_phrase: spoken before the query by the same voice, or None; a recording of it may be named instead.
    gap_ms: silence between wake phrase and query. level_dbfs: active speech level of the whole, relative to a
    full-scale square wave (so a full-scale sine is −3.01 dBFS).
    """

    query: Utterance
    wake_phrase: Utterance | None
    voice: VoiceSpec
    gap_ms: int = 250
    level_dbfs: float = -26.0
    rate_hz: int = 48000
    noise: NoiseSpec | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Waveform:
    """Mono samples, float32 in [−1, 1], shape (n,), at rate_hz."""

    samples: Samples
    rate_hz: int

    def __post_init__(self) -> None:
        if self.samples.ndim != 1 or self.samples.dtype != np.float32:
            raise ValueError(f"a waveform is float32 (n,), not {self.samples.dtype} {self.samples.shape}")
        if self.rate_hz <= 0:
            raise ValueError(f"a sample rate is positive, not {self.rate_hz}")

    @property
    def duration_s(self) -> float:
        return len(self.samples) / self.rate_hz


@dataclass(frozen=True, slots=True, eq=False)
class RenderedStimulus:
    """A waveform with the sample positions of its parts and a content hash (hex SHA-256 of recipe and samples)."""

    waveform: Waveform
    parts: tuple[Part, ...]
    sha256: str

    def span_s(self, role: Role) -> tuple[float, float] | None:
        """Start and end of the part with that role, in seconds from the first sample; None when there is none."""
        for part in self.parts:
            if part.role is role:
                rate = self.waveform.rate_hz
                return part.start_sample / rate, part.end_sample / rate
        return None

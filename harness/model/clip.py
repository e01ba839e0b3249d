"""A stored piece of sound."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Clip:
    """A FLAC file below the session's clips/ folder; `name` is the file name, start_s the host time of sample 0."""

    name: str
    sha256: str
    rate_hz: int
    samples: int
    start_s: float

    def __post_init__(self) -> None:
        if self.rate_hz <= 0 or self.samples < 0:
            raise ValueError(f"a clip has a positive rate and no less than 0 samples: {self.rate_hz}, {self.samples}")

    @property
    def duration_s(self) -> float:
        return self.samples / self.rate_hz

"""How soon devices begin to make a sound after what was said, a chime included.

The latency of a response is that of speech and passes chimes over. Some procedures ask for the first sound of any kind.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace

from harness.model.frozen import frozen
from harness.model.time import MeasuredDuration
from harness.statistics import text
from harness.statistics.intervals import LatencyFigures, latency_figures

_UNKNOWN = MeasuredDuration(0.0, 1e9)
"""A time that may be of any length."""


@frozen
class FirstSounds:
    """times: end of the query or command → first sound. Those without a sound are among the excluded ones, because they
    may have been of any length. soundless: their number.
    """

    times: LatencyFigures = field(default_factory=LatencyFigures)
    soundless: int = 0

    @classmethod
    def of(cls, measurements: Sequence[MeasuredDuration | None]) -> FirstSounds:
        """None: no sound was heard."""
        times = latency_figures([_UNKNOWN if measurement is None else measurement for measurement in measurements])
        return cls(times, sum(measurement is None for measurement in measurements))

    @property
    def heard(self) -> LatencyFigures:
        """The times of those with a sound."""
        return replace(self.times, excluded=self.times.excluded - self.soundless)

    def __str__(self) -> str:
        """As `text.delays`, with how many had no sound."""
        soundless_text = f"; {self.soundless} without a sound" if self.soundless else ""
        return f"{text.delays(self.heard)}{soundless_text}"

"""How soon devices make a sound, which may be a chime, after the end of a query or command.

The latency of a response is measured to its speech and ignores chimes. Some procedures ask for the first sound of any
kind.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace

from harness.model.frozen import frozen
from harness.model.time import MeasuredDuration
from harness.statistics import text
from harness.statistics.intervals import LatencyFigures, latency_figures

_UNKNOWN = MeasuredDuration(0.0, 1e9)
"""Stands for a time that may have any length."""


@frozen
class FirstSounds:
    """The times until devices make their first sound.

    - times: from the end of the query or command to the first sound. Cases without a sound are among its excluded
      times, because such a time may have any length.
    - soundless: number of cases without a sound.
    """

    times: LatencyFigures = field(default_factory=LatencyFigures)
    soundless: int = 0

    @classmethod
    def of(cls, measurements: Sequence[MeasuredDuration | None]) -> FirstSounds:
        """The times from the measurements of several cases; None stands for a case without a sound."""
        times = latency_figures([_UNKNOWN if measurement is None else measurement for measurement in measurements])
        return cls(times, sum(measurement is None for measurement in measurements))

    @property
    def heard(self) -> LatencyFigures:
        """The times of the cases with a sound."""
        return replace(self.times, excluded=self.times.excluded - self.soundless)

    def __str__(self) -> str:
        """The text of `text.delays`, with the number of cases without a sound."""
        soundless_text = f"; {self.soundless} without a sound" if self.soundless else ""
        return f"{text.delays(self.heard)}{soundless_text}"

"""Times with their errors.

All `at_s` are seconds on the host's monotonic clock (CLOCK_MONOTONIC), which the processes of one boot share.
"""

from __future__ import annotations

import math

from harness.model.frozen import frozen

DAY_S = 86_400.0


def _check(value: float, error_s: float) -> None:
    """Raises ValueError for a time or an error that cannot be."""
    if -math.inf < value < math.inf and 0 <= error_s < math.inf:  # almost all times, without a call
        return
    if not math.isfinite(value):
        raise ValueError(f"a time must be finite, not {value}")
    if not (math.isfinite(error_s) and error_s >= 0):
        raise ValueError(f"a time's error must be finite and not negative, not {error_s}")


@frozen
class Stamp:
    """A moment: the true time lies within at_s ± error_s."""

    at_s: float
    error_s: float = 0.0

    def __post_init__(self) -> None:
        _check(self.at_s, self.error_s)


@frozen
class MeasuredDuration:
    """A duration in seconds: the true one lies within value_s ± error_s."""

    value_s: float
    error_s: float = 0.0

    def __post_init__(self) -> None:
        _check(self.value_s, self.error_s)


def between(start: Stamp, end: Stamp) -> MeasuredDuration:
    """The time from `start` to `end`; the errors add, as bounds do."""
    return MeasuredDuration(end.at_s - start.at_s, start.error_s + end.error_s)

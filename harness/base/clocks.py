"""Clocks of a session: the host's, and one that runs faster for the in-process sound path."""

from __future__ import annotations

import ctypes

from harness.base import threads
from harness.base.ports import Clock


class HostClock:
    """CLOCK_MONOTONIC and the wall clock of this host, which all processes of one boot share. See `ports.Clock`."""

    speed: float = 1.0

    def now_s(self) -> float:
        return threads.monotonic()

    def wall_s(self) -> float:
        return threads.wall()

    def real_s(self, duration_s: float) -> float:
        return duration_s


class ScaledClock:
    """A clock that runs `speed` times as fast as another one.

    Its zero is the zero of the other clock, not the moment of its creation. So a run and its resume within one boot
    share one time line. The wall clock is unchanged.
    """

    def __init__(self, speed: float, clock: Clock) -> None:
        if not speed > 0:
            raise ValueError(f"the speed of a clock must be positive, not {speed}")
        self.speed = speed * clock.speed
        self._factor = speed
        self._clock = clock

    def now_s(self) -> float:
        return self._clock.now_s() * self._factor

    def wall_s(self) -> float:
        return self._clock.wall_s()

    def real_s(self, duration_s: float) -> float:
        return self._clock.real_s(duration_s / self._factor)


def wall_offset_s() -> float:
    """Wall clock minus monotonic clock of this host: it changes only when the wall clock is set."""
    return threads.wall() - threads.monotonic()


_NOT_SYNCHRONISED = 0x40  # STA_UNSYNC of adjtimex(2)


class _Timex(ctypes.Structure):
    """The head of struct timex (adjtimex(2)); the rest is room."""

    _fields_ = (
        ("modes", ctypes.c_uint),
        ("offset", ctypes.c_long),
        ("freq", ctypes.c_long),
        ("maxerror", ctypes.c_long),
        ("esterror", ctypes.c_long),
        ("status", ctypes.c_int),
        ("rest", ctypes.c_char * 256),
    )


def kernel_clock() -> tuple[bool | None, float]:
    """Whether the kernel holds its clock for synchronised, and its largest error in s; None: it does not say."""
    timex = _Timex()
    try:
        if ctypes.CDLL(None, use_errno=True).adjtimex(ctypes.byref(timex)) < 0:
            return None, 0.0
    except (AttributeError, OSError):
        return None, 0.0
    return not timex.status & _NOT_SYNCHRONISED, timex.maxerror / 1e6

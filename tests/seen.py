"""What stands around a driver in a test; what it tells, gathered, and waiting for more of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from harness.base import threads
from harness.base.clocks import HostClock
from harness.base.ports import Clock, Driver
from harness.model.bench import DeviceProfile
from harness.model.observation import LogLine, Observation, Wake

T = TypeVar("T")

PATIENCE = 4.0
"""Limits of waits are for a free host, and are stretched by this: beside other programs everything takes longer."""


def until(holds: Callable[[], object], limit_s: float = 60.0, otherwise: str = "it did not come in time") -> float:
    """Waits for a predicate; how long it took; AssertionError with `otherwise` at the limit, stretched by PATIENCE.

    The predicate takes a tenth of a processor at most: what it waits for needs the rest. A long wait asks less often.
    In simulated time it waits there.
    """
    begun_s = asked_s = threads.monotonic()
    while not holds():
        now_s = threads.monotonic()
        assert now_s < begun_s + PATIENCE * limit_s, f"{otherwise}, within {PATIENCE * limit_s:.0f} s"
        threads.sleep(min(0.3, max(0.005, 9 * (now_s - asked_s), min(0.02, 0.01 * (now_s - begun_s)))))
        asked_s = threads.monotonic()
    return threads.monotonic() - begun_s


def gone(pid: int) -> bool:
    """Whether no such process runs any more. One that has ended and that nobody has asked after is gone, too."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


@dataclass
class Around:
    """Surroundings of a driver."""

    folder: Path = Path()
    profile: DeviceProfile | None = None
    sound_server: str = "system"
    seed: int = 0
    clock: Clock = field(default_factory=HostClock)


class Seen:
    """A sink that may be called from any thread, and waiting for what comes into it."""

    def __init__(self) -> None:
        self.all: list[Observation] = []
        self._came = threads.condition()
        self._begun_s = threads.monotonic()

    def __call__(self, observation: Observation) -> None:
        with self._came:
            self.all.append(observation)
            self._came.notify_all()

    def of(self, *kinds: type[T]) -> list[T]:
        with self._came:
            return [observation for observation in self.all if isinstance(observation, kinds)]

    def first(self, kind: type[T], limit_s: float = 30.0) -> T:
        """Waits for it."""
        self.wait(lambda: self.of(kind), limit_s, kind.__name__)
        return self.of(kind)[0]

    def wait(self, holds: Callable[[], object], limit_s: float, subject: str) -> None:
        deadline = threads.monotonic() + PATIENCE * limit_s
        with self._came:
            while not holds():
                assert threads.monotonic() < deadline, (
                    f"not within {PATIENCE * limit_s:.0f} s: {subject}; it told {self.all[-8:]}"
                )
                self._came.wait(0.02)  # what it waits for may also change without an observation

    def assert_flood_was_limited(self) -> None:
        """By the rate of a profile that names none: 50 log lines a second, 200 at once, and how many are left out."""
        most = 300 + 60 * (threads.monotonic() - self._begun_s)
        assert len(self.of(LogLine)) < most


def opened(driver: Driver) -> Seen:
    """Opens a driver. Returns the sink into which it reports."""
    observations = Seen()
    driver.open(observations)
    return observations


HELD = 0.9  # 0.99 is measured where nothing else runs (benchmarks/); beside other work a thread may wait longer


def share_held(observations: Seen, tell: Callable[[], object], count: int = 100) -> float:
    """Share of `count` wake events whose stated time and error cover the moment at which `tell` was called."""
    moments: list[float] = []
    for number in range(1, count + 1):
        moments.append(time.monotonic())
        tell()
        observations.wait(lambda number=number: len(observations.of(Wake)) >= number, 30, "a wake event")  # type: ignore[misc]
    stamps = [wake.at for wake in observations.of(Wake)]
    return sum(abs(stamp.at_s - when) <= stamp.error_s for stamp, when in zip(stamps, moments, strict=True)) / count

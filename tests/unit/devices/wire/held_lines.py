"""A board's lines through adapters that hold them back, in simulated time: how often the stated errors hold the truth.

The board writes lines with its own microseconds. They pass a UART of 115,200 baud, an adapter, and a reading thread;
`harness.devices.wire.console` sees bytes and arrivals, as from a port.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass

from harness.devices.wire.console import Console
from harness.model.bench import ClockKind, ConsoleSettings, DeviceProfile, LineMapping, ObservationKind
from harness.model.time import Stamp

BAUD = 115_200
STATED_S = 0.016  # hold_back_ms as it comes


@dataclass(frozen=True)
class Adapter:
    """timer_s: it sends when its timer runs out, whatever waits by then. always_s: every line waits for so long.

    sometimes_s: 15 % of the lines do. jitter_s: mean of exponential delays. late_s: how late the reading thread may be,
    as it has found. burst: up to so many lines at once. every_s: between them. hold_back_s: the setting; measured: not
    assumed.
    """

    name: str
    timer_s: float = 0.0
    always_s: float = 0.0
    sometimes_s: float = 0.0
    jitter_s: float = 0.001
    late_s: float = 0.002
    burst: int = 1
    every_s: float = 0.4
    drift_ppm: float | None = None
    hold_back_s: float = STATED_S
    measured: bool = False

    @property
    def longest_s(self) -> float:
        return max(self.timer_s, self.always_s, self.sometimes_s)


ADAPTERS = (
    Adapter("prompt"),
    Adapter("prompt-measured", hold_back_s=0.0, measured=True),
    Adapter("busy-host", jitter_s=0.004, late_s=0.012),
    Adapter("timer-16", timer_s=0.016),
    Adapter("timer-16-bursts", timer_s=0.016, burst=6),
    Adapter("timer-16-busy-host", timer_s=0.016, jitter_s=0.004, late_s=0.012),
    Adapter("timer-16-ticks", timer_s=0.016, drift_ppm=-50_000),
    Adapter("always-16", always_s=0.016),
    Adapter("sometimes-16", sometimes_s=0.016),
    Adapter("timer-40", timer_s=0.04),
    Adapter("timer-120", timer_s=0.12),
    Adapter("timer-120-bursts", timer_s=0.12, burst=8),
    Adapter("timer-120-rare", timer_s=0.12, every_s=5.0),
    Adapter("timer-120-measured", timer_s=0.12, hold_back_s=0.12, measured=True),
    Adapter("always-120-measured", always_s=0.12, hold_back_s=0.12, measured=True),
    Adapter("sometimes-120", sometimes_s=0.12),
    Adapter("sometimes-120-bursts", sometimes_s=0.12, burst=5, jitter_s=0.002),
)


@dataclass(frozen=True)
class Covered:
    """share: of the lines whose true time lies within the stated error. errors_s: those errors, in order of size."""

    share: float
    errors_s: tuple[float, ...]


def covered(adapter: Adapter, seeds: Iterable[int], *, lines: int = 60, with_time: bool = True) -> Covered:
    right, errors_s = 0, []
    for seed in seeds:
        pairs = _session(adapter, random.Random(seed), lines, with_time)
        right += sum(abs(stamp.at_s - truth_s) <= stamp.error_s + 1e-9 for truth_s, stamp in pairs)
        errors_s += [stamp.error_s for _, stamp in pairs]
    return Covered(right / len(errors_s), tuple(sorted(errors_s)))


def _session(adapter: Adapter, dice: random.Random, lines: int, with_time: bool) -> list[tuple[float, Stamp]]:
    settings = ConsoleSettings(time=r"^\[(?P<time>\d+)\]", clock=ClockKind.US) if with_time else ConsoleSettings()
    profile = DeviceProfile(
        "p", "p", "p.yaml", "0", ("alexa",), lines=(LineMapping("wake", ObservationKind.WAKE),), console=settings
    )
    console = Console(
        profile, "board", baud=BAUD, hold_back_s=adapter.hold_back_s, measured=adapter.measured or not with_time
    )
    skew = (dice.uniform(-100, 100) if adapter.drift_ppm is None else adapter.drift_ppm) * 1e-6
    phase_s, truth_s, arrived_s = dice.random(), 1000.0 + dice.random(), 0.0
    pairs: list[tuple[float, Stamp]] = []
    while len(pairs) < lines:
        truth_s += adapter.every_s * dice.uniform(0.9, 1.1)
        for _ in range(dice.randint(1, adapter.burst)):
            truth_s += 0.004
            text = b"[%d] wake alexa 0.93\n" % int((truth_s - 990.0) * (1 + skew) * 1e6)
            left_s = truth_s + len(text) * 10 / BAUD
            held_s = adapter.always_s + (adapter.sometimes_s if dice.random() < 0.15 else 0.0)
            if adapter.timer_s:
                held_s += (phase_s - left_s) % adapter.timer_s
            arrived_s = max(arrived_s, left_s + held_s + dice.expovariate(1 / adapter.jitter_s))
            for observation in console.feed(text, Stamp(arrived_s + dice.uniform(0.0, 0.002), adapter.late_s)):
                pairs.append((truth_s, observation.at))
    return pairs

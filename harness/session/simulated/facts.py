"""A simulated bench as data: how its devices behave, what is said in a sound, and what really happened."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.model.bench import ObservationKind
from harness.model.trial import Trial


@dataclass(frozen=True)
class DeviceTraits:
    """How a simulated device behaves. Probabilities are 0–1, times in s."""

    wakes: float = 0.9
    """Probability that it wakes to a wake phrase."""
    mishears: float = 0.1
    """Probability that it mishears a query."""
    silent: float = 0.05
    """Probability that it does not answer a query."""
    doubles: float = 0.05
    """Probability of a second event for one wake phrase."""
    edge: float = 0.05
    """Probability of an event at the edge of its window."""
    false_per_hour: float = 6.0
    """Mean number of false wake events per hour."""
    report_s: float = 0.05
    """Delay of its reports."""
    error_s: float = 0.02
    """Error of the times in its reports."""
    latency_s: float = 1.0
    """Time from the end of the query to its answer."""
    answers: bool = True
    """Whether it has a voice."""
    beats: bool = True
    """Whether it sends heartbeats."""
    states: bool = False
    """Whether it reports its state."""
    lasts_s: tuple[float, float] = (0.8, 2.5)
    """Shortest and longest answer."""
    very_late: float = 0.03
    """Probability that it answers much later."""
    wakes_of: Mapping[str, float] = field(default_factory=dict)
    """Speaker → as `wakes`, for them."""
    reports: frozenset[ObservationKind] = frozenset(
        {ObservationKind.WAKE, ObservationKind.TRANSCRIPT, ObservationKind.RESPONSE}
    )
    """Kinds of observations that it reports."""


@dataclass
class Phrases:
    """What is said in a sound, in seconds from its first sample.

    - wake_s: (start, end) of each wake phrase.
    - query_s: start and end of the query; None without one.
    """

    trial: Trial
    wake_s: tuple[tuple[float, float], ...] = ()
    query_s: tuple[float, float] | None = None


@dataclass
class Truth:
    """What really happened, as plain data, for a checker that does not use the harness's code."""

    plays: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Play id → when the sound began and ended, and on which player."""
    wakes: list[dict[str, Any]] = field(default_factory=list)
    """Wake events of devices: when they really happened, and which time the device states."""
    answers: list[dict[str, Any]] = field(default_factory=list)
    """Answers of devices: when they really began and ended, and to which sound."""
    deaf: list[dict[str, Any]] = field(default_factory=list)
    """Times in which a device did not listen, or in which its reports could not reach its driver."""
    deaths: list[dict[str, Any]] = field(default_factory=list)
    faults: Counter[str] = field(default_factory=Counter)
    commands: dict[str, str] = field(default_factory=dict)
    """Kind of each command that was sent, by its id."""
    acknowledged: list[tuple[int, str]] = field(default_factory=list)
    replayed: Counter[str] = field(default_factory=Counter)
    arrived: list[list[tuple[str, str, float]]] = field(default_factory=list)
    """Kind, source and time of all observations that reached the engine, one list for each start of the engine."""
    slow: list[tuple[float, float]] = field(default_factory=list)
    """Times in which the host was slow to write rows or to handle events."""
    skips: list[float] = field(default_factory=list)
    speech: list[float] = field(default_factory=list)
    """Times at which somebody began to speak without being asked."""
    wires: list[dict[str, Any]] = field(default_factory=list)
    """For each device with a driver: its restarts, and what the driver reported about them and about its link."""

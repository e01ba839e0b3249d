"""Streams to the lab for tests, and what they told."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from harness.base.clocks import HostClock
from harness.model.bench import DeviceProfile
from harness.model.stimulus import Samples, Waveform
from harness.model.time import Stamp
from harness.sound.capture import Capture, RingBuffer
from harness.sound.playback import Playback
from tests.seen import until

RATE_HZ = 48000
LAB = "virtual_lab"


@dataclass(slots=True)
class Told:
    """What streams said, in order."""

    started: list[tuple[str, Stamp]] = field(default_factory=list)
    ended: list[tuple[str, Stamp, bool]] = field(default_factory=list)
    faults: list[tuple[float, Stamp, str]] = field(default_factory=list)
    """With the moment at which it was told."""
    backs: list[Stamp] = field(default_factory=list)
    overruns: int = 0

    def fault(self, stamp: Stamp, problem: str) -> None:
        self.faults.append((time.monotonic(), stamp, problem))

    def overrun(self, count: int) -> None:
        self.overruns += count


@contextmanager
def recorder(device: str = "harness_mic", server: str = LAB) -> Iterator[tuple[Capture, RingBuffer, Told]]:
    ring, events = RingBuffer(60.0), Told()
    capture = Capture(
        device, server, on_block=ring.put, on_fault=events.fault, on_back=events.backs.append, on_overrun=events.overrun
    )
    capture.open()
    try:
        yield capture, ring, events
    finally:
        capture.close()


@contextmanager
def player(device: str = "harness_speaker", server: str = LAB) -> Iterator[tuple[Playback, Told]]:
    events = Told()
    playback = Playback(
        device,
        server,
        on_started=lambda play_id, stamp: events.started.append((play_id, stamp)),
        on_ended=lambda play_id, stamp, complete: events.ended.append((play_id, stamp, complete)),
        on_fault=events.fault,
        on_back=events.backs.append,
        on_overrun=events.overrun,
    )
    playback.open()
    try:
        yield playback, events
    finally:
        playback.close()


def play(playback: Playback, events: Told, sound: Waveform, within_s: float = 20.0) -> tuple[Stamp, Stamp]:
    """Plays a sound to its end; when it began and ended."""
    before = len(events.ended)
    playback.play(str(before), sound)
    until(lambda: len(events.ended) > before, within_s, "the end of the play")
    assert events.ended[-1][2], "it was cut"
    return events.started[-1][1], events.ended[-1][1]


@dataclass(frozen=True, slots=True)
class OnTheLab:
    """Surroundings of a driver on the lab's sound server."""

    folder: Path
    clock: HostClock = HostClock()  # noqa: RUF009  has no state
    sound_server: str = LAB
    seed: int = 1
    profile: DeviceProfile | None = None


def noise(seconds: float, seed: int = 1, peak: float = 0.25) -> Waveform:
    """White noise on the grid of 16 bits: what arrives can be compared bit by bit."""
    words = np.random.default_rng(seed).integers(-int(peak * 32768), int(peak * 32768), int(seconds * RATE_HZ))
    return Waveform((words / 32768).astype(np.float32), RATE_HZ)


def click_train(spacing_samples: int, count: int) -> Waveform:
    samples: Samples = np.zeros(spacing_samples * count, dtype=np.float32)
    samples[::spacing_samples] = 0.5
    return Waveform(samples, RATE_HZ)

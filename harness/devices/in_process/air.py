"""The air of the in-process sound path: sounds on one time line, and a thread in which things happen at their time."""

from __future__ import annotations

import contextlib
import heapq
import itertools
import threading
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import soxr

from harness.base.ports import Clock
from harness.model.errors import DeviceError
from harness.model.stimulus import Samples, Waveform

RATE_HZ = 48000
KEPT_S = 600.0
FLOOR_DBFS = -72.0
"""Level of the air's own noise."""


@dataclass(slots=True)
class Sound:
    """Samples at RATE_HZ, the first at starts_s; `tag` says who made it."""

    tag: str
    starts_s: float
    samples: Samples

    @property
    def ends_s(self) -> float:
        return self.starts_s + len(self.samples) / RATE_HZ


class Air:
    """Sounds and due events. Callbacks run in the air's thread, one at a time, never before their time."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._changed = threading.Condition()
        self._due: list[tuple[float, int, str, Callable[[], None]]] = []
        self._order = itertools.count()
        self._sounds: list[Sound] = []
        self._open = True
        self._thread = threading.Thread(target=self._run, name="in-process-air", daemon=True)
        self._thread.start()

    def close(self) -> None:
        with self._changed:
            self._open = False
            self._changed.notify_all()
        if threading.current_thread() is not self._thread:
            self._thread.join(1.0)

    def at(self, due_s: float, tag: str, happen: Callable[[], None]) -> None:
        """Something happens at that time, unless its tag is cancelled before."""
        with self._changed:
            heapq.heappush(self._due, (due_s, next(self._order), tag, happen))
            self._changed.notify_all()

    def cancel(self, tag: str) -> None:
        """What is due under that tag does not happen."""
        with self._changed:
            self._due = [each for each in self._due if each[2] != tag]
            heapq.heapify(self._due)

    def sound(self, tag: str, starts_s: float, waveform: Waveform) -> Sound:
        """A sound spreads; returns it at the air's rate."""
        samples = waveform.samples
        if waveform.rate_hz != RATE_HZ:
            samples = np.asarray(soxr.resample(samples, waveform.rate_hz, RATE_HZ), dtype=np.float32)
        made = Sound(tag, starts_s, samples)
        with self._changed:
            oldest_s = self._clock.now_s() - KEPT_S
            self._sounds = [sound for sound in self._sounds if sound.ends_s > oldest_s]
            self._sounds.append(made)
        return made

    def hush(self, tag: str, at_s: float) -> None:
        """The sounds of that tag end at that time, if they were still going on."""
        with self._changed:
            for sound in self._sounds:
                if sound.tag == tag and sound.ends_s > at_s:
                    sound.samples = sound.samples[: max(0, round((at_s - sound.starts_s) * RATE_HZ))]

    def cut(self, start_s: float, end_s: float, tags: Callable[[str], bool] = lambda _: True) -> Waveform:
        """What is heard in [start_s, end_s): the sounds, and the air's own noise, the same for the same span.

        Waits until end_s is past, at most one real second; DeviceError when it is further off or long gone.
        """
        wait_s = self._clock.real_s(end_s - self._clock.now_s())
        if wait_s > 1.0 or start_s < self._clock.now_s() - KEPT_S or not start_s < end_s:
            raise DeviceError(
                f"no sound is kept of {start_s:.2f} … {end_s:.2f} s", remedy="Cut within the last minutes"
            )
        if wait_s > 0:
            with self._changed:
                self._changed.wait_for(lambda: not self._open or self._clock.now_s() >= end_s, wait_s)
        count = round((end_s - start_s) * RATE_HZ)
        noise = np.random.default_rng(round(start_s * 1000)).standard_normal(count) * 10 ** (FLOOR_DBFS / 20)
        mixed = noise.astype(np.float32)
        with self._changed:
            for sound in self._sounds:
                first = round((sound.starts_s - start_s) * RATE_HZ)
                low, high = max(0, first), min(count, first + len(sound.samples))
                if tags(sound.tag) and low < high:
                    mixed[low:high] += sound.samples[low - first : high - first]
        return Waveform(np.clip(mixed, -1, 1), RATE_HZ)

    def level_dbfs(self, tags: Callable[[str], bool] = lambda _: True) -> float | None:
        """RMS of the last 100 ms; None when the clock is younger than that."""
        now_s = self._clock.now_s()
        with contextlib.suppress(DeviceError):
            samples = self.cut(now_s - 0.1, now_s, tags).samples
            return float(10 * np.log10(np.mean(np.square(samples, dtype=np.float64)) + 1e-12))
        return None

    def _run(self) -> None:
        while True:
            with self._changed:
                while self._open and not (self._due and self._due[0][0] <= self._clock.now_s()):
                    wait_s = self._clock.real_s(self._due[0][0] - self._clock.now_s()) if self._due else None
                    self._changed.wait(None if wait_s is None else max(0.0, wait_s))
                if not self._open:
                    return
                happen = heapq.heappop(self._due)[3]
            happen()

"""The last minutes of a recording, to cut clips from by host time."""

from __future__ import annotations

import itertools
import threading
import time
from collections import deque

import numpy as np

from harness.model.errors import SoundError
from harness.model.stimulus import Waveform
from harness.sound.capture import Block
from harness.sound.stream_clock import RATE_HZ

_FILL_FROM_S = 0.005
_FILL_LIMIT_S = 0.25
"""Between these, missing samples are replaced by silence, so that what follows keeps its time."""


class Ring:
    """Keeps the blocks of the last `seconds`; thread-safe."""

    def __init__(self, seconds: float) -> None:
        self._keep = int(seconds * RATE_HZ)
        self._blocks: deque[Block] = deque()
        self._held = 0
        self._arrived = threading.Condition()

    def put(self, block: Block) -> None:
        with self._arrived:
            self._blocks.append(block)
            self._held += len(block.samples)
            while self._held - len(self._blocks[0].samples) >= self._keep:
                self._held -= len(self._blocks.popleft().samples)
            self._arrived.notify_all()

    def clear(self) -> None:
        with self._arrived:
            self._blocks.clear()
            self._held = 0

    def end_s(self) -> float | None:
        """Host time just after the newest sample; None when there is none."""
        with self._arrived:
            return self._end_of(self._blocks[-1]) if self._blocks else None

    def cut(self, start_s: float, end_s: float, *, wait_s: float = 1.0) -> tuple[Waveform, float]:
        """The sound of [start_s, end_s) and the exact host time of its first sample.

        Waits up to `wait_s` for samples to come. A gap of up to 0.25 s (samples that the stream lost, and told as an
        overrun) is filled with silence. SoundError when the samples do not come, are too old, or lie on both sides of
        a longer gap.
        """
        if not start_s < end_s:
            raise SoundError(f"a clip of {end_s - start_s:.3f} s cannot be cut")
        deadline = time.monotonic() + wait_s
        with self._arrived:
            while not self._blocks or self._end_of(self._blocks[-1]) < end_s:
                if not self._arrived.wait(max(0.0, deadline - time.monotonic())) and time.monotonic() >= deadline:
                    raise SoundError(f"the sound until {end_s:.3f} s has not arrived", remedy="Is the microphone open?")
            wanted = [block for block in self._blocks if self._end_of(block) > start_s and block.at_s < end_s]
        return self._join(wanted, start_s, end_s)

    @staticmethod
    def _end_of(block: Block) -> float:
        return block.at_s + len(block.samples) / RATE_HZ

    def _join(self, wanted: list[Block], start_s: float, end_s: float) -> tuple[Waveform, float]:
        if not wanted or wanted[0].at_s > start_s + 1 / RATE_HZ:
            # A step back of the clock by less than a sample is no gap.
            raise SoundError(f"the sound at {start_s:.3f} s is no longer, or was never, recorded")
        pieces = [wanted[0].samples]
        for one, following in itertools.pairwise(wanted):
            missing_s = following.at_s - self._end_of(one)
            if missing_s > _FILL_LIMIT_S:
                raise SoundError(f"the recording has a gap of {missing_s:.2f} s at {self._end_of(one):.3f} s")
            if missing_s > _FILL_FROM_S:
                pieces.append(np.zeros(round(missing_s * RATE_HZ), dtype=np.float32))
            pieces.append(following.samples)
        samples = np.concatenate(pieces)
        first = max(0, round((start_s - wanted[0].at_s) * RATE_HZ))
        last = wanted[-1]
        until = len(samples) - len(last.samples) + round((end_s - last.at_s) * RATE_HZ)
        return Waveform(samples[first:until], RATE_HZ), wanted[0].at_s + first / RATE_HZ

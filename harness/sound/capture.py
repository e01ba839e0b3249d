"""Recording from a sound device, each block with the host time of its first sample."""

from __future__ import annotations

import itertools
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from harness.model.errors import SoundError
from harness.model.stimulus import Samples, Waveform
from harness.model.time import Stamp
from harness.sound.child import Packet, Verb
from harness.sound.stream_clock import FILLED_S, RATE_HZ, Latency, StreamClock
from harness.sound.supervised_stream import OnBack, OnFault, OnOverrun, SupervisedStream

_OVERFLOWS = 0x1 | 0x2
"""PortAudio's flags paInputUnderflow and paInputOverflow."""
_SETTLE_LIMIT_S = 3.0
_REPORT_ERROR_S = 0.0005
"""Of a report on a direct path."""


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Samples of one callback: float32 (n,) in [−1, 1) at 48 kHz.

    first_sample counts from the stream's start and has no gap within an epoch; a new epoch begins when the stream
    was lost, or samples were. at_s ± error_s: CLOCK_MONOTONIC of the first sample at the converter.
    """

    first_sample: int
    at_s: float
    error_s: float
    samples: Samples
    epoch: int


class Capture:
    """Records mono at 48 kHz. The device is named exactly or by a unique part of its name.

    Callbacks come from one thread of ours and should return within some milliseconds; a slow one loses nothing for
    30 s. on_fault(stamp, words): the sound server is gone or frozen, found in < 1 s; on_back(stamp of the first
    block): they come again, in a new epoch. on_overrun(count): so many callbacks told of lost or late samples.
    """

    def __init__(
        self,
        device: str,
        sound_server: str,
        *,
        on_block: Callable[[Block], None],
        on_fault: OnFault,
        on_back: OnBack = lambda at: None,
        on_overrun: OnOverrun = lambda count: None,
        rate_hz: int = RATE_HZ,
        frames_per_buffer: int = 480,
    ) -> None:
        if rate_hz != RATE_HZ:
            raise SoundError(f"sound is recorded at {RATE_HZ} Hz, not {rate_hz}")
        self._on_block = on_block
        self._on_fault = on_fault
        self._on_back = on_back
        self._on_overrun = on_overrun
        self._frames_per_buffer = frames_per_buffer
        self._stream = SupervisedStream("capture", device, sound_server, frames_per_buffer, self)
        self._in_lab = sound_server == "virtual_lab"
        self._clock = self._new_clock()
        self._epoch = 0
        self._flowing = threading.Event()
        self._coming_back = False
        self._warm = False
        self._unsettled: deque[Packet] = deque()

    @property
    def child_pid(self) -> int | None:
        """Process that PyAudio lives in; None when closed or between two."""
        return self._stream.child_pid

    def open(self) -> None:
        """Returns when blocks with settled times flow (some 0.4 s); SoundError when the device cannot be opened."""
        self._flowing.clear()
        self._stream.open()
        if not self._flowing.wait(_SETTLE_LIMIT_S):
            self._stream.close()
            raise SoundError("the device was opened, but no sound comes from it", remedy="harness sound list")

    def close(self) -> None:
        """Ends recording, in any state, within 1.5 s."""
        self._stream.close()

    def opened(self, packet: Packet, again: bool) -> None:
        self._coming_back = again
        del packet
        self._begin_epoch()

    def received(self, packet: Packet) -> None:
        match packet.word:
            case Verb.BLOCK:
                self._take(packet)
            case Verb.LOST:
                self._on_overrun(1)
                self._epoch += 1
            case _:
                raise SoundError(f"a recording stream does not send {packet.word.name}")

    def faulted(self, at: Stamp, what: str) -> None:
        self._on_fault(at, what)

    def _begin_epoch(self) -> None:
        self._epoch += 1
        # Only the first blocks of a stream have to wait for their times; after a gap in it the times go on.
        self._warm = False
        self._unsettled.clear()
        self._clock = self._new_clock()

    def _new_clock(self) -> StreamClock:
        buffer_s = self._frames_per_buffer / RATE_HZ
        if self._in_lab:
            # Its sinks render a block at once when its first sample is due: nothing waits for the last one.
            return StreamClock(Latency(-0.5 * buffer_s, buffer_s), _REPORT_ERROR_S)
        # Without a report: a block is delivered when its last sample has been taken, or a buffer later.
        return StreamClock(Latency(-1.5 * buffer_s, buffer_s), _REPORT_ERROR_S)

    def _take(self, packet: Packet) -> None:
        missing_s = self._clock.observe(packet)
        if missing_s:
            self._epoch += 1
        if missing_s or packet.number & _OVERFLOWS:
            self._on_overrun(1)
        if not self._warm:
            self._wait(packet)
        if self._warm:
            while self._unsettled:
                self._give(self._unsettled.popleft())
            self._give(packet)

    def _wait(self, packet: Packet) -> None:
        """Keeps what came before the times had settled: who is told that sound is back may cut from just before."""
        self._warm = self._clock.settled
        if packet.number & _OVERFLOWS:
            self._unsettled.clear()  # where it lies is not known
        elif not self._warm and packet.first_sample >= FILLED_S * RATE_HZ:
            self._unsettled.append(packet)

    def _give(self, packet: Packet) -> None:
        at_s, error_s = self._clock.time_of(packet.first_sample)
        samples = np.frombuffer(packet.payload, dtype="<i2").astype(np.float32) / np.float32(32768)
        self._flowing.set()
        if self._coming_back:
            self._coming_back = False
            self._on_back(Stamp(at_s, error_s))
        self._on_block(Block(packet.first_sample, at_s, error_s, samples, self._epoch))


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

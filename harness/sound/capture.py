"""Recording from a sound device, each block with the host time of its first sample."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from harness.base import threads
from harness.model.errors import SoundError
from harness.model.numbers import moment, seconds
from harness.model.stimulus import Samples, Waveform
from harness.model.time import Stamp
from harness.sound.child import Packet, PacketKind
from harness.sound.stream_clock import FILLED_S, RATE_HZ, Latency, StreamClock
from harness.sound.supervised_stream import OnBack, OnFault, OnOverrun, SupervisedStream

_OVERFLOWS = 0x1 | 0x2
"""PortAudio's flags paInputUnderflow and paInputOverflow."""
_REPORT_ERROR_S = 0.0005
"""Error of a reported latency on a direct path, in seconds."""


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """The samples of one callback: float32 (n,) in [−1, 1) at 48 kHz.

    - first_sample: number of the first sample, from the start of the stream, without gaps within an epoch.
    - epoch: number of the epoch; a new one begins when the stream or samples were lost.
    - at_s, error_s: when the first sample was at the converter, on CLOCK_MONOTONIC, ± error_s.
    """

    first_sample: int
    at_s: float
    error_s: float
    samples: Samples
    epoch: int


class Capture:
    """Records mono at 48 kHz. `device` is its exact name, or a unique part of it.

    Callbacks come from one thread of this class and should return within some milliseconds. A slow callback loses
    nothing for 30 s.

    - on_fault(stamp, words): the sound server died or froze, detected in less than 1 s
    - on_back(stamp of the first block): blocks arrive again, in a new epoch
    - on_overrun(count): that many callbacks reported lost or late samples
    """

    def __init__(
        self,
        device: str,
        sound_server: str,
        *,
        on_block: Callable[[Block], None],
        on_fault: OnFault,
        on_back: OnBack = lambda stamp: None,
        on_overrun: OnOverrun = lambda count: None,
        frames_per_buffer: int = 480,
    ) -> None:
        self._on_block = on_block
        self._on_fault = on_fault
        self._on_back = on_back
        self._on_overrun = on_overrun
        self._frames_per_buffer = frames_per_buffer
        self._stream = SupervisedStream("capture", device, sound_server, frames_per_buffer, self)
        self._is_lab = sound_server == "virtual_lab"
        self._clock = self._new_clock()
        self._epoch = 0
        self._is_resuming = False
        self._times_are_settled = False
        self._unsettled: deque[Packet] = deque()

    @property
    def child_pid(self) -> int | None:
        """Id of the process in which PyAudio runs; None when closed or between two processes."""
        return self._stream.child_pid

    def open(self) -> None:
        """Returns when blocks with settled times arrive (about 0.4 s).

        Raises SoundError if the device cannot be opened.
        """
        self._stream.open("it delivered no sound")

    def close(self) -> None:
        """Ends recording within 1.5 s, in any state."""
        self._stream.close()

    # StreamOwner, on the thread that watches the stream.

    def opened(self, packet: Packet, resumed: bool) -> None:
        del packet  # PortAudio's latency is not used: see stream_clock
        self._is_resuming = resumed
        self._begin_epoch()

    def received(self, packet: Packet) -> None:
        match packet.kind:
            case PacketKind.BLOCK:
                self._add_packet(packet)
            case PacketKind.LOST:
                self._on_overrun(1)
                self._epoch += 1
            case _:
                raise SoundError(f"a recording stream does not send {packet.kind.name}")

    def faulted(self, stamp: Stamp, problem: str) -> None:
        if not self._is_resuming:  # A stream that fails before its first block has not been back.
            self._on_fault(stamp, problem)

    def _begin_epoch(self) -> None:
        self._epoch += 1
        # Only the first blocks of a stream wait for their times. After a gap, times continue.
        self._times_are_settled = False
        self._unsettled.clear()
        self._clock = self._new_clock()

    def _new_clock(self) -> StreamClock:
        """A clock with the latency that is assumed on this path."""
        buffer_s = self._frames_per_buffer / RATE_HZ
        if self._is_lab:
            # Its sinks render a block as soon as its first sample is due, without waiting for the last one.
            return StreamClock(Latency(-0.5 * buffer_s, buffer_s), _REPORT_ERROR_S)
        # Without a report: a block is delivered when its last sample has been recorded, or a buffer later.
        return StreamClock(Latency(-1.5 * buffer_s, buffer_s), _REPORT_ERROR_S)

    def _add_packet(self, packet: Packet) -> None:
        """Observes the block of a callback, and delivers it once the times have settled."""
        missing_s = self._clock.observe(packet)
        if missing_s:
            self._epoch += 1
        if missing_s or packet.number & _OVERFLOWS:
            self._on_overrun(1)
        if not self._times_are_settled:
            self._keep_unsettled(packet)
        if self._times_are_settled:
            while self._unsettled:
                self._deliver(self._unsettled.popleft())
            self._deliver(packet)

    def _keep_unsettled(self, packet: Packet) -> None:
        """Keeps blocks from before the times have settled: a caller of on_back may need sound from just before it."""
        self._times_are_settled = self._clock.settled
        if packet.number & _OVERFLOWS:
            self._unsettled.clear()  # their position is unknown
        elif not self._times_are_settled and packet.first_sample >= FILLED_S * RATE_HZ:
            self._unsettled.append(packet)

    def _deliver(self, packet: Packet) -> None:
        """Passes a block on, after the report that the stream is back, if it was lost."""
        at_s, error_s = self._clock.time_of(packet.first_sample)
        samples = np.frombuffer(packet.payload, dtype="<i2").astype(np.float32) / np.float32(32768)
        self._stream.flowing.set()
        if self._is_resuming:
            self._is_resuming = False
            self._on_back(Stamp(at_s, error_s))
        self._on_block(Block(packet.first_sample, at_s, error_s, samples, self._epoch))


_FILL_FROM_S = 0.005
_FILL_LIMIT_S = 0.25
"""If samples of a length from _FILL_FROM_S to _FILL_LIMIT_S are missing, silence replaces them: later ones keep their
time."""


class RingBuffer:
    """Keeps the blocks of the last `length_s` seconds; thread-safe."""

    def __init__(self, length_s: float) -> None:
        self._max_samples = int(length_s * RATE_HZ)
        self._blocks: deque[Block] = deque()
        self._held_samples = 0
        self._arrived = threads.condition()

    def put(self, block: Block) -> None:
        """Adds a block, and drops those that are too old."""
        with self._arrived:
            self._blocks.append(block)
            self._held_samples += len(block.samples)
            while self._held_samples - len(self._blocks[0].samples) >= self._max_samples:
                self._held_samples -= len(self._blocks.popleft().samples)
            self._arrived.notify_all()

    def clear(self) -> None:
        with self._arrived:
            self._blocks.clear()
            self._held_samples = 0

    def end_s(self) -> float | None:
        """Host time just after the newest sample; None when there is none."""
        with self._arrived:
            return self._end_s(self._blocks[-1]) if self._blocks else None

    def cut(self, start_s: float, end_s: float, *, wait_s: float = 1.0) -> tuple[Waveform, float]:
        """The sound of [start_s, end_s) and the exact host time of its first sample.

        Waits up to `wait_s` for samples. A gap of up to 0.25 s (lost samples, reported as an overrun) is filled with
        silence. Raises SoundError if the samples do not arrive, are too old, or lie on both sides of a longer gap.
        """
        if not start_s < end_s:
            raise SoundError(f"a clip cannot have a length of {moment(end_s - start_s)}")
        deadline = threads.monotonic() + wait_s
        with self._arrived:
            while not self._blocks or self._end_s(self._blocks[-1]) < end_s:
                if not self._arrived.wait(max(0.0, deadline - threads.monotonic())) and threads.monotonic() >= deadline:
                    raise SoundError(
                        f"the sound until {moment(end_s)} has not arrived", remedy="Check that the microphone is open"
                    )
            blocks = [block for block in self._blocks if self._end_s(block) > start_s and block.at_s < end_s]
        return self._join_blocks(blocks, start_s, end_s)

    @staticmethod
    def _end_s(block: Block) -> float:
        return block.at_s + len(block.samples) / RATE_HZ

    def _join_blocks(self, blocks: list[Block], start_s: float, end_s: float) -> tuple[Waveform, float]:
        """As `cut`, from the blocks that contain the sound."""
        if not blocks or blocks[0].at_s > start_s + 1 / RATE_HZ:
            # The clock may step back by less than a sample; that is not a gap.
            raise SoundError(f"the recording does not contain the sound at {moment(start_s)}")
        pieces = [blocks[0].samples]
        for block, next_block in itertools.pairwise(blocks):
            missing_s = next_block.at_s - self._end_s(block)
            if missing_s > _FILL_LIMIT_S:
                raise SoundError(f"the recording has a gap of {seconds(missing_s)} at {moment(self._end_s(block))}")
            if missing_s > _FILL_FROM_S:
                pieces.append(np.zeros(round(missing_s * RATE_HZ), dtype=np.float32))
            pieces.append(next_block.samples)
        samples = np.concatenate(pieces)
        first = max(0, round((start_s - blocks[0].at_s) * RATE_HZ))
        last = blocks[-1]  # by its own time, since the clock is corrected from block to block
        end = len(samples) - len(last.samples) + round((end_s - last.at_s) * RATE_HZ)
        return Waveform(samples[first:end], RATE_HZ), blocks[0].at_s + first / RATE_HZ

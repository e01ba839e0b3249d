"""Playing to a sound device, with the host times at which a sound began and ended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import soxr

from harness.base import threads
from harness.model.errors import SoundError
from harness.model.stimulus import Samples, Waveform
from harness.model.time import Stamp
from harness.sound.child import Output, Packet, PacketKind
from harness.sound.level import rms_dbfs
from harness.sound.stream_clock import RATE_HZ, Latency, StreamClock
from harness.sound.supervised_stream import OnBack, OnFault, OnOverrun, SupervisedStream

_UNDERFLOWS = 0x4 | 0x8
"""PortAudio's flags paOutputUnderflow and paOutputOverflow."""
_LAB_EXTRA_S = 0.013
_LAB_ERROR_S = 0.009
"""The lab's sinks add 6 to 12 ms to PortAudio's two buffers, and a block of 10 ms more on a busy host. The delay is
constant within a stream. Reports of latency are unusable there."""

_METER_S = 0.1
"""Length of the sound whose level is shown, in seconds."""

OnStarted = Callable[[str, Stamp], None]
OnEnded = Callable[[str, Stamp, bool], None]


@dataclass(slots=True, eq=False)
class _Play:
    """A sound that was sent to the child.

    - start, end: samples of the stream; None until the child reports them.
    - complete: False if it was stopped.
    """

    play_id: str
    samples: Samples
    start: int | None = None
    end: int | None = None
    complete: bool = True
    start_reported: bool = False


class Playback:
    """Plays mono at 48 kHz on a stream that runs all the time, silent in between. Device "": the host's default.

    It goes to one output of the device, or to all if the device is opened with one.

    Plays follow one another in the order of the calls. `on_started(play_id, stamp)` and
    `on_ended(play_id, stamp, complete)` come after the sample has left, from one thread of this class. A play ends with
    complete=False if the stream is lost during it or before it.
    """

    def __init__(
        self,
        device: str,
        sound_server: str,
        *,
        on_started: OnStarted = lambda play_id, stamp: None,
        on_ended: OnEnded = lambda play_id, stamp, complete: None,
        on_fault: OnFault,
        on_back: OnBack = lambda stamp: None,
        on_overrun: OnOverrun = lambda count: None,
        frames_per_buffer: int = 480,
        output: Output = Output(),
    ) -> None:
        self._on_started = on_started
        self._on_ended = on_ended
        self._on_fault = on_fault
        self._on_back = on_back
        self._on_overrun = on_overrun
        self._frames_per_buffer = frames_per_buffer
        self._stream = SupervisedStream("playback", device, sound_server, frames_per_buffer, self, output)
        self._is_lab = sound_server == "virtual_lab"
        self._clock = self._new_clock(2 * frames_per_buffer / RATE_HZ)
        self._lock = threads.lock()
        self._plays: dict[int, _Play] = {}  # by number, in the order of the calls
        self._number = 0
        self._is_resuming = False
        self._now_s = 0.0  # time of the latest callback

    @property
    def child_pid(self) -> int | None:
        """Id of the process in which PyAudio runs; None when closed or between two processes."""
        return self._stream.child_pid

    def open(self) -> None:
        """Returns when the stream's clock has settled (about 0.4 s).

        Raises SoundError if the device cannot be opened.
        """
        self._stream.open("it did not accept sound")

    def close(self) -> None:
        """Ends everything within 1.5 s, in any state. A play is cut, and no callback follows."""
        self._stream.close()
        with self._lock:
            self._plays.clear()

    def play(self, play_id: str, waveform: Waveform) -> None:
        """Returns at once. Resamples if the waveform is not at 48 kHz. Raises SoundError if it is empty or not open."""
        samples = waveform.samples
        if waveform.rate_hz != RATE_HZ:
            samples = soxr.resample(samples, waveform.rate_hz, RATE_HZ).astype(np.float32)
        if not len(samples):
            raise SoundError(f"the sound of {play_id} is empty")
        if not self._stream.is_open:
            raise SoundError("the loudspeaker is not open")
        pcm = np.clip(np.rint(samples * np.float32(32768)), -32768, 32767).astype("<i2")
        with self._lock:
            self._number += 1
            number = self._number
            self._plays[number] = _Play(play_id, samples)
        if not self._stream.send(Packet(PacketKind.PLAY, number, payload=pcm.tobytes())):
            self._end_plays(Stamp(self._now_s), only=number)

    def stop(self) -> None:
        """Ends the current play and all that wait; on_ended(complete=False) follows for each."""
        self._stream.send(Packet(PacketKind.STOP))

    def played_s(self, play_id: str) -> float | None:
        """Seconds of a play that had been played at the latest callback; None before its start and after its end."""
        with self._lock:
            play = next((candidate for candidate in self._plays.values() if candidate.play_id == play_id), None)
        if play is None or play.start is None or not self._clock.settled:
            return None
        played_samples = self._clock.sample_at(self._now_s) - play.start
        return None if played_samples < 0 else min(played_samples, len(play.samples)) / RATE_HZ

    def level_dbfs(self) -> float | None:
        """RMS level of the last 100 ms that were played (full sine: −3.01, silence: −120); None when closed or lost."""
        if not self._stream.running or not self._clock.settled:
            return None
        end = self._clock.sample_at(self._now_s)
        meter = np.zeros(int(_METER_S * RATE_HZ), dtype=np.float32)
        with self._lock:
            plays = [play for play in self._plays.values() if play.start is not None]
        for play in plays:
            start = play.start or 0
            first = end - len(meter)
            low, high = max(start, first), min(start + len(play.samples), end, play.end or end)
            if low < high:
                meter[low - first : high - first] = play.samples[low - start : high - start]
        return rms_dbfs(meter)

    # StreamOwner, on the thread that watches the stream.

    def opened(self, packet: Packet, resumed: bool) -> None:
        self._is_resuming = resumed
        self._clock = self._new_clock(packet.reported_s)

    def received(self, packet: Packet) -> None:
        match packet.kind:
            case PacketKind.TICK:
                self._observe_tick(packet)
            case PacketKind.STARTED:
                with self._lock:
                    if packet.number in self._plays:
                        self._plays[packet.number].start = packet.first_sample
            case PacketKind.ENDED:
                with self._lock:
                    if packet.number in self._plays:
                        play = self._plays[packet.number]
                        play.end = packet.first_sample
                        play.complete = bool(packet.frames)
            case _:
                raise SoundError(f"a playback stream does not send {packet.kind.name}")

    def faulted(self, stamp: Stamp, problem: str) -> None:
        self._on_fault(stamp, problem)
        self._end_plays(stamp)

    def _new_clock(self, stated_s: float) -> StreamClock:
        """A clock for a stream whose buffers hold `stated_s` according to PortAudio."""
        if self._is_lab:
            return StreamClock(Latency(stated_s + _LAB_EXTRA_S, _LAB_ERROR_S), None)
        buffer_s = self._frames_per_buffer / RATE_HZ
        return StreamClock(Latency(stated_s + 2 * buffer_s, 2 * buffer_s), buffer_s)

    def _observe_tick(self, packet: Packet) -> None:
        """Takes one callback. Once the clock has settled, reports what has been played by then."""
        self._now_s = packet.moment_s
        missing_s = self._clock.observe(packet)
        if missing_s or packet.number & _UNDERFLOWS:
            self._on_overrun(1)
        if not self._clock.settled:
            return
        self._stream.flowing.set()
        if self._is_resuming:
            self._is_resuming = False
            self._on_back(Stamp(packet.moment_s))
        self._report_due(packet.moment_s)

    def _report_due(self, now_s: float) -> None:
        """Reports the starts and ends whose samples have left by now, in order."""
        with self._lock:
            numbers = sorted(self._plays)
        for number in numbers:
            play = self._plays.get(number)
            if play is None:
                continue  # `_end_plays` has removed it meanwhile, and reports its end
            if play.start is None and play.end is None:
                return
            if play.start is not None and not play.start_reported:
                stamp = Stamp(*self._clock.departure_of(play.start))
                if stamp.at_s > now_s:
                    return
                play.start_reported = True
                self._on_started(play.play_id, stamp)
            if play.end is not None:
                stamp = Stamp(*self._clock.departure_of(play.end))
                if stamp.at_s > now_s:
                    return
                with self._lock:
                    is_gone = self._plays.pop(number, None) is None
                if not is_gone:
                    self._on_ended(play.play_id, stamp, play.complete)

    def _end_plays(self, stamp: Stamp, only: int | None = None) -> None:
        """Ends plays that cannot continue. only: number of the only one to be ended; None ends all."""
        with self._lock:
            numbers = [only] if only is not None else sorted(self._plays)
            ended_plays = [play for number in numbers if (play := self._plays.pop(number, None)) is not None]
        for play in ended_plays:
            self._on_ended(play.play_id, stamp, False)

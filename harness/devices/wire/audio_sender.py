"""Sends sound to a board over a wire that may lose frames: what to send now, and what has been heard.

Go-back-N (docs/reference/framing.md, Audio): the board accepts samples only in order, and reports which one it expects.
The sender resends everything from there. No I/O and no clock: it takes acknowledgements and times, and returns chunks.

    ── acknowledged ── next ── sent ── end ──►      to be sent next, sent at least once, given
           └────────── window ────────────┘

Positions are samples on the *audio line*, which is all sound since the driver opened. The board counts from its boot:
position = its count + *offset*. After each `start`, a frame that no board expects makes the board report its count,
which gives the offset. If the link was lost during a boot, the boot has several offsets, each from a certain count on:

    audio line       1000 ───────── 3000 ─ sent, but lost ─ 3500 ────────►
    board's count       0 ───────── 2000                    2000 ────────►
                        offset 1000                         offset 1500, for counts above 2000
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from enum import Enum, auto

from harness.devices.wire.adpcm import EncodedSound, Encoding
from harness.model.frozen import frozen

PROBE_SAMPLE = 1 << 63
"""A number of a first sample that no board expects: it drops the frame, and answers with the one that it expects."""
MAX_RESEND_S = 0.5
"""Longest wait for an acknowledgement, in seconds. Chosen: far above a round trip, and far below the time after which a
board counts as lost."""
MIN_RESEND_S = 0.008
"""Shortest such wait, however short the round trips are. Chosen: a thread may wake up a few milliseconds late."""
_REALTIME_AHEAD_S = 0.1  # Chosen: more than a late wake-up of the thread.
_MIN_WINDOW_SAMPLES = 480.0  # Samples that may always be under way, however many frames were lost: 30 ms at 16 kHz.
_MAX_HALVINGS = 3  # Of chunks. Chosen: below an eighth, the heads of frames would take much of the wire.
_ADVANCES_TO_DOUBLE = 64  # Chunks are doubled again after this many acknowledgements of new samples. Chosen.


class AudioAnswer(Enum):
    """Meaning of an acknowledgement.

    FOUND: the first since `start`; it relates the board's count to the audio line. ADVANCED: more was heard.
    REPEATED: nothing new. FOREIGN: a number that this boot cannot expect; it has restarted, so request HELLO.
    """

    FOUND = auto()
    ADVANCED = auto()
    REPEATED = auto()
    FOREIGN = auto()


@frozen
class AudioChunk:
    """Content of an AUDIO frame.

    - first: its first sample, in the board's count.
    - count: number of samples in `data`.
    """

    encoding: Encoding
    first: int
    count: int
    data: bytes


@dataclass(slots=True)
class _PlacedSound:
    """A sound on the audio line. start, end: positions of its first sample, and after its last one."""

    start: int
    end: int
    sound: EncodedSound


@frozen
class _InFlightFrame:
    """A frame that may still be answered. went_back: how often the sender had gone back when the frame was sent."""

    start: int
    end: int
    went_back: int


class AudioSender:
    """The sound of one board. Not thread-safe: its owner holds a lock.

    - realtime: whether sound is sent in real time, at most 0.1 s ahead of the clock.
    - max_resend_s: longest wait before resending. It adapts down to the round trips, but not below min_resend_s. For a
      wire that loses nothing, the two are equal. After lost frames, less is under way, and in smaller chunks.
    - end, sent, acknowledged: positions after the last sample appended, sent at least once, and acknowledged.
    - went_back: how often the sender went back after a loss.
    """

    def __init__(
        self, *, realtime: bool = False, max_resend_s: float = MAX_RESEND_S, min_resend_s: float = MIN_RESEND_S
    ) -> None:
        self._realtime = realtime
        self._max_resend_s = max_resend_s
        self._min_resend_s = min(min_resend_s, max_resend_s)
        self._sounds: deque[_PlacedSound] = deque()
        self._rate_hz = 0
        self._window = 0
        self._audio_line_s = 0.0  # seconds on the audio line at position self._base
        self._base = 0
        self._board_offset: int | None = None  # position on the audio line minus the board's count
        self._boot = ""
        self._board_offsets: list[tuple[int, int]] = []  # of this boot, each after the count above which it holds
        self.end = self.sent = self.acknowledged = 0
        self._next = 0  # To be sent next.
        self._congestion_window = 0.0  # Samples that may be under way, at most `_window`.
        self._halvings = 0  # Of chunks.
        self._advances = 0  # Since the last loss or doubling.
        self._timeouts = 0  # In a row.
        self._in_flight: deque[_InFlightFrame] = deque()  # In the order of leaving, as their answers.
        self._may_time_resent = False  # The next chunk, though it was sent before.
        self._progress_s = float("-inf")  # Time of the last progress, or of the first sending since.
        self._timed_chunk: tuple[int, float] | None = None  # End of a chunk sent once, and when.
        self._round_trip_s: float | None = None
        self._round_trip_spread_s = 0.0
        self._pace_start: tuple[int, float] | None = None  # position and time at which a sound in real time began
        self.went_back = 0

    @property
    def ready(self) -> bool:
        """Whether it is known which sample the board expects."""
        return self._board_offset is not None

    def start(self, rate_hz: int, window: int, boot: str) -> None:
        """Starts with a new or known boot: drops unheard sound. The next `due` asks which sample the board expects."""
        if rate_hz <= 0 or window <= 0:
            raise ValueError(f"sample rate and window must be positive, not {rate_hz} and {window}")
        self.disconnect()
        if boot != self._boot:
            self._boot, self._board_offsets = boot, []
        self._audio_line_s, self._base = self.audio_line_s(self.end), self.end
        self._rate_hz, self._window, self._congestion_window = rate_hz, window, float(window)
        self._halvings = self._advances = self._timeouts = 0
        self._in_flight.clear()
        self._round_trip_s, self._round_trip_spread_s = None, 0.0
        self._progress_s = float("-inf")

    def disconnect(self) -> None:
        """Records that the connection or the boot is gone; nothing is due until `start`."""
        self._sounds.clear()
        self.end = self._next = self.acknowledged = self.sent
        self._board_offset, self._timed_chunk, self._pace_start = None, None, None
        self._window = 0

    def append(self, sound: EncodedSound) -> tuple[int, int]:
        """Appends a sound; returns the positions of its first sample and after its last one."""
        start = self.end
        if self._next == self.end:
            self._pace_start = None
        self.end += len(sound)
        self._sounds.append(_PlacedSound(start, self.end, sound))
        return start, self.end

    def drop_unsent(self) -> int:
        """Drops unsent sound; returns the position at which the audio line now ends."""
        self.end = self.sent
        while self._sounds and self._sounds[-1].start >= self.end:
            self._sounds.pop()
        if self._sounds:
            self._sounds[-1].end = min(self._sounds[-1].end, self.end)
        return self.end

    def audio_line_s(self, position: int) -> float:
        """A position on the audio line, in seconds."""
        if not self._rate_hz:
            return 0.0
        return self._audio_line_s + (position - self._base) / self._rate_hz

    def sample_s(self, sample: int) -> float | None:
        """Position of a sample of the board's count on the audio line, in seconds; None while that is unknown.

        When the link was lost, the board may have lost sound that was under way. Samples heard before keep their
        positions.
        """
        if self._board_offset is None:
            return None
        first_offset = self._board_offsets[0][1]
        offset = next((offset for count, offset in reversed(self._board_offsets) if count < sample), first_offset)
        return self.audio_line_s(sample + offset)

    def due(self, now_s: float) -> AudioChunk | None:
        """A chunk to send now; call again until None."""
        if not self._window:
            return None
        if self._board_offset is None:
            if (
                now_s < self._progress_s + self._max_resend_s
            ):  # as in `wait_s`, so that no wait of 0 comes before its time
                return None
            self._progress_s = now_s
            return AudioChunk(Encoding.PCM16, PROBE_SAMPLE, 1, b"\0\0")
        if self.acknowledged < self._next and now_s >= self._progress_s + self._timeout_s():
            self._timeouts += 1
            self._go_back(now_s)
        span = self._next_span()
        if span is None or (self._realtime and span[1] > self._paced_position(now_s)):
            return None
        return self._next_chunk(*span, now_s)

    def acknowledge(self, expected: int, now_s: float) -> AudioAnswer:
        """Handles an acknowledgement, in which the board reports the sample that it expects, in its count."""
        if not self._window:
            return AudioAnswer.REPEATED
        if self._board_offset is None or self.sent == self._base:
            # Nothing was sent since the start, so its last report is its position.
            if self._board_offset is not None:
                self._board_offsets.pop()
            self._board_offset = self._base - expected
            self._board_offsets.append((expected, self._board_offset))
            return AudioAnswer.FOUND
        position = expected + self._board_offset
        if not self.acknowledged <= position <= self.sent:
            return AudioAnswer.FOREIGN
        if position > self.acknowledged:
            self._advance(position, now_s)
            return AudioAnswer.ADVANCED
        if self._proves_loss():
            self._go_back(now_s)
            # The resent chunk was not heard earlier, so its acknowledgement gives the round trip.
            self._may_time_resent = True
        return AudioAnswer.REPEATED

    def wait_s(self, now_s: float) -> float | None:
        """Time until `due` may have a chunk, s; None: not before an acknowledgement or `append`."""
        if not self._window:
            return None
        if self._board_offset is None:
            return max(0.0, self._progress_s + self._max_resend_s - now_s)
        waits = []
        if self.acknowledged < self._next:
            waits.append(max(0.0, self._progress_s + self._timeout_s() - now_s))
        span = self._next_span()
        if span is not None:
            samples_ahead = span[1] - self._paced_position(now_s) if self._realtime else 0
            waits.append(max(0.0, samples_ahead / self._rate_hz))
        return min(waits, default=None)

    def _next_span(self) -> tuple[int, int] | None:
        """Start and end of the next chunk; None if there is none, or the board has no room for it."""
        placed = next((candidate for candidate in self._sounds if candidate.end > self._next), None)
        if placed is None:
            return None
        size = max(placed.sound.min_chunk, placed.sound.max_chunk >> self._halvings)
        end = min(placed.end, self._next + size)
        room_end = self.acknowledged + self._window
        if end > room_end and placed.sound.min_chunk < placed.sound.max_chunk:
            end = room_end
        if not self._next < end <= room_end:
            return None
        is_congested = end > self.acknowledged + self._congestion_window
        if is_congested and self._next > self.acknowledged:  # a chunk may always leave while none is under way
            return None
        return self._next, end

    def _next_chunk(self, start: int, end: int, now_s: float) -> AudioChunk:
        """The chunk of these positions, which counts as sent."""
        assert self._board_offset is not None
        placed = next(candidate for candidate in self._sounds if candidate.end > start)
        if start == self.acknowledged:
            self._progress_s = now_s
        may_time_resent, self._may_time_resent = self._may_time_resent, False
        if self._timed_chunk is None and (may_time_resent or start >= self.sent):
            self._timed_chunk = end, now_s
        self._in_flight.append(_InFlightFrame(start, end, went_back=self.went_back))
        self._next, self.sent = end, max(self.sent, end)
        data = placed.sound.data(start - placed.start, end - placed.start)
        return AudioChunk(placed.sound.encoding, start - self._board_offset, end - start, data)

    def _proves_loss(self) -> bool:
        """Whether an answer without news proves a loss: it belongs to a frame that left too early to be accepted.

        Drops the frames that have their answer now. A frame that repeats what was heard is refused as well, and so is
        one that left before the sender last went back. Neither proves a further loss. Going back on them would send the
        whole window twice, for ever.
        """
        while self._in_flight:
            frame = self._in_flight.popleft()
            if frame.end <= self.acknowledged:
                return False
            if frame.start > self.acknowledged:
                return frame.went_back == self.went_back
            # Accepted, if it had arrived: it is the one lost, and the answer belongs to a later frame.
        return False

    def _advance(self, position: int, now_s: float) -> None:
        """Notes that all samples before a position were heard."""
        if self._timed_chunk is not None and position >= self._timed_chunk[0]:
            self._add_round_trip(now_s - self._timed_chunk[1])
            self._timed_chunk = None
        if any(frame.end == position for frame in self._in_flight):
            while self._in_flight.popleft().end != position:
                pass  # lost, or its answer was
        self._congestion_window = min(float(self._window), self._congestion_window + position - self.acknowledged)
        self._advances += 1
        if self._advances >= _ADVANCES_TO_DOUBLE and self._halvings:
            self._halvings, self._advances = self._halvings - 1, 0
        self.acknowledged, self._next = position, max(self._next, position)
        self._progress_s, self._timeouts = now_s, 0
        while self._sounds and self._sounds[0].end <= position:
            self._sounds.popleft()

    def _add_round_trip(self, round_trip_s: float) -> None:
        # Smoothed round trip and its spread as in RFC 6298, section 2.
        if self._round_trip_s is None:
            self._round_trip_s, self._round_trip_spread_s = round_trip_s, round_trip_s / 2
            return
        self._round_trip_spread_s += (abs(round_trip_s - self._round_trip_s) - self._round_trip_spread_s) / 4
        self._round_trip_s += (round_trip_s - self._round_trip_s) / 8

    def _timeout_s(self) -> float:
        """How long to wait for an acknowledgement before going back, s."""
        if self._round_trip_s is None:
            return self._max_resend_s
        # RFC 6298, sections 2 and 5.5: four spreads above the mean, doubled with each timeout in a row.
        timeout_s = max(self._min_resend_s, self._round_trip_s + 4 * self._round_trip_spread_s)
        return min(timeout_s * 2.0 ** min(self._timeouts, 8), self._max_resend_s)

    def _go_back(self, now_s: float) -> None:
        """Sends again from the first sample that is not acknowledged."""
        self.went_back += 1
        self._next, self._timed_chunk = self.acknowledged, None
        # Less under way, and in smaller chunks: a wire that loses frames then loses less with each.
        self._congestion_window = max(_MIN_WINDOW_SAMPLES, self._congestion_window / 2)
        self._halvings, self._advances = min(self._halvings + 1, _MAX_HALVINGS), 0
        self._progress_s = now_s

    def _paced_position(self, now_s: float) -> int:
        """Position up to which a sound may have left by now."""
        if self._pace_start is None:
            self._pace_start = self._next, now_s
        position, began_s = self._pace_start
        return position + int((now_s - began_s + _REALTIME_AHEAD_S) * self._rate_hz)

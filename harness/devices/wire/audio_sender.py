"""Sends sound to a board over a wire that may lose frames: what to send now, and what has been heard.

Go-back-N (docs/reference/framing.md, Audio): the board accepts samples only in order, and reports which one it expects.
The sender resends everything from there. No I/O and no clock: it takes acknowledgements and times, and returns chunks.

    ── acknowledged ── next ── sent ── end ──►      to be sent next, sent at least once, given
           └────────── window ────────────┘

Positions are samples on the *audio line*, which holds all sound since the driver opened. The board counts from its
boot. After each boot, a frame that no board expects reveals where its count lies on the audio line.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from enum import Enum, auto

from harness.devices.wire.adpcm import EncodedSound, Encoding
from harness.model.frozen import frozen

PROBE_SAMPLE = 1 << 63
"""A first sample that no board expects: it drops the frame, and answers with the one that it expects."""
RESEND_S = 0.5
SOONEST_S = 0.008
_AHEAD_S = 0.1
_FEWEST_SAMPLES = 480.0
"""Samples that may always be under way, however many frames were lost."""
_MOST_SHRUNK = 3
"""Maximum number of times that chunks are halved."""
_GOOD_CHUNKS = 64
"""Chunks are doubled again after this many acknowledgements of new samples."""


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
    """Content of an AUDIO frame. first: in the board's count. count: samples in `data`."""

    encoding: Encoding
    first: int
    count: int
    data: bytes


@dataclass(slots=True)
class _Piece:
    start: int
    end: int
    sound: EncodedSound


@frozen
class _InFlightFrame:
    """A frame that may still be answered. turn: how often the sender had gone back when it left."""

    start: int
    end: int
    turn: int


class AudioSender:
    """The sound of one board. Not thread-safe: its owner holds a lock.

    realtime: at most 0.1 s ahead of the clock. resend_s: longest wait before resending. It adapts down to the round
    trips, but not below soonest_s; for a wire that loses nothing, soonest_s equals resend_s. Lost frames shrink the
    amount under way and the chunks.
    end, sent, acknowledged: positions after the last sample given, sent at least once, and acknowledged.
    """

    def __init__(self, *, realtime: bool = False, resend_s: float = RESEND_S, soonest_s: float = SOONEST_S) -> None:
        self._realtime = realtime
        self._resend_s = resend_s
        self._soonest_s = min(soonest_s, resend_s)
        self._pieces: deque[_Piece] = deque()
        self._rate_hz = 0
        self._window = 0
        self._audio_line_s = 0.0  # seconds on the audio line at position self._base
        self._base = 0
        self._shift: int | None = None  # position on the audio line minus the board's count
        self._boot = ""
        self._shifts: list[tuple[int, int]] = []  # of this boot, each with the board's count from which on it holds
        self.end = self.sent = self.acknowledged = 0
        self._next = 0  # to be sent next
        self._allowed = 0.0
        self._shrink = 0
        self._good = 0
        self._timeouts = 0
        self._flying: deque[_InFlightFrame] = deque()  # in the order of leaving, which is that of their answers
        self._timed_again = False
        self._last_s = float("-inf")  # time of the last progress, or of the first sending since
        self._timing: tuple[int, float] | None = None  # end of a chunk sent once, and when
        self._trip_s: float | None = None
        self._spread_s = 0.0
        self._began: tuple[int, float] | None = None
        self.resent = 0
        self.went_back = 0

    @property
    def ready(self) -> bool:
        """Whether it is known which sample the board expects."""
        return self._shift is not None

    def start(self, rate_hz: int, window: int, boot: str) -> None:
        """Starts with a (new or known) boot: drops what was not heard; the next `due` asks what the board expects."""
        if rate_hz <= 0 or window <= 0:
            raise ValueError(f"sample rate and window must be positive, not {rate_hz} and {window}")
        self.disconnect()
        if boot != self._boot:
            self._boot, self._shifts = boot, []
        self._audio_line_s, self._base = self.audio_line_s(self.end), self.end
        self._rate_hz, self._window, self._allowed = rate_hz, window, float(window)
        self._shrink = self._good = self._timeouts = 0
        self._flying.clear()
        self._trip_s, self._spread_s = None, 0.0
        self._last_s = float("-inf")

    def disconnect(self) -> None:
        """The connection or the boot is gone; nothing is due until `start`."""
        self._pieces.clear()
        self.end = self._next = self.acknowledged = self.sent
        self._shift, self._timing, self._began = None, None, None
        self._window = 0

    def give(self, sound: EncodedSound) -> tuple[int, int]:
        """Appends a sound; returns the positions of its first sample and after its last one."""
        start = self.end
        if self._next == self.end:
            self._began = None
        self.end += len(sound)
        self._pieces.append(_Piece(start, self.end, sound))
        return start, self.end

    def cut(self) -> int:
        """Drops unsent sound; returns the position at which the audio line now ends."""
        self.end = self.sent
        while self._pieces and self._pieces[-1].start >= self.end:
            self._pieces.pop()
        if self._pieces:
            self._pieces[-1].end = min(self._pieces[-1].end, self.end)
        return self.end

    def audio_line_s(self, position: int) -> float:
        """Seconds on the audio line."""
        if not self._rate_hz:
            return 0.0
        return self._audio_line_s + (position - self._base) / self._rate_hz

    def sample_s(self, sample: int) -> float | None:
        """Seconds on the audio line of a sample in the board's count; None while that is unknown.

        A board may have lost what was under way when the link was lost: what it heard before keeps its place.
        """
        if self._shift is None:
            return None
        shift = next((shift for heard, shift in reversed(self._shifts) if heard < sample), self._shifts[0][1])
        return self.audio_line_s(sample + shift)

    def due(self, now_s: float) -> AudioChunk | None:
        """A chunk to send now; call again until None."""
        if not self._window:
            return None
        if self._shift is None:
            if now_s < self._last_s + self._resend_s:  # as in `wait_s`, so that no wait of 0 comes before its time
                return None
            self._last_s = now_s
            return AudioChunk(Encoding.PCM16, PROBE_SAMPLE, 1, b"\0\0")
        if self.acknowledged < self._next and now_s >= self._last_s + self._patience_s():
            self._timeouts += 1
            self._go_back(now_s)
        span = self._span()
        if span is None or (self._realtime and span[1] > self._paced_position(now_s)):
            return None
        return self._next_chunk(*span, now_s)

    def acknowledge(self, expected: int, now_s: float) -> AudioAnswer:
        """The board reports which sample it expects, in its count."""
        if not self._window:
            return AudioAnswer.REPEATED
        if self._shift is None or self.sent == self._base:
            # Nothing was sent since the start, so its last report is its position.
            if self._shift is not None:
                self._shifts.pop()
            self._shift = self._base - expected
            self._shifts.append((expected, self._shift))
            return AudioAnswer.FOUND
        position = expected + self._shift
        if not self.acknowledged <= position <= self.sent:
            return AudioAnswer.FOREIGN
        if position > self.acknowledged:
            self._advance(position, now_s)
            return AudioAnswer.ADVANCED
        if self._lost_one():
            self._go_back(now_s)
            # The resent chunk was not heard earlier, so its acknowledgement gives the round trip.
            self._timed_again = True
        return AudioAnswer.REPEATED

    def wait_s(self, now_s: float) -> float | None:
        """Time until `due` may have a chunk without an acknowledgement, s; None: not before one, or `give`."""
        if not self._window:
            return None
        if self._shift is None:
            return max(0.0, self._last_s + self._resend_s - now_s)
        waits = []
        if self.acknowledged < self._next:
            waits.append(max(0.0, self._last_s + self._patience_s() - now_s))
        span = self._span()
        if span is not None:
            ahead = span[1] - self._paced_position(now_s) if self._realtime else 0
            waits.append(max(0.0, ahead / self._rate_hz))
        return min(waits, default=None)

    def _span(self) -> tuple[int, int] | None:
        """Positions of the next chunk, when the board has room for it."""
        piece = next((candidate for candidate in self._pieces if candidate.end > self._next), None)
        if piece is None:
            return None
        size = max(piece.sound.smallest, piece.sound.largest >> self._shrink)
        end, room = min(piece.end, self._next + size), self.acknowledged + self._window
        if end > room and piece.sound.smallest < piece.sound.largest:
            end = room
        if not self._next < end <= room or (self._next > self.acknowledged and end > self.acknowledged + self._allowed):
            return None
        return self._next, end

    def _next_chunk(self, start: int, end: int, now_s: float) -> AudioChunk:
        assert self._shift is not None
        piece = next(candidate for candidate in self._pieces if candidate.end > start)
        if start == self.acknowledged:
            self._last_s = now_s
        again, self._timed_again = self._timed_again, False
        if start < self.sent:
            self.resent += 1
        if self._timing is None and (again or start >= self.sent):
            self._timing = end, now_s
        self._flying.append(_InFlightFrame(start, end, self.went_back))
        self._next, self.sent = end, max(self.sent, end)
        data = piece.sound.cut(start - piece.start, end - piece.start)
        return AudioChunk(piece.sound.encoding, start - self._shift, end - start, data)

    def _lost_one(self) -> bool:
        """Whether an answer without news proves a loss: it belongs to a frame that left too early to be accepted.

        One that repeats what was heard is refused as well, and so is one that left before the sender last went back.
        Neither proves a further loss. Going back on them would send the whole window twice, for ever.
        """
        while self._flying:
            frame = self._flying.popleft()
            if frame.end <= self.acknowledged:
                return False
            if frame.start > self.acknowledged:
                return frame.turn == self.went_back
            # Accepted, if it had arrived: it is the one lost, and the answer belongs to a later frame.
        return False

    def _advance(self, position: int, now_s: float) -> None:
        if self._timing is not None and position >= self._timing[0]:
            self._measure(now_s - self._timing[1])
            self._timing = None
        if any(frame.end == position for frame in self._flying):
            while self._flying.popleft().end != position:
                pass  # lost, or its answer was
        self._allowed = min(float(self._window), self._allowed + position - self.acknowledged)
        self._good += 1
        if self._good >= _GOOD_CHUNKS and self._shrink:
            self._shrink, self._good = self._shrink - 1, 0
        self.acknowledged, self._next = position, max(self._next, position)
        self._last_s, self._timeouts = now_s, 0
        while self._pieces and self._pieces[0].end <= position:
            self._pieces.popleft()

    def _measure(self, trip_s: float) -> None:
        # Smoothed round trip and its spread as in RFC 6298, section 2.
        if self._trip_s is None:
            self._trip_s, self._spread_s = trip_s, trip_s / 2
            return
        self._spread_s += (abs(trip_s - self._trip_s) - self._spread_s) / 4
        self._trip_s += (trip_s - self._trip_s) / 8

    def _patience_s(self) -> float:
        if self._trip_s is None:
            return self._resend_s
        # RFC 6298, sections 2 and 5.5: four spreads above the mean, doubled with each timeout in a row.
        patience_s = max(self._soonest_s, self._trip_s + 4 * self._spread_s) * 2.0 ** min(self._timeouts, 8)
        return min(patience_s, self._resend_s)

    def _go_back(self, now_s: float) -> None:
        self.went_back += 1
        self._next, self._timing = self.acknowledged, None
        # Less under way, and in smaller chunks: a wire that loses frames then loses less with each.
        self._allowed = max(_FEWEST_SAMPLES, self._allowed / 2)
        self._shrink, self._good = min(self._shrink + 1, _MOST_SHRUNK), 0
        self._last_s = now_s

    def _paced_position(self, now_s: float) -> int:
        """Position up to which a sound may have left by now."""
        if self._began is None:
            self._began = self._next, now_s
        position, began_s = self._began
        return position + int((now_s - began_s + _AHEAD_S) * self._rate_hz)

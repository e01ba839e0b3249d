"""A device's console: bytes and their arrival in, observations out. Bounded in memory and time; no I/O and no clock.

    bytes ──► lines, and frames if the profile has any ──► `_map_line`: their times ──► LineRules ──┬─► observations
                                                                                                    └─► LogLine

`LogLimit` limits the LogLines of unmapped lines to the profile's rate.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from harness.base.foreign import strip_terminal_codes
from harness.devices.wire.line_clock import UNPROVEN_S, LineClock
from harness.devices.wire.lines import LINE_ENDS, LineReading, LineRules
from harness.devices.wire.mappings import message_of, observation_by_type
from harness.devices.wire.segments import EVENT_TIMEOUT_S, FrameFinder, StreamSegment, WyomingEvents
from harness.model.bench import ConsoleSettings, DeviceProfile, Framing
from harness.model.numbers import exact
from harness.model.observation import DeviceState, ListeningProved, LogLine, Observation, Proof, Status, Unread
from harness.model.time import Stamp

PROOF_EVERY_S = 5.0
"""Shortest interval between two reports that a device listens, in seconds."""
EARLY_S = 0.5
"""How much earlier a heartbeat may come, in seconds, so that one with exactly that period is always reported."""


class HeartbeatThrottle:
    """Selects the heartbeats to report: about one every 5 s, and always the first after a loss.

    No clock: it uses the times of the observations.
    """

    def __init__(self) -> None:
        self._reported_s: float | None = None

    def passes(self, observation: Observation) -> bool:
        """Whether to report it; call it with every observation in order."""
        match observation:
            case ListeningProved(at=stamp, proof=Proof.HEARTBEAT):
                if self._reported_s is not None and 0 <= stamp.at_s - self._reported_s < PROOF_EVERY_S - EARLY_S:
                    return False
                self._reported_s = stamp.at_s
            case Status(state=DeviceState.STARTED | DeviceState.GONE):
                self.link_lost()
            case _:
                pass
        return True

    def link_lost(self) -> None:
        """Makes the next heartbeat be reported."""
        self._reported_s = None


class LogLimit:
    """Limits log lines to a rate, and counts those that are left out. No clock: it takes the times.

    A token bucket: it holds at most `burst` tokens, gains `per_s` a second, and a line takes one.
    """

    def __init__(self, source: str, per_s: float, burst: float) -> None:
        """burst: number of lines that may come at once. per_s: rate that applies after these."""
        self.left_out = 0
        self._source, self._per_s, self._burst = source, per_s, burst
        self._tokens = burst
        self._updated_s: float | None = None

    def admits(self, now_s: float) -> bool:
        """Whether the log accepts one more line now; otherwise it is counted."""
        self._refill(now_s)
        if self._tokens < 1.0:
            self.left_out += 1
            return False
        self._tokens -= 1.0
        return True

    def is_calm(self, now_s: float) -> bool:
        """Whether half of a burst would be accepted again, so that lines are not likely to be left out soon."""
        self._refill(now_s)
        return self._tokens >= self._burst / 2

    def report(self, stamp: Stamp) -> LogLine:
        """The log line with the number of lines that were left out; the count starts again."""
        count, self.left_out = self.left_out, 0
        lines = "1 line was" if count == 1 else f"{count} lines were"
        return LogLine(self._source, stamp, f"{lines} left out: more than {exact(self._per_s)} per second")

    def _refill(self, now_s: float) -> None:
        elapsed_s = 0.0 if self._updated_s is None else max(0.0, now_s - self._updated_s)
        self._updated_s = now_s
        self._tokens = min(self._burst, self._tokens + elapsed_s * self._per_s)


_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f-\x9f\ufffd]")
_PIECE_BYTES = 4096  # Read at once, so that what is held stays small.
_MAX_LOG_CHARS = 2000
"""Number of characters of an unmapped line that the log keeps."""
_BITS_PER_BYTE = 10
"""Bits for a byte on a serial line: a start bit, eight data bits and a stop bit."""
_BURST_S = 2.0
"""The burst of log lines is as many as the rate allows in this time, in seconds."""
_BUFFERS_S = 0.004
"""Delay that a board's own buffer and the polling of a bus may add, in seconds."""
_UNREAD_REPORT_INTERVAL_S = 0.2  # Chosen: reports of unread lines stay readable.
_BEHIND_S = 0.05
"""A line that begins this soon after one whose pieces arrived separately may have waited for it, in seconds."""
_ONE_LINE_S = 1.0
"""Pieces of a line that arrive farther apart were not written at once: the first one may be a prompt."""


# Common baud rates, most common first.
RATES = (115200, 9600, 921600, 57600, 460800, 230400, 38400, 19200, 74880, 1500000, 2000000, 1000000)
RATES_IN_WORDS = ", ".join(str(rate) for rate in sorted(RATES))
MIN_TEXT_SHARE = 0.9  # Share of text. Chosen: of random bytes, two fifths would be text.
_TEXT_BYTES = frozenset(b"\t\r\n\x1b" + bytes(range(32, 127)))  # Printable ASCII, line ends, and the ESC of colours.


def text_share(data: bytes) -> float:
    """The share of bytes that are text; UTF-8 counts as text."""
    if not data:
        return 0.0
    ascii_bytes = sum(byte in _TEXT_BYTES for byte in data)
    characters = data.decode("utf-8", errors="ignore")
    other_bytes = sum(len(character.encode()) for character in characters if ord(character) >= 0xA0)
    return min(1.0, (ascii_bytes + other_bytes) / len(data))


def maps_lines(profile: DeviceProfile | None) -> bool:
    """Whether the profile has rules for console lines; without a profile, every line is kept in the log."""
    return profile is None or bool(profile.lines or profile.messages or profile.thresholds)


class Console:
    """Reads one device's console by its profile; without a profile every line is a LogLine.

    lines, garbage: numbers of complete lines, and of those with bytes that are not text.
    Call `feed(b"", now)` when nothing arrives, so that rules that wait for further lines time out.
    """

    def __init__(
        self,
        profile: DeviceProfile | None,
        source: str,
        *,
        baud: int | None = None,
        hold_back_s: float = 0.0,
        measured: bool = True,
        event_timeout_s: float = EVENT_TIMEOUT_S,
    ) -> None:
        """baud: bit rate of a serial port, where long lines take time; None: they do not.

        hold_back_s: how long an adapter may hold a line back. measured: whether that was measured, not assumed.
        event_timeout_s: silence after which an incomplete Wyoming event counts as cut off.
        """
        self.lines = self.garbage = 0
        self._settings = profile.console if profile is not None else ConsoleSettings()
        self._source = source
        self._byte_s = _BITS_PER_BYTE / baud if baud else 0.0
        self._hold_back_s = hold_back_s
        mappings = profile.lines if profile is not None else ()
        takes_audio = profile is not None and profile.audio is not None
        self.clock = LineClock(hold_back_s, 0.0 if measured else UNPROVEN_S)
        thresholds = profile.thresholds if profile is not None else ()
        self._rules = LineRules(
            mappings, self._settings, source, clock=self.clock, takes_audio=takes_audio, thresholds=thresholds
        )
        self._messages = profile.messages if profile is not None else ()
        self._finder = FrameFinder(profile.frames) if profile is not None and profile.frames else None
        self._wyoming_events: WyomingEvents | None = None
        if self._settings.framing is Framing.WYOMING:
            self._wyoming_events = WyomingEvents(self._settings.max_line_bytes, timeout_s=event_timeout_s)
        self._unread: list[LineReading] = []
        self._unread_reported_s: float | None = None
        self._line = bytearray()
        self._first_piece: tuple[Stamp, int] | None = None
        """Arrival of the first piece of the unfinished line, and its length in bytes."""
        self._standstill: tuple[float, float] | None = None
        """Start and end of the last time in which the wire stood still, which separate pieces of a line show."""
        self._dropped_bytes = 0
        per_s = self._settings.log_lines_per_s
        self._log_limit = LogLimit(source, per_s, max(1.0, per_s * _BURST_S))

    def feed(self, data: bytes, stamp: Stamp) -> tuple[Observation, ...]:
        """The observations for bytes that arrived at `stamp`. Unmapped lines become LogLines, up to a set rate."""
        observations: list[Observation] = []
        for reading in self.read(data, stamp):
            observations += self._observations_of(reading)
        observations += self._report_unread(stamp)
        if self._log_limit.left_out and self._log_limit.is_calm(stamp.at_s):
            observations.append(self._log_limit.report(stamp))
        return tuple(observations)

    def flush(self, stamp: Stamp) -> tuple[Observation, ...]:
        """The observations that are still held back: of an unfinished line, or waiting for more lines, or a count."""
        observations = [
            observation for reading in self.read_rest(stamp) for observation in self._observations_of(reading)
        ]
        observations += self._report_unread(stamp, at_once=True)
        if self._log_limit.left_out:
            observations.append(self._log_limit.report(stamp))
        return tuple(observations)

    def read(self, data: bytes, stamp: Stamp) -> list[LineReading]:
        """Like `feed`, line by line with the result of each and without a rate limit, for writing a profile."""
        readings = self._rules.expire(stamp.at_s)
        for start in range(0, len(data) or 1, _PIECE_BYTES):  # at least once, so that incomplete frames time out
            piece = data[start : start + _PIECE_BYTES]
            segmenter = self._wyoming_events or self._finder
            earliest = self._earliest_arrival(stamp)
            segments = [StreamSegment(piece, is_frame=False)]
            if segmenter is not None:
                segments = segmenter.feed(piece, stamp.at_s)
            for segment in segments:
                if not segment.is_frame:
                    readings += self._read_text(segment.content, stamp, earliest)
                    continue
                line = (
                    f"frame: {segment.content.hex(' ')}" if self._wyoming_events is None else segment.content.decode()
                )
                readings += self._map_line(line, stamp, stamp, len(segment.content))
        return readings

    def read_rest(self, stamp: Stamp) -> list[LineReading]:
        """Like `flush`, line by line."""
        earliest = self._earliest_arrival(stamp)
        held = self._finder.release() if self._finder is not None else b""
        readings = [*self._read_text(held, stamp, earliest), *self._end_line(stamp, earliest)]
        return [*readings, *self._rules.flush()]

    def _earliest_arrival(self, stamp: Stamp) -> Stamp:
        """When text that is released now may have arrived: a part of it may have been held as the start of a frame."""
        held_since_s = self._finder.oldest_s if self._finder is not None else None
        return stamp if held_since_s is None else Stamp(held_since_s, stamp.error_s)

    def _read_text(self, data: bytes, stamp: Stamp, earliest: Stamp) -> Iterator[LineReading]:
        """The results of the lines that end in the data, which arrived between `earliest` and `stamp`.

        The rest begins the next line.
        """
        start = 0
        for end in LINE_ENDS.finditer(data):
            self._append(data[start : end.start()], earliest)
            yield from self._end_line(stamp, earliest)
            start = end.end()
        self._append(data[start:], earliest)

    def _append(self, data: bytes, stamp: Stamp) -> None:
        """Adds to the unfinished line, of which the first `max_line_bytes` are kept."""
        if data and not self._line:
            self._first_piece = stamp, len(data)
        room = max(0, self._settings.max_line_bytes - len(self._line))
        self._line += data[:room]
        self._dropped_bytes += max(0, len(data) - room)

    def _end_line(self, stamp: Stamp, earliest: Stamp) -> list[LineReading]:
        """The results of the unfinished line, whose end arrived between `earliest` and `stamp`; [] if it is empty."""
        if not self._line:
            return []
        raw, dropped, first = bytes(self._line), self._dropped_bytes, self._first_piece
        self._line.clear()
        self._dropped_bytes = 0
        text = raw.decode("utf-8", errors="backslashreplace")
        if _is_garbage(raw):
            self.garbage += 1
        if dropped:
            self.lines += 1
            why = f"the line is too long: {len(raw) + dropped} bytes"
            return [LineReading(text, stamp, why=why, unread=True)]
        if first is not None and earliest.at_s - first[0].at_s <= _ONE_LINE_S:
            return self._map_line(text, stamp, *first)
        return self._map_line(text, stamp, earliest, len(raw))

    def _map_line(self, raw: str, stamp: Stamp, first: Stamp, size: int) -> list[LineReading]:
        """Applies the rules to a line.

        - stamp: when its end arrived.
        - first, size: when its first piece arrived, and the bytes in that piece.
        """
        self.lines += 1
        transit_s = size * self._byte_s + self._hold_back_s
        if self._byte_s or self._hold_back_s:
            transit_s += _BUFFERS_S
        if transit_s or first is not stamp or self._standstill is not None:
            # The line was written before its first byte left, and before it was read, however late. Pieces of two
            # directions come from two threads, and their times need not be in order.
            earliest_s, latest_s = min(first.at_s, stamp.at_s), max(first.at_s, stamp.at_s)
            if self._standstill is not None and earliest_s - self._standstill[1] <= _BEHIND_S:
                earliest_s = min(earliest_s, self._standstill[0])
            self._standstill = (earliest_s, latest_s) if latest_s - earliest_s > _BEHIND_S else None
            earliest_s -= 2 * first.error_s + transit_s
            stamp = Stamp((earliest_s + latest_s) / 2, (latest_s - earliest_s) / 2)
        text = strip_terminal_codes(raw)
        message = message_of(text) if self._messages else None
        if message is None:
            return self._rules.apply(text, raw, stamp)
        mapped = observation_by_type(self._messages, message, stamp, self._source)
        if isinstance(mapped, str):  # why it could not be
            readings = self._rules.apply(text, raw, stamp)
            if mapped and readings[-1].rule is None:
                readings = [*readings[:-1], replace(readings[-1], why=mapped)]
            return readings
        number, observation = mapped
        at, device_s = self._rules.stamp_line(text, stamp)
        reading = LineReading(raw, stamp, (replace(observation, at=at),), len(self._rules) + number, device_s=device_s)
        return [*self._rules.expire(stamp.at_s), reading]

    def _report_unread(self, stamp: Stamp, *, at_once: bool = False) -> list[Observation]:
        """Reports lines that were not read, at a readable rate."""
        is_early = (
            self._unread_reported_s is not None and stamp.at_s - self._unread_reported_s < _UNREAD_REPORT_INTERVAL_S
        )
        if not self._unread or (is_early and not at_once):
            return []
        readings, self._unread, self._unread_reported_s = self._unread, [], stamp.at_s
        return [Unread(self._source, readings[-1].at, readings[-1].why, len(readings))]

    def _observations_of(self, reading: LineReading) -> tuple[Observation, ...]:
        """The observations of a line, with its LogLine if no rule matched. The rate limit applies to all LogLines."""
        if reading.unread:
            self._unread.append(reading)
        if reading.rule is not None:
            return tuple(
                observation
                for observation in reading.observations
                if not isinstance(observation, LogLine) or self._log_limit.admits(reading.at.at_s)
            )
        if not self._log_limit.admits(reading.at.at_s):
            return reading.observations
        why = f" ({reading.why})" if reading.why else ""
        return (*reading.observations, LogLine(self._source, reading.at, reading.text[:_MAX_LOG_CHARS] + why))


def _is_garbage(raw: bytes) -> bool:
    """Whether a line has bytes that are not text, as at a wrong baud rate."""
    text = strip_terminal_codes(raw.decode("utf-8", errors="replace"))
    return _CONTROL.search(text) is not None

"""Shows how a profile maps a device's output, line by line, for writing a profile."""

from __future__ import annotations

import hashlib
import math
import re
from collections import deque
from dataclasses import fields
from pathlib import Path

from harness.base import strict_yaml
from harness.base.foreign import plain_text
from harness.devices.device_sources import DeviceOutput, output_now
from harness.devices.profiles.profile import load_profile
from harness.devices.profiles.samples import format_fields, sample_fields
from harness.devices.wire import messages
from harness.devices.wire.console import RATES_IN_WORDS, Console
from harness.devices.wire.frames import Decoder, FrameKind, WireFrame
from harness.devices.wire.lines import LineReading
from harness.devices.wire.mappings import for_device, observations
from harness.model.bench import DeviceProfile, Framing, PlainValue
from harness.model.errors import HarnessError, InputError
from harness.model.frozen import frozen
from harness.model.numbers import counted, exact, seconds
from harness.model.observation import LogLine, Observation

CHECK_INTERVAL_S = 0.5  # Interval at which the profile's files are checked for changes.
MAX_LINE_CHARS = 2000
RECENT_BYTES = 200_000
LEVEL_ROW_INTERVAL_S = 0.5
"""Interval of rows about a threshold while its state does not change, in seconds."""
MAX_LINES = 40
"""Largest number of lines in one sample."""
_MIN_BYTES_FOR_LINES = 256  # Chosen: so many bytes of log lines contain a line ending.
_MIN_ESCAPES = 8  # A line with fewer escaped bytes is shown in full.
_NOISE = re.compile(r"^(\(\d+ bytes that are not text):.*", re.DOTALL)


@frozen
class MonitorRow:
    """A line of a device, and the observations to which the rules map it.

    The names of the fields are keys of `devices monitor --json`. said, made, why: the line, the observations, and why
    it is not mapped; all safe to print.
    snippet: the line as a sample for the profile, in YAML; "" if it cannot be one.
    device_s: the time that the device wrote into it; None without one. error_s: error that its time would have in a
    session; None if not known. retained: whether the broker had stored it, so that it is not current.
    """

    wall_s: float
    said: str
    made: str
    mapped: bool
    why: str = ""
    snippet: str = ""
    device_s: float | None = None
    error_s: float | None = None
    retained: bool = False

    @property
    def times(self) -> str:
        """What is known about its time besides the arrival, in words."""
        parts = ["retained, not a current event"] if self.retained else []
        parts += [f"device {exact(round(self.device_s, 6), 15)} s"] if self.device_s is not None else []
        parts += [f"± {seconds(self.error_s)}"] if self.error_s is not None else []
        return ", ".join(parts)


class DeviceMonitor:
    """Applies a profile that may be edited at the same time. While it is invalid, the last valid version is used.

    - problem: the file's current error, with its place; "" when it is valid.
    - lines, mapped, unmapped: numbers of lines, without retained messages, which are counted separately.
    """

    def __init__(
        self, profile: str, folder: Path, device: str = "", *, baud: int | None = None, hold_back_s: float = 0.0
    ) -> None:
        """Reads the profile (an id or a path). Raises InputError when it is missing or invalid.

        baud, hold_back_s: bit rate of a port, and how long it may hold lines back; they add to the errors of times.
        """
        self._baud, self._hold_back_s = baud, hold_back_s
        self.bytes = 0
        self.profile: DeviceProfile = load_profile(profile, beside=folder)
        self.problem = ""
        self.lines = self.mapped = self.unmapped = self.retained = 0
        self.device = device or self.profile.id
        self._path, self._folder = Path(self.profile.path), folder
        self._last_check_s = 0.0
        self._recent: deque[DeviceOutput] = deque()
        self._recent_bytes = 0
        self._start_console()

    def _start_console(self) -> None:
        """Starts anew with the current profile, without observations that wait for further lines."""
        self._console = Console(self.profile, self.device, baud=self._baud, hold_back_s=self._hold_back_s)
        self._mappings = for_device(self.profile.mappings, self.device)
        self._decoder = Decoder() if self.profile.console.framing is Framing.VH else None
        self._probe = Decoder()
        self.has_frames = False
        """Whether frames arrive that the profile does not expect."""
        self._sample_lines: list[str] = []
        self._sample_observations: tuple[Observation, ...] = ()
        self._sample_is_open = False
        self._level_row_s = -math.inf
        self.latest = ""
        """The last line that a threshold has read, and its state."""

    def feed(self, output: DeviceOutput) -> list[MonitorRow]:
        """The rows for new output."""
        if output.data:
            self._recent.append(output)
            self._recent_bytes += len(output.data) + len(output.topic)
        while self._recent_bytes > RECENT_BYTES:
            oldest = self._recent.popleft()
            self._recent_bytes -= len(oldest.data) + len(oldest.topic)
        return self._rows(output)

    def replay(self) -> list[MonitorRow]:
        """The rows for recent output under the current profile. The counts restart with these rows."""
        self._start_console()
        self.lines = self.mapped = self.unmapped = self.retained = self.bytes = 0
        return [row for output in self._recent for row in self._rows(output)]

    def _rows(self, output: DeviceOutput) -> list[MonitorRow]:
        self.bytes += len(output.data)
        rows = self._message_rows(output) if output.topic else self._console_rows(output)
        self._count(rows)
        return rows

    @property
    def counts(self) -> str:
        """`8 lines: 5 mapped, 3 not; 1 retained message, not current`."""
        retained = counted(self.retained, "retained message")
        suffix = f"; {retained}, not current" if self.retained else ""
        return f"{counted(self.lines, 'line')}: {self.mapped} mapped, {self.unmapped} not{suffix}"

    @property
    def held_back_s(self) -> float | None:
        """How much later other lines arrived than the fastest one; None with too few device times."""
        return self._console.clock.spread_s

    @property
    def noise(self) -> str:
        """The problem if bytes arrive but few readable lines, or frames; "" otherwise."""
        console = self._console
        if self.has_frames:
            return "the device sends frames of the harness's protocol: add `console: {framing: vh}` to the profile"
        if self._baud is None or self.bytes < _MIN_BYTES_FOR_LINES or self._decoder is not None:
            return ""
        if console.lines == 0:
            problem = "without a line ending"
        elif console.garbage * 2 > console.lines:
            problem = f"and {console.garbage} of {console.lines} lines are not text"
        else:
            return ""
        return f"{self.bytes} bytes received, {problem}. Is {self._baud} baud right? Common rates: {RATES_IN_WORDS}"

    def _count(self, rows: list[MonitorRow]) -> None:
        for row in rows:
            if row.retained:
                self.retained += 1
                continue
            if row.said:
                self.lines += 1
            if not row.mapped:
                self.unmapped += 1
            elif row.said:
                self.mapped += 1

    def remaining_rows(self) -> list[MonitorRow]:
        """The rows still held back when no more output will arrive."""
        output = output_now(b"")
        rows = [self._reading_row(reading, output) for reading in self._console.read_rest(output.at)]
        self._count(rows)
        return rows

    def reload_if_changed(self, now_s: float) -> bool:
        """Rereads the profile if one of its files has changed. Returns True if that has changed anything.

        While it is invalid, it is reread each time: the error may be in a file that it has only just named.
        """
        if now_s - self._last_check_s < CHECK_INTERVAL_S:
            return False
        self._last_check_s = now_s
        # Hashes, not times: a file that is saved while it is read differs from what was read.
        if not self.problem and all(_sha256_of(profile.path) == profile.sha256 for profile in self.profile.files):
            return False
        earlier_problem, self.problem = self.problem, ""
        try:
            self.profile = load_profile(self._path, beside=self._folder)
        except InputError as error:
            self.problem = plain_text_lines(str(error))
        if self.problem:
            return self.problem != earlier_problem
        self._start_console()
        return True

    def _console_rows(self, output: DeviceOutput) -> list[MonitorRow]:
        if self._decoder is None:
            if output.data and self._baud is not None and not self.has_frames:
                self.has_frames = any(isinstance(piece, WireFrame) for piece in self._probe.feed(output.data))
            return self._reading_rows(output.data, output)
        rows: list[MonitorRow] = []
        for piece in self._decoder.feed(output.data) if output.data else ():
            rows += [_frame_row(piece, output)] if isinstance(piece, WireFrame) else self._reading_rows(piece, output)
        return rows

    def _reading_rows(self, data: bytes, output: DeviceOutput) -> list[MonitorRow]:
        readings = self._console.read(data, output.at)
        return [self._reading_row(reading, output) for reading in readings if self._is_shown(reading)]

    def _is_shown(self, reading: LineReading) -> bool:
        """Whether a reading gets its own row; one that does not is counted here.

        Of a threshold's readings, changes have a row, and others now and then.
        """
        if reading.level:
            self.latest = plain_text(f"{reading.text}  {reading.level}", MAX_LINE_CHARS)
        if reading.level and not reading.observations:
            if 0 <= reading.at.at_s - self._level_row_s < LEVEL_ROW_INTERVAL_S:
                self.lines += 1
                self.mapped += 1
                return False
            self._level_row_s = reading.at.at_s
        return True

    def _reading_row(self, reading: LineReading, output: DeviceOutput) -> MonitorRow:
        if reading.level:
            words = "; ".join(
                text for text in (_observations_text(reading.observations), plain_text(reading.level)) if text
            )
            stamp, error_s = reading.at, None
            if reading.observations:
                stamp = reading.observations[0].at
                error_s = stamp.error_s
            wall_s = output.wall_s + stamp.at_s - reading.at.at_s
            return MonitorRow(wall_s, _line_text(reading.text), words, True, device_s=reading.device_s, error_s=error_s)
        if not self._sample_is_open:
            self._sample_lines, self._sample_observations = [], ()
        self._sample_is_open = reading.waiting
        self._sample_observations += reading.observations
        if reading.text:
            self._sample_lines.append(reading.text)
        words = _observations_text(reading.observations)
        if reading.rule is not None and not words:
            words = f"lines[{reading.rule}]: waiting for more lines, or nothing to report"
        # A sample must end where no observation is incomplete, or it would give that one as well.
        complete = not reading.waiting and len(self._sample_lines) <= MAX_LINES
        snippet = _line_snippet(self._sample_lines, self._sample_observations) if complete else ""
        line = _line_text(reading.text)
        stamp = reading.observations[0].at if reading.observations else reading.at
        # With a baud rate, the stamps of the source are those of a session, and have an error.
        return MonitorRow(
            wall_s=output.wall_s,
            said=line,
            made=words,
            mapped=reading.rule is not None,
            why=plain_text(reading.why),
            snippet=snippet,
            device_s=reading.device_s,
            error_s=stamp.error_s if self._baud is not None else None,
        )

    def _message_rows(self, output: DeviceOutput) -> list[MonitorRow]:
        results = observations(self._mappings, output.topic, output.data, output.at, self.device)
        text = output.data.decode("utf-8", errors="backslashreplace")
        line = plain_text(f"{output.topic} {text}", MAX_LINE_CHARS)
        # A single log line: the message is not mapped, and the end of the line says why.
        mapped, reason = True, None
        if len(results) == 1 and isinstance(results[0], LogLine) and results[0].text.startswith(f"{output.topic}: "):
            mapped = False
            reason = re.search(r" \(([^()]*)\)$", results[0].text)
        # In a sample, {device} is the profile's name, whatever replaced it in the topics here.
        topic = "/".join("{device}" if part == self.device else part for part in output.topic.split("/"))
        # The payload is kept as it arrived, as text.
        gives = _observations_yaml(results if mapped else ())
        snippet = f"  - topic: {_quote(topic)}\n    payload: {_quote(text)}\n    gives: [{gives}]\n"
        why = plain_text(reason[1]) if reason else ""
        words = _observations_text(results) if mapped else ""
        return [MonitorRow(output.wall_s, line, words, mapped, why, snippet, retained=output.retained)]


def _sha256_of(path: str) -> str:
    """Hash of a file; "" if it cannot be read."""
    try:
        return hashlib.sha256(strict_yaml.read_bytes(Path(path))).hexdigest()
    except InputError:
        return ""


def _line_text(text: str) -> str:
    """A line as text. Binary lines are summarised, since escapes would fill the screen."""
    escaped = text.count("\\x")
    # More than a third of the line: \xNN has four characters.
    if escaped >= _MIN_ESCAPES and escaped * 4 * 3 > len(text):
        return plain_text(f"({len(text) - 3 * escaped} bytes that are not text: {text[:24]}…)")
    return plain_text(text, MAX_LINE_CHARS)


def shape_of(line: str) -> str:
    """A line with its numbers as #, to count similar lines together."""
    return re.sub(r"\d+", "#", _NOISE.sub(r"\1)", line))


def plain_text_lines(text: str) -> str:
    """Several lines, each sanitised."""
    return "\n".join(plain_text(line, MAX_LINE_CHARS) for line in text.splitlines())


def _frame_row(frame: WireFrame, output: DeviceOutput) -> MonitorRow:
    try:
        message = messages.decode(frame)
    except HarnessError as error:
        return MonitorRow(output.wall_s, f"frame {frame.kind.name}", "", False, plain_text(str(error)))
    text = f"frame {frame.kind.name}" + (f" {frame.seq}" if frame.seq else "")
    return MonitorRow(output.wall_s, text, plain_text(_message_words(frame.kind, message)), True)


def _message_words(kind: FrameKind, message: messages.Message) -> str:
    """The kind of a frame, and its fields that are not empty."""
    message_fields: dict[str, PlainValue] = {"kind": kind.name.lower()}
    for field in fields(message):
        value = getattr(message, field.name)
        if field.name == "slots":
            message_fields["slots"] = [f"{name}: {text}" for name, text in value]
        elif value not in (None, "", ()):
            message_fields[field.name] = list(value) if isinstance(value, tuple) else value
    return format_fields(message_fields)[1:-1]


def _observations_text(results: tuple[Observation, ...]) -> str:
    return plain_text(
        "; ".join(format_fields(sample_fields(observation))[1:-1] for observation in results), MAX_LINE_CHARS
    )


def _line_snippet(lines: list[str], results: tuple[Observation, ...]) -> str:
    if not lines:
        return ""
    return f"  - lines: [{', '.join(_quote(line) for line in lines)}]\n    gives: [{_observations_yaml(results)}]\n"


def _observations_yaml(results: tuple[Observation, ...]) -> str:
    return ", ".join(
        format_fields(sample_fields(observation)) for observation in results if not isinstance(observation, LogLine)
    )


def _quote(text: str) -> str:
    """The text in YAML's quotes, with \\e and \\x00 for characters that must be escaped."""
    safe = "".join(_escape(letter) for letter in text)
    return "'" + safe.replace("'", "''") + "'"


def _escape(letter: str) -> str:
    if letter == "\x1b":
        return "\\e"
    if letter.isprintable():
        return letter
    return "".join(f"\\x{byte:02x}" for byte in letter.encode("utf-8", errors="replace"))

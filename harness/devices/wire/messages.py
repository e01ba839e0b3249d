"""The messages of docs/reference/framing.md as values, and their payloads.

Times are µs since boot; samples count from boot.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from dataclasses import fields
from enum import IntEnum
from typing import Any

from harness.devices.wire import frames
from harness.devices.wire.adpcm import Encoding
from harness.devices.wire.frames import FrameKind, WireFrame
from harness.model.errors import HarnessError
from harness.model.frozen import frozen
from harness.model.observation import DeviceState

PROTOCOL = 1  # In a hello. Another version has other messages.
_MAX_SCORE_NUMBER = 65535  # A score is a u16 on the wire.


class PayloadError(HarnessError):
    """A frame's payload does not fit its type."""


class ErrorCode(IntEnum):
    """The code of an error event. NOT_UNDERSTOOD: the board heard something and understood nothing; it is evidence."""

    BAD_COMMAND = 1
    NOT_UNDERSTOOD = 2


class SetKey(IntEnum):
    OPERATING_POINT = 1
    CONSOLE_STYLE = 2


@frozen
class Ping:
    """A question that the board answers at once. token: repeated in the answer."""

    token: int


@frozen
class TextCommand:
    """A query as text."""

    text: str


@frozen
class Audio:
    """A chunk of sound. first: its first sample, in the board's count."""

    encoding: Encoding
    first: int
    data: bytes


@frozen
class Set:
    key: SetKey
    value: int


@frozen
class Reset:
    """Asks the board to restart."""


@frozen
class HelloRequest:
    """Asks the board for its hello."""


@frozen
class EventAck:
    number: int


@frozen
class BoardHello:
    """A board's description of itself and of its current boot.

    - protocol: version of the framing.
    - boot: id of the boot; 8 hex digits on a serial port.
    - time_us: time since boot.
    - rate_hz: sample rate of the sound that it accepts; 0: none.
    - window: number of samples that may be unacknowledged.
    - serial: the board's serial number.
    """

    protocol: int
    boot: str
    time_us: int
    rate_hz: int
    window: int
    firmware: str
    wake_phrases: tuple[str, ...]
    serial: str = ""


@frozen
class Pong:
    """The answer to a ping. received_us, sent_us: when the ping arrived, and when this answer left."""

    token: int
    received_us: int
    sent_us: int
    listening: bool


@frozen
class AudioAck:
    """Every sample below `next` was heard and processed.

    - events: number of the last event so far.
    - command: number of the last command that was carried out; None if each has its own acknowledgement.
    """

    next: int
    events: int
    command: int | None = None


@frozen
class WakeMessage:
    """The board woke. score: 0–1. Over MQTT, a board may omit time, sample and score (None)."""

    time_us: int | None
    sample: int | None
    score: float | None
    phrase: str


@frozen
class CommandAck:
    number: int


@frozen
class TranscriptEvent:
    time_us: int | None
    sample: int | None
    final: bool
    text: str


@frozen
class IntentEvent:
    time_us: int | None
    sample: int | None
    score: float | None
    name: str
    slots: tuple[tuple[str, str], ...]


@frozen
class ResponseEvent:
    time_us: int | None
    text: str


@frozen
class StatusEvent:
    time_us: int | None
    state: DeviceState
    detail: str


@frozen
class Log:
    time_us: int | None
    level: int
    text: str


@frozen
class ErrorEvent:
    time_us: int | None
    code: int
    text: str


Event = WakeMessage | TranscriptEvent | IntentEvent | ResponseEvent | StatusEvent | ErrorEvent
ToBoard = Ping | TextCommand | Audio | Set | Reset | HelloRequest | EventAck
FromBoard = BoardHello | Pong | AudioAck | CommandAck | Log | Event
Message = ToBoard | FromBoard

EVENTS = frozenset(
    {FrameKind.WAKE, FrameKind.TRANSCRIPT, FrameKind.INTENT, FrameKind.RESPONSE, FrameKind.STATUS, FrameKind.ERROR}
)
"""The frames of events, which the board numbers, and which must be acknowledged."""

STATES = (
    DeviceState.IDLE,
    DeviceState.LISTENING,
    DeviceState.THINKING,
    DeviceState.SPEAKING,
    DeviceState.DIALOGUE_OPEN,
    DeviceState.STARTED,
)
"""States by their number on the wire."""


def to_frame(message: Message, seq: int = 0) -> bytes:
    """The whole frame, with its delimiters. Raises ValueError when it is too long or a number does not fit."""
    kind, payload = encode(message)
    return frames.encode(kind, payload, seq)


@frozen
class _Layout:
    """Layout of a message: numbers by a struct format, then one letter per other field.

    t: text to the end. b: bytes to the end. s: a short text. p: several short texts. q: pairs of short texts.
    """

    message: Callable[..., Message]
    numbers: str
    rest: str = ""


_LAYOUTS: dict[FrameKind, _Layout] = {
    FrameKind.PING: _Layout(Ping, "I"),
    FrameKind.TEXT: _Layout(TextCommand, "", "t"),
    FrameKind.AUDIO: _Layout(Audio, "BxQ", "b"),  # x: flags, always 0
    FrameKind.SET: _Layout(Set, "Bi"),
    FrameKind.RESET: _Layout(Reset, ""),
    FrameKind.HELLO_REQUEST: _Layout(HelloRequest, ""),
    FrameKind.EVENT_ACK: _Layout(EventAck, "I"),
    FrameKind.HELLO: _Layout(BoardHello, "HIQII", "sp"),
    FrameKind.PONG: _Layout(Pong, "IQQB"),
    FrameKind.AUDIO_ACK: _Layout(AudioAck, "QI"),
    FrameKind.WAKE: _Layout(WakeMessage, "QQH", "t"),
    FrameKind.COMMAND_ACK: _Layout(CommandAck, "I"),
    FrameKind.TRANSCRIPT: _Layout(TranscriptEvent, "QQB", "t"),
    FrameKind.INTENT: _Layout(IntentEvent, "QQH", "sq"),
    FrameKind.RESPONSE: _Layout(ResponseEvent, "Q", "t"),
    FrameKind.STATUS: _Layout(StatusEvent, "QB", "t"),
    FrameKind.LOG: _Layout(Log, "QB", "t"),
    FrameKind.ERROR: _Layout(ErrorEvent, "QH", "t"),
}


def _encode_score(score: float | None) -> int:
    if score is None or not 0 <= score <= 1:
        raise ValueError(f"a score must be 0 to 1, not {score}")
    return round(score * _MAX_SCORE_NUMBER)


_TO_NUMBER: dict[str, Callable[[Any], int]] = {
    "score": _encode_score,
    "state": STATES.index,
    "boot": lambda boot: int(boot, 16),
}
_FROM_NUMBER: dict[str, Callable[[int], object]] = {
    "score": lambda number: number / _MAX_SCORE_NUMBER,
    "state": lambda number: STATES[number],
    "boot": lambda number: f"{number:08x}",
    "key": SetKey,
    "encoding": Encoding,
    "final": bool,
    "listening": bool,
}
_KINDS = {layout.message: kind for kind, layout in _LAYOUTS.items()}
_MESSAGES: Iterable[Any] = (layout.message for layout in _LAYOUTS.values())
_FIELD_NAMES = {kind: [field.name for field in fields(kind)] for kind in _MESSAGES}


def encode(message: Message) -> tuple[FrameKind, bytes]:
    """Type and payload. Raises ValueError when a number or a text does not fit."""
    if isinstance(message, Audio):  # most of what is sent
        return FrameKind.AUDIO, struct.pack("<BBQ", message.encoding, 0, message.first) + message.data
    kind = _KINDS[type(message)]
    layout = _LAYOUTS[kind]
    values = [(name, getattr(message, name)) for name in _FIELD_NAMES[type(message)]]
    count = len(layout.numbers)  # Audio, whose layout has a gap, was handled above
    try:
        numbers = [_TO_NUMBER[name](value) if name in _TO_NUMBER else value for name, value in values[:count]]
        head = struct.pack("<" + layout.numbers, *numbers)
    except (struct.error, TypeError) as error:
        raise ValueError(f"{message} does not fit a frame: {error}") from error
    return kind, head + b"".join(map(_encode_value, layout.rest, (value for _, value in values[count:])))


def decode(frame: WireFrame) -> Message:
    """The message in a frame. Raises PayloadError when the payload is too short, too long, or has unknown values.

    Text is foreign: invalid UTF-8 becomes backslash escapes.
    """
    layout, reader = _LAYOUTS[frame.kind], _PayloadReader(frame.payload)
    try:
        # Not strict: the numbers come first, and the other fields follow in `rest`.
        numbers = zip(_FIELD_NAMES[layout.message], reader.numbers("<" + layout.numbers), strict=False)
        values = [_FROM_NUMBER[name](number) if name in _FROM_NUMBER else number for name, number in numbers]
        message = layout.message(*values, *map(reader.read_value, layout.rest))
    except (struct.error, ValueError, IndexError) as error:
        raise PayloadError(f"a frame {frame.kind.name} of {len(frame.payload)} bytes is not valid: {error}") from error
    if reader.left:
        raise PayloadError(f"a frame {frame.kind.name} has {reader.left} extra bytes")
    return message


def _encode_value(encoding: str, value: Any) -> bytes:
    """The bytes of a field. encoding: its letter in `_Layout`."""
    match encoding:
        case "t":
            return bytes(value.encode())
        case "b":
            return bytes(value)
        case "s":
            return _short_text(value)
    texts = value if encoding == "p" else [text for pair in value for text in pair]
    return bytes([len(value)]) + b"".join(map(_short_text, texts))


class _PayloadReader:
    """Reads a payload from its beginning. Raises struct.error or ValueError where it is too short."""

    def __init__(self, payload: bytes) -> None:
        self._payload = payload
        self._position = 0

    @property
    def left(self) -> int:
        """Number of bytes that were not read."""
        return len(self._payload) - self._position

    def numbers(self, layout: str) -> tuple[int, ...]:
        numbers = struct.unpack_from(layout, self._payload, self._position)
        self._position += struct.calcsize(layout)
        return numbers

    def read_value(self, encoding: str) -> object:
        """Reads a field. encoding: its letter in `_Layout`."""
        match encoding:
            case "t":
                return self._text(self.left)
            case "b":
                return self._bytes(self.left)
            case "s":
                return self._short_text()
        count = self.numbers("<B")[0]
        if encoding == "p":
            return tuple(self._short_text() for _ in range(count))
        return tuple((self._short_text(), self._short_text()) for _ in range(count))

    def _short_text(self) -> str:
        return self._text(self.numbers("<B")[0])

    def _text(self, count: int) -> str:
        return self._bytes(count).decode("utf-8", "backslashreplace")

    def _bytes(self, count: int) -> bytes:
        if count > self.left:
            raise ValueError(f"{count} bytes announced, but only {self.left} present")
        self._position += count
        return self._payload[self._position - count : self._position]


def _short_text(text: str) -> bytes:
    data = text.encode()
    if len(data) > 255:
        raise ValueError(f"a short text has at most 255 bytes, not {len(data)}")
    return bytes([len(data)]) + data

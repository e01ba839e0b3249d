"""The messages of docs/framing.md as values, and their payloads. Times are µs since boot, samples count from boot."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum

from harness.devices.wire import frames
from harness.devices.wire.adpcm import Encoding
from harness.devices.wire.frames import Frame, Kind
from harness.model.errors import HarnessError
from harness.model.observation import DeviceState

PROTOCOL = 1
_FULL_SCORE = 65535


class PayloadError(HarnessError):
    """A frame's payload is none of its type."""


class ErrorCode(IntEnum):
    """NOT_UNDERSTOOD: it heard something and understood nothing, which is evidence."""

    BAD_COMMAND = 1
    NOT_UNDERSTOOD = 2


class SetKey(IntEnum):
    OPERATING_POINT = 1
    CONSOLE_STYLE = 2


@dataclass(frozen=True, slots=True)
class Ping:
    token: int


@dataclass(frozen=True, slots=True)
class Text:
    """A query in words."""

    text: str


@dataclass(frozen=True, slots=True)
class Audio:
    encoding: Encoding
    first: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Set:
    key: SetKey
    value: int


@dataclass(frozen=True, slots=True)
class Reset:
    pass


@dataclass(frozen=True, slots=True)
class HelloRequest:
    pass


@dataclass(frozen=True, slots=True)
class EventAck:
    number: int


@dataclass(frozen=True, slots=True)
class Hello:
    """boot: on a line, 8 hex digits. window: samples that may be on their way unacknowledged. serial: its number."""

    protocol: int
    boot: str
    time_us: int
    rate_hz: int
    window: int
    firmware: str
    wake_phrases: tuple[str, ...]
    serial: str = ""


@dataclass(frozen=True, slots=True)
class Pong:
    token: int
    received_us: int
    sent_us: int
    listening: bool


@dataclass(frozen=True, slots=True)
class AudioAck:
    """Every sample below `next` was heard and worked through; `events`: number of the last event so far.

    command: number of the last command carried out; None where each is acknowledged by itself.
    """

    next: int
    events: int
    command: int | None = None


@dataclass(frozen=True, slots=True)
class WakeEvent:
    """score: 0–1. Over MQTT a board may leave time, sample and score out of its events."""

    time_us: int | None
    sample: int | None
    score: float | None
    phrase: str


@dataclass(frozen=True, slots=True)
class CommandAck:
    number: int


@dataclass(frozen=True, slots=True)
class TranscriptEvent:
    time_us: int | None
    sample: int | None
    final: bool
    text: str


@dataclass(frozen=True, slots=True)
class IntentEvent:
    time_us: int | None
    sample: int | None
    score: float | None
    name: str
    slots: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class ResponseEvent:
    time_us: int | None
    text: str


@dataclass(frozen=True, slots=True)
class StatusEvent:
    time_us: int | None
    state: DeviceState
    detail: str


@dataclass(frozen=True, slots=True)
class Log:
    time_us: int | None
    level: int
    text: str


@dataclass(frozen=True, slots=True)
class ErrorEvent:
    time_us: int | None
    code: int
    text: str


Event = WakeEvent | TranscriptEvent | IntentEvent | ResponseEvent | StatusEvent | ErrorEvent
ToBoard = Ping | Text | Audio | Set | Reset | HelloRequest | EventAck
FromBoard = Hello | Pong | AudioAck | CommandAck | Log | Event
Message = ToBoard | FromBoard

EVENTS = frozenset({Kind.WAKE, Kind.TRANSCRIPT, Kind.INTENT, Kind.RESPONSE, Kind.STATUS, Kind.ERROR})
"""Numbered by the board, and to be acknowledged."""

STATES = (
    DeviceState.IDLE,
    DeviceState.LISTENING,
    DeviceState.THINKING,
    DeviceState.SPEAKING,
    DeviceState.DIALOGUE_OPEN,
    DeviceState.STARTED,
)
"""By their number on the wire."""


def to_frame(message: Message, seq: int = 0) -> bytes:
    """The whole frame, with its delimiters; ValueError when it is too long or a number does not fit."""
    kind, payload = encode(message)
    return frames.encode(kind, payload, seq)


def encode(message: Message) -> tuple[Kind, bytes]:
    """Type and payload; ValueError when a number or a text does not fit."""
    try:
        match message:
            case Ping(token):
                return Kind.PING, struct.pack("<I", token)
            case Text(text):
                return Kind.TEXT, text.encode()
            case Audio(encoding, first, data):
                return Kind.AUDIO, struct.pack("<BBQ", encoding, 0, first) + data
            case Set(key, value):
                return Kind.SET, struct.pack("<Bi", key, value)
            case Reset():
                return Kind.RESET, b""
            case HelloRequest():
                return Kind.HELLO_REQUEST, b""
            case EventAck(number):
                return Kind.EVENT_ACK, struct.pack("<I", number)
            case Hello(protocol, boot, time_us, rate_hz, window, firmware, phrases):
                head = struct.pack("<HIQII", protocol, int(boot, 16), time_us, rate_hz, window)
                return Kind.HELLO, head + _short(firmware) + bytes([len(phrases)]) + b"".join(map(_short, phrases))
            case Pong(token, received_us, sent_us, listening):
                return Kind.PONG, struct.pack("<IQQB", token, received_us, sent_us, listening)
            case AudioAck(next_sample, events, _):
                return Kind.AUDIO_ACK, struct.pack("<QI", next_sample, events)
            case WakeEvent(time_us, sample, score, phrase):
                return Kind.WAKE, struct.pack("<QQH", time_us, sample, _scored(score)) + phrase.encode()
            case CommandAck(number):
                return Kind.COMMAND_ACK, struct.pack("<I", number)
            case TranscriptEvent(time_us, sample, final, text):
                return Kind.TRANSCRIPT, struct.pack("<QQB", time_us, sample, final) + text.encode()
            case IntentEvent(time_us, sample, score, name, slots):
                head = struct.pack("<QQH", time_us, sample, _scored(score)) + _short(name) + bytes([len(slots)])
                return Kind.INTENT, head + b"".join(_short(text) for slot in slots for text in slot)
            case ResponseEvent(time_us, text):
                return Kind.RESPONSE, struct.pack("<Q", time_us) + text.encode()
            case StatusEvent(time_us, state, detail):
                return Kind.STATUS, struct.pack("<QB", time_us, STATES.index(state)) + detail.encode()
            case Log(time_us, level, text):
                return Kind.LOG, struct.pack("<QB", time_us, level) + text.encode()
            case ErrorEvent(time_us, code, text):
                return Kind.ERROR, struct.pack("<QH", time_us, code) + text.encode()
    except struct.error as error:
        raise ValueError(f"{message} does not fit a frame: {error}") from error


def decode(frame: Frame) -> Message:
    """What a frame says; PayloadError when its payload is too short, too long, or names what is not known.

    Text is foreign: bytes that are no UTF-8 become backslash escapes.
    """
    reader = _Reader(frame.payload)
    try:
        message = _READ[frame.kind](reader)
    except (struct.error, ValueError, IndexError) as error:
        raise PayloadError(f"a frame {frame.kind.name} of {len(frame.payload)} bytes says nothing: {error}") from error
    if reader.left:
        raise PayloadError(f"a frame {frame.kind.name} has {reader.left} bytes too many")
    return message


class _Reader:
    def __init__(self, payload: bytes) -> None:
        self._payload = payload
        self._at = 0

    @property
    def left(self) -> int:
        return len(self._payload) - self._at

    def numbers(self, form: str) -> tuple[int, ...]:
        found = struct.unpack_from(form, self._payload, self._at)
        self._at += struct.calcsize(form)
        return found

    def number(self, form: str) -> int:
        return self.numbers(form)[0]

    def bytes(self, count: int) -> bytes:
        if count > self.left:
            raise ValueError(f"{count} bytes are announced, and {self.left} are there")
        self._at += count
        return self._payload[self._at - count : self._at]

    def rest(self) -> str:
        return self.bytes(self.left).decode("utf-8", "backslashreplace")

    def short(self) -> str:
        return self.bytes(self.numbers("<B")[0]).decode("utf-8", "backslashreplace")


def _short(text: str) -> bytes:
    data = text.encode()
    if len(data) > 255:
        raise ValueError(f"a short text has at most 255 bytes, not {len(data)}")
    return bytes([len(data)]) + data


def _scored(score: float | None) -> int:
    if score is None or not 0 <= score <= 1:
        raise ValueError(f"a score is 0 to 1, not {score}")
    return round(score * _FULL_SCORE)


def _audio(reader: _Reader) -> Audio:
    encoding, _, first = reader.numbers("<BBQ")
    return Audio(Encoding(encoding), first, reader.bytes(reader.left))


def _set(reader: _Reader) -> Set:
    key, value = reader.numbers("<Bi")
    return Set(SetKey(key), value)


def _hello(reader: _Reader) -> Hello:
    protocol, boot, time_us, rate_hz, window = reader.numbers("<HIQII")
    firmware, count = reader.short(), reader.numbers("<B")[0]
    return Hello(
        protocol, f"{boot:08x}", time_us, rate_hz, window, firmware, tuple(reader.short() for _ in range(count))
    )


def _pong(reader: _Reader) -> Pong:
    token, received_us, sent_us, listening = reader.numbers("<IQQB")
    return Pong(token, received_us, sent_us, bool(listening))


def _log(reader: _Reader) -> Log:
    time_us, level = reader.numbers("<QB")
    return Log(time_us, level, reader.rest())


def _error(reader: _Reader) -> ErrorEvent:
    time_us, code = reader.numbers("<QH")
    return ErrorEvent(time_us, code, reader.rest())


def _wake(reader: _Reader) -> WakeEvent:
    time_us, sample, score = reader.numbers("<QQH")
    return WakeEvent(time_us, sample, score / _FULL_SCORE, reader.rest())


def _transcript(reader: _Reader) -> TranscriptEvent:
    time_us, sample, final = reader.numbers("<QQB")
    return TranscriptEvent(time_us, sample, bool(final), reader.rest())


def _intent(reader: _Reader) -> IntentEvent:
    time_us, sample, score = reader.numbers("<QQH")
    name, count = reader.short(), reader.numbers("<B")[0]
    slots = tuple((reader.short(), reader.short()) for _ in range(count))
    return IntentEvent(time_us, sample, score / _FULL_SCORE, name, slots)


def _status(reader: _Reader) -> StatusEvent:
    time_us, state = reader.numbers("<QB")
    return StatusEvent(time_us, STATES[state], reader.rest())


_READ: dict[Kind, Callable[[_Reader], Message]] = {
    Kind.PING: lambda reader: Ping(reader.number("<I")),
    Kind.TEXT: lambda reader: Text(reader.rest()),
    Kind.AUDIO: _audio,
    Kind.SET: _set,
    Kind.RESET: lambda _: Reset(),
    Kind.HELLO_REQUEST: lambda _: HelloRequest(),
    Kind.EVENT_ACK: lambda reader: EventAck(reader.number("<I")),
    Kind.HELLO: _hello,
    Kind.PONG: _pong,
    Kind.AUDIO_ACK: lambda reader: AudioAck(reader.number("<Q"), reader.number("<I")),
    Kind.WAKE: _wake,
    Kind.COMMAND_ACK: lambda reader: CommandAck(reader.number("<I")),
    Kind.TRANSCRIPT: _transcript,
    Kind.INTENT: _intent,
    Kind.RESPONSE: lambda reader: ResponseEvent(reader.number("<Q"), reader.rest()),
    Kind.STATUS: _status,
    Kind.LOG: _log,
    Kind.ERROR: _error,
}

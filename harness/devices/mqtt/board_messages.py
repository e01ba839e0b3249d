"""Messages of our own framing over MQTT (docs/framing.md, MQTT): JSON to messages, and messages to topics. No I/O."""

from __future__ import annotations

import json

from harness.devices.framing.board_words import Received
from harness.devices.wire import messages
from harness.devices.wire.lines import Unmapped
from harness.devices.wire.mappings import parse
from harness.devices.wire.messages import (
    Audio,
    AudioAck,
    BoardHello,
    ErrorEvent,
    Event,
    HelloRequest,
    IntentEvent,
    Log,
    Ping,
    Pong,
    Reset,
    ResponseEvent,
    Set,
    StatusEvent,
    TextCommand,
    ToBoard,
    TranscriptEvent,
    WakeMessage,
)
from harness.model.bench import PlainValue
from harness.model.observation import DeviceState

_U64 = 1 << 64
_LEVELS = {1: "error", 2: "warning", 3: "info", 4: "debug"}


def published(message: ToBoard, number: int, owner: str) -> tuple[str, bytes, int]:
    """Topic below the board's own, payload and QoS. owner: marks commands as ours when the broker echoes them."""
    match message:
        case Ping(token):
            return "in/ping", str(token).encode(), 0
        case HelloRequest():
            return "in/hello", b"", 0
        case Reset():
            return "in/reset", b"", 1
        case Audio():
            return "in/audio", messages.encode(message)[1], 0
        case TextCommand(text):
            return "in/text", json.dumps({"number": number, "by": owner, "text": text}).encode(), 1
        case Set(key, value):
            return "in/set", json.dumps({"number": number, "by": owner, "key": int(key), "value": value}).encode(), 1
    raise ValueError(f"{message} does not go to a board over MQTT")


def read(topic: str, payload: bytes) -> Received:
    """The message on `vh/<device>/<topic>`; Unmapped, saying what is wrong with it, for anything else."""
    document = parse(payload)
    if not isinstance(document, dict):
        raise Unmapped("not a JSON object")
    fields = _Fields(document)
    boot, number, text = fields.boot(), fields.number, fields.optional_text
    match topic:
        case "hello":
            rate_hz, window = number("rate_hz", 1, 384_000), number("window", 1, 1 << 32)
            phrases = fields.texts("wake_phrases")
            head = number("protocol"), boot, number("time_us"), rate_hz, window
            return Received(BoardHello(*head, text("firmware"), phrases, text("serial")))
        case "ack":
            return Received(AudioAck(number("next"), number("events"), number("command")), boot)
        case "pong":
            pong = Pong(number("token"), number("received_us"), number("sent_us"), fields.flag("listening"))
            return Received(pong, boot)
    seq, time_us, sample = (fields.optional_number(name) for name in ("seq", "time_us", "sample"))
    event: Event | Log
    match topic:
        case "wake":
            event = WakeMessage(time_us, sample, fields.score(), text("phrase"))
        case "transcript":
            event = TranscriptEvent(time_us, sample, fields.flag("final", default=True), fields.text("text"))
        case "intent":
            event = IntentEvent(time_us, sample, fields.score(), fields.text("name"), fields.pairs("slots"))
        case "response":
            event = ResponseEvent(time_us, fields.text("text"))
        case "status":
            event = StatusEvent(time_us, fields.state(), text("detail"))
        case "error":
            event = ErrorEvent(time_us, number("code"), text("text"))
        case "log":
            level = number("level")
            event = Log(time_us, level, f"{_LEVELS.get(level, level)}: {fields.text('text')}")
        case _:
            raise Unmapped("a topic that docs/framing.md does not have")
    return Received(event, boot, seq)


class _Fields:
    """Of a JSON object, each checked as it is taken."""

    def __init__(self, document: dict[str, PlainValue]) -> None:
        self._document = document

    def boot(self) -> str:
        found = self._document.get("boot")
        if isinstance(found, str) and 0 < len(found) <= 32:
            return found
        if isinstance(found, int) and not isinstance(found, bool) and 0 <= found < _U64:
            return f"{found:08x}"
        raise Unmapped("no boot id")

    def number(self, name: str, low: int = 0, high: int = _U64) -> int:
        found = self._document.get(name)
        if not isinstance(found, int) or isinstance(found, bool) or not low <= found < high:
            raise Unmapped(f"`{name}` is no whole number that can be")
        return found

    def optional_number(self, name: str) -> int | None:
        return self.number(name) if self._document.get(name) is not None else None

    def text(self, name: str) -> str:
        found = self._document.get(name)
        if not isinstance(found, str):
            raise Unmapped(f"`{name}` is no text")
        return found

    def optional_text(self, name: str) -> str:
        return self.text(name) if self._document.get(name) is not None else ""

    def texts(self, name: str) -> tuple[str, ...]:
        found = self._document.get(name, [])
        if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
            raise Unmapped(f"`{name}` is no list of texts")
        return tuple(one for one in found if isinstance(one, str))

    def flag(self, name: str, *, default: bool | None = None) -> bool:
        found = self._document.get(name, default)
        if isinstance(found, bool):
            return found
        if isinstance(found, int) and found in (0, 1):
            return bool(found)
        raise Unmapped(f"`{name}` is not true or false")

    def score(self) -> float | None:
        found = self._document.get("score")
        if found is None:
            return None
        if isinstance(found, bool) or not isinstance(found, int | float) or not 0 <= found <= 1:
            raise Unmapped("`score` is no number from 0 to 1")
        return float(found)

    def pairs(self, name: str) -> tuple[tuple[str, str], ...]:
        """An object of texts, or a list of objects with name and value."""
        found = self._document.get(name)
        match found:
            case None:
                items: list[tuple[PlainValue, PlainValue]] = []
            case dict():
                items = list(found.items())
            case list():
                items = [(slot.get("name"), slot.get("value")) for slot in found if isinstance(slot, dict)]
            case _:
                raise Unmapped(f"`{name}` are no names and values")
        pairs = tuple((key, value) for key, value in items if isinstance(key, str) and isinstance(value, str))
        if len(pairs) != len(items) or (isinstance(found, list) and len(found) != len(items)):
            raise Unmapped(f"`{name}` are no names and values")
        return pairs

    def state(self) -> DeviceState:
        word = self.text("state")
        try:
            return DeviceState(word)
        except ValueError as error:
            raise Unmapped(f"the state {word[:40]!r} is none of ours") from error

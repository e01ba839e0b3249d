"""What a board says over MQTT in our own framing (docs/framing.md, MQTT): JSON to typed messages. No I/O, no clock."""

from __future__ import annotations

from dataclasses import dataclass

from harness.devices.wire.mappings import Unmapped, parse
from harness.model.bench import PlainValue
from harness.model.observation import DeviceState

_U64 = 1 << 64
_LEVELS = {1: "error", 2: "warning", 3: "info", 4: "debug"}


@dataclass(frozen=True, slots=True)
class Hello:
    boot: str
    time_us: int
    protocol: int
    rate_hz: int
    window: int
    firmware: str
    wake_phrases: tuple[str, ...]
    serial: str = ""


@dataclass(frozen=True, slots=True)
class Ack:
    """next: the sample that it expects. events: number of its last event. command: of the last one carried out."""

    boot: str
    next: int
    events: int
    command: int


@dataclass(frozen=True, slots=True)
class Pong:
    boot: str
    token: int
    received_us: int
    sent_us: int
    listening: bool


@dataclass(frozen=True, slots=True)
class Woke:
    phrase: str
    score: float | None


@dataclass(frozen=True, slots=True)
class Understood:
    """A transcript."""

    text: str
    final: bool


@dataclass(frozen=True, slots=True)
class Meant:
    """An intent."""

    name: str
    slots: tuple[tuple[str, str], ...]
    score: float | None


@dataclass(frozen=True, slots=True)
class Answered:
    text: str


@dataclass(frozen=True, slots=True)
class Is:
    state: DeviceState
    detail: str


@dataclass(frozen=True, slots=True)
class Said:
    """A log line or an error, as it is to be shown."""

    text: str
    error: bool


@dataclass(frozen=True, slots=True)
class Told:
    """Something with a time, and mostly a number; sample: its place in the audio that the board was given."""

    boot: str
    seq: int | None
    time_us: int | None
    sample: int | None
    what: Woke | Understood | Meant | Answered | Is | Said


BoardMessage = Hello | Ack | Pong | Told
TOPICS = ("hello", "status", "wake", "transcript", "intent", "response", "error", "log", "ack", "pong")


def read(topic: str, payload: bytes) -> BoardMessage:
    """The message on `vh/<device>/<topic>`; Unmapped, saying what is wrong with it, for anything else."""
    document = parse(payload)
    if not isinstance(document, dict):
        raise Unmapped("not a JSON object")
    fields = _Fields(document)
    match topic:
        case "hello":
            return Hello(
                fields.boot(),
                fields.number("time_us"),
                fields.number("protocol"),
                fields.number("rate_hz", 1, 384_000),
                fields.number("window", 1, 1 << 32),
                fields.optional_text("firmware"),
                fields.texts("wake_phrases"),
                fields.optional_text("serial"),
            )
        case "ack":
            return Ack(fields.boot(), fields.number("next"), fields.number("events"), fields.number("command"))
        case "pong":
            return Pong(
                fields.boot(),
                fields.number("token"),
                fields.number("received_us"),
                fields.number("sent_us"),
                fields.flag("listening"),
            )
    what: Woke | Understood | Meant | Answered | Is | Said
    match topic:
        case "wake":
            what = Woke(fields.optional_text("phrase"), fields.score())
        case "transcript":
            what = Understood(fields.text("text"), fields.flag("final", default=True))
        case "intent":
            what = Meant(fields.text("name"), fields.pairs("slots"), fields.score())
        case "response":
            what = Answered(fields.text("text"))
        case "status":
            what = Is(fields.state(), fields.optional_text("detail"))
        case "error":
            what = Said(f"error {fields.number('code')}: {fields.optional_text('text')}", error=True)
        case "log":
            level = fields.number("level")
            what = Said(f"{_LEVELS.get(level, level)}: {fields.text('text')}", error=False)
        case _:
            raise Unmapped("a topic that docs/framing.md does not have")
    seq, time_us, sample = (fields.optional_number(name) for name in ("seq", "time_us", "sample"))
    return Told(fields.boot(), seq, time_us, sample, what)


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

"""A board with the harness's framing at a broker: topics to messages and back, other users, and a thread."""

from __future__ import annotations

import json
import secrets
import struct
import zlib
from collections.abc import Callable

from harness.base import threads
from harness.base.plain_json import is_integer
from harness.base.ports import Clock
from harness.devices.framing.board_messages import BROKER, ReceivedMessage
from harness.devices.framing.board_session import BOARD, BoardSession
from harness.devices.mqtt.options import MqttOptions
from harness.devices.outlet import DriverOutlet
from harness.devices.wire import messages
from harness.devices.wire.adpcm import Encoding
from harness.devices.wire.audio_sender import PROBE_SAMPLE
from harness.devices.wire.lines import MappingError
from harness.devices.wire.mappings import parse, show_payload
from harness.model.bench import PlainValue
from harness.model.choices import InjectionPace
from harness.model.errors import DeviceError
from harness.model.numbers import seconds
from harness.model.observation import DeviceState, LogLine
from harness.model.stimulus import Waveform
from harness.model.time import Stamp

_U64 = 1 << 64
_LEVELS = {1: "error", 2: "warning", 3: "info", 4: "debug"}


def encode_message(message: messages.ToBoard, number: int, owner: str) -> tuple[str, bytes, int]:
    """Topic (below the board's own), payload and QoS of a message.

    owner: marks the harness's commands, so that it recognises them when the broker echoes them.
    """
    match message:
        case messages.Ping(token):
            return "in/ping", str(token).encode(), 0
        case messages.HelloRequest():
            return "in/hello", b"", 0
        case messages.Reset():
            return "in/reset", b"", 1
        case messages.Audio():
            return "in/audio", messages.encode(message)[1], 0
        case messages.TextCommand(text):
            return "in/text", json.dumps({"number": number, "by": owner, "text": text}).encode(), 1
        case messages.Set(key, value):
            return "in/set", json.dumps({"number": number, "by": owner, "key": int(key), "value": value}).encode(), 1
    raise ValueError(f"{message} is not sent to a board over MQTT")


BOARD_TOPICS = frozenset(("hello", "ack", "pong", "wake", "transcript", "intent", "response", "status", "error", "log"))
"""Topics below a board's own topic that the harness reads itself. The board's profile may map others."""


def read(topic: str, payload: bytes) -> ReceivedMessage:
    """The message on `vh/<device>/<topic>`; MappingError, with the reason, for anything else."""
    document = parse(payload)
    if not isinstance(document, dict):
        raise MappingError("not a JSON object")
    fields = _Fields(document)
    boot, number, text = fields.boot(), fields.number, fields.optional_text
    match topic:
        case "hello":
            rate_hz, window = number("rate_hz", 1, 384_000), number("window", 1, 1 << 32)
            phrases = fields.texts("wake_phrases")
            head = number("protocol"), boot, number("time_us"), rate_hz, window
            return ReceivedMessage(messages.BoardHello(*head, text("firmware"), phrases, text("serial")))
        case "ack":
            return ReceivedMessage(messages.AudioAck(number("next"), number("events"), number("command")), boot)
        case "pong":
            pong = messages.Pong(number("token"), number("received_us"), number("sent_us"), fields.flag("listening"))
            return ReceivedMessage(pong, boot)
    seq, time_us, sample = (fields.optional_number(name) for name in ("seq", "time_us", "sample"))
    event: messages.Event | messages.Log
    match topic:
        case "wake":
            event = messages.WakeMessage(time_us, sample, fields.score(), text("phrase"))
        case "transcript":
            event = messages.TranscriptEvent(time_us, sample, fields.flag("final", default=True), fields.text("text"))
        case "intent":
            event = messages.IntentEvent(time_us, sample, fields.score(), fields.text("name"), fields.pairs("slots"))
        case "response":
            event = messages.ResponseEvent(time_us, fields.text("text"))
        case "status":
            event = messages.StatusEvent(time_us, fields.state(), text("detail"))
        case "error":
            event = messages.ErrorEvent(time_us, number("code"), text("text"))
        case "log":
            level = number("level")
            event = messages.Log(time_us, level, f"{_LEVELS.get(level, level)}: {fields.text('text')}")
        case _:
            raise MappingError("unknown topic; docs/reference/framing.md lists the topics")
    return ReceivedMessage(event, boot, seq)


class _Fields:
    """The fields of a JSON object, each checked when it is read."""

    def __init__(self, document: dict[str, PlainValue]) -> None:
        self._document = document

    def boot(self) -> str:
        boot = self._document.get("boot")
        if isinstance(boot, str) and 0 < len(boot) <= 32:
            return boot
        if is_integer(boot) and 0 <= boot < _U64:
            return f"{boot:08x}"
        raise MappingError("no boot id")

    def number(self, name: str, low: int = 0, high: int = _U64) -> int:
        number = self._document.get(name)
        if not is_integer(number) or not low <= number < high:
            raise MappingError(f"`{name}` is not a whole number in its range")
        return number

    def optional_number(self, name: str) -> int | None:
        return self.number(name) if self._document.get(name) is not None else None

    def text(self, name: str) -> str:
        text = self._document.get(name)
        if not isinstance(text, str):
            raise MappingError(f"`{name}` is not text")
        return text

    def optional_text(self, name: str) -> str:
        return self.text(name) if self._document.get(name) is not None else ""

    def texts(self, name: str) -> tuple[str, ...]:
        texts = self._document.get(name, [])
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise MappingError(f"`{name}` is not a list of strings")
        return tuple(text for text in texts if isinstance(text, str))

    def flag(self, name: str, *, default: bool | None = None) -> bool:
        flag = self._document.get(name, default)
        if isinstance(flag, bool):
            return flag
        if isinstance(flag, int) and flag in (0, 1):
            return bool(flag)
        raise MappingError(f"`{name}` is not true or false")

    def score(self) -> float | None:
        score = self._document.get("score")
        if score is None:
            return None
        if isinstance(score, bool) or not isinstance(score, int | float) or not 0 <= score <= 1:
            raise MappingError("`score` is not a number from 0 to 1")
        return float(score)

    def pairs(self, name: str) -> tuple[tuple[str, str], ...]:
        """An object of texts, or a list of objects with name and value."""
        content = self._document.get(name)
        match content:
            case None:
                items: list[tuple[PlainValue, PlainValue]] = []
            case dict():
                items = list(content.items())
            case list():
                items = [(slot.get("name"), slot.get("value")) for slot in content if isinstance(slot, dict)]
            case _:
                raise MappingError(f"`{name}` must map names to values")
        pairs = tuple((key, value) for key, value in items if isinstance(key, str) and isinstance(value, str))
        if len(pairs) != len(items) or (isinstance(content, list) and len(content) != len(items)):
            raise MappingError(f"`{name}` must map names to values")
        return pairs

    def state(self) -> DeviceState:
        word = self.text("state")
        try:
            return DeviceState(word)
        except ValueError as error:
            raise MappingError(f"the state {word[:40]!r} does not exist") from error


_REMEMBERED = 4096
_FIRST_SAMPLE = struct.Struct("<xxQ")  # after encoding and flags
GIVEN = {"in/audio": "sound", "in/text": "words", "in/set": "a setting", "in/reset": "a reset"}
"""The topics whose messages change the board → what they carry, in words."""


class ForeignSenderDetector:
    """Recognises messages that other programs send to the board.

    The harness's own commands carry `owner` (in `by`). Its own sound is recognised by the bytes, as often as they were
    sent.
    """

    def __init__(self, owner: str) -> None:
        self._owner = owner
        self._own_marks: dict[int, int] = {}
        self.echoed = False
        """Whether the broker echoes what reaches the board: the harness's own sound has come back."""

    def gives(self, topic: str, payload: bytes) -> None:
        """Notes a message of the harness; call it before publishing."""
        if topic in ("in/audio", "in/reset"):
            mark = _mark(topic, payload)
            self._own_marks[mark] = self._own_marks.pop(mark, 0) + 1
            while len(self._own_marks) > _REMEMBERED:
                del self._own_marks[next(iter(self._own_marks))]

    def stranger(self, topic: str, payload: bytes) -> str:
        """What another program sent, in words; "" for the harness's own messages, and for those that change nothing."""
        description = GIVEN.get(topic, "")
        if not description:
            return ""
        if topic in ("in/text", "in/set"):
            try:
                document = parse(payload)
            except MappingError:
                return ""  # the board does not accept it either
            is_ours = isinstance(document, dict) and document.get("by") == self._owner
            return "" if is_ours else description
        if topic == "in/audio" and len(payload) >= _FIRST_SAMPLE.size:
            (first,) = _FIRST_SAMPLE.unpack_from(payload)
            if first == PROBE_SAMPLE:
                return ""
        mark = _mark(topic, payload)
        if mark not in self._own_marks:
            return description
        self._own_marks[mark] -= 1
        if not self._own_marks[mark]:
            del self._own_marks[mark]
        self.echoed = self.echoed or topic == "in/audio"
        return ""


def _mark(topic: str, payload: bytes) -> int:
    return zlib.crc32(payload, zlib.crc32(topic.encode()))


_COMMAND_LIMIT_S = 5.0
_BROKER_ANSWERS_S = 1.2
"""Time within which a broker answers, since the harness pings it each second."""
Publish = Callable[[str, bytes, int], None]
"""Publishes a message: topic (below the board's own), payload, QoS."""


class MqttBoard:
    """A board at a broker. It works under the outlet's lock; its own thread sends what is due.

    publish: publishes a message. broker_owes: returns how long an answer of the broker has been overdue, s.
    """

    def __init__(
        self,
        id: str,
        options: MqttOptions,
        clock: Clock,
        outlet: DriverOutlet,
        publish: Publish,
        broker_owes: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self._id, self._now_s, self._outlet, self._publish = id, clock.now_s, outlet, publish
        self._broker_owes = broker_owes
        self._owner = secrets.token_hex(4)
        self._foreign_sender = ForeignSenderDetector(self._owner)
        self._reported_unseen = self._is_closed = False
        self._changed = threads.condition(outlet.lock)
        self.session = BoardSession(
            id,
            outlet,
            BROKER,
            encoding=Encoding[options.encoding.name],
            realtime=options.pace is InjectionPace.REALTIME,
            answer_limit_s=options.answer_wait_s,
            silent=self._silence_text,
        )
        self._thread = threads.thread(self._work, name=f"{id}-board")

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """A sound that plays ends without an event."""
        with self._changed:
            self._is_closed = True
            self.session.playing = None
            self._changed.notify_all()
        # A thread cannot wait for its own end.
        if self._thread.is_alive() and self._thread is not threads.current_thread():
            self._thread.join(1.0)

    def wait_for_hello(self, limit_s: float) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: self.session.known, limit_s)

    def link_up(self) -> None:
        with self._changed:
            self.session.link_up(self._now_s())
            self._changed.notify_all()

    def link_down(self) -> None:
        with self._changed:
            self.session.link_down(self._now_s())

    def take(self, topic: str, payload: bytes, stamp: Stamp) -> None:
        """Takes a message on `vh/<device>/<topic>` that is not retained."""
        try:
            received = read(topic, payload)
        except MappingError as error:
            self._outlet.tell(LogLine(self._id, stamp, f"{topic}: {show_payload(payload)} ({error})"))
            return
        with self._changed:
            completed = self.session.completed
            self.session.take(received, stamp)
            if self.session.completed > completed and not self._foreign_sender.echoed and not self._reported_unseen:
                self._reported_unseen = True
                self._outlet.remark(
                    "the broker does not deliver in/audio to the harness, so sound from other programs goes unnoticed"
                )
            self._changed.notify_all()

    def take_echo(self, topic: str, payload: bytes) -> None:
        """Takes the echo of a message on `vh/<device>/in/…`, from the harness or another program."""
        with self._changed:
            if description := self._foreign_sender.stranger(topic, payload):
                text = f"another program sends this board {description} (vh/…/{topic}): two programs use it"
                self.session.used_by_another(text, self._now_s())

    def reset(self) -> None:
        """Asks the board to restart."""
        with self._changed:
            self.session.reset()
            self._changed.notify_all()

    def play(self, play_id: str, waveform: Waveform) -> None:
        """DeviceError when the board is not connected, or while a sound is playing."""
        hello, sound = self.session.hello, self.session.prepared(waveform)
        with self._changed:
            playing = self.session.playing
            if playing is not None:
                raise DeviceError(f"{self._id} is already playing {playing.play_id}", remedy="Stop it first")
            now = self.session.hello
            is_same_boot = (
                hello is not None and now is not None and (now.boot, now.window) == (hello.boot, hello.window)
            )
            if sound is None or not is_same_boot or not self.session.ready:
                raise DeviceError(f"{self._id}: the board is not connected", remedy="Wait until it is connected again")
            self.session.play(play_id, sound, self._now_s())
            self._changed.notify_all()

    def stop(self) -> None:
        with self._changed:
            self.session.stop(self._now_s())
            self._changed.notify_all()

    def level_dbfs(self) -> float | None:
        with self._changed:
            return self.session.level_dbfs()

    def command(self, message: messages.TextCommand | messages.Set) -> None:
        """Sends a command. Returns when it and all earlier ones are acknowledged; DeviceError if not within 5 s."""
        with self._changed:
            if not self.session.known:
                raise DeviceError(f"{self._id}: the board is not connected", remedy="Wait until it is connected again")
            command = self.session.command(message)
            self._changed.notify_all()
        command.done.wait(_COMMAND_LIMIT_S)
        with self._changed:
            self.session.drop(command)
        if not command.acknowledged:
            raise DeviceError(
                f"{self._id}: the board has not acknowledged {message}",
                remedy="Check whether the board restarted or was lost",
            )

    def _silence_text(self, silent_s: float) -> str:
        if self._broker_owes() > _BROKER_ANSWERS_S:
            return f"the broker does not answer, and the board has been silent for {seconds(silent_s)}"
        return f"the board has been silent for {seconds(silent_s)}; the broker answers"

    def _work(self) -> None:
        while True:
            with self._changed:
                if self._is_closed:
                    return
                outgoing, wait_s = self._due_messages(self._now_s())
                if not outgoing:
                    self._changed.wait(wait_s)
                    continue
                for topic, payload, _ in outgoing:
                    self._foreign_sender.gives(topic, payload)
            for topic, payload, qos in outgoing:
                self._publish(topic, payload, qos)

    def _due_messages(self, now_s: float) -> tuple[list[tuple[str, bytes, int]], float]:
        """The messages to publish now, and how long to wait if there are none."""
        if silent := self.session.tick(now_s):
            # Report the loss before the sound that it cut off, so that the session knows the reason.
            self._outlet.lose(BOARD, silent)
            self.session.await_hello(now_s)
        outgoing = [encode_message(message, number, self._owner) for message, number in self.session.due(now_s)]
        return outgoing, max(0.001, self.session.wait_s(now_s))  # with nothing to send, a wait of 0 would only spin

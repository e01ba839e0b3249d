"""A board that speaks the harness's framing over MQTT.

This module converts between topics and messages, detects other programs that control the board, and sends from a thread
of its own.
"""

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
from harness.devices.wire.mappings import parse_json, show_payload
from harness.model.bench import PlainValue
from harness.model.choices import InjectionPace
from harness.model.errors import DeviceError
from harness.model.numbers import seconds
from harness.model.observation import DeviceState, LogLine, Unread
from harness.model.stimulus import Waveform
from harness.model.time import Stamp

_U64_END = 1 << 64
_MAX_RATE_HZ = 384_000
_LOG_LEVELS = {1: "error", 2: "warning", 3: "info", 4: "debug"}


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
_EVENT_TOPICS = BOARD_TOPICS - {"hello", "ack", "pong", "log"}


def parse_message(topic: str, payload: bytes) -> ReceivedMessage:
    """The message on `vh/<device>/<topic>`. Raises MappingError, with the reason, for anything else."""
    document = parse_json(payload)
    if not isinstance(document, dict):
        raise MappingError("not a JSON object")
    if topic not in BOARD_TOPICS:
        raise MappingError("unknown topic; docs/reference/framing.md lists the topics")
    fields = _Fields(document)
    boot, number, text = fields.boot(), fields.number, fields.optional_text
    match topic:
        case "hello":
            hello = messages.BoardHello(
                protocol=number("protocol"),
                boot=boot,
                time_us=number("time_us"),
                rate_hz=number("rate_hz", 1, _MAX_RATE_HZ + 1),
                window=number("window", 1, 1 << 32),
                firmware=text("firmware"),
                wake_phrases=fields.texts("wake_phrases"),
                serial=text("serial"),
            )
            return ReceivedMessage(hello)
        case "ack":
            return ReceivedMessage(messages.AudioAck(number("next"), number("events"), number("command")), boot)
        case "pong":
            pong = messages.Pong(number("token"), number("received_us"), number("sent_us"), fields.flag("listening"))
            return ReceivedMessage(pong, boot)
    seq, time_us = fields.optional_number("seq"), fields.optional_number("time_us")
    sample = fields.optional_number("sample")
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
        case _:  # log
            level = number("level")
            event = messages.Log(time_us, level, f"{_LOG_LEVELS.get(level, level)}: {fields.text('text')}")
    return ReceivedMessage(event, boot, seq)


class _Fields:
    """The fields of a JSON object, each checked when it is read: MappingError if it is missing or of another kind."""

    def __init__(self, document: dict[str, PlainValue]) -> None:
        self._document = document

    def boot(self) -> str:
        """The id of the boot, which a board may send as text or as a number."""
        boot = self._document.get("boot")
        if isinstance(boot, str) and 0 < len(boot) <= 32:
            return boot
        if is_integer(boot) and 0 <= boot < _U64_END:
            return f"{boot:08x}"
        raise MappingError("no boot id")

    def number(self, name: str, low: int = 0, end: int = _U64_END) -> int:
        """A whole number from `low` to below `end`."""
        number = self._document.get(name)
        if not is_integer(number) or not low <= number < end:
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
        """A truth value; 0 and 1 also count. default: None means that the field must be there."""
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
        """Names and values, from an object of texts or a list of objects with name and value; () without the field."""
        content = self._document.get(name)
        match content:
            case None:
                entries: list[tuple[PlainValue, PlainValue]] = []
            case dict():
                entries = list(content.items())
            case list():
                entries = [(entry.get("name"), entry.get("value")) for entry in content if isinstance(entry, dict)]
            case _:
                raise MappingError(f"`{name}` must map names to values")
        pairs = tuple((key, value) for key, value in entries if isinstance(key, str) and isinstance(value, str))
        # Shorter than the content if an entry is not an object, or a name or a value is not text.
        if len(pairs) != len(content or ()):
            raise MappingError(f"`{name}` must map names to values")
        return pairs

    def state(self) -> DeviceState:
        state = self.text("state")
        try:
            return DeviceState(state)
        except ValueError as error:
            raise MappingError(f"the state {state[:40]!r} does not exist") from error


_MAX_OWN_MESSAGES = 4096
"""Number of the harness's latest messages whose echo is recognised. Chosen: a minute of sound or more, which is far
more than is on its way to the broker and back."""
_FIRST_SAMPLE = struct.Struct("<xxQ")  # In the payload of in/audio, after the encoding and the flags.
COMMAND_TOPICS = {"in/audio": "sound", "in/text": "words", "in/set": "a setting", "in/reset": "a reset"}
"""The topics whose messages change the board → what they carry, in words."""


class ForeignSenderDetector:
    """Recognises messages that other programs send to the board.

    The harness's own commands carry `owner` (in `by`). Its own sound and resets are recognised by their bytes, and
    each counts as often as it was sent.
    """

    def __init__(self, owner: str) -> None:
        self._owner = owner
        self._own_counts: dict[int, int] = {}
        """Fingerprint of an own message → how many of its echoes may still come. The oldest is first."""
        self.echoed = False
        """Whether the broker echoes what reaches the board: the harness's own sound has come back."""

    def note_own(self, topic: str, payload: bytes) -> None:
        """Notes a message of the harness. Call it before publishing, since the echo may come at once."""
        if topic in ("in/audio", "in/reset"):
            fingerprint = _fingerprint(topic, payload)
            count = self._own_counts.pop(fingerprint, 0)
            self._own_counts[fingerprint] = count + 1  # at the end, as the newest
            while len(self._own_counts) > _MAX_OWN_MESSAGES:
                oldest = next(iter(self._own_counts))
                del self._own_counts[oldest]

    def foreign_content(self, topic: str, payload: bytes) -> str:
        """What another program sent, in words; "" for the harness's own messages, and for those that change nothing.

        Call it once for each echo: an own message counts as received then.
        """
        description = COMMAND_TOPICS.get(topic, "")
        if not description:
            return ""
        if topic in ("in/text", "in/set"):
            try:
                document = parse_json(payload)
            except MappingError:
                return ""  # the board does not accept it either
            is_ours = isinstance(document, dict) and document.get("by") == self._owner
            return "" if is_ours else description
        if topic == "in/audio" and len(payload) >= _FIRST_SAMPLE.size:
            (first_sample,) = _FIRST_SAMPLE.unpack_from(payload)
            if first_sample == PROBE_SAMPLE:  # the board plays nothing
                return ""
        fingerprint = _fingerprint(topic, payload)
        if fingerprint not in self._own_counts:
            return description
        self._own_counts[fingerprint] -= 1
        if not self._own_counts[fingerprint]:
            del self._own_counts[fingerprint]
        self.echoed = self.echoed or topic == "in/audio"
        return ""


def _fingerprint(topic: str, payload: bytes) -> int:
    return zlib.crc32(payload, zlib.crc32(topic.encode()))


_COMMAND_LIMIT_S = 5.0
_MAX_PING_WAIT_S = 1.2
"""A ping to the broker that has waited longer, in seconds, means that it does not answer. One is sent each second."""
Publish = Callable[[str, bytes, int], None]
"""Publishes a message: topic (below the board's own), payload, QoS."""


class MqttBoard:
    """A board at a broker. It works under the outlet's lock; its own thread sends what is due.

    - publish: publishes a message.
    - broker_silent_s: returns how long the oldest unanswered ping to the broker has waited, s; 0 if none waits.
    """

    def __init__(
        self,
        id: str,
        options: MqttOptions,
        clock: Clock,
        outlet: DriverOutlet,
        publish: Publish,
        broker_silent_s: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self._id = id
        self._now_s = clock.now_s
        self._outlet = outlet
        self._publish = publish
        self._broker_silent_s = broker_silent_s
        self._owner = secrets.token_hex(4)
        self._foreign_sender = ForeignSenderDetector(self._owner)
        self._missing_echo_reported = False
        self._is_closed = False
        self._changed = threads.condition(outlet.lock)
        self.session = BoardSession(
            id,
            outlet,
            BROKER,
            encoding=Encoding[options.encoding.name],
            realtime=options.pace is InjectionPace.REALTIME,
            answer_limit_s=options.answer_wait_s,
            silence_text=self._silence_text,
        )
        self._thread = threads.thread(self._send_until_closed, name=f"{id}-board")

    def start(self) -> None:
        """Starts the thread that sends."""
        self._thread.start()

    def close(self) -> None:
        """Stops the thread, waiting at most 1 s. A sound that is playing ends without StimulusEnded."""
        with self._changed:
            self._is_closed = True
            self.session.playing = None
            self._changed.notify_all()
        # A thread cannot wait for its own end.
        if self._thread.is_alive() and self._thread is not threads.current_thread():
            self._thread.join(1.0)

    def wait_for_hello(self, limit_s: float) -> bool:
        """Waits until the board's hello has arrived. Returns False if it has not within limit_s."""
        with self._changed:
            return self._changed.wait_for(lambda: self.session.known, limit_s)

    def link_up(self) -> None:
        """The broker is connected (again): requests the board's hello."""
        with self._changed:
            self.session.link_up(self._now_s())
            self._changed.notify_all()

    def link_down(self) -> None:
        """The broker is gone. A sound that is playing ends incomplete."""
        with self._changed:
            self.session.link_down(self._now_s())

    def receive(self, topic: str, payload: bytes, stamp: Stamp) -> None:
        """Handles a message on `vh/<device>/<topic>` that is not retained. Logs an invalid one; an event is unread."""
        try:
            received = parse_message(topic, payload)
        except MappingError as error:
            self._outlet.tell(LogLine(self._id, stamp, f"{topic}: {show_payload(payload)} ({error})"))
            if topic in _EVENT_TOPICS:
                self._outlet.tell(Unread(self._id, stamp, f"the payload of an event on {topic} is not valid"))
            return
        with self._changed:
            completed_before = self.session.completed
            self.session.receive(received, stamp)
            played_unechoed = self.session.completed > completed_before and not self._foreign_sender.echoed
            if played_unechoed and not self._missing_echo_reported:
                self._missing_echo_reported = True
                self._outlet.remark(
                    "the broker does not deliver in/audio to the harness, so sound from other programs goes unnoticed"
                )
            self._changed.notify_all()

    def receive_echo(self, topic: str, payload: bytes) -> None:
        """Handles the echo of a message on `vh/<device>/in/…`, from the harness or another program.

        If another program controls the board, its link counts as lost.
        """
        with self._changed:
            if description := self._foreign_sender.foreign_content(topic, payload):
                text = f"another program sends this board {description} (vh/…/{topic}): two programs use it"
                self.session.report_foreign_use(text, self._now_s())

    def reset(self) -> None:
        """Asks the board to restart."""
        with self._changed:
            self.session.reset()
            self._changed.notify_all()

    def play(self, play_id: str, waveform: Waveform) -> None:
        """Begins a sound. Raises DeviceError when the board is not connected, or while a sound is playing."""
        # Resampling and encoding are slow, so they run without the lock. The board may restart meanwhile.
        hello, sound = self.session.hello, self.session.prepare(waveform)
        with self._changed:
            playing = self.session.playing
            if playing is not None:
                raise DeviceError(
                    f"{self._id} is already playing {playing.play_id}", remedy="Stop the current sound first"
                )
            current_hello = self.session.hello
            is_same_boot = (
                hello is not None
                and current_hello is not None
                and (current_hello.boot, current_hello.window) == (hello.boot, hello.window)
            )
            if sound is None or not is_same_boot or not self.session.ready:
                raise DeviceError(
                    f"{self._id}: the board is not connected", remedy="Wait until the board is connected again"
                )
            self.session.play(play_id, sound, self._now_s())
            self._changed.notify_all()

    def stop(self) -> None:
        """Ends the sound that is playing; StimulusEnded(complete=False) follows."""
        with self._changed:
            self.session.stop(self._now_s())
            self._changed.notify_all()

    def level_dbfs(self) -> float | None:
        """RMS level of the last 100 ms sent; None when no sound is being sent."""
        with self._changed:
            return self.session.level_dbfs()

    def command(self, message: messages.TextCommand | messages.Set) -> None:
        """Sends a command. Returns when it and all earlier ones are acknowledged.

        Raises DeviceError if not within 5 s.
        """
        with self._changed:
            if not self.session.known:
                raise DeviceError(
                    f"{self._id}: the board is not connected", remedy="Wait until the board is connected again"
                )
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
        """Why the board counts as lost after silent_s, and whether its broker is the cause."""
        if self._broker_silent_s() > _MAX_PING_WAIT_S:
            return f"the broker does not answer, and the board has been silent for {seconds(silent_s)}"
        return f"the board has been silent for {seconds(silent_s)}; the broker answers"

    def _send_until_closed(self) -> None:
        """Runs in the board's thread: publishes what is due. Publishing may block, so it happens without the lock."""
        while True:
            with self._changed:
                if self._is_closed:
                    return
                outgoing, wait_s = self._due_messages(self._now_s())
                if not outgoing:
                    self._changed.wait(wait_s)
                    continue
                for topic, payload, _ in outgoing:
                    self._foreign_sender.note_own(topic, payload)
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

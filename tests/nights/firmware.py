"""What runs on a device: it writes lines or frames, or says messages, with a clock and a count of boots of its own.

A driver of the product reads it. The firmware knows nothing of sounds: it is told what the device has seen, and when.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random
from typing import Any

from harness.base.simulated_threads import SimulatedThreads
from harness.devices.wire import messages
from harness.devices.wire.frames import Decoder, WireFrame
from harness.model.bench import (
    ClockKind,
    ConsoleSettings,
    DeviceProfile,
    Framing,
    LineMapping,
    MessageMapping,
    ObservationKind,
)
from harness.model.observation import (
    DeviceState,
    ListeningProved,
    Observation,
    Proof,
    ResponseText,
    Status,
    Transcript,
    Unread,
    Wake,
)
from harness.model.time import Stamp
from tests.nights.ports import Message, SimulatedBroker, SimulatedPort

SCORES = 65535
"""A wake event is known by its score, which is its number of so many."""
MAX_LINE_BYTES = 1024
RESEND_S = 0.2
HEARS_HZ = 400
"""Sample rate of boards that take sound over their wire: low, since each sample is sent, and times need no more."""
KEPT = 32
"""Events that a framed board keeps until they are acknowledged."""

LINES = DeviceProfile(
    "lines",
    "A board that prints",
    "lines.yaml",
    "0",
    ("alexa",),
    lines=(
        LineMapping(r"^I \(\d+\) heard (?P<phrase>\w+) (?P<score>\d{5})$", ObservationKind.WAKE, score_scale=SCORES),
        LineMapping(r"^I \(\d+\) words: (?P<text>[a-z ]+)$", ObservationKind.TRANSCRIPT),
        LineMapping(r"^I \(\d+\) says: (?P<text>[A-Za-z .]+)$", ObservationKind.RESPONSE),
        LineMapping(r"^I \(\d+\) is (?P<state>\w+)$", ObservationKind.STATUS),
        LineMapping(r"^rst:(?P<detail>\w+)$", ObservationKind.STATUS, (("state", "started"),)),
        LineMapping(r"^I \(\d+\) alive$", ObservationKind.LISTENING),
    ),
    console=ConsoleSettings(time=r"^I \((?P<time>\d+)\) ", clock=ClockKind.MS, max_line_bytes=MAX_LINE_BYTES),
)
FRAMES = replace(LINES, id="frames", lines=(), console=ConsoleSettings(framing=Framing.VH))
MESSAGES = DeviceProfile(
    "messages",
    "A device at a broker",
    "messages.yaml",
    "0",
    ("alexa",),
    mappings=(
        MessageMapping("box/wake", ObservationKind.WAKE, (("phrase", "/phrase"), ("score", "/score"))),
        MessageMapping("box/words", ObservationKind.TRANSCRIPT, (("text", "/text"),)),
        MessageMapping("box/says", ObservationKind.RESPONSE, (("text", "/text"),)),
        MessageMapping("box/status", ObservationKind.STATUS, (("state", "/state"),)),
        MessageMapping("box/alive", ObservationKind.LISTENING),
    ),
)


class OwnClock:
    """Counts from a boot on, drifts, and may jump."""

    def __init__(self, booted_s: float, drift: float) -> None:
        self._booted_s, self._drift = booted_s, drift
        self.jumps = True
        self._jumped_s = 0.0

    def at_s(self, host_s: float) -> float:
        return (host_s - self._booted_s) * (1 + self._drift) + self._jumped_s

    def jump(self, by_s: float) -> None:
        """Once."""
        self._jumped_s, self.jumps = by_s, False


class Firmware:
    """What all have in common. Each word is told with its time, and leaves later.

    hung: it stands still.
    """

    drift = 0.0

    def __init__(self, world: SimulatedThreads, chance: Random) -> None:
        self._world, self._chance = world, chance
        self.hung = False
        self.listens = True
        self.boots = 0
        self.clock = OwnClock(0.0, 0.0)
        self._boot(world.monotonic() - chance.uniform(5.0, 90_000.0))

    def _boot(self, booted_s: float) -> None:
        self.boots += 1
        drift = self._chance.choice((0.0, 20e-6, -80e-6, 150e-6, self.drift))
        self.clock = OwnClock(booted_s, drift)

    def say(self, observation: Observation, leaves_s: float) -> None:
        """observation: with the true time."""
        raise NotImplementedError

    def goes_down(self) -> None:
        """It loses its power, or resets itself."""

    def comes_up(self) -> None:
        """It boots."""
        raise NotImplementedError


class LineFirmware(Firmware):
    """Prints lines in their order. A stalled output holds all later lines back."""

    drift = -150e-6

    def __init__(self, world: SimulatedThreads, chance: Random) -> None:
        super().__init__(world, chance)
        self.port = SimulatedPort(world, self)
        self.damage: Callable[[bytes], list[tuple[bytes, float]]] = lambda line: [(line, 0.0)]
        """Takes a line, and gives its pieces with their delays."""
        self._free_s = 0.0

    def takes(self, data: bytes) -> None:
        """It reads nothing."""

    def say(self, observation: Observation, leaves_s: float) -> None:
        self._free_s = leaves_s = max(leaves_s, self._free_s)
        line, boots = self._line(observation), self.boots
        for piece, delay_s in self.damage(line):
            self._free_s = max(self._free_s, leaves_s + delay_s)
            self._world.call_at(leaves_s + delay_s, lambda piece=piece: self._print(piece, boots))  # type: ignore[misc]

    def goes_down(self) -> None:
        half = self._line(ListeningProved("", Stamp(self._world.monotonic()), Proof.HEARTBEAT))
        self._print(half[: self._chance.randint(0, len(half) - 2)], self.boots)  # in the middle of a line
        self._boot(self._world.monotonic())
        self._free_s = 0.0

    def comes_up(self) -> None:
        now_s = self._world.monotonic()
        self.clock = OwnClock(now_s, 0.0)
        self._print(b"\r\nrst:POWERON\r\n", self.boots)

    def _print(self, data: bytes, boots: int) -> None:
        if boots == self.boots and not self.hung:
            self.port.send(data, self._world.monotonic())

    def _line(self, observation: Observation) -> bytes:
        match observation:
            case Wake(score=score):
                text = f"heard alexa {round((score or 0) * SCORES):05}"
            case Transcript(text=words):
                text = f"words: {words}"
            case ResponseText(text=words):
                text = f"says: {words}"
            case Status(state=state):
                text = f"is {state}"
            case Unread():
                text = "x" * (MAX_LINE_BYTES + 200)
            case _:
                text = "alive"
        return f"I ({int(self.clock.at_s(observation.at.at_s) * 1000)}) {text}\r\n".encode()


def event_of(observation: Observation, time_us: int, sample: int = 0) -> messages.Event | None:
    """What a word is in the harness's framing. sample: how many it has heard since its boot."""
    match observation:
        case Wake(score=score, phrase=phrase):
            return messages.WakeMessage(time_us, sample, score, phrase)
        case Transcript(text=words):
            return messages.TranscriptEvent(time_us, 0, True, words)
        case ResponseText(text=words):
            return messages.ResponseEvent(time_us, words)
        case Status(state=state) if state is not DeviceState.GONE:
            return messages.StatusEvent(time_us, state, "")
        case _:
            return None  # it answers pings, which is its heartbeat


class FramedFirmware(Firmware):
    """Speaks frames on a line: events are kept until they are acknowledged, and are sent again and again.

    loses: share of frames that the line damages. beats: it says with each answer that it listens. window: samples that
    it takes ahead; 0: it takes no sound. heard: gets the values of samples that it has accepted, in their order.
    taken: how many since its boot. slow_s: how long it takes for a frame of sound.
    """

    drift = 0.02

    def __init__(
        self,
        world: SimulatedThreads,
        chance: Random,
        *,
        beats: bool,
        window: int,
        heard: Callable[[Sequence[int]], object] | None = None,
    ) -> None:
        self.port = SimulatedPort(world, self)
        self.loses = self.slow_s = 0.0
        self.taken = 0
        self._heard = heard
        self._beats, self._window = beats, window
        self._decoder = Decoder()
        self._kept: dict[int, messages.Event] = {}
        self._sends_again = False
        super().__init__(world, chance)

    def _boot(self, booted_s: float) -> None:
        super()._boot(booted_s)
        self._id = f"{self._chance.getrandbits(32):08x}"
        self._seq = self._chance.choice((0, 0, 40, 900)) if self.boots == 1 else 0  # of earlier sessions
        self.taken = 0
        self._kept.clear()

    def say(self, observation: Observation, leaves_s: float) -> None:
        boots, time_us, sample = self.boots, self._us(observation.at.at_s), self.taken

        def leave() -> None:
            event = event_of(observation, time_us, sample)
            if boots == self.boots and event is not None:
                self._event(event)

        self._world.call_at(leaves_s, leave)

    def goes_down(self) -> None:
        self._boot(self._world.monotonic())

    def comes_up(self) -> None:
        now_s = self._world.monotonic()
        self.clock = OwnClock(now_s, 0.0)
        self._send(self._hello())
        self._event(messages.StatusEvent(self._us(now_s), DeviceState.STARTED, "power on"))

    def takes(self, data: bytes) -> None:
        """Bytes from the host."""
        for frame in self._decoder.feed(data):
            if not self.hung and isinstance(frame, WireFrame) and self._chance.random() >= self.loses:
                self._take(messages.decode(frame))

    def _take(self, message: messages.Message) -> None:
        now_s = self._world.monotonic()
        match message:
            case messages.HelloRequest():
                self._send(self._hello())
            case messages.Ping(token):
                busy_s = self._chance.uniform(0.0, 0.003)
                pong = messages.Pong(token, self._us(now_s), self._us(now_s + busy_s), self._beats)
                boots = self.boots
                self._world.call_at(now_s + busy_s, lambda: self._send(pong) if boots == self.boots else None)
            case messages.Audio() as audio if self.slow_s:
                boots = self.boots
                self._world.call_at(now_s + self.slow_s, lambda: self._hear(audio) if boots == self.boots else None)
            case messages.Audio() as audio:
                self._hear(audio)
            case messages.EventAck(number):
                self._kept.pop(number, None)
            case _:
                pass

    def _hear(self, audio: messages.Audio) -> None:
        if self._heard is not None and not self.hung and audio.first == self.taken:
            samples = struct.unpack(f"<{len(audio.data) // 2}h", audio.data)
            self.taken += len(samples)
            self._heard(samples)
        self._send(messages.AudioAck(self.taken, self._seq))

    def _event(self, event: messages.Event) -> None:
        self._seq += 1
        self._kept[self._seq] = event
        if len(self._kept) > KEPT:
            del self._kept[min(self._kept)]
        self._send(event, self._seq)
        if not self._sends_again:
            self._sends_again = True
            self._world.call_at(self._world.monotonic() + RESEND_S, self._send_again)

    def _send_again(self) -> None:
        self._sends_again = bool(self._kept)
        if self._kept:
            for number, event in self._kept.items():
                self._send(event, number)
            self._world.call_at(self._world.monotonic() + RESEND_S, self._send_again)

    def _send(self, message: messages.Message, seq: int = 0) -> None:
        if self.hung or not self.port.heard:
            return
        frame = messages.to_frame(message, seq)
        if self._chance.random() < self.loses:
            place = self._chance.randrange(1, len(frame) - 1)
            frame = frame[:place] + b"\x55" + frame[place + self._chance.randint(1, 2) :]
        self.port.send(frame, self._world.monotonic())

    def _hello(self) -> messages.BoardHello:
        now_us = self._us(self._world.monotonic())
        rate_hz = 16000 if self._heard is None else HEARS_HZ
        return messages.BoardHello(1, self._id, now_us, rate_hz, self._window, "simulated", ("alexa",))

    def _us(self, host_s: float) -> int:
        return max(0, int(self.clock.at_s(host_s) * 1e6))


class MessageFirmware(Firmware):
    """Says numbered messages at a broker, by mappings."""

    def __init__(self, world: SimulatedThreads, chance: Random, broker: SimulatedBroker, name: str) -> None:
        self._broker, self._name = broker, name
        self.repeats = False
        super().__init__(world, chance)

    def _boot(self, booted_s: float) -> None:
        super()._boot(booted_s)
        self._number = self._chance.choice((0, 500)) if self.boots == 1 else 0
        self._id = f"{self._chance.getrandbits(32):08x}"
        if self.boots == 1:
            self._meet()

    def _meet(self) -> None:
        topic, will = self._status({"state": "gone"})
        self._peer = self._broker.peer(f"{self._name}-{self._id}", Message(topic, will, 1, self.retains))

    retains = False

    def reconnect(self) -> None:
        """The broker can be reached again."""
        self._peer.connect()

    def say(self, observation: Observation, leaves_s: float) -> None:
        boots, message = self.boots, self._message(observation)

        def leave() -> None:
            if boots == self.boots and not self.hung and message is not None:
                self._number += 1
                for _ in range(2 if self.repeats else 1):  # it has missed the acknowledgement
                    self._publish(*message)
                self.repeats = False

        self._world.call_at(leaves_s, leave)

    def goes_down(self) -> None:
        self._peer.vanish(self._chance.choice((0.0, 1.0, 6.0)))
        self._boot(self._world.monotonic())

    def comes_up(self) -> None:
        now_s = self._world.monotonic()
        self.clock = OwnClock(now_s, 0.0)
        self._meet()
        self.say(Status("", Stamp(now_s), DeviceState.STARTED), now_s)

    def _publish(self, topic: str, fields: dict[str, Any]) -> None:
        body = json.dumps({"boot": self._id, "seq": self._number, **fields}).encode()
        if "long" in fields:
            body += b" " * 70_000
        self._peer.say(topic, body, retain=self.retains and topic.endswith("/status"))

    def _status(self, fields: dict[str, Any]) -> tuple[str, bytes]:
        return "box/status", json.dumps({"boot": self._id, **fields}).encode()

    def _message(self, observation: Observation) -> tuple[str, dict[str, Any]] | None:
        match observation:
            case Wake(score=score, phrase=phrase):
                return "box/wake", {"phrase": phrase, "score": score}
            case Transcript(text=words):
                return "box/words", {"text": words}
            case ResponseText(text=words):
                return "box/says", {"text": words}
            case Status(state=state):
                return "box/status", {"state": state}
            case Unread():
                return "box/wake", {"long": True}
            case _:
                return "box/alive", {}


class RadioFirmware(MessageFirmware):
    """A board at a broker, in the harness's framing. It answers pings, and its times are its own clock's."""

    drift = 0.02
    retains = True

    def __init__(
        self, world: SimulatedThreads, chance: Random, broker: SimulatedBroker, name: str, *, beats: bool
    ) -> None:
        self._beats = beats
        super().__init__(world, chance, broker, name)

    def _meet(self) -> None:
        super()._meet()
        self._greet()

    def reconnect(self) -> None:
        super().reconnect()
        self._greet()

    def _greet(self) -> None:
        self._peer.hears = self._take
        self._peer.subscribe(*(f"vh/{self._name}/in/{topic}" for topic in ("ping", "hello", "audio")))
        self._hello()

    def _take(self, topic: str, payload: bytes) -> None:
        if self.hung:
            return
        now_us = self._us(self._world.monotonic())
        match topic.rpartition("/")[2]:
            case "hello":
                self._hello()
            case "ping":
                fields = {"token": int(payload), "received_us": now_us, "sent_us": now_us, "listening": self._beats}
                self._answer("pong", fields)
            case "audio":
                self._answer("ack", {"next": 0, "events": self._number, "command": 0})

    def _hello(self) -> None:
        fields = {"protocol": 1, "rate_hz": 16000, "window": 8000, "firmware": "simulated", "wake_phrases": ["alexa"]}
        self._answer("hello", fields | {"time_us": self._us(self._world.monotonic())}, qos=1)

    def _answer(self, topic: str, fields: dict[str, Any], qos: int = 0) -> None:
        self._peer.say(f"vh/{self._name}/{topic}", json.dumps({"boot": self._id, **fields}).encode(), qos)

    def _status(self, fields: dict[str, Any]) -> tuple[str, bytes]:
        return f"vh/{self._name}/status", super()._status(fields)[1]

    def _message(self, observation: Observation) -> tuple[str, dict[str, Any]] | None:
        event = event_of(observation, self._us(observation.at.at_s))
        match event:
            case messages.WakeMessage(time_us, _, score, phrase):
                topic, fields = "wake", {"time_us": time_us, "score": score, "phrase": phrase}
            case messages.TranscriptEvent(time_us, _, final, text):
                topic, fields = "transcript", {"time_us": time_us, "text": text, "final": final}
            case messages.ResponseEvent(time_us, text):
                topic, fields = "response", {"time_us": time_us, "text": text}
            case messages.StatusEvent(time_us, state, _):
                topic, fields = "status", {"time_us": time_us, "state": state}
            case _:
                return None
        return f"vh/{self._name}/{topic}", fields

    def _us(self, host_s: float) -> int:
        return max(0, int(self.clock.at_s(host_s) * 1e6))

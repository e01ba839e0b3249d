"""A board over a real broker that speaks docs/reference/framing.md, for faults that the firmware cannot be asked for.

It wakes at every click: a sample above half of full scale after at least 100 ms without one.
"""

from __future__ import annotations

import json
import secrets
import struct
import threading
import time

import numpy as np
import paho.mqtt.client as mqtt
from paho.mqtt.enums import CallbackAPIVersion

from harness.devices.wire.adpcm import Encoding, decode
from harness.model.stimulus import Waveform
from tests.conformance.mqtt_bench import Broker
from tests.known import known
from tests.seen import until

RATE_HZ = 16000
REFRACTORY = RATE_HZ // 10


def clicks(seconds: float, *at_s: float) -> Waveform:
    """Silence with a click at each of these times."""
    samples = np.zeros(round(seconds * RATE_HZ), dtype=np.float32)
    for click_s in at_s:
        samples[round(click_s * RATE_HZ) :][:64] = 0.8
    return Waveform(samples, RATE_HZ)


class FramedBoard:
    """Follows docs/reference/framing.md.

    drop_audio: share of the audio messages that it loses.
    """

    def __init__(
        self,
        broker: Broker,
        device: str = "board",
        *,
        ppm: float = 0.0,
        window: int = 8000,
        login: tuple[str, str] | None = None,
    ) -> None:
        self.device = device
        self.window = window
        self.ppm = ppm
        self.drop_audio = 0.0
        self.texts: list[str] = []
        self._random = np.random.default_rng(1)
        self._lock = threading.RLock()
        self._greeted = threading.Event()
        self._power_on()
        self.client = mqtt.Client(CallbackAPIVersion.VERSION2, client_id=device)
        will = json.dumps({"boot": self.boot, "state": "gone"})
        self.client.will_set(self._topic("status"), will, qos=1, retain=True)
        if login is not None:
            self.client.username_pw_set(*login)
        self.client.on_connect = self._connected
        self.client.on_message = self._message
        self.client.reconnect_delay_set(1, 1)
        self.client.connect("127.0.0.1", broker.port, keepalive=5)
        self.client.loop_start()
        until(self._greeted.is_set)

    def _power_on(self) -> None:
        self.boot = secrets.token_hex(4)
        self.booted_s = time.monotonic()
        self.expected = 0
        self.events = 0
        self.command = 0
        self._last_click = -REFRACTORY
        self.wakes: list[int] = []

    def reset(self) -> None:
        """As its button does; the connection to the broker is kept, which a real one does not."""
        with self._lock:
            self._power_on()
            self._hello()
            self.event("status", state="started", detail="")

    def vanish(self) -> None:
        """As when its power fails: no goodbye."""
        connection = known(self.client.socket())
        threading.Thread(target=self.client.loop_stop, daemon=True).start()
        connection.shutdown(2)  # type: ignore[attr-defined]

    def close(self) -> None:
        self.client.disconnect()
        self.client.loop_stop()

    def time_us(self) -> int:
        return round((time.monotonic() - self.booted_s) * 1e6 * (1 + self.ppm * 1e-6))

    def event(self, topic: str, **fields: object) -> None:
        with self._lock:
            self.events += 1
            content = {"boot": self.boot, "seq": self.events, "time_us": self.time_us(), **fields}
            self._say(topic, content, qos=1, retain=topic == "status")

    def log(self, text: str) -> None:
        self._say("log", {"boot": self.boot, "time_us": self.time_us(), "level": 3, "text": text}, qos=1)

    def _topic(self, topic: str) -> str:
        return f"vh/{self.device}/{topic}"

    def _say(self, topic: str, content: dict[str, object], *, qos: int = 0, retain: bool = False) -> None:
        self.client.publish(self._topic(topic), json.dumps(content), qos=qos, retain=retain)

    def _hello(self) -> None:
        about = {"protocol": 1, "rate_hz": RATE_HZ, "window": self.window, "firmware": "t", "wake_phrases": ["click"]}
        self._say("hello", {"boot": self.boot, "time_us": self.time_us(), **about}, qos=1)

    def _ack(self) -> None:
        self._say("ack", {"boot": self.boot, "next": self.expected, "events": self.events, "command": self.command})

    def _connected(self, client: mqtt.Client, *_: object) -> None:
        client.subscribe(self._topic("in/+"), 1)
        with self._lock:
            self._hello()
        self._greeted.set()

    def _message(self, _: mqtt.Client, __: object, message: mqtt.MQTTMessage) -> None:
        if message.retain:
            return
        received_us = self.time_us()
        with self._lock:
            match message.topic.removeprefix(self._topic("in/")):
                case "hello":
                    self._hello()
                case "ping":
                    times = {"received_us": received_us, "sent_us": self.time_us()}
                    token = int(message.payload)
                    self._say("pong", {"boot": self.boot, "token": token, "listening": False, **times})
                case "reset":
                    self.reset()
                case "text":
                    self._text(json.loads(message.payload))
                case "audio":
                    if self._random.random() >= self.drop_audio:
                        self._hear(bytes(message.payload))

    def _text(self, content: dict[str, object]) -> None:
        number, text = content["number"], content["text"]
        assert isinstance(number, int)
        if number == self.command + 1:
            self.command = number
            self.texts.append(str(text))
            self.event("response", text=f"You said {text}.")
        self._ack()

    def _hear(self, payload: bytes) -> None:
        encoding, _, first = struct.unpack_from("<BBQ", payload)
        if first == self.expected:
            samples = decode(Encoding(encoding), payload[10:])
            for place in np.flatnonzero(np.abs(samples.astype(np.int32)) > 16384):
                sample = first + int(place)
                if sample - self._last_click >= REFRACTORY:
                    self.wakes.append(sample)
                    self.event("wake", sample=sample, score=0.9, phrase="click")
                self._last_click = sample
            self.expected += len(samples)
        self._ack()

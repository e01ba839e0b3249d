"""A Hermes device over a real broker that is given sound, and tells what it makes of each query as a test wants it."""

from __future__ import annotations

import hashlib
import io
import json
import threading
from collections.abc import Sequence
from dataclasses import dataclass

import paho.mqtt.client as mqtt
import soundfile
from paho.mqtt.enums import CallbackAPIVersion

from tests.conformance.mqtt_bench import Broker
from tests.seen import until

SITE = "default"


@dataclass(frozen=True)
class Told:
    """An intent as it is published: a name, and slots; "" is published as intentNotRecognized."""

    name: str
    slots: tuple[tuple[str, str], ...] = ()


class HermesDevice:
    """Understands queries by number: the n-th different sound is answered as the n-th entry of `answers` says.

    An entry has what is told after each playing of that sound; the last of it stands for all further ones.
    played: the id of each playing, in order. told: that id → what was published after it, once the broker has it.
    """

    def __init__(self, broker: Broker, answers: Sequence[Sequence[Sequence[Told]]]) -> None:
        self.played: list[str] = []
        self.told: dict[str, tuple[Told, ...]] = {}
        self._answers = answers
        self._sounds: dict[str, int] = {}
        self._times: dict[str, int] = {}
        self._timers: list[threading.Timer] = []
        self.client = mqtt.Client(CallbackAPIVersion.VERSION2)
        self.client.on_message = self._message
        self.client.connect("127.0.0.1", broker.port)
        self.client.subscribe(f"hermes/audioServer/{SITE}/playBytes/+", 1)
        self.client.loop_start()
        until(self.client.is_connected)

    def close(self) -> None:
        for timer in self._timers:
            timer.cancel()
        self.client.disconnect()
        self.client.loop_stop()

    def _message(self, _: mqtt.Client, __: object, message: mqtt.MQTTMessage) -> None:
        samples, rate_hz = soundfile.read(io.BytesIO(message.payload), dtype="int16")
        play_id = message.topic.rpartition("/")[2]
        sha = hashlib.sha256(samples.tobytes()).hexdigest()
        number = self._sounds.setdefault(sha, len(self._sounds))
        answers = self._answers[number]
        time = self._times.get(sha, 0)
        self._times[sha] = time + 1
        self.played.append(play_id)
        timer = threading.Timer(len(samples) / rate_hz, self._heard, (play_id, answers[min(time, len(answers) - 1)]))
        self._timers.append(timer)
        timer.start()

    def _heard(self, play_id: str, answer: Sequence[Told]) -> None:
        messages = [self._say(f"hermes/audioServer/{SITE}/playFinished", {"id": play_id, "siteId": SITE})]
        for frame in answer:
            if not frame.name:
                messages.append(self._say("hermes/nlu/intentNotRecognized", {"input": "?", "siteId": SITE}))
                continue
            slots = [{"slotName": name, "value": {"kind": "Unknown", "value": value}} for name, value in frame.slots]
            intent = {"intentName": frame.name, "confidenceScore": 0.9}
            messages.append(
                self._say(f"hermes/intent/{frame.name}", {"siteId": SITE, "intent": intent, "slots": slots})
            )
        for one_said in messages:
            one_said.wait_for_publish(5)
        self.told[play_id] = tuple(answer)

    def _say(self, topic: str, content: dict[str, object]) -> mqtt.MQTTMessageInfo:
        return self.client.publish(topic, json.dumps(content), qos=1)

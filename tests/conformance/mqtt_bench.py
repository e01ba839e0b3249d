"""Brokers for the tests of the MQTT driver, each a real process on a free port of the loopback."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import threading
from pathlib import Path
from typing import Any, TypeVar

import paho.mqtt.client as mqtt
from paho.mqtt.enums import CallbackAPIVersion

from harness.base.child_process import python_command
from harness.devices.mqtt.device import MqttDevice
from harness.devices.mqtt.options import MqttOptions
from harness.model.bench import DeviceProfile, MessageMapping, ObservationKind
from harness.model.observation import DeviceState, Status, StimulusEnded, StimulusStarted, Wake
from tests.known import known
from tests.ports import free_port, listens
from tests.seen import Around, Seen, until

MAPPINGS = (
    MessageMapping("vh/{device}/wake", ObservationKind.WAKE, (("phrase", "/phrase"), ("score", "/score"))),
    MessageMapping("vh/{device}/transcript", ObservationKind.TRANSCRIPT, (("text", "/text"),)),
    MessageMapping("vh/{device}/response", ObservationKind.RESPONSE, (("text", "/text"),)),
    MessageMapping("vh/{device}/status", ObservationKind.STATUS, (("state", "/state"),)),
)
MAPPED = DeviceProfile("p", "p", "p.yaml", "0", ("Alexa",), mappings=MAPPINGS)
T = TypeVar("T")


RULES = ("allow_anonymous true", "set_tcp_nodelay true")


class Broker:
    """mosquitto, or the lab's embedded broker. With `with` it is started, and ended in any state."""

    def __init__(self, folder: Path, *rules: str, kind: str = "mosquitto") -> None:
        self.kind = kind
        self.folder = folder
        self.rules = rules or RULES
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Broker:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.process is not None:
            self.kill()

    def start(self) -> None:
        if self.kind == "mosquitto":
            config = self.folder / "mosquitto.conf"
            config.write_text("\n".join((f"listener {self.port} 127.0.0.1", *self.rules, "")), encoding="utf-8")
            arguments = ["mosquitto", "-c", str(config)]
        else:
            arguments = python_command(
                "harness.devices.mqtt.broker", "--outlive", str(self.folder / "port"), f"127.0.0.1:{self.port}"
            )
        with (self.folder / "broker.log").open("ab") as log:
            self.process = subprocess.Popen(arguments, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        until(lambda: listens(self.port), 20)

    def kill(self) -> None:
        process, self.process = known(self.process), None
        process.kill()
        process.wait()

    def freeze(self) -> None:
        known(self.process).send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        known(self.process).send_signal(signal.SIGCONT)


class Board:
    """A device that numbers its messages, as the lab's assistant does."""

    def __init__(self, broker: Broker, boot: str = "b1", device: str = "board") -> None:
        self.boot, self.device, self.seq = boot, device, 0
        self.client = mqtt.Client(CallbackAPIVersion.VERSION2)
        self.client.will_set(f"vh/{device}/status", json.dumps({"boot": boot, "state": "gone"}), qos=1)
        self.client.reconnect_delay_set(1, 1)
        self.client.connect("127.0.0.1", broker.port, keepalive=5)
        self.client.loop_start()
        until(self.client.is_connected)

    def say(self, topic: str, *, seq: int | None = None, retain: bool = False, **fields: object) -> None:
        self.seq = self.seq + 1 if seq is None else seq
        payload = json.dumps({"boot": self.boot, "seq": self.seq, **fields})
        self.client.publish(f"vh/{self.device}/{topic}", payload, qos=1, retain=retain).wait_for_publish(5)

    def say_raw(self, topic: str, payload: bytes) -> None:
        self.client.publish(f"vh/{self.device}/{topic}", payload, qos=1).wait_for_publish(5)

    def vanish(self) -> None:
        """As when its power fails: no goodbye."""
        connection = self.client.socket()
        assert isinstance(connection, socket.socket)
        self.client.on_disconnect = None
        threading.Thread(target=self.client.loop_stop, daemon=True).start()
        connection.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self.client.disconnect()
        self.client.loop_stop()


class Watch(Seen):
    """An open driver, and what it told; closed with `with`."""

    def __init__(self, folder: Path, profile: DeviceProfile = MAPPED, /, **options: Any) -> None:
        super().__init__()
        self.driver = MqttDevice("board", MqttOptions(**options), Around(folder, profile))
        self.driver.open(self)

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *_: object) -> None:
        self.driver.close()

    def states(self, state: DeviceState) -> list[Status]:
        return [status for status in self.of(Status) if status.state is state]

    def end(self, play_id: str, limit_s: float = 20.0) -> StimulusEnded:
        """Waits for it: the one end of that sound."""
        until(lambda: any(candidate.play_id == play_id for candidate in self.of(StimulusEnded)), limit_s)
        (end,) = (candidate for candidate in self.of(StimulusEnded) if candidate.play_id == play_id)
        return end

    def start(self, play_id: str) -> StimulusStarted:
        (start,) = (candidate for candidate in self.of(StimulusStarted) if candidate.play_id == play_id)
        return start

    def between(self, play_id: str, kind: type[T]) -> list[T]:
        """What was told between start and end of a sound."""
        first, last = self.all.index(self.start(play_id)), self.all.index(self.end(play_id))
        return [observation for observation in self.all[first:last] if isinstance(observation, kind)]

    def wakes_s(self, play_id: str) -> list[float]:
        """Where in its sound the device woke."""
        began_s = known(self.start(play_id).audio_s)
        return [known(wake.audio_s) - began_s for wake in self.between(play_id, Wake)]

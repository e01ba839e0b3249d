"""Brokers for the tests of the MQTT driver, each a real process on a free port of the loopback."""

from __future__ import annotations

import json
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import paho.mqtt.client as mqtt
from paho.mqtt.enums import CallbackAPIVersion

from harness.base.child_process import python
from harness.base.clocks import HostClock
from harness.devices.mqtt.device import MqttDevice
from harness.devices.mqtt.options import MqttOptions
from harness.model.bench import DeviceProfile, MessageMapping, ObservationKind
from harness.model.observation import Observation

MAPPINGS = (
    MessageMapping("vh/{device}/wake", ObservationKind.WAKE, (("phrase", "/phrase"), ("score", "/score"))),
    MessageMapping("vh/{device}/transcript", ObservationKind.TRANSCRIPT, (("text", "/text"),)),
    MessageMapping("vh/{device}/response", ObservationKind.RESPONSE, (("text", "/text"),)),
    MessageMapping("vh/{device}/status", ObservationKind.STATUS, (("state", "/state"),)),
)


def until(holds: Callable[[], object], limit_s: float = 10.0) -> None:
    deadline = time.monotonic() + limit_s
    while not holds():
        assert time.monotonic() < deadline, "it did not come in time"
        time.sleep(0.01)


class Broker:
    """mosquitto, or the lab's embedded broker."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind = kind
        self.folder = folder
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, *lines: str) -> None:
        if self.kind == "mosquitto":
            written = self.folder / "mosquitto.conf"
            rules = lines or ("allow_anonymous true",)
            written.write_text("\n".join((f"listener {self.port} 127.0.0.1", *rules, "")), encoding="utf-8")
            arguments = ["mosquitto", "-c", str(written)]
        else:
            arguments = python(
                "harness.devices.mqtt.broker", "--outlive", str(self.folder / "port"), f"127.0.0.1:{self.port}"
            )
        with (self.folder / "broker.log").open("ab") as log:
            self.process = subprocess.Popen(arguments, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        until(self._answers, 20)

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()
        self.process = None

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=0.2):
                return True
        except OSError:
            return False


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


@dataclass
class Around:
    """Surroundings of a driver in these tests."""

    folder: Path
    profile: DeviceProfile | None
    sound_server: str = "system"
    seed: int = 0

    @property
    def clock(self) -> HostClock:
        return HostClock()


def around(folder: Path) -> Around:
    profile = DeviceProfile("p", "p", "p.yaml", "0", ("Alexa",), mappings=MAPPINGS)
    return Around(folder, profile)


class Watch:
    """An open driver, and what it saw."""

    def __init__(self, folder: Path, **options: object) -> None:
        self.seen: list[Observation] = []
        self.driver = MqttDevice("board", MqttOptions(**options), around(folder))  # type: ignore[arg-type]
        self.driver.open(self.seen.append)

    def of(self, kind: type) -> list[Observation]:
        return [one for one in self.seen if isinstance(one, kind)]

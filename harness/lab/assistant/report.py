"""What the assistant tells over MQTT: `vh/<device>/{wake,transcript,intent,response,status,heartbeat}`, JSON, numbered.

`vh/<device>/state/<name>` is a piece of its state, and retained.

Every message has `boot` (a new one for each start), `seq` (from 1, over all topics but heartbeat), `time` (monotonic
seconds of its host). The last will on `status` says {"state": "gone"}.
"""

from __future__ import annotations

import json
import socket
import time
import uuid

import paho.mqtt.client as mqtt
from paho.mqtt.enums import CallbackAPIVersion

from harness.lab.assistant.settings import ReportKind
from harness.model.bench import PlainValue


class Reporter:
    """Publishes with QoS 1; what it says while the broker is away is sent when it is back. host "" reports nothing."""

    def __init__(self, device: str, reports: frozenset[ReportKind], host: str, port: int) -> None:
        self.boot = uuid.uuid4().hex[:12]
        self._device = device
        self._reports = reports if host else frozenset()
        self._seq = 0
        self._client: mqtt.Client | None = None
        if not self._reports:
            return
        client = mqtt.Client(CallbackAPIVersion.VERSION2, client_id=f"{device}-{self.boot}")
        if ReportKind.STATUS in self._reports:
            will = {"boot": self.boot, "state": "gone", "detail": "link lost"}
            client.will_set(self._topic(ReportKind.STATUS), json.dumps(will), qos=1)
        client.on_socket_open = _without_delay
        client.reconnect_delay_set(1, 5)
        client.connect_async(host, port, keepalive=5)
        client.loop_start()
        self._client = client

    def say(self, report: ReportKind, **fields: PlainValue) -> None:
        """Tells it, when it is one of the reports that are wanted."""
        if self._client is None or report not in self._reports:
            return
        self._seq += 1
        head: dict[str, PlainValue] = {"boot": self.boot, "seq": self._seq, "time": round(time.monotonic(), 4)}
        kept = report is ReportKind.STATE
        topic = f"{self._topic(report)}/{fields['name']}" if kept else self._topic(report)
        self._client.publish(topic, json.dumps({**head, **fields}), qos=1, retain=kept)

    def beat(self) -> None:
        """Tells that its ears are at work at this moment; lost when the broker is away, since it would be late."""
        if self._client is not None and ReportKind.HEARTBEAT in self._reports:
            told = {"boot": self.boot, "time": round(time.monotonic(), 4)}
            self._client.publish(self._topic(ReportKind.HEARTBEAT), json.dumps(told), qos=0)

    def connected(self, limit_s: float) -> bool:
        """Waits for the broker; True at once when nothing is to be reported."""
        deadline = time.monotonic() + limit_s
        while self._client is not None and not self._client.is_connected():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.02)
        return True

    def close(self) -> None:
        """Says goodbye (the last will is not sent) after what was said before."""
        if self._client is None:
            return
        self.say(ReportKind.STATUS, state="gone", detail="switched off")
        deadline = time.monotonic() + 1.0
        while self._client.want_write() and time.monotonic() < deadline:
            time.sleep(0.01)
        self._client.disconnect()
        self._client.loop_stop()

    def _topic(self, report: ReportKind) -> str:
        return f"vh/{self._device}/{report}"


def _without_delay(client: mqtt.Client, userdata: object, connection: object) -> None:
    del client, userdata
    # Small messages would wait 44 ms for one another.
    if isinstance(connection, socket.socket):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

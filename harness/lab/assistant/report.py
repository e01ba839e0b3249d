"""The assistant's reports over MQTT: `vh/<device>/{wake,transcript,intent,response,status,heartbeat}`, as JSON.

`vh/<device>/state/<name>` has one value of its state, as a retained message.

Every message has `boot` (new at each start), `seq` (from 1, over all topics but heartbeat) and `time` (monotonic
seconds of its host). The last will on `status` is {"state": "gone"}.
"""

from __future__ import annotations

import json
import socket
import time
import uuid

import paho.mqtt.client as mqtt
from paho.mqtt.enums import CallbackAPIVersion

from harness.base.child_process import wait_until
from harness.lab.assistant.settings import ReportKind
from harness.model.bench import PlainValue


class Reporter:
    """Publishes reports with QoS 1. They wait while the broker is not reachable."""

    def __init__(self, device: str, reports: frozenset[ReportKind], host: str, port: int) -> None:
        """Connects in the background.

        - device: name in topics.
        - reports: kinds to publish.
        - host: "" publishes nothing.
        """
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
        client.on_socket_open = _disable_send_delay
        client.reconnect_delay_set(1, 5)
        client.connect_async(host, port, keepalive=5)
        client.loop_start()
        self._client = client

    def publish(self, report: ReportKind, **fields: PlainValue) -> None:
        """Publishes a report if the settings include its kind."""
        if self._client is None or report not in self._reports:
            return
        self._seq += 1
        head: dict[str, PlainValue] = {"boot": self.boot, "seq": self._seq, "time": round(time.monotonic(), 4)}
        is_retained = report is ReportKind.STATE
        topic = f"{self._topic(report)}/{fields['name']}" if is_retained else self._topic(report)
        self._client.publish(topic, json.dumps({**head, **fields}), qos=1, retain=is_retained)

    def publish_heartbeat(self) -> None:
        """Publishes a heartbeat. It is lost while the broker is not reachable, since a late one would be wrong."""
        if self._client is not None and ReportKind.HEARTBEAT in self._reports:
            heartbeat = {"boot": self.boot, "time": round(time.monotonic(), 4)}
            self._client.publish(self._topic(ReportKind.HEARTBEAT), json.dumps(heartbeat), qos=0)

    def wait_connected(self, limit_s: float) -> bool:
        """Waits for the broker. Returns whether it is connected; True at once if there is nothing to report."""
        client = self._client
        return client is None or wait_until(client.is_connected, limit_s)

    def close(self) -> None:
        """Sends what waits, for up to 1 s, then disconnects cleanly, so that the last will is not sent."""
        client = self._client
        if client is None:
            return
        self.publish(ReportKind.STATUS, state="gone", detail="switched off")
        wait_until(lambda: not client.want_write(), 1.0)
        client.disconnect()
        client.loop_stop()

    def _topic(self, report: ReportKind) -> str:
        return f"vh/{self._device}/{report}"


def _disable_send_delay(client: mqtt.Client, userdata: object, connection: object) -> None:
    del client, userdata
    # Otherwise small messages wait 44 ms for each other.
    if isinstance(connection, socket.socket):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

"""Stands and power switches at an MQTT broker: a message for each order, and a message when it is done."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar

from harness.base import threads
from harness.base.host_check import Check, check_each
from harness.base.ports import Sink, Surroundings
from harness.devices.mqtt.link import BrokerLink, LinkEvents
from harness.devices.mqtt.options import EMBEDDED, MqttOptions, password
from harness.devices.orders import OrderAnswers
from harness.devices.wire.mappings import FILTER_REMEDY, is_topic_filter
from harness.model.errors import DeviceError, InputError
from harness.model.frozen import frozen
from harness.model.positioners import BenchOrder, filled
from harness.model.time import Stamp

_MAX_MESSAGE_BYTES = 4096
_ACKNOWLEDGE_LIMIT_S = 5.0  # Chosen: a broker that has not acknowledged a message by then is not running.


@frozen
class MqttCommandOptions:
    """Files are relative to the working folder, and ~ is the home folder.

    - address: Broker: lab, host or host:port.
    - topic: Topic of the orders. It may contain {value}.
    - done_topic: Topic on which the far end reports. Empty: it does not report.
    - username: User name for the broker.
    - password_env: Name of the environment variable that holds the password.
    - tls: Encrypt, and check the certificate. Any of the three files implies TLS.
    - ca_file: PEM file of the authority that signed the broker's certificate. Default: the system's authorities.
    - cert_file: PEM file with a client certificate, if the broker requires one.
    - key_file: PEM file with the key of `cert_file`.
    """

    CONFIRMED_BY: ClassVar[str] = "done_topic"

    address: str
    topic: str
    done_topic: str = ""
    username: str = ""
    password_env: str = ""
    tls: bool = False
    ca_file: str = ""
    cert_file: str = ""
    key_file: str = ""

    def __post_init__(self) -> None:
        if self.address == EMBEDDED:
            raise InputError(
                "a stand or switch cannot find the embedded broker, whose port changes",
                remedy="Use the `host:port` of a permanent broker",
            )
        if not self.topic or set(self.topic) & set("+#"):
            raise InputError(
                f"the topic {self.topic!r} is not a single topic", remedy="Use a topic such as cmnd/plug/POWER"
            )
        if self.done_topic and not is_topic_filter(self.done_topic):
            raise InputError(f"done_topic: {self.done_topic!r} is not an MQTT filter", remedy=FILTER_REMEDY)
        _ = self.broker  # raises InputError for a wrong address or key

    @property
    def broker(self) -> MqttOptions:
        """How to reach the broker, as an MQTT connection names it."""
        return MqttOptions(
            self.address,
            self.username,
            self.password_env,
            tls=self.tls,
            ca_file=self.ca_file,
            cert_file=self.cert_file,
            key_file=self.key_file,
        )


class MqttCommands:
    """Publishes each order (QoS 1), and compares each message of `done_topic`, except retained ones."""

    Options = MqttCommandOptions

    def __init__(self, id: str, options: MqttCommandOptions, surroundings: Surroundings) -> None:
        self.id = id
        self._options = options
        self._messages: queue.SimpleQueue[str] = threads.simple_queue()
        self._lock = threads.lock()
        events = LinkEvents(up=lambda: None, down=lambda why: None, message=self._on_message, remark=lambda text: None)
        topics = (options.done_topic,) if options.done_topic else ()
        self._link = BrokerLink(id, options.broker, surroundings.clock, Path(), topics, events)

    @staticmethod
    def demand_host(options: MqttCommandOptions) -> None:
        """Raises InputError when the password's environment variable is not set."""
        password(options.broker)

    @staticmethod
    def host_checks(connections: Sequence[tuple[str, MqttCommandOptions]]) -> Iterator[Check]:
        """Checks a connection to each broker."""
        from harness.devices.mqtt.device import reach_broker  # here, since it takes long to import

        return check_each("broker", ((id, options.broker) for id, options in connections), reach_broker)

    def open(self, sink: Sink) -> None:
        """Raises DeviceError if the broker cannot be used."""
        self._link.open()

    def close(self) -> None:
        self._link.close()

    def carry_out(self, order: BenchOrder, given_up: threading.Event) -> None:
        """Sends an order, and waits until it is done; without `done_topic`, until the broker has the message."""
        with self._lock:
            while not self._messages.empty():  # they belong to no order, or to an earlier one
                self._messages.get()
            answers = OrderAnswers(order, given_up)
            topic = filled(self._options.topic, order.value)
            try:
                self._link.deliver(topic, order.text.encode(), min(order.within_s, _ACKNOWLEDGE_LIMIT_S))
            except DeviceError as error:
                raise DeviceError(f"{order.words}: {error.what}", remedy="Check that the broker is running") from error
            if self._options.done_topic:
                answers.wait(self._messages)

    def _on_message(self, topic: str, payload: bytes, stamp: Stamp, retained: bool) -> None:
        if not retained:
            self._messages.put(payload[:_MAX_MESSAGE_BYTES].decode("utf-8", "replace"))

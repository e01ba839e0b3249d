"""A device that reports over MQTT: what its profile's mappings make of its messages, while the link holds."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import paho.mqtt.client as mqtt
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode

from harness.drivers.mqtt.numbering import Numbering
from harness.drivers.mqtt.pulse import Pulse
from harness.model.bench import MessageMapping
from harness.model.errors import DeviceError, InputError, LabError
from harness.model.observation import DeviceState, LinkBack, LinkLost, LogLine, Observation, Status
from harness.model.time import Stamp
from harness.places import lab_state
from harness.ports import Sink, Surroundings
from harness.wire.mappings import MAX_PAYLOAD_BYTES, Unmapped, observations, parse

T = TypeVar("T")
DEFAULT_PORT = 1883
_OPEN_LIMIT_S = 5.0
_BACK_OFF_S = (0.2, 3.0)


@dataclass(frozen=True, slots=True)
class MqttOptions:
    """How the broker is reached.

    address: "lab" (the virtual lab's broker), "host" or "host:port". password_env: environment variable that holds
    the password. client_id: "" makes one up. keepalive_s: a broker that does not answer for so long is lost.
    topic_device: what stands for {device} in the profile's topics, when it is not the device's id on the bench.
    """

    address: str
    username: str = ""
    password_env: str = ""
    client_id: str = ""
    keepalive_s: float = 4.0
    topic_device: str = ""

    def __post_init__(self) -> None:
        _host_and_port(self.address)
        if not 1.0 <= self.keepalive_s <= 600.0:
            raise InputError(f"keepalive_s is {self.keepalive_s:g}", remedy="Choose from 1 to 600")


class MqttDevice:
    """Observes. Messages count from `open` on: what a broker kept from before (retained) is no event of now."""

    Options: ClassVar[type] = MqttOptions

    def __init__(self, id: str, options: MqttOptions, surroundings: Surroundings) -> None:
        self.id = id
        self.retained = 0
        self.duplicates = 0
        self.too_long = 0
        self._options = options
        self._surroundings = surroundings
        device = options.topic_device or id
        profile = surroundings.profile
        self._mappings = tuple(
            MessageMapping(m.topic.replace("{device}", device), m.kind, m.fields, m.values, m.when)
            for m in (profile.mappings if profile is not None else ())
        )
        self._numbering = Numbering()
        self._sink: Sink | None = None
        self._client: mqtt.Client | None = None
        self._pulse: Pulse | None = None
        self._subscribed = threading.Event()
        self._answered = threading.Event()
        self._refusal = ""
        self._link_is_lost = False
        self._lock = threading.Lock()
        self._closing = False

    @property
    def acknowledged(self) -> int:
        """How many pulses the broker has answered since `open`: a sign of life for those who watch."""
        return self._pulse.count if self._pulse is not None else 0

    def open(self, sink: Sink) -> None:
        """Returns when every topic is subscribed to; DeviceError when the broker does not answer or refuses."""
        host, port = self._address()
        client = mqtt.Client(
            CallbackAPIVersion.VERSION2,
            client_id=self._options.client_id or f"harness-{self.id}-{uuid.uuid4().hex[:8]}",
        )
        if self._options.username:
            client.username_pw_set(self._options.username, self._password())
        client.reconnect_delay_set(*_BACK_OFF_S)  # type: ignore[arg-type]  # fractions of a second work as well
        client.on_socket_open = self._guarded(_without_delay)
        client.on_connect = self._guarded(self._connected)
        client.on_disconnect = self._guarded(self._disconnected)
        client.on_connect_fail = self._guarded(lambda client, _: self._follow_the_lab(client))
        client.on_subscribe = self._guarded(self._taken)
        client.on_publish = self._guarded(self._published)
        client.on_message = self._guarded(self._message)
        self._sink, self._client, self._closing = sink, client, False
        self._link_is_lost = False
        self._refusal = ""
        self._subscribed.clear()
        self._answered.clear()
        self._pulse = Pulse(client, self._surroundings.clock.now_s, self._options.keepalive_s, self._frozen)
        try:
            client.connect_timeout = _OPEN_LIMIT_S
            client.connect(host, port, keepalive=max(2, round(self._options.keepalive_s)))
        except OSError as error:
            self._client = None
            raise self._unreachable(host, port, str(error)) from error
        client.loop_start()
        self._answered.wait(_OPEN_LIMIT_S)
        if not self._subscribed.is_set():
            why = self._refusal or "it takes the connection, but does not answer"
            self.close()
            raise self._unreachable(host, port, why)
        self._pulse.start()

    def close(self) -> None:
        """Ends the connection and its threads, in any state."""
        self._closing = True
        pulse, self._pulse = self._pulse, None
        if pulse is not None:
            pulse.stop()
        client, self._client = self._client, None
        if client is None:
            return
        client.disconnect()
        # A frozen broker keeps the network thread in a write only if buffers are full: it ends with the socket.
        client.loop_stop()
        self._sink = None

    def _address(self) -> tuple[str, int]:
        if self._options.address == "lab":
            state = lab_state()
            return state.mqtt_host, state.mqtt_port
        return _host_and_port(self._options.address)

    def _password(self) -> str | None:
        name = self._options.password_env
        if not name:
            return None
        if name not in os.environ:
            raise DeviceError(
                f"the environment has no {name}, which is to hold the password", remedy=f"export {name}=…"
            )
        return os.environ[name]

    def _unreachable(self, host: str, port: int, why: str) -> DeviceError:
        remedy = "Check `address`, user and password of the connection, and that the broker runs"
        if self._options.address == "lab":
            remedy = "See what is wrong with it: harness lab status; bring back what is missing: harness lab up"
        return DeviceError(
            f"{self.id}: the MQTT broker at {host}:{port} cannot be used: {why}",
            remedy=remedy,
        )

    def _guarded(self, callback: Callable[..., T]) -> Callable[..., T | None]:
        """The callback with a net under it: an exception would end paho's thread while it still looks connected."""

        def guarded(*arguments: Any) -> T | None:
            try:
                return callback(*arguments)
            except Exception as error:  # noqa: BLE001 - told to the session; the thread must live
                self._tell(LogLine(self.id, self._now(), f"a message could not be taken: {error!r}"))
                return None

        return guarded

    def _connected(
        self, client: mqtt.Client, _: object, __: object, reason: ReasonCode, ___: Properties | None
    ) -> None:
        if reason.is_failure:
            self._refusal = f"it refuses: {reason}"
            self._answered.set()
            if self._subscribed.is_set():
                self._tell(LogLine(self.id, self._now(), f"the broker refuses the connection: {reason}"))
            return
        # Again after every reconnection: a broker that was killed has forgotten us.
        topics = sorted({mapping.topic for mapping in self._mappings})
        if topics:
            client.subscribe([(topic, 1) for topic in topics])
        else:
            self._arrived()

    def _taken(self, _: mqtt.Client, __: object, ___: int, reasons: list[ReasonCode], ____: Properties | None) -> None:
        refused = [str(reason) for reason in reasons if reason.is_failure]
        if refused:
            self._refusal = f"it refuses a subscription: {refused[0]}"
            self._answered.set()
            if self._subscribed.is_set():
                self._tell(LogLine(self.id, self._now(), self._refusal))
            return
        self._arrived()

    def _arrived(self) -> None:
        self._subscribed.set()
        self._answered.set()
        if self._pulse is not None:
            self._pulse.revive()
        with self._lock:
            back, self._link_is_lost = self._link_is_lost, False
        if back:
            self._tell(LinkBack(self.id, self._now()))

    def _follow_the_lab(self, client: mqtt.Client) -> None:
        """A lab that was ended and started again may have its broker at another port."""
        if self._options.address != "lab" or self._closing:
            return
        with contextlib.suppress(LabError):  # not up again yet: the next try asks again
            if (address := self._address()) != (client.host, client.port):
                client.connect_async(*address, keepalive=client.keepalive)

    def _disconnected(
        self, client: mqtt.Client, __: object, ___: object, reason: ReasonCode, ____: Properties | None
    ) -> None:
        if self._pulse is not None:
            self._pulse.lose()
        self._lose(f"the connection to the broker is gone: {reason}")
        self._follow_the_lab(client)

    def _frozen(self, silent_s: float) -> None:
        self._lose(f"the broker has not answered for {silent_s:.1f} s")
        client = self._client
        connection = client.socket() if client is not None else None
        if isinstance(connection, socket.socket):
            # Makes paho's thread see the loss and connect again; its own keepalive would take twice as long.
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def _lose(self, what: str) -> None:
        with self._lock:
            if self._link_is_lost or self._closing or not self._subscribed.is_set():
                return
            self._link_is_lost = True
        self._tell(LinkLost(self.id, self._now(), what))

    def _published(self, _: mqtt.Client, __: object, number: int, *___: object) -> None:
        if self._pulse is not None:
            self._pulse.answered(number)

    def _message(self, _: mqtt.Client, __: object, message: mqtt.MQTTMessage) -> None:
        error_s = self._pulse.error_s if self._pulse is not None else 0.05
        at = Stamp(self._surroundings.clock.now_s(), error_s)
        if message.retain:
            self.retained += 1
            return
        payload = bytes(message.payload)
        if len(payload) > MAX_PAYLOAD_BYTES:
            self.too_long += 1
            self._tell(LogLine(self.id, at, f"{message.topic}: {len(payload)} bytes are too many"))
            return
        seen = observations(self._mappings, message.topic, payload, at, self.id)
        for observation in self._numbered(payload, at, seen):
            self._tell(observation)

    def _numbered(self, payload: bytes, at: Stamp, seen: tuple[Observation, ...]) -> tuple[Observation, ...]:
        """Without what came twice, and with what the numbers tell beside it."""
        try:
            judged = self._numbering.judge(parse(payload))
        except Unmapped:
            return seen
        if judged.duplicate:
            self.duplicates += 1
            return ()
        told: list[Observation] = []
        says_so = any(isinstance(one, Status) and one.state in (DeviceState.STARTED, DeviceState.GONE) for one in seen)
        if judged.rebooted and not says_so:
            told.append(Status(self.id, at, DeviceState.STARTED, "its boot id changed"))
        if judged.missing:
            told.append(LogLine(self.id, at, f"{judged.missing} of its messages are missing before this one"))
        return (*told, *seen)

    def _tell(self, observation: Observation) -> None:
        sink = self._sink
        if sink is not None and not self._closing:
            sink(observation)

    def _now(self) -> Stamp:
        return Stamp(self._surroundings.clock.now_s())


def _host_and_port(address: str) -> tuple[str, int]:
    """InputError for what is no address of a broker."""
    host, colon, port = address.rpartition(":")
    if not colon and address:
        return address, DEFAULT_PORT
    if not host or not (port.isascii() and port.isdecimal()) or not 0 < int(port) < 65536:
        raise InputError(f"{address!r} is no address of a broker", remedy="Write `lab`, `host` or `host:port`")
    return host.strip("[]"), int(port)


def _without_delay(_: mqtt.Client, __: object, connection: object) -> None:
    # Small messages would wait 44 ms for one another.
    if isinstance(connection, socket.socket):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

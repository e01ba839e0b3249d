"""Far ends in simulated time: a byte stream as a serial port or a text stream, and a broker with paho's client.

What drivers do above the port and above the client is the product itself. Nothing here waits in a call of the world:
bytes and packets arrive in buffers, and threads of the drivers take them from there.
"""

from __future__ import annotations

import functools
import itertools
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, cast

import paho.mqtt.client as mqtt
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.reasoncodes import ReasonCode

from harness.base import threads
from harness.base.ports import Surroundings
from harness.base.simulated_threads import SimulatedThreads
from harness.devices.mqtt.device import MqttDevice
from harness.devices.serial.device import SerialDevice
from harness.devices.serial.port import OpenPort, PortLost
from harness.devices.text_streams import TextStream, TextStreamOptions
from harness.model.errors import DeviceError


class TakesBytes(Protocol):
    """A device behind a port. It answers with the port's `send`."""

    def takes(self, data: bytes) -> None: ...


class SimulatedPort:
    """A port with a device behind it. Bytes take their time on the line, and those that nobody has open are lost.

    full: the port takes no more bytes. byte_s: a byte's time on the line.
    """

    def __init__(self, world: SimulatedThreads, device: TakesBytes, *, baud: int = 115200) -> None:
        self._world, self._device = world, device
        self._byte_s = 10 / baud
        self._arrived = b""
        self._free_s = self._taken_s = 0.0
        self._plugged, self._opened = True, False
        self.full = False

    @property
    def heard(self) -> bool:
        """Whether somebody reads what the device writes."""
        return self._plugged and self._opened

    # For the device and for faults

    def send(self, data: bytes, at_s: float) -> float:
        """The device writes at that time, or when what it wrote before has left; when the last byte arrives."""
        self._free_s = arrives_s = max(self._free_s, at_s) + len(data) * self._byte_s
        self._world.call_at(arrives_s, lambda: self._arrive(data))
        return arrives_s

    def unplug(self) -> None:
        self._plugged = False

    def plug(self) -> None:
        self._plugged = True

    # For a driver: as OpenPort, and as FarEnd

    def open(self) -> SimulatedPort:
        """DeviceError when it is not there, or already open."""
        if not self._plugged or self._opened:
            raise DeviceError("the simulated port cannot be opened")
        self._opened, self._arrived = True, b""
        return self

    def fileno(self) -> int:
        return -1

    def has_bytes(self) -> bool:
        return bool(self._arrived) or not self._plugged

    def has_room(self) -> bool:
        return not self.full

    def read(self) -> bytes:
        """What has arrived. PortLost when it is unplugged, even before what it had is read."""
        if not self._plugged:
            raise PortLost("its port is gone (unplugged, or without power): simulated")
        data, self._arrived = self._arrived, b""
        return data

    def write(self, data: bytes) -> int:
        if not self.heard:
            raise PortLost("its port is gone (unplugged, or without power): simulated")
        if self.full:
            return 0
        self._taken_s = max(self._taken_s, self._world.monotonic()) + len(data) * self._byte_s
        self._world.call_at(self._taken_s, lambda: self._device.takes(data))
        return len(data)

    def close(self) -> None:
        self._opened = False

    def _arrive(self, data: bytes) -> None:
        if self._opened and self._plugged:
            self._arrived += data


class _SerialEnd:
    """A port that a process has open. killed: the kernel has closed it, and nothing passes any more."""

    def __init__(self, port: SimulatedPort) -> None:
        self._port = port.open()
        self.killed = False

    def has_bytes(self) -> bool:
        return not self.killed and self._port.has_bytes()

    def has_room(self) -> bool:
        return not self.killed and self._port.has_room()

    def close(self) -> None:
        if not self.killed:
            self._port.close()

    def read(self) -> bytes:
        self._check()
        return self._port.read()

    def write(self, data: bytes) -> int:
        self._check()
        return self._port.write(data)

    def _check(self) -> None:
        if self.killed:
            raise PortLost("the process was killed")


class SimulatedSerial(SerialDevice):
    """The serial driver, on such a port."""

    def __init__(self, id: str, options: Any, surroundings: Surroundings, port: SimulatedPort) -> None:
        super().__init__(id, options, surroundings)
        self._far_end: SimulatedPort | None = port
        self._end: _SerialEnd | None = None

    def connect(self, usb_serial: str = "") -> OpenPort:
        if self._far_end is None:
            raise DeviceError("the process was killed")
        self._end = _SerialEnd(self._far_end)
        return cast(OpenPort, self._end)

    def killed(self) -> None:
        """Its process is no more: the kernel closes the port, and nothing reaches the device."""
        if self._far_end is not None:
            self._far_end.close()
        if self._end is not None:
            self._end.killed = True
        self._far_end = None


class _TextEnd:
    """A port whose end is an empty read."""

    def __init__(self, port: SimulatedPort) -> None:
        self._port = port
        self.fileno, self.close, self.has_bytes, self.has_room = port.fileno, port.close, port.has_bytes, port.has_room

    def read(self) -> bytes:
        try:
            return self._port.read()
        except PortLost:
            return b""

    def write(self, data: bytes) -> None:
        self._port.write(data)

    def end_reason(self) -> str:
        return "simulated: the device closed the connection"


class SimulatedText(TextStream):
    """The driver of text streams, on such a port."""

    Options: ClassVar[type] = TextStreamOptions

    def __init__(self, id: str, options: Any, surroundings: Surroundings, port: SimulatedPort) -> None:
        super().__init__(id, options, surroundings)
        self._port = port

    def connect(self) -> _TextEnd:
        return _TextEnd(self._port.open())


# MQTT


@dataclass
class Message:
    """A message at the broker."""

    topic: str
    payload: bytes
    qos: int = 0
    retain: bool = False


class _Connection:
    """Packets in both directions, each in their order. What is on its way when it breaks is lost.

    inbox: where the client's end runs what arrives. receive: takes a message's number, and the message.
    """

    def __init__(
        self,
        broker: SimulatedBroker,
        inbox: Callable[[Callable[[], object]], object],
        receive: Callable[[int, Message], object],
        broken: Callable[[], object],
        will: Message | None = None,
    ) -> None:
        self._broker, self._inbox, self._broken = broker, inbox, broken
        self._free_s = {True: 0.0, False: 0.0}
        self.receive, self.will = receive, will
        self.open = True
        broker.connections = [*(connection for connection in broker.connections if connection.open), self]

    def up(self, packet: Callable[[], object]) -> None:
        """To the broker."""
        self._travel(True, lambda: self._broker.serve(packet))

    def down(self, packet: Callable[[], object]) -> None:
        """To the client."""
        self._travel(False, lambda: self._inbox(packet))

    def _travel(self, up: bool, arrive: Callable[[], object]) -> None:
        world = self._broker.world
        self._free_s[up] = max(self._free_s[up], world.monotonic() + self._broker.way_s())
        world.call_at(self._free_s[up], lambda: self.open and arrive())

    def shutdown(self, _: int = 0) -> None:
        """It breaks, as a socket does: both ends notice."""
        if self.open:
            self.open = False
            self._inbox(self._broken)
            self._broker.serve(lambda: self._broker.lost(self))


@dataclass
class _Session:
    """What a broker keeps of a client. unacknowledged: in the order of sending."""

    clean: bool
    topics: dict[str, int] = field(default_factory=dict)
    unacknowledged: dict[int, Message] = field(default_factory=dict)
    connection: _Connection | None = None


class SimulatedBroker:
    """A broker in memory: QoS 0 and 1 with redelivery, retained messages, last wills, persistent sessions.

    way_s: draws how long a packet travels. `client` stands for paho's class, `peer` is for scripted devices.
    """

    def __init__(self, world: SimulatedThreads, way_s: Callable[[], float] = lambda: 0.002) -> None:
        self.world, self.way_s = world, way_s
        self.running = True
        self._frozen = False
        self._held: list[Callable[[], object]] = []
        self._sessions: dict[str, _Session] = {}
        self._retained: dict[str, Message] = {}
        self._numbers = itertools.count(1)
        self.connections: list[_Connection] = []
        """Those that are open, whether or not the broker has accepted them."""
        self.dead: set[str] = set()
        """Clients whose process was killed; they cannot connect."""

    def client(self, _: object, client_id: str, clean_session: bool) -> mqtt.Client:
        return cast(mqtt.Client, SimulatedClient(self, client_id, clean=clean_session))

    def peer(self, name: str, will: Message | None = None) -> Peer:
        return Peer(self, name, will)

    # Faults

    def freeze(self) -> None:
        """It stops, and its connections stay."""
        self._frozen = True

    def thaw(self) -> None:
        self._frozen = False
        packets, self._held = self._held, []
        for packet in packets:
            packet()

    def kill(self) -> None:
        """It ends, and forgets everything. `start` starts another one."""
        self._sessions, self._retained, self._held = {}, {}, []
        self.running = self._frozen = False
        for connection in self.connections:
            connection.shutdown()

    def start(self) -> None:
        self.running = True

    def cut(self, name: str) -> None:
        """Breaks the connections of clients whose name begins so."""
        for client_id, session in list(self._sessions.items()):
            if client_id.startswith(name) and session.connection is not None:
                session.connection.shutdown()

    def bury(self, name: str) -> None:
        """The process of the clients whose name begins so was killed."""
        self.dead |= {client_id for client_id in self._sessions if client_id.startswith(name)}
        self.cut(name)

    # Packets that have arrived

    def serve(self, packet: Callable[[], object]) -> None:
        if self._frozen:
            self._held.append(packet)
        elif self.running:
            packet()

    def connect(self, name: str, connection: _Connection, *, clean: bool, accept: Callable[[], object]) -> None:
        session = self._sessions.get(name)
        if session is None or clean or session.clean:
            session = self._sessions[name] = _Session(clean)
        session.connection = connection
        connection.down(accept)
        for number, message in session.unacknowledged.items():
            self._deliver(session, number, message)

    def lost(self, connection: _Connection) -> None:
        for name, session in list(self._sessions.items()):
            if session.connection is connection:
                session.connection = None
                if session.clean:
                    del self._sessions[name]
                if connection.will is not None:
                    self.publish(connection.will)

    def subscribe(self, name: str, topics: list[tuple[str, int]]) -> None:
        session = self._sessions[name]
        session.topics.update(topics)
        for topic, qos in topics:
            for message in list(self._retained.values()):
                if _matches(topic, message.topic):
                    self._pass_on(session, Message(message.topic, message.payload, min(qos, message.qos), retain=True))

    def publish(self, message: Message) -> None:
        if message.retain:
            self._retained[message.topic] = message
            if not message.payload:
                del self._retained[message.topic]
        for session in list(self._sessions.values()):
            granted = [qos for topic, qos in session.topics.items() if _matches(topic, message.topic)]
            if granted:
                self._pass_on(session, Message(message.topic, message.payload, min(max(granted), message.qos)))

    def acknowledge(self, name: str, number: int) -> None:
        if name in self._sessions:
            self._sessions[name].unacknowledged.pop(number, None)

    def _pass_on(self, session: _Session, message: Message) -> None:
        number = next(self._numbers)
        if message.qos:
            session.unacknowledged[number] = message
        self._deliver(session, number, message)

    def _deliver(self, session: _Session, number: int, message: Message) -> None:
        if (connection := session.connection) is not None:
            connection.down(lambda: connection.receive(number, message))


_matches = functools.lru_cache(mqtt.topic_matches_sub)
_reason = functools.lru_cache(ReasonCode)


class Peer:
    """A scripted device's connection. hears: called with topic and payload of what it has subscribed to."""

    def __init__(self, broker: SimulatedBroker, name: str, will: Message | None) -> None:
        self._broker, self._name, self._will = broker, name, will
        self.hears: Callable[[str, bytes], object] = lambda topic, payload: None
        self.connect()

    def connect(self) -> None:
        """Again after it was lost; the broker does not know it from before."""

        def receive(_: int, message: Message) -> None:
            if connection is self._connection:
                self.hears(message.topic, message.payload)

        connection = self._connection = _Connection(
            self._broker, lambda call: call(), receive, lambda: None, self._will
        )
        connection.up(lambda: self._broker.connect(self._name, connection, clean=True, accept=lambda: None))

    def subscribe(self, *topics: str) -> None:
        self._connection.up(lambda: self._broker.subscribe(self._name, [(topic, 0) for topic in topics]))

    def say(self, topic: str, payload: bytes, qos: int = 1, *, retain: bool = False) -> None:
        self._connection.up(lambda: self._broker.publish(Message(topic, payload, qos, retain)))

    def vanish(self, noticed_after_s: float = 0.0) -> None:
        """It loses its power; the broker notices by its keepalive, and publishes the will."""
        connection = self._connection
        connection.open = False
        world = self._broker.world
        world.call_at(
            world.monotonic() + noticed_after_s, lambda: self._broker.serve(lambda: self._broker.lost(connection))
        )


class _Published:
    """As `mqtt.MQTTMessageInfo`."""

    def __init__(self, number: int) -> None:
        self.mid = number
        self.done = threads.event()
        self.wait_for_publish, self.is_published = self.done.wait, self.done.is_set


class SimulatedClient:
    """As `mqtt.Client`, as far as `BrokerLink` uses it: callbacks come from a thread of its own, `loop_start`."""

    def __init__(self, broker: SimulatedBroker, client_id: str, *, clean: bool) -> None:
        self._broker, self._name, self._clean = broker, client_id, clean
        self._client_id = client_id.encode()
        self._inbox = threads.simple_queue()
        self._ending = threads.event()
        self._connection: _Connection | None = None
        self._connected = False
        self._unacknowledged: dict[int, tuple[Message, _Published]] = {}
        self._numbers = itertools.count(1)
        self._least_s, self._most_s = 1.0, 120.0
        self._back_off_s = 1.0
        self._thread: threading.Thread | None = None
        self.host, self.port, self.keepalive, self.connect_timeout = "", 0, 60, 5.0
        self.on_connect = self.on_disconnect = self.on_connect_fail = self.on_subscribe = _nothing
        self.on_publish = self.on_message = self.on_socket_open = _nothing

    def username_pw_set(self, username: str, password: str | None = None) -> None:
        """Everybody may connect."""

    def reconnect_delay_set(self, min_s: float, max_s: float) -> None:
        self._least_s = self._back_off_s = min_s
        self._most_s = max_s

    def connect_async(self, host: str, port: int, keepalive: int = 60) -> None:
        self.host, self.port, self.keepalive = host, port, keepalive

    def connect(self, host: str, port: int, keepalive: int = 60) -> None:
        self.connect_async(host, port, keepalive)
        self._reach()

    def disconnect(self) -> None:
        self._ending.set()
        connection = self._connection
        if connection is not None:
            connection.will = None
            connection.up(lambda: self._broker.lost(connection))
        self._inbox.put(lambda: None)

    def loop_start(self) -> None:
        self._thread = threads.thread(self.loop_forever, name="simulated-mqtt")
        self._thread.start()

    def loop_stop(self) -> None:
        if self._thread is not None:
            self._thread.join()

    def loop_forever(self) -> None:
        while not self._ending.is_set():
            self._inbox.get()()
            if self._connection is None or not self._connection.open:
                self._reconnect()

    def is_connected(self) -> bool:
        return self._connected

    def socket(self) -> _Connection | None:
        return self._connection

    def subscribe(self, topics: list[tuple[str, int]]) -> None:
        number = next(self._numbers)
        granted = [_reason(PacketTypes.SUBACK, f"Granted QoS {qos}") for _, qos in topics]

        if (connection := self._connection) is None:
            return

        def take(connection: _Connection = connection) -> None:
            connection.down(lambda: self.on_subscribe(self, None, number, granted, None))
            self._broker.subscribe(self._name, topics)

        connection.up(take)

    def publish(self, topic: str, payload: bytes, qos: int = 0, retain: bool = False) -> _Published:
        published = _Published(next(self._numbers))
        message = Message(topic, payload, qos, retain)
        if qos:
            self._unacknowledged[published.mid] = message, published
        if self._connected:
            self._send(published.mid, message)
            if not qos:
                self._inbox.put(lambda: self._published(published))
        return published

    def _send(self, number: int, message: Message) -> None:
        if (connection := self._connection) is None:
            return

        def take(connection: _Connection = connection) -> None:
            self._broker.publish(message)
            if message.qos:
                connection.down(lambda: self._taken(number))

        connection.up(take)

    def _taken(self, number: int) -> None:
        if number in self._unacknowledged:
            _, published = self._unacknowledged.pop(number)
            self._published(published)

    def _published(self, published: _Published) -> None:
        published.done.set()
        self.on_publish(self, None, published.mid, _reason(PacketTypes.PUBACK, "Success"), None)

    def _reach(self) -> None:
        """OSError when nobody listens."""
        threads.sleep(2 * self._broker.way_s())
        if not self._broker.running or self._name in self._broker.dead:
            raise ConnectionRefusedError("nobody listens")

        def receive(number: int, message: Message) -> None:
            arrived = mqtt.MQTTMessage(number, message.topic.encode())
            arrived.payload, arrived.qos, arrived.retain = message.payload, message.qos, message.retain
            self.on_message(self, None, arrived)
            if message.qos:
                connection.up(lambda: self._broker.acknowledge(self._name, number))

        connection = self._connection = _Connection(self._broker, self._inbox.put, receive, self._lost)
        connection.up(lambda: self._broker.connect(self._name, connection, clean=self._clean, accept=self._accepted))

    def _accepted(self) -> None:
        self._connected = True
        self._back_off_s = self._least_s
        self.on_connect(self, None, None, _reason(PacketTypes.CONNACK, "Success"), None)
        for number, (message, _) in list(self._unacknowledged.items()):
            self._send(number, message)

    def _lost(self) -> None:
        self._connected = False
        self.on_disconnect(self, None, None, _reason(PacketTypes.DISCONNECT, "Unspecified error"), None)

    def _reconnect(self) -> None:
        while not self._ending.wait(self._back_off_s):
            self._back_off_s = min(2 * self._back_off_s, self._most_s)
            try:
                self._reach()
                return
            except OSError:
                self.on_connect_fail(self, None)


def _nothing(*_: object) -> None:
    """A callback that nobody has set."""


class SimulatedMqtt(MqttDevice):
    """The MQTT driver, at such a broker."""

    def __init__(self, id: str, options: Any, surroundings: Surroundings, broker: SimulatedBroker) -> None:
        super().__init__(id, options, surroundings)
        self.client = broker.client

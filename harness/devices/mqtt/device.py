"""A device over MQTT: its messages, by mappings or in the harness's framing, and the sound sent to it."""

from __future__ import annotations

import secrets
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import paho.mqtt.client as mqtt

from harness.base import threads
from harness.base.clocks import HostClock
from harness.base.foreign import plain_text
from harness.base.host_check import Check, check_each
from harness.base.ports import Sink, Surroundings
from harness.devices.declared import Abilities, About
from harness.devices.device_sources import DeviceOutput, DeviceOutputQueue
from harness.devices.framing.board_session import BOARD
from harness.devices.framing.numbering import MappedNumbering
from harness.devices.mqtt import lease
from harness.devices.mqtt.board import BOARD_TOPICS, COMMAND_TOPICS, MqttBoard
from harness.devices.mqtt.hermes import HermesMicrophone, HermesSound, HermesSpeaker
from harness.devices.mqtt.lease import Reservation
from harness.devices.mqtt.link import BrokerLink, LinkEvents
from harness.devices.mqtt.options import EMBEDDED, MessageFraming, MqttInjection, MqttOptions, password
from harness.devices.outlet import DriverOutlet
from harness.devices.wire.console import HeartbeatThrottle
from harness.devices.wire.lines import MappingError
from harness.devices.wire.mappings import (
    FILTER_REMEDY,
    MAX_PAYLOAD_BYTES,
    for_device,
    is_topic_filter,
    observations,
    parse_json,
    show_payload,
    topic_matches,
)
from harness.devices.wire.messages import Set, SetKey, TextCommand
from harness.model.bench import DeviceProfile, Heartbeat
from harness.model.errors import DeviceError, InputError
from harness.model.numbers import seconds
from harness.model.observation import DeviceState, ListeningProved, LogLine, Observation, Status, Unread
from harness.model.stimulus import Waveform
from harness.model.time import Stamp

_MAX_TEXT_BYTES = 900  # A board has room for messages of 1024 bytes; the rest is for the JSON around the text.
_JOIN_S = 1.0  # Longest wait for the end of the heartbeat's thread.
_VERSION_WAIT_S = 0.5  # Chosen: short, since some brokers publish no version.
_HEARTBEAT = "heartbeat"


class MqttDevice:
    """Observes a device, and injects stimuli if it accepts sound. Messages count from `open` on.

    Retained messages are not current events. With the harness's framing the link comprises the broker and the board:
    LinkLost when either is gone.
    """

    Options: ClassVar[type] = MqttOptions
    client: Callable[..., mqtt.Client] = mqtt.Client
    """The class that connects to the broker."""

    def __init__(self, id: str, options: MqttOptions, surroundings: Surroundings) -> None:
        self.id = id
        self._options = options
        self._surroundings = surroundings
        profile = surroundings.profile
        self._device = options.topic_device or id
        self._prefix = f"vh/{self._device}/"
        self._lease_topic = self._prefix + lease.TOPIC
        self._is_framed = options.framing_of(profile) is MessageFraming.VH
        self._injection = options.injection_of(profile)
        self._mappings = for_device(profile.mappings if profile is not None else (), self._device)
        self._numbering = MappedNumbering()
        self._throttle = HeartbeatThrottle()
        self._outlet = DriverOutlet(id, surroundings)
        self._link: BrokerLink | None = None
        self._echo_link: BrokerLink | None = None
        self._board: MqttBoard | None = None
        self._hermes: HermesSound | None = None
        self._lease: Reservation | None = None
        self._had_last_will = False
        self._heartbeat = profile.heartbeat if profile is not None else None
        self._heartbeat_rule = for_device((self._heartbeat.rule,) if self._heartbeat is not None else (), self._device)
        self._heartbeat_s: float | None = None  # when the last heartbeat arrived; None before the first
        self._closing = threads.event()
        self._heartbeat_thread: threading.Thread | None = None

    @property
    def acknowledged(self) -> int:
        """Number of pulses that the broker has answered since `open`; it grows while the broker is alive."""
        return self._link.acknowledged if self._link is not None else 0

    @staticmethod
    def abilities(options: MqttOptions, profile: DeviceProfile | None) -> Abilities:
        """Boards with the harness's framing have all abilities. A device that plays WAV files is a loudspeaker."""
        is_framed = options.framing_of(profile) is MessageFraming.VH
        injects = options.injection_of(profile) in (MqttInjection.VH, MqttInjection.HERMES)
        return Abilities(injects=injects, restarts=is_framed, tunes=is_framed)

    @staticmethod
    def source(options: MqttOptions, profile: DeviceProfile, device: str, topics: tuple[str, ...]) -> MqttSource:
        """The messages on the topics. Raises InputError when there are no topics."""
        topics = topics or tuple(sorted({mapping.topic for mapping in for_device(profile.mappings, device)}))
        if not topics:
            raise InputError(
                f"the profile {profile.id} has no topics",
                remedy="Add the topics to subscribe to, such as --topic 'prefix/#'",
            )
        for topic in topics:
            if not is_topic_filter(topic):
                raise InputError(f"{topic!r} is not an MQTT filter", remedy=FILTER_REMEDY)
        return MqttSource(options, topics)

    @staticmethod
    def host_checks(connections: Sequence[tuple[str, MqttOptions]]) -> Iterator[Check]:
        """Checks a connection to each broker."""
        return check_each("broker", connections, reach_broker)

    @staticmethod
    def far_end(options: MqttOptions, id: str) -> str:
        """The broker and the device's name there."""
        return f"{options.address}|{options.topic_device or id}"

    def about(self) -> About:
        """What the board's hello reports; empty for a device with mappings."""
        hello = self._board.session.hello if self._board is not None else None
        if self._board is None or hello is None:
            return About()
        return About(hello.firmware, hello.wake_phrases, hello.rate_hz, self._board.session.lost_events)

    @staticmethod
    def demand_host(options: MqttOptions) -> None:
        """Raises InputError when the password's environment variable is not set."""
        password(options)

    def open(self, sink: Sink) -> None:
        """Returns when every topic is subscribed to, and a board with the harness's framing has sent hello.

        Raises DeviceError when the broker does not answer or refuses, or no hello arrives. The embedded broker starts
        without its board: LinkLost reports the address that the board must use.
        """
        self._outlet.open(sink)
        self._had_last_will = False
        if self._is_framed:
            self._board = MqttBoard(
                self.id,
                self._options,
                self._surroundings.clock,
                self._outlet,
                self._publish_to_board,
                self._broker_silent_s,
            )
        if self._injection in (MqttInjection.HERMES, MqttInjection.PLAY_BYTES):
            hermes_class = HermesMicrophone if self._injection is MqttInjection.HERMES else HermesSpeaker
            self._hermes = hermes_class(self.id, self._device, self._surroundings, self._outlet, self._publish)
        if self._injection in (MqttInjection.VH, MqttInjection.HERMES):  # a loudspeaker has no board to reserve
            self._lease = self._new_lease()
        try:
            self._link = self._new_link()
            self._link.open()
            if self._board is not None:
                self._echo_link = self._open_echo_link(self._board)
            self._wait_for_board(self._link)
            if self._hermes is not None:
                self._hermes.open()
            if self._heartbeat is not None:
                self._heartbeat_s = None
                self._closing.clear()
                self._heartbeat_thread = threads.thread(self._watch_heartbeat, self._heartbeat)
                self._heartbeat_thread.start()
        except BaseException:
            self.close()
            raise

    def _new_lease(self) -> Reservation:
        return Reservation(
            owner=secrets.token_hex(6),
            topic=self._lease_topic,
            clock=self._surroundings.clock,
            publish=lambda topic, payload: self._publish(topic, payload, 1, retain=True),
            on_taken=lambda why: self._outlet.lose(lease.TOPIC, why, urgent=True),
            on_free=lambda: self._outlet.back(lease.TOPIC),
        )

    def _new_link(self) -> BrokerLink:
        topics = {mapping.topic for mapping in (*self._mappings, *self._heartbeat_rule)}
        if self._is_framed:
            topics.add(self._prefix + "+")
        if self._hermes is not None:
            topics.update(self._hermes.topics)
        profile = self._surroundings.profile
        if not topics and profile is not None and profile.reports:
            raise DeviceError(
                f"{self.id}: the profile {profile.id} has no MQTT topics, so the device could report nothing",
                remedy="Add `mappings` with topics to the profile, or `console: {topic: …}` for log lines",
            )
        return BrokerLink(
            id=self.id,
            options=self._options,
            clock=self._surroundings.clock,
            folder=self._surroundings.folder,
            topics=tuple(topics),
            events=LinkEvents(self._on_up, self._on_down, self._on_message, self._outlet.remark),
            optional=[self._lease_topic] if self._injection is MqttInjection.HERMES else [],
            client=self.client,
        )

    def _open_echo_link(self, board: MqttBoard) -> BrokerLink | None:
        """A second connection, which sees what others send to the board; None when the broker does not allow it.

        On the first one, the echo of the harness's messages would delay the answers to them (Nagle: 44 ms).
        """
        options = self._options
        if options.client_id:
            options = replace(options, client_id=f"{options.client_id}-watch")

        def on_echo(topic: str, payload: bytes, _: Stamp, retained: bool) -> None:
            if not retained:
                board.receive_echo(topic.removeprefix(self._prefix), payload)

        # The other connection reports when the broker is lost.
        events = LinkEvents(lambda: None, lambda _: None, on_echo, self._outlet.remark)
        surroundings = self._surroundings
        topics = [self._prefix + topic for topic in COMMAND_TOPICS]
        echo_link = BrokerLink(
            self.id, options, surroundings.clock, surroundings.folder, topics, events, client=self.client
        )
        try:
            echo_link.open()
        except DeviceError as error:
            self._outlet.remark(f"messages from other programs to the board would go unnoticed: {error.what}")
            return None
        return echo_link

    def _wait_for_board(self, link: BrokerLink) -> None:
        """Waits until the board is reserved and has sent hello.

        Raises DeviceError if another harness has it, or it is silent.

        Logs what an operator should know about the connection.
        """
        if self._options.tls_insecure:
            self._outlet.remark("the broker's certificate is not checked (tls_insecure)")
        address = "{}:{}".format(*link.address)
        if self._options.address == EMBEDDED:
            self._outlet.remark(f"the embedded broker listens at {address}; set this address on the device")
        if self._lease is not None and not self._lease.wait_for_owner():
            self._outlet.remark(f"the broker does not deliver {self._lease_topic}, so the board cannot be reserved")
        board = self._board
        if board is None:
            return
        board.start()
        if self._options.address == EMBEDDED:
            if not board.wait_for_hello(0.0):
                self._outlet.lose(BOARD, f"the board has not connected to the embedded broker at {address} yet")
            return
        if not board.wait_for_hello(self._options.hello_wait_s):
            why = "its last will reports that it is gone" if self._had_last_will else "no answer"
            raise DeviceError(
                f"{self.id}: no hello on {self._prefix}hello at {address}: {why}",
                remedy="Check that the board is on, uses this broker and has this name (`topic_device`). Check "
                "that the broker's access list allows these topics for the board and the harness",
            )

    def close(self) -> None:
        """Ends the connection, its threads and an embedded broker, in any state; no observation follows."""
        self._outlet.close()
        self._closing.set()
        heartbeat_thread, self._heartbeat_thread = self._heartbeat_thread, None
        if heartbeat_thread is not None:
            heartbeat_thread.join(_JOIN_S)
        parts = self._board, self._hermes, self._echo_link, self._link
        self._board = self._hermes = None
        reservation, self._lease = self._lease, None
        if reservation is not None:
            reservation.close()  # while `_link` is set, since it publishes the release
        self._echo_link = self._link = None
        for part in parts:
            if part is not None:
                part.close()

    # Sound and text for the device

    def play(self, play_id: str, waveform: Waveform) -> None:
        """Returns at once; accepts any rate.

        Raises DeviceError when it is not open, not connected, accepts no sound, or is already playing.
        """
        player = self._board if self._injection is MqttInjection.VH else self._hermes
        if self._injection is MqttInjection.NONE:
            raise DeviceError(
                f"{self.id} does not accept sound over MQTT",
                remedy="Use a loudspeaker, or set `audio` in its profile or `injection` in its connection",
            )
        if player is None or not self._outlet.link_is_up:
            raise DeviceError(
                f"{self.id} is not open or has lost its link",
                remedy="Open the device, or wait until its connection is back",
            )
        player.play(play_id, waveform)

    def stop(self) -> None:
        """Ends the sound that is playing; StimulusEnded(complete=False) follows."""
        for player in (self._board, self._hermes):
            if player is not None:
                player.stop()

    def level_dbfs(self) -> float | None:
        """RMS level of the last 100 ms sent; None when no sound is being sent."""
        board, hermes = self._board, self._hermes
        if self._injection is MqttInjection.VH and board is not None:
            return board.level_dbfs()
        return hermes.level_dbfs() if hermes is not None else None

    def say(self, text: str) -> None:
        """Sends a query as text; returns when the board has acknowledged it. Raises DeviceError if not within 5 s.

        Do not call it from the sink, which the answer must pass.
        """
        if len(text.encode()) > _MAX_TEXT_BYTES:
            raise DeviceError(
                f"{self.id}: a text query has at most {_MAX_TEXT_BYTES} bytes", remedy="Shorten the query"
            )
        self._command(TextCommand(text))

    def set_operating_point(self, point: int) -> None:
        """Sets the sensitivity of its wake word, 0–100; returns and raises like `say`."""
        if not 0 <= point <= 100:
            raise DeviceError(f"an operating point must be 0 to 100, not {point}")
        self._command(Set(SetKey.OPERATING_POINT, point))

    def restart(self) -> None:
        """Asks the board to reset itself; Status(STARTED) follows."""
        if self._board is not None:
            self._board.reset()

    def _command(self, message: TextCommand | Set) -> None:
        board = self._board
        if board is None:
            raise DeviceError(
                f"{self.id} does not accept text over MQTT, or is not open",
                remedy="Set `framing: vh` for a board with the harness's framing",
            )
        board.command(message)

    def _publish_to_board(self, topic: str, payload: bytes, qos: int) -> None:
        self._publish(self._prefix + topic, payload, qos)

    def _publish(self, topic: str, payload: bytes, qos: int, *, retain: bool = False) -> None:
        """Publishes a message as `BrokerLink.publish` does; without a link it is dropped."""
        link = self._link
        if link is not None:
            link.publish(topic, payload, qos=qos, retain=retain)

    # Messages from the device

    def _watch_heartbeat(self, heartbeat: Heartbeat) -> None:
        """Notices by its silence a service that dies without a last will, once it has sent a heartbeat."""
        ask, payload = (text.replace("{device}", self._device) for text in (heartbeat.ask, heartbeat.payload))
        while True:
            if ask:
                self._publish(ask, payload.encode(), 0)
            if self._closing.wait(heartbeat.within_s / 3):  # asks more than once within the limit
                return
            heartbeat_s = self._heartbeat_s  # read once: the link's thread may clear it
            if heartbeat_s is None:
                continue
            silent_s = self._surroundings.clock.now_s() - heartbeat_s
            if silent_s > heartbeat.within_s:
                self._throttle.link_lost()
                self._outlet.lose(_HEARTBEAT, f"the device showed no sign of life for {seconds(silent_s)}")

    def _on_up(self) -> None:
        self._outlet.back("broker")
        if self._lease is not None:
            self._lease.link_up()
        if self._board is not None:
            self._board.link_up()

    def _broker_silent_s(self) -> float:
        return self._link.silent_s if self._link is not None else 0.0

    def _on_down(self, reason: str) -> None:
        if self._board is not None:
            # Report the loss before the sound that it cut off, so that the session knows the reason.
            self._outlet.lose(BOARD, reason)
            self._board.link_down()
        if self._hermes is not None:
            self._hermes.link_down()
        if self._lease is not None:
            self._lease.link_down()
        self._throttle.link_lost()
        self._heartbeat_s = None  # silence while the broker is gone means nothing
        self._outlet.lose("broker", reason)

    def _on_message(self, topic: str, payload: bytes, stamp: Stamp, retained: bool) -> None:
        """Passes a message to the part of the driver that it is for. The profile's mappings get the rest."""
        if self._lease is not None and topic == self._lease_topic:
            self._lease.receive(payload[:MAX_PAYLOAD_BYTES], retained=retained)
            return
        if retained:
            if topic == self._prefix + "status":
                self._had_last_will = b'"gone"' in payload[:MAX_PAYLOAD_BYTES]
            return
        if len(payload) > MAX_PAYLOAD_BYTES:
            problem = f"a message on {topic} has {len(payload)} bytes, more than {MAX_PAYLOAD_BYTES}"
            self._outlet.tell(Unread(self.id, stamp, problem))
            return
        board, hermes = self._board, self._hermes
        if hermes is not None and topic in hermes.topics:
            hermes.receive(topic, payload, stamp)
            return
        own_topic = topic.removeprefix(self._prefix)
        is_own = own_topic != topic
        if board is not None and is_own and (own_topic in BOARD_TOPICS or not self._is_mapped(topic)):
            board.receive(own_topic, payload, stamp)
            return
        if self._heartbeat is not None and topic_matches(self._heartbeat_rule[0].topic, topic):
            self._note_heartbeat(topic, payload, stamp)
            if not self._is_mapped(topic):
                return
        results = observations(self._mappings, topic, payload, stamp, self.id)
        if board is None or not is_own:  # else the session of the board reports restarts
            results = self._check_numbers(results, payload, stamp)
        for observation in results:
            if self._throttle.passes(observation):
                self._outlet.tell(observation)

    def _note_heartbeat(self, topic: str, payload: bytes, stamp: Stamp) -> None:
        """Notes a heartbeat if the message fits the profile's rule for it."""
        results = observations(self._heartbeat_rule, topic, payload, stamp, "")
        if any(isinstance(observation, ListeningProved) for observation in results):
            self._heartbeat_s = stamp.at_s
            self._outlet.back(_HEARTBEAT)

    def _is_mapped(self, topic: str) -> bool:
        return any(topic_matches(mapping.topic, topic) for mapping in self._mappings)

    def _check_numbers(self, results: tuple[Observation, ...], payload: bytes, stamp: Stamp) -> tuple[Observation, ...]:
        """A message's observations and what its numbers show. A repeated message is dropped, lost ones are reported."""
        states = {observation.state for observation in results if isinstance(observation, Status)}
        if DeviceState.GONE in states and not self._numbering.knows_boot:
            return results  # it may be of an earlier boot, after which the present one would seem new
        try:
            numbering = self._numbering.judge(parse_json(payload))
        except MappingError:
            return results
        if numbering.duplicate:
            return ()
        if numbering.late and DeviceState.GONE in states:
            # The last will of an earlier boot: the device is already back.
            return (LogLine(self.id, stamp, f"from an earlier boot: {show_payload(payload)}"),)
        remarks: list[Observation] = []
        if numbering.rebooted and not states & {DeviceState.STARTED, DeviceState.GONE}:
            remarks.append(Status(self.id, stamp, DeviceState.STARTED, "its boot id changed"))
        if numbering.rival:
            rival = numbering.rival
            text = f"two devices share one name: an earlier boot runs alongside boot {rival}. Rename one of them"
            remarks.append(LogLine(self.id, stamp, text))
        if numbering.missing:
            remarks.append(LogLine(self.id, stamp, f"messages missing before this one: {numbering.missing}"))
        return (*remarks, *results)


class MqttSource:
    """Messages of a broker on the given topics, for the monitor."""

    live = True
    ended = False

    def __init__(self, options: MqttOptions, topics: tuple[str, ...]) -> None:
        self.queue = DeviceOutputQueue()
        self.trouble = ""
        self._folder = tempfile.TemporaryDirectory(prefix="harness-monitor-")
        events = LinkEvents(self._on_up, self._on_down, self._on_message, lambda _: None)
        self._link = BrokerLink("monitor", options, HostClock(), Path(self._folder.name), topics, events)
        self.name = " ".join((options.address, *topics))

    def open(self) -> None:
        """Raises DeviceError when the broker does not answer or refuses."""
        self._link.open()

    def close(self) -> None:
        """Ends the connection, in any state."""
        self._link.close()
        self._folder.cleanup()

    def _on_up(self) -> None:
        self.trouble = self._link.client_id_conflict

    def _on_down(self, reason: str) -> None:
        self.trouble = reason

    def _on_message(self, topic: str, payload: bytes, stamp: Stamp, retained: bool) -> None:
        self.queue.put(DeviceOutput(stamp, threads.wall(), payload, topic, retained))


def reach_broker(options: MqttOptions) -> str:
    """Connects to a broker. Returns a text with its version. Raises HarnessError when it cannot be used."""
    if options.address == EMBEDDED:
        return "embedded broker, started with the session"
    with closing(MqttSource(options, ("$SYS/broker/version",))) as source:
        source.open()
        until_s = threads.monotonic() + _VERSION_WAIT_S
        while not (messages := source.queue.take(1)) and threads.monotonic() < until_s:
            threads.sleep(0.02)
    version = ": " + plain_text(messages[0].data.decode("utf-8", "replace"), 100) if messages else ""
    return f"{options.address} answers{version}"

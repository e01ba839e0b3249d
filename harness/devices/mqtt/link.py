"""The connection to a broker, with or without TLS: monitors it, and reconnects and resubscribes after a loss.

While the connection is gone, the broker keeps messages of QoS 1 and delivers them later. So an arrival alone does not
show when a message was sent. `KeepAlive` publishes a pulse each second. The round trips of the pulses give the error
of arrival times. A pulse without an answer shows a broker that stands still.

    open ──► connect ──► subscribe to every topic ──► up ── disconnected, or a pulse unanswered ──► down
                ▲                                                                                    │
                └───────────────── paho's thread, after 0.2 s, doubling up to 3 s ◄──────────────────┘

Threads: paho's calls the `_on_…` methods and passes on messages. The pulse's own thread publishes pulses, and notices
their silence. The driver's callers open, close and publish. `_lock` guards what becomes up or down.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import uuid
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import paho.mqtt.client as mqtt
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode

from harness.base import threads
from harness.base.places import lab_state
from harness.base.ports import Clock
from harness.devices.mqtt.broker import EmbeddedBroker
from harness.devices.mqtt.options import EMBEDDED, LAB, MqttOptions, encryption, password
from harness.devices.wire.lateness import StallDetector
from harness.devices.wire.mappings import without_covered
from harness.model.errors import DeviceError, HarnessError, LabError
from harness.model.frozen import frozen
from harness.model.numbers import exact, seconds
from harness.model.time import Stamp

_PULSE_INTERVAL_S = 1.0  # Chosen: a stalled broker is noticed soon, and a pulse has only a few bytes.
_CHECK_INTERVAL_S = 0.25  # Interval at which the pulse's thread notes how late it woke (`StallDetector`).
_MIN_FIRST_ERROR_S = 0.1
"""Least error of an arrival until _ROUND_TRIPS_KEPT round trips are known, in s. Chosen for a local network."""
_ROUND_TRIPS_KEPT = 16  # One message in 17 then takes longer than the longest of them.
_MAX_TRIP_FACTOR = 2.0
"""The error of an arrival is this many of the longest round trips. Chosen: it also covers the one that takes longer."""
_EARLY_ANSWERS_KEPT = 16  # Chosen: an answer waits for the return of one `publish` only.


class KeepAlive:
    """Publishes an empty message each second (QoS 1, to an unused topic) and waits for the acknowledgement.

    A broker that does not permit the topic still acknowledges the message (MQTT 3.1.1). `on_frozen(silent_s)` is
    called, once for each connection, when no acknowledgement came for limit_s. now_s: the session's clock.
    """

    def __init__(
        self, client: mqtt.Client, now_s: Callable[[], float], limit_s: float, on_frozen: Callable[[float], None]
    ) -> None:
        self._client = client
        self._now_s = now_s
        self._limit_s = limit_s
        self._on_frozen = on_frozen
        self._lock = threads.lock()
        self._unanswered: dict[int, float] = {}  # number of a pulse → when it was sent
        self._early_answers: dict[int, float] = {}  # number of a message that may be a pulse → when it was answered
        self._round_trips_s: deque[float] = deque(maxlen=_ROUND_TRIPS_KEPT)
        self.answer_count = 0
        self._connected = True
        self._last_answered_s = now_s()  # when the last pulse that was answered had been sent
        self._absent_since_s: float | None = None  # None while the broker answers
        self._stalls = StallDetector(_CHECK_INTERVAL_S, self._last_answered_s)
        self._stop = threads.event()
        self._pulse_now = threads.event()
        self._thread = threads.thread(self._run, name="mqtt-pulse")

    @property
    def error_s(self) -> float:
        """Largest delay of a message, s, if the device's connection to the broker is like the harness's.

        It is twice the longest recent round trip: one in 17 messages takes longer than the longest of 16. The largest
        delay of the harness's own threads in the last minute is added, since the message may have waited for one. It is
        larger while the broker is slow or has not been pinged for long, and after a stall of the host. Without a
        connection, messages may have been queued for as long as that lasted.
        """
        now_s = self._now_s()
        with self._lock:
            usual_s = _MAX_TRIP_FACTOR * max(self._round_trips_s, default=0.0)
            if len(self._round_trips_s) < _ROUND_TRIPS_KEPT:
                usual_s = max(usual_s, _MIN_FIRST_ERROR_S)
            blind_s = self._stalls.blind_s(now_s)
            if self._absent_since_s is not None:
                return now_s - self._absent_since_s
            oldest_s = min(self._unanswered.values(), default=now_s)
            # Slower than ever, or not asked for long: the broker may have stood still since the last answered pulse.
            # So it may while the host itself does, which then sees no answer.
            silent_s = now_s - self._last_answered_s
            is_prompt = now_s - oldest_s <= usual_s and silent_s <= 2 * _PULSE_INTERVAL_S + usual_s
            return usual_s + blind_s if is_prompt else max(usual_s + blind_s, silent_s)

    @property
    def oldest_wait_s(self) -> float:
        """How long the oldest pulse has waited for its answer, s; 0 if none is waiting."""
        now_s = self._now_s()
        with self._lock:
            return now_s - min(self._unanswered.values(), default=now_s)

    def start(self) -> None:
        """Starts the thread that publishes pulses."""
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread, waiting at most 0.5 s."""
        self._stop.set()
        self._pulse_now.set()
        if self._thread.is_alive() and self._thread is not threads.current_thread():
            self._thread.join(0.5)

    def record_answer(self, number: int) -> None:
        """Records that the broker has acknowledged the message with that number, which may be a pulse."""
        now_s = self._now_s()
        self.answer_count += 1
        with self._lock:
            sent_s = self._unanswered.pop(number, None)
            if sent_s is None:
                # The acknowledgement overtook `publish`'s return, or belongs to another message.
                self._early_answers[number] = now_s
                while len(self._early_answers) > _EARLY_ANSWERS_KEPT:
                    oldest = next(iter(self._early_answers))
                    del self._early_answers[oldest]
                return
            self._add_round_trip(sent_s, now_s)

    def link_down(self) -> None:
        """Records that the connection is lost: pulses sent on it will not be answered."""
        with self._lock:
            self._unanswered.clear()
            self._connected = False
            if self._absent_since_s is None:
                self._absent_since_s = self._last_answered_s

    def link_up(self) -> None:
        """Records that the connection is up (again), and sends a pulse at once."""
        with self._lock:
            self._unanswered.clear()
            self._early_answers.clear()
            self._connected = True
        # Queued messages arrive before the answer to this pulse.
        self._pulse_now.set()

    def _add_round_trip(self, sent_s: float, answered_s: float) -> None:
        self._round_trips_s.append(answered_s - sent_s)
        self._last_answered_s = max(self._last_answered_s, sent_s)
        self._absent_since_s = None

    def _run(self) -> None:
        """Publishes a pulse each second, and reports once for each connection that its answers do not come."""
        topic = f"vh/_pulse/{self._client._client_id.decode()}"
        last_check_s = self._now_s()
        due_s = last_check_s + _PULSE_INTERVAL_S
        while not self._stop.is_set():
            is_requested = self._pulse_now.wait(_CHECK_INTERVAL_S)
            self._pulse_now.clear()
            now_s = self._now_s()
            with self._lock:
                self._stalls.check(now_s)
                connected, oldest_s = self._connected, min(self._unanswered.values(), default=None)
            # On a busy host this thread may have slept too long, with the answer still unread.
            overslept = now_s - last_check_s > 2 * _PULSE_INTERVAL_S
            last_check_s = now_s
            if not is_requested and now_s < due_s:
                continue
            due_s = now_s + _PULSE_INTERVAL_S
            if self._stop.is_set() or not connected or overslept:
                continue
            if oldest_s is not None and now_s - oldest_s >= self._limit_s:
                self.link_down()
                self._on_frozen(now_s - oldest_s)
            elif self._client.is_connected():
                number = self._client.publish(topic, b"", qos=1).mid
                with self._lock:
                    answered_s = self._early_answers.pop(number, None)
                    if answered_s is None or answered_s < now_s:  # an earlier one was the answer to another message
                        self._unanswered[number] = now_s
                    else:
                        self._add_round_trip(now_s, answered_s)


T = TypeVar("T")
_OPEN_LIMIT_S = 5.0  # Chosen: a broker in the local network that does not answer by then is not running.
_END_LIMIT_S = 0.7  # For each of two steps of `close`, which must end within 2 s (`ports.Driver`).
_BACK_OFF_S = (0.2, 3.0)  # Chosen: shortest and longest pause before another attempt to connect.
_UP_CHECK_INTERVAL_S = 0.05  # Chosen: a reconnection takes longer.
_RIVAL_WITHIN_S = 30.0
"""If the broker accepts and ends two connections within this time, another client uses the same id, in seconds."""


@frozen
class LinkEvents:
    """Callbacks of a link, called from its threads.

    - up: called when every topic is subscribed to (again).
    - down: called with the reason of a loss.
    - message: called with topic, payload, time, and whether the message was retained.
    - remark: called with a text for the log.
    """

    up: Callable[[], None]
    down: Callable[[str], None]
    message: Callable[[str, bytes, Stamp, bool], None]
    remark: Callable[[str], None]


class BrokerLink:
    """One connection to a broker. After a loss, the broker queues messages until the connection is back."""

    def __init__(
        self,
        id: str,
        options: MqttOptions,
        clock: Clock,
        folder: Path,
        topics: Sequence[str],
        events: LinkEvents,
        optional: Sequence[str] = (),
        client: Callable[..., mqtt.Client] = mqtt.Client,
    ) -> None:
        """optional: topics that the broker may refuse, which a remark then reports. client: paho's client class."""
        self._id = id
        self._options = options
        self._clock = clock
        self._folder = folder
        self._topics = (*without_covered(topics), *optional)
        self._optional = frozenset(optional)
        self._events = events
        self._client_id = ""
        self._client_class = client
        self._client: mqtt.Client | None = None
        self._pulse: KeepAlive | None = None
        self._embedded: EmbeddedBroker | None = None
        self._subscribed = threads.event()
        self._answered = threads.event()
        self._refusal = ""
        self._link_is_lost = False
        self._end_times_s: deque[float] = deque(maxlen=2)  # when the last connections ended
        self._lock = threads.lock()
        self._closing = False

    @property
    def client_id_conflict(self) -> str:
        """The problem if another client seems to use this connection's `client_id`; "" otherwise.

        A broker ends the older of two connections of one id. Each client then connects again, and ends the other's.
        """
        recent = [end_s for end_s in self._end_times_s if self._clock.now_s() - end_s <= _RIVAL_WITHIN_S]
        if not self._options.client_id or len(recent) < 2:
            return ""
        return (
            "the broker keeps closing the connection, as it does when another client uses the same id. "
            f"Choose a `client_id` other than {self._client_id!r}"
        )

    @property
    def acknowledged(self) -> int:
        """Number of pulses that the broker has answered since `open`."""
        return self._pulse.answer_count if self._pulse is not None else 0

    @property
    def silent_s(self) -> float:
        """How long the oldest unanswered pulse has waited, s; 0 if none waits."""
        return self._pulse.oldest_wait_s if self._pulse is not None else 0.0

    @property
    def address(self) -> tuple[str, int]:
        """Host and port. Raises LabError when the virtual lab is not up."""
        if self._options.address == LAB:
            state = lab_state()
            return state.mqtt_host, state.mqtt_port
        if self._options.address == EMBEDDED:
            if self._embedded is None:
                raise DeviceError(f"{self._id}: the embedded broker is not open")
            return self._embedded.host, self._embedded.port
        return self._options.broker

    @property
    def is_up(self) -> bool:
        """Whether the broker is connected, and every topic subscribed to."""
        return self._subscribed.is_set() and not self._link_is_lost and not self._closing

    def open(self) -> None:
        """Returns when every topic is subscribed to. Raises DeviceError when the broker does not answer or refuses."""
        self._closing = self._link_is_lost = False
        self._refusal = ""
        self._subscribed.clear()
        self._answered.clear()
        if self._options.address == EMBEDDED:
            password(self._options)  # before the broker, which needs the password
            self._embedded = EmbeddedBroker.acquire(self._options.listen, self._folder, self._options.login)
        try:
            self._connect()
        except BaseException:
            self.close()
            raise

    def _connect(self) -> None:
        """Connects, and returns when every topic is subscribed to.

        Raises DeviceError when that fails or takes too long.
        """
        host, port = self.address
        self._client_id = self._options.client_id or f"harness-{self._id}-{uuid.uuid4().hex[:8]}"
        client = self._client = self._create_client(clean_session=False)
        client.reconnect_delay_set(*_BACK_OFF_S)  # type: ignore[arg-type]  # fractions of a second also work
        client.on_connect = self._guard(self._on_connect)
        client.on_disconnect = self._guard(self._on_disconnect)
        client.on_connect_fail = self._guard(lambda client, _: self._find_broker_again(client))
        client.on_subscribe = self._guard(self._on_subscribed)
        client.on_publish = self._guard(self._on_publish)
        client.on_message = self._guard(self._on_message)
        self._pulse = KeepAlive(client, self._clock.now_s, self._options.keepalive_s, self._on_frozen)
        try:
            # Tries TLS before paho does, since paho reports less about failures and leaks its socket.
            context = encryption(self._options)
            if context is not None:
                with (
                    socket.create_connection((host, port), timeout=_OPEN_LIMIT_S) as connection,
                    context.wrap_socket(connection, server_hostname=host),
                ):
                    pass
            client.connect_timeout = _OPEN_LIMIT_S
            client.connect(host, port, keepalive=max(2, round(self._options.keepalive_s)))
        except (OSError, ValueError) as error:
            raise self._unreachable(host, port, str(error), error) from error
        client.loop_start()
        self._answered.wait(_OPEN_LIMIT_S)
        if not self._subscribed.is_set():
            raise self._unreachable(host, port, self._refusal or "it accepts the connection, but does not answer")
        self._pulse.start()

    def close(self) -> None:
        """Ends the connection, its threads and an embedded broker, in any state, within 2 s."""
        was_up = self.is_up
        self._closing = True
        pulse, self._pulse = self._pulse, None
        if pulse is not None:
            pulse.stop()
        client, self._client = self._client, None
        if client is not None:
            client.disconnect()
            _call_with_limit(_END_LIMIT_S, client.loop_stop)
            if was_up and self._options.address != EMBEDDED:
                _call_with_limit(_END_LIMIT_S, self._end_session)
        embedded, self._embedded = self._embedded, None
        if embedded is not None:
            embedded.release()

    def publish(self, topic: str, payload: bytes, *, qos: int = 0, retain: bool = False) -> None:
        """Returns at once. Without a link, QoS 0 is dropped and QoS 1 is sent when the link is back."""
        client = self._client
        if client is not None and (qos or self.is_up):
            client.publish(topic, payload, qos=qos, retain=retain)

    def deliver(self, topic: str, payload: bytes, within_s: float) -> None:
        """Publishes with QoS 1. Raises DeviceError when the broker does not acknowledge it in time."""
        client, deadline_s = self._client, threads.monotonic() + within_s
        if client is None:
            raise DeviceError(f"{self._id}: the connection to the broker is not open")
        while not self.is_up:  # paho would keep the message, and send it long after this call has failed
            if threads.monotonic() >= deadline_s:
                raise DeviceError(f"{self._id}: the connection to the broker is lost")
            threads.sleep(_UP_CHECK_INTERVAL_S)
        publication = client.publish(topic, payload, qos=1)
        try:
            publication.wait_for_publish(max(0.0, deadline_s - threads.monotonic()))
            is_acknowledged = publication.is_published()
        except (RuntimeError, ValueError) as error:
            raise DeviceError(f"{self._id}: the broker did not accept the message: {error}") from error
        if not is_acknowledged:
            raise DeviceError(f"{self._id}: the broker did not acknowledge the message within {exact(within_s)} s")

    def _create_client(self, *, clean_session: bool) -> mqtt.Client:
        """A client that is not connected.

        clean_session: False for a persistent session, with which events that the broker acknowledged to the board
        during a loss still arrive.
        """
        client = self._client_class(CallbackAPIVersion.VERSION2, client_id=self._client_id, clean_session=clean_session)
        if self._options.username:
            client.username_pw_set(self._options.username, password(self._options))
        context = encryption(self._options)
        if context is not None:
            client.tls_set_context(context)
            client.tls_insecure_set(self._options.tls_insecure)
        client.on_socket_open = self._guard(_disable_send_delay)
        return client

    def _end_session(self) -> None:
        """Ends the persistent session, so that the broker stops queueing for it."""
        client = self._create_client(clean_session=True)
        client.connect_timeout = _END_LIMIT_S / 2
        client.on_connect = lambda client, *_: client.disconnect()
        with contextlib.suppress(OSError, HarnessError):
            client.connect(*self.address, keepalive=2)
            client.loop_forever()

    def _unreachable(self, host: str, port: int, why: str, error: Exception | None = None) -> DeviceError:
        """The error for a broker that cannot be used. error: its cause, which may give a better text than `why`."""
        remedy = "Check that the broker is running, and that the connection has the right `address`, user and password"
        if isinstance(error, ssl.SSLCertVerificationError):
            why = f"its certificate is not valid: {error.verify_message}"
            remedy = "Set `ca_file` to the authority's certificate, and use the broker's name as in its certificate"
        elif isinstance(error, ssl.SSLError):
            why = f"no encrypted connection: {error.reason or error}"
            remedy = (
                "Check that this port of the broker uses TLS. If it requires a client certificate, check `cert_file` "
                "and `key_file`"
            )
        elif isinstance(error, ConnectionError) and self._options.encrypted:
            remedy = f"{remedy}; with TLS, its port is usually 8883"
        if self._options.address == LAB:
            remedy = "Check the lab: harness admin lab status. Start the missing parts: harness admin lab up"
        return DeviceError(f"{self._id}: the MQTT broker at {host}:{port} cannot be used: {why}", remedy=remedy)

    def _guard(self, callback: Callable[..., T]) -> Callable[..., T | None]:
        """Wraps a callback, since an exception would end paho's thread while the link still looks connected."""

        def guarded(*arguments: Any) -> T | None:
            try:
                return callback(*arguments)
            except Exception as error:  # noqa: BLE001 - reported to the session; the thread must survive
                with contextlib.suppress(Exception):  # the receiver may be what raised
                    self._events.remark(f"a message could not be processed: {error!r}")
                return None

        return guarded

    def _on_connect(
        self, client: mqtt.Client, _: object, __: object, reason: ReasonCode, ___: Properties | None
    ) -> None:
        if reason.is_failure:
            self._refuse(f"it refuses: {reason}")
            return
        # Subscribe after every reconnection: a killed broker has forgotten the session.
        if self._topics:
            client.subscribe([(topic, 1) for topic in self._topics])
        else:
            self._finish_subscribing()

    def _on_subscribed(
        self, _: mqtt.Client, __: object, ___: int, reasons: list[ReasonCode], ____: Properties | None
    ) -> None:
        refusals = {topic: reason for topic, reason in zip(self._topics, reasons, strict=False) if reason.is_failure}
        if refusals.keys() - self._optional:
            refused_topics = ", ".join(f"{topic} ({reason})" for topic, reason in refusals.items())
            self._refuse(f"it refuses the subscription to {refused_topics}")
            return
        for topic in refusals:
            self._events.remark(
                f"the broker does not allow reading {topic}, so a second harness on the same board would go unnoticed"
            )
        self._finish_subscribing()

    def _refuse(self, why: str) -> None:
        """The broker refuses the connection: `open` fails with this reason, or a remark reports it after a loss."""
        self._refusal = why
        self._answered.set()
        if self._subscribed.is_set():
            self._events.remark(f"the broker is back, but {why}")

    def _finish_subscribing(self) -> None:
        """Every topic is subscribed to: the link is up (again)."""
        with self._lock:
            is_first = not self._subscribed.is_set()
            is_back, self._link_is_lost = self._link_is_lost, False
            self._subscribed.set()
        self._answered.set()
        if self._pulse is not None:
            self._pulse.link_up()
        if is_first or is_back:
            self._events.up()

    def _find_broker_again(self, client: mqtt.Client) -> None:
        """Prepares a reconnection: the lab's broker may have another port now, and the embedded one is restarted."""
        if self._closing:
            return
        if self._embedded is not None:
            self._embedded.revive()
        elif self._options.address == LAB:
            with contextlib.suppress(LabError):  # not up yet; the next attempt asks again
                if (address := self.address) != (client.host, client.port):
                    client.connect_async(*address, keepalive=client.keepalive)

    def _on_disconnect(
        self, client: mqtt.Client, __: object, ___: object, reason: ReasonCode, ____: Properties | None
    ) -> None:
        if not self._subscribed.is_set():
            self._refuse(self._refusal or f"it closed the connection: {reason}")
        # paho reports "Unspecified error" when a connection ends without DISCONNECT.
        why = "" if str(reason) == "Unspecified error" else f": {reason}"
        if self.is_up:
            self._end_times_s.append(self._clock.now_s())
        self._report_loss(
            self.client_id_conflict or f"the connection to the broker was lost: {client.host}:{client.port}{why}"
        )
        self._find_broker_again(client)

    def _on_frozen(self, silent_s: float) -> None:
        self._report_loss(f"the broker has not answered for {seconds(silent_s)}; the connection is still there")
        client = self._client
        connection = client.socket() if client is not None else None
        if connection is not None and hasattr(connection, "shutdown"):
            # Makes paho's thread notice the loss and reconnect; its own keepalive would take twice as long.
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def _report_loss(self, reason: str) -> None:
        if self._pulse is not None:
            self._pulse.link_down()
        with self._lock:
            if self._link_is_lost or self._closing or not self._subscribed.is_set():
                return
            self._link_is_lost = True
        self._events.down(reason)

    def _on_publish(self, _: mqtt.Client, __: object, number: int, *___: object) -> None:
        if self._pulse is not None:
            self._pulse.record_answer(number)

    def _on_message(self, _: mqtt.Client, __: object, message: mqtt.MQTTMessage) -> None:
        error_s = self._pulse.error_s if self._pulse is not None else 0.05
        stamp = Stamp(self._clock.now_s(), error_s)
        if not self._closing:
            self._events.message(message.topic, bytes(message.payload), stamp, message.retain)


def _call_with_limit(limit_s: float, action: Callable[[], object]) -> None:
    """Runs a call with a time limit, since connecting cannot be cancelled."""
    thread = threads.thread(action, name="mqtt-end")
    thread.start()
    thread.join(limit_s)


def _disable_send_delay(_: mqtt.Client, __: object, connection: object) -> None:
    # Otherwise small messages would wait 44 ms for each other.
    if isinstance(connection, socket.socket):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

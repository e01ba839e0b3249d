"""Wyoming satellites: the harness as the service that they report to, as a proxy before them, or as their server.

The proxy passes all bytes on unchanged, in both directions. It reports an event before it passes it on, so that nothing
which the event causes at the other end is reported first. A thread accepts connections. Each direction of a connection
has its own thread, so a slow receiver slows its sender as it does without a proxy.
"""

from __future__ import annotations

import contextlib
import json
import queue
import select
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Any, BinaryIO, ClassVar, cast

from harness.base import threads
from harness.base.host_check import Check, check_each
from harness.base.ports import Sink, Surroundings
from harness.devices import tcp
from harness.devices.declared import Abilities, SetupAdvice
from harness.devices.device_sources import StreamSource
from harness.devices.outlet import BROKEN, DriverOutlet
from harness.devices.spoken_commands import Answerer, AnsweringStream, ServerUse, StoreClip, demand_answerer
from harness.devices.text_streams import CONNECT_LIMIT_S, JOIN_S, PIECE_BYTES, TICK_S, FarEnd, FarEndFile
from harness.devices.wire.console import Console, HeartbeatThrottle
from harness.devices.wire.lateness import Lateness
from harness.devices.wire.segments import WyomingEvents
from harness.devices.wyoming_server import (
    EVENT_BYTES,
    PIPELINE_ENDED,
    PLAYED_LATE_S,
    ServerLink,
    open_connection,
    reported_info,
    reported_version,
    sends_detections,
    wake_phrases,
)
from harness.model.bench import DeviceProfile, Framing
from harness.model.errors import DeviceError, InputError, refuse_out_of_range
from harness.model.frozen import frozen
from harness.model.numbers import exact, seconds
from harness.model.time import Stamp

INFO_CONNECT_LIMIT_S = 2.0
MAX_CONNECTIONS = 64  # Each has a thread.
SETTLE_S = 0.2
"""Time after which a connection that only asks for information has ended, in seconds."""
_SOUND_EVENT = b'{"type": "audio-chunk"'
_PING_EVENTS = (b'{"type": "ping"', b'{"type": "pong"')
_RUN_EVENTS = tuple(
    b'{"type": "%b"' % kind
    for kind in (b"run-pipeline", b"transcript", b"error", b"audio-start", b"audio-stop", b"played")
)
_MAX_ANSWER_MS = 600_000  # A larger timestamp is not the length of an answer.
_CONNECTION_PART, _SILENCE_PART = "connection", "silence"


class WyomingMode(StrEnum):
    """The role of the harness: it receives events, is a proxy between client and server, or is the server."""

    EVENTS = "events"
    PROXY = "proxy"
    SERVER = "server"


_REMEDIES = {
    WyomingMode.EVENTS: "Restart the satellite while the harness waits, or speak its wake word twice",
    WyomingMode.PROXY: "Have the client connect to this address instead of the server's",
}


@frozen
class WyomingOptions:
    """Options of Wyoming satellites.

    address: host:port at which the harness listens. In mode server: host:port of the satellite.
    mode: events (a satellite reports to the harness), proxy (the harness sits in front of `server`), or server. As the
        server, the harness keeps the sound of the satellite.
    server: host:port that the proxy connects to: a satellite, or a service that a satellite uses.
    connect_within_s: Time within which the satellite (proxy: the client) must connect, s.
    hold_back_ms: How long the far end may hold an event back, ms (part of the error of its times).
    silence_limit_s: Time without a byte from the satellite or `server` after which the link counts as lost, s
        (0: never).
    recogniser: In mode server: entry point of `harness.recognisers` that recognises commands (empty: none).
    voice: In mode server: engine:name of the voice of the answer, from `harness admin voices list`.
    answer: In mode server: text of every answer; {text} stands for the recognised words (empty: no answer).
    listen_limit_s: In mode server: longest command, s.
    """

    # `TextStream` needs these in mode server.
    ready: ClassVar[str] = ""
    ready_within_s: ClassVar[float] = 0.0
    restart_line: ClassVar[str] = ""

    address: str
    mode: WyomingMode = WyomingMode.EVENTS
    server: str = ""
    connect_within_s: float = 30.0
    hold_back_ms: float = 20.0
    silence_limit_s: float = 0.0
    recogniser: str = ""
    voice: str = "espeak:en-us"
    answer: str = ""
    listen_limit_s: float = 15.0

    def __post_init__(self) -> None:
        tcp.host_and_port(self.address)
        if self.mode is WyomingMode.PROXY:
            tcp.host_and_port(self.server, remedy="Set `server` to the host:port of the satellite")
        elif self.server:
            raise InputError("only a proxy has a `server`", remedy="Set `mode: proxy`, or remove `server`")
        if self.mode is not WyomingMode.SERVER and (self.recogniser or self.answer):
            raise InputError(
                "only a server has a `recogniser` and an `answer`", remedy="Set `mode: server`, or remove these keys"
            )
        if ":" not in self.voice:
            raise InputError(f"{self.voice!r} is not a voice", remedy="Use engine:name, such as espeak:en-us")
        refuse_out_of_range(
            self,
            listen_limit_s=(1, 120),
            connect_within_s=(0, 86_400),
            hold_back_ms=(0, 86_400),
            silence_limit_s=(0, 86_400),
        )


class _ClientConnection:
    """A connection of a client and, in a proxy, the one to its server. Both end when both directions have ended.

    - sockets: the client's first.
    - is_settled: whether it lasts longer than one that only asks for information.
    - has_ended: whether a direction has ended.
    - open_directions: number of directions that have not.
    """

    def __init__(self, client: socket.socket, server: socket.socket | None, began_s: float) -> None:
        self.sockets = [client] if server is None else [client, server]
        self.began_s = began_s
        self.is_settled = self.has_ended = False
        self.open_directions = len(self.sockets)

    def shut_down(self) -> None:
        """Ends both directions, whose threads then close the sockets."""
        for connected_socket in self.sockets:
            with contextlib.suppress(OSError):
                connected_socket.shutdown(socket.SHUT_RDWR)


class PipelineEnd:
    """Finds the end of a pipeline run, which the satellite does not report by an event of its own.

    The run ends with an error, or with a transcript if the satellite speaks no answers. An answer ends with `played`
    or, without that, when its sound is over: `audio-stop` gives the length.
    """

    def __init__(self) -> None:
        self._speaks_answers = True
        self._sound_began_s = 0.0
        self._answer_end_s: float | None = None

    def ends_run(self, event: bytes, at_s: float) -> bool:
        """Whether this event ends the run. Call it with each event, as a line of JSON, in order of arrival."""
        if not event.startswith(_RUN_EVENTS):
            return False
        parsed = json.loads(event)
        data = parsed["data"]
        match parsed["type"]:
            case "run-pipeline":
                self._speaks_answers, self._answer_end_s = data.get("end_stage") == "tts", None
            case "transcript":
                return not self._speaks_answers
            case "error":
                self._answer_end_s = None
                return True
            case "audio-start":
                self._sound_began_s, self._answer_end_s = at_s, None
            case "audio-stop":
                length_ms = data.get("timestamp")
                if isinstance(length_ms, int | float) and 0 < length_ms < _MAX_ANSWER_MS:
                    self._answer_end_s = max(at_s, self._sound_began_s + length_ms / 1000) + PLAYED_LATE_S
            case _:
                self._answer_end_s = None
        return False

    def is_overdue(self, now_s: float) -> bool:
        """Whether an answer is over whose end was not reported. Returns True once for each."""
        if self._answer_end_s is None or now_s < self._answer_end_s:
            return False
        self._answer_end_s = None
        return True


class WyomingRelay:
    """Accepts connections, passes bytes on as a proxy, and reports each event, and the end of a run, as a line of JSON.

    - take_lines: called with the lines (with line ends) and their arrival; with b"" when nothing came.
    - joined: called when there is a connection.
    - left: called with the reason when there is none any more.

    All three are called in order, under one lock.

    - sound: whether events with the client's sound are reported too.
    """

    def __init__(
        self,
        options: WyomingOptions,
        now_s: Callable[[], float],
        take_lines: Callable[[bytes, Stamp], None],
        joined: Callable[[], None] = lambda: None,
        left: Callable[[str], None] = lambda _: None,
        *,
        sound: bool = False,
    ) -> None:
        self.trouble = ""
        """Why the last connection to the server failed; "" if it did not."""
        self.received_s = now_s()
        """When the last byte from the satellite or the server arrived."""
        self._options, self._now_s = options, now_s
        self._on_lines, self._on_joined, self._on_left = take_lines, joined, left
        self._reports_sound = sound
        self._lock = threads.lock()
        self._stop = threads.event()
        self._lateness = Lateness()  # of the thread that accepts; the others are as late
        self._pipeline = PipelineEnd()
        self._connections: list[_ClientConnection] = []
        self._threads: list[threading.Thread] = []
        self._listening = tcp.listen(options.address)
        self._start_thread(self._accept)

    def close(self) -> None:
        """Ends all connections and threads, within JOIN_S."""
        self._stop.set()
        with self._lock:
            for connection in self._connections:
                connection.shut_down()
        deadline_s = threads.monotonic() + JOIN_S
        for thread in self._threads:
            thread.join(max(0.0, deadline_s - threads.monotonic()))

    def _start_thread(self, run: Callable[..., None], *arguments: object) -> None:
        """Starts a thread of the relay. An error that ends it is reported as the end of the connection."""

        def guarded() -> None:
            try:
                run(*arguments)
            except Exception:
                with self._lock:
                    self._on_left(BROKEN)
                raise

        thread = threads.thread(guarded, name=f"wyoming {self._options.address}")
        with self._lock:
            self._threads = [*(other_thread for other_thread in self._threads if other_thread.is_alive()), thread]
            thread.start()

    def _accept(self) -> None:
        """Accepts connections. At each TICK_S it also reports those that have settled, and lets time pass."""
        poll = select.poll()
        poll.register(self._listening, select.POLLIN)
        with self._listening:
            while not self._stop.is_set():
                before_s = self._now_s()
                ready = poll.poll(TICK_S * 1000)
                now_s = self._now_s()
                if not ready:
                    self._lateness.record_sleep(now_s - before_s, TICK_S)
                with self._lock:
                    self._report_settled(now_s)
                    run_ended = self._pipeline.is_overdue(now_s)
                    self._on_lines(PIPELINE_ENDED if run_ended else b"", Stamp(now_s, self._lateness.seconds))
                if ready:
                    self._accept_client()

    def _report_settled(self, now_s: float) -> None:
        """Reports the connections that now last longer than one that only asks for information."""
        for connection in self._connections:
            is_new = not connection.is_settled and not connection.has_ended
            if is_new and now_s - connection.began_s > SETTLE_S:
                connection.is_settled = True
                self._on_joined()

    def _accept_client(self) -> None:
        """Accepts the connection that waits, unless there are too many."""
        try:
            client, _ = self._listening.accept()
            client.settimeout(None)
            tcp.keep_alive(client)
        except OSError:
            self._stop.wait(TICK_S)  # such as too many open files: the client still waits
            return
        if len(self._connections) < MAX_CONNECTIONS:
            self._start_thread(self._serve, client)
        else:
            client.close()

    def _serve(self, client: socket.socket) -> None:
        """Serves a client until its direction ends. In a proxy, another thread serves the other direction."""
        options, server = self._options, None
        if options.mode is WyomingMode.PROXY:
            try:
                server = tcp.connect(*tcp.host_and_port(options.server), CONNECT_LIMIT_S)
            except OSError as error:
                self.trouble = f"{options.server} cannot be reached: {error}"
                client.close()
                return
        connection = _ClientConnection(client, server, self._now_s())
        with self._lock:
            self._connections.append(connection)
        if self._stop.is_set():  # `close` may have cut the others just before
            connection.shut_down()
        if server is not None:
            self._start_thread(self._pass_on, connection, server, client, f"{options.server} (server)")
        self._pass_on(connection, client, server, "the client" if server else "the satellite")

    def _pass_on(
        self, connection: _ClientConnection, source: socket.socket, target: socket.socket | None, peer: str
    ) -> None:
        """Passes bytes on until the source ends."""
        events = WyomingEvents(EVENT_BYTES)
        is_client = source is connection.sockets[0]
        why = f"{peer} closed the connection"
        try:
            while data := source.recv(PIECE_BYTES):
                stamp = Stamp(self._now_s(), self._lateness.seconds)
                if target is None or not is_client:  # from the satellite, or from the proxy's server
                    self.received_s = stamp.at_s
                self._report(events, data, stamp, sound=self._reports_sound and is_client)
                if target is not None:
                    target.sendall(data)
            if target is not None:
                target.shutdown(socket.SHUT_WR)  # the other direction may go on
        except OSError as error:
            why = f"{peer}: {error}"
            connection.shut_down()
        except Exception:
            why = BROKEN
            connection.shut_down()
            raise
        finally:
            with self._lock:
                if connection.is_settled and not connection.has_ended:
                    connection.is_settled = False
                    if not any(other.is_settled for other in self._connections):
                        self._on_left(why)
                connection.has_ended = True
                connection.open_directions -= 1
                if not connection.open_directions:
                    self._connections.remove(connection)
                    for connected_socket in connection.sockets:
                        connected_socket.close()

    def _report(self, events: WyomingEvents, data: bytes, stamp: Stamp, *, sound: bool) -> None:
        """Reports the events that are complete, and text between them. sound: whether events with sound count."""
        # A line end before each event keeps it apart from a line that another connection left unfinished. Each
        # connection starts with a header, so events that arrive slowly are not cut off: their time does not matter.
        unreported = _PING_EVENTS if sound else (_SOUND_EVENT, *_PING_EVENTS)
        segments = [
            segment
            for segment in events.feed(data, 0.0)
            if not (segment.is_frame and segment.content.startswith(unreported))
        ]
        if not segments:
            return
        lines = bytearray()
        with self._lock:
            for segment in segments:
                lines += b"\n%b\n" % segment.content if segment.is_frame else segment.content
                if segment.is_frame and self._pipeline.ends_run(segment.content, stamp.at_s):
                    lines += PIPELINE_ENDED
            self._on_lines(bytes(lines), stamp)


class WyomingServer(AnsweringStream):
    """The harness as the server of a satellite."""

    Options: ClassVar[type] = WyomingOptions
    BACK_OFF_S = (0.5, 10.0)

    def __init__(self, id: str, options: WyomingOptions, surroundings: Surroundings) -> None:
        super().__init__(id, options, surroundings)
        self._profile = _line_profile(surroundings.profile)

    def new_answerer(self) -> Answerer:
        return Answerer(self._options.recogniser, self._options.voice, self._options.answer)

    def connect(self) -> FarEnd:
        return ServerLink(self._options.address, self.server_use(), self._stop)

    def _read_to_end(self, far_end: FarEnd, bell: threads.Bell) -> str:
        return super()._read_to_end(cast(ServerLink, far_end).begin(), bell)

    def stamped(self, far_end: FarEnd, data: bytes, stamp: Stamp) -> Iterator[tuple[bytes, Stamp]]:
        if not data:
            yield data, stamp
        else:
            for line, at_s in cast(ServerLink, far_end).last_read:
                yield line, Stamp(at_s, stamp.error_s)


class Wyoming:
    """Observes a satellite by its events. It is open while there is a connection.

    A satellite that reports its events connects only when it has one, and loses events when its last connection has
    ended. So without a connection the link is lost: otherwise, lost events would count as misses of the satellite.
    """

    Options: ClassVar[type] = WyomingOptions

    def __init__(self, id: str, options: WyomingOptions, surroundings: Surroundings) -> None:
        self.id = id
        self._options = options
        self._now_s = surroundings.clock.now_s
        self._outlet = DriverOutlet(id, surroundings)
        self._profile = _line_profile(surroundings.profile)
        self._connected = threads.event()
        self._relay: WyomingRelay | None = None
        self._server = WyomingServer(id, options, surroundings) if options.mode is WyomingMode.SERVER else None

    def keep_sound(self, save: StoreClip) -> None:
        """Stores the sound of commands, if the harness is the server."""
        if self._server is not None:
            self._server.keep_sound(save)

    @staticmethod
    def abilities(options: WyomingOptions, profile: DeviceProfile | None) -> Abilities:
        return Abilities()

    def open(self, sink: Sink) -> None:
        """Returns when there is a connection. Raises DeviceError when there is none within `connect_within_s`."""
        options = self._options
        if self._server is not None:
            self._server.open(sink)
            return
        # A proxy needs its server.
        if options.mode is WyomingMode.PROXY:
            open_connection(options.server).close()
        self._connected.clear()
        self._console = Console(self._profile, self.id, hold_back_s=options.hold_back_ms / 1000, measured=False)
        self._throttle = HeartbeatThrottle()
        self._outlet.open(sink)
        try:
            self._relay = WyomingRelay(
                options,
                self._now_s,
                self._handle_lines,
                self._on_joined,
                self._on_left,
                sound=_maps_sound(self._profile),
            )
        except DeviceError:
            self._outlet.close()
            raise
        if not self._connected.wait(options.connect_within_s):
            trouble = self._relay.trouble
            self.close()
            peer = "client" if options.mode is WyomingMode.PROXY else "satellite"
            problem = f"no {peer} connected to {options.address} within {exact(options.connect_within_s)} s"
            raise DeviceError(trouble or problem, remedy=_REMEDIES[options.mode])

    def close(self) -> None:
        if self._server is not None:
            self._server.close()
        self._outlet.close()
        relay, self._relay = self._relay, None
        if relay is not None:
            relay.close()

    def _handle_lines(self, lines: bytes, stamp: Stamp) -> None:
        """Maps lines; without any, lets time pass. Notices a far end that has been silent for too long."""
        for observation in self._console.feed(lines, stamp):
            if self._throttle.passes(observation):
                self._outlet.tell(observation)
        limit_s = self._options.silence_limit_s
        if limit_s and self._connected.is_set() and self._relay is not None:
            silent_s = stamp.at_s - self._relay.received_s
            if silent_s > limit_s:
                self._outlet.lose(_SILENCE_PART, f"nothing arrived for {seconds(silent_s)}")
            else:
                self._outlet.back(_SILENCE_PART)

    def _on_joined(self) -> None:
        self._connected.set()
        self._outlet.back(_CONNECTION_PART)

    def _on_left(self, why: str) -> None:
        self._throttle.link_lost()
        self._outlet.lose(_CONNECTION_PART, why)

    @staticmethod
    def source(options: WyomingOptions, profile: DeviceProfile, device: str, topics: tuple[str, ...]) -> StreamSource:
        if options.mode is WyomingMode.SERVER:
            use = ServerUse(device, threads.monotonic, lambda _: None, options.listen_limit_s)
            address, stop = options.address, threads.event()
            return StreamSource(address, lambda: cast(BinaryIO, FarEndFile(ServerLink(address, use, stop).begin())))
        return WyomingSource(options, sound=_maps_sound(profile))

    @staticmethod
    def demand_host(options: WyomingOptions) -> None:
        """Raises PluginError, InputError or VoiceError when the recogniser or the voice is not on this host."""
        if options.mode is WyomingMode.SERVER:
            demand_answerer(options.recogniser, options.voice, options.answer)

    @staticmethod
    def host_checks(connections: Sequence[tuple[str, WyomingOptions]]) -> Iterator[Check]:
        def attempt(options: WyomingOptions) -> str:
            if options.mode is WyomingMode.SERVER:
                return f"{options.address} answers: {reported_version(options.address)}"
            tcp.listen(options.address).close()
            free = f"{options.address} is free to listen on"
            server = options.server
            return f"{free}, and {server} answers: {reported_version(server)}" if server else free

        return check_each("wyoming", connections, attempt)

    @staticmethod
    def setup_advice(options: WyomingOptions) -> SetupAdvice:
        satellite = options.server or options.address
        info = reported_info(satellite, INFO_CONNECT_LIMIT_S)
        if not info:
            raise DeviceError(f"{satellite} reports nothing about itself", remedy="Check the address")
        phrases = wake_phrases(info)
        if options.mode is not WyomingMode.PROXY or sends_detections(info):
            return SetupAdvice(phrases)
        keys: dict[str, str | int] = {"mode": WyomingMode.SERVER.value, "address": satellite, "listen_limit_s": 3}
        why = "like wyoming-satellite 1.0, it sends no detections to its server"
        return SetupAdvice(phrases, "wyoming_server", keys, "a Wyoming satellite, with the harness as its server", why)

    @staticmethod
    def far_end(options: WyomingOptions, id: str) -> str:
        return options.server or options.address


def _line_profile(profile: DeviceProfile | None) -> DeviceProfile | None:
    """The profile, changed to read lines of JSON, into which the driver converts events; None without a profile."""
    if profile is None:
        return None
    return replace(profile, console=replace(profile.console, framing=Framing.LINES))


def _maps_sound(profile: DeviceProfile | None) -> bool:
    """Whether the profile maps the device's sound, which proves that the device listens."""
    return profile is not None and any(message.type == "audio-chunk" for message in profile.messages)


class WyomingSource(StreamSource):
    """A satellite's events as lines, for the monitor."""

    def __init__(self, options: WyomingOptions, *, sound: bool) -> None:
        self._lines: queue.SimpleQueue[bytes] = threads.simple_queue()
        self._relay: WyomingRelay | None = None
        super().__init__(options.address, lambda: self._start_relay(options, sound))

    def _start_relay(self, options: WyomingOptions, sound: bool) -> BinaryIO:
        self._relay = WyomingRelay(options, threads.monotonic, self._queue_lines, sound=sound)
        return cast(BinaryIO, self)

    def _queue_lines(self, lines: bytes, _: Stamp) -> None:
        if lines:
            self._lines.put(lines)

    def __enter__(self) -> WyomingSource:
        return self

    def __exit__(self, *_: Any) -> None:
        """The relay ends with the source."""

    def read(self, _: int) -> bytes:
        return self._lines.get()

    def close(self) -> None:
        self._lines.put(b"")
        super().close()
        if self._relay is not None:
            self._relay.close()

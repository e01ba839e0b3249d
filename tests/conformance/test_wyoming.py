"""Wyoming satellites, before whose server or behind whose events the harness stands."""

from __future__ import annotations

import hashlib
import random
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from wyoming.event import Event, write_event

from harness.devices import wyoming
from harness.devices.profiles.profile import load_profile
from harness.devices.wyoming import Wyoming, WyomingMode, WyomingOptions
from harness.model.errors import DeviceError, InputError
from harness.model.observation import (
    Intent,
    LinkBack,
    LinkLost,
    ListeningProved,
    LogLine,
    Observation,
    ResponseText,
    Status,
    Transcript,
    Unread,
    Wake,
)
from tests.conformance.wyoming_far_ends import WyomingProgram
from tests.ports import free_port
from tests.seen import HELD, Around, Seen, share_held, until

DETECTION = Event("detection", {"name": "ok_nabu", "timestamp": 1320})


class Proxied:
    """A satellite and a client with the proxy between them."""

    def __init__(self, folder: Path, **options: float) -> None:
        self.satellite = WyomingProgram("satellite", free_port())
        self.client = WyomingProgram("client", free_port())
        self.seen = Seen()
        wyoming_options = WyomingOptions(
            address=f"127.0.0.1:{self.client.port}",
            mode=WyomingMode.PROXY,
            server=f"127.0.0.1:{self.satellite.port}",
            **options,
        )
        profile = load_profile("wyoming_events", beside=folder)
        self.driver = Wyoming("satellite", wyoming_options, Around(folder, profile))


@pytest.fixture
def proxied(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Proxied]:
    """Parameter: after how long a silence is a loss."""
    with ExitStack() as stack:
        proxy = Proxied(tmp_path, silence_limit_s=getattr(request, "param", 30.0))
        stack.enter_context(proxy.satellite)
        stack.enter_context(proxy.client)
        stack.callback(proxy.driver.close)
        proxy.driver.open(proxy.seen)
        until(lambda: proxy.satellite.heard, 10)
        yield proxy


def test_a_proxy_sees_the_events_of_both_directions_and_both_ends_receive_them(proxied: Proxied) -> None:
    satellite, client, observations = proxied.satellite, proxied.client, proxied.seen
    satellite.say("detection", {"name": "ok_nabu", "timestamp": 1320})
    satellite.say("run-pipeline", {"start_stage": "asr", "end_stage": "tts"})
    satellite.say("audio-chunk", {"rate": 16000, "width": 2, "channels": 1}, 2048)
    until(lambda: ("audio-chunk", 2048) in client.heard, 30)
    client.say("voice-stopped", {"timestamp": 900})
    client.say("transcript", {"text": "what time is it"})
    client.say("synthesize", {"text": "It is noon."})
    client.say("audio-start", {"rate": 22050, "width": 2, "channels": 1})
    client.say("audio-chunk", {"rate": 22050, "width": 2, "channels": 1}, 200_000)
    until(lambda: ("audio-chunk", 200_000) in satellite.heard, 30)
    satellite.say("played")
    observations.wait(lambda: len(observations.of(Status)) == 4, 30, "the end of the answer")
    assert [status.state.value for status in observations.of(Status)] == ["listening", "thinking", "speaking", "idle"]
    assert [wake.phrase for wake in observations.of(Wake)] == ["ok_nabu"]
    assert [transcript.text for transcript in observations.of(Transcript)] == ["what time is it"]
    assert [response.text for response in observations.of(ResponseText)] == ["It is noon."]
    until(lambda: ("played", 0) in client.heard, 30)
    heard = [event for event in client.heard if event[0] != "ping"]
    assert heard == [("detection", 0), ("run-pipeline", 0), ("audio-chunk", 2048), ("played", 0)]
    assert not [line for line in observations.of(LogLine) if "audio-chunk" in line.text]


@pytest.mark.parametrize("proxied", [1.5], indirect=True)
def test_a_frozen_satellite_is_a_lost_link_where_a_limit_says_so(proxied: Proxied) -> None:
    observations = proxied.seen
    proxied.satellite.freeze()
    try:
        observations.wait(lambda: observations.of(LinkLost), 30, "the loss")
    finally:
        proxied.satellite.thaw()
    assert "nothing arrived for" in observations.of(LinkLost)[0].what
    proxied.satellite.say("detection", {"name": "ok_nabu"})
    observations.wait(lambda: observations.of(LinkBack), 30, "the return")


def test_playback_without_an_end_event_ends_with_its_sound(proxied: Proxied) -> None:
    proxied.client.say("audio-start", {"rate": 22050, "width": 2, "channels": 1})
    proxied.client.say("audio-stop", {"timestamp": 100})
    proxied.seen.wait(lambda: len(proxied.seen.of(Status)) == 2, 30, "the end of the answer")
    speaks, idle = proxied.seen.of(Status)
    assert (speaks.state.value, idle.state.value) == ("speaking", "idle")
    assert idle.at.at_s - speaks.at.at_s > 0.5


def test_describe_request_does_not_disturb_the_proxy(proxied: Proxied) -> None:
    with socket.create_connection(("127.0.0.1", proxied.client.port), 60) as link, link.makefile("rwb") as file:
        write_event(Event("describe"), file)  # type: ignore[arg-type]
        file.flush()
        assert b'"info"' in file.readline()
    proxied.satellite.say("detection", {"name": "ok_nabu"})
    proxied.seen.wait(lambda: proxied.seen.of(Wake), 30, "the wake event")
    assert not proxied.seen.of(LinkLost)


def test_no_client_at_all_is_reported(tmp_path: Path) -> None:
    proxy = Proxied(tmp_path, connect_within_s=0.5)
    with proxy.satellite, pytest.raises(DeviceError, match=r"no client connected to 127\.0\.0\.1:\d+ within 0\.5 s"):
        proxy.driver.open(proxy.seen)


def test_no_satellite_at_all_is_reported(tmp_path: Path) -> None:
    options = WyomingOptions(address=f"127.0.0.1:{free_port()}", connect_within_s=0.5)
    with pytest.raises(DeviceError, match=r"no satellite connected to .* within 0\.5 s"):
        Wyoming("satellite", options, Around(tmp_path)).open(Seen())


class Piped:
    """A plain server that returns nothing, a plain client, and the proxy between them."""

    def __init__(self, folder: Path, profile_id: str = "wyoming_events") -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        port = free_port()
        self.address = f"127.0.0.1:{port}"
        options = WyomingOptions(
            address=self.address, mode=WyomingMode.PROXY, server=f"127.0.0.1:{self._listening.getsockname()[1]}"
        )
        profile = load_profile(profile_id, beside=folder)
        self.seen, self.driver = Seen(), Wyoming("satellite", options, Around(folder, profile))
        opening = threading.Thread(target=self.driver.open, args=(self.seen,))
        opening.start()
        self._listening.accept()[0].close()  # the driver asks whether the server is there
        self.client = connected(port)
        self.server, _ = self._listening.accept()
        opening.join()

    def close(self) -> None:
        self.driver.close()
        for link in (self.client, self.server, self._listening):
            link.close()


@pytest.fixture
def piped(tmp_path: Path) -> Iterator[Piped]:
    proxy = Piped(tmp_path)
    yield proxy
    proxy.close()


def connected(port: int) -> socket.socket:
    deadline = time.monotonic() + 60
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port), 60)
        except ConnectionRefusedError:
            assert time.monotonic() < deadline
            time.sleep(0.02)


def received(link: socket.socket, count: int) -> bytes:
    link.settimeout(60)
    buffer = bytearray()
    while len(buffer) < count:
        piece = link.recv(65_536)
        assert piece, "the connection has ended"
        buffer += piece
    return bytes(buffer)


def test_every_byte_is_passed_on_unchanged_in_both_directions(piped: Piped) -> None:
    noise = [random.Random(seed).randbytes(2_000_000) + b"\n" for seed in (1, 2)]
    sending = [
        threading.Thread(target=link.sendall, args=(data,))
        for link, data in zip((piped.client, piped.server), noise, strict=True)
    ]
    for thread in sending:
        thread.start()
    arrived = [received(piped.server, len(noise[0])), received(piped.client, len(noise[1]))]
    assert [hashlib.sha256(payload).digest() for payload in arrived] == [
        hashlib.sha256(payload).digest() for payload in noise
    ]
    for thread in sending:
        thread.join()
    piped.seen.wait(lambda: piped.seen.of(LogLine, Unread), 30, "a remark about the garbage")


def test_an_event_is_read_after_garbage_and_from_single_bytes(piped: Piped) -> None:
    with piped.client.makefile("wb") as file:
        file.write(b'\x00\xff garbage { "type": \xc3\x28 \x1b[31m' * 1000 + b"\n")
        write_event(DETECTION, file)
        file.flush()
    piped.seen.wait(lambda: piped.seen.of(Wake), 30, "the wake event after garbage")
    for byte in b'{"type": "detection", "data": {"name": "alexa"}}\n':
        piped.server.sendall(bytes([byte]))
        time.sleep(0.001)
    piped.seen.wait(lambda: len(piped.seen.of(Wake)) == 2, 30, "the wake event from single bytes")
    assert piped.seen.of(Wake)[1].phrase == "alexa"


@pytest.mark.parametrize(
    "header",
    [
        b'{"type": "detection", "data_length": 99999999999999999999}\n',
        b'{"type": "detection", "data_length": -5, "payload_length": "many"}\n',
        b'{"type": "\\ud800", "data": {}}\n',
        b'{"type": "detection", "data_length": 3}\n[1]',
        b"{" * 70_000 + b"\n",
    ],
)
def test_invalid_header_does_not_stop_the_proxy(piped: Piped, header: bytes) -> None:
    piped.client.sendall(header)
    assert received(piped.server, len(header)) == header
    with piped.server.makefile("wb") as file:
        write_event(DETECTION, file)
        file.flush()
    piped.seen.wait(
        lambda: [wake for wake in piped.seen.of(Wake) if wake.phrase], 30, "an event of the other direction"
    )


def test_a_receiver_that_does_not_read_slows_its_sender(piped: Piped) -> None:
    """As without a proxy: the harness holds nothing back for it."""
    assert sent_until_blocked(piped.client) < 32_000_000
    began_s = time.monotonic()
    piped.driver.close()
    assert time.monotonic() - began_s < 10


def test_sound_for_a_wake_word_service_proves_that_the_satellite_listens(tmp_path: Path) -> None:
    piped = Piped(tmp_path, "wyoming_wake_service")
    sound = Event("audio-chunk", {"rate": 16000, "width": 2, "channels": 1}, bytes(2048))
    try:
        for link in (piped.server, piped.client):  # only the client's sound counts
            with link.makefile("wb") as file:
                for _ in range(20):
                    write_event(sound, file)
        with piped.client.makefile("wb") as file:
            write_event(DETECTION, file)
        piped.seen.wait(lambda: piped.seen.of(Wake), 30, "the wake event")
        assert [type(observation) for observation in piped.seen.all] == [ListeningProved, Wake]
    finally:
        piped.close()


def test_a_server_that_sends_no_more_still_receives(piped: Piped) -> None:
    piped.server.shutdown(socket.SHUT_WR)
    assert piped.client.recv(1) == b""
    piped.client.sendall(b"still here")
    assert received(piped.server, 10) == b"still here"
    piped.seen.wait(lambda: piped.seen.of(LinkLost), 30, "the loss")
    piped.driver.close()
    until(lambda: not [thread for thread in threading.enumerate() if piped.address in thread.name], 30)


@pytest.mark.usefixtures("host_keeps_time")
def test_times_hold_against_the_clock_of_the_sender(piped: Piped) -> None:
    with piped.server.makefile("wb", 0) as file:
        assert share_held(piped.seen, lambda: write_event(DETECTION, file)) >= HELD


def sent_until_blocked(link: socket.socket) -> int:
    """Bytes accepted until none were for 0.5 s."""
    link.settimeout(0.5)
    sent = 0
    while sent < 64_000_000:
        try:
            sent += link.send(bytes(65_536))
        except TimeoutError:
            break
    return sent


def report(port: int, *events: Event, stays: Callable[[], object]) -> None:
    """As a satellite does with --event-uri. stays: what it stays connected for."""
    with connected(port) as link, link.makefile("wb") as file:
        for event in events:
            write_event(event, file)
        file.flush()
        stays()


def test_a_satellite_reports_its_events_and_connects_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Its events come first: on a busy host they may take long.
    monkeypatch.setattr(wyoming, "SETTLE_S", 1.0)
    port, observations, is_open = free_port(), Seen(), threading.Event()
    profile = load_profile("wyoming_events", beside=tmp_path)
    driver = Wyoming("satellite", WyomingOptions(address=f"127.0.0.1:{port}"), Around(tmp_path, profile))
    first = threading.Thread(target=report, args=(port, DETECTION), kwargs={"stays": is_open.wait})
    first.start()
    try:
        driver.open(observations)
    finally:
        is_open.set()
    try:
        observations.wait(lambda: observations.of(LinkLost), 30, "the loss")
        first.join()
        intent = Event("intent", {"name": "HassTurnOn", "entities": [{"name": "area", "value": "kitchen"}]})
        events = DETECTION, Event("transcript", {"text": "wie spät ist es"}), intent
        report(port, *events, stays=lambda: observations.first(LinkBack))
        observations.wait(lambda: len(observations.of(LinkLost)) == 2, 30, "the second loss")
        kinds: list[type[Observation]] = [Wake, LinkLost, Wake, Transcript, Intent, LinkBack, LinkLost]
        assert [type(observation) for observation in observations.all] == kinds
        assert observations.of(Intent)[0].slots == (("area", "kitchen"),)
        assert "the satellite closed the connection" in observations.of(LinkLost)[0].what
    finally:
        driver.close()


def test_an_address_in_use_is_reported(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        options = WyomingOptions(address=f"127.0.0.1:{listener.getsockname()[1]}")
        with pytest.raises(DeviceError, match="cannot listen on"):
            Wyoming("satellite", options, Around(tmp_path)).open(Seen())


def test_a_monitor_shows_the_events(tmp_path: Path) -> None:
    port = free_port()
    profile = load_profile("wyoming_events", beside=tmp_path)
    source = Wyoming.source(WyomingOptions(address=f"127.0.0.1:{port}"), profile, "satellite", ())
    source.open()
    came = lambda: b"ok_nabu" in b"".join(piece.data for piece in source.queue.take(10_000))  # noqa: E731
    report(port, DETECTION, stays=lambda: until(came, 30))
    source.close()
    until(lambda: source.ended, 30)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"address": "kitchen"}, "not an address"),
        ({"address": "kitchen:1", "mode": WyomingMode.PROXY}, "not an address"),
        ({"address": "kitchen:1", "server": "kitchen:2"}, "only a proxy has a `server`"),
        ({"address": "kitchen:1", "silence_limit_s": -1}, "silence_limit_s is -1"),
        ({"address": "kitchen:1", "hold_back_ms": float("nan")}, "hold_back_ms is nan"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        WyomingOptions(**options)  # type: ignore[arg-type]

"""Web sockets as devices: losses, frozen and strange far ends, large messages, times, tokens and commands."""

from __future__ import annotations

import contextlib
import signal
import socket
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest

from harness.base.plugins import Group, load
from harness.devices.profiles.profile import load_profile
from harness.devices.websocket import WebSocketLog, WebSocketOptions
from harness.model.bench import DeviceProfile
from harness.model.errors import DeviceError, InputError
from harness.model.observation import LinkBack, LinkLost, LogLine, Unread, Wake
from tests.conformance.engine_runs import wait_for
from tests.conformance.web_far_ends import WebServer, echo_program
from tests.ports import free_port, listens
from tests.seen import HELD, Around, Seen, opened, share_held

PROFILE = """\
device: talker
wake_phrases: [alexa]
reports: [wake]
mappings:
  - {type: woke, kind: wake, fields: {phrase: /phrase}}
"""
WOKE = '{"type": "woke", "phrase": "alexa"}'


@pytest.fixture
def profile(tmp_path: Path) -> DeviceProfile:
    (tmp_path / "talker.yaml").write_text(PROFILE, encoding="utf-8")
    return load_profile("talker", beside=tmp_path)


def test_the_entry_point_loads_it() -> None:
    assert load(Group.DRIVERS, "websocket") is WebSocketLog


def test_each_message_is_one_line_however_it_is_written(profile: DeviceProfile, tmp_path: Path) -> None:
    with WebServer() as server:
        observations = opened(driver := WebSocketLog("it", WebSocketOptions(url=server.url), Around(tmp_path, profile)))
        try:
            server.say(WOKE)
            server.say('{\n  "type": "woke",\r\n  "phrase": "alexa"\n}')
            server.say(WOKE.encode())
            observations.wait(lambda: len(observations.of(Wake)) == 3, 30, "three wake events")
            assert {wake.phrase for wake in observations.of(Wake)} == {"alexa"}
        finally:
            driver.close()


def test_two_megabytes_at_once_and_garbage_do_no_harm(profile: DeviceProfile, tmp_path: Path) -> None:
    with WebServer() as server:
        options = WebSocketOptions(url=server.url, ping_s=300)  # a busy host answers pings late
        observations = opened(driver := WebSocketLog("it", options, Around(tmp_path, profile)))
        try:
            server.say("")
            server.say(b"\x00\xff garbage \x1b[31m" * 1000)
            server.say('{"type": "woke", "pad": "' + "x" * 2_000_000 + '"}')
            for number in range(20_000):
                server.say(f"message {number}")
            server.say(WOKE)
            observations.wait(lambda: observations.of(Wake), 60, "a wake event after the flood")
        finally:
            driver.close()
        assert any("too long" in unread.what for unread in observations.of(Unread))
        observations.assert_flood_was_limited()
        assert not observations.of(LinkLost)


@pytest.mark.parametrize(
    ("data", "why"),
    [(b"\xff" * 64, "1002"), (b"\x82\x7f\x00\x00\x00\x00\x7f\xff\xff\xff", "1009")],
    ids=["not a frame", "a message of 2 GB"],
)
def test_invalid_web_socket_data_drops_the_link_which_returns(
    data: bytes, why: str, profile: DeviceProfile, tmp_path: Path
) -> None:
    with WebServer() as server:
        observations = opened(driver := WebSocketLog("it", WebSocketOptions(url=server.url), Around(tmp_path, profile)))
        try:
            server.say_raw(data)
            observations.wait(lambda: observations.of(LinkLost), 30, "the loss")
            assert why in observations.of(LinkLost)[0].what
            observations.wait(lambda: observations.of(LinkBack), 30, "the return")
            server.say(WOKE)
            observations.wait(lambda: observations.of(Wake), 30, "a wake event")
        finally:
            driver.close()


def test_a_frozen_far_end_is_lost_and_a_killed_one_returns(tmp_path: Path) -> None:
    port = free_port()
    options = WebSocketOptions(url=f"ws://127.0.0.1:{port}", ready="^up", ping_s=0.5)
    driver = WebSocketLog("it", options, Around(tmp_path))
    program = echo_program(port)
    try:
        wait_for(lambda: listens(port), 30, "the program")
        observations = opened(driver)
        program.send_signal(signal.SIGSTOP)
        observations.wait(lambda: observations.of(LinkLost), 30, "the loss")
        assert "ping timeout" in observations.of(LinkLost)[0].what
        program.kill()
        program.wait()
        program = echo_program(port)
        observations.wait(lambda: observations.of(LinkBack), 30, "the return")
        program.send_signal(signal.SIGSTOP)
        began_s = time.monotonic()
        driver.close()
        assert time.monotonic() - began_s < 10
    finally:
        program.kill()
        program.wait()
        driver.close()


def test_a_silent_far_end_is_lost_where_a_limit_says_so(tmp_path: Path) -> None:
    with WebServer() as server:
        options = WebSocketOptions(url=server.url, silence_limit_s=0.5)
        observations = opened(driver := WebSocketLog("it", options, Around(tmp_path)))
        try:
            observations.wait(lambda: observations.of(LinkLost), 30, "the loss")
            assert "no line arrived for" in observations.of(LinkLost)[0].what
        finally:
            driver.close()


def test_send_on_open_is_repeated_after_each_reconnect(tmp_path: Path) -> None:
    with WebServer() as server:
        subscriptions = ('{"subscribe": "wake"}', '{"subscribe": "words"}')
        options = WebSocketOptions(url=server.url, send_on_open=subscriptions, restart_line='{"type": "reboot"}')
        observations = opened(driver := WebSocketLog("it", options, Around(tmp_path)))
        try:
            observations.wait(lambda: server.heard == [*subscriptions], 30, "the subscriptions")
            server.lose()
            observations.wait(lambda: observations.of(LinkLost), 30, "the loss")
            with pytest.raises(DeviceError, match="did not accept a command"):
                driver.restart()
            server.mend()
            observations.wait(lambda: server.heard == [*subscriptions, *subscriptions], 30, "the subscriptions again")
            observations.first(LinkBack)
            driver.restart()
            observations.wait(lambda: server.heard[-1] == '{"type": "reboot"}', 30, "the restart message")
        finally:
            driver.close()


@pytest.mark.usefixtures("host_keeps_time")
def test_times_hold_against_the_clock_of_the_far_end(profile: DeviceProfile, tmp_path: Path) -> None:
    with WebServer() as server:
        observations = opened(driver := WebSocketLog("it", WebSocketOptions(url=server.url), Around(tmp_path, profile)))
        with closing(driver):
            assert share_held(observations, lambda: server.say(WOKE)) >= HELD


def test_a_token_comes_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BUS_TOKEN", raising=False)
    with WebServer(token="s3cret") as server:
        options = WebSocketOptions(url=server.url, token_env="BUS_TOKEN")
        with pytest.raises(InputError, match="BUS_TOKEN for the token is not set"):
            WebSocketLog.demand_host(options)
        for wrong in ("two\r\nHost: lines", "other"):
            monkeypatch.setenv("BUS_TOKEN", wrong)
            with pytest.raises((InputError, DeviceError)) as refused:
                WebSocketLog("it", options, Around(tmp_path)).open(Seen())
        assert "HTTP 401" in str(refused.value)
        monkeypatch.setenv("BUS_TOKEN", "s3cret")
        opened(driver := WebSocketLog("it", options, Around(tmp_path)))
        driver.close()
        assert [check.level.name for check in WebSocketLog.host_checks([("it", options)])] == ["OK"]


def test_a_token_refused_after_a_loss_is_reported_and_not_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BUS_TOKEN", "s3cret")
    with WebServer(token="s3cret") as server:
        observations = opened(
            driver := WebSocketLog("it", WebSocketOptions(url=server.url, token_env="BUS_TOKEN"), Around(tmp_path))
        )
        try:
            server.lose()
            server.token = "another"
            server.mend()
            observations.wait(lambda: len(observations.of(LinkLost)) == 2, 30, "the refusal")
            assert "HTTP 401" in observations.of(LinkLost)[1].what
            server.token = "s3cret"
            time.sleep(1.0)  # further attempts would come within 0.8 s
            assert not observations.of(LinkBack)
        finally:
            driver.close()


def test_server_without_web_sockets_is_reported_without_leaking_threads(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    with socket.create_server(("127.0.0.1", 0)) as plain:
        options = WebSocketOptions(url=f"ws://127.0.0.1:{plain.getsockname()[1]}")
        for _ in range(20):  # the library fails in several ways, depending on which side is faster
            threading.Thread(target=_says_garbage, args=(plain,), daemon=True).start()
            with pytest.raises(DeviceError, match=r"cannot be reached: .+"):
                WebSocketLog("it", options, Around(tmp_path)).open(Seen())
        wait_for(lambda: not set(threading.enumerate()) - before, 15, "the end of its threads")


def test_invalid_host_name_is_reported(tmp_path: Path) -> None:
    with pytest.raises(DeviceError, match="cannot be reached"):
        WebSocketLog("it", WebSocketOptions(url="ws://bus..local"), Around(tmp_path)).open(Seen())


def _says_garbage(listening: socket.socket) -> None:
    peer, _ = listening.accept()
    with peer, contextlib.suppress(OSError):
        peer.sendall(b"\x00\xff 220 mail.example ESMTP\r\n\r\n")
        peer.recv(4096)


def test_without_the_library_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "websockets.sync.client", None)
    with pytest.raises(Exception, match="not installed") as caught:
        WebSocketLog("it", WebSocketOptions(url="ws://127.0.0.1:1"), Around(tmp_path)).open(Seen())
    assert "pip install 'websockets>=" in str(caught.value)


def test_a_monitor_reads_the_messages(profile: DeviceProfile, tmp_path: Path) -> None:
    with WebServer() as server:
        source = WebSocketLog.source(WebSocketOptions(url=server.url), profile, "it", ())
        source.open()
        server.say(WOKE)
        wait_for(lambda: source.ended or source.queue.take(100) != [], 30, "the line")
        assert not source.ended
        source.close()


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("url", "", "is not a WebSocket URL"),
        ("url", "http://bus:8181/core", "is not a WebSocket URL"),
        ("url", "ws://", "is not a WebSocket URL"),
        ("url", "ws://bus:70000/core", "is not a WebSocket URL"),
        ("url", "ws://bus/a b", "is not a WebSocket URL"),
        ("url", "ws://::1:8181/core", "is not a WebSocket URL.*, with an IPv6 address in brackets"),
        ("url", "ws://me:secret@bus/core", "contains a user name or a password"),
        ("text_message", '{"text": "what"}', "`text_message` does not contain {text}"),
        ("ping_s", 0.1, "ping_s is 0.1"),
        ("ping_s", float("nan"), "ping_s is nan"),
        ("hold_back_ms", -1, "hold_back_ms is -1"),
        ("ready", "(", "not a regular expression"),
    ],
)
def test_wrong_options_are_refused(key: str, value: object, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        WebSocketOptions(**{"url": "ws://bus:8181/core", key: value})  # type: ignore[arg-type]
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("returned", "phrases"),
    [
        (WOKE, ["alexa", "alexa"]),
        ('{"phrase": "alexa",  "type": "woke"}', ["alexa", "alexa"]),
        ('{"type": "woke", "phrase": "alexa", "context": {"source": "us"}}', ["alexa", "alexa"]),
        ('{"type": "woke", "phrase": "hey jarvis"}', ["hey jarvis", "alexa"]),
    ],
)
def test_echo_of_a_sent_message_is_not_an_observation(
    profile: DeviceProfile, tmp_path: Path, returned: str, phrases: list[str]
) -> None:
    """A bus may return a message in its own words. After that, the same message is the device's."""
    with WebServer() as server:
        options = WebSocketOptions(url=server.url, send_on_open=(WOKE,))
        observations = opened(driver := WebSocketLog("it", options, Around(tmp_path, profile)))
        try:
            for message in (returned, WOKE, WOKE, '{"type": "done"}'):
                server.say(message)
            observations.wait(
                lambda: [line for line in observations.of(LogLine) if "done" in line.text], 30, "the last message"
            )
            assert [wake.phrase for wake in observations.of(Wake)] == phrases
        finally:
            driver.close()

"""Programs and sockets as devices: readiness, losses, floods, times against an independent clock, and commands."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from wyoming.event import Event, write_event

from harness.devices import text_streams
from harness.devices.profiles.profile import load_profile
from harness.devices.serial.options import SerialOptions
from harness.devices.text_streams import CommandLog, CommandOptions, TcpLog, TcpOptions
from harness.model.bench import DeviceProfile
from harness.model.errors import DeviceError, InputError
from harness.model.observation import LinkBack, LinkLost, Transcript, Unread, Wake
from tests.conformance.engine_runs import wait_for
from tests.conformance.text_far_ends import Program, Server
from tests.ports import free_port
from tests.seen import HELD, Around, Seen, opened, share_held

PROFILE = """\
device: talker
wake_phrases: [alexa]
reports: [wake]
lines:
  - {match: 'woke (?P<phrase>.+)', kind: wake}
"""


@pytest.fixture
def profile(tmp_path: Path) -> DeviceProfile:
    (tmp_path / "talker.yaml").write_text(PROFILE, encoding="utf-8")
    return load_profile("talker", beside=tmp_path)


DETECTION = Event("detection", {"name": "ok_nabu", "timestamp": 1320})


def python(text: str) -> CommandOptions:
    return CommandOptions(command=(sys.executable, "-c", text))


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What fails at once has a minute for it: a busy host takes its time to start a program."""
    monkeypatch.setattr(CommandLog, "SETTLE_S", 60.0)


@pytest.mark.usefixtures("patient")
def test_a_program_that_fails_at_once_is_reported_with_its_last_words(tmp_path: Path) -> None:
    driver = CommandLog("phone", python("import sys; sys.exit('no devices found')"), Around(tmp_path))
    with pytest.raises(DeviceError, match="ended with status 1: no devices found"):
        driver.open(Seen())


def test_a_program_that_is_never_ready_is_reported_with_its_last_lines(tmp_path: Path) -> None:
    text = "echo waiting for device; exec sleep 60"
    options = CommandOptions(command=("sh", "-c", text), ready="^ready", ready_within_s=3.0)
    with pytest.raises(DeviceError, match="no line matched `ready` within 3 s; the last lines: waiting for device"):
        CommandLog("phone", options, Around(tmp_path)).open(Seen())


def test_a_ready_line_may_end_in_crlf_and_have_colours(tmp_path: Path) -> None:
    text = r"printf '\033[32mready\033[0m\r\n'; exec sleep 60"
    options = CommandOptions(command=("sh", "-c", text), ready="^ready$", ready_within_s=10.0)
    driver = CommandLog("phone", options, Around(tmp_path))
    opened(driver)
    driver.close()


@pytest.mark.usefixtures("patient")
def test_no_shell_reads_the_command(tmp_path: Path) -> None:
    options = CommandOptions(command=f"echo $(touch {tmp_path}/made) ; cat")
    with pytest.raises(DeviceError) as caught:
        CommandLog("it", options, Around(tmp_path)).open(Seen())
    assert f"ended with status 0; the last lines: $(touch {tmp_path}/made) ; cat" in str(caught.value)
    assert not (tmp_path / "made").exists()


def test_exited_program_is_a_lost_link_and_is_restarted(tmp_path: Path, profile: DeviceProfile) -> None:
    program = Program(tmp_path)
    driver = CommandLog("phone", CommandOptions(command=program.command, ready="^ready"), Around(tmp_path, profile))
    observations = opened(driver)
    try:
        program.lose()
        observations.wait(lambda: observations.of(LinkLost), 30, "the loss")
        assert "ended with status 1: the device is offline" in observations.of(LinkLost)[0].what
        program.mend()
        observations.wait(lambda: observations.of(LinkBack), 30, "the return")
        program.say("woke alexa")
        observations.wait(lambda: observations.of(Wake), 30, "a wake event")
    finally:
        driver.close()


def test_no_child_process_is_left_after_close(tmp_path: Path) -> None:
    text = (
        "import subprocess; subprocess.Popen(['sleep', '4321']); print('up', flush=True); import time; time.sleep(99)"
    )
    options = CommandOptions(command=(sys.executable, "-c", text), ready="up")
    driver = CommandLog("it", options, Around(tmp_path))
    opened(driver)
    driver.close()
    wait_for(
        lambda: subprocess.run(["pgrep", "-f", "^sleep 4321$"], capture_output=True).returncode == 1, 30, "its end"
    )


def test_two_megabytes_at_once_and_lines_too_long_do_no_harm(profile: DeviceProfile, tmp_path: Path) -> None:
    with Server() as server:
        observations = opened(driver := TcpLog("it", TcpOptions(address=server.address), Around(tmp_path, profile)))
        try:
            server.say("\x00\xff garbage \x1b[31m" * 1000)
            server.say("x" * 2_000_000)
            server.say("\n".join(f"line {n}" for n in range(100_000)))
            server.say("woke alexa")
            observations.wait(lambda: observations.of(Wake), 20, "a wake event after the flood")
        finally:
            driver.close()
        assert any("too long" in unread.what for unread in observations.of(Unread))
        observations.assert_flood_was_limited()


def test_a_silent_far_end_is_lost_where_a_limit_says_so(tmp_path: Path) -> None:
    with Server() as server:
        options = TcpOptions(address=server.address, silence_limit_s=1.0)
        observations = opened(driver := TcpLog("it", options, Around(tmp_path)))
        try:
            observations.wait(lambda: observations.of(LinkLost), 30, "the loss")
            assert "no line arrived for" in observations.of(LinkLost)[0].what
        finally:
            driver.close()


@pytest.mark.usefixtures("host_keeps_time")
def test_times_hold_against_the_clock_of_the_far_end(profile: DeviceProfile, tmp_path: Path) -> None:
    with Server() as server:
        observations = opened(driver := TcpLog("it", TcpOptions(address=server.address), Around(tmp_path, profile)))
        with closing(driver):
            assert share_held(observations, lambda: server.say("woke alexa")) >= HELD


def test_a_monitor_waits_for_a_device_that_is_silent(
    profile: DeviceProfile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_streams, "CONNECT_LIMIT_S", 0.2)
    with Server() as server:
        source = TcpLog.source(TcpOptions(address=server.address), profile, "it", ())
        source.open()
        silent_until_s = time.monotonic() + 0.5
        wait_for(lambda: time.monotonic() > silent_until_s)
        server.say("woke alexa")
        wait_for(lambda: source.ended or source.queue.take(100) != [], 30, "the line")
        assert not source.ended
        source.close()


def test_the_restart_line_reaches_the_device(tmp_path: Path) -> None:
    with Server() as server:
        opened(driver := TcpLog("it", TcpOptions(address=server.address, restart_line="reset now"), Around(tmp_path)))
        try:
            driver.restart()
            wait_for(lambda: b"".join(server.heard) == b"reset now\n")
        finally:
            driver.close()
        other = TcpLog("it", TcpOptions(address=server.address), Around(tmp_path))
        with pytest.raises(DeviceError, match="cannot be restarted"):
            other.restart()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: CommandOptions(), "needs `command`"),
        (lambda: CommandOptions(command="adb 'logcat"), "No closing quotation"),
        (lambda: CommandOptions(command="adb", ready="(") , "not a regular expression"),
        (lambda: TcpOptions(address="kitchen"), "not an address"),
        (lambda: TcpOptions(address="kitchen:70000"), "not an address"),
        (lambda: SerialOptions(port="socket://kitchen:70000"), "not an address"),
        (lambda: TcpOptions(address="kitchen:1", silence_limit_s=-1), "silence_limit_s is -1"),
        (lambda: TcpOptions(address="kitchen:1", restart_line="a\nb"), "several lines"),
    ],
)  # fmt: skip
def test_wrong_options_are_refused(make: type, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()


def test_a_satellite_reports_its_events_to_us(tmp_path: Path) -> None:
    """As wyoming-satellite does with --event-uri: it connects, reports, and connects again when we were away."""
    port = free_port()
    options = TcpOptions(address=f"127.0.0.1:{port}", listen=True)
    driver = TcpLog("satellite", options, Around(tmp_path, load_profile("wyoming_events", beside=tmp_path)))

    connected = threading.Event()

    def report(*events: Event) -> None:
        with socket.create_connection(("127.0.0.1", port), 60) as link, link.makefile("wb") as file:
            for event in events:
                write_event(event, file)
            file.flush()
            assert connected.wait(300)

    first = threading.Thread(target=later, args=(port, report, DETECTION))
    first.start()
    try:
        observations = opened(driver)
        observations.wait(lambda: observations.of(Wake), 30, "a wake event")
        connected.set()
        first.join()
        observations.wait(lambda: observations.of(LinkLost), 30, "the loss")
        report(DETECTION, Event("transcript", {"text": "what time is it"}))
        observations.wait(lambda: observations.of(Transcript), 30, "a transcript")
        assert len(observations.of(Wake)) == 2
        assert observations.of(LinkBack)
        assert observations.of(Transcript)[0].text == "what time is it"
    finally:
        connected.set()
        driver.close()


def test_a_connection_may_stand_still_within_an_event(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_streams.TextStream, "EVENT_TIMEOUT_S", 0.1)
    data = '{"name": "ok_nabu"}'
    with Server() as server:
        around = Around(tmp_path, load_profile("wyoming_events", beside=tmp_path))
        observations = opened(driver := TcpLog("satellite", TcpOptions(address=server.address), around))
        with closing(driver):
            server.say(f'{{"type": "detection", "data_length": {len(data)}}}')
            time.sleep(1.0)
            server.say(data)
            observations.wait(lambda: observations.of(Wake), 30, "a wake event")


def later(port: int, report: Callable[[Event], None], event: Event) -> None:
    """As soon as somebody listens."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            report(event)
            return
        except ConnectionRefusedError:
            time.sleep(0.05)


def test_a_device_that_never_connects_is_reported(tmp_path: Path) -> None:
    options = TcpOptions(address=f"127.0.0.1:{free_port()}", listen=True, ready_within_s=0.5)
    with pytest.raises(DeviceError, match="no device connected to"):
        TcpLog("it", options, Around(tmp_path)).open(Seen())

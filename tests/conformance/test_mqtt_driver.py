"""The MQTT driver against real brokers: mosquitto, and the one that the lab starts."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.devices.mqtt.device import MqttDevice
from harness.devices.mqtt.options import MqttOptions
from harness.model.errors import DeviceError, InputError
from harness.model.observation import (
    DeviceState,
    LinkBack,
    LinkLost,
    LogLine,
    ResponseText,
    Status,
    Transcript,
    Unread,
    Wake,
)
from tests.conformance.mqtt_bench import Board, Broker, Watch, around, until


@pytest.fixture(params=["mosquitto", "embedded"])
def broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Broker]:
    one = Broker(request.param, tmp_path)
    one.start()
    yield one
    if one.process is not None:
        os.kill(one.process.pid, signal.SIGCONT)
        one.kill()


@pytest.fixture
def watch(broker: Broker, tmp_path: Path) -> Iterator[Watch]:
    one = Watch(tmp_path, address=f"127.0.0.1:{broker.port}", keepalive_s=2.0)
    yield one
    one.driver.close()


@pytest.fixture
def board(broker: Broker) -> Iterator[Board]:
    one = Board(broker)
    yield one
    one.close()


def test_messages_become_observations_with_their_time(watch: Watch, board: Board) -> None:
    before_s = time.monotonic()
    board.say("wake", phrase="alexa", score=0.9)
    board.say("transcript", text="what time is it")
    board.say("response", text="it is noon")
    board.say("status", state="idle")
    until(lambda: len(watch.seen) == 4)
    wake, transcript, response, status = watch.seen
    assert isinstance(wake, Wake)
    assert (wake.source, wake.phrase, wake.score) == ("board", "alexa", 0.9)
    assert isinstance(transcript, Transcript)
    assert (transcript.text, transcript.final) == ("what time is it", True)
    assert isinstance(response, ResponseText)
    assert response.text == "it is noon"
    assert isinstance(status, Status)
    assert status.state is DeviceState.IDLE
    for one in watch.seen:
        assert before_s < one.at.at_s <= time.monotonic()
        assert 0 < one.at.error_s < 1


def test_duplicates_are_dropped_and_gaps_are_told(watch: Watch, board: Board) -> None:
    board.say("transcript", text="one")
    board.say("transcript", text="one", seq=1)
    board.say("transcript", text="five", seq=5)
    until(lambda: len(watch.of(Transcript)) == 2)
    assert watch.driver.duplicates == 1
    (gap,) = watch.of(LogLine)
    assert isinstance(gap, LogLine)
    assert gap.text.startswith("3 of its messages are missing")


def test_a_new_start_is_an_observation_and_numbers_begin_again(watch: Watch, broker: Broker, board: Board) -> None:
    board.say("transcript", text="one")
    again = Board(broker, boot="b2")
    again.say("transcript", text="two")
    until(lambda: len(watch.of(Transcript)) == 2)
    (status,) = watch.of(Status)
    assert isinstance(status, Status)
    assert status.state is DeviceState.STARTED
    again.close()


def test_retained_messages_are_no_events_of_now(broker: Broker, board: Board, tmp_path: Path) -> None:
    board.say("transcript", text="yesterday", retain=True)
    watch = Watch(tmp_path, address=f"127.0.0.1:{broker.port}")
    board.say("transcript", text="today")
    until(lambda: len(watch.seen) >= 1)
    assert [one.text for one in watch.of(Transcript) if isinstance(one, Transcript)] == ["today"]
    assert watch.driver.retained == 1
    watch.driver.close()


def test_garbage_is_kept_as_evidence_and_hurts_nothing(watch: Watch, board: Board) -> None:
    rubbish = [
        b"",
        b"\xff\xfe\x00",
        b"{",
        b"[1, 2",
        b"null",
        b'{"text": NaN}',
        b"[" * 50_000,
        b"x" * 70_000,
        b'"\x1b]0;x\x07"',
    ]
    for payload in rubbish:
        board.say_raw("transcript", payload)
    board.say("transcript", text="still here")
    until(lambda: len(watch.of(Transcript)) == 1, 20)
    assert len(watch.of(LogLine)) == len(rubbish) - 1
    assert len(watch.of(Unread)) == 1
    assert watch.driver.too_long == 1


def test_a_killed_broker_is_told_and_the_topics_are_taken_again(watch: Watch, broker: Broker) -> None:
    broker.kill()
    until(lambda: len(watch.of(LinkLost)) == 1)
    time_lost = watch.of(LinkLost)[0].at.at_s
    assert time.monotonic() - time_lost < 5
    broker.start()
    until(lambda: len(watch.of(LinkBack)) == 1, 20)
    board = Board(broker, boot="later")
    board.say("transcript", text="after")
    until(lambda: len(watch.of(Transcript)) == 1)
    board.close()


def test_a_frozen_broker_is_noticed(watch: Watch, broker: Broker) -> None:
    assert broker.process is not None
    # The pulse must have begun: a broker that never answered is found by `open`.
    until(lambda: watch.driver.acknowledged > 0)
    os.kill(broker.process.pid, signal.SIGSTOP)
    began_s = time.monotonic()
    until(lambda: len(watch.of(LinkLost)) == 1, 15)
    assert time.monotonic() - began_s <= 5.0
    os.kill(broker.process.pid, signal.SIGCONT)
    until(lambda: len(watch.of(LinkBack)) == 1, 20)


def test_the_last_will_says_that_a_device_is_gone(watch: Watch, broker: Broker) -> None:
    board = Board(broker)
    board.say("status", state="idle")
    until(lambda: len(watch.of(Status)) == 1)
    board.vanish()
    until(lambda: any(isinstance(one, Status) and one.state is DeviceState.GONE for one in watch.seen), 20)


def test_a_sink_that_raises_does_not_end_the_thread(broker: Broker, board: Board, tmp_path: Path) -> None:
    texts: list[str] = []

    def sink(one: object) -> None:
        if isinstance(one, Transcript):
            texts.append(one.text)
            if one.text == "first":
                raise RuntimeError("on purpose")

    driver = MqttDevice("board", MqttOptions(f"127.0.0.1:{broker.port}"), around(tmp_path))
    driver.open(sink)
    board.say("transcript", text="first")
    board.say("transcript", text="second")
    until(lambda: texts == ["first", "second"])
    driver.close()


def test_closing_is_quick_in_any_state_and_final(watch: Watch, broker: Broker) -> None:
    assert broker.process is not None
    os.kill(broker.process.pid, signal.SIGSTOP)
    began_s = time.monotonic()
    watch.driver.close()
    watch.driver.close()
    assert time.monotonic() - began_s < 2
    assert not [thread for thread in threading.enumerate() if thread.name.startswith(("mqtt-pulse", "paho"))]


def test_nobody_there_is_an_error_with_a_remedy(tmp_path: Path) -> None:
    nobody = Broker("mosquitto", tmp_path)
    driver = MqttDevice("board", MqttOptions(f"127.0.0.1:{nobody.port}"), around(tmp_path))
    with pytest.raises(DeviceError, match="cannot be used"):
        driver.open(lambda one: None)
    driver.close()
    for address in ("host:", ":1883", "host:seven"):
        with pytest.raises(InputError, match="no address"):
            MqttOptions(address)


def test_a_password_is_asked_for_and_taken_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import subprocess

    passwords = tmp_path / "passwords"
    subprocess.run(["mosquitto_passwd", "-b", "-c", str(passwords), "lab", "secret"], check=True)
    os.chmod(tmp_path, 0o755)
    os.chmod(passwords, 0o644)
    broker = Broker("mosquitto", tmp_path)
    broker.start("allow_anonymous false", f"password_file {passwords}", "user root")
    address = f"127.0.0.1:{broker.port}"
    try:
        with pytest.raises(DeviceError, match=r"refuses.*[Nn]ot authori[sz]ed"):
            Watch(tmp_path, address=address)
        with pytest.raises(InputError, match="VH_TEST_WORD"):
            Watch(tmp_path, address=address, username="lab", password_env="VH_TEST_WORD")
        monkeypatch.setenv("VH_TEST_WORD", "secret")
        Watch(tmp_path, address=address, username="lab", password_env="VH_TEST_WORD").driver.close()
    finally:
        broker.kill()

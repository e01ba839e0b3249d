"""The MQTT driver against real brokers: mosquitto, and the one that the lab starts."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
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
from harness.model.time import Stamp
from tests.conformance.mqtt_bench import MAPPED, Board, Broker, Watch
from tests.seen import Around, until


@pytest.fixture(params=["mosquitto", "embedded"])
def broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Broker]:
    with Broker(tmp_path, kind=request.param) as own_broker:
        yield own_broker


@pytest.fixture
def watch(broker: Broker, tmp_path: Path) -> Iterator[Watch]:
    with Watch(tmp_path, address=f"127.0.0.1:{broker.port}", keepalive_s=2.0) as own_watch:
        yield own_watch


@pytest.fixture
def board(broker: Broker) -> Iterator[Board]:
    own_board = Board(broker)
    yield own_board
    own_board.close()


def test_messages_become_observations_with_their_time(watch: Watch, board: Board) -> None:
    before_s = time.monotonic()
    board.say("wake", phrase="alexa", score=0.9)
    board.say("transcript", text="what time is it")
    board.say("response", text="it is noon")
    board.say("status", state="idle")
    until(lambda: len(watch.all) == 4)
    stamp = Stamp(0.0)
    assert [replace(observation, at=stamp) for observation in watch.all] == [
        Wake("board", stamp, "alexa", 0.9),
        Transcript("board", stamp, "what time is it", True),
        ResponseText("board", stamp, "it is noon"),
        Status("board", stamp, DeviceState.IDLE),
    ]
    for observation in watch.all:
        assert before_s < observation.at.at_s <= time.monotonic()
        assert 0 < observation.at.error_s < 1


def test_duplicates_gaps_and_restarts_are_reported(watch: Watch, broker: Broker, board: Board) -> None:
    board.say("transcript", text="one")
    board.say("transcript", text="one", seq=1)
    board.say("transcript", text="five", seq=5)
    restarted = Board(broker, boot="b2")
    restarted.say("transcript", text="two")
    until(lambda: len(watch.of(Transcript)) == 3)
    assert [transcript.text for transcript in watch.of(Transcript)] == ["one", "five", "two"]
    (gap,) = watch.of(LogLine)
    assert gap.text.startswith("messages missing before this one: 3")
    (status,) = watch.of(Status)
    assert status.state is DeviceState.STARTED
    restarted.close()


def test_retained_messages_are_not_current_events(broker: Broker, board: Board, tmp_path: Path) -> None:
    board.say("transcript", text="yesterday", retain=True)
    with Watch(tmp_path, address=f"127.0.0.1:{broker.port}") as watch:
        board.say("transcript", text="today")
        assert watch.first(Transcript).text == "today"
        assert len(watch.of(Transcript)) == 1


def test_garbage_is_logged_as_evidence(watch: Watch, board: Board) -> None:
    broken = [b"", b"\xff\xfe\x00", b"{", b"[1, 2", b"null", b'{"text": NaN}', b'"\x1b]0;x\x07"']
    rubbish = [*broken, b"[" * 50_000, b"x" * 70_000]
    for payload in rubbish:
        board.say_raw("transcript", payload)
    board.say("transcript", text="still here")
    until(lambda: len(watch.of(Transcript)) == 1, 20)
    assert len(watch.of(LogLine)) == len(rubbish) - 1
    assert len(watch.of(Unread)) == 1


@pytest.mark.usefixtures("host_keeps_time")
def test_a_frozen_broker_is_noticed(watch: Watch, broker: Broker) -> None:
    # The pulse must have begun: a broker that never answered is found by `open`.
    until(lambda: watch.driver.acknowledged > 0)
    broker.freeze()
    began_s = time.monotonic()
    until(lambda: len(watch.of(LinkLost)) == 1, 15)
    assert time.monotonic() - began_s <= 5.0
    broker.thaw()
    until(lambda: len(watch.of(LinkBack)) == 1, 20)


def test_a_sink_that_raises_does_not_end_the_thread(broker: Broker, board: Board, tmp_path: Path) -> None:
    texts: list[str] = []

    def sink(observation: object) -> None:
        if isinstance(observation, Transcript):
            texts.append(observation.text)
            if observation.text == "first":
                raise RuntimeError("on purpose")

    driver = MqttDevice("board", MqttOptions(f"127.0.0.1:{broker.port}"), Around(tmp_path, MAPPED))
    driver.open(sink)
    board.say("transcript", text="first")
    board.say("transcript", text="second")
    until(lambda: texts == ["first", "second"])
    driver.close()


def test_closing_is_quick_in_any_state_and_final(watch: Watch, broker: Broker) -> None:
    broker.freeze()
    began_s = time.monotonic()
    watch.driver.close()
    watch.driver.close()
    assert time.monotonic() - began_s < 10
    assert not [thread for thread in threading.enumerate() if thread.name.startswith(("mqtt-pulse", "paho"))]


def test_a_password_is_asked_for_and_taken_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    passwords = tmp_path / "passwords"
    subprocess.run(["mosquitto_passwd", "-b", "-c", str(passwords), "lab", "secret"], check=True)
    os.chmod(tmp_path, 0o755)
    os.chmod(passwords, 0o644)
    with Broker(tmp_path, "allow_anonymous false", f"password_file {passwords}", "user root") as broker:
        address = f"127.0.0.1:{broker.port}"
        with pytest.raises(DeviceError, match=r"refuses.*[Nn]ot authori[sz]ed"):
            Watch(tmp_path, address=address)
        with pytest.raises(InputError, match="VH_TEST_WORD"):
            Watch(tmp_path, address=address, username="lab", password_env="VH_TEST_WORD")
        monkeypatch.setenv("VH_TEST_WORD", "secret")
        Watch(tmp_path, address=address, username="lab", password_env="VH_TEST_WORD").driver.close()

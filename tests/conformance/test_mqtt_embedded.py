"""`address: embedded`: a broker of our own, as long as a driver needs it."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import amqtt.broker
import pytest

from harness.base.plugins import pip_install
from harness.devices.mqtt.broker import serve
from harness.devices.mqtt.options import MessageFraming
from harness.model.errors import DeviceError
from harness.model.observation import LinkBack, LinkLost, LogLine
from tests.conformance.mqtt_bench import Broker, Watch
from tests.conformance.mqtt_board import FramedBoard, clicks
from tests.ports import free_port, listens
from tests.seen import until


def address_of(folder: Path) -> str:
    return (folder / "broker.address").read_text(encoding="ascii").strip()


def plays_on_a_board(watch: Watch, folder: Path, login: tuple[str, str] | None = None) -> None:
    """A board comes to where the broker says that it listens, and hears a sound."""
    embedded = Broker(folder)
    embedded.port = int(address_of(folder).rpartition(":")[2])
    board = FramedBoard(embedded, login=login)
    watch.first(LinkBack)
    watch.driver.play("one", clicks(2.0, 0.5))
    assert watch.end("one").complete
    board.close()


def test_board_connects_to_the_embedded_broker_at_its_announced_address(tmp_path: Path) -> None:
    with Watch(tmp_path, address="embedded", framing=MessageFraming.VH) as watch:
        address = address_of(tmp_path)
        assert any(address in line.text for line in watch.of(LogLine))
        (lost,) = watch.of(LinkLost)
        assert address in lost.what
        with pytest.raises(DeviceError):
            watch.driver.play("early", clicks(1.0))
        plays_on_a_board(watch, tmp_path)
    assert not listens(int(address.rpartition(":")[2]))


def test_boards_of_one_bench_share_a_broker_that_is_restarted_when_it_dies(tmp_path: Path) -> None:
    port = free_port()
    options = {"address": "embedded", "listen": f"127.0.0.1:{port}", "keepalive_s": 2.0}
    first, second = Watch(tmp_path / "a", **options), Watch(tmp_path / "b", **options)
    try:
        pid = int(subprocess.run(["pgrep", "-f", f"127.0.0.1:{port}"], capture_output=True, check=True).stdout)
        os.kill(pid, signal.SIGKILL)
        until(lambda: first.of(LinkLost) and second.of(LinkLost))
        until(lambda: first.of(LinkBack) and second.of(LinkBack), 30)
        first.driver.close()
        assert listens(port)
    finally:
        first.driver.close()
        second.driver.close()
    assert not listens(port)


def test_a_free_port_stays_free_until_the_broker_listens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def start(broker: amqtt.broker.Broker) -> None:
        host, _, port = str(broker.listeners_config["default"]["bind"]).rpartition(":")
        with socket.socket() as other, pytest.raises(OSError, match="in use"):
            other.bind((host, int(port)))
        await started(broker)

    started = amqtt.broker.Broker.start
    monkeypatch.setattr(amqtt.broker.Broker, "start", start)

    async def serve_until_it_listens() -> None:
        async with asyncio.timeout(60):
            serving = asyncio.create_task(serve(tmp_path / "port"))
            while not (tmp_path / "port").exists() and not serving.done():
                await asyncio.sleep(0.01)
            serving.cancel()
            await serving

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(serve_until_it_listens())


def test_a_port_that_is_taken_is_refused_with_a_remedy(tmp_path: Path) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        with pytest.raises(DeviceError, match="address already in use") as caught:
            Watch(tmp_path, address="embedded", listen=f"127.0.0.1:{listener.getsockname()[1]}")
    assert "listen" in caught.value.remedy


def test_without_its_extra_the_remedy_is_the_pip_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pip_install("broker")  # keeps its line: with the packages, their metadata are hidden too
    monkeypatch.setattr(sys, "path", [part for part in sys.path if "site-packages" not in part])
    for name in [name for name in sys.modules if name.partition(".")[0] == "amqtt"]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(DeviceError, match=r"pip install 'amqtt>="):
        Watch(tmp_path, address="embedded")


def test_embedded_broker_ends_with_its_parent_process(tmp_path: Path) -> None:
    port = free_port()
    script = (
        "import os, pathlib, signal\n"
        "from harness.devices.mqtt.broker import EmbeddedBroker\n"
        f"EmbeddedBroker.acquire('127.0.0.1:{port}', pathlib.Path({str(tmp_path)!r}))\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=False)
    until(lambda: not listens(port))


def test_our_broker_lets_nobody_in_without_its_password(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BOARDS_PASSWORD", "s3cret")
    login = {"username": "board", "password_env": "BOARDS_PASSWORD"}
    with Watch(tmp_path, address="embedded", listen="0.0.0.0:0", framing=MessageFraming.VH, **login) as watch:
        local = f"127.0.0.1:{address_of(tmp_path).rpartition(':')[2]}"
        with pytest.raises(DeviceError, match="cannot be used"):
            Watch(tmp_path, address=local, framing=MessageFraming.VH)
        monkeypatch.setenv("WRONG", "guess")
        with pytest.raises(DeviceError, match="cannot be used"):
            Watch(tmp_path, address=local, username="board", password_env="WRONG")
        plays_on_a_board(watch, tmp_path, ("board", "s3cret"))

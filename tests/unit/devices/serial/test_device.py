"""The link to a board in simulated time: its lines, a port that is lost and comes back, and one that takes nothing."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from harness.base import threads
from harness.base.simulated_threads import SimulatedThreads
from harness.devices.framing.board_messages import LINE
from harness.devices.framing.board_session import BoardSession
from harness.devices.outlet import DriverOutlet
from harness.devices.serial.device import SerialDevice
from harness.devices.serial.options import FramingChoice, SerialInjection, SerialOptions
from harness.devices.serial.peers import FramedPeer
from harness.devices.serial.port import PortLost
from harness.devices.wire.console import Console
from harness.model.bench import DeviceProfile, LineMapping, ObservationKind
from harness.model.errors import DeviceError
from harness.model.observation import (
    LinkBack,
    LinkLost,
    ListeningProved,
    LogLine,
    Status,
    StimulusEnded,
    StimulusStarted,
    Wake,
)
from harness.model.stimulus import Waveform
from harness.model.time import Stamp
from tests.nights.ports import SimulatedPort, SimulatedSerial
from tests.seen import Around, Seen


class Listener:
    """A board that only keeps what it receives."""

    received = b""

    def takes(self, data: bytes) -> None:
        self.received += data


@contextmanager
def opened(
    port: SimulatedPort, profile: DeviceProfile | None = None, **options: Any
) -> Iterator[tuple[SimulatedSerial, Seen]]:
    lines_only = SerialOptions(port="simulated", framing=FramingChoice.NONE, **options)
    driver, observations = SimulatedSerial("board", lines_only, Around(profile=profile), port), Seen()
    driver.open(observations)
    yield driver, observations
    driver.close()


def test_heartbeats_between_frames_are_reported_about_every_five_seconds() -> None:
    rule = LineMapping("^alive", ObservationKind.LISTENING)
    profile = DeviceProfile("kit", "kit", "kit.yaml", "0", ("alexa",), lines=(rule,))
    outlet, observations = DriverOutlet("board", Around()), Seen()
    outlet.open(observations)
    peer = FramedPeer(BoardSession("board", outlet, LINE), Console(profile, "board"), outlet)
    for number in range(200):
        peer.receive(b"alive\n", Stamp(number * 0.1))
    assert len(observations.of(ListeningProved)) == 5


def test_a_line_is_stamped_when_its_last_byte_arrives(simulated_time: SimulatedThreads) -> None:
    port = SimulatedPort(simulated_time, Listener())
    with opened(port) as (_, observations):
        port.send(b"hel", simulated_time.monotonic())
        threads.sleep(1.0)
        arrived_s = port.send(b"lo\n", simulated_time.monotonic())
        threads.sleep(1.0)
        (line,) = observations.of(LogLine)
        assert (line.source, line.text) == ("board", "hello")
        assert abs(line.at.at_s - arrived_s) <= line.at.error_s


def test_an_unplugged_port_is_lost_and_comes_back(simulated_time: SimulatedThreads) -> None:
    port = SimulatedPort(simulated_time, Listener())
    with opened(port) as (_, observations):
        gone_s = simulated_time.monotonic()
        port.unplug()
        port.send(b"unheard\n", gone_s + 1.0)
        threads.sleep(30.0)
        back_s = simulated_time.monotonic()
        port.plug()
        threads.sleep(5.0)
        port.send(b"hello again\n", simulated_time.monotonic())
        threads.sleep(1.0)
        lost, back, line = observations.all
        assert isinstance(lost, LinkLost)
        assert gone_s <= lost.at.at_s <= gone_s + 0.25
        assert "unplugged" in lost.what
        assert isinstance(back, LinkBack)
        assert back_s <= back.at.at_s <= back_s + 2.1
        assert isinstance(line, LogLine)
        assert line.text == "hello again"


def test_what_a_lost_port_leaves_unfinished_is_reported_and_spoils_no_later_line(
    simulated_time: SimulatedThreads,
) -> None:
    woke = LineMapping("^woke$", ObservationKind.WAKE, more=("^index (?P<phrase>.+)",), within_s=5.0)
    reset = LineMapping("^rst:0x1", ObservationKind.STATUS, fields=(("state", "started"),))
    profile = DeviceProfile("board", "Board", "board.yaml", "0", ("alexa",), lines=(woke, reset))
    port = SimulatedPort(simulated_time, Listener())
    with opened(port, profile) as (_, observations):
        port.send(b"woke\nI (12", simulated_time.monotonic())
        threads.sleep(1.0)
        port.unplug()
        threads.sleep(1.0)
        assert observations.of(Wake)
        port.plug()
        threads.sleep(5.0)
        port.send(b"rst:0x1 (POWERON)\n", simulated_time.monotonic())
        threads.sleep(1.0)
        assert len(observations.of(Wake)) == len(observations.of(Status)) == 1


def test_a_port_is_opened_by_one_driver_only(simulated_time: SimulatedThreads) -> None:
    port = SimulatedPort(simulated_time, Listener())
    with opened(port), pytest.raises(DeviceError), opened(port):
        pass


class FailingPort(SimulatedPort):
    """A port that can always be opened, and then fails at once."""

    opened = 0

    def open(self) -> SimulatedPort:
        self.opened += 1
        if self.opened > 100:
            raise DeviceError("opened far too often")
        return self

    def has_bytes(self) -> bool:
        return True

    def read(self) -> bytes:
        raise PortLost("the port reports an error")


def test_a_port_that_fails_at_once_is_reopened_with_growing_delay(simulated_time: SimulatedThreads) -> None:
    port = FailingPort(simulated_time, Listener())
    with opened(port):
        threads.sleep(10.0)
    assert 5 <= port.opened <= 10


class SlowPort(SimulatedPort):
    """A bridge that takes 3 s to connect again, longer than `close` waits for the driver's thread."""

    opened = closed = 0

    def open(self) -> SimulatedPort:
        self.opened += 1
        if self.opened > 1:
            threads.sleep(3.0)
        return self

    def close(self) -> None:
        self.closed += 1


def test_a_port_that_connects_after_the_close_is_closed_again(simulated_time: SimulatedThreads) -> None:
    port = SlowPort(simulated_time, Listener())
    with opened(port):
        port.unplug()
        threads.sleep(1.0)
    threads.sleep(10.0)
    assert (port.opened, port.closed) == (2, 2)


def test_a_port_that_takes_no_sound_is_lost_and_the_sound_ends(simulated_time: SimulatedThreads) -> None:
    board = Listener()
    port = SimulatedPort(simulated_time, board)
    with opened(port, injection=SerialInjection.TFLM) as (driver, observations):
        port.full = True
        driver.play("a", Waveform(np.zeros(16000, dtype=np.float32), 16000))
        threads.sleep(10.0)
        assert not board.received
        (lost,), (ended,) = observations.of(LinkLost), observations.of(StimulusEnded)
        assert "accepted no bytes" in lost.what
        assert not ended.complete
        assert lost.at.at_s - 1000 == pytest.approx(3.2, abs=0.3)


def test_a_port_that_takes_sound_again_is_back(simulated_time: SimulatedThreads) -> None:
    port = SimulatedPort(simulated_time, Listener())
    sound = Waveform(np.zeros(16000, dtype=np.float32), 16000)
    with opened(port, injection=SerialInjection.TFLM) as (driver, observations):
        port.full = True
        driver.play("a", sound)
        threads.sleep(10.0)
        driver.play("b", sound)  # ends at once, since the board is lost
        port.full = False
        threads.sleep(10.0)
        assert len(observations.of(LinkBack)) == 1
        driver.play("c", sound)
        threads.sleep(1.0)
        assert [started.play_id for started in observations.of(StimulusStarted)] == ["a", "c"]


def test_lines_loss_and_return_of_a_network_bridge_are_reported() -> None:
    server = socket.create_server(("127.0.0.1", 0))
    url = f"socket://127.0.0.1:{server.getsockname()[1]}"
    device = SerialDevice("board", SerialOptions(port=url, framing=FramingChoice.NONE), Around())
    observations = Seen()
    device.open(observations)
    try:
        bridge, _ = server.accept()
        bridge.sendall(b"hello\n")
        assert observations.first(LogLine).text == "hello"
        bridge.close()
        observations.first(LinkLost)
        bridge, _ = server.accept()
        observations.first(LinkBack)
        bridge.close()
    finally:
        device.close()
        server.close()
    with pytest.raises(DeviceError, match="cannot be reached"):
        device.open(observations)

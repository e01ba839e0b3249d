"""The rows of the driver suite: each driver with a real far end, which can be lost, brought back, and made to speak."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from harness.base.clocks import HostClock
from harness.base.ports import Driver
from harness.devices.in_process.device import InProcessOptions
from harness.devices.in_process.driver import InProcess
from harness.devices.loudspeaker import Loudspeaker, LoudspeakerOptions
from harness.devices.microphone import Microphone, MicrophoneOptions
from harness.devices.mqtt.device import MqttDevice
from harness.devices.mqtt.options import MessageFraming, MqttOptions
from harness.devices.serial.device import SerialDevice
from harness.devices.serial.options import FramingChoice, SerialOptions
from harness.lab.sound_server import LabSoundServer
from harness.model.bench import DeviceProfile
from harness.model.observation import Observation
from harness.model.stimulus import Waveform
from tests.conformance.boards import posix_board
from tests.conformance.mqtt_bench import Broker
from tests.conformance.sound_path import LAB, RATE_HZ, player

_CLOCK = HostClock()


@dataclass(frozen=True, slots=True)
class Place:
    """Surroundings of a driver in the suite."""

    folder: Path
    sound_server: str = "system"
    clock: HostClock = _CLOCK
    seed: int = 1
    profile: DeviceProfile | None = None


class Seen:
    """A sink that may be called from any thread, and waiting for what comes into it."""

    def __init__(self) -> None:
        self.all: list[Observation] = []
        self._came = threading.Condition()

    def __call__(self, observation: Observation) -> None:
        with self._came:
            self.all.append(observation)
            self._came.notify_all()

    def of(self, *kinds: type) -> list[Observation]:
        with self._came:
            return [one for one in self.all if isinstance(one, kinds)]

    def wait(self, holds: Callable[[], object], limit_s: float, what: str) -> None:
        with self._came:
            assert self._came.wait_for(holds, limit_s), f"not within {limit_s} s: {what}; it told {self.all[-8:]}"


@dataclass(frozen=True, slots=True)
class Row:
    """One driver and its far end. absent: the same without a far end; None: it always has one.

    lose, mend: the far end goes away and comes back. provoke: makes it tell something. on_air: what it plays takes its
    time. queues: a second sound follows the first one, where others refuse it.
    """

    make: Callable[[], Driver]
    absent: Callable[[], Driver] | None
    lose: Callable[[Driver], None]
    mend: Callable[[Driver], None]
    provoke: Callable[[Driver], None]
    on_air: bool = False
    queues: bool = False


Rows = Callable[[Path, LabSoundServer], "Iterator[Row]"]


def hum(seconds: float) -> Waveform:
    """A quiet tone."""
    time_s = np.arange(round(seconds * RATE_HZ)) / RATE_HZ
    return Waveform((0.1 * np.sin(2 * np.pi * 440 * time_s)).astype(np.float32), RATE_HZ)


def _signalled(server: LabSoundServer, number: signal.Signals) -> Callable[[Driver], None]:
    def act(_: Driver) -> None:
        assert server.pid is not None
        os.kill(server.pid, number)

    return act


def _plays(driver: Driver) -> None:
    assert isinstance(driver, Loudspeaker | InProcess)
    driver.play(f"provoked at {time.monotonic()}", hum(0.2))


@contextmanager
def loudspeaker(folder: Path, server: LabSoundServer) -> Iterator[Row]:
    yield Row(
        lambda: Loudspeaker("it", LoudspeakerOptions("harness_speaker"), Place(folder, LAB)),
        lambda: Loudspeaker("it", LoudspeakerOptions("no_such_speaker"), Place(folder, LAB)),
        _signalled(server, signal.SIGSTOP),
        _signalled(server, signal.SIGCONT),
        _plays,
        on_air=True,
        queues=True,
    )


@contextmanager
def microphone(folder: Path, server: LabSoundServer) -> Iterator[Row]:
    with player("dut_speaker") as (device, told):

        def speak(_: Driver) -> None:
            count = len(told.ended)
            noise = np.random.default_rng(1).normal(0, 0.1, RATE_HZ // 2)
            tone = np.sin(2 * np.pi * 150 * np.arange(RATE_HZ // 2) / RATE_HZ) * (noise + 0.3)
            device.play(f"speech {count}", Waveform(tone.astype(np.float32), RATE_HZ))

        yield Row(
            lambda: Microphone("it", MicrophoneOptions("harness_mic"), Place(folder, LAB)),
            lambda: Microphone("it", MicrophoneOptions("no_such_microphone"), Place(folder, LAB)),
            _signalled(server, signal.SIGSTOP),
            _signalled(server, signal.SIGCONT),
            speak,
        )


@contextmanager
def mqtt(folder: Path, _: LabSoundServer) -> Iterator[Row]:
    broker = Broker("mosquitto", folder)
    broker.start()
    nobody = Broker("mosquitto", folder)

    def options(port: int) -> MqttOptions:
        return MqttOptions(f"127.0.0.1:{port}", topic_device="board", framing=MessageFraming.VH, keepalive_s=2.0)

    def ask(driver: Driver) -> None:
        assert isinstance(driver, MqttDevice)
        driver.say("how long have you been on")

    try:
        with posix_board(folder, "--device", "board", "--mqtt", f"127.0.0.1:{broker.port}"):
            yield Row(
                lambda: MqttDevice("it", options(broker.port), Place(folder)),
                lambda: MqttDevice("it", options(nobody.port), Place(folder)),
                lambda _: broker.kill(),
                lambda _: broker.start(),
                ask,
            )
    finally:
        if broker.process is not None:
            broker.kill()


@contextmanager
def serial(folder: Path, _: LabSoundServer) -> Iterator[Row]:
    with posix_board(folder, cable=True) as board:
        assert board.cable is not None
        cable = board.cable

        def options(port: str) -> SerialOptions:
            return SerialOptions(port=port, framing=FramingChoice.VH)

        yield Row(
            lambda: SerialDevice("it", options(board.port), Place(folder)),
            lambda: SerialDevice("it", options(str(folder / "no_such_port")), Place(folder)),
            lambda _: cable.unplug(),
            lambda _: cable.replug(),
            lambda _: board.reset(),
            queues=True,
        )


@contextmanager
def in_process(folder: Path, _: LabSoundServer) -> Iterator[Row]:
    def lose(driver: Driver) -> None:
        assert isinstance(driver, InProcess)
        driver.lose_link("cut")

    def mend(driver: Driver) -> None:
        assert isinstance(driver, InProcess)
        driver.mend_link()

    yield Row(lambda: InProcess("it", InProcessOptions(), Place(folder)), None, lose, mend, _plays, on_air=True)


ROWS = {
    "loudspeaker": loudspeaker,
    "microphone": microphone,
    "mqtt": mqtt,
    "serial": serial,
    "in_process": in_process,
}


@contextmanager
def opened(row: Row, seen: Seen) -> Iterator[Driver]:
    """An open driver; closed afterwards, whatever happened."""
    with ExitStack() as stack:
        driver = row.make()
        stack.callback(driver.close)
        driver.open(seen)
        yield driver

"""The rows of the driver suite: each driver with a real far end, which can be lost, brought back, and made to speak."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from harness.base.plugins import Group, load
from harness.base.ports import Driver
from harness.devices.camera import Camera, CameraOptions
from harness.devices.declared import is_simulated
from harness.devices.esphome import EsphomeDevice, EsphomeOptions, EsphomeRole
from harness.devices.home_assistant import HomeAssistant, HomeAssistantOptions
from harness.devices.in_process.device import InProcessOptions
from harness.devices.in_process.driver import InProcess
from harness.devices.loudspeaker import Loudspeaker, LoudspeakerOptions
from harness.devices.microphone import Microphone, MicrophoneOptions
from harness.devices.mqtt.device import MqttDevice
from harness.devices.mqtt.options import MessageFraming, MqttOptions
from harness.devices.profiles.profile import load_profile
from harness.devices.serial.device import SerialDevice
from harness.devices.serial.options import FramingChoice, SerialOptions
from harness.devices.text_streams import CommandLog, CommandOptions, TcpLog, TcpOptions
from harness.devices.websocket import WebSocketLog, WebSocketOptions
from harness.devices.wyoming import Wyoming, WyomingMode, WyomingOptions
from harness.lab.sound_server import LabSoundServer
from harness.model.bench import DeviceProfile
from harness.model.stimulus import Waveform
from tests.conformance.boards import posix_board
from tests.conformance.esphome_far_end import EsphomeFarEnd
from tests.conformance.hass_far_end import TOKEN, HassFarEnd
from tests.conformance.mqtt_bench import Broker
from tests.conformance.picture_far_ends import RING, PictureServer
from tests.conformance.sound_path import LAB, RATE_HZ, player
from tests.conformance.text_far_ends import Program, Server
from tests.conformance.web_far_ends import WebServer
from tests.conformance.wyoming_far_ends import WyomingProgram
from tests.known import known
from tests.ports import free_port
from tests.seen import Around, Seen


@dataclass(frozen=True, slots=True)
class Row:
    """One driver and its far end. absent: the same without a far end; None: it is simulated, and always has one.

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
        os.kill(known(server.pid), number)

    return act


def _plays(driver: Driver) -> None:
    assert isinstance(driver, Loudspeaker | InProcess)
    driver.play(f"provoked at {time.monotonic()}", hum(0.2))


@contextmanager
def loudspeaker(folder: Path, server: LabSoundServer) -> Iterator[Row]:
    yield Row(
        lambda: Loudspeaker("it", LoudspeakerOptions("harness_speaker"), Around(folder, sound_server=LAB)),
        lambda: Loudspeaker("it", LoudspeakerOptions("no_such_speaker"), Around(folder, sound_server=LAB)),
        _signalled(server, signal.SIGSTOP),
        _signalled(server, signal.SIGCONT),
        _plays,
        on_air=True,
        queues=True,
    )


@contextmanager
def microphone(folder: Path, server: LabSoundServer) -> Iterator[Row]:
    with player("dut_speaker") as (device, events):

        def speak(_: Driver) -> None:
            count = len(events.ended)
            noise = np.random.default_rng(1).normal(0, 0.1, RATE_HZ // 2)
            tone = np.sin(2 * np.pi * 150 * np.arange(RATE_HZ // 2) / RATE_HZ) * (noise + 0.3)
            device.play(f"speech {count}", Waveform(tone.astype(np.float32), RATE_HZ))

        yield Row(
            lambda: Microphone("it", MicrophoneOptions("harness_mic"), Around(folder, sound_server=LAB)),
            lambda: Microphone("it", MicrophoneOptions("no_such_microphone"), Around(folder, sound_server=LAB)),
            _signalled(server, signal.SIGSTOP),
            _signalled(server, signal.SIGCONT),
            speak,
        )


@contextmanager
def mqtt(folder: Path, _: LabSoundServer) -> Iterator[Row]:
    def options(port: int) -> MqttOptions:
        return MqttOptions(f"127.0.0.1:{port}", topic_device="board", framing=MessageFraming.VH, keepalive_s=2.0)

    def ask(driver: Driver) -> None:
        assert isinstance(driver, MqttDevice)
        driver.say("how long have you been on")

    nobody = Broker(folder)
    with Broker(folder) as broker, posix_board(folder, "--device", "board", "--mqtt", f"127.0.0.1:{broker.port}"):
        yield Row(
            lambda: MqttDevice("it", options(broker.port), Around(folder)),
            lambda: MqttDevice("it", options(nobody.port), Around(folder)),
            lambda _: broker.kill(),
            lambda _: broker.start(),
            ask,
        )


@contextmanager
def serial(folder: Path, _: LabSoundServer) -> Iterator[Row]:
    with posix_board(folder, cable=True) as board:
        cable = known(board.cable)

        def options(port: str) -> SerialOptions:
            return SerialOptions(port=port, framing=FramingChoice.VH)

        yield Row(
            lambda: SerialDevice("it", options(board.port), Around(folder)),
            lambda: SerialDevice("it", options(str(folder / "no_such_port")), Around(folder)),
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

    yield Row(lambda: InProcess("it", InProcessOptions(), Around(folder)), None, lose, mend, _plays, on_air=True)


@contextmanager
def command(folder: Path, _: LabSoundServer) -> Iterator[Row]:
    program = Program(folder)
    ready = CommandOptions(command=program.command, ready="^ready")
    yield Row(
        lambda: CommandLog("it", ready, Around(folder)),
        lambda: CommandLog("it", CommandOptions(command=(str(folder / "no_such_program"),)), Around(folder)),
        lambda _: program.lose(),
        lambda _: program.mend(),
        lambda _: program.say("a line"),
    )


@contextmanager
def tcp(folder: Path, _: LabSoundServer) -> Iterator[Row]:
    with Server() as server, Server() as nobody:
        nobody.lose()
        yield Row(
            lambda: TcpLog("it", TcpOptions(address=server.address), Around(folder)),
            lambda: TcpLog("it", TcpOptions(address=nobody.address), Around(folder)),
            lambda _: server.lose(),
            lambda _: server.mend(),
            lambda _: server.say("a line"),
        )


@contextmanager
def wyoming(folder: Path, _: LabSoundServer) -> Iterator[Row]:
    def options(satellite: WyomingProgram) -> WyomingOptions:
        server = f"127.0.0.1:{satellite.port}"
        return WyomingOptions(address=f"127.0.0.1:{client.port}", mode=WyomingMode.PROXY, server=server)

    nobody, client = WyomingProgram("satellite", free_port()), WyomingProgram("client", free_port())
    with WyomingProgram("satellite", free_port()) as satellite, client:
        yield Row(
            lambda: Wyoming("it", options(satellite), Around(folder)),
            lambda: Wyoming("it", options(nobody), Around(folder)),
            lambda _: satellite.kill(),
            lambda _: satellite.start(),
            lambda _: satellite.say("detection"),
        )


@contextmanager
def wyoming_server(folder: Path, _: LabSoundServer) -> Iterator[Row]:
    def options(satellite: WyomingProgram) -> WyomingOptions:
        return WyomingOptions(address=f"127.0.0.1:{satellite.port}", mode=WyomingMode.SERVER, answer="Yes.")

    nobody = WyomingProgram("satellite", free_port())
    with WyomingProgram("satellite", free_port()) as satellite:
        yield Row(
            lambda: Wyoming("it", options(satellite), Around(folder)),
            lambda: Wyoming("it", options(nobody), Around(folder)),
            lambda _: satellite.kill(),
            lambda _: satellite.start(),
            lambda _: satellite.say("detection"),
        )


@contextmanager
def websocket(folder: Path, _: LabSoundServer) -> Iterator[Row]:
    with WebServer() as server, WebServer() as nobody:
        nobody.lose()
        yield Row(
            lambda: WebSocketLog("it", WebSocketOptions(url=server.url), Around(folder)),
            lambda: WebSocketLog("it", WebSocketOptions(url=nobody.url), Around(folder)),
            lambda _: server.lose(),
            lambda _: server.mend(),
            lambda _: server.say("a line"),
        )


@contextmanager
def esphome(
    folder: Path, _: LabSoundServer, role: EsphomeRole = EsphomeRole.OBSERVER, profile: DeviceProfile | None = None
) -> Iterator[Row]:
    def provoke(_: Driver) -> None:
        if device.assistant is None:
            device.log("[D][main:1]: a line")
        else:
            device.wake()

    around = Around(folder, profile)
    with EsphomeFarEnd() as device, EsphomeFarEnd() as nobody:
        nobody.lose()
        yield Row(
            lambda: EsphomeDevice("it", EsphomeOptions(address=device.address, role=role), around),
            lambda: EsphomeDevice("it", EsphomeOptions(address=nobody.address, role=role), around),
            lambda _: device.lose(),
            lambda _: device.mend(),
            provoke,
        )


@contextmanager
def esphome_assistant(folder: Path, server: LabSoundServer) -> Iterator[Row]:
    profile = load_profile("esphome_assistant", beside=folder)
    with esphome(folder, server, EsphomeRole.ASSISTANT, profile) as row:
        yield row


@contextmanager
def home_assistant(folder: Path, _: LabSoundServer) -> Iterator[Row]:
    around = Around(folder, load_profile("home_assistant", beside=folder))
    before, os.environ["HASS_TOKEN"] = os.environ.get("HASS_TOKEN", ""), TOKEN
    try:
        with HassFarEnd() as far_end, HassFarEnd() as nobody:
            nobody.lose()
            yield Row(
                lambda: HomeAssistant("it", HomeAssistantOptions(far_end.url), around),
                lambda: HomeAssistant("it", HomeAssistantOptions(nobody.url), around),
                lambda _: far_end.lose(),
                lambda _: far_end.mend(),
                lambda _: far_end.change(
                    "listening" if far_end.states["assist_satellite.kitchen"] == "idle" else "idle"
                ),
            )
    finally:
        os.environ["HASS_TOKEN"] = before


@contextmanager
def camera(folder: Path, _: LabSoundServer) -> Iterator[Row]:
    around = Around(folder, load_profile("light_ring", beside=folder))
    with PictureServer() as server, PictureServer() as nobody:
        nobody.lose()
        yield Row(
            lambda: Camera("it", CameraOptions(source=server.url, rectangle=RING), around),
            lambda: Camera("it", CameraOptions(source=nobody.url, rectangle=RING), around),
            lambda _: server.lose(),
            lambda _: server.mend(),
            lambda _: server.show("red" if server.shows == "blue" else "blue"),
        )


_DRIVERS = (
    loudspeaker,
    microphone,
    mqtt,
    serial,
    in_process,
    command,
    tcp,
    websocket,
    wyoming,
    esphome,
    camera,
    home_assistant,
)
ROWS = {driver.__name__: driver for driver in _DRIVERS} | {
    "wyoming:server": wyoming_server,
    "esphome:assistant": esphome_assistant,
}
"""A driver that works in several ways can have several rows: `name:way`."""


def driver_of(row: str) -> str:
    return row.partition(":")[0]


PLAYING = [row for row in ROWS if hasattr(load(Group.DRIVERS, driver_of(row)), "play")]
"""The rows of drivers that play sound to a device."""
APART = [row for row in ROWS if not is_simulated(driver_of(row))]
"""The rows whose far end is apart from the driver, and can be absent."""


@contextmanager
def opened(row: Row, observations: Seen) -> Iterator[Driver]:
    """An open driver; closed afterwards, whatever happened."""
    with ExitStack() as stack:
        driver = row.make()
        stack.callback(driver.close)
        driver.open(observations)
        yield driver

"""Stands and their far ends: a turntable on a serial line, a slider at a broker, an instrument that speaks SCPI."""

from __future__ import annotations

import os
import socketserver
import subprocess
import threading
import time
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import paho.mqtt.client as mqtt
import pytest
from paho.mqtt.enums import CallbackAPIVersion

from harness.base.host_check import Level
from harness.devices.mqtt.commands import MqttCommandOptions, MqttCommands
from harness.devices.orders import TakesOrders
from harness.devices.scpi import Scpi, ScpiOptions
from harness.devices.serial.commands import SerialCommandOptions, SerialCommands
from harness.model.errors import DeviceError
from harness.model.positioners import BenchOrder, Positioner
from harness.model.record import AttemptStarted, SettingsNoted, SettingsStage
from harness.session.engine.launch import start_engine
from tests.conformance.engine_runs import HARNESS, HERE, Runs, kill, play_out, rows, wait_for
from tests.conformance.mqtt_bench import Broker
from tests.seen import Around, Seen, until
from tests.written_sessions import records

TURNS_S = 0.3
"""How long the far ends take to move."""


class Turntable:
    """A line protocol on a pty: ANGLE n is answered at once, and DONE n comes when it stands there."""

    def __init__(self, folder: Path) -> None:
        self._far, self._near = os.openpty()
        tty.setraw(self._near)
        self._link = folder / "table"
        self._link.symlink_to(os.ttyname(self._near))
        self.port = str(self._link)
        self.at = 0.0
        self.moves: list[str] = []
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        heard = b""
        while True:
            try:
                heard += os.read(self._far, 256)
            except OSError:  # nobody has the near end open any more
                os.close(self._far)
                return
            *lines, heard = heard.split(b"\r\n")
            for line in lines:
                self._obey(line.decode())

    def _obey(self, line: str) -> None:
        self.moves.append(line)
        angle = float(line.removeprefix("ANGLE "))
        if abs(angle) > 180:
            self._say("ERR range")
            return
        self._say("moving")
        time.sleep(TURNS_S)
        self.at = angle
        self._say(f"DONE {angle:.1f}")

    def _say(self, text: str) -> None:
        for part in (text[:3], text[3:] + "\r\n"):  # lines come in pieces
            os.write(self._far, part.encode())

    def unplug(self) -> None:
        """The pty goes as soon as the harness has closed it, too."""
        self._link.unlink()
        os.close(self._near)


class Instrument(socketserver.ThreadingTCPServer):
    """SCPI on a socket: answers *IDN?, *OPC?, SYST:ERR? and OUTP?, and is busy while it moves."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Session)
        self.values: dict[str, str] = {"OUTP": "0", "POS": "0"}
        self.errors: list[str] = []
        self.busy_until_s = 0.0
        self.moves_s = TURNS_S
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def resource(self) -> str:
        return f"TCPIP::127.0.0.1::{self.server_address[1]}::SOCKET"

    def query(self, name: str) -> str:
        match name:
            case "*IDN":
                return "VOICE LAB,TURNTABLE,1,1.0"
            case "*OPC":
                time.sleep(max(0.0, self.busy_until_s - time.monotonic()))
                return "1"
            case "SYST:ERR":
                return self.errors.pop(0) if self.errors else '0,"No error"'
            case "POS" if time.monotonic() < self.busy_until_s:
                return "-1"
        return self.values[name]

    def command(self, name: str, value: str) -> None:
        if name not in self.values:
            self.errors.append('-113,"Undefined header"')
            return
        self.values[name] = value
        self.busy_until_s = time.monotonic() + self.moves_s


class _Session(socketserver.StreamRequestHandler):
    server: Instrument

    def handle(self) -> None:
        for line in self.rfile:
            name, _, value = line.decode().strip().partition(" ")
            if name.endswith("?"):
                self.wfile.write(f"{self.server.query(name[:-1])}\n".encode())
            else:
                self.server.command(name, value)


@contextmanager
def opened(kind: Callable[..., Any], options: object) -> Iterator[Any]:
    driver = kind("stand", options, Around())
    driver.open(Seen())
    try:
        yield driver
    finally:
        driver.close()


def carry_out(driver: TakesOrders, order: BenchOrder) -> float:
    """How long it took."""
    begun_s = time.monotonic()
    driver.carry_out(order, threading.Event())
    return time.monotonic() - begun_s


def turn(angle: float, within_s: float = 20.0) -> BenchOrder:
    stand = Positioner(
        "table", "table", "angle_deg", "ANGLE {value:.1f}", "^DONE {value:.1f}$", "^ERR", within_s=within_s
    )
    return stand.order(f"{angle:g}")


def test_a_turntable_on_a_serial_port_has_turned_when_it_says_so(tmp_path: Path) -> None:
    table = Turntable(tmp_path)
    with opened(SerialCommands, SerialCommandOptions(port=table.port, line_end="crlf")) as driver:
        assert carry_out(driver, turn(90)) >= TURNS_S
        assert table.at == 90.0
        carry_out(driver, turn(-45))
        assert table.at == -45.0
        with pytest.raises(DeviceError, match="table: set angle_deg to 270: it reports 'ERR range'"):
            carry_out(driver, turn(270))
        with pytest.raises(DeviceError, match=r"not done within 0\.1 s"):
            carry_out(driver, turn(10, within_s=0.1))
        until(lambda: table.at == 10.0)
        carry_out(driver, turn(20))  # what it still said of the last order is not taken for this one's
        assert table.at == 20.0
        assert table.moves == ["ANGLE 90.0", "ANGLE -45.0", "ANGLE 270.0", "ANGLE 10.0", "ANGLE 20.0"]
        table.unplug()
        driver.close()
        with pytest.raises(DeviceError, match=r"table: set angle_deg to 30: .* does not exist"):
            carry_out(driver, turn(30))


SCENARIO = """\
scenario: turned
defaults: {life_check_after: 0, between_trials_s: 0}
trials: [{id: call, kind: wake, lead_in_s: 0.1, tail_s: 0.1}]
matrix: {axes: {angle_deg: [30, -30]}}
"""
BENCH = """\
bench: desk
operator: absent
loudspeakers: {{front: {{driver: in_process}}}}
devices: {{unit: {{profile: {profile}, connection: {{driver: in_process}}}}}}
stands:
  table: {{driver: serial_commands, port: {port}, line_end: crlf, moves: angle_deg, move: 'ANGLE {{value:.1f}}',
    done: '^DONE {{value:.1f}}$', failed: ^ERR, low: -180, high: 180, home: 0}}
  absent: {{driver: serial_commands, port: /dev/nothing, moves: height_m}}
"""


def test_a_session_moves_its_stand_again_after_a_kill_and_then_home(runs: Runs) -> None:
    table = Turntable(runs.root)
    bench = BENCH.format(profile=HERE / "device.yaml", port=table.port)
    (runs.root / "s.yaml").write_text(SCENARIO, encoding="utf-8")
    (runs.root / "bench.yaml").write_text(bench, encoding="utf-8")
    folder = runs.prepare(runs.root / "s.yaml", runs.root / "bench.yaml")
    place = start_engine(folder)
    wait_for(lambda: "ANGLE -30.0" in table.moves, 120, "the second angle")
    kill(place)
    play_out(folder)
    assert table.moves == ["ANGLE 30.0", "ANGLE -30.0", "ANGLE -30.0", "ANGLE 0.0"]
    entries = rows(folder)
    there, positions = "", []
    for entry in entries:
        match entry.record:
            case SettingsNoted(source="table", of=SettingsStage.TRIAL, settings=((_, there),)):
                pass
            case AttemptStarted(trial_id=trial_id):
                positions.append((trial_id, there))
            case _:
                pass
    assert positions == [("call.a30.r1", "30"), ("call.a-30.r1", "-30")]
    assert [row.of for row in records(entries, SettingsNoted)][-1] is SettingsStage.RESTORED
    table.unplug()


def test_a_stand_of_a_bench_is_tried_without_a_session(tmp_path: Path) -> None:
    table = Turntable(tmp_path)
    bench = tmp_path / "bench.yaml"
    bench.write_text(BENCH.format(profile=HERE / "device.yaml", port=table.port), encoding="utf-8")
    moved = harness("devices", "move", bench, "table", "90")
    assert moved.stdout.startswith("table: angle_deg is 90, after "), moved
    assert table.at == 90.0
    refused = harness("devices", "move", bench, "table", "181")
    assert (refused.returncode, "181 is not between -180 and 180" in refused.stderr) == (2, True)
    unknown = harness("devices", "power", bench, "unit", "on")
    assert (unknown.returncode, "has no power switch for 'unit'" in unknown.stderr) == (2, True)
    table.unplug()


def harness(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*HARNESS, *map(str, arguments)], capture_output=True, text=True, check=False)


def test_cancelled_stand_command_returns_at_once(tmp_path: Path) -> None:
    table, given_up = Turntable(tmp_path), threading.Event()
    given_up.set()
    with (
        opened(SerialCommands, SerialCommandOptions(port=table.port, line_end="crlf")) as driver,
        pytest.raises(DeviceError, match="abandoned, because the run is ending"),
    ):
        driver.carry_out(turn(90), given_up)
    assert not table.moves
    table.unplug()


@contextmanager
def subscribed(
    broker: Broker, topic: str, message: Callable[[mqtt.Client, object, mqtt.MQTTMessage], None]
) -> Iterator[None]:
    """A client at the broker that gets the messages of a topic."""
    client, ready = mqtt.Client(CallbackAPIVersion.VERSION2), threading.Event()
    client.on_message = message
    client.on_subscribe = lambda *_: ready.set()
    client.connect("127.0.0.1", broker.port)
    client.subscribe(topic, 1)
    client.loop_start()
    assert ready.wait(20)
    try:
        yield
    finally:
        client.disconnect()
        client.loop_stop()


@contextmanager
def slider(broker: Broker) -> Iterator[list[tuple[str, str]]]:
    """A far end at the broker that reports its place when it is there; what it was told."""
    orders: list[tuple[str, str]] = []

    def message(client: mqtt.Client, _: object, message: mqtt.MQTTMessage) -> None:
        value = message.topic.rsplit("/", 1)[1]
        orders.append((message.topic, message.payload.decode()))
        time.sleep(TURNS_S)
        client.publish("slider/at", f'{{"at": {value}}}', qos=1, retain=True)

    with subscribed(broker, "slider/go/+", message):
        yield orders


def test_a_slider_at_a_broker_has_arrived_when_it_publishes_so(tmp_path: Path) -> None:
    stand = Positioner("slider", "slider", "distance_m", '{"m": {value:.2f}}', '"at": {value}}', within_s=20)
    with Broker(tmp_path) as broker, slider(broker) as orders:
        options = MqttCommandOptions(f"127.0.0.1:{broker.port}", "slider/go/{value}", "slider/at")
        with opened(MqttCommands, options) as driver:
            assert carry_out(driver, stand.order("1.5")) >= TURNS_S
            assert carry_out(driver, stand.order("3")) >= TURNS_S
            assert orders == [("slider/go/1.5", '{"m": 1.50}'), ("slider/go/3", '{"m": 3.00}')]
        with opened(MqttCommands, options) as driver:  # the broker keeps the last place, which is not this order's
            assert carry_out(driver, stand.order("3")) >= TURNS_S
            broker.kill()
            with pytest.raises(DeviceError, match="slider: set distance_m to 2"):
                carry_out(driver, stand.order("2"))


def test_scpi_command_waits_for_operation_complete() -> None:
    with Instrument() as far, opened(Scpi, ScpiOptions(far.resource, errors="SYST:ERR?")) as driver:
        supply = BenchOrder("supply: on", "OUTP ON", within_s=20)
        assert carry_out(driver, supply) >= TURNS_S
        assert far.values["OUTP"] == "ON"
        with pytest.raises(DeviceError, match=r'supply: oops: it reports .-113,"Undefined header"'):
            carry_out(driver, BenchOrder("supply: oops", "OUPT ON", within_s=20))
        assert carry_out(driver, supply) >= TURNS_S
        far.shutdown()


def test_the_late_answer_to_an_order_does_not_complete_the_next_one() -> None:
    with Instrument() as far, opened(Scpi, ScpiOptions(far.resource)) as driver:
        far.moves_s = 4 * TURNS_S
        with pytest.raises(DeviceError, match="not done within"):
            carry_out(driver, BenchOrder("table: to 10", "POS 10", within_s=TURNS_S))
        assert carry_out(driver, BenchOrder("table: to 20", "POS 20", within_s=20)) >= far.moves_s
        far.shutdown()


def test_doctor_queries_the_identity_of_an_instrument() -> None:
    with Instrument() as far:
        present, absent = Scpi.host_checks(
            [("table", ScpiOptions(far.resource)), ("lift", ScpiOptions("TCPIP::127.0.0.1::9::SOCKET"))]
        )
        assert present.says == f"table: {far.resource} answers: VOICE LAB,TURNTABLE,1,1.0"
        assert (absent.level, absent.says.startswith("lift: ")) == (Level.FAIL, True)
        far.shutdown()


def test_an_instrument_is_asked_again_until_it_is_there() -> None:
    stand = Positioner("table", "table", "angle_deg", "POS {value:.1f}", "^{value:.1f}$", within_s=20)
    with Instrument() as far, opened(Scpi, ScpiOptions(far.resource, ask="POS?")) as driver:
        assert carry_out(driver, stand.order("30")) >= TURNS_S
        assert far.values["POS"] == "30.0"
        far.shutdown()


def test_an_instrument_that_is_not_there_is_named() -> None:
    with (
        pytest.raises(DeviceError, match=r"stand: .*TCPIP::127.0.0.1::9::SOCKET"),
        opened(Scpi, ScpiOptions("TCPIP::127.0.0.1::9::SOCKET")),
    ):
        pass

"""What a bench of boards may get wrong: said at once, with its line and a remedy, and before anything is played."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import serial

from harness.model.record import AttemptStarted
from tests.conformance.boards import posix_board
from tests.conformance.engine_runs import HARNESS, rows
from tests.conformance.faulted_runs import SCENARIO
from tests.conformance.mqtt_bench import Broker
from tests.seen import until


def refused(root: Path, connection: str, profile: str = "vh_board", scenario: str = SCENARIO) -> tuple[int, str]:
    """Exit status of a run, and what it says; not a sound was given to anybody."""
    (root / "scenario.yaml").write_text(scenario, encoding="utf-8")
    text = f"bench: bad\noperator: absent\ndevices:\n  wired:\n    profile: {profile}\n    connection: {connection}\n"
    (root / "bench.yaml").write_text(text, encoding="utf-8")
    result = subprocess.run(
        [*HARNESS, "run", "scenario.yaml", "--bench", "bench.yaml", "--plain"],
        cwd=root, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    for folder in (root / "sessions").glob("[!.]*"):
        assert not [entry for entry in rows(folder) if isinstance(entry.record, AttemptStarted)]
    return result.returncode, result.stdout + result.stderr


SPEAKER = """\
import os, sys, time, tty
master, slave = os.openpty()
tty.setraw(slave)
os.symlink(os.ttyname(slave), sys.argv[1])
while True:
    if sys.argv[2] == "garbage":
        os.write(master, os.urandom(200))
    elif sys.argv[2] == "text":
        os.write(master, b"I (1234) main: hello world\\r\\n")
    time.sleep(0.02)
"""


@pytest.mark.parametrize(
    ("says", "message"),
    [
        pytest.param("nothing", "no bytes received. Check its power", marks=pytest.mark.soak),
        ("text", 'bytes of text received, such as "I (1234) main: hello world". The board prints log lines'),
        pytest.param(
            "garbage", "bytes received that are neither text nor frames. Check `baud` first", marks=pytest.mark.soak
        ),
    ],
)
def test_a_board_without_framing_is_refused(says: str, message: str, short: Path) -> None:
    port = short / "port"
    speaker = subprocess.Popen([sys.executable, "-c", SPEAKER, str(port), says])
    try:
        until(port.is_symlink)
        status, output = refused(short, f"{{driver: serial, port: {port}}}")
    finally:
        speaker.kill()
        speaker.wait()
    assert status == 3
    assert f"bench.yaml:6:5: wired: the board at {port} does not answer in the harness's framing: " in output
    assert message in output


def test_missing_or_invalid_port_is_refused(short: Path) -> None:
    (short / "plain.txt").touch()
    status, output = refused(short, f"{{driver: serial, port: {short}/plain.txt}}")
    message = f"bench.yaml:6:5: {short}/plain.txt is not a serial port. Use a device such as /dev/ttyUSB0"
    assert (status, message in output) == (3, True), output
    status, output = refused(short, "{driver: serial, port: /dev/nowhere}")
    message = "bench.yaml:6:5: /dev/nowhere does not exist. Plug in the adapter, or correct `port`"
    assert (status, message in output) == (3, True), output


def test_a_port_in_use_is_refused(short: Path) -> None:
    with posix_board(short) as board, serial.Serial(board.port, exclusive=True):
        status, output = refused(short, f"{{driver: serial, port: {board.port}}}")
    assert status == 3
    assert re.search(rf"bench\.yaml:6:5: {board.port} is in use: \S+ \(process \d+\) has it open", output), output


def test_a_refusing_or_missing_broker_is_reported(short: Path) -> None:
    with Broker(short, "allow_anonymous false") as broker:
        connection = f'{{driver: mqtt, address: "127.0.0.1:{broker.port}"}}'
        status, output = refused(short, connection, "vh_board_mqtt")
    assert status == 3
    assert re.search(
        r"bench\.yaml:6:5: wired: the MQTT broker at \S+ cannot be used: it refuses: Not authorized", output
    )
    status, output = refused(short, connection, "vh_board_mqtt")
    assert (status, "Connection refused. Check that the broker is running" in output) == (3, True), output


def test_a_profile_without_sound_is_skipped_with_the_reason(short: Path) -> None:
    scenario = SCENARIO.replace("needs: [wake_events, injection]\n", "").replace(
        "kind: wake", "kind: wake, route: injection"
    )
    scenario = scenario.replace("    kind: ambient\n", "    kind: ambient\n    route: injection\n")
    status, output = refused(short, "{driver: serial, port: /dev/nowhere}", "vh_board_console", scenario)
    assert status == 0
    assert "SKIP" in output
    assert "injects sound into 'wired', whose connection (serial) cannot inject" in output

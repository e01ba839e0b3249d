"""A transport from a package of its own works in every verb: nothing in the tree knows its name."""

from __future__ import annotations

import json
import os
import re
import runpy
import shlex
import shutil
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.devices.profiles.profile import load_profile
from harness.model.errors import DeviceError
from harness.model.observation import LinkBack, LinkLost, Wake
from tests.conformance.engine_runs import wait_for
from tests.conformance.offline.said import say
from tests.conformance.typed import HARNESS, Typed, typing_in
from tests.known import known
from tests.ports import free_port, listens
from tests.seen import Around, opened

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "tests" / "external_driver"
PAGE = ROOT / "docs" / "how-to" / "add-a-transport.md"
LAMP = """\
device: lamp
wake_phrases: [hey marvin]
reports: [wake, status]
transport: tcp_line
audio: {dialogue: driver}
lines:
  - {match: '^woke at (?P<time>\\d+) ms, (?P<score>\\d+) %', kind: wake, score_scale: 100, clock: audio_ms}
  - {match: '^boot: (?P<detail>.*)', kind: status, fields: {state: started}}
  - {match: '^lamp firmware (?P<firmware>\\S+)', kind: about}
samples:
  - {lines: ['woke at 1016 ms, 86 %'], gives: [{kind: wake, score: 0.86, device_s: 1.016}]}
"""
WAKE = """\
scenario: lamp_wakes
needs: [wake_events, injection]
trials: [{id: call, kind: wake, repeat: 2}]
limits: {max_false_reject_share: 0}
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package, and that of the page, installed as users install them; with the page's other files."""
    folder = tmp_path_factory.mktemp("site")
    (page := folder / "page").mkdir()
    names = ("tcp_log.py", "pyproject.toml", "lamp.py", "lamp.yaml", "bench.yaml", "soak.yaml", "commands")
    blocks = re.findall(r"^```\w+\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    for name, text in zip(names, blocks, strict=True):
        (page / name).write_text(text, encoding="utf-8")
    shutil.copytree(PACKAGE, folder / "package")  # a build leaves its traces there
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "--target", folder]
    subprocess.run([*command, folder / "package", page], check=True, capture_output=True, cwd=folder)
    return folder


@pytest.fixture
def typed(tmp_path: Path, site: Path) -> Iterator[Typed]:
    """With the package."""
    with typing_in(tmp_path, PYTHONPATH=str(site)) as run:
        yield run


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """Of a board, and a bench that it is on."""
    port = tmp_path / "port"
    board = subprocess.Popen([sys.executable, "-m", "tests.external_driver.tcp_board", port], cwd=ROOT)
    try:
        wait_for(port.exists, event="the board's port")
        address = f"127.0.0.1:{port.read_text(encoding='ascii')}"
        (tmp_path / "lamp.yaml").write_text(LAMP, encoding="utf-8")
        (tmp_path / "wake.yaml").write_text(WAKE, encoding="utf-8")
        (tmp_path / "bench.yaml").write_text(
            f"bench: b\ndevices: {{lamp: {{profile: lamp, connection: {{driver: tcp_line, address: '{address}'}}}}}}\n",
            encoding="utf-8",
        )
        yield address
    finally:
        board.kill()
        board.wait()


def test_external_driver_runs_on_a_bench(typed: Typed, address: str, tmp_path: Path) -> None:
    typed("validate", tmp_path)
    run = typed("run", "wake.yaml", "--bench", "bench.yaml")
    assert "0 of 2 = 0.00 %" in run.stdout
    (session,) = (tmp_path / "sessions").iterdir()
    facts = json.loads((session / "session.json").read_text(encoding="utf-8"))
    assert "lamp gets its sound over its" in facts["sound_path"]
    assert "firmware 1.2" in typed("show", session).stdout


def test_external_driver_is_tested_and_monitored(typed: Typed, address: str) -> None:
    for reached in (("--address", address), ("--driver", "tcp_line", "--set", f"address={address}")):
        watched = typed("devices", "test", "lamp.yaml", *reached, "--seconds", "1").stdout
        assert "1 of 1 samples pass" in watched
        assert "kind: about, firmware: '1.2'" in watched


def test_monitor_follows_external_driver_until_it_ends(site: Path, address: str, tmp_path: Path) -> None:
    command = [HARNESS, "devices", "monitor", "lamp.yaml", "--address", address, "--json"]
    environment = {**os.environ, "PYTHONPATH": str(site)}
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True) as watched:
        output = known(watched.stdout)
        assert json.loads(output.readline())["made"] == "kind: about, firmware: '1.2'"
        host, _, port = address.rpartition(":")
        with socket.create_connection((host, int(port))) as other:
            other.sendall(b"RESET\nEND\n")
        rest = [json.loads(line) for line in output]
    assert watched.returncode == 0
    assert rest[0]["made"] == "kind: status, state: started, detail: reset"
    assert rest[-1]["note"] == "2 lines: 2 mapped, 0 not"


def test_doctor_checks_external_driver(typed: Typed, address: str, tmp_path: Path) -> None:
    checks = json.loads(typed("doctor", "--bench", "bench.yaml", "--json", status=1).stdout)["checks"]
    assert [check["says"] for check in checks if check["name"] == "tcp"] == [f"lamp: {address} answers"]


def test_files_are_evaluated_through_external_driver(typed: Typed, address: str, tmp_path: Path) -> None:
    say(tmp_path / "marvin.wav", "hey marvin", "en-gb")
    (tmp_path / "inv.txt").write_text("marvin.wav\n", encoding="utf-8")
    result = typed("evaluate", "-v", "-v", "-v", "-t", "device:bench.yaml#lamp", "-i", "inv.txt")
    assert "INVTA" in result.stdout + result.stderr
    assert "1.2" in (tmp_path / "device-bench.yaml_lamp.log").read_text(encoding="utf-8")


def test_the_steps_of_the_page_work(typed: Typed, site: Path, tmp_path: Path) -> None:
    port = free_port()
    for path in (site / "page").iterdir():
        if path.is_file():
            (tmp_path / path.name).write_text(path.read_text(encoding="utf-8").replace("7313", str(port)))
    lamp = subprocess.Popen([sys.executable, tmp_path / "lamp.py"], stderr=subprocess.DEVNULL)
    try:
        wait_for(lambda: listens(port), event="the lamp")
        commands = (tmp_path / "commands").read_text(encoding="utf-8").splitlines()
        outputs = [typed(*shlex.split(command)[1:]).stdout for command in commands]
    finally:
        lamp.kill()
        lamp.wait()
    assert "× kind: wake, score: 0.9" in outputs[0]
    assert re.search(r"false accepts +\d+ in", outputs[-1])


PAIRS = """\
device: lamp
transport: tcp
wake_phrases: [hey lamp]
lines:
  - {match: '^woke, (?P<score>\\d+) %', kind: wake, score_scale: 100, more: ['^phrase (?P<phrase>.+)'], within_s: 0.5}
"""


@pytest.fixture
def driver_of_page(site: Path, tmp_path: Path) -> Iterator[tuple[Any, socket.socket]]:
    """The driver that the page shows, and the socket that its device listens at."""
    (tmp_path / "pairs.yaml").write_text(PAIRS, encoding="utf-8")
    module = runpy.run_path(str(site / "tcp_log.py"))
    surroundings = Around(tmp_path, profile=load_profile(tmp_path / "pairs.yaml", beside=tmp_path))
    with socket.create_server(("127.0.0.1", 0)) as server:
        options = module["TcpLogOptions"](f"127.0.0.1:{server.getsockname()[1]}")
        driver = module["TcpLog"]("lamp", options, surroundings)
        yield driver, server
        driver.close()


def reset(device: socket.socket) -> None:
    """Closes a connection as a device does that loses its power, with a TCP reset."""
    device.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    device.close()


@pytest.mark.parametrize("end", [reset, socket.socket.close])
def test_driver_of_the_page_reports_loss_and_return(driver_of_page: tuple[Any, socket.socket], end: Any) -> None:
    driver, server = driver_of_page
    observations = opened(driver)
    device, _ = server.accept()
    device.sendall(b"woke, 90 %\nphrase hey lamp\n")
    assert observations.first(Wake).phrase == "hey lamp"
    end(device)
    observations.first(LinkLost)
    device, _ = server.accept()
    observations.first(LinkBack)
    device.sendall(b"woke, 80 %\nphrase hey lamp\n")
    observations.wait(lambda: len(observations.of(Wake)) == 2, 30, "a wake event after the return")
    assert (len(observations.of(LinkLost)), len(observations.of(LinkBack))) == (1, 1)
    device.close()


def test_driver_of_the_page_lets_rules_time_out(driver_of_page: tuple[Any, socket.socket]) -> None:
    driver, server = driver_of_page
    observations = opened(driver)
    with server.accept()[0] as device:
        device.sendall(b"woke, 90 %\n")  # and no phrase follows, nor any other byte
        assert observations.first(Wake).score == 0.9


def test_driver_of_the_page_closes_in_any_state(driver_of_page: tuple[Any, socket.socket]) -> None:
    driver, server = driver_of_page
    driver.close()
    observations = opened(driver)
    reset(server.accept()[0])
    server.close()
    observations.first(LinkLost)
    began_s = time.monotonic()
    driver.close()
    assert time.monotonic() - began_s < 10
    driver.close()
    with pytest.raises(DeviceError, match="cannot be reached"):
        driver.open(observations)
    driver.close()
    assert not observations.of(LinkBack)

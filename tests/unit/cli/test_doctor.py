"""`harness doctor` on this host, and on benches with something wrong."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from harness.base.host_check import Level
from harness.cli import group
from harness.cli.doctor import checks
from harness.devices.serial import port as host_checks
from tests.files import file_with
from tests.known import known
from tests.ports import free_port


def doctor(*arguments: str | Path) -> tuple[int, list[dict[str, Any]]]:
    result = CliRunner().invoke(group, ["doctor", "--json", *map(str, arguments)])
    return result.exit_code, json.loads(result.stdout)["checks"]


def bench(folder: Path, devices: str) -> Path:
    return file_with(folder / "bench.yaml", f"bench: b\ndevices:\n{devices}")


def named(checks: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    return [check for check in checks if check["name"] == name]


def test_doctor_runs_every_check_and_each_problem_has_a_remedy(tmp_path: Path) -> None:
    status, checks = doctor("--sessions", tmp_path)
    expected = {"port", "sound", "disk room", "disk sync", "clock", "wake-ups", "time service", "processor", "drivers"}
    assert expected | {"real time", "extras", "voices"} <= {check["name"] for check in checks}
    (libraries,) = named(checks, "libraries")
    assert f"paho-mqtt {metadata.version('paho-mqtt')}, " in libraries["says"]
    assert all(check["remedy"] for check in checks if check["level"] != "ok")
    worst = {check["level"] for check in checks}
    assert status == (3 if "fail" in worst else 1 if "warn" in worst else 0)
    assert list(tmp_path.iterdir()) == []


def test_a_missing_board_fails_its_check(tmp_path: Path) -> None:
    file = bench(tmp_path, "  one: {profile: vh_board, connection: {driver: serial, port: /dev/ttyNONE}}\n")
    status, checks = doctor("--bench", file)
    assert status == 3
    (port,) = [check for check in named(checks, "port") if "/dev/ttyNONE" in check["says"]]
    assert port["level"] == "fail"
    assert named(checks, "sound")[0]["says"] == "the bench needs no sound device"


def test_an_unknown_scheme_of_a_port_is_reported_at_its_connection(tmp_path: Path) -> None:
    file = bench(tmp_path, "  one: {profile: vh_board, connection: {driver: serial, port: unix:///tmp/line}}\n")
    refusal = CliRunner().invoke(group, ["doctor", "--bench", str(file)]).exception
    expected = "bench.yaml:3:40: port: 'unix:///tmp/line' is not supported. Use socket://HOST:PORT, or the path of a"
    assert expected in str(refusal)


def test_a_unix_socket_as_a_port_fails_with_what_to_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # the address of a Unix socket must be short
    file = bench(tmp_path, "  one: {profile: vh_board, connection: {driver: serial, port: line}}\n")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("line")
        _, checks = doctor("--bench", file)
    (port,) = (check for check in named(checks, "port") if check["says"].startswith("line"))
    assert port["says"] == "line is a Unix socket"
    assert "-chardev socket,id=c,host=127.0.0.1,port=47011,server=on,wait=off" in port["remedy"]
    assert "port: socket://127.0.0.1:47011" in port["remedy"]


@pytest.mark.parametrize(("profile", "required"), [("vh_board", False), ("esp_skainet", True)])
def test_a_missing_loudspeaker_may_be_removed_if_the_board_accepts_sound(
    tmp_path: Path, profile: str, required: bool
) -> None:
    file = bench(tmp_path, f"  one: {{profile: {profile}, connection: {{driver: serial, port: /dev/ttyNONE}}}}\n")
    with file.open("a", encoding="utf-8") as text:
        text.write("loudspeakers: {near: {driver: loudspeaker, sound_device: no such device}}\n")
    _, checks = doctor("--bench", file)
    remedies = [check["remedy"] for check in named(checks, "sound") if check["level"] == "fail"]
    assert remedies
    assert any("remove `loudspeakers` from the bench" in remedy for remedy in remedies) is not required


def test_notification_targets_are_checked_and_tried_on_request(tmp_path: Path) -> None:
    file = bench(tmp_path, "  one: {profile: vh_board}\nnotify:\n  - command: [no-such-program]\n")
    assert [check["level"] for check in named(doctor("--bench", file)[1], "notify")] == ["fail"]
    tell = file_with(tmp_path / "tell.sh", f"#!/bin/sh\ncat > {tmp_path}/said\n")
    tell.chmod(0o755)
    file = bench(tmp_path, "  one: {profile: vh_board}\nnotify:\n  - command: [./tell.sh]\n")
    assert [check["level"] for check in named(doctor("--bench", file)[1], "notify")] == ["ok"]
    assert not (tmp_path / "said").exists()
    (tried,) = named(doctor("--bench", file, "--send-test")[1], "notify")
    assert tried["says"] == "the program tell.sh accepted a message"
    assert json.loads((tmp_path / "said").read_text(encoding="utf-8"))["event"] == "test"


def test_a_port_that_another_program_has_open_is_named(tmp_path: Path) -> None:
    board, port = os.openpty()
    name = os.ttyname(port)
    holder = f"port = open({name!r}); print('open', flush=True); port.read()"
    with subprocess.Popen([sys.executable, "-c", holder], stdout=subprocess.PIPE, text=True) as reader:
        try:
            assert known(reader.stdout).readline() == "open\n"
            file = bench(tmp_path, f"  one: {{profile: vh_board, connection: {{driver: serial, port: {name}}}}}\n")
            (check,) = (check for check in named(doctor("--bench", file)[1], "port") if name in check["says"])
        finally:
            reader.kill()
    os.close(port)
    os.close(board)
    assert check["level"] == "fail"
    assert str(reader.pid) in check["says"]


def test_a_missing_broker_fails_its_check(tmp_path: Path) -> None:
    port = free_port()
    connection = f"{{driver: mqtt, address: '127.0.0.1:{port}'}}"
    file = bench(tmp_path, f"  one: {{profile: vh_board_mqtt, connection: {connection}}}\n")
    status, checks = doctor("--bench", file)
    assert status == 3
    assert named(checks, "broker")[0]["level"] == "fail"
    assert f"127.0.0.1:{port}" in named(checks, "broker")[0]["says"]


def test_a_file_instead_of_a_port_and_a_full_disk_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "port"
    path.touch()
    assert host_checks._check_port(str(path), {}, on_bench=True).level is Level.FAIL
    monkeypatch.setattr(checks, "FREE_FAIL_GB", 1e9)
    assert next(iter(checks.disk(tmp_path))).level is Level.FAIL


def test_the_median_of_an_even_number_of_syncs_is_the_shorter_one_in_the_middle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checks, "_sync_times_s", lambda folder: [2.0, 0.01] * 10)
    (sync,) = (check for check in checks.disk(tmp_path) if check.name == "disk sync")
    assert "on disk after 10 ms (median of 20; longest 2.00 s)" in sync.says

"""`harness devices discover`, as a user types it, in a network of its own where the host allows one."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from zeroconf import ServiceInfo, Zeroconf

from tests.command import harness
from tests.seen import until

PROGRAM = "from harness.cli import main; main()"


def alone() -> bool:
    if shutil.which("unshare") is None or shutil.which("ip") is None:
        return False
    return subprocess.run(["unshare", "-rn", "ip", "link", "set", "lo", "up"], capture_output=True).returncode == 0


@contextmanager
def satellite(name: str, **properties: str) -> Iterator[None]:
    kind = "_wyoming._tcp.local."
    announcing = Zeroconf(interfaces=["127.0.0.1"])
    try:
        address = socket.inet_aton("127.0.0.1")
        announcing.register_service(
            ServiceInfo(kind, f"{name}.{kind}", addresses=[address], port=10700, properties=properties),
            cooperating_responders=True,
        )
        yield
    finally:
        announcing.close()


@pytest.mark.skipif(not alone(), reason="this host allows no network of its own")
def test_an_empty_network_says_what_to_check_and_has_its_own_exit_status() -> None:
    search = f'ip link set lo up && exec "{sys.executable}" -c "{PROGRAM}" devices discover --seconds 0.5 --json'
    result = subprocess.run(["unshare", "-rn", "sh", "-c", search], capture_output=True, text=True, timeout=60)
    serial = json.loads(result.stdout)
    assert all(device["kind"] == "serial" for device in serial)
    assert result.returncode == (0 if serial else 1), result.stderr
    for advice in ("no device announced itself within 0.5 s", "same network", "firewall", "multicast", "--ovos HOST"):
        assert advice in result.stderr


def test_hostile_words_are_escaped_in_the_table_and_whole_in_json() -> None:
    mark = uuid.uuid4().hex[:8]
    name = f"{mark} \x1b]0;owned\x07\u202e$(reboot)"
    with satellite(f"sat-{mark}", friendly_name=name, version="\x1b[2J"):
        rows: list[dict[str, object]] = []

        def listed() -> bool:
            result = harness("devices", "discover", "--seconds", "2", "--json")
            rows[:] = [row for row in json.loads(result.stdout) if mark in row["name"]]
            return bool(rows)

        until(listed, 20)
        assert (rows[0]["name"], rows[0]["version"]) == (name, "\x1b[2J")
        texts: list[str] = []

        def printed() -> bool:
            result = harness("devices", "discover", "--seconds", "2")
            assert result.exit_code in (0, 1)
            texts.append(result.output)
            return mark in result.output

        until(printed, 20)
    assert not {"\x1b", "\x07", "\u202e"} & {*texts[-1]}
    assert f"{mark} \\e]0;owned\\x07\\u202e$(reboot)" in texts[-1]
    assert f"  harness init --wyoming 127.0.0.1:10700 --board {mark}_0_owned_reboot {mark}_0_owned_reboot" in texts[-1]


def test_without_the_library_the_error_names_the_extra() -> None:
    hidden = f"import sys\nsys.modules['zeroconf'] = None\n{PROGRAM}"
    command = [sys.executable, "-c", hidden, "devices", "discover"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, env=dict(os.environ))
    assert result.returncode == 2, result.stderr
    assert "pip install 'zeroconf>=" in result.stderr

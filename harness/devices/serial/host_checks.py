"""What `doctor` looks at for serial ports: rights, lasting names, and who has them open."""

from __future__ import annotations

import contextlib
import grp
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from serial.tools import list_ports

from harness.base.host_check import Check, Level
from harness.devices.serial.options import SerialOptions
from harness.devices.serial.port import find
from harness.model.errors import DeviceError

BY_ID = Path("/dev/serial/by-id")
PSEUDO_TERMINALS = frozenset({"/dev/ptmx", "/dev/pts/ptmx"})
"""What the maker of a pseudo-terminal has open."""


def ports(connections: Sequence[tuple[str, SerialOptions]]) -> Iterator[Check]:
    """Each port that there is, or that the bench names: rights, a lasting name, who has it open."""
    named: list[str] = []
    for id, options in connections:
        try:
            named.append(options.port or find(options).path)
        except DeviceError as error:
            yield Check("port", Level.FAIL, f"{id}: {error.what}", error.remedy)
    found = sorted(port.device for port in list_ports.comports())
    lasting = _lasting_names()
    for path in dict.fromkeys((*named, *found)):
        if "://" in path:
            yield Check("port", Level.OK, f"{path}: a network port; not looked at")
        else:
            yield _port(path, lasting, needed=path in named)
    if not named and not found:
        yield Check("port", Level.OK, "no serial port on this host")


def _port(path: str, lasting: dict[str, str], *, needed: bool) -> Check:
    try:
        found = os.stat(path)
    except OSError as error:
        remedy = "Plug the board in; see its kernel messages with dmesg"
        return Check("port", Level.FAIL, f"{path}: {error.strerror}", remedy)
    if not stat.S_ISCHR(found.st_mode):
        return Check("port", Level.FAIL, f"{path} is no serial port", "Name a device such as /dev/ttyUSB0")
    if not os.access(path, os.R_OK | os.W_OK):
        group = _group_name(found.st_gid)
        remedy = f"sudo usermod -aG {group} $USER, then log in again" if group != "root" else "Add a udev rule for it"
        return Check("port", Level.FAIL, f"{path}: this user may not read and write it (group {group})", remedy)
    if holders := _holders(os.path.realpath(path)):
        what = ", ".join(f"{name} ({pid})" for pid, name in holders)
        remedy = "End it: two readers of one port take each other's bytes"
        return Check("port", Level.FAIL if needed else Level.WARN, f"{path} is open in {what}", remedy)
    by_id = lasting.get(os.path.realpath(path), "")
    if needed and by_id and not path.startswith("/dev/serial/"):
        return Check("port", Level.WARN, f"{path} may be another board's name tomorrow", f"Write port: {by_id}")
    return Check("port", Level.OK, f"{path}: free, may be read and written" + (f" ({by_id})" if by_id else ""))


def _lasting_names() -> dict[str, str]:
    """Device → its name by id, which stays when it is plugged in elsewhere."""
    try:
        return {os.path.realpath(link): str(link) for link in sorted(BY_ID.iterdir())}
    except OSError:
        return {}


def _group_name(number: int) -> str:
    try:
        return grp.getgrgid(number).gr_name
    except KeyError:
        return str(number)


def _holders(device: str) -> list[tuple[int, str]]:
    """Other processes that have a device open, as far as this user may see.

    Who made a pseudo-terminal is its far end and no second reader, although it may hold the near end open as well.
    """
    holders: list[tuple[int, str]] = []
    for process in Path("/proc").glob("[0-9]*"):
        if int(process.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):  # it ended meanwhile, or is another user's
            opened = {os.path.realpath(link) for link in (process / "fd").iterdir()}
            if device in opened and opened.isdisjoint(PSEUDO_TERMINALS):
                holders.append((int(process.name), (process / "comm").read_text(encoding="utf-8").strip()))
    return holders

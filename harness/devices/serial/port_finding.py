"""Which path a port has now: by path, by the adapter's USB serial number, or by vendor and product."""

from __future__ import annotations

import os
from dataclasses import dataclass

from serial.tools import list_ports
from serial.tools.list_ports_common import ListPortInfo

from harness.devices.serial.options import SerialOptions
from harness.model.errors import DeviceError

NETWORK = "socket://"


@dataclass(frozen=True, slots=True)
class Port:
    """A path, and the USB serial number of the adapter behind it ("" when it has none)."""

    path: str
    usb_serial: str = ""


def find(options: SerialOptions, usb_serial: str = "") -> Port:
    """The port; DeviceError when it is not there.

    usb_serial: of the adapter that was there before, which may have come back under another name.
    """
    if is_network(options.port):
        return Port(options.port)
    if options.port:
        return _by_path(options.port, usb_serial)
    ids = options.usb_ids
    found = [
        one for one in _ports() if one.serial_number == options.usb or (ids is not None and (one.vid, one.pid) == ids)
    ]
    if usb_serial and len(found) > 1:
        found = [one for one in found if one.serial_number == usb_serial]
    if len(found) > 1:
        raise DeviceError(
            f"{len(found)} ports are {options.usb}: {', '.join(_named(one) for one in found)}",
            remedy="Name the serial number of one of them under `usb`, or its path under `port`",
        )
    if not found:
        raise DeviceError(f"no port is {options.usb}", remedy=f"Plug it in. {listed()}")
    return Port(found[0].device, found[0].serial_number or "")


def is_network(port: str) -> bool:
    """Whether it is a port behind a bridge in the network: socket://host:port."""
    return port.startswith(NETWORK)


def listed() -> str:
    """The ports that are there, for a message."""
    names = [_named(one) for one in _ports() if one.vid is not None]
    return f"Ports here: {', '.join(names)}" if names else "There is no USB serial port here"


def _by_path(path: str, usb_serial: str) -> Port:
    if os.path.exists(path):
        real = os.path.realpath(path)
        return Port(path, next((one.serial_number or "" for one in _ports() if one.device == real), ""))
    moved = next((one.device for one in _ports() if usb_serial and one.serial_number == usb_serial), None)
    if moved is None:
        raise DeviceError(f"there is no {path}", remedy=f"Plug it in, or correct `port`. {listed()}")
    return Port(moved, usb_serial)


def _ports() -> list[ListPortInfo]:
    return sorted(list_ports.comports(), key=lambda one: one.device)


def _named(one: ListPortInfo) -> str:
    if one.vid is None:
        return one.device
    return f"{one.device} ({one.vid:04x}:{one.pid:04x} {one.serial_number or 'without a serial number'})"

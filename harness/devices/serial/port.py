"""A serial port: where it is, opened, its rates, and what its first bytes say of a silent board."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import stat
import termios
from dataclasses import dataclass
from pathlib import Path

import serial
from serial.tools import list_ports
from serial.tools.list_ports_common import ListPortInfo

from harness.base.foreign import plain_text
from harness.devices.serial.options import SerialOptions
from harness.devices.wire.console import RATES_IN_WORDS, READABLE, text_share
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
    return "://" in port


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


_READ_BYTES = 65536
_CONNECT_S = 3.0
_KEEPALIVE = (("TCP_KEEPIDLE", 3), ("TCP_KEEPINTVL", 1), ("TCP_KEEPCNT", 3))
"""A bridge without power is noticed after 6 s."""


USB_SERIAL = Path("/sys/bus/usb-serial/devices")
_USB_FRAME_S = 0.001


def hold_back_s(path: str, folder: Path = USB_SERIAL) -> float | None:
    """For how long the port's adapter holds bytes back, as its driver says; only FTDI's does (else None)."""
    try:
        timer_ms = int(
            (folder / os.path.basename(os.path.realpath(path)) / "latency_timer").read_text(encoding="ascii")
        )
    except (OSError, ValueError):
        return None
    return timer_ms / 1000 + _USB_FRAME_S


class LineGone(DeviceError):
    """The port is no longer there."""


class SerialLine:
    """Opened with the constructor, for us alone; DeviceError when that fails.

    pyserial sets the port up. Reading and writing go past it: its reads wait for a full buffer, its writes give up half
    done, and it raises four kinds of errors for one unplugged cable.
    """

    def __init__(self, path: str, baud: int) -> None:
        self.path = path
        self._port: serial.Serial | socket.socket
        if is_network(path):
            self._port = _connected(path)
            self._file = self._port.fileno()
            return
        try:
            self._port = serial.Serial(path, baud, timeout=0, write_timeout=0, exclusive=True)
        except (OSError, termios.error, ValueError) as error:
            if os.path.exists(path) and not stat.S_ISCHR(os.stat(path).st_mode):
                raise DeviceError(f"{path} is no serial port", remedy="Correct `port`") from error
            raise DeviceError(f"{path} cannot be opened: {error}", remedy=_remedy(path, error)) from error
        with contextlib.suppress(OSError, ValueError, NotImplementedError):
            # USB adapters gather bytes for 16 ms otherwise; a pty knows no such mode.
            self._port.set_low_latency_mode(True)
        self._file = self._port.fileno()
        os.set_blocking(self._file, False)

    def fileno(self) -> int:
        return self._file

    def read(self) -> bytes:
        """What has come; b"" for nothing. LineGone."""
        try:
            found = os.read(self._file, _READ_BYTES)
        except BlockingIOError:
            return b""
        except OSError as error:
            raise self._gone(error) from error
        if not found:
            raise self._gone()  # of a bridge in the network, too: it has ended the connection
        return found

    def write(self, data: bytes) -> int:
        """How many bytes were taken. LineGone."""
        try:
            return os.write(self._file, data)
        except BlockingIOError:
            return 0
        except OSError as error:
            raise self._gone(error) from error

    def close(self) -> None:
        """In any state; what has not left yet is dropped."""
        with contextlib.suppress(OSError, termios.error):
            termios.tcflush(self._file, termios.TCOFLUSH)
        with contextlib.suppress(OSError, termios.error, TypeError):
            self._port.close()

    def _gone(self, error: OSError | None = None) -> LineGone:
        why = f" ({error.strerror})" if error is not None and error.errno != errno.EIO else ""
        # The path comes last: on a narrow screen it may be cut off.
        return LineGone(f"its port is gone (unplugged, or without power): {self.path}{why}")


def _connected(url: str) -> socket.socket:
    """To a bridge such as ser2net in raw mode; DeviceError when nobody takes the connection."""
    host, _, port = url.removeprefix(NETWORK).rpartition(":")
    try:
        found = socket.create_connection((host.strip("[]"), int(port)), timeout=_CONNECT_S)
    except (OSError, ValueError) as error:
        remedy = "Write socket://host:port, and check that the bridge is there and gives the port raw, not by RFC 2217"
        raise DeviceError(f"{url} cannot be reached: {error}", remedy=remedy) from error
    found.setblocking(False)
    found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in _KEEPALIVE:
        if (number := getattr(socket, option, None)) is not None:
            found.setsockopt(socket.IPPROTO_TCP, number, value)
    return found


def is_pty(path: str) -> bool:
    """A line without a rate of its own."""
    return os.path.realpath(path).startswith("/dev/pts/")


def _remedy(path: str, error: Exception) -> str:
    code = getattr(error, "errno", None)
    if code in (errno.EACCES, errno.EPERM):
        return "Join the group that may use it: sudo usermod -aG dialout $USER, then log in again"
    if code in (errno.EBUSY, errno.EAGAIN, errno.EWOULDBLOCK) or "lock" in str(error):
        return f"Another program has it open; find it with: fuser {path}"
    if isinstance(error, ValueError):
        return "Choose a rate that the port can do"
    return "Check the cable, and `port` in the bench"


KEPT_BYTES = 400


def no_answer(first: bytes, count: int) -> tuple[str, str]:
    """What was seen, and what to do about it. first: at most KEPT_BYTES of the `count` bytes that came."""
    if not count:
        remedy = (
            "See that it is switched on, that TX and RX are not swapped, and that its firmware speaks docs/framing.md"
        )
        return "nothing came from it", remedy
    if text_share(first) >= READABLE:
        lines = [line.strip() for line in first.decode("ascii", "replace").splitlines() if line.strip()]
        shown = plain_text(max(lines, key=len, default=""), 80)
        remedy = "It prints log lines: take a profile for them, or flash firmware that speaks docs/framing.md"
        return f'{count} bytes of text came, such as "{shown}"', remedy
    remedy = (
        "Check `baud` first, then that its firmware speaks docs/framing.md. `harness devices test PROFILE --port DEV` "
        f"tries the common rates: {RATES_IN_WORDS}"
    )
    return f"{count} bytes came that are neither text nor frames", remedy

"""A serial port: found, opened, checked for `doctor`, read for the monitor; and why a board on it is silent.

`port` is the key of a bench (`SerialOptions.port`). `PortLocation` is where that port is now. `OpenPort` is the port
while this process has it open.
"""

from __future__ import annotations

import contextlib
import errno
import grp
import os
import select
import socket
import stat
import termios
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import serial
from serial.tools import list_ports
from serial.tools.list_ports_common import ListPortInfo

from harness.base import threads
from harness.base.foreign import plain_text
from harness.base.host_check import Check, Level
from harness.devices import tcp
from harness.devices.device_sources import QUEUE_BYTES, DeviceOutputQueue, output_now
from harness.devices.serial.options import DEFAULT_HOLD_BACK_S, NETWORK, SerialOptions
from harness.devices.wire.console import MIN_TEXT_SHARE, RATES, RATES_IN_WORDS, text_share
from harness.model.errors import DeviceError
from harness.model.frozen import frozen
from harness.model.numbers import exact


@frozen
class PortLocation:
    """Where a port is now: its path, and the USB serial number of its adapter ("" if it has none)."""

    path: str
    usb_serial: str = ""


def find_port(options: SerialOptions, usb_serial: str = "") -> PortLocation:
    """Finds the port. Raises DeviceError when it is missing.

    usb_serial: serial number of the adapter used so far, which may now have another name.
    """
    if "://" in options.port:  # behind a network bridge
        return PortLocation(options.port)
    if options.port:
        return _locate(options.port, usb_serial)
    usb = options.usb
    matches = [port for port in sorted_ports() if usb == port.serial_number or usb.lower() == usb_ids(port)]
    if usb_serial:
        matches = [port for port in matches if port.serial_number == usb_serial]
    if len(matches) > 1:
        raise DeviceError(
            f"{len(matches)} ports match `usb: {options.usb}`: {', '.join(_describe_port(port) for port in matches)}",
            remedy="Set `usb` to the serial number of one of them, or `port` to its path",
        )
    if not matches:
        raise DeviceError(f"no port matches `usb: {options.usb}`", remedy=f"Plug in the adapter. {_ports_in_words()}")
    return PortLocation(matches[0].device, matches[0].serial_number or "")


def usb_ids(port: ListPortInfo) -> str:
    """Vendor and product; "" when it is not a USB port."""
    return "" if port.vid is None else f"{port.vid:04x}:{port.pid:04x}"


def _ports_in_words() -> str:
    names = [_describe_port(port) for port in sorted_ports() if port.vid is not None]
    return f"Ports of this host: {', '.join(names)}" if names else "This host has no USB serial port"


def _locate(path: str, usb_serial: str) -> PortLocation:
    """The port at a path, or where its adapter is now. Raises DeviceError when it is missing.

    usb_serial: serial number of the adapter used so far; "" if none was.
    """
    ports = sorted_ports()
    problem = f"{path} does not exist"
    if os.path.exists(path):
        device = os.path.realpath(path)
        serial_here = next((port.serial_number or "" for port in ports if port.device == device), "")
        if usb_serial in ("", serial_here):
            return PortLocation(path, serial_here)
        # After a restart of a hub, two adapters may have each other's names.
        problem = f"{path} is no longer the adapter {usb_serial}"
    new_path = next((port.device for port in ports if usb_serial and port.serial_number == usb_serial), None)
    if new_path is None:
        raise DeviceError(problem, remedy=f"Plug in the adapter, or correct `port`. {_ports_in_words()}")
    return PortLocation(new_path, usb_serial)


def sorted_ports() -> list[ListPortInfo]:
    """The serial ports of this host, by name."""
    return sorted(list_ports.comports(), key=lambda port: port.device)


def _describe_port(port: ListPortInfo) -> str:
    if port.vid is None:
        return port.device
    return f"{port.device} ({usb_ids(port)} {port.serial_number or 'without a serial number'})"


USB_SERIAL = Path("/sys/bus/usb-serial/devices")
_USB_FRAME_S = 0.001
"""Length of a USB frame at full speed, in seconds. The host asks an adapter for bytes once in each frame."""


def hold_back(options: SerialOptions, path: str) -> tuple[float, bool]:
    """How long the port's adapter may hold bytes back, s, and whether the bench or an FTDI driver states it.

    Only valid after `OpenPort`, which shortens the driver's timer.
    """
    if options.hold_back_ms is not None:
        return options.hold_back_ms / 1000, True
    device = os.path.basename(os.path.realpath(path))
    try:
        timer_ms = int((USB_SERIAL / device / "latency_timer").read_text(encoding="ascii"))
    except (OSError, ValueError):
        return DEFAULT_HOLD_BACK_S, False
    return timer_ms / 1000 + _USB_FRAME_S, True


_READ_BYTES = 65536  # At once. Far more than arrives between two reads at the highest rate.
_CONNECT_LIMIT_S = 3.0  # Chosen: a bridge in the local network answers within milliseconds, or it is off.


class PortLost(DeviceError):
    """The port has disappeared."""


class OpenPort:
    """An open port. The constructor opens it exclusively. Raises DeviceError when that fails.

    pyserial only sets the port up. Its reads wait for a full buffer, its writes stop half done, and it raises four
    kinds of errors for one unplugged cable.
    """

    def __init__(self, path: str, baud: int) -> None:
        self.path = path
        self._handle: serial.Serial | socket.socket
        if "://" in path:
            self._handle = _connect_bridge(path)
            self._file = self._handle.fileno()
            return
        self._handle = _open_exclusively(path, baud)
        with contextlib.suppress(OSError, ValueError, NotImplementedError):
            # Otherwise USB adapters gather bytes for 16 ms. A pty does not have this mode.
            self._handle.set_low_latency_mode(True)
        self._file = self._handle.fileno()
        os.set_blocking(self._file, False)

    def fileno(self) -> int:
        """The file descriptor, for `select`."""
        return self._file

    def read(self) -> bytes:
        """The bytes that have arrived; b"" if none. Raises PortLost when the port has disappeared."""
        try:
            chunk = os.read(self._file, _READ_BYTES)
        except BlockingIOError:
            return b""
        except OSError as error:
            raise self._lost_error(error) from error
        if not chunk:
            raise self._lost_error()  # also when a network bridge has closed the connection
        return chunk

    def write(self, data: bytes) -> int:
        """Returns how many bytes the port accepted. Raises PortLost when it has disappeared."""
        try:
            return os.write(self._file, data)
        except BlockingIOError:
            return 0
        except OSError as error:
            raise self._lost_error(error) from error

    def close(self) -> None:
        """Closes in any state; unsent bytes are dropped."""
        with contextlib.suppress(OSError, termios.error):
            termios.tcflush(self._file, termios.TCOFLUSH)  # closing would wait until they are sent
        with contextlib.suppress(OSError, termios.error, TypeError):
            self._handle.close()

    def _lost_error(self, error: OSError | None = None) -> PortLost:
        # EIO is what an unplugged port gives. Its text says less than the message.
        why = f" ({error.strerror})" if error is not None and error.errno != errno.EIO else ""
        # The path comes last, since a narrow screen may cut it off.
        return PortLost(f"its port is gone (unplugged, or without power): {self.path}{why}")


def _connect_bridge(url: str) -> socket.socket:
    """Connects to a bridge such as ser2net in raw mode. Raises DeviceError when that fails."""
    try:
        connection = tcp.connect(*tcp.host_and_port(url.removeprefix(NETWORK)), _CONNECT_LIMIT_S)
    except OSError as error:
        raise DeviceError(
            f"{url} cannot be reached: {error}",
            remedy="Check that the bridge runs and serves the port raw, not over RFC 2217",
        ) from error
    connection.setblocking(False)
    return connection


def is_pty(path: str) -> bool:
    """Whether a path is a pseudo-terminal, which has no baud rate."""
    return os.path.realpath(path).startswith("/dev/pts/")


def _open_exclusively(path: str, baud: int) -> serial.Serial:
    """Opens a port exclusively. Raises DeviceError, which names the program that has the port, when that fails."""
    try:
        return serial.Serial(path, baud, timeout=0, write_timeout=0, exclusive=True)
    except (OSError, termios.error, ValueError) as error:  # SerialException is an OSError
        if os.path.exists(path) and not stat.S_ISCHR(os.stat(path).st_mode):
            problem, remedy = _file_error(path)
            raise DeviceError(problem, remedy=remedy) from error
        code = getattr(error, "errno", None)
        # pyserial's error about a lock has no number.
        if code in (errno.EBUSY, errno.EAGAIN, errno.EWOULDBLOCK) or "lock" in str(error):
            user = next((f"{name} (process {pid})" for pid, name in _holders(path)), "another program")
            raise DeviceError(f"{path} is in use: {user} has it open", remedy="End that program") from error
        raise DeviceError(f"{path} cannot be opened: {error}", remedy=_open_remedy(error)) from error


def _file_error(path: str) -> tuple[str, str]:
    """The problem with a path that is not a serial port, and the remedy."""
    if stat.S_ISSOCK(os.stat(path).st_mode):
        remedy = "Start QEMU with -chardev socket,id=c,host=127.0.0.1,port=47011,server=on,wait=off"
        return f"{path} is a Unix socket", f"{remedy}, and set port: socket://127.0.0.1:47011"
    return f"{path} is not a serial port", "Use a device such as /dev/ttyUSB0"


def _open_remedy(error: Exception) -> str:
    """What to do when a port cannot be opened."""
    if getattr(error, "errno", None) in (errno.EACCES, errno.EPERM):
        return "Join the group that may use serial ports: sudo usermod -aG dialout $USER, then log in again"
    if isinstance(error, ValueError):
        return "Choose a rate that the port supports"
    return "Check the cable, and `port` in the bench"


FIRST_BYTES_KEPT = 400  # Enough for a few log lines, by which a person recognises the firmware.


def explain_silence(first_bytes: bytes, received_bytes: int) -> tuple[str, str]:
    """What a silent board has sent, in words, and the remedy.

    - first_bytes: its first FIRST_BYTES_KEPT bytes.
    - received_bytes: number of all its bytes.
    """
    if not received_bytes:
        remedy = (
            "Check that the board has power, that TX and RX are not swapped, and that the firmware follows "
            "docs/reference/framing.md"
        )
        return "no bytes received", remedy
    if text_share(first_bytes) >= MIN_TEXT_SHARE:
        lines = [line.strip() for line in first_bytes.decode("ascii", "replace").splitlines() if line.strip()]
        example = plain_text(max(lines, key=len, default=""), 80)
        remedy = (
            "The board prints log lines. Use a profile for such lines, or flash firmware that follows "
            "docs/reference/framing.md"
        )
        return f'{received_bytes} bytes of text received, such as "{example}"', remedy
    remedy = (
        "Check `baud`, then whether the board's firmware follows docs/reference/framing.md. "
        f"`harness admin devices test PROFILE --port DEV` tries the common rates: {RATES_IN_WORDS}"
    )
    return f"{received_bytes} bytes received that are neither text nor frames", remedy


BY_ID = Path("/dev/serial/by-id")
PSEUDO_TERMINALS = frozenset({"/dev/ptmx", "/dev/pts/ptmx"})
"""The files that the creator of a pseudo-terminal has open."""


def check_ports(connections: Sequence[tuple[str, SerialOptions]]) -> Iterator[Check]:
    """Checks each port of the host or the bench: permissions, a stable name, and who has it open."""
    bench_paths: list[str] = []
    for id, options in connections:
        try:
            bench_paths.append(options.port or find_port(options).path)
        except DeviceError as error:
            yield Check("port", Level.FAIL, f"{id}: {error.what}", error.remedy)
    paths = sorted(port.device for port in list_ports.comports())
    stable = stable_names()
    for path in dict.fromkeys((*bench_paths, *paths)):
        if "://" in path:
            yield Check("port", Level.OK, f"{path}: a network port, not checked")
        else:
            yield _check_port(path, stable, on_bench=path in bench_paths)
    if not bench_paths and not paths:
        yield Check("port", Level.OK, "this host has no serial port")


def _check_port(path: str, stable: dict[str, str], *, on_bench: bool) -> Check:
    """The first problem of a port, or that it can be used."""
    try:
        file_status = os.stat(path)
    except OSError as error:
        remedy = "Plug the board in, and read the kernel messages with dmesg"
        return Check("port", Level.FAIL, f"{path}: {error.strerror}", remedy)
    if not stat.S_ISCHR(file_status.st_mode):
        return Check("port", Level.FAIL, *_file_error(path))
    if not os.access(path, os.R_OK | os.W_OK):
        group = _group_name(file_status.st_gid)
        remedy = "Add a udev rule for this port"
        if group != "root":
            remedy = f"Join the group {group}: sudo usermod -aG {group} $USER, then log in again"
        return Check("port", Level.FAIL, f"{path}: this user cannot read and write it (group {group})", remedy)
    programs = ", ".join(f"{name} ({pid})" for pid, name in _holders(path))
    if programs:
        remedy = "Stop that program: two readers of one port take each other's bytes"
        return Check("port", Level.FAIL if on_bench else Level.WARN, f"{path} is open in {programs}", remedy)
    by_id = stable.get(os.path.realpath(path), "")
    if on_bench and by_id and not path.startswith("/dev/serial/"):
        return Check("port", Level.WARN, f"{path} may be a different board after a restart", f"Set port: {by_id}")
    return Check("port", Level.OK, f"{path}: free, readable and writable" + (f" ({by_id})" if by_id else ""))


def stable_names() -> dict[str, str]:
    """Path of a port → its name in /dev/serial/by-id, which stays the same on another USB socket."""
    try:
        return {os.path.realpath(alias): str(alias) for alias in sorted(BY_ID.iterdir())}
    except OSError:
        return {}


def _group_name(number: int) -> str:
    try:
        return grp.getgrgid(number).gr_name
    except KeyError:
        return str(number)


def _holders(path: str) -> Iterator[tuple[int, str]]:
    """Process id and name of each other process that has a port open, as far as this user may see them.

    The creator of a pseudo-terminal is its far end, not a second reader, even if it holds the near end open.
    """
    device = os.path.realpath(path)
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended, or belongs to another user
            open_files = {os.path.realpath(file) for file in (process / "fd").iterdir()}
            if device in open_files and open_files.isdisjoint(PSEUDO_TERMINALS) and int(process.name) != os.getpid():
                name = (process / "comm").read_text(encoding="utf-8", errors="replace").strip()
                yield int(process.name), plain_text(name, 40)


_REOPEN_S = 1.0  # Chosen: a person waits for the port to come back.
_CHECK_INTERVAL_S = 0.1  # Interval at which the thread checks whether it is to stop.
_JOIN_S = 2.0  # Longer than the thread waits for anything but a bridge.


class SerialMonitorSource:
    """A port for `devices monitor` and `devices test`. One thread reads it, and opens it again when it was lost."""

    live = True
    ended = False

    def __init__(self, options: SerialOptions, baud: int) -> None:
        self.baud = baud
        self.queue = DeviceOutputQueue()
        self.trouble = ""
        self._options = options
        self._path = find_port(options).path
        self.hold_back_s = DEFAULT_HOLD_BACK_S
        self.name = f"{self._path} at {baud}"
        self._stop = threads.event()

    def open(self) -> None:
        """Raises DeviceError when the port cannot be opened."""
        port = OpenPort(self._path, self.baud)
        self.hold_back_s, _ = hold_back(self._options, self._path)
        self._thread = threads.thread(self._run, port, name="monitor-serial")
        self._thread.start()

    def close(self) -> None:
        """Ends the thread, which releases the port."""
        self._stop.set()
        self._thread.join(_JOIN_S)

    def at_other_rates(self, seconds: float) -> Iterator[tuple[int, bytes | DeviceError]]:
        for rate in RATES:
            if rate == self.baud:
                continue
            source = SerialMonitorSource(replace(self._options, baud=rate), rate)
            try:
                source.open()
            except DeviceError as error:
                yield rate, error
                continue
            threads.sleep(seconds)
            source.close()
            yield rate, b"".join(piece.data for piece in source.queue.take(QUEUE_BYTES))

    def _run(self, port: OpenPort | None) -> None:
        """Reads the port, and reopens it after each loss, until the source is closed."""
        while port is not None:
            with contextlib.closing(port):
                self._read(port)
            port = self._reopen()

    def _read(self, port: OpenPort) -> None:
        """Returns when the port is lost, or the source closed."""
        self.trouble = ""
        try:
            while not self._stop.is_set():
                if select.select([port], [], [], _CHECK_INTERVAL_S)[0] and (data := port.read()):
                    self.queue.put(output_now(data))
        except PortLost:
            problem = "the port is gone (unplugged, or without power)"
            self.trouble = f"{problem}; the monitor tries again every {exact(_REOPEN_S)} s"

    def _reopen(self) -> OpenPort | None:
        """Waits until the port is back; None when the source is closed."""
        while not self._stop.wait(_REOPEN_S):
            with contextlib.suppress(DeviceError):  # not back yet
                return OpenPort(self._path, self.baud)
        return None

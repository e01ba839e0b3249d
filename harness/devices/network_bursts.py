"""Devices that show nothing: how much they send, as a sign that they stream what they hear.

Packets come from an interface of this host or from a capture that another program writes. The bytes of one sender are
counted in short windows; a profile's thresholds turn them into states. It is weak evidence: updates and telemetry look
the same, and the harness marks each event.
"""

from __future__ import annotations

import ipaddress
import os
import re
import socket
import stat
import struct
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from harness.base.clocks import HostClock
from harness.base.plugins import installed
from harness.base.ports import Clock
from harness.devices.readings import ReadingsLink, ReadingsOptions, ReadingsSource, ReadingsStream
from harness.model.bench import DeviceProfile
from harness.model.errors import DeviceError, InputError
from harness.model.numbers import exact, fixed
from harness.model.observation import Observation, Status, Wake, weakness
from harness.model.time import Stamp

INFERRED = "network traffic"
SLACK_S = 0.02
"""How long after its end a window waits for packets that the kernel has stamped."""
CAPTURE_SLACK_S = 1.0
"""The same for packets that another program writes."""
OLDEST_S = 60.0
"""A packet that is written now and is older was stamped by another clock."""
MOST_EMPTY = 100
"""Windows reported at once when a capture contains nothing for longer."""
LONGEST_PACKET = 1 << 20
STEP_S = 0.02
_EXTRA = ("the library that reads captures", "network")
_MAC = re.compile(r"([0-9a-f]{2}[:-]){5}[0-9a-f]{2}", re.IGNORECASE)
_IP, _IP6, _VLAN = 0x0800, 0x86DD, (0x8100, 0x88A8)
_ETHERNET, _RAW, _COOKED, _COOKED2 = 1, (12, 101), 113, 276
_MAGIC = (b"\xa1\xb2\xc3\xd4", b"\xd4\xc3\xb2\xa1", b"\xa1\xb2\x3c\x4d", b"\x4d\x3c\xb2\xa1", b"\x0a\x0d\x0d\x0a")
_ALL, _TIMESTAMP, _PACKET, _MEMBERSHIP, _PROMISCUOUS = 0x0003, 35, 263, 1, 1


@dataclass(frozen=True, slots=True)
class NetworkBurstsOptions(ReadingsOptions):
    """sender: IP or MAC address of the device. Only what it sends counts.

    interface: Network interface of this host that sees the packets, such as br-lan or a mirror port.
    capture: Instead, a pcap or pcapng file or pipe that another program writes, such as `tcpdump -U -w`.
    follow: Wait for further packets at the end of the capture.
    window_ms: Length of the windows in which bytes are counted, ms.
    clock_error_ms: Error of the clock that stamps the packets of the capture against this host's, ms.
    hold_back_ms: How long the device may take from its wake word to its first packet, ms (part of the error).
    silence_limit_s: Time without a packet of any sender after which the link counts as lost, s (0: never).
    """

    sender: str = ""
    interface: str = ""
    capture: str = ""
    follow: bool = True
    window_ms: float = 100.0
    clock_error_ms: float = 0.0
    hold_back_ms: float = 300.0

    def __post_init__(self) -> None:
        super(NetworkBurstsOptions, self).__post_init__()
        _ = self.address
        if bool(self.interface) == bool(self.capture):
            remedy = "Write interface: wlan0, or capture: lamp.pcap"
            raise InputError("a network connection needs either an `interface` or a `capture`", remedy=remedy)
        if not 10 <= self.window_ms <= 10_000:
            raise InputError(f"window_ms is {self.window_ms}", remedy="Write a number from 10 to 10000")
        if not 0 <= self.clock_error_ms <= 60_000:
            raise InputError(f"clock_error_ms is {self.clock_error_ms}", remedy="Write a number from 0 to 60000")

    @property
    def address(self) -> bytes:
        """4 bytes of IPv4, 16 of IPv6, or 6 of a MAC address; InputError if it is none."""
        if _MAC.fullmatch(self.sender):
            return bytes.fromhex(self.sender.replace(":", "").replace("-", ""))
        try:
            return ipaddress.ip_address(self.sender).packed
        except ValueError as error:
            remedy = "Write an address such as 192.168.1.40, fe80::1 or 4c:11:ae:00:12:34, and not a name"
            raise InputError(f"sender: {self.sender!r} is not an IP or MAC address", remedy=remedy) from error


def sent_bytes(packet: bytes, protocol: int, mac: bytes, sender: bytes) -> int:
    """Bytes of a packet, from its network header on, if `sender` has sent it; otherwise 0. It may be cut."""
    size, source = len(packet), b""
    if protocol == _IP and len(packet) >= 20:
        size, source = int.from_bytes(packet[2:4]) or len(packet), packet[12:16]
    elif protocol == _IP6 and len(packet) >= 40:
        size, source = int.from_bytes(packet[4:6]) + 40, packet[8:24]
    return size if sender == (mac if len(sender) == 6 else source) else 0


def without_link(frame: bytes, link: int) -> tuple[bytes, int, bytes]:
    """A captured frame from its network header on, its protocol, and its sender's MAC. DeviceError for other links."""
    if link == _ETHERNET:
        mac, at = frame[6:12], 12
        while int.from_bytes(frame[at : at + 2]) in _VLAN:
            at += 4
        return frame[at + 2 :], int.from_bytes(frame[at : at + 2]), mac
    if link == _COOKED:
        return frame[16:], int.from_bytes(frame[14:16]), frame[6:12]
    if link == _COOKED2:
        return frame[20:], int.from_bytes(frame[:2]), frame[12:18]
    if link in _RAW:
        return frame, _IP if frame[:1] and frame[0] >> 4 == 4 else _IP6, b""
    what = f"the capture has link type {link}; Ethernet, Linux cooked and raw IP are supported"
    raise DeviceError(what, remedy="PacketCapture at the router or at a mirror port, not in monitor mode")


class BurstWindows:
    """Bytes of one sender in windows, each told as a line once it is over."""

    def __init__(self, options: NetworkBurstsOptions, begin_s: float, tell: Callable[[str, Stamp], None]) -> None:
        self._width_s = options.window_ms / 1000
        self._hold_back_s = options.hold_back_ms / 1000
        self._clock_error_s = options.clock_error_ms / 1000 if options.capture else 0.0
        self._begin_s = self._start_s = begin_s
        self._tell = tell
        self._bytes = self._packets = 0

    def add(self, at_s: float, size: int) -> bool:
        """False if its window is over already."""
        self.until(at_s)
        if at_s < self._start_s - SLACK_S:
            return False
        self._bytes += size
        self._packets += size > 0
        return True

    def until(self, at_s: float) -> None:
        """Passes on the windows that end by then."""
        told = 0
        while at_s >= self._start_s + self._width_s:
            if told < MOST_EMPTY:
                self._end()
                told += 1
            else:
                self._start_s += (at_s - self._start_s) // self._width_s * self._width_s

    def _end(self) -> None:
        first_s, last_s = self._start_s - self._hold_back_s, self._start_s + self._width_s
        at = Stamp((first_s + last_s) / 2, (last_s - first_s) / 2 + self._clock_error_s)
        self._tell(f"at={self._start_s - self._begin_s:.3f} bytes={self._bytes} packets={self._packets}", at)
        self._bytes = self._packets = 0
        self._start_s = last_s


class InterfaceTap:
    """All packets of an interface. DeviceError without the right to see them."""

    def __init__(self, options: NetworkBurstsOptions, clock: Clock) -> None:
        self._options, self._clock = options, clock
        name = options.interface
        try:
            # Without link headers: the kernel gives protocol and sender of each packet for every kind of interface.
            self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(_ALL))
        except PermissionError as error:
            what = f"seeing the packets of {name} needs the capability CAP_NET_RAW"
            remedy = (
                "Run: sudo setcap cap_net_raw+ep $(readlink -f $(which python3)); or let another program capture: "
                f"sudo tcpdump -i {name} -U -w device.pcap, and write capture: device.pcap"
            )
            raise DeviceError(what, remedy=remedy) from error
        try:
            self._socket.bind((name, _ALL))
            self._socket.setsockopt(socket.SOL_SOCKET, _TIMESTAMP, 1)
            membership = struct.pack("iHH8s", socket.if_nametoindex(name), _PROMISCUOUS, 0, b"")
            self._socket.setsockopt(_PACKET, _MEMBERSHIP, membership)
        except OSError as error:
            self._socket.close()
            raise DeviceError(f"the interface {name} cannot be read: {error}", remedy="Correct `interface`") from error
        self._socket.settimeout(STEP_S)

    def measure(self, tell: Callable[[str, Stamp], None], stop: threading.Event) -> str:
        """Reads until the interface fails or `stop`; why it ended."""
        begin_s = heard_s = self._clock.now_s()
        windows = BurstWindows(self._options, begin_s, tell)
        sender, limit_s = self._options.address, self._options.silence_limit_s
        with self._socket:
            while not stop.is_set():
                try:
                    # 128 bytes hold the headers; more is cut.
                    packet, extra, _, (_, protocol, kind, _, mac) = self._socket.recvmsg(128, 64)
                except TimeoutError:
                    windows.until(self._clock.now_s() - SLACK_S)
                    if limit_s and self._clock.now_s() - heard_s > limit_s:
                        return f"no packet came for {exact(limit_s)} s"
                    continue
                except OSError as error:
                    return f"the interface {self._options.interface} failed: {error}"
                heard_s = self._clock.now_s()
                if kind != socket.PACKET_OUTGOING:
                    windows.add(self._stamp_s(extra, heard_s), sent_bytes(packet, protocol, mac, sender))
        return ""

    def _stamp_s(self, extra: Sequence[tuple[int, int, bytes]], now_s: float) -> float:
        """When the kernel received it; now, if that is not credible."""
        for _, kind, data in extra:
            if kind == _TIMESTAMP and len(data) >= 16:
                seconds, nanoseconds = struct.unpack("qq", data[:16])
                age_s = float(self._clock.wall_s() - seconds - nanoseconds / 1e9)
                if 0 <= age_s <= OLDEST_S:
                    return now_s - age_s
        return now_s


class _Stopped(Exception):
    """The driver closes."""


class PacketCapture:
    """A pcap or pcapng file or pipe that grows. DeviceError if it is missing or something else."""

    def __init__(self, options: NetworkBurstsOptions, clock: Clock, *, whole: bool = False) -> None:
        """whole: also packets from before now."""
        self._options, self._clock, self._whole = options, clock, whole
        self._reader: Any = installed("dpkt", *_EXTRA)
        self._path = Path(options.capture)
        try:
            self._file = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            self._found = os.fstat(self._file)
            head = b"" if stat.S_ISFIFO(self._found.st_mode) else os.pread(self._file, 4, 0)
        except OSError as error:
            remedy = "Start the capture first: tcpdump -U -w FILE"
            raise DeviceError(f"the capture {self._path} cannot be read: {error.strerror}", remedy=remedy) from error
        if head and not any(one.startswith(head) for one in _MAGIC):
            os.close(self._file)
            remedy = "Write a file of tcpdump or Wireshark as `capture`"
            raise DeviceError(f"{self._path} is not a pcap or pcapng file", remedy=remedy)
        self._held = b""
        self._taken = 0
        self._waited = False

    def measure(self, tell: Callable[[str, Stamp], None], stop: threading.Event) -> str:
        """Reads until the capture ends or `stop`; why it ended."""
        begin_s = self._heard_s = self._clock.now_s()
        self._stop, self._windows = stop, BurstWindows(self._options, begin_s, tell)
        sender, first = self._options.address, self._whole
        try:
            captured = self._opened()
            link = captured.datalink()
            for stamp_s, frame in captured:
                now_s = self._clock.now_s()
                at_s = now_s - (self._clock.wall_s() - float(stamp_s))
                self._check_clock(now_s - at_s)
                if first:
                    first, self._windows = False, BurstWindows(self._options, at_s, tell)
                size = sent_bytes(*without_link(bytes(frame), link), sender)
                if at_s >= begin_s or self._whole:
                    self._heard_s = now_s
                    if not self._windows.add(at_s, size):
                        return "packets were written more than 1 s after their time; let tcpdump write them with -U"
            return "the capture ended"
        except _Stopped:
            return ""
        except EOFError:
            return "the capture ended within a packet"
        except DeviceError as error:
            return error.what
        except (self._reader.Error, ValueError, struct.error, OSError) as error:
            return f"the capture {self._path} is damaged: {error}"
        finally:
            os.close(self._file)

    def _opened(self) -> Any:
        magic = self.read(4)
        self._held, self._taken = magic + self._held, 0
        if magic == _MAGIC[-1]:
            return installed("dpkt.pcapng", *_EXTRA).Reader(self)
        return installed("dpkt.pcap", *_EXTRA).Reader(self)

    def read(self, size: int) -> bytes:
        """Exactly that many bytes, as the reader of the format wants them; waits for them."""
        if not 0 <= size <= LONGEST_PACKET:
            raise ValueError(f"a packet of {size} bytes")
        while len(self._held) < size:
            if self._stop.is_set():
                raise _Stopped
            ended = False
            try:
                data = os.read(self._file, 65_536)
                ended = not data and (not self._options.follow or self._has_ended())
            except BlockingIOError:
                data = b""  # a pipe whose writer is silent
            self._held += data
            self._taken += len(data)
            if ended and self._held:
                raise EOFError
            if ended:
                return b""
            if not data:
                self._waited = True
                self._pass_time()
                self._stop.wait(STEP_S)
        taken, self._held = self._held[:size], self._held[size:]
        return taken

    def _has_ended(self) -> bool:
        """Whether no more will come: the writer of a pipe has gone, or the file is another one now."""
        if stat.S_ISFIFO(self._found.st_mode):
            return self._taken > 0
        try:
            now = os.stat(self._path)
        except OSError:
            return True
        return now.st_ino != self._found.st_ino or now.st_size < os.lseek(self._file, 0, os.SEEK_CUR)

    def _pass_time(self) -> None:
        now_s, limit_s = self._clock.now_s(), self._options.silence_limit_s
        self._windows.until(now_s - CAPTURE_SLACK_S)
        if limit_s and now_s - self._heard_s > limit_s:
            raise DeviceError(f"no packet came for {exact(limit_s)} s", remedy="See whether the capture still runs")

    def _check_clock(self, age_s: float) -> None:
        """Packets of now must have a time of now."""
        allowed_s = self._options.clock_error_ms / 1000 + CAPTURE_SLACK_S
        ahead = age_s < -allowed_s
        if ahead or (self._waited and age_s > OLDEST_S + allowed_s):
            where = "ahead of" if ahead else "behind"
            what = f"the clock that stamped the capture is {fixed(abs(age_s), 0)} s {where} this host's"
            raise DeviceError(what, remedy="Set both clocks by the same time server")


def _opened(options: NetworkBurstsOptions, clock: Clock, *, whole: bool = False) -> ReadingsLink:
    tap = InterfaceTap(options, clock) if options.interface else PacketCapture(options, clock, whole=whole)
    return ReadingsLink(f"network {options.sender}", tap.measure)


class NetworkBursts(ReadingsStream):
    """What a device sends."""

    Options: ClassVar[type] = NetworkBurstsOptions

    def connect(self) -> ReadingsLink:
        return _opened(self._options, self._clock)

    def marked(self, seen: Observation) -> Observation:
        match seen:
            case Wake():
                return replace(seen, inferred=INFERRED)
            case Status(detail=detail):
                return replace(seen, detail="; ".join(filter(None, (detail, weakness(INFERRED)))))
        return seen

    @staticmethod
    def source(
        options: NetworkBurstsOptions, profile: DeviceProfile, device: str, topics: tuple[str, ...]
    ) -> ReadingsSource:
        name = f"packets that {options.sender} sends on {options.interface or options.capture} (weak evidence)"
        return ReadingsSource(name, lambda: _opened(options, HostClock(), whole=True))

    @staticmethod
    def demand_host(options: NetworkBurstsOptions) -> None:
        """InputError when the interface or the capture is missing; PluginError without the library."""
        known = [name for _, name in socket.if_nameindex()]
        if options.interface and options.interface not in known:
            remedy = f"Interfaces of this host: {', '.join(known)}"
            raise InputError(f"there is no interface {options.interface!r}", remedy=remedy)
        if options.capture:
            installed("dpkt", *_EXTRA)
            if not Path(options.capture).exists():
                remedy = "Start it first: tcpdump -U -w FILE"
                raise InputError(f"there is no capture {options.capture}", remedy=remedy)

    @staticmethod
    def far_end(options: NetworkBurstsOptions, id: str) -> str:
        return options.sender

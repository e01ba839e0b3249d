"""A capture that grows as tcpdump -U writes it, with the packets of a device and of others."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterable
from pathlib import Path

import dpkt

DEVICE, OTHER = "192.168.7.40", "192.168.7.1"
MAC = "4c:11:ae:00:12:34"


def frame(size: int, sender: str = DEVICE, mac: str = MAC) -> bytes:
    """An Ethernet frame with a UDP packet; size: of the payload, bytes."""
    udp = dpkt.udp.UDP(sport=4000, dport=443, data=b"x" * size, ulen=8 + size)
    address = socket.inet_pton(socket.AF_INET, sender)
    ip = dpkt.ip.IP(src=address, dst=socket.inet_pton(socket.AF_INET, OTHER), p=17, data=udp, len=28 + size)
    return bytes(dpkt.ethernet.Ethernet(src=bytes.fromhex(mac.replace(":", "")), dst=b"\xff" * 6, data=ip))


class CaptureFile:
    """A pcap or pcapng file that is written packet by packet."""

    def __init__(self, path: Path, *, ng: bool = False) -> None:
        self.path = path
        self._kind = dpkt.pcapng.Writer if ng else dpkt.pcap.Writer
        self._lock = threading.Lock()
        self.mend()

    def mend(self) -> None:
        with self._lock:
            self._file = self.path.open("wb", buffering=0)
            self._writer = self._kind(self._file)

    def lose(self) -> None:
        self.close()
        self.path.unlink()

    def close(self) -> None:
        with self._lock:
            self._file.close()

    def packet(self, size: int, wall_s: float | None = None, sender: str = DEVICE) -> None:
        with self._lock:
            if not self._file.closed:
                mac = MAC if sender == DEVICE else "02:00:00:00:00:01"
                self._writer.writepkt(frame(size, sender, mac), time.time() if wall_s is None else wall_s)

    def burst(self, seconds: float = 0.6) -> None:
        """Streams as a device does, 4000 bytes per 100 ms, and returns at once."""
        threading.Thread(target=self._stream, args=(seconds,), daemon=True).start()

    def _stream(self, seconds: float) -> None:
        until_s = time.monotonic() + seconds
        while time.monotonic() < until_s:
            self.packet(800)
            time.sleep(0.02)


def recorded(path: Path, bursts_s: Iterable[float], *, ng: bool = False, length_s: float = 1.0) -> Path:
    """A finished capture that begins at 0 s: a device that streams at those times, and others that always do."""
    packets = [(number * 0.05, 900, OTHER) for number in range(20 * 40)]
    for start_s in bursts_s:
        packets += [(start_s + number * 0.02, 800, DEVICE) for number in range(round(length_s / 0.02))]
    with contextlib.closing(CaptureFile(path, ng=ng)) as writer:
        for at_s, size, sender in sorted(packets):
            writer.packet(size, 1_700_000_000 + at_s, sender)
    return path

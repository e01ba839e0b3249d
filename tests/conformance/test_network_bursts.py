"""Network traffic as evidence: captures with known times, a growing file, a pipe, an interface, and hostile input."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from harness.devices.declared import options_of
from harness.devices.network_bursts import (
    InterfaceTap,
    NetworkBursts,
    NetworkBurstsOptions,
    PacketCapture,
    sent_bytes,
    without_link,
)
from harness.devices.profiles.profile import load_profile
from harness.devices.wire.console import Console
from harness.model.bench import DeviceProfile
from harness.model.errors import DeviceError, InputError
from harness.model.observation import DeviceState, LinkBack, LinkLost, LogLine, Status, Wake
from harness.model.time import Stamp
from tests.conformance.network_far_ends import DEVICE, MAC, OTHER, CaptureFile, frame, recorded
from tests.seen import Around, Seen, until


@pytest.fixture
def profile(tmp_path: Path) -> DeviceProfile:
    return load_profile("network_bursts", beside=tmp_path)


@pytest.fixture
def capture(tmp_path: Path) -> Iterator[CaptureFile]:
    with contextlib.closing(CaptureFile(tmp_path / "lamp.pcap")) as file:
        yield file


def read(options: NetworkBurstsOptions) -> tuple[list[tuple[str, Stamp]], str]:
    """All windows of a finished capture, and why it ended."""
    told: list[tuple[str, Stamp]] = []
    capture = PacketCapture(options, Around().clock, whole=True)
    return told, capture.measure(lambda line, at: told.append((line, at)), threading.Event())


@pytest.mark.parametrize("ng", [False, True])
@pytest.mark.parametrize("sender", [DEVICE, MAC])
def test_bursts_of_a_capture_lie_within_their_errors(
    ng: bool, sender: str, tmp_path: Path, profile: DeviceProfile
) -> None:
    rng = np.random.default_rng(7)
    bursts_s = np.cumsum(rng.uniform(2.5, 4.0, 10)).tolist()
    path = recorded(tmp_path / "lamp.pcap", bursts_s, ng=ng)
    lines, why = read(NetworkBurstsOptions(sender=sender, capture=str(path), follow=False))
    assert why == "the capture ended"
    console, woken = Console(profile, "lamp"), []
    for line, at in lines:
        woken += [one for one in console.feed(line.encode() + b"\n", at) if isinstance(one, Wake)]
    begin_s = lines[0][1].at_s + 0.1  # the middle of the first window, without the time that the device may take
    true_s = [begin_s - 0.05 + at_s for at_s in bursts_s]
    assert len(woken) == len(true_s)
    assert all(abs(one.at.at_s - when) <= one.at.error_s for one, when in zip(woken, true_s, strict=True))
    assert all(one.at.error_s <= 0.2501 for one in woken)


def test_a_growing_capture_gives_weak_evidence(tmp_path: Path, profile: DeviceProfile, capture: CaptureFile) -> None:
    capture.packet(60_000)  # from before the session: not an event of now
    options = NetworkBurstsOptions(sender=DEVICE, capture=str(capture.path))
    driver, seen = NetworkBursts("lamp", options, Around(tmp_path, profile)), Seen()
    driver.open(seen)
    try:
        seen.wait(lambda: seen.of(LogLine), 30, "the first state")
        began_s = time.monotonic()
        capture.burst()
        wake = seen.first(Wake)
        assert wake.inferred == "network traffic"
        assert abs(wake.at.at_s - began_s) <= wake.at.error_s + 0.1
        capture.lose()
        seen.wait(lambda: seen.of(LinkLost), 30, "the loss")
        capture.mend()
        seen.wait(lambda: seen.of(LinkBack), 30, "the return")
        assert len(seen.of(Wake)) == 1
    finally:
        driver.close()


def test_a_state_is_marked_as_well(tmp_path: Path) -> None:
    driver = NetworkBursts("lamp", NetworkBurstsOptions(sender=DEVICE, interface="lo"), Around(tmp_path))
    marked = driver.marked(Status("lamp", Stamp(1.0), DeviceState.IDLE))
    assert isinstance(marked, Status)
    assert marked.detail == "weak evidence: network traffic"


def test_a_pipe_ends_with_its_writer(tmp_path: Path, profile: DeviceProfile) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    driver = NetworkBursts("lamp", NetworkBurstsOptions(sender=DEVICE, capture=str(pipe)), Around(tmp_path, profile))
    seen = Seen()
    opening = threading.Thread(target=driver.open, args=(seen,))
    opening.start()
    capture = CaptureFile(pipe)
    opening.join(10)
    try:
        capture.burst(3.0)
        seen.wait(lambda: seen.of(Wake, LogLine), 30, "a state")
        capture.close()
        seen.wait(lambda: seen.of(LinkLost), 30, "the end")
        assert "the capture ended" in seen.of(LinkLost)[0].what
    finally:
        driver.close()


@pytest.mark.parametrize(("off_s", "what"), [(-34 * 3600.0, "122400 s behind"), (3600.0, "3600 s ahead of")])
def test_a_capture_of_another_clock_is_named(off_s: float, what: str, tmp_path: Path, capture: CaptureFile) -> None:
    driver = NetworkBursts("lamp", NetworkBurstsOptions(sender=DEVICE, capture=str(capture.path)), Around(tmp_path))
    seen = Seen()
    driver.open(seen)
    try:
        capture.packet(100, time.time() + off_s)
        seen.wait(lambda: seen.of(LinkLost), 30, "the refusal")
        assert f"the clock that stamped the capture is {what}" in seen.of(LinkLost)[0].what
    finally:
        driver.close()


def test_packets_that_were_held_back_are_named(tmp_path: Path, capture: CaptureFile) -> None:
    driver = NetworkBursts("lamp", NetworkBurstsOptions(sender=DEVICE, capture=str(capture.path)), Around(tmp_path))
    seen = Seen()
    driver.open(seen)
    opened_s = time.time()
    try:
        until(lambda: time.time() - opened_s > 2.0)
        capture.packet(100, opened_s + 0.1)
        seen.wait(lambda: seen.of(LinkLost), 30, "the refusal")
        assert "let tcpdump write them with -U" in seen.of(LinkLost)[0].what
    finally:
        driver.close()


@pytest.mark.parametrize(
    ("damage", "what"),
    [
        (lambda data: data[: len(data) // 2], "the capture ended within a packet"),
        (lambda data: data[:24] + b"\xff" * 400, "is damaged: a packet of"),
        (lambda data: data[:20] + b"\x7f\0\0\0" + data[24:], "the capture has link type 127"),
        (lambda data: data[:10], "the capture ended within a packet"),
        (lambda _: b"", "is damaged"),
    ],
)
def test_a_damaged_capture_is_named(damage: object, what: str, tmp_path: Path) -> None:
    path = recorded(tmp_path / "lamp.pcap", [3.0])
    path.write_bytes(damage(path.read_bytes()))  # type: ignore[operator]
    _, why = read(NetworkBurstsOptions(sender=DEVICE, capture=str(path), follow=False))
    assert what in why


def test_what_is_not_a_capture_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello", encoding="utf-8")
    for name, what in (("notes.txt", "is not a pcap or pcapng file"), ("none.pcap", "cannot be read: No such file")):
        options = NetworkBurstsOptions(sender=DEVICE, capture=str(tmp_path / name))
        with pytest.raises(DeviceError, match=what) as caught:
            NetworkBursts("lamp", options, Around(tmp_path)).open(Seen())
        assert caught.value.remedy


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ({"sender": "kitchen", "interface": "lo"}, "'kitchen' is not an IP or MAC address"),
        ({"sender": "192.168.1.400", "interface": "lo"}, "is not an IP or MAC address"),
        ({"sender": "", "interface": "lo"}, "is not an IP or MAC address"),
        ({"sender": DEVICE}, "either an `interface` or a `capture`"),
        ({"sender": DEVICE, "interface": "lo", "capture": "a"}, "either an `interface` or a `capture`"),
        ({"sender": DEVICE, "interface": "lo", "window_ms": 5}, "window_ms is 5"),
        ({"sender": DEVICE, "interface": "lo", "clock_error_ms": -1}, "clock_error_ms is -1"),
    ],
)
def test_wrong_options_are_refused(given: dict[str, object], what: str) -> None:
    with pytest.raises(InputError, match=what):
        options_of("network_bursts", given)


def test_a_missing_interface_lists_those_that_exist() -> None:
    with pytest.raises(InputError, match="no interface 'eth77'") as caught:
        NetworkBursts.demand_host(NetworkBurstsOptions(sender=DEVICE, interface="eth77"))
    assert "lo" in caught.value.remedy


def test_packets_are_attributed_to_their_sender() -> None:
    packet, protocol, mac = without_link(frame(100), 1)
    ip, other = socket.inet_aton(DEVICE), socket.inet_aton(OTHER)
    assert sent_bytes(packet, protocol, mac, ip) == 128
    assert sent_bytes(packet[:40], protocol, mac, ip) == 128
    assert sent_bytes(packet, protocol, mac, other) == 0
    assert sent_bytes(packet, protocol, mac, bytes.fromhex(MAC.replace(":", ""))) == 128
    tagged = frame(100)[:12] + b"\x81\x00\x00\x07" + frame(100)[12:]
    assert sent_bytes(*without_link(tagged, 1), ip) == 128
    assert sent_bytes(*without_link(packet, 101), ip) == 128
    assert sent_bytes(*without_link(b"\0" * 14 + b"\x08\x00" + packet, 113), ip) == 128
    six = b"\x60\0\0\0" + (100).to_bytes(2) + b"\x11\x40" + socket.inet_pton(socket.AF_INET6, "fe80::1") + b"\0" * 116
    assert sent_bytes(six, 0x86DD, b"", socket.inet_pton(socket.AF_INET6, "fe80::1")) == 140
    for short in range(len(frame(0))):
        sent_bytes(*without_link(frame(0)[:short], 1), ip)


def test_an_interface_shows_what_is_sent(tmp_path: Path, profile: DeviceProfile) -> None:
    options = NetworkBurstsOptions(sender="127.0.0.1", interface="lo", hold_back_ms=0.0, window_ms=50.0)
    try:
        tap = InterfaceTap(options, Around().clock)
    except DeviceError:
        pytest.skip("this needs the capability CAP_NET_RAW")
    told: list[tuple[int, Stamp]] = []
    stop = threading.Event()

    def tell(line: str, at: Stamp) -> None:
        told.append((int(line.split("bytes=")[1].split()[0]), at))

    thread = threading.Thread(target=tap.measure, args=(tell, stop))
    thread.start()
    sent: list[float] = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
        for _ in range(5):
            sent.append(time.monotonic())
            with contextlib.suppress(OSError):
                out.sendto(b"x" * 30_000, ("127.0.0.1", 9))
            threading.Event().wait(0.15)
    stop.set()
    thread.join(5)
    large = [at for size, at in told if size >= 30_000]
    assert all(any(abs(at.at_s - when) <= at.error_s + 0.002 for at in large) for when in sent)


def test_without_the_capability_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(socket, "socket", refused)
    with pytest.raises(DeviceError, match="needs the capability CAP_NET_RAW") as caught:
        InterfaceTap(NetworkBurstsOptions(sender=DEVICE, interface="lo"), Around().clock)
    assert "setcap cap_net_raw+ep" in caught.value.remedy
    assert "tcpdump -i lo -U -w" in caught.value.remedy

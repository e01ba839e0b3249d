"""Line protocols on a serial port: commands to a stand, and readings of an instrument, on a pty."""

from __future__ import annotations

import os
import select
import threading
import tty
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field

import pytest

from harness.devices.serial.commands import SerialCommandOptions, SerialCommands, read_numbers
from harness.devices.serial.port import OpenPort
from harness.model.errors import DeviceError
from harness.model.positioners import BenchOrder
from tests.seen import Around


@dataclass
class FarEnd:
    """Answers each line that ends with LF. answers: by line."""

    port: str
    answers: dict[bytes, bytes] = field(default_factory=dict)
    received: list[bytes] = field(default_factory=list)


@pytest.fixture
def far_end() -> Iterator[FarEnd]:
    far, near = os.openpty()
    tty.setraw(near)
    end, stop = FarEnd(os.ttyname(near)), threading.Event()

    def answer() -> None:
        unfinished = b""
        while not stop.is_set():
            if select.select([far], [], [], 0.01)[0]:
                *lines, unfinished = (unfinished + os.read(far, 4096)).split(b"\n")
                for line in lines:
                    end.received.append(line)
                    os.write(far, end.answers.get(line, b""))

    thread = threading.Thread(target=answer)
    thread.start()
    yield end
    stop.set()
    thread.join()
    os.close(near)
    os.close(far)


@pytest.fixture
def byte_by_byte(monkeypatch: pytest.MonkeyPatch) -> None:
    """A port that takes one byte of what it is given, as a full one does."""
    monkeypatch.setattr(OpenPort, "write", lambda port, data: os.write(port.fileno(), data[:1]))


@pytest.mark.usefixtures("byte_by_byte")
def test_an_order_is_written_whole_when_the_port_takes_a_byte_at_a_time(far_end: FarEnd) -> None:
    far_end.answers = {b"ANGLE 30": b"DONE 30\n"}
    with closing(SerialCommands("table", SerialCommandOptions(port=far_end.port), Around())) as driver:
        driver.carry_out(BenchOrder("table: turn", "ANGLE 30", done="^DONE", within_s=20.0), threading.Event())
    assert far_end.received == [b"ANGLE 30"]


@pytest.mark.usefixtures("byte_by_byte")
def test_a_reading_is_asked_for_when_the_port_takes_a_byte_at_a_time(far_end: FarEnd) -> None:
    far_end.answers = {b"LEVEL?": b"LAS 67,9 dB\r\n"}
    assert 67.9 in read_numbers(SerialCommandOptions(port=far_end.port), "LEVEL?", 1.0, 30, 130)


def test_blank_lines_are_not_silence(far_end: FarEnd) -> None:
    far_end.answers = {b"ANGLE 30": b"\r\n", b"ANGLE 40": b"BUSY\r\n\n", b"LEVEL?": b"\n"}
    with closing(SerialCommands("table", SerialCommandOptions(port=far_end.port), Around())) as driver:
        for angle, answer in (
            (30, "it sent only blank lines"),
            (40, "its last line was 'BUSY'"),
            (50, "it sent nothing"),
        ):
            order = BenchOrder("table: turn", f"ANGLE {angle}", done="^DONE", within_s=1.0)
            with pytest.raises(DeviceError, match=f"not done within 1 s; {answer}"):
                driver.carry_out(order, threading.Event())
    with pytest.raises(DeviceError, match="in 1 s; it sent only blank lines"):
        read_numbers(SerialCommandOptions(port=far_end.port), "LEVEL?", 1.0, 30, 130)


def test_readings_outside_the_range_are_not_taken(far_end: FarEnd) -> None:
    far_end.answers = {b"LEVEL?": b"LAS 267.9 dB\n"}
    with pytest.raises(DeviceError, match=r"no reading from 30 to 130 in 1 s; its last line was 'LAS 267\.9 dB'"):
        read_numbers(SerialCommandOptions(port=far_end.port), "LEVEL?", 1.0, 30, 130)

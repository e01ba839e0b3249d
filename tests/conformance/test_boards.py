"""The boards that other tests use can be reset, frozen, unplugged and killed, and the witness answers."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import numpy as np
import pytest

from harness.devices.wire import adpcm, messages
from harness.devices.wire.adpcm import EncodingName
from harness.model.stimulus import Waveform
from tests.conformance.boards import (
    MICRO_BIT,
    Cable,
    PosixBoard,
    QemuBoard,
    micro_bit,
    posix_board,
    qemu_board,
    qemu_installed,
)
from tests.conformance.serial_bench import Bench, near, repeated, spoken, truth
from tests.unit.firmware.talk import Talk

AnyBoard = PosixBoard | QemuBoard
Start = Callable[[Path], AbstractContextManager[AnyBoard]]

needs_qemu = pytest.mark.skipif(not qemu_installed(), reason="apt-get install qemu-system-arm gcc-arm-none-eabi")
KINDS = [
    pytest.param(lambda folder: posix_board(folder, cable=True), id="posix"),
    pytest.param(lambda folder: qemu_board(folder), id="qemu", marks=needs_qemu),
]


def boot_of(talk: Talk) -> int:
    """Whatever came before is passed over: the answer to what is asked now is the last HELLO."""
    talk.say(messages.HelloRequest())
    (_, hello) = talk.hear(messages.BoardHello)[-1]
    assert isinstance(hello, messages.BoardHello)
    return hello.boot


def cable_of(board: AnyBoard) -> Cable:
    assert board.cable is not None
    return board.cable


@pytest.mark.parametrize("start", KINDS)
def test_a_reset_is_another_boot(start: Start, tmp_path: Path) -> None:
    with start(tmp_path) as board:
        talk = Talk(board.port)
        before = boot_of(talk)
        board.reset()
        deadline = time.monotonic() + 5
        while boot_of(talk) == before:
            assert time.monotonic() < deadline
        talk.close()


@pytest.mark.parametrize("start", KINDS)
def test_a_frozen_board_says_nothing_and_then_goes_on(start: Start, tmp_path: Path) -> None:
    with start(tmp_path) as board:
        talk = Talk(board.port)
        before = boot_of(talk)
        board.freeze()
        talk.say(messages.Ping(7))
        with pytest.raises(AssertionError, match="no Pong"):
            talk.hear(messages.Pong, limit_s=0.3)
        board.thaw()
        (_, pong) = talk.hear(messages.Pong)[0]
        assert isinstance(pong, messages.Pong)
        assert pong.token == 7
        assert boot_of(talk) == before
        talk.close()


@pytest.mark.parametrize("start", KINDS)
def test_a_pulled_cable_takes_the_port_away(start: Start, tmp_path: Path) -> None:
    with start(tmp_path) as board:
        talk = Talk(board.port)
        before = boot_of(talk)
        cable_of(board).unplug()
        assert not os.path.lexists(board.port)
        with pytest.raises(OSError):
            boot_of(talk)
        talk.close()
        cable_of(board).replug()
        talk = Talk(board.port)
        assert boot_of(talk) == before
        talk.close()


@pytest.mark.parametrize("start", KINDS)
def test_a_flood_and_a_bad_line_are_survived(start: Start, tmp_path: Path) -> None:
    with start(tmp_path) as board:
        talk = Talk(board.port)
        cable_of(board).flood(200_000)
        before = boot_of(talk)
        cable_of(board).corrupt(0.01, seed=4)
        for number in range(50):
            talk.say(messages.Ping(number))
        cable_of(board).corrupt(0)
        assert talk.decoder.garbage > 0
        assert boot_of(talk) == before
        talk.close()


@pytest.mark.parametrize("start", KINDS)
def test_a_killed_board_is_gone(start: Start, tmp_path: Path) -> None:
    with start(tmp_path) as board:
        talk = Talk(board.port)
        boot_of(talk)
        board.kill()
        deadline = time.monotonic() + 5
        while os.path.lexists(board.port):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        talk.close()


@pytest.mark.skipif(not MICRO_BIT.exists(), reason="apt-get install firmware-microbit-micropython")
def test_the_witness_answers_at_its_prompt(tmp_path: Path) -> None:
    with micro_bit(tmp_path) as board:
        line = os.open(board.port, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
        said, asked_s, deadline = b"", 0.0, time.monotonic() + 15
        while b"42\r\n" not in said:
            assert time.monotonic() < deadline, said
            if time.monotonic() - asked_s > 1:  # what comes before its prompt is lost
                asked_s = time.monotonic()
                os.write(line, b"6*7\r\n")
            try:
                said += os.read(line, 4096)
            except BlockingIOError:
                time.sleep(0.01)
        os.close(line)


def heard(sound: Waveform, name: EncodingName) -> Waveform:
    """What is left of a sound after the encoding, as the host decodes it."""
    encoded = adpcm.EncodedSound((sound.samples * 32768).round().astype(np.int16), name.encoding)
    cuts = range(0, len(encoded), encoded.largest)
    chunks = (encoded.cut(at, min(at + encoded.largest, len(encoded))) for at in cuts)
    samples = np.concatenate([adpcm.decode(name.encoding, data) for data in chunks])
    return Waveform((samples / 32768).astype(np.float32), sound.rate_hz)


@pytest.mark.parametrize("start", KINDS)
@pytest.mark.parametrize("encoding", list(EncodingName))
def test_every_port_finds_what_the_spotter_finds_in_a_file(
    start: Start, encoding: EncodingName, tmp_path: Path
) -> None:
    sound = repeated(spoken(), 3)
    expected = truth(tmp_path, heard(sound, encoding))
    assert len(expected) >= 3
    with start(tmp_path) as board, Bench(tmp_path, board.port, encoding=encoding) as bench:
        assert bench.play(sound).complete
        assert near(bench.wakes(), expected)

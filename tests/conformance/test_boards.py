"""The boards that other tests use can be reset, frozen, unplugged and killed."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import numpy as np
import pytest

from harness.devices.serial.port import OpenPort
from harness.devices.wire import adpcm, frames, messages
from harness.model.choices import EncodingName
from harness.model.stimulus import Waveform
from tests.conformance.boards import FIRMWARE, PosixBoard, QemuBoard, built, posix_board, qemu_board, qemu_installed
from tests.conformance.serial_bench import Bench, near, repeated, spoken, truth
from tests.known import known
from tests.ports import free_port, listens
from tests.seen import until
from tests.unit.firmware.talk import Talk

AnyBoard = PosixBoard | QemuBoard
Start = Callable[[Path], AbstractContextManager[AnyBoard]]

needs_qemu = pytest.mark.skipif(not qemu_installed(), reason="apt-get install qemu-system-arm gcc-arm-none-eabi")
KINDS = [
    pytest.param(lambda folder: posix_board(folder, cable=True), id="posix"),
    pytest.param(lambda folder: qemu_board(folder), id="qemu", marks=needs_qemu),
]


def boot_of(talk: Talk) -> str:
    """Whatever came before is passed over: the answer to what is asked now is the last HELLO."""
    talk.say(messages.HelloRequest())
    (_, hello) = talk.hear(messages.BoardHello)[-1]
    assert isinstance(hello, messages.BoardHello)
    return hello.boot


@needs_qemu
def test_the_command_of_the_readme_serves_a_board_at_a_network_port() -> None:
    (command,) = re.findall(
        r"^    (qemu-system-arm (?:.*\\\n)*.*)$", (FIRMWARE / "README.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    built("qemu_ast1030")
    number = str(free_port())
    words = shlex.split(command.replace("\\\n", " ").replace("47011", number))
    with subprocess.Popen(words, cwd=FIRMWARE) as qemu:
        try:
            until(lambda: listens(int(number)), otherwise="QEMU does not listen")
            port, decoder = OpenPort(f"socket://127.0.0.1:{number}", 115200), frames.Decoder()
            until(lambda: any(isinstance(part, frames.WireFrame) for part in decoder.feed(port.read())))
            port.close()
        finally:
            qemu.kill()


@pytest.mark.parametrize("start", KINDS)
def test_a_board_is_reset_frozen_unplugged_shouted_at_and_killed(start: Start, tmp_path: Path) -> None:
    with start(tmp_path) as board:
        talk, cable = Talk(board.port), known(board.cable)
        first = boot_of(talk)
        board.reset()
        until(lambda: boot_of(talk) != first, 30)
        boot = boot_of(talk)

        board.freeze()
        talk.say(messages.Ping(7))
        with pytest.raises(AssertionError, match="no Pong"):
            talk.hear(messages.Pong, limit_s=0.3)
        board.thaw()
        (_, pong) = talk.hear(messages.Pong)[0]
        assert isinstance(pong, messages.Pong)
        assert pong.token == 7
        assert boot_of(talk) == boot

        cable.unplug()
        assert not os.path.lexists(board.port)
        with pytest.raises(OSError):
            boot_of(talk)
        talk.close()
        cable.replug()
        talk = Talk(board.port)
        assert boot_of(talk) == boot

        cable.flood(200_000)
        assert boot_of(talk) == boot
        cable.corrupt(0.01, seed=4)
        for number in range(50):
            talk.say(messages.Ping(number))
        cable.corrupt(0)
        assert boot_of(talk) == boot

        board.kill()
        until(lambda: not os.path.lexists(board.port), 30)
        talk.close()


def heard(sound: Waveform, name: EncodingName) -> Waveform:
    """What is left of a sound after the encoding, as the host decodes it."""
    encoding = adpcm.Encoding[name.name]
    encoded = adpcm.EncodedSound((sound.samples * 32768).round().astype(np.int16), encoding)
    cuts = range(0, len(encoded), encoded.max_chunk)
    chunks = (encoded.data(start, min(start + encoded.max_chunk, len(encoded))) for start in cuts)
    samples = np.concatenate([adpcm.decode(encoding, data) for data in chunks])
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

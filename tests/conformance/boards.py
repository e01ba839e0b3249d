"""Real boards for tests: the firmware as a process of this machine, on QEMU's Cortex-M4, and a third party's firmware.

with posix_board(folder) as board:           # board.port is what a serial driver opens
    board.reset(); board.freeze(); board.thaw(); board.kill()
with qemu_board(folder, broker=1883, device="m4") as board:
    board.cable.unplug(); board.cable.replug(); board.cable.corrupt(1e-3, seed=1); board.cable.flood(2_000_000)
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from tests.known import known
from tests.seen import until

FIRMWARE = Path(__file__).parents[2] / "firmware_stubs"
MICRO_BIT = Path("/usr/share/firmware-microbit-micropython/firmware.hex")
_SETTINGS_ADDRESS = 0x000BFF00
STYLES = ("none", "esp_idf", "zephyr", "arduino")


@cache
def built(target: str) -> Path:
    """The folder in which `make -C firmware_stubs TARGET` has put what it made: posix, qemu_ast1030 or host."""
    folder = FIRMWARE / "build"
    folder.mkdir(exist_ok=True)
    with (folder / ".lock").open("w") as lock:  # tests may run in several processes
        fcntl.flock(lock, fcntl.LOCK_EX)
        result = subprocess.run(["make", "-C", str(FIRMWARE), target], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    return folder / target


def qemu_installed() -> bool:
    return bool(shutil.which("qemu-system-arm") and shutil.which("arm-none-eabi-gcc"))


class Board(Protocol):
    """What every board can be asked for. `cable` is None when there is nothing between board and harness."""

    port: str
    cable: Cable | None

    def reset(self) -> None: ...
    def freeze(self) -> None: ...
    def thaw(self) -> None: ...
    def kill(self) -> None: ...


class Cable:
    """A pty in front of a board's far end (tests/conformance/pty_proxy.py)."""

    def __init__(self, far: Path, link: Path) -> None:
        self.port = str(link)
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("pty_proxy.py")), str(far), str(link)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
        )
        self._answer()

    def corrupt(self, rate: float, seed: int = 1) -> None:
        """Changes each byte in either direction with this probability; 0 ends it."""
        self._ask(f"corrupt {rate} {seed}")

    def lose(self, rate: float, seed: int = 1) -> None:
        """Leaves out each byte in either direction with this probability; 0 ends it."""
        self._ask(f"lose {rate} {seed}")

    def flood(self, count: int, seed: int = 1) -> None:
        """So many random bytes towards the harness, as fast as it takes them."""
        self._ask(f"flood {count} {seed}")

    def unplug(self) -> None:
        self._ask("unplug")

    def replug(self) -> None:
        self._ask("replug")

    def close(self) -> None:
        known(self._process.stdin).close()
        self._process.wait(60)
        known(self._process.stdout).close()

    def _ask(self, command: str) -> None:
        known(self._process.stdin).write(f"{command}\n".encode())
        self._answer()

    def _answer(self) -> None:
        output = known(self._process.stdout)
        ready, _, _ = select.select([output], [], [], 60)
        assert ready, "the cable does not answer"
        assert output.readline() == b"ok\n"


@dataclass
class PosixBoard:
    """The firmware as a process of this machine."""

    port: str
    cable: Cable | None
    process: subprocess.Popen[bytes]
    truth_file: Path

    def reset(self) -> None:
        """As its button does; the pty stays."""
        self.process.send_signal(signal.SIGUSR1)

    def freeze(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """Its port goes with it, though not its link."""
        self.process.kill()
        self.process.wait()

    def truth(self) -> list[dict[int, int]]:
        """For each boot: event number to the CLOCK_MONOTONIC, in ns, at which the board took its time."""
        boots: list[dict[int, int]] = [{}]
        for line in self.truth_file.read_text(encoding="ascii").splitlines():
            if line.startswith("#"):
                boots.append({})
            else:
                number, moment = line.split()
                boots[-1][int(number)] = int(moment)
        return boots


@contextmanager
def posix_board(folder: Path, *options: str, cable: bool = False) -> Iterator[PosixBoard]:
    """options: of `vh_board` besides --pty and --truth. cable: put one in between, for its faults."""
    program = built("posix") / "vh_board"
    link, truth = folder / "board", folder / "truth"
    link.unlink(missing_ok=True)  # a killed board leaves its link
    with ExitStack() as stack:
        command = [str(program), "--pty", str(link), "--truth", str(truth), *options]
        process = stack.enter_context(_running(command))
        _until(lambda: link.is_symlink(), process, "the board makes no pty")
        between = None
        if cable:
            between = Cable(link, folder / "cable")
            stack.callback(between.close)
        yield PosixBoard(str(link) if between is None else between.port, between, process, truth)


@dataclass
class QemuBoard:
    """A firmware on an emulated machine; reset and freeze go through QEMU's own monitor."""

    port: str
    cable: Cable
    process: subprocess.Popen[bytes]
    monitor: Monitor

    def reset(self) -> None:
        self.monitor.ask("system_reset")

    def freeze(self) -> None:
        """The board's clock stands still too."""
        self.monitor.ask("stop")

    def thaw(self) -> None:
        self.monitor.ask("cont")

    def kill(self) -> None:
        """Its port and its link go with it."""
        self.process.kill()
        self.process.wait()


@contextmanager
def qemu_board(
    folder: Path, *, device: str = "", broker: int = 0, user: str = "", password: str = "", style: str = "none"
) -> Iterator[QemuBoard]:
    """The Cortex-M4. device, broker: its name in the MQTT topics and the broker's port on this machine; 0: no MQTT."""
    image = built("qemu_ast1030") / "vh_board.elf"
    texts = b"".join(text.encode().ljust(64, b"\0") for text in (device, user, password))
    settings = texts + STYLES.index(style).to_bytes(8, "little")
    extra = ["-kernel", str(image)]
    for offset in range(0, len(settings), 8):  # from a file, QEMU loads only where the machine has memory by option
        word = int.from_bytes(settings[offset : offset + 8], "little")
        if word:
            extra += ["-device", f"loader,addr={_SETTINGS_ADDRESS + offset:#x},data={word:#x},data-len=8"]
    bridge = []
    if broker:
        bridge = ["-chardev", f"socket,id=m,host=127.0.0.1,port={broker},reconnect=1", "-serial", "chardev:m"]
    with _qemu(folder, "ast1030-evb", extra, bridge) as board:
        yield board


@contextmanager
def micro_bit(folder: Path) -> Iterator[QemuBoard]:
    """A third party's firmware: MicroPython for the micro:bit, a Python prompt on its port."""
    assert MICRO_BIT.exists(), "apt-get install firmware-microbit-micropython"
    with _qemu(folder, "microbit", ["-device", f"loader,file={MICRO_BIT}"], []) as board:
        yield board


@contextmanager
def _qemu(folder: Path, machine: str, firmware: list[str], after: list[str]) -> Iterator[QemuBoard]:
    # Short: the path of a socket may have 107 bytes only.
    with tempfile.TemporaryDirectory(prefix="vh-board-") as name, ExitStack() as stack:
        room = Path(name)
        line, monitor = room / "line", room / "qmp"
        command = ["qemu-system-arm", "-M", machine, *firmware, "-display", "none", "-monitor", "none", "-nodefaults"]
        command += ["-chardev", f"socket,id=c,path={line},server=on,wait=off", "-serial", "chardev:c", *after]
        command += ["-qmp", f"unix:{monitor},server=on,wait=off"]
        process = stack.enter_context(_running(command))
        qmp = Monitor(monitor, process)
        stack.callback(qmp.close)
        cable = Cable(line, folder / "cable")
        stack.callback(cable.close)
        yield QemuBoard(cable.port, cable, process, qmp)


class Monitor:
    """QEMU's machine protocol (QMP): one JSON object a line. When it answers, the sockets before it listen as well."""

    def __init__(self, path: Path, process: subprocess.Popen[bytes]) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(60)
        # QEMU makes the path a moment before it listens there: until then a connection is refused.
        _until(lambda: self._socket.connect_ex(str(path)) == 0, process, "QEMU does not start")
        self._lines = self._socket.makefile("rb")
        assert b"QMP" in self._lines.readline()
        self.ask("qmp_capabilities")

    def ask(self, command: str, **arguments: Any) -> Any:
        self._socket.sendall(json.dumps({"execute": command, "arguments": arguments}).encode())
        while True:
            answer = json.loads(self._lines.readline())
            if "return" in answer:
                return answer["return"]
            assert "error" not in answer, answer

    def close(self) -> None:
        self._lines.close()
        self._socket.close()


@contextmanager
def _running(command: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    try:
        yield process
    finally:
        if process.poll() is None:
            os.kill(process.pid, signal.SIGCONT)  # a frozen one would not end
            process.terminate()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _until(holds: Callable[[], bool], process: subprocess.Popen[bytes], otherwise: str) -> None:
    until(lambda: process.poll() is not None or holds(), otherwise=otherwise)
    assert process.poll() is None, otherwise

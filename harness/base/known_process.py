"""A process that outlives us, known by a file: its pid, and its start time, so that nobody else's is ever ended."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.base.child_process import ChildProcess
from harness.base.whole_file import write_whole

_POLL_S = 0.02
_EXITING = 0x4
"""Linux's flag PF_EXITING: nothing of the process runs any more."""
_KILLED = 1 << (signal.SIGKILL - 1)


@dataclass(frozen=True, slots=True)
class KnownProcess:
    """A process: pids are used again, but never with the same start time (clock ticks) in the same boot."""

    pid: int
    start_ticks: int
    boot_id: str

    def alive(self) -> bool:
        """True while this very process runs."""
        return self.boot_id == boot_id() and start_ticks(self.pid) == self.start_ticks

    def ending(self) -> bool:
        """True when it was killed and is not gone yet: a busy host takes a while to take it apart."""
        return self.alive() and _is_ending(self.pid)

    def outlast(self, patience_s: float = 5.0) -> None:
        """Waits for the end of a process that is ending, and for no other."""
        deadline = time.monotonic() + patience_s
        while self.ending() and time.monotonic() < deadline:
            time.sleep(_POLL_S)

    def uptime_s(self) -> float:
        with open("/proc/uptime", encoding="ascii") as file:
            return float(file.read().split()[0]) - self.start_ticks / os.sysconf("SC_CLK_TCK")

    def end(self, patience_s: float = 3.0) -> bool:
        """Asks it to end, then makes it; True when it is gone. A process that is not this one is left alone."""
        for number, wait_s in ((signal.SIGTERM, patience_s), (signal.SIGKILL, 2.0)):
            if not self.alive():
                return True
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)
                os.kill(self.pid, signal.SIGCONT)
            deadline = time.monotonic() + wait_s
            while self.alive() and time.monotonic() < deadline:
                _reap(self.pid)
                time.sleep(_POLL_S)
        return not self.alive()


def describe(pid: int) -> KnownProcess | None:
    """The process that has that pid now."""
    ticks = start_ticks(pid)
    return None if ticks is None else KnownProcess(pid, ticks, boot_id())


def save_process(path: Path, started: KnownProcess) -> None:
    """Written whole or not at all."""
    told = {"pid": started.pid, "start_ticks": started.start_ticks, "boot_id": started.boot_id}
    write_whole(path, json.dumps(told).encode())


def read_process(path: Path) -> KnownProcess | None:
    """The process in a file; None when there is no file or it is damaged."""
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        return KnownProcess(int(told["pid"]), int(told["start_ticks"]), str(told["boot_id"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def start_detached(arguments: Sequence[str], environment: Mapping[str, str], log: Path) -> int:
    """The pid of a process that outlives us: a Ctrl-C or a closed terminal does not reach it."""
    child = ChildProcess(arguments, stdin=subprocess.DEVNULL, stdout=None, stderr=log, environment=environment)
    child.leave()
    return child.pid


def boot_id() -> str:
    """Names this boot of the host: monotonic times of different boots cannot be compared."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def start_ticks(pid: int) -> int | None:
    """Field 22 of /proc/<pid>/stat; None for a process that is gone or a zombie."""
    fields = _stat(pid)
    return None if fields is None or fields[0] == "Z" else int(fields[19])


def _stat(pid: int) -> list[str] | None:
    """/proc/<pid>/stat from field 3 on: those before it may hold anything."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return stat.rpartition(")")[2].split()


def _is_ending(pid: int) -> bool:
    """A kill that it has not taken yet is pending, or its threads are on their way out."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    for line in status.splitlines():
        name, _, value = line.partition(":")
        if name in ("SigPnd", "ShdPnd") and int(value, 16) & _KILLED:
            return True
    fields = _stat(pid)
    return fields is not None and bool(int(fields[6]) & _EXITING)


def _reap(pid: int) -> None:
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)

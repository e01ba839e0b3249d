"""Starts, watches and ends child processes.

A child leads its own process session. So Ctrl-C at the terminal reaches only this process, and a child can be ended
together with everything that it started. The harness's own programs end when their standard input ends, so they end
with this process. Any other program is `guarded`: it runs below guard.py, which kills everything that the program has
started when this process dies.
"""

from __future__ import annotations

import contextlib
import glob
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from subprocess import PIPE
from typing import IO

from harness.base.whole_file import write_atomically
from harness.model.frozen import frozen
from harness.model.numbers import exact

_GUARD = str(Path(__file__).with_name("guard.py"))
_TAIL_BYTES = 1 << 16
"""Bytes of the error output that are read to find its last line: a child may have written gigabytes."""
_POLL_S = 0.01
_EXITING = 0x4
"""Linux's flag PF_EXITING: no code of the process runs any more."""
_USER_TIME, _CHILDREN_USER_TIME, _END_OF_TIMES = 11, 13, 15
"""Places in _stat(): user and system time, then the same of children that have ended and were reaped (fields 14–17)."""
_KILLED = 1 << (signal.SIGKILL - 1)
"""The bit of SIGKILL in Linux's masks of pending signals."""


class ChildProcess:
    """A running child. Raises OSError if it cannot be started.

    - stderr: None keeps the output in an unnamed file; a path appends it there.
    - stdout: None joins stderr. stdin and stdout are otherwise as for Popen. `end` works in any state, and leaves
      nothing behind.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        *,
        stdin: int = PIPE,
        stdout: int | None = PIPE,
        stderr: int | Path | None = None,
        environment: Mapping[str, str] | None = None,
        pass_fds: Sequence[int] = (),
        guarded: bool = False,
    ) -> None:
        guard = [sys.executable, "-I", "-S", _GUARD, str(os.getpid())] if guarded else []
        self._end_lock = threading.Lock()
        self._final_error_line: str | None = None
        self._error_file: IO[bytes] | None = None
        self._error_start = 0
        if isinstance(stderr, int):
            errors: int | IO[bytes] = stderr
        else:
            errors = tempfile.TemporaryFile() if stderr is None else stderr.open("a+b")  # noqa: SIM115 (see end)
            self._error_file, self._error_start = errors, errors.seek(0, os.SEEK_END)
        try:
            self._process = subprocess.Popen(
                [*guard, *arguments],
                stdin=stdin,
                stdout=errors if stdout is None else stdout,
                stderr=errors,
                env=environment,
                pass_fds=pass_fds,
                bufsize=0,
                start_new_session=True,
            )
        except BaseException:
            if self._error_file is not None:
                self._error_file.close()
            raise
        self.pid = self._process.pid
        if self._process.stdin is not None:
            os.set_blocking(self._process.stdin.fileno(), False)

    @property
    def stdin(self) -> IO[bytes]:
        """The pipe to the child; non-blocking."""
        assert self._process.stdin is not None
        return self._process.stdin

    @property
    def stdout(self) -> IO[bytes]:
        """The pipe of its output; only if stdout is PIPE."""
        assert self._process.stdout is not None
        return self._process.stdout

    @property
    def stderr(self) -> IO[bytes]:
        """The pipe of its error output; only if stderr is PIPE."""
        assert self._process.stderr is not None
        return self._process.stderr

    @property
    def status(self) -> int | None:
        """Its exit status, negative for a signal; None while it runs.

        A child that has ended is reaped only by `end`: until then, its process group id is not reused.
        """
        if self._process.returncode is not None:
            return self._process.returncode
        try:
            exit_state = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:  # another thread has called `end`
            return self._process.wait()
        if exit_state is None:
            return None
        return exit_state.si_status if exit_state.si_code == os.CLD_EXITED else -exit_state.si_status

    @property
    def alive(self) -> bool:
        """Whether it runs."""
        return self.status is None

    def last_error_line(self) -> str:
        """The last line that it wrote to standard error, if that is kept; else ""."""
        if self._final_error_line is not None:
            return self._final_error_line
        if self._error_file is None or self._error_file.closed:
            return ""
        end = os.fstat(self._error_file.fileno()).st_size
        first = max(self._error_start, end - _TAIL_BYTES)
        return last_line(os.pread(self._error_file.fileno(), end - first, first))

    def await_ready(self, ready: Callable[[], bool], limit_s: float) -> str:
        """Waits until the child is ready. Returns "", or the reason why it is not, with its last line."""
        deadline_s = time.monotonic() + limit_s
        problem = ""
        while not problem:
            if ready():
                return ""
            if not self.alive:
                problem = "ended immediately"
            elif time.monotonic() > deadline_s:
                problem = f"did not answer within {exact(limit_s)} s"
            else:
                time.sleep(_POLL_S)
        return f"{problem}: {self.last_error_line() or 'it printed nothing'}"

    def wait(self, limit_s: float) -> bool:
        """Waits until the child ends. Returns whether it did within limit_s."""
        return wait_until(lambda: not self.alive, limit_s)

    def end(self, grace_s: float = 0.0) -> str:
        """Kills the child and everything that it has started. Returns its last line.

        With grace_s, the child is first asked to end, and gets that time. May be called from any thread, and again.
        """
        with self._end_lock:
            if self._final_error_line is not None:
                return self._final_error_line
            if grace_s:
                if self._process.stdin is not None:
                    self._process.stdin.close()
                self.terminate()
                self.wait(grace_s)
            self.kill()
            self._process.wait()
            self._final_error_line = self.last_error_line()
            for stream in (self._process.stdin, self._process.stdout, self._process.stderr, self._error_file):
                if stream is not None:
                    with contextlib.suppress(OSError):
                        stream.close()
            return self._final_error_line

    def terminate(self) -> None:
        """Asks it to end."""
        if self._process.returncode is None:  # a reaped child's pid may belong to another process
            os.kill(self.pid, signal.SIGTERM)

    def kill(self) -> None:
        """Kills the child and everything that it has started; its pipes stay open."""
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)

    def leave(self) -> None:
        """Lets the child outlive this process, without a warning that it was never reaped."""
        if self.alive:
            self._process.returncode = 0  # Popen warns of a child without one; from here on, `status` is not its own
        else:
            self._process.wait()
        if self._error_file is not None:
            self._error_file.close()


def wait_until(holds: Callable[[], bool], limit_s: float) -> bool:
    """Waits until a condition holds, which is checked every 10 ms. Returns whether it did within limit_s."""
    deadline_s = time.monotonic() + limit_s
    while not (does_hold := holds()) and time.monotonic() < deadline_s:
        time.sleep(_POLL_S)
    return does_hold


def python_command(module: str, *arguments: str) -> list[str]:
    """The command line of one of the harness's programs, by its module. Modules in the working folder are not found."""
    return [sys.executable, "-P", "-m", module, *arguments]


def last_line(text: bytes) -> str:
    """The last line that is not empty."""
    lines = text.decode("utf-8", "replace").strip().splitlines()
    return lines[-1].strip() if lines else ""


def ended_words(status: int) -> str:
    """How a process ended: `ended with status 3`, `was ended by SIGKILL`."""
    return f"ended with status {status}" if status >= 0 else f"was ended by {_signal_name(-status)}"


def _signal_name(signal_number: int) -> str:
    """`SIGKILL`; `signal 42` for a signal without a name."""
    try:
        return signal.Signals(signal_number).name
    except ValueError:  # real-time signals have no name
        return f"signal {signal_number}"


@frozen
class KnownProcess:
    """A process. Pids are reused, but never with the same start time (clock ticks) in the same boot."""

    pid: int
    start_ticks: int
    boot_id: str

    def alive(self) -> bool:
        """True while this process runs."""
        return self.boot_id == boot_id() and start_ticks(self.pid) == self.start_ticks

    def ending(self) -> bool:
        """Whether the process was killed but has not ended yet, which takes a while on a busy host."""
        return self.alive() and _is_ending(self.pid)

    def await_exit(self, limit_s: float = 5.0) -> None:
        """Waits for the end of a process that is ending; returns at once for others."""
        wait_until(lambda: not self.ending(), limit_s)

    def uptime_s(self) -> float:
        """Seconds since the process started."""
        with open("/proc/uptime", encoding="ascii") as file:
            return float(file.read().split()[0]) - self.start_ticks / os.sysconf("SC_CLK_TCK")

    def end(self, patience_s: float = 3.0) -> bool:
        """Asks the process to end, then kills it. Returns whether it has ended. Never affects another process."""
        for signal_number, limit_s in ((signal.SIGTERM, patience_s), (signal.SIGKILL, 2.0)):
            if not self.alive():
                return True
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal_number)
                os.kill(self.pid, signal.SIGCONT)  # a stopped process does not act on SIGTERM
            deadline_s = time.monotonic() + limit_s
            while self.alive() and time.monotonic() < deadline_s:
                _reap(self.pid)
                time.sleep(_POLL_S)
        return not self.alive()


def process_of_pid(pid: int) -> KnownProcess | None:
    """The process that has that pid now."""
    ticks = start_ticks(pid)
    return None if ticks is None else KnownProcess(pid, ticks, boot_id())


def save_process(path: Path, process: KnownProcess) -> None:
    """Writes a process to a file, atomically."""
    fields = {"pid": process.pid, "start_ticks": process.start_ticks, "boot_id": process.boot_id}
    write_atomically(path, json.dumps(fields).encode())


def read_process(path: Path) -> KnownProcess | None:
    """The process in a file; None if the file is missing or damaged."""
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
        return KnownProcess(int(fields["pid"]), int(fields["start_ticks"]), str(fields["boot_id"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def start_detached(arguments: Sequence[str], environment: Mapping[str, str], log: Path) -> int:
    """Starts a process that outlives this one; Ctrl-C or a closed terminal does not reach it. Returns its pid."""
    child = ChildProcess(arguments, stdin=subprocess.DEVNULL, stdout=None, stderr=log, environment=environment)
    child.leave()
    return child.pid


def boot_id() -> str:
    """Identifies this boot of the host: monotonic times of different boots cannot be compared."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def start_ticks(pid: int) -> int | None:
    """Field 22 of /proc/<pid>/stat; None for an ended process or a zombie."""
    fields = _stat(pid)
    return None if fields is None or fields[0] == "Z" else int(fields[19])  # the first of these is field 3


def descendants(pid: int) -> list[int]:
    """The running processes that a process started, directly or through others. Source: proc(5)."""
    pids = []
    for children in glob.glob(f"/proc/{pid}/task/*/children"):  # of each of its threads
        with contextlib.suppress(OSError):  # it has just ended
            for child in map(int, Path(children).read_text(encoding="ascii").split()):
                pids += [child, *descendants(child)]
    return pids


def descendants_cpu_s() -> float:
    """Processor seconds of all programs that this process started, running or ended, in steps of 10 ms.

    A program that was killed together with its parent counts only while it runs.
    """
    own_pid = os.getpid()
    ticks = 0
    for pid in (own_pid, *descendants(own_pid)):
        first_time = _CHILDREN_USER_TIME if pid == own_pid else _USER_TIME  # of this process, only its programs count
        ticks += sum(map(int, (_stat(pid) or [])[first_time:_END_OF_TIMES]))
    return ticks / os.sysconf("SC_CLK_TCK")


def _stat(pid: int) -> list[str] | None:
    """/proc/<pid>/stat from field 3 on: earlier fields may contain anything."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return stat.rpartition(")")[2].split()


def _is_ending(pid: int) -> bool:
    """Whether a SIGKILL is pending, or its threads are exiting."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    for line in status.splitlines():
        name, _, value = line.partition(":")
        if name in ("SigPnd", "ShdPnd") and int(value, 16) & _KILLED:
            return True
    fields = _stat(pid)
    return fields is not None and bool(int(fields[6]) & _EXITING)  # field 9: flags


def _reap(pid: int) -> None:
    """Removes the zombie of a child of ours; does nothing for other processes."""
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)

"""Child processes: started, watched and ended in one way.

A child leads a session of its own: a Ctrl-C at the terminal is for us to deal with, and what it starts can be ended
with it. One of our programs reads standard input and ends when that does, so it ends with us, however we end. Another
program is `guarded`: it runs below this module as a script, which imports nothing of ours, is told by the kernel when
its parent dies (prctl(2), PR_SET_PDEATHSIG), and then takes down all that the program has started.
"""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from subprocess import PIPE as PIPE
from typing import IO

NOT_STARTED = 126
_PR_SET_PDEATHSIG = 1
_LAST_BYTES = 1 << 16
_POLL_S = 0.01


class ChildProcess:
    """A running child; OSError when it cannot be started.

    stderr: None keeps what it says in a file without a name; a path appends it there. stdout: None joins stderr.
    stdin and stdout are otherwise as for Popen. `end` is for any state, and leaves nothing behind.
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
        guard = [sys.executable, "-I", "-S", __file__, str(os.getpid())] if guarded else []
        self._said: IO[bytes] | None = None
        self._said_from = 0
        if isinstance(stderr, int):
            errors: int | IO[bytes] = stderr
        else:
            errors = tempfile.TemporaryFile() if stderr is None else stderr.open("a+b")  # noqa: SIM115 (see end)
            self._said, self._said_from = errors, errors.seek(0, os.SEEK_END)
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
            if self._said is not None:
                self._said.close()
            raise
        self.pid = self._process.pid
        if self._process.stdin is not None:
            os.set_blocking(self._process.stdin.fileno(), False)

    @property
    def stdin(self) -> IO[bytes]:
        """The pipe to it, which takes what it has room for."""
        assert self._process.stdin is not None
        return self._process.stdin

    @property
    def stdout(self) -> IO[bytes]:
        assert self._process.stdout is not None
        return self._process.stdout

    @property
    def stderr(self) -> IO[bytes]:
        assert self._process.stderr is not None
        return self._process.stderr

    @property
    def status(self) -> int | None:
        """Its exit status, negative for a signal; None while it runs.

        One that has ended is not waited for until `end`: until then, the number of its group is its own.
        """
        if self._process.returncode is not None:
            return self._process.returncode
        try:
            found = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:  # `end` has waited for it meanwhile, in another thread
            return self._process.wait()
        if found is None:
            return None
        return found.si_status if found.si_code == os.CLD_EXITED else -found.si_status

    @property
    def alive(self) -> bool:
        return self.status is None

    def last_words(self) -> str:
        """The last line that it wrote to standard error, where that is kept; "" for none."""
        if self._said is None or self._said.closed:
            return ""
        end = os.fstat(self._said.fileno()).st_size
        first = max(self._said_from, end - _LAST_BYTES)
        return last_line(os.pread(self._said.fileno(), end - first, first))

    def await_ready(self, ready: Callable[[], bool], limit_s: float) -> str:
        """Waits until it is ready; "" then, otherwise why it is not, with its last words."""
        deadline_s = time.monotonic() + limit_s
        while not ready():
            if not self.alive:
                return f"ended at once: {self.last_words() or 'it said nothing'}"
            if time.monotonic() > deadline_s:
                return f"did not answer within {limit_s:g} s: {self.last_words() or 'it said nothing'}"
            time.sleep(_POLL_S)
        return ""

    def wait(self, limit_s: float) -> bool:
        """Waits for its end; whether it came in time."""
        deadline_s = time.monotonic() + limit_s
        while self.alive and time.monotonic() < deadline_s:
            time.sleep(_POLL_S)
        return not self.alive

    def end(self, grace_s: float = 0.0) -> str:
        """Asks it to end, if it has that long, and ends it and all that it has started; its last words."""
        if grace_s:
            if self._process.stdin is not None:
                self._process.stdin.close()
            self.terminate()
            self.wait(grace_s)
        self.kill()
        self._process.wait()
        words = self.last_words()
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr, self._said):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        return words

    def terminate(self) -> None:
        """Asks it to end."""
        if self._process.returncode is None:
            os.kill(self.pid, signal.SIGTERM)

    def kill(self) -> None:
        """Ends it and all that it has started, by force; its pipes stay open."""
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)

    def leave(self) -> None:
        """It outlives us: nobody waits for it, and nobody is to be warned that it was not waited for."""
        if self.alive:
            self._process.returncode = 0
        else:
            self._process.wait()
        if self._said is not None:
            self._said.close()


def python(module: str, *arguments: str) -> list[str]:
    """A program of ours, by the name of its module."""
    return [sys.executable, "-m", module, *arguments]


def last_line(text: bytes) -> str:
    """The last line that is not empty."""
    lines = text.decode("utf-8", "replace").strip().splitlines()
    return lines[-1].strip() if lines else ""


def ended_words(status: int) -> str:
    """How a process ended: `ended with status 3`, `was ended by SIGKILL`."""
    return f"ended with status {status}" if status >= 0 else f"was ended by {_signal_name(-status)}"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # real-time signals have no name of their own
        return f"signal {number}"


def _guard(parent: int, command: list[str]) -> int:
    """Runs a program until it or our parent ends; its exit status, or the end by its signal.

    NOT_STARTED, with the reason on stderr, when it cannot be started. Its standard streams are left alone.
    """
    import ctypes
    import resource

    def down(number: int, frame: object) -> None:
        if os.getppid() != parent:  # else it was only the parent's thread that ended, which the kernel tells as well
            os.killpg(0, signal.SIGKILL)

    signal.signal(signal.SIGTERM, down)
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:  # it died before it could be watched
        return NOT_STARTED
    try:
        program = subprocess.Popen(command)
    except OSError as error:
        sys.stderr.write(f"{command[0]}: {error.strerror}\n")
        return NOT_STARTED
    # The ends of the pipes are the program's alone: they close when it closes them.
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1):
        os.dup2(nowhere, stream)
    status = program.wait()
    if status < 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if -status not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    return status


if __name__ == "__main__":
    sys.exit(_guard(int(sys.argv[1]), sys.argv[2:]))

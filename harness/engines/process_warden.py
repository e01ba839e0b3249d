"""Runs an external engine so that it ends with us, however we end: `process_warden.py PARENT_PID PROGRAM ARGUMENTS…`.

A script of its own that imports nothing of ours. It leads the session that the engine and whatever the engine starts
live in; when its parent dies, even by SIGKILL, the kernel tells it, and it takes all of them down. It leaves the
engine's standard streams alone and ends as the engine did. prctl(2), PR_SET_PDEATHSIG.
"""

import ctypes
import os
import resource
import signal
import subprocess
import sys

_PR_SET_PDEATHSIG = 1
NOT_STARTED = 126


def main(parent: int, command: list[str]) -> int:
    """The engine's exit status, or the end by its signal; NOT_STARTED with the reason on stderr."""

    def down(number: int, frame: object) -> None:
        if os.getppid() != parent:  # else it was only the parent's thread that ended, which the kernel tells as well
            os.killpg(0, signal.SIGKILL)

    signal.signal(signal.SIGTERM, down)
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:  # it died before it could be watched
        return NOT_STARTED
    try:
        engine = subprocess.Popen(command)
    except OSError as error:
        sys.stderr.write(f"{command[0]}: {error.strerror}\n")
        return NOT_STARTED
    # The ends of the pipes are the engine's alone: they close when it closes them.
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1):
        os.dup2(nowhere, stream)
    status = engine.wait()
    if status < 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if -status not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    return status


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))

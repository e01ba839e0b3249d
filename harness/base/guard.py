"""Runs a program so that it ends with our parent, however that ends: `guard.py PARENT_PID PROGRAM ARGUMENTS…`.

A script of its own, which imports nothing of ours and little else: it costs some 30 ms a start. It leads the session
that the program and whatever it starts live in. When its parent dies, even by SIGKILL, the kernel tells it, and it
takes all of them down. prctl(2), PR_SET_PDEATHSIG.
"""

import ctypes
import os
import resource
import signal
import subprocess
import sys

NOT_STARTED = 126
_PR_SET_PDEATHSIG = 1


def main(parent: int, command: list[str]) -> int:
    """Runs a program until it or our parent ends; its exit status, or the end by its signal.

    NOT_STARTED, with the reason on stderr, when it cannot be started. Its standard streams are left alone.
    """

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
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))

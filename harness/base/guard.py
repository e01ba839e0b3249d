"""Runs a program that ends when this script's parent ends, for any reason: `guard.py PARENT_PID PROGRAM ARGUMENTS…`.

A separate script with few imports, which adds about 30 ms per start. It leads the process session of the program and
of everything that the program starts. When the parent dies, even by SIGKILL, the kernel signals this script, which
then kills them all. See prctl(2), PR_SET_PDEATHSIG.
"""

import ctypes
import os
import resource
import signal
import subprocess
import sys

NOT_STARTED = 126  # What shells return for a program that cannot be executed.
_PR_SET_PDEATHSIG = 1  # Of <linux/prctl.h>.


def main(parent: int, command: list[str]) -> int:
    """Runs a program until it or the parent ends. Returns its exit status, or ends by the same signal as the program.

    Returns NOT_STARTED, with the reason on stderr, if it cannot be started. Does not use its standard streams.
    """

    def down(number: int, frame: object) -> None:
        if os.getppid() != parent:  # the kernel also signals when only a thread of the parent ends
            os.killpg(0, signal.SIGKILL)

    signal.signal(signal.SIGTERM, down)
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:  # the parent died before prctl
        return NOT_STARTED
    try:
        program = subprocess.Popen(command)
    except OSError as error:
        sys.stderr.write(f"{command[0]}: {error.strerror}\n")
        return NOT_STARTED
    # Only the program holds the ends of the pipes, so they close when it closes them.
    null_device = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1):
        os.dup2(null_device, stream)
    status = program.wait()
    if status < 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if -status not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    return status


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))

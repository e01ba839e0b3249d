"""Keeps a virtual lab for one command: when the command and its run have ended, even by SIGKILL, the lab stops.

`python -m harness.lab.keeper SETTINGS` starts the lab and writes a line of JSON: what failed, or "". Then it reads
from standard input until its end: `keep` leaves the lab running, `until PID` names the engine that uses it.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time
from pathlib import Path

from harness.base.child_process import ChildProcess, process_of_pid, python_command
from harness.lab.lab import Lab
from harness.model.errors import HarnessError, LabError

_POLL_S = 0.2
_DOWN_WITHIN_S = 30.0
"""How long to wait for the lab to stop."""


class ManagedLab:
    """The lab of HARNESS_LAB, started again for one command, and stopped after it."""

    def __init__(self, settings: Path, *, keep: bool = False) -> None:
        """keep: whether it runs on after the command and its run have ended. Raises LabError if it cannot start."""
        self._keeper = ChildProcess(python_command("harness.lab.keeper", str(settings)))
        try:
            answer = self._keeper.stdout.readline()
            if not answer:
                raise LabError(f"the virtual lab cannot start: {self._keeper.last_error_line()}")
            if failure := json.loads(answer):
                raise LabError(failure)
            if keep:
                self._send_line("keep")
        except BaseException:
            self.end()
            raise

    def keep_until_exit(self, pid: int) -> None:
        """Also keeps the lab running until the engine with this pid has ended."""
        self._send_line(f"until {pid}")

    def _send_line(self, line: str) -> None:
        with contextlib.suppress(OSError):  # the keeper was killed: the lab runs on, without it
            self._keeper.stdin.write(f"{line}\n".encode())

    def leave(self) -> None:
        """Leaves the lab to its engine."""
        self._keeper.leave()

    def end(self) -> None:
        """Waits until the lab has stopped, unless it is kept."""
        self._keeper.stdin.close()
        self._keeper.wait(_DOWN_WITHIN_S)
        self._keeper.end()


def main(settings: Path) -> None:
    """Starts the lab, and stops it at the end of standard input and of the engine, unless it is to be kept."""
    lab = Lab()
    lab.down()  # `up` refuses a lab that runs with other settings
    try:
        lab.up(settings)
    except HarnessError as error:
        sys.stdout.write(json.dumps(str(error)) + "\n")
        return
    own_fingerprint = lab.fingerprint()
    keep, engine = False, None
    try:
        with contextlib.suppress(BrokenPipeError):  # the command was killed meanwhile
            os.write(1, b'""\n')  # nothing stays in a buffer, whose flush at exit would fail again
        for line in sys.stdin:
            match line.split():
                case ["keep"]:
                    keep = True
                case ["until", pid]:
                    engine = process_of_pid(int(pid))
                case _:
                    pass
        while engine is not None and engine.alive():
            time.sleep(_POLL_S)
    finally:
        if not keep and lab.fingerprint() == own_fingerprint:  # otherwise another command has started it anew
            lab.down()


def _exit_on_signal(number: int, frame: object) -> None:
    sys.exit(128 + number)  # the status that shells give to a signal


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _exit_on_signal)
    main(Path(sys.argv[1]))

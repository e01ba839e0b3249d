"""Ends what a test run leaves behind, even if the run is killed: `leftovers.py PID MARK`.

Every process that a run starts inherits a mark in its environment, also one that leaves its process session or
outlives its parent. This program waits for the end of a process, outside its process group, and then kills all that
carry the mark, with their descendants. It imports nothing of ours, and little else.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path

MARK = "HARNESS_TEST_RUN"
"""The environment variable that holds the mark: `RUN`, and within it `RUN/WORKER`."""
GONE_WITHIN_S = 8.0


def mark_of(pid: int | str) -> str:
    """The mark of a process; "" if it has none, has ended, or belongs to another user."""
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return ""
    prefix = f"{MARK}=".encode()
    values = (value.removeprefix(prefix) for value in environment.split(b"\0") if value.startswith(prefix))
    return next(values, b"").decode(errors="replace")


def within(mark: str, run: str) -> bool:
    """Whether a mark is that of a run, or of one within it."""
    return mark == run or mark.startswith(f"{run}/")


def left(run: str) -> list[int]:
    """Processes with the mark of a run and their descendants, except this one. Zombies are not counted."""
    children, marked = defaultdict[int, list[int]](list), []
    for name in os.listdir("/proc"):
        with contextlib.suppress(OSError, ValueError):
            pid = int(name)
            state, parent, *_ = Path(f"/proc/{name}/stat").read_text(errors="replace").rpartition(")")[2].split()
            if state == "Z":
                continue
            children[int(parent)].append(pid)
            if within(mark_of(pid), run):
                marked.append(pid)
    for pid in marked:  # grows meanwhile
        marked.extend(child for child in children[pid] if child not in marked)
    return [pid for pid in marked if pid != os.getpid()]


def end_all(run: str, within_s: float = GONE_WITHIN_S) -> list[int]:
    """Kills all processes of a run, until none is left. Returns those that are left after a time."""
    deadline_s = time.monotonic() + within_s
    while (pids := left(run)) and time.monotonic() < deadline_s:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)
    return pids


def end_all_after(pid: int, run: str) -> None:
    """Starts this program as a process of its own, which no signal to our process group reaches."""
    environment = {name: value for name, value in os.environ.items() if name != MARK}
    subprocess.Popen(
        [sys.executable, "-I", "-S", __file__, str(pid), run],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        env=environment, start_new_session=True, cwd="/",
    ).returncode = 0  # fmt: skip
    # It outlives us: no warning that it was never reaped.


def main(pid: int, run: str) -> None:
    with contextlib.suppress(ProcessLookupError):
        select.select([os.pidfd_open(pid)], [], [])
    end_all(run)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])

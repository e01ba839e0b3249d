"""Starts the engine of a session as a process of its own, and waits until it answers."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.base.folder import SessionFolder
from harness.base.whole_file import disk_errors
from harness.model.errors import EngineError
from harness.session.engine.engine_place import EnginePlace, find

ANSWERS_WITHIN_S = 60.0
"""A host that is busy takes long to load an engine; one that fails is noticed at once all the same."""
POLL_S = 0.02


def start_engine(folder: Path, within_s: float = ANSWERS_WITHIN_S, *, unattended: bool = False) -> EnginePlace:
    """The engine that runs the session in `folder`: a new one, detached from this terminal, unless one runs already.

    unattended: nobody is asked, whatever the bench says. EngineError when it ends or does not answer within
    `within_s`, with what it wrote last; and on Ctrl-C meanwhile, which stops it.
    """
    session = SessionFolder(folder).demand()
    if (place := find(folder)) is not None:
        return place
    with disk_errors(f"{session.engine_output} cannot be written"):
        output = session.engine_output.open("ab")
    process: subprocess.Popen[bytes] | None = None
    try:
        with output, _interrupted_afterwards():
            process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "harness.session.engine.engine", str(folder.resolve())),
                    *(["--unattended"] if unattended else []),
                ],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                close_fds=True,
            )
        place = _answering(folder, process, session.engine_output, within_s)
    except KeyboardInterrupt as interrupt:
        if process is None:
            raise
        # Whoever leaves now has seen no name of the session yet: it is not to play behind their back.
        process.terminate()
        raise EngineError(
            f"interrupted while the engine started; it was told to stop (pid {process.pid})",
            remedy=f"Go on with: harness resume {folder}",
        ) from interrupt
    except EngineError:
        if process is not None:
            process.terminate()
        raise
    finally:
        if process is not None:
            _leave_to_init(process)
    return place


@contextmanager
def _interrupted_afterwards() -> Iterator[None]:
    """A Ctrl-C meanwhile is raised when this is over: a process that was just started has no name before that."""
    mine = threading.current_thread() is threading.main_thread()
    if not mine or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    kept: list[int] = []
    signal.signal(signal.SIGINT, lambda number, frame: kept.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if kept:
        raise KeyboardInterrupt


def _answering(folder: Path, process: subprocess.Popen[bytes], output: Path, within_s: float) -> EnginePlace:
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        place = find(folder)
        if place is not None and Path(place.socket).exists():
            return place
        if process.poll() is not None:
            raise EngineError(f"the engine ended at once: {_last_words(output)}")
        time.sleep(POLL_S)
    raise EngineError(
        f"the engine (pid {process.pid}) did not answer within {within_s:g} s, and was told to stop",
        remedy=f"See {output}, then: harness resume {folder}",
    )


def _leave_to_init(process: subprocess.Popen[bytes]) -> None:
    """The engine outlives us: nobody is to warn that it was not waited for."""
    process.returncode = process.returncode or 0


def _last_words(path: Path) -> str:
    try:
        written = path.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    except OSError:
        written = []
    return written[-1] if written else f"it wrote nothing to {path}"

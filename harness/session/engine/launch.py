"""Starts the engine of a session as a separate process, and waits until it answers."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from harness.base.child_process import ChildProcess, boot_id, python_command, start_ticks
from harness.base.foreign import shell_word
from harness.base.places import SessionFolder, runtime_folder
from harness.base.whole_file import disk_errors, write_atomically
from harness.model.errors import EngineError, InputError
from harness.model.frozen import frozen


@frozen
class EnginePlace:
    """A process that runs or ran a session.

    - started: when the process began, in clock ticks after boot; together with the pid it identifies the process.
    - socket: path of the socket on which it answers.
    """

    folder: str
    pid: int
    started: int
    boot_id: str
    socket: str

    @property
    def alive(self) -> bool:
        """Whether this process still runs."""
        return self.boot_id == boot_id() and start_ticks(self.pid) == self.started


def this_process(folder: Path) -> EnginePlace:
    """The place of this process as the engine of a session. Raises EngineError without /proc."""
    started = start_ticks(os.getpid())
    if started is None:
        raise EngineError("/proc does not show this process", remedy="Mount /proc")
    path = folder.resolve()
    return EnginePlace(str(path), os.getpid(), started, boot_id(), str(_runtime_path(path, "sock")))


def publish(place: EnginePlace) -> None:
    """Writes where the engine answers, for `find` and `list_running`."""
    text = json.dumps(asdict(place), indent=1).encode()
    write_atomically(_runtime_path(Path(place.folder), "json"), text)  # first: what `find` finds, `list_running` lists
    write_atomically(SessionFolder(Path(place.folder)).engine, text)


def withdraw(place: EnginePlace) -> None:
    """Removes what `publish` wrote. Creates no folder, though that of the sockets may be gone by now."""
    for path in (SessionFolder(Path(place.folder)).engine, Path(place.socket).with_suffix(".json")):
        with contextlib.suppress(OSError):
            path.unlink()


def find(folder: Path) -> EnginePlace | None:
    """The engine that runs this session now, or None."""
    place = _read(SessionFolder(folder).engine)
    if place is None or not place.alive:
        return None
    # A copy of a running session's folder has this file, too. A folder that was moved has left its old place.
    is_copy = os.path.isdir(place.folder) and not os.path.samefile(place.folder, folder)
    return None if is_copy else place


def list_running() -> tuple[EnginePlace, ...]:
    """All running engines of this user. Deletes the records and sockets of killed ones."""
    places = []
    for path in sorted(runtime_folder().glob("engine-*.json")):
        place = _read(path)
        if place is not None and place.alive:
            places.append(place)
        else:
            path.unlink(missing_ok=True)
            path.with_suffix(".sock").unlink(missing_ok=True)
    return tuple(places)


def _runtime_path(folder: Path, ending: str) -> Path:
    # By a hash: a socket's path has at most 107 bytes, and that of a session's folder may be longer.
    return runtime_folder() / f"engine-{hashlib.sha256(str(folder).encode()).hexdigest()[:12]}.{ending}"


def _read(path: Path) -> EnginePlace | None:
    try:
        return EnginePlace(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None  # missing or incomplete: no engine to reach


ANSWERS_WITHIN_S = 60.0
"""How long to wait for a new engine, in seconds: a busy host loads it slowly. A failure is noticed at once."""


def start_engine(
    folder: Path, within_s: float = ANSWERS_WITHIN_S, *, unattended: bool = False, watched: bool = True
) -> EnginePlace:
    """Starts an engine for the session in `folder`, detached from this terminal, unless one runs already.

    - unattended: the operator is never asked, whatever the bench says.
    - watched: the caller will connect to it.

    Raises EngineError when the engine ends or does not answer within `within_s`, with its last output. Ctrl-C while
    this waits stops the engine, and raises EngineError too. Raises InputError if the path is not UTF-8, as all messages
    are.
    """
    session = SessionFolder(folder).demand()
    if (place := find(folder)) is not None:
        return place
    path_text = str(folder.resolve())
    try:
        path_text.encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"the path {path_text} is not UTF-8", remedy="Rename the folder, then resume: harness run resume SESSION"
        ) from error
    arguments = python_command("harness.session.engine.engine", path_text)
    if unattended:
        arguments.append("--unattended")
    if not watched:
        arguments.append("--unwatched")
    engine: ChildProcess | None = None
    try:
        with disk_errors(f"{session.engine_output} cannot be written"), _interrupted_afterwards():
            engine = ChildProcess(arguments, stdin=subprocess.DEVNULL, stdout=None, stderr=session.engine_output)
        if why := engine.await_ready(lambda: _find_answering(folder) is not None, within_s):
            remedy = ""
            if engine.alive:
                remedy = f"See {session.engine_output}, then resume: harness run resume {shell_word(folder)}"
            engine.terminate()
            raise EngineError(f"the engine (pid {engine.pid}) {why}", remedy=remedy)
    except KeyboardInterrupt as interrupt:
        if engine is None:
            raise
        # The session's name was not shown yet, so it must not play in the background.
        engine.terminate()
        raise EngineError(
            f"interrupted while the engine started; it was asked to stop (pid {engine.pid})",
            remedy=f"Resume: harness run resume {shell_word(folder)}",
        ) from interrupt
    finally:
        if engine is not None:
            engine.leave()
    place = _find_answering(folder)
    if place is None:
        raise EngineError("the engine has already ended", remedy=f"See {session.engine_output}")
    return place


def _find_answering(folder: Path) -> EnginePlace | None:
    """The engine of a session once its socket exists; None before."""
    place = find(folder)
    return place if place is not None and Path(place.socket).exists() else None


@contextmanager
def _interrupted_afterwards() -> Iterator[None]:
    """Delays Ctrl-C until the block ends, because a process that was just started has no name yet."""
    in_main_thread = threading.current_thread() is threading.main_thread()
    if not in_main_thread or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    interrupts: list[int] = []
    signal.signal(signal.SIGINT, lambda number, frame: interrupts.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if interrupts:
        raise KeyboardInterrupt

"""Starts the engine of a session as a process of its own, and waits until it answers."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from harness.base.folder import SessionFolder
from harness.base.places import runtime_folder
from harness.base.whole_file import disk_errors, write_whole
from harness.model.errors import EngineError


@dataclass(frozen=True, slots=True)
class EnginePlace:
    """A process that runs (or ran) a session. started: clock ticks after boot, which with the pid names one process."""

    folder: str
    pid: int
    started: int
    boot_id: str
    socket: str

    @property
    def alive(self) -> bool:
        """Whether that very process still runs."""
        return self.boot_id == boot_id() and _started(self.pid) == self.started


def this_process(folder: Path) -> EnginePlace:
    """The place of the engine that this process is."""
    started = _started(os.getpid())
    if started is None:
        raise EngineError("/proc does not show this process", remedy="Mount /proc")
    path = folder.resolve()
    return EnginePlace(str(path), os.getpid(), started, boot_id(), str(_beside(path, "sock")))


def publish(place: EnginePlace) -> None:
    """Writes where the engine answers, for `find` and `running`."""
    text = json.dumps(asdict(place), indent=1).encode()
    write_whole(_beside(Path(place.folder), "json"), text)  # first: what `find` finds, `running` lists
    write_whole(SessionFolder(Path(place.folder)).engine, text)


def withdraw(place: EnginePlace) -> None:
    """Removes what `publish` wrote."""
    for path in (SessionFolder(Path(place.folder)).engine, _beside(Path(place.folder), "json")):
        with contextlib.suppress(OSError):
            path.unlink()


def find(folder: Path) -> EnginePlace | None:
    """The engine that runs this session now; None when none does."""
    place = _read(SessionFolder(folder).engine)
    return place if place is not None and place.alive else None


def running() -> tuple[EnginePlace, ...]:
    """All engines of this user that run now; forgets those that ended without a word."""
    found = []
    for path in sorted(runtime_folder().glob("engine-*.json")):
        place = _read(path)
        if place is not None and place.alive:
            found.append(place)
        else:
            path.unlink(missing_ok=True)
            path.with_suffix(".sock").unlink(missing_ok=True)
    return tuple(found)


def boot_id() -> str:
    """Names this boot of the host: monotonic times of different boots cannot be compared."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def _beside(folder: Path, ending: str) -> Path:
    # A session's folder may have a long path, and a socket's has 107 bytes at most.
    return runtime_folder() / f"engine-{hashlib.sha256(str(folder).encode()).hexdigest()[:12]}.{ending}"


def _started(pid: int) -> int | None:
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    fields = status.rpartition(")")[2].split()  # the name before it may hold anything
    return None if fields[0] in "ZX" else int(fields[19])


def _read(path: Path) -> EnginePlace | None:
    try:
        return EnginePlace(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None  # not there, or half: no engine that could be reached


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

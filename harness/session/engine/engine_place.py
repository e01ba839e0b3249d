"""Which engine runs which session, and where it answers: engine.json in the session's folder and beside the socket."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from harness.base.folder import SessionFolder
from harness.base.places import runtime_folder
from harness.base.whole_file import write_whole
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

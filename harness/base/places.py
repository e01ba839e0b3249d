"""Where things live on a host, and what a running virtual lab tells about itself.

Nothing here creates a folder unless it says so.
"""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from harness.model.errors import LabError, LogError


def runtime_folder() -> Path:
    """Folder for sockets and the state of running things, mode 0700, created. Short: a socket path has ≤ 107 bytes."""
    root = os.environ.get("HARNESS_RUNTIME") or os.environ.get("XDG_RUNTIME_DIR")
    folder = Path(root) / "voice-harness" if root else Path(tempfile.gettempdir()) / f"voice-harness-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise LabError(
            f"{folder} cannot be made: {error.strerror}", remedy="Set HARNESS_RUNTIME to a folder of your own"
        ) from error
    if folder.stat().st_uid != os.getuid():
        raise LabError(f"{folder} belongs to another user", remedy="Set HARNESS_RUNTIME to a folder of your own")
    return folder


def cache_folder() -> Path:
    """Folder for what can be made again (rendered speech)."""
    root = os.environ.get("XDG_CACHE_HOME")
    return (Path(root) if root else Path.home() / ".cache") / "voice-harness"


def lab_folder() -> Path:
    """Folder of the virtual lab of this user; HARNESS_LAB names another one, for labs side by side."""
    named = os.environ.get("HARNESS_LAB")
    return Path(named) if named else runtime_folder() / "lab"


def shipped_folder(name: str) -> Path:
    """`devices` or `scenarios` as the project ships them: inside an installed package, beside it in a checkout."""
    from importlib.resources import files  # here, since it takes long to import and few need it

    package = Path(str(files("harness")))
    installed = package / "shipped"
    return (installed if installed.is_dir() else package.parent) / name


@dataclass(frozen=True, slots=True)
class LabState:
    """A running lab: environment that makes PortAudio and Pulse find its sound server, and its broker's address."""

    environment: tuple[tuple[str, str], ...]
    mqtt_host: str
    mqtt_port: int
    pids: tuple[tuple[str, int], ...]


def lab_state() -> LabState:
    """The running lab, from its state file; LabError when none is up."""
    path = lab_folder() / "lab.json"
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return LabState(
            environment=tuple(sorted(found["environment"].items())),
            mqtt_host=found["mqtt_host"],
            mqtt_port=found["mqtt_port"],
            pids=tuple(sorted(found["pids"].items())),
        )
    except FileNotFoundError as error:
        raise LabError("the virtual lab is not up", remedy="Start it: harness lab up") from error
    except (KeyError, ValueError, AttributeError) as error:
        raise LabError(f"{path} is damaged: {error}", remedy="harness lab down, then harness lab up") from error


def sound_environment(sound_server: str) -> dict[str, str]:
    """Variables for a child process that opens sound devices of `system` (none) or of `virtual_lab`."""
    if sound_server == "system":
        return {}
    if sound_server == "virtual_lab":
        return dict(lab_state().environment)
    raise LabError(f"no sound server is called {sound_server!r}", remedy="Use system or virtual_lab")


@dataclass(frozen=True, slots=True)
class SessionFolder:
    """Names of the files in one session's folder; creates nothing."""

    path: Path

    @property
    def database(self) -> Path:
        return self.path / "log.sqlite"

    @property
    def lock(self) -> Path:
        return self.path / "writer.lock"

    @property
    def clips(self) -> Path:
        return self.path / "clips"

    @property
    def judgments(self) -> Path:
        """What raters said of its responses; not there before one has."""
        return self.path / "judgments.sqlite"

    @property
    def inputs(self) -> Path:
        """Copies of the scenario, the bench and the device profiles, for people."""
        return self.path / "inputs"

    @property
    def resolved(self) -> Path:
        """Scenario and bench as they were read, for the engine."""
        return self.path / "resolved.json"

    @property
    def summary(self) -> Path:
        """Versions, hashes and seeds."""
        return self.path / "session.json"

    @property
    def engine(self) -> Path:
        """Which process runs the session, and its socket; gone when none does."""
        return self.path / "engine.json"

    @property
    def engine_output(self) -> Path:
        return self.path / "engine.log"

    def demand(self) -> SessionFolder:
        """Itself; LogError when there is no session log here."""
        if not self.database.is_file():
            raise LogError(
                f"{self.path} is no session folder: it holds no {self.database.name}",
                remedy="Name the folder that `harness run` printed, e.g. sessions/2026-01-31-kitchen",
            )
        return self

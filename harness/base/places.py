"""Folders on a host, and the state of a running virtual lab.

Nothing here creates a folder unless its docstring says so.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Collection
from itertools import islice
from pathlib import Path

from harness.base.foreign import shell_word
from harness.model.errors import InputError, LabError, LogError
from harness.model.frozen import frozen


def runtime_folder() -> Path:
    """Creates the folder for sockets and state, mode 0700. Short: a socket path has at most 107 bytes."""
    root = os.environ.get("HARNESS_RUNTIME") or os.environ.get("XDG_RUNTIME_DIR")
    folder = Path(root) / "voice-harness" if root else Path(tempfile.gettempdir()) / f"voice-harness-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise LabError(
            f"{folder} cannot be created: {error.strerror}", remedy="Set HARNESS_RUNTIME to a folder of your own"
        ) from error
    if folder.stat().st_uid != os.getuid():
        raise LabError(f"{folder} belongs to another user", remedy="Set HARNESS_RUNTIME to a folder of your own")
    return folder


def cache_folder() -> Path:
    """Folder for files that can be recreated (rendered speech)."""
    return _user_folder("XDG_CACHE_HOME", ".cache")


def config_folder() -> Path:
    """Folder for files that belong to this user (rater keys)."""
    return _user_folder("XDG_CONFIG_HOME", ".config")


def _user_folder(variable: str, below_home: str) -> Path:
    """The harness's folder below the one in an environment variable, or below the home folder."""
    if root := os.environ.get(variable):
        return Path(root) / "voice-harness"
    try:
        return Path.home() / below_home / "voice-harness"
    except RuntimeError as error:
        raise InputError("this user has no home folder", remedy=f"Set HOME or {variable} to a folder") from error


def lab_folder() -> Path:
    """Folder of the virtual lab of this user; HARNESS_LAB names another one, to run several labs."""
    folder_name = os.environ.get("HARNESS_LAB")
    return Path(folder_name) if folder_name else runtime_folder() / "lab"


def shipped_folder(name: str) -> Path:
    """The shipped `devices` or `scenarios`: inside an installed package, beside it in a checkout."""
    from importlib.resources import files  # here, since it takes long to import and few need it

    package = Path(str(files("harness")))
    packaged = package / "shipped"
    return (packaged if packaged.is_dir() else package.parent) / name


@frozen
class LabState:
    """A running lab: environment variables that lead to its sound server, and the address of its broker."""

    environment: tuple[tuple[str, str], ...]
    mqtt_host: str
    mqtt_port: int
    pids: tuple[tuple[str, int], ...]


def lab_state() -> LabState:
    """The running lab, from its state file. Raises LabError if none is running."""
    path = lab_folder() / "lab.json"
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return LabState(
            environment=tuple(sorted(content["environment"].items())),
            mqtt_host=content["mqtt_host"],
            mqtt_port=content["mqtt_port"],
            pids=tuple(sorted(content["pids"].items())),
        )
    except FileNotFoundError as error:
        raise LabError("the virtual lab is not running", remedy="Start it: harness admin lab up") from error
    except (KeyError, ValueError, AttributeError) as error:
        raise LabError(
            f"{path} is damaged: {error}", remedy="Restart the lab: harness admin lab down, then harness admin lab up"
        ) from error


def sound_environment(sound_server: str) -> dict[str, str]:
    """Variables for a child process that opens sound devices of `system` (none) or of `virtual_lab`."""
    if sound_server == "system":
        return {}
    if sound_server == "virtual_lab":
        return dict(lab_state().environment)
    raise LabError(f"there is no sound server {sound_server!r}", remedy="Use system or virtual_lab")


def demand_distinct(folders: Collection[Path]) -> None:
    """Raises InputError if a session is listed twice, also if by another path: it would count twice."""
    if len({folder.resolve() for folder in folders}) < len(folders):
        raise InputError("a session is listed twice", remedy="List each session only once")


YAML = (".yaml", ".yml")
MAX_COMPARED = 2000
"""Largest number of names in a folder that are compared with that of a missing file."""


def similar_path(path: Path, suffixes: tuple[str, ...] = ()) -> str:
    """The remedy for a path that does not exist: the most similar one in its folder, if any is similar.

    suffixes: suffixes of the files that may be meant; () for all, and for folders. YAML files in `scenarios` or
    `devices`, here or shipped, are also considered.
    """
    import difflib  # here, since errors are rare

    def nearest(names: dict[str, Path], cutoff: float) -> str:
        matches = difflib.get_close_matches(path.stem, names, n=1, cutoff=cutoff)
        return f"Did you mean {str(names[matches[0]])!r}?" if matches else ""

    try:
        paths = islice(path.parent.iterdir(), MAX_COMPARED)
        existing = [
            candidate
            for candidate in sorted(paths)
            if candidate.exists() and (not suffixes or candidate.suffix in suffixes)
        ]
        missing = "Check the path"
    except (OSError, ValueError):
        existing, missing = [], f"Check the path: the folder {str(path.parent)!r} does not exist either"
    # Of several with a stem, the last counts.
    candidates = sorted(existing, key=lambda candidate: candidate.suffix == path.suffix)
    suggestion = nearest({candidate.stem: candidate for candidate in candidates}, 0.6)
    if not suggestion and suffixes == YAML:
        suggestion = nearest(_yaml_files(), 0.8)
    return suggestion or missing


def _yaml_files() -> dict[str, Path]:
    """Scenarios, benches and profiles by name, with the paths that a command takes."""
    files: dict[str, Path] = {}
    for name in ("scenarios", "devices"):
        for root in (Path(name), shipped_folder(name)):
            for file in sorted(root.rglob("*.yaml")):
                files.setdefault(file.stem, Path(name) / file.relative_to(root))
    return files


class SessionFolder:
    """Paths of the files in one session's folder; creates nothing."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.database = path / "log.sqlite"
        self.rescue = path / "log.rescue.sqlite"
        """All rows, if the log was deleted or replaced during a run. The next resume makes this file the log."""
        self.lock = path / "writer.lock"
        self.clips = path / "clips"
        self.judgments = path / "judgments.sqlite"
        """Judgments of the session's responses; does not exist before the first one."""
        self.inputs = path / "inputs"
        """Copies of the scenario, the bench and the device profiles, for people."""
        self.resolved = path / "resolved.json"
        """Scenario and bench as they were read, for the engine."""
        self.summary = path / "session.json"
        """Versions, hashes and seeds."""
        self.manifest = path / "manifest.json"
        """Manifest of the archive from which the session was unpacked; does not exist in a session that began here."""
        self.engine = path / "engine.json"
        """The process that runs the session, and its socket; removed when it ends."""
        self.engine_output = path / "engine.log"

    def demand(self) -> SessionFolder:
        """Returns itself. Raises LogError if there is no session log here."""
        if self.rescue.is_file():
            raise LogError(
                f"{self.database} was deleted, moved or replaced in an earlier run; its rows are in {self.rescue.name}",
                remedy=f"Continue with these rows: harness run resume {shell_word(self.path)}",
            )
        if not self.database.is_file():
            raise LogError(
                f"{self.path} is not a session folder: {self.database.name} is missing",
                remedy="Use the folder that `harness run` printed, e.g. sessions/2026-01-31-kitchen",
            )
        return self

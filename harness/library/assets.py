"""Sound files that a scenario names: under its own folder or a named asset root, and nowhere else."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import soundfile

from harness.library.findings import Findings, nearest
from harness.library.findings import Path as KeyPath


class Assets:
    """The scenario's folder and its asset roots; problems are noted in `found`."""

    def __init__(self, folder: Path, found: Findings) -> None:
        self._folder = folder
        self._found = found
        self._roots: dict[str, Path] = {}
        self._broken: set[str] = set()

    def add_roots(self, written: Mapping[str, str], extra: Mapping[str, Path]) -> None:
        """The roots that the file names (relative to its folder), and those from elsewhere, which win."""
        for name, text in written.items():
            if name in extra:
                continue
            if Path(text).is_absolute():
                self._refuse_root(name, f"{text!r} is an absolute path", "Write it relative to the scenario's folder")
            elif not _is_folder(self._folder / text):
                self._refuse_root(
                    name, f"there is no folder {text!r} beside the scenario", "Create it, or correct the path"
                )
            else:
                self._roots[name] = (self._folder / text).resolve()
        self._roots.update({name: path.resolve() for name, path in extra.items()})

    def _refuse_root(self, name: str, what: str, remedy: str) -> None:
        self._broken.add(name)
        self._found.add(("assets", name), what, remedy)

    def sound(self, written: str, at: KeyPath) -> str:
        """The absolute path of a sound file whose header can be read; "" when there was a problem, which is noted."""
        root, named, inner = self._folder.resolve(), "the scenario's folder", written
        if ":" in written:
            name, inner = written.split(":", 1)
            if name in self._broken:
                return ""
            if name not in self._roots:
                self._found.add(
                    at, f"no asset root is called {name!r}", nearest(name, self._roots, listed="Asset roots")
                )
                return ""
            root, named = self._roots[name], f"the asset root {name!r}"
        problem = _problem(root, inner, named)
        if problem:
            self._found.add(at, *problem)
            return ""
        return str((root / inner).resolve())


def _problem(root: Path, inner: str, named: str) -> tuple[str, str] | None:
    if Path(inner).is_absolute():
        return f"{inner!r} is an absolute path", "Write it relative, or name an asset root: `assets: {name: folder}`"
    try:
        path = (root / inner).resolve()
        if not path.is_relative_to(root):
            return f"{inner!r} leaves {named}", "Name its folder as an asset root: `assets: {name: folder}`"
        if not path.exists():
            beside = [child.name for child in path.parent.iterdir()] if path.parent.is_dir() else []
            return f"there is no file {inner!r} in {named}", nearest(path.name, sorted(beside), listed="In that folder")
        if not path.is_file():
            return f"{inner!r} is not a file", "Name a sound file"
        header = soundfile.info(str(path))
    except (OSError, RuntimeError, ValueError) as error:
        if isinstance(error, soundfile.LibsndfileError):
            return f"{inner!r} is not a sound file that can be read: {error.error_string}", "Use WAV or FLAC"
        return f"{inner!r} cannot be read: {error}", "Check the path and its rights"
    if header.frames <= 0:
        return f"{inner!r} contains no sound", "Record it again"
    return None


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:
        return False

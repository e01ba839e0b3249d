"""A trained understander as a folder: `model.json` and the files of its weights, nothing that runs code when read.

The folder is written whole or not at all; one that is damaged, of another kind or of a newer version is refused with
the file named.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from harness.base.plugins import Group, load
from harness.base.ports import Understander
from harness.base.whole_file import part_name, sync_folder, unfinished
from harness.model.errors import HarnessError, InputError, Place

KIND = "voice-harness understander"
VERSION = 1
MODEL_FILE = "model.json"
MOST_BYTES = 16_000_000
"""Of model.json, which holds names and figures."""


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """How a model came to be. intents, concepts: that it was shown, sorted. corpus: sha256 of what it was trained on.

    settings: (name, value), those that were given. held_out: (figure, value, 0–1), of utterances that decided when to
    end; empty without any. cpu_s: processor seconds of training. packages: (name, version). notes: lines for people.
    """

    seed: int
    settings: tuple[tuple[str, str], ...] = ()
    intents: tuple[str, ...] = ()
    concepts: tuple[str, ...] = ()
    corpus: str = ""
    utterances: int = 0
    held_out_utterances: int = 0
    held_out: tuple[tuple[str, float], ...] = ()
    cpu_s: float = 0.0
    packages: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LoadedUnderstander:
    """A model that is ready to predict. name: of its plug-in, an entry point of `harness.understanders`."""

    name: str
    understander: Understander
    facts: ModelFacts


def demand_place(folder: Path, *, force: bool = False) -> None:
    """InputError unless a model can be written there: nothing there, or a model of ours where `force` is set."""
    place = Place(str(folder))
    if not folder.parent.is_dir():
        raise InputError(
            "the folder that it should lie in does not exist", place=place, remedy="Make it, or name another"
        )
    if not (folder.exists() or folder.is_symlink()):
        return
    if not force:
        raise InputError(
            "it is there already", place=place, remedy="Name another folder, or give --force to replace it"
        )
    if folder.is_symlink() or not (folder / MODEL_FILE).is_file():
        raise InputError("this is no model's folder, and is left alone", place=place, remedy="Name another folder")


def save_model(name: str, understander: Understander, folder: Path, facts: ModelFacts, *, force: bool = False) -> None:
    """Writes the folder whole or not at all; InputError where `demand_place` has it, HarnessError of the disk."""
    demand_place(folder, force=force)
    try:
        with unfinished(folder) as made:
            made.mkdir()
            understander.save(made)
            written = {"kind": KIND, "version": VERSION, "understander": name, **asdict(facts), "files": _hashes(made)}
            text = json.dumps(written, ensure_ascii=False, indent=1, allow_nan=False) + "\n"
            (made / MODEL_FILE).write_text(text, encoding="utf-8")
            _settle(made)
            _put(made, folder)
    except OSError as error:
        what = f"the model cannot be written: {error.strerror or error}"
        raise HarnessError(what, place=Place(str(folder)), remedy="Make room, or name another folder") from error


def load_model(folder: Path) -> LoadedUnderstander:
    """The model of a folder; InputError with the file that is damaged, foreign or too new, PluginError."""
    path = folder / MODEL_FILE
    found = _read(path)
    if found.get("kind") != KIND:
        raise _damaged(path, "this is no model of an understander")
    version = found.get("version")
    if not isinstance(version, int) or version > VERSION:
        raise InputError(f"the model is of version {version}, and this reads up to {VERSION}", place=Place(str(path)),
                         remedy="Use a newer voice-harness, or train it anew")  # fmt: skip
    name, facts = found.get("understander"), _facts(found, path)
    if not isinstance(name, str):
        raise _damaged(path, "it does not say which understander it is of")
    _demand_files(folder, found.get("files"), path)
    understander: Understander = load(Group.UNDERSTANDERS, name, place=Place(str(path))).load(folder)
    return LoadedUnderstander(name, understander, facts)


def _read(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except FileNotFoundError as error:
        raise InputError("there is no model here", place=Place(str(path)),
                         remedy="Name a folder that `harness understanding train` made") from error  # fmt: skip
    except (OSError, ValueError) as error:
        raise _damaged(path, f"it cannot be read: {error}") from error
    try:
        found = json.loads(content) if len(content) <= MOST_BYTES else None
    except (ValueError, RecursionError) as error:
        raise _damaged(path, f"it is no JSON: {error}") from error
    if not isinstance(found, dict):
        raise _damaged(path, "it is no model's")
    return found


def _facts(found: Mapping[str, Any], path: Path) -> ModelFacts:
    """Facts as they were written; lists become tuples."""
    try:
        kept = {one.name: _tupled(found[one.name]) for one in fields(ModelFacts)}
        facts = ModelFacts(**kept)
        for pairs in (facts.settings, facts.held_out, facts.packages):
            if any(len(pair) != 2 for pair in pairs):
                raise ValueError("a pair has two parts")
        texts = (*facts.intents, *facts.concepts, *facts.notes, facts.corpus)
        if not isinstance(facts.seed, int) or not all(isinstance(one, str) for one in texts):
            raise ValueError("seed or names are of the wrong kind")
    except (KeyError, TypeError, ValueError) as error:
        raise _damaged(path, f"its facts are damaged: {error}") from error
    return facts


def _tupled(value: Any) -> Any:
    return tuple(_tupled(one) for one in value) if isinstance(value, list) else value


def _demand_files(folder: Path, hashes: object, path: Path) -> None:
    if not isinstance(hashes, dict) or not all(isinstance(one, str) for one in hashes.values()):
        raise _damaged(path, "it does not say which files belong to the model")
    for name, wanted in hashes.items():
        file = folder / name
        if Path(name).is_absolute() or ".." in Path(name).parts:
            raise _damaged(path, f"{name!r} lies outside of the folder")
        try:
            same = _hash(file) == wanted
        except OSError as error:
            raise _damaged(file, f"it cannot be read: {error.strerror or error}") from error
        if not same:
            raise _damaged(file, "it is not the file that was written with the model")


def _damaged(path: Path, what: str) -> InputError:
    return InputError(what, place=Place(str(path)), remedy="Take the folder from a copy, or train the model anew")


def _hashes(folder: Path) -> dict[str, str]:
    files = sorted(one for one in folder.rglob("*") if one.is_file())
    return {one.relative_to(folder).as_posix(): _hash(one) for one in files}


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _settle(folder: Path) -> None:
    """Brings all of it to the disk, and gives it the rights of a new folder."""
    mask = os.umask(0)
    os.umask(mask)
    for path in (*folder.rglob("*"), folder):
        path.chmod((0o777 if path.is_dir() else 0o666) & ~mask)
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _put(made: Path, folder: Path) -> None:
    """Puts it in its place; one that was there is moved aside first and goes last."""
    aside: Path | None = None
    if folder.exists():
        aside = part_name(folder)
        os.replace(folder, aside)
    try:
        os.replace(made, folder)
    except OSError:
        if aside is not None:
            os.replace(aside, folder)
        raise
    sync_folder(folder.absolute().parent)
    if aside is not None:
        shutil.rmtree(aside, ignore_errors=True)

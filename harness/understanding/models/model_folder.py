"""A trained understander as a folder: `model.json` and files of weights. Reading them runs no code.

The folder is written completely or not at all. A damaged, foreign or newer folder is refused with the name of the file.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, Protocol

from harness.base.plain_json import from_plain
from harness.base.plugins import Group, load, names
from harness.base.ports import Understander
from harness.base.whole_file import demand_folder, sync_to_disk, temporary_path, temporary_path_for
from harness.model.errors import HarnessError, InputError, Place
from harness.model.frozen import frozen

KIND = "voice-harness understander"
VERSION = 1
MODEL_FILE = "model.json"
MAX_BYTES = 16_000_000
"""Largest size of model.json."""


@frozen
class ModelFacts:
    """How a model was trained.

    - settings: (name, value) of the settings that were given.
    - intents, concepts: those in the training data, sorted.
    - corpus: sha256 of the training data.
    - utterances, held_out_utterances: numbers of utterances for training, and held out.
    - held_out: (metric, value 0–1) on the held-out utterances; () without them.
    - cpu_s: processor time of training, in seconds.
    - packages: (name, version) of the packages that training used.
    - notes: lines for users.
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


class SavesModel(Protocol):
    """A trained understander, of texts or of sound."""

    def save(self, folder: Path) -> None: ...


@frozen
class LoadedUnderstander:
    """A model that is ready to predict. name: its entry point in `harness.understanders`."""

    name: str
    understander: Understander
    facts: ModelFacts


def demand_place(folder: Path, *, force: bool = False) -> None:
    """Raises InputError unless a model can be written to this folder.

    With `force`, it may replace a model, but nothing else.
    """
    place = Place(str(folder))
    demand_folder(folder)
    if not (folder.exists() or folder.is_symlink()):
        return
    if not force:
        raise InputError(
            "the path already exists", place=place, remedy="Choose another folder, or replace it with --force"
        )
    if folder.is_symlink() or not (folder / MODEL_FILE).is_file():
        raise InputError(
            "this is not a model folder, so it is not replaced", place=place, remedy="Choose another folder"
        )


def save_model(name: str, understander: SavesModel, folder: Path, facts: ModelFacts, *, force: bool = False) -> None:
    """Writes the folder completely or not at all. InputError as from `demand_place`, HarnessError for disk errors.

    name: entry point of the understander.
    """
    demand_place(folder, force=force)
    try:
        with temporary_path(folder) as new_folder:
            new_folder.mkdir()
            understander.save(new_folder)
            content = {
                "kind": KIND,
                "version": VERSION,
                "understander": name,
                **asdict(facts),
                "files": _hashes(new_folder),
            }
            text = json.dumps(content, ensure_ascii=False, indent=1, allow_nan=False) + "\n"
            (new_folder / MODEL_FILE).write_text(text, encoding="utf-8")
            _sync(new_folder)
            _move_into_place(new_folder, folder)
    except OSError as error:
        problem = f"the model cannot be written: {error.strerror or error}"
        raise HarnessError(
            problem, place=Place(str(folder)), remedy="Free some disk space, or choose another folder"
        ) from error


def load_model(folder: Path) -> LoadedUnderstander:
    """The model in a folder.

    Raises InputError with the name of a damaged, foreign or newer file. Raises PluginError.
    """
    name, facts = read_model(folder)
    place = Place(str(folder / MODEL_FILE))
    if name in names(Group.AUDIO_UNDERSTANDERS):
        remedy = f"Use the model as a system: harness understand predict --audio LIST.csv -t {name}:{folder}"
        raise InputError("this model understands sound, not texts", place=place, remedy=remedy)
    understander: Understander = load(Group.UNDERSTANDERS, name, place=place).load(folder)
    return LoadedUnderstander(name, understander, facts)


def read_model(folder: Path) -> tuple[str, ModelFacts]:
    """Checks the files of a model. Returns the name of the understander, and how it was trained.

    InputError as from `load_model`.
    """
    path = folder / MODEL_FILE
    description = _read_description(path)
    if description.get("kind") != KIND:
        raise _damaged_error(path, "this is not an understander model")
    version = description.get("version")
    if not isinstance(version, int) or version > VERSION:
        problem = f"the model has version {version}, but this voice-harness reads up to {VERSION}"
        raise InputError(problem, place=Place(str(path)), remedy="Use a newer voice-harness, or train again")
    name, facts = description.get("understander"), _facts(description, path)
    if not isinstance(name, str):
        raise _damaged_error(path, "the file does not name an understander")
    _check_files(folder, description.get("files"), path)
    return name, facts


def _read_description(path: Path) -> dict[str, Any]:
    """The content of model.json. Raises InputError if it is missing, damaged or too long."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except FileNotFoundError as error:
        raise InputError("the folder contains no model", place=Place(str(path)),
                         remedy="Choose a folder created by `harness understand train`") from error  # fmt: skip
    except (OSError, ValueError) as error:
        raise _damaged_error(path, f"the file cannot be read: {error}") from error
    try:
        description = json.loads(content) if len(content) <= MAX_BYTES else None
    except (ValueError, RecursionError) as error:
        raise _damaged_error(path, f"the file is not JSON: {error}") from error
    if not isinstance(description, dict):
        raise _damaged_error(path, "the file does not describe a model")
    return description


def _facts(description: Mapping[str, Any], path: Path) -> ModelFacts:
    try:
        return from_plain(ModelFacts, {field.name: description[field.name] for field in fields(ModelFacts)})
    except (KeyError, TypeError, ValueError) as error:
        raise _damaged_error(path, f"the description is damaged: {error}") from error


def _check_files(folder: Path, hashes: object, path: Path) -> None:
    if not isinstance(hashes, dict) or not all(isinstance(digest, str) for digest in hashes.values()):
        raise _damaged_error(path, "the file does not list the files of the model")
    for name, digest in hashes.items():
        file = folder / name
        if Path(name).is_absolute() or ".." in Path(name).parts:
            raise _damaged_error(path, f"the file {name!r} is outside the folder of the model")
        try:
            unchanged = _hash(file) == digest
        except OSError as error:
            raise _damaged_error(file, f"the file cannot be read: {error.strerror or error}") from error
        if not unchanged:
            raise _damaged_error(file, "the file was changed after training")


def damaged_model(path: Path, error: Exception) -> InputError:
    """The error for a damaged file of an understander."""
    lines = str(error).splitlines() or [type(error).__name__]
    remedy = "Restore a copy of the model, or train again"
    return InputError(f"the model is damaged: {lines[0]}", place=Place(str(path)), remedy=remedy)


def _damaged_error(path: Path, problem: str) -> InputError:
    return InputError(problem, place=Place(str(path)), remedy="Restore a copy of the folder, or train again")


def _hashes(folder: Path) -> dict[str, str]:
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    return {file.relative_to(folder).as_posix(): _hash(file) for file in files}


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sync(folder: Path) -> None:
    """Flushes the folder to disk, and gives it the permissions of a new folder."""
    # The mask can only be read by setting it. Temporary folders have narrower permissions than it asks for.
    mask = os.umask(0)
    os.umask(mask)
    for path in (*folder.rglob("*"), folder):
        path.chmod((0o777 if path.is_dir() else 0o666) & ~mask)
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _move_into_place(new_folder: Path, folder: Path) -> None:
    """Moves the folder into place. An existing one is moved aside first, and deleted last."""
    old_folder: Path | None = None
    if folder.exists():
        old_folder = temporary_path_for(folder)
        os.replace(folder, old_folder)
    try:
        os.replace(new_folder, folder)
    except OSError:
        if old_folder is not None:
            os.replace(old_folder, folder)
        raise
    sync_to_disk(folder.absolute().parent)
    if old_folder is not None:
        shutil.rmtree(old_folder, ignore_errors=True)

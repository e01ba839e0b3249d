"""Engines for offline evaluation: what -t names, and the engine behind it."""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Iterable, Mapping
from pathlib import PurePath

from harness.base.plugins import Group, load, names
from harness.base.ports import OfflineEngine
from harness.engines.settings import checked, read_from_file
from harness.model.errors import InputError
from harness.model.offline import Task

BY_ENDING = {".tflite": "microwakeword", ".onnx": "openwakeword", ".gram": "pocketsphinx_grammar",
             ".jsgf": "pocketsphinx_grammar"}  # fmt: skip
"""Engines of model files that are named alone; `openwakeword:FILE.tflite` says it of a file that fits two."""
_NAMED = re.compile(r"([A-Za-z][\w-]*)(?::(.*))?", re.DOTALL)


def engine_class(name: str) -> type[OfflineEngine]:
    """The class of that name; PluginError with the installed ones."""
    found: type[OfflineEngine] = load(Group.OFFLINE_ENGINES, name)
    return found


def task_of(text: str, given: Iterable[tuple[str, str]] = (), files: Iterable[tuple[str, str]] = ()) -> Task:
    """What -t names: `engine:model`, `engine:"a phrase"`, or a model file, with checked settings.

    given: name and value; files: name, and the file that holds the value. The last of a name counts.

    PluginError for an engine that is not installed, InputError for a text or a setting that is wrong. Loads no model.
    """
    named = _NAMED.fullmatch(text)
    ending = PurePath(text).suffix.lower()
    if named and (named[1].replace("-", "_") in names(Group.OFFLINE_ENGINES) or (named[2] and not ending)):
        engine, model = named[1].replace("-", "_"), _unquoted(named[2] or "")
    elif ending in BY_ENDING:
        engine, model = BY_ENDING[ending], text
    else:
        raise InputError(
            f"{text!r} names no engine and no model file",
            remedy="Name an engine and a model, as microwakeword:okay_nabu, or a file that ends in "
            f"{', '.join(BY_ENDING)}; `harness engines` lists what is here",
        )
    known = engine_class(engine).settings
    by_name, values, loaded = {one.name: one for one in known}, dict(given), dict(files)
    if both := values.keys() & loaded.keys():
        raise InputError(f"{min(both)} is set by -s and by -f", remedy="Give one of them")
    read = {name: read_from_file(by_name.get(name), path) for name, path in loaded.items()}
    settings = checked(known, [*values.items(), *read.items()], engine)
    return Task(engine, model, tuple(sorted(settings.items())))


def load_engine(task: Task) -> OfflineEngine:
    """The engine of a task, its model loaded; PluginError, InputError."""
    return engine_class(task.engine)(task.model, dict(task.settings))


def fingerprint(engine: type[OfflineEngine], version: str, model_sha256: str, settings: Mapping[str, str]) -> str:
    """sha256 over what scores depend on: the engine, its version, the model and the settings that change scores."""
    relevant = {one.name for one in engine.settings if one.scores}
    parts = [engine.__name__, version, model_sha256]
    parts += [f"{name}={value}" for name, value in sorted(settings.items()) if name in relevant]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _unquoted(text: str) -> str:
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "\"'":
        try:
            parts = shlex.split(text)
        except ValueError:
            return text[1:-1]
        # Quotes around several parts are those of a command: "./their engine" --model "a b".
        return parts[0] if len(parts) == 1 else text
    return text

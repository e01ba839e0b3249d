"""Engines for offline evaluation: parses -t and loads the engine that it names."""

from __future__ import annotations

import ctypes
import hashlib
import re
import shlex
from collections.abc import Iterable, Mapping
from contextlib import closing
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.metadata import PackageNotFoundError, entry_points, version
from pathlib import Path, PurePath

from harness.base.plugins import Group, load, names, replacement
from harness.base.ports import OfflineEngine
from harness.engines.settings import check_settings, read_from_file
from harness.model.errors import HarnessError, InputError
from harness.model.frozen import frozen
from harness.model.offline import EngineFacts, EngineKind, OfflineModel, OperatingPoint, Setting, Task


class NoKernel(RuntimeError):
    """The kernel is missing, has another version, or does not support this processor."""


def load_kernel(folder: Path, required_version: int) -> ctypes.CDLL:
    """The kernel that was built in a folder. Raises NoKernel if there is none, or its version differs."""
    candidates = (folder / f"_kernel{suffix}" for suffix in EXTENSION_SUFFIXES)
    path = next((path for path in candidates if path.is_file()), None)
    if path is None:
        raise NoKernel("the kernel was not built when voice-harness was installed")
    try:
        kernel = ctypes.CDLL(str(path))
    except OSError as error:
        raise NoKernel(f"the kernel cannot be loaded: {error}") from error
    if kernel.vh_version() != required_version:
        raise NoKernel(f"the kernel has version {kernel.vh_version()}, not {required_version}")
    return kernel


BY_ENDING = {".tflite": "microwakeword", ".onnx": "openwakeword", ".gram": "pocketsphinx_grammar",
             ".jsgf": "pocketsphinx_grammar"}  # fmt: skip
"""Suffix of a model file → engine. `openwakeword:FILE.tflite` names the engine if two fit. The engine for grammars was
removed; its error names the replacement."""
_NAMED = re.compile(r"([A-Za-z][\w-]*)(?::(.*))?", re.DOTALL)


def engine_class(name: str) -> type[OfflineEngine]:
    """The class of that name, in either group. Raises PluginError, with the installed ones, if there is none."""
    engine: type[OfflineEngine] = load(_group(name), name)
    return engine


def _group(name: str) -> Group:
    """The entry-point group of an engine; that of the offline engines for an unknown name."""
    return Group.AUDIO_UNDERSTANDERS if name in names(Group.AUDIO_UNDERSTANDERS) else Group.OFFLINE_ENGINES


def task_of(text: str, assignments: Iterable[tuple[str, str]] = (), files: Iterable[tuple[str, str]] = ()) -> Task:
    """Parses -t: `engine:model`, `engine:"a phrase"`, or a model file. Checks the settings. Loads no model.

    - assignments: name and value.
    - files: name, and the file that holds the value. The last value of a name counts.

    Raises PluginError for an engine that is not installed, InputError for an invalid text or setting.
    """
    match = _NAMED.fullmatch(text)
    ending = PurePath(text).suffix.lower()
    engine = match[1].replace("-", "_") if match else ""
    installed = (*names(Group.OFFLINE_ENGINES), *names(Group.AUDIO_UNDERSTANDERS))
    is_engine = engine in installed or replacement(Group.OFFLINE_ENGINES, engine)
    if match and (is_engine or (match[2] and ending not in BY_ENDING)):
        model = _unquote(match[2] or "")
    elif ending in BY_ENDING:
        engine, model = BY_ENDING[ending], text
    else:
        raise InputError(
            f"{text!r} is neither an engine nor a model file",
            remedy="Specify an engine and a model, such as microwakeword:okay_nabu, or a file that ends in "
            ".tflite or .onnx; `harness evaluate engines` lists the installed engines",
        )
    known_settings = engine_class(engine).settings
    values_by_name, files_by_name = dict(assignments), dict(files)
    set_twice = values_by_name.keys() & files_by_name.keys()
    if set_twice:
        raise InputError(f"{min(set_twice)} is set by both -s and -f", remedy="Use only one of -s and -f")
    setting_by_name = {setting.name: setting for setting in known_settings}
    file_values = {name: read_from_file(setting_by_name.get(name), path) for name, path in files_by_name.items()}
    settings = check_settings(known_settings, [*values_by_name.items(), *file_values.items()], engine)
    return Task(engine, model, tuple(sorted(settings.items())))


def check_model(task: Task) -> None:
    """Raises the errors of a model that the engine can find without loading it. An engine that runs after others would
    otherwise be refused hours later."""
    engine = engine_class(task.engine)
    if hasattr(engine, "check"):
        engine.check(task.model, dict(task.settings))


def load_engine(task: Task) -> OfflineEngine:
    """The engine of a task with its model loaded.

    Raises PluginError if its package is missing, InputError for an invalid model. Raises EngineError or DeviceError if
    a program or a device fails.
    """
    return engine_class(task.engine)(task.model, dict(task.settings))


def fingerprint(
    engine: type[OfflineEngine], engine_version: str, model_sha256: str, settings: Mapping[str, str]
) -> str:
    """sha256 over everything that scores depend on: engine, version, model and settings that change scores."""
    relevant = {setting.name for setting in engine.settings if setting.scores}
    parts = [engine.__name__, engine_version, model_sha256]
    parts += [f"{name}={value}" for name, value in sorted(settings.items()) if name in relevant]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _unquote(text: str) -> str:
    """A text without the quotes around all of it."""
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "\"'":
        try:
            parts = shlex.split(text)
        except ValueError:
            return text[1:-1]
        # Quotes around only some words belong to a command: "./their engine" --model "a b".
        return parts[0] if len(parts) == 1 else text
    return text


_PACKAGES = {
    "microwakeword": "pymicro-wakeword",
    "openwakeword": "pyopen-wakeword",
    "pocketsphinx": "pocketsphinx",
    "faster_whisper": "faster-whisper",
    "moonshine": "moonshine-voice",
    "porcupine": "pvporcupine",
    "sherpa_onnx": "sherpa-onnx",
    "vosk": "vosk",
}
"""Third-party packages behind built-in engines. The package's version identifies what is measured."""


@frozen
class CataloguedEngine:
    """An engine that has an entry point.

    - kind: None if the model decides it (a program, a device).
    - version: its package and that package's version; only the package if it is not installed, "" if there is none.
    - operating_points: () unless all of its models have the same.
    - missing: why it cannot be used here, and what to do; "" if it can.
    """

    name: str
    kind: EngineKind | None = None
    version: str = ""
    models: tuple[OfflineModel, ...] = ()
    settings: tuple[Setting, ...] = ()
    operating_points: tuple[OperatingPoint, ...] = ()
    missing: str = ""

    @property
    def phrases(self) -> tuple[str, ...]:
        """The phrases of all models, each once."""
        return tuple(dict.fromkeys(phrase for model in self.models for phrase in model.phrases))

    @property
    def licences(self) -> tuple[str, ...]:
        """The licences of all models, each once."""
        return tuple(dict.fromkeys(model.licence for model in self.models))


@frozen
class LoadedEngine:
    """The facts of a model that was loaded, or (in `missing`) why it could not be."""

    model: str
    facts: EngineFacts | None = None
    missing: str = ""


def catalogue() -> Iterable[CataloguedEngine]:
    """Every engine, by name, imported as the iteration reaches it."""
    return (find_in_catalogue(name) for name in names(Group.OFFLINE_ENGINES))


def find_in_catalogue(name: str) -> CataloguedEngine:
    """One engine of either group, usable here or not. Raises PluginError for an unknown name."""
    if name not in names(_group(name)):
        engine_class(name)  # raises the error that lists the installed engines
    settings: tuple[Setting, ...] = ()
    kind: EngineKind | None = None
    points: tuple[OperatingPoint, ...] = ()
    try:
        engine = engine_class(name)
        settings, kind = engine.settings, _kind(engine)
        points = getattr(engine, "operating_points", ())
        if not isinstance(points, tuple):  # a property of a loaded model
            points = ()
        models = engine.models()
    except HarnessError as error:
        return CataloguedEngine(name, kind, settings=settings, operating_points=points, missing=str(error))
    return CataloguedEngine(
        name, kind, version=_version(name), models=models, settings=settings, operating_points=points
    )


def loaded_model(text: str, assignments: Iterable[tuple[str, str]] = ()) -> LoadedEngine:
    """Loads a task's model, returns its facts and closes it. Errors of loading are raised."""
    with closing(load_engine(task_of(text, assignments))) as engine:
        return LoadedEngine(text, engine.facts)


def load_or_explain(text: str) -> LoadedEngine:
    """Loads a task's model, returns its facts and closes it. Errors of loading become `missing`."""
    try:
        return loaded_model(text)
    except HarnessError as error:
        return LoadedEngine(text, missing=str(error))


def _kind(engine: type[OfflineEngine]) -> EngineKind | None:
    """The kind that a class states, or that its methods imply: with scores or detections it is a wake engine."""
    if hasattr(engine, "kind"):
        kind: EngineKind | None = engine.kind
        return kind
    return EngineKind.WAKE if hasattr(engine, "begin") or hasattr(engine, "listen") else None


def _version(name: str) -> str:
    """The package of an engine and its version; only the package's name if it is not installed."""
    package = _PACKAGES.get(name)
    if package is None:
        point = next(iter(entry_points(group=_group(name).value, name=name)))
        return f"{point.dist.name} {point.dist.version}" if point.dist is not None else ""
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return package

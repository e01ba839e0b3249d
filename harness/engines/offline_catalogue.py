"""Which engines for offline evaluation there are: each by itself, so that one that cannot be imported hides none."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, entry_points, version

from harness.base.plugins import Group, names
from harness.base.ports import OfflineEngine
from harness.engines.offline_loading import engine_class, load_engine, task_of
from harness.model.errors import HarnessError
from harness.model.offline import EngineFacts, EngineKind, OfflineModel, OperatingPoint, Setting

_PACKAGES = {
    "microwakeword": "pymicro-wakeword",
    "openwakeword": "pyopen-wakeword",
    "pocketsphinx": "pocketsphinx",
    "pocketsphinx_grammar": "pocketsphinx",
    "faster_whisper": "faster-whisper",
    "moonshine": "moonshine-voice",
}
"""Our engines that a package of somebody else's carries; its version says what is measured."""


@dataclass(frozen=True, slots=True)
class CataloguedEngine:
    """An engine that has an entry point. kind: None where the model decides (a program, a device).

    missing: why it cannot be used here, and what to do; "" where it can. operating_points: where they are the same for
    every model; an engine with scores has them by model.
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
        """Of all models, each once."""
        return tuple(dict.fromkeys(phrase for model in self.models for phrase in model.phrases))

    @property
    def licences(self) -> tuple[str, ...]:
        """Of all models, each once."""
        return tuple(dict.fromkeys(model.licence for model in self.models))


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """What a model says of itself once it is loaded, or why it could not be."""

    model: str
    facts: EngineFacts | None = None
    missing: str = ""


def catalogue() -> Iterable[CataloguedEngine]:
    """Every engine, by name; one is imported when it is come to."""
    return (catalogued(name) for name in names(Group.OFFLINE_ENGINES))


def catalogued(name: str) -> CataloguedEngine:
    """One engine, whether it can be used here or not; PluginError for a name that no engine has."""
    if name not in names(Group.OFFLINE_ENGINES):
        engine_class(name)
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
    return CataloguedEngine(name, kind, _version(name), models, settings, points)


def load(text: str, given: Iterable[tuple[str, str]] = ()) -> LoadedModel:
    """A task's model, loaded and let go of again; the errors of loading it."""
    engine = load_engine(task_of(text, given))
    try:
        return LoadedModel(text, engine.facts)
    finally:
        engine.close()


def load_or_say(text: str) -> LoadedModel:
    """A task's model, loaded and let go of again, or why it cannot be."""
    try:
        return load(text)
    except HarnessError as error:
        return LoadedModel(text, missing=str(error))


def _kind(engine: type[OfflineEngine]) -> EngineKind | None:
    """As the class says, or by what it can do: an engine with scores or spots wakes."""
    if hasattr(engine, "kind"):
        found: EngineKind | None = engine.kind
        return found
    return EngineKind.WAKE if hasattr(engine, "begin") or hasattr(engine, "listen") else None


def _version(name: str) -> str:
    package = _PACKAGES.get(name)
    if package is None:
        point = next(iter(entry_points(group=Group.OFFLINE_ENGINES.value, name=name)))
        return f"{point.dist.name} {point.dist.version}" if point.dist is not None else ""
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return package

"""A driver's options as they stand in a bench file, checked against the driver's own `Options` dataclass."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from pydantic import ConfigDict, TypeAdapter, ValidationError

from harness.base import plugins
from harness.base.findings import Findings, Path, nearest
from harness.base.strict_yaml import Plain
from harness.model.errors import InputError, PluginError

_PLUGIN_OPTIONS = {
    "speech_detector": plugins.Group.SPEECH_DETECTORS,
    "recogniser": plugins.Group.RECOGNISERS,
    "wake_engine": plugins.Group.WAKE_ENGINES,
    "voice_engine": plugins.Group.VOICES,
}
"""Options that name a plug-in, wherever they occur."""

_STRICT = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)


def adapter(options: type) -> TypeAdapter[Any]:
    """What checks written options strictly; lists become tuples and words become enum members as the fields ask.

    A subclass carries the strictness, since a driver's dataclass knows nothing of how it is read.
    """
    return TypeAdapter(type(options.__name__, (options,), {"__slots__": (), "__pydantic_config__": _STRICT}))


def installed_driver(name: str, found: Findings, at: Path) -> type | None:
    """The driver class of that name, or None when there is none or it cannot be loaded, which is noted."""
    known = plugins.names(plugins.Group.DRIVERS)
    if name not in known:
        found.add(at, f"no driver is called {name!r}", nearest(name, known, listed="Installed"))
        return None
    try:
        driver = plugins.load(plugins.Group.DRIVERS, name)
    except (PluginError, AttributeError) as error:
        what, remedy = (
            (error.what, error.remedy) if isinstance(error, PluginError) else (str(error), "Install it again")
        )
        found.add(at, what, remedy)
        return None
    return driver if isinstance(driver, type) else None


def checked(driver: type, written: dict[str, Plain], found: Findings, at: Path) -> object | None:
    """The options as an instance of `driver.Options`, or None when something is wrong, which is noted."""
    kind: type = driver.Options  # type: ignore[attr-defined]
    before = len(found.problems)
    try:
        valid = adapter(kind).validate_json(json.dumps(written))
    except ValidationError as error:
        known = [field.name for field in dataclasses.fields(kind) if field.init]
        for detail in error.errors(include_url=False):
            found.note(detail, at, known)
        return None
    except InputError as error:  # the Options object itself may refuse a value, with a remedy of its own
        found.add(at, error.what, error.remedy or "Change it; docs/bench.md names the options of each driver")
        return None
    for name, group in _PLUGIN_OPTIONS.items():
        word = written.get(name)
        if isinstance(word, str) and word not in plugins.names(group):
            remedy = nearest(word, plugins.names(group), listed="Installed")
            found.add((*at, name), f"no {name.replace('_', ' ')} is called {word!r}", remedy)
    if len(found.problems) > before:
        return None
    options: object = kind(
        **{field.name: getattr(valid, field.name) for field in dataclasses.fields(kind) if field.init}
    )
    return options

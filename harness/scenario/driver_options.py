"""The options of a bench's drivers, checked against the installed drivers."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from pydantic import ConfigDict, TypeAdapter, ValidationError

from harness.base import plugins
from harness.base.findings import Findings, KeyPath
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


def options_adapter(options: type) -> TypeAdapter[Any]:
    """The adapter that validates options strictly; lists become tuples and words become enum members as fields require.

    A subclass carries the strictness, because a driver's dataclass does not depend on how it is read.
    """
    return TypeAdapter(type(options.__name__, (options,), {"__slots__": (), "__pydantic_config__": _STRICT}))


def installed_driver(name: str, findings: Findings, key_path: KeyPath) -> type | None:
    """The driver class of that name. None if there is none or it cannot be used, which is noted."""
    try:
        driver = plugins.load(plugins.Group.DRIVERS, name)
    except PluginError as error:
        findings.add(key_path, error.what, error.remedy)
        return None
    if not isinstance(driver, type) or not dataclasses.is_dataclass(getattr(driver, "Options", None)):
        problem = f"the driver {name!r} is not a class with a dataclass `Options`"
        findings.add(key_path, problem, "Follow docs/how-to/add-a-transport.md")
        return None
    return driver


def check_options(driver: type, values: dict[str, Plain], findings: Findings, key_path: KeyPath) -> object | None:
    """The options as an instance of `driver.Options`, or None when something is wrong, which is noted."""
    kind: type = driver.Options  # type: ignore[attr-defined]
    option_names = [field.name for field in dataclasses.fields(kind) if field.init]
    problem_count = len(findings.problems)
    try:
        valid = options_adapter(kind).validate_json(json.dumps(values))
    except ValidationError as error:
        for detail in error.errors(include_url=False):
            findings.note(detail, key_path, option_names)
        return None
    except InputError as error:  # Options itself may reject a value, with its own remedy
        findings.add(
            key_path,
            error.what,
            error.remedy or "Correct the value; docs/reference/keys-bench.md lists the options of each driver",
        )
        return None
    for name, group in _PLUGIN_OPTIONS.items():
        plugin = values.get(name)
        if isinstance(plugin, str):
            findings.is_known((*key_path, name), name.replace("_", " "), plugin, plugins.names(group), "Installed")
    if len(findings.problems) > problem_count:
        return None
    options: object = kind(**{name: getattr(valid, name) for name in option_names})
    return options

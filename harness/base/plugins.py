"""Plug-ins by entry point. Lists names without importing; the error for a wrong name lists the installed ones.

Their settings are texts, checked by name, kind and range before anything is loaded.
"""

from __future__ import annotations

import math
import re
import shlex
import sys
from collections.abc import Iterable, Sequence
from enum import StrEnum
from functools import lru_cache
from importlib import import_module
from importlib.metadata import EntryPoint, EntryPoints, entry_points, requires
from pathlib import Path
from typing import Any

from harness.model.errors import InputError, Place, PluginError, did_you_mean
from harness.model.numbers import exact
from harness.model.offline import Setting, SettingKind


class Group(StrEnum):
    """Entry-point groups."""

    DRIVERS = "harness.drivers"
    VOICES = "harness.voices"
    SPEECH_DETECTORS = "harness.speech_detectors"
    WAKE_ENGINES = "harness.wake_engines"
    RECOGNISERS = "harness.recognisers"
    OFFLINE_ENGINES = "harness.offline_engines"
    AUDIO_UNDERSTANDERS = "harness.audio_understanders"
    INTENT_CLASSIFIERS = "harness.intent_classifiers"
    UNDERSTANDERS = "harness.understanders"


_PROGRAMS = "Run it as a program (docs/how-to/measure-a-program.md): -t 'process:python3 examples/"
_REMOVED = {
    (Group.OFFLINE_ENGINES, "livekit"): f"{_PROGRAMS}livekit_engine.py FILE.onnx'",
    (Group.OFFLINE_ENGINES, "pocketsphinx_grammar"): f"{_PROGRAMS}grammar_engine.py FILE.gram'",
    (Group.DRIVERS, "network_bursts"): "Learn the device's chime (docs/how-to/measure-a-black-box.md), or let a "
    "program print the traffic for the driver `command` (docs/how-to/watch-a-light.md)",
}
"""A plug-in of an earlier version → what to use instead."""


def _group_points(group: Group) -> EntryPoints:
    """The entry points of a group; they are searched again if sys.path has changed."""
    return _group_entry_points(group, tuple(sys.path))


@lru_cache(maxsize=32)
def _group_entry_points(group: Group, path: tuple[str, ...]) -> EntryPoints:
    points: EntryPoints = _all_entry_points(path).select(group=group.value)
    return points


@lru_cache(maxsize=4)
def _all_entry_points(path: tuple[str, ...]) -> Any:
    """The entry points of all groups. Their type depends on the version of Python; it has a method `select`.

    Searching all packages takes tens of milliseconds, however few groups are wanted, so it happens once per sys.path.
    """
    return entry_points()


def names(group: Group) -> tuple[str, ...]:
    """Installed names of a group, sorted; nothing is imported."""
    return tuple(sorted({point.name for point in _group_points(group)}))


def replacement(group: Group, name: str) -> str:
    """What to do instead of using a plug-in that was removed; "" for any other name."""
    return "" if name in names(group) else _REMOVED.get((group, name), "")


def load(group: Group, name: str, *, place: Place | None = None) -> Any:
    """The class or function of a name.

    Raises PluginError if there is none or it cannot be imported, for whatever reason.
    """
    point: EntryPoint | None = next(iter(_group_points(group).select(name=name)), None)
    kind = group.value.removeprefix("harness.").replace("_", " ").removesuffix("s")
    if remedy := replacement(group, name):
        raise PluginError(f"the {kind} {name!r} was removed", place=place, remedy=remedy)
    if point is None:
        installed = names(group)
        suggestion = did_you_mean(name, installed)
        raise PluginError(
            f"there is no {kind} {name!r}",
            place=place,
            remedy=f"{suggestion}Installed: {', '.join(installed) or 'none'}",
        )
    try:
        return point.load()
    except Exception as error:  # code of others, which may fail in any way
        is_missing = isinstance(error, ImportError)
        remedy = "Install the missing library" if is_missing else f"Correct {point.value}, or reinstall the plug-in"
        why = str(error) if is_missing else f"{type(error).__name__}: {error}"
        raise PluginError(f"the {kind} {name!r} cannot be loaded: {why}", place=place, remedy=remedy) from error


def import_extra(package: str, subject: str, extra: str, note: str = "") -> Any:
    """Imports a third-party package that an extra installs.

    Raises PluginError, with the command to install it, if that fails.

    - subject: what needs the package, such as "the recogniser moonshine".
    - note: a remark about it, in brackets; "" for none.
    """
    try:
        return import_module(package)
    except (ImportError, OSError) as error:  # OSError: a library that the package loads
        raise PluginError(
            f"{subject} is not installed", remedy=f"Install it{note}: {pip_install(extra, package)}"
        ) from error


@lru_cache(maxsize=32)
def pip_install(extra: str, module: str = "") -> str:
    """The command that installs the libraries of an extra, or only the one with this module.

    It names the libraries, never this package: no index has it yet, and a stranger may register the name there.
    """
    libraries = sorted(_libraries(extra))
    name = module.partition(".")[0].replace("_", "-")
    own_names = [library for library in libraries if name and library.startswith(name)]
    return shlex.join(["pip", "install", *(own_names or libraries)])


def _libraries(extra: str) -> set[str]:
    """The requirements of an extra, with those of the extras that it names."""
    libraries: set[str] = set()
    for line in requires("voice-harness") or ():
        requirement, _, marker = line.partition(";")
        if re.search(rf"extra == ['\"]{extra}['\"]", marker):
            extras = re.match(r"voice[-_.]harness\[(.*)\]", requirement)
            parts = [_libraries(part.strip()) for part in extras[1].split(",")] if extras else [{requirement.strip()}]
            libraries.update(*parts)
    return libraries


def checked_settings(
    known_settings: Sequence[Setting], assignments: Iterable[tuple[str, str]], plugin: str
) -> dict[str, str]:
    """The given settings, the last value of each name. Raises InputError for an unknown name or a wrong value."""
    by_name = {setting.name: setting for setting in known_settings}
    settings: dict[str, str] = {}
    for name, value in assignments:
        setting = by_name.get(name)
        if setting is None:
            suggestion = did_you_mean(name, by_name)
            raise InputError(
                f"{plugin} has no setting {name!r}",
                remedy=f"{suggestion}Its settings: {', '.join(sorted(by_name)) or 'none'}",
            )
        settings[name] = value
    for name, value in settings.items():
        _check_value(by_name[name], value)
    return settings


def _check_value(setting: Setting, value: str) -> None:
    """Raises InputError if a value is not of the setting's kind, or out of its range."""
    match setting.kind:
        case SettingKind.NUMBER | SettingKind.WHOLE:
            try:
                number = float(value) if setting.kind is SettingKind.NUMBER else int(value)
            except ValueError:
                raise _value_error(setting, value, f"it must be a {setting.kind.value}") from None
            if not math.isfinite(number):
                raise _value_error(setting, value, "it must be finite")
            if setting.low is not None and number < setting.low:
                raise _value_error(setting, value, f"it must be at least {exact(setting.low)}")
            if setting.high is not None and number > setting.high:
                raise _value_error(setting, value, f"it must be at most {exact(setting.high)}")
        case SettingKind.CHOICE:
            if value not in setting.choices:
                raise _value_error(setting, value, f"it must be one of: {', '.join(setting.choices)}")
        case SettingKind.FILE:
            if not Path(value).is_file():
                raise _value_error(setting, value, "there is no such file")
        case SettingKind.TEXT:
            if setting.default and not value.strip():
                raise _value_error(setting, value, "it must not be empty")


def _value_error(setting: Setting, value: str, why: str) -> InputError:
    return InputError(f"{setting.name} cannot be {value!r}: {why}", remedy=f"{setting.name}: {setting.what}")

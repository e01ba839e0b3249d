"""Plug-ins by entry point: names are listed without importing, a wrong name lists those that are installed."""

from __future__ import annotations

import difflib
from enum import StrEnum
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from harness.model.errors import Place, PluginError


class Group(StrEnum):
    """Entry-point groups."""

    DRIVERS = "harness.drivers"
    VOICES = "harness.voices"
    SPEECH_DETECTORS = "harness.speech_detectors"
    WAKE_ENGINES = "harness.wake_engines"
    RECOGNISERS = "harness.recognisers"
    OFFLINE_ENGINES = "harness.offline_engines"
    INTENT_CLASSIFIERS = "harness.intent_classifiers"
    UNDERSTANDERS = "harness.understanders"


def names(group: Group) -> tuple[str, ...]:
    """Installed names of a group, sorted; nothing is imported."""
    return tuple(sorted({point.name for point in entry_points(group=group.value)}))


def load(group: Group, name: str, *, place: Place | None = None) -> Any:
    """The class or function behind a name; PluginError when there is none or it cannot be imported."""
    found: EntryPoint | None = next(iter(entry_points(group=group.value, name=name)), None)
    what = group.value.removeprefix("harness.").replace("_", " ").removesuffix("s")
    if found is None:
        installed = names(group)
        near = difflib.get_close_matches(name, installed, n=1)
        meant = f"Did you mean {near[0]!r}? " if near else ""
        raise PluginError(
            f"no {what} is called {name!r}",
            place=place,
            remedy=f"{meant}Installed: {', '.join(installed) or 'none'}",
        )
    try:
        return found.load()
    except ImportError as error:
        raise PluginError(
            f"the {what} {name!r} cannot be loaded: {error}",
            place=place,
            remedy="Install the extra that carries it: pip install 'voice-harness[all]'",
        ) from error

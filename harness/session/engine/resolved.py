"""Scenario and bench as they were read, stored beside the log: what the engine runs, whatever becomes of the files."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from harness.base.places import SessionFolder
from harness.base.plugins import Group, load
from harness.base.whole_file import write_whole
from harness.model.bench import Bench, Equipment
from harness.model.errors import LogError
from harness.model.scenario import Scenario


@dataclass(frozen=True, slots=True)
class Resolved:
    """What one session runs."""

    scenario: Scenario
    bench: Bench


_ADAPTER: TypeAdapter[Resolved] = TypeAdapter(Resolved)


def write_resolved(folder: Path, resolved: Resolved) -> None:
    """LogFull, LogError."""
    write_whole(SessionFolder(folder).resolved, _ADAPTER.dump_json(resolved, indent=1))


def read_resolved(folder: Path) -> Resolved:
    """With the options of drivers as they are stored; `for_drivers` types them. LogError when the file is damaged."""
    path = SessionFolder(folder).resolved
    try:
        return _ADAPTER.validate_json(path.read_bytes())
    except OSError as error:
        raise LogError(f"{path} cannot be read: {error.strerror}", remedy="Begin a new session") from error
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise LogError(f"{path} is damaged: {where}: {first['msg']}", remedy="Begin a new session") from error


def for_drivers(bench: Bench) -> Bench:
    """The bench with each driver's options as that driver's own type; PluginError when one is no longer installed."""

    def typed(equipment: Equipment | None) -> Any:
        if equipment is None:
            return None
        driver = load(Group.DRIVERS, equipment.driver, place=equipment.place)
        return replace(equipment, options=TypeAdapter(driver.Options).validate_python(equipment.options))

    return replace(
        bench,
        devices=tuple(replace(device, connection=typed(device.connection)) for device in bench.devices),
        loudspeakers=tuple(typed(loudspeaker) for loudspeaker in bench.loudspeakers),
        microphone=typed(bench.microphone),
        monitor=typed(bench.monitor),
    )


def equipment_of(bench: Bench) -> tuple[Equipment, ...]:
    """Everything that a driver runs, each id once (`same_as` gives one piece of equipment several roles)."""
    found: dict[str, Equipment] = {}
    candidates = (
        *bench.loudspeakers,
        bench.microphone,
        bench.monitor,
        *(device.connection for device in bench.devices),
    )
    for equipment in candidates:
        if equipment is not None:
            found.setdefault(equipment.id, equipment)
    return tuple(found.values())

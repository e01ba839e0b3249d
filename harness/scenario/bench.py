"""Bench files: read, checked against the installed drivers, and made the model's Bench."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from harness.base import findings as kinds
from harness.base import plugins, strict_yaml
from harness.base.findings import Findings, Id, KeyPath, Keys, Spoken, Text, attempt, nearest, optional, word
from harness.base.strict_yaml import Plain
from harness.devices.declared import abilities
from harness.devices.profiles.profile import load_profile
from harness.model.bench import Bench, Device, DeviceProfile, Equipment, OperatorPresence
from harness.model.choices import FileKind
from harness.model.errors import InputError, InputProblems, PluginError

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


def installed_driver(name: str, found: Findings, at: KeyPath) -> type | None:
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


def checked(driver: type, written: dict[str, Plain], found: Findings, at: KeyPath) -> object | None:
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


class EquipmentKeys(Keys):
    """Something that a driver runs; further keys are the driver's own options."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True, allow_inf_nan=False)

    driver: str | None = optional("Name of a driver.")
    same_as: str | None = optional("Name of a loudspeaker entry whose driver does this as well.")
    position: Id | None = optional("Where it stands; a matrix chooses loudspeakers by it.")


class DeviceKeys(Keys):
    """A device under test."""

    profile: Text = Field(description="Id of a device profile, or its path relative to the bench.")
    position: Id | None = optional("Where it stands.")
    wake_phrases: list[Spoken] | None = optional(
        "Its own wake phrases; the first is used. Default: the profile's.", min_length=1
    )
    connection: EquipmentKeys | None = optional("How it is reached; a black box has none.")


class BenchKeys(Keys):
    """A bench: which devices, how they are reached, how the room is set up."""

    bench: Id = Field(description="Name of the bench.")
    title: Text = Field(default="", description="For people. Default: the name.")
    sound_server: Literal["system", "virtual_lab"] = Field(
        default="system", description="Whose sound devices are meant: system (the default) or virtual_lab."
    )
    room: Text = Field(default="", description="The room, for the log; in the virtual lab, one of its rooms.")
    operator: Annotated[OperatorPresence, word(OperatorPresence)] = Field(
        default=OperatorPresence.AUTO, description="auto (while a dashboard is open; the default), present or absent."
    )
    labels: dict[Id, Text] = Field(default={}, description="Anything worth keeping with the results, name: text.")
    loudspeakers: dict[Id, EquipmentKeys] = Field(
        default={}, description="Name: loudspeaker; the first is the default."
    )
    microphone: EquipmentKeys | None = optional("What hears the responses.")
    monitor: EquipmentKeys | None = optional("Headphones for replays, which the device under test does not hear.")
    devices: dict[Id, DeviceKeys] = Field(min_length=1, description="Name: device under test.")


_SOUND = {"play": "plays no sound", "cut": "records no sound"}
"""What a driver must be able to do, and what it is told that it cannot."""


def load_bench(path: Path | str) -> Bench:
    """The bench of a file, with its profiles; InputProblems with all that is wrong, InputError if it is no YAML."""
    path = Path(path)
    content = strict_yaml.read_bytes(path)
    tree = strict_yaml.parse(content, str(path))
    kinds.expect(FileKind.BENCH, tree, str(path))
    found = Findings(str(path), tree)
    found.refuse_empty(tree, lambda _: False)
    written = tree.plain()
    found.check(BenchKeys, written)
    reader = _BenchReader(path, written, found)
    devices = reader.devices()
    microphone, monitor = reader.part("microphone", "cut"), reader.part("monitor", "play")
    found.refuse()
    keys = BenchKeys.model_validate(written)
    return Bench(
        id=keys.bench,
        title=keys.title or keys.bench,
        path=str(path.absolute()),
        sha256=hashlib.sha256(content).hexdigest(),
        devices=devices,
        loudspeakers=tuple(reader.loudspeakers.values()),
        microphone=microphone,
        monitor=monitor,
        sound_server=keys.sound_server,
        room=keys.room,
        operator=keys.operator,
        labels=dict(keys.labels),
    )


class _BenchReader:
    """Reads entry by entry; an entry whose shape is wrong is passed over, since that has been noted already."""

    def __init__(self, path: Path, written: Plain, found: Findings) -> None:
        self._written = written if isinstance(written, dict) else {}
        self._folder = path.parent
        self._found = found
        self._names = tuple(self._mapping("loudspeakers"))
        self.loudspeakers: dict[str, Equipment] = {}
        for name, one in self._mapping("loudspeakers").items():
            equipment = self._equipment(name, one, ("loudspeakers", name), "play", default_position=name)
            if equipment:
                self.loudspeakers[name] = equipment

    def _mapping(self, key: str) -> dict[str, Plain]:
        section = self._written.get(key)
        return section if isinstance(section, dict) else {}

    def part(self, key: str, ability: str) -> Equipment | None:
        """The microphone or the monitor, or None when there is none or it is wrong."""
        return self._equipment(key, self._written.get(key), (key,), ability)

    def devices(self) -> tuple[Device, ...]:
        devices = (self._device(name, one) for name, one in self._mapping("devices").items())
        return tuple(device for device in devices if device)

    def _device(self, name: str, written: Plain) -> Device | None:
        at = ("devices", name)
        connection: Equipment | None = None
        if isinstance(written, dict):
            connection = self._equipment(name, written.get("connection"), (*at, "connection"), "")
        keys = attempt(DeviceKeys, written)
        profile = self._profile(keys.profile, (*at, "profile")) if keys else None
        if keys is None or profile is None:
            return None
        if keys.wake_phrases is not None:
            profile = replace(profile, wake_phrases=tuple(keys.wake_phrases))
        if connection is not None and connection.id == name:
            connection = replace(connection, injects=abilities(connection.driver, connection.options, profile).injects)
        return Device(name, profile, connection, keys.position or "")

    def _profile(self, path_or_id: str, at: KeyPath) -> DeviceProfile | None:
        try:
            return load_profile(path_or_id, beside=self._folder)
        except InputProblems as problems:
            for problem in problems.problems:
                self._take_over(problem, at)
        except InputError as problem:
            self._take_over(problem, at)
        return None

    def _take_over(self, problem: InputError, at: KeyPath) -> None:
        self._found.add_at(problem.place or self._found.place(at), problem.what, problem.remedy)

    def _equipment(
        self, name: str, written: Plain, at: KeyPath, ability: str, *, default_position: str = ""
    ) -> Equipment | None:
        keys = attempt(EquipmentKeys, written) if isinstance(written, dict) else None
        if keys is None or not isinstance(written, dict):
            return None
        if keys.same_as is not None and at[0] != "loudspeakers":
            return self._same(keys.same_as, written, at, ability)
        if keys.same_as is not None:
            self._found.add((*at, "same_as"), "a loudspeaker is itself", "Name its driver: `driver: …`", key=True)
            return None
        if keys.driver is None:
            self._found.add(at, "the key 'driver' is missing", "Add `driver: …` here")
            return None
        driver = installed_driver(keys.driver, self._found, (*at, "driver"))
        if driver is None:
            return None
        self._refuse_unable(driver, keys.driver, ability, (*at, "driver"))
        options = checked(driver, {**(keys.model_extra or {})}, self._found, at)
        if options is None:
            return None
        place = self._found.place(at, key=True)
        return Equipment(name, keys.driver, options, place, keys.position or default_position)

    def _same(self, name: str, written: dict[str, Plain], at: KeyPath, ability: str) -> Equipment | None:
        for key in written:
            if key != "same_as":
                remedy = f"Remove it, or write it at the loudspeaker {name!r}"
                self._found.add((*at, key), f"{key!r} cannot stand beside same_as", remedy, key=True)
        if name not in self._names:
            remedy = nearest(name, self._names, listed="Loudspeakers")
            self._found.add((*at, "same_as"), f"no loudspeaker is called {name!r}", remedy)
        equipment = self.loudspeakers.get(name)
        driver = installed_driver(equipment.driver, self._found, at) if equipment else None
        if equipment and driver:
            self._refuse_unable(driver, equipment.driver, ability, (*at, "same_as"))
        return equipment

    def _refuse_unable(self, driver: type, name: str, ability: str, at: KeyPath) -> None:
        if ability and not hasattr(driver, ability):
            remedy = "Name a driver that does, such as loudspeaker or microphone"
            self._found.add(at, f"the driver {name!r} {_SOUND[ability]}", remedy)

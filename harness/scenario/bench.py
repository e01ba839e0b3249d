"""Bench files: read, checked against the installed drivers, and made the model's Bench."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

from harness.base import file_kinds as kinds
from harness.base import strict_yaml
from harness.base.findings import Findings, attempt, nearest
from harness.base.findings import Path as KeyPath
from harness.base.strict_yaml import Plain
from harness.devices.declared import abilities
from harness.devices.profiles.profile import load_profile
from harness.model.bench import Bench, Device, DeviceProfile, Equipment
from harness.model.choices import FileKind
from harness.model.errors import InputError, InputProblems
from harness.scenario.bench_file import BenchKeys, DeviceKeys, EquipmentKeys
from harness.scenario.driver_options import checked, installed_driver

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
    reader = _Reader(path, written, found)
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


class _Reader:
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

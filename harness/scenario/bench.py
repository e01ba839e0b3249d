"""Reads bench files, checks them against the installed drivers, and builds the model's Bench."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, get_args

from pydantic import ConfigDict, Field

from harness.base import plugins
from harness.base.findings import (
    Findings,
    Id,
    KeyPath,
    Keys,
    Spoken,
    Text,
    enum_validator,
    list_in,
    mapping_in,
    optional,
    preset,
    read_content,
    try_validate,
)
from harness.base.strict_yaml import Plain
from harness.devices.declared import abilities, is_simulated
from harness.devices.mqtt.options import broker_of
from harness.devices.orders import ORDER_METHODS
from harness.devices.profiles.profile import load_profile
from harness.model.bench import (
    EARCON,
    MERGE_WITHIN_MS,
    Bench,
    Device,
    DeviceProfile,
    Earcons,
    Equipment,
    FurtherSource,
    Notify,
    NotifyInput,
    NotifyOn,
    OnFault,
    OperatorPresence,
)
from harness.model.bench_checks import BenchChecks
from harness.model.calibration import Calibration
from harness.model.choices import FileKind
from harness.model.errors import InputError, InputProblems, nearest
from harness.model.positioners import Positioner, PowerSwitch
from harness.model.scenario import AxisName
from harness.scenario.driver_options import check_options, installed_driver
from harness.scenario.policies import ChecksKeys, OnFaultKeys
from harness.sound.calibration import check_comparable, read_calibration
from harness.sound.earcon_file import learn, read_earcons, refuse_alike

if TYPE_CHECKING:
    from harness.sound.earcons import LearnedEarcon


PartT = TypeVar("PartT")


class EquipmentKeys(Keys):
    """A loudspeaker, a microphone or a connection. A driver runs it; further keys are the options of the driver."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True, allow_inf_nan=False)

    driver: str | None = optional("Name of a driver.")
    same_as: str | None = optional("Name of the loudspeaker entry whose driver to share. Replaces `driver`.")
    position: Id | None = optional(
        "Position in the room; the matrix selects loudspeakers by position. Default for a loudspeaker: its name."
    )
    calibration: Text | None = optional(
        "Calibration file of a loudspeaker or the microphone, relative to the bench; `harness admin calibrate` "
        "writes it."
    )


class FurtherSourceKeys(Keys):
    """A further source of a device's reports. Its keys are those of a driver, as above, and `profile`."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True, allow_inf_nan=False)

    driver: str = Field(description="Name of a driver.")
    profile: Text | None = optional("Profile that maps what this source reports. Default: the device's profile.")


class StandKeys(Keys):
    """A turntable, a slider or a lift. A driver moves it; further keys are the options of the driver."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True, allow_inf_nan=False)

    driver: str = Field(description="Name of a driver.")
    moves: Text = Field(description="What the stand sets: a matrix axis, or a name for `device_settings`.")
    move: Text = preset(
        "{value}",
        "Command that moves the stand. {value} is the target position; {value:.1f} writes it with one decimal place.",
    )
    done: Text = preset(
        "", "Regular expression for the report that the stand has arrived; {value} is the number. Default: any report."
    )
    failed: Text = preset("", "Regular expression for the report that the stand cannot move.")
    low: float | None = optional("Lower end.")
    high: float | None = optional("Upper end.")
    home: float | None = optional("Value to move to when a trial sets none, and at the end. Default: no movement.")
    settle_s: float = preset(0.5, "Settling time after a movement, s.", ge=0, le=600)
    within_s: float = preset(60.0, "Time limit for a movement, s.", gt=0, le=3600)


class PowerSwitchKeys(Keys):
    """The power of one device. A driver switches it; further keys are the options of the driver."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True, allow_inf_nan=False)

    driver: str = Field(description="Name of a driver.")
    on: Text = preset("ON", "Text to send to switch the power on.")
    off: Text = preset("OFF", "Text to send to switch the power off.")
    on_done: Text = preset("", "Regular expression for the report that the power is on. Default: any report.")
    off_done: Text = preset("", "Regular expression for the report that the power is off. Default: any report.")
    failed: Text = preset("", "Regular expression for the report that the switch has failed.")
    off_s: float = preset(2.0, "How long the power stays off, s.", ge=0, le=3600)
    boot_s: float = preset(
        60.0,
        "Maximum wait after power-on, s. The harness waits the full time if nothing shows that the device answers.",
        ge=0,
        le=3600,
    )
    ready_s: float = preset(0.0, "Settling time after the device has answered, s.", ge=0, le=3600)
    within_s: float = preset(10.0, "Time limit for one command, s.", gt=0, le=600)


class DeviceKeys(Keys):
    """A device under test."""

    profile: Text = Field(description="Id of a device profile, or its path relative to the bench.")
    position: Id | None = optional("Position in the room, for the log.")
    wake_phrases: list[Spoken] | None = optional(
        "Wake phrases of this device; the harness uses the first. Default: the profile's.", min_length=1
    )
    connection: EquipmentKeys | None = optional("Connection over which the device reports; a black box has none.")
    also: dict[Id, FurtherSourceKeys] = preset({}, "Further sources of reports by name, such as a light or a log.")
    earcons: Text | None = optional(
        "File of the device's learned chimes, relative to the bench. The microphone detects them."
    )
    merge_within_ms: float = preset(
        MERGE_WITHIN_MS, "Wake events from different sources within this time count as one event, ms.", ge=0, le=30000
    )


class NotifyKeys(Keys):
    """Where a run sends messages: one of command, webhook, webhook_env and mqtt."""

    on: list[Annotated[NotifyOn, enum_validator(NotifyOn)]] = preset(
        list(NotifyOn), "Events to report: paused, resumed, fault, limit_broken, finished. Default: all.", min_length=1
    )
    command: list[Text] = preset(
        [], "Program and arguments, without a shell; {subject} is the subject. Paths are relative to the bench."
    )
    input: Annotated[NotifyInput, enum_validator(NotifyInput)] = preset(
        NotifyInput.JSON, "What the program reads: the message as one JSON object, or its text."
    )
    webhook: Text = preset("", "HTTP address to which the message is posted as one JSON object.")
    webhook_env: Text = preset("", "Environment variable that holds the webhook address, if it is secret.")
    token_env: Text = preset("", "Environment variable that holds a token for the webhook (Authorization: Bearer).")
    mqtt: Text = preset("", "Broker to which the message is published as one JSON object: host, host:port or lab.")
    topic: Text = preset("", "MQTT topic for the message.")
    username: Text = preset("", "User name for the broker.")
    password_env: Text = preset("", "Environment variable that holds the password for the broker.")
    tls: bool = preset(False, "Encrypt the connection to the broker, and check its certificate.")
    ca_file: Text = preset("", "PEM file of the authority that signed the broker's certificate. It implies TLS.")


class BenchKeys(Keys):
    """A bench: the devices under test, how they are reached, and how the room is set up."""

    bench: Id = Field(description="Name of the bench.")
    title: Text = preset("", "Title. Default: the name.")
    sound_server: Literal["system", "virtual_lab"] = preset(
        "system", "Which sound devices to use: `system` (this computer's) or `virtual_lab`."
    )
    room: Text = preset("", "Name of the room, for the log; in the virtual lab, one of its rooms.")
    operator: Annotated[OperatorPresence, enum_validator(OperatorPresence)] = preset(
        OperatorPresence.AUTO,
        "Whether an operator answers questions: auto (while a dashboard is open), present or absent.",
    )
    labels: dict[Id, Text] = preset({}, "Labels to keep with the results, name: text.")
    on_fault: OnFaultKeys | None = optional(
        "What a run does when a fault ends a trial. Default: the trial stays interrupted, and the run continues."
    )
    min_free_gb: float = preset(
        0.0, "The run pauses before a trial while the sessions' disk has less free space, GB.", ge=0, le=100_000
    )
    level_tolerance_db: float | None = optional(
        "An attempt whose level at the microphone is off by more than this many dB does not count and is repeated. The "
        "loudspeakers and the microphone must be calibrated at the same place. Default: no check.",
        gt=0,
        le=20,
    )
    max_noise_floor_dbfs: float | None = optional(
        "The run pauses before a trial while the noise at the microphone exceeds this level, dBFS. Default: no limit.",
        ge=-120,
        le=0,
    )
    checks: ChecksKeys | None = optional(
        "Checks of the devices and sound on this bench, for `harness check doctor` and for runs. Default: none."
    )
    notify: list[NotifyKeys] = preset([], "Where a run sends messages when it pauses, fails or ends.")
    loudspeakers: dict[Id, EquipmentKeys] = preset({}, "Loudspeakers by name; the first is the default.")
    microphone: EquipmentKeys | None = optional("Microphone that records the responses.")
    monitor: EquipmentKeys | None = optional("Headphones for replays, so that the devices do not hear them.")
    stands: dict[Id, StandKeys] = preset({}, "Machines that move devices or loudspeakers, by name: turntables, lifts.")
    power: dict[Id, PowerSwitchKeys] = preset({}, "Power switches, by the name of their device.")
    devices: dict[Id, DeviceKeys] = Field(
        min_length=1, description="Devices under test by name; the first is the default."
    )


_IMMOVABLE_AXES = {*get_args(AxisName)} - {"distance_m", "angle_deg"}
_SOUND_REMEDY = "Choose another driver, such as `loudspeaker` or `microphone`"
_ABILITIES: dict[tuple[str, ...], tuple[str, str]] = {
    ("play",): ("cannot play sound", _SOUND_REMEDY),
    ("cut",): ("cannot record sound", _SOUND_REMEDY),
    ORDER_METHODS: (
        "does not accept commands",
        "Use a driver that accepts commands, such as `serial_commands` or `manual`",
    ),
}
"""Methods of which a driver must have one → (the message if it has none, the remedy)."""


def load_bench(path: Path | str, *, is_measured: bool = True) -> Bench:
    """The bench of a file, with its profiles.

    Raises InputProblems with every mistake. Raises InputError if the file is not YAML.

    is_measured: False for a command that measures its levels or chimes anew, so that the files with them need not be
    usable. The bench is then without chimes.
    """
    path = Path(path)
    sha256, content, findings = read_content(path, FileKind.BENCH, BenchKeys)
    reader = _BenchReader(path, content, findings, is_measured)
    devices = reader.read_each("devices", reader.read_device)
    stands, power = reader.read_each("stands", reader.read_stand), reader.read_each("power", reader.read_switch)
    microphone, monitor = reader.read_part("microphone", ("cut",)), reader.read_part("monitor", ("play",))
    notify = reader.read_notifications()
    if mapping_in(content, "on_fault").get("power_cycles") and not mapping_in(content, "power"):
        problem = "the bench has no power switch"
        findings.add(("on_fault", "power_cycles"), problem, "Add `power: {DEVICE: {driver: …}}`", key=True)
    if reader.is_written("max_noise_floor_dbfs") and microphone is None:
        findings.add(
            ("max_noise_floor_dbfs",),
            "the bench has no microphone to measure the noise",
            "Add `microphone: …`",
            key=True,
        )
    if is_measured and reader.is_written("level_tolerance_db"):
        check_comparable([*reader.loudspeakers.values()], microphone, findings)
    findings.refuse()
    keys = BenchKeys.model_validate(content)
    return Bench(
        id=keys.bench,
        title=keys.title or keys.bench,
        path=str(path.absolute()),
        sha256=sha256,
        devices=devices,
        loudspeakers=tuple(reader.loudspeakers.values()),
        microphone=microphone,
        monitor=monitor,
        sound_server=keys.sound_server,
        room=keys.room,
        operator=keys.operator,
        labels=dict(keys.labels),
        on_fault=None if keys.on_fault is None else OnFault(**keys.on_fault.model_dump()),
        notify=notify,
        min_free_gb=keys.min_free_gb,
        level_tolerance_db=keys.level_tolerance_db,
        max_noise_floor_dbfs=keys.max_noise_floor_dbfs,
        checks=None if keys.checks is None else BenchChecks(**keys.checks.model_dump()),
        actuators=tuple(reader.actuators.values()),
        stands=stands,
        power=power,
    )


class _BenchReader:
    """Reads a bench entry by entry, and notes problems in `findings`.

    Skips an entry of the wrong shape, since that has been noted already.

    - loudspeakers: those without problems, by name.
    - actuators: the equipment that takes the orders of stands and power switches, by its id.
    """

    def __init__(self, path: Path, content: dict[str, Plain], findings: Findings, is_measured: bool) -> None:
        self._content = content
        self._is_measured = is_measured
        self._folder = path.parent
        self._findings = findings
        self._loudspeaker_names = tuple(self._entries("loudspeakers"))
        self.loudspeakers: dict[str, Equipment] = {}
        self.actuators: dict[str, Equipment] = {}
        self._equipment_paths: dict[str, KeyPath] = {}
        self._chimes: list[LearnedEarcon] = []
        for name, entry in self._entries("loudspeakers").items():
            equipment = self._read_equipment(name, entry, ("loudspeakers", name), ("play",), default_position=name)
            if equipment:
                self.loudspeakers[name] = equipment

    def _entries(self, key: str) -> dict[str, Plain]:
        return mapping_in(self._content, key)

    def read_each(self, key: str, read: Callable[[str, Plain], PartT | None]) -> tuple[PartT, ...]:
        """What `read` makes of each name and entry of a section, without those that are wrong."""
        parts = (read(name, entry) for name, entry in self._entries(key).items())
        return tuple(part for part in parts if part)

    def read_part(self, key: str, ability: tuple[str, ...]) -> Equipment | None:
        """The microphone or the monitor; None if the bench has none, or after a noted problem."""
        return self._read_equipment(key, self._content.get(key), (key,), ability)

    def is_written(self, key: str) -> bool:
        """Whether the bench has a value for a key."""
        return self._content.get(key) is not None

    def read_notifications(self) -> tuple[Notify, ...]:
        entries = enumerate(list_in(self._content, "notify"))
        notifications = (self._read_notification(number, entry) for number, entry in entries)
        return tuple(notification for notification in notifications if notification)

    def _read_notification(self, number: int, entry: Plain) -> Notify | None:
        """An entry of `notify`, or None when it is wrong. A program with a / in its name is relative to the bench."""
        keys = try_validate(NotifyKeys, entry)
        if keys is None:
            return None
        command = tuple(keys.command)
        if command and "/" in command[0]:
            command = (str((self._folder / command[0]).absolute()), *command[1:])
        fields: dict[str, Any] = keys.model_dump() | {"on": tuple(keys.on), "command": command}
        try:
            notify = Notify(**fields)
            if notify.mqtt:
                broker_of(notify)  # raises an error for a wrong address
            return notify
        except InputError as error:
            self._add_problems(error, ("notify", number))
        return None

    def read_stand(self, name: str, section: Plain) -> Positioner | None:
        """A stand, or None when it is wrong. Two stands must not move the same thing."""
        key_path = ("stands", name)
        keys = try_validate(StandKeys, section)
        connection = self._actuator_id(name, section, StandKeys, key_path)
        if keys is None or connection is None:
            return None
        moved_axes = [
            entry["moves"] for entry in self._entries("stands").values() if isinstance(entry, dict) and "moves" in entry
        ]
        if moved_axes.count(keys.moves) > 1:
            message = f"two stands move {keys.moves!r}, so the harness does not know which one to move"
            self._findings.add((*key_path, "moves"), message, "Use a different name under `moves` for each stand")
        if keys.moves in _IMMOVABLE_AXES:
            message = f"{keys.moves!r} is an axis that no stand can move"
            self._findings.add(
                (*key_path, "moves"), message, "Use `distance_m`, `angle_deg`, or a name of your own such as `height_m`"
            )
        if name in self._entries("devices") or name in self._loudspeaker_names:
            message = f"{name!r} is the name of a stand and of another part of the bench"
            self._findings.add(key_path, message, "Rename the stand", key=True)
        settings = {key: getattr(keys, key) for key in StandKeys.model_fields if key != "driver"}
        try:
            return Positioner(name, connection, **settings)
        except InputError as error:
            self._add_problems(error, key_path)
        return None

    def read_switch(self, device: str, section: Plain) -> PowerSwitch | None:
        key_path, devices = ("power", device), tuple(self._entries("devices"))
        if device not in devices:
            remedy = nearest(device, devices, listed="Devices")
            self._findings.add(key_path, f"the bench has no device {device!r}", remedy, key=True)
        keys = try_validate(PowerSwitchKeys, section)
        connection = self._actuator_id(f"power.{device}", section, PowerSwitchKeys, key_path)
        if keys is None or connection is None:
            return None
        settings = {key: getattr(keys, key) for key in PowerSwitchKeys.model_fields if key != "driver"}
        try:
            return PowerSwitch(device, connection, **settings)
        except InputError as error:
            self._add_problems(error, key_path)
        return None

    def _actuator_id(self, name: str, section: Plain, keys: type[Keys], key_path: KeyPath) -> str | None:
        """Id of the equipment that takes the orders of a stand or switch; None when it is wrong.

        Stands and switches with the same driver and the same options share it: one controller often has several
        outputs. Simulated ones do not.
        """
        if not isinstance(section, dict) or not isinstance(section.get("driver"), str):
            return None
        options = {key: value for key, value in section.items() if key not in keys.model_fields}
        equipment = self._read_equipment(name, {"driver": section["driver"], **options}, key_path, ORDER_METHODS)
        if equipment is None:
            return None
        done_keys = [key for key in ("done", "on_done", "off_done") if key in keys.model_fields]
        # Without this, the driver does not learn whether an order is done.
        confirmation = getattr(equipment.options, "CONFIRMED_BY", "")
        if confirmation == "done":
            empty_key, compared_keys = next((key for key in done_keys if not section.get(key)), ""), ["failed"]
        else:
            empty_key = confirmation if confirmation and not getattr(equipment.options, confirmation) else ""
            compared_keys = [*done_keys, "failed"]
        unused_keys = [key for key in compared_keys if section.get(key)]
        if unused_keys and empty_key:
            problem = f"`{unused_keys[0]}` has no effect, since `{empty_key}` is empty"
            self._findings.add(
                (*key_path, unused_keys[0]), problem, f"Add `{empty_key}`, or remove `{unused_keys[0]}`", key=True
            )
        for actuator in self.actuators.values():
            matches = (actuator.driver, actuator.options) == (equipment.driver, equipment.options)
            if matches and not is_simulated(equipment.driver):
                return actuator.id
        self.actuators[name] = equipment
        return name

    def read_device(self, name: str, section: Plain) -> Device | None:
        """A device with its profile, connection and further sources, or None when it has no usable profile."""
        key_path = ("devices", name)
        connection: Equipment | None = None
        also: dict[str, Plain] = {}
        if isinstance(section, dict):
            connection = self._read_equipment(name, section.get("connection"), (*key_path, "connection"), ())
            also = mapping_in(section, "also")
        keys = try_validate(DeviceKeys, section)
        profile = self._load_profile(keys.profile, (*key_path, "profile")) if keys else None
        if keys is None or profile is None:
            return None
        if keys.wake_phrases is not None:
            profile = replace(profile, wake_phrases=tuple(keys.wake_phrases))
        if connection is not None and connection.id == name:
            device_abilities = abilities(connection.driver, connection.options, profile)
            connection = replace(connection, injects=device_abilities.injects, sets=device_abilities.sets)
            if profile.reports and not device_abilities.hears:
                problem = f"{profile.id!r} has no rules for what the driver {connection.driver!r} receives"
                remedy = f"Use the driver that this profile is written for ({profile.transport}), or another profile"
                self._findings.add((*key_path, "profile"), problem, remedy)
        if connection is not None and connection.driver in also:
            problem = f"two sources of {name!r} are named {connection.driver!r}, the name of its connection's driver"
            self._findings.add(
                (*key_path, "also", connection.driver), problem, "Choose another name for this source", key=True
            )
        further = (self._read_source(name, source, entry, profile) for source, entry in also.items())
        sources = tuple(equipment for equipment in further if equipment)
        if EARCON in also:
            problem = f"a source cannot be called {EARCON!r}: that name means the device's chime"
            self._findings.add((*key_path, "also", EARCON), problem, "Choose another name for this source", key=True)
        earcons = None
        if keys.earcons is not None:
            earcons = self._read_earcons(name, keys.earcons) if self._is_measured else Earcons(keys.earcons)
        return Device(
            id=name,
            profile=profile,
            connection=connection,
            position=keys.position or "",
            also=sources,
            merge_within_ms=keys.merge_within_ms,
            earcons=earcons,
        )

    def _read_earcons(self, device: str, path: str) -> Earcons | None:
        """A device's chimes, or None when its file, one of its sounds or the microphone is wrong."""
        key_path = ("devices", device, "earcons")
        microphone = self._entries("microphone").get("driver")
        has_driver = isinstance(microphone, str) and microphone in plugins.names(plugins.Group.DRIVERS)
        driver = plugins.load(plugins.Group.DRIVERS, str(microphone)) if has_driver else None
        if not hasattr(driver, "expect_earcons"):
            message = "the bench has no microphone whose driver can detect chimes"
            self._findings.add(key_path, message, "Add `microphone: {driver: microphone, …}`")
            return None
        try:
            earcons = read_earcons(self._folder / path)
            self._chimes += learn(device, earcons)
            refuse_alike(tuple(self._chimes))
            return earcons
        except InputError as error:
            self._add_problems(error, key_path)
        return None

    def _read_source(self, device: str, name: str, section: Plain, profile: DeviceProfile) -> FurtherSource | None:
        """A further source of a device, or None when it is wrong."""
        key_path = ("devices", device, "also", name)
        keys = try_validate(FurtherSourceKeys, section)
        if keys is None or not isinstance(section, dict):
            return None
        equipment_keys = {key: value for key, value in section.items() if key != "profile"}
        equipment = self._read_equipment(f"{device}.{name}", equipment_keys, key_path, ())
        source_profile = (
            self._load_profile(keys.profile, (*key_path, "profile")) if keys.profile is not None else profile
        )
        return None if equipment is None or source_profile is None else FurtherSource(name, equipment, source_profile)

    def _load_profile(self, path_or_id: str, key_path: KeyPath) -> DeviceProfile | None:
        try:
            return load_profile(path_or_id, beside=self._folder)
        except InputError as error:
            self._add_problems(error, key_path)
        return None

    def _add_problems(self, error: InputError, key_path: KeyPath) -> None:
        """Notes the problems of an error, each at its own place, else at key_path."""
        for problem in error.problems if isinstance(error, InputProblems) else [error]:
            self._findings.add_at(problem.place or self._findings.place(key_path), problem.what, problem.remedy)

    def _read_equipment(
        self, name: str, section: Plain, key_path: KeyPath, ability: tuple[str, ...], *, default_position: str = ""
    ) -> Equipment | None:
        """A loudspeaker, microphone or connection, or None when there is none or it is wrong.

        ability: methods of which its driver must have one; () for no demand.
        """
        keys = try_validate(EquipmentKeys, section) if isinstance(section, dict) else None
        if keys is None or not isinstance(section, dict):
            return None
        if keys.same_as is not None and key_path[0] != "loudspeakers":
            return self._shared_equipment(keys.same_as, section, key_path, ability)
        if keys.same_as is not None:
            self._findings.add(
                (*key_path, "same_as"), "a loudspeaker needs `driver`, not `same_as`", "Write `driver: …`", key=True
            )
            return None
        if keys.driver is None:
            self._findings.add(key_path, "the key 'driver' is missing", "Add `driver: …` here")
            return None
        driver = installed_driver(keys.driver, self._findings, (*key_path, "driver"))
        if driver is None:
            return None
        self._refuse_unable(driver, keys.driver, ability, (*key_path, "driver"))
        options = check_options(driver, {**(keys.model_extra or {})}, self._findings, key_path)
        if options is None:
            return None
        first_path = self._equipment_paths.setdefault(name, key_path)
        if first_path != key_path and key_path[0] != "stands":  # whose names have been checked
            line = self._findings.place(first_path, key=True).line
            problem = f"{name!r} is also the name of another part of the bench, on line {line}"
            self._findings.add(key_path, problem, "Rename one of the two", key=True)
        place = self._findings.place(key_path, key=True)
        calibration = self._read_calibration(keys.calibration, key_path) if keys.calibration is not None else None
        position = keys.position or default_position
        return Equipment(name, keys.driver, options, place, position, calibration=calibration)

    def _read_calibration(self, path: str, key_path: KeyPath) -> Calibration | None:
        """The calibration of a loudspeaker or the microphone, or None when its file is wrong."""
        key_path = (*key_path, "calibration")
        if key_path[0] not in ("loudspeakers", "microphone"):
            message = "only loudspeakers and the microphone have a calibration"
            self._findings.add(key_path, message, "Move `calibration` to a loudspeaker or the microphone", key=True)
            return None
        try:
            return read_calibration(self._folder / path)
        except InputError as error:
            if self._is_measured:
                self._add_problems(error, key_path)
        return None

    def _shared_equipment(
        self, name: str, section: dict[str, Plain], key_path: KeyPath, ability: tuple[str, ...]
    ) -> Equipment | None:
        """The loudspeaker that `same_as` names, or None when there is no such loudspeaker or it is wrong."""
        for key in section:
            if key != "same_as":
                remedy = f"Remove `{key}`, or move it to the loudspeaker {name!r}"
                self._findings.add((*key_path, key), f"`{key}` cannot be combined with `same_as`", remedy, key=True)
        self._findings.is_known((*key_path, "same_as"), "loudspeaker", name, self._loudspeaker_names, "Loudspeakers")
        equipment = self.loudspeakers.get(name)
        driver = installed_driver(equipment.driver, self._findings, key_path) if equipment else None
        if equipment and driver:
            self._refuse_unable(driver, equipment.driver, ability, (*key_path, "same_as"))
        return equipment

    def _refuse_unable(self, driver: type, name: str, ability: tuple[str, ...], key_path: KeyPath) -> None:
        """Notes a driver without any of the methods that `ability` names; () for no demand."""
        if ability and not any(hasattr(driver, method) for method in ability):
            problem, remedy = _ABILITIES[ability]
            self._findings.add(key_path, f"the driver {name!r} {problem}", remedy)

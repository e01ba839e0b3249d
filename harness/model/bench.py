"""The bench: which devices, how they are reached, how the room is set up; and device profiles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from harness.model.errors import Place

PlainValue = str | int | float | bool | None | list["PlainValue"] | dict[str, "PlainValue"]


class ObservationKind(StrEnum):
    """What a mapping of a device profile may turn a message into."""

    WAKE = "wake"
    TRANSCRIPT = "transcript"
    INTENT = "intent"
    RESPONSE = "response"
    STATUS = "status"
    LOG = "log"


@dataclass(frozen=True, slots=True)
class MessageMapping:
    """One rule of a profile: messages on `topic` (MQTT filter) become observations of `kind`.

    fields: field of the observation → JSON pointer into the payload ("" is the whole payload);
    values: for `status`, the device's word → DeviceState. when: JSON pointer → value that must be there.
    """

    topic: str
    kind: ObservationKind
    fields: tuple[tuple[str, str], ...] = ()
    values: tuple[tuple[str, str], ...] = ()
    when: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class DeviceProfile:
    """One file of devices/: what a kind of device is like, wherever it stands.

    reports: what it can be believed to tell us (its evidence), e.g. {TRANSCRIPT, WAKE}.
    context_wait_s: how long to wait before a query is repeated, so that it has forgotten; None: the scenario's.
    """

    id: str
    title: str
    path: str
    sha256: str
    wake_phrases: tuple[str, ...]
    language: str = "en-US"
    reports: frozenset[ObservationKind] = frozenset()
    mappings: tuple[MessageMapping, ...] = ()
    context_wait_s: float | None = None
    close_dialogue_say: str | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Equipment:
    """Something on the bench that a driver runs: `driver` is an entry point of `harness.drivers`.

    options: already checked against the driver's own `Options` type (an instance of it). place: where it was written.
    """

    id: str
    driver: str
    options: object
    place: Place
    position: str = ""


@dataclass(frozen=True, slots=True)
class Device:
    """A device under test: its profile, and its connection when it has one (a black box has none)."""

    id: str
    profile: DeviceProfile
    connection: Equipment | None = None
    position: str = ""


class OperatorPresence(StrEnum):
    """AUTO: present while an attended client (the dashboard) is connected."""

    AUTO = "auto"
    PRESENT = "present"
    ABSENT = "absent"


@dataclass(frozen=True, slots=True)
class Bench:
    """One bench file. sound_server: `system`, or `virtual_lab`.

    loudspeakers: the first is the default; the axis `position` of a matrix chooses among them by their position.
    monitor: headphones at the bench for replays, which the device under test does not hear.
    """

    id: str
    title: str
    path: str
    sha256: str
    devices: tuple[Device, ...]
    loudspeakers: tuple[Equipment, ...] = ()
    microphone: Equipment | None = None
    monitor: Equipment | None = None
    sound_server: str = "system"
    room: str = ""
    operator: OperatorPresence = OperatorPresence.AUTO
    labels: Mapping[str, str] = field(default_factory=dict)

    def device(self, device_id: str) -> Device:
        """The device of that id; KeyError when there is none."""
        for device in self.devices:
            if device.id == device_id:
                return device
        raise KeyError(device_id)

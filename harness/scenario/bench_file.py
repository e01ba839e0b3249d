"""The keys of a bench file, as they are written."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from harness.base.file_words import Id, Spoken, Text, word
from harness.base.findings import Keys
from harness.model.bench import OperatorPresence


class EquipmentKeys(Keys):
    """Something that a driver runs; further keys are the driver's own options."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True, allow_inf_nan=False)

    driver: str | None = Field(default=None, description="Name of a driver.")
    same_as: str | None = Field(default=None, description="Name of a loudspeaker entry whose driver does this as well.")
    position: Id | None = Field(default=None, description="Where it stands; a matrix chooses loudspeakers by it.")


class DeviceKeys(Keys):
    """A device under test."""

    profile: Text = Field(description="Id of a device profile, or its path relative to the bench.")
    position: Id | None = Field(default=None, description="Where it stands.")
    wake_phrases: list[Spoken] | None = Field(
        default=None, min_length=1, description="Its own wake phrases; the first is used. Default: the profile's."
    )
    connection: EquipmentKeys | None = Field(default=None, description="How it is reached; a black box has none.")


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
    microphone: EquipmentKeys | None = Field(default=None, description="What hears the responses.")
    monitor: EquipmentKeys | None = Field(
        default=None, description="Headphones for replays, which the device under test does not hear."
    )
    devices: dict[Id, DeviceKeys] = Field(min_length=1, description="Name: device under test.")

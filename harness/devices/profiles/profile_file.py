"""The keys of a device profile, as they are written."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, Field

from harness.base.file_words import Id, Language, Spoken, Text, word, wrong
from harness.base.findings import Keys
from harness.devices.profiles.profile_lines import AudioKeys, ConsoleKeys, Expression, FramesKeys, LineKeys, SampleKeys
from harness.model.bench import ObservationKind, Transport
from harness.model.observation import DeviceState

FIELDS: dict[ObservationKind, tuple[str, ...]] = {
    ObservationKind.WAKE: ("phrase", "score"),
    ObservationKind.TRANSCRIPT: ("text", "final"),
    ObservationKind.INTENT: ("name", "slots", "score"),
    ObservationKind.NOT_UNDERSTOOD: (),
    ObservationKind.RESPONSE: ("text",),
    ObservationKind.STATUS: ("state", "detail"),
    ObservationKind.STATE: ("name", "value"),
    ObservationKind.LOG: ("text",),
    ObservationKind.LISTENING: (),
    ObservationKind.ABOUT: ("firmware", "serial"),
}
"""The fields that a mapping of each kind may fill in."""

REQUIRED: dict[ObservationKind, str] = {
    ObservationKind.TRANSCRIPT: "text",
    ObservationKind.INTENT: "name",
    ObservationKind.RESPONSE: "text",
    ObservationKind.STATUS: "state",
    ObservationKind.STATE: "name",
    ObservationKind.LOG: "text",
}
"""The field without which a message of that kind says nothing; without any fields, it is the whole payload."""

_POINTER = re.compile(r"(/([^~/]|~[01])*)*")
_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")


POINTER_REMEDY = 'Write /key/subkey or /list/0, or "" for the whole payload; ~1 stands for / in a key, ~0 for ~'


def is_pointer(text: str) -> bool:
    """Whether it is a JSON pointer (RFC 6901)."""
    return _POINTER.fullmatch(text) is not None


def _pointer(text: str) -> str:
    if not is_pointer(text):
        raise wrong(f"{text!r} is not a JSON pointer", POINTER_REMEDY)
    return text


def _topic(text: str) -> str:
    levels = text.split("/")
    if any("#" in level for level in levels[:-1]) or any(
        len(level) > 1 and ("#" in level or "+" in level) for level in levels
    ):
        raise wrong(
            f"{text!r} is not an MQTT filter", "+ stands for one whole level, # for all that follow, at the end"
        )
    for name in _PLACEHOLDER.findall(text):
        if name != "device":
            raise wrong(f"{text!r} contains {{{name}}}", "Only {device}, the device's id on the bench, is filled in")
    return text


Pointer = Annotated[str, AfterValidator(_pointer), Field(json_schema_extra={"pattern": f"^{_POINTER.pattern}$"})]


class MappingKeys(Keys):
    """Messages on a topic, or lines of JSON of a type, become observations of a kind."""

    topic: Annotated[Text, AfterValidator(_topic)] | None = Field(
        default=None, description="MQTT filter; {device} is the device's id."
    )
    type: Text | None = Field(
        default=None,
        description="In place of a topic: lines of JSON whose /type it fits; * is any text, {name} that of a field.",
    )
    kind: Annotated[ObservationKind, word(ObservationKind)] = Field(description="What a message becomes.")
    match: Expression | None = Field(
        default=None, description="For payloads that are text: a regular expression, as under `lines`."
    )
    fields: dict[str, str] = Field(
        default={},
        description='Field: JSON pointer into the payload ("", the default, is all of it); with `match`: as in lines.',
    )
    values: dict[str, Text] = Field(
        default={},
        description="The device's word: ours (a state, a phrase, the name of an intent or a piece of state).",
    )
    when: dict[Pointer, str | int | float | bool] = Field(
        default={}, description="JSON pointer: value that must be there ('*' is any); other messages are left alone."
    )
    score_scale: float = Field(default=1.0, gt=0, description="The device's score that means 1: 255, 100. Default 1.")


class ProfileCloseDialogueKeys(Keys):
    """How a dialogue with this device is ended."""

    say: Spoken = Field(description="Text that ends a dialogue which the device left open.")


class ProfileKeys(Keys):
    """A device profile: what a kind of device is like, wherever it stands."""

    device: Id = Field(description="Name of the profile.")
    title: Text = Field(default="", description="For people. Default: the name.")
    language: Language = Field(
        default="en-US", description="Language that the device understands (BCP 47). Default en-US."
    )
    wake_phrases: list[Spoken] = Field(description="Its wake phrases; the first is used. [] when it has none.")
    reports: list[Annotated[ObservationKind, word(ObservationKind)]] = Field(
        default=[], description="What it can be believed to tell us. A black box tells nothing: []."
    )
    context_wait_s: float | None = Field(
        default=None,
        ge=0,
        le=600,
        description="It has forgotten a dialogue after this time, s. Default: the scenario's.",
    )
    close_dialogue: ProfileCloseDialogueKeys | None = Field(
        default=None, description="How a dialogue with it is ended."
    )
    transport: Annotated[Transport, word(Transport)] | None = Field(
        default=None,
        description="serial, mqtt, log (lines from a file or another program) or none. Default: by its rules.",
    )
    mappings: list[MappingKeys] = Field(
        default=[], description="How its MQTT messages, or its lines of JSON, become observations."
    )
    lines: list[LineKeys] = Field(default=[], description="How its console lines become observations, in order.")
    console: ConsoleKeys = Field(default=ConsoleKeys(), description="How its console is read.")
    frames: FramesKeys | None = Field(default=None, description="Its binary messages. Default: it has none.")
    audio: AudioKeys | None = Field(default=None, description="How it takes sound over its wire. Default: it does not.")
    listening_states: list[Annotated[DeviceState, word(DeviceState)]] = Field(
        default=[], description="States that it only says of itself while it hears what could wake it. Default: none."
    )
    responds: bool = Field(
        default=True, description="Whether it has a voice; false: it only tells, and no response is waited for."
    )
    samples: list[SampleKeys] = Field(default=[], description="What it said, and what must come of it: its tests.")
    note: Text = Field(default="", description="For people.")

"""The keys of a device profile, as they stand in its file."""

from __future__ import annotations

import re
from typing import Annotated, Any

import regex
from pydantic import AfterValidator, BeforeValidator, Field
from pydantic_core import PydanticCustomError

from harness.base.findings import MAX_TEXT, Id, Keys, Language, Spoken, Text, word, wrong
from harness.base.plugins import Group, names
from harness.model.bench import AudioDialogue, Checksum, ClockKind, Framing, ObservationKind
from harness.model.observation import DeviceState

SLOT_GROUPS = ("slot", "value")
MAX_SAMPLE = 65536


def _expression(text: str) -> str:
    if not text or len(text) > MAX_TEXT:
        raise wrong("the expression is empty or too long", f"Write 1 to {MAX_TEXT} characters")
    try:
        regex.compile(text)
    except regex.error as error:
        position = getattr(error, "pos", None)
        where = f" at character {position + 1}" if position is not None else ""
        remedy = "In single quotes \\ stands for itself, and '' for one '; see docs/devices.md"
        raise wrong(f"not a regular expression: {str(error).partition(' at position')[0]}{where}", remedy) from error
    return text


def _line(text: str) -> str:
    if len(text) > MAX_SAMPLE or any(letter < " " for letter in text):
        what = f"not one line of at most {MAX_SAMPLE} characters"
        raise wrong(what, "Write several lines as a list; ESC as \\e, bytes \\x00")
    return text


def _bytes(text: str) -> str:
    try:
        if bytes.fromhex(text):
            return text
    except ValueError:
        pass
    raise wrong(f"{text!r} is not a row of bytes", 'Write two hexadecimal digits each: "F4 F5 00"')


def _transport(written: Any) -> str:
    choices = ["none", "log", *names(Group.DRIVERS)]
    if not isinstance(written, str) or written not in choices:
        raise PydanticCustomError("word", "unknown word", {"choices": choices})
    return written


Expression = Annotated[str, AfterValidator(_expression)]
SampleLine = Annotated[str, AfterValidator(_line)]
Bytes = Annotated[str, AfterValidator(_bytes), Field(json_schema_extra={"pattern": "^([0-9A-Fa-f]{2} ?)+$"})]


class BlockKeys(Keys):
    """Lines that give one score for each word; the best word counts."""

    threshold: float = Field(gt=0, le=1, description="Score (0 to 1, after score_scale) from which a word counts.")
    ignore: list[Text] = Field(default=[], description="Words that are no phrase, such as noise.")


class LineKeys(Keys):
    """Console lines become observations of a kind; the first rule that fits a line takes it."""

    match: Expression = Field(description="Regular expression; groups (?P<phrase>…) fill in fields of that name.")
    kind: Annotated[ObservationKind, word(ObservationKind)] = Field(description="What a line becomes.")
    fields: dict[str, Text] = Field(default={}, description="Field: text, in which {group} is a group's text.")
    values: dict[str, Text] = Field(
        default={},
        description="The device's word: ours (a state, a phrase, the name of an intent or a piece of state).",
    )
    when: dict[str, str] = Field(default={}, description="Group: text that it must have; else the rule does not hold.")
    score_scale: float = Field(default=1.0, gt=0, description="The device's score that means 1: 255, 100. Default 1.")
    clock: Annotated[ClockKind, word(ClockKind)] = Field(
        default=ClockKind.NONE, description="How the group `time` is read. Default none."
    )
    more: list[Expression] = Field(
        default=[], max_length=12, description="Expressions of following lines that belong to it, in any order."
    )
    until: Expression | None = Field(
        default=None, description="Line at which it is complete. Default: when each of `more` was seen."
    )
    within_lines: int = Field(default=8, ge=1, le=200, description="It waits for at most so many lines. Default 8.")
    within_s: float = Field(default=1.0, gt=0, le=30, description="It waits for at most so long, s. Default 1.")
    block: BlockKeys | None = Field(default=None, description="`more` gives scores of words; the best one counts.")


class ConsoleKeys(Keys):
    """How a device's console is read."""

    framing: Annotated[Framing, word(Framing)] = Field(
        default=Framing.LINES,
        description="lines (the default), vh: docs/framing.md with lines between, or wyoming: JSON headers with data.",
    )
    baud: int = Field(default=115200, ge=300, le=12_000_000, description="Its usual rate. Default 115200.")
    max_line_bytes: int = Field(
        default=65536, ge=80, le=1048576, description="Longer lines are not read, and that is told. Default 65536."
    )
    time: Expression | None = Field(
        default=None, description="Expression with the group `time`, tried on every line, to learn the device's clock."
    )
    clock: Annotated[ClockKind, word(ClockKind)] = Field(
        default=ClockKind.NONE, description="How that `time` is read. Default none."
    )
    log_lines_per_s: float = Field(
        default=50.0, gt=0, le=1000, description="Unmapped lines kept in the log, per second. Default 50."
    )


class FramesKeys(Keys):
    """Binary messages; each becomes a line `frame: a0 91 …`, its body, for the rules."""

    head: Bytes = Field(description="First bytes of each.")
    length_at: int = Field(ge=1, le=64, description="Offset of the length field, from the head's first byte.")
    length_size: int = Field(default=1, ge=1, le=2, description="Bytes of the length field, low one first. Default 1.")
    length_plus: int = Field(default=0, ge=0, le=255, description="What to add to it for the bytes of a whole frame.")
    body_from: int = Field(ge=1, le=64, description="Offset of the first byte that is shown.")
    tail: Bytes | None = Field(default=None, description="Last bytes of each. Default: none.")
    checksum: Annotated[Checksum, word(Checksum)] = Field(
        default=Checksum.NONE, description="Before the tail: none (the default), sum8, sum16 (low byte first) or xor8."
    )
    checksum_from: int = Field(default=0, ge=0, le=64, description="Offset of the first byte it is over. Default 0.")
    max_bytes: int = Field(default=256, ge=4, le=4096, description="A longer frame is none. Default 256.")


class AudioKeys(Keys):
    """That the device takes sound over its wire."""

    dialogue: Annotated[AudioDialogue, word(AudioDialogue)] = Field(
        description="vh (docs/framing.md), tflm_test_over_serial, hermes_audio_frame, hermes_play_bytes, or driver."
    )
    rate_hz: int = Field(default=16000, ge=8000, le=48000, description="Sample rate that it takes. Default 16000.")
    topic: Text = Field(default="", description="Hermes: topic, with {device}, and {id} of hermes_play_bytes.")


class GivesKeys(Keys):
    """One observation that a sample must give; what is not named must be empty."""

    kind: Annotated[ObservationKind, word(ObservationKind)] = Field(description="Its kind.")
    phrase: str = Field(default="", description="wake: the phrase.")
    score: float | None = Field(default=None, description="wake, intent: the score, 0 to 1.")
    text: str = Field(default="", description="transcript, response, log: the text.")
    final: bool = Field(default=True, description="transcript: whether it is final.")
    name: str = Field(default="", description="intent, state: its name.")
    value: str = Field(default="", description="state: its value; empty when it is no more.")
    slots: dict[str, str] = Field(default={}, description="intent: slot: value.")
    state: str = Field(default="", description="status: the state.")
    detail: str = Field(default="", description="status: the detail.")
    firmware: str = Field(default="", description="about: its firmware.")
    serial: str = Field(default="", description="about: its serial number.")
    device_s: float | None = Field(default=None, description="The time that the line gives, s. Default: not compared.")


class SampleKeys(Keys):
    """What the device said, and what must come of it."""

    lines: list[SampleLine] = Field(default=[], description="Console lines; ESC is \\e, a byte is \\x00.")
    bytes: Bytes | None = Field(default=None, description="Console bytes, in hexadecimal.")
    topic: Text | None = Field(default=None, description="MQTT topic; {device} is `device`.")
    payload: dict[str, Any] | list[Any] | str | int | float | bool = Field(
        default="", description="MQTT payload: keys and values are sent as JSON, a text as it is."
    )
    gives: list[GivesKeys] = Field(description="The observations, in order; [] when it must give none.")


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
    transport: Annotated[str, BeforeValidator(_transport)] | None = Field(
        default=None,
        description="A driver (serial, mqtt), log (lines of a file or another program) or none. Default: by its rules.",
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

"""The YAML keys of a device profile."""

from __future__ import annotations

import re
from typing import Annotated, Any

import regex
from pydantic import AfterValidator, BeforeValidator, Field
from pydantic_core import PydanticCustomError

from harness.base.findings import (
    MAX_TEXT,
    Id,
    Keys,
    Language,
    Spoken,
    Text,
    enum_validator,
    optional,
    preset,
    validation_error,
)
from harness.base.plugins import Group, names, replacement
from harness.devices.wire.mappings import FILTER_REMEDY, is_topic_filter
from harness.model.bench import AudioDialogue, Checksum, ClockKind, Framing, ObservationKind
from harness.model.observation import DeviceState

MAX_SAMPLE_CHARS = 65536  # The default of `max_line_bytes`.


def _check_expression(text: str) -> str:
    if not text or len(text) > MAX_TEXT:
        raise validation_error("the expression is empty or too long", f"Use 1 to {MAX_TEXT} characters")
    try:
        regex.compile(text)
    except regex.error as error:
        position = getattr(error, "pos", None)
        position_text = f" at character {position + 1}" if position is not None else ""
        remedy = "In single quotes \\ is literal and '' is one '. See docs/reference/device-profiles.md"
        raise validation_error(
            f"not a regular expression: {str(error).partition(' at position')[0]}{position_text}", remedy
        ) from error
    return text


def _check_line(text: str) -> str:
    if len(text) > MAX_SAMPLE_CHARS or any(letter < " " for letter in text):
        problem = f"not a single line of at most {MAX_SAMPLE_CHARS} characters"
        raise validation_error(problem, "Put several lines in a list. Write ESC as \\e and a byte as \\x00")
    return text


def _check_bytes(text: str) -> str:
    try:
        if bytes.fromhex(text):
            return text
    except ValueError:
        pass
    raise validation_error(f"{text!r} is not a list of bytes", 'Write two hexadecimal digits per byte: "F4 F5 00"')


def _check_transport(transport: Any) -> str:
    choices = ["none", "log", *names(Group.DRIVERS)]
    if remedy := replacement(Group.DRIVERS, str(transport)):
        raise validation_error(f"the driver {transport!r} was removed", remedy)
    if not isinstance(transport, str) or transport not in choices:
        raise PydanticCustomError("word", "unknown word", {"choices": choices})
    return transport


Kind = Annotated[ObservationKind, enum_validator(ObservationKind)]
ClockWord = Annotated[ClockKind, enum_validator(ClockKind)]
Scale = Annotated[
    float, Field(gt=0, description="The device's full score, such as 255 or 100; scores are divided by it. Default 1.")
]
_VALUES_TEXT = "Translates the device's own words (a state, a phrase, or the name of an intent or state)."
Expression = Annotated[str, AfterValidator(_check_expression)]
SampleLine = Annotated[str, AfterValidator(_check_line)]
Bytes = Annotated[str, AfterValidator(_check_bytes), Field(json_schema_extra={"pattern": "^([0-9A-Fa-f]{2} ?)+$"})]


class BlockKeys(Keys):
    """Lines that give one score per word; the word with the best score counts."""

    threshold: float = Field(gt=0, le=1, description="Lowest score of a detection (0 to 1, after score_scale).")
    ignore: list[Text] = preset([], "Words that are not phrases, such as noise.")


class LineKeys(Keys):
    """A rule that maps console lines to observations. The first rule that matches a line is applied."""

    match: Expression = Field(description="Regular expression; a group (?P<phrase>…) fills in the field of that name.")
    kind: Kind = Field(description="Kind of observation.")
    fields: dict[str, Text] = preset({}, "Text per field; {group} inserts the text of a group.")
    values: dict[str, Text] = preset({}, _VALUES_TEXT)
    when: dict[str, str] = preset({}, "Text that a group must have for the rule to match.")
    score_scale: Scale = 1.0
    clock: ClockWord = preset(ClockKind.NONE, "Unit or format of the group `time`. Default none.")
    more: list[Expression] = preset(
        [], "Expressions for the other lines of the same observation, in any order.", max_length=12
    )
    until: Expression | None = optional(
        "Expression for the line that completes the observation. Default: complete when each of `more` has matched."
    )
    within_lines: int = preset(8, "Maximum number of lines to wait for. Default 8.", ge=1, le=200)
    within_s: float = preset(1.0, "Longest wait, s. Default 1.", gt=0, le=30)
    block: BlockKeys | None = optional("The lines of `more` give one score per word; the best one counts.")


Number = Annotated[str, Field(pattern=r"^[A-Za-z_]\w*$")]
StateName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_]+( [A-Za-z0-9_]+)*$", max_length=40)]


class RangeKeys(Keys):
    """The values of a number in a state, both ends included."""

    from_: float | None = optional("Lowest value. Default: any.", alias="from")
    to: float | None = optional("Highest value; below `from`, the range of a hue wraps past 360.")


class StateKeys(Keys):
    """A state that numbers show."""

    when: dict[Number, RangeKeys] = preset(
        {}, "Ranges of numbers, by name; all must hold. Default: the state applies when no other does."
    )
    min_ms: float | None = optional(
        "The state counts once it has lasted this long, ms. Default: the `min_ms` of the threshold.", ge=0, le=60_000
    )


class ThresholdKeys(Keys):
    """Turns numbers in lines into a state. Each change is a line `NAME: STATE, before: STATE` for the rules."""

    name: StateName = Field(description="NAME in the line `NAME: STATE, before: STATE`.")
    states: dict[StateName, StateKeys] = Field(min_length=1, description="The states; the first that applies counts.")
    match: Expression | None = optional(
        "Expression with a group for each number. Default: numbers written as name=12.3."
    )
    hysteresis: dict[Number, Annotated[float, Field(ge=0)]] = preset(
        {}, "How far a number may be outside its range without ending the state, by name. Default 0."
    )
    min_ms: float = preset(0.0, "The `min_ms` of states that do not set their own. Default 0.", ge=0, le=60_000)


_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")


def _check_filter(text: str) -> str:
    if not is_topic_filter(text):
        raise validation_error(f"{text!r} is not an MQTT filter", FILTER_REMEDY)
    for name in _PLACEHOLDER.findall(text):
        if name != "device":
            raise validation_error(f"{text!r} contains {{{name}}}", "Use only {device}, the device's id on the bench")
    return text


def _check_topic(text: str) -> str:
    if set(text) & set("+#"):
        raise validation_error(f"{text!r} is not a single topic", "Remove + and #")
    for name in _PLACEHOLDER.findall(text):
        if name not in ("device", "id"):
            raise validation_error(f"{text!r} contains {{{name}}}", "Use only {device} and, to play WAV files, {id}")
    return text


class ConsoleKeys(Keys):
    """How the harness reads a device's console."""

    framing: Annotated[Framing, enum_validator(Framing)] = preset(
        Framing.LINES, "lines (default), vh (the harness's framing and log lines), wyoming (JSON headers with data)."
    )
    baud: int = preset(115200, "Baud rate. Default 115200.", ge=300, le=12_000_000)
    max_line_bytes: int = preset(65536, "Longer lines are reported, but not read. Default 65536.", ge=80, le=1048576)
    time: Expression | None = optional(
        "Expression with the group `time`, applied to every line to follow the device's clock."
    )
    clock: ClockWord = preset(ClockKind.NONE, "Unit or format of the group `time`. Default none.")
    topic: Annotated[Text, AfterValidator(_check_filter)] | None = optional(
        "MQTT topic whose messages are console lines, with {device}. Default: none."
    )
    log_lines_per_s: float = preset(
        50.0, "Maximum number of unmapped lines kept in the log per second. Default 50.", gt=0, le=1000
    )


class FramesKeys(Keys):
    """Binary messages. The rules see the body of each as a line `frame: a0 91 …`."""

    head: Bytes = Field(description="First bytes of a frame.")
    length_at: int = Field(ge=1, le=64, description="Offset of the length field from the first byte of the head.")
    length_size: int = preset(1, "Size of the length field in bytes, low byte first. Default 1.", ge=1, le=2)
    length_plus: int = preset(
        0, "Added to the length field, this gives the number of bytes in the whole frame.", ge=0, le=255
    )
    body_from: int = Field(ge=1, le=64, description="Offset of the first byte of the body.")
    tail: Bytes | None = optional("Last bytes of a frame. Default: none.")
    checksum: Annotated[Checksum, enum_validator(Checksum)] = preset(
        Checksum.NONE, "Checksum before the tail: none (default), sum8, sum16 (low byte first) or xor8."
    )
    checksum_from: int = preset(0, "Offset of the first byte in the checksum. Default 0.", ge=0, le=64)
    max_bytes: int = preset(256, "Maximum length of a frame, in bytes. Default 256.", ge=4, le=4096)


class AudioKeys(Keys):
    """How the device accepts sound over its connection."""

    dialogue: Annotated[AudioDialogue, enum_validator(AudioDialogue)] = Field(
        description="vh (the harness's framing), tflm_test_over_serial, hermes_audio_frame, hermes_play_bytes, driver."
    )
    rate_hz: int = preset(16000, "Sample rate of the injected sound. Default 16000.", ge=8000, le=48000)
    topic: Annotated[Text, AfterValidator(_check_topic)] = preset(
        "", "Hermes: topic, with {device}; for hermes_play_bytes also with {id}."
    )


class HeartbeatKeys(Keys):
    """Messages over MQTT whose absence shows that the device is gone, once one has come."""

    topic: Annotated[Text, AfterValidator(_check_filter)] = Field(
        description="Topic of the heartbeat messages, with {device}; + and # are MQTT wildcards."
    )
    when: dict[Pointer, str | int | float | bool] = preset(
        {}, "JSON pointer: value that must be there ('*' matches any value)."
    )
    within_s: float = Field(ge=1, le=3600, description="Longest time between two heartbeats, s.")
    ask: Annotated[Text, AfterValidator(_check_topic)] = preset(
        "", "Topic of the message that requests a heartbeat, with {device}. Default: none."
    )
    payload: Text = preset("", "Payload of the `ask` message; {device} is the device's id.")


class GivesKeys(Keys):
    """An observation that a sample must give. Fields that are not named must be empty."""

    kind: Kind = Field(description="Kind of observation.")
    phrase: str = preset("", "wake: the phrase.")
    score: float | None = optional("wake, intent: the score, 0 to 1.")
    inferred: str = preset("", "wake: what the event was inferred from (weak evidence).")
    text: str = preset("", "transcript, response, log: the text.")
    final: bool = preset(True, "transcript: whether it is final.")
    name: str = preset("", "intent, state: the name.")
    value: str = preset("", "state: the value; empty when the state has ended.")
    slots: dict[str, str] = preset({}, "intent: the value of each slot.")
    state: str = preset("", "status: the state.")
    detail: str = preset("", "status: the detail.")
    firmware: str = preset("", "about: the firmware.")
    serial: str = preset("", "about: the serial number.")
    count: int = preset(1, "lost: the number of lines.")
    device_s: float | None = optional("Device time of the line, s. Default: not compared.")


class SampleKeys(Keys):
    """Output of the device, and the observations that it must give."""

    lines: list[SampleLine] = preset([], "Console lines; write ESC as \\e and a byte as \\x00.")
    bytes: Bytes | None = optional("Console bytes, in hexadecimal.")
    every_ms: float = preset(10.0, "Time between the lines, ms. Default 10.", gt=0, le=60_000)
    topic: Text | None = optional("MQTT topic; {device} is the profile's `device`.")
    payload: dict[str, Any] | list[Any] | str | int | float | bool = preset(
        "", "MQTT payload: a mapping is sent as JSON, text unchanged."
    )
    gives: list[GivesKeys] = Field(description="The observations in order; [] for none.")


_POINTER = re.compile(r"(/([^~/]|~[01])*)*")


POINTER_REMEDY = 'Use /key/subkey, /list/0, or "" for the whole payload. In a key, write ~1 for / and ~0 for ~'


def is_pointer(text: str) -> bool:
    """Whether the text is a JSON pointer (RFC 6901)."""
    return _POINTER.fullmatch(text) is not None


def _check_pointer(text: str) -> str:
    if not is_pointer(text):
        raise validation_error(f"{text!r} is not a JSON pointer", POINTER_REMEDY)
    return text


Pointer = Annotated[str, AfterValidator(_check_pointer), Field(json_schema_extra={"pattern": f"^{_POINTER.pattern}$"})]


class MappingKeys(Keys):
    """A rule that maps messages on a topic, or JSON lines of a type, to observations."""

    topic: Annotated[Text, AfterValidator(_check_filter)] | None = optional("MQTT filter; {device} is the device's id.")
    type: Text | None = optional(
        "Instead of a topic: the /type of JSON lines; * matches any text, {name} captures a field."
    )
    kind: Kind = Field(description="Kind of observation.")
    match: Expression | None = optional("For text payloads: a regular expression, as under `lines`.")
    fields: dict[str, str] = preset(
        {},
        'Field: JSON pointer into the payload ("", the default, is the whole payload). With `match`: as under `lines`.',
    )
    values: dict[str, Text] = preset({}, _VALUES_TEXT)
    when: dict[Pointer, str | int | float | bool] = preset(
        {}, "JSON pointer: value that must be there ('*' matches any value); other messages are ignored."
    )
    score_scale: Scale = 1.0


class ProfileCloseDialogueKeys(Keys):
    """How the harness ends a dialogue with this device."""

    say: Spoken = Field(description="Text to say when the device has left a dialogue open.")


class ProfileKeys(Keys):
    """A device profile: what a kind of device reports, and how."""

    device: Id = Field(description="Name of the profile.")
    title: Text = preset("", "Title in lists and reports. Default: the name.")
    language: Language = preset("en-US", "Language that the device understands (BCP 47). Default en-US.")
    wake_phrases: list[Spoken] = Field(description="Wake phrases; the harness uses the first. [] for none.")
    reports: list[Kind] = preset([], "Kinds of observations that the device reports reliably. [] for a black box.")
    context_wait_s: float | None = optional(
        "Time after which the device has forgotten a dialogue, s. Default: the scenario's.", ge=0, le=600
    )
    close_dialogue: ProfileCloseDialogueKeys | None = optional("How the harness ends a dialogue with the device.")
    transport: Annotated[str, BeforeValidator(_check_transport)] | None = optional(
        "A driver (serial, mqtt), log (lines of a file or another program) or none. Default: what the rules imply."
    )
    mappings: list[MappingKeys] = preset([], "Rules for MQTT messages and for JSON lines.")
    lines: list[LineKeys] = preset([], "Rules for console lines, in order.")
    lines_of: list[Id] = preset(
        [], "Profiles whose `lines` and typed `mappings` are tried after this profile's, to share rules."
    )
    thresholds: list[ThresholdKeys] = preset(
        [], "Rules that turn numbers in lines (light, current, traffic) into states.", max_length=8
    )
    console: ConsoleKeys = preset(ConsoleKeys(), "How the harness reads the console.")
    frames: FramesKeys | None = optional("Format of binary messages. Default: none.")
    audio: AudioKeys | None = optional("How the device accepts sound over its connection. Default: it does not.")
    heartbeat: HeartbeatKeys | None = optional(
        "How the harness notices that the device is gone. Default: by its connection."
    )
    listening_states: list[Annotated[DeviceState, enum_validator(DeviceState)]] = preset(
        [], "States that the device reports only while it listens for its wake phrase. Default: none."
    )
    responds: bool = preset(True, "Whether the device speaks. If false, the harness does not wait for a response.")
    samples: list[SampleKeys] = preset(
        [], "Tests of the profile: device output, and the observations that it must give."
    )
    note: Text = preset("", "Note for readers.")

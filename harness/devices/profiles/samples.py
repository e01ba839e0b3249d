"""Runs a profile's samples: applies its rules to the device output, and compares the observations."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import cast

from harness.devices.wire.console import Console
from harness.devices.wire.lines import FIELDS
from harness.devices.wire.mappings import for_device, observations
from harness.model.bench import DeviceProfile, ObservationKind, PlainValue, Sample
from harness.model.frozen import frozen
from harness.model.observation import (
    DeviceDescribed,
    Intent,
    ListeningProved,
    LogLine,
    Observation,
    ResponseText,
    StateTold,
    Status,
    Transcript,
    Unread,
    Wake,
)
from harness.model.time import Stamp

Fields = dict[str, PlainValue]
_PLAIN_WORD = re.compile(r"[A-Za-z][A-Za-z_]*")
SCORE_STEP = 0.0005  # A sample need only give three decimals.
_KINDS: dict[type, ObservationKind] = {
    Wake: ObservationKind.WAKE,
    Transcript: ObservationKind.TRANSCRIPT,
    Intent: ObservationKind.INTENT,
    ResponseText: ObservationKind.RESPONSE,
    Status: ObservationKind.STATUS,
    StateTold: ObservationKind.STATE,
    LogLine: ObservationKind.LOG,
    ListeningProved: ObservationKind.LISTENING,
    DeviceDescribed: ObservationKind.ABOUT,
    Unread: ObservationKind.LOST,
}
_EMPTY_VALUES: Fields = {"score": None, "final": True, "slots": {}, "count": 1}
"""The values of fields that are not named; those of all other fields are empty texts."""


@frozen
class SampleResult:
    """A sample, and how its observations differ. wrong: the differences, in words; () if the sample passes."""

    sample: Sample
    wrong: tuple[str, ...]


def check_samples(profile: DeviceProfile) -> tuple[SampleResult, ...]:
    """The results of all samples in the order of the file. Each sample starts with a new console."""
    return tuple(_check_sample(profile, sample) for sample in profile.samples)


def sample_fields(observation: Observation) -> Fields:
    """An observation as written under `gives`, without empty fields."""
    kind = _KINDS.get(type(observation))
    if kind is None:
        return {"kind": observation.kind}
    if isinstance(observation, Intent) and not observation.name:
        return {"kind": ObservationKind.NOT_UNDERSTOOD.value}
    values = {name: _plain_value(getattr(observation, name)) for name in FIELDS[kind]}
    return {
        "kind": kind.value,
        **{name: value for name, value in values.items() if value != _EMPTY_VALUES.get(name, "")},
    }


def _plain_value(value: object) -> PlainValue:
    match value:
        case float():
            return round(value, 4)
        case tuple():
            return dict(value)
    return str(value) if isinstance(value, str) else cast(PlainValue, value)


def _check_sample(profile: DeviceProfile, sample: Sample) -> SampleResult:
    """Applies the profile to a sample, and compares the observations in order."""
    results = _message_fields(profile, sample) if sample.topic else _console_fields(profile, sample)
    # Every unmapped line gives a log line; they are compared only if the sample names one.
    if not any(observation.get("kind") == "log" for observation in sample.gives):
        results = [observation for observation in results if observation["kind"] != "log"]
    wrong: list[str] = []
    for number in range(max(len(results), len(sample.gives))):
        expected = sample.gives[number] if number < len(sample.gives) else None
        actual = results[number] if number < len(results) else None
        if expected is None or actual is None or _differs(expected, actual):
            wrong += [f"wanted {format_fields(expected)}", f"   got {format_fields(actual)}"]
    return SampleResult(sample, tuple(wrong))


def _message_fields(profile: DeviceProfile, sample: Sample) -> list[Fields]:
    mappings = for_device(profile.mappings, profile.id)
    return [
        sample_fields(observation)
        for observation in observations(mappings, sample.topic, sample.payload, Stamp(0.0), "sample")
    ]


def _console_fields(profile: DeviceProfile, sample: Sample) -> list[Fields]:
    """The observations of console text, with the time that the device wrote into the line."""
    console = Console(profile, "sample")
    at_s, readings = 0.0, []
    for data in sample.lines:
        at_s += sample.step_s
        readings += console.read(data, Stamp(at_s))
    readings += console.read_rest(Stamp(at_s))
    results: list[Fields] = []
    for reading in readings:
        device_time: Fields = {} if reading.device_s is None else {"device_s": reading.device_s}
        results += [sample_fields(observation) | device_time for observation in reading.observations]
    return results


def _differs(expected: Mapping[str, PlainValue], actual: Fields) -> bool:
    """Whether a field of an observation differs. Fields that are not named must be empty, except device_s."""
    kind = str(expected.get("kind"))
    if actual["kind"] != kind:
        return True
    for name in FIELDS[ObservationKind(kind)]:
        empty = _EMPTY_VALUES.get(name, "")
        if not _values_match(expected.get(name, empty), actual.get(name, empty)):
            return True
    return "device_s" in expected and not _values_match(expected["device_s"], actual.get("device_s"))


def _values_match(expected: PlainValue, actual: PlainValue) -> bool:
    if isinstance(expected, float | int) and isinstance(actual, float | int) and not isinstance(expected, bool):
        return abs(expected - actual) <= SCORE_STEP
    return expected == actual


def format_fields(fields: Mapping[str, PlainValue] | None) -> str:
    """The fields as one line of YAML."""
    if fields is None:
        return "nothing"
    return "{" + ", ".join(f"{name}: {_format_value(value)}" for name, value in fields.items()) + "}"


def _format_value(value: PlainValue) -> str:
    match value:
        case dict():
            return format_fields(value)
        case bool():
            return "true" if value else "false"
        case str() if _PLAIN_WORD.fullmatch(value) and value not in ("true", "false", "null"):
            return value
        case str():
            return "'" + value.replace("'", "''") + "'"
    return str(value)

"""A profile's samples, run: what the device said goes through the profile's rules, and must give what is written."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from harness.devices.wire.console import Console
from harness.devices.wire.mappings import for_device, observations
from harness.model.bench import DeviceProfile, PlainValue, Sample
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
    Wake,
)
from harness.model.time import Stamp

Fields = dict[str, PlainValue]
_WORD = re.compile(r"[A-Za-z][A-Za-z_]*")
SCORE_STEP = 0.0005
_LINE_S = 0.01
_DEFAULTS: dict[str, Fields] = {
    "wake": {"phrase": "", "score": None},
    "transcript": {"text": "", "final": True},
    "intent": {"name": "", "slots": {}, "score": None},
    "not_understood": {},
    "response": {"text": ""},
    "status": {"state": "", "detail": ""},
    "state": {"name": "", "value": ""},
    "log": {"text": ""},
    "listening": {},
    "about": {"firmware": "", "serial": ""},
}


@dataclass(frozen=True, slots=True)
class SampleResult:
    """A sample with what came of it; wrong: what differs, in words; empty when it is right."""

    sample: Sample
    got: tuple[Fields, ...]
    wrong: tuple[str, ...]


def check_samples(profile: DeviceProfile) -> tuple[SampleResult, ...]:
    """The results of all samples, each with a console of its own, in the order of the file."""
    return tuple(_result(profile, sample) for sample in profile.samples)


def sample_fields(seen: Observation) -> Fields:
    """An observation as it would be written under `gives`; fields that are empty are left out."""
    match seen:
        case Wake(phrase=phrase, score=score):
            fields: Fields = {"kind": "wake", "phrase": phrase, "score": _rounded(score)}
        case Transcript(text=text, final=final):
            fields = {"kind": "transcript", "text": text, "final": final}
        case Intent(name=""):
            fields = {"kind": "not_understood"}
        case Intent(name=name, slots=slots, score=score):
            fields = {"kind": "intent", "name": name, "slots": dict(slots), "score": _rounded(score)}
        case ResponseText(text=text):
            fields = {"kind": "response", "text": text}
        case Status(state=state, detail=detail):
            fields = {"kind": "status", "state": state.value, "detail": detail}
        case StateTold(name=name, value=value):
            fields = {"kind": "state", "name": name, "value": value}
        case LogLine(text=text):
            fields = {"kind": "log", "text": text}
        case DeviceDescribed(firmware=firmware, serial=serial):
            fields = {"kind": "about", "firmware": firmware, "serial": serial}
        case ListeningProved():
            fields = {"kind": "listening"}
        case _:
            fields = {"kind": seen.kind}
    defaults = _DEFAULTS.get(str(fields["kind"]), {})
    return {name: value for name, value in fields.items() if name not in defaults or value != defaults[name]}


def _result(profile: DeviceProfile, sample: Sample) -> SampleResult:
    seen = _message(profile, sample) if sample.topic else _console(profile, sample)
    # Log lines are told of everything that no rule took; only a sample that asks for them compares them.
    if not any(one.get("kind") == "log" for one in sample.gives):
        seen = [one for one in seen if one["kind"] != "log"]
    wrong: list[str] = []
    for number in range(max(len(seen), len(sample.gives))):
        wanted = sample.gives[number] if number < len(sample.gives) else None
        got = seen[number] if number < len(seen) else None
        if wanted is None or got is None or _differs(wanted, got):
            wrong += [f"wanted {shown(wanted)}", f"   got {shown(got)}"]
    return SampleResult(sample, tuple(seen), tuple(wrong))


def _message(profile: DeviceProfile, sample: Sample) -> list[Fields]:
    mappings = for_device(profile.mappings, profile.id)
    return [sample_fields(one) for one in observations(mappings, sample.topic, sample.payload, Stamp(0.0), "sample")]


def _console(profile: DeviceProfile, sample: Sample) -> list[Fields]:
    console = Console(profile, "sample")
    at_s, seen = 0.0, []
    for data in sample.lines:
        at_s += _LINE_S
        seen += console.read(data, Stamp(at_s))
    seen += console.read_rest(Stamp(at_s))
    return [
        sample_fields(one) | ({"device_s": reading.device_s} if reading.device_s is not None else {})
        for reading in seen
        for one in reading.observations
    ]


def _differs(wanted: Mapping[str, PlainValue], got: Fields) -> bool:
    kind = str(wanted.get("kind"))
    if got["kind"] != kind:
        return True
    for name, default in _DEFAULTS[kind].items():
        if not _same(wanted.get(name, default), got.get(name, default)):
            return True
    return "device_s" in wanted and not _same(wanted["device_s"], got.get("device_s"))


def _same(wanted: PlainValue, got: PlainValue) -> bool:
    if isinstance(wanted, float | int) and isinstance(got, float | int) and not isinstance(wanted, bool):
        return abs(wanted - got) <= SCORE_STEP
    return wanted == got


def _rounded(score: float | None) -> float | None:
    return None if score is None else round(score, 4)


def shown(fields: Mapping[str, PlainValue] | None) -> str:
    """One line, as YAML has it."""
    if fields is None:
        return "nothing"
    return "{" + ", ".join(f"{name}: {_value(value)}" for name, value in fields.items()) + "}"


def _value(value: PlainValue) -> str:
    match value:
        case dict():
            return shown(value)
        case bool():
            return "true" if value else "false"
        case str() if _WORD.fullmatch(value) and value not in ("true", "false", "null"):
            return value
        case str():
            return "'" + value.replace("'", "''") + "'"
    return str(value)

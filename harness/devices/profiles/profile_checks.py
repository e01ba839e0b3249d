"""What the keys of a device profile must mean together, beyond the shape of each."""

from __future__ import annotations

import re
from collections.abc import Sequence

import regex

from harness.base.findings import Findings, Path, attempt, nearest
from harness.base.strict_yaml import Plain
from harness.devices.profiles.profile_file import FIELDS, POINTER_REMEDY, REQUIRED, MappingKeys, ProfileKeys, is_pointer
from harness.devices.profiles.profile_lines import GivesKeys, LineKeys, SampleKeys
from harness.devices.wire.line_fields import SLOT
from harness.model.bench import ClockKind, Framing, ObservationKind, Transport
from harness.model.observation import DeviceState

STATES = tuple(state.value for state in DeviceState)
_NAMED = (ObservationKind.STATUS, ObservationKind.WAKE, ObservationKind.INTENT, ObservationKind.STATE)
_PLACEHOLDER = re.compile(r"\{(\w*)\}")


def check_rules(written: Plain, found: Findings) -> None:
    """Notes what is wrong with each mapping, line rule and sample whose own shape is right."""
    for number, one in enumerate(_entries(written, "mappings")):
        if mapping := attempt(MappingKeys, one):
            _check_mapping(mapping, ("mappings", number), found)
    for number, one in enumerate(_entries(written, "lines")):
        if line := attempt(LineKeys, one):
            _check_line(line, ("lines", number), found)
    for number, one in enumerate(_entries(written, "samples")):
        if sample := attempt(SampleKeys, one):
            _check_sample(sample, ("samples", number), found)


def check_whole(keys: ProfileKeys, found: Findings) -> None:
    """Notes what the parts of a profile contradict each other in."""
    yielded = {rule.kind for rule in keys.mappings} | {rule.kind for rule in keys.lines}
    for number, kind in enumerate(keys.reports):
        if yielded and kind not in yielded and keys.console.framing is not Framing.VH:
            remedy = f"Add a mapping of kind {kind.value}, or remove it from reports"
            found.add(("reports", number), f"no mapping yields {kind.value!r}, which is reported", remedy)
    mute = bool(yielded) and ObservationKind.STATUS not in yielded and keys.console.framing is not Framing.VH
    if keys.listening_states and mute:
        remedy = "Add a mapping of kind status, or remove them"
        found.add(("listening_states",), "no mapping yields a status, so no state is ever known", remedy, key=True)
    console = keys.console
    if (console.time is None) != (console.clock is ClockKind.NONE):
        found.add(("console",), "`time` and `clock` go together", "Write both, or neither", key=True)
    elif console.time is not None and "time" not in regex.compile(console.time).groupindex:
        found.add(("console", "time"), "the expression has no group `time`", "Write (?P<time>…) in it")
    if (frames := keys.frames) and frames.body_from < len(bytes.fromhex(frames.head)):
        found.add(("frames", "body_from"), "the body begins within the head", "Count from the head's first byte")
    for number, sample in enumerate(keys.samples):
        if sample.topic is not None and not any(rule.topic for rule in keys.mappings):
            remedy = "Add mappings, or write `lines` in the sample"
            found.add(("samples", number, "topic"), "the profile has no mappings of messages", remedy, key=True)


def transport_of(keys: ProfileKeys) -> Transport:
    """As written; else what the rules are for."""
    if keys.transport is not None:
        return keys.transport
    if any(rule.topic for rule in keys.mappings):
        return Transport.MQTT
    return Transport.SERIAL if keys.lines or keys.mappings or keys.console.framing is Framing.VH else Transport.NONE


def _entries(written: Plain, key: str) -> list[Plain]:
    entries = written.get(key) if isinstance(written, dict) else None
    return entries if isinstance(entries, list) else []


def _check_mapping(rule: MappingKeys, at: Path, found: Findings) -> None:
    slots = tuple(name for name in rule.fields if rule.kind is ObservationKind.INTENT and name.startswith(SLOT))
    _check_fields(rule.kind, tuple(name for name in rule.fields if name not in slots), at, found)
    if (rule.topic is None) == (rule.type is None):
        remedy = "Write `topic` for MQTT, or `type` for lines of JSON"
        found.add(at, "a mapping has a topic or a type, one of the two", remedy, key=True)
    captured = _PLACEHOLDER.findall(rule.type or "")
    _check_fields(rule.kind, tuple(captured), at, found, under="type")
    if rule.match is not None:
        if rule.type is not None:
            found.add((*at, "match"), "`match` is for text, and `type` for JSON", "Remove one of them", key=True)
        _check_groups(rule, (rule.match,), at, found)
        if rule.when:
            found.add((*at, "when"), "`when` looks into JSON, and `match` into text", "Remove one of them", key=True)
    for name, pointer in rule.fields.items() if rule.match is None else ():
        if not is_pointer(pointer):
            found.add((*at, "fields", name), f"{pointer!r} is not a JSON pointer", POINTER_REMEDY)
    needed = REQUIRED.get(rule.kind)
    if needed and rule.match is None and (rule.fields or rule.type) and needed not in {*rule.fields, *captured}:
        remedy = f"Add `{needed}: /pointer` to its fields"
        found.add(at, f"a mapping of kind {rule.kind.value} does not say where {needed!r} is", remedy)
    _check_values(rule.kind, rule.values, at, found)


def _check_line(rule: LineKeys, at: Path, found: Findings) -> None:
    _check_fields(rule.kind, tuple(rule.fields), at, found)
    _check_values(rule.kind, rule.values, at, found)
    groups = _check_groups(rule, (rule.match, *rule.more), at, found)
    for group in rule.when:
        if group not in groups:
            what, remedy = f"no expression has a group {group!r}", nearest(group, sorted(groups), listed="Groups")
            found.add((*at, "when", group), what, remedy, key=True)
    if rule.kind is ObservationKind.STATUS and not rule.values and "{" not in (state := rule.fields.get("state", "{")):
        _check_state(state, (*at, "fields", "state"), found)
    if (rule.clock is not ClockKind.NONE) != ("time" in regex.compile(rule.match).groupindex):
        remedy = "Write (?P<time>…) in `match`, and `clock: ms` or another one"
        found.add(at, "a group `time` and `clock` go together", remedy)
    if rule.until is not None and not rule.more:
        found.add((*at, "until"), "`until` is for rules with `more`", "Add `more`, or remove it", key=True)
    if rule.block is not None and not any(
        {"phrase", "score"} <= set(regex.compile(one).groupindex) for one in rule.more
    ):
        remedy = "Write an expression with (?P<phrase>…) and (?P<score>…) under `more`"
        found.add((*at, "block"), "nothing in `more` gives a phrase with its score", remedy, key=True)


def _check_groups(rule: LineKeys | MappingKeys, expressions: Sequence[str], at: Path, found: Findings) -> set[str]:
    """The groups of the expressions; notes fields that name another one, and a field that is needed and not given."""
    groups = {name for text in expressions for name in regex.compile(text).groupindex}
    for name, template in rule.fields.items():
        for group in _PLACEHOLDER.findall(template):
            if group not in groups:
                what, remedy = f"no expression has a group {group!r}", nearest(group, sorted(groups), listed="Groups")
                found.add((*at, "fields", name), what, remedy)
    needed = REQUIRED.get(rule.kind)
    if needed and needed not in groups and needed not in rule.fields:
        remedy = f"Name a group (?P<{needed}>…), or write `fields: {{{needed}: …}}`"
        found.add(at, f"a line of kind {rule.kind.value} does not say what {needed!r} is", remedy)
    return groups


def _check_fields(
    kind: ObservationKind, names: tuple[str, ...], at: Path, found: Findings, under: str = "fields"
) -> None:
    allowed = FIELDS[kind]
    for name in names:
        if name not in allowed:
            what = f"an observation of kind {kind.value} has no field {name!r}"
            where = (*at, under, name) if under == "fields" else (*at, under)
            found.add(where, what, nearest(name, allowed, listed="Fields"), key=under == "fields")


def _check_values(kind: ObservationKind, values: dict[str, str], at: Path, found: Findings) -> None:
    if values and kind not in _NAMED:
        what = f"values are for kind status, wake, intent and state, not {kind.value}"
        found.add((*at, "values"), what, "Remove them", key=True)
    elif kind is ObservationKind.STATUS:
        for theirs, ours in values.items():
            _check_state(ours, (*at, "values", theirs), found)


def _check_state(state: str, at: Path, found: Findings) -> None:
    if state not in STATES:
        found.add(at, f"{state!r} is not a word for this", nearest(state, STATES))


def _check_sample(sample: SampleKeys, at: Path, found: Findings) -> None:
    ways = [bool(sample.lines) or sample.bytes is not None, sample.topic is not None]
    if sum(ways) != 1:
        found.add(at, "a sample is console text or a message", "Write `lines` (or `bytes`), or `topic` with `payload`")
    for number, one in enumerate(sample.gives):
        _check_gives(one, (*at, "gives", number), found)


def _check_gives(one: GivesKeys, at: Path, found: Findings) -> None:
    allowed = (*FIELDS[one.kind], "device_s")
    for name in one.model_fields_set - {"kind"}:
        if name not in allowed:
            what = f"an observation of kind {one.kind.value} has no field {name!r}"
            found.add((*at, name), what, nearest(name, allowed, listed="Fields"), key=True)

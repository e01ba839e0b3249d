"""A profile's mappings applied to a message: bytes in, observations out; no I/O and no clock."""

from __future__ import annotations

import ast
import contextlib
import functools
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from types import MappingProxyType

import regex

from harness.base.foreign import strip_terminal_codes
from harness.base.plain_json import refuse_constant
from harness.devices.wire.lines import (
    FIELDS,
    LINE_ENDS,
    REQUIRED,
    SLOT,
    LineFields,
    MappingError,
    observation,
    observation_of_lines,
    scaled_score,
)
from harness.devices.wire.thresholds import SEARCH_LIMIT_S
from harness.model.bench import LineMapping, MessageMapping, PlainValue
from harness.model.observation import LogLine, Observation
from harness.model.time import Stamp

MAX_PAYLOAD_BYTES = 65536
ANYTHING = "*"
"""Stands for any value in `when`."""
_MAX_SHOWN_BYTES = 300
_MAX_TYPE_CHARS = 1000  # Chosen: far above real ones. Patterns take quadratic time, which is a stall for 60,000.
_PRINTED_EVENT = re.compile(r"\bEvent\(type='(?P<type>(?!detection')[\w-]+)', data=(?P<data>\{.*\}), payload=")
"""A Wyoming event in the log of a program, except a detection, which has a line of its own."""
_OBJECT_START = re.compile(r'\{\s*(?:"|\}\s*$)')
"""The beginning of a JSON object, or an empty one at the end of a line. Other braces are text."""
_TYPE_WILDCARD = re.compile(r"\*|\{(\w+)\}")


FILTER_REMEDY = "Use + for one whole level, and # at the end for all remaining levels"


def is_topic_filter(text: str) -> bool:
    """Whether a text is a filter for topics (MQTT 3.1.1, 4.7)."""
    *levels, last = text.split("/")
    parts = [level for level in levels if level != "+"] + ([] if last in ("+", "#") else [last])
    return bool(text) and not any(set(part) & set("+#") for part in parts)


def topic_matches(topic_filter: str, topic: str) -> bool:
    """Whether an MQTT filter matches a topic (MQTT 3.1.1, 4.7): `+` is one level, `#` the rest, `$…` must be named."""
    filter_levels, levels = topic_filter.split("/"), topic.split("/")
    if topic.startswith("$") and filter_levels[0] in ("#", "+"):
        return False
    for position, level in enumerate(filter_levels):
        if level == "#":
            return True
        if position >= len(levels) or level not in ("+", levels[position]):
            return False
    return len(filter_levels) == len(levels)


def without_covered(filters: Iterable[str]) -> tuple[str, ...]:
    """The filters without those whose messages another one also matches: a broker may deliver such a message twice."""
    needed: list[str] = []
    for topic_filter in sorted(filters):
        if not any(_covers(other, topic_filter) for other in needed):
            needed = [other for other in needed if not _covers(topic_filter, other)] + [topic_filter]
    return tuple(needed)


def _covers(wide: str, narrow: str) -> bool:
    """Whether the filter `wide` matches every topic that `narrow` matches."""
    return topic_matches(wide, narrow) and (wide.endswith("#") or not narrow.endswith("#"))


def for_device(mappings: Iterable[MessageMapping], device: str) -> tuple[MessageMapping, ...]:
    """The mappings with {device} of their topics filled in."""
    return tuple(replace(mapping, topic=mapping.topic.replace("{device}", device)) for mapping in mappings)


def parse_json(payload: bytes) -> PlainValue:
    """The payload as JSON. Raises MappingError when it is too long, not UTF-8, or not JSON."""
    if len(payload) > MAX_PAYLOAD_BYTES:
        raise MappingError(f"{len(payload)} bytes are more than {MAX_PAYLOAD_BYTES}")
    try:
        document: PlainValue = json.loads(payload.decode("utf-8"), parse_constant=refuse_constant)
        if b"\\ud" in payload.lower():
            document = _without_half_characters(document)
    except UnicodeDecodeError as error:
        raise MappingError("not UTF-8") from error
    except (ValueError, RecursionError) as error:
        raise MappingError("not JSON") from error
    return document


def _without_half_characters(document: PlainValue) -> PlainValue:
    """A document with "?" for each half of a surrogate pair, such as an emoji that a device cut. No log can store it.

    Raises TypeError for anything but JSON.
    """
    plain: PlainValue = json.loads(json.dumps(document, ensure_ascii=False).encode("utf-8", "replace"))
    return plain


def resolve_pointer(document: PlainValue, pointer: str) -> PlainValue:
    """The value at a JSON pointer (RFC 6901). "" is the whole document. Raises MappingError when it is missing."""
    value = document
    for step in pointer.split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and key in value:
            value = value[key]
        elif isinstance(value, list) and key.isascii() and key.isdigit() and int(key) < len(value):
            value = value[int(key)]
        else:
            raise MappingError(f"nothing at {pointer}")
    return value


def observations(
    mappings: Sequence[MessageMapping], topic: str, payload: bytes, stamp: Stamp, source: str
) -> tuple[Observation, ...]:
    """The observations for a message: one per matching rule, in the profile's order; then one per console line.

    An unmapped message becomes one LogLine with the reason; nothing raises. In topics of the rules, {device} must be
    replaced already. A payload that is not JSON is text for rules that use the whole payload.
    """
    mapped: list[Observation] = []
    reasons: list[str] = []
    document: PlainValue = None
    json_error = ""
    try:
        document = parse_json(payload)
    except MappingError as error:
        json_error = str(error)
    for mapping in mappings:
        if mapping.of_line or not topic_matches(mapping.topic, topic):
            continue
        try:
            uses_whole_payload = not mapping.when and all(pointer == "" for _, pointer in mapping.fields)
            if mapping.match:
                result = _search_text((mapping,), payload, stamp, source)
            elif json_error and not (uses_whole_payload and json_error == "not JSON"):
                raise MappingError(json_error)
            else:
                result = _observation(mapping, payload.decode("utf-8") if json_error else document, stamp, source)
        except MappingError as error:
            reasons.append(str(error))
        else:
            if result is not None:
                mapped.append(result)
    line_rules = [mapping for mapping in mappings if mapping.of_line and topic_matches(mapping.topic, topic)]
    for line in filter(None, LINE_ENDS.split(payload)) if line_rules else ():
        try:
            if (result := _search_text(line_rules, line, stamp, source)) is not None:
                mapped.append(result)
        except MappingError as error:
            reasons.append(str(error))
    if mapped:
        return tuple(mapped)
    why = f" ({reasons[0]})" if reasons else ""
    return (LogLine(source, stamp, f"{topic}: {show_payload(payload)}{why}"),)


def message_of(line: str) -> dict[str, PlainValue] | None:
    """The JSON object at the end of a line, after any text of a log; or an event as Python prints it. None without."""
    if "{" not in line:
        return None
    if (printed := _PRINTED_EVENT.search(line)) is not None:
        return _parse_printed(printed["type"], printed["data"])
    start = _OBJECT_START.search(line)
    if start is None or not line.rstrip().endswith("}"):
        return None
    try:
        document = parse_json(line[start.start() :].encode("utf-8"))
    except MappingError:
        return None
    return document if isinstance(document, dict) else None


def _parse_printed(type: str, data: str) -> dict[str, PlainValue] | None:
    """An event that Python printed, as the JSON object that it stands for; None if its data are not a mapping."""
    try:
        literal = ast.literal_eval(data)  # texts, numbers, lists and mappings alone
        if "\\ud" in data.lower():
            literal = _without_half_characters(literal)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
    return {"type": type, "data": literal} if isinstance(literal, dict) else None


def observation_by_type(
    mappings: Iterable[MessageMapping], message: dict[str, PlainValue], stamp: Stamp, source: str
) -> tuple[int, Observation] | str:
    """The number of the first rule that matches a message of its type, and the observation; otherwise the reason."""
    kind = message.get("type", "")
    is_usable_type = isinstance(kind, str) and len(kind) <= _MAX_TYPE_CHARS
    reasons: list[str] = []
    for number, mapping in enumerate(mappings):
        match = _type_pattern(mapping.type).fullmatch(str(kind)) if is_usable_type else None
        if match is None:
            continue
        try:
            result = _observation(mapping, message, stamp, source, match.groupdict())
        except MappingError as error:
            reasons.append(str(error))
        else:
            if result is not None:
                return number, result
    return reasons[0] if reasons else ""


@functools.lru_cache(maxsize=256)
def _type_pattern(text: str) -> re.Pattern[str]:
    """The expression for a type in which `*` matches any text, and {name} captures it."""
    parts, end = [], 0
    for wildcard in _TYPE_WILDCARD.finditer(text):
        parts += [re.escape(text[end : wildcard.start()]), f"(?P<{wildcard[1]}>.+?)" if wildcard[1] else ".*?"]
        end = wildcard.end()
    return re.compile("".join([*parts, re.escape(text[end:])]), re.DOTALL)


def show_payload(payload: bytes) -> str:
    """The beginning of a payload as text; invalid UTF-8 is kept as escapes."""
    text = payload[:_MAX_SHOWN_BYTES].decode("utf-8", errors="backslashreplace")
    return text if len(payload) <= _MAX_SHOWN_BYTES else f"{text}… ({len(payload)} bytes)"


def _observation(
    mapping: MessageMapping,
    document: PlainValue,
    stamp: Stamp,
    source: str,
    captured: Mapping[str, str] = MappingProxyType({}),
) -> Observation | None:
    """The observation for a message; None when a condition of the rule does not hold.

    captured: fields that the message's type gives.
    """
    for pointer, expected in mapping.when:
        try:
            if not _is_expected(resolve_pointer(document, pointer), expected):
                return None
        except MappingError:
            return None
    fields = dict(mapping.fields)
    required_field = REQUIRED.get(mapping.kind)

    def text(name: str) -> str:
        """Value of a field, empty for null. Without a pointer: the captured text, or the payload if it is required."""
        if name in captured and name not in fields:
            return captured[name]
        pointer = fields.get(name, "" if name == required_field else None)
        try:
            return "" if pointer is None else _field_text(resolve_pointer(document, pointer))
        except MappingError:
            if name in (required_field, "value"):
                raise
            return ""  # the rest of the message still counts

    texts = {name: text(name) for name in FIELDS[mapping.kind] if name != "slots"}
    slots = _slots(document, fields["slots"]) if "slots" in fields else ()
    slots += _named_slots(document, fields)
    score = scaled_score(texts.get("score", ""), mapping.score_scale)
    return observation(mapping, texts, stamp, source, slots=slots, score=score)


def _search_text(mappings: Iterable[MessageMapping], payload: bytes, stamp: Stamp, source: str) -> Observation | None:
    """Searches a text payload for the rules' expressions, like a console line: the first that matches is applied.

    None without a match.
    """
    if len(payload) > MAX_PAYLOAD_BYTES:
        raise MappingError(f"{len(payload)} bytes are more than {MAX_PAYLOAD_BYTES}")
    text = strip_terminal_codes(payload.decode("utf-8", errors="backslashreplace"))
    is_slow = False
    for mapping in mappings:
        try:
            match = regex.compile(mapping.match).search(text, timeout=SEARCH_LIMIT_S)
        except TimeoutError:
            is_slow = True
            continue
        if match is not None:
            scale = mapping.score_scale
            rule = LineMapping(mapping.match, mapping.kind, mapping.fields, mapping.values, score_scale=scale)
            return observation_of_lines(rule, LineFields().with_match(match), stamp, source)
    if is_slow:
        raise MappingError("the search took too long")
    return None


def _is_expected(value: PlainValue, expected: str) -> bool:
    """Whether a value is the one of a condition: numbers are compared by value (1 is 1.0), others as text."""
    if expected == ANYTHING or _as_text(value) == expected:
        return True
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return Decimal(str(value)) == Decimal(expected)
    except InvalidOperation:
        return False


def _as_text(value: PlainValue) -> str:
    """A value as text: texts unchanged, all others as JSON."""
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int() | float():
            return str(value)
        case None:
            return "null"
        case _:
            try:
                return json.dumps(value, ensure_ascii=False)
            except RecursionError as error:
                raise MappingError("it is nested too deeply") from error


def _field_text(value: PlainValue) -> str:
    """The text of a value, empty for null."""
    return "" if value is None else _as_text(value)


def _slots(document: PlainValue, pointer: str) -> tuple[tuple[str, str], ...]:
    """Slots as an object, name: value, or as a list of objects with slotName (or name, entity) and value (Hermes)."""
    try:
        slots = resolve_pointer(document, pointer)
    except MappingError:
        return ()  # an intent without slots
    match slots:
        case None:
            return ()
        case dict():
            return tuple((name, _slot_value(slot)) for name, slot in slots.items())
        case list():
            return tuple(_slot(slot) for slot in slots)
    raise MappingError("the slots are neither an object nor a list")


def _named_slots(document: PlainValue, fields: dict[str, str]) -> tuple[tuple[str, str], ...]:
    """Slots that a rule names one by one, slot_NAME: /pointer; missing ones are omitted."""
    slots: list[tuple[str, str]] = []
    for name, pointer in fields.items():
        if name.startswith(SLOT):
            with contextlib.suppress(MappingError):
                slots.append((name.removeprefix(SLOT), _slot_value(resolve_pointer(document, pointer))))
    return tuple(slots)


def _slot(value: PlainValue) -> tuple[str, str]:
    """Name and value of a slot in a list. Raises MappingError if it has no name."""
    if isinstance(value, dict):
        for key in ("slotName", "name", "entity"):
            if isinstance(name := value.get(key), str):
                return name, _slot_value(value.get("value"))
    raise MappingError("a slot has no name")


def _slot_value(value: PlainValue) -> str:
    """The value itself, or the value in Hermes' {kind, value}; empty for null."""
    return _field_text(value["value"] if isinstance(value, dict) and "value" in value else value)

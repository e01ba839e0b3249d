"""Device profiles: found by id or path, read, checked as a whole, and made the model's DeviceProfile."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import regex

from harness.base import findings as kinds
from harness.base import strict_yaml
from harness.base.findings import Findings, attempt, nearest
from harness.base.findings import KeyPath as At
from harness.base.places import shipped_folder
from harness.base.strict_yaml import Plain
from harness.devices.profiles.keys import (
    FIELDS,
    POINTER_REMEDY,
    REQUIRED,
    FramesKeys,
    GivesKeys,
    LineKeys,
    MappingKeys,
    ProfileKeys,
    SampleKeys,
    is_pointer,
)
from harness.devices.wire.lines import SLOT
from harness.model.bench import (
    AudioInput,
    BinaryFrames,
    ClockKind,
    ConsoleSettings,
    DeviceProfile,
    Framing,
    LineMapping,
    MessageMapping,
    ObservationKind,
    Sample,
    ScoreBlock,
)
from harness.model.choices import FileKind
from harness.model.errors import InputError
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


def transport_of(keys: ProfileKeys) -> str:
    """As written; else what the rules are for."""
    if keys.transport is not None:
        return keys.transport
    if any(rule.topic for rule in keys.mappings):
        return "mqtt"
    return "serial" if keys.lines or keys.mappings or keys.console.framing is Framing.VH else "none"


def _entries(written: Plain, key: str) -> list[Plain]:
    entries = written.get(key) if isinstance(written, dict) else None
    return entries if isinstance(entries, list) else []


def _check_mapping(rule: MappingKeys, at: At, found: Findings) -> None:
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


def _check_line(rule: LineKeys, at: At, found: Findings) -> None:
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


def _check_groups(rule: LineKeys | MappingKeys, expressions: Sequence[str], at: At, found: Findings) -> set[str]:
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
    kind: ObservationKind, names: tuple[str, ...], at: At, found: Findings, under: str = "fields"
) -> None:
    allowed = FIELDS[kind]
    for name in names:
        if name not in allowed:
            what = f"an observation of kind {kind.value} has no field {name!r}"
            where = (*at, under, name) if under == "fields" else (*at, under)
            found.add(where, what, nearest(name, allowed, listed="Fields"), key=under == "fields")


def _check_values(kind: ObservationKind, values: dict[str, str], at: At, found: Findings) -> None:
    if values and kind not in _NAMED:
        what = f"values are for kind status, wake, intent and state, not {kind.value}"
        found.add((*at, "values"), what, "Remove them", key=True)
    elif kind is ObservationKind.STATUS:
        for theirs, ours in values.items():
            _check_state(ours, (*at, "values", theirs), found)


def _check_state(state: str, at: At, found: Findings) -> None:
    if state not in STATES:
        found.add(at, f"{state!r} is not a word for this", nearest(state, STATES))


def _check_sample(sample: SampleKeys, at: At, found: Findings) -> None:
    ways = [bool(sample.lines) or sample.bytes is not None, sample.topic is not None]
    if sum(ways) != 1:
        found.add(at, "a sample is console text or a message", "Write `lines` (or `bytes`), or `topic` with `payload`")
    for number, one in enumerate(sample.gives):
        _check_gives(one, (*at, "gives", number), found)


def _check_gives(one: GivesKeys, at: At, found: Findings) -> None:
    allowed = (*FIELDS[one.kind], "device_s")
    for name in one.model_fields_set - {"kind"}:
        if name not in allowed:
            what = f"an observation of kind {one.kind.value} has no field {name!r}"
            found.add((*at, name), what, nearest(name, allowed, listed="Fields"), key=True)


_ESCAPE = re.compile(rb"\\(e|x[0-9a-fA-F]{2})")


def load_profile(path_or_id: Path | str, *, beside: Path) -> DeviceProfile:
    """The profile of a file, or of that id; InputProblems, or InputError when there is none or it is not even YAML.

    A text without / and without .yaml is an id. It is looked for as ID.yaml in `beside`, in devices/ of `beside` and
    of each folder above it, in devices/ of the installed project, and in devices/ of the current folder. A relative
    path starts at `beside`.
    """
    path = find_profile(path_or_id, beside=beside)
    content = strict_yaml.read_bytes(path)
    tree = strict_yaml.parse(content, str(path))
    kinds.expect(FileKind.DEVICE, tree, str(path))
    found = Findings(str(path), tree)
    # A payload is the device's own JSON, in which null says something.
    found.refuse_empty(tree, lambda at: len(at) > 3 and at[0] == "samples" and at[2] == "payload")
    written = tree.plain()
    found.check(ProfileKeys, written)
    check_rules(written, found)
    found.refuse()
    keys = ProfileKeys.model_validate(written)
    check_whole(keys, found)
    found.refuse()
    return DeviceProfile(
        id=keys.device,
        title=keys.title or keys.device,
        path=str(path.absolute()),
        sha256=hashlib.sha256(content).hexdigest(),
        wake_phrases=tuple(keys.wake_phrases),
        language=keys.language,
        reports=frozenset(keys.reports),
        mappings=tuple(_mapping(rule) for rule in keys.mappings if rule.topic),
        messages=tuple(_mapping(rule) for rule in keys.mappings if rule.type),
        context_wait_s=keys.context_wait_s,
        close_dialogue_say=keys.close_dialogue.say if keys.close_dialogue else None,
        note=keys.note,
        listening_states=frozenset(keys.listening_states),
        responds=keys.responds,
        transport=transport_of(keys),
        lines=tuple(_line(rule) for rule in keys.lines),
        console=ConsoleSettings(**{**keys.console.model_dump(), "time": keys.console.time or ""}),
        frames=_frames(keys.frames) if keys.frames else None,
        audio=AudioInput(keys.audio.dialogue, keys.audio.rate_hz, keys.audio.topic) if keys.audio else None,
        samples=tuple(
            _sample(one, keys.device, found.place(("samples", number)).line) for number, one in enumerate(keys.samples)
        ),
    )


def profile_paths(beside: Path) -> dict[str, Path]:
    """The files of all profiles that can be named by id from there: id → path, in alphabetical order."""
    known: dict[str, Path] = {}
    for folder in _folders(beside):
        for path in sorted(folder.glob("*.yaml")):
            if path.name.endswith(kinds.SAMPLES):
                continue
            if path.stem not in known and (folder != beside or _is_profile(path)):
                known[path.stem] = path
    return dict(sorted(known.items()))


def find_profile(path_or_id: Path | str, *, beside: Path) -> Path:
    """The file of a profile, which need not be right; InputError (without a place) when there is none."""
    text = str(path_or_id)
    if isinstance(path_or_id, Path) or "/" in text or text.endswith((".yaml", ".yml")):
        path = beside / text
        if not path.is_file():
            raise InputError(f"there is no device profile {text!r}", remedy=f"Write the path relative to {beside}")
        return path
    known = profile_paths(beside)
    if text not in known:
        raise InputError(
            f"no device profile is called {text!r}", remedy=nearest(text, sorted(known), listed="Profiles found")
        )
    return known[text]


def _folders(beside: Path) -> Iterator[Path]:
    yield beside
    absolute = beside.absolute()
    for folder in (absolute, *absolute.parents):
        yield folder / "devices"
    yield shipped_folder("devices")
    yield Path.cwd() / "devices"


def _is_profile(path: Path) -> bool:
    """Whether a file beside the bench is a profile, and not a bench or a scenario of the same name."""
    try:
        return strict_yaml.first_key(strict_yaml.read_bytes(path)) == "device"
    except InputError:
        return False


def _mapping(rule: MappingKeys) -> MessageMapping:
    return MessageMapping(
        topic=rule.topic or "",
        kind=rule.kind,
        fields=tuple(rule.fields.items()),
        values=tuple(rule.values.items()),
        when=tuple((at, value if isinstance(value, str) else json.dumps(value)) for at, value in rule.when.items()),
        score_scale=rule.score_scale,
        match=rule.match or "",
        type=rule.type or "",
    )


def _line(rule: LineKeys) -> LineMapping:
    block = rule.block
    return LineMapping(
        match=rule.match,
        kind=rule.kind,
        fields=tuple(rule.fields.items()),
        values=tuple(rule.values.items()),
        when=tuple(rule.when.items()),
        score_scale=rule.score_scale,
        clock=rule.clock,
        more=tuple(rule.more),
        until=rule.until or "",
        within_lines=rule.within_lines,
        within_s=rule.within_s,
        block=ScoreBlock(block.threshold, tuple(block.ignore)) if block else None,
    )


def _frames(keys: FramesKeys) -> BinaryFrames:
    head, tail = bytes.fromhex(keys.head), bytes.fromhex(keys.tail or "")
    return BinaryFrames(**{**keys.model_dump(), "head": head, "tail": tail})


def _sample(keys: SampleKeys, device: str, line: int) -> Sample:
    payload = keys.payload if isinstance(keys.payload, str) else json.dumps(keys.payload, ensure_ascii=False)
    lines = tuple(unescaped(one) + b"\n" for one in keys.lines)
    return Sample(
        lines=(*lines, bytes.fromhex(keys.bytes)) if keys.bytes else lines,
        topic=(keys.topic or "").replace("{device}", device),
        payload=payload.encode(),
        gives=tuple(one.model_dump(mode="json", exclude_unset=True) for one in keys.gives),
        line=line,
    )


def unescaped(text: str) -> bytes:
    """The bytes of a sample's line: \\e is ESC, \\x00 a byte, all else UTF-8."""
    return _ESCAPE.sub(lambda one: b"\x1b" if one[1] == b"e" else bytes.fromhex(one[1][1:].decode()), text.encode())

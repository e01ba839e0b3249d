"""Finds device profiles by id or path, reads and checks them, and builds the model's DeviceProfile."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import regex

from harness.base import findings as kinds
from harness.base import strict_yaml
from harness.base.findings import Findings, KeyPath, list_in, read_content, try_validate
from harness.base.places import shipped_folder
from harness.base.strict_yaml import Plain
from harness.devices.profiles.keys import (
    POINTER_REMEDY,
    AudioKeys,
    FramesKeys,
    HeartbeatKeys,
    LineKeys,
    MappingKeys,
    ProfileKeys,
    SampleKeys,
    ThresholdKeys,
    is_pointer,
)
from harness.devices.wire.lines import FIELDS, REQUIRED, SLOT
from harness.devices.wire.tflm import RATE_HZ as TFLM_RATE_HZ
from harness.model.bench import (
    AudioDialogue,
    AudioInput,
    BinaryFrames,
    ClockKind,
    ConsoleSettings,
    DeviceProfile,
    Framing,
    Heartbeat,
    LevelState,
    LineMapping,
    MessageMapping,
    ObservationKind,
    Sample,
    ScoreBlock,
    Threshold,
)
from harness.model.choices import FileKind
from harness.model.errors import InputError, did_you_mean, nearest
from harness.model.numbers import exact
from harness.model.observation import DeviceState

STATES = tuple(state.value for state in DeviceState)
_KINDS_WITH_VALUES = (ObservationKind.STATUS, ObservationKind.WAKE, ObservationKind.INTENT, ObservationKind.STATE)
_KINDS_IN_FRAMES = (ObservationKind.WAKE, ObservationKind.TRANSCRIPT, ObservationKind.INTENT, ObservationKind.RESPONSE)
"""The kinds of events that the harness's framing reports in frames."""
_PLACEHOLDER = re.compile(r"\{(\w*)\}")
_GROUP_REFERENCE = r"\(\?P[=>]{0}\)|\\g<{0}>|\(\?&{0}\)|\(\?\({0}\)"
"""A reference to a group within its own expression, so that the group is used even if no field has its name."""
_MIN_SIMILARITY = 0.75
"""Least similarity of a misspelt name, by difflib's ratio: two swapped letters in a word of four."""


def check_rules(content: Mapping[str, Plain], findings: Findings) -> None:
    """Adds the problems of each mapping, line rule and sample whose keys are valid."""
    for number, entry in enumerate(list_in(content, "mappings")):
        if mapping := try_validate(MappingKeys, entry):
            _check_mapping(mapping, ("mappings", number), findings)
    for number, entry in enumerate(list_in(content, "lines")):
        if line := try_validate(LineKeys, entry):
            _check_line(line, ("lines", number), findings)
    for number, entry in enumerate(list_in(content, "thresholds")):
        if threshold := try_validate(ThresholdKeys, entry):
            _check_threshold(threshold, ("thresholds", number), findings)
    for number, entry in enumerate(list_in(content, "samples")):
        if sample := try_validate(SampleKeys, entry):
            _check_sample(sample, ("samples", number), findings)


def check_whole(keys: ProfileKeys, findings: Findings, lines_of: Sequence[DeviceProfile] = ()) -> None:
    """Adds contradictions between the sections of a profile. lines_of: the profiles whose line rules it shares."""
    is_framed = keys.console.framing is Framing.VH
    given_kinds = {rule.kind for rule in keys.mappings} | {rule.kind for rule in keys.lines}
    for profile in lines_of:
        given_kinds |= {rule.kind for rule in profile.lines} | {rule.kind for rule in profile.messages}
    if ObservationKind.NOT_UNDERSTOOD in given_kinds:
        given_kinds.add(ObservationKind.INTENT)  # it counts as an intent without a name
    for number, kind in enumerate(keys.reports):
        if given_kinds and kind not in given_kinds and not is_framed:
            remedy = f"Add a rule of kind {kind.value}, or remove it from `reports`"
            findings.add(("reports", number), f"`reports` lists {kind.value!r}, but no rule gives it", remedy)
    reports_no_status = bool(given_kinds) and ObservationKind.STATUS not in given_kinds and not is_framed
    if keys.listening_states and reports_no_status:
        remedy = "Add a rule of kind status, or remove `listening_states`"
        findings.add(("listening_states",), "`listening_states` needs a rule of kind status", remedy, key=True)
    console = keys.console
    for number, rule in enumerate(keys.lines):
        if is_framed and rule.kind in _KINDS_IN_FRAMES:
            problem = f"with `framing: vh`, frames report the same {rule.kind.value} events, so each would count twice"
            remedy = "Remove the rule. For a board that only prints lines, remove `framing: vh`"
            findings.add(("lines", number), problem, remedy)
    if (console.time is None) != (console.clock is ClockKind.NONE):
        single_key = "clock" if console.time is None else "time"
        findings.add(
            ("console", single_key), "`time` and `clock` are needed together", "Set both keys, or neither", key=True
        )
    elif console.time is not None and "time" not in regex.compile(console.time).groupindex:
        findings.add(("console", "time"), "the expression has no group `time`", "Add (?P<time>…) to the expression")
    if (frames := keys.frames) and frames.body_from < len(bytes.fromhex(frames.head)):
        findings.add(
            ("frames", "body_from"),
            "`body_from` lies inside the head",
            "Count `body_from` from the first byte of the head",
        )
    if keys.thresholds and console.topic:
        problem = "thresholds read lines only, not the messages of `console: {topic: …}`"
        remedy = "Read the messages as lines: `driver: command`, `command: [mosquitto_sub, -t, TOPIC]`"
        findings.add(("thresholds",), problem, remedy, key=True)
    if keys.audio:
        _check_audio(keys.audio, findings)
    for number, sample in enumerate(keys.samples):
        if sample.topic is not None and not (console.topic or any(rule.topic for rule in keys.mappings)):
            remedy = "Add `mappings` to the profile, or use `lines` in the sample"
            findings.add(
                ("samples", number, "topic"),
                "the sample is a message, but the profile has no `mappings`",
                remedy,
                key=True,
            )


def _check_audio(audio: AudioKeys, findings: Findings) -> None:
    """Adds keys that the dialogue does not use. A driver of its own may use all of them."""
    dialogue, has_id = audio.dialogue, "{id}" in audio.topic
    plays_files = dialogue is AudioDialogue.HERMES_SPEAKER
    if audio.topic and dialogue in (AudioDialogue.VH, AudioDialogue.TFLM):
        findings.add(("audio", "topic"), f"{dialogue.value} has no `topic`", "Remove `topic`", key=True)
    elif audio.topic and has_id is not plays_files and dialogue is not AudioDialogue.DRIVER:
        problem = f"a topic of {dialogue.value} {'needs' if plays_files else 'has no'} {{id}}, the id of a WAV file"
        findings.add(("audio", "topic"), problem, "Use {id} for hermes_play_bytes only")
    if dialogue is AudioDialogue.TFLM and audio.rate_hz != TFLM_RATE_HZ:
        remedy = f"Set rate_hz: {TFLM_RATE_HZ}"
        findings.add(("audio", "rate_hz"), f"{dialogue.value} supports {TFLM_RATE_HZ} Hz only", remedy)


def transport_of(keys: ProfileKeys) -> str:
    """The transport that the profile names, otherwise the one that its rules are for."""
    if keys.transport is not None:
        return keys.transport
    if keys.console.topic or any(rule.topic for rule in keys.mappings):
        return "mqtt"
    rules = keys.lines or keys.lines_of or keys.mappings or keys.thresholds
    return "serial" if rules or keys.console.framing is Framing.VH else "none"


def _check_mapping(rule: MappingKeys, key_path: KeyPath, findings: Findings) -> None:
    slots = tuple(name for name in rule.fields if rule.kind is ObservationKind.INTENT and name.startswith(SLOT))
    _check_fields(rule.kind, tuple(name for name in rule.fields if name not in slots), key_path, findings)
    if (rule.topic is None) == (rule.type is None):
        remedy = "Add `topic` for MQTT, or `type` for JSON lines"
        findings.add(key_path, "a mapping needs either a `topic` or a `type`", remedy, key=True)
    captured = _PLACEHOLDER.findall(rule.type or "")
    for name in sorted({name for name in captured if captured.count(name) > 1}):
        findings.add((*key_path, "type"), f"the type captures {name!r} twice", "Capture it once; * matches any text")
    _check_fields(rule.kind, tuple(captured), key_path, findings, section="type")
    if rule.match is not None:
        if rule.type is not None:
            findings.add(
                (*key_path, "match"),
                "`match` is for text, and `type` is for JSON",
                "Remove one of the two keys",
                key=True,
            )
        _check_groups(rule, (rule.match,), key_path, findings)
        if rule.when:
            findings.add(
                (*key_path, "when"),
                "`when` is for JSON, and `match` is for text",
                "Remove one of the two keys",
                key=True,
            )
    for name, pointer in rule.fields.items():
        if rule.match is None and not is_pointer(pointer):
            findings.add((*key_path, "fields", name), f"{pointer!r} is not a JSON pointer", POINTER_REMEDY)
    required_field = REQUIRED.get(rule.kind)
    if (
        required_field
        and rule.match is None
        and (rule.fields or rule.type)
        and required_field not in {*rule.fields, *captured}
    ):
        remedy = f"Add `{required_field}: /pointer` to `fields`"
        findings.add(key_path, f"a mapping of kind {rule.kind.value} needs the field {required_field!r}", remedy)
    _check_values(rule.kind, rule.values, key_path, findings)


def _check_line(rule: LineKeys, key_path: KeyPath, findings: Findings) -> None:
    _check_fields(rule.kind, tuple(rule.fields), key_path, findings)
    _check_values(rule.kind, rule.values, key_path, findings)
    groups = _check_groups(rule, (rule.match, *rule.more, rule.until or ""), key_path, findings)
    for group in rule.when:
        if group not in groups:
            remedy = nearest(group, sorted(groups), listed="Groups")
            findings.add((*key_path, "when", group), f"no expression has a group {group!r}", remedy, key=True)
    state = rule.fields.get("state")
    if rule.kind is ObservationKind.STATUS and state is not None and not rule.values and "{" not in state:
        _check_state(state, (*key_path, "fields", "state"), findings)
    if (rule.clock is not ClockKind.NONE) != ("time" in regex.compile(rule.match).groupindex):
        remedy = "Add (?P<time>…) to `match`, and set `clock: ms` or another unit"
        key = "match" if rule.clock is ClockKind.NONE else "clock"
        findings.add((*key_path, key), "a group `time` and the key `clock` are needed together", remedy, key=True)
    if rule.until is not None and not rule.more:
        findings.add((*key_path, "until"), "`until` needs `more`", "Add `more`, or remove `until`", key=True)
    if rule.block is not None and not any(
        {"phrase", "score"} <= set(regex.compile(expression).groupindex) for expression in rule.more
    ):
        remedy = "Add an expression with (?P<phrase>…) and (?P<score>…) under `more`"
        findings.add(
            (*key_path, "block"),
            "`block` needs an expression in `more` with the groups `phrase` and `score`",
            remedy,
            key=True,
        )


def _check_threshold(rule: ThresholdKeys, key_path: KeyPath, findings: Findings) -> None:
    groups = set(regex.compile(rule.match).groupindex) if rule.match else None
    used_numbers: set[str] = set()
    for name, state in rule.states.items():
        for number, ends in state.when.items():
            used_numbers.add(number)
            range_path = (*key_path, "states", name, "when", number)
            if groups is not None and number not in groups:
                remedy = nearest(number, sorted(groups), listed="Groups")
                findings.add(range_path, f"`match` has no group {number!r}", remedy, key=True)
            if ends.from_ is None and ends.to is None:
                findings.add(
                    range_path, "the range has neither `from` nor `to`", "Use {from: NUMBER}, {to: NUMBER} or both"
                )
            elif ends.from_ is not None and ends.to is not None and ends.from_ > ends.to and number != "hue":
                problem = f"`from` {exact(ends.from_)} is above `to` {exact(ends.to)}"
                findings.add(range_path, problem, "Swap them; only the range of a hue may wrap past 360")
    if not used_numbers:
        findings.add(
            (*key_path, "states"), "no state has a `when`", "Add STATE: {when: {NUMBER: {from: 500}}}", key=True
        )
    for number in rule.hysteresis:
        if number not in used_numbers:
            remedy = nearest(number, sorted(used_numbers), listed="Numbers")
            findings.add((*key_path, "hysteresis", number), f"no state uses the number {number!r}", remedy, key=True)


def _check_groups(
    rule: LineKeys | MappingKeys, expressions: Sequence[str], key_path: KeyPath, findings: Findings
) -> set[str]:
    """Returns the groups of the expressions. Adds problems: unknown groups in fields, and missing required fields."""
    groups = {name for text in expressions for name in regex.compile(text).groupindex}
    for name, template in rule.fields.items():
        if name == "slots" or (isinstance(rule, MappingKeys) and name.startswith(SLOT)):
            remedy = "Name the groups (?P<slot>…) and (?P<value>…), or (?P<slot_NAME>…)"
            findings.add((*key_path, "fields", name), "an expression gives slots by its groups", remedy, key=True)
        for group in _PLACEHOLDER.findall(template):
            if group not in groups:
                remedy = nearest(group, sorted(groups), listed="Groups")
                findings.add((*key_path, "fields", name), f"no expression has a group {group!r}", remedy)
    _check_unused_groups(rule, groups, key_path, findings)
    required_field = REQUIRED.get(rule.kind)
    if required_field and required_field not in groups and required_field not in rule.fields:
        remedy = f"Name a group (?P<{required_field}>…), or set `fields: {{{required_field}: …}}`"
        findings.add(key_path, f"a rule of kind {rule.kind.value} needs the field {required_field!r}", remedy)
    return groups


def _check_unused_groups(rule: LineKeys | MappingKeys, groups: set[str], key_path: KeyPath, findings: Findings) -> None:
    """Adds the named groups that fill in nothing, and look like a misspelt field that the rule lacks."""
    field_names = [*FIELDS[rule.kind]]
    expressions: list[tuple[KeyPath, str | None]] = [(("match",), rule.match)]
    used_groups = {group for template in rule.fields.values() for group in _PLACEHOLDER.findall(template)}
    if rule.kind is ObservationKind.INTENT:
        field_names = ["name", "score", "slot", "value"]
        used_groups |= {group for group in groups if group.startswith(SLOT)}
    if isinstance(rule, LineKeys):
        field_names.append("time")
        used_groups |= set(rule.when)
        expressions += [*((("more", number), text) for number, text in enumerate(rule.more)), (("until",), rule.until)]
    if not used_groups <= groups:
        return  # a group that is missing is reported where it is named
    lacking = [name for name in field_names if name not in groups and name not in rule.fields]
    for path, text in expressions:
        if not text:
            continue
        for group in regex.compile(text).groupindex:
            is_unused = (
                group not in field_names
                and group not in used_groups
                and not re.search(_GROUP_REFERENCE.format(group), text)
            )
            if is_unused and (suggestion := did_you_mean(group, lacking, alike=_MIN_SIMILARITY)):
                problem = f"a rule of kind {rule.kind.value} does not use the group {group!r}"
                findings.add((*key_path, *path), problem, f"{suggestion}For text that is not kept, write (?:…)")


def _check_fields(
    kind: ObservationKind, names: tuple[str, ...], key_path: KeyPath, findings: Findings, section: str = "fields"
) -> None:
    field_names = FIELDS[kind]
    for name in names:
        if name not in field_names:
            problem = f"an observation of kind {kind.value} has no field {name!r}"
            place = (*key_path, section, name) if section == "fields" else (*key_path, section)
            findings.add(place, problem, nearest(name, field_names, listed="Fields"), key=section == "fields")


def _check_values(kind: ObservationKind, values: dict[str, str], key_path: KeyPath, findings: Findings) -> None:
    if values and kind not in _KINDS_WITH_VALUES:
        problem = f"a rule of kind {kind.value} cannot have `values`; only kinds status, wake, intent and state can"
        findings.add((*key_path, "values"), problem, "Remove `values`", key=True)
    elif kind is ObservationKind.STATUS:
        for device_value, value in values.items():
            _check_state(value, (*key_path, "values", device_value), findings)


def _check_state(state: str, key_path: KeyPath, findings: Findings) -> None:
    if state not in STATES:
        findings.add(key_path, f"{state!r} is not a state", nearest(state, STATES))


def _check_sample(sample: SampleKeys, key_path: KeyPath, findings: Findings) -> None:
    is_console_text = bool(sample.lines) or sample.bytes is not None
    is_message = sample.topic is not None
    if is_console_text == is_message:
        findings.add(
            key_path,
            "a sample needs either console text or a message",
            "Add `lines` (or `bytes`), or `topic` with `payload`",
        )
    for number, observation in enumerate(sample.gives):
        field_names = (*FIELDS[observation.kind], "device_s")
        for name in observation.model_fields_set - {"kind"}:
            if name not in field_names:
                problem = f"an observation of kind {observation.kind.value} has no field {name!r}"
                findings.add(
                    (*key_path, "gives", number, name), problem, nearest(name, field_names, listed="Fields"), key=True
                )


_ESCAPE = re.compile(rb"\\(e|x[0-9a-fA-F]{2})")


def _is_in_payload(key_path: KeyPath) -> bool:
    """Whether the value is in a payload: the device's own JSON, in which null is allowed."""
    return len(key_path) > 3 and key_path[0] == "samples" and key_path[2] == "payload"


def load_profile(path_or_id: Path | str, *, beside: Path, named_by: str = "") -> DeviceProfile:
    """Loads a profile by path or id. Raises InputError when it is missing or not YAML, else InputProblems.

    A text without / and without .yaml is an id. The harness searches for ID.yaml in `beside`, then in devices/ of
    `beside` and of each folder above it. The installed project's devices/ and the current folder's follow.
    A relative path starts at `beside`. named_by: the profile that includes this one's line rules; "" if none does.
    """
    path = find_profile(path_or_id, beside=beside)
    sha256, content, findings = read_content(path, FileKind.DEVICE, ProfileKeys, _is_in_payload)
    check_rules(content, findings)
    findings.refuse()
    keys = ProfileKeys.model_validate(content)
    if keys.lines_of and named_by:
        problem = f"{named_by!r} takes lines from this profile, which itself takes lines from others"
        findings.add(("lines_of",), problem, f"List all of these profiles in `lines_of` of {named_by!r}", key=True)
        findings.refuse()
    lines_of = tuple(_load_lines_of(name, keys, number, beside, findings) for number, name in enumerate(keys.lines_of))
    lines = (*map(_line_mapping, keys.lines), *(line for profile in lines_of for line in profile.lines))
    own_messages = tuple(_message_mapping(rule) for rule in keys.mappings if rule.type)
    check_whole(keys, findings, lines_of)
    findings.refuse()
    return DeviceProfile(
        id=keys.device,
        title=keys.title or keys.device,
        path=str(path.absolute()),
        sha256=sha256,
        wake_phrases=tuple(keys.wake_phrases),
        language=keys.language,
        reports=frozenset(keys.reports),
        mappings=(
            *(_message_mapping(rule) for rule in keys.mappings if rule.topic),
            *_message_mappings(lines, keys.console.topic),
        ),
        messages=(*own_messages, *(message for profile in lines_of for message in profile.messages)),
        context_wait_s=keys.context_wait_s,
        close_dialogue_say=keys.close_dialogue.say if keys.close_dialogue else None,
        note=keys.note,
        listening_states=frozenset(keys.listening_states),
        responds=keys.responds,
        transport=transport_of(keys),
        lines=lines,
        lines_of=lines_of,
        thresholds=tuple(_threshold(rule) for rule in keys.thresholds),
        console=ConsoleSettings(
            **{**keys.console.model_dump(), "time": keys.console.time or "", "topic": keys.console.topic or ""}
        ),
        frames=_binary_frames(keys.frames) if keys.frames else None,
        audio=AudioInput(keys.audio.dialogue, keys.audio.rate_hz, keys.audio.topic) if keys.audio else None,
        heartbeat=_heartbeat(keys.heartbeat) if keys.heartbeat else None,
        samples=tuple(
            _sample(sample, keys.device, findings.place(("samples", number)).line)
            for number, sample in enumerate(keys.samples)
        ),
    )


def _load_lines_of(name: str, keys: ProfileKeys, number: int, beside: Path, findings: Findings) -> DeviceProfile:
    """The profile that `lines_of` names as entry `number`. An error without a place gets that of the entry."""
    try:
        return load_profile(name, beside=beside, named_by=keys.device)
    except InputError as error:
        if error.place is None:
            error.place = findings.place(("lines_of", number))
        raise


def profile_paths(beside: Path) -> dict[str, Path]:
    """All profiles that can be named by id from `beside`: id → path, in alphabetical order."""
    paths: dict[str, Path] = {}
    for folder in _folders(beside):
        for path in sorted(folder.glob("*.yaml")):
            if path.name.endswith(kinds.SAMPLES):
                continue
            if path.stem not in paths and (folder != beside or _is_profile(path)):
                paths[path.stem] = path
    return dict(sorted(paths.items()))


def find_profile(path_or_id: Path | str, *, beside: Path) -> Path:
    """The file of a profile, which may be invalid; InputError (without a place) when there is none."""
    text = str(path_or_id)
    if isinstance(path_or_id, Path) or "/" in text or text.endswith((".yaml", ".yml")):
        path = beside / text
        if not path.is_file():
            raise InputError(f"the device profile {text!r} does not exist", remedy=f"Use a path relative to {beside}")
        return path
    paths = profile_paths(beside)
    if text not in paths:
        raise InputError(
            f"the device profile {text!r} does not exist", remedy=nearest(text, sorted(paths), listed="Profiles found")
        )
    return paths[text]


def _folders(beside: Path) -> Iterator[Path]:
    """The folders that may have a profile, in the order of the search."""
    yield beside
    absolute = beside.absolute()
    for folder in (absolute, *absolute.parents):
        yield folder / "devices"
    yield shipped_folder("devices")
    yield Path.cwd() / "devices"


def _is_profile(path: Path) -> bool:
    """Whether a file beside the bench is a profile, rather than a bench or a scenario of the same name."""
    try:
        return strict_yaml.first_key(strict_yaml.read_bytes(path)) == "device"
    except InputError:
        return False


def _heartbeat(keys: HeartbeatKeys) -> Heartbeat:
    rule = MessageMapping(keys.topic, ObservationKind.LISTENING, when=_conditions_of(keys.when))
    return Heartbeat(rule, keys.within_s, keys.ask, keys.payload)


def _conditions_of(keys: Mapping[str, str | int | float | bool]) -> tuple[tuple[str, str], ...]:
    return tuple((pointer, value if isinstance(value, str) else json.dumps(value)) for pointer, value in keys.items())


def _message_mapping(rule: MappingKeys) -> MessageMapping:
    return MessageMapping(
        topic=rule.topic or "",
        kind=rule.kind,
        fields=tuple(rule.fields.items()),
        values=tuple(rule.values.items()),
        when=_conditions_of(rule.when),
        score_scale=rule.score_scale,
        match=rule.match or "",
        type=rule.type or "",
    )


def _line_mapping(rule: LineKeys) -> LineMapping:
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


def _message_mappings(lines: Sequence[LineMapping], topic: str | None) -> Iterator[MessageMapping]:
    """The line rules as rules for messages on a topic. Those over several lines, or with a condition, are left out."""
    if topic is None:
        return
    for line in lines:
        if not line.more and not line.when:
            yield MessageMapping(
                topic, line.kind, line.fields, line.values, score_scale=line.score_scale, match=line.match, of_line=True
            )


def _threshold(rule: ThresholdKeys) -> Threshold:
    states = tuple(
        LevelState(
            name,
            tuple((number, ends.from_, ends.to) for number, ends in state.when.items()),
            (rule.min_ms if state.min_ms is None else state.min_ms) / 1000,
        )
        for name, state in rule.states.items()
    )
    return Threshold(rule.name, rule.match or "", states, tuple(rule.hysteresis.items()))


def _binary_frames(keys: FramesKeys) -> BinaryFrames:
    head, tail = bytes.fromhex(keys.head), bytes.fromhex(keys.tail or "")
    return BinaryFrames(**{**keys.model_dump(), "head": head, "tail": tail})


def _sample(keys: SampleKeys, device: str, line: int) -> Sample:
    payload = keys.payload if isinstance(keys.payload, str) else json.dumps(keys.payload, ensure_ascii=False)
    lines = tuple(unescape(text) + b"\n" for text in keys.lines)
    return Sample(
        lines=(*lines, bytes.fromhex(keys.bytes)) if keys.bytes else lines,
        topic=(keys.topic or "").replace("{device}", device),
        payload=payload.encode(),
        gives=tuple(observation.model_dump(mode="json", exclude_unset=True) for observation in keys.gives),
        line=line,
        step_s=keys.every_ms / 1000,
    )


def unescape(text: str) -> bytes:
    """The bytes of a sample's line: \\e is ESC, \\x00 is a byte, the rest is UTF-8."""
    return _ESCAPE.sub(
        lambda match: b"\x1b" if match[1] == b"e" else bytes.fromhex(match[1][1:].decode()), text.encode()
    )

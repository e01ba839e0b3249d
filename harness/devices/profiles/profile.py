"""Device profiles: found by id or path, read, and made the model's DeviceProfile."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path

from harness.base import file_kinds as kinds
from harness.base import strict_yaml
from harness.base.findings import Findings, nearest
from harness.base.places import shipped_folder
from harness.devices.profiles.profile_checks import check_rules, check_whole, transport_of
from harness.devices.profiles.profile_file import MappingKeys, ProfileKeys
from harness.devices.profiles.profile_lines import FramesKeys, LineKeys, SampleKeys
from harness.model.bench import (
    AudioInput,
    BinaryFrames,
    ConsoleSettings,
    DeviceProfile,
    LineMapping,
    MessageMapping,
    Sample,
    ScoreBlock,
)
from harness.model.choices import FileKind
from harness.model.errors import InputError

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

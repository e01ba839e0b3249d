"""Device profiles: found by id or path, read, and made the model's DeviceProfile."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import harness
from harness.library import kinds, strict_yaml
from harness.library.findings import Findings, attempt, nearest
from harness.library.profile_file import FIELDS, REQUIRED, MappingKeys, ProfileKeys
from harness.model.bench import DeviceProfile, MessageMapping, ObservationKind
from harness.model.errors import InputError


def load_profile(path_or_id: Path | str, *, beside: Path) -> DeviceProfile:
    """The profile of a file, or of that id; InputProblems, or InputError when there is none or it is not even YAML.

    A text without / and without .yaml is an id. It is looked for as ID.yaml in `beside`, in devices/ of `beside` and
    of each folder above it, in devices/ of the installed project, and in devices/ of the current folder. A relative
    path starts at `beside`.
    """
    path = find_profile(path_or_id, beside=beside)
    content = strict_yaml.read_bytes(path)
    tree = strict_yaml.parse(content, str(path))
    kinds.expect(kinds.FileKind.DEVICE, tree, str(path))
    found = Findings(str(path), tree)
    found.refuse_empty(tree, lambda _: False)
    written = tree.plain()
    found.check(ProfileKeys, written)
    mappings = written.get("mappings") if isinstance(written, dict) else None
    yielded: set[ObservationKind] = set()
    for number, one in enumerate(mappings if isinstance(mappings, list) else []):
        if rule := attempt(MappingKeys, one):
            yielded.add(rule.kind)
            _check_mapping(rule, number, found)
    found.refuse()
    keys = ProfileKeys.model_validate(written)
    for number, kind in enumerate(keys.reports):
        if keys.mappings and kind not in yielded:
            remedy = f"Add a mapping of kind {kind.value}, or remove it from reports"
            found.add(("reports", number), f"no mapping yields {kind.value!r}, which is reported", remedy)
    found.refuse()
    return DeviceProfile(
        id=keys.device,
        title=keys.title or keys.device,
        path=str(path.absolute()),
        sha256=hashlib.sha256(content).hexdigest(),
        wake_phrases=tuple(keys.wake_phrases),
        language=keys.language,
        reports=frozenset(keys.reports),
        mappings=tuple(_mapping(rule) for rule in keys.mappings),
        context_wait_s=keys.context_wait_s,
        close_dialogue_say=keys.close_dialogue.say if keys.close_dialogue else None,
        note=keys.note,
    )


def find_profile(path_or_id: Path | str, *, beside: Path) -> Path:
    """The file of a profile, which need not be right; InputError (without a place) when there is none."""
    text = str(path_or_id)
    if isinstance(path_or_id, Path) or "/" in text or text.endswith((".yaml", ".yml")):
        path = beside / text
        if not path.is_file():
            raise InputError(f"there is no device profile {text!r}", remedy=f"Write the path relative to {beside}")
        return path
    known: dict[str, Path] = {}
    for folder in _folders(beside):
        for path in sorted(folder.glob("*.yaml")):
            if folder != beside or _is_profile(path):
                known.setdefault(path.stem, path)
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
    yield Path(harness.__file__).resolve().parent.parent / "devices"
    yield Path.cwd() / "devices"


def _is_profile(path: Path) -> bool:
    """Whether a file beside the bench is a profile, and not a bench or a scenario of the same name."""
    try:
        root = strict_yaml.parse(strict_yaml.read_bytes(path), str(path)).value
    except InputError:
        return False
    return isinstance(root, dict) and next(iter(root), "") == "device"


def _check_mapping(rule: MappingKeys, number: int, found: Findings) -> None:
    at = ("mappings", number)
    allowed = FIELDS[rule.kind]
    for name in rule.fields:
        if name not in allowed:
            what = f"an observation of kind {rule.kind.value} has no field {name!r}"
            found.add((*at, "fields", name), what, nearest(name, allowed, listed="Fields"), key=True)
    needed = REQUIRED.get(rule.kind)
    if needed and rule.fields and needed not in rule.fields:
        remedy = f"Add `{needed}: /pointer` to its fields"
        found.add(at, f"a mapping of kind {rule.kind.value} does not say where {needed!r} is", remedy)
    if rule.values and rule.kind is not ObservationKind.STATUS:
        found.add((*at, "values"), f"values are for kind status, not {rule.kind.value}", "Remove them", key=True)


def _mapping(rule: MappingKeys) -> MessageMapping:
    return MessageMapping(
        topic=rule.topic,
        kind=rule.kind,
        fields=tuple(rule.fields.items()),
        values=tuple((theirs, state.value) for theirs, state in rule.values.items()),
        when=tuple((at, value if isinstance(value, str) else json.dumps(value)) for at, value in rule.when.items()),
    )

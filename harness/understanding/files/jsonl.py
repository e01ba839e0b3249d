"""Annotated utterances as JSON, one object a line (docs/understanding.md, JSONL).

`{"id": "a1", "text": "book one room", "intents": ["booking"], "tags": ["B-task", "B-rooms", "I-rooms"]}`. Slots may
stand as a list, `"slots": [{"concept": "rooms", "value": "1", "start": 1, "end": 3}]`, with or without places.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from harness.base.line_stream import fault_in
from harness.base.problems import Problems, shown
from harness.model.errors import InputError, Place
from harness.model.understanding import Slot, Utterance, intent_set
from harness.understanding.files.bio_folder import is_bio, split_words
from harness.understanding.files.lines import numbered_lines

KEYS = ("id", "text", "intents", "tags", "slots", "groups", "scores")
SLOT_KEYS = ("concept", "value", "start", "end")
_EXAMPLE = 'Write one object a line: {"id": "a1", "text": "turn on", "intents": ["on"], "tags": ["O", "O"]}'


class _Wrong(Exception):
    """What is wrong with one line, and the remedy."""

    def __init__(self, what: str, remedy: str = _EXAMPLE) -> None:
        super().__init__(what)
        self.what, self.remedy = what, remedy


def read_jsonl(path: Path, name: str) -> list[Utterance]:
    """The utterances of a file, blank lines skipped; InputProblems with all that is wrong with it."""
    problems = Problems(name)
    decoder = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_constant)
    found: list[Utterance] = []
    first: dict[str, int] = {}
    kept: dict[str, str] = {}
    for number, line in enumerate(numbered_lines(path, name, problems), 1):
        if line is None or not line or line.isspace():
            continue
        try:
            one = _utterance(_decoded(decoder, line), Place(name, number), kept)
            if (known := first.setdefault(one.id, number)) != number:
                raise _Wrong(f"the id {shown(one.id)} is there already, in line {known}", "Rename one of the two")
            found.append(one)
        except _Wrong as wrong:
            problems.add(number, 0, wrong.what, wrong.remedy)
    problems.refuse()
    if not found:
        raise InputError("the file is empty", place=Place(name), remedy="Check what was to write it")
    return found


def _decoded(decoder: json.JSONDecoder, line: str) -> dict[str, Any]:
    try:
        written = decoder.decode(line.strip())
    except json.JSONDecodeError as error:
        ended = error.pos >= len(line.strip()) or error.msg.startswith("Unterminated")
        if ended:
            raise _Wrong("the line ends within its object", "See whether the file was cut off, or finish it") from error
        raise _Wrong(f"not JSON at character {error.pos + 1}: {error.msg}") from error
    except RecursionError as error:
        raise _Wrong("the line is nested too deeply") from error
    except ValueError as error:  # a number of thousands of digits
        raise _Wrong(f"not JSON: {error}") from error
    if not isinstance(written, dict):
        raise _Wrong("the line is no object")
    return written


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise _Wrong(f"the key {shown(twice)} stands twice", "Keep one of them")
    return found


def _constant(name: str) -> Any:
    raise _Wrong(f"{name} is no JSON")


def _utterance(written: dict[str, Any], place: Place, kept: dict[str, str]) -> Utterance:
    _demand_keys(written, KEYS)
    id_ = _text(written.get("id"), "id")
    if not id_.strip():
        raise _Wrong("the utterance has no id")
    words: tuple[str, ...] = ()
    if (text := written.get("text")) is not None:
        words = tuple([kept.setdefault(word, word) for word in split_words(_text(text, "text"))])
    tags = None if (one := written.get("tags")) is None else _tags(one, words, kept)
    slots = None if (one := written.get("slots")) is None else _slots(one, len(words) if text is not None else None)
    return Utterance(id_.strip(), words, _intents(written.get("intents")), tags, slots, _groups(written), place)


def _demand_keys(written: dict[str, Any], known: tuple[str, ...]) -> None:
    for key in written:
        if key not in known:
            from harness.base.findings import nearest  # here, since it takes long to import

            raise _Wrong(f"there is no key {shown(key)}", nearest(key, known))


def _text(written: object, key: str) -> str:
    if not isinstance(written, str):
        raise _Wrong(f"{shown(key)} is missing" if written is None else f"{shown(key)} is no text")
    if not (written.isascii() and written.isprintable()) and (fault := fault_in(written, Place(""), "utf-8")):
        raise _Wrong(f"{shown(key)}: {fault.what}", "Remove it")
    return written


def _list(written: object, key: str) -> list[Any]:
    if not isinstance(written, list):
        raise _Wrong(f"{shown(key)} is no list")
    return written


def _intents(written: object) -> tuple[str, ...] | None:
    if written is None:
        return None
    if isinstance(written, str):
        return intent_set(" ".join(_text(written, "intents").split()))
    return intent_set("#".join(" ".join(_text(one, "intents").split()) for one in _list(written, "intents")))


def _tags(written: object, words: tuple[str, ...], kept: dict[str, str]) -> tuple[str, ...]:
    found = []
    for at, tag in enumerate(_list(written, "tags"), 1):
        tag = _text(tag, "tags")
        if tag not in kept and (not is_bio(tag) or len(split_words(tag)) != 1):
            raise _Wrong(f"tag {at}, {shown(tag)}, is no BIO tag", "Write O, B-concept or I-concept for each word")
        found.append(kept.setdefault(tag, tag))
    if len(found) != len(words):
        what = f"{len(found)} tag{'s' * (len(found) != 1)} of {len(words)} word{'s' * (len(words) != 1)}"
        raise _Wrong(what, "Write one tag for each word between blanks of the text")
    return tuple(found)


def _slots(written: object, words: int | None) -> tuple[Slot, ...]:
    found = []
    for one in _list(written, "slots"):
        if not isinstance(one, dict):
            raise _Wrong("a slot is no object", 'Write {"concept": "city", "value": "Marseille"}')
        _demand_keys(one, SLOT_KEYS)
        concept = " ".join(_text(one.get("concept"), "concept").split())
        if not concept:
            raise _Wrong("a slot has no concept", 'Write {"concept": "city", "value": "Marseille"}')
        value = None if (given := one.get("value")) is None else _text(given, "value")
        start, end = (_position(one.get(key), key) for key in ("start", "end"))
        if (start is None) != (end is None):
            raise _Wrong(f"the slot {shown(concept)} has half a place", "Write start and end, or neither")
        if start is not None and end is not None and not (start < end and (words is None or end <= words)):
            of = "" if words is None else f", where the text has {words}"
            what = f"the slot {shown(concept)} stands at words {start} to {end}{of}"
            raise _Wrong(what, "Count words from 0; end is the first word behind it")
        found.append(Slot(concept, value, start, end))
    return tuple(found)


def _position(written: object, key: str) -> int | None:
    if written is None:
        return None
    if not isinstance(written, int) or isinstance(written, bool) or written < 0:
        raise _Wrong(f"{shown(key)} is no number of a word", "Count words from 0; end is the first word behind it")
    return written


def _groups(written: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    groups = written.get("groups")
    if groups is None:
        return ()
    if not isinstance(groups, dict):
        raise _Wrong('"groups" is no object', 'Write {"voice": "anna", "level_dbfs": "-20"}')
    return tuple((_text(name, "groups"), _text(label, "groups")) for name, label in groups.items())

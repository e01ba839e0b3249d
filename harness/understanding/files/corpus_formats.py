"""Readers of utterances: BIO folders, intents by id as CSV, and JSON lines (docs/how-to/score-understanding.md).

BIO: seq.in (words), seq.out (tags) and label (intents joined with #), line by line. Only seq.in is required. ATIS and
SNIPS are shared in this form (Goo et al. 2018).

CSV: the columns id and intent, as in the public MEDIA intent files. Only the intent column is split at #. A column
`text` has the words, and every other column is a group.

JSONL: one object per line, with the keys `KEYS`. Slots may be a list, with or without places.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields
from itertools import zip_longest
from pathlib import Path
from typing import Any

from harness.base.places import similar_path
from harness.base.plain_json import is_integer
from harness.base.text_file import (
    CsvRows,
    Problems,
    as_utf_8,
    fault_in,
    line_blocks,
    read_text,
    separator_of,
    shown,
    too_long,
    without_mark,
)
from harness.model.choices import SPLIT
from harness.model.errors import InputError, InputProblems, Place, nearest
from harness.model.understanding import Chunking, Slot, SoundCost, Utterance, intent_set
from harness.understanding.tag_chunks import chunks

SEQ_IN = "seq.in"
SEQ_OUT = "seq.out"
LABEL = "label"
"""Names of the files of a BIO folder: words, tags, intents."""


def numbered_lines(path: Path, name: str, problems: Problems) -> Iterator[str | None]:
    """The lines without their ends, in order. A line that is not text is None, and is added to `problems`.

    name: name of the file in messages. Raises InputError if it cannot be read.
    """
    place = Place(name)
    try:
        if path.is_dir():
            raise InputError("this is a folder, not a file", place=place, remedy="Give a file")
        with path.open("rb") as stream:
            for block in line_blocks(stream.read, name):
                if not block.faulty and not block.cut:
                    yield from block.lines
                    continue
                for number, line in enumerate(block.lines, block.first):
                    line_place = Place(name, number)
                    fault = too_long(line_place) if block.cut else fault_in(line, line_place, "utf-8")
                    if fault is None:
                        yield line
                    else:
                        problems.add_error(as_utf_8(fault))
                        yield None
    except FileNotFoundError as error:
        raise InputError("the file does not exist", place=place, remedy=similar_path(path)) from error
    except (OSError, ValueError) as error:
        problem = f"the file cannot be read: {getattr(error, 'strerror', None) or error}"
        raise InputError(problem, place=place, remedy="Check the path and its permissions") from error


_BIO_EXAMPLE = "Use O, B-concept or I-concept for each word"
_FILE_ENDED = object()


def read_bio_folder(folder: Path, name: str, split: str | None = None) -> list[Utterance]:
    """The utterances of one folder. Raises InputProblems with every mistake in its files.

    - name: name of the folder in messages.
    - split: becomes the group `split`, and precedes the line number in each id (`train/17`). None: the id is only the
      line number.
    """
    names = {file_name: f"{name}/{file_name}" for file_name in (SEQ_IN, SEQ_OUT, LABEL)}
    problems = {file_name: Problems(names[file_name]) for file_name in names}
    file_names = [file_name for file_name in names if file_name == SEQ_IN or (folder / file_name).exists()]
    files = [numbered_lines(folder / file_name, names[file_name], problems[file_name]) for file_name in file_names]
    groups = () if split is None else ((SPLIT, split),)
    id_prefix = "" if split is None else f"{split}/"
    shared_values = _SharedValues(problems[SEQ_OUT])
    counts = dict.fromkeys(file_names, 0)
    utterances: list[Utterance] = []
    for number, lines in enumerate(zip_longest(*files, fillvalue=_FILE_ENDED), 1):
        row: dict[str, str | None] = {}
        for file_name, line in zip(file_names, lines, strict=True):
            if line is not _FILE_ENDED:
                counts[file_name] = number
                row[file_name] = line if isinstance(line, str) else None
        if len(row) < len(file_names) or None in row.values():
            continue
        words = shared_values.words(row[SEQ_IN] or "")
        tags = shared_values.tags(row[SEQ_OUT] or "", number) if SEQ_OUT in row else None
        if tags is not None and len(tags) != len(words):
            problem = f"{_counted_noun(len(tags), 'tag')}, but {SEQ_IN} has {_counted_noun(len(words), 'word')}"
            problems[SEQ_OUT].add(number, 0, problem, "Use one tag for each word, separated by single spaces")
            continue
        intents = shared_values.intents(row[LABEL] or "") if LABEL in row else None
        place = Place(names[SEQ_IN], number)
        utterances.append(
            Utterance(
                id=f"{id_prefix}{number}",
                words=words,
                intents=intents,
                tags=tags,
                slots=None,
                groups=groups,
                place=place,
            )
        )
    _check_lengths(counts, problems, names)
    if errors := [error for file_problems in problems.values() for error in file_problems.listed]:
        raise InputProblems(errors)
    if not utterances:
        raise InputError(
            "the file is empty", place=Place(names[SEQ_IN]), remedy="Check the program that writes the file"
        )
    return utterances


class _SharedValues:
    """Makes words, tags and sets of intents from lines. Equal ones share one object, which saves much memory."""

    def __init__(self, problems: Problems) -> None:
        self._problems = problems
        self._words: dict[str, str] = {}
        self._tags: dict[str, str] = {}
        self._intents: dict[str, tuple[str, ...]] = {}

    def words(self, line: str) -> tuple[str, ...]:
        known_words = self._words
        return tuple([known_words.setdefault(word, word) for word in split_words(line)])

    def tags(self, line: str, number: int) -> tuple[str, ...]:
        known_tags = self._tags
        tags = []
        for tag_number, tag in enumerate(split_words(line), 1):
            if tag not in known_tags:
                if not is_bio(tag):
                    self._problems.add(number, 0, f"tag {tag_number}, {shown(tag)}, is not a BIO tag", _BIO_EXAMPLE)
                    tag = "O"
                known_tags[tag] = tag
            tags.append(known_tags[tag])
        return tuple(tags)

    def intents(self, line: str) -> tuple[str, ...]:
        intents = self._intents.get(line)
        if intents is None:
            intents = self._intents[line] = intent_set(" ".join(line.split()))
        return intents


def split_words(text: str) -> list[str]:
    """The words between ASCII blanks. Other kinds of spaces belong to words, such as those before French
    punctuation."""
    if text.isascii():
        return text.split()
    return [word for word in text.replace("\t", " ").replace("\n", " ").replace("\r", " ").split(" ") if word]


def is_bio(tag: str) -> bool:
    """Whether a tag is O, or B- or I- with a concept."""
    return tag == "O" or (len(tag) > 2 and tag[1] == "-" and tag[0] in "BI")


def _check_lengths(counts: dict[str, int], problems: dict[str, Problems], names: dict[str, str]) -> None:
    for file_name, lines in counts.items():
        if lines != counts[SEQ_IN]:
            problem = f"{_counted_noun(lines, 'line')}, but {SEQ_IN} has {counts[SEQ_IN]:,}"
            first_line = min(lines, counts[SEQ_IN]) + 1
            remedy = "Each line must be one utterance. Check whether one of the files was cut off"
            problems[file_name].add_error(InputError(problem, place=Place(names[file_name], first_line), remedy=remedy))


def _counted_noun(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


ID, INTENT, TEXT = "id", "intent", "text"
_INTENT_HEADERS = frozenset({INTENT, "intents", "intention", "intentions", "intentlabel", "intentlabels", "intentname"})
_ANNOTATION_COLUMNS = ("slots", "tags")
"""Names of columns that would be annotations in other formats. As groups, they would be lost without a word."""
_CSV_EXAMPLE = "Begin with the header `id,intent`, then add a row for each utterance"


def read_intents_csv(text: str, name: str) -> list[Utterance]:
    """The utterances of a CSV file of intents. text: its content. Raises InputProblems with every mistake in it."""
    problems = Problems(name)
    rows = iter(CsvRows.of(text, problems, separator_of(name)))
    line, header_fields = next(rows, (1, [""]))
    header = [" ".join(field.split()) for field in header_fields]
    columns = [field.lower() if field.lower() in (ID, INTENT, TEXT) else field for field in header]
    _check_header(columns, line, problems)
    problems.refuse()
    id_column, intent_column = columns.index(ID), columns.index(INTENT)
    text_column = columns.index(TEXT) if TEXT in columns else None
    group_columns = [index for index in range(len(columns)) if index not in (id_column, intent_column, text_column)]
    utterances: list[Utterance] = []
    first_lines: dict[str, int] = {}
    intents_by_label: dict[str, tuple[str, ...]] = {}
    for line, row in rows:
        if len(row) != len(columns):
            problem = f"{_counted_noun(len(row), 'field')}, but the header has {len(columns)}"
            problems.add(line, 0, problem, "Quote fields that contain commas, and check whether the file was cut off")
            continue
        id_ = without_mark(row[id_column].strip())
        if not id_:
            problems.add(line, 0, "the row has no id", _CSV_EXAMPLE)
            continue
        if (first_line := first_lines.setdefault(id_, line)) != line:
            problems.add(line, 0, f"the id {shown(id_)} is already on line {first_line}", "Remove one of the rows")
            continue
        label = row[intent_column]
        if label not in intents_by_label:
            intents_by_label[label] = intent_set(" ".join(without_mark(label.strip()).split()))
        words = () if text_column is None else tuple(split_words(without_mark(row[text_column])))
        groups = tuple((columns[index], " ".join(without_mark(row[index]).split())) for index in group_columns)
        utterances.append(Utterance(id_, words, intents_by_label[label], groups=groups, place=Place(name, line)))
    problems.refuse()
    if not utterances:
        raise InputError("the file has no rows below its header", place=Place(name), remedy=_CSV_EXAMPLE)
    return utterances


def is_intents_file(text: str, name: str) -> bool:
    """Whether the first row of a file is a header of intents, perhaps with a mistake.

    `id,intents` is a header with a mistake, and not an utterance. `id,text` is a header of texts.
    """
    _, row = next(iter(CsvRows.of(text, Problems(name), separator_of(name))), (0, []))
    columns = ["".join(field.split()).lower().replace("_", "") for field in row]
    if not _INTENT_HEADERS.isdisjoint(columns):
        return True
    if columns[:1] != [ID]:
        return False
    from harness.transcripts.files.lists import is_header  # here, since few corpora have texts alone

    return not is_header(row)


def csv_text(path: Path, name: str) -> str:
    """The text of a file. name: name of the file in errors."""
    try:
        return read_text(path)
    except InputProblems as error:
        raise InputProblems([_with_file_name(problem, name) for problem in error.problems]) from error
    except InputError as error:
        raise _with_file_name(error, name) from error


def _with_file_name(error: InputError, name: str) -> InputError:
    original = error.place
    place = Place(name) if original is None else Place(name, original.line, original.column)
    return as_utf_8(InputError(error.what, place=place, remedy=error.remedy))


def _check_header(columns: list[str], line: int, problems: Problems) -> None:
    for name in (ID, INTENT):
        if name not in columns:
            separator = next((mark for mark in ";\t" if any(mark in column for column in columns)), "")
            hint = ". Separate columns with commas" if separator else ""
            problem = f"the header has no column {name}: found {shown(','.join(columns))}; expected {ID},{INTENT}"
            problems.add(line, 0, problem, f"{_CSV_EXAMPLE}{hint}")
            return
    for index, name in enumerate(columns):
        if not name:
            problems.add(line, 0, f"column {index + 1} has no name", "Add a name, or remove the column from every row")
        elif columns.index(name) < index:
            problems.add(line, 0, f"two columns have the name {shown(name)}", "Rename one of the columns")
        elif name.lower() in _ANNOTATION_COLUMNS:
            remedy = "Use JSONL for slots. If the column names groups, rename it"
            problems.add(line, 0, f"a CSV file of intents cannot have slots, but it has a column {shown(name)}", remedy)


KEYS = ("id", "text", "intents", "tags", "slots", "groups", "scores", "cost")
SLOT_KEYS = ("concept", "value", "start", "end")
_LINE_EXAMPLE = 'Write one object per line: {"id": "a1", "text": "turn on", "intents": ["on"], "tags": ["O", "O"]}'


class _LineError(Exception):
    """A mistake in one line, and the remedy."""

    def __init__(self, problem: str, remedy: str = _LINE_EXAMPLE) -> None:
        super().__init__(problem)
        self.what, self.remedy = problem, remedy


def read_jsonl(path: Path, name: str) -> list[Utterance]:
    """The utterances of a JSONL file. Blank lines are skipped. Raises InputProblems with every mistake in it."""
    problems = Problems(name)
    decoder = json.JSONDecoder(object_pairs_hook=_refuse_duplicate_keys, parse_constant=_refuse_constant)
    utterances: list[Utterance] = []
    first_lines: dict[str, int] = {}
    strings: dict[str, str] = {}
    for number, line in enumerate(numbered_lines(path, name, problems), 1):
        if line is None or not line or line.isspace():
            continue
        try:
            utterance = _read_utterance(_decode(decoder, line), Place(name, number), strings)
            if (first_line := first_lines.setdefault(utterance.id, number)) != number:
                raise _LineError(
                    f"the id {shown(utterance.id)} is already on line {first_line}", "Change one of the ids"
                )
            utterances.append(utterance)
        except _LineError as error:
            problems.add(number, 0, error.what, error.remedy)
    problems.refuse()
    if not utterances:
        raise InputError("the file is empty", place=Place(name), remedy="Check the program that writes the file")
    return utterances


def _decode(decoder: json.JSONDecoder, line: str) -> dict[str, Any]:
    try:
        value = decoder.decode(line.strip())
    except json.JSONDecodeError as error:
        is_cut_off = error.pos >= len(line.strip()) or error.msg.startswith("Unterminated")
        if is_cut_off:
            raise _LineError(
                "the line ends within an object", "Check whether the file was cut off, or complete the object"
            ) from error
        raise _LineError(f"not JSON at character {error.pos + 1}: {error.msg}") from error
    except RecursionError as error:
        raise _LineError("the line is nested too deeply") from error
    except ValueError as error:  # a number with thousands of digits
        raise _LineError(f"not JSON: {error}") from error
    if not isinstance(value, dict):
        raise _LineError("the line is not a JSON object")
    return value


def _refuse_duplicate_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object as a mapping. Raises _LineError if a key occurs twice."""
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise _LineError(f"the key {shown(twice)} occurs twice", "Remove one of the two keys")
    return mapping


def _refuse_constant(name: str) -> Any:
    raise _LineError(f"{name} is not JSON")


def _read_utterance(entry: dict[str, Any], place: Place, strings: dict[str, str]) -> Utterance:
    """The utterance of one line.

    Raises _LineError for a mistake. strings: equal words and tags share one object in it.
    """
    _refuse_unknown_keys(entry, KEYS)
    id_ = _read_text(entry.get("id"), "id")
    if not id_.strip():
        raise _LineError("the utterance has no id")
    text, tags_entry, slots_entry = entry.get("text"), entry.get("tags"), entry.get("slots")
    words: tuple[str, ...] = ()
    if text is not None:
        words = tuple([strings.setdefault(word, word) for word in split_words(_read_text(text, "text"))])
    word_count = None if text is None else len(words)
    tags = None if tags_entry is None else _read_tags(tags_entry, words, strings)
    slots = None if slots_entry is None else _read_slots(slots_entry, word_count)
    if tags is not None and slots is not None:
        _refuse_other_places(tags, slots)
    intents, groups = _read_intents(entry.get("intents")), _read_groups(entry)
    return Utterance(
        id=id_.strip(),
        words=words,
        intents=intents,
        tags=tags,
        slots=slots,
        groups=groups,
        place=place,
        scores=_read_scores(entry),
        cost=_read_cost(entry),
    )


def _refuse_unknown_keys(entry: dict[str, Any], keys: tuple[str, ...]) -> None:
    for key in entry:
        if key not in keys:
            raise _LineError(f"there is no key {shown(key)}", nearest(key, keys))


def _read_text(value: object, key: str) -> str:
    if value is None:
        raise _LineError(f"{shown(key)} is missing")
    if not isinstance(value, str):
        raise _LineError(f"{shown(key)} is not a string")
    if not (value.isascii() and value.isprintable()) and (fault := fault_in(value, Place(""), "utf-8")):
        raise _LineError(f"{shown(key)}: {fault.what}", "Remove it")
    return value


def _read_list(value: object, key: str) -> list[Any]:
    if not isinstance(value, list):
        raise _LineError(f"{shown(key)} is not a list")
    return value


def _read_object(value: object, key: str, remedy: str) -> dict[str, Any]:
    """An object of an entry; {} if the entry does not have it."""
    if value is not None and not isinstance(value, dict):
        raise _LineError(f'"{key}" is not an object', remedy)
    return value or {}


def _read_intents(value: object) -> tuple[str, ...] | None:
    if value is None:
        return None
    if isinstance(value, str):
        return intent_set(" ".join(_read_text(value, "intents").split()))
    return intent_set(
        "#".join(" ".join(_read_text(intent, "intents").split()) for intent in _read_list(value, "intents"))
    )


def _read_tags(entry: object, words: tuple[str, ...], strings: dict[str, str]) -> tuple[str, ...]:
    """The tags of an utterance, one for each word. strings: equal tags of all lines share one object in it."""
    tags = []
    for tag_number, value in enumerate(_read_list(entry, "tags"), 1):
        tag = _read_text(value, "tags")
        if tag not in strings and (not is_bio(tag) or len(split_words(tag)) != 1):
            raise _LineError(f"tag {tag_number}, {shown(tag)}, is not a BIO tag", _BIO_EXAMPLE)
        tags.append(strings.setdefault(tag, tag))
    if len(tags) != len(words):
        problem = f"{_counted_noun(len(tags), 'tag')} for {_counted_noun(len(words), 'word')}"
        raise _LineError(problem, "Use one tag for each word of the text")
    return tuple(tags)


def _read_slots(entry: object, word_count: int | None) -> tuple[Slot, ...]:
    """The slots of an utterance. word_count: None if it has no text."""
    slots = []
    for slot in _read_list(entry, "slots"):
        if not isinstance(slot, dict):
            raise _LineError("a slot is not an object", 'Use {"concept": "city", "value": "Marseille"}')
        _refuse_unknown_keys(slot, SLOT_KEYS)
        concept = " ".join(split_words(_read_text(slot.get("concept"), "concept")))
        if not concept:
            raise _LineError("a slot has no concept", 'Use {"concept": "city", "value": "Marseille"}')
        value = None if slot.get("value") is None else _read_text(slot["value"], "value")
        start, end = _read_position(slot.get("start"), "start"), _read_position(slot.get("end"), "end")
        if (start is None) != (end is None):
            raise _LineError(f"the slot {shown(concept)} has only one of `start` and `end`", "Add both, or remove both")
        if start is not None and end is not None and not (start < end and (word_count is None or end <= word_count)):
            limit = "" if word_count is None else f", but the text has {word_count}"
            problem = f"the slot {shown(concept)} covers words {start} to {end}{limit}"
            raise _LineError(problem, "Count words from 0; `end` is the index of the first word after the slot")
        slots.append(Slot(concept, value, start, end))
    return tuple(slots)


def _refuse_other_places(tags: tuple[str, ...], slots: tuple[Slot, ...]) -> None:
    """Raises _LineError if tags and slots have different places. Some metrics use the tags, and others the slots."""
    places = {(slot.concept, slot.start, slot.end) for slot in slots if slot.start is not None}
    if (places or not slots) and all(
        places != {(chunk.concept, chunk.start, chunk.end) for chunk in chunks(tags, chunking)} for chunking in Chunking
    ):
        raise _LineError(
            "the tags and the slots mark different words", "Correct or remove either the tags or the slots"
        )


def _read_position(value: object, key: str) -> int | None:
    if value is None:
        return None
    if not is_integer(value) or value < 0:
        raise _LineError(
            f"{shown(key)} is not a word number",
            "Count words from 0; `end` is the index of the first word after the slot",
        )
    return value


def _read_scores(entry: dict[str, Any]) -> tuple[tuple[str, float], ...]:
    scores = _read_object(entry.get("scores"), "scores", 'Use {"booking": 0.93, "thanking": 0.02}')
    for label, score in scores.items():
        if not (isinstance(score, float) or is_integer(score)) or not 0 <= score <= 1:
            raise _LineError(f"the score of {shown(label)} is not a number from 0 to 1", "Use probabilities")
    return tuple((label, float(score)) for label, score in scores.items())


_COST_EXAMPLE = 'Use {"cpu_s": 0.4, "elapsed_s": 0.41, "sound_s": 2.5}'


def _read_cost(entry: dict[str, Any]) -> SoundCost | None:
    cost = _read_object(entry.get("cost"), "cost", _COST_EXAMPLE)
    if not cost:
        return None
    problem = _LineError('"cost" must be three numbers, in seconds', _COST_EXAMPLE)
    has_all_keys = cost.keys() == {field.name for field in fields(SoundCost)}
    if not has_all_keys or not all(isinstance(value, int | float) for value in cost.values()):
        raise problem
    try:
        return SoundCost(**{name: float(value) for name, value in cost.items()})
    except (ValueError, OverflowError):
        raise problem from None


def _read_groups(entry: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    groups = _read_object(entry.get("groups"), "groups", 'Use {"voice": "anna", "level_dbfs": "-20"}')
    return tuple((_read_text(name, "groups"), _read_text(label, "groups")) for name, label in groups.items())

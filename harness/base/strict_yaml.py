"""Strict YAML: a tree of values with their places in the file.

Composes PyYAML's pure-Python events, without anchors, aliases, merges and tags, so no small file can expand into a
large one. Resolves only true/false, null/~, decimal integers and floats, as YAML 1.2 does; `no`, `12:30`, `0x10` and
dates stay text. Anything wrong with the bytes is an InputError with its place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path
from typing import cast

import yaml

from harness.base.places import YAML, similar_path
from harness.model.errors import InputError, Place
from harness.model.frozen import frozen

MAX_BYTES = 1_000_000
MAX_DEPTH = 24
MAX_NODES = 100_000
MAX_DIGITS = 18  # All whole numbers of 18 digits fit into 64 bits.

Scalar = str | int | float | bool | None
Plain = Scalar | list["Plain"] | dict[str, "Plain"]

_INT = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|(0|[1-9][0-9]*)(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
# C0 less line ends, DEL, C1 (with NEL), line and paragraph separators, bidirectional overrides, BOM, surrogates.
_UNSAFE = "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff\ufffe\uffff"
_UNSAFE_IN_FILE = re.compile(f"[\t{_UNSAFE}]")
_UNSAFE_IN_VALUE = re.compile(f"[{_UNSAFE}]")
_LINE_END = re.compile(r"\r\n|\r|\n")
_PLACEHOLDER = "Put the text in quotes"
_BRACKETS = "Close the bracket or add the comma. Within brackets, put text that contains { } [ ] or , in quotes"
_INDENT = "Check the indentation: keys of one mapping begin in the same column"
_NEXT_LINE = "Begin the list on the next line, or write [a, b]"
_SECOND_COLON = "this line contains a second ': '"
_CAUSES = (
    ("mapping values are not allowed", _SECOND_COLON, "Put text that contains ': ' in quotes"),
    ("cannot start any token", "text cannot begin with {sign}", _PLACEHOLDER),
    ("unexpected end of stream", "this quote is never closed", "Close the quote"),
    ("could not find expected ':'", "this is neither `key: value` nor `- entry`", "Write the key as `key: value`"),
    ("but got '<stream end>'", "this bracket is never closed", _BRACKETS),
    ("expected ',' or", "a bracket is not closed or a comma is missing before this", _BRACKETS),
    (
        "but found '<scalar>'",
        "text follows a closing quote",
        "Put the whole value in quotes; inside '…', write '' for '",
    ),
    (
        "but found '<block mapping start>'",
        "the indentation of this line differs from that of the keys around it",
        _INDENT,
    ),
    ("but found '?'", "a key appears among the entries of a list (- …)", _INDENT),
    ("but found '-'", "a list entry (- …) appears among keys", _INDENT),
    ("expected <block end>", "this does not fit the lines above it", _INDENT),
    (
        "unknown escape character",
        "\\{sign} is not an escape in double quotes",
        "Use single quotes, in which \\ is an ordinary character",
    ),
    (
        "expected chomping",
        "text follows | or > on the same line",
        "Put the text on the lines below, indented, or put it in quotes",
    ),
    (
        "expected the node content",
        "a value is missing before {sign}",
        "Add the value; put text that contains this character in quotes",
    ),
    ("sequence entries are not allowed", "a list entry (- …) is on the same line as its key", _NEXT_LINE),
    ("alphabetic or numeric character", "& and * begin anchors and aliases, which are not allowed", _PLACEHOLDER),
)
"""Part of the parser's message → the cause in the file, and what to do."""
_REPORTED_AT_START = ("unexpected end of stream", "could not find expected ':'", "but got '<stream end>'")
"""Errors that are reported where the construct began, not where the parser noticed them."""


@frozen
class Mark:
    """A position in a file: line and column, both from 1."""

    line: int
    column: int


@frozen
class Node:
    """A value with its place; for a mapping also the places of its keys."""

    value: Scalar | list[Node] | dict[str, Node]
    mark: Mark
    keys: Mapping[str, Mark] = field(default_factory=dict)

    def plain(self) -> Plain:
        """The value without places, in new lists and dicts."""
        if isinstance(self.value, dict):
            return {key: child.plain() for key, child in self.value.items()}
        if isinstance(self.value, list):
            return [child.plain() for child in self.value]
        return self.value


def read_bytes(path: Path) -> bytes:
    """The bytes of a file of at most MAX_BYTES. Raises InputError if it cannot be read or is not an ordinary file."""
    place = Place(str(path))
    try:
        if path.exists() and not path.is_file():
            raise InputError("this is not a file", place=place, remedy="Use a YAML file")
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except FileNotFoundError as error:
        raise InputError("there is no such file", place=place, remedy=similar_path(path, YAML)) from error
    except (OSError, ValueError) as error:
        raise InputError(
            f"the file cannot be read: {error}", place=place, remedy="Check the path and its permissions"
        ) from error
    if len(content) > MAX_BYTES:
        raise InputError(f"the file is larger than {MAX_BYTES} bytes", place=place, remedy="Split the file")
    return content


def parse(content: bytes, file: str) -> Node:
    """The one document in `content` as a tree whose root is a mapping. Raises InputError for everything else."""
    if len(content) > MAX_BYTES:
        raise InputError(f"the file is larger than {MAX_BYTES} bytes", place=Place(file), remedy="Split the file")
    return _Composer(_decode(content, file), file).document()


def first_key(content: bytes) -> str:
    """The first key of a file, whose rest may be wrong and is not read; "" if it does not begin with a key."""
    try:
        for event in yaml.parse(_decode(content[:MAX_BYTES], ""), yaml.SafeLoader):
            if isinstance(event, yaml.ScalarEvent):
                return event.value
            if isinstance(event, yaml.SequenceStartEvent | yaml.AliasEvent):
                return ""
    except (InputError, yaml.YAMLError, ValueError):
        return ""
    return ""


def _decode(content: bytes, file: str) -> str:
    """The text of a file. Raises InputError for bytes that are not UTF-8, tabs and control characters."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        preceding = content[: error.start].decode("utf-8", errors="replace")
        raise InputError(
            f"byte 0x{content[error.start]:02x} is not UTF-8",
            place=_place_after(preceding, file),
            remedy="Save the file as UTF-8",
        ) from error
    if unsafe := _UNSAFE_IN_FILE.search(text):
        place = _place_after(text[: unsafe.start()], file)
        if unsafe[0] == "\t":
            raise InputError("a tab is not allowed", place=place, remedy="Use spaces")
        raise InputError(
            f"the control character U+{ord(unsafe[0]):04X} is not allowed",
            place=place,
            remedy="Remove the character from the file",
        )
    return text


def _place_after(preceding: str, file: str) -> Place:
    """The place of the character after this beginning of a file."""
    lines = _LINE_END.split(preceding)
    return Place(file, len(lines), len(lines[-1]) + 1)


class _Composer:
    """Builds the tree of one document from the parser's events, and counts nodes and depth."""

    def __init__(self, text: str, file: str) -> None:
        self._file = file
        self._lines = _LINE_END.split(text)
        self._loader = yaml.SafeLoader(text)
        self._get_event = cast(Callable[[], yaml.Event | None], self._loader.get_event)
        self._nodes = 0

    def document(self) -> Node:
        """The tree of the only document. Raises InputError for everything else."""
        empty = InputError(
            "the file is empty", place=Place(self._file, 1, 1), remedy="To start from an example, run: harness init"
        )
        self._next()  # the stream's start
        if isinstance(event := self._next(), yaml.StreamEndEvent):
            raise empty
        if isinstance(event, yaml.DocumentStartEvent) and (event.version or event.tags):
            raise self._error(event, "a % directive is not allowed", "Remove the line")
        root = self._compose_node(self._next(), 1)
        self._next()  # the document's end
        if not isinstance(event := self._next(), yaml.StreamEndEvent):
            raise self._error(
                event, "a second document begins here", "Move the second document to another file, and remove the `---`"
            )
        if root.value is None:
            raise empty
        if not isinstance(root.value, dict):
            raise InputError(
                "the file is not a mapping of keys to values",
                place=Place(self._file, root.mark.line, root.mark.column),
                remedy="Begin with `scenario: name`, `bench: name` or `device: name`",
            )
        return root

    def _next(self) -> yaml.Event:
        """The next event of the parser. Raises InputError if it finds an error."""
        try:
            event = self._get_event()
        except yaml.MarkedYAMLError as error:
            raise self._syntax_error(error) from error
        except (yaml.YAMLError, ValueError, OverflowError, RecursionError) as error:
            mark = self._loader.get_mark()
            place = Place(self._file, mark.line + 1, mark.column + 1)
            raise InputError(f"this is not YAML: {error}", place=place, remedy=_PLACEHOLDER) from error
        assert event is not None  # nothing asks for an event after the end of the stream
        return event

    def _syntax_error(self, error: yaml.MarkedYAMLError) -> InputError:
        """The parser's error in words about the file, with a remedy."""
        problem = (error.problem or "this is not YAML").replace("\t", "a tab")
        opening_mark = error.context_mark if any(part in problem for part in _REPORTED_AT_START) else None
        mark = opening_mark or error.problem_mark or error.context_mark
        place = Place(self._file, mark.line + 1, mark.column + 1) if mark else Place(self._file)
        for part, cause, remedy in _CAUSES:
            if part in problem:
                character = re.search(r"'(.)'(?!.*'.')", problem)
                # The parser has the same message for a line that is indented below a value.
                if cause == _SECOND_COLON and mark and ": " not in self._lines[mark.line][: mark.column]:
                    cause, remedy = "this line is indented deeper than the one above, which has a value", _INDENT
                return InputError(
                    cause.replace("{sign}", character[1] if character else "this"), place=place, remedy=remedy
                )
        message = f"this is not YAML: {problem}"
        return InputError(message, place=place, remedy="Check indentation, quotes and brackets here")

    def _compose_node(self, event: yaml.Event, depth: int) -> Node:
        """The value that begins with an event. depth: its nesting, from 1."""
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise self._error(event, f"the file has more than {MAX_NODES} values", "Split the file")
        if depth > MAX_DEPTH:
            raise self._error(event, f"values are nested more than {MAX_DEPTH} deep", "Use fewer levels")
        if isinstance(event, yaml.AliasEvent):
            raise self._error(
                event,
                f"the alias *{event.anchor} is not allowed",
                "Write the value out; put text that begins with * in quotes",
            )
        if getattr(event, "anchor", None) is not None:
            raise self._error(
                event, "an anchor (&name) is not allowed", "Write the value out; put text that begins with & in quotes"
            )
        if getattr(event, "tag", None) is not None:
            raise self._error(
                event, "a tag (!name) is not allowed", "Remove the tag; put text that begins with ! in quotes"
            )
        mark = _mark(event)
        match event:
            case yaml.ScalarEvent():
                return Node(self._scalar(event), mark)
            case yaml.SequenceStartEvent():
                items: list[Node] = []
                while not isinstance(next_event := self._next(), yaml.SequenceEndEvent):
                    items.append(self._compose_node(next_event, depth + 1))
                return Node(items, mark)
            case _:
                return self._compose_mapping(mark, depth)

    def _compose_mapping(self, mark: Mark, depth: int) -> Node:
        entries: dict[str, Node] = {}
        keys: dict[str, Mark] = {}
        while not isinstance(event := self._next(), yaml.MappingEndEvent):
            if isinstance(event, yaml.ScalarEvent) and event.value == "<<" and event.style is None:
                raise self._error(event, "a merge (<<) is not allowed", "Write the keys out")
            key = self._compose_node(event, depth + 1).value
            if not isinstance(key, str):
                problem = (
                    f"the key {event.value!r} is not text"
                    if isinstance(event, yaml.ScalarEvent)
                    else "a key is a list or mapping"
                )
                raise self._error(event, problem, "Put the key in quotes")
            if key in entries:
                raise self._error(
                    event,
                    f"the key {key!r} is given twice (first on line {keys[key].line})",
                    "Remove one of the two keys",
                )
            keys[key] = _mark(event)
            entries[key] = self._compose_node(self._next(), depth + 1)
        return Node(entries, mark, keys)

    def _scalar(self, event: yaml.ScalarEvent) -> Scalar:
        """The value of a scalar. In quotes or a block, it is a text."""
        text: str = event.value
        if unsafe := _UNSAFE_IN_VALUE.search(text):
            raise self._error(
                event, f"the control character U+{ord(unsafe[0]):04X} is not allowed in a value", "Remove the character"
            )
        if event.style is not None:
            return text
        match text:
            case "" | "~" | "null":
                return None
            case "true":
                return True
            case "false":
                return False
        if _INT.fullmatch(text) or _FLOAT.fullmatch(text):
            if sum(letter.isdigit() for letter in text) > MAX_DIGITS:
                raise self._error(
                    event, f"a number has more than {MAX_DIGITS} digits", "If this is text, put it in quotes"
                )
            return int(text) if _INT.fullmatch(text) else float(text)
        return text

    def _error(self, event: yaml.Event, problem: str, remedy: str) -> InputError:
        mark = _mark(event)
        return InputError(problem, place=Place(self._file, mark.line, mark.column), remedy=remedy)


def _mark(event: yaml.Event) -> Mark:
    start = event.start_mark
    assert start is not None  # every event that a parser makes has one
    return Mark(start.line + 1, start.column + 1)

"""Text files and pipes of any size: their encoding and lines, and their faults, reported together up to a limit.

A line ends with a line feed, a carriage return, or both. Uses memory for one block and the longest line.

Comma-separated text is written so that a spreadsheet shows it unchanged and never evaluates it. A cell that begins with
= + - @, a tab or a line end gets a leading apostrophe. One that begins with an apostrophe gets another one, so that
removing one restores every text (`harness rate judgments import` does). A signed number is not a formula.

`CsvRows` reads all tables from elsewhere. Cells are separated by commas, in a .tsv file by tabs. The first line can
declare another separator, as spreadsheets do: `sep=;`. A separator that is not declared is not guessed.
"""

from __future__ import annotations

import codecs
import csv
import io
import itertools
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

from harness.base.places import similar_path
from harness.model.errors import InputError, InputProblems, Place

BLOCK = 1 << 18
"""Number of bytes for each read. A pipe may return fewer, which are passed on at once."""
MAX_LINE_CHARS = 1 << 22
"""Characters in the longest line. A longer one suggests that the file is not text, or has lost its line ends."""

COMMENT = ";;"
"""Start of a line that is a comment, not a transcript."""

_BYTE_ORDER_MARK = "\ufeff"
# Characters that programs treat differently: as line end, as nothing, or as a terminal command. Control characters
# except tabs, line and paragraph separators, byte order marks. Also surrogates: `surrogateescape` turns invalid bytes
# into them, and some encodings (UTF-7) can spell them.
_NOT_TEXT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff]")


class LineBlock(NamedTuple):
    """Complete lines, without their ends.

    - first: number of the first line, from 1.
    - faulty: whether some contain characters that are not text.
    - cut: whether the last one is only the beginning of a line that is too long.
    """

    first: int
    lines: list[str]
    faulty: bool
    cut: bool = False


def checked_encoding(name: str, file: str = "") -> str:
    """The canonical name of an encoding.

    Raises InputError if no text encoding has that name. file: named in the error.
    """
    try:
        "".encode(name)
        codecs.getincrementaldecoder(name)
        return codecs.lookup(name).name
    except (LookupError, ValueError) as error:
        remedy = "Use utf-8, latin-1, cp1252, utf-16 or another text encoding that Python supports"
        place = Place(file) if file else None
        raise InputError(f"there is no encoding {name!r}", place=place, remedy=remedy) from error


def line_blocks(read: Callable[[int], bytes], file: str, encoding: str = "utf-8") -> Iterator[LineBlock]:
    """The lines of what `read` returns (b"" at the end), without a byte order mark. read: gets a number of bytes.

    Raises InputError if the encoding cannot resume after a fault, as UTF-16 cannot.
    """
    decoder = codecs.getincrementaldecoder(encoding)("surrogateescape")
    first, tail, is_skipping, has_started = 1, "", False, False
    is_at_end = False
    while not is_at_end:
        content = read(BLOCK)
        is_at_end = not content
        try:
            text = decoder.decode(content, is_at_end)
        except UnicodeError as error:
            problem = f"from about here on, the file is not {encoding}"
            raise InputError(problem, place=Place(file, first), remedy="Specify the encoding: --encoding …") from error
        if text and not has_started:
            has_started, text = True, text.removeprefix(_BYTE_ORDER_MARK)
        text = tail + text
        carriage_return = "" if is_at_end or not text.endswith("\r") else "\r"  # a line feed may follow
        if "\r" in text:
            text = text.removesuffix(carriage_return).replace("\r\n", "\n").replace("\r", "\n")
        lines = text.split("\n")
        tail = lines.pop()
        if is_skipping and lines:
            del lines[0]  # the end of the line that was too long
            is_skipping = False
            first += 1
        if is_at_end and tail and not is_skipping:
            lines.append(tail)
        if lines:
            yield LineBlock(first, lines, _NOT_TEXT.search("\n".join(lines)) is not None)
            first += len(lines)
        if is_skipping:
            tail = ""
        elif len(tail) > MAX_LINE_CHARS and not is_at_end:
            yield LineBlock(first, [tail[:MAX_LINE_CHARS]], faulty=False, cut=True)
            tail, is_skipping = "", True
        tail += carriage_return


def fault_in(line: str, place: Place, encoding: str) -> InputError | None:
    """The first character in a line that is not text, with its column; None if there is none."""
    fault = _NOT_TEXT.search(line)
    if fault is None:
        return None
    fault_place = Place(place.file, place.line, fault.start() + 1)
    character = fault[0]
    point = ord(character)
    if "\udc80" <= character <= "\udcff":  # as `surrogateescape` decodes bytes
        problem = f"byte 0x{point - 0xDC00:02x} is not {encoding.upper()}"
        remedy = "Save the file as UTF-8, or specify its encoding: --encoding latin-1"
        if point - 0xDC00 in (0xFE, 0xFF) and place.line == 1 and fault.start() == 0:  # its byte order mark
            remedy = "The file looks like UTF-16: --encoding utf-16"
    elif character == "\0":
        problem = "this is a NUL character"
        remedy = "Remove the character. If there are many, the file is UTF-16 (--encoding utf-16) or not text"
    else:
        problem = f"this is the {_character_kind(point)} U+{point:04X}"
        windows = 0x80 <= point < 0xA0
        remedy = (
            "Remove the character; if the file is from Windows: --encoding cp1252"
            if windows
            else "Remove the character"
        )
        if character == "\x1a":
            remedy = "Remove the character; DOS programs end files with it"
    return InputError(problem, place=fault_place, remedy=remedy)


def as_text(line: str) -> str:
    """A line with U+FFFD for each character that is not text, so that `fault_in` finds none."""
    return _NOT_TEXT.sub("\ufffd", line)


def is_comment(line: str) -> bool:
    """Whether a line is a comment."""
    return COMMENT in line and line.lstrip().startswith(COMMENT)


def _character_kind(point: int) -> str:
    """What a character that is not text is called. point: its code."""
    if point < 0xA0:
        return "control character"
    if point == ord(_BYTE_ORDER_MARK):
        return "byte order mark"
    return "half character" if 0xD800 <= point < 0xE000 else "separator"


def too_long(place: Place) -> InputError:
    """The error for a line of more than MAX_LINE_CHARS characters."""
    problem = f"the line has more than {MAX_LINE_CHARS:,} characters"
    return InputError(problem, place=place, remedy="Check whether the file has lost its line endings, or is not text")


UTF_8 = "utf-8"
_UTF_8_WITH_MARK = "utf-8-sig"
_CONTROL_BYTES = bytes([*range(0x09), 0x0B, 0x0C, *range(0x0E, 0x20), 0x7F])
# What `fault_in` reports. A search of a large text for the whole class is slow, so that each kind is looked
# for in the cheapest way first.
_C1 = re.compile("[\x80-\x9f]")
_RARE = ("\u2028", "\u2029", "\ufeff")
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def read_text(path: Path, encoding: str | None = None, *, may_be_empty: bool = False, as_written: bool = False) -> str:
    """The text of a file, each line ended by a line feed (unless as_written), without a byte order mark.

    encoding: None is UTF-8. Raises InputError when the file cannot be read, or is empty (unless may_be_empty).
    Raises InputProblems with line and column of every line that contains anything but text (`fault_in`).
    """
    codec = checked_encoding(encoding or UTF_8, str(path))
    content = read_bytes(path)
    text = _decode(content, codec, path)
    if _has_faults(text):
        _refuse_faults(content, codec, path)
    return _with_line_feeds(text, path, may_be_empty=may_be_empty, as_written=as_written)


def read_text_and_faults(
    path: Path, encoding: str | None = None, *, as_written: bool = False
) -> tuple[str, dict[int, InputError]]:
    """The text of a file, as `read_text` gives it, and line number → fault; faulty lines are left as they are.

    A byte that is not UTF-8 becomes a lone surrogate (surrogateescape).
    """
    codec = checked_encoding(encoding or UTF_8, str(path))
    content = read_bytes(path)
    if codec == UTF_8 and not content.startswith(_UTF_16):
        text = content.decode(_UTF_8_WITH_MARK, "surrogateescape")
    else:
        text = _decode(content, codec, path)
    faulty, normalised = _has_faults(text), _with_line_feeds(text, path)
    lines = enumerate(normalised.split("\n"), 1) if faulty else ()
    faults = ((number, fault_in(line, Place(str(path), number), codec)) for number, line in lines)
    return text if as_written else normalised, {number: fault for number, fault in faults if fault is not None}


def _decode(content: bytes, codec: str, path: Path) -> str:
    """The text of bytes. Raises InputProblems with every line that cannot be decoded."""
    try:
        return content.decode(_UTF_8_WITH_MARK if codec == UTF_8 else codec)
    except UnicodeError as error:
        _refuse_faults(content, codec, path)
        problem = f"the file is not {codec}: {error}"
        raise InputError(problem, place=Place(str(path)), remedy="Specify the encoding: --encoding …") from error


def _with_line_feeds(text: str, path: Path, *, may_be_empty: bool = False, as_written: bool = False) -> str:
    """The text with a line feed at the end of each line.

    Raises InputError if it is empty. Arguments as of `read_text`.
    """
    if not may_be_empty and (not text or text.isspace()):
        raise empty(path)
    if "\r" in text and not as_written:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text if as_written or text.endswith("\n") else text + "\n"


def encoding_name(encoding: str | None) -> str:
    """The name of an encoding as stored with the transcripts: as given, or UTF-8."""
    return encoding or UTF_8


def read_bytes(path: Path) -> bytes:
    """The content of a file. Raises InputError when it cannot be read."""
    place = Place(str(path))
    try:
        if path.is_dir():
            raise InputError("this is a folder, not a file", place=place, remedy="Use a file")
        refuse_endless(path, str(path))
        return path.read_bytes()
    except FileNotFoundError as error:
        raise InputError("there is no such file", place=place, remedy=similar_path(path)) from error
    except (OSError, ValueError) as error:
        problem = f"the file cannot be read: {getattr(error, 'strerror', None) or error}"
        raise InputError(problem, place=place, remedy="Check the path and its permissions") from error


def refuse_endless(file: Path | int, name: str) -> None:
    """Raises InputError for a device that never ends, such as /dev/zero. file: its path or descriptor.

    Raises OSError.
    """
    status = os.stat(file)
    if stat.S_ISCHR(status.st_mode) and (os.major(status.st_rdev), os.minor(status.st_rdev)) in _ENDLESS:
        raise InputError("this device never ends", place=Place(name), remedy="Use a file")


_ENDLESS = {(1, 5), (1, 7), (1, 8), (1, 9)}
"""(major, minor) device numbers of /dev/zero, full, random and urandom on Linux."""


def empty(path: Path) -> InputError:
    """The error for an empty file."""
    return InputError("the file is empty", place=Place(str(path)), remedy="Check the program that writes the file")


def _refuse_faults(content: bytes, codec: str, path: Path) -> None:
    """Raises InputProblems with the first fault of every line."""
    if codec == UTF_8 and content.startswith(_UTF_16):
        remedy = "The file looks like UTF-16: --encoding utf-16"
        raise InputError("the file is not UTF-8", place=Place(str(path), 1, 1), remedy=remedy)
    problems = Problems(str(path))
    try:
        for block in line_blocks(io.BytesIO(content).read, str(path), codec):
            for number, line in enumerate(block.lines, block.first):
                place = Place(str(path), number)
                if fault := fault_in(line, place, codec) or (too_long(place) if block.cut else None):
                    problems.add_error(fault)
    except InputError as error:  # the encoding cannot go on
        problems.add_error(error)
    problems.refuse()


def _has_faults(text: str) -> bool:
    """Whether `fault_in` reports anything in one of the lines."""
    try:
        encoded = text.encode(UTF_8)
    except UnicodeEncodeError:  # half of a pair, which some encodings let through
        return True
    if len(encoded.translate(None, _CONTROL_BYTES)) < len(encoded):
        return True
    return not text.isascii() and (any(character in text for character in _RARE) or _C1.search(text) is not None)


MAX_LISTED = 50
"""Most problems of one file that are listed."""
MAX_CHARS_SHOWN = 60
"""Most characters of a part of a file in a message."""


class Problems:
    """Problems of one file, in the order found. Keeps the first MAX_LISTED and counts the rest."""

    def __init__(self, file: str) -> None:
        self.file = file
        self._listed: list[InputError] = []
        self._omitted = 0

    def add(self, line: int, column: int, problem: str, remedy: str) -> None:
        """Adds a problem at a line and column of the file, which count from 1; 0 means unknown."""
        self.add_error(InputError(problem, place=Place(self.file, line, column), remedy=remedy))

    def add_error(self, error: InputError) -> None:
        """Adds a problem that already has its place."""
        if len(self._listed) < MAX_LISTED:
            self._listed.append(error)
        else:
            self._omitted += 1

    @property
    def listed(self) -> tuple[InputError, ...]:
        """The problems that are kept, then one error with the number of the others."""
        if not self._omitted:
            return tuple(self._listed)
        summary = "and 1 more problem" if self._omitted == 1 else f"and {self._omitted} more problems"
        return (*self._listed, InputError(summary, place=Place(self.file)))

    def refuse(self) -> None:
        """Raises InputProblems if there are any."""
        if self._listed:
            raise InputProblems(self.listed)

    def demand(self, entries: object, problem: str, remedy: str) -> None:
        """Raises InputProblems if there are any; else with this one if the file has no entries."""
        if not (entries or self._listed):
            self.add(0, 0, problem, remedy)
        self.refuse()


def shown(text: str) -> str:
    """Part of a file for a message: in quotes; a long text loses its middle."""
    if len(text) > MAX_CHARS_SHOWN:
        text = f"{text[: MAX_CHARS_SHOWN // 2]}…{text[-MAX_CHARS_SHOWN // 2 :]}"
    return repr(text)


def repetition(id_: str, line: int) -> tuple[str, str]:
    """Message and remedy for a repeated id."""
    return (
        f"the id {shown(id_)} occurs twice, first on line {line}",
        "Change one of the ids; upper and lower case count as the same id",
    )


MARK = "'"
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", MARK)
_NUMBER = re.compile(r"[-+]?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?")


def safe_csv(rows: Iterable[Sequence[str]]) -> str:
    """The rows as in RFC 4180, but with line feeds as line ends."""
    lines: list[str] = []
    # The writer quotes the characters of its line end, so that those within a cell are kept.
    writer = csv.writer(
        SimpleNamespace(write=lambda line: lines.append(line.removesuffix("\r\n"))), lineterminator="\r\n"
    )
    for row in rows:
        writer.writerow([safe_cell(cell) for cell in row])
    return "".join(f"{line}\n" for line in lines)


def safe_cell(text: str) -> str:
    """The text, with a leading apostrophe if a spreadsheet would evaluate it."""
    return MARK + text if text.startswith(_FORMULA) and not _NUMBER.fullmatch(text) else text


def without_mark(text: str) -> str:
    """A CSV cell without the apostrophe that keeps a spreadsheet from evaluating it."""
    return text[1:] if text.startswith(MARK) and text[1:2] in _FORMULA else text


_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
_SEPARATOR_LINE = re.compile(r'"?sep=(.)"?\s*', re.IGNORECASE)
_POWERSHELL_TYPE = "#TYPE "
"""Start of a line that PowerShell writes before the header."""
_DECIMAL_COMMA = re.compile(r"[-+]?[0-9]+,[0-9]+")
_MAX_CELL_CHARS = 1 << 27
TABS = ".tsv"


def separator_of(file: str) -> str:
    """The separator of the cells in a file that declares none: tabs in a .tsv file, else commas."""
    return "\t" if file.lower().endswith(TABS) else ","


class CsvRows:
    """The rows of a table that are not empty, each with the number of the line in which it begins. Iterate only once.

    - lines: lines of the table; line ends do not matter.
    - separator: used unless the first line declares another one (`sep=;`).
    - problems: gets everything that is not CSV.
    """

    def __init__(self, lines: Iterable[str], problems: Problems, separator: str = ",") -> None:
        self._lines, self._problems = iter(lines), problems
        self._lines_before = 0
        first = next(self._lines, "")
        if declared := _SEPARATOR_LINE.fullmatch(first):
            self._lines_before, separator = 1, declared[1]
        elif first.startswith(_POWERSHELL_TYPE):
            self._lines_before = 1
        else:
            self._lines = itertools.chain([first], self._lines)
        self._separator = separator

    @classmethod
    def of(cls, text: str, problems: Problems, separator: str = ",") -> CsvRows:
        """The rows of a whole text."""
        return cls(io.StringIO(text, newline=""), problems, separator)

    def __iter__(self) -> Iterator[tuple[int, list[str]]]:
        is_header = True
        for line, row in self._rows():
            if not row or not any(map(str.strip, row)):
                continue
            # One cell by the declared separator, which has another one in it.
            if is_header and len(row) == 1 and (other := next((mark for mark in _SEPARATORS if mark in row[0]), None)):
                separator_name = _SEPARATORS.get(self._separator, repr(self._separator))
                problem = f"the columns are separated by {_SEPARATORS[other]}, not by {separator_name}"
                declaration = "sep= and a tab" if other == "\t" else f"sep={other}"
                remedy = f"Save the file with {separator_name}, or declare the separator in a first line: {declaration}"
                self._problems.add(line, 1, problem, remedy)
                return
            is_header = False
            yield line, row

    def number(self, cell: str) -> str:
        """A number in the form that Python reads. If commas do not separate cells, one may be the decimal point."""
        cell = cell.strip()
        return cell.replace(",", ".") if self._separator != "," and _DECIMAL_COMMA.fullmatch(cell) else cell

    def _rows(self) -> Iterator[tuple[int, list[str]]]:
        # The limit is the module's own and for all readers; raised, it only lets longer cells through.
        csv.field_size_limit(_MAX_CELL_CHARS)
        separator, number = self._separator, self._lines_before
        quoted: list[str] = []
        # The reader gets the line with the quote, and takes further ones itself while the quote is open.
        lines = iter(lambda: quoted.pop() if quoted else next(self._lines), None)
        reader = csv.reader(lines, delimiter=separator, strict=True)  # of rows with quotes alone, since it is slower
        for text in self._lines:
            line = number = number + 1
            if '"' not in text:
                yield line, text.rstrip("\r\n").split(separator)
                continue
            if separator == "\t" and not _is_open(text.rpartition("\t")[2]):
                yield line, [_unquote(cell) for cell in text.rstrip("\r\n").split("\t")]
                continue
            quoted.append(text)
            first_line = reader.line_num + 1
            try:
                row = next(reader)
            except csv.Error as error:
                spans_lines = reader.line_num > first_line or "unexpected end" in str(error)
                problem = "a quote is not closed" if spans_lines else f"not CSV: {error}"
                remedy = 'Put a field with commas in quotes; write a quote within the field twice: "say ""hi"""'
                self._problems.add(line, 1, problem, remedy)
            else:
                yield line, row
            number += reader.line_num - first_line


def _is_open(cell: str) -> bool:
    """Whether a cell continues in the next line."""
    return cell.startswith('"') and cell.count('"') % 2 == 1


def _unquote(cell: str) -> str:
    """The text of a cell between tabs. Common Voice doubles quotes without enclosing cells; spreadsheets do both."""
    if '"' not in cell:
        return cell
    inside = cell[1:-1]
    is_enclosed = len(cell) > 1 and cell[0] == cell[-1] == '"' and '"' not in inside.replace('""', "")
    return (inside if is_enclosed else cell).replace('""', '"')


_ENCODING = "--encoding"
_SAVE_AS_UTF_8 = "Save the file as UTF-8"


def as_utf_8(fault: InputError) -> InputError:
    """The fault with a remedy that does not name the option for encodings, for a command without it."""
    if isinstance(fault, InputProblems):
        return InputProblems([as_utf_8(problem) for problem in fault.problems])
    return InputError(fault.what, place=fault.place, remedy=_SAVE_AS_UTF_8) if _ENCODING in fault.remedy else fault

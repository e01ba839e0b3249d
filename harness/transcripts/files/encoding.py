"""The text of a file of transcripts: bytes decoded, line ends made one, what is no text refused."""

from __future__ import annotations

import codecs
import io
import re
from pathlib import Path

from harness.base.line_stream import checked_encoding, fault_in, line_blocks, too_long
from harness.base.problems import Problems
from harness.model.errors import InputError, Place

UTF_8 = "utf-8"
_WITH_MARK = "utf-8-sig"
_CONTROL_BYTES = bytes([*range(0x09), 0x0B, 0x0C, *range(0x0E, 0x20), 0x7F])
# What line_stream takes for a fault. A search of a large text for the whole class is slow, so that each kind is looked
# for in the cheapest way first.
_C1 = re.compile("[\x80-\x9f]")
_RARE = ("\u2028", "\u2029", "\ufeff")
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def read_text(path: Path, encoding: str | None = None, *, may_be_empty: bool = False) -> str:
    """The text of a file, each line ended by a line feed, without a byte order mark.

    encoding: without it UTF-8. InputError when the file cannot be read, or holds nothing (unless it may_be_empty);
    InputProblems with line and column of every line that holds what is no text (see line_stream).
    """
    codec = checked_encoding(encoding or UTF_8, str(path))
    content = read_bytes(path)
    text = _decoded(content, codec, path)
    if _has_faults(text):
        _refuse(content, codec, path)
    return _with_line_feeds(text, path, may_be_empty=may_be_empty)


def read_text_and_faults(path: Path, encoding: str | None = None) -> tuple[str, dict[int, InputError]]:
    """As `read_text`, for whoever leaves out the lines that hold what is no text: they are named, and left as they are.

    A byte that is not UTF-8 becomes half a character (surrogateescape).
    """
    codec = checked_encoding(encoding or UTF_8, str(path))
    content = read_bytes(path)
    if codec == UTF_8 and not content.startswith(_UTF_16):
        text = content.decode(_WITH_MARK, "surrogateescape")
    else:
        text = _decoded(content, codec, path)
    faulty, text = _has_faults(text), _with_line_feeds(text, path)
    lines = enumerate(text.split("\n"), 1) if faulty else ()
    found = ((number, fault_in(line, Place(str(path), number), codec)) for number, line in lines)
    return text, {number: fault for number, fault in found if fault is not None}


def _decoded(content: bytes, codec: str, path: Path) -> str:
    try:
        return content.decode(_WITH_MARK if codec == UTF_8 else codec)
    except UnicodeError as error:
        _refuse(content, codec, path)
        what = f"the file is not {codec}: {error}"
        raise InputError(what, place=Place(str(path)), remedy="Say what it is: --encoding …") from error


def _with_line_feeds(text: str, path: Path, *, may_be_empty: bool = False) -> str:
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if not may_be_empty and (not text or text.isspace()):
        raise empty(path)
    return text if text.endswith("\n") else text + "\n"


def encoding_name(encoding: str | None) -> str:
    """The name that travels with the transcripts: the one that was asked for, or UTF-8."""
    return encoding or UTF_8


def read_bytes(path: Path) -> bytes:
    """All that a file holds; InputError when it cannot be read."""
    place = Place(str(path))
    try:
        if path.is_dir():
            raise InputError("this is a folder, not a file", place=place, remedy="Name a file of transcripts")
        return path.read_bytes()
    except FileNotFoundError as error:
        raise InputError("there is no such file", place=place, remedy="Check the path") from error
    except (OSError, ValueError) as error:
        what = f"the file cannot be read: {getattr(error, 'strerror', None) or error}"
        raise InputError(what, place=place, remedy="Check the path and its rights") from error


def empty(path: Path) -> InputError:
    """A file that holds nothing."""
    return InputError("the file is empty", place=Place(str(path)), remedy="Check what was to write it")


def _refuse(content: bytes, codec: str, path: Path) -> None:
    """Names the first fault of every line."""
    if codec == UTF_8 and content.startswith(_UTF_16):
        remedy = "The file looks like UTF-16: --encoding utf-16"
        raise InputError("the file is not UTF-8", place=Place(str(path), 1, 1), remedy=remedy)
    problems = Problems(str(path))
    try:
        for block in line_blocks(io.BytesIO(content).read, str(path), codec):
            for number, line in enumerate(block.lines, block.first):
                place = Place(str(path), number)
                if fault := fault_in(line, place, codec) or (too_long(place) if block.cut else None):
                    problems.take(fault)
    except InputError as error:  # the encoding cannot go on
        problems.take(error)
    problems.refuse()


def _has_faults(text: str) -> bool:
    try:
        encoded = text.encode(UTF_8)
    except UnicodeEncodeError:  # half of a pair, which some encodings let through
        return True
    if len(encoded.translate(None, _CONTROL_BYTES)) < len(encoded):
        return True
    return not text.isascii() and (any(sign in text for sign in _RARE) or _C1.search(text) is not None)

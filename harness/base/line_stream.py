"""The lines of a text file or pipe of any size, a block at a time; what is no text in them is found, not raised.

A line ends with a line feed, a carriage return, or both. Memory is that of a block and of the longest line.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from harness.model.errors import InputError, Place

BLOCK = 1 << 18
"""Bytes that are asked for at a time; a pipe gives less, and what it gives is handed on at once."""
LONGEST_LINE = 1 << 22
"""Characters. A longer line is taken for a file that is no text, or has lost its line ends."""

COMMENT = ";;"
"""What a line begins with that is a note, and no transcript."""

_BYTE_ORDER_MARK = "\ufeff"
# What programs take for a line end, for nothing, or for an order to a terminal, each in its own way: control characters
# but tabs, separators of lines and paragraphs, byte order marks. And surrogates: `surrogateescape` makes them of bytes
# that are not of the encoding, and some encodings (UTF-7) can spell them.
_FAULT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff]")


class LineBlock(NamedTuple):
    """Some whole lines, without their ends. first: the number of the first, from 1. faulty: some hold what is no text.

    cut: the last of them is only the beginning of a line that is too long.
    """

    first: int
    lines: list[str]
    faulty: bool
    cut: bool = False


def checked_encoding(name: str, file: str = "") -> str:
    """The encoding's own name; InputError, of the file that is to be read, when there is none of that name for text."""
    try:
        "".encode(name)
        codecs.getincrementaldecoder(name)
        return codecs.lookup(name).name
    except (LookupError, ValueError) as error:
        remedy = "Known are utf-8, latin-1, cp1252, utf-16 and the other text encodings of Python"
        place = Place(file) if file else None
        raise InputError(f"no encoding is called {name!r}", place=place, remedy=remedy) from error


def line_blocks(read: Callable[[int], bytes], file: str, encoding: str = "utf-8") -> Iterator[LineBlock]:
    """The lines of what `read` gives (b"" is its end), without a byte order mark.

    InputError where an encoding cannot go on behind a fault, as UTF-16 cannot.
    """
    decoder = codecs.getincrementaldecoder(encoding)("surrogateescape")
    first, tail, skipping, begun = 1, "", False, False
    ended = False
    while not ended:
        content = read(BLOCK)
        ended = not content
        try:
            text = decoder.decode(content, ended)
        except UnicodeError as error:
            what = f"the file is not {encoding} from about here on"
            raise InputError(what, place=Place(file, first), remedy="Say what it is: --encoding …") from error
        if text and not begun:
            begun, text = True, text.removeprefix(_BYTE_ORDER_MARK)
        text = tail + text
        held = "" if ended or not text.endswith("\r") else "\r"  # a line feed may follow
        if "\r" in text:
            text = text.removesuffix(held).replace("\r\n", "\n").replace("\r", "\n")
        lines = text.split("\n")
        tail = lines.pop()
        if skipping and lines:
            del lines[0]  # the end of the line that was too long
            skipping = False
            first += 1
        if ended and tail and not skipping:
            lines.append(tail)
        if lines:
            yield LineBlock(first, lines, _FAULT.search("\n".join(lines)) is not None)
            first += len(lines)
        if skipping:
            tail = ""
        elif len(tail) > LONGEST_LINE and not ended:
            yield LineBlock(first, [tail[:LONGEST_LINE]], faulty=False, cut=True)
            tail, skipping = "", True
        tail += held


def fault_in(line: str, place: Place, encoding: str) -> InputError | None:
    """What is no text in a line, with its column; None when all of it is."""
    found = _FAULT.search(line)
    if found is None:
        return None
    at = Place(place.file, place.line, found.start() + 1)
    sign = found[0]
    point = ord(sign)
    if "\udc80" <= sign <= "\udcff":
        what = f"byte 0x{point - 0xDC00:02x} is not {encoding.upper()}"
        remedy = "Save the file as UTF-8, or say what it is: --encoding latin-1"
        if point - 0xDC00 in (0xFE, 0xFF) and place.line == 1 and found.start() == 0:
            remedy = "The file looks like UTF-16: --encoding utf-16"
    elif sign == "\0":
        what = "a NUL character stands here"
        remedy = "Remove it; if there are many, the file is UTF-16 (--encoding utf-16) or no text at all"
    else:
        what = f"the {_kind(point)} U+{point:04X} stands here"
        windows = 0x80 <= point < 0xA0
        remedy = "Remove it; if the file is from Windows: --encoding cp1252" if windows else "Remove it"
        if sign == "\x1a":
            remedy = "Remove it: DOS ended files with it"
    return InputError(what, place=at, remedy=remedy)


def is_comment(line: str) -> bool:
    """Whether a line is a note."""
    return COMMENT in line and line.lstrip().startswith(COMMENT)


def _kind(point: int) -> str:
    if point < 0xA0:
        return "control character"
    if point == ord(_BYTE_ORDER_MARK):
        return "byte order mark"
    return "half character" if 0xD800 <= point < 0xE000 else "separator"


def too_long(place: Place) -> InputError:
    """A line that goes on for more than LONGEST_LINE characters."""
    what = f"the line has more than {LONGEST_LINE:,} characters"
    return InputError(what, place=place, remedy="See whether the file has lost its line ends, or is no text at all")

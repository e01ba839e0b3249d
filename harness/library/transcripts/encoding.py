"""The text of a file of transcripts: bytes decoded, line ends made one, control characters refused."""

from __future__ import annotations

import codecs
import re
from pathlib import Path

from harness.library.transcripts.problems import Problems
from harness.model.errors import InputError, Place

UTF_8 = "utf-8"
_CONTROL_BYTES = bytes([*range(0x09), 0x0B, 0x0C, *range(0x0E, 0x20), 0x7F])
# C0 less tab and line ends, DEL, C1, line and paragraph separators, byte order mark, surrogates. A search of a large
# text for the whole class is slow, so that each kind is looked for in the cheapest way first.
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff]")
_C1 = re.compile("[\x80-\x9f]")
_RARE = ("\u2028", "\u2029", "\ufeff")
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_SAVE = "Save the file as UTF-8, or say what it is: --encoding latin-1"


def read_text(path: Path, encoding: str | None = None) -> str:
    """The text of a file, each line ended by a line feed, without a byte order mark.

    encoding: without it UTF-8. InputError when the file cannot be read or holds nothing; InputProblems with line and
    column of every line with bytes that are not of the encoding, or with control characters.
    """
    content = _read_bytes(path)
    codec = _codec(encoding or UTF_8, path)
    text = _decoded(content, codec, path)
    if _has_control_characters(text):
        _refuse_control_characters(text, path)
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if not text or text.isspace():
        raise InputError("the file is empty", place=Place(str(path)), remedy="Check what was to write it")
    return text if text.endswith("\n") else text + "\n"


def encoding_name(encoding: str | None) -> str:
    """The name that travels with the transcripts: the one that was asked for, or UTF-8."""
    return encoding or UTF_8


def _read_bytes(path: Path) -> bytes:
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


def _codec(encoding: str, path: Path) -> str:
    remedy = "Known are utf-8, latin-1, cp1252, utf-16 and every other encoding of Python"
    try:
        "".encode(encoding)
        name = codecs.lookup(encoding).name
    except (LookupError, UnicodeError, ValueError) as error:
        raise InputError(f"no encoding is called {encoding!r}", place=Place(str(path)), remedy=remedy) from error
    return "utf-8-sig" if name == UTF_8 else name


def _decoded(content: bytes, codec: str, path: Path) -> str:
    try:
        return content.decode(codec)
    except UnicodeError as error:
        if codec == "utf-8-sig" and not content.startswith(_UTF_16):
            _refuse_bytes(content, path)
        remedy = "The file looks like UTF-16: --encoding utf-16" if content.startswith(_UTF_16) else "Check --encoding"
        name = "UTF-8" if codec == "utf-8-sig" else codec
        raise InputError(f"the file is not {name}: {error}", place=Place(str(path)), remedy=remedy) from error


def _refuse_bytes(content: bytes, path: Path) -> None:
    """Names the first byte of every line that is not UTF-8."""
    problems = Problems(str(path))
    lines = content.removeprefix(codecs.BOM_UTF8).replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
    for number, line in enumerate(lines, 1):
        try:
            line.decode(UTF_8)
        except UnicodeDecodeError as error:
            column = len(line[: error.start].decode(UTF_8)) + 1
            problems.add(number, column, f"byte 0x{line[error.start]:02x} is not UTF-8", _SAVE)
    problems.refuse()


def _has_control_characters(text: str) -> bool:
    try:
        encoded = text.encode(UTF_8)
    except UnicodeEncodeError:  # half of a pair, which some encodings let through
        return True
    if len(encoded.translate(None, _CONTROL_BYTES)) < len(encoded):
        return True
    return not text.isascii() and (any(sign in text for sign in _RARE) or _C1.search(text) is not None)


def _refuse_control_characters(text: str, path: Path) -> None:
    problems = Problems(str(path))
    for number, line in enumerate(re.split(r"\r\n|\r|\n", text), 1):
        if found := _CONTROL.search(line):
            what = f"the control character U+{ord(found[0]):04X} is not allowed"
            problems.add(number, found.start() + 1, what, _remedy(found[0]))
    problems.refuse()


def _remedy(sign: str) -> str:
    if sign == "\0":
        return "Remove it; if there are many, the file is UTF-16 (--encoding utf-16) or no text"
    if "\x80" <= sign <= "\x9f":
        return "Remove it; if the file is from Windows, --encoding cp1252"
    return "Remove it from the file"

"""Text from elsewhere (device lines, transcripts, file names, notes), sanitised for a terminal."""

from __future__ import annotations

import re
import unicodedata
from pathlib import PurePath

ELLIPSIS = "…"
MAX_PATH_CHARS = 4096  # PATH_MAX of Linux: a path that is cut names nothing
MAX_MARK_RUN = 4  # Chosen: more marks than languages put on a letter. More would reach into other lines.

_SHORT_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\x1b": "\\e"}
# Cc: controls (C0, DEL, C1). Cf: bidi, zero-width, tags. Cs: lone surrogates, which cannot be printed.
# Co, Cn: no agreed meaning. Zl, Zp: line and paragraph separators.
_UNSAFE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
# Invisible, although Unicode classes them as letters or marks: fillers and variation selectors.
_INVISIBLE = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0") | frozenset(map(chr, range(0xFE00, 0xFE10)))
_FIRST_MARK = "\u0300"

# CSI sequences (colours among them), OSC with its end, two-byte escapes; and backspace.
_ESCAPES = re.compile(
    r"\x1b(?:\[(?P<count>[0-?]*)[ -/]*(?P<last>[@-~])|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -/]*[0-~])|\x08"
)


def strip_terminal_codes(line: str) -> str:
    """A line as a terminal shows it: without colours, zero bytes, and text that was erased or overwritten.

    A shell moves the cursor back over its prompt before it prints a line. For matching only: the rest is not sanitised.
    """
    line = line.replace("\0", "")
    if "\x1b" not in line and "\x08" not in line:
        return line
    characters: list[str] = []
    cursor = position = 0
    for escape in (*_ESCAPES.finditer(line), None):
        text = line[position : escape.start() if escape else None]
        characters[cursor : cursor + len(text)] = text
        cursor += len(text)
        if escape is None:
            break
        position = escape.end()
        count = int(escape["count"]) if (escape["count"] or "").isdecimal() else 0
        match escape["last"] or escape[0]:
            case "D":
                cursor -= min(cursor, max(1, count))
            case "\x08":
                cursor -= min(cursor, 1)
            case "C":
                cursor = min(len(characters), cursor + max(1, count))
            case "G":
                cursor = min(len(characters), max(1, count) - 1)
            case "J" | "K" if count == 0:
                del characters[cursor:]
            case "K" if count == 2:
                characters.clear()  # an erased line begins anew
                cursor = 0
    return "".join(characters)


JOINERS = "\u200c\u200d\ufe0e\ufe0f"
"""Invisible characters that some scripts and emoji need. A browser shows what they join."""
ON_A_PAGE = "\n\t" + JOINERS
"""Characters that a text of several lines on a page may contain unchanged."""


def plain_text(text: str, limit: int = 500, kept: str = "") -> str:
    """One line of printable text of at most `limit` characters; what a terminal might obey becomes an escape.

    Controls, ESC and C1, bidirectional and zero-width characters become visible escapes (`\\e`, `\\x07`, `\\u202e`).
    Long runs of combining marks are shortened. A longer text ends in an ellipsis, never inside an escape. kept:
    characters that stay as they are (`ON_A_PAGE`).
    Print the result without markup: brackets are not escaped.
    """
    if limit < 1:
        raise ValueError(f"a text cannot be cut to {limit} characters")
    # Nearly every text. Below the first combining mark, what is printable is shown as it is.
    if len(text) <= limit and text.isprintable() and (text.isascii() or max(text) < _FIRST_MARK):
        return text
    pieces: list[str] = []
    length = 0
    fitting = 0  # number of pieces that leave room for the ellipsis
    mark_run = 0
    for character in text:
        mark_run = mark_run + 1 if unicodedata.combining(character) else 0
        if mark_run > MAX_MARK_RUN:
            continue
        piece = character if character in kept else _escape(character)
        if length + len(piece) > limit:
            return "".join(pieces[:fitting]) + ELLIPSIS
        pieces.append(piece)
        length += len(piece)
        if length < limit:
            fitting = len(pieces)
    return "".join(pieces)


def shell_word(path: str | PurePath) -> str:
    """A path as one word of a command that a person types into a shell, sanitised."""
    import shlex  # here, since few commands need it

    return shlex.quote(plain_text(str(path), MAX_PATH_CHARS))


def _escape(character: str) -> str:
    """The character, or a visible escape if a terminal might obey it or does not show it."""
    if " " <= character <= "~":
        return character
    if character in _SHORT_ESCAPES:
        return _SHORT_ESCAPES[character]
    category = unicodedata.category(character)
    if category == "Zs":  # a space of any width
        return " "
    if category not in _UNSAFE and character not in _INVISIBLE:
        return character
    point = ord(character)
    if point <= 0xFF:
        return f"\\x{point:02x}"
    return f"\\u{point:04x}" if point <= 0xFFFF else f"\\U{point:08x}"

"""Texts that people write (comments, notes, marks, reasons, answers, names): the same rule for all of them.

A text is stored as it was written, in composed form (NFC), with "\\n" as line end. `foreign.plain_text` and the formats
of files make it safe where it is shown. A text that is too long is refused, never cut.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence

from harness.model.errors import InputError

MAX_TEXT_CHARS = 10_000
MAX_NAME_CHARS = 100
_NOT_STORABLE = re.compile("[\0\ud800-\udfff]")
_JOINERS = str.maketrans("", "", "\u200c\u200d")


def checked_text(text: str, subject: str = "the comment") -> str:
    """The text to store; "" if it is blank.

    Raises InputError if it is too long, or has characters that no file can store.

    subject: names the text in the error.
    """
    clean_text = to_nfc(text)
    if len(clean_text) > MAX_TEXT_CHARS:
        raise InputError(
            f"{subject} has {len(clean_text):,} characters; the limit is {MAX_TEXT_CHARS:,}", remedy="Shorten the text"
        )
    if _NOT_STORABLE.search(clean_text):
        raise InputError(f"{subject} contains a NUL or an incomplete character", remedy="Remove the character")
    return "" if not clean_text or clean_text.isspace() else clean_text


def to_nfc(text: str) -> str:
    """The text in NFC, with "\\n" as line end."""
    return unicodedata.normalize("NFC", text.replace("\r\n", "\n").replace("\r", "\n"))


def required_text(text: str, subject: str) -> str:
    """The text to store, as `checked_text` gives it. Raises InputError if it is blank."""
    clean_text = checked_text(text, subject)
    if not clean_text:
        raise InputError(f"{subject} is empty", remedy="Enter some text")
    return clean_text


def person_name(text: str, subject: str) -> str:
    """The name of a person to store, without surrounding blanks. Raises InputError. subject: such as "rater name"."""
    name = unicodedata.normalize("NFC", text).strip()
    if not name or len(name) > MAX_NAME_CHARS or not name.translate(_JOINERS).isprintable():
        raise InputError(f"{text!r} is not a valid {subject}", remedy=f"Use 1 to {MAX_NAME_CHARS} printable characters")
    return name


def name_key(name: str) -> str:
    """A key that is equal for all spellings of a name: `Ann` and `ann`, composed and decomposed letters."""
    caseless = unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())
    return " ".join(caseless.translate(_JOINERS).split())


def known_name(name: str, known_names: Iterable[str]) -> str:
    """The first of the known names that is another spelling of this name; if there is none, the name itself."""
    key = name_key(name)
    return next((other for other in known_names if name_key(other) == key), name)


def refuse_same_names(names: Sequence[str], subject: str) -> None:
    """Raises InputError if two of the names are one name in different spellings."""
    first_spellings: dict[str, str] = {}
    for name in names:
        other = first_spellings.setdefault(name_key(name), name)
        if other != name:
            raise InputError(f"{other!r} and {name!r} are the same {subject}", remedy="Use a single spelling")

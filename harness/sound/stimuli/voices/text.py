"""What a speech engine gets to read, and how a wrong voice or setting is refused."""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Iterable

from harness.model.errors import LanguageError, VoiceError

MAX_CHARACTERS = 20_000


def one_line(text: str, engine: str) -> str:
    """The text as one line: control characters (engines take some as commands) and line breaks become blanks.

    VoiceError when no letter, number or symbol is left, beyond 20,000 characters, or when it is not valid Unicode.
    """
    if len(text) > MAX_CHARACTERS:
        raise VoiceError(
            f"{engine} was given {len(text)} characters to speak; the limit is {MAX_CHARACTERS}",
            remedy="Split the text into several stimuli",
        )
    if any(unicodedata.category(character) == "Cs" for character in text):
        raise VoiceError("the text holds half a character (a lone surrogate)", remedy="Save the file as UTF-8")
    kept = (" " if unicodedata.category(character) == "Cc" else character for character in text)
    line = unicodedata.normalize("NFC", " ".join("".join(kept).split()))
    # Some engines click or breathe at bare punctuation, which is no speech.
    if not any(unicodedata.category(character)[0] in "LNS" or character in "%&@#" for character in line):
        raise VoiceError(f"{engine} was given nothing to pronounce: {line!r}", remedy="Give the stimulus words to say")
    return line


def excerpt(text: str, length: int = 60) -> str:
    """The beginning of a text, quoted, for a message."""
    return repr(text if len(text) <= length else text[:length] + "…")


def unknown_name(engine: str, name: str, known: Iterable[str]) -> VoiceError:
    """The error for a voice that an engine does not have, with the nearest names."""
    listed = sorted(known)
    folded: dict[str, str] = {}
    for entry in listed:
        folded.setdefault(entry.casefold(), entry)
    near = [folded[found] for found in difflib.get_close_matches(name.casefold(), folded, n=3, cutoff=0.5)]
    meant = f"Did you mean {' or '.join(near)}? " if near else ""
    return VoiceError(
        f"{engine} has no voice called {name!r}", remedy=f"{meant}All of them: harness voices list --engine {engine}"
    )


def checked_range(engine: str, field: str, value: int, low: int, high: int) -> int:
    """The value when low ≤ value ≤ high, else VoiceError naming the field."""
    if not low <= value <= high:
        raise VoiceError(f"{engine}: {field} {value} is out of range", remedy=f"Use {low} to {high}")
    return value


def same_language(asked: str, spoken: Iterable[str]) -> bool:
    """Whether two BCP 47 tags share the language; the region and the script are the voice's own affair."""
    return asked.split("-")[0].casefold() in {tag.split("-")[0].casefold() for tag in spoken}


def wrong_language(engine: str, name: str, asked: str, spoken: str) -> LanguageError:
    """The error for a text in a language that the voice does not speak."""
    return LanguageError(
        f"the voice {engine}:{name} speaks {spoken}, but language is {asked}",
        remedy=f"Set language: {spoken}, or choose a voice for {asked}",
    )

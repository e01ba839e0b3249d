"""Texts as a person may say them: numerals, times, signs and abbreviations become words, in every usual reading.

English has a list of its own, and a few more languages their numerals (spoken_languages). Of any other language only
case, punctuation and what cannot be seen go.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from harness.model.transcript import ENGLISH
from harness.transcripts import spoken_english, spoken_languages
from harness.transcripts.plain_words import apart, plain
from harness.transcripts.readings import Piece, Readings, narrowed, spaced_alike
from harness.transcripts.spoken_text import english_readings

_SAME_SIGNS = str.maketrans({"’": "'", "‘": "'", "`": "'", "′": "'", "″": '"', "”": '"', "“": '"', "‑": "-", "‐": "-"})
_RAISED = re.compile("[⁰¹²³⁴-⁹]+")
_ACCENT = re.compile("(?<=[A-Za-z])[\u0300-\u036f]+")
_OTHER = re.compile(r"[^\x00-\x7f\w\s€£¥₹₩₽₺₪₿¢°×÷−–—⁄]")
# Words that are never half of another one: blue tooth is bluetooth, but now here is not nowhere.
_NEVER_HALF = frozenset((*spoken_english.NUMBER_WORDS, "a", "i", "an", "the", "now"))
# Chunks between spaces that say something else beside others.
_TRIGGERS = spoken_english.NUMBER_WORDS | {"oh", "double", "triple", *(words[-1] for words in spoken_english.PHRASES)}


def primary(language: str) -> str:
    """The language of a BCP 47 tag, without its region."""
    return language.partition("-")[0].lower()


def says_numerals(language: str) -> bool:
    """Whether numerals can be read in a language; where not, digits stay as they are written."""
    return primary(language) == ENGLISH or spoken_languages.is_known(primary(language))


def spoken_readings(text: str, language: str = ENGLISH) -> Readings:
    """The words of a text, and the choices between readings where there are several. language: BCP 47."""
    tongue = primary(language)
    if tongue == ENGLISH:
        return _english(text)
    if spoken_languages.is_known(tongue):
        return spoken_languages.readings(_clean(text), tongue)
    return tuple(plain(text).split())


def comparable(pieces: Readings, others: Readings) -> tuple[Readings, Readings]:
    """Both, with words that only one of them writes as two in either way, and without readings that cannot match."""
    pieces, others = spaced_alike(pieces, others, _NEVER_HALF)
    return narrowed(pieces, others), narrowed(others, pieces)


def _english(text: str) -> Readings:
    if text.isupper():
        text = text.lower()  # then case says nothing of Roman numerals and letters
    found: list[Piece] = []
    for chunk in text.split():
        said = _chunk(chunk)
        if said is None:
            return english_readings(_without_accents(_clean(text)))
        found += said
    return tuple(found)


@lru_cache(maxsize=1 << 15)
def _chunk(chunk: str) -> Readings | None:
    """What a chunk between spaces says wherever it stands; None where that depends on its neighbours.

    Speech has few different words, so that most chunks are looked up.
    """
    clean = _without_accents(_clean(chunk))
    words = re.findall(r"[^\W_]+", clean.lower())
    if (
        any(word in _TRIGGERS or (len(word) == 1 and word not in "ai") or not word.isalpha() for word in words)
        or re.search(r"[^\w\s'\".,;:!?()-]", clean)
        or not words
    ):
        return None
    return english_readings(clean)


def _clean(text: str) -> str:
    """The text with one sign for each letter, raised digits behind ^, and without what cannot be seen."""
    text = _RAISED.sub(lambda found: f"^{unicodedata.normalize('NFKC', found[0])}", text)
    return _OTHER.sub(_seen, apart(text).translate(_SAME_SIGNS))


def _seen(found: re.Match[str]) -> str:
    return found[0] if unicodedata.category(found[0])[0] == "M" else " "


def _without_accents(text: str) -> str:
    """English is written with accents or without."""
    if text.isascii():
        return text
    return unicodedata.normalize("NFC", _ACCENT.sub("", unicodedata.normalize("NFD", text)))

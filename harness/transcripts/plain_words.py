"""Texts in lower case and without punctuation, hundreds of thousands of them as quickly as one long one."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

# An apostrophe or a full stop inside a word binds it ("what's", "a.m."); other punctuation parts words. The sign comes
# first, since a search for it is many times faster than one for what stands before it.
_BINDING = re.compile(r"'(?<=\w')(?=\w)|\.(?<=[^\W\d]\.)(?=[^\W\d])")


def lowered(text: str) -> str:
    """In lower case, with one sign for each letter and one apostrophe."""
    return apart(text).lower().replace("’", "'")


def apart(text: str) -> str:
    """With one sign for each letter, numbers in one sign (½, ², ①) apart from what they are glued to.

    Zero-width signs, soft hyphens and marks of direction vanish: they part no words.
    """
    if text.isascii():
        return text
    signs = {sign: unicodedata.category(sign) for sign in set(text)}
    table = {
        ord(sign): "" if category == "Cf" else f" {unicodedata.normalize('NFKC', sign)} "
        for sign, category in signs.items()
        if category in ("Cf", "No")
    }
    return unicodedata.normalize("NFKC", text.translate(table) if table else text)


def plain(text: str) -> str:
    """The words of a text in lower case with spaces or line ends between, any number of them."""
    text = lowered(text)
    if "'" in text or "." in text:
        text = _BINDING.sub("", text)
    return text.translate(_MARKS)


def plain_texts(texts: Sequence[str]) -> list[str]:
    """Many texts at once, one for one, as words with single spaces between."""
    together = plain("\n".join(texts))
    # A line end within a text parts words as a space does.
    lines = together.split("\n") if together.count("\n") == len(texts) - 1 else map(plain, texts)
    return [" ".join(line.split()) for line in lines]


class _Marks(dict[int, int | None]):
    """What a sign becomes: punctuation, symbols and controls a space, NUL nothing; a line end stays."""

    def __missing__(self, point: int) -> int:
        sign = self[point] = ord(" ") if unicodedata.category(chr(point))[0] in "PSCZ" else point
        return sign


_MARKS = _Marks({0: None, ord("\n"): ord("\n")})

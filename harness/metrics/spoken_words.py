"""Texts as a person would say them: numerals, times and signs become words, contractions are written out."""

from __future__ import annotations

import re
from collections.abc import Sequence

from harness.metrics.numerals import spell_numerals
from harness.metrics.plain_words import lowered, plain

_IS = ("what", "who", "where", "when", "how", "why", "it", "that", "there", "here", "he", "she")
_CONTRACTIONS: dict[str, str] = {
    **{f"{word}'s": f"{word} is" for word in _IS},
    "let's": "let us",
    "i'm": "i am",
    "can't": "can not",
    "cannot": "can not",
    "won't": "will not",
    "shan't": "shall not",
}
_ENDINGS = (("n't", " not"), ("'re", " are"), ("'ve", " have"), ("'ll", " will"), ("'d", " would"))
_SPELLINGS = {"ok": "okay", "o'clock": ""}
# A chunk between spaces that may say something else beside another: numerals, "a m", "per cent".
_BOUND = re.compile(r"\d|^m\b|^cent\b|^[ap](?:m\b(?!$)|\.m\b)")


def spoken_texts(texts: Sequence[str]) -> list[str]:
    """Many texts at once, one for one, as words with single spaces between."""
    together = lowered("\n".join(texts))
    lines = together.split("\n") if together.count("\n") == len(texts) - 1 else map(lowered, texts)
    return [_spoken(line) for line in lines]


def _spoken(text: str) -> str:
    """Of a text in lower case."""
    chunks = list(map(_KNOWN.__getitem__, text.split()))
    said = _written_out(text) if None in chunks else " ".join(filter(None, chunks))
    return _without_and(said) if "hundred and" in said or "thousand and" in said else said


def _written_out(text: str) -> str:
    text = re.sub(r"\bper cent\b", "percent", text)
    text = re.sub(r"(?<=[\d\s])([ap])\.?\s?m\b\.?", r" \1m", text)
    out: list[str] = []
    for word in spell_numerals(text).split():
        bare = word.strip("\"'.,;:!?()[]…-–—")
        if bare in _SPELLINGS:
            out.append(_SPELLINGS[bare])
        elif bare in _CONTRACTIONS:
            out.append(_CONTRACTIONS[bare])
        else:
            ending = next((pair for pair in _ENDINGS if bare.endswith(pair[0]) and bare != pair[0]), None)
            out.append(bare.removesuffix(ending[0]) + ending[1] if ending else word)
    return " ".join(plain(" ".join(out)).split())


def _without_and(said: str) -> str:
    """One hundred and five is one hundred five."""
    words = said.split(" ")
    before = ["", *words]
    return " ".join(
        word
        for word, last in zip(words, before, strict=False)
        if not (word == "and" and last in ("hundred", "thousand"))
    )


class _KnownChunks(dict[str, "str | None"]):
    """What a chunk between spaces says, whatever stands around it; None where that matters.

    Speech has few different words, so that most chunks are looked up; what is kept is bounded.
    """

    MOST = 1 << 16
    LONGEST = 64  # characters: longer chunks are rare, and would make the bound one of chunks, not of memory

    def __missing__(self, chunk: str) -> str | None:
        said = None if _BOUND.search(chunk) else _written_out(chunk)
        if len(chunk) <= self.LONGEST:
            if len(self) >= self.MOST:
                self.clear()
            self[chunk] = said
        return said


_KNOWN = _KnownChunks()

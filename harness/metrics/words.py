"""Words: normalisations that make a reference and a transcript comparable, and the errors between them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rapidfuzz.distance import Levenshtein

from harness.metrics import snor
from harness.metrics.numerals import spell_numerals
from harness.model.scenario import Normalisation


@dataclass(frozen=True, slots=True)
class WordErrors:
    """Word errors (substitutions, deletions and insertions, each 1) over `words` reference words."""

    errors: int
    words: int

    def __post_init__(self) -> None:
        if self.errors < 0 or self.words < 0:
            raise ValueError(f"{self.errors} errors in {self.words} words")

    def within(self, wer: float) -> bool:
        """At most `wer` errors a reference word; over no words, only no errors at all."""
        return self.errors <= wer * self.words + 1e-9

    def __add__(self, other: WordErrors) -> WordErrors:
        return WordErrors(self.errors + other.errors, self.words + other.words)


def normalise(text: str, normalisation: Normalisation) -> tuple[str, ...]:
    """The words of a text.

    VERBATIM: as written, split at spaces. PLAIN: lower case, punctuation off. SPOKEN: PLAIN, and as a person would say
    it: digits, times and signs become words, contractions are written out.
    """
    match normalisation:
        case Normalisation.VERBATIM:
            return tuple(text.split())
        case Normalisation.PLAIN:
            return _plain(text)
        case Normalisation.SPOKEN:
            return _spoken(text)
        case Normalisation.SNOR:
            return snor.words(text, snor.Form.LEXICAL)
        case Normalisation.EXPANDED_SNOR:
            return snor.words(text, snor.Form.EXPANDED)


def word_errors(reference: Sequence[str], hypothesis: Sequence[str]) -> WordErrors:
    """The least number of word errors between two normalised texts."""
    return WordErrors(Levenshtein.distance(reference, hypothesis), len(reference))


def best_word_errors(references: Iterable[Sequence[str]], hypothesis: Sequence[str]) -> WordErrors:
    """Against the reference that fits best: fewest errors a word, the first of equals. ValueError without any."""
    return min((word_errors(reference, hypothesis) for reference in references), key=_rate)


def _rate(found: WordErrors) -> float:
    return found.errors / found.words if found.words else float(found.errors)


def _plain(text: str) -> tuple[str, ...]:
    # An apostrophe or a full stop inside a word binds it ("what's", "a.m."); other punctuation parts words.
    lowered = unicodedata.normalize("NFKC", text).lower().replace("’", "'")
    bound = re.sub(r"(?<=\w)'(?=\w)|(?<=[^\W\d])\.(?=[^\W\d])", "\0", lowered)
    parted = "".join(" " if _is_mark(sign) else sign for sign in bound)
    return tuple(parted.replace("\0", "").split())


def _is_mark(sign: str) -> bool:
    return sign != "\0" and unicodedata.category(sign)[0] in "PSCZ"


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


def _spoken(text: str) -> tuple[str, ...]:
    lowered = unicodedata.normalize("NFKC", text).lower().replace("’", "'")
    lowered = re.sub(r"\bper cent\b", "percent", lowered)
    lowered = re.sub(r"(?<=[\d\s])([ap])\.?\s?m\b\.?", r" \1m", lowered)
    said = spell_numerals(lowered)
    out: list[str] = []
    for word in re.findall(r"[^\s]+", said):
        bare = word.strip("\"'.,;:!?()[]…-–—")
        if bare in _SPELLINGS:
            out.append(_SPELLINGS[bare])
        elif bare in _CONTRACTIONS:
            out.append(_CONTRACTIONS[bare])
        else:
            ending = next((pair for pair in _ENDINGS if bare.endswith(pair[0]) and bare != pair[0]), None)
            out.append(bare.removesuffix(ending[0]) + ending[1] if ending else word)
    words = _plain(" ".join(out))
    return tuple(
        word
        for index, word in enumerate(words)
        if not (word == "and" and index and words[index - 1] in ("hundred", "thousand"))
    )

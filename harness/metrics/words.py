"""Words: normalisations that make a reference and a transcript comparable, and the counts between them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence

from harness.metrics import snor
from harness.metrics.alignment import align, count
from harness.metrics.numerals import spell_numerals
from harness.model.normalisation import Normalisation
from harness.model.transcript import WordCounts


def normalise(text: str, normalisation: Normalisation) -> tuple[str, ...]:
    """The words of a text.

    VERBATIM: as written, split at spaces. PLAIN: lower case, punctuation off. SPOKEN: PLAIN, and as a person would say
    it: digits, times and signs become words, contractions are written out. SNOR, EXPANDED_SNOR: the text is .sro,
    without an utterance id; InputError with the column where its marks are wrong.
    """
    match normalisation:
        case Normalisation.VERBATIM:
            return tuple(text.split())
        case Normalisation.PLAIN:
            return _plain(text)
        case Normalisation.SPOKEN:
            return _spoken(text)
        case Normalisation.SNOR:
            return snor.words(text, snor.Form.LEXICAL, with_id=False)
        case Normalisation.EXPANDED_SNOR:
            return snor.words(text, snor.Form.EXPANDED, with_id=False)


def word_counts(reference: Sequence[str], hypothesis: Sequence[str]) -> WordCounts:
    """What became of the words of one normalised text in another, by sclite's alignment."""
    return count(align(reference, hypothesis))


def best_of(counts: Iterable[WordCounts]) -> int:
    """Which of several is best: fewest errors a word (over no words: fewest), the first of equals. ValueError of none.

    The errors a word decide, as they do on recognised or not.
    """
    rates = [float(one.errors) if one.wer is None else one.wer for one in counts]
    return rates.index(min(rates))


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

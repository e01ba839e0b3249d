"""Many texts at once against texts one by one, sign by sign, as the normalisations are meant."""

from __future__ import annotations

import re
import sys
import unicodedata

from hypothesis import given, settings
from hypothesis import strategies as st

from harness.metrics import numerals, spoken_words
from harness.metrics.words import normalise, normalise_texts
from harness.model.normalisation import Normalisation

WORDS = (
    *(
        "a",
        "p",
        "m",
        "am",
        "a.m.",
        "p.m",
        "p.",
        "A.M.",
        "per",
        "cent",
        "50",
        "5",
        "%",
        "$",
        "=",
        "&",
        "-3",
        "7:30",
        "x",
    ),
    *("hundred", "thousand", "and", "hundred-and", "it's", "can't", "o'clock", "Σ"),
)
TEXTS = st.lists(
    st.lists(st.sampled_from(WORDS) | st.text(max_size=4), max_size=8).map(" ".join)
    | st.text(st.sampled_from("am.p'’-c5 \t\n\0Σe\u0301\u0338=&hundred"), max_size=16),
    max_size=4,
)


def plain(text: str) -> list[str]:
    low = unicodedata.normalize("NFKC", text).lower().replace("’", "'")
    out = []
    for before, sign, after in zip(" " + low, low, low[1:] + " ", strict=False):
        letters = all(re.fullmatch(r"[^\W\d]", one) for one in (before, after))
        inside = all(re.fullmatch(r"\w", one) for one in (before, after))
        if sign == "\0" or (sign == "'" and inside) or (sign == "." and letters):
            continue
        out.append(" " if unicodedata.category(sign)[0] in "PSCZ" else sign)
    return "".join(out).split()


def spoken(text: str) -> list[str]:
    low = unicodedata.normalize("NFKC", text).lower().replace("’", "'")
    low = re.sub(r"\bper cent\b", "percent", low)
    low = re.sub(r"(?<=[\d\s])([ap])\.?\s?m\b\.?", r" \1m", low)
    out = []
    for word in numerals.spell_numerals(low).split():
        bare = word.strip("\"'.,;:!?()[]…-–—")
        known = {**spoken_words._CONTRACTIONS, **spoken_words._SPELLINGS}
        ending = next((one for one in spoken_words._ENDINGS if bare.endswith(one[0]) and bare != one[0]), None)
        written_out = bare.removesuffix(ending[0]) + ending[1] if ending else word
        out.append(known.get(bare, written_out))
    words = plain(" ".join(out))
    pairs = zip(["", *words], words, strict=False)
    return [word for last, word in pairs if not (word == "and" and last in ("hundred", "thousand"))]


@settings(max_examples=600, deadline=None)
@given(TEXTS)
def test_texts_at_once_are_texts_one_by_one(texts: list[str]) -> None:
    for normalisation, said in ((Normalisation.PLAIN, plain), (Normalisation.SPOKEN, spoken)):
        wanted = [said(text) for text in texts]
        assert normalise_texts(texts, normalisation) == list(map(" ".join, wanted))
        assert [normalise(text, normalisation) for text in texts] == list(map(tuple, wanted))


def test_every_sign_of_unicode_is_a_mark_or_a_letter() -> None:
    signs = [sign for sign in map(chr, range(sys.maxunicode + 1)) if unicodedata.category(sign) not in ("Cn", "Co")]
    text = " ".join(f"a{sign}b" for sign in signs)
    assert list(normalise(text, Normalisation.PLAIN)) == plain(text)

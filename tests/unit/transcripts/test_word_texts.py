"""Many texts at once against texts one by one, sign by sign, as the normalisations are meant."""

from __future__ import annotations

import re
import sys
import unicodedata

from hypothesis import given, settings
from hypothesis import strategies as st

from harness.model.transcript import Normalisation
from harness.transcripts import spoken_words
from harness.transcripts.spoken_text import english_readings
from harness.transcripts.words import normalise, normalise_texts

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
    *(
        "hundred",
        "thousand",
        "and",
        "hundred-and",
        "it's",
        "can't",
        "o'clock",
        "Σ",
        "TV",
        "II",
        "U.S.",
        "oh",
        "½",
        "km",
    ),
    *(
        "wi",
        "fi",
        "to",
        "do",
        "list",
        "no.",
        "in.",
        "Jan.",
        "sun",
        "e",
        "mail",
        "check-in",
        "vs.",
        "you",
        "tube",
        "\u00ad",
    ),
)
TEXTS = st.lists(
    st.lists(st.sampled_from(WORDS) | st.text(max_size=4), max_size=8).map(" ".join)
    | st.text(st.sampled_from("am.p'’-c5 \t\n\0Σe\u0301\u0338=&hundred"), max_size=16),
    max_size=4,
)


def plain(text: str) -> list[str]:
    signs = (sign for sign in text if unicodedata.category(sign) != "Cf")
    apart = (
        f" {unicodedata.normalize('NFKC', sign)} " if unicodedata.category(sign) == "No" else sign for sign in signs
    )
    low = unicodedata.normalize("NFKC", "".join(apart)).lower().replace("’", "'")
    out = []
    for before, sign, after in zip(" " + low, low, low[1:] + " ", strict=False):
        letters = all(re.fullmatch(r"[^\W\d]", one) for one in (before, after))
        inside = all(re.fullmatch(r"\w", one) for one in (before, after))
        if sign == "\0" or (sign == "'" and inside) or (sign == "." and letters):
            continue
        out.append(" " if unicodedata.category(sign)[0] in "PSCZ" else sign)
    return "".join(out).split()


@settings(max_examples=600, deadline=None)
@given(TEXTS)
def test_texts_at_once_are_texts_one_by_one(texts: list[str]) -> None:
    wanted = [plain(text) for text in texts]
    assert normalise_texts(texts, Normalisation.PLAIN) == list(map(" ".join, wanted))
    assert [normalise(text, Normalisation.PLAIN) for text in texts] == list(map(tuple, wanted))


@settings(max_examples=200, deadline=None)
@given(TEXTS)
def test_words_that_are_looked_up_are_read_as_in_their_text(texts: list[str]) -> None:
    for text in texts:
        clean = spoken_words._without_accents(spoken_words._clean(text.lower() if text.isupper() else text))
        assert spoken_words.spoken_readings(text) == english_readings(clean)


def test_every_sign_of_unicode_is_a_mark_or_a_letter() -> None:
    signs = [sign for sign in map(chr, range(sys.maxunicode + 1)) if unicodedata.category(sign) not in ("Cn", "Co")]
    text = " ".join(f"a{sign}b" for sign in signs)
    assert list(normalise(text, Normalisation.PLAIN)) == plain(text)

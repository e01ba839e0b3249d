"""Normalisations and word errors."""

from __future__ import annotations

import re
import sys
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.model.transcript import MOST_PAIRS, Normalisation, Rewriting
from harness.transcripts import spoken_words
from harness.transcripts.alignment import align, count
from harness.transcripts.numerals import cardinal, ordinal
from harness.transcripts.readings import rewrite
from harness.transcripts.spoken_text import english_readings
from harness.transcripts.words import best_of, normalise, normalise_texts, word_counts

SAME = [
    ("Set an alarm for 1:00", "set an alarm for one o'clock"),
    ("wake me at 7:30 a.m.", "Wake me at seven thirty AM"),
    ("at 7:05", "at seven oh five"),
    ("What's 7x8?", "what is seven times eight"),
    ("7 × 8", "seven times eight"),
    ("12 + 30", "twelve plus thirty"),
    ("50%", "fifty per cent"),
    ("50 percent", "fifty per cent"),
    ("21.5 degrees", "twenty-one point five degrees"),
    ("the 3rd of May", "the third of may"),
    ("105 people", "one hundred and five people"),
    ("in 1999", "in nineteen ninety-nine"),
    ("1,000,000", "one million"),
    ("I'm sure you can't", "I am sure you cannot"),
    ("don't", "do not"),
    ("it’s 5°", "it is five degrees"),
    ("$5", "five dollars"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_the_same_thing_is_said(one: str, other: str) -> None:
    assert normalise(one, Normalisation.SPOKEN) == normalise(other, Normalisation.SPOKEN)


@pytest.mark.parametrize(("one", "other"), [("at 7:30", "at 7:13"), ("thirteen", "30"), ("can", "can't"), ("1", "2")])
def test_different_things_stay_different(one: str, other: str) -> None:
    assert normalise(one, Normalisation.SPOKEN) != normalise(other, Normalisation.SPOKEN)


def test_plain_and_verbatim() -> None:
    assert normalise("  What's up, Doc? 21.5 ", Normalisation.PLAIN) == ("whats", "up", "doc", "21", "5")
    assert normalise("What's up,  Doc?", Normalisation.VERBATIM) == ("What's", "up,", "Doc?")


@pytest.mark.parametrize(
    ("number", "words"), [(0, "zero"), (21, "twenty one"), (1100, "one thousand one hundred"), (10**9, "one billion")]
)
def test_cardinals(number: int, words: str) -> None:
    assert cardinal(number) == words


@pytest.mark.parametrize(
    ("number", "words"), [(1, "first"), (12, "twelfth"), (20, "twentieth"), (101, "one hundred first")]
)
def test_ordinals(number: int, words: str) -> None:
    assert ordinal(number) == words


@given(st.text(max_size=60))
def test_normalising_never_fails_and_leaves_single_words(text: str) -> None:
    for normalisation in (Normalisation.VERBATIM, Normalisation.PLAIN, Normalisation.SPOKEN):
        for word in normalise(text, normalisation):
            assert word
            assert word.split() == [word]


WORDS = st.lists(st.sampled_from(["a", "b", "c", "d"]), max_size=8)


@given(WORDS, WORDS)
def test_counts_are_of_both_texts_whole(reference: list[str], hypothesis: list[str]) -> None:
    found = word_counts(reference, hypothesis)
    assert found.words == len(reference)
    assert found.correct + found.substitutions + found.insertions == len(hypothesis)
    assert (found.errors == 0) == (reference == hypothesis)


def test_counts_are_those_of_the_scorer_not_of_the_least_distance() -> None:
    # Five substitutions are the least number of errors; by the scorer's weights six that keep two words are cheaper.
    found = word_counts(list("abcde"), list("dexyz"))
    assert (found.correct, found.substitutions, found.deletions, found.insertions) == (2, 0, 3, 3)
    reference, hypothesis = ["a", "b", "c", "d"], ["b", "x", "c", "y", "z"]
    assert word_counts(reference, hypothesis) == count(align(reference, hypothesis))


@pytest.mark.parametrize(
    ("texts", "best"),
    [
        ((["a", "b"], ["a", "c", "d"]), 1),
        ((["a", "c", "d", "e"], ["a", "c"]), 0),  # one error of four words, one of two
        ((["a", "c", "x"], ["a", "c", "y"]), 0),  # equals: the first
        (([], ["a", "b", "c", "d", "e"]), 1),  # over no words each error counts as one a word
    ],
)
def test_the_best_has_the_fewest_errors_a_word(texts: tuple[list[str], ...], best: int) -> None:
    assert best_of(word_counts(text, ["a", "c", "d"]) for text in texts) == best


CHUNKS = (
    "a p m am a.m. p.m p. A.M. per cent 50 5 % $ = & -3 7:30 x hundred thousand and hundred-and it's can't o'clock Σ "
    "TV II U.S. oh ½ km wi fi to do list no. in. Jan. sun e mail check-in vs. you tube \u00ad"
)
TEXTS = st.lists(
    st.lists(st.sampled_from(CHUNKS.split(" ")) | st.text(max_size=4), max_size=8).map(" ".join)
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


Pair = tuple[tuple[str, ...], tuple[str, ...]]


def rewriting(**same: str) -> Rewriting:
    pairs = tuple((tuple(written.split("_")), tuple(meant.split())) for written, meant in same.items())
    return Rewriting("list", Normalisation.PLAIN, pairs)


@pytest.mark.parametrize(
    ("said", "counts_as"),
    [
        ("turn the light bulb on", "turn the lightbulb on"),
        ("light", "lamp"),
        ("light light bulb", "lamp lightbulb"),
        ("light bulb socket", "fitting of it"),
        ("uh light uh", "lamp"),
        ("bulb", "bulb"),
        ("", ""),
    ],
)
def test_the_longest_phrase_that_fits_counts_as_its_other(said: str, counts_as: str) -> None:
    list_ = rewriting(light="lamp", light_bulb="lightbulb", light_bulb_socket="fitting of it", uh="", lamp="never")
    assert " ".join(rewrite(said.split(), list_)) == counts_as


def test_what_was_rewritten_is_not_looked_at_again() -> None:
    assert rewrite(("a", "a", "b"), rewriting(a="b", b="a", b_b="c")) == ("b", "b", "a")


words = st.lists(st.sampled_from("abc"), max_size=4).map(tuple)
pairs = st.dictionaries(words.filter(bool), words, max_size=6)


@given(st.lists(st.sampled_from("abc"), max_size=12), pairs)
def test_it_is_what_trying_every_pair_from_left_to_right_gives(said: list[str], same: dict[Pair, Pair]) -> None:
    left, wanted = tuple(said), []
    while left:
        fitting = [written for written in same if left[: len(written)] == written]
        longest = max(fitting, key=len, default=None)
        wanted += same[longest] if longest else left[:1]
        left = left[len(longest or left[:1]) :]
    assert rewrite(said, Rewriting("list", Normalisation.PLAIN, tuple(same.items()))) == tuple(wanted)  # type: ignore[arg-type]


def test_a_list_that_says_two_things_of_one_phrase_is_none() -> None:
    with pytest.raises(ValueError, match="two meanings"):
        Rewriting("list", Normalisation.PLAIN, ((("a",), ("b",)), (("a",), ("c",))))
    with pytest.raises(ValueError, match="without words"):
        Rewriting("list", Normalisation.PLAIN, (((), ("b",)),))
    with pytest.raises(ValueError, match="201 pairs"):
        Rewriting("list", Normalisation.PLAIN, tuple(((str(n),), ()) for n in range(MOST_PAIRS + 1)))

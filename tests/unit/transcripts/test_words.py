"""Normalisations and word errors."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model.scenario import Normalisation
from harness.transcripts.alignment import align, count
from harness.transcripts.numerals import cardinal, ordinal
from harness.transcripts.words import best_of, normalise, word_counts

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

"""Normalisations and word errors."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.metrics.numerals import cardinal, ordinal
from harness.metrics.words import WordErrors, best_word_errors, normalise, word_errors
from harness.model.scenario import Normalisation

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
    for normalisation in Normalisation:
        for word in normalise(text, normalisation):
            assert word
            assert word.split() == [word]


WORDS = st.lists(st.sampled_from(["a", "b", "c", "d"]), max_size=8)


@given(WORDS, WORDS)
def test_errors_are_a_distance(one: list[str], other: list[str]) -> None:
    found = word_errors(one, other)
    assert found.words == len(one)
    assert found.errors == word_errors(other, one).errors
    assert (found.errors == 0) == (one == other)
    assert abs(len(one) - len(other)) <= found.errors <= max(len(one), len(other))


def test_the_best_reference_counts_and_errors_add() -> None:
    assert best_word_errors([["a", "b"], ["a", "c", "d"]], ["a", "c", "d"]) == WordErrors(0, 3)
    assert WordErrors(1, 4) + WordErrors(2, 5) == WordErrors(3, 9)
    assert WordErrors(1, 5).within(0.2)
    assert not WordErrors(1, 0).within(1.0)
    with pytest.raises(ValueError, match="errors"):
        WordErrors(-1, 2)

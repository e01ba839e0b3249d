"""One pair of word sequences, its path, counts and words side by side."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rapidfuzz.distance import Levenshtein

from harness.model.transcript import AlignedWord, Edit, WordCounts
from harness.transcripts import alignment
from harness.transcripts.alignment import align, count, side_by_side
from tests.unit.transcripts.alignment_table import path_by_table

WORDS = st.lists(st.sampled_from(["a", "b", "c", "d", "word", "a longer word", ""]), max_size=14)


@pytest.mark.parametrize(
    ("reference", "hypothesis", "path"),
    [
        ("", "", ""),
        ("a b", "a b", "CC"),
        ("a b", "", "DD"),
        ("", "a b", "II"),
        ("a b c", "a c", "CDC"),
        ("a c", "a b c", "CIC"),
        ("a", "b", "S"),
        # A substitution costs 4, less than a deletion and an insertion.
        ("a b", "b a", "DCI"),
        # One word wrong among two: the substitution is the last that fits.
        ("a", "b c", "IS"),
        ("a b", "c", "DS"),
    ],
)
def test_paths(reference: str, hypothesis: str, path: str) -> None:
    assert align(reference.split(), hypothesis.split()) == path


@given(WORDS, WORDS)
def test_the_path_is_that_of_the_tie_rule_word_for_word(reference: list[str], hypothesis: list[str]) -> None:
    assert align(reference, hypothesis) == path_by_table(reference, hypothesis)


@given(WORDS, WORDS)
def test_no_path_is_cheaper(reference: list[str], hypothesis: list[str]) -> None:
    counts = count(align(reference, hypothesis))
    cost = 4 * counts.substitutions + 3 * (counts.deletions + counts.insertions)
    assert cost == Levenshtein.distance(reference, hypothesis, weights=(3, 3, 4))


@given(WORDS, WORDS)
def test_words_side_by_side_are_both_texts(reference: list[str], hypothesis: list[str]) -> None:
    steps = side_by_side(reference, hypothesis, align(reference, hypothesis))
    assert [step.reference for step in steps if step.edit is not Edit.INSERTION] == reference
    assert [step.hypothesis for step in steps if step.edit is not Edit.DELETION] == hypothesis
    for step in steps:
        match step.edit:
            case Edit.CORRECT:
                assert step.reference == step.hypothesis
            case Edit.SUBSTITUTION:
                assert step.reference != step.hypothesis


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 6))
def test_long_texts_go_by_diagonals_to_the_same_path(seed: int, vocabulary: int) -> None:
    words = [str((seed >> shift) % 7 % vocabulary) for shift in range(32)]
    reference, hypothesis = words * 2, words[::-1] + words[:9]
    assert alignment._align_long(reference, hypothesis) == path_by_table(reference, hypothesis)


def test_a_whole_conversation_is_aligned_in_one_piece() -> None:
    reference = [f"w{index * index % 997}" for index in range(1500)]
    hypothesis = [word for index, word in enumerate(reference) if index % 31] + ["end"]
    counts = count(align(reference, hypothesis))
    assert (counts.correct, counts.deletions) == (1500 - 49 - counts.substitutions, 49)
    assert counts.substitutions + counts.insertions == 1


def test_counts_of_a_path() -> None:
    assert count("CCSDII") == WordCounts(2, 1, 1, 2, sentences=1, sentences_with_error=1)
    assert count("") == WordCounts(sentences=1)


def test_a_path_of_other_words_is_refused() -> None:
    assert side_by_side(["a"], ["b"], "S") == (AlignedWord(Edit.SUBSTITUTION, "a", "b"),)
    with pytest.raises(ValueError, match="shorter than the words"):
        side_by_side(["a", "b"], ["b"], "S")

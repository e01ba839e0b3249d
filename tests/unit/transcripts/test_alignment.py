"""One pair of word sequences, its path, counts and words side by side."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz.distance import Levenshtein

from harness.model.errors import InputError, Place
from harness.model.transcript import AlignedWord, Edit, WordCounts
from harness.transcripts import alignment
from harness.transcripts import alignment as alignment_batch
from harness.transcripts import alignment_tables as alignment_long
from harness.transcripts.alignment import Alignments, align, count, side_by_side
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
def test_a_pair_is_aligned_along_the_expected_path(reference: str, hypothesis: str, path: str) -> None:
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
def test_aligned_words_contain_both_texts(reference: list[str], hypothesis: list[str]) -> None:
    steps = side_by_side(reference, hypothesis, align(reference, hypothesis))
    assert [step.reference for step in steps if step.edit is not Edit.INSERTION] == reference
    assert [step.hypothesis for step in steps if step.edit is not Edit.DELETION] == hypothesis
    for step in steps:
        match step.edit:
            case Edit.CORRECT:
                assert step.reference == step.hypothesis
            case Edit.SUBSTITUTION:
                assert step.reference != step.hypothesis


@given(st.integers(0, 2**32), st.integers(1, 6))
def test_long_texts_go_by_diagonals_to_the_same_path(seed: int, vocabulary: int) -> None:
    words = [str((seed >> shift) % 7 % vocabulary) for shift in range(32)]
    reference, hypothesis = words * 2, words[::-1] + words[:9]
    assert alignment._align_long(reference, hypothesis) == path_by_table(reference, hypothesis)


def test_a_path_of_other_words_is_refused() -> None:
    assert side_by_side(["a"], ["b"], "S") == (AlignedWord(Edit.SUBSTITUTION, "a", "b"),)
    with pytest.raises(ValueError, match="shorter than the words"):
        side_by_side(["a", "b"], ["b"], "S")


PLAIN = ("a", "b", "c", "eightfit", "ninewords", "ninewordt", "überlänge", "日本語", "日本")
ODD = (*PLAIN, "", " ", "two words", "\n", "a\0", "a\0\0", "\udc80")


def _texts(words: tuple[str, ...]) -> st.SearchStrategy[list[str]]:
    return st.lists(st.lists(st.sampled_from(words), max_size=12).map(" ".join), max_size=12)


def _words(text: str) -> list[str]:
    return text.split(" ") if text else []


def _holds(alignments: Alignments, references: Sequence[str], hypotheses: Sequence[str]) -> None:
    paths = [
        path_by_table(_words(reference), _words(heard)) for reference, heard in zip(references, hypotheses, strict=True)
    ]
    assert alignments.paths(range(len(paths))) == paths
    columns = alignments.columns
    for column, letter in zip(
        (columns.correct, columns.substitutions, columns.deletions, columns.insertions), "CSDI", strict=True
    ):
        assert column.tolist() == [path.count(letter) for path in paths]
    assert columns.totals() == sum(map(count, paths), WordCounts())


@pytest.mark.parametrize("words", [PLAIN, ODD], ids=["plain", "odd"])
@given(st.data())
def test_many_pairs_are_aligned_as_each_alone(words: tuple[str, ...], data: st.DataObject) -> None:
    references, hypotheses = data.draw(_texts(words)), data.draw(_texts(words))
    pairs = min(len(references), len(hypotheses))
    _holds(Alignments(references[:pairs], hypotheses[:pairs]), references[:pairs], hypotheses[:pairs])


@pytest.mark.parametrize("size", [1, 40, 1 << 22])
def test_chunks_of_any_size_give_the_same(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alignment_batch, "CHUNK_CHARS", size)
    random = np.random.default_rng(size)
    # Around 63 words the cells of a group outgrow 16 bits.
    lengths = [0, 1, 2, 3, 5, 8, 40, 62, 63, 64, 65, 79, 100]
    references, hypotheses = (
        [" ".join(random.choice(["a", "b", "c"], random.choice(lengths))) for _ in range(90)] for _ in range(2)
    )
    alignments = Alignments(references, hypotheses)
    _holds(alignments, references, hypotheses)
    (last,), (fourth,) = alignments.paths([89]), alignments.paths([3])
    assert alignments.paths([89, 3, 3]) == [last, fourth, fourth]
    assert alignments.paths([]) == []


def test_long_pairs_are_aligned_by_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alignment_batch, "MIN_LONG_WORDS", 20)
    monkeypatch.setattr(alignment_batch, "MAX_COMMON_ROUNDS", 4)
    random = np.random.default_rng(1)
    ends = [["e"] * size for size in (0, 3, 4, 5, 30)]
    references, hypotheses = (
        [" ".join([*random.choice(["a", "b", "c"], size), *end]) for size in (0, 1, 19, 20, 40) for end in ends]
        for _ in range(2)
    )
    hypotheses[7], hypotheses[20] = references[7], ""
    alignments = Alignments(references, hypotheses)
    _holds(alignments, references, hypotheses)
    assert alignments.paths([24, 24]) == alignments.paths([24]) * 2


def test_a_pair_that_is_too_long_is_refused_with_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alignment_batch, "MIN_LONG_WORDS", 20)
    monkeypatch.setattr(alignment_long, "MAX_CELLS", 1000)
    monkeypatch.setattr(alignment_long, "MAX_FEW_WORDS", 10)
    texts = ["a", "b c", "x " * 49 + "x"]
    hypotheses = ["a", "b", "y " * 49 + "y"]
    with pytest.raises(
        InputError,
        match=r"^a\.trn:3: texts of 50 and 50 words that differ this much are too long to align\. Split the utterance",
    ):
        Alignments(texts, hypotheses, place_of=lambda row: Place("a.trn", row + 1))


def test_one_long_text_among_short_texts_is_aligned() -> None:
    words = [f"w{index * index % 997}" for index in range(3000)]
    hypothesis_words = [word for index, word in enumerate(words) if index % 31]
    alignments = Alignments(["a", " ".join(words), "b c"], ["b", " ".join(hypothesis_words), "b c"])
    assert alignments.paths(range(3)) == ["S", align(words, hypothesis_words), "CC"]
    assert alignments.columns.deletions.tolist() == [0, 97, 0]


def test_empty_texts_have_an_empty_alignment() -> None:
    assert Alignments([], []).columns.totals() == WordCounts()
    assert Alignments([], []).paths([]) == []
    assert Alignments([""], [""]).columns.totals() == WordCounts(sentences=1)


def test_columns_of_different_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="1 references for 2 hypotheses"):
        Alignments(["a"], ["a", "b"])

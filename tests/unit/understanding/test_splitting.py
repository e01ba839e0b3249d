"""Stratified parts of a corpus."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model.errors import InputError
from harness.model.understanding import Corpus, Utterance
from harness.understanding.splitting import stratified


def corpus(*rows: tuple[str, str]) -> Corpus:
    utterances = [Utterance(str(number), tuple(text.split()), (label,)) for number, (text, label) in enumerate(rows)]
    return Corpus("c", tuple(utterances))


SENTENCES = st.tuples(st.sampled_from(["a", "b", "c d", "C d", "e", "f", "g h", "i"]), st.sampled_from("xyz"))


@given(st.lists(SENTENCES, min_size=20, max_size=60), st.integers(0, 9))
def test_every_utterance_is_in_one_part_and_equal_sentences_are_together(
    rows: list[tuple[str, str]], seed: int
) -> None:
    whole = corpus(*rows)
    try:
        parts = stratified(whole, (2, 1), seed)
    except InputError:
        assert len({text.lower() for text, _ in rows}) < 5
        return
    assert sorted(utterance.id for part in parts for utterance in part.utterances) == sorted(
        utterance.id for utterance in whole.utterances
    )
    sentences = [{utterance.text.lower() for utterance in part.utterances} for part in parts]
    assert not sentences[0] & sentences[1]
    assert parts == stratified(whole, (2, 1), seed)


def test_each_part_has_its_share_of_every_label_even_of_rare_ones() -> None:
    labels = ["often"] * 700 + ["seldom"] * 250 + ["rare"] * 50
    parts = stratified(corpus(*((f"word{number}", label) for number, label in enumerate(labels))), (80, 10, 10), 1)
    counts = [Counter(label for utterance in part.utterances for label in utterance.intents or ()) for part in parts]
    assert counts[0] == Counter(often=560, seldom=200, rare=40)
    assert counts[1] == counts[2] == Counter(often=70, seldom=25, rare=5)


@pytest.mark.parametrize("count", [3, 6, 10, 200])
def test_labels_that_occur_once_leave_no_part_empty(count: int) -> None:
    parts = stratified(corpus(*((f"word{number}", f"label{number}") for number in range(count))), (80, 10, 10), 1)
    tenth = max(1, count // 10)
    assert [len(part.utterances) for part in parts] == [count - 2 * tenth, tenth, tenth]


def test_a_corpus_that_is_too_small_is_refused() -> None:
    with pytest.raises(InputError, match="a part would be empty with only 2 different sentences"):
        stratified(corpus(("a", "x"), ("b", "x"), ("A", "y")), (8, 1, 1), 1)

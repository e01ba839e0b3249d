"""Long texts: a band of the table, filled again in parts, gives the path of the whole table."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harness.model.errors import InputError
from harness.transcripts import alignment_tables as alignment_long
from harness.transcripts.alignment_tables import path_of
from tests.unit.transcripts.alignment_table import path_by_table

LONG_WORDS = st.lists(st.integers(0, 3), max_size=40)


@pytest.fixture(autouse=True)
def _narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Next to no memory, and diagonals for texts of a few words."""
    monkeypatch.setattr(alignment_long, "MAX_BACKTRACE_BYTES", 64)
    monkeypatch.setattr(alignment_long, "MAX_FEW_WORDS", 1)


def _path(reference: list[int], hypothesis: list[int]) -> str:
    return path_of(np.array(reference, np.uint64), np.array(hypothesis, np.uint64))


@given(LONG_WORDS, LONG_WORDS)
@example([], [])
@example([1], [])
@example([], [1, 2])
@example([0] * 30, [1])
@example([1], [0] * 30)
@example([0] * 20 + [1], [1] + [0] * 20)
def test_any_texts_are_aligned_as_by_the_whole_table(reference: list[int], hypothesis: list[int]) -> None:
    assert _path(reference, hypothesis) == path_by_table(reference, hypothesis)


@given(LONG_WORDS, LONG_WORDS)
@example([1], [0] * 30)
@example([0] * 30, [1])
def test_few_words_against_many_are_aligned_correctly(reference: list[int], hypothesis: list[int]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(alignment_long, "MAX_FEW_WORDS", 1000)
        assert _path(reference, hypothesis) == path_by_table(reference, hypothesis)


@given(LONG_WORDS, st.integers(0, 40), st.lists(st.tuples(st.integers(0, 40), st.integers(0, 3)), max_size=4))
def test_mostly_equal_shifted_texts_are_aligned_correctly(
    words: list[int], shift: int, changed: list[tuple[int, int]]
) -> None:
    """The way goes along an edge of the band."""
    hypothesis = words[shift:] + words[:shift]
    for place, word in changed:
        hypothesis[place : place + 1] = [word]
    assert _path(words, hypothesis) == path_by_table(words, hypothesis)


@pytest.mark.parametrize("limit", [0, 1 << 10, 1 << 27])
@pytest.mark.parametrize("words", [2, 5, 300])
def test_the_memory_limit_does_not_change_the_path(words: int, limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alignment_long, "MAX_BACKTRACE_BYTES", limit)
    random = np.random.default_rng(words)
    reference, hypothesis = random.integers(0, words, 230).tolist(), random.integers(0, words, 170).tolist()
    assert _path(reference, hypothesis) == path_by_table(reference, hypothesis)


def test_too_costly_alignment_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alignment_long, "MAX_CELLS", 5000)
    alike = list(range(300))
    assert _path(alike, [*alike[:100], 999, *alike[100:]]) == "C" * 100 + "I" + "C" * 200
    with pytest.raises(
        InputError, match=r"^texts of 300 and 301 words that differ this much are too long to align"
    ) as refused:
        _path(alike, [999] * 301)
    assert refused.value.remedy == "Split the utterance into shorter ones"

from __future__ import annotations

import pytest

from tests.heard import lost_or_repeated, word_error

SAID = ("turn on the kitchen light", "who wrote the old man and the sea", "read me the news of today")


@pytest.mark.parametrize(
    ("heard", "sentences"),
    [
        ("Turn on the kitchen light. Who wrote the old man and the sea? Read me the news of today.", []),
        ("Turn on a kitchen light. Who rode the odd man and the sea? Read me a new one to-day.", []),
        ("Turn on the kitchen light. Read me the news of today.", [SAID[1]]),
        (
            "Turn on the kitchen light. Turn on the kitchen light. Who wrote the old man and the sea?",
            [SAID[0], SAID[2]],
        ),
        ("", list(SAID)),
    ],
)
def test_a_sentence_that_is_lost_or_repeated_is_named_and_wrong_words_are_not(heard: str, sentences: list[str]) -> None:
    assert lost_or_repeated(SAID, heard) == sentences


def test_word_errors_are_counted_without_case_and_punctuation() -> None:
    assert word_error("what time is it", "What time is it?") == 0
    assert word_error("what time is it", "What dime is it now?") == 0.5

"""Recognition of commands is that of queries, but for the phrase that a wake trial itself names."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.metrics.recognition import recognised
from harness.model.scenario import TrialKind
from harness.session.recognition import recognised as recognised_query
from tests.unit.evaluate.rows import planned
from tests.unit.evaluate.wake_rows import wake_trial

words = st.lists(st.sampled_from(["okay", "nabu", "turn", "on", "the", "light", "7", "seven"]), max_size=6).map(
    " ".join
)


@given(words, words)
def test_a_query_is_judged_as_the_session_judges_it(reference: str, heard: str) -> None:
    trial = replace(planned(1, reference), wake_phrases=("okay nabu",))
    assert tuple(recognised(trial, heard)) == tuple(recognised_query(trial, heard))


@pytest.mark.parametrize(
    ("heard", "expected"),
    [
        ("turn on the light", True),
        ("Alexa, turn on the light.", True),
        ("Okay Nabu turn on the light", False),
        ("turn on light", False),
        ("", False),
    ],
)
def test_a_command_with_and_without_its_phrase(heard: str, expected: bool) -> None:
    assert recognised(wake_trial(1, TrialKind.COMMAND), heard).recognised is expected

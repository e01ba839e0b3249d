"""Recognised or not: of queries and of commands."""

from __future__ import annotations

import pytest

from harness.metrics.recognition import recognised
from harness.model.scenario import Normalisation, Recognised, TrialKind
from tests.unit.evaluate.wake_rows import wake_trial
from tests.unit.session.material import trial


@pytest.mark.parametrize(
    ("reference", "heard", "wer", "expected"),
    [
        ("what time is it", "What time is it?", 0.0, (True, 0, 4)),
        ("what time is it", "Alexa, what time is it?", 0.0, (True, 0, 4)),
        ("what's seven times eight", "what is 7 x 8", 0.0, (True, 0, 5)),
        ("set an alarm for one", "Set an alarm for 1:00.", 0.0, (True, 0, 5)),
        ("set an alarm for one", "set an alarm for nine", 0.0, (False, 1, 5)),
        ("set an alarm for one", "set an alarm for nine", 0.2, (True, 1, 5)),
        ("what time is it", "", 0.0, (False, 4, 4)),
        ("alexa", "alexa", 0.0, (True, 0, 1)),
        ("tell me the time", "tell me the hour", 0.0, (True, 0, 4)),
    ],
)
def test_spoken(reference: str, heard: str, wer: float, expected: tuple[bool, int, int]) -> None:
    asked = trial(reference=reference, alternatives=("tell me the hour",), recognised=Recognised(wer=wer))
    assert recognised(asked, heard) == expected


def test_verbatim_forgives_nothing() -> None:
    asked = trial(recognised=Recognised(Normalisation.VERBATIM))
    assert recognised(asked, "What time is it").recognised is False
    assert recognised(asked, "what time is it").recognised is True


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

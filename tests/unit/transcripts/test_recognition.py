"""Recognised or not: of queries and of commands."""

from __future__ import annotations

import pytest

from harness.model.scenario import Normalisation, RecognitionRule, TrialKind
from harness.model.transcript import Rewriting, WordCounts
from harness.transcripts.recognition import recognised
from tests.unit.session.material import trial
from tests.unit.wake.wake_rows import wake_trial


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
def test_spoken_normalisation_decides_recognition(
    reference: str, heard: str, wer: float, expected: tuple[bool, int, int]
) -> None:
    spoken_trial = trial(reference=reference, alternatives=("tell me the hour",), recognised=RecognitionRule(wer=wer))
    recognition = recognised(spoken_trial, heard)
    assert (recognition.recognised, recognition.counts.errors, recognition.counts.words) == expected


def test_the_counts_are_of_the_words_that_fit_best() -> None:
    spoken_trial = trial(reference="dim the light in the hall", alternatives=("dim the lights",))
    recognition = recognised(spoken_trial, "Alexa, dim the lights in the hall!")
    assert recognition.reference == ("dim", "the", "light", "in", "the", "hall")
    assert recognition.heard == ("dim", "the", "lights", "in", "the", "hall")
    assert recognition.counts == WordCounts(5, 1, 0, 0, sentences=1, sentences_with_error=1)
    assert recognised(spoken_trial, "dim the lights").reference == ("dim", "the", "lights")


def test_a_list_of_words_counts_on_top_of_its_base() -> None:
    rewriting = Rewriting("lamps", Normalisation.PLAIN, ((("light", "bulb"), ("lightbulb",)),))
    rule = RecognitionRule(Normalisation.PLAIN, rewriting=rewriting)
    spoken_trial = trial(reference="change the light bulb", recognised=rule)
    assert (rule.name, recognised(spoken_trial, "Change the lightbulb.").recognised) == ("lamps", True)
    assert recognised(spoken_trial, "change the light").counts.substitutions == 1


@pytest.mark.parametrize(
    ("heard", "errors"),
    [("what time is it", 0), ("What time is it?", 0), ("Alexa what time is it", 1), ("what time [uh is it", 1)],
)
def test_snor_normalisation_decides_recognition(heard: str, errors: int) -> None:
    spoken_trial = trial(reference="<what> [um] what . time is it", recognised=RecognitionRule(Normalisation.SNOR))
    recognition = recognised(spoken_trial, f"what {heard}")
    assert (recognition.counts.errors, recognition.counts.words) == (errors, 5)


@pytest.mark.parametrize(
    "heard", ["what time is it (please)", "what time is it (bb00e1sx)", "what time is it (1 please)"]
)
def test_a_device_writes_no_utterance_id(heard: str) -> None:
    counts = recognised(trial(recognised=RecognitionRule(Normalisation.SNOR)), heard).counts
    assert (counts.correct, counts.insertions) == (4, 1)


@pytest.mark.parametrize("heard", ["a <b", "(1", "*", "[", "x ] y", "\0", "< >"])
def test_whatever_a_device_writes_is_only_words(heard: str) -> None:
    for normalisation in Normalisation:
        spoken_trial = trial(recognised=RecognitionRule(normalisation))
        assert recognised(spoken_trial, heard).counts.words == 4


def test_verbatim_requires_exact_words() -> None:
    spoken_trial = trial(recognised=RecognitionRule(Normalisation.VERBATIM))
    assert recognised(spoken_trial, "What time is it").recognised is False
    assert recognised(spoken_trial, "what time is it").recognised is True


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
def test_a_command_is_recognised_with_or_without_its_wake_phrase(heard: str, expected: bool) -> None:
    assert recognised(wake_trial(1, TrialKind.COMMAND), heard).recognised is expected

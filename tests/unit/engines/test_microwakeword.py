from __future__ import annotations

import numpy as np
import pytest

from harness.engines.microwakeword import MicroWakeWord
from harness.model.errors import PluginError
from tests.unit.engines.spoken import spoken

pytestmark = pytest.mark.speech


def pcm(*parts: np.ndarray) -> np.ndarray:
    return (np.clip(np.concatenate(parts), -1, 1) * 32767).astype(np.int16)


SECOND = np.zeros(16000, np.float32)


def test_one_hit_for_each_utterance_with_its_place() -> None:
    phrase = spoken("alexa")
    sound = pcm(SECOND, phrase, SECOND, SECOND, phrase, SECOND)
    hits = MicroWakeWord().feed(sound)
    assert len(hits) == 2
    first_end = 16000 + len(phrase)
    second_end = first_end + 32000 + len(phrase)
    for hit, end in zip(hits, (first_end, second_end), strict=True):
        assert hit.phrase == "alexa"
        assert -0.2 < (hit.sample - end) / 16000 < 0.5
        assert 0.5 < hit.score <= 1


def test_block_size_makes_no_difference() -> None:
    sound = pcm(SECOND, spoken("alexa"), SECOND)
    engine = MicroWakeWord()
    whole = engine.feed(sound)
    engine.reset()
    pieces = tuple(hit for start in range(0, len(sound), 333) for hit in engine.feed(sound[start : start + 333]))
    assert whole == pieces
    assert len(whole) == 1


def test_reset_forgets_the_half_that_was_heard() -> None:
    sound = pcm(SECOND, spoken("alexa"), SECOND)
    engine = MicroWakeWord()
    (hit,) = engine.feed(sound)
    engine.feed(sound[: 16000 + 6000])
    engine.reset()
    assert engine.feed(sound) == (hit,)


def test_a_long_refractory_time_joins_utterances() -> None:
    phrase = spoken("alexa")
    engine = MicroWakeWord(refractory_s=10)
    assert len(engine.feed(pcm(SECOND, phrase, SECOND, SECOND, phrase, SECOND))) == 1


def test_other_words_do_not_wake() -> None:
    assert MicroWakeWord().feed(pcm(SECOND, spoken("what is seven times eight"), SECOND)) == ()


def test_an_unknown_phrase_names_the_known_ones() -> None:
    with pytest.raises(PluginError, match="hey_jarvis"):
        MicroWakeWord("computer")

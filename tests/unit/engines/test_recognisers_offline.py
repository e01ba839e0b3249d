"""The recognisers over files, beside what the suite of all engines holds them to."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from harness.engines.recognisers_offline import FasterWhisperOffline, MoonshineOffline
from harness.model.errors import InputError
from tests.conformance.offline.engine_rows import espeak, in_room
from tests.heard import lost_or_repeated, word_error

pytestmark = pytest.mark.speech
SENTENCES = (
    "what time is it in london",
    "turn on the kitchen light",
    "please play some music by the beatles",
    "how far is the moon from the earth",
    "remind me to call my mother tomorrow",
    "set an alarm for seven in the morning",
    "what is the weather like in paris",
    "who wrote the old man and the sea",
    "send a message to my brother",
    "tell me a story about a dragon",
    "open the window in the bedroom",
    "when is the next train to berlin",
    "read me the news of today",
)


@pytest.mark.parametrize("recogniser", [pytest.param(FasterWhisperOffline, marks=pytest.mark.soak), MoonshineOffline])
def test_a_file_that_is_longer_than_the_recogniser_hears_keeps_all_of_its_sentences(
    recogniser: type[FasterWhisperOffline | MoonshineOffline],
) -> None:
    # No sentence twice: Whisper folds what is repeated.
    sound = np.concatenate([in_room(espeak(text, "en-us"), 0.8, 0.4) for text in SENTENCES])
    assert len(sound) > 35 * 16000
    engine = recogniser("", {})
    transcript = engine.understand(sound)
    engine.close()
    assert transcript is not None
    # Measured with noise and level varied: at most 11 % wrong with AVX2, 10 % with AVX-512, and no word without another
    # in its place.
    assert lost_or_repeated(SENTENCES, transcript.text) == []
    assert word_error(" ".join(SENTENCES), transcript.text) < 0.25
    assert transcript.start < 1.2 * 16000
    assert transcript.end > len(sound) - 16000


@pytest.mark.parametrize(
    ("recogniser", "files"),
    [
        (FasterWhisperOffline, "model.bin, tokenizer.json"),
        (MoonshineOffline, "encoder_model.ort, decoder_model_merged.ort, tokenizer.bin"),
    ],
)
def test_a_folder_that_is_no_model_is_refused(
    tmp_path: Path, recogniser: type[FasterWhisperOffline | MoonshineOffline], files: str
) -> None:
    with pytest.raises(InputError, match=f"it has no {files}"):
        recogniser(str(tmp_path), {})


def test_a_language_that_the_model_does_not_have_is_refused() -> None:
    with pytest.raises(
        InputError, match=r"the speech model tiny.en does not support the language 'de'. Use one of: en"
    ):
        FasterWhisperOffline("", {"language": "de"})


def test_a_folder_of_another_architecture_is_refused_when_it_is_loaded() -> None:
    packaged = MoonshineOffline("tiny-en", {})
    packaged.close()
    with pytest.raises(InputError, match="does not have the architecture base"):
        MoonshineOffline("", {"architecture": "base"})


def test_settings_that_change_words_change_the_fingerprint() -> None:
    first, two = FasterWhisperOffline("", {}), FasterWhisperOffline("", {"beam-size": "1"})
    assert first.facts.fingerprint != two.facts.fingerprint

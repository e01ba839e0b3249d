"""PocketSphinx beside what the suite of all engines holds them to."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from harness.cli.options import EngineOptions
from harness.engines.pocketsphinx_keyphrase import POINTS_OF_SEARCH, PocketSphinxKeyphrase
from harness.model.errors import InputError
from harness.model.offline import OfflineSpot
from tests.conformance.offline.engine_rows import flite, in_room
from tests.files import file_with

pytestmark = pytest.mark.speech


def heard(model: str, sound: np.ndarray, **settings: str) -> tuple[OfflineSpot, ...]:
    engine = PocketSphinxKeyphrase(model, {name.replace("_", "-"): value for name, value in settings.items()})
    stream = engine.listen()
    stream.feed(sound)
    return stream.take(flush=True)


@pytest.fixture(scope="module")
def hey_jarvis() -> np.ndarray:
    return in_room(flite("hey jarvis"))


@pytest.fixture(scope="module")
def three_phrases() -> np.ndarray:
    rows = (flite("hey jarvis"), flite("alexa"), flite("hey jarvis"))
    return np.concatenate([in_room(sound, 1.5, 0.0) for sound in rows] + [in_room(np.zeros(0))])


def test_several_phrases_are_found_where_they_are_spoken(three_phrases: np.ndarray) -> None:
    spots = heard("Alexa, hey_jarvis!", three_phrases)
    assert [spot.phrase for spot in spots] == ["hey jarvis", "alexa", "hey jarvis"]
    assert all(before.end <= after.start for before, after in pairwise(spots))
    assert 1.4 * 16000 < spots[0].start < 1.7 * 16000


def test_a_phrase_file_sets_a_threshold_per_phrase(three_phrases: np.ndarray, tmp_path: Path) -> None:
    path = file_with(tmp_path / "phrases.txt", "# ours\nhey jarvis /1e-30/\n\nalexa /-1/\n")
    assert "hey jarvis" in {spot.phrase for spot in heard("", three_phrases, keyphrases=str(path))}
    path.write_text("hey jarvis\nalexa /often/\n")
    with pytest.raises(InputError, match=r"phrases.txt:2: 'often' is not a keyphrase threshold"):
        heard("", three_phrases, keyphrases=str(path))


def test_a_threshold_is_the_same_as_its_power_of_ten_and_as_its_operating_point(hey_jarvis: np.ndarray) -> None:
    assert heard("hey jarvis", hey_jarvis, kws_threshold="1e-30") == heard(
        "hey jarvis", hey_jarvis, kws_threshold="-30"
    )
    assert heard("hey jarvis", hey_jarvis) == heard("hey jarvis", hey_jarvis, operating_point="10") != ()
    assert heard("hey jarvis", hey_jarvis, kws_threshold="1") == ()
    assert [point.threshold for point in POINTS_OF_SEARCH][::9] == [1e-3, 1e-30, 1e-57]


def test_phrases_within_the_refractory_time_count_once(three_phrases: np.ndarray) -> None:
    assert len(heard("hey jarvis", three_phrases, refractory_ms="60000")) == 1
    assert len(heard("hey jarvis", three_phrases, refractory_ms="0")) == 2


def test_a_phrase_at_the_very_end_of_a_file_counts() -> None:
    sound = in_room(flite("hey jarvis"), 1.5, 0.0)
    (spot,) = heard("hey jarvis", sound)
    assert spot.end <= len(sound)


def test_a_custom_word_is_found_by_its_pronunciation(hey_jarvis: np.ndarray, tmp_path: Path) -> None:
    path = file_with(tmp_path / "own.dict", "# a name of ours\ndzharvis JH AA R V AH S\n")
    (spot,) = heard("hey dzharvis", hey_jarvis, dictionary=str(path))
    assert spot.phrase == "hey dzharvis"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("dzharvis\n", "own.dict:1: 'dzharvis' is not a word followed by its phonemes"),
        ("\ndzharvis JH ÄÄ\n", "own.dict:2: 'dzharvis' has phonemes that are not in the model: ÄÄ"),
        (b"\xff\xfe", "is not UTF-8"),
        ("other OW\n", "does not contain: dzharvis"),
    ],
)
def test_an_invalid_dictionary_is_refused_with_its_line(tmp_path: Path, content: str | bytes, message: str) -> None:
    path = file_with(tmp_path / "own.dict", content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError, match=message):
        PocketSphinxKeyphrase("hey dzharvis", {"dictionary": str(path)})


@pytest.mark.parametrize(("model", "words"), [("ok nabu", "its phonemes"), ("nabu dzharvis", "their phonemes")])
def test_sounds_of_another_word_are_given_as_an_example(model: str, words: str) -> None:
    with pytest.raises(InputError) as refused:
        PocketSphinxKeyphrase(model, {})
    assert words in refused.value.remedy
    assert "looks like `jarvis JH AA R V AH S`" in refused.value.remedy


def test_a_word_without_sounds_is_refused_at_its_line_before_any_engine_runs(tmp_path: Path) -> None:
    path = file_with(tmp_path / "phrases.txt", "# nabu\nhey jarvis\n\nok nabu /1e-20/\n")
    engines = EngineOptions(("microwakeword:alexa", "pocketsphinx"), (f"keyphrases={path}",))
    with pytest.raises(InputError, match=r"phrases.txt:4: pocketsphinx's dictionary does not contain: nabu"):
        engines.parse_tasks()
    with pytest.raises(InputError, match=r"^pocketsphinx's dictionary does not contain: nabu"):
        EngineOptions(("microwakeword:alexa", "pocketsphinx:ok nabu")).parse_tasks()
    path.write_text("hey jarvis\n")
    assert [task.engine for task in engines.parse_tasks()] == ["microwakeword", "pocketsphinx"]


@pytest.mark.parametrize("model", ["", " ", ",", "...", "hey jarvis,,"])
def test_engine_without_a_phrase_is_refused(model: str) -> None:
    with pytest.raises(InputError, match=r"needs a phrase|contains no word"):
        PocketSphinxKeyphrase(model, {})


def test_two_settings_for_one_threshold_are_refused() -> None:
    with pytest.raises(InputError, match="both set"):
        PocketSphinxKeyphrase("alexa", {"kws-threshold": "1e-10", "operating-point": "3"})

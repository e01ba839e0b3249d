"""The fast path and the package's own say the same."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pyopen_wakeword
import pytest

from harness.engines.openwakeword import OWN_THRESHOLD, OpenWakeWordOffline, margin
from harness.engines.settings import operating_points
from harness.model.offline import ScoreTrack, SpotRule
from harness.offline.one_file import spots
from tests.unit.engines.openwakeword_sounds import (
    RATE_HZ,
    SOUNDS,
    Sound,
    noise,
    scored,
    speech,
    speech_in_a_noise_that_stops,
)

pytestmark = pytest.mark.speech

MODELS = ("alexa", "hey_jarvis", "hey_mycroft", "hey_rhasspy", "okay_nabu")


@cache
def fast(model: str = "alexa") -> OpenWakeWordOffline:
    return OpenWakeWordOffline(model, {})


@cache
def streaming(model: str = "alexa") -> OpenWakeWordOffline:
    return OpenWakeWordOffline(model, {"path": "streaming"})


def assert_alike(ours: ScoreTrack, theirs: ScoreTrack) -> None:
    """Scores within the stated tolerance, and the same spots at every operating point."""
    assert (ours.phrase, ours.first_end, ours.step) == (theirs.phrase, theirs.first_end, theirs.step)
    assert ours.scores.shape == theirs.scores.shape
    assert np.all(np.abs(ours.scores - theirs.scores) <= margin(theirs.scores))
    for point in operating_points(OWN_THRESHOLD):
        rule = SpotRule(point.threshold, RATE_HZ, 12_800)
        assert [spot.end for spot in spots(ours, rule)] == [spot.end for spot in spots(theirs, rule)]


def as_the_package_says(model: str, sound: Sound, first: int, then: int) -> list[list[float]]:
    """The package itself, fed a piece of one size and then pieces of another; its scores piece by piece."""
    features = pyopen_wakeword.OpenWakeWordFeatures.from_builtin()
    classifier = pyopen_wakeword.OpenWakeWord.from_builtin(pyopen_wakeword.Model(model))
    ends = [first, *range(first + then, len(sound) + 1, then)]
    return [
        [
            score
            for embeddings in features.process_streaming(sound[start:end].tobytes())
            for score in classifier.process_streaming(embeddings)
        ]
        for start, end in zip([0, *ends], ends, strict=False)
    ]


def all_in_a_row() -> Sound:
    return np.concatenate([sound() for sound in SOUNDS])


@pytest.mark.parametrize(
    "sound",
    [all_in_a_row, speech_in_a_noise_that_stops, *(pytest.param(one, marks=pytest.mark.soak) for one in SOUNDS)],
    ids=lambda sound: sound.__name__,
)
def test_fast_and_streaming_score_alike(sound: Callable[[], Sound]) -> None:
    samples = sound()
    assert_alike(scored(fast(), samples), scored(streaming(), samples))


@pytest.mark.parametrize(
    "model", [MODELS[-1], *(pytest.param(model, marks=pytest.mark.soak) for model in MODELS[1:-1])]
)
def test_every_packaged_model_scores_alike(model: str) -> None:
    samples = speech()[: 5 * RATE_HZ // 2]
    assert_alike(scored(fast(model), samples), scored(streaming(model), samples))


def test_the_streaming_path_is_the_package_in_chunks_of_80_ms() -> None:
    samples = speech()[: 3 * RATE_HZ]
    track = scored(streaming(), samples)
    chunks = as_the_package_says("alexa", samples, 480, 1280)
    assert [len(scores) for scores in chunks[1:]] == [1] * (len(chunks) - 1), "a score with each chunk, at its end"
    assert track.scores.tolist() == [scores[-1] for scores in chunks]
    assert (track.first_end, track.step) == (480, 1280)


def test_chunks_that_begin_with_the_sound_tell_the_same_scores_50_ms_later() -> None:
    samples = speech()[: 2 * RATE_HZ]
    track = scored(fast(), samples)
    chunks = as_the_package_says("alexa", samples, 1280, 1280)
    found = [scores[-1] for scores in chunks]
    assert np.all(np.abs(track.scores[: len(found)] - found) <= margin(np.array(found)))
    assert len(track.scores) - len(found) in (0, 1)


@pytest.mark.parametrize("pieces", [(1,), (160,), (1280,), (1279, 3, 0, 4001), (70_000, 1)])
def test_pieces_make_no_difference_to_the_fast_path(pieces: tuple[int, ...]) -> None:
    samples = np.tile(speech(), 3)[: (4 if pieces == (1,) else 18) * RATE_HZ]
    whole, cut = scored(fast(), samples), scored(fast(), samples, pieces)
    assert np.array_equal(whole.scores, cut.scores)


def test_pieces_make_no_difference_to_the_streaming_path() -> None:
    samples = speech()[: 2 * RATE_HZ]
    engine = streaming()
    whole = scored(engine, samples)
    assert np.array_equal(whole.scores, scored(engine, samples, (333, 0, 4001)).scores)


@pytest.mark.parametrize("length", [0, 1, 479, 480, 481, 1279, 1280, 1759, 1760, 1761, 3040])
def test_a_short_file_has_a_score_for_each_call_that_it_fills(length: int) -> None:
    samples = noise()[:length]
    track = scored(fast(), samples, (10_000,)) if length else fast().begin().take(flush=True)[0]
    assert len(track.scores) == (0 if length < 480 else (length - 480) // 1280 + 1)
    if length in (479, 480, 1760):
        assert_alike(track, scored(streaming(), samples))


def test_a_stretch_goes_on_where_the_last_one_ended() -> None:
    """Sound about the edge of a stretch, 12 s, is scored as where it lies in the midst of one."""
    samples = np.concatenate([np.zeros(11 * RATE_HZ, np.int16), speech()])
    early = scored(fast(), samples[3 * 12_800 :]).scores
    late = scored(fast(), samples).scores[30:]
    assert np.all(np.abs(early[40:] - late[40:]) <= margin(late[40:]))
    assert early.max() > 0.9


def test_a_file_begins_afresh() -> None:
    engine = fast()
    first = scored(engine, speech()).scores
    assert np.array_equal(scored(engine, speech()).scores, first)


def test_silence_stays_silence() -> None:
    scores = scored(fast(), np.zeros(20 * RATE_HZ, np.int16)).scores
    assert np.ptp(scores) < 1e-6
    assert scores.max() < 0.01


@pytest.mark.soak
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("model", MODELS)
def test_an_hour_is_scored_alike(model: str) -> None:
    rng = np.random.default_rng(7)
    parts: list[Sound] = []
    while sum(map(len, parts)) < 3600 * RATE_HZ:
        made = SOUNDS[rng.integers(len(SOUNDS))]()
        gain = 10 ** rng.uniform(-2, 0.5)
        parts.append(np.clip(made * gain, -32768, 32767).astype(np.int16)[: rng.integers(1, len(made))])
    samples = np.concatenate(parts)
    assert_alike(scored(fast(model), samples), scored(streaming(model), samples, (1 << 19,)))

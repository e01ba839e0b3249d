from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from harness.engines.voice_activity import pause_spans, speech_span, speech_spans, trim_silence
from tests.known import known
from tests.unit.engines.wake_sound import spoken

RATE = 16000


def room(*parts: np.ndarray | float, noise: float = 8.0) -> np.ndarray:
    """Speech (float) and pauses (seconds) in quiet noise, int16."""
    sound = np.concatenate(
        [np.zeros(round(part * RATE)) if isinstance(part, float) else part * 32767 for part in parts]
    )
    sound = sound + np.random.default_rng(1).normal(0, noise, len(sound))
    return np.clip(sound, -32768, 32767).astype(np.int16)


SPEECH = spoken("what time is it in London", "en-us")


# At -20 dB, speech is 6 dB above a noise of 60: too little for the detector.
@pytest.mark.parametrize(("level_db", "noise"), [(0, 0.0), (0, 8.0), (0, 60.0), (-20, 0.0), (-20, 8.0)])
def test_speech_is_found_where_it_is(level_db: int, noise: float) -> None:
    span = known(speech_span(room(1.2, SPEECH * 10 ** (level_db / 20), 0.9, noise=noise)))
    assert abs(span[0] - 1.2 * RATE) < 0.1 * RATE
    assert abs(span[1] - 1.2 * RATE - len(SPEECH)) < 0.15 * RATE


def test_speech_without_a_moment_before_or_after_is_kept_whole() -> None:
    sound = (SPEECH * 32767).astype(np.int16)
    span = known(speech_span(sound))
    assert span[0] < 0.05 * RATE
    assert span[1] > len(sound) - 0.1 * RATE


def test_two_stretches_of_speech_are_two_spans_and_one_outer_span() -> None:
    sound = room(1.0, SPEECH, 2.0, SPEECH, 1.0)
    spans = speech_spans(sound)
    assert len(spans) == 2
    assert speech_span(sound) == (spans[0][0], spans[1][1])


@pytest.mark.parametrize("samples", [0, 1, 159, 160, 161, 16000])
def test_sound_without_speech_has_no_span(samples: int) -> None:
    assert speech_span(np.zeros(samples, np.int16)) is None
    assert trim_silence(np.full(samples, 32767, np.int16)) is None
    noise = np.random.default_rng(2).normal(0, 1500, samples).astype(np.int16)
    assert trim_silence(noise) is None


def test_trimmed_sound_keeps_its_samples_and_a_margin() -> None:
    sound = room(3.0, SPEECH, 3.0)
    cut = known(trim_silence(sound))
    piece, offset = cut
    assert np.shares_memory(piece, sound)
    np.testing.assert_array_equal(piece, sound[offset : offset + len(piece)])
    assert 2.6 * RATE < offset < 2.8 * RATE
    assert len(piece) < len(SPEECH) + 0.8 * RATE


def test_a_long_file_is_cut_in_its_pauses_and_nothing_is_lost() -> None:
    sound = room(*[part for _ in range(20) for part in (SPEECH, 0.6)])
    cuts = list(pause_spans(sound, 10.0))
    assert cuts[0][0] == 0
    assert cuts[-1][1] == len(sound)
    assert all(before[1] == after[0] for before, after in pairwise(cuts))
    assert all(0 < end - start <= 10 * RATE for start, end in cuts)
    for _, end in cuts[:-1]:
        assert np.abs(sound[end - 400 : end + 400].astype(np.int32)).max() < 100
    assert list(pause_spans(sound[:0], 10.0)) == []
    assert list(pause_spans(sound[:5], 10.0)) == [(0, 5)]

"""Sounds for tests of openWakeWord, 16 kHz, 16 bits, the same each time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from harness.base.ports import ScoresSound
from harness.model.offline import ScoreTrack
from tests.unit.engines.wake_sound import spoken

Sound = npt.NDArray[np.int16]
RATE_HZ = 16_000
SILENCE: Sound = np.zeros(RATE_HZ, np.int16)


def pcm(samples: npt.NDArray[np.floating], full_scale: float = 32767) -> Sound:
    return np.clip(np.round(samples * full_scale), -32768, 32767).astype(np.int16)


def speech() -> Sound:
    """Two phrases and something else, with digital silence between and around."""
    parts = [pcm(spoken(text)) for text in ("alexa", "what is the weather", "alexa")]
    return np.concatenate([SILENCE, parts[0], SILENCE, parts[1], SILENCE, parts[2], SILENCE])


def noise() -> Sound:
    return pcm(np.random.default_rng(1).normal(0, 0.03, 2 * RATE_HZ))


def faint() -> Sound:
    """Noise of one bit, so that most samples are digital silence."""
    return np.round(np.random.default_rng(2).normal(0, 0.4, 2 * RATE_HZ)).astype(np.int16)


def music() -> Sound:
    times = np.arange(2 * RATE_HZ) / RATE_HZ
    chord = sum(np.sin(2 * np.pi * hertz * times * (1 + 0.02 * times)) for hertz in (220, 277, 330, 1760))
    return pcm(np.asarray(chord) * np.exp(-2 * (times % 0.5)) / 5)


def clipped() -> Sound:
    return pcm(spoken("alexa") * 60)


def silence() -> Sound:
    return np.tile(SILENCE, 2)


def speech_in_a_noise_that_stops() -> Sound:
    loud = noise()
    return np.concatenate([loud[:RATE_HZ], SILENCE, pcm(spoken("alexa")), loud[: RATE_HZ // 2], SILENCE])


def clicks() -> Sound:
    """Full scale for one sample, in the midst of digital silence, at each place of a call in turn."""
    sound = np.zeros(3 * RATE_HZ, np.int16)
    sound[np.arange(20) * 2011] = 32767
    return sound


def square() -> Sound:
    return np.where(np.arange(2 * RATE_HZ) // 40 % 2, 32767, -32768).astype(np.int16)


SOUNDS: tuple[Callable[[], Sound], ...] = (
    speech, noise, faint, music, clipped, silence, speech_in_a_noise_that_stops, clicks, square,
)  # fmt: skip


def scored(engine: ScoresSound, sound: Sound, pieces: tuple[int, ...] = ()) -> ScoreTrack:
    """The track of a sound that is fed in pieces of these sizes, over and over, and taken after each."""
    stream = engine.begin()
    tracks, place, turn = [], 0, 0
    while place < len(sound):
        size = pieces[turn % len(pieces)] if pieces else len(sound)
        stream.feed(sound[place : place + size])
        tracks += stream.take(flush=False)
        place, turn = place + size, turn + 1
    tracks += stream.take(flush=True)
    due = tracks[0].first_end
    for track in tracks:
        assert track.first_end == due
        due += len(track.scores) * track.step
    return ScoreTrack(
        tracks[0].phrase, np.concatenate([track.scores for track in tracks]), tracks[0].first_end, tracks[0].step
    )

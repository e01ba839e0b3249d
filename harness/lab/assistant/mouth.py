"""The assistant's mouth: texts and signals as sound, at one level."""

from __future__ import annotations

import math

import numpy as np

from harness.base.plugins import Group, load
from harness.base.ports import Voice
from harness.lab.assistant.settings import AssistantSettings
from harness.model.errors import SoundError
from harness.model.stimulus import Samples, VoiceSpec, Waveform
from harness.sound.level import at_level

RATE_HZ = 48000  # The lab's (`sound_server.RATE_HZ`).
PAUSE_S = 1.6
"""Pause in a two-part answer, in seconds: longer than the default `end_silence_ms`."""
MUSIC_S = 30.0
TUNE = (0, 4, 7, 12, 11, 7, 4, 2, 5, 9, 12, 9, 7, 4, 2, -1)
"""The notes of the tune, in semitones above A."""
_FADE_S = 0.01


class AssistantMouth:
    """Makes sounds. It does not play them."""

    def __init__(self, settings: AssistantSettings) -> None:
        self._settings = settings
        self._voice: Voice = load(Group.VOICES, settings.voice.engine)()

    def synthesise(self, text: str) -> Waveform:
        """The text in the assistant's voice. Raises VoiceError if it cannot speak it."""
        spec: VoiceSpec = self._settings.voice
        return at_level(self._voice.speak(text, spec), self._settings.level_dbfs, repr(text))

    def signal(self, *tones_hz: float) -> Waveform:
        """Short tones one after another, 120 ms each."""
        amplitude = math.sqrt(2) * 10 ** (self._settings.level_dbfs / 20)
        return Waveform(np.concatenate([_tone(hz, 0.12, amplitude) for hz in tones_hz]), RATE_HZ)

    def alert(self) -> Waveform:
        """The sound of a timer that ends."""
        amplitude = math.sqrt(2) * 10 ** (self._settings.level_dbfs / 20)
        gap = np.zeros(round(0.15 * RATE_HZ), np.float32)
        return Waveform(np.concatenate([_tone(1047, 0.2, amplitude), gap] * 3), RATE_HZ)

    def music(self) -> Waveform:
        """A tune of 30 s."""
        amplitude = 10 ** (self._settings.level_dbfs / 20)
        notes = [_tone(440 * 2 ** (step / 12), 0.4, amplitude) for step in TUNE]
        fifths = [_tone(220 * 2 ** (step / 12), 0.4, amplitude) for step in TUNE]
        melody = np.concatenate([high + low for high, low in zip(notes, fifths, strict=True)])
        return Waveform(
            np.tile(melody, math.ceil(MUSIC_S * RATE_HZ / len(melody)))[: round(MUSIC_S * RATE_HZ)], RATE_HZ
        )


def concatenate(*waveforms: Waveform, gap_s: float) -> Waveform:
    """The sounds with silence between them. Raises SoundError if their rates differ."""
    rates = {waveform.rate_hz for waveform in waveforms}
    if len(rates) != 1:
        raise SoundError(f"sounds of different rates cannot be joined: {sorted(rates)}")
    (rate_hz,) = rates
    pieces: list[Samples] = []
    for waveform in waveforms:
        pieces += [waveform.samples, np.zeros(round(gap_s * rate_hz), np.float32)]
    return Waveform(np.concatenate(pieces[:-1]), rate_hz)


def _tone(frequency_hz: float, duration_s: float, amplitude: float) -> Samples:
    """A sine that fades in and out, without clicks."""
    time_s = np.arange(round(duration_s * RATE_HZ)) / RATE_HZ
    fade = np.clip(np.minimum(time_s, duration_s - time_s) / _FADE_S, 0, 1)
    return np.asarray(amplitude * fade * np.sin(2 * np.pi * frequency_hz * time_s), dtype=np.float32)

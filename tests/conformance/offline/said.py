"""Sentences in quiet noise as sound files, at 16 kHz."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import soundfile
import soxr

from harness.model.stimulus import VoiceSpec
from harness.sound.stimuli.voices.espeak import EspeakVoice


def say(path: Path, text: str, voice: str, *leads_in_s: float, gain: float = 0.7, noise: float = 0.001) -> Path:
    """Writes a sentence, as often as there are times before it; once after 1.3 s without any. noise: of full scale."""
    speech = EspeakVoice().speak(text, VoiceSpec(name=voice))
    sound = gain * soxr.resample(speech.samples, speech.rate_hz, 16_000)
    parts = [part for lead_in_s in leads_in_s or (1.3,) for part in (np.zeros(round(lead_in_s * 16_000)), sound)]
    samples = np.concatenate([*parts, np.zeros(12_000)])
    samples += np.random.default_rng(len(path.name)).normal(0, noise, len(samples))
    soundfile.write(path, (samples.clip(-1, 1) * 32_767).astype(np.int16), 16_000, subtype="PCM_16")
    return path

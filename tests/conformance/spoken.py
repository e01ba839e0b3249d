"""A spoken command for devices whose server the harness is."""

from __future__ import annotations

import numpy as np
import soxr

from harness.base.plugins import Group, load
from harness.model.stimulus import Samples, VoiceSpec

RATE_HZ = 16000
SAID = "what time is it"


def speech(text: str = SAID) -> Samples:
    """With a second of weak noise after it, float32 (n,) at RATE_HZ."""
    spoken = load(Group.VOICES, "espeak")().speak(text, VoiceSpec())
    sound = soxr.resample(spoken.samples, spoken.rate_hz, RATE_HZ)
    noise = np.random.default_rng(0).normal(0, 3e-4, len(sound) + RATE_HZ)
    return (np.pad(0.5 * sound, (0, RATE_HZ)) + noise).astype(np.float32)

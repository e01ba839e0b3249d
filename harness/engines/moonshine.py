"""The recogniser Moonshine for live runs. With its dependencies it is smaller than faster-whisper; `make demo`
installs it."""

from __future__ import annotations

import importlib.util

import numpy as np
import soxr

from harness.engines.recognisers_offline import MoonshineOffline
from harness.engines.voice_activity import RATE_HZ
from harness.model.stimulus import Waveform

_FULL_SCALE = 32767


class Moonshine:
    """The packaged English tiny model; nothing is downloaded. Raises PluginError if it is not installed."""

    def __init__(self) -> None:
        self._recogniser = MoonshineOffline("", {})
        self.name = self._recogniser.facts.version

    @staticmethod
    def installed() -> bool:
        return importlib.util.find_spec("moonshine_voice") is not None

    def transcribe(self, waveform: Waveform) -> str:
        """The words with their punctuation, or "" if there are none. Any sample rate."""
        samples = soxr.resample(waveform.samples, waveform.rate_hz, RATE_HZ)
        pcm = np.round(np.clip(samples, -1, 1) * _FULL_SCALE).astype(np.int16)
        transcript = self._recogniser.understand(pcm)
        return "" if transcript is None else transcript.text

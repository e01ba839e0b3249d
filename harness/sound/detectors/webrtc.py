"""The WebRTC voice-activity detector: fast, good down to about 10 dB SNR, sensitive to level."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import numpy.typing as npt
import webrtcvad

_PRIMING_FRAMES = 25  # Half a second.
_QUIET_RMS = 10.0  # −70 dBFS.


class WebrtcDetector:
    """webrtcvad in its strictest mode, on frames of 20 ms.

    A fresh detector takes its first 100 ms for speech. It is therefore primed with half a second of quiet noise at
    each start.
    """

    rate_hz: ClassVar[int] = 16000
    frame_samples: ClassVar[int] = 320  # 20 ms. webrtcvad accepts 10, 20 and 30 ms.

    def __init__(self, mode: int = 3) -> None:
        self._mode = mode
        self.reset()

    def is_speech(self, frame: npt.NDArray[np.int16]) -> bool:
        """Whether a frame is speech. frame: shape (320,), at 16 kHz, level already normalised; else ValueError."""
        if frame.shape != (self.frame_samples,):
            raise ValueError(f"a frame has shape ({self.frame_samples},), not {frame.shape}")
        return bool(self._vad.is_speech(frame.tobytes(), self.rate_hz))

    def reset(self) -> None:
        """Forgets everything, then primes the detector again."""
        self._vad = webrtcvad.Vad(self._mode)
        noise = np.random.default_rng(1).normal(0.0, _QUIET_RMS, (_PRIMING_FRAMES, self.frame_samples))
        for frame in noise.astype(np.int16):
            self._vad.is_speech(frame.tobytes(), self.rate_hz)

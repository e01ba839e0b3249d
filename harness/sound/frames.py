"""The stream as frames of 10 ms, each with what the endpointer looks at."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from harness.base.ports import SpeechDetector
from harness.sound.earcons import WINDOW_SAMPLES, filled_share
from harness.sound.noise_floor import NoiseFloor
from harness.sound.normaliser import Normaliser
from harness.sound.timeline import ANALYSIS_HZ, Mono

FRAME_SAMPLES = 160
FRAME_S = FRAME_SAMPLES / ANALYSIS_HZ
_HIGH_PASS_HZ = 120.0
_QUIETEST = 1e-10


@dataclass(frozen=True, slots=True)
class Frame:
    """10 ms of sound; `index` counts from 0, sample index·160 is its first at 16 kHz.

    level_dbfs: above 120 Hz. filled: share of the spectrum in the 32 ms that end with this frame (see earcons); 1.0 for
    frames at the noise floor, where it is not worth the work. masked: our own voice may be in it.
    """

    index: int
    level_dbfs: float
    floor_dbfs: float
    filled: float
    speech: bool
    masked: bool


class Frames:
    """Cuts 16 kHz samples into frames; a frame is given when the speech detector's frame that covers it is complete."""

    def __init__(self, detector: SpeechDetector) -> None:
        if detector.rate_hz != ANALYSIS_HZ:
            raise ValueError(f"a speech detector works at {ANALYSIS_HZ} Hz here, not at {detector.rate_hz} Hz")
        from scipy import signal  # here, since it takes long to import and a list of engines needs none

        self._detector = detector
        self._filtered = signal.sosfilt
        self._high_pass = signal.butter(2, _HIGH_PASS_HZ, "highpass", fs=ANALYSIS_HZ, output="sos")
        self.floor = NoiseFloor()
        self._normaliser = Normaliser()
        self.reset()

    def reset(self) -> None:
        self._detector.reset()
        self.floor.reset()
        self._normaliser.reset()
        self._state = np.zeros((self._high_pass.shape[0], 2))
        self._samples: Mono = np.zeros(0, np.float32)
        self._masks: npt.NDArray[np.bool_] = np.zeros(0, np.bool_)
        self._window: Mono = np.zeros(WINDOW_SAMPLES, np.float32)
        self._index = 0
        self._waiting: deque[Frame] = deque()
        self._normalised: Mono = np.zeros(0, np.float32)
        self._judged = 0
        self._speech = False

    def feed(self, samples: Mono, masks: npt.NDArray[np.bool_]) -> Iterator[Frame]:
        """The frames that are complete now; `masks` marks samples in which our own voice may be."""
        if len(samples):
            passed, self._state = self._filtered(self._high_pass, samples, zi=self._state)
            self._samples = np.concatenate((self._samples, passed.astype(np.float32)))
            self._masks = np.concatenate((self._masks, masks))
        while len(self._samples) >= FRAME_SAMPLES:
            self._measure(self._samples[:FRAME_SAMPLES], bool(self._masks[:FRAME_SAMPLES].mean() > 0.3))
            self._samples = self._samples[FRAME_SAMPLES:]
            self._masks = self._masks[FRAME_SAMPLES:]
            yield from self._judge()

    def _measure(self, samples: Mono, masked: bool) -> None:
        power = float(np.mean(np.square(samples, dtype=np.float64)))
        level = 10 * float(np.log10(max(power, _QUIETEST)))
        floor = self.floor.dbfs if masked else self.floor.feed(level)
        heard = samples
        if masked and level > floor:
            heard = samples * np.float32(10 ** ((floor - level) / 20))
        self._window = np.concatenate((self._window[FRAME_SAMPLES:], samples))
        worth_it = level > floor + 4 and not masked
        filled = filled_share(self._window) if worth_it else 1.0
        gain = 10 ** (self._normaliser.gain_db(min(level, floor) if masked else level, floor) / 20)
        self._normalised = np.concatenate((self._normalised, heard * np.float32(gain)))
        self._waiting.append(Frame(self._index, level, floor, filled, False, masked))
        self._index += 1

    def _judge(self) -> Iterator[Frame]:
        size = self._detector.frame_samples
        while len(self._normalised) >= size:
            scaled = np.clip(self._normalised[:size] * 32767, -32768, 32767).astype(np.int16)
            self._normalised = self._normalised[size:]
            self._judged += size
            speech = self._detector.is_speech(scaled)
            # The frame whose middle lies in what was judged takes the detector's word.
            while self._waiting and self._waiting[0].index * FRAME_SAMPLES + FRAME_SAMPLES // 2 < self._judged:
                frame = self._waiting.popleft()
                yield replace(frame, speech=speech and not frame.masked)

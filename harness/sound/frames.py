"""Cuts a stream into frames of 10 ms, each with the features that the endpointer uses."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from harness.base.ports import SpeechDetector
from harness.model.frozen import frozen
from harness.model.time import Stamp
from harness.sound.filters import HighPass, convolve, low_pass_taps

WINDOW_SAMPLES = 512
_RATE_HZ = 16000
_LOW_HZ, _HIGH_HZ = 150.0, 6000.0
_BELOW_PEAK_DB = 25.0
_TONAL_SHARE = 0.075  # Above the 5 % of a chord of three.
_MIN_TONAL_PART = 0.8  # Of the frames of a tonal stretch.
_MIN_FRAMES = 3

_TAPER = np.hanning(WINDOW_SAMPLES)
_BINS = slice(int(_LOW_HZ * WINDOW_SAMPLES / _RATE_HZ), int(_HIGH_HZ * WINDOW_SAMPLES / _RATE_HZ))


def filled_share(window: npt.NDArray[np.float32]) -> float:
    """Share of the band 150 Hz–6 kHz within 25 dB of its strongest frequency, 0–1.

    window: shape (512,), at 16 kHz. A steady tone fills about 2 %, a chord of three 5 %, and speech 4–60 %. Speech
    rarely fills little for long.
    """
    power = np.abs(np.fft.rfft(window * _TAPER)[_BINS]) ** 2
    peak = float(power.max())
    if peak <= 0.0:
        return 1.0
    return float(np.count_nonzero(power >= peak * 10 ** (-_BELOW_PEAK_DB / 10))) / len(power)


def is_tonal(shares: Sequence[float]) -> bool:
    """Whether a stretch of sound is tones only. shares: those of its frames, without onset and decay.

    Single vowels may look like a tone, so four of five frames must be tonal. A stretch that is too short is not.
    """
    if len(shares) < _MIN_FRAMES:
        return False
    tonal_frames = sum(share <= _TONAL_SHARE for share in shares)
    return tonal_frames >= _MIN_TONAL_PART * len(shares)


SILENT_DBFS = -90.0  # The last bit of 16-bit sound.
_FLOOR_WINDOW_S, _FLOOR_RISE_DB_PER_S = 4.0, 6.0
_FLOOR_PERCENTILE, _FLOOR_BIAS_DB = 0.15, 1.2
"""The percentile that gives the floor, and what is added to it, since it lies below the mean level of noise."""


class NoiseFloor:
    """A low percentile of recent frame levels: speech has pauses, noise has none.

    Starts with the first frame. It falls at once and rises slowly, so that long speech hardly raises it.
    """

    def __init__(self, frames_per_s: int = 100) -> None:
        self._length = int(_FLOOR_WINDOW_S * frames_per_s)
        self._rise_db = _FLOOR_RISE_DB_PER_S / frames_per_s
        self.reset()

    def reset(self) -> None:
        self._levels: deque[float] = deque()
        self._sorted: list[float] = []
        self._floor_dbfs: float | None = None

    @property
    def dbfs(self) -> float:
        """The noise floor; SILENT_DBFS before the first frame and in digital silence."""
        return SILENT_DBFS if self._floor_dbfs is None else self._floor_dbfs

    def feed(self, level_dbfs: float) -> float:
        """Takes the level of the next frame, returns the floor."""
        level_dbfs = max(level_dbfs, SILENT_DBFS)
        self._levels.append(level_dbfs)
        insort(self._sorted, level_dbfs)
        if len(self._levels) > self._length:
            del self._sorted[bisect_left(self._sorted, self._levels.popleft())]
        floor_dbfs = self._sorted[int(_FLOOR_PERCENTILE * len(self._sorted))] + _FLOOR_BIAS_DB
        # A percentile of few frames says little, so the first 100 ms set the floor in both directions.
        is_uncertain = len(self._levels) < 10
        if self._floor_dbfs is None or is_uncertain or floor_dbfs < self._floor_dbfs:
            self._floor_dbfs = floor_dbfs
        else:
            self._floor_dbfs = min(floor_dbfs, self._floor_dbfs + self._rise_db)
        return self._floor_dbfs


NOISE_DBFS = -50.0
SPEECH_DBFS = -18.0
MAX_GAIN_DB = 50.0
_RELEASE_DB = 0.05  # In 10 ms: 5 dB a second.


class Normaliser:
    """Computes the gain in dB for the next frame, set by the noise floor and limited by the loudest recent sound.

    A detector takes noise near −26 dBFS for speech and misses speech at −56 dBFS. The gain therefore brings the floor
    to −50 dBFS, unless loud sound would then exceed −18 dBFS. A loud frame lowers the gain at once, and it recovers
    slowly.
    """

    def __init__(self, frames_per_s: int = 100) -> None:
        self._release_db = _RELEASE_DB * 100 / frames_per_s
        self.reset()

    def reset(self) -> None:
        self._peak_dbfs = -200.0

    def gain_db(self, level_dbfs: float, floor_dbfs: float) -> float:
        """The gain for the next frame.

        - level_dbfs: level of that frame.
        - floor_dbfs: noise floor.
        """
        self._peak_dbfs = max(level_dbfs, self._peak_dbfs - self._release_db)
        return max(min(NOISE_DBFS - floor_dbfs, SPEECH_DBFS - self._peak_dbfs, MAX_GAIN_DB), -MAX_GAIN_DB)


Mono = npt.NDArray[np.float32]

ANALYSIS_HZ = 16000  # The rate of the speech detectors.


class Timeline:
    """Host time of each sample. Keeps the last `keep` blocks as anchors; the nearest earlier anchor applies."""

    def __init__(self, rate_hz: int, keep: int = 6000) -> None:  # A minute of blocks of 10 ms.
        self.rate_hz = rate_hz
        self._anchors: deque[tuple[int, float, float]] = deque(maxlen=keep)

    def add(self, first_sample: int, at_s: float, error_s: float) -> None:
        """Adds an anchor: sample `first_sample` was at `at_s`. Anchors come in rising order."""
        self._anchors.append((first_sample, at_s, error_s))

    def clear(self) -> None:
        self._anchors.clear()

    def at(self, sample: float) -> Stamp:
        """Host time of a sample (may be fractional); ValueError without an anchor."""
        first, at_s, error_s = self._nearest_anchor(sample, 0)
        return Stamp(at_s + (sample - first) / self.rate_hz, error_s)

    def sample(self, at_s: float) -> float:
        """Sample at a host time, extrapolated beyond the last anchor; ValueError without an anchor."""
        first, anchor_s, _ = self._nearest_anchor(at_s, 1)
        return first + (at_s - anchor_s) * self.rate_hz

    def _nearest_anchor(self, value: float, column: int) -> tuple[int, float, float]:
        """The last anchor that is not after a value; the first if all are. column: 0 for samples, 1 for times."""
        if not self._anchors:
            raise ValueError("no block has arrived yet")
        # Callers almost always need the newest anchors.
        if value >= self._anchors[-1][column]:
            return self._anchors[-1]
        index = bisect_right(self._anchors, value, key=lambda anchor: anchor[column])
        return self._anchors[max(index - 1, 0)]


class Decimator:
    """Resamples a multiple of 16 kHz to 16 kHz, in blocks of any length. Linear phase, so the delay is constant.

    Output sample k stands for input sample k·factor − delay, where `delay` is in input samples.
    """

    def __init__(self, rate_hz: int) -> None:
        if rate_hz % ANALYSIS_HZ:
            raise ValueError(f"the rate must be a multiple of {ANALYSIS_HZ} Hz, not {rate_hz}")
        self.factor = rate_hz // ANALYSIS_HZ
        self.delay = 32 * self.factor
        # Below 8 kHz, half the new rate.
        self._taps: Mono = low_pass_taps(2 * self.delay + 1, 7600, rate_hz).astype(np.float32)
        self.reset()

    def reset(self) -> None:
        self._previous_samples: Mono = np.zeros(len(self._taps) - 1, np.float32)
        self._phase = 0

    def feed(self, samples: Mono) -> Mono:
        """The next output samples, float32 (m,)."""
        if not len(samples):
            return samples
        with_past = np.concatenate((self._previous_samples, samples))
        use_fft = len(samples) > 4096
        filtered = convolve(with_past, self._taps) if use_fft else np.convolve(with_past, self._taps, "valid")
        self._previous_samples = with_past[-(len(self._taps) - 1) :]
        output = filtered[self._phase :: self.factor].astype(np.float32)
        self._phase = (self._phase - len(samples)) % self.factor
        return output


FRAME_SAMPLES = 160  # 10 ms.
FRAME_S = FRAME_SAMPLES / ANALYSIS_HZ
HIGH_PASS_HZ = 120.0
_MASKED_SHARE = 0.3  # A frame is masked if more of its samples are.
_MIN_POWER = 1e-10  # −100 dBFS, below SILENT_DBFS: it only keeps the logarithm finite.


@frozen
class SoundFrame:
    """10 ms of sound.

    - index: number of the frame, from 0; its first sample is index·160 at 16 kHz.
    - level_dbfs, floor_dbfs: its level above 120 Hz, and the noise floor.
    - filled: `filled_share` of the 32 ms that end with this frame. For masked frames and those at most 4 dB above the
      noise floor, it is not computed but 1.0.
    - masked: whether it may contain the harness's own stimulus.
    - speech: whether the detector calls it speech; False for masked frames.
    """

    index: int
    level_dbfs: float
    floor_dbfs: float
    filled: float
    speech: bool
    masked: bool


class Frames:
    """Cuts 16 kHz samples into frames. A frame is yielded when the speech detector has judged its samples."""

    def __init__(self, detector: SpeechDetector) -> None:
        if detector.rate_hz != ANALYSIS_HZ:
            raise ValueError(f"a speech detector must work at {ANALYSIS_HZ} Hz, not at {detector.rate_hz} Hz")
        self._detector = detector
        self._high_pass = HighPass(HIGH_PASS_HZ, ANALYSIS_HZ, FRAME_SAMPLES)
        self.floor = NoiseFloor()
        self._normaliser = Normaliser()
        self.reset()

    def reset(self) -> None:
        self._detector.reset()
        self.floor.reset()
        self._normaliser.reset()
        self._high_pass.reset()
        self._samples: Mono = np.zeros(0, np.float32)
        self._masks: npt.NDArray[np.bool_] = np.zeros(0, np.bool_)
        self._window: Mono = np.zeros(WINDOW_SAMPLES, np.float32)
        self._index = 0
        self._waiting: deque[SoundFrame] = deque()
        self._normalised: Mono = np.zeros(0, np.float32)
        self._judged_samples = 0

    def feed(self, samples: Mono, masks: npt.NDArray[np.bool_]) -> Iterator[SoundFrame]:
        """The frames that are complete now. masks: samples that may contain the harness's own stimulus."""
        if len(samples):
            self._samples = np.concatenate((self._samples, samples))
            self._masks = np.concatenate((self._masks, masks))
        while len(self._samples) >= FRAME_SAMPLES:
            high_passed = self._high_pass.feed(self._samples[:FRAME_SAMPLES]).astype(np.float32)
            self._measure(high_passed, bool(self._masks[:FRAME_SAMPLES].mean() > _MASKED_SHARE))
            self._samples = self._samples[FRAME_SAMPLES:]
            self._masks = self._masks[FRAME_SAMPLES:]
            yield from self._release_judged()

    def _measure(self, samples: Mono, masked: bool) -> None:
        """Computes the features of the next frame, and passes its samples on to the detector."""
        power = float(np.mean(np.square(samples, dtype=np.float64)))
        level_dbfs = 10 * float(np.log10(max(power, _MIN_POWER)))
        floor_dbfs = self.floor.dbfs if masked else self.floor.feed(level_dbfs)
        attenuated = samples
        if masked and level_dbfs > floor_dbfs:  # own sound is turned down to the noise, as if it were not there
            attenuated = samples * np.float32(10 ** ((floor_dbfs - level_dbfs) / 20))
        self._window = np.concatenate((self._window[FRAME_SAMPLES:], samples))
        # A little below `EndpointRules.rise_db`, from which a frame counts.
        needs_share = level_dbfs > floor_dbfs + 4 and not masked
        filled = filled_share(self._window) if needs_share else 1.0
        attenuated_dbfs = min(level_dbfs, floor_dbfs) if masked else level_dbfs
        gain = 10 ** (self._normaliser.gain_db(attenuated_dbfs, floor_dbfs) / 20)
        self._normalised = np.concatenate((self._normalised, attenuated * np.float32(gain)))
        # `speech` follows with the decision of the detector.
        self._waiting.append(SoundFrame(self._index, level_dbfs, floor_dbfs, filled, speech=False, masked=masked))
        self._index += 1

    def _release_judged(self) -> Iterator[SoundFrame]:
        """Asks the detector about its next frames, and yields the frames that it has judged."""
        size = self._detector.frame_samples
        while len(self._normalised) >= size:
            pcm = np.clip(self._normalised[:size] * 32767, -32768, 32767).astype(np.int16)
            self._normalised = self._normalised[size:]
            self._judged_samples += size
            speech = self._detector.is_speech(pcm)
            # A frame gets the decision for the detector's frame that contains its middle.
            while self._waiting and self._waiting[0].index * FRAME_SAMPLES + FRAME_SAMPLES // 2 < self._judged_samples:
                frame = self._waiting.popleft()
                yield replace(frame, speech=speech and not frame.masked)

"""Finds speech in a file. Cuts off silence before a recogniser (-a), and cuts long files at pauses."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from harness.engines.framed import Pcm
from harness.sound.detectors.webrtc import WebrtcDetector
from harness.sound.endpoints import Endpoints, SpeechOffset, SpeechOnset
from harness.sound.frames import FRAME_SAMPLES, Frames, SoundFrame

RATE_HZ = 16000
Span = tuple[int, int]
"""[start, end) in samples."""
_BEFORE_S = 0.3
"""Sound that is kept before speech: a recogniser needs a moment of it before the first word."""
_AFTER_S = 0.2
"""Sound that is kept after speech."""
_FEED_SAMPLES = RATE_HZ
"""Number of samples that the detector gets at once."""
_PRIMING_S = 0.6
"""Noise before the sound, from which the detector learns the noise floor."""
_CLOSING_S = 1.5
"""Noise after the sound: longer than the 0.6 s without speech after which `Endpoints` ends it, at any level."""
_FLOOR_PERCENTILE = 5
"""Percentile of the levels of frames that is taken for the noise floor."""
_MIN_LEVEL = 1e-4
"""Least noise floor, as an amplitude: −80 dBFS, in place of digital silence."""
_CUT_SAMPLES = RATE_HZ // 10
"""Length of the stretches among which the quietest is chosen for a cut."""


def speech_spans(samples: Pcm) -> tuple[Span, ...]:
    """Every stretch of speech, [start, end) in samples, in order. samples: shape (n,), 16 kHz.

    Uses webrtcvad after the level normalisation of the live endpointer. The noise floor is known from the first frame:
    noise as loud as the quietest part of the file precedes and follows the file. With babble at 10 dB or less, the end
    of speech is found 1–2 s late.
    """
    if not len(samples):
        return ()
    sound = samples.astype(np.float32) / np.float32(32768)
    priming, closing = _noise(sound, _PRIMING_S, 1), _noise(sound, _CLOSING_S, 2)
    frames, endpoints = Frames(WebrtcDetector()), Endpoints()
    spans: list[Span] = []
    start: int | None = None
    for frame in _split_frames(frames, np.concatenate([priming, sound, closing])):
        for event in endpoints.feed(frame):
            match event:
                case SpeechOnset(start=position):
                    start = _sample_of(position, len(priming), len(samples))
                case SpeechOffset(end=position) if start is not None:
                    spans.append((start, _sample_of(position, len(priming), len(samples))))
                    start = None
                case _:
                    pass
    if start is not None:
        spans.append((start, len(samples)))
    return tuple(span for span in spans if span[1] > span[0])


def speech_span(samples: Pcm) -> Span | None:
    """The span from the first sample of speech to the last; None without speech."""
    spans = speech_spans(samples)
    return (spans[0][0], spans[-1][1]) if spans else None


def trim_silence(samples: Pcm) -> tuple[Pcm, int] | None:
    """The speech with 0.3 s before and 0.2 s after it, and the sample at which that begins.

    samples: int16 at 16 kHz. The speech is a view, not a copy. None without speech.
    """
    span = speech_span(samples)
    if span is None:
        return None
    start = max(0, span[0] - round(_BEFORE_S * RATE_HZ))
    return samples[start : min(len(samples), span[1] + round(_AFTER_S * RATE_HZ))], start


def pause_spans(samples: Pcm, longest_s: float) -> Iterator[Span]:
    """Spans of at most `longest_s` that cover the whole file, each cut in the quietest 100 ms of its last third.

    samples: shape (n,), at 16 kHz. A span is [start, end) in samples. The same file gives the same cuts.
    """
    longest = round(longest_s * RATE_HZ)
    start = 0
    while len(samples) - start > longest:
        earliest = start + longest - longest // 3
        last_third = samples[earliest : start + longest].astype(np.float64)
        blocks = last_third[: len(last_third) - len(last_third) % _CUT_SAMPLES].reshape(-1, _CUT_SAMPLES)
        quietest = int(np.argmin(np.mean(np.square(blocks), axis=1)))
        end = earliest + quietest * _CUT_SAMPLES + _CUT_SAMPLES // 2
        yield start, end
        start = end
    if start < len(samples):
        yield start, len(samples)


def _split_frames(frames: Frames, sound: npt.NDArray[np.float32]) -> Iterator[SoundFrame]:
    for start in range(0, len(sound), _FEED_SAMPLES):
        block = sound[start : start + _FEED_SAMPLES]
        yield from frames.feed(block, np.zeros(len(block), np.bool_))


def _noise(sound: npt.NDArray[np.float32], seconds: float, seed: int) -> npt.NDArray[np.float32]:
    """White noise at the level of the quietest frames, shape (n,). The same sound gives the same noise."""
    size = FRAME_SAMPLES if len(sound) >= FRAME_SAMPLES else len(sound)
    levels = np.sqrt(np.mean(np.square(sound[: len(sound) - len(sound) % size].reshape(-1, size)), axis=1))
    quiet = max(float(np.percentile(levels, _FLOOR_PERCENTILE)), _MIN_LEVEL)
    return np.random.default_rng(seed).normal(0, quiet, round(seconds * RATE_HZ)).astype(np.float32)


def _sample_of(frame: float, priming_samples: int, samples: int) -> int:
    """The sample of the file at which a frame of the surrounded sound begins. samples: length of the file."""
    return min(max(round(frame * FRAME_SAMPLES) - priming_samples, 0), samples)

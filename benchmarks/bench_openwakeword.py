"""openWakeWord over the same sound three ways, one thread: the package, our streaming path, and the fast path.

python benchmarks/bench_openwakeword.py [MODEL] [MINUTES]      about a minute for 1 minute of sound

CPU time, not wall time. The sound: speech of espeak-ng in noise, and digital silence. The package gets 80 ms at a time.
"""

from __future__ import annotations

import os
import sys
from itertools import pairwise
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))  # sounds as the tests make them

import numpy as np
import pyopen_wakeword
from sizes import sized
from timing import timed

from harness.engines.openwakeword import FIRST_END, FastScores, Features, OpenWakeWordOffline
from harness.engines.settings import operating_points
from harness.offline.one_file import crossings
from tests.unit.engines.openwakeword_sounds import RATE_HZ, Sound, noise, pcm, scored
from tests.unit.engines.wake_sound import spoken

TEXTS = ("alexa", "hey jarvis", "okay nabu", "what is the weather in Paris", "turn the lights off in the kitchen")
SHORT_S = 3
REPEATS = 10
"""The fast path scores the sound so many times over, since it needs little time."""


def main(model: str = "alexa", minutes: float = sized(1.0, 0.1)) -> None:
    samples = sound(minutes)
    seconds = len(samples) / RATE_HZ
    print(f"{model}, {seconds:.0f} s of sound; load on this machine: {os.getloadavg()[0]:.1f}")
    shipped, shipped_s = timed(lambda: shipped_scores(model, samples))
    streaming = OpenWakeWordOffline(model, {"path": "streaming"})
    streamed, streamed_s = timed(lambda: scored(streaming, samples).scores)
    cpu_s = {"the package": shipped_s, "our streaming path": streamed_s}
    fast = OpenWakeWordOffline(model, {})
    print(fast.facts.version)
    long = np.tile(samples, REPEATS)
    paths = {"the fast path without its kernel": without_kernel(fast), "the fast path": fast}
    for name, path in paths.items():
        scored(path, samples)  # the first call loads what later ones use again
        _, took_s = timed(lambda path=path: scored(path, long))
        cpu_s[name] = took_s / REPEATS
    short = [samples[start : start + SHORT_S * RATE_HZ] for start in range(0, len(samples), SHORT_S * RATE_HZ)]
    _, cpu_s[f"the fast path, files of {SHORT_S} s"] = timed(lambda: [scored(fast, piece) for piece in short])
    for name, took_s in cpu_s.items():
        print(
            f"{name:32} {took_s / seconds * 3600:8.1f} CPU s per hour of sound   {seconds / took_s:7.1f}x real time"
            f"   {shipped_s / took_s:5.1f} times the package"
        )
    scores = scored(fast, samples).scores
    print(f"streaming and the package: {'the same bits' if np.array_equal(streamed, shipped) else 'DIFFERENT'}")
    print(f"fast and the package: at most {np.abs(scores - shipped).max():.1e} apart in {len(scores)} scores", end="; ")
    print(f"events equal at {equal_points(scores, shipped)} of 20 operating points")


class WithoutKernel:
    """The fast path with onnxruntime's convolutions."""

    def __init__(self, engine: OpenWakeWordOffline, features: Features) -> None:
        self._engine, self._features = engine, features

    def begin(self) -> FastScores:
        _, classifier, exact = self._engine.fast_parts()
        return FastScores("", self._features, classifier, exact, np.zeros(0, np.float32))


def without_kernel(engine: OpenWakeWordOffline) -> WithoutKernel:
    models = Path(pyopen_wakeword.__file__).parent / "models"
    melspectrogram = (models / "melspectrogram.tflite").read_bytes()
    embedding = (models / "embedding_model.tflite").read_bytes()
    return WithoutKernel(engine, Features(melspectrogram, embedding, kernel=False))


def sound(minutes: float) -> Sound:
    """Silence, noise and speech in noise in turn, the speech at -35 to -15 dBFS."""
    parts: list[Sound] = []
    rng = np.random.default_rng(1)
    while sum(map(len, parts)) < minutes * 60 * RATE_HZ:
        text = TEXTS[len(parts) // 3 % len(TEXTS)]
        speech = pcm(spoken(text, level_dbfs=-35 + 20 * rng.random()))
        hiss = np.resize(noise(), len(speech))
        parts += [np.zeros(RATE_HZ, np.int16), noise(), np.clip(speech + hiss // 4, -32768, 32767).astype(np.int16)]
    return np.concatenate(parts)[: round(minutes * 60 * RATE_HZ)]


def shipped_scores(model: str, samples: Sound) -> np.ndarray:
    features = pyopen_wakeword.OpenWakeWordFeatures.from_builtin()
    classifier = pyopen_wakeword.OpenWakeWord.from_builtin(pyopen_wakeword.Model(model))
    scores = []
    for start, end in chunks(len(samples)):
        chunk_scores = [
            score
            for embeddings in features.process_streaming(samples[start:end].tobytes())
            for score in classifier.process_streaming(embeddings)
        ]
        scores.append(chunk_scores[-1])
    return np.array(scores, np.float32)


def chunks(length: int) -> list[tuple[int, int]]:
    """First and last sample (excluded) of each piece that the package gets: all up to FIRST_END, then 80 ms each."""
    ends = list(range(FIRST_END, length + 1, 1280))
    return list(pairwise([0, *ends]))


def equal_points(ours: np.ndarray, theirs: np.ndarray) -> int:
    """The number of operating points at which both give the same events."""
    steps = RATE_HZ / 1280
    points = operating_points(0.5)
    return sum(
        np.array_equal(crossings(ours, point.threshold, steps), crossings(theirs, point.threshold, steps))
        for point in points
    )


if __name__ == "__main__":
    main(*sys.argv[1:2], *map(float, sys.argv[2:3]))

"""openWakeWord over the same sound three ways, one thread: the package, our streaming path, and the fast path.

python benchmarks/bench_openwakeword.py [MODEL] [MINUTES]      about a minute for 1 minute of sound

CPU time, not wall time. The sound: speech of espeak-ng in noise, and digital silence. The package gets 80 ms at a time.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))  # sounds as the tests make them

import numpy as np
import pyopen_wakeword
from sizes import sized

from harness.engines.openwakeword import FIRST_END, FastScores, Features, OpenWakeWordOffline
from harness.engines.settings import operating_points
from harness.offline.one_file import crossings
from tests.unit.engines.openwakeword_sounds import RATE_HZ, Sound, noise, pcm, scored
from tests.unit.engines.wake_sound import spoken

TEXTS = ("alexa", "hey jarvis", "okay nabu", "what is the weather in Paris", "turn the lights off in the kitchen")
SHORT_S = 3


def main(model: str = "alexa", minutes: float = sized(1.0, 0.1)) -> None:
    samples = sound(minutes)
    seconds = len(samples) / RATE_HZ
    print(f"{model}, {seconds:.0f} s of sound; load on this machine: {os.getloadavg()[0]:.1f}")
    shipped_s, shipped = timed(lambda: shipped_scores(model, samples))
    figures = {"the package": shipped_s}
    streaming = OpenWakeWordOffline(model, {"path": "streaming"})
    figures["our streaming path"], streamed = timed(lambda: scored(streaming, samples).scores)
    fast = OpenWakeWordOffline(model, {})
    print(fast.facts.version)
    long = np.tile(samples, 10)
    without = without_kernel(fast)
    for name, path in (("the fast path without its kernel", without), ("the fast path", fast)):
        scored(path, samples)
        took_s, _ = timed(lambda path=path: scored(path, long).scores)
        figures[name] = took_s / 10
    short = [samples[start : start + SHORT_S * RATE_HZ] for start in range(0, len(samples), SHORT_S * RATE_HZ)]
    figures[f"the fast path, files of {SHORT_S} s"], _ = timed(
        lambda: np.array([len(scored(fast, s).scores) for s in short])
    )
    for name, took_s in figures.items():
        print(
            f"{name:32} {took_s / seconds * 3600:8.1f} CPU s per hour of sound   {seconds / took_s:7.1f}x real time"
            f"   {shipped_s / took_s:5.1f} times the package"
        )
    found = scored(fast, samples).scores
    print(f"streaming and the package: {'the same bits' if np.array_equal(streamed, shipped) else 'DIFFERENT'}")
    print(f"fast and the package: at most {np.abs(found - shipped).max():.1e} apart in {len(found)} scores", end="; ")
    print(f"events equal at {equal_points(found, shipped)} of 20 operating points")


class WithoutKernel:
    """The fast path with onnxruntime's convolutions."""

    def __init__(self, engine: OpenWakeWordOffline, features: Features) -> None:
        self._engine, self._features = engine, features

    def begin(self) -> FastScores:
        _, classifier, exact = self._engine.fast_parts()
        return FastScores("", self._features, classifier, exact, np.zeros(0, np.float32))


def without_kernel(engine: OpenWakeWordOffline) -> WithoutKernel:
    folder = Path(pyopen_wakeword.__file__).parent / "models"
    mel, embedding = ((folder / f"{name}.tflite").read_bytes() for name in ("melspectrogram", "embedding_model"))
    return WithoutKernel(engine, Features(mel, embedding, kernel=False))


def sound(minutes: float) -> Sound:
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
        found = [
            score
            for embeddings in features.process_streaming(samples[start:end].tobytes())
            for score in classifier.process_streaming(embeddings)
        ]
        scores.append(found[-1])
    return np.array(scores, np.float32)


def chunks(length: int) -> list[tuple[int, int]]:
    ends = list(range(FIRST_END, length + 1, 1280))
    return list(zip([0, *ends], ends, strict=False))


def equal_points(ours: np.ndarray, theirs: np.ndarray) -> int:
    steps = RATE_HZ / 1280
    points = operating_points(0.5)
    return sum(
        np.array_equal(crossings(ours, point.threshold, steps), crossings(theirs, point.threshold, steps))
        for point in points
    )


def timed(work: Callable[[], np.ndarray]) -> tuple[float, np.ndarray]:
    began_s = time.process_time()
    found = work()
    return time.process_time() - began_s, found


if __name__ == "__main__":
    main(*sys.argv[1:2], *map(float, sys.argv[2:3]))

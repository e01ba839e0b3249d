"""CPU time of microWakeWord per hour of audio: as its package ships it, in a tight loop, and our two paths.

python benchmarks/bench_microwakeword.py [MINUTES]      about a minute for the five that it takes otherwise

CPU seconds of one core, the best of three, so that a loaded machine matters little; the scores of the two paths are
compared on the way.
"""

from __future__ import annotations

import ctypes
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pymicro_wakeword
import soundfile
from pymicro_features import MicroFrontend

sys.path.append(str(Path(__file__).parents[1]))  # sound as the tests make it

from sizes import sized
from timing import quickest

from harness.base.ports import ScoreStream
from harness.engines.microwakeword_offline import MicroWakeWordOffline, find_model, interpreter
from harness.sound.sound_files import open_sound
from tests.unit.engines.wake_sound import varied

RATE_HZ = 16000
MODELS = ("alexa", "okay_nabu")
SHORT_S = 2.0
ROUNDS = sized(3, 1)


def as_shipped(model: str, sound: np.ndarray) -> np.ndarray:
    """Scores by the package, called as its command line does."""
    engine = pymicro_wakeword.MicroWakeWord.from_builtin(pymicro_wakeword.Model(model))
    features = pymicro_wakeword.MicroWakeWordFeatures()
    scores = [engine.process_streaming_prob(frame) for frame in features.process_streaming(sound.tobytes())]
    return np.array(scores[engine.stride - 1 :: engine.stride], np.float32)


def tight_loop(model: str, sound: np.ndarray) -> np.ndarray:
    """Scores by the package's features and its library, with as little Python as possible in the loop.

    A step of the model takes 3 frames of 40 features, and the score is the mean of the last 5 probabilities.
    """
    frontend, content = MicroFrontend(), memoryview(sound.tobytes())
    process = frontend.process_samples
    frames = [process(bytes(content[first : first + 320])).features for first in range(0, len(content) - 319, 320)]
    engine = interpreter(find_model(model).path)
    features = np.array([frame for frame in frames if frame])
    inputs = np.round(features[: len(features) // 3 * 3] / engine.input_scale + engine.input_zero_point).astype(np.int8)
    outputs = np.empty(len(inputs) // 3, np.uint8)
    library, input_tensor, output_tensor, handle = (
        engine.lib, engine.input_tensor, engine.output_tensor, engine.interpreter,
    )  # fmt: skip
    copy_in, invoke, copy_out = (
        library.TfLiteTensorCopyFromBuffer, library.TfLiteInterpreterInvoke, library.TfLiteTensorCopyToBuffer,
    )  # fmt: skip
    input_address, output_address = inputs.ctypes.data, outputs.ctypes.data
    for step in range(len(outputs)):
        copy_in(input_tensor, ctypes.c_void_p(input_address + 120 * step), 120)
        invoke(handle)
        copy_out(output_tensor, ctypes.c_void_p(output_address + step), 1)
    probabilities = (outputs.astype(np.float32) - engine.output_zero_point) * engine.output_scale
    means = np.convolve(probabilities.astype(float), np.ones(5))[: len(probabilities)] / 5
    means[:4] = 0
    return means.astype(np.float32)


def final_scores(stream: ScoreStream) -> np.ndarray:
    (track,) = stream.take(flush=True)
    return track.scores


def score_sound(engine: MicroWakeWordOffline, sound: np.ndarray) -> np.ndarray:
    stream = engine.begin()
    stream.feed(sound)
    return final_scores(stream)


def score_file(engine: MicroWakeWordOffline, path: Path) -> np.ndarray:
    stream = engine.begin()
    with open_sound(str(path), RATE_HZ, resample=False) as opened:
        for block in opened.blocks():
            stream.feed(block)
    return final_scores(stream)


def score_in_pieces(engine: MicroWakeWordOffline, sound: np.ndarray) -> None:
    """Scores pieces of SHORT_S, each as a file of its own."""
    length = int(SHORT_S * RATE_HZ)
    for start in range(0, len(sound), length):
        score_sound(engine, sound[start : start + length])


def main() -> None:
    minutes = float(sys.argv[1]) if len(sys.argv) > 1 else sized(5.0, 0.1)
    pieces = [varied(seconds=40, seed=seed) for seed in range(4)]
    sound = np.resize(np.concatenate(pieces), int(minutes * 60 * RATE_HZ))
    hours = len(sound) / RATE_HZ / 3600
    for model in MODELS:
        fast, streaming = MicroWakeWordOffline(model, {}), MicroWakeWordOffline(model, {"path": "streaming"})
        settings = dict(fast.facts.settings)
        print(f"{model}: {minutes:g} min; the fast path is {settings['path']} ({settings.get('path-because', '')})")
        expected = as_shipped(model, sound)
        for name, scores in (("streaming", score_sound(streaming, sound)), ("fast", score_sound(fast, sound))):
            print(f"  scores of the {name} path that are not the package's: {np.sum(scores != expected)}")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "sound.wav"
            soundfile.write(path, sound, RATE_HZ, subtype="PCM_16")
            ways: dict[str, Callable[[], object]] = {
                "package as shipped": partial(as_shipped, model, sound),
                "bulk features + tight loop": partial(tight_loop, model, sound),
                "our streaming path": partial(score_sound, streaming, sound),
                "our fast path": partial(score_sound, fast, sound),
                "our fast path, from a WAV": partial(score_file, fast, path),
                f"our fast path, {SHORT_S:g} s a file": partial(score_in_pieces, fast, sound),
            }
            shipped_s = 0.0
            for name, work in ways.items():
                cpu_s = quickest(work, ROUNDS).cpu_s
                shipped_s = shipped_s or cpu_s  # the package comes first
                print(
                    f"  {name:28} {cpu_s / hours:8.3f} CPU s an hour of audio   {hours * 3600 / cpu_s:8,.0f}x real time"
                    f"   {shipped_s / cpu_s:6.2f}x the package"
                )


if __name__ == "__main__":
    main()

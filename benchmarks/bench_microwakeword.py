"""CPU time of microWakeWord per hour of audio: as its package ships it, in a tight loop, and our two paths.

python benchmarks/bench_microwakeword.py [MINUTES]      about a minute for the five that it takes otherwise

CPU seconds of one core, the best of three, so that a loaded machine matters little; the scores of the two paths are
compared on the way.
"""

from __future__ import annotations

import ctypes
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pymicro_wakeword
import soundfile
from pymicro_features import MicroFrontend

sys.path.append(str(Path(__file__).parents[1]))  # sound as the tests make it

from sizes import sized

from harness.base.ports import ScoreStream
from harness.engines.microwakeword_offline import MicroWakeWordOffline, find_model, interpreter
from harness.sound.sound_files import open_sound
from tests.unit.engines.wake_sound import varied

RATE_HZ = 16000
MODELS = ("alexa", "okay_nabu")
SHORT_S = 2.0
ROUNDS = sized(3, 1)


def as_shipped(model: str, sound: np.ndarray) -> np.ndarray:
    """As the package's command line does it, with its probabilities kept."""
    engine = pymicro_wakeword.MicroWakeWord.from_builtin(pymicro_wakeword.Model(model))
    features = pymicro_wakeword.MicroWakeWordFeatures()
    scores = [engine.process_streaming_prob(frame) for frame in features.process_streaming(sound.tobytes())]
    return np.array(scores[engine.stride - 1 :: engine.stride], np.float32)


def tight_loop(model: str, sound: np.ndarray) -> np.ndarray:
    """The package's features and its library, with all of Python that can be moved out of the loop moved out."""
    frontend, content = MicroFrontend(), memoryview(sound.tobytes())
    process = frontend.process_samples
    frames = [process(bytes(content[at : at + 320])).features for at in range(0, len(content) - 319, 320)]
    engine = interpreter(find_model(model).path)
    made = np.array([frame for frame in frames if frame])
    steps = np.round(made[: len(made) // 3 * 3] / engine.input_scale + engine.input_zero_point).astype(np.int8)
    answers = np.empty(len(steps) // 3, np.uint8)
    library, entry, end = engine.lib, engine.input_tensor, engine.output_tensor
    put, run, take = (
        library.TfLiteTensorCopyFromBuffer, library.TfLiteInterpreterInvoke, library.TfLiteTensorCopyToBuffer,
    )  # fmt: skip
    handle, at, to = engine.interpreter, steps.ctypes.data, answers.ctypes.data
    for number in range(len(answers)):
        put(entry, ctypes.c_void_p(at + 120 * number), 120)
        run(handle)
        take(end, ctypes.c_void_p(to + number), 1)
    chances = (answers.astype(np.float32) - engine.output_zero_point) * engine.output_scale
    sums = np.convolve(chances.astype(float), np.ones(5))[: len(chances)] / 5
    sums[:4] = 0
    return sums.astype(np.float32)


def taken(stream: ScoreStream) -> np.ndarray:
    (track,) = stream.take(flush=True)
    return track.scores


def of_sound(engine: MicroWakeWordOffline, sound: np.ndarray) -> np.ndarray:
    stream = engine.begin()
    stream.feed(sound)
    return taken(stream)


def of_file(engine: MicroWakeWordOffline, path: Path) -> np.ndarray:
    stream = engine.begin()
    with open_sound(str(path), RATE_HZ, resample=False) as opened:
        for block in opened.blocks():
            stream.feed(block)
    return taken(stream)


def of_short_files(engine: MicroWakeWordOffline, sound: np.ndarray) -> None:
    each = int(SHORT_S * RATE_HZ)
    for start in range(0, len(sound), each):
        of_sound(engine, sound[start : start + each])


def best_cpu_s(work: Callable[[], object]) -> float:
    times = []
    for _ in range(ROUNDS):
        began = time.process_time()
        work()
        times.append(time.process_time() - began)
    return min(times)


def main() -> None:
    minutes = float(sys.argv[1]) if len(sys.argv) > 1 else sized(5.0, 0.1)
    one = [varied(seconds=40, seed=seed) for seed in range(4)]
    sound = np.resize(np.concatenate(one), int(minutes * 60 * RATE_HZ))
    hours = len(sound) / RATE_HZ / 3600
    for model in MODELS:
        fast, streaming = MicroWakeWordOffline(model, {}), MicroWakeWordOffline(model, {"path": "streaming"})
        told = dict(fast.facts.settings)
        print(f"{model}: {minutes:g} min; the fast path is {told['path']} ({told.get('path-because', '')})")
        expected = as_shipped(model, sound)
        for name, scores in (("streaming", of_sound(streaming, sound)), ("fast", of_sound(fast, sound))):
            print(f"  scores of the {name} path that are not the package's: {np.sum(scores != expected)}")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "sound.wav"
            soundfile.write(path, sound, RATE_HZ, subtype="PCM_16")
            ways: dict[str, Callable[[], object]] = {
                "package as shipped": lambda m=model: as_shipped(m, sound),
                "bulk features + tight loop": lambda m=model: tight_loop(m, sound),
                "our streaming path": lambda e=streaming: of_sound(e, sound),
                "our fast path": lambda e=fast: of_sound(e, sound),
                "our fast path, from a WAV": lambda e=fast, p=path: of_file(e, p),
                f"our fast path, {SHORT_S:g} s a file": lambda e=fast: of_short_files(e, sound),
            }
            shipped_s = 0.0
            for name, work in ways.items():
                cpu_s = best_cpu_s(work)
                shipped_s = shipped_s or cpu_s
                print(
                    f"  {name:28} {cpu_s / hours:8.3f} CPU s an hour of audio   {hours * 3600 / cpu_s:8,.0f}x real time"
                    f"   {shipped_s / cpu_s:6.2f}x the package"
                )


if __name__ == "__main__":
    main()

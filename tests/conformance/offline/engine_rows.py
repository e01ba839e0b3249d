"""What the suite of offline engines needs of each: a model, a sound that says something, and what is found in it."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import soundfile
import soxr

from harness.model.offline import EngineKind
from tests.unit.engines.wake_sound import spoken

RATE_HZ = 16000
DATA = Path(__file__).parents[2] / "data" / "engines"
LOUD = f"{sys.executable} {DATA / 'loud_engine.py'}"
EXAMPLES = Path(__file__).parents[3] / "examples"
GRAMMAR = f"{sys.executable} {EXAMPLES / 'grammar_engine.py'}"
Pcm = np.ndarray


@dataclass(frozen=True, slots=True)
class Row:
    """model and settings of a task; said: the sound of the phrase or sentence alone; finds: what is found in it.

    wrong: a model that the engine does not have, and what its refusal says. later_s: how long after the end of the
    phrase a spot may be known.
    """

    engine: str
    model: str
    said: Callable[[], Pcm]
    finds: str
    wrong: tuple[str, str]
    settings: tuple[tuple[str, str], ...] = ()
    later_s: float = 0.6
    kind: EngineKind = EngineKind.WAKE

    @property
    def name(self) -> str:
        return f"{self.engine}-{self.finds.replace(' ', '_')}"


def in_room(speech: Pcm, before_s: float = 1.5, after_s: float = 1.0, noise: float = 8.0) -> Pcm:
    """The sound with a quiet room around it, int16."""
    generator = np.random.default_rng(7)
    sound = np.concatenate([np.zeros(round(before_s * RATE_HZ)), speech, np.zeros(round(after_s * RATE_HZ))])
    return np.clip(sound + generator.normal(0, noise, len(sound)), -32768, 32767).astype(np.int16)


@cache
def espeak(text: str, voice: str) -> Pcm:
    return spoken(text, voice) * 32767


@cache
def flite(text: str) -> Pcm:
    """Voice slt, without the silence around it, at −26 dBFS."""
    result = subprocess.run(
        ["flite", "-voice", "slt", "-t", text, "-o", "/dev/stdout"], capture_output=True, check=True
    )
    samples, rate_hz = soundfile.read(io.BytesIO(result.stdout), dtype="float32")
    samples = soxr.resample(samples, rate_hz, RATE_HZ)
    loud = np.flatnonzero(np.abs(samples) > 0.01)
    samples = samples[loud[0] : loud[-1] + 1]
    return np.asarray(samples * 32767 * 0.05 / np.sqrt(np.mean(samples**2)))


def _noise_burst() -> Pcm:
    return np.random.default_rng(3).normal(0, 9000, RATE_HZ // 2)


def _alexa() -> Pcm:
    return espeak("Alexa", "en-gb+f2")


def _time() -> Pcm:
    return espeak("what time is it in London", "en-us")


ROWS = (
    Row("microwakeword", "alexa", _alexa, "alexa", ("no_such_phrase", "okay_nabu")),
    Row("openwakeword", "alexa", _alexa, "alexa", ("no_such_phrase", "okay_nabu")),
    Row("pocketsphinx", "hey jarvis", lambda: flite("hey jarvis"), "hey jarvis", ("frobnicatorx", "frobnicatorx")),
    Row(
        "pocketsphinx",
        "alexa, hey jarvis",
        lambda: flite("alexa"),
        "alexa",
        ("alexa, frobnicatorx", "frobnicatorx"),
        (("kws-threshold", "-20"),),
    ),
    Row(
        "faster_whisper",
        "tiny.en",
        _time,
        "what time is it in london",
        ("no-such-model", "tiny.en"),
        kind=EngineKind.TRANSCRIPT,
    ),
    Row("moonshine", "", _time, "what time is it in london", ("no-such-model", "tiny-en"), kind=EngineKind.TRANSCRIPT),
    Row("porcupine", "alexa", _alexa, "alexa", ("no_such_phrase", "hey_google|hey google")),
    Row("process", LOUD, _noise_burst, "loud", ("no-such-program", "program .* does not exist")),
    Row(
        "process",
        f"{LOUD} --once",
        _noise_burst,
        "loud",
        ("no-such-program", "program .* does not exist"),
        (("mode", "once"),),
    ),
    Row("process", f"{LOUD} --scores", _noise_burst, "loud", ("no-such-program", "program .* does not exist")),
    Row(
        "process",
        f"{LOUD} --kind command",
        _noise_burst,
        "loud",
        ("no-such-program", "program .* does not exist"),
        kind=EngineKind.COMMAND,
    ),
    Row(
        "process",
        f"{GRAMMAR} {DATA / 'house.gram'}",
        lambda: flite("turn on the kitchen light"),
        "turn on the kitchen light",
        ("no-such-program", "program .* does not exist"),
        kind=EngineKind.COMMAND,
    ),
)
ELSEWHERE = {"device", "sherpa_onnx", "vosk"}
"""Engines that need more than a file: boards have suites of their own, users' models test_users_models.py."""

"""Real speech, tones and blocks for the tests of hearing."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import numpy.typing as npt
import soundfile
import soxr

from harness.model.observation import Observation
from harness.sound.capture import Block
from harness.sound.hearing import Hearing

RATE_HZ = 48000
Mono = npt.NDArray[np.float32]


@cache
def speech(text: str, voice: str = "en-us", level_dbfs: float = -26.0) -> Mono:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "speech.wav"
        argv = ["flite", "-voice", voice[6:], "-t", text, "-o", str(path)]
        if not voice.startswith("flite:"):
            argv = ["espeak-ng", "-v", voice, "-w", str(path), "--", text]
        subprocess.run(argv, check=True, capture_output=True, timeout=30)
        samples, rate = soundfile.read(path, dtype="float32")
    wave = soxr.resample(samples, rate, RATE_HZ).astype(np.float32)
    loud = np.flatnonzero(np.abs(wave) > 0.02 * np.abs(wave).max())
    wave = wave[loud[0] : loud[-1]]
    return (wave * 10 ** (level_dbfs / 20) / np.sqrt(np.mean(wave**2))).astype(np.float32)


def tone(*notes_hz: float, seconds: float, level_dbfs: float = -26.0, to_hz: float | None = None) -> Mono:
    """A beep, a chord of several notes, or a sweep of one note."""
    t = np.arange(int(seconds * RATE_HZ)) / RATE_HZ
    sound = np.zeros(len(t))
    for note in notes_hz:
        sweep = 0.0 if to_hz is None else (to_hz - note) / seconds / 2
        sound += np.sin(2 * np.pi * (note * t + sweep * t * t))
    ramp = np.minimum(1, np.minimum(t, t[::-1]) / 0.008)
    sound *= ramp
    return (sound * 10 ** (level_dbfs / 20) / np.sqrt(np.mean(sound**2))).astype(np.float32)


def scene(seconds: float, *placed: tuple[float, Mono], noise_dbfs: float = -75.0) -> Mono:
    noise = np.random.default_rng(3).normal(0, 10 ** (noise_dbfs / 20), int(seconds * RATE_HZ))
    whole = noise.astype(np.float32)
    for at_s, sound in placed:
        first = round(at_s * RATE_HZ)
        whole[first : first + len(sound)] += sound
    return whole


def blocks(samples: Mono, at_s: float = 0.0, epoch: int = 1) -> Iterator[Block]:
    for first in range(0, len(samples), 480):
        yield Block(first, at_s + first / RATE_HZ, 0.0, samples[first : first + 480], epoch)


def told(hearing: Hearing, samples: Mono, at_s: float = 0.0) -> list[Observation]:
    return [observation for block in blocks(samples, at_s) for observation in hearing.feed(block)]

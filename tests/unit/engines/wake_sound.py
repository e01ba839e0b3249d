"""Speech, and sound of many kinds for wake engines, int16 at 16 kHz."""

from __future__ import annotations

import io
import subprocess

import numpy as np
import soundfile
import soxr

PHRASES = ("alexa", "hey jarvis", "hey mycroft", "okay nabu")
VOICES = ("en-us+f4", "en-gb-scotland+m2", "en-us+m3")
RATE_HZ = 16000


def varied(*, seconds: float = 20.0, seed: int = 0) -> np.ndarray:
    """int16 (n,): the four phrases in three voices, and about `seconds` of other things between them."""
    rng = np.random.default_rng(seed)
    kinds = (_noise, _music, _silence, _clipped, _faint, _square)
    phrases = [spoken(phrase, voice) * 32767 for phrase in PHRASES for voice in VOICES]
    parts: list[np.ndarray] = []
    length = int(seconds * RATE_HZ / (2 * len(phrases)))
    for number, phrase in enumerate(phrases):
        parts.append(kinds[number % len(kinds)](rng, length))
        parts.append(rng.normal(0, 10, 2 * RATE_HZ) if number % 2 else _silence(rng, 2 * RATE_HZ))
        parts.append(phrase)
        parts.append(_silence(rng, length))
    return np.clip(np.concatenate(parts), -32768, 32767).astype(np.int16)


def _noise(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.normal(0, 1, n) * 10 ** rng.uniform(0, 4.5, n // 800 + 1).repeat(800)[:n]


def _music(rng: np.random.Generator, n: int) -> np.ndarray:
    time_s = np.arange(n) / RATE_HZ
    tones = 220 * 2 ** (rng.integers(0, 36, 6) / 12)
    return 3000 * sum(np.sin(2 * np.pi * tone * time_s) for tone in tones) * (1 - time_s % 0.5)


def _silence(rng: np.random.Generator, n: int) -> np.ndarray:
    return np.zeros(n)


def _clipped(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.normal(0, 60_000, n)


def _faint(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.integers(-2, 3, n).astype(float)


def _square(rng: np.random.Generator, n: int) -> np.ndarray:
    return np.where(np.arange(n) // rng.integers(20, 90) % 2, 32767.0, -32768.0)


def spoken(text: str, voice: str = "en-gb+f2", level_dbfs: float = -26.0) -> np.ndarray:
    """float32 (n,), silence trimmed at both ends."""
    speech = subprocess.run(["espeak-ng", "-v", voice, "--stdout", "--", text], capture_output=True, check=True)
    samples, rate_hz = soundfile.read(io.BytesIO(speech.stdout), dtype="float32")
    samples = soxr.resample(samples, rate_hz, 16000).astype(np.float32)
    loud = np.flatnonzero(np.abs(samples) > 0.01)
    samples = samples[loud[0] : loud[-1] + 1]
    gain = 10 ** (level_dbfs / 20) / np.sqrt(np.mean(samples**2))
    return np.asarray(samples * gain, dtype=np.float32)

"""Puts speech into rooms, noise and levels, and turns it into the spotter's own features."""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import soxr
from scipy.signal import lfilter, oaconvolve
from speech_corpus import PCM, RATE_HZ

Sound = npt.NDArray[np.float64]
Levels = npt.NDArray[np.int8]
BANDS, WINDOW, HOP = 16, 400, 320
CORE = Path(__file__).resolve().parent.parent / "core" / "spotter"


class FrontEnd:
    """The C front end, compiled for this machine."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="vh-front-")
        library = Path(self._folder.name, "front.so")
        sources = [str(CORE / "vh_spotter_front.c"), str(Path(__file__).parent / "front_stream.c")]
        subprocess.run(["gcc", "-O2", "-shared", "-fPIC", f"-I{CORE}", *sources, "-o", str(library)], check=True)
        self._stream = ctypes.CDLL(str(library)).vh_front_stream
        self._stream.restype = ctypes.c_long

    def levels(self, pcm: PCM) -> Levels:
        """Frames by bands, 0 to 127."""
        frames = max(0, (len(pcm) - WINDOW) // HOP + 1)
        levels = np.zeros((frames, BANDS), np.int8)
        sound = np.ascontiguousarray(pcm)
        written = self._stream(
            sound.ctypes.data_as(ctypes.c_void_p), ctypes.c_long(len(sound)), levels.ctypes.data_as(ctypes.c_void_p)
        )
        assert written == frames, (written, frames)
        return levels


@dataclass(frozen=True, slots=True)
class Mixing:
    """Between which limits recordings are changed, and how often.

    - min_dbfs, max_dbfs: the level of the speech.
    - clean_share: of recordings with next to no noise; the others have noise of min_snr_db to max_snr_db.
    - speaker_share: of recordings whose speed and pitch are changed.
    - room_share: of recordings in a room.
    """

    min_dbfs: float = -42
    max_dbfs: float = -14
    clean_share: float = 0.4
    min_snr_db: float = 3
    max_snr_db: float = 30
    speaker_share: float = 0.6
    room_share: float = 0.35


def spoken_span(pcm: PCM) -> tuple[int, int]:
    """First and last sample of the speech: frames of 10 ms within 35 dB of the loudest."""
    frames = len(pcm) // 160
    energy = (pcm[: frames * 160].astype(np.float64).reshape(frames, 160) ** 2).mean(axis=1)
    loud = np.flatnonzero(energy > energy.max() * 10**-3.5)
    return int(loud[0]) * 160, int(loud[-1] + 1) * 160


def other_speaker(rng: np.random.Generator, sound: Sound) -> Sound:
    """The sound faster and higher, or slower and lower, by up to 25 per cent."""
    factor = float(np.exp(rng.uniform(-0.22, 0.22)))
    return np.asarray(soxr.resample(sound, RATE_HZ, round(RATE_HZ * factor), quality="LQ"))


def coloured(rng: np.random.Generator, sound: Sound) -> Sound:
    """The sound through a loudspeaker or a microphone whose response has a tilt and a gentle peak."""
    tilt = rng.uniform(-0.5, 0.5)
    sound = lfilter([1, tilt], [1], sound)
    centre, radius = rng.uniform(200, 5000), rng.uniform(0.5, 0.85)
    angle = 2 * np.pi * centre / RATE_HZ
    resonance = lfilter([1 - radius], [1, -2 * radius * np.cos(angle), radius**2], sound)
    return sound + rng.uniform(0, 0.7) * resonance


def in_room(rng: np.random.Generator, sound: Sound) -> Sound:
    """The sound with a diffuse tail of 0.1 to 0.6 s, at −3 to −20 dB."""
    length = round(rng.uniform(0.1, 0.6) * RATE_HZ)
    tail = rng.normal(size=length) * np.exp(-6.9 * np.arange(length) / length)
    tail *= 10 ** (rng.uniform(-20, -3) / 20) / np.sqrt((tail**2).sum())
    tail[0] = 1
    return oaconvolve(sound, tail)[: len(sound)]


def noise(rng: np.random.Generator, count: int) -> Sound:
    """White, pink or brown noise, hum, beeps or chords; RMS 1."""
    kind = rng.integers(6)
    white = rng.normal(size=count)
    t = np.arange(count) / RATE_HZ
    if kind == 1:
        made = lfilter([0.049922, -0.095993, 0.050613, -0.004408], [1, -2.494956, 2.017265, -0.522189], white)
    elif kind == 2:
        made = lfilter([1], [1, -0.98], white)
    elif kind == 3:
        made = sum(np.sin(2 * np.pi * 50 * h * t + rng.uniform(0, 6)) / h for h in range(1, 9)) + 0.2 * white
    elif kind == 4:
        made = np.sin(2 * np.pi * rng.uniform(300, 3000) * t) * (np.sin(2 * np.pi * rng.uniform(0.5, 4) * t) > 0)
    elif kind == 5:
        made = np.zeros(count)
        for start in range(0, count, 6400):
            note = t[: min(6400, count - start)]
            for pitch in rng.uniform(110, 900, 3):
                made[start : start + len(note)] += sum(
                    np.sin(2 * np.pi * pitch * h * note) / h**1.3 for h in range(1, 7)
                ) * np.exp(-3 * note)
    else:
        made = white
    rms = float(np.sqrt(np.mean(made**2)))
    return np.asarray(made / rms) if rms > 0 else white


def mixed(rng: np.random.Generator, speech: Sound, limits: Mixing) -> PCM:
    """Speech at a drawn level, with noise or with next to none, as PCM16."""
    if rng.random() < 0.7:
        speech = coloured(rng, speech)
    if rng.random() < limits.room_share:
        speech = in_room(rng, speech)
    active = speech[np.abs(speech) > np.abs(speech).max() * 0.03]
    level_dbfs = rng.uniform(limits.min_dbfs, limits.max_dbfs)
    speech = speech * (32768 * 10 ** (level_dbfs / 20) / np.sqrt(np.mean(active**2)))
    if rng.random() < limits.clean_share:
        floor = rng.choice([0, 0.5, 1, 3])
        speech = speech + rng.normal(size=len(speech)) * floor
    else:
        snr_db = rng.uniform(limits.min_snr_db, limits.max_snr_db)
        speech = speech + noise(rng, len(speech)) * 32768 * 10 ** ((level_dbfs - snr_db) / 20)
    return np.clip(np.round(speech), -32768, 32767).astype(np.int16)

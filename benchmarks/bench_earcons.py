"""How often learned chimes are detected, how often other sound is taken for one, and how far the times are off.

python benchmarks/bench_earcons.py              all tables, about three minutes
python benchmarks/bench_earcons.py --hours 0.1  less speech and noise without a chime

Four chimes are learned as they are synthesised. They are then sought in white noise and in speech of eight synthetic
voices. In rooms, each chime has a reverberation of its own with half of its energy, so it never equals the learned one.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterator
from functools import partial

import numpy as np
import numpy.typing as npt
import soxr
from scipy import signal
from sizes import sized
from timing import timed

from harness.base.plugins import Group, load
from harness.model.bench import EARCON_THRESHOLD, EarconMeaning
from harness.model.stimulus import VoiceSpec
from harness.sound.earcons import EarconDetection, EarconFinder, LearnedEarcon
from harness.statistics.intervals import garwood

HZ = 16000
Mono = npt.NDArray[np.float32]
VOICES = (("flite", "slt"), ("flite", "rms"), ("flite", "awb"), ("flite", "kal"),
          ("espeak", "en-us"), ("espeak", "en-gb"), ("espeak", "en-us+f3"), ("espeak", "en-gb+m3"))  # fmt: skip
VOCABULARY = """\
the a one two three seven eleven hundred morning evening kitchen window river mountain orange yellow because
although never always where when machine moon noon soon beat boat boot bat she he we they you remember forget
thunder whisper silver golden people children animal engine music nobody everything turn play stop call weather"""
SNRS_DB = sized((20, 10, 5, 0), (10,))
ROOMS_S = sized((0.0, 0.3, 0.6), (0.3,))
"""Length of the reverberation."""
SPACING_S = 1.6
"""From one chime to the next; each begins 0 to 0.4 s later."""
MAX_ERROR_S = 0.2
"""A detection that is further from a chime is not one of it."""


def tones(*chords: tuple[float, ...], seconds: float) -> Mono:
    """Chords of sines one after another, each so many seconds long; frequencies in Hz."""
    time_s = np.arange(round(seconds * HZ)) / HZ
    fade = np.clip(np.minimum(time_s, time_s[::-1]) / 0.008, 0, 1)
    pieces = [fade * sum(np.sin(2 * np.pi * hz * time_s) for hz in chord) / len(chord) for chord in chords]
    return np.concatenate(pieces).astype(np.float32)


def chimes() -> dict[str, LearnedEarcon]:
    sweep = signal.chirp(np.arange(round(0.3 * HZ)) / HZ, 500, 0.3, 1500) * signal.windows.tukey(round(0.3 * HZ), 0.1)
    sounds = {
        "beep 0.12 s": tones((880.0,), seconds=0.12),
        "two tones": tones((660.0,), (880.0,), seconds=0.12),
        "chord": tones((523.0, 659.0, 784.0), seconds=0.3),
        "sweep": sweep.astype(np.float32),
    }
    return {name: LearnedEarcon("device", EarconMeaning.WAKE, sound) for name, sound in sounds.items()}


def speech(seconds: float, random: np.random.Generator) -> Mono:
    """Random words in all voices, RMS 1."""
    pieces, count = [], 0
    while count < seconds * HZ:
        engine, voice = VOICES[int(random.integers(len(VOICES)))]
        text = " ".join(random.choice(VOCABULARY.split(), 24))
        waveform = load(Group.VOICES, engine)().speak(text, VoiceSpec(engine=engine, name=voice))
        samples = soxr.resample(waveform.samples, waveform.rate_hz, HZ).astype(np.float32)
        pieces.append(samples / np.sqrt(np.mean(samples**2)))
        count += len(samples)
    return np.concatenate(pieces)[: round(seconds * HZ)]


def reverberation(seconds: float, random: np.random.Generator) -> Mono:
    """A room's response: the direct sound, and noise that decays by 60 dB and has half of its energy."""
    count = round(seconds * HZ)
    response = random.normal(size=count) * 10 ** (-3 * np.arange(count) / count)
    response[:32] = 0
    response *= np.sqrt(0.5 / np.sum(response**2))
    response[0] = 1.0
    return response.astype(np.float32)


def detections_of(earcon: LearnedEarcon, samples: Mono) -> list[EarconDetection]:
    """What the finder detects when it gets the samples 0.1 s at a time."""
    finder = EarconFinder((earcon,))
    pieces: Iterator[Mono] = (samples[first : first + 1600] for first in range(0, len(samples), 1600))
    return [detection for piece in pieces for detection in finder.feed(piece.astype(np.float32))]


def with_chimes(
    earcon: LearnedEarcon, background: Mono, snr_db: float, room_s: float, count: int, random: np.random.Generator
) -> tuple[Mono, list[int]]:
    """A piece of the background, so many dB below the chime, with `count` chimes; and the first sample of each."""
    level = float(np.sqrt(np.mean(earcon.samples**2)))
    length = round((SPACING_S * count + 2) * HZ)
    first = int(random.integers(len(background) - length))
    samples = background[first : first + length] * np.float32(level * 10 ** (-snr_db / 20))
    starts = [int((0.6 + SPACING_S * number + random.uniform(0, 0.4)) * HZ) for number in range(count)]
    for start in starts:
        chime = np.convolve(earcon.samples, reverberation(room_s, random)) if room_s else earcon.samples
        samples[start : start + len(chime)] += chime
    return samples, starts


def matched(detections: list[EarconDetection], starts: list[int]) -> list[tuple[EarconDetection, float]]:
    """The nearest detection of each chime that has one within MAX_ERROR_S, with its error in seconds."""
    matches = []
    for start in starts:
        nearest = min(detections, key=lambda detection: abs(detection.start - start), default=None)
        if nearest is not None and abs(nearest.start - start) < MAX_ERROR_S * HZ:
            matches.append((nearest, abs(nearest.start - start) / HZ))
    return matches


def measure_detections(name: str, earcon: LearnedEarcon, backgrounds: dict[str, Mono], count: int) -> None:
    """Prints a row for each room, background and SNR: chimes detected, other detections, and errors."""
    random = np.random.default_rng(1)
    for room_s, (kind, background), snr_db in itertools.product(ROOMS_S, backgrounds.items(), SNRS_DB):
        samples, starts = with_chimes(earcon, background, snr_db, room_s, count, random)
        detections = detections_of(earcon, samples)
        matches = matched(detections, starts)
        covered = sum(error_s <= detection.error_s for detection, error_s in matches)
        extra = len(detections) - len({detection.start for detection, _ in matches})
        stated_s = np.median([detection.error_s for detection, _ in matches]) if matches else np.nan
        p50_s, p99_s = np.percentile([error_s for _, error_s in matches], (50, 99)) if matches else (np.nan, np.nan)
        print(
            f"{name:12} {room_s:4.1f} {kind:7} {snr_db:4} {len(matches):5}/{count:<4} {extra:5} "
            f"{1000 * p50_s:8.1f} {1000 * p99_s:8.1f} {1000 * stated_s:8.1f} {covered:6}/{len(matches)}",
            flush=True,
        )


def measure_false_detections(name: str, earcon: LearnedEarcon, backgrounds: dict[str, Mono]) -> None:
    """Prints detections per hour of each background without a chime, and the finder's share of a core."""
    for kind, background in backgrounds.items():
        detections, spent_s = timed(partial(detections_of, earcon, 0.05 * background))
        count, hours = len(detections), len(background) / HZ / 3600
        low, high = garwood(count, hours) or (float("nan"), float("nan"))
        print(
            f"{name:12} {kind:7} {hours:6.2f} h {count:6} {count / hours:8.2f}/h ({low:.2f}–{high:.2f}), "
            f"{100 * spent_s / (hours * 3600):.2f} % of a core",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hours", type=float, default=sized(1.0, 0.01), help="of speech and of noise without a chime")
    parser.add_argument("--count", type=int, default=sized(60, 2), help="chimes in each row; 0: only false finds")
    options = parser.parse_args()
    random = np.random.default_rng(7)
    seconds = max(options.hours * 3600, SPACING_S * options.count + 10)
    backgrounds = {
        "noise": random.normal(0, 1, round(seconds * HZ)).astype(np.float32),
        "speech": speech(seconds, random),
    }
    earcons = chimes()
    print(f"Finds from a score of {EARCON_THRESHOLD:g} on. Errors in ms; stated: the median of the stated errors.")
    print("chime        room kind     SNR    found  more     p50      p99   stated honest")
    if options.count:
        for name, earcon in earcons.items():
            measure_detections(name, earcon, backgrounds, options.count)
    print("\nfalse finds without a chime (95 % interval, Garwood)")
    for name, earcon in earcons.items():
        measure_false_detections(name, earcon, backgrounds)


if __name__ == "__main__":
    main()

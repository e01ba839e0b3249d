"""How often learned chimes are found, how often other sound is taken for one, and how far the times are off.

python benchmarks/bench_earcons.py              all tables, about three minutes
python benchmarks/bench_earcons.py --hours 0.1  less speech and noise without a chime

Four chimes are learned as they are synthesised, and found in white noise and in speech of eight synthetic voices. In
the rooms, each chime comes with reverberation of its own that has half of its energy, so the learned one never fits.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import soxr
from scipy import signal
from sizes import sized

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


def tones(*parts: tuple[float, ...], seconds: float) -> Mono:
    """One part after another; each part is a chord."""
    at_s = np.arange(round(seconds * HZ)) / HZ
    fade = np.clip(np.minimum(at_s, at_s[::-1]) / 0.008, 0, 1)
    pieces = [fade * sum(np.sin(2 * np.pi * hz * at_s) for hz in part) / len(part) for part in parts]
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


def speech(seconds: float, chance: np.random.Generator) -> Mono:
    """Random words in all voices, RMS 1."""
    spoken, count = [], 0
    while count < seconds * HZ:
        engine, voice = VOICES[int(chance.integers(len(VOICES)))]
        text = " ".join(chance.choice(VOCABULARY.split(), 24))
        said = load(Group.VOICES, engine)().speak(text, VoiceSpec(engine=engine, name=voice))
        sound = soxr.resample(said.samples, said.rate_hz, HZ).astype(np.float32)
        spoken.append(sound / np.sqrt(np.mean(sound**2)))
        count += len(sound)
    return np.concatenate(spoken)[: round(seconds * HZ)]


def reverberation(seconds: float, chance: np.random.Generator) -> Mono:
    count = round(seconds * HZ)
    decay = chance.normal(size=count) * 10 ** (-3 * np.arange(count) / count)
    decay[:32] = 0
    decay *= np.sqrt(0.5 / np.sum(decay**2))
    decay[0] = 1.0
    return decay.astype(np.float32)


def heard(earcon: LearnedEarcon, samples: Mono) -> list[EarconDetection]:
    finder = EarconFinder((earcon,))
    pieces: Iterator[Mono] = (samples[first : first + 1600] for first in range(0, len(samples), 1600))
    return [one for piece in pieces for one in finder.feed(piece.astype(np.float32))]


def detection(name: str, earcon: LearnedEarcon, backgrounds: dict[str, Mono], count: int) -> None:
    chance = np.random.default_rng(1)
    level = float(np.sqrt(np.mean(earcon.samples**2)))
    for room_s in ROOMS_S:
        for kind, background in backgrounds.items():
            for snr_db in SNRS_DB:
                length = round((1.6 * count + 2) * HZ)
                first = int(chance.integers(len(background) - length))
                samples = background[first : first + length] * np.float32(level * 10 ** (-snr_db / 20))
                truth = [int((0.6 + 1.6 * n + chance.uniform(0, 0.4)) * HZ) for n in range(count)]
                for at in truth:
                    sound = np.convolve(earcon.samples, reverberation(room_s, chance)) if room_s else earcon.samples
                    samples[at : at + len(sound)] += sound
                found = heard(earcon, samples)
                near = [min(found, key=lambda one: abs(one.start - at), default=None) for at in truth]
                pairs = [(one, at) for one, at in zip(near, truth, strict=True) if one and abs(one.start - at) < HZ / 5]
                errors = [abs(one.start - at) / HZ for one, at in pairs]
                honest = sum(error <= one.error_s for error, (one, _) in zip(errors, pairs, strict=True))
                extra = len(found) - len({one.start for one, _ in pairs})
                stated = np.median([one.error_s for one, _ in pairs]) if pairs else np.nan
                p50, p99 = np.percentile(errors, (50, 99)) if errors else (np.nan, np.nan)
                print(
                    f"{name:12} {room_s:4.1f} {kind:7} {snr_db:4} {len(pairs):5}/{count:<4} {extra:5} "
                    f"{1000 * p50:8.1f} {1000 * p99:8.1f} {1000 * stated:8.1f} {honest:6}/{len(pairs)}",
                    flush=True,
                )


def false_finds(name: str, earcon: LearnedEarcon, backgrounds: dict[str, Mono]) -> None:
    for kind, background in backgrounds.items():
        began_s = time.process_time()
        found = len(heard(earcon, 0.05 * background))
        hours, spent_s = len(background) / HZ / 3600, time.process_time() - began_s
        low, high = garwood(found, hours) or (float("nan"), float("nan"))
        print(
            f"{name:12} {kind:7} {hours:6.2f} h {found:6} {found / hours:8.2f}/h ({low:.2f}–{high:.2f}), "
            f"{100 * spent_s / (hours * 3600):.2f} % of a core",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hours", type=float, default=sized(1.0, 0.01), help="of speech and of noise without a chime")
    parser.add_argument("--count", type=int, default=sized(60, 2), help="chimes in each row; 0: only false finds")
    options = parser.parse_args()
    chance = np.random.default_rng(7)
    seconds = max(options.hours * 3600, 1.6 * options.count + 10)
    backgrounds = {
        "noise": chance.normal(0, 1, round(seconds * HZ)).astype(np.float32),
        "speech": speech(seconds, chance),
    }
    known = chimes()
    print(f"Finds from a score of {EARCON_THRESHOLD:g} on. Errors in ms; stated: the median of the stated errors.")
    print("chime        room kind     SNR    found  more     p50      p99   stated honest")
    for name, earcon in known.items() if options.count else ():
        detection(name, earcon, backgrounds, options.count)
    print("\nfalse finds without a chime (95 % interval, Garwood)")
    for name, earcon in known.items():
        false_finds(name, earcon, backgrounds)


if __name__ == "__main__":
    main()

"""Error of the onset and the end of responses at known positions, offline: `python benchmarks/bench_endpoints.py`.

Truth is the energy of the clean utterance above 120 Hz: its first and last 10 ms within 25 dB of the active level.
"""

from __future__ import annotations

import argparse
import io
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import soundfile
import soxr
from scipy import signal

from harness.audio.capture import Block
from harness.audio.hearing import Hearing
from harness.model.errors import PluginError
from harness.model.observation import Observation, SpeechEnded, SpeechStarted
from harness.plugins import Group, load

RATE_HZ = 48000
TEXTS = (
    "It is half past nine.",
    "Sorry, I did not understand that.",
    "The timer is set for ten minutes.",
    "Yes?",
    "Twelve and thirty make forty two.",
    "There is milk and bread on your list.",
    "Okay.",
    "For how long should I set the timer?",
    "Today is Saturday, the twenty first.",
    "Which alarm do you mean, the first or the second?",
)
VOICES = (
    "espeak:en-us",
    "espeak:en-gb-scotland",
    "espeak:en-us+f3",
    "flite:slt",
    "flite:rms",
    "flite:awb",
    "hibari:heart",
)
SNRS: tuple[float | None, ...] = (None, 20.0, 10.0)
LEVELS_DBFS = (-26.0, -56.0)
GAP_S = 1.6
WITHIN_S = 0.5

Mono = npt.NDArray[np.float32]


def spoken(voice: str, text: str) -> Mono:
    """The utterance at 48 kHz, at the engine's own level."""
    engine, name = voice.split(":")
    if engine == "hibari":
        from hibari import SAMPLE_RATE, Hibari

        global _hibari
        _hibari = globals().get("_hibari") or Hibari()
        samples, rate = np.asarray(_hibari(text, seed=0), np.float32), SAMPLE_RATE
    else:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "speech.wav"
            if engine == "espeak":
                argv = ["espeak-ng", "-v", name, "-w", str(path), "--", text]
            else:
                argv = ["flite", "-voice", name, "-t", text, "-o", str(path)]
            subprocess.run(argv, check=True, capture_output=True, timeout=30)
            samples, rate = soundfile.read(io.BytesIO(path.read_bytes()), dtype="float32")
    return soxr.resample(samples, rate, RATE_HZ).astype(np.float32)


def truth(samples: Mono) -> tuple[float, float, float]:
    """Onset and end in seconds, and active level in dBFS, of a clean utterance."""
    high_pass = signal.butter(2, 120, "highpass", fs=RATE_HZ, output="sos")
    heard = signal.sosfilt(high_pass, samples)
    step, size = RATE_HZ // 1000, RATE_HZ // 100
    power = np.convolve(heard**2, np.ones(size) / size, "valid")[::step]
    level = power.max()
    for _ in range(5):
        level = power[power > level * 10**-1.59].mean()
    found = np.flatnonzero(power > level * 10**-2.5)
    return found[0] / 1000, (found[-1] + 10) / 1000, 10 * float(np.log10(level))


def pink(count: int, rng: np.random.Generator) -> Mono:
    spectrum = np.fft.rfft(rng.normal(size=count))
    frequency = np.fft.rfftfreq(count, 1 / RATE_HZ)
    shaped = np.fft.irfft(spectrum / np.sqrt(np.maximum(frequency, 20)), count)
    return (shaped / np.sqrt(np.mean(shaped**2))).astype(np.float32)


def blocks(samples: Mono, at_s: float = 0.0) -> Iterator[Block]:
    for first in range(0, len(samples), 480):
        yield Block(first, at_s + first / RATE_HZ, 0.0, samples[first : first + 480], 1)


@dataclass(frozen=True, slots=True)
class Errors:
    """Signed errors in ms, positive is late; how often the true time lay inside the stated error."""

    onset_ms: list[float]
    end_ms: list[float]
    missed: int
    false: int
    covered: tuple[int, int]
    delay_ms: list[float]


def scene(utterances: list[Mono], level_dbfs: float, snr_db: float | None) -> tuple[Mono, list[tuple[float, float]]]:
    """All utterances, GAP_S apart, at one active level, over noise; and the true spans."""
    rng = np.random.default_rng(7)
    pieces: list[Mono] = [np.zeros(int(2.0 * RATE_HZ), np.float32)]
    spans: list[tuple[float, float]] = []
    at = len(pieces[0])
    for utterance in utterances:
        onset, end, active = truth(utterance)
        spans.append((at / RATE_HZ + onset, at / RATE_HZ + end))
        gap = np.zeros(int((GAP_S + 0.0137 * rng.random()) * RATE_HZ), np.float32)
        pieces += [utterance * np.float32(10 ** ((level_dbfs - active) / 20)), gap]
        at += len(utterance) + len(gap)
    whole = np.concatenate(pieces)
    if snr_db is not None:
        whole = whole + pink(len(whole), rng) * np.float32(10 ** ((level_dbfs - snr_db) / 20))
    return (np.round(np.clip(whole, -1, 1) * 32767) / 32768).astype(np.float32), spans


def compare(told: list[tuple[Observation, float]], spans: list[tuple[float, float]]) -> Errors:
    """A response is the first start to the last end within 0.5 s of it; anything else is false."""
    found: list[list[float]] = []
    stamps: list[tuple[float, float, float]] = []
    start: SpeechStarted | None = None
    for seen, when in told:
        if isinstance(seen, SpeechStarted):
            start = seen
        elif isinstance(seen, SpeechEnded) and start is not None:
            found.append([start.at.at_s, seen.at.at_s, start.at.error_s, seen.at.error_s, when])
            start = None
    errors = Errors([], [], 0, 0, (0, 0), [])
    missed, used, inside = 0, set(), 0
    for onset, end in spans:
        mine = [k for k, one in enumerate(found) if one[1] > onset - WITHIN_S and one[0] < end + WITHIN_S]
        used |= set(mine)
        if not mine:
            missed += 1
            continue
        first, last = found[mine[0]], found[mine[-1]]
        errors.onset_ms.append((first[0] - onset) * 1000)
        errors.end_ms.append((last[1] - end) * 1000)
        errors.delay_ms.append((last[4] - end) * 1000)
        inside += int(abs(first[0] - onset) <= first[2]) + int(abs(last[1] - end) <= last[3])
    del stamps
    return Errors(
        errors.onset_ms,
        errors.end_ms,
        missed,
        len(found) - len(used),
        (inside, 2 * len(errors.onset_ms)),
        errors.delay_ms,
    )


def row(name: str, level_dbfs: float, snr_db: float | None, errors: Errors, real_time: float) -> str:
    def figures(values: list[float]) -> str:
        if not values:
            return f"{'n/a':>26}"
        size = np.abs(values)
        low, middle, high = np.percentile(values, (5, 50, 95))
        return f"{np.median(size):4.0f} {np.percentile(size, 95):4.0f} ({low:+5.0f} {middle:+4.0f} {high:+5.0f})"

    snr = "clean" if snr_db is None else f"{snr_db:g} dB"
    inside, of = errors.covered
    delay = np.percentile(errors.delay_ms, 95) if errors.delay_ms else float("nan")
    return (
        f"{name:10} {level_dbfs:4.0f} {snr:>6}  {figures(errors.onset_ms)}  {figures(errors.end_ms)}"
        f"  {errors.missed:3} {errors.false:3}  {inside}/{of}  {delay:5.0f}  {real_time:.4f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--voices", type=int, default=len(VOICES))
    arguments = parser.parse_args()
    utterances = [spoken(voice, text) for voice in VOICES[: arguments.voices] for text in TEXTS]
    print(
        f"{len(utterances)} utterances; errors in ms: |error| p50 p95 (signed p5 p50 p95); in: true time within error_s"
    )
    print(
        "detector   dBFS    SNR  onset                       end                         mis fal  in       told  load"
    )
    seconds: dict[str, float] = {}
    for name in ("webrtcvad", "silero"):
        try:
            make = load(Group.SPEECH_DETECTORS, name)
        except PluginError as error:
            print(f"{name}: {error}")
            continue
        for level_dbfs in LEVELS_DBFS:
            for snr_db in SNRS:
                samples, spans = scene(utterances, level_dbfs, snr_db)
                hearing = Hearing("mic", make())
                began = time.process_time()
                told: list[tuple[Observation, float]] = []
                for block in blocks(samples):
                    now_s = block.at_s + len(block.samples) / RATE_HZ
                    told += [(seen, now_s) for seen in hearing.feed(block)]
                spent = time.process_time() - began
                seconds[name] = seconds.get(name, 0.0) + spent
                print(row(name, level_dbfs, snr_db, compare(told, spans), spent * RATE_HZ / len(samples)), flush=True)
    if len(seconds) == 2:
        print(f"webrtcvad/silero time: {seconds['webrtcvad'] / seconds['silero']:.2f}")


if __name__ == "__main__":
    main()

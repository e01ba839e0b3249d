"""Responses of known position for `bench_endpoints.py`: voices, texts, truth, and what was made of them."""

from __future__ import annotations

import io
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import soundfile
import soxr
from scipy import signal
from sizes import sized

from harness.model.observation import Observation, SpeechEnded, SpeechStarted
from harness.sound.capture import Block

RATE_HZ = 48000
_TUNED_TEXTS = (
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
_TUNED_VOICES = (
    "espeak:en-us",
    "espeak:en-gb-scotland",
    "espeak:en-us+f3",
    "flite:slt",
    "flite:rms",
    "flite:awb",
    "hibari:heart",
)
_HELD_OUT_TEXTS = (
    "Good morning. The kitchen light is on now.",
    "I have added coffee to the shopping list.",
    "It will rain this afternoon, take an umbrella.",
    "Done.",
    "Nothing is playing at the moment.",
    "Eight times seven is fifty six.",
    "Which room?",
    "Your next appointment is on Friday at a quarter to eleven.",
    "No, I cannot find that station.",
    "Stopped.",
)
_HELD_OUT_VOICES = (
    "espeak:en-us",
    "espeak:en-us+m3",
    "espeak:en-us+f2",
    "espeak:en-us+croak",
    "espeak:en-gb-x-rp",
    "flite:awb",
    "flite:kal16",
    "flite:rms",
    "hibari:heart",
)
SETS: dict[str, tuple[tuple[str, ...], tuple[str, ...], int]] = {
    "tuned on": (_TUNED_VOICES, _TUNED_TEXTS, 7),
    "held out": (_HELD_OUT_VOICES, _HELD_OUT_TEXTS, 70),
}
"""Voices, texts and the seed of the noise. Rules and thresholds were chosen on the first set only."""

SNRS: tuple[float | None, ...] = sized((None, 20.0, 10.0), (None, 10.0))
LEVELS_DBFS = sized((-26.0, -56.0), (-26.0,))
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


def utterances_of(set_name: str, count: int | None = None) -> list[Mono]:
    """Every voice with every text, or `count` of them, spread over both."""
    voices, texts, seed = SETS[set_name]
    pairs = [(voice, text) for voice in voices for text in texts]
    if count is not None:
        chosen = np.random.default_rng(seed).permutation(len(pairs))[:count]
        pairs = [pairs[index] for index in chosen]
    return [spoken(voice, text) for voice, text in pairs]


@dataclass(frozen=True, slots=True)
class Errors:
    """Signed errors in ms, positive is late; how often the true time lay inside the stated error."""

    onset_ms: list[float]
    end_ms: list[float]
    missed: int
    false: int
    covered: tuple[int, int]
    delay_ms: list[float]


@dataclass(frozen=True, slots=True, eq=False)
class Placed:
    """An utterance at its level; its first sample and, in seconds within it, its true onset and end."""

    first: int
    samples: Mono
    onset_s: float
    end_s: float


def sixteen_bits(samples: Mono) -> Mono:
    return (np.round(np.clip(samples, -1, 1) * 32767) / 32768).astype(np.float32)


def scene(utterances: list[Mono], level_dbfs: float, seed: int) -> tuple[Mono, list[Placed]]:
    """All utterances, GAP_S apart, at one active level, after 2 s; and where they lie."""
    rng = np.random.default_rng(seed)
    pieces: list[Mono] = [np.zeros(int(2.0 * RATE_HZ), np.float32)]
    placed: list[Placed] = []
    at = len(pieces[0])
    for utterance in utterances:
        onset, end, active = truth(utterance)
        levelled = sixteen_bits(utterance * np.float32(10 ** ((level_dbfs - active) / 20)))
        placed.append(Placed(at, levelled, onset, end))
        gap = np.zeros(int((GAP_S + 0.0137 * rng.random()) * RATE_HZ), np.float32)
        pieces += [levelled, gap]
        at += len(levelled) + len(gap)
    return np.concatenate(pieces), placed


def noise(count: int, level_dbfs: float, snr_db: float, seed: int) -> Mono:
    return pink(count, np.random.default_rng(seed + 1)) * np.float32(10 ** ((level_dbfs - snr_db) / 20))


def compare(told: list[tuple[Observation, float]], spans: list[tuple[float, float]]) -> Errors:
    """A response is the first start to the last end within 0.5 s of it; anything else is false."""
    found: list[list[float]] = []
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
    return Errors(
        errors.onset_ms,
        errors.end_ms,
        missed,
        len(found) - len(used),
        (inside, 2 * len(errors.onset_ms)),
        errors.delay_ms,
    )


HEADER = (
    "detector   set       dBFS    SNR  onset                       end                         mis fal  in         late"
)


def row(name: str, set_name: str, level_dbfs: float, snr_db: float | None, errors: Errors) -> str:
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
        f"{name:10} {set_name:8} {level_dbfs:4.0f} {snr:>6}  {figures(errors.onset_ms)}  {figures(errors.end_ms)}"
        f"  {errors.missed:3} {errors.false:3}  {f'{inside}/{of}':9}  {delay:5.0f}"
    )

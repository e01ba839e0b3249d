"""Responses of known position for `bench_endpoints.py`: voices, texts, truth, and the errors of what was reported."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

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


@dataclass(frozen=True, slots=True)
class ResponseSet:
    """Every voice says every text. seed: of the noise and the pauses."""

    voices: tuple[str, ...]
    texts: tuple[str, ...]
    seed: int


SETS = {
    "tuned on": ResponseSet(_TUNED_VOICES, _TUNED_TEXTS, 7),
    "held out": ResponseSet(_HELD_OUT_VOICES, _HELD_OUT_TEXTS, 70),
}
"""Rules and thresholds were chosen on the first set only."""

SNRS: tuple[float | None, ...] = sized((None, 20.0, 10.0), (None, 10.0))
LEVELS_DBFS = sized((-26.0, -56.0), (-26.0,))
GAP_S = 1.6
"""Least pause between two responses."""
WITHIN_S = 0.5
"""What is reported so long before or after a response counts as reported of it."""

Mono = npt.NDArray[np.float32]


def spoken(voice: str, text: str) -> Mono:
    """The utterance at 48 kHz, at the engine's own level."""
    engine, name = voice.split(":")
    if engine == "hibari":
        from hibari import SAMPLE_RATE

        samples, rate_hz = np.asarray(_hibari()(text, seed=0), np.float32), SAMPLE_RATE
    else:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "speech.wav"
            if engine == "espeak":
                command = ["espeak-ng", "-v", name, "-w", str(path), "--", text]
            else:
                command = ["flite", "-voice", name, "-t", text, "-o", str(path)]
            subprocess.run(command, check=True, capture_output=True, timeout=30)
            samples, rate_hz = soundfile.read(path, dtype="float32")
    return soxr.resample(samples, rate_hz, RATE_HZ).astype(np.float32)


@cache
def _hibari() -> Any:
    """The model, which takes seconds to load; only sets that need it import its package."""
    from hibari import Hibari

    return Hibari()


def truth(samples: Mono) -> tuple[float, float, float]:
    """Onset and end in seconds, and active level in dBFS, of a clean utterance.

    The level is the mean power of the windows of 10 ms that are less than 15.9 dB below it, found by iteration. Speech
    lasts from the first to the last window that is less than 25 dB below the level.
    """
    high_pass = signal.butter(2, 120, "highpass", fs=RATE_HZ, output="sos")
    filtered = signal.sosfilt(high_pass, samples)
    step, size = RATE_HZ // 1000, RATE_HZ // 100
    power = np.convolve(filtered**2, np.ones(size) / size, "valid")[::step]
    level = power.max()
    for _ in range(5):
        level = power[power > level * 10**-1.59].mean()
    speech_ms = np.flatnonzero(power > level * 10**-2.5)
    return speech_ms[0] / 1000, (speech_ms[-1] + 10) / 1000, 10 * float(np.log10(level))


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
    response_set = SETS[set_name]
    pairs = [(voice, text) for voice in response_set.voices for text in response_set.texts]
    if count is not None:
        indices = np.random.default_rng(response_set.seed).permutation(len(pairs))[:count]
        pairs = [pairs[index] for index in indices]
    return [spoken(voice, text) for voice, text in pairs]


@dataclass(frozen=True, slots=True)
class Report:
    """What the hearing observed, and the host time at which it reported it."""

    observation: Observation
    reported_s: float


@dataclass(frozen=True, slots=True)
class Errors:
    """How far the reports on the responses of a row are off.

    - onset_ms, end_ms: signed errors of each response that was reported; positive is late.
    - missed: responses of which nothing was reported.
    - false: reported responses that were not played.
    - covered: how many true onsets and ends lie within the stated error, two for each response that was reported.
    - delay_ms: from the true end of each response to the report of its end.
    """

    onset_ms: list[float]
    end_ms: list[float]
    missed: int
    false: int
    covered: int
    delay_ms: list[float]


@dataclass(frozen=True, slots=True, eq=False)
class PlacedResponse:
    """An utterance at its level; its first sample and, in seconds within it, its true onset and end."""

    first: int
    samples: Mono
    onset_s: float
    end_s: float


def sixteen_bits(samples: Mono) -> Mono:
    return (np.round(np.clip(samples, -1, 1) * 32767) / 32768).astype(np.float32)


def scene(utterances: list[Mono], level_dbfs: float, seed: int) -> tuple[Mono, list[PlacedResponse]]:
    """All utterances, GAP_S apart, at one active level, after 2 s; and where they lie."""
    rng = np.random.default_rng(seed)
    pieces: list[Mono] = [np.zeros(int(2.0 * RATE_HZ), np.float32)]
    responses: list[PlacedResponse] = []
    first = len(pieces[0])
    for utterance in utterances:
        onset_s, end_s, active_dbfs = truth(utterance)
        levelled = sixteen_bits(utterance * np.float32(10 ** ((level_dbfs - active_dbfs) / 20)))
        responses.append(PlacedResponse(first, levelled, onset_s, end_s))
        # Gaps differ, so that responses begin anywhere within the detectors' frames.
        gap = np.zeros(int((GAP_S + 0.0137 * rng.random()) * RATE_HZ), np.float32)
        pieces += [levelled, gap]
        first += len(levelled) + len(gap)
    return np.concatenate(pieces), responses


def noise(count: int, level_dbfs: float, snr_db: float, seed: int) -> Mono:
    """Pink noise, so many dB below a level of speech."""
    return pink(count, np.random.default_rng(seed + 1)) * np.float32(10 ** ((level_dbfs - snr_db) / 20))


@dataclass(frozen=True, slots=True)
class _Speech:
    """A start and the next end that the hearing reported."""

    start: SpeechStarted
    end: SpeechEnded
    reported_s: float


def _speeches(reports: list[Report]) -> list[_Speech]:
    speeches: list[_Speech] = []
    start: SpeechStarted | None = None
    for report in reports:
        match report.observation:
            case SpeechStarted() as started:
                start = started
            case SpeechEnded() as end if start is not None:
                speeches.append(_Speech(start, end, report.reported_s))
                start = None
    return speeches


def compare(reports: list[Report], spans: list[tuple[float, float]]) -> Errors:
    """The errors of what was reported on responses with these true onsets and ends.

    A response is reported from the first start to the last end of the speech within WITHIN_S of it. Other speech is
    false.
    """
    speeches = _speeches(reports)
    onset_ms, end_ms, delay_ms = [], [], []
    missed = covered = 0
    used: set[int] = set()
    for onset_s, end_s in spans:
        near = [
            index
            for index, speech in enumerate(speeches)
            if speech.end.at.at_s > onset_s - WITHIN_S and speech.start.at.at_s < end_s + WITHIN_S
        ]
        used |= set(near)
        if not near:
            missed += 1
            continue
        start, last = speeches[near[0]].start, speeches[near[-1]]
        onset_error_s, end_error_s = start.at.at_s - onset_s, last.end.at.at_s - end_s
        onset_ms.append(onset_error_s * 1000)
        end_ms.append(end_error_s * 1000)
        delay_ms.append((last.reported_s - end_s) * 1000)
        covered += int(abs(onset_error_s) <= start.at.error_s) + int(abs(end_error_s) <= last.end.at.error_s)
    return Errors(onset_ms, end_ms, missed, len(speeches) - len(used), covered, delay_ms)


HEADER = (
    "detector   set       dBFS    SNR  onset                       end                         mis fal  in         late"
)


def row(detector: str, set_name: str, level_dbfs: float, snr_db: float | None, errors: Errors) -> str:
    """The line of a condition, below HEADER."""
    snr = "clean" if snr_db is None else f"{snr_db:g} dB"
    covered = f"{errors.covered}/{2 * len(errors.onset_ms)}"
    delay_ms = np.percentile(errors.delay_ms, 95) if errors.delay_ms else float("nan")
    return (
        f"{detector:10} {set_name:8} {level_dbfs:4.0f} {snr:>6}  {_spread(errors.onset_ms)}  {_spread(errors.end_ms)}"
        f"  {errors.missed:3} {errors.false:3}  {covered:9}  {delay_ms:5.0f}"
    )


def _spread(errors_ms: list[float]) -> str:
    """Median and 95th percentile of the absolute errors; 5th, 50th and 95th percentile of the signed ones."""
    if not errors_ms:
        return f"{'n/a':>26}"
    size = np.abs(errors_ms)
    low, middle, high = np.percentile(errors_ms, (5, 50, 95))
    return f"{np.median(size):4.0f} {np.percentile(size, 95):4.0f} ({low:+5.0f} {middle:+4.0f} {high:+5.0f})"

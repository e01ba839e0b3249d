"""The simulated device of the in-process sound path: its hearing, its behaviour, and its voice."""

from __future__ import annotations

import hashlib
import math
import random
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from harness.model.frozen import frozen
from harness.model.observation import Intent
from harness.model.stimulus import Samples, Waveform
from harness.model.time import Stamp
from harness.model.understanding import ExpectedFrame, joined

RATE_HZ = 48000
"""Sample rate of all sound in the air."""
WAKES_AFTER_S = 0.15
"""Time from the end of the wake phrase to the wake event, in seconds."""


@frozen
class ScriptedPhrase:
    """A wake phrase in a sound, and the command after it. Times are in seconds from the first sample.

    - text: the wake phrase.
    - command: "" if none.
    - ends_s, command_ends_s: ends of the phrase and of the command.
    - also_ends_s: ends of further wake phrases, which the device always hears.
    - sounds_s: start and end of its answer to the first phrase; None for no answer.
    """

    text: str
    ends_s: float
    command: str = ""
    command_ends_s: float = 0.0
    also_ends_s: tuple[float, ...] = ()
    sounds_s: tuple[float, float] | None = None

    @property
    def wakes_s(self) -> float:
        """When the device wakes by the phrase."""
        return self.ends_s + WAKES_AFTER_S


class WakeAt(NamedTuple):
    """A wake event, at_s seconds into the sound."""

    at_s: float
    score: float
    phrase: str


def draw_wakes(
    duration_s: float, phrase: ScriptedPhrase | None, *, miss_share: float, false_per_hour: float, seed: str
) -> tuple[WakeAt, ...]:
    """The wake events in a sound, in order; the same seed gives the same events.

    False accepts are a Poisson process over the whole sound, including its phrases.
    """
    rng = random.Random(seed)
    wakes: list[WakeAt] = []
    is_missed = rng.random() < miss_share
    if phrase is not None:
        wakes += [WakeAt(ends_s + WAKES_AFTER_S, 1.0, phrase.text) for ends_s in phrase.also_ends_s]
        if not is_missed:
            wakes.append(WakeAt(phrase.wakes_s, round(rng.uniform(0.7, 1.0), 3), phrase.text))
    at_s = 0.0
    while false_per_hour > 0:
        at_s += rng.expovariate(1.0) * (3600 / false_per_hour)  # infinite for a rate near 0: late enough
        if at_s >= duration_s:
            break
        wakes.append(WakeAt(at_s, round(rng.uniform(0.5, 0.8), 3), phrase.text if phrase else ""))
    return tuple(sorted(wakes))


FRAME_S = 0.01
JOIN_S = 0.12
"""Pauses up to this length belong to a phrase."""
PHRASES = ("All right.", "Here is what I found.", "It is done.", "That is what I know about it.")
REMEMBERS = "I still know that."
FORGOT = "I have forgotten that."


def waveform_sha256(waveform: Waveform) -> str:
    """Hash of a waveform's samples, by which a script recognises it."""
    return hashlib.sha256(np.ascontiguousarray(waveform.samples).tobytes()).hexdigest()


class HeardPhrases(NamedTuple):
    """The phrases detected in a sound by energy, in seconds from its first sample.

    - wake_end_s: end of the first of several phrases; None if there is only one.
    - query_end_s: end of the last one.
    """

    wake_end_s: float | None
    query_end_s: float


def detect_phrases(samples: Samples) -> HeardPhrases | None:
    """Finds where the phrases of a sound at RATE_HZ end, by energy alone; None when there is only noise."""
    frame_samples = round(FRAME_S * RATE_HZ)
    count = len(samples) // frame_samples
    if count == 0:
        return None
    frames = samples[: count * frame_samples].reshape(count, frame_samples)
    level = np.sqrt(np.mean(np.square(frames, dtype=np.float64), axis=1))
    threshold = max(2.5 * float(np.percentile(level, 5)), 0.06 * float(level.max()), 10 ** (-60 / 20))
    loud = np.flatnonzero(level > threshold)
    if not len(loud):
        loud = np.flatnonzero(level > 10 ** (-60 / 20))  # no pause in it at all
    if not len(loud):
        return None
    pauses = np.flatnonzero(np.diff(loud) > JOIN_S / FRAME_S)
    wake_end_s = float(loud[pauses[0]] + 1) * FRAME_S if len(pauses) else None
    return HeardPhrases(wake_end_s, float(loud[-1] + 1) * FRAME_S)


@frozen
class InProcessOptions:
    """The device follows the options of its own connection. The shares (0–1) are of the queries that it hears.

    - air: Name of the air. Equipment in the same air hears each other.
    - speed: Speed of the session's clock, as a multiple of real time.
    - wake_miss_share: Share of queries to which it does not wake (0–1).
    - mishear_share: Share of queries that it hears wrongly (0–1).
    - silent_share: Share of queries that it does not answer (0–1).
    - late_share: Share of queries that it answers after `late_s` (0–1).
    - latency_s: Time from the end of a query to its answer, s, within 20 %.
    - late_s: Time from the end of a query to a late answer, s.
    - reports: Whether the device reports what its profile lists under `reports`.
    - false_accepts_per_hour: Rate of wake events without a wake phrase.
    - memory_s: Median of a log-normal distribution of the time for which it remembers (0: answers ignore memory).
    - memory_spread: Standard deviation of the logarithm of that time.
    - misunderstand_share: Share of the correctly heard queries that it understands wrongly.
    - injection: The connection sends sound to its device directly, bypassing the air.
    - injection_speed: Speed of the injection, as a multiple of the session's clock.
    """

    air: str = "air"
    speed: float = 1.0
    wake_miss_share: float = 0.0
    mishear_share: float = 0.0
    silent_share: float = 0.0
    late_share: float = 0.0
    latency_s: float = 0.8
    late_s: float = 9.0
    reports: bool = True
    false_accepts_per_hour: float = 0.0
    injection: bool = False
    injection_speed: float = 1.0
    memory_s: float = 0.0
    memory_spread: float = 0.0
    misunderstand_share: float = 0.0

    def __post_init__(self) -> None:
        shares = (self.wake_miss_share, self.mishear_share, self.silent_share, self.late_share)
        if any(not 0 <= share <= 1 for share in shares) or sum(shares) > 1:
            raise ValueError(
                "the shares wake_miss_share, mishear_share, silent_share and late_share must be 0–1, with a sum of "
                "at most 1"
            )
        if not 0 <= self.misunderstand_share <= 1:
            raise ValueError("misunderstand_share must be 0–1")
        if self.speed <= 0 or self.injection_speed <= 0:
            raise ValueError("speed and injection_speed must be positive")
        amounts = (self.latency_s, self.late_s, self.false_accepts_per_hour, self.memory_s, self.memory_spread)
        if min(amounts) < 0:
            raise ValueError(
                "latency_s, late_s, false_accepts_per_hour, memory_s and memory_spread must not be negative"
            )


class DeviceReaction(NamedTuple):
    """How the device reacts to a query.

    - transcript: the words that it hears; None: it did not wake.
    - answers_after_s: time until its answer; None: no answer.
    - phrase: index of the text of its answer in PHRASES.
    - frame: the intents and slots that it understands; None if the script gives no meaning.
    """

    transcript: str | None
    answers_after_s: float | None
    phrase: int
    frame: ExpectedFrame | None = None


class SimpleDevice:
    """Hears sounds and decides by a seed how it reacts. It learns the words only from `script`."""

    def __init__(self, options: InProcessOptions, seed: int) -> None:
        self._options = options
        self._seed = seed
        self._answer_end_s: float | None = None
        self._memory_rng = random.Random(f"{seed}:memory")
        self._texts: dict[str, str] = {}
        self._frames: dict[str, ExpectedFrame] = {}
        self._play_counts: dict[str, int] = {}

    def remembers(self, called_s: float) -> bool:
        """Whether it still remembers its last answer at that time. Each call draws anew how long it remembers."""
        lasts_s = self._options.memory_s * math.exp(self._options.memory_spread * self._memory_rng.gauss(0.0, 1.0))
        return self._answer_end_s is not None and called_s <= self._answer_end_s + lasts_s

    def note_answer_end(self, until_s: float) -> None:
        """Notes the end of its answer."""
        self._answer_end_s = until_s

    def answer(self, reaction: DeviceReaction, remembers: bool) -> str:
        """The text of its answer; a device with a memory says whether it remembered."""
        if not self._options.memory_s:
            return PHRASES[reaction.phrase]
        return REMEMBERS if remembers else FORGOT

    def script(self, waveform_sha: str, text: str, frame: ExpectedFrame | None = None) -> None:
        """Sets the words of a waveform and their meaning, since the device detects energy but no words."""
        self._texts[waveform_sha] = text
        if frame is not None:
            self._frames[waveform_sha] = frame

    def react(self, waveform_sha: str) -> DeviceReaction | None:
        """Draws its reaction to a sound; None if the sound does not address it."""
        text = self._texts.get(waveform_sha)
        if text is None:
            return None
        play_count = self._play_counts[waveform_sha] = self._play_counts.get(waveform_sha, 0) + 1
        rng = random.Random(f"{self._seed}:{waveform_sha}:{play_count}")
        # The shares lie one after the other between 0 and 1: the one that the number falls into decides.
        remaining = rng.random()
        phrase = rng.randrange(len(PHRASES))
        latency_s = self._options.latency_s * rng.uniform(0.8, 1.2)
        for share, reaction in (
            (self._options.wake_miss_share, DeviceReaction(None, None, phrase)),
            (self._options.mishear_share, DeviceReaction(_misheard(text, rng), latency_s, phrase)),
            (self._options.silent_share, DeviceReaction(text, None, phrase)),
            (self._options.late_share, DeviceReaction(text, self._options.late_s, phrase)),
        ):
            if remaining < share:
                return self._with_frame(reaction, waveform_sha, play_count)
            remaining -= share
        return self._with_frame(DeviceReaction(text, latency_s, phrase), waveform_sha, play_count)

    def _with_frame(self, reaction: DeviceReaction, waveform_sha: str, play_count: int) -> DeviceReaction:
        """Adds the intents and slots: none from wrong words, and sometimes other ones from right words."""
        frame = self._frames.get(waveform_sha)
        if frame is None or reaction.transcript is None:
            return reaction
        if reaction.transcript != self._texts[waveform_sha]:
            return reaction._replace(frame=ExpectedFrame((), ()))
        rng = random.Random(f"{self._seed}:{waveform_sha}:{play_count}:frame")
        if rng.random() < self._options.misunderstand_share:
            frame = ExpectedFrame(frame.intents, frame.slots[:-1]) if frame.slots else ExpectedFrame((), ())
        return reaction._replace(frame=frame)


def reported_intent(source: str, stamp: Stamp, frame: ExpectedFrame) -> Intent:
    """The intent that the device reports for a frame. A slot that accepts any value gets a value."""
    slots = tuple((slot.concept, slot.value or "something") for slot in frame.slots or ())
    return Intent(source, stamp, joined(frame.intents), slots)


def _misheard(text: str, rng: random.Random) -> str:
    """The text with one word replaced."""
    words = text.split()
    if not words:
        return "something"
    index = rng.randrange(len(words))
    words[index] = "something" if words[index].lower() != "something" else "nothing"
    return " ".join(words)


@lru_cache(maxsize=8)
def synthetic_speech(phrase: int) -> Waveform:
    """A sound like a spoken phrase: a hummed tone with moving formants and syllables, −26 dBFS, 0.9–1.8 s.

    phrase: number of the phrase; each sounds different.
    """
    duration_s = 0.9 + 0.3 * phrase
    time_s = np.arange(round(duration_s * RATE_HZ)) / RATE_HZ
    pitch_hz = 115 + 12 * np.sin(2 * np.pi * 0.7 * time_s + phrase)
    turn = 2 * np.pi * np.cumsum(pitch_hz) / RATE_HZ
    first_hz = 500 + 200 * np.sin(2 * np.pi * 2.1 * time_s + phrase)
    second_hz = 1500 + 500 * np.sin(2 * np.pi * 1.3 * time_s + 2 * phrase)
    voice = np.zeros_like(time_s)
    for harmonic in range(1, 25):
        at_hz = harmonic * 115.0
        weight = np.exp(-(((at_hz - first_hz) / 150) ** 2)) + 0.6 * np.exp(-(((at_hz - second_hz) / 250) ** 2))
        voice += (weight + 0.05 / harmonic) * np.sin(harmonic * turn)
    syllables = 0.35 + 0.65 * np.sin(np.pi * 4 * time_s) ** 2
    fade = np.minimum(1.0, np.minimum(time_s, duration_s - time_s) / 0.015)
    voice *= syllables * fade
    voice *= 10 ** (-26 / 20) / np.sqrt(np.mean(np.square(voice)))
    return Waveform(np.clip(voice, -1, 1).astype(np.float32), RATE_HZ)

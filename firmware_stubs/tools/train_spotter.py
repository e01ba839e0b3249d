"""Makes core/spotter/vh_spotter_tables.h: the spotter's network, trained on synthetic voices alone.

    python firmware_stubs/tools/train_spotter.py --cache FOLDER > firmware_stubs/core/spotter/vh_spotter_tables.h

About ten minutes on two cores. Random numbers depend on SEED alone, and arithmetic.py fixes the order of sums. So the
same tools, voices and numpy make the same bytes. tools/measure_spotter.py measures it on voices that are held out.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import arithmetic  # noqa: F401  before numpy
import network_header
import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view
from small_network import FRAMES, Array, Layer, Network, quantised
from sound_mixing import HOP, WINDOW, FrontEnd, Levels, Mixing, Sound, mixed, noise, other_speaker, spoken_span
from speech_corpus import PCM, RATE_HZ, Speakers, commands, negatives, positives

SEED = 21
ROUNDS = 7
"""Of training, each followed by a search of all negative speech for what still wakes."""
WAKES_FROM_S, WAKES_TO_S = 0.02, 0.18
"""A window that ends this long after the phrase must wake; those up to 0.2 s around are left out."""
NO_WINDOWS = np.zeros((0, FRAMES, 16), np.int8)
NATURAL_TURNS = 4
"""How many times more often each line of flite and hibari is taken than one of espeak: they are few."""
MIXING = Mixing()


@dataclass(frozen=True, slots=True)
class Stream:
    """Features of one mixed recording; `phrase_end_s` is None where nobody says the phrase."""

    levels: Levels
    phrase_end_s: float | None


def silence(rng: np.random.Generator, min_s: float, max_s: float) -> Sound:
    return np.zeros(round(rng.uniform(min_s, max_s) * RATE_HZ))


def trimmed(pcm: PCM) -> Sound:
    """The recording without the silence before and after the speech."""
    start, end = spoken_span(pcm)
    return pcm[start:end].astype(np.float64)


@dataclass(frozen=True, slots=True)
class Speech:
    """Recordings of the phrase, of speech without it, and of commands that follow it."""

    phrases: list[PCM]
    others: list[PCM]
    commands: list[PCM]


def with_phrase(rng: np.random.Generator, speech: Speech, index: int, front: FrontEnd) -> Stream:
    """Silence or other speech, the phrase, then silence or a command."""
    phrase = trimmed(speech.phrases[index])
    if rng.random() < MIXING.speaker_share:
        phrase = other_speaker(rng, phrase)
    before = silence(rng, 0, 1.2)
    if rng.random() < 0.25:
        other = trimmed(speech.others[rng.integers(len(speech.others))])[-round(rng.uniform(0.4, 1.5) * RATE_HZ) :]
        before = np.concatenate([other * rng.uniform(0.3, 1), silence(rng, 0.1, 0.7)])
    after = silence(rng, 0.5, 1.5)
    if rng.random() < 0.4:
        command = trimmed(speech.commands[rng.integers(len(speech.commands))])[: round(1.5 * RATE_HZ)]
        after = np.concatenate([silence(rng, 0, 0.35), command])
    end_s = (len(before) + len(phrase)) / RATE_HZ
    return Stream(front.levels(mixed(rng, np.concatenate([before, phrase, after]), MIXING)), end_s)


def without_phrase(rng: np.random.Generator, speech: Speech, index: int, front: FrontEnd) -> Stream:
    other = trimmed(speech.others[index])
    if rng.random() < MIXING.speaker_share:
        other = other_speaker(rng, other)
    return Stream(
        front.levels(mixed(rng, np.concatenate([silence(rng, 0, 0.8), other, silence(rng, 0.2, 0.8)]), MIXING)), None
    )


def noise_alone(rng: np.random.Generator, front: FrontEnd) -> Stream:
    """Ten seconds of one noise, at times of another on top."""
    sound = noise(rng, 160_000) * 10 ** rng.uniform(0, 3.7)
    if rng.random() < 0.5:
        sound = sound + noise(rng, 160_000) * 10 ** rng.uniform(0, 3.7)
    return Stream(front.levels(np.clip(sound, -32768, 32767).astype(np.int16)), None)


def make_streams(seed: tuple[int, ...], speech: Speech, phrase_turns: int, other_turns: int) -> list[Stream]:
    """Mixes each phrase and each other recording so many times, and sixty streams of noise."""
    rng, front = np.random.default_rng(seed), FrontEnd()
    streams = [with_phrase(rng, speech, i, front) for _ in range(phrase_turns) for i in range(len(speech.phrases))]
    streams += [without_phrase(rng, speech, i, front) for _ in range(other_turns) for i in range(len(speech.others))]
    return streams + [noise_alone(rng, front) for _ in range(60)]


def halves(speech: Speech) -> Iterator[Speech]:
    for part in (0, 1):
        yield Speech(speech.phrases[part::2], speech.others[part::2], speech.commands)


def windows_of(stream: Stream) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.float32]]:
    """A window for each frame, which is its last one, with silence before the stream; and a label for each.

    1: it must wake. 0: it must not. NaN: it may do either.
    """
    padded = np.concatenate([np.zeros((FRAMES - 1, stream.levels.shape[1]), np.int8), stream.levels])
    windows = sliding_window_view(padded, FRAMES, axis=0).transpose(0, 2, 1)
    labels = np.zeros(len(windows), np.float32)
    if stream.phrase_end_s is not None:
        delays_s = (np.arange(len(windows)) * HOP + WINDOW) / RATE_HZ - stream.phrase_end_s
        labels[(delays_s > WAKES_FROM_S - 0.2) & (delays_s < WAKES_TO_S + 0.2)] = np.nan
        labels[(delays_s >= WAKES_FROM_S) & (delays_s <= WAKES_TO_S)] = 1
    return windows, labels


def draw_windows(streams: list[Stream], rng: np.random.Generator) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.int8]]:
    """Half of each stream's windows that must wake, and a tenth of those that must not."""
    wake, other = [], []
    for stream in streams:
        windows, labels = windows_of(stream)
        wake_indices, other_indices = np.flatnonzero(labels == 1), np.flatnonzero(labels == 0)
        if len(wake_indices):
            wake.append(windows[rng.permutation(wake_indices)[: len(wake_indices) // 2]])
        if len(other_indices):
            other.append(windows[rng.choice(other_indices, max(1, len(other_indices) // 10), replace=False)])
    return np.concatenate(wake), np.concatenate(other)


def logits_of(network: Network, stream: Stream) -> Array:
    """The logit of each window of `windows_of`. The network has a stride of two frames, so it runs twice."""
    padded = np.concatenate(
        [
            np.zeros((FRAMES - 1, stream.levels.shape[1]), np.int8),
            stream.levels,
            np.zeros((1, stream.levels.shape[1]), np.int8),
        ]
    )
    x = padded[None].astype(np.float32)
    logits = np.zeros(len(stream.levels), np.float32)
    for phase in (0, 1):
        count = len(logits[phase::2])
        logits[phase::2] = network.logits(x[:, phase:])[0][:count]
    return logits


def hard_windows(network: Network, streams: list[Stream], min_score: float, max_windows: int) -> npt.NDArray[np.int8]:
    """Windows that must not wake but score above `min_score`: the six highest of each stream, then the highest."""
    scored = []
    for stream in streams:
        windows, labels = windows_of(stream)
        scores = np.where(labels == 0, logits_of(network, stream), -np.inf)
        highest = np.argsort(scores)[-6:]
        scored += [(float(scores[index]), windows[index].copy()) for index in highest if scores[index] > min_score]
    scored.sort(key=lambda entry: -entry[0])
    return np.stack([window for _, window in scored[:max_windows]]) if scored else NO_WINDOWS


def log(text: str) -> None:
    sys.stderr.write(text + "\n")


def train(streams: list[Stream], rng: np.random.Generator) -> Network:
    """Trains in ROUNDS of two epochs; each round adds the negative windows that still wake to the next."""
    network = Network(rng)
    wake, other = draw_windows(streams, rng)
    hard = NO_WINDOWS
    negative_streams = [stream for stream in streams if stream.phrase_end_s is None]
    log(f"{len(wake)} windows wake, {len(other)} do not")
    for turn in range(ROUNDS):
        drawn = other[rng.permutation(len(other))[: 2 * len(wake)]]
        x = np.concatenate([wake, drawn, hard])
        labels = np.concatenate([np.ones(len(wake)), np.zeros(len(drawn) + len(hard))]).astype(np.float32)
        weight = np.ones(len(x), np.float32)
        for epoch in range(2):
            order, losses = rng.permutation(len(x)), []
            progress = (turn * 2 + epoch) / (2 * ROUNDS - 1)
            rate = 0.002 * (1 - progress) + 0.0001
            for start in range(0, len(order) - 255, 256):
                batch = order[start : start + 256]
                losses.append(network.learn(x[batch].astype(np.float32), labels[batch], weight[batch], rate, rng))
            log(f"round {turn} epoch {epoch}: {len(x)} windows, loss {np.mean(losses):.4f}")
        if turn + 1 < ROUNDS:
            found = hard_windows(network, negative_streams, -3, 20_000)
            log(f"hard: {len(found)}")
            hard = np.concatenate([hard, found])[-60_000:]
    return network


def training_streams(cache: Path, seed: int) -> list[Stream]:
    """Makes all streams of the training part in two processes. Each has half of the speech, and every command."""
    speakers = Speakers()
    lines = positives(speakers.espeak, held_out=False, count=2000, seed=1)
    phrases = speakers.say_all(lines, cache)
    assert len(lines) == len(phrases), "a line was refused: voices and phrases no longer match"
    natural = [phrase for line, phrase in zip(lines, phrases, strict=True) if line.engine != "espeak"]
    speech = Speech(
        phrases + NATURAL_TURNS * natural,
        speakers.say_all(negatives(speakers.espeak, held_out=False, count=5000, seed=1), cache),
        speakers.say_all(commands(speakers.espeak, held_out=False, count=200, seed=1), cache),
    )
    with ProcessPoolExecutor(2) as pool:
        futures = [
            pool.submit(make_streams, (seed, number), half, phrase_turns=5, other_turns=2)
            for number, half in enumerate(halves(speech))
        ]
        return [stream for future in futures for stream in future.result()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=Path, required=True, help="folder for the synthesised speech")
    arguments = parser.parse_args()
    streams = training_streams(arguments.cache, SEED)
    rng = np.random.default_rng(SEED)
    network = train(streams, rng)
    sample = np.concatenate([windows_of(streams[i])[0][::5] for i in rng.permutation(len(streams))[:300]])
    layers: list[Layer] = quantised(network, sample.astype(np.float32))
    hours = sum(len(stream.levels) for stream in streams) * HOP / RATE_HZ / 3600
    sys.stdout.write(network_header.text(layers, SEED, f"{len(streams)} mixed recordings, {hours:.1f} h") + "\n")


if __name__ == "__main__":
    main()

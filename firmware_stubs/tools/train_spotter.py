"""Makes core/spotter/vh_spotter_tables.h: the spotter's network, trained on synthetic voices alone.

    python firmware_stubs/tools/train_spotter.py --cache FOLDER > firmware_stubs/core/spotter/vh_spotter_tables.h

About ten minutes on two cores. Everything drawn hangs on SEED, and the order of sums on arithmetic.py: the same
tools, voices and numpy make the same bytes. What is held out: tools/measure_spotter.py.
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
NATURAL_TURNS = 4
"""How many times more often each line of flite and hibari is taken than one of espeak: they are few."""
MIXING = Mixing()


@dataclass(frozen=True, slots=True)
class Stream:
    """Features of one mixed recording; `phrase_end_s` is None where nobody says the phrase."""

    levels: Levels
    phrase_end_s: float | None


def silence(rng: np.random.Generator, low_s: float, high_s: float) -> Sound:
    return np.zeros(round(rng.uniform(low_s, high_s) * RATE_HZ))


def cut(pcm: PCM) -> Sound:
    start, end = spoken_span(pcm)
    return pcm[start:end].astype(np.float64)


@dataclass(frozen=True, slots=True)
class Speech:
    """All that was said for one part of the data."""

    phrases: list[PCM]
    others: list[PCM]
    commands: list[PCM]


def with_phrase(rng: np.random.Generator, speech: Speech, index: int, front: FrontEnd) -> Stream:
    """Silence or other speech, the phrase, then silence or a command."""
    phrase = cut(speech.phrases[index])
    if rng.random() < MIXING.speaker_share:
        phrase = other_speaker(rng, phrase)
    before = silence(rng, 0, 1.2)
    if rng.random() < 0.25:
        other = cut(speech.others[rng.integers(len(speech.others))])[-round(rng.uniform(0.4, 1.5) * RATE_HZ) :]
        before = np.concatenate([other * rng.uniform(0.3, 1), silence(rng, 0.1, 0.7)])
    after = silence(rng, 0.5, 1.5)
    if rng.random() < 0.4:
        command = cut(speech.commands[rng.integers(len(speech.commands))])[: round(1.5 * RATE_HZ)]
        after = np.concatenate([silence(rng, 0, 0.35), command])
    end_s = (len(before) + len(phrase)) / RATE_HZ
    return Stream(front.levels(mixed(rng, np.concatenate([before, phrase, after]), MIXING)), end_s)


def without_phrase(rng: np.random.Generator, speech: Speech, index: int, front: FrontEnd) -> Stream:
    other = cut(speech.others[index])
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


def some_streams(seed: tuple[int, ...], speech: Speech, phrase_turns: int, other_turns: int) -> list[Stream]:
    rng, front = np.random.default_rng(seed), FrontEnd()
    streams = [with_phrase(rng, speech, i, front) for _ in range(phrase_turns) for i in range(len(speech.phrases))]
    streams += [without_phrase(rng, speech, i, front) for _ in range(other_turns) for i in range(len(speech.others))]
    return streams + [noise_alone(rng, front) for _ in range(60)]


def halves(speech: Speech) -> Iterator[Speech]:
    for part in (0, 1):
        yield Speech(speech.phrases[part::2], speech.others[part::2], speech.commands)


def windows(stream: Stream) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.float32]]:
    """Every window that ends in the stream, silence before it, and 1, 0 or NaN (not to be judged) for each."""
    padded = np.concatenate([np.zeros((FRAMES - 1, stream.levels.shape[1]), np.int8), stream.levels])
    every = sliding_window_view(padded, FRAMES, axis=0).transpose(0, 2, 1)
    wanted = np.zeros(len(every), np.float32)
    if stream.phrase_end_s is not None:
        late = (np.arange(len(every)) * HOP + WINDOW) / RATE_HZ - stream.phrase_end_s
        wanted[(late > WAKES_FROM_S - 0.2) & (late < WAKES_TO_S + 0.2)] = np.nan
        wanted[(late >= WAKES_FROM_S) & (late <= WAKES_TO_S)] = 1
    return every, wanted


def chosen(streams: list[Stream], rng: np.random.Generator) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.int8]]:
    """Windows that must wake (half of them), and a draw of those that must not."""
    wake, other = [], []
    for stream in streams:
        every, wanted = windows(stream)
        yes, no = np.flatnonzero(wanted == 1), np.flatnonzero(wanted == 0)
        if len(yes):
            wake.append(every[rng.permutation(yes)[: len(yes) // 2]])
        if len(no):
            other.append(every[rng.choice(no, max(1, len(no) // 10), replace=False)])
    return np.concatenate(wake), np.concatenate(other)


def logits_of(network: Network, stream: Stream) -> Array:
    """One a window of `windows`, every frame."""
    padded = np.concatenate(
        [
            np.zeros((FRAMES - 1, stream.levels.shape[1]), np.int8),
            stream.levels,
            np.zeros((1, stream.levels.shape[1]), np.int8),
        ]
    )
    x = padded[None].astype(np.float32)
    out = np.zeros(len(stream.levels), np.float32)
    for phase in (0, 1):
        part = network.logits(x[:, phase:])[0]
        count = len(out[phase::2])
        out[phase::2] = part[:count]
    return out


def hard(network: Network, streams: list[Stream], above: float, most: int) -> npt.NDArray[np.int8]:
    """Windows without the phrase that score above `above`, the highest ones of each stream."""
    found = []
    for stream in streams:
        every, wanted = windows(stream)
        scores = np.where(wanted == 0, logits_of(network, stream), -np.inf)
        top = np.argsort(scores)[-6:]
        found += [(float(scores[i]), every[i].copy()) for i in top if scores[i] > above]
    found.sort(key=lambda item: -item[0])
    return np.stack([window for _, window in found[:most]]) if found else np.zeros((0, FRAMES, 16), np.int8)


def note(text: str) -> None:
    sys.stderr.write(text + "\n")


def train(streams: list[Stream], rng: np.random.Generator) -> Network:
    network = Network(rng)
    wake, other = chosen(streams, rng)
    mined = np.zeros((0, FRAMES, 16), np.int8)
    silent = [stream for stream in streams if stream.phrase_end_s is None]
    note(f"{len(wake)} windows wake, {len(other)} do not")
    for turn in range(ROUNDS):
        some = other[rng.permutation(len(other))[: 2 * len(wake)]]
        x = np.concatenate([wake, some, mined])
        wanted = np.concatenate([np.ones(len(wake)), np.zeros(len(some) + len(mined))]).astype(np.float32)
        weight = np.ones(len(x), np.float32)
        for epoch in range(2):
            order, losses = rng.permutation(len(x)), []
            last = (turn * 2 + epoch) / (2 * ROUNDS - 1)
            rate = 0.002 * (1 - last) + 0.0001
            for start in range(0, len(order) - 255, 256):
                rows = order[start : start + 256]
                losses.append(network.learn(x[rows].astype(np.float32), wanted[rows], weight[rows], rate, rng))
            note(f"round {turn} epoch {epoch}: {len(x)} windows, loss {np.mean(losses):.4f}")
        if turn + 1 < ROUNDS:
            fresh = hard(network, silent, -3, 20_000)
            note(f"hard: {len(fresh)}")
            mined = np.concatenate([mined, fresh])[-60_000:]
    return network


def gather(cache: Path, seed: int) -> list[Stream]:
    """All streams of the training part."""
    speakers = Speakers()
    lines = positives(speakers.espeak, False, 2000, 1)
    phrases = speakers.say_all(lines, cache)
    assert len(lines) == len(phrases), "a line was refused: voices and phrases no longer match"
    natural = [phrase for line, phrase in zip(lines, phrases, strict=True) if line.engine != "espeak"]
    speech = Speech(
        phrases + NATURAL_TURNS * natural,
        speakers.say_all(negatives(speakers.espeak, False, 5000, 1), cache),
        speakers.say_all(commands(speakers.espeak, False, 200, 1), cache),
    )
    with ProcessPoolExecutor(2) as pool:
        parts = [pool.submit(some_streams, (seed, n), half, 5, 2) for n, half in enumerate(halves(speech))]
        return [stream for part in parts for stream in part.result()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=Path, required=True, help="folder for the synthesised speech")
    arguments = parser.parse_args()
    streams = gather(arguments.cache, SEED)
    rng = np.random.default_rng(SEED)
    network = train(streams, rng)
    sample = np.concatenate([windows(streams[i])[0][::5] for i in rng.permutation(len(streams))[:300]])
    layers: list[Layer] = quantised(network, sample.astype(np.float32))
    hours = sum(len(stream.levels) for stream in streams) * HOP / RATE_HZ / 3600
    sys.stdout.write(network_header.text(layers, SEED, f"{len(streams)} mixed recordings, {hours:.1f} h") + "\n")


if __name__ == "__main__":
    main()

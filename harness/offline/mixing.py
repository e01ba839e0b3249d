"""Plants phrases in hours of background: recordings with labels, as benchmarks of wake words use them.

Every phrase is used as often as every other, in random order, at random gaps and SNRs; a seed gives the same samples.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
import soundfile

from harness.base.text_file import safe_csv
from harness.base.whole_file import atomic_stream, write_atomically
from harness.model.errors import InputError, Place
from harness.model.frozen import frozen
from harness.model.numbers import exact
from harness.model.offline import PHRASE
from harness.model.stimulus import RecordingPiece, Samples, Waveform
from harness.offline.file_sources import CollectedFiles
from harness.sound.level import active_speech_level, rms_dbfs
from harness.sound.manifests import AUDIO
from harness.sound.recordings import at_rate, check, opened
from harness.sound.recordings import read as read_recording
from harness.sound.stimuli.ambience import read_piece
from harness.sound.stimuli.renderer import cut_speech

QUIETEST_DBFS = -60.0
"""A quieter background counts as having this level when the SNR is set, so that a phrase in silence can be heard."""
AFTER_S = 2.0
"""Least background after the last phrase of a recording, so that its detection still lies in the recording."""
_MAX_CACHED = 256


@frozen
class MixRequest:
    """How phrases are mixed into background.

    hours: length of all mixed recordings together; None to use all background once. gap_s, snr_db: least and most gap
    between phrases, least and most SNR; both are drawn uniformly. file_s: length of each mixed recording. phrase: the
    phrase that all recordings contain, unless a column of a manifest names it.
    """

    rate_hz: int = 16_000
    hours: float | None = None
    gap_s: tuple[float, float] = (10.0, 60.0)
    snr_db: tuple[float, float] = (10.0, 10.0)
    file_s: float = 600.0
    phrase: str = ""
    seed: int = 0

    def __post_init__(self) -> None:
        for name, (least, most) in (("gap", self.gap_s), ("snr", self.snr_db)):
            if least > most:
                raise InputError(
                    f"--{name} {exact(least)} {exact(most)}: the first value is larger than the second",
                    remedy="Swap them",
                )


PlantedPhrase = tuple[int, int, int, float]
"""Index of the phrase's recording, start and end of its speech in the mix (in samples), and its SNR in dB."""


class Mixer:
    """Mixes phrases into background; both are recordings on this computer. InputError, before any is mixed, for a
    recording that cannot be used."""

    def __init__(
        self, request: MixRequest, phrases: Sequence[CollectedFiles], background: Sequence[CollectedFiles]
    ) -> None:
        self._request = request
        self._chance = np.random.Generator(np.random.PCG64(request.seed))
        self._names = [name for recordings in phrases for name in recordings.names]
        self._phrases = [_path(name, recordings.folder) for recordings in phrases for name in recordings.names]
        blank_row = {name: "" for recordings in phrases for name in recordings.columns}
        self._traits: list[dict[str, str]] = []
        for recordings in phrases:
            for index in range(len(recordings.names)):
                row = {name: values[index] for name, values in recordings.columns.items()}
                self._traits.append(blank_row | row)
        self._background = [_path(name, recordings.folder) for recordings in background for name in recordings.names]
        self._lengths_s = [check(path) for path in self._background]
        for path in self._phrases:
            check(path)
            if self._speech(path) is None:
                raise InputError("it contains no speech", place=Place(path), remedy="Remove it")
        self.hours = sum(self._lengths_s) / 3600 if request.hours is None else request.hours
        if round(self.hours * 3600) < 1:
            raise InputError("there is less than a second of background", remedy="Add recordings, or increase --hours")
        self._waiting: list[int] = []

    def write(self, folder: Path) -> Iterator[tuple[int, int]]:
        """Writes mix-001.wav with its labels in mix-001.csv, and so on. Yields for each the number of samples and the
        number of phrases. OSError if a file cannot be written."""
        remaining_samples, number = round(self.hours * 3600 * self._request.rate_hz), 0
        pieces = self._pieces()
        while remaining_samples > 0:
            number += 1
            count = min(remaining_samples, round(self._request.file_s * self._request.rate_hz))
            remaining_samples -= count
            sound = self._stretch(pieces, count)
            planted = tuple(self._plant(sound))
            path = folder / f"mix-{number:03}.wav"
            with atomic_stream(path) as file:
                samples = np.clip(np.rint(sound * 32768), -32768, 32767).astype(np.int16)
                soundfile.write(file, samples, self._request.rate_hz, format="WAV", subtype="PCM_16")
            write_atomically(path.with_suffix(".csv"), self._labels(planted).encode())
            yield count, len(planted)

    def _pieces(self) -> Iterator[RecordingPiece]:
        """The background in random order, again and again, in pieces that fit into memory."""
        while True:
            for index in self._chance.permutation(len(self._background)):
                offset_s = 0.0
                while offset_s < self._lengths_s[index]:
                    length_s = min(self._request.file_s, self._lengths_s[index] - offset_s)
                    yield RecordingPiece(self._background[index], offset_s, length_s)
                    offset_s += length_s

    def _stretch(self, pieces: Iterator[RecordingPiece], count: int) -> Samples:
        """The next `count` samples of background."""
        sound = np.zeros(count, dtype=np.float32)
        filled = 0
        while filled < count:
            piece = read_piece(next(pieces), self._request.rate_hz)[: count - filled]
            sound[filled : filled + len(piece)] = piece
            filled += len(piece)
        return sound

    def _plant(self, sound: Samples) -> Iterator[PlantedPhrase]:
        """Adds phrases to the background, from the first to the last that fits."""
        request, place = self._request, 0
        while True:
            place += round(self._chance.uniform(*request.gap_s) * request.rate_hz)
            snr_db = float(self._chance.uniform(*request.snr_db))
            if not self._waiting:
                self._waiting = self._chance.permutation(len(self._phrases)).tolist()
            phrase = self._speech(self._phrases[self._waiting[-1]])
            assert phrase is not None, self._phrases[self._waiting[-1]]
            speech, start, end, level_dbfs = phrase
            if place - start < 0:
                place = start
            first = place - start
            if first + len(speech) + round(AFTER_S * request.rate_hz) > len(sound):
                return
            background = sound[first : first + len(speech)]
            noise_dbfs = max(QUIETEST_DBFS, rms_dbfs(background[start:end]))
            gain = 10 ** ((noise_dbfs + snr_db - level_dbfs) / 20)
            most = float(np.abs(background).max(initial=0.0)) + gain * float(np.abs(speech).max())
            if most > 1.0:  # it would be clipped, so make it quieter; its label has the resulting SNR
                quieter = (
                    max(0.05, (1.0 - float(np.abs(background).max(initial=0.0))) / float(np.abs(speech).max())) / gain
                )
                gain, snr_db = gain * quieter, snr_db + 20 * float(np.log10(quieter))
            background += np.float32(gain) * speech
            yield self._waiting.pop(), place, place + end - start, snr_db
            place += end - start

    def _speech(self, path: str) -> tuple[Samples, int, int, float] | None:
        return _speech(path, self._request.rate_hz)

    def _labels(self, planted: Sequence[PlantedPhrase]) -> str:
        """The labels as CSV: start and end of each phrase, its SNR, the name of its recording and its columns."""
        rate_hz = self._request.rate_hz
        own = ("start", "end", PHRASE, "snr_db", "source")
        names = [name for name in dict.fromkeys(name for traits in self._traits for name in traits) if name != PHRASE]
        # Others of these names would be taken for the recording's own, or for the recording that is labelled.
        titles = [f"source_{name}" if name.lower() in (*own, *AUDIO) else name for name in names]
        rows = [
            [
                f"{start / rate_hz:.4f}", f"{end / rate_hz:.4f}",
                self._traits[number].get(PHRASE) or self._request.phrase, f"{snr_db:.2f}",
                self._names[number], *(self._traits[number][name] for name in names),
            ]
            for number, start, end, snr_db in planted
        ]  # fmt: skip
        return safe_csv([[*own, *titles], *rows])


@lru_cache(maxsize=_MAX_CACHED)
def _speech(path: str, rate_hz: int) -> tuple[Samples, int, int, float] | None:
    """A phrase, cut to its speech with a margin. Returns its samples, where speech begins and ends in them, and the
    active speech level in dBFS; None for silence."""
    sound = at_rate(read_recording(path), rate_hz)
    cut = cut_speech(sound, recorded=True)
    if cut is None:
        return None
    samples, start, end = cut
    level = active_speech_level(Waveform(samples, rate_hz))
    return None if level is None else (samples, start, end, level.level_dbfs)


def _path(name: str, folder: str | None) -> str:
    """Absolute path of a recording. InputError if it is in a store or an archive."""
    path = name if folder is None or os.path.exists(name) else os.path.join(folder, name)
    with opened(path):
        return os.path.abspath(path)

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
from harness.model.numbers import exact, seconds
from harness.model.offline import PHRASE
from harness.model.stimulus import RecordingPiece, Samples, Waveform
from harness.offline.file_sources import CollectedFiles
from harness.sound.level import active_speech_level, rms_dbfs
from harness.sound.manifests import AUDIO
from harness.sound.recordings import at_rate, check, opened
from harness.sound.recordings import read as read_recording
from harness.sound.stimuli.ambience import read_piece
from harness.sound.stimuli.renderer import cut_speech

MIN_BACKGROUND_DBFS = -60.0
"""A quieter background counts as having this level when the SNR is set, so that a phrase in silence can be heard."""
MIN_TAIL_S = 2.0
"""Least background after the last phrase of a recording, so that its detection still lies in the recording."""
MIN_GAIN = 0.05
"""Where background and phrase would be clipped, a phrase is not made quieter than this."""
_MAX_CACHED = 256


@frozen
class MixRequest:
    """How phrases are mixed into background.

    - rate_hz: sample rate of the mixed recordings.
    - hours: length of all mixed recordings together; None to use all background once.
    - gap_s, snr_db: least and most gap between phrases, least and most SNR; both are drawn uniformly.
    - file_s: length of each mixed recording.
    - phrase: the phrase that all recordings contain, unless a column of a manifest names it.
    - seed: of all random choices.
    """

    rate_hz: int = 16_000
    hours: float | None = None
    gap_s: tuple[float, float] = (10.0, 60.0)
    snr_db: tuple[float, float] = (10.0, 10.0)
    file_s: float = 600.0
    phrase: str = ""
    seed: int = 0

    def __post_init__(self) -> None:
        for name, (low, high) in (("gap", self.gap_s), ("snr", self.snr_db)):
            if low > high:
                raise InputError(
                    f"--{name} {exact(low)} {exact(high)}: the first value is larger than the second",
                    remedy="Swap the two values",
                )


@frozen
class PlantedPhrase:
    """A phrase in a mix.

    - recording: index of the phrase's recording.
    - start, end: of its speech, in samples of the mix.
    """

    recording: int
    start: int
    end: int
    snr_db: float


@frozen
class _Speech:
    """A phrase, cut to its speech with a margin.

    - start, end: of the speech, in samples.
    - level_dbfs: active speech level.
    """

    samples: Samples
    start: int
    end: int
    level_dbfs: float


class Mixer:
    """Mixes phrases into background; both are recordings on this computer. InputError, before any is mixed, for a
    recording that cannot be used. hours: length of all mixed recordings together."""

    def __init__(
        self, request: MixRequest, phrases: Sequence[CollectedFiles], background: Sequence[CollectedFiles]
    ) -> None:
        self._request = request
        self._random = np.random.Generator(np.random.PCG64(request.seed))
        self._names = [name for recordings in phrases for name in recordings.names]
        self._phrases = [_path(name, recordings.folder) for recordings in phrases for name in recordings.names]
        # In lower case, as labels are read: manifests may write the same column in different ways.
        blank_row = {name.lower(): "" for recordings in phrases for name in recordings.columns}
        self._traits: list[dict[str, str]] = []
        for recordings in phrases:
            for index in range(len(recordings.names)):
                row = {name.lower(): values[index] for name, values in recordings.columns.items()}
                self._traits.append(blank_row | row)
        self._background = [_path(name, recordings.folder) for recordings in background for name in recordings.names]
        self._lengths_s = [check(path) for path in self._background]
        self.hours = sum(self._lengths_s) / 3600 if request.hours is None else request.hours
        if round(self.hours * 3600) < 1:
            raise InputError("there is less than a second of background", remedy="Add recordings, or increase --hours")
        file_s = min(request.file_s, self.hours * 3600)
        for path in self._phrases:
            check(path)
            speech = _speech(path, request.rate_hz)
            if speech is None:
                raise InputError("it contains no speech", place=Place(path), remedy="Remove it")
            # No other phrase would be planted after one that never fits.
            after_gap_s = (len(speech.samples) - speech.start) / request.rate_hz
            needed_s = max(request.gap_s[0], speech.start / request.rate_hz) + after_gap_s + MIN_TAIL_S
            if needed_s > file_s:
                problem = f"with the smallest gap, it needs {seconds(needed_s)}; recordings are {seconds(file_s)} long"
                remedy = "Increase --file-minutes or --hours, decrease --gap, or remove this recording"
                raise InputError(problem, place=Place(path), remedy=remedy)
        self._unused_phrases: list[int] = []

    def write(self, folder: Path) -> Iterator[tuple[int, int]]:
        """Writes mix-001.wav with its labels in mix-001.csv, and so on. Yields for each the number of samples and the
        number of phrases.

        Raises OSError if a file cannot be written.
        """
        remaining_samples = round(self.hours * 3600 * self._request.rate_hz)
        number = 0
        pieces = self._background_pieces()
        while remaining_samples > 0:
            number += 1
            count = min(remaining_samples, round(self._request.file_s * self._request.rate_hz))
            remaining_samples -= count
            sound = self._next_background(pieces, count)
            planted_phrases = tuple(self._plant(sound))
            path = folder / f"mix-{number:03}.wav"
            with atomic_stream(path) as file:
                samples = np.clip(np.rint(sound * 32768), -32768, 32767).astype(np.int16)
                soundfile.write(file, samples, self._request.rate_hz, format="WAV", subtype="PCM_16")
            write_atomically(path.with_suffix(".csv"), self._labels(planted_phrases).encode())
            yield count, len(planted_phrases)

    def _background_pieces(self) -> Iterator[RecordingPiece]:
        """The background in random order, again and again, in pieces that fit into memory."""
        while True:
            for index in self._random.permutation(len(self._background)):
                offset_s = 0.0
                while offset_s < self._lengths_s[index]:
                    length_s = min(self._request.file_s, self._lengths_s[index] - offset_s)
                    yield RecordingPiece(self._background[index], offset_s, length_s)
                    offset_s += length_s

    def _next_background(self, pieces: Iterator[RecordingPiece], count: int) -> Samples:
        """The next `count` samples of background."""
        sound = np.zeros(count, dtype=np.float32)
        filled = 0
        while filled < count:
            piece = read_piece(next(pieces), self._request.rate_hz)[: count - filled]
            sound[filled : filled + len(piece)] = piece
            filled += len(piece)
        return sound

    def _plant(self, sound: Samples) -> Iterator[PlantedPhrase]:
        """Adds phrases to the background in place, until the next one does not fit. Yields each."""
        request, position = self._request, 0
        while True:
            position += round(self._random.uniform(*request.gap_s) * request.rate_hz)
            snr_db = float(self._random.uniform(*request.snr_db))
            if not self._unused_phrases:
                self._unused_phrases = self._random.permutation(len(self._phrases)).tolist()
            recording = self._unused_phrases[-1]
            speech = _speech(self._phrases[recording], request.rate_hz)
            assert speech is not None, self._phrases[recording]
            position = max(position, speech.start)
            first = position - speech.start
            length = len(speech.samples)
            if first + length + round(MIN_TAIL_S * request.rate_hz) > len(sound):
                return  # the phrase stays the next one, for the next recording
            background = sound[first : first + length]
            noise_dbfs = max(MIN_BACKGROUND_DBFS, rms_dbfs(background[speech.start : speech.end]))
            gain = 10 ** ((noise_dbfs + snr_db - speech.level_dbfs) / 20)
            background_peak = float(np.abs(background).max(initial=0.0))
            speech_peak = float(np.abs(speech.samples).max())
            if background_peak + gain * speech_peak > 1.0:
                # The sum would be clipped, so make the phrase quieter. Its label has the resulting SNR.
                factor = max(min(MIN_GAIN, gain), (1.0 - background_peak) / speech_peak) / gain
                gain, snr_db = gain * factor, snr_db + 20 * float(np.log10(factor))
            background += np.float32(gain) * speech.samples
            self._unused_phrases.pop()
            end = position + speech.end - speech.start
            yield PlantedPhrase(recording, position, end, snr_db)
            position = end

    def _labels(self, planted_phrases: Sequence[PlantedPhrase]) -> str:
        """The labels as CSV: start and end of each phrase, its SNR, the name of its recording and its columns."""
        rate_hz = self._request.rate_hz
        own_columns = ("start", "end", PHRASE, "snr_db", "source")
        names = [name for name in dict.fromkeys(name for traits in self._traits for name in traits) if name != PHRASE]
        # A column with one of these names would be taken for that of the mix.
        titles = [f"source_{name}" if name in (*own_columns, *AUDIO) else name for name in names]
        rows = [
            [
                f"{planted.start / rate_hz:.4f}", f"{planted.end / rate_hz:.4f}",
                self._traits[planted.recording].get(PHRASE) or self._request.phrase, f"{planted.snr_db:.2f}",
                self._names[planted.recording], *(self._traits[planted.recording][name] for name in names),
            ]
            for planted in planted_phrases
        ]  # fmt: skip
        return safe_csv([[*own_columns, *titles], *rows])


@lru_cache(maxsize=_MAX_CACHED)
def _speech(path: str, rate_hz: int) -> _Speech | None:
    """The phrase in a recording, at rate_hz; None for silence."""
    sound = at_rate(read_recording(path), rate_hz)
    cut = cut_speech(sound, recorded=True)
    if cut is None:
        return None
    samples, start, end = cut
    level = active_speech_level(Waveform(samples, rate_hz))
    return None if level is None else _Speech(samples, start, end, level.level_dbfs)


def _path(name: str, folder: str | None) -> str:
    """Absolute path of a recording. Raises InputError if it is in a store or an archive."""
    path = name if folder is None or os.path.exists(name) else os.path.join(folder, name)
    with opened(path):
        return os.path.abspath(path)

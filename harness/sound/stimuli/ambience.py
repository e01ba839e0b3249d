"""Noise, and ambient sound: noise, recordings and sayings without a wake phrase."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import soxr

from harness.model.errors import InputError, Place
from harness.model.stimulus import Ambience, NoiseKind, NoiseSpec, RecordingPiece, Samples, Saying, Waveform
from harness.sound.decoded_file import NO_TOTAL, ForwardFile
from harness.sound.level import FULL_SCALE, a_weighting_of, active_speech_level, amplify, is_silent, rms_dbfs
from harness.sound.recordings import at_rate, check, opened
from harness.sound.recordings import read as read_recording

MIN_HZ = 20.0  # Below hearing. Towards 0 Hz, the power of pink noise grows without limit.
CROSSFADE_S = 0.05


def make_noise(spec: NoiseSpec, samples: int, rate_hz: int, level_dbfs: float, seed: int) -> Waveform:
    """Noise of that length and RMS level. The same seed gives the same noise. InputError as for recordings.read."""
    match spec.kind:
        case NoiseKind.WHITE:
            noise = _coloured_noise(samples, rate_hz, seed, slope=0.0)
        case NoiseKind.PINK:
            noise = _coloured_noise(
                samples, rate_hz, seed, slope=-0.5
            )  # The power of pink noise falls with 1 / frequency.
        case NoiseKind.RECORDING:
            noise = _loop_to_length(at_rate(read_recording(spec.path), rate_hz), samples)
    if is_silent(noise.samples):
        raise InputError(
            "the noise recording is silent in the part that is used",
            place=Place(spec.path or spec.kind),
            remedy="Use another recording",
        )
    return amplify(noise, level_dbfs - rms_dbfs(noise.samples))


def _coloured_noise(samples: int, rate_hz: int, seed: int, slope: float) -> Waveform:
    """Gaussian noise from 20 Hz up whose amplitude falls with frequency ** slope."""
    white = np.random.Generator(np.random.PCG64(seed)).standard_normal(samples)
    spectrum = np.fft.rfft(white)
    hz = np.fft.rfftfreq(samples, 1 / rate_hz)
    spectrum[hz < MIN_HZ] = 0
    spectrum[hz >= MIN_HZ] *= hz[hz >= MIN_HZ] ** slope
    # The scale is arbitrary: `make_noise` sets the level.
    return Waveform((np.fft.irfft(spectrum, samples) / np.sqrt(samples)).astype(np.float32), rate_hz)


def _loop_to_length(source: Waveform, samples: int) -> Waveform:
    """The recording from its start, joined to itself by 50 ms crossfades of equal power."""
    x = source.samples
    if len(x) >= samples:
        return Waveform(x[:samples], source.rate_hz)
    fade = min(round(CROSSFADE_S * source.rate_hz), len(x) // 2)
    step = len(x) - fade
    turn = np.linspace(0, np.pi / 2, fade, endpoint=False)
    faded = x.astype(np.float64)
    faded[:fade] *= np.sin(turn)
    faded[step:] *= np.cos(turn)
    output = np.zeros(samples + len(x))
    for start in range(0, samples, step):
        output[start : start + len(x)] += faded
    # Nothing comes before the start, so it is not faded in.
    output[:fade] = x[:fade]
    return Waveform(output[:samples].astype(np.float32), source.rate_hz)


FADE_S = 0.005
"""Length of the fades at both ends of a sound, which prevent clicks, in seconds."""
EXCERPTS, EXCERPT_S = 12, 5.0
"""Number of excerpts from which the level of a long recording is measured, and the length of each, in seconds."""
PAUSES_S = (0.3, 1.5)
"""Shortest and longest pause between two sayings, in seconds; it is drawn uniformly."""
PIECE_MARGIN_S = 0.5
"""How much is read beyond both ends of a piece, in seconds, so that resampling does not change its edges."""

Speak = Callable[[Saying], Samples]
"""Renders a saying at the requested rate and level."""


class Ambiences:
    """Makes ambient sound, and remembers the measured levels of recordings."""

    def __init__(self) -> None:
        self._levels_dbfs: dict[tuple[str, int, int], float] = {}  # by path, frames and sample rate

    def make(self, ambience: Ambience, rate_hz: int, level_dbfs: float, speak: Speak) -> Samples:
        """Samples at rate_hz, shape (round(duration_s · rate_hz),); the same ambience gives the same samples.

        A recording is set to the active speech level as a whole file, so that a quiet passage stays quiet. Noise has
        that RMS level, or an A-weighted one. Sound that would clip is turned down as a whole. Raises InputError for an
        unreadable or silent recording.
        """
        count = round(ambience.duration_s * rate_hz)
        if ambience.pieces:
            samples = self._join_pieces(ambience.pieces, count, rate_hz, level_dbfs)
        elif ambience.noise is not None:
            noise = make_noise(NoiseSpec(ambience.noise, 0.0), count, rate_hz, level_dbfs, ambience.seed)
            if ambience.a_weighting_db is not None:
                excerpt = Waveform(noise.samples[: round(EXCERPT_S * rate_hz)], rate_hz)
                noise = amplify(noise, ambience.a_weighting_db - a_weighting_of(excerpt))
            samples = _fade_ends(noise.samples.copy(), rate_hz)
        else:
            samples = _join_sayings(ambience, count, rate_hz, speak)
        peak = float(np.abs(samples).max(initial=0.0))
        return samples if peak <= FULL_SCALE else (samples * (FULL_SCALE / peak)).astype(np.float32)

    def _join_pieces(self, pieces: tuple[RecordingPiece, ...], count: int, rate_hz: int, level_dbfs: float) -> Samples:
        """Pieces of recordings one after the other, each at the level of its recording, with fades at its ends."""
        samples = np.zeros(count, dtype=np.float32)
        end_s = 0.0
        for piece in pieces:
            first = round(end_s * rate_hz)
            end_s += piece.duration_s
            last = min(count, round(end_s * rate_hz))
            sound = read_piece(piece, rate_hz)[: last - first]
            sound = sound * 10 ** ((level_dbfs - self._recording_level(piece.path)) / 20)
            samples[first : first + len(sound)] = _fade_ends(sound.astype(np.float32), rate_hz)
        return samples

    def _recording_level(self, path: str) -> float:
        """Active speech level of a recording, dBFS, from excerpts."""
        with opened(path, ForwardFile) as file:
            key = (path, file.frames, file.samplerate)
            if key not in self._levels_dbfs:
                size = round(EXCERPT_S * file.samplerate)
                # FLAC from a pipe does not state its length.
                frames = file.frames if file.frames < NO_TOTAL else round(check(path) * file.samplerate)
                if frames <= EXCERPTS * size:
                    samples = file.read(frames, dtype="float32")
                else:
                    parts = []
                    for start in np.linspace(0, frames - size, EXCERPTS).astype(int):
                        file.seek(int(start))
                        parts.append(file.read(size, dtype="float32"))
                    samples = np.concatenate(parts)
                level = active_speech_level(Waveform(np.nan_to_num(samples).astype(np.float32), file.samplerate))
                if level is None:
                    raise InputError(
                        "the recording is silent in every excerpt that was read", place=Place(path), remedy="Remove it"
                    )
                self._levels_dbfs[key] = level.level_dbfs
            return self._levels_dbfs[key]


def read_piece(piece: RecordingPiece, rate_hz: int) -> Samples:
    """Reads only the piece, however long the file is, and resamples it."""
    with opened(piece.path, ForwardFile) as file:
        file_rate_hz = file.samplerate
        first, last = round(piece.offset_s * file_rate_hz), round((piece.offset_s + piece.duration_s) * file_rate_hz)
        margin = min(first, round(PIECE_MARGIN_S * file_rate_hz))
        start = min(first - margin, file.frames)
        file.seek(start)
        end = min(last + round(PIECE_MARGIN_S * file_rate_hz), file.frames)
        sound = file.read(max(0, end - start), dtype="float32")
    if not np.isfinite(sound).all():
        raise InputError(
            "the recording contains invalid samples (NaN or infinite)",
            place=Place(piece.path),
            remedy="Export it again",
        )
    if file_rate_hz != rate_hz:
        sound = np.asarray(soxr.resample(sound, file_rate_hz, rate_hz, quality="VHQ"), dtype=np.float32)
    start = round(margin * rate_hz / file_rate_hz)
    samples: Samples = sound[start : start + round(piece.duration_s * rate_hz)]
    return samples


def _join_sayings(ambience: Ambience, count: int, rate_hz: int, speak: Speak) -> Samples:
    """Sayings one after the other, again from the first after the last, with pauses drawn from the seed."""
    samples = np.zeros(count, dtype=np.float32)
    generator = np.random.Generator(np.random.PCG64(ambience.seed))
    position = number = 0
    while position < count and ambience.sayings:
        speech = speak(ambience.sayings[number % len(ambience.sayings)])[: count - position]
        samples[position : position + len(speech)] = speech
        position += len(speech) + round(generator.uniform(*PAUSES_S) * rate_hz)
        number += 1
    return _fade_ends(samples, rate_hz)


def _fade_ends(sound: Samples, rate_hz: int) -> Samples:
    """Fades in place, so that joined sounds do not click."""
    fade = min(round(FADE_S * rate_hz), len(sound) // 2)
    ramp = np.linspace(0, 1, fade, endpoint=False, dtype=np.float32)
    sound[:fade] *= ramp
    sound[len(sound) - fade :] *= ramp[::-1]
    return sound

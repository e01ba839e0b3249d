"""Turns recipes into sound: wake phrase, gap and query as one stimulus, with the sample positions of each."""

from __future__ import annotations

import hashlib
import json
import logging
import threading
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import soundfile
import soxr

from harness.base.places import cache_folder
from harness.base.plugins import Group, load
from harness.base.ports import Voice
from harness.base.whole_file import whole_stream
from harness.model.errors import InputError, Place
from harness.model.stimulus import (
    Ambience,
    LevelAt,
    NoiseKind,
    NoiseSpec,
    Part,
    Placement,
    Recording,
    RecordingPiece,
    RenderedStimulus,
    Role,
    Samples,
    Saying,
    Sound,
    SpokenText,
    StimulusRecipe,
    Utterance,
    Waveform,
)
from harness.sound.level import (
    FULL_SCALE,
    a_weighting_of,
    active_speech_level,
    amplify,
    at_level,
    is_silent,
    refuse_clipping,
    rms_dbfs,
)
from harness.sound.recordings import at_rate, content_sha256, opened
from harness.sound.recordings import read as read_recording
from harness.sound.stimuli import rooms
from harness.sound.stimuli.rooms import heard_in

MARGIN_S = 0.5
"""Noise begins this long before a stimulus and ends this long after it."""
LOWEST_HZ = 20.0
CROSSFADE_S = 0.05


def make_noise(spec: NoiseSpec, samples: int, rate_hz: int, level_dbfs: float, seed: int) -> Waveform:
    """Noise of that length and RMS level. The same seed gives the same noise. InputError as for recordings.read."""
    match spec.kind:
        case NoiseKind.WHITE:
            noise = _coloured(samples, rate_hz, seed, slope=0.0)
        case NoiseKind.PINK:
            noise = _coloured(samples, rate_hz, seed, slope=-0.5)
        case NoiseKind.RECORDING:
            noise = _repeated(at_rate(read_recording(spec.path), rate_hz), samples)
    if is_silent(noise.samples):
        raise InputError(
            "the noise recording is silent in the part that is used",
            place=Place(spec.path or spec.kind),
            remedy="Use another recording",
        )
    return amplify(noise, level_dbfs - rms_dbfs(noise.samples))


def _coloured(samples: int, rate_hz: int, seed: int, slope: float) -> Waveform:
    """Gaussian noise from 20 Hz up whose amplitude falls with frequency ** slope."""
    white = np.random.Generator(np.random.PCG64(seed)).standard_normal(samples)
    spectrum = np.fft.rfft(white)
    hz = np.fft.rfftfreq(samples, 1 / rate_hz)
    spectrum[hz < LOWEST_HZ] = 0
    spectrum[hz >= LOWEST_HZ] *= hz[hz >= LOWEST_HZ] ** slope
    return Waveform((np.fft.irfft(spectrum, samples) / np.sqrt(samples)).astype(np.float32), rate_hz)


def _repeated(source: Waveform, samples: int) -> Waveform:
    """The recording from its start, joined to itself by 50 ms crossfades of equal power."""
    x = source.samples
    if len(x) >= samples:
        return Waveform(x[:samples], source.rate_hz)
    fade = min(round(CROSSFADE_S * source.rate_hz), len(x) // 2)
    step = len(x) - fade
    turn = np.linspace(0, np.pi / 2, fade, endpoint=False)
    once = x.astype(np.float64)
    once[:fade] *= np.sin(turn)
    once[step:] *= np.cos(turn)
    out = np.zeros(samples + len(x))
    for start in range(0, samples, step):
        out[start : start + len(x)] += once
    # Nothing comes before the start, so it is not faded in.
    out[:fade] = x[:fade]
    return Waveform(out[:samples].astype(np.float32), source.rate_hz)


FADE_S = 0.005
EXCERPTS, EXCERPT_S = 12, 5.0
"""The level of a long recording is measured in this many excerpts, spread evenly over it."""
PAUSES_S = (0.3, 1.5)
"""Pause between two sayings."""
PIECE_MARGIN_S = 0.5
"""Samples read beyond both ends of a piece, so that resampling does not change its edges."""

Speak = Callable[[Saying], Samples]
"""A saying at the requested rate and level."""


class Ambiences:
    """Makes ambient sound, and remembers the measured levels of recordings."""

    def __init__(self) -> None:
        self._gains: dict[tuple[str, int, int], float] = {}

    def make(self, ambience: Ambience, rate_hz: int, level_dbfs: float, speak: Speak) -> Samples:
        """Samples at rate_hz, shape (round(duration_s · rate_hz),); the same ambience gives the same samples.

        A recording is set to the active speech level as a whole file, so that a quiet passage stays quiet. Noise has
        that RMS level. Sound that would clip is turned down as a whole. InputError for an unreadable or silent
        recording.
        """
        count = round(ambience.duration_s * rate_hz)
        if ambience.pieces:
            made = self._pieces(ambience.pieces, count, rate_hz, level_dbfs)
        elif ambience.noise is not None:
            made = _noise(ambience.noise, count, rate_hz, level_dbfs, ambience.seed)
        else:
            made = _sayings(ambience, count, rate_hz, speak)
        peak = float(np.abs(made).max(initial=0.0))
        return made if peak <= FULL_SCALE else (made * (FULL_SCALE / peak)).astype(np.float32)

    def _pieces(self, pieces: tuple[RecordingPiece, ...], count: int, rate_hz: int, level_dbfs: float) -> Samples:
        whole = np.zeros(count, dtype=np.float32)
        at_s = 0.0
        for piece in pieces:
            first = round(at_s * rate_hz)
            at_s += piece.duration_s
            last = min(count, round(at_s * rate_hz))
            sound = _read_piece(piece, rate_hz)[: last - first]
            sound = sound * 10 ** ((level_dbfs - self._level(piece.path)) / 20)
            whole[first : first + len(sound)] = _faded(sound.astype(np.float32), rate_hz)
        return whole

    def _level(self, path: str) -> float:
        """Active speech level of a recording, dBFS, from excerpts."""
        with opened(path) as file:
            key = (path, file.frames, file.samplerate)
            if key not in self._gains:
                size = round(EXCERPT_S * file.samplerate)
                if file.frames <= EXCERPTS * size:
                    heard = file.read(dtype="float32")
                else:
                    parts = []
                    for start in np.linspace(0, file.frames - size, EXCERPTS).astype(int):
                        file.seek(int(start))
                        parts.append(file.read(size, dtype="float32"))
                    heard = np.concatenate(parts)
                level = active_speech_level(Waveform(np.nan_to_num(heard).astype(np.float32), file.samplerate))
                if level is None:
                    raise InputError(
                        "the recording is silent in every excerpt that was read", place=Place(path), remedy="Remove it"
                    )
                self._gains[key] = level.level_dbfs
            return self._gains[key]


def _read_piece(piece: RecordingPiece, rate_hz: int) -> Samples:
    """Reads only the piece, however long the file is, and resamples it."""
    with opened(piece.path) as file:
        own = file.samplerate
        first, last = round(piece.offset_s * own), round((piece.offset_s + piece.duration_s) * own)
        before = min(first, round(PIECE_MARGIN_S * own))
        file.seek(min(first - before, file.frames))
        sound = file.read(last - first + before + round(PIECE_MARGIN_S * own), dtype="float32")
    if not np.isfinite(sound).all():
        raise InputError(
            "the recording contains invalid samples (NaN or infinite)",
            place=Place(piece.path),
            remedy="Export it again",
        )
    if own != rate_hz:
        sound = np.asarray(soxr.resample(sound, own, rate_hz, quality="VHQ"), dtype=np.float32)
    start = round(before * rate_hz / own)
    made: Samples = sound[start : start + round(piece.duration_s * rate_hz)]
    return made


def _noise(kind: NoiseKind, count: int, rate_hz: int, level_dbfs: float, seed: int) -> Samples:
    made = make_noise(NoiseSpec(kind, 0.0), count, rate_hz, level_dbfs, seed)
    return _faded(made.samples.copy(), rate_hz)


def _sayings(ambience: Ambience, count: int, rate_hz: int, speak: Speak) -> Samples:
    whole = np.zeros(count, dtype=np.float32)
    chance = np.random.Generator(np.random.PCG64(ambience.seed))
    at = number = 0
    while at < count and ambience.sayings:
        said = speak(ambience.sayings[number % len(ambience.sayings)])[: count - at]
        whole[at : at + len(said)] = said
        at += len(said) + round(chance.uniform(*PAUSES_S) * rate_hz)
        number += 1
    return _faded(whole, rate_hz)


def _faded(sound: Samples, rate_hz: int) -> Samples:
    """Fades in place, so that joined sounds do not click."""
    fade = min(round(FADE_S * rate_hz), len(sound) // 2)
    ramp = np.linspace(0, 1, fade, endpoint=False, dtype=np.float32)
    sound[:fade] *= ramp
    sound[len(sound) - fade :] *= ramp[::-1]
    return sound


WINDOW_S = 0.005
BELOW_ACTIVE_DB = 35.0
"""Sound this far below the active speech level is not speech. Weak fricatives lie above, the noise of a voice below."""
ABOVE_FLOOR_DB = 8.0
AT_LEAST_BELOW_DB = 20.0
GUARD_S = 0.02
GUARD_OF_RECORDING_S = 0.1


def active_span(waveform: Waveform, *, recorded: bool = False) -> tuple[int, int] | None:
    """Samples [start, end) from the first to the last speech; None for silence.

    Speech is where the power over 5 ms is less than 35 dB below the active level. In a recording, it is also
    at least 8 dB above the noise floor (the quietest twentieth). The threshold is always at least 20 dB below the
    active level.
    """
    level = active_speech_level(waveform)
    if level is None:
        return None
    power = _power(waveform)
    threshold_db = level.level_dbfs - BELOW_ACTIVE_DB
    if recorded:
        floor_db = 10 * float(np.log10(max(float(np.percentile(power, 5)), 1e-15)))
        threshold_db = min(max(threshold_db, floor_db + ABOVE_FLOOR_DB), level.level_dbfs - AT_LEAST_BELOW_DB)
    above = np.flatnonzero(power > 10 ** (threshold_db / 10))
    if not len(above):
        return None
    return int(above[0]), int(above[-1]) + 1


def cut_speech(
    waveform: Waveform, *, recorded: bool = False, ends_at: int | None = None, whole: bool = False
) -> tuple[Samples, int, int] | None:
    """The speech with a margin and 5 ms fades at the ends, and the span of the speech in it.

    The margin is at most 20 ms, or 100 ms in a recording, whose weak sounds may lie below its noise. `ends_at`: the
    sample at which the speech is known to end, whatever its energy. `whole`: nothing is cut or faded.
    """
    span = active_span(waveform, recorded=recorded)
    if span is None:
        return None
    if ends_at is not None:
        span = min(span[0], ends_at), min(ends_at, len(waveform.samples))
    if whole:
        return waveform.samples, *span
    guard = round((GUARD_OF_RECORDING_S if recorded else GUARD_S) * waveform.rate_hz)
    first, last = max(0, span[0] - guard), min(len(waveform.samples), span[1] + guard)
    cut = waveform.samples[first:last].copy()
    fade = min(round(FADE_S * waveform.rate_hz), len(cut) // 2)
    ramp = np.sin(np.linspace(0, np.pi / 2, fade, endpoint=False, dtype=np.float64)) ** 2
    cut[:fade] *= ramp.astype(np.float32)
    cut[len(cut) - fade :] *= ramp[::-1].astype(np.float32)
    return cut, span[0] - first, span[1] - first


def _power(waveform: Waveform) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Mean square over a window centred on each sample, shape (n,)."""
    half = max(1, round(WINDOW_S * waveform.rate_hz / 2))
    x = waveform.samples.astype(np.float64)
    total = np.concatenate(([0.0], np.cumsum(x * x)))
    at = np.arange(len(x))
    low, high = np.maximum(at - half, 0), np.minimum(at + half, len(x))
    return np.asarray(np.maximum(total[high] - total[low], 0.0) / (2 * half), dtype=np.float64)


logger = logging.getLogger(__name__)


def content_hash(key: str, waveform: Waveform, parts: tuple[Part, ...]) -> str:
    """Hex SHA-256 over the recipe's key, the parts and the samples (little-endian float32)."""
    digest = hashlib.sha256(key.encode())
    digest.update(json.dumps([asdict(part) for part in parts], sort_keys=True).encode())
    digest.update(f"|{waveform.rate_hz}|".encode())
    digest.update(waveform.samples.astype("<f4").tobytes())
    return digest.hexdigest()


class RenderCache:
    """A folder that threads and processes may share. It is created with the first stimulus.

    A file appears completely or not at all. A file that does not match its hash counts as absent, and is written again.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, key: str) -> RenderedStimulus | None:
        """The stimulus under that key, checked against its hash; None if it is absent or damaged."""
        try:
            found = json.loads(self._path(key, "json").read_text(encoding="utf-8"))
            parts = tuple(
                Part(Role(p["role"]), int(p["start_sample"]), int(p["end_sample"]), str(p["text"]))
                for p in found["parts"]
            )
            samples, rate_hz = soundfile.read(self._path(key, "wav"), dtype="float32")
            waveform = Waveform(np.asarray(samples, dtype=np.float32), int(rate_hz))
            if content_hash(key, waveform, parts) == found["sha256"]:
                return RenderedStimulus(waveform, parts, found["sha256"])
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError, soundfile.LibsndfileError) as error:
            if not self._path(key, "wav").exists():
                return None
            logger.warning(
                "the cached stimulus %s is damaged and will be rendered again: %s", self._path(key, "wav"), error
            )
            return None
        logger.warning(
            "the cached stimulus %s is damaged and will be rendered again: wrong hash", self._path(key, "wav")
        )
        return None

    def put(self, key: str, rendered: RenderedStimulus) -> None:
        """Stores a stimulus. A full or read-only disk is only logged, since the stimulus itself is valid."""

        waveform = rendered.waveform
        record = {"sha256": rendered.sha256, "parts": [asdict(part) for part in rendered.parts]}
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            with whole_stream(self._path(key, "wav")) as file:
                soundfile.write(file, waveform.samples, waveform.rate_hz, format="WAV", subtype="FLOAT")
            # The record comes last: if it exists, the sound does too.
            with whole_stream(self._path(key, "json")) as file:
                file.write(json.dumps(record).encode())
        except (OSError, soundfile.LibsndfileError) as error:
            logger.warning("a rendered stimulus could not be saved in %s: %s", self._folder, error)

    def _path(self, key: str, suffix: str) -> Path:
        return self._folder / f"{key}.{suffix}"


RENDERER_VERSION = 1
"""Part of the cache key. Increase it with every change that alters samples."""
LEAD_S = 0.05
RATES_HZ = (8000, 192_000)
LONGEST_GAP_MS = 60_000
LONGEST_PAUSE_S = 600.0
FLOOR_DBFS = -78.0
"""White noise in lead-ins, tails and pauses of wake and ambient stimuli: a microphone never gives digital silence."""


class Renderer:
    """Renders recipes. With a cache folder, it renders each recipe only once.

    Threads and processes may share a folder. Wake phrase and query are set to the same active speech level. Each is
    cut to its speech, with 20 ms around it (100 ms for recordings) and 5 ms fades. `gap_ms` is from active end to
    active start, and 50 ms of silence stand before and after. Then the level of the whole is set and noise added.
    """

    def __init__(self, cache: Path | None) -> None:
        self._cache = RenderCache(cache) if cache is not None else None
        self._voices: dict[str, Voice] = {}
        self._ambiences = Ambiences()
        self._lock = threading.Lock()

    def render(self, recipe: StimulusRecipe) -> RenderedStimulus:
        """The stimulus. The same recipe gives the same samples and sha256.

        - VoiceError: the voice cannot speak a text
        - InputError: unusable recording, setting out of range, or a level that would clip (with the highest possible)
        - PluginError: unknown engine
        """
        _check(recipe)
        content = self._content(recipe)
        key = hashlib.sha256(content.encode()).hexdigest()
        if isinstance(recipe.query, Ambience):
            sound = self._ambience(recipe.query, recipe, seed=int(key[:16], 16))
            return RenderedStimulus(sound, (), content_hash(key, sound, ()))
        if self._cache is not None and (known := self._cache.get(key)) is not None:
            return known
        waveform, parts = self._make(recipe, seed=int(key[:16], 16))
        rendered = RenderedStimulus(waveform, parts, content_hash(key, waveform, parts))
        if self._cache is not None:
            self._cache.put(key, rendered)
        return rendered

    def voice(self, engine: str) -> Voice:
        """The engine of that name, constructed once; PluginError if there is none."""
        with self._lock:
            if engine not in self._voices:
                self._voices[engine] = load(Group.VOICES, engine)()
            return self._voices[engine]

    def _content(self, recipe: StimulusRecipe) -> str:
        """Everything that decides the samples, as canonical JSON. Files count by content, so a folder may move."""
        spoken = any(isinstance(said, SpokenText) for said in (recipe.query, recipe.wake_phrase))
        fields: dict[str, Any] = asdict(recipe)
        if not recipe.lead_in_s and not recipe.tail_s:  # so that queries keep their existing cache keys
            del fields["lead_in_s"], fields["tail_s"]
        if not recipe.as_recorded:
            del fields["as_recorded"]
        if recipe.placement is None:
            del fields["placement"]
        if recipe.noise is not None and not recipe.noise.a_weighted:
            del fields["noise"]["a_weighted"]
        for name in ("query", "wake_phrase"):
            if fields[name] is not None and fields[name].get("phrase_end_s") is None:
                fields[name].pop("phrase_end_s", None)
        if isinstance(recipe.query, Ambience):
            for piece in fields["query"]["pieces"]:
                piece["path"] = content_sha256(piece["path"])
            engines = {saying.voice.engine for saying in recipe.query.sayings}
            fields["query"]["made_by"] = {engine: self.voice(engine).version() for engine in sorted(engines)}
        for name in ("query", "wake_phrase", "noise"):
            if fields[name] is not None and fields[name].get("path"):
                fields[name]["path"] = content_sha256(fields[name]["path"])
        fields["voice"] = asdict(recipe.voice) if spoken else None
        if recipe.placement is not None:
            for one in fields["placement"]["room"]["recorded"]:
                one["path"] = content_sha256(one["path"])
            fields["placement"]["made_by"] = None if recipe.placement.room.box is None else rooms.made_by()
        fields["made_by"] = {
            "voice": self.voice(recipe.voice.engine).version() if spoken else None,
            "renderer": RENDERER_VERSION,
            "numpy": np.__version__,
            "soxr": soxr.__version__,
        }
        return json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)

    def _make(self, recipe: StimulusRecipe, seed: int) -> tuple[Waveform, tuple[Part, ...]]:
        rate = recipe.rate_hz
        assert not isinstance(recipe.query, Ambience)
        pieces = [(Role.QUERY, recipe.query)]
        if recipe.wake_phrase is not None:
            pieces.insert(0, (Role.WAKE_PHRASE, recipe.wake_phrase))
        lead = round(LEAD_S * rate)
        listening = bool(recipe.lead_in_s or recipe.tail_s)
        gap = round(recipe.gap_ms * rate / 1000)
        placed: list[tuple[int, Samples]] = []
        parts: list[Part] = []
        for role, utterance in pieces:
            samples, start, end = self._speech(utterance, recipe)
            if parts:
                active_at = parts[-1].end_sample + gap
                parts.append(Part(Role.GAP, parts[-1].end_sample, active_at))
            else:
                active_at = max(lead + start, round(recipe.lead_in_s * rate))
            placed.append((active_at - start, samples))
            parts.append(Part(role, active_at, active_at + end - start, _text(utterance)))
        length = max(placed[-1][0] + len(placed[-1][1]) + lead, parts[-1].end_sample + round(recipe.tail_s * rate))
        whole = np.zeros(length, dtype=np.float32)
        for at, samples in placed:
            whole[at : at + len(samples)] += samples
        waveform, level_dbfs = Waveform(whole, rate), recipe.level_dbfs
        if recipe.as_recorded:
            found = active_speech_level(waveform)
            level_dbfs = found.level_dbfs if found else level_dbfs
        else:
            waveform = at_level(waveform, level_dbfs, _label(recipe))
        # Checked before the noise, so that the advice fits what the user can change.
        refuse_clipping(waveform, level_dbfs, _label(recipe))
        if recipe.placement is not None:
            waveform, level_dbfs = _in_room(
                waveform, level_dbfs, recipe.placement, parts[-1].end_sample, _label(recipe)
            )
            length = len(waveform.samples)
        if listening:
            waveform = Waveform(_with_floor(waveform.samples, seed), rate)
        if recipe.noise is None:
            return waveform, tuple(parts)
        margin = 0 if listening else round(MARGIN_S * rate)
        level = level_dbfs - recipe.noise.snr_db
        under = make_noise(recipe.noise, length + 2 * margin, rate, level, seed)
        if recipe.noise.a_weighted:
            speech = Waveform(waveform.samples[parts[0].start_sample : parts[-1].end_sample], rate)
            under = amplify(under, a_weighting_of(speech) - a_weighting_of(under))
        mixed = under.samples.copy()
        mixed[margin : margin + length] += waveform.samples
        loud = Waveform(mixed, rate)
        refuse_clipping(loud, level_dbfs, f"{_label(recipe)} with its noise")
        moved = (Part(p.role, p.start_sample + margin, p.end_sample + margin, p.text) for p in parts)
        return loud, tuple(moved)

    def _ambience(self, ambience: Ambience, recipe: StimulusRecipe, seed: int) -> Waveform:
        made = self._ambiences.make(ambience, recipe.rate_hz, recipe.level_dbfs, partial(self._saying, recipe))
        return Waveform(made if ambience.noise is not None else _with_floor(made, seed), recipe.rate_hz)

    def _saying(self, recipe: StimulusRecipe, saying: Saying) -> Samples:
        """A text at the recipe's level and rate, cached like the sound of a query."""
        spoken = StimulusRecipe(
            SpokenText(saying.text), None, saying.voice, level_dbfs=recipe.level_dbfs, rate_hz=recipe.rate_hz
        )
        return self.render(spoken).waveform.samples

    def _speech(self, utterance: Utterance, recipe: StimulusRecipe) -> tuple[Samples, int, int]:
        """An utterance at the recipe's rate and level, cut to its speech, and the span of the speech in it."""
        ends_at: int | None = None
        match utterance:
            case SpokenText(text=text):
                what, recorded = repr(text), False
                source = self.voice(recipe.voice.engine).speak(text, recipe.voice)
            case Recording(path=path, phrase_end_s=phrase_end_s):
                what, recorded = path, True
                source = read_recording(path)
                if phrase_end_s is not None:
                    ends_at = round(phrase_end_s * recipe.rate_hz)
        sound = at_rate(source, recipe.rate_hz)
        as_it_is = recorded and recipe.as_recorded
        if not as_it_is:
            sound = at_level(sound, recipe.level_dbfs, what)
        cut = cut_speech(sound, recorded=recorded, ends_at=ends_at, whole=as_it_is)
        if cut is None:
            raise InputError(f"{what} contains no speech", remedy="Use another recording or text")
        return cut


def _check(recipe: StimulusRecipe) -> None:
    wrong = [
        f"{name} {value:g} is out of range ({low:g} to {high:g})"
        for name, value, low, high in (
            ("rate_hz", recipe.rate_hz, *RATES_HZ),
            ("gap_ms", recipe.gap_ms, 0, LONGEST_GAP_MS),
            ("level_dbfs", recipe.level_dbfs, -90.0, 0.0),
            ("lead_in_s", recipe.lead_in_s, 0.0, LONGEST_PAUSE_S),
            ("tail_s", recipe.tail_s, 0.0, LONGEST_PAUSE_S),
            ("noise.snr_db", recipe.noise.snr_db if recipe.noise else 0.0, -40.0, 100.0),
        )
        if not low <= value <= high
    ]
    if recipe.noise is not None and (recipe.noise.kind is NoiseKind.RECORDING) != bool(recipe.noise.path):
        wrong.append("noise.path is required for kind: recording, and not allowed for other kinds")
    if wrong:
        raise InputError("; ".join(wrong), remedy="Correct the stimulus")


def _in_room(
    waveform: Waveform, level_dbfs: float, placement: Placement, speech_ends: int, label: str
) -> tuple[Waveform, float]:
    """What the device hears of a stimulus, and its active speech level there.

    It is as long as the stimulus, or until the last reverberation of its speech.
    """
    heard = heard_in(waveform, placement)
    reverberation = len(heard.samples) - len(waveform.samples)
    heard = Waveform(heard.samples[: max(len(waveform.samples), speech_ends + reverberation)], heard.rate_hz)
    if placement.room.level_at is LevelAt.DEVICE:
        heard = at_level(heard, level_dbfs, label)
    elif (found := active_speech_level(heard)) is not None:
        level_dbfs = found.level_dbfs
    refuse_clipping(heard, level_dbfs, f"{label} in the room {placement.label()}")
    return heard, level_dbfs


def _with_floor(samples: Samples, seed: int) -> Samples:
    """The sound over a noise floor that depends only on the seed. A sample at full scale stays there."""
    floor = np.random.Generator(np.random.PCG64(seed)).standard_normal(len(samples), dtype=np.float32)
    floor *= np.float32(10 ** (FLOOR_DBFS / 20))
    return np.asarray(np.clip(samples + floor, -1.0, 1.0), dtype=np.float32)


def _text(utterance: Sound) -> str:
    return utterance.text if isinstance(utterance, SpokenText) else ""


def _label(recipe: StimulusRecipe) -> str:
    match recipe.query:
        case SpokenText(text=text):
            return f"the stimulus {text[:60]!r} ({recipe.voice.label()})"
        case Recording(path=path):
            return f"the stimulus {path}"
        case Ambience():
            return "the ambient sound"


def renderer() -> Renderer:
    """A renderer with the cache that preparing a run and running it share."""
    return Renderer(cache_folder() / "stimuli")

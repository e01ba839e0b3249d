"""Turns recipes into sound: wake phrase, gap and query as one stimulus, with the sample positions of each."""

from __future__ import annotations

import hashlib
import json
import logging
import threading
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import soundfile
import soxr

from harness.base.places import cache_folder
from harness.base.plugins import Group, load
from harness.base.ports import Voice
from harness.base.whole_file import atomic_stream
from harness.model.errors import InputError
from harness.model.numbers import exact
from harness.model.stimulus import (
    Ambience,
    Channel,
    LevelAt,
    NoiseKind,
    NoiseSpec,
    Opening,
    Part,
    Placement,
    Recording,
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
from harness.sound.level import FULL_SCALE, a_weighting_of, active_speech_level, amplify, at_level, refuse_clipping
from harness.sound.recordings import at_rate, content_sha256
from harness.sound.recordings import read as read_recording
from harness.sound.stimuli import channel, rooms
from harness.sound.stimuli.ambience import FADE_S, Ambiences, make_noise
from harness.sound.stimuli.rooms import apply_room

MARGIN_S = 0.5
"""Noise begins this long before a stimulus and ends this long after it, in seconds."""
WINDOW_S = 0.005
"""Length over which the power of speech is averaged, in seconds."""
BELOW_ACTIVE_DB = 35.0
"""Sound this far below the active speech level is not speech. Weak fricatives are louder, a voice's noise is not."""
ABOVE_FLOOR_DB = 8.0
AT_LEAST_BELOW_DB = 20.0
GUARD_S, GUARD_OF_RECORDING_S = 0.02, 0.1
"""Margins around speech in seconds: of a voice, and of a recording."""


def active_span(waveform: Waveform, *, recorded: bool = False) -> tuple[int, int] | None:
    """Samples [start, end) from the first to the last speech; None for silence.

    Speech is where the power over 5 ms is less than 35 dB below the active level. In a recording, it is also
    at least 8 dB above the noise floor (the quietest twentieth). The threshold is always at least 20 dB below the
    active level.
    """
    level = active_speech_level(waveform)
    if level is None:
        return None
    # The mean square around each sample as a difference of running sums: a loop over windows would be slow.
    half = max(1, round(WINDOW_S * waveform.rate_hz / 2))
    x = waveform.samples.astype(np.float64)
    total = np.concatenate(([0.0], np.cumsum(x * x)))
    index = np.arange(len(x))
    low, high = np.maximum(index - half, 0), np.minimum(index + half, len(x))
    power = np.asarray(np.maximum(total[high] - total[low], 0.0) / (2 * half), dtype=np.float64)
    threshold_db = level.level_dbfs - BELOW_ACTIVE_DB
    if recorded:
        floor_db = 10 * float(np.log10(max(float(np.percentile(power, 5)), 1e-15)))
        threshold_db = min(max(threshold_db, floor_db + ABOVE_FLOOR_DB), level.level_dbfs - AT_LEAST_BELOW_DB)
    above = np.flatnonzero(power > 10 ** (threshold_db / 10))
    if not len(above):
        return None
    return int(above[0]), int(above[-1]) + 1


def cut_speech(
    waveform: Waveform, *, recorded: bool = False, ends_at: int | None = None, is_whole: bool = False
) -> tuple[Samples, int, int] | None:
    """The speech with a margin and 5 ms fades at the ends, and the span of the speech in it.

    The margin is at most 20 ms, or 100 ms in a recording, whose weak sounds may lie below its noise. `ends_at`: the
    sample at which the speech is known to end, whatever its energy. `is_whole`: nothing is cut or faded.
    """
    span = active_span(waveform, recorded=recorded)
    if span is None:
        return None
    if ends_at is not None:
        span = min(span[0], ends_at), min(ends_at, len(waveform.samples))
    if is_whole:
        return waveform.samples, *span
    guard = round((GUARD_OF_RECORDING_S if recorded else GUARD_S) * waveform.rate_hz)
    first, last = max(0, span[0] - guard), min(len(waveform.samples), span[1] + guard)
    cut = waveform.samples[first:last].copy()
    fade = min(round(FADE_S * waveform.rate_hz), len(cut) // 2)
    ramp = np.sin(np.linspace(0, np.pi / 2, fade, endpoint=False, dtype=np.float64)) ** 2
    cut[:fade] *= ramp.astype(np.float32)
    cut[len(cut) - fade :] *= ramp[::-1].astype(np.float32)
    return cut, span[0] - first, span[1] - first


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
            metadata = json.loads(self._path(key, "json").read_text(encoding="utf-8"))
            parts = tuple(
                Part(Role(part["role"]), int(part["start_sample"]), int(part["end_sample"]), str(part["text"]))
                for part in metadata["parts"]
            )
            samples, rate_hz = soundfile.read(self._path(key, "wav"), dtype="float32")
            waveform = Waveform(np.asarray(samples, dtype=np.float32), int(rate_hz))
            if content_hash(key, waveform, parts) == metadata["sha256"]:
                return RenderedStimulus(waveform, parts, metadata["sha256"])
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
        metadata = {"sha256": rendered.sha256, "parts": [asdict(part) for part in rendered.parts]}
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            with atomic_stream(self._path(key, "wav")) as file:
                soundfile.write(file, waveform.samples, waveform.rate_hz, format="WAV", subtype="FLOAT")
            # The metadata comes last: if it exists, the sound does too.
            with atomic_stream(self._path(key, "json")) as file:
                file.write(json.dumps(metadata).encode())
        except (OSError, soundfile.LibsndfileError) as error:
            logger.warning("a rendered stimulus could not be saved in %s: %s", self._folder, error)

    def _path(self, key: str, suffix: str) -> Path:
        return self._folder / f"{key}.{suffix}"


RENDERER_VERSION = 1
"""Part of the cache key. Increase it with every change that alters samples."""
LEAD_S = 0.05
"""Silence before and after a query, in seconds."""
RATES_HZ = (8000, 192_000)
MAX_GAP_MS = 60_000
MAX_PAUSE_S = 600.0
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
        rendered = self._render(recipe)
        return self._add_player_noise(recipe, rendered) if recipe.noise and recipe.noise.players else rendered

    def _render(self, recipe: StimulusRecipe) -> RenderedStimulus:
        _check_ranges(recipe)
        if recipe.opening is not None:
            return self._render_opening(recipe, recipe.opening)
        key = self.key(recipe)
        if isinstance(recipe.query, Ambience):
            sound = self._render_ambience(recipe.query, recipe, seed=int(key[:16], 16))
            return RenderedStimulus(sound, (), content_hash(key, sound, ()))
        if self._cache is not None and (cached := self._cache.get(key)) is not None:
            return cached
        waveform, parts = (
            self._render_whole(recipe) if recipe.whole else self._render_speech(recipe, seed=int(key[:16], 16))
        )
        rendered = RenderedStimulus(waveform, parts, content_hash(key, waveform, parts))
        if self._cache is not None:
            self._cache.put(key, rendered)
        return rendered

    def key(self, recipe: StimulusRecipe) -> str:
        """SHA-256 (hex) of everything that decides the samples of a recipe without an opening; it seeds the noise."""
        return hashlib.sha256(self._canonical_json(recipe).encode()).hexdigest()

    def voice(self, engine: str) -> Voice:
        """The engine of that name, constructed once. Raises PluginError if there is none."""
        with self._lock:
            if engine not in self._voices:
                self._voices[engine] = load(Group.VOICES, engine)()
            return self._voices[engine]

    def _canonical_json(self, recipe: StimulusRecipe) -> str:
        """Everything that decides the samples, as canonical JSON. Files count by content, so a folder may move.

        Fields with default values are left out, so that stimuli keep the keys under which older versions stored them.
        """
        spoken = any(isinstance(utterance, SpokenText) for utterance in (recipe.query, recipe.wake_phrase))
        fields: dict[str, Any] = asdict(recipe)
        if not recipe.lead_in_s and not recipe.tail_s:
            del fields["lead_in_s"], fields["tail_s"]
        if not recipe.as_recorded:
            del fields["as_recorded"]
        if recipe.placement is None:
            del fields["placement"]
        del fields["opening"]  # made of three recipes without one
        if recipe.channel == Channel():
            del fields["channel"]
        elif recipe.channel.codec:
            fields["channel"]["made_by"] = channel.library_version()
        if recipe.whole:
            del fields["level_dbfs"], fields["gap_ms"]
        else:
            del fields["whole"]
        if recipe.noise is not None and not recipe.noise.a_weighted:
            del fields["noise"]["a_weighted"]
        if recipe.noise is not None and not recipe.noise.ramp_s:
            del fields["noise"]["ramp_s"]
        if recipe.noise is not None:
            del fields["noise"]["level_spl"]
            if recipe.noise.level_dbfs is None:
                del fields["noise"]["level_dbfs"]
            if not recipe.noise.positions:
                del fields["noise"]["positions"], fields["noise"]["players"]
        for name in ("query", "wake_phrase"):
            if fields[name] is not None and fields[name].get("phrase_end_s") is None:
                fields[name].pop("phrase_end_s", None)
        if isinstance(recipe.query, Ambience):
            if recipe.query.a_weighting_db is None:
                del fields["query"]["a_weighting_db"]
            for piece in fields["query"]["pieces"]:
                piece["path"] = content_sha256(piece["path"])
            engines = {saying.voice.engine for saying in recipe.query.sayings}
            fields["query"]["made_by"] = {engine: self.voice(engine).version() for engine in sorted(engines)}
        for name in ("query", "wake_phrase", "noise"):
            if fields[name] is not None and fields[name].get("path"):
                fields[name]["path"] = content_sha256(fields[name]["path"])
        fields["voice"] = asdict(recipe.voice) if spoken else None
        if recipe.placement is not None:
            for response in fields["placement"]["room"]["recorded"]:
                response["path"] = content_sha256(response["path"])
            fields["placement"]["made_by"] = rooms.made_by(recipe.placement.room)
        fields["made_by"] = {
            "voice": self.voice(recipe.voice.engine).version() if spoken else None,
            "renderer": RENDERER_VERSION,
            "numpy": np.__version__,
            "soxr": soxr.__version__,
        }
        return json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)

    def _render_whole(self, recipe: StimulusRecipe) -> tuple[Waveform, tuple[Part, ...]]:
        """A recording as it is. The stated end of its phrase does not change the sound."""
        assert isinstance(recipe.query, Recording)
        plain = replace(recipe, query=replace(recipe.query, phrase_end_s=None))
        waveform, parts = self._render_speech(plain, seed=int(self.key(plain)[:16], 16))
        if (ends_s := recipe.query.phrase_end_s) is None:
            return waveform, parts
        ends_at = min(round(ends_s * recipe.rate_hz / recipe.channel.speed), len(waveform.samples))
        return waveform, (replace(parts[0], start_sample=min(parts[0].start_sample, ends_at), end_sample=ends_at),)

    def _render_speech(self, recipe: StimulusRecipe, seed: int) -> tuple[Waveform, tuple[Part, ...]]:
        """Wake phrase and query, at the level, through the room, with the noise, and through the channel."""
        rate = recipe.rate_hz
        assert not isinstance(recipe.query, Ambience)
        pieces = [(Role.QUERY, recipe.query)]
        if recipe.wake_phrase is not None:
            pieces.insert(0, (Role.WAKE_PHRASE, recipe.wake_phrase))
        lead = 0 if recipe.whole else round(LEAD_S * rate)
        listening = bool(recipe.lead_in_s or recipe.tail_s)
        gap = round(recipe.gap_ms * rate / 1000)
        placed_sounds: list[tuple[int, Samples]] = []
        parts: list[Part] = []
        for role, utterance in pieces:
            samples, start, end = self._cut_utterance(utterance, recipe)
            if parts:
                active_at = parts[-1].end_sample + gap
                parts.append(Part(Role.GAP, parts[-1].end_sample, active_at))
            else:
                active_at = max(lead + start, round(recipe.lead_in_s * rate))
            placed_sounds.append((active_at - start, samples))
            parts.append(Part(role, active_at, active_at + end - start, _text(utterance)))
        length = max(
            placed_sounds[-1][0] + len(placed_sounds[-1][1]) + lead, parts[-1].end_sample + round(recipe.tail_s * rate)
        )
        mix = np.zeros(length, dtype=np.float32)
        for position, samples in placed_sounds:
            mix[position : position + len(samples)] += samples
        waveform, level_dbfs = Waveform(mix, rate), recipe.level_dbfs
        if recipe.as_recorded:
            active = active_speech_level(waveform)
            level_dbfs = active.level_dbfs if active else level_dbfs
        else:
            waveform = at_level(waveform, level_dbfs, _label(recipe))
        # Checked before the noise, so that the advice fits what the user can change.
        if not recipe.whole:
            refuse_clipping(waveform, level_dbfs, _label(recipe), as_recorded=recipe.as_recorded)
        if recipe.placement is not None:
            speech_ends = len(waveform.samples) if recipe.whole else parts[-1].end_sample
            waveform, level_dbfs = _apply_placement(waveform, level_dbfs, recipe.placement, speech_ends, _label(recipe))
            length = len(waveform.samples)
            if not recipe.whole:
                room_label = f"{_label(recipe)} in the room {recipe.placement.label()}"
                refuse_clipping(waveform, level_dbfs, room_label, as_recorded=recipe.as_recorded)
        if listening:
            waveform = Waveform(_add_noise_floor(waveform.samples, seed), rate)
        if recipe.noise is None or recipe.noise.players:
            return channel.apply_channel(_limit_to_full_scale(waveform), recipe.channel), tuple(parts)
        margin = 0 if listening or recipe.whole else round(max(MARGIN_S, recipe.noise.ramp_s) * rate)
        noise = _noise_for_speech(recipe.noise, waveform, level_dbfs, parts, length + 2 * margin, seed)
        noisy_mix = _with_ramps(
            noise, recipe.noise.ramp_s, margin + parts[0].start_sample, margin + parts[-1].end_sample
        )
        noisy_mix[margin : margin + length] += waveform.samples
        loud = Waveform(noisy_mix, rate)
        if not recipe.whole:
            refuse_clipping(loud, level_dbfs, f"{_label(recipe)} with its noise", as_recorded=recipe.as_recorded)
        moved_parts = tuple(
            replace(part, start_sample=part.start_sample + margin, end_sample=part.end_sample + margin)
            for part in parts
        )
        return channel.apply_channel(_limit_to_full_scale(loud), recipe.channel), moved_parts

    def _add_player_noise(self, recipe: StimulusRecipe, rendered: RenderedStimulus) -> RenderedStimulus:
        """The stimulus with the noise that other loudspeakers play. Generated noise differs between them."""
        noise, main = recipe.noise, self._render(replace(recipe, opening=None))
        level, rate = active_speech_level(main.waveform), main.waveform.rate_hz
        assert noise is not None, recipe
        assert level is not None, recipe
        # An opening may have a gap, but neither a wake phrase nor a query of its own.
        first = next(part.start_sample for part in rendered.parts if part.role is main.parts[0].role)
        main_start, count = first - main.parts[0].start_sample, len(main.waveform.samples)
        as_heard, noise_by_player = rendered.waveform.samples.copy(), {}
        # The same recording from all players adds up by amplitude here; in a room, it adds up by power.
        share = len(noise.players) if noise.kind is NoiseKind.RECORDING else np.sqrt(len(noise.players))
        for number, (player, gain_db) in enumerate(noise.players):
            seed = int(main.sha256[:16], 16) + number
            player_noise = _noise_for_speech(noise, main.waveform, level.level_dbfs, main.parts, count, seed)
            ramped = _with_ramps(player_noise, noise.ramp_s, main.parts[0].start_sample, main.parts[-1].end_sample)
            loud = amplify(Waveform(ramped, rate), gain_db)
            refuse_clipping(loud, noise.dbfs(level.level_dbfs) + gain_db, f"the noise at {player}")
            track = np.zeros(len(as_heard), dtype=np.float32)
            track[main_start : main_start + count] = loud.samples
            noise_by_player[player] = Waveform(track, rate)
            as_heard[main_start : main_start + count] += ramped / np.float32(share)
        return replace(rendered, beside=noise_by_player, as_heard=Waveform(np.clip(as_heard, -1.0, 1.0), rate))

    def _render_opening(self, recipe: StimulusRecipe, opening: Opening) -> RenderedStimulus:
        """The opening, the stimulus, and the closing words: three stimuli in one. Their lead-ins overlap the pause."""
        phrase = recipe.query if recipe.wake_phrase is None else recipe.wake_phrase
        assert not isinstance(phrase, Ambience)
        quiet = replace(recipe, level_dbfs=opening.level_dbfs, noise=None, lead_in_s=0.0, tail_s=0.0, opening=None)
        if opening.voice is not None:
            quiet = replace(quiet, voice=opening.voice)

        def render_words(text: str) -> RenderedStimulus:
            query = SpokenText(text) if text else phrase
            return self.render(replace(quiet, query=query, wake_phrase=phrase if text else None, as_recorded=False))

        main, first = self.render(replace(recipe, opening=None)), render_words(opening.say)
        begins = first.parts[-1].end_sample + round(opening.pause_s * recipe.rate_hz) - main.parts[0].start_sample
        shift = max(0, -begins)
        placed_stimuli = [(shift, first, Role.OPENING), (shift + begins, main, None)]
        if opening.then:
            placed_stimuli.append(
                (shift + begins + len(main.waveform.samples), render_words(opening.then), Role.CLOSING)
            )
        mix = np.zeros(
            max(position + len(stimulus.waveform.samples) for position, stimulus, _ in placed_stimuli), dtype=np.float32
        )
        parts: list[Part] = []
        for position, stimulus, role in placed_stimuli:
            mix[position : position + len(stimulus.waveform.samples)] += stimulus.waveform.samples
            roles = {} if role is None else {Role.QUERY: Role.REQUEST, stimulus.parts[0].role: role}
            for part in stimulus.parts:
                start, end = part.start_sample + position, part.end_sample + position
                parts.append(Part(roles.get(part.role, part.role), start, end, part.text))
        waveform = Waveform(mix, recipe.rate_hz)
        refuse_clipping(waveform, max(recipe.level_dbfs, opening.level_dbfs), f"{_label(recipe)} with its opening")
        key = "|".join(stimulus.sha256 for _, stimulus, _ in placed_stimuli)
        return RenderedStimulus(waveform, tuple(parts), content_hash(key, waveform, tuple(parts)))

    def _render_ambience(self, ambience: Ambience, recipe: StimulusRecipe, seed: int) -> Waveform:
        """Ambient sound. Recordings and sayings get a noise floor."""
        samples = self._ambiences.make(
            ambience, recipe.rate_hz, recipe.level_dbfs, partial(self._render_saying, recipe)
        )
        return Waveform(samples if ambience.noise is not None else _add_noise_floor(samples, seed), recipe.rate_hz)

    def _render_saying(self, recipe: StimulusRecipe, saying: Saying) -> Samples:
        """A text at the recipe's level and rate, cached like the sound of a query."""
        spoken = StimulusRecipe(
            SpokenText(saying.text), None, saying.voice, level_dbfs=recipe.level_dbfs, rate_hz=recipe.rate_hz
        )
        return self.render(spoken).waveform.samples

    def _cut_utterance(self, utterance: Utterance, recipe: StimulusRecipe) -> tuple[Samples, int, int]:
        """An utterance at the recipe's rate and level, cut to its speech, and the span of the speech in it."""
        ends_at: int | None = None
        match utterance:
            case SpokenText(text=text):
                label, recorded = repr(text), False
                source = self.voice(recipe.voice.engine).speak(text, recipe.voice)
            case Recording(path=path, phrase_end_s=phrase_end_s):
                label, recorded = path, True
                source = read_recording(path)
                if phrase_end_s is not None:
                    ends_at = round(phrase_end_s * recipe.rate_hz / recipe.channel.speed)
        sound = channel.at_speed(at_rate(source, recipe.rate_hz), recipe.channel.speed)
        is_unchanged = recorded and recipe.as_recorded
        if is_unchanged:  # another rate lifts the peaks of a recording at full scale a little beyond it
            sound = Waveform(np.clip(sound.samples, -FULL_SCALE, FULL_SCALE), sound.rate_hz)
        else:
            sound = at_level(sound, recipe.level_dbfs, label)
        cut = cut_speech(sound, recorded=recorded, ends_at=ends_at, is_whole=is_unchanged)
        if cut is None:
            raise InputError(f"{label} contains no speech", remedy="Use another recording or text")
        return cut


def _check_ranges(recipe: StimulusRecipe) -> None:
    """Raises InputError that names all settings that are out of range."""
    problems = [
        f"{name} {exact(value)} is out of range ({exact(low)} to {exact(high)})"
        for name, value, low, high in (
            ("rate_hz", recipe.rate_hz, *RATES_HZ),
            ("gap_ms", recipe.gap_ms, 0, MAX_GAP_MS),
            ("level_dbfs", recipe.level_dbfs, -90.0, 0.0),
            ("lead_in_s", recipe.lead_in_s, 0.0, MAX_PAUSE_S),
            ("tail_s", recipe.tail_s, 0.0, MAX_PAUSE_S),
            ("noise.snr_db", (recipe.noise.snr_db if recipe.noise else None) or 0.0, -40.0, 100.0),
        )
        if not low <= value <= high
    ]
    if recipe.noise is not None and (recipe.noise.kind is NoiseKind.RECORDING) != bool(recipe.noise.path):
        problems.append("`noise.path` is required for `kind: recording`, and not allowed for other kinds")
    if problems:
        raise InputError("; ".join(problems), remedy="Correct the stimulus")


def _apply_placement(
    waveform: Waveform, level_dbfs: float, placement: Placement, speech_ends: int, label: str
) -> tuple[Waveform, float]:
    """A stimulus as the device hears it, and its active speech level there.

    It is as long as the stimulus, or until the last reverberation of its speech.
    """
    reverberant = apply_room(waveform, placement)
    reverberation = len(reverberant.samples) - len(waveform.samples)
    reverberant = Waveform(
        reverberant.samples[: max(len(waveform.samples), speech_ends + reverberation)], reverberant.rate_hz
    )
    if placement.room.level_at is LevelAt.DEVICE:
        reverberant = at_level(reverberant, level_dbfs, label)
    elif (active := active_speech_level(reverberant)) is not None:
        level_dbfs = active.level_dbfs
    return reverberant, level_dbfs


def _noise_for_speech(
    noise: NoiseSpec, speech: Waveform, level_dbfs: float, parts: Sequence[Part], count: int, seed: int
) -> Waveform:
    """Noise for speech of that level, which lies in the parts."""
    waveform = make_noise(noise, count, speech.rate_hz, noise.dbfs(level_dbfs), seed)
    if not noise.a_weighted:
        return waveform
    active_speech = Waveform(speech.samples[parts[0].start_sample : parts[-1].end_sample], speech.rate_hz)
    speech_weighting_db = a_weighting_of(active_speech) if noise.level_dbfs is None else 0.0
    return amplify(waveform, speech_weighting_db - a_weighting_of(waveform))


def _limit_to_full_scale(waveform: Waveform) -> Waveform:
    """The waveform, turned down as a whole if it exceeds full scale."""
    peak = float(np.abs(waveform.samples).max(initial=0.0))
    return waveform if peak <= 1.0 else Waveform((waveform.samples / peak).astype(np.float32), waveform.rate_hz)


def _with_ramps(noise: Waveform, ramp_s: float, first: int, last: int) -> Samples:
    """A copy that rises linearly for `ramp_s` up to the sample `first`, and falls from `last` on."""
    samples = noise.samples.copy()
    if ramp := round(ramp_s * noise.rate_hz):
        index = np.arange(len(samples))
        gain = np.clip(np.minimum((index - (first - ramp)) / ramp, ((last + ramp) - index) / ramp), 0.0, 1.0)
        samples *= gain.astype(np.float32)
    return samples


def _add_noise_floor(samples: Samples, seed: int) -> Samples:
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

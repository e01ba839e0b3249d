"""One file through an engine: its detections or words, or why it is rejected."""

from __future__ import annotations

import hashlib
import math
import operator
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import numpy.typing as npt

from harness.base.ports import OfflineEngine, ScoresSound, ScoreStream, SpotsPhrases, Understands
from harness.engines.settings import LEAD_IN
from harness.model.errors import DeviceError, EngineError, HarnessError
from harness.model.numbers import exact, fixed, number
from harness.model.offline import (
    INLINE,
    EngineFacts,
    EngineKind,
    Evaluation,
    FileOutcome,
    ListedFile,
    ListKind,
    OfflineSpot,
    RejectReason,
    Said,
    ScoreTrack,
    SpotRule,
)
from harness.model.understanding import JOINT, Slot
from harness.offline.score_cache import ScoreCache
from harness.sound.level import quiet_end_s
from harness.sound.sound_files import ConstantStretches, OpenSound, UnusableSound, open_file, open_sound
from harness.sound.sound_stores import local_file

if TYPE_CHECKING:
    from harness.model.stimulus import SoundCondition, StimulusRecipe
    from harness.sound.stimuli.renderer import Renderer

MAX_BLOCK_SAMPLES = 1 << 19
"""Most samples that an engine gets at once, so that its intermediate results take only some megabytes."""

MAX_TEXT_CHARS = 1 << 20
"""Longest phrase or transcript that an engine may report."""
_MAX_QUIET_S = 10.0
"""Seconds at the end of a file in which the length of the quiet is measured."""
MAX_POSITION = 1 << 53
"""Largest position of a detection, in samples: up to here a float holds every integer exactly."""
_REMEDY = "Report this to the author of the engine: positions must be whole samples of the file, and scores finite"
_Detection = TypeVar("_Detection", bound=OfflineSpot | Said)
MAX_UNDERSTOOD_S = 3600.0
"""A recogniser gets a whole file at once. An hour at 16 kHz is 115 MB of samples, and several times that inside."""
MAX_TEXT_BYTES = 1 << 20
"""Longest reference, in bytes. A longer file is the wrong file: an hour of speech has about 60 kB of text."""

MIN_SPOT_STEPS = 1 + 1e-9
"""Least distance between the beginnings of two spots, in steps of scores. It is more than one step, so that scores in a
row above the threshold are one spot."""
_LABEL_BEYOND_S = 0.1
"""A label may end this much later than its recording, since labelling tools round times."""
_BYTE_ORDER_MARK = "\ufeff"


def crossings(scores: npt.NDArray[np.float32], threshold: float, refractory_steps: float) -> npt.NDArray[np.intp]:
    """Indices at which a spot begins: the score is above the threshold, and the last score above it lies at least
    `refractory_steps` steps back. The first score above the threshold always begins a spot."""
    above = (scores > threshold).nonzero()[0]
    if not len(above):
        return above
    begins_spot = np.empty(len(above), dtype=bool)
    begins_spot[0] = True
    np.greater_equal(np.diff(above), max(refractory_steps, MIN_SPOT_STEPS), out=begins_spot[1:])
    return above[begins_spot]


def spots_of_track(track: ScoreTrack, rule: SpotRule) -> tuple[OfflineSpot, ...]:
    """The spots of a track. Each ends at the sample at which its score was known, and begins `spot_samples` earlier (at
    the earliest where the sound begins)."""
    indices = crossings(track.scores, rule.threshold, rule.refractory_samples / track.step)
    if not len(indices):  # most files of a list without the phrase
        return ()
    ends = track.first_end + indices * track.step
    return tuple(
        OfflineSpot(track.phrase, max(0, int(end) - rule.spot_samples), int(end), float(track.scores[index]))
        for index, end in zip(indices, ends, strict=True)
    )


def split_blocks(blocks: Iterable[npt.NDArray[np.int16]]) -> Iterator[npt.NDArray[np.int16]]:
    """Divides blocks into blocks of at most MAX_BLOCK_SAMPLES samples."""
    for block in blocks:
        for start in range(0, len(block), MAX_BLOCK_SAMPLES):
            yield block[start : start + MAX_BLOCK_SAMPLES]


def compute_scores(engine: ScoresSound, blocks: Iterable[npt.NDArray[np.int16]]) -> tuple[ScoreTrack, ...]:
    """The scores of a whole sound from fresh state, one track per phrase."""
    stream: ScoreStream = engine.begin()
    parts: list[tuple[ScoreTrack, ...]] = []
    for index, block in enumerate(split_blocks(blocks)):
        if index:
            parts.append(stream.take(flush=False))
        stream.feed(block)
    parts.append(stream.take(flush=True))
    return join_tracks(parts)


def join_tracks(parts: Iterable[tuple[ScoreTrack, ...]]) -> tuple[ScoreTrack, ...]:
    """Joins successive tracks to one per phrase. Raises EngineError if they leave gaps or overlap."""
    tracks_by_phrase: dict[str, list[ScoreTrack]] = {}
    for tracks in parts:
        for track in tracks:
            pieces_so_far = tracks_by_phrase.setdefault(track.phrase, [])
            if not len(track.scores):
                continue
            if pieces_so_far:
                previous = pieces_so_far[-1]
                expected_end = previous.first_end + previous.step * len(previous.scores)
                if (track.first_end, track.step) != (expected_end, previous.step):
                    raise EngineError(
                        f"the engine's scores for {track.phrase!r} continue at sample {track.first_end} "
                        f"instead of {expected_end}, so they leave a gap or overlap"
                    )
            pieces_so_far.append(track)
    return tuple(_concatenate(tracks) for tracks in tracks_by_phrase.values() if tracks)


def _concatenate(tracks: Sequence[ScoreTrack]) -> ScoreTrack:
    """Successive tracks of one phrase as one."""
    first = tracks[0]
    if len(tracks) == 1:
        return first
    return replace(first, scores=np.concatenate([track.scores for track in tracks]))


def spots_in(tracks: Iterable[ScoreTrack], rule: SpotRule) -> tuple[OfflineSpot, ...]:
    """The spots of all phrases, in the order in which they were detected."""
    return sort_spots(spot for track in tracks for spot in spots_of_track(track, rule))


def detect_spots(
    engine: OfflineEngine, blocks: Iterable[npt.NDArray[np.int16]]
) -> tuple[tuple[OfflineSpot, ...], tuple[ScoreTrack, ...]]:
    """The spots in a whole sound from fresh state, and the scores if the engine has any.

    Raises EngineError for an engine without wake phrases.
    """
    if isinstance(engine, ScoresSound):
        rule, tracks = _rule_of(engine.facts), compute_scores(engine, blocks)
        return spots_in(tracks, rule), tracks
    if not isinstance(engine, SpotsPhrases):
        raise EngineError("the engine has none of the three interfaces (scores, detections, transcripts)")
    stream = engine.listen()
    spots: list[OfflineSpot] = []
    for block in split_blocks(blocks):
        stream.feed(block)
        spots += map(check_detection, stream.take(flush=False))
    spots += map(check_detection, stream.take(flush=True))
    return sort_spots(spots), ()


def _rule_of(facts: EngineFacts) -> SpotRule:
    if facts.rule is None:
        raise EngineError("the engine has scores but no rule that turns them into detections")
    return facts.rule


def check_detection(detection: _Detection) -> _Detection:
    """The same detection with Python's numbers instead of numpy's, since a journal stores those.

    Raises EngineError for values that cannot be right, such as a start after the end.
    """
    text = detection.phrase if isinstance(detection, OfflineSpot) else detection.text
    try:
        start, end = operator.index(detection.start), operator.index(detection.end)
        score = None if detection.score is None else float(detection.score)
    except (TypeError, ValueError) as error:
        raise EngineError(
            f"the engine reported a position or score that is not a number: {error}", remedy=_REMEDY
        ) from error
    if not isinstance(text, str) or len(text) > MAX_TEXT_CHARS:
        raise EngineError("the engine reported a phrase that is not text, or is too long", remedy=_REMEDY)
    if not 0 <= start <= end < MAX_POSITION or (score is not None and not math.isfinite(score)):
        span = f"from sample {exact(start, 15)} to {exact(end, 15)}"
        problem = f"the engine reported an impossible detection: {span}, score {score}"
        raise EngineError(problem, remedy=_REMEDY)
    if isinstance(detection, Said) and not _is_frame(detection):
        raise EngineError(
            "the engine reported an invalid frame: a frame has slots, and sorted, unique intents without #",
            remedy=_REMEDY,
        )
    return replace(detection, start=start, end=end, score=score)


def _is_frame(answer: Said) -> bool:
    """Whether intents are texts, sorted and each once, and slots are of type Slot. True for a recogniser of words,
    which has neither."""
    intents, slots = answer.intents or (), answer.slots or ()
    if not all(isinstance(intent, str) and intent.strip() and JOINT not in intent for intent in intents):
        return False
    return all(isinstance(slot, Slot) for slot in slots) and list(intents) == sorted(set(intents))


def sort_spots(spots: Iterable[OfflineSpot]) -> tuple[OfflineSpot, ...]:
    return tuple(sorted(spots, key=lambda spot: (spot.end, spot.start, spot.phrase)))


class SoundInCondition:
    """A file in a sound condition, at the engine's rate: the samples of `Renderer.render`, as 16 bits.

    - sha256: hash of the recipe, not of samples.
    - assumed: what was assumed about the length of the file, "" for nothing.
    - stored_length: its length in samples, if that is stored with its scores; the file is then rendered only if
      `blocks` is called. None if it is not stored.
    - samples: that length, or the length of the rendering.
    """

    def __init__(
        self, renderer: Renderer, recipe: StimulusRecipe, key: str, stored_length: int | None, assumed: str = ""
    ) -> None:
        self._renderer, self._recipe, self.sha256, self.assumed = renderer, recipe, key, assumed
        self.rate_hz = recipe.rate_hz
        self._rendering = self._render() if stored_length is None else None
        self.samples = stored_length or 0
        if self._rendering is not None:
            self.samples = len(self._rendering)

    def blocks(self) -> Iterator[npt.NDArray[np.int16]]:
        yield self._rendering if self._rendering is not None else self._render()

    def _render(self) -> npt.NDArray[np.int16]:
        from harness.devices.active_play import to_pcm  # imported here, since conditions are rarely used

        return to_pcm(self._renderer.render(self._recipe).waveform, self.rate_hz)


class PaddedSound:
    """A sound with silence after it, which only the engine hears.

    - samples: length without that silence.
    - sha256: hash of the sound and the silence; "" if the hash of the sound is not known.
    """

    def __init__(self, sound: OpenSound | SoundInCondition, tail_s: float, engine_rate_hz: int) -> None:
        self._sound, self._tail = sound, np.zeros(round(tail_s * engine_rate_hz), np.int16)
        self.samples, self.rate_hz, self.assumed = sound.samples, sound.rate_hz, sound.assumed
        self.sha256 = ""
        if sound.sha256:
            key = f"{sound.sha256} with a tail of {len(self._tail)} samples"
            self.sha256 = hashlib.sha256(key.encode()).hexdigest()

    def blocks(self) -> Iterator[npt.NDArray[np.int16]]:
        yield from self._sound.blocks()
        yield self._tail


_PlayedSound = OpenSound | SoundInCondition | PaddedSound
_WITH_TAIL = (ListKind.INV, ListKind.REFERENCED)


def _compares_tail(file: ListedFile) -> bool:
    """Whether the tail of a file is measured even if something was detected in it. Misses are compared with such files.
    A part of them is enough, since measuring means reading the file once more. The choice is the same for any number
    of workers and shards."""
    return file.number < 100 or file.number % 17 == 0


class FilePlayer:
    """An engine that plays files one by one, each from fresh state.

    - cache: where scores are stored; None for an engine without them.
    - cached_s, cached_files: seconds of audio and number of files whose stored scores were used.
    """

    def __init__(self, engine: OfflineEngine, evaluation: Evaluation, cache: ScoreCache | None = None) -> None:
        self._engine, self._evaluation, self._cache = engine, evaluation, cache
        self._facts = engine.facts
        # A protocol check takes as long as opening a file.
        self._scores = engine if isinstance(engine, ScoresSound) else None
        self._lead_in_ms = float(dict(evaluation.task.settings).get(LEAD_IN.name, self._facts.lead_in_ms))
        self.cached_s = 0.0
        self.cached_files = 0
        self._tries = 1 + getattr(engine, "more_tries", 0)
        self._renderer: Renderer | None = None

    def play(self, file: ListedFile) -> FileOutcome:
        """Plays a file and returns its outcome. For an unusable file, and after one of the harness's own errors (such
        as EngineError), it is a rejection. Its cpu_s covers this process and its threads.

        Raises DeviceError and all other exceptions of an engine, since it cannot be trusted afterwards.
        """
        if file.rejected is not None:
            return file.outcome_rejected(file.rejected)
        began_s = time.process_time()
        for tries_left in reversed(range(self._tries)):
            try:
                return self._play_once(file, began_s)
            except UnusableSound as unusable:
                return file.outcome_rejected(unusable.reason, unusable.detail)
            except DeviceError:
                raise  # the device is gone, so no later file would do better
            except HarnessError as error:
                # A pulled cable is not a fault of the file.
                if not tries_left:
                    return file.outcome_rejected(RejectReason.ERROR, error=str(error))
            except OSError as error:
                return file.outcome_rejected(RejectReason.UNREADABLE, error.strerror or str(error))
        raise AssertionError("a file is tried at least once")

    def _demand_length(self, file: ListedFile, sound: _PlayedSound) -> None:
        """Raises UnusableSound for a file that is empty, shorter than its lead-in, or shorter than its labels say."""
        if not sound.samples:
            raise UnusableSound(RejectReason.EMPTY, "")
        length_s = sound.samples / sound.rate_hz
        if file.kind is ListKind.INV and sound.samples * 1000 < self._lead_in_ms * sound.rate_hz:
            length = fixed(length_s * 1000, 0, "ms")
            raise UnusableSound(RejectReason.SHORT, f"{length}, but the lead-in is {exact(self._lead_in_ms)} ms")
        labels_end_s = max((label.end_s for label in file.labels), default=0.0)
        if labels_end_s > length_s + _LABEL_BEYOND_S:
            beyond = f"a label ends at {exact(labels_end_s)} s, but the recording at {exact(length_s)} s"
            raise UnusableSound(RejectReason.REFERENCE, beyond)

    def _play_once(self, file: ListedFile, began_s: float) -> FileOutcome:
        """One attempt at a file. began_s: processor time of this process when the first attempt began."""
        facts, evaluation = self._facts, self._evaluation
        condition = evaluation.condition(file.number)
        hashed = condition is None and (evaluation.hashes or self._cache is not None)
        with open_sound(file.path, facts.rate_hz, resample=evaluation.resample, hashed=hashed) as opened:
            opened.constant = constant = ConstantStretches(_stretches(file, opened, condition))
            sound = self._played_sound(file, opened, constant, condition)
            self._demand_length(file, sound)
            reference = read_reference(file.reference) if file.reference else ""
            spots: tuple[OfflineSpot, ...] = ()
            transcript: Said | None = None
            if self._scores is not None:
                spots = self._scored_spots(self._scores, sound, constant, file)
            elif isinstance(self._engine, Understands) and not isinstance(self._engine, SpotsPhrases):
                transcript = _transcribe(self._engine, evaluation, sound, facts.rate_hz)
            else:
                spots, _ = detect_spots(self._engine, sound.blocks())
            _demand_no_silence(file, constant)
            cpu_s = time.process_time() - began_s
            # The tail explains misses, so files without a detection need it, and some others for comparison.
            needs_tail = transcript is None and (not spots or _compares_tail(file))
            return FileOutcome(
                kind=file.kind,
                number=file.number,
                samples=sound.samples,
                rate_hz=sound.rate_hz,
                engine_rate_hz=facts.rate_hz,
                spots=spots,
                said=transcript,
                reference=reference,
                cpu_s=cpu_s,
                sha256=sound.sha256,
                labels=file.labels,
                detail=sound.assumed,
                tail_ms=self._tail_ms(file) if needs_tail else None,
                silent_labels=tuple(stretch - 1 for stretch in sorted(constant.values) if stretch),
            )

    def _tail_ms(self, file: ListedFile) -> int | None:
        """Length of the quiet at the end of a file, in ms. None if it does not matter for this file, or cannot be
        measured."""
        facts, evaluation = self._facts, self._evaluation
        if file.kind not in _WITH_TAIL or facts.kind is EngineKind.TRANSCRIPT or evaluation.tail_s:
            return None
        tail_samples, tail_length = np.zeros(0, np.int16), round(_MAX_QUIET_S * facts.rate_hz)
        with open_sound(file.path, facts.rate_hz, resample=evaluation.resample) as sound:
            for block in sound.blocks():
                tail_samples = np.concatenate([tail_samples, block[-tail_length:]])[-tail_length:]
        quiet_s = quiet_end_s(tail_samples, facts.rate_hz)
        return None if quiet_s is None else round(quiet_s * 1000)

    def _played_sound(
        self, file: ListedFile, opened: OpenSound, constant: ConstantStretches, condition: SoundCondition | None
    ) -> _PlayedSound:
        """The sound that the engine hears: the open file itself, or rendered in its condition; with the tail.

        constant: which stretches of the file itself are constant (no sound)."""
        evaluation = self._evaluation
        sound: OpenSound | SoundInCondition = opened
        if condition is not None:
            # The file was opened first: it is usable in a condition only if it is usable as it is.
            constant.read(opened.blocks())
            _demand_no_silence(file, constant)
            sound = self._in_condition(file, condition, opened.assumed)
        if evaluation.tail_s and file.kind in _WITH_TAIL:
            return PaddedSound(sound, evaluation.tail_s, self._facts.rate_hz)
        return sound

    def _in_condition(self, file: ListedFile, condition: SoundCondition, assumed: str) -> SoundInCondition:
        """A file rendered in its condition. assumed: what was assumed about its length."""
        facts = self._facts
        if self._renderer is None:
            from harness.sound.stimuli.renderer import Renderer  # imported here: slow

            self._renderer = Renderer(None)
        recipe = condition.recipe(local_file(file.path) or file.path, facts.rate_hz)
        key = self._renderer.key(recipe)
        stored_length = None
        if self._cache is not None and self._scores is not None:
            stored_length = self._cache.length(facts.fingerprint, key)
        return SoundInCondition(self._renderer, recipe, key, stored_length, assumed)

    def _scored_spots(
        self, engine: ScoresSound, sound: _PlayedSound, constant: ConstantStretches, file: ListedFile
    ) -> tuple[OfflineSpot, ...]:
        """The spots of a sound from its stored scores, or from new ones, which are then stored."""
        rule, facts, cache = _rule_of(self._facts), self._facts, self._cache
        tracks = None if cache is None else cache.tracks(facts, sound.sha256)
        if tracks is None:
            tracks = compute_scores(engine, sound.blocks())
            is_rejected = 0 in constant.values and _wants_sound(file)
            if cache is not None and not is_rejected:
                cache.put(facts.fingerprint, sound.sha256, tracks, sound.samples, sound.rate_hz)
            return spots_in(tracks, rule)
        self.cached_s += sound.samples / sound.rate_hz
        self.cached_files += 1
        if not constant.decided and _wants_sound(file):
            constant.read(sound.blocks())  # the scores were stored, so that the sound was not read
        return spots_in(tracks, rule)


def _wants_sound(file: ListedFile) -> bool:
    """Whether a file without sound would count as a miss."""
    return file.kind in (ListKind.INV, ListKind.REFERENCED) or bool(file.labels)


def _demand_no_silence(file: ListedFile, constant: ConstantStretches) -> None:
    """Raises UnusableSound if all samples of a file are equal, and it would count as a miss. To be called once its
    blocks were read."""
    value = constant.values.get(0)
    if value is not None and _wants_sound(file):
        raise UnusableSound(RejectReason.SILENT, f"every sample is {value}")


def _stretches(file: ListedFile, sound: OpenSound, condition: SoundCondition | None) -> list[tuple[int, int]]:
    """Start and end of the whole file, then those of its labels, in samples of the file. condition: to whose speed the
    times of the labels were adapted; None for the file as it is."""
    speed = 1.0 if condition is None else condition.channel.speed
    label_stretches = [
        (round(label.start_s * speed * sound.rate_hz), round(label.end_s * speed * sound.rate_hz))
        for label in file.labels
    ]
    return [(0, sound.samples), *label_stretches]


def _transcribe(engine: Understands, evaluation: Evaluation, sound: _PlayedSound, rate_hz: int) -> Said | None:
    """What the engine understands in a whole sound, with positions in that sound even if its quiet ends are cut off.
    None for no speech."""
    seconds = sound.samples / sound.rate_hz
    if seconds > MAX_UNDERSTOOD_S:
        raise EngineError(
            f"the file is {number(seconds / 3600)} h long; "
            f"a recogniser accepts {exact(MAX_UNDERSTOOD_S / 3600)} h at most",
            remedy="Split it into shorter files",
        )
    blocks = list(sound.blocks())
    samples = blocks[0] if len(blocks) == 1 else np.concatenate([*blocks, np.zeros(0, np.int16)])
    start = 0
    if evaluation.vad:
        from harness.engines import voice_activity  # imported here, since it takes a second and is rarely used

        if rate_hz != voice_activity.RATE_HZ:
            raise EngineError(f"-a needs {voice_activity.RATE_HZ} Hz, but the engine uses {rate_hz} Hz")
        speech = voice_activity.trim_silence(samples)
        if speech is None:
            return None
        samples, start = speech
    transcript = engine.understand(samples)
    if transcript is None:
        return None
    transcript = check_detection(transcript)
    if not start:
        return transcript
    return replace(transcript, start=transcript.start + start, end=transcript.end + start)


def read_reference(path: str) -> str:
    """The words of a reference: UTF-8, without a byte order mark, with runs of white space as one blank.

    path: path of the text, or INLINE followed by the text itself. Raises UnusableSound with the reason REFERENCE if the
    file cannot be read, is not text, is empty or is too long.
    """
    if path.startswith(INLINE):
        return path.removeprefix(INLINE)
    try:
        with open_file(path) as file:
            content = file.read(MAX_TEXT_BYTES + 1)
    except UnusableSound as error:
        raise _unusable_reference(path, error.detail) from error
    except OSError as error:
        raise _unusable_reference(path, error.strerror or str(error)) from error
    if len(content) > MAX_TEXT_BYTES:
        raise _unusable_reference(path, f"it is longer than {MAX_TEXT_BYTES >> 20} MiB")
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _unusable_reference(path, f"it is not UTF-8 at byte {error.start}") from error
    if "\0" in text:
        raise _unusable_reference(path, "it is not text (it contains a NUL)")
    words = " ".join(text.removeprefix(_BYTE_ORDER_MARK).split())
    if not words:
        raise _unusable_reference(path, "it is empty")
    return words


def _unusable_reference(path: str, detail: str) -> UnusableSound:
    return UnusableSound(RejectReason.REFERENCE, f"{path}: {detail}")

"""One file through an engine: what is found in it, or why it is no use."""

from __future__ import annotations

import math
import operator
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TypeGuard, TypeVar

import numpy as np
import numpy.typing as npt

from harness.base.ports import OfflineEngine, ScoresSound, ScoreStream, SpotsPhrases, Understands
from harness.engines.settings import LEAD_IN
from harness.model.errors import DeviceError, EngineError, HarnessError
from harness.model.offline import (
    EngineFacts,
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
from harness.offline.score_cache import ScoreCache
from harness.sound.sound_files import OpenSound, UnusableSound, open_file, open_sound


def crossings(scores: npt.NDArray[np.float32], threshold: float, refractory_steps: float) -> npt.NDArray[np.intp]:
    """Indices at which a spot begins: the score is above the threshold, and the last one above it was at least
    `refractory_steps` steps before. The first score above it always begins one: nothing starts armed.

    A detector that stays above its threshold has said one thing, once.
    """
    above = np.flatnonzero(scores > threshold)
    if not len(above):
        return above
    fresh = np.empty(len(above), dtype=bool)
    fresh[0] = True
    np.greater_equal(np.diff(above), max(refractory_steps, 1 + 1e-9), out=fresh[1:])
    return above[fresh]


def spots(track: ScoreTrack, rule: SpotRule) -> tuple[OfflineSpot, ...]:
    """The spots of a track. Each ends where its score was known and begins `spot_samples` before, or with the sound."""
    found = crossings(track.scores, rule.threshold, rule.refractory_samples / track.step)
    ends = track.first_end + found * track.step
    return tuple(
        OfflineSpot(track.phrase, max(0, int(end) - rule.spot_samples), int(end), float(track.scores[index]))
        for index, end in zip(found, ends, strict=True)
    )


LARGEST_BLOCK = 1 << 19
"""Samples that an engine is given at once: what it makes of them in between stays within some megabytes."""

LONGEST_TEXT = 1 << 20
FARTHEST = 1 << 53
"""Samples; a number that a float still holds exactly."""
_REMEDY = "Places are whole samples of the file, scores finite: tell who made the engine"
_Found = TypeVar("_Found", bound=OfflineSpot | Said)


def pieces(blocks: Iterable[npt.NDArray[np.int16]]) -> Iterator[npt.NDArray[np.int16]]:
    """The same samples, no block longer than LARGEST_BLOCK."""
    for block in blocks:
        for start in range(0, len(block), LARGEST_BLOCK):
            yield block[start : start + LARGEST_BLOCK]


def scores_of(engine: ScoresSound, blocks: Iterable[npt.NDArray[np.int16]]) -> tuple[ScoreTrack, ...]:
    """The scores of sound that begins afresh and ends with the last block, one track a phrase."""
    stream: ScoreStream = engine.begin()
    parts: list[tuple[ScoreTrack, ...]] = []
    for block in pieces(blocks):
        stream.feed(block)
        parts.append(stream.take(flush=False))
    parts.append(stream.take(flush=True))
    return joined(parts)


def joined(parts: Iterable[tuple[ScoreTrack, ...]]) -> tuple[ScoreTrack, ...]:
    """Tracks that were taken one after the other as one a phrase; EngineError where they do not join."""
    of_phrase: dict[str, list[ScoreTrack]] = {}
    for tracks in parts:
        for track in tracks:
            pieces_so_far = of_phrase.setdefault(track.phrase, [])
            if not len(track.scores):
                continue
            if pieces_so_far:
                before = pieces_so_far[-1]
                due = before.first_end + before.step * len(before.scores)
                if (track.first_end, track.step) != (due, before.step):
                    raise EngineError(
                        f"the engine's scores for {track.phrase!r} go on at sample {track.first_end} "
                        f"and not at {due}, where they were left"
                    )
            pieces_so_far.append(track)
    return tuple(
        ScoreTrack(phrase, np.concatenate([one.scores for one in found]), found[0].first_end, found[0].step)
        for phrase, found in of_phrase.items()
        if found
    )


def spots_in(tracks: Iterable[ScoreTrack], rule: SpotRule) -> tuple[OfflineSpot, ...]:
    """The spots of all phrases, in the order in which they were known."""
    return in_order(spot for track in tracks for spot in spots(track, rule))


def spots_of(engine: SpotsPhrases, blocks: Iterable[npt.NDArray[np.int16]]) -> tuple[OfflineSpot, ...]:
    """What an engine without scores spots in sound that begins afresh and ends with the last block."""
    stream = engine.listen()
    found: list[OfflineSpot] = []
    for block in pieces(blocks):
        stream.feed(block)
        found += map(checked, stream.take(flush=False))
    found += map(checked, stream.take(flush=True))
    return in_order(found)


def checked(found: _Found) -> _Found:
    """What an engine says of a place in the sound, in numbers that a journal takes, such as numpy's are not.

    EngineError where it cannot be: every plug-in's answers go on from here to where nobody expects such a thing.
    """
    text = found.phrase if isinstance(found, OfflineSpot) else found.text
    try:
        start, end = operator.index(found.start), operator.index(found.end)
        score = None if found.score is None else float(found.score)
    except (TypeError, ValueError) as error:
        raise EngineError(f"the engine tells a place or a score that is no number: {error}", remedy=_REMEDY) from error
    if not isinstance(text, str) or len(text) > LONGEST_TEXT:
        raise EngineError("the engine tells a phrase that is no text, or none of sensible length", remedy=_REMEDY)
    if not 0 <= start <= end < FARTHEST or (score is not None and not math.isfinite(score)):
        what = f"the engine tells what cannot be: from sample {start:.15g} to {end:.15g}, score {score}"
        raise EngineError(what, remedy=_REMEDY)
    return replace(found, start=start, end=end, score=score)


def in_order(found: Iterable[OfflineSpot]) -> tuple[OfflineSpot, ...]:
    return tuple(sorted(found, key=lambda spot: (spot.end, spot.start, spot.phrase)))


LONGEST_UNDERSTOOD_S = 3600.0
"""A recogniser is given a whole file at once: an hour at 16 kHz is 115 MB of samples, and several times that inside."""


def evaluate_file(
    engine: OfflineEngine, evaluation: Evaluation, file: ListedFile, cache: ScoreCache | None = None
) -> FileOutcome:
    """What came of a file; the engine's state begins afresh.

    A file that is no use, and an error of ours in it (EngineError, above all), are a rejection. A DeviceError, and what
    else an engine raises, is the caller's: the engine is not to be trusted afterwards. cpu_s is of this process and
    its threads.
    """
    began_s = time.process_time()
    outcome = _outcome(engine, evaluation, file, cache, began_s)
    # A device whose cable was pulled says nothing about the file that it was hearing.
    for _ in range(getattr(engine, "more_tries", 0)):
        if outcome.rejected is not RejectReason.ERROR:
            break
        outcome = _outcome(engine, evaluation, file, cache, began_s)
    return outcome


def rejected(file: ListedFile, reason: RejectReason, detail: str = "", error: str = "") -> FileOutcome:
    """The outcome of a file that is out of all figures; detail is for people, error makes an ERROR line."""
    return FileOutcome(file.kind, file.number, rejected=reason, detail=detail, error=error)


def lead_in_ms(evaluation: Evaluation, facts: EngineFacts) -> float:
    """The one that was set, or the engine's own."""
    return float(dict(evaluation.task.settings).get(LEAD_IN.name, facts.lead_in_ms))


def too_short(sound: OpenSound, file: ListedFile, evaluation: Evaluation, facts: EngineFacts) -> str:
    """Why an in-vocabulary file is too short for the lead-in; "" when it is long enough."""
    if file.kind is not ListKind.INV:
        return ""
    needed_ms = lead_in_ms(evaluation, facts)
    if sound.samples * 1000 >= needed_ms * sound.rate_hz:
        return ""
    return f"{sound.samples / sound.rate_hz * 1000:.0f} ms, and the lead-in is {needed_ms:g} ms"


def _outcome(
    engine: OfflineEngine, evaluation: Evaluation, file: ListedFile, cache: ScoreCache | None, began_s: float
) -> FileOutcome:
    if file.rejected is not None:
        return rejected(file, file.rejected)
    facts = engine.facts
    try:
        hashed = evaluation.hashes or cache is not None
        with open_sound(file.path, facts.rate_hz, resample=evaluation.resample, hashed=hashed) as sound:
            short = too_short(sound, file, evaluation, facts)
            if not sound.samples:
                return rejected(file, RejectReason.EMPTY)
            if short:
                return rejected(file, RejectReason.SHORT, short)
            reference = read_reference(file.reference) if file.reference else ""
            spots, said = _heard(engine, evaluation, sound, cache)
            return FileOutcome(
                file.kind,
                file.number,
                samples=sound.samples,
                rate_hz=sound.rate_hz,
                engine_rate_hz=facts.rate_hz,
                spots=spots,
                said=said,
                reference=reference,
                cpu_s=time.process_time() - began_s,
                sha256=sound.sha256,
            )
    except UnusableSound as unusable:
        return rejected(file, unusable.reason, unusable.detail)
    except DeviceError:
        raise  # the device is gone for good: no file after this one would fare better
    except HarnessError as error:
        return rejected(file, RejectReason.ERROR, error=str(error))
    except OSError as error:
        return rejected(file, RejectReason.UNREADABLE, error.strerror or str(error))


_OF_SCORES: dict[type, bool] = {}


def _scores(engine: object) -> TypeGuard[ScoresSound]:
    """Asked of each class once: looking at a protocol takes as long as opening a file."""
    kind = type(engine)
    if kind not in _OF_SCORES:
        _OF_SCORES[kind] = isinstance(engine, ScoresSound)
    return _OF_SCORES[kind]


def _heard(
    engine: OfflineEngine, evaluation: Evaluation, sound: OpenSound, cache: ScoreCache | None
) -> tuple[tuple[OfflineSpot, ...], Said | None]:
    facts = engine.facts
    if _scores(engine):
        if facts.rule is None:
            raise EngineError("the engine has scores and does not say what of them is a spot")
        tracks = cache.get(facts.fingerprint, sound.sha256) if cache is not None else None
        if tracks is None:
            tracks = scores_of(engine, sound.blocks())
            if cache is not None:
                cache.put(facts.fingerprint, sound.sha256, tracks, sound.samples, sound.rate_hz)
        return spots_in(tracks, facts.rule), None
    if isinstance(engine, SpotsPhrases):
        return spots_of(engine, sound.blocks()), None
    if isinstance(engine, Understands):
        return (), _understood(engine, evaluation, sound, facts.rate_hz)
    raise EngineError("the engine neither scores, nor spots, nor understands: it is no engine for evaluation")


def _understood(engine: Understands, evaluation: Evaluation, sound: OpenSound, rate_hz: int) -> Said | None:
    seconds = sound.samples / sound.rate_hz
    if seconds > LONGEST_UNDERSTOOD_S:
        raise EngineError(
            f"the file is {seconds / 3600:.1f} h long, and a recogniser is given {LONGEST_UNDERSTOOD_S / 3600:g} h "
            "at most at once",
            remedy="Cut it into pieces",
        )
    blocks = list(sound.blocks())
    samples = blocks[0] if len(blocks) == 1 else np.concatenate([*blocks, np.zeros(0, np.int16)])
    if not evaluation.vad:
        said = engine.understand(samples)
        return checked(said) if said is not None else None
    from harness.engines import voice_activity  # here, since it takes a second to import, and few ask for it

    if rate_hz != voice_activity.RATE_HZ:
        raise EngineError(f"silence is cut off at {voice_activity.RATE_HZ} Hz, and the engine listens at {rate_hz} Hz")
    spoken = voice_activity.trimmed(samples)
    if spoken is None:
        return None
    part, start = spoken
    said = engine.understand(part)
    said = checked(said) if said is not None else None
    return replace(said, start=said.start + start, end=said.end + start) if said is not None else None


LONGEST_BYTES = 1 << 20
"""Of a reference; a longer one is the wrong file (an hour of speech has some 60 kB)."""

_BYTE_ORDER_MARK = "\ufeff"


def read_reference(path: str) -> str:
    """The words of a reference: UTF-8, without a byte order mark, every run of white space one blank.

    UnusableSound with REFERENCE when there is none: a file that cannot be read, is no text, is empty or too long.
    """
    try:
        with open_file(path) as file:
            content = file.read(LONGEST_BYTES + 1)
    except UnusableSound as error:
        raise _refused(path, error.detail) from error
    except OSError as error:
        raise _refused(path, error.strerror or str(error)) from error
    if len(content) > LONGEST_BYTES:
        raise _refused(path, f"it is longer than {LONGEST_BYTES >> 20} MiB")
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _refused(path, f"it is not UTF-8 at byte {error.start}") from error
    if "\0" in text:
        raise _refused(path, "it is no text (a NUL stands in it)")
    words = " ".join(text.removeprefix(_BYTE_ORDER_MARK).split())
    if not words:
        raise _refused(path, "it is empty")
    return words


def _refused(path: str, detail: str) -> UnusableSound:
    return UnusableSound(RejectReason.REFERENCE, f"{path}: {detail}")

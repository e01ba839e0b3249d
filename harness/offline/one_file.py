"""One file through an engine: what is found in it, or why it is no use."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TypeGuard

import numpy as np

from harness.base.ports import OfflineEngine, ScoresSound, SpotsPhrases, Understands
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
)
from harness.offline.score_cache import ScoreCache
from harness.offline.scores import checked, scores_of, spots_in, spots_of
from harness.sound.sound_files import OpenSound, UnusableSound, open_sound
from harness.transcripts.files.reference_text import read_reference

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

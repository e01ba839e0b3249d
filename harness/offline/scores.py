"""An engine's scores and spots over sound that comes in blocks."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from harness.base.ports import ScoresSound, ScoreStream, SpotsPhrases
from harness.model.errors import EngineError
from harness.model.offline import OfflineSpot, Said, ScoreTrack, SpotRule
from harness.offline.figures.spots import spots

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

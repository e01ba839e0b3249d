"""Out-of-vocabulary files played as one sound, in list order: the engine's state passes from file to file.

A spot belongs to the file in which it ends. If it began in the previous file, its start is cut to this one. The
refractory time also continues across files. One engine plays the whole list, so the list cannot be spread over workers.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from harness.base.ports import OfflineEngine, ScoresSound, ScoreStream, SpotsPhrases, SpotStream
from harness.model.errors import EngineError, InputError
from harness.model.offline import Evaluation, FileOutcome, ListedFile, OfflineSpot, RejectReason, ScoreTrack, SpotRule
from harness.offline.one_file import checked, crossings, in_order, pieces
from harness.sound.sound_files import UnusableSound, open_sound

HELD_S = 30.0
"""How long after the end of a spot an engine without scores may report it. Until then, outcomes of files are held back,
so that the spot still counts for the file in which it ends."""


class _ScoreSpots:
    """Spots from an engine's scores. The refractory time continues across files."""

    def __init__(self, stream: ScoreStream, rule: SpotRule) -> None:
        self._stream = stream
        self._rule = rule
        self._last_above: dict[str, int] = {}
        self._known_end: dict[str, int] = {}

    def feed(self, samples: np.ndarray[tuple[int], np.dtype[np.int16]]) -> None:
        self._stream.feed(samples)

    def take(self, *, flush: bool) -> list[OfflineSpot]:
        return [spot for track in self._stream.take(flush=flush) for spot in self._spots(track)]

    def decided_until(self, fed: int) -> int:
        """No further spot will end at or before the returned sample. fed: number of samples fed so far."""
        return min(self._known_end.values(), default=0)

    def _spots(self, track: ScoreTrack) -> Iterator[OfflineSpot]:
        if not len(track.scores):
            return
        rule = self._rule
        steps = rule.refractory_samples / track.step
        above = np.flatnonzero(track.scores > rule.threshold)
        last = self._last_above.get(track.phrase)
        self._known_end[track.phrase] = track.first_end + (len(track.scores) - 1) * track.step
        if not len(above):
            return
        for index in crossings(track.scores, rule.threshold, steps):
            end = track.first_end + int(index) * track.step
            # `crossings` has not seen the previous piece, so it takes the first score above the threshold for a new
            # spot.
            if index == above[0] and last is not None and (end - last) / track.step < max(steps, 1 + 1e-9):
                continue
            yield OfflineSpot(track.phrase, max(0, end - rule.spot_samples), end, float(track.scores[index]))
        self._last_above[track.phrase] = track.first_end + int(above[-1]) * track.step


class _EngineSpots:
    def __init__(self, stream: SpotStream, held_samples: int) -> None:
        self._stream = stream
        self._held_samples = held_samples

    def feed(self, samples: np.ndarray[tuple[int], np.dtype[np.int16]]) -> None:
        self._stream.feed(samples)

    def take(self, *, flush: bool) -> list[OfflineSpot]:
        return list(map(checked, self._stream.take(flush=flush)))

    def decided_until(self, fed: int) -> int:
        return fed - self._held_samples


@dataclass(slots=True)
class _PendingFile:
    """A file that has been played, but whose last spots may not have been reported yet.

    begin, end: where the file lies in the whole sound, in samples at the engine's rate.
    """

    outcome: FileOutcome
    begin: int
    end: int = 0
    spots: list[OfflineSpot] = field(default_factory=list)


class ContinuousListening:
    """One engine playing the out-of-vocabulary list. InputError for an engine that accepts only single files."""

    def __init__(self, engine: OfflineEngine, evaluation: Evaluation) -> None:
        self._facts = engine.facts
        self._evaluation = evaluation
        self._fed = 0
        self._files: deque[_PendingFile] = deque()
        if isinstance(engine, ScoresSound) and self._facts.rule is not None:
            self._listening: _ScoreSpots | _EngineSpots = _ScoreSpots(engine.begin(), self._facts.rule)
        elif isinstance(engine, SpotsPhrases):
            self._listening = _EngineSpots(engine.listen(), round(HELD_S * self._facts.rate_hz))
        else:
            raise InputError(
                f"{evaluation.task.name} recognises one file at a time and keeps no state between files",
                remedy="Leave --continuous out",
            )

    def hear(self, file: ListedFile) -> list[FileOutcome]:
        """Plays the next file. Returns the outcomes that are now final, in list order. If a file turns out to be
        unusable half-way, it is rejected and its spots do not count."""
        heard = _PendingFile(FileOutcome(file.kind, file.number, engine_rate_hz=self._facts.rate_hz), self._fed)
        self._files.append(heard)
        try:
            self._play(file, heard)
        except UnusableSound as unusable:
            heard.outcome = file.outcome_rejected(unusable.reason, unusable.detail)
        except EngineError as error:
            heard.outcome = file.outcome_rejected(RejectReason.ERROR, error=str(error))
        heard.end = self._fed
        return self._finished_outcomes(self._listening.decided_until(self._fed))

    def finish(self) -> list[FileOutcome]:
        """Ends the sound. Returns the remaining outcomes."""
        self._assign(self._listening.take(flush=True))
        return self._finished_outcomes(self._fed)

    def _play(self, file: ListedFile, heard: _PendingFile) -> None:
        if file.rejected is not None:
            heard.outcome = file.outcome_rejected(file.rejected)
            return
        began_s, evaluation = time.process_time(), self._evaluation
        with open_sound(
            file.path, self._facts.rate_hz, resample=evaluation.resample, hashed=evaluation.hashes
        ) as sound:
            for block in pieces(sound.blocks()):
                self._listening.feed(block)
                self._fed += len(block)
                heard.end = self._fed
                self._assign(self._listening.take(flush=False))
            heard.outcome = replace(
                heard.outcome, samples=sound.samples, rate_hz=sound.rate_hz, sha256=sound.sha256,
                detail=sound.assumed, cpu_s=time.process_time() - began_s,
            )  # fmt: skip

    def _assign(self, spots: list[OfflineSpot]) -> None:
        for spot in spots:
            # A spot that is reported too late, or that ends after the sound, goes to the nearest file: it must not be
            # lost.
            place = next((file for file in self._files if spot.end <= file.end), self._files[-1])
            place.spots.append(
                OfflineSpot(spot.phrase, max(0, spot.start - place.begin), max(0, spot.end - place.begin), spot.score)
            )

    def _finished_outcomes(self, until: int) -> list[FileOutcome]:
        outcomes = []
        while self._files and self._files[0].end <= until:
            heard = self._files.popleft()
            is_usable = heard.outcome.rejected is None
            outcomes.append(replace(heard.outcome, spots=in_order(heard.spots)) if is_usable else heard.outcome)
        return outcomes

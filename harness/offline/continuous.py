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
from harness.offline.one_file import MIN_SPOT_STEPS, check_detection, crossings, sort_spots, split_blocks
from harness.sound.sound_files import UnusableSound, open_sound

MAX_REPORT_DELAY_S = 30.0
"""How long after the end of a spot an engine without scores may report it. Until then, outcomes of files are held back,
so that the spot still counts for the file in which it ends."""


class _ScoreSpots:
    """Spots from an engine's scores. The refractory time continues across files."""

    def __init__(self, stream: ScoreStream, rule: SpotRule) -> None:
        self._stream = stream
        self._rule = rule
        self._last_above: dict[str, int] = {}
        self._scored_until: dict[str, int] = {}

    def feed(self, samples: np.ndarray[tuple[int], np.dtype[np.int16]]) -> None:
        self._stream.feed(samples)

    def take(self, *, flush: bool) -> list[OfflineSpot]:
        """New spots, in samples of the whole sound. flush: whether the sound has ended."""
        return [spot for track in self._stream.take(flush=flush) for spot in self._spots(track)]

    def decided_until(self, fed_samples: int) -> int:
        """No further spot will end at or before the returned sample. fed_samples: number of samples fed so far."""
        return min(self._scored_until.values(), default=0)

    def _spots(self, track: ScoreTrack) -> Iterator[OfflineSpot]:
        """The spots in one piece of a track, which continues the previous piece of that phrase."""
        if not len(track.scores):
            return
        rule = self._rule
        steps = rule.refractory_samples / track.step
        above = np.flatnonzero(track.scores > rule.threshold)
        last = self._last_above.get(track.phrase)
        self._scored_until[track.phrase] = track.first_end + (len(track.scores) - 1) * track.step
        if not len(above):
            return
        for index in crossings(track.scores, rule.threshold, steps):
            end = track.first_end + int(index) * track.step
            # `crossings` has not seen the previous piece, so it takes the first score above the threshold for a new
            # spot. The same rule as there decides whether it is one.
            continues = last is not None and (end - last) / track.step < max(steps, MIN_SPOT_STEPS)
            if index == above[0] and continues:
                continue
            yield OfflineSpot(track.phrase, max(0, end - rule.spot_samples), end, float(track.scores[index]))
        self._last_above[track.phrase] = track.first_end + int(above[-1]) * track.step


class _EngineSpots:
    """Spots that an engine without scores reports. max_delay_samples: see MAX_REPORT_DELAY_S."""

    def __init__(self, stream: SpotStream, max_delay_samples: int) -> None:
        self._stream = stream
        self._max_delay_samples = max_delay_samples

    def feed(self, samples: np.ndarray[tuple[int], np.dtype[np.int16]]) -> None:
        self._stream.feed(samples)

    def take(self, *, flush: bool) -> list[OfflineSpot]:
        return list(map(check_detection, self._stream.take(flush=flush)))

    def decided_until(self, fed_samples: int) -> int:
        return fed_samples - self._max_delay_samples


@dataclass(slots=True)
class _PendingFile:
    """A file that has been played, but whose last spots may not have been reported yet.

    - outcome: without spots.
    - begin, end: where the file lies in the whole sound, in samples at the engine's rate.
    - spots: so far, in samples of this file.
    """

    outcome: FileOutcome
    begin: int
    end: int = 0
    spots: list[OfflineSpot] = field(default_factory=list)


class ContinuousListening:
    """One engine playing the out-of-vocabulary list. Raises InputError for an engine that accepts only single files."""

    def __init__(self, engine: OfflineEngine, evaluation: Evaluation) -> None:
        self._facts = engine.facts
        self._evaluation = evaluation
        self._fed_samples = 0
        self._files: deque[_PendingFile] = deque()
        if isinstance(engine, ScoresSound) and self._facts.rule is not None:
            self._spotter: _ScoreSpots | _EngineSpots = _ScoreSpots(engine.begin(), self._facts.rule)
        elif isinstance(engine, SpotsPhrases):
            self._spotter = _EngineSpots(engine.listen(), round(MAX_REPORT_DELAY_S * self._facts.rate_hz))
        else:
            raise InputError(
                f"{evaluation.task.name} recognises one file at a time and keeps no state between files",
                remedy="Remove --continuous",
            )

    def play_file(self, file: ListedFile) -> list[FileOutcome]:
        """Plays the next file. Returns the outcomes that are now final, in list order. If a file turns out to be
        unusable half-way, it is rejected and its spots do not count."""
        pending = _PendingFile(
            FileOutcome(file.kind, file.number, engine_rate_hz=self._facts.rate_hz), self._fed_samples
        )
        self._files.append(pending)
        try:
            self._play(file, pending)
        except UnusableSound as unusable:
            pending.outcome = file.outcome_rejected(unusable.reason, unusable.detail)
        except EngineError as error:
            pending.outcome = file.outcome_rejected(RejectReason.ERROR, error=str(error))
        pending.end = self._fed_samples
        return self._finished_outcomes(self._spotter.decided_until(self._fed_samples))

    def finish(self) -> list[FileOutcome]:
        """Ends the sound. Returns the remaining outcomes."""
        self._assign(self._spotter.take(flush=True))
        return self._finished_outcomes(self._fed_samples)

    def _play(self, file: ListedFile, pending: _PendingFile) -> None:
        """Plays a file into the sound, and sets its outcome. UnusableSound or EngineError may come half-way."""
        if file.rejected is not None:
            pending.outcome = file.outcome_rejected(file.rejected)
            return
        began_s, evaluation = time.process_time(), self._evaluation
        with open_sound(
            file.path, self._facts.rate_hz, resample=evaluation.resample, hashed=evaluation.hashes
        ) as sound:
            for block in split_blocks(sound.blocks()):
                self._spotter.feed(block)
                self._fed_samples += len(block)
                pending.end = self._fed_samples
                self._assign(self._spotter.take(flush=False))
            pending.outcome = replace(
                pending.outcome, samples=sound.samples, rate_hz=sound.rate_hz, sha256=sound.sha256,
                detail=sound.assumed, cpu_s=time.process_time() - began_s,
            )  # fmt: skip

    def _assign(self, spots: list[OfflineSpot]) -> None:
        for spot in spots:
            # A spot that is reported too late, or that ends after the sound, goes to the nearest file: it must not be
            # lost.
            file = next((file for file in self._files if spot.end <= file.end), self._files[-1])
            start, end = max(0, spot.start - file.begin), max(0, spot.end - file.begin)
            file.spots.append(OfflineSpot(spot.phrase, start, end, spot.score))

    def _finished_outcomes(self, until: int) -> list[FileOutcome]:
        """Removes the files that end at or before a sample of the whole sound, and returns their outcomes."""
        outcomes = []
        while self._files and self._files[0].end <= until:
            pending = self._files.popleft()
            outcome = pending.outcome
            if outcome.rejected is None:
                outcome = replace(outcome, spots=sort_spots(pending.spots))
            outcomes.append(outcome)
        return outcomes

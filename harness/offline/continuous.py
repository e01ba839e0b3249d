"""Out-of-vocabulary files heard as one sound, in list order: the engine's state goes on from file to file.

A spot belongs to the file in which it ends, at positions of that file; one that began in the file before begins with
this one. The refractory time goes on across the border. One engine hears the whole list: it cannot be spread over
workers.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from harness.base.ports import OfflineEngine, ScoresSound, ScoreStream, SpotsPhrases, SpotStream
from harness.model.errors import EngineError, InputError
from harness.model.offline import Evaluation, FileOutcome, ListedFile, OfflineSpot, RejectReason, ScoreTrack, SpotRule
from harness.offline.one_file import checked, crossings, in_order, pieces
from harness.sound.sound_files import UnusableSound, open_sound

HELD_S = 30.0
"""An engine without scores may tell a spot so much later than it ended, and it still goes to its file."""


class _Scored:
    """Spots of an engine's scores as they come; the refractory time goes on."""

    def __init__(self, stream: ScoreStream, rule: SpotRule) -> None:
        self._stream = stream
        self._rule = rule
        self._last_above: dict[str, int] = {}
        self._known: dict[str, int] = {}

    def feed(self, samples: np.ndarray[tuple[int], np.dtype[np.int16]]) -> None:
        self._stream.feed(samples)

    def take(self, *, flush: bool) -> list[OfflineSpot]:
        return [spot for track in self._stream.take(flush=flush) for spot in self._spots(track)]

    def sure_until(self, fed: int) -> int:
        """No spot that ends at or before this sample is still to come."""
        return min(self._known.values(), default=0)

    def _spots(self, track: ScoreTrack) -> Iterator[OfflineSpot]:
        if not len(track.scores):
            return
        rule = self._rule
        steps = rule.refractory_samples / track.step
        above = np.flatnonzero(track.scores > rule.threshold)
        last = self._last_above.get(track.phrase)
        self._known[track.phrase] = track.first_end + (len(track.scores) - 1) * track.step
        if not len(above):
            return
        for index in crossings(track.scores, rule.threshold, steps):
            end = track.first_end + int(index) * track.step
            # The first above in this piece is fresh to `crossings`, which has not seen the piece before.
            if index == above[0] and last is not None and (end - last) / track.step < max(steps, 1 + 1e-9):
                continue
            yield OfflineSpot(track.phrase, max(0, end - rule.spot_samples), end, float(track.scores[index]))
        self._last_above[track.phrase] = track.first_end + int(above[-1]) * track.step


class _Spotted:
    """Spots that an engine tells itself."""

    def __init__(self, stream: SpotStream, held_samples: int) -> None:
        self._stream = stream
        self._held = held_samples

    def feed(self, samples: np.ndarray[tuple[int], np.dtype[np.int16]]) -> None:
        self._stream.feed(samples)

    def take(self, *, flush: bool) -> list[OfflineSpot]:
        return list(map(checked, self._stream.take(flush=flush)))

    def sure_until(self, fed: int) -> int:
        return fed - self._held


@dataclass(slots=True)
class _Heard:
    """A file whose spots may still come. begin, end: where it lies in the whole sound, at the engine's rate."""

    file: ListedFile
    begin: int
    outcome: FileOutcome | None = None
    end: int = 0
    samples: int = 0
    rate_hz: int = 0
    cpu_s: float = 0.0
    sha256: str = ""
    spots: list[OfflineSpot] = field(default_factory=list)


class ContinuousListening:
    """One engine's way through the out-of-vocabulary list. InputError for an engine that hears files one at a time."""

    def __init__(self, engine: OfflineEngine, evaluation: Evaluation) -> None:
        self._facts = engine.facts
        self._evaluation = evaluation
        self._fed = 0
        self._files: deque[_Heard] = deque()
        if isinstance(engine, ScoresSound) and self._facts.rule is not None:
            self._listening: _Scored | _Spotted = _Scored(engine.begin(), self._facts.rule)
        elif isinstance(engine, SpotsPhrases):
            self._listening = _Spotted(engine.listen(), round(HELD_S * self._facts.rate_hz))
        else:
            raise InputError(
                f"{evaluation.task.name} understands one file at a time: it has no state to carry on",
                remedy="Leave --continuous out",
            )

    def hear(self, file: ListedFile) -> list[FileOutcome]:
        """Plays the next file; outcomes of it and of files before it that nothing can change any more, in order.

        A file that proves no use half-way has been heard until there; it is rejected with its spots.
        """
        began_s = time.process_time()
        heard = _Heard(file, self._fed)
        self._files.append(heard)
        try:
            self._play(heard)
        except UnusableSound as unusable:
            heard.outcome = file.outcome_rejected(unusable.reason, unusable.detail)
        except EngineError as error:
            heard.outcome = file.outcome_rejected(RejectReason.ERROR, error=str(error))
        heard.end = self._fed
        heard.cpu_s = time.process_time() - began_s
        return self._sure(self._listening.sure_until(self._fed))

    def finish(self) -> list[FileOutcome]:
        """The sound ends here; the outcomes that are left."""
        self._assign(self._listening.take(flush=True))
        return self._sure(self._fed)

    def _play(self, heard: _Heard) -> None:
        file = heard.file
        if file.rejected is not None:
            heard.outcome = file.outcome_rejected(file.rejected)
            return
        asked = self._evaluation
        with open_sound(file.path, self._facts.rate_hz, resample=asked.resample, hashed=asked.hashes) as sound:
            heard.samples, heard.rate_hz, heard.sha256 = sound.samples, sound.rate_hz, sound.sha256
            for block in pieces(sound.blocks()):
                self._listening.feed(block)
                self._fed += len(block)
                heard.end = self._fed
                self._assign(self._listening.take(flush=False))

    def _assign(self, spots: list[OfflineSpot]) -> None:
        for spot in spots:
            # Told later than an engine may, its file is reported already; from the flush, it may end after the sound.
            # The nearest file has it then: a spot must not be lost.
            place = next((one for one in self._files if spot.end <= one.end), self._files[-1])
            place.spots.append(
                OfflineSpot(spot.phrase, max(0, spot.start - place.begin), max(0, spot.end - place.begin), spot.score)
            )

    def _sure(self, until: int) -> list[FileOutcome]:
        found = []
        while self._files and self._files[0].end <= until:
            found.append(self._outcome(self._files.popleft()))
        return found

    def _outcome(self, heard: _Heard) -> FileOutcome:
        if heard.outcome is not None:
            return heard.outcome
        return FileOutcome(
            heard.file.kind,
            heard.file.number,
            samples=heard.samples,
            rate_hz=heard.rate_hz,
            engine_rate_hz=self._facts.rate_hz,
            spots=in_order(heard.spots),
            cpu_s=heard.cpu_s,
            sha256=heard.sha256,
        )

"""Which files a worker is given next: the longest first, long ones alone, short ones together.

Files are looked at a window of the lists at a time, so that a million of them need neither sorting nor asking for
their sizes before the first is played.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np

from harness.model.offline import ListedFile
from harness.sound.sound_files import rough_seconds

WINDOW = 100_000
BATCH_S = 0.5
"""How long a worker is to be busy with a batch: long against what handing out costs, short against a run's end."""
MOST_FILES = 512
LEAST_S = 0.1
"""What a file counts for at least: opening it costs, too."""


class HandingOut:
    """The files that are still to be played; a file is known by its position in `files`.

    due: which positions are to be played at all, shape (len(files),).
    """

    def __init__(self, files: Sequence[ListedFile], due: Sequence[bool] | np.ndarray[tuple[int], np.dtype[np.bool_]]):
        self._files = files
        self._due = np.flatnonzero(np.asarray(due, dtype=bool))
        self._looked = 0
        self._ready: deque[int] = deque()
        self._again: deque[int] = deque()
        self._rough_s = np.zeros(len(files), np.float32)
        self._looked_s = 0.0
        self.done_s = 0.0

    def __bool__(self) -> bool:
        return bool(self._ready or self._again or self._looked < len(self._due))

    def rough_s(self, position: int) -> float:
        """About how long a file that was handed out is; 0 before."""
        return float(self._rough_s[position])

    def take(self, most_s: float, most_files: int) -> list[int]:
        """The next files, at least one where there is any: together about most_s of audio at most."""
        batch: list[int] = []
        total_s = 0.0
        while len(batch) < max(1, most_files) and (self._again or self._ready or self._look()):
            source = self._again or self._ready
            total_s += self.rough_s(source[0])
            if batch and total_s > most_s:
                break
            batch.append(source.popleft())
        return batch

    def give_back(self, positions: Sequence[int]) -> None:
        """Files that were taken and came to nothing through no fault of theirs; they go first."""
        self._again.extendleft(reversed(positions))

    def finished(self, position: int) -> None:
        """For `done_s`; a file that is not of these is passed over."""
        if self._rough_s[position]:
            self.done_s += self.rough_s(position)

    @property
    def total_s(self) -> float:
        """Rough length of all, where what was not looked at yet is taken to be like what was."""
        return self._looked_s / self._looked * len(self._due) if self._looked else 0.0

    def _look(self) -> bool:
        window = self._due[self._looked : self._looked + WINDOW]
        if not len(window):
            return False
        for position in window:
            self._rough_s[position] = max(LEAST_S, rough_seconds(self._files[position].path))
        lengths = self._rough_s[window]
        self._looked += len(window)
        self._looked_s += float(lengths.sum(dtype=np.float64))
        self._ready.extend(window[np.argsort(-lengths, kind="stable")].tolist())
        return True

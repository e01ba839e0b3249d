"""How an evaluation is cut into tasks for a cluster: an hour of sound each, less towards the end; suspects singly.

A task whose workers end with it is tried again as single files, and each of those that it happens to once more while
nothing else is played, so that no file is rejected for what another did.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from harness.model.offline import ListedFile
from harness.offline.handing_out import HandingOut

TASK_S = 3600.0
"""Sound of a task: long against the milliseconds that a task costs, short against what a killed worker costs."""
LEAST_TASK_S = 60.0
MOST_FILES = 2000
"""Of a task: what goes over the network with it stays below some hundred kB."""
ATTEMPTS = 3
"""In its task, singly, and alone; a file with which workers end each time is rejected."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Files of a task, by their positions. attempt: which, from 1."""

    positions: tuple[int, ...]
    attempt: int = 1


class Cutting:
    """What is to be played next. due: which positions are at all, shape (len(files),)."""

    def __init__(
        self, files: Sequence[ListedFile], due: np.ndarray[tuple[int], np.dtype[np.bool_]], task_s: float
    ) -> None:
        self._task_s = task_s
        self._waiting = HandingOut(files, due)
        self._files_left = int(np.count_nonzero(due))
        self._handed_s = 0.0
        self._singles: deque[Piece] = deque()
        self._alone: deque[Piece] = deque()
        self._on_its_own = False

    def next(self, slots: int, in_flight: int) -> Piece | None:
        """The next piece, or None while there is none. slots: tasks that the cluster does at once."""
        if self._on_its_own and in_flight:
            return None
        self._on_its_own = False
        if self._waiting:
            return self._cut(max(1, slots))
        if self._singles:
            # No more than there are slots: beside each other on a worker, one would end for the other.
            return self._singles.popleft() if in_flight < slots else None
        if self._alone and not in_flight:
            self._on_its_own = True
            return self._alone.popleft()
        return None

    def suspect(self, piece: Piece) -> bool:
        """Workers ended with it. Whether it is to be tried again; otherwise its one file is to be rejected."""
        if piece.attempt >= ATTEMPTS:
            return False
        singles = [Piece((position,), piece.attempt + 1) for position in piece.positions]
        (self._singles if piece.attempt == 1 else self._alone).extend(singles)
        return True

    def finished(self, position: int) -> None:
        self._waiting.finished(position)

    @property
    def share_done(self) -> float | None:
        """Of the hours, as far as they are known."""
        total_s = self._waiting.total_s
        return min(1.0, self._waiting.done_s / total_s) if total_s else None

    def _cut(self, slots: int) -> Piece:
        if not self._waiting.total_s:
            self._waiting.give_back(self._waiting.take(0.0, 1))  # lengths are known from the first on
        left_s = self._waiting.total_s - self._handed_s
        most_s = min(self._task_s, max(LEAST_TASK_S, left_s / (2 * slots)))
        positions = self._waiting.take(most_s, min(MOST_FILES, math.ceil(self._files_left / (2 * slots))))
        self._files_left -= len(positions)
        self._handed_s += sum(map(self._waiting.rough_s, positions))
        return Piece(tuple(positions))

"""The out-of-vocabulary list of a continuous run, which one worker hears from beginning to end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from harness.model.offline import ListedFile, RejectReason
from harness.offline.journal_lines import file_line
from harness.offline.worker_process import WorkerProcess
from harness.sound.sound_files import rough_seconds

AHEAD = 16
"""Files that the worker has in hand and has not begun."""


class ContinuousSequence:
    """Where the worker is in the list. A worker that is lost takes the engine's state with it: another begins again."""

    def __init__(self, files: Sequence[ListedFile], positions: Sequence[int]) -> None:
        self._files = files
        self._positions = positions
        self._next = 0
        self._worker: WorkerProcess | None = None
        self._left_out: dict[int, RejectReason] = {}
        self._before_s = [0.0]
        for position in positions:
            self._before_s.append(self._before_s[-1] + rough_seconds(files[position].path))

    @property
    def given(self) -> bool:
        """Whether the last file was handed out."""
        return self._next >= len(self._positions)

    @property
    def total_s(self) -> float:
        return self._before_s[-1]

    @property
    def done_s(self) -> float:
        """Rough length of what was answered."""
        in_hand = len(self._worker.hands) if self._worker is not None else 0
        return self._before_s[self._next - in_hand]

    def wants(self, worker: WorkerProcess, *, busy: bool) -> bool:
        """Whether the worker should have the next files: it is the one, or could become it. busy: it is needed
        elsewhere first."""
        if self.given:
            return False
        if self._worker is None:
            if worker.hands or busy:
                return False
            self._worker = worker
            worker.sequence = True
        if worker is not self._worker:
            return False
        begun = worker.begun - worker.answered
        return len(worker.hands) - begun < AHEAD

    def next(self) -> tuple[list[int], bytes, bool]:
        """The next files, as lines, and whether they are the last."""
        batch = list(self._positions[self._next : self._next + AHEAD])
        self._next += len(batch)
        return batch, b"".join(self._line(position) for position in batch), self.given

    def begin_again(self) -> None:
        """The worker is lost."""
        self._worker = None
        self._next = 0

    def leave_out(self, position: int, reason: RejectReason) -> None:
        """A file that ended the engine too often."""
        self._left_out[position] = reason

    def _line(self, position: int) -> bytes:
        file = self._files[position]
        reason = self._left_out.get(position)
        return file_line(file if reason is None else replace(file, rejected=reason))

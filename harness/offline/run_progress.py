"""How far a run is, and when it will be done: by hours of audio, not by files."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from harness.model.offline import FileOutcome
from harness.offline.answers import Answer

RECENT_S = 20.0


@dataclass(frozen=True, slots=True)
class Progress:
    """files: to be played in this sitting; done: of these; audio_s: of usable files done in this sitting, exact.

    rate, recent_rate: audio time over wall time, None before there is any; eta_s: None while nothing tells it.
    """

    files: int
    done: int
    rejected: int
    errors: int
    audio_s: float
    elapsed_s: float
    rate: float | None
    recent_rate: float | None
    eta_s: float | None
    workers: int


class Pace:
    """Counts what is done over time; times are of the run's clock."""

    def __init__(self, files: int, began_s: float) -> None:
        self._files = files
        self._began_s = began_s
        self._recent: deque[tuple[float, float]] = deque([(began_s, 0.0)])
        self.done = self.rejected = self.errors = 0
        self.audio_s = 0.0

    def count(self, outcome: FileOutcome | Answer) -> None:
        self.done += 1
        self.rejected += outcome.rejected is not None
        self.errors += bool(outcome.error)
        if outcome.rejected is None:
            self.audio_s += outcome.seconds

    def snapshot(self, now_s: float, share_done: float | None, workers: int) -> Progress:
        """share_done: of this sitting's hours as far as they are known, or None."""
        elapsed_s = now_s - self._began_s
        if now_s - self._recent[-1][0] >= 0.5:
            self._recent.append((now_s, self.audio_s))
        while len(self._recent) > 1 and now_s - self._recent[0][0] > RECENT_S:
            self._recent.popleft()
        since_s, before_s = self._recent[0]
        return Progress(
            files=self._files,
            done=self.done,
            rejected=self.rejected,
            errors=self.errors,
            audio_s=self.audio_s,
            elapsed_s=elapsed_s,
            rate=self.audio_s / elapsed_s if elapsed_s > 0 and self.audio_s else None,
            recent_rate=(self.audio_s - before_s) / (now_s - since_s)
            if now_s > since_s and self.audio_s > before_s
            else None,
            eta_s=elapsed_s * (1 - share_done) / share_done if share_done else None,
            workers=workers,
        )

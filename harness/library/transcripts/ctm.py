"""Time-marked words (NIST ctm): file, channel, start, duration, word and, perhaps, its confidence, in each line."""

from __future__ import annotations

from pathlib import Path

from harness.model.transcript import TimedWord


def read_ctm(path: Path, encoding: str | None = None) -> tuple[TimedWord, ...]:
    """The words of a file, in its order; InputProblems with all that is wrong with it."""
    raise NotImplementedError

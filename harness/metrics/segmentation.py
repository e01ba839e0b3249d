"""Time-marked words of a hypothesis, cut by the segments of a reference, as sclite does.

Source: NIST SCTK 2.4.10, sclite.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.model.transcript import Segment, TimedWord


def cut(words: Sequence[TimedWord], segments: Sequence[Segment]) -> tuple[tuple[TimedWord, ...], ...]:
    """The words of each segment, one for one with `segments`."""
    raise NotImplementedError

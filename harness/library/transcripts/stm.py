"""Segment-marked references (NIST stm): file, channel, speaker, begin, end, perhaps labels, and the text."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from harness.model.transcript import Segment


@dataclass(frozen=True, slots=True)
class Label:
    """A subset that segments can belong to, as the file declares it."""

    id: str
    title: str
    description: str


@dataclass(frozen=True, slots=True)
class Segments:
    """A reference in segments, in the order of the file."""

    file: str
    segments: tuple[Segment, ...]
    labels: tuple[Label, ...]
    encoding: str = "utf-8"


def read_stm(path: Path, encoding: str | None = None) -> Segments:
    """The segments of a file and the labels that it declares; InputProblems with all that is wrong with it."""
    raise NotImplementedError

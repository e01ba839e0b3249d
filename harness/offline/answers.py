"""Outcomes on their way from a worker to its run: lines of the journal, and what a run counts without reading them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from harness.model.offline import FileOutcome, RejectReason
from harness.offline.journal_lines import has_check, outcome_line


@dataclass(frozen=True, slots=True)
class Answer:
    """A line for the journal. seconds, rejected, error: of its outcome; of an error, whether there is one."""

    line: bytes
    seconds: float
    rejected: RejectReason | None
    error: bool

    @classmethod
    def of(cls, outcome: FileOutcome, listed: str) -> Self:
        return cls(outcome_line(outcome, listed), outcome.seconds, outcome.rejected, bool(outcome.error))


def answers_told(answers: Sequence[Answer]) -> bytes:
    """A message: what is counted, as JSON on its first line, then the journal's lines."""
    counted = [[one.seconds, one.rejected, one.error] for one in answers]
    return b"\n".join([json.dumps(counted).encode("ascii"), b"".join(one.line for one in answers)])


def answers_of(content: bytes) -> list[Answer]:
    """The answers of a message. ValueError when it is none, or a line has changed on its way."""
    head, *lines = content.splitlines(keepends=True)
    if not all(map(has_check, lines)):
        raise ValueError("a line without its CRC")
    try:
        return [
            Answer(line, float(seconds), None if rejected is None else RejectReason(rejected), bool(error))
            for line, (seconds, rejected, error) in zip(lines, json.loads(head), strict=True)
        ]
    except TypeError as error:
        raise ValueError(f"no answers: {error}") from error

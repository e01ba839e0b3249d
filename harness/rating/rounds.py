"""A round file with everything that it names, ready to open a room with."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from harness.model.judgment import RatingRound
from harness.rating.exercises import BUILT_IN
from harness.rating.files.rounds import load_round


def read_round(path: Path) -> RatingRound:
    """The round of a file, the built-in exercises among its own; InputError, InputProblems."""
    read = load_round(path)
    return replace(read.round, exercises=BUILT_IN) if read.built_in else read.round


def with_built_in_training(round_: RatingRound) -> RatingRound:
    """The round with the built-in exercises, unless it has its own."""
    return round_ if round_.exercises else replace(round_, exercises=BUILT_IN)

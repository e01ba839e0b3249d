"""What a figure is where its definition says 0/0."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ZeroDivision:
    """precision: where nothing is predicted. recall: where nothing is gold. f1, accuracy: where neither is. 0–1 each.

    F1 is 2 · right / (gold + predicted), so that a label that is never predicted has 0, whatever its precision is.
    """

    name: str = "zero"
    precision: float = 0.0
    recall: float = 0.0
    f1: float = 0.0
    accuracy: float = 0.0

    def __post_init__(self) -> None:
        for value in (self.precision, self.recall, self.f1, self.accuracy):
            if not 0 <= value <= 1:
                raise ValueError(f"0/0 cannot be {value}: it is between 0 and 1")


ZERO = ZeroDivision()
SEED = ZeroDivision("seed", precision=1.0)
ONE = ZeroDivision("one", 1.0, 1.0, 1.0, 1.0)
PRESETS = {one.name: one for one in (ZERO, SEED, ONE)}
"""By name. zero: the default. seed: as the table of the seed's triad reads. one: scikit-learn's zero_division=1."""

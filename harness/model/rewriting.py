"""A named list of phrases that count as others: light bulb as lightbulb."""

from __future__ import annotations

from dataclasses import dataclass

from harness.model.normalisation import Normalisation

MOST_PAIRS = 200


@dataclass(frozen=True, slots=True)
class Rewriting:
    """A normalisation with a list: after `base`, the words on the left of a pair count as those on its right.

    The longest phrase that fits comes first, and what was rewritten is not looked at again. At most MOST_PAIRS pairs;
    their words are normalised by `base`, left sides are not empty and are not repeated. id: travels with every figure.
    """

    id: str
    base: Normalisation
    same: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]

    def __post_init__(self) -> None:
        if len(self.same) > MOST_PAIRS:
            raise ValueError(f"{len(self.same)} pairs")
        if not all(written for written, _ in self.same):
            raise ValueError("a pair without words on its left")
        if len({written for written, _ in self.same}) < len(self.same):
            raise ValueError("a phrase has two meanings")

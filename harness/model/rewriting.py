"""A named list of phrases that count as others: light bulb as lightbulb."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from harness.model.normalisation import Normalisation

MOST_PAIRS = 200


@dataclass(frozen=True, slots=True)
class Rewriting:
    """A normalisation with a list: after `base`, the words on the left of a pair count as those on its right.

    The longest phrase that fits comes first, and what was rewritten is not looked at again. At most MOST_PAIRS pairs;
    their words are normalised by `base`, left sides are not empty and are not repeated. id: travels with every figure.

    meanings: the pairs, by their left sides. lengths: the lengths of the phrases that begin with a word, longest first.
    """

    id: str
    base: Normalisation
    same: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]
    meanings: Mapping[tuple[str, ...], tuple[str, ...]] = field(init=False, repr=False, compare=False)
    lengths: Mapping[str, tuple[int, ...]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if len(self.same) > MOST_PAIRS:
            raise ValueError(f"{len(self.same)} pairs")
        if not all(written for written, _ in self.same):
            raise ValueError("a pair without words on its left")
        meanings = dict(self.same)
        if len(meanings) < len(self.same):
            raise ValueError("a phrase has two meanings")
        lengths: dict[str, set[int]] = {}
        for written in meanings:
            lengths.setdefault(written[0], set()).add(len(written))
        object.__setattr__(self, "meanings", meanings)
        longest_first = {word: tuple(sorted(known, reverse=True)) for word, known in lengths.items()}
        object.__setattr__(self, "lengths", longest_first)

"""What utterances are told apart by: the voice, level, noise or position of each, or the subset that it belongs to."""

from __future__ import annotations

from dataclasses import dataclass

LEAST_QUERIES = 6
"""With fewer, how they differ says too little of how further ones would."""


@dataclass(frozen=True, slots=True)
class Grouping:
    """One way to part utterances. labels: one for each id, "" for none.

    order: labels that come first, in this order; the others are sorted.
    """

    name: str
    labels: tuple[str, ...]
    order: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Groupings:
    """What a file says of utterances: ids are unique, and each grouping has a label for each of them."""

    file: str
    ids: tuple[str, ...]
    groupings: tuple[Grouping, ...]

    def __post_init__(self) -> None:
        if any(len(one.labels) != len(self.ids) for one in self.groupings):
            raise ValueError("columns of different lengths")

"""Slots with values as SLURP compares them: paired by concept, with the distance of their values.

Sources: Bastianelli et al. 2020 (SLURP), and the evaluation that is published with its data.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

Entity = tuple[str, str]
"""Concept and value."""


class EntityCounts(NamedTuple):
    """The counts of one utterance. Distances are kept as fractions of whole numbers, so that sums are exact.

    - paired: number of predicted slots that were paired with a slot of gold.
    - gold, predicted: numbers of all slots.
    - word_part / word_whole: sum of the word distances of paired values, as a fraction.
    - character_part / character_whole: the same for characters.
    """

    paired: int
    gold: int
    predicted: int
    word_part: int = 0
    word_whole: int = 1
    character_part: int = 0
    character_whole: int = 1

    def denominator(self, words: int = 1, characters: int = 1) -> Fraction:
        """The utterance's term in the denominator of an F1 whose numerator is 2 · paired; by default that of SLU-F1.

        words, characters: weights of the two distances.
        """
        word_cost = words * Fraction(self.word_part, self.word_whole)
        return self.gold + self.predicted + word_cost + characters * Fraction(self.character_part, self.character_whole)


def count_entities(gold: tuple[Entity, ...], predicted: tuple[Entity, ...]) -> EntityCounts:
    """The counts of one utterance.

    Each predicted slot in turn is paired with the nearest unpaired slot of its concept in gold. Slots are paired twice:
    by the distance of words, and by that of characters.
    """
    if gold == predicted:
        return _all_paired(len(gold))
    paired = (Counter(concept for concept, _ in gold) & Counter(concept for concept, _ in predicted)).total()
    words = _paired_distance(gold, predicted, word_distance)
    characters = _paired_distance(gold, predicted, character_distance)
    return EntityCounts(paired, len(gold), len(predicted), *words.as_integer_ratio(), *characters.as_integer_ratio())


@lru_cache(maxsize=256)
def _all_paired(slots: int) -> EntityCounts:
    return EntityCounts(slots, slots, slots)


def _paired_distance(
    gold: Sequence[Entity], predicted: Sequence[Entity], distance: Callable[[str, str], Fraction]
) -> Fraction:
    """The sum of the distances of paired values."""
    remaining_gold, total = list(gold), Fraction(0)
    for concept, value in predicted:
        candidates = [
            (distance(gold_value, value), index)
            for index, (gold_concept, gold_value) in enumerate(remaining_gold)
            if gold_concept == concept
        ]
        if candidates:
            smallest_distance, index = min(candidates)
            total += smallest_distance
            del remaining_gold[index]
    return total


@lru_cache(maxsize=4096)
def word_distance(gold: str, predicted: str) -> Fraction:
    """Word errors per word of gold, which may exceed 1. A gold value without words counts as one word."""
    from rapidfuzz.distance import Levenshtein  # imported here, so that --help does not load it

    words = gold.split()
    return Fraction(Levenshtein.distance(words, predicted.split()), max(1, len(words)))


@lru_cache(maxsize=4096)
def character_distance(gold: str, predicted: str) -> Fraction:
    """Character errors per character of the longer value, 0–1."""
    from rapidfuzz.distance import Levenshtein  # as above

    return Fraction(Levenshtein.distance(gold, predicted), max(1, len(gold), len(predicted)))

"""Which words are taken for which others, put in, or left out, most frequent first (as the dtl report of sclite)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from harness.transcripts.scoring import Scoring

Counted = tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Confusions:
    """Words with how often, most frequent first, equals in the order of their words.

    pairs: (reference, hypothesis) words of substitutions. substituted: the reference words of those.
    falsely_recognised: their hypothesis words.
    """

    pairs: tuple[tuple[tuple[str, str], int], ...]
    inserted: Counted
    deleted: Counted
    substituted: Counted
    falsely_recognised: Counted


def confusions(scoring: Scoring) -> Confusions:
    """Those of every utterance with an error."""
    pairs: Counter[tuple[str, str]] = Counter()
    inserted: Counter[str] = Counter()
    deleted: Counter[str] = Counter()
    substituted: Counter[str] = Counter()
    recognised: Counter[str] = Counter()
    for (reference, hypothesis), count in Counter(scoring.errors()).items():
        if not reference:
            inserted[hypothesis] += count
        elif not hypothesis:
            deleted[reference] += count
        else:
            pairs[reference, hypothesis] = count
            substituted[reference] += count
            recognised[hypothesis] += count
    ordered = tuple(sorted(pairs.items(), key=lambda item: (-item[1], item[0])))
    return Confusions(ordered, *map(_ordered, (inserted, deleted, substituted, recognised)))


def _ordered(counted: Counter[str]) -> Counted:
    return tuple(sorted(counted.items(), key=lambda item: (-item[1], item[0])))

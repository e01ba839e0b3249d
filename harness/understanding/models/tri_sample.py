"""The part of the labelled utterances that one of three classifiers is trained on."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

from harness.model.choices import SEED_SHARE as SEED_SHARE
from harness.understanding.models.votes import Intents


def drawn(sets: Sequence[Intents], share: float, seed: str) -> list[int]:
    """Places of the utterances drawn without putting back, in rising order; at least one.

    sets: the label set of each. Every label that any has is in the sample: one utterance of each label, the rarest
    first, is drawn before the rest, so that a sample may be larger than its share where labels are many.
    """
    draw = random.Random(seed)
    count = Counter(label for one in sets for label in one)
    chosen: set[int] = set()
    held: set[str] = set()
    for label in sorted(count, key=lambda one: (count[one], one)):
        if label not in held:
            at = draw.choice([place for place, one in enumerate(sets) if label in one])
            chosen.add(at)
            held.update(sets[at])
    left = [place for place in range(len(sets)) if place not in chosen]
    wanted = max(1, round(share * len(sets)))
    chosen.update(draw.sample(left, max(0, min(wanted - len(chosen), len(left)))))
    return sorted(chosen)

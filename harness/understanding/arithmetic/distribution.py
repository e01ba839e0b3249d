"""How often each intent, each combination of intents and each concept is there. Counts add up over files and shards.

Source: seed MEDIA, Tables 1, 2, 5 and 18.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from harness.model.understanding import Chunking, Utterance
from harness.understanding.arithmetic.chunks import chunks


@dataclass(frozen=True, slots=True)
class LabelCounts:
    """Of some utterances. sets: intents that stand together → utterances, () those that have none.

    unannotated: utterances without annotation of intents, which are in no set. slotted: those annotated in slots, of
    which `concepts` counts the chunks.
    """

    utterances: int = 0
    unannotated: int = 0
    slotted: int = 0
    sets: Mapping[tuple[str, ...], int] = field(default_factory=dict)
    concepts: Mapping[str, int] = field(default_factory=dict)

    @property
    def annotated(self) -> int:
        return self.utterances - self.unannotated

    @property
    def labels(self) -> dict[str, int]:
        """Utterances that have each intent."""
        found: Counter[str] = Counter()
        for together, utterances in self.sets.items():
            for label in together:
                found[label] += utterances
        return dict(found)

    @property
    def given(self) -> int:
        """Intents given, all together."""
        return sum(len(together) * utterances for together, utterances in self.sets.items())

    @property
    def several(self) -> int:
        """Utterances with more than one intent."""
        return sum(utterances for together, utterances in self.sets.items() if len(together) > 1)

    def __add__(self, other: LabelCounts) -> LabelCounts:
        return LabelCounts(
            self.utterances + other.utterances,
            self.unannotated + other.unannotated,
            self.slotted + other.slotted,
            Counter(self.sets) + Counter(other.sets),
            Counter(self.concepts) + Counter(other.concepts),
        )


def count_labels(utterances: Iterable[Utterance], chunking: Chunking = Chunking.CONLLEVAL) -> LabelCounts:
    """The counts of some utterances; ValueError at a tag that is no BIO."""
    number = unannotated = slotted = 0
    sets: Counter[tuple[str, ...]] = Counter()
    concepts: Counter[str] = Counter()
    for one in utterances:
        number += 1
        if one.intents is None:
            unannotated += 1
        else:
            sets[one.intents] += 1
        if one.tags is not None:
            slotted += 1
            concepts.update(chunk.concept for chunk in chunks(one.tags, chunking))
        elif one.slots is not None:
            slotted += 1
            concepts.update(slot.concept for slot in one.slots)
    return LabelCounts(number, unannotated, slotted, dict(sets), dict(concepts))

"""Counts of intents, combinations of intents, and concepts, by split. Counts of splits add up to the total.

Source: the MEDIA paper, Tables 1, 2, 5 and 18.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from harness.model.frozen import frozen
from harness.model.understanding import Chunking, Detail, Utterance
from harness.understanding.counts import Rule
from harness.understanding.tag_chunks import chunks


@frozen
class LabelCounts:
    """Counts of some utterances.

    - unannotated: number of utterances whose intents are not annotated; they are in no set.
    - slotted: number of utterances with annotated slots.
    - sets: number of utterances with each set of intents; () is the set of none.
    - concepts: number of slots of each concept.
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
        """Number of utterances with each intent."""
        counts: Counter[str] = Counter()
        for intents, utterances in self.sets.items():
            for label in intents:
                counts[label] += utterances
        return dict(counts)

    @property
    def intents_given(self) -> int:
        """Number of intents of all utterances together."""
        return sum(len(intents) * utterances for intents, utterances in self.sets.items())

    @property
    def several(self) -> int:
        """Number of utterances with more than one intent."""
        return sum(utterances for intents, utterances in self.sets.items() if len(intents) > 1)

    def __add__(self, other: LabelCounts) -> LabelCounts:
        return LabelCounts(
            self.utterances + other.utterances,
            self.unannotated + other.unannotated,
            self.slotted + other.slotted,
            Counter(self.sets) + Counter(other.sets),
            Counter(self.concepts) + Counter(other.concepts),
        )


def count_labels(utterances: Iterable[Utterance], chunking: Chunking = Chunking.CONLLEVAL) -> LabelCounts:
    """The counts of some utterances. Raises ValueError for a tag that is not BIO."""
    number = unannotated = slotted = 0
    sets: Counter[tuple[str, ...]] = Counter()
    concepts: Counter[str] = Counter()
    for utterance in utterances:
        number += 1
        if utterance.intents is None:
            unannotated += 1
        else:
            sets[utterance.intents] += 1
        if utterance.tags is not None:
            slotted += 1
            concepts.update(chunk.concept for chunk in chunks(utterance.tags, chunking))
        elif utterance.slots is not None:
            slotted += 1
            concepts.update(slot.concept for slot in utterance.slots)
    return LabelCounts(number, unannotated, slotted, dict(sets), dict(concepts))


Cells = tuple[int, ...]
Row = tuple[str, Cells]


@dataclass(frozen=True)
class Distribution:
    """Counts of the splits of a corpus, in order.

    - declared: intents of a label set, which get a row even if no utterance has them.
    - relax: how specifiers are dropped, for counting different concepts without them.
    """

    splits: tuple[tuple[str, LabelCounts], ...]
    declared: tuple[str, ...] = ()
    relax: Rule = field(default=Rule(detail=Detail.RELAX))

    @cached_property
    def total(self) -> LabelCounts:
        return sum((counts for _, counts in self.splits), LabelCounts())

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.splits)

    @cached_property
    def intents(self) -> tuple[Row, ...]:
        """Number of utterances with each intent, by split and in total.

        Declared intents come first, then the most frequent.
        """
        rows = self._rows([counts.labels for _, counts in self.splits], self.total.labels)
        cells_by_name = dict(rows)
        empty = (0,) * (len(self.splits) + 1)
        declared = [(name, cells_by_name.get(name, empty)) for name in self.declared]
        return (*declared, *((name, cells) for name, cells in rows if name not in self.declared))

    @cached_property
    def combinations(self) -> tuple[tuple[tuple[str, ...], Cells], ...]:
        """Number of utterances with exactly these intents, most frequent first.

        A single intent, or none, is a combination too.
        """
        return self._rows([counts.sets for _, counts in self.splits], self.total.sets)

    @cached_property
    def concepts(self) -> tuple[Row, ...]:
        """Number of slots of each concept, by split and in total, most frequent first."""
        return self._rows([counts.concepts for _, counts in self.splits], self.total.concepts)

    @cached_property
    def sums(self) -> tuple[Row, ...]:
        """Rows with totals of each split, and of all."""
        columns = [*(counts for _, counts in self.splits), self.total]

        def row(name: str, count: Callable[[LabelCounts], int]) -> Row:
            return name, tuple(count(counts) for counts in columns)

        rows = [
            row("intents given", lambda counts: counts.intents_given),
            row("utterances", lambda counts: counts.utterances),
            row("with several intents", lambda counts: counts.several),
            row("without intent", lambda counts: counts.sets.get((), 0)),
            row("not annotated", lambda counts: counts.unannotated),
        ]
        if self.total.slotted:
            rows += [
                row("slots", lambda counts: sum(counts.concepts.values())),
                row("different concepts", lambda counts: len(counts.concepts)),
                row("  without specifiers", self.without_specifiers),
            ]
        return tuple(rows)

    def without_specifiers(self, counts: LabelCounts) -> int:
        """Number of different concepts without their specifiers."""
        return len({self.relax.concept(name) for name in counts.concepts})

    def share(self, count: int, column: int) -> float | None:
        """`count` as a share of the annotated utterances of a column; None without any.

        column: index of a split; −1 or the number of splits for the total.
        """
        counts = self.total if column in (-1, len(self.splits)) else self.splits[column][1]
        return count / counts.annotated if counts.annotated else None

    @staticmethod
    def _rows(columns: Sequence[Any], total: Any) -> tuple[Any, ...]:
        names = sorted(total, key=lambda name: (-total[name], name))
        return tuple((name, (*(column.get(name, 0) for column in columns), total[name])) for name in names)

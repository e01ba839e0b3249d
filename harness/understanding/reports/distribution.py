"""Counts of intents, combinations of intents, and concepts, as tables, JSON and CSV. Counts of splits add up.

Source: the MEDIA paper, Tables 1, 2, 5 and 18.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from harness import __version__
from harness.base.text_file import safe_csv
from harness.base.text_table import Column, shown, text_table
from harness.model.frozen import frozen
from harness.model.numbers import percent
from harness.model.understanding import Chunking, Detail, Utterance, joined
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
    """The counts of some utterances. ValueError for a tag that is not BIO."""
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


FORMAT = 1
NO_INTENT = "(none)"
ALL = "total"
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


def lines(distribution: Distribution, width: int, max_rows: int, *, shares: bool = False) -> Iterator[str]:
    """Tables of intents, combinations and concepts, with totals.

    - max_rows: largest number of rows of combinations and of concepts; 0 for all.
    - shares: whether to write shares of each split's utterances instead of counts.
    """
    sums = [(name, *(f"{cell:,}" for cell in cells)) for name, cells in distribution.sums]
    if distribution.total.annotated or distribution.declared:
        yield from _table_lines(distribution, "intent", distribution.intents, width, shares=shares, ends=sums)
        yield ""
        rows = [(joined(intents) or NO_INTENT, cells) for intents, cells in distribution.combinations]
        yield from _table_lines(distribution, "intents per utterance", rows, width, max_rows, shares=shares)
    else:
        yield from _table_lines(distribution, "", (), width, with_share=False, ends=sums)
    if distribution.concepts:
        yield ""
        yield from _table_lines(distribution, "concept", distribution.concepts, width, max_rows, with_share=False)
    yield ""
    rest = ", and so do the intents of combinations" if distribution.total.annotated else ""
    yield f"checked: the splits add up to the total in every row{rest}"


def _table_lines(
    distribution: Distribution,
    title: str,
    rows: Sequence[Row],
    width: int,
    max_rows: int = 0,
    *,
    shares: bool = False,
    with_share: bool = True,
    ends: Sequence[tuple[str, ...]] = (),
) -> Iterator[str]:
    """A table.

    - with_share: whether to add a column with the share of all annotated utterances, unless all cells are shares.
    - ends: rows at the end.
    """
    with_share = with_share and not shares
    titles = [title, *(shown(name, 16) for name in distribution.names), ALL]
    body: list[list[str]] = []
    for name, cells in rows:
        texts = [
            percent(distribution.share(cell, index), 2) if shares else f"{cell:,}" for index, cell in enumerate(cells)
        ]
        body.append([name, *texts])
    end_rows = [list(end) for end in ends]
    if with_share:
        titles.append("share")
        for row, (_, cells) in zip(body, rows, strict=True):
            row.append(percent(distribution.share(cells[-1], -1), 2))
        for end_row in end_rows:
            end_row.append("")
    yield from text_table(list(map(Column, titles)), body, width, ends=end_rows, max_rows=max_rows or None)
    if max_rows and len(rows) > max_rows:
        yield f"  {sum(cells[-1] for _, cells in rows[max_rows:]):,} in rows not shown (--max-rows 0 lists them)"


def as_json(distribution: Distribution, files: Sequence[str]) -> dict[str, Any]:
    """Counts by split and in total, with shares of all annotated utterances, for JSON.

    files: name of the file of each split.
    """
    return {
        "format": FORMAT,
        "harness": __version__,
        "splits": [
            {"split": name, "file": file, **_counts_json(distribution, counts)}
            for (name, counts), file in zip(distribution.splits, files, strict=True)
        ],
        "total": _counts_json(distribution, distribution.total),
        "intents": [_row_json(distribution, {"intent": name}, cells) for name, cells in distribution.intents],
        "combinations": [
            _row_json(distribution, {"intents": list(intents)}, cells) for intents, cells in distribution.combinations
        ],
        "concepts": [
            {"concept": name, "splits": dict(zip(distribution.names, cells, strict=False)), "total": cells[-1]}
            for name, cells in distribution.concepts
        ],
        "wrong_sums": [],  # totals are sums of splits; the key stays for compatibility
    }


def _counts_json(distribution: Distribution, counts: LabelCounts) -> dict[str, int]:
    return {
        "utterances": counts.utterances,
        "annotated": counts.annotated,
        "not_annotated": counts.unannotated,
        "without_intent": counts.sets.get((), 0),
        "with_several_intents": counts.several,
        "intents_given": counts.intents_given,
        "annotated_in_slots": counts.slotted,
        "slots": sum(counts.concepts.values()),
        "different_concepts": len(counts.concepts),
        "without_specifiers": distribution.without_specifiers(counts),
    }


def _row_json(distribution: Distribution, names: dict[str, Any], cells: Cells) -> dict[str, Any]:
    return {
        **names,
        "splits": dict(zip(distribution.names, cells, strict=False)),
        "total": cells[-1],
        "share": distribution.share(cells[-1], -1),
    }


def as_csv(distribution: Distribution) -> str:
    """Rows `kind,name,<split>…,total`; kinds are intent, combination, concept and sum."""
    rows: list[list[str]] = [["kind", "name", *distribution.names, ALL]]
    for kind, kind_rows in (
        ("intent", distribution.intents),
        ("combination", tuple((joined(intents), cells) for intents, cells in distribution.combinations)),
        ("concept", distribution.concepts),
        ("sum", tuple((name.strip(), cells) for name, cells in distribution.sums)),
    ):
        rows += [[kind, name, *map(str, cells)] for name, cells in kind_rows]
    return safe_csv(rows)

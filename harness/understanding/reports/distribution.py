"""The distribution of intents, combinations of intents, and concepts, as tables, JSON and CSV."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from harness import __version__
from harness.base.text_file import safe_csv
from harness.base.text_table import Column, shown, text_table
from harness.model.numbers import percent
from harness.model.understanding import joined
from harness.understanding.distribution import Cells, Distribution, LabelCounts, Row

FORMAT = 1
NO_INTENT = "(none)"
ALL = "total"


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
    of_combinations = ", and so do the intents of combinations" if distribution.total.annotated else ""
    yield f"checked: the splits add up to the total in every row{of_combinations}"


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

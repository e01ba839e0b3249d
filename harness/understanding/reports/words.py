"""Figures of understanding in words and columns for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.base.cells import padded, shown, width_of
from harness.model.understanding import Chunking
from harness.understanding.arithmetic.rule import Rule, Values
from harness.understanding.arithmetic.zero_division import ZeroDivision

NOTHING = "n/a"
GAP = "  "
LEAST_NAME, WIDEST_NAME = 10, 48
MOST_ROWS = 100


def per_cent(value: float | None) -> str:
    """`93.10 %`; n/a for None."""
    return NOTHING if value is None else f"{100 * value:.2f} %"


def between(interval: tuple[float, float] | None) -> str:
    """`91.2–94.8 %`; n/a for None."""
    return NOTHING if interval is None else f"{100 * interval[0]:.1f}–{100 * interval[1]:.1f} %"


def chunking_in_words(rule: Rule) -> str:
    """How tags are read."""
    iob2 = rule.chunking is Chunking.IOB2
    return f"{rule.chunking} ({'only B- begins a slot' if iob2 else 'an I- may begin a slot'})"


def details_in_words(rules: Sequence[Rule]) -> str:
    """What of concepts is compared."""
    rule = rules[0]
    said = " and ".join(one.detail.value for one in rules)
    if len(rules) == 1 and rule.detail.value == "full":
        return f"{said} (concepts as they stand)"
    attributes = f", but for {len(rule.attributes)} known attributes" if rule.attributes else ""
    return f"{said} (relax drops what stands after the last {shown(rule.separator, 8)!r}{attributes})"


def zero_in_words(zero: ZeroDivision) -> str:
    """What 0/0 is."""
    parts = {"precision": zero.precision, "recall": zero.recall, "F1": zero.f1, "accuracy": zero.accuracy}
    if len(set(parts.values())) == 1:
        return f"{zero.precision:g} ({zero.name})"
    return f"{', '.join(f'{value:g} for {name}' for name, value in parts.items())} ({zero.name})"


def comparison_in_words(rule: Rule) -> str:
    """How slots and their values are compared, where it is not the usual way; "" where it is."""
    said = []
    if not rule.ordered:
        said.append("slots have no order: both sides are ordered by concept and value")
    if not rule.places:
        said.append("slots are compared without their places")
    if rule.values is not Values.NONE:
        said.append(f"values, where both sides give them: {rule.values}")
    return "; ".join(said)


def table(
    title: str, heads: Sequence[str], rows: Sequence[tuple[str, Sequence[str]]], width: int, most: int = MOST_ROWS
) -> Iterator[str]:
    """A table whose first column is left, the others right; a last head that begins with a blank is left, too."""
    told = rows[:most] if most else rows
    widths = [max([width_of(h.strip()), *(width_of(cells[at]) for _, cells in told)]) for at, h in enumerate(heads)]
    left = [head.startswith(" ") for head in heads]
    figures = sum(w + len(GAP) for w, is_left in zip(widths, left, strict=True) if not is_left)
    room = max(LEAST_NAME, min(WIDEST_NAME, width - figures))
    names = [shown(name, room) for name, _ in told]
    head = shown(title, room)
    room = max(LEAST_NAME, width_of(head), *map(width_of, names)) if names else max(LEAST_NAME, width_of(head))

    def line(name: str, cells: Sequence[str]) -> str:
        text = padded(name, room)
        for cell, w, is_left in zip(cells, widths, left, strict=True):
            text += GAP + (cell if is_left else " " * (w - width_of(cell)) + cell)
        return text if width_of(text) <= width else shown(text, width)

    yield line(head, [one.strip() for one in heads])
    yield "─" * min(width, room + sum(w + len(GAP) for w in widths))
    for name, (_, cells) in zip(names, told, strict=True):
        yield line(name, cells).rstrip()
    if len(told) < len(rows):
        yield f"… and {len(rows) - len(told):,} more, which the JSON has"

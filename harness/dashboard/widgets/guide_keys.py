"""The eleven keys with their categories beside an item: always in sight, with as much of the guide as there is room."""

from __future__ import annotations

from rich.text import Text

from harness.dashboard import palette
from harness.dashboard.widgets.painted import Painted
from harness.model.judgment import Category, RaterKeys
from harness.rating.guide import GUIDE, LABELS, RULES

LONG_FROM = 40
"""Columns from which the tests of the guide can be read."""


class GuideKeys(Painted):
    """A line for each category; with room for it, the guide's test below each, and then the general rules."""

    DEFAULT_CSS = f"GuideKeys {{ height: {len(Category)}; padding: 0 1; }}"

    def __init__(self, keys: RaterKeys) -> None:
        super().__init__()
        self._keys = keys

    def paint(self, width: int, height: int) -> Text:
        lines = self._lines(width, height)[:height]
        if height < len(Category):
            # A key that is out of sight is named, lest it be forgotten.
            keys = " ".join(self._keys.categories[one] for one in list(Category)[height - 1 :])
            lines[height - 1 :] = [self._cut(Text(f"{keys} … 24 lines show all keys", palette.YELLOW), width)]
        return Text("\n").join(lines)

    def _lines(self, width: int, height: int) -> list[Text]:
        """The richest of: the tests below the names, the short texts below the names, the short texts beside them."""
        heads, short = self._heads(), [GUIDE[one].short for one in Category]
        lines = [
            self._cut(Text.assemble(head, "  ", (text, palette.QUIET)), width)
            for head, text in zip(heads, short, strict=True)
        ]
        # On a narrow screen a short text has its place beside the name.
        if (
            width < LONG_FROM
            or max(head.cell_len + 2 + len(text) for head, text in zip(heads, short, strict=True)) <= width
        ):
            return lines
        for texts in ([GUIDE[one].test for one in Category], short):
            below = [self._folded(text, width, "  ") for text in texts]
            if len(heads) + sum(map(len, below)) <= height:
                lines = [line for head, parts in zip(heads, below, strict=True) for line in (head, *parts)]
                break
        rules = [line for rule in RULES for line in self._folded(f"· {rule}", width, "")]
        return [*lines, Text(), *rules] if len(lines) + 1 + len(rules) <= height else lines

    def _heads(self) -> list[Text]:
        key_width = max(len(key) for key in self._keys.categories.values())
        name_width = max(len(name) for name in LABELS.values())
        return [
            Text.assemble(
                (f"{self._keys.categories[one]:>{key_width}} ", f"bold {palette.BLUE}"),
                (f"{LABELS[one]:<{name_width}}", f"bold {palette.TEXT}"),
            )
            for one in Category
        ]

    def _cut(self, line: Text, width: int) -> Text:
        line.truncate(width, overflow="ellipsis")
        return line

    def _folded(self, text: str, width: int, indent: str) -> list[Text]:
        words = Text(text, style=palette.QUIET)
        lines = words.wrap(self.app.console, max(1, width - len(indent)))
        return [Text.assemble((indent, ""), line) for line in lines]

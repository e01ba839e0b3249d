"""The eleven keys with their categories beside an item: always in sight, with as much of the guide as there is room."""

from __future__ import annotations

from rich.text import Text

from harness.dashboard import palette
from harness.dashboard.widgets.painted import Painted
from harness.model.judgment import Category
from harness.model.rater_keys import RaterKeys
from harness.rating.categories import LABELS
from harness.rating.guide import GUIDE, RULES

LONG_FROM = 40
"""Columns from which the tests of the guide can be read."""


class GuideKeys(Painted):
    """A line for each category; with room for it, the guide's test below each, and then the general rules."""

    DEFAULT_CSS = f"GuideKeys {{ height: {len(Category)}; padding: 0 1; }}"

    def __init__(self, keys: RaterKeys) -> None:
        super().__init__()
        self._keys = keys

    def paint(self, width: int, height: int) -> Text:
        brief = self._brief(width)
        tests = [self._folded(GUIDE[one].test, width, "  ") for one in Category] if width >= LONG_FROM else []
        lines = brief
        if tests and len(brief) + sum(map(len, tests)) <= height:
            heads = self._brief(width, whole=True)
            lines = [line for head, test in zip(heads, tests, strict=True) for line in (head, *test)]
        rules = [line for rule in RULES for line in self._folded(f"· {rule}", width, "")]
        if width >= LONG_FROM and len(lines) + 1 + len(rules) <= height:
            lines = [*lines, Text(), *rules]
        return Text("\n").join(lines[:height])

    def _brief(self, width: int, *, whole: bool = False) -> list[Text]:
        """Key, name and short text; whole: the short text only where none of it must be cut."""
        key_width = max(len(key) for key in self._keys.categories.values())
        name_width = max(len(name) for name in LABELS.values())
        lines = []
        for category in Category:
            line = Text()
            line.append(f"{self._keys.categories[category]:>{key_width}} ", style=f"bold {palette.BLUE}")
            line.append(f"{LABELS[category]:<{name_width}}  ", style=f"bold {palette.TEXT}")
            if not whole or line.cell_len + len(GUIDE[category].short) <= width:
                line.append(GUIDE[category].short, style=palette.QUIET)
            line.truncate(width, overflow="ellipsis")
            lines.append(line)
        return lines

    def _folded(self, text: str, width: int, indent: str) -> list[Text]:
        words = Text(text, style=palette.QUIET)
        lines = words.wrap(self.app.console, max(1, width - len(indent)))
        return [Text.assemble((indent, ""), line) for line in lines]

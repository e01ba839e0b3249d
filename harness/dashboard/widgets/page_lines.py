"""The utterances of a page: each with the key that strikes it, folded, as many as there is room for."""

from __future__ import annotations

from rich.style import Style
from rich.text import Text

from harness.annotation.view import PageLine
from harness.base.foreign import plain_text
from harness.dashboard import palette
from harness.dashboard.widgets.painted import Painted
from harness.model.annotation import LINE_KEYS

LONGEST = 2000
MOST_LINES = 5
"""Of an utterance; the rest is read on the key that shows it whole."""
_INDENT = 5


class PageLines(Painted):
    """Keeps the line under the cursor in sight, and knows which lines have been in sight since the page came.

    What is out of sight is counted above and below.
    """

    DEFAULT_CSS = "PageLines { height: 1fr; padding: 0 1; }"

    def __init__(self) -> None:
        super().__init__()
        self._lines: tuple[PageLine, ...] = ()
        self._cursor = 0
        self._top = 0
        self._page: tuple[str, ...] = ()
        self._seen: set[int] = set()
        self._drawn = range(0)

    def show(self, lines: tuple[PageLine, ...], cursor: int) -> None:
        """Other utterances than before begin at their top, unseen."""
        page = tuple(line.utterance for line in lines)
        if page != self._page:
            self._page, self._top, self._seen = page, 0, set()
        self._lines, self._cursor = lines, cursor
        self.refresh()

    @property
    def unseen(self) -> int | None:
        """The first line that has not been in sight."""
        return next((index for index in range(len(self._lines)) if index not in self._seen), None)

    @property
    def in_sight(self) -> range:
        """The lines that are drawn now."""
        return self._drawn

    def turn_to(self, top: int) -> None:
        """Draws from this line on."""
        self._top = top
        self.refresh()

    def paint(self, width: int, height: int) -> Text:
        folded = [self._folded(index, width) for index in range(len(self._lines))]
        first, after = self._window([len(parts) for parts in folded], height)
        self._top, self._drawn = first, range(first, after)
        self._seen.update(self._drawn)
        rows = [line for parts in folded[first:after] for line in parts]
        if first:
            rows.insert(0, Text(f"     ↑ {first} more above", style=palette.YELLOW))
        if after < len(folded):
            rows.append(Text(f"     ↓ {len(folded) - after} more below", style=palette.YELLOW))
        return Text("\n").join(rows[:height])

    def _window(self, heights: list[int], room: int) -> tuple[int, int]:
        """(first, behind the last) of the lines that are drawn; the top moves no further than the cursor wants."""
        first = min(self._top, self._cursor, max(0, len(heights) - 1))
        while True:
            after, used = first, int(first > 0)
            while after < len(heights) and used + heights[after] + (after + 1 < len(heights)) <= room:
                used += heights[after]
                after += 1
            if self._cursor < after or first >= self._cursor:
                return first, max(after, first + 1) if heights else after
            first += 1

    def _folded(self, index: int, width: int) -> list[Text]:
        line, at = self._lines[index], index == self._cursor
        key = LINE_KEYS[index] if index < len(LINE_KEYS) else " "
        head = Text("›" if at else " ", style=f"bold {palette.TEXT}")
        head.append(f"{key} ", style=f"bold {palette.BLUE}")
        head.append("✗ " if line.struck else "  ", style=f"bold {palette.RED}")
        style = Style(color=palette.QUIET, strike=True) if line.struck else Style(color=palette.TEXT, bold=at)
        words = Text(plain_text(line.text, LONGEST) or "(no words)", style=style)
        parts = list(words.wrap(self.app.console, max(1, width - _INDENT)))
        if len(parts) > MOST_LINES:
            parts = parts[:MOST_LINES]
            parts[-1].truncate(max(1, width - _INDENT - 12))
            parts[-1].append(" … v: whole", style=palette.YELLOW)
        rows = []
        for number, part in enumerate(parts):
            part.rstrip()
            row = Text.assemble(head if number == 0 else " " * _INDENT, part)
            if at:
                row.pad_right(max(0, width - row.cell_len))
                row.stylize(Style(bgcolor=palette.SELECTED))
            rows.append(row)
        return rows

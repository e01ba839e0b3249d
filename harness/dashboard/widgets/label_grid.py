"""The labels with their keys and whether they are given; with as much of the guide beside them as there is room."""

from __future__ import annotations

from rich.style import Style
from rich.text import Text

from harness.base.foreign import plain_text
from harness.dashboard import palette
from harness.dashboard.widgets.painted import Painted
from harness.model.annotation import Label, LabelSet, label_keys

LONGEST_NAME = 40
_GAP = 2
NARROWEST = 16
"""Cells of a column; what does not fit then is scrolled to."""


def label_name(label: Label) -> str:
    """As it is called on screen: its title with the id of the files behind it, harmless."""
    id_ = plain_text(label.id, LONGEST_NAME)
    same = label.title.casefold().replace(" ", "_") in ("", label.id.casefold())
    return id_ if same else f"{plain_text(label.title, LONGEST_NAME)} ({id_})"


class LabelGrid(Painted):
    """One column with descriptions where all fit below each other, else as many columns as are needed."""

    DEFAULT_CSS = "LabelGrid { height: 1fr; padding: 0 1; }"

    def __init__(self, labels: LabelSet) -> None:
        super().__init__()
        self._labels = labels
        self._keys = label_keys(labels)
        self._given: tuple[str, ...] = ()
        self._cursor = 0
        self._columns = 1

    @property
    def rows(self) -> int:
        """Lines that the labels take as they were drawn last."""
        return -(-len(self._labels.labels) // self._columns)

    def show(self, given: tuple[str, ...], cursor: int) -> None:
        self._given, self._cursor = given, cursor
        self.refresh()

    def paint(self, width: int, height: int) -> Text:
        labels = self._labels.labels
        names = [label_name(label) for label in labels]
        if len(labels) <= height:
            self._columns = 1
            folded = self._folded(names, width)
            if sum(map(len, folded)) > height:
                # The id is what files have; without the title there is more room for the description.
                folded = self._folded([plain_text(label.id, LONGEST_NAME) for label in labels], width)
            if sum(map(len, folded)) > height:
                folded = [self._cut(parts[0], len(parts) > 1, width) for parts in folded]
            return Text("\n").join(line for parts in folded for line in parts)
        longest = max(map(len, names)) + 7
        self._columns = max(1, min(-(-len(labels) // max(1, height)), width // NARROWEST))
        each = max(10, (width - _GAP * (self._columns - 1)) // self._columns)
        if longest > each:
            names = [plain_text(label.id, LONGEST_NAME) for label in labels]
        rows = []
        top = self._top(height)
        for at in range(top, min(self.rows, top + height)):
            row = Text()
            for index in range(at, len(labels), self.rows):
                cell = self._cell(index, names[index], each)
                cell.truncate(each, overflow="ellipsis", pad=True)
                row.append_text(cell)
                row.append(" " * _GAP)
            rows.append(row)
        return Text("\n").join(rows)

    def _top(self, height: int) -> int:
        return max(0, min(self._cursor % max(1, self.rows) - height + 1, self.rows - height))

    def _folded(self, names: list[str], width: int) -> list[list[Text]]:
        room = max(map(len, names), default=0)
        return [self._row(index, name, room, width) for index, name in enumerate(names)]

    def _row(self, index: int, name: str, room: int, width: int) -> list[Text]:
        label = self._labels.labels[index]
        head = self._cell(index, f"{name:<{room}}  ", width)
        words = f"{'stands alone. ' if label.alone else ''}{plain_text(label.description, 600)}".strip()
        left = width - head.cell_len
        if not words or left < 12:
            head.truncate(width, overflow="ellipsis")
            return [head]
        folded = list(Text(words, style=palette.QUIET).wrap(self.app.console, left))
        rest = [Text.assemble(" " * head.cell_len, line) for line in folded[1:]]
        return [Text.assemble(head, folded[0]), *rest]

    def _cut(self, line: Text, longer: bool, width: int) -> list[Text]:
        if longer:
            line.truncate(width - 2)
            line.rstrip()
            line.append(" …", style=palette.QUIET)
        return [line]

    def _cell(self, index: int, name: str, width: int) -> Text:
        label = self._labels.labels[index]
        given, at = label.id in self._given, index == self._cursor
        text = Text("›" if at else " ", style=f"bold {palette.TEXT}")
        text.append(f"{plain_text(self._keys[label.id], 1) if self._keys[label.id] else ' '} ", f"bold {palette.BLUE}")
        text.append("[x] " if given else "[ ] ", f"bold {palette.GREEN if given else palette.QUIET}")
        text.append(name, Style(color=palette.GREEN if given else palette.TEXT, bold=given))
        if at:
            text.stylize(Style(bgcolor=palette.SELECTED))
        return text

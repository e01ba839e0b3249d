"""A scrolling list that draws only the rows in sight."""

from __future__ import annotations

from rich.text import Text
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip


class Lines(ScrollView, can_focus=True):
    """Subclasses give `count` and `line`; ten thousand rows cost as much as a screenful."""

    DEFAULT_CSS = """
    Lines {
        overflow-x: hidden;
        scrollbar-size-vertical: 1;
        background: $background;
        scrollbar-background: $background;
        scrollbar-background-hover: $background;
        scrollbar-color: $panel-lighten-3;
    }
    """

    @property
    def count(self) -> int:
        raise NotImplementedError

    def line(self, index: int, width: int) -> Text:
        """Row `index`, at most `width` cells."""
        raise NotImplementedError

    def fit(self) -> None:
        """To be called when the number of rows has changed."""
        self.virtual_size = Size(self.scrollable_content_region.width, self.count)
        self.refresh()

    def render_line(self, y: int) -> Strip:
        width = self.scrollable_content_region.width
        index = y + self.scroll_offset.y
        if index >= self.count or width < 1:
            return Strip.blank(self.size.width, self.rich_style)
        text = self.line(index, width)
        text.truncate(width, overflow="ellipsis")
        text.end = ""
        strip = Strip(text.render(self.app.console)).apply_style(self.rich_style)
        return strip.adjust_cell_length(self.size.width, self.rich_style)

"""A widget that is one text, made anew when what it shows has changed."""

from __future__ import annotations

from rich.text import Text
from textual.widget import Widget


class Painted(Widget):
    """Subclasses set what they show, and call `refresh`; `paint` gives the text for the present width."""

    DEFAULT_CSS = "Painted { text-wrap: nowrap; text-overflow: ellipsis; }"

    def paint(self, width: int, height: int) -> Text:
        raise NotImplementedError

    def render(self) -> Text:
        return self.paint(max(1, self.content_size.width), max(1, self.content_size.height))

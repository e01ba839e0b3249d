"""A widget that is one text, made anew when what it shows has changed."""

from __future__ import annotations

from rich.text import Text
from textual.widget import Widget


class Painted(Widget):
    """Subclasses set what they show, and call `refresh`; `paint` gives the text for the present width."""

    def paint(self, width: int, height: int) -> Text:
        raise NotImplementedError

    def render(self) -> Text:
        text = self.paint(max(1, self.content_size.width), max(1, self.content_size.height))
        text.no_wrap = True
        text.overflow = "ellipsis"
        return text

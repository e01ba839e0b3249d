"""A long text over a screen, to be scrolled."""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widgets import Static

from harness.dashboard import palette
from harness.dashboard.screens.sheet import Panel

SCROLL_KEYS = ("up", "down", "pageup", "pagedown", "home", "end", "space")


class ReadingPanel(Panel):
    """Arrows, page up, page down and space scroll; any other key goes back."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("space", "page", "Page down")]
    DEFAULT_CSS = """
    ReadingPanel > VerticalScroll {
        width: 100; max-width: 98%; height: auto; max-height: 98%;
        padding: 0 2; background: $panel; border: solid $primary; scrollbar-size-vertical: 1;
    }
    """

    def __init__(self, text: Text) -> None:
        super().__init__()
        self._text = text

    def compose(self) -> ComposeResult:
        with VerticalScroll():
            yield Static(self._text, markup=False)
            yield Static(Text("↑ ↓ scroll   escape goes back", style=palette.QUIET), markup=False)

    def on_key(self, event: events.Key) -> None:
        if event.key not in SCROLL_KEYS:
            event.stop()
            self.dismiss(None)

    def action_page(self) -> None:
        self.query_one(VerticalScroll).scroll_page_down(animate=False)

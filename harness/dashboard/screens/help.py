"""Help for the screen below it."""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widgets import Static

from harness.dashboard import palette
from harness.dashboard.screens.sheet import Panel


class HelpPanel(Panel):
    """Text of the screen that was left; any of escape, q, ? and F1 goes back."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,question_mark,f1,enter", "leave", "Back")]
    DEFAULT_CSS = """
    HelpPanel > VerticalScroll {
        width: 78; max-width: 98%; height: auto; max-height: 98%;
        padding: 1 2; background: $panel; border: solid $primary;
    }
    """

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text

    def compose(self) -> ComposeResult:
        with VerticalScroll():
            yield Static(Text(self._text, style=palette.TEXT), markup=False)
            yield Static(Text("\nescape goes back", style=palette.QUIET), markup=False)

    def action_leave(self) -> None:
        self.dismiss(None)

"""The guide over a screen: typed words leave the labels in which they stand."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widgets import Input, Static

from harness.dashboard.annotation_guide import guide_text
from harness.dashboard.screens.sheet import Panel
from harness.model.annotation import LabelSet


class GuidePanel(Panel):
    """Arrows and page keys scroll, letters search, escape and enter go back."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,f1", "leave", "Back", priority=True),
        Binding("up", "scroll(-1)", "Up", priority=True),
        Binding("down", "scroll(1)", "Down", priority=True),
        Binding("pageup", "pages(-1)", "Page up", priority=True),
        Binding("pagedown", "pages(1)", "Page down", priority=True),
    ]
    DEFAULT_CSS = """
    GuidePanel > VerticalScroll {
        width: 100; max-width: 98%; height: 1fr; max-height: 98%; margin: 0 0 1 0;
        padding: 0 2; background: $panel; border: solid $primary; scrollbar-size-vertical: 1;
    }
    GuidePanel > Input { width: 100; max-width: 98%; height: 3; }
    """

    def __init__(self, labels: LabelSet) -> None:
        super().__init__()
        self._labels = labels

    def compose(self) -> ComposeResult:
        yield Input(placeholder="search the guide; ↑ ↓ scroll, escape goes back", max_length=100)
        with VerticalScroll(can_focus=False):
            yield Static(guide_text(self._labels), id="guide", markup=False)

    def on_mount(self) -> None:
        self.query_one(Input).focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self.query_one("#guide", Static).update(guide_text(self._labels, event.value))
        self._scroll.scroll_home(animate=False)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.dismiss(None)

    @property
    def _scroll(self) -> VerticalScroll:
        return self.query_one(VerticalScroll)

    def action_scroll(self, by: int) -> None:
        self._scroll.scroll_relative(y=by, animate=False)

    def action_pages(self, by: int) -> None:
        self._scroll.scroll_relative(y=by * max(1, self._scroll.size.height - 2), animate=False)

    def action_leave(self) -> None:
        self.dismiss(None)

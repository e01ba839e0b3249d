"""Short questions: a line of text, and a yes or no."""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Input, Static

from harness.base.foreign import plain_text
from harness.dashboard import palette
from harness.dashboard.screens.sheet import Panel


class LinePrompt(Panel):
    """Asks for a line; answers with it, or None after escape. needed: not an empty one; line: to begin with."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "Leave")]
    DEFAULT_CSS = "LinePrompt Input { margin-top: 1; }"
    help_text = "Type a line. enter sends it, escape leaves without doing anything."

    def __init__(self, question: str, *, needed: bool = True, hint: str = "", line: str = "") -> None:
        super().__init__()
        self._question = question
        self._needed = needed
        self._hint = hint
        self._line = plain_text(line) if line else ""

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(Text(self._question, style=f"bold {palette.TEXT}"), markup=False)
            yield Input(self._line, placeholder=self._hint, max_length=500, select_on_focus=False)
            yield Static(Text("enter send   escape leave", style=palette.QUIET), id="said", markup=False)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        line = event.value.strip()
        if self._needed and not line:
            said = self.query_one("#said", Static)
            said.update(Text("Please write something, or press escape.", style=palette.YELLOW))
            return
        self.dismiss(line)

    def action_leave(self) -> None:
        self.dismiss(None)


class Confirm(Panel):
    """Asks before something that cannot be taken back; only y says yes."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "yes", "Yes"),
        Binding("n,escape,enter", "no", "No"),
    ]
    help_text = "y does it. n, enter and escape leave everything as it is."

    def __init__(self, question: str, consequence: str) -> None:
        super().__init__()
        self._question = question
        self._consequence = consequence

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(Text(self._question, style=f"bold {palette.ORANGE}"), markup=False)
            yield Static(Text(f"{self._consequence}\n", style=palette.TEXT), markup=False)
            yield Static(Text("y yes   n no", style=palette.QUIET), markup=False)

    def action_yes(self) -> None:
        self.dismiss(True)

    def action_no(self) -> None:
        self.dismiss(False)


class Choice(Panel):
    """Asks for one of up to nine things by its number; answers with its index, or None."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "Leave")]
    help_text = "Press a number, or escape to leave without doing anything."

    def __init__(self, question: str, choices: tuple[str, ...]) -> None:
        super().__init__()
        self._question = question
        self._choices = choices

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(Text(f"{self._question}\n", style=f"bold {palette.TEXT}"), markup=False)
            text = Text()
            for number, choice in enumerate(self._choices, start=1):
                text.append(f"{number} ", style=f"bold {palette.BLUE}")
                text.append(f"{choice}\n", style=palette.TEXT)
            yield Static(text, markup=False)
            yield Static(Text("escape leave", style=palette.QUIET), markup=False)

    def on_key(self, event: events.Key) -> None:
        if event.key.isdigit() and 1 <= int(event.key) <= len(self._choices):
            event.stop()
            self.dismiss(int(event.key) - 1)

    def action_leave(self) -> None:
        self.dismiss(None)

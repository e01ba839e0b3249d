"""The decision aid: one short question at a time, answered by one key."""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Static

from harness.base.foreign import plain_text
from harness.dashboard import palette
from harness.dashboard.screens.sheet import Panel
from harness.rating.aid import AidState, Step
from harness.rating.guide import FLAG_TEXTS, GUIDE, LABELS, SUB_FLAG_TEXTS

LOW = 20
"""Lines of a screen below which what was answered is left out."""


class AidPanel(Panel):
    """Answers with the state at its end when enter saves it, or None after escape."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Leave"),
        Binding("backspace", "back", "Back"),
        Binding("enter", "save", "Save"),
    ]
    DEFAULT_CSS = """
    AidPanel { align: center bottom; }
    AidPanel > Vertical { width: 100%; max-width: 100; max-height: 100%; padding: 0 2; overflow-y: auto; }
    """

    def __init__(self, state: AidState, query: str) -> None:
        super().__init__()
        self._state, self._query = state, query

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(id="aid", markup=False)

    def on_mount(self) -> None:
        self._write()

    def on_resize(self) -> None:
        self._write()

    def on_key(self, event: events.Key) -> None:
        state = self._state.press(event.character) if event.character else None
        if state is not None:
            event.stop()
            self._state = state
            self._write()

    def action_back(self) -> None:
        self._state = self._state.back()
        self._write()

    def action_save(self) -> None:
        if self._state.ending is not None:
            self.dismiss(self._state)

    def action_leave(self) -> None:
        self.dismiss(None)

    def _write(self) -> None:
        text = Text(f"“{plain_text(self._query, 60)}”", style=palette.QUIET)
        # On a low screen the answers to the question itself need the room.
        steps = self._state.steps if self.app.size.height >= LOW else ()
        for step in steps:
            text.append("\n")
            text.append_text(_answered(step))
        text.append("\n\n" if steps else "\n")
        text.append_text(self._ending() if self._state.ending is not None else self._question())
        text.append("\n\n")
        keys = [("enter", "save")] * (self._state.ending is not None)
        keys += [("backspace", "back")] * self._state.can_go_back
        for key, what in (*keys, ("escape", "leave without saving")):
            text.append(key, style=f"bold {palette.BLUE}")
            text.append(f" {what}   ", style=palette.TEXT)
        self.query_one("#aid", Static).update(text)

    def _question(self) -> Text:
        state, question = self._state, self._state.question
        if question is None:
            return Text()
        text = Text(f"{state.number} of at most {state.most}  ", style=palette.QUIET)
        text.append(plain_text(question.text), style=f"bold {palette.YELLOW}")
        for answer in question.answers:
            text.append(f"\n  {answer.key} ", style=f"bold {palette.BLUE}")
            text.append(plain_text(answer.text), style=palette.TEXT)
            if answer == state.suggested:
                text.append("  (what the harness has seen)", style=palette.QUIET)
        return text

    def _ending(self) -> Text:
        ending = self._state.ending
        if ending is None:
            return Text()
        text = Text("That makes it  ", style=palette.QUIET)
        if ending.category is not None:
            text.append(LABELS[ending.category], style=f"bold {palette.GREEN}")
            if ending.sub_flags:
                words = ", ".join(SUB_FLAG_TEXTS[flag] for flag in ending.sub_flags)
                text.append(f"  ({words})", style=palette.GREEN)
            text.append(f"\n{GUIDE[ending.category].test}", style=palette.QUIET)
        elif ending.flag is not None:
            text.append(f"put aside: {FLAG_TEXTS[ending.flag]}", style=f"bold {palette.ORANGE}")
        else:
            text.append("held until it is known what the device did", style=f"bold {palette.VIOLET}")
        return text


def _answered(step: Step) -> Text:
    text = Text(f"{plain_text(step.question.topic)}: ", style=palette.QUIET)
    text.append(plain_text(step.answer.text), style=palette.TEXT)
    if step.filled:
        text.append("  (seen by the harness)", style=palette.QUIET)
    return text

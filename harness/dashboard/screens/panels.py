"""The base classes of screens, and the panels that several screens use."""

from __future__ import annotations

from typing import Any, ClassVar

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.await_complete import AwaitComplete
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen, Screen
from textual.widgets import Input, Static

from harness.base.user_text import checked_text
from harness.dashboard import palette
from harness.dashboard.messages import CommandWanted, NoticeWanted, new_id
from harness.dashboard.rating_words import DIGIT_ROW
from harness.dashboard.watch import AnswerCallback, View
from harness.dashboard.widgets.bars import (
    GoneBanner,
    NoticeLine,
    ProgressLine,
    StateLine,
    StateWordBanner,
    TextWidget,
    TitleLine,
    ViewWidget,
)
from harness.dashboard.widgets.verbatim_input import VerbatimInput
from harness.model.errors import InputError
from harness.model.feed import Pause, Replay, Resume, StateWord
from harness.model.numbers import counted
from harness.model.record import Clip


class Sheet(Screen[None]):
    """A full screen, drawn anew five times a second. person: who presses the keys."""

    HORIZONTAL_BREAKPOINTS: list[tuple[int, str]] | None = [(0, "-slim"), (70, "-narrow"), (110, "-wide")]  # noqa: RUF012
    VERTICAL_BREAKPOINTS: list[tuple[int, str]] | None = [(0, "-flat"), (20, "-low"), (32, "-tall")]  # noqa: RUF012
    help_text: str = ""

    def __init__(self, person: str) -> None:
        super().__init__()
        self._person = person
        self._view: View | None = None

    def show(self, view: View) -> None:
        """Draws a new view: the lines about the session, and the answer to the last command. Screens draw the rest."""
        self._view = view
        for widget in self.query(TextWidget):
            if isinstance(widget, ViewWidget):
                widget.show_view(view)
        self.query_one(NoticeLine).show(view.notice)

    def post_notice(self, message: str) -> None:
        self.post_message(NoticeWanted(message))

    def action_pause(self) -> None:
        """Pauses, or continues."""
        view = self._view
        state = view.state if view else None
        paused = view is not None and view.progress.paused is not None
        if paused or (state is not None and state.word is StateWord.PAUSED):
            self.post_message(CommandWanted(Resume(new_id(), self._person), "continue"))
        else:
            self.post_message(CommandWanted(Pause(new_id(), self._person), "pause"))

    def replay(self, clip: Clip | None, then: AnswerCallback | None = None) -> None:
        """Asks the engine to play a stored clip on the bench's monitor. Shows a notice if that is not possible.

        - clip: None if the clip is not stored.
        - then: gets the engine's answer.
        """
        view = self._view
        if view is not None and view.welcome is not None and not view.welcome.has_monitor:
            self.post_notice("the bench has no monitor to replay on: add `monitor:` to it")
        elif view is not None and clip is None:
            self.post_notice("the sound around this event is not stored yet, or there was no microphone")
        elif view is not None and clip is not None:
            self.post_message(CommandWanted(Replay(new_id(), self._person, clip.name), "replay", then))

    def session_lines(self) -> ComposeResult:
        """The lines about the session, at the top of a screen."""
        yield from (TitleLine(), GoneBanner(), StateWordBanner(), StateLine(), ProgressLine())


class Panel(ModalScreen[Any]):
    """A panel over a screen."""

    DEFAULT_CSS = """
    Panel { align: center middle; background: $background 60%; }
    Panel > Vertical {
        width: 72; max-width: 96%; height: auto; max-height: 96%;
        padding: 1 2; background: $panel; border: solid $primary;
    }
    Panel Static { height: auto; }
    """
    help_text: str = ""

    def show(self, view: View) -> None:
        """Draws a new view; by default nothing, since most panels do not change while they are open."""

    def dismiss(self, result: object = None) -> AwaitComplete:
        """Closes this panel, at most once: Textual would close whatever screen is on top, under a closed panel too.

        A redraw runs beside the keys, so that a question may be answered and be over at the same moment.
        """
        return super().dismiss(result) if self.app.screen is self else AwaitComplete()

    def action_leave(self) -> None:
        self.dismiss(None)


SCROLL_KEYS = ("up", "down", "pageup", "pagedown", "home", "end", "space")


class TextPanel(Panel):
    """A panel with a text that can be longer than the screen. KEYS: says how to leave it."""

    KEYS: ClassVar[str]

    def __init__(self, text: Text) -> None:
        super().__init__()
        self._text = text

    def compose(self) -> ComposeResult:
        with VerticalScroll():
            yield Static(self._text, markup=False)
            yield Static(Text(self.KEYS, style=palette.QUIET), markup=False)


class ReadingPanel(TextPanel):
    """A panel with a text to read. Arrows, page up, page down and space scroll; any other key goes back."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("space", "page", "Page down")]
    DEFAULT_CSS = """
    ReadingPanel > VerticalScroll {
        width: 100; max-width: 98%; height: auto; max-height: 98%;
        padding: 0 2; background: $panel; border: solid $primary; scrollbar-size-vertical: 1;
    }
    """
    KEYS = "↑ ↓ scroll   escape goes back"

    def on_key(self, event: events.Key) -> None:
        if event.key not in SCROLL_KEYS:
            event.stop()
            self.dismiss(None)

    def action_page(self) -> None:
        self.query_one(VerticalScroll).scroll_page_down(animate=False)


class HelpPanel(TextPanel):
    """The help of a screen. Escape, q, ? or F1 goes back."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,question_mark,f1,enter", "leave", "Back")]
    DEFAULT_CSS = """
    HelpPanel > VerticalScroll {
        width: 78; max-width: 98%; height: auto; max-height: 98%;
        padding: 1 2; background: $panel; border: solid $primary;
    }
    """
    KEYS = "\nescape goes back"

    def __init__(self, text: str) -> None:
        super().__init__(Text(text, style=palette.TEXT))


class LinePrompt(Panel):
    """Asks for a text. Returns it as it was written (`checked_text`), or None after escape or without a change.

    - required: whether an empty text is refused.
    - line: the initial text. Pasted lines stay lines; `⏎` shows where they end.
    """

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "Leave")]
    DEFAULT_CSS = "LinePrompt Input { margin-top: 1; }"
    help_text = "Type or paste a text. enter sends it, escape cancels. ⏎ stands for the end of a pasted line."

    def __init__(self, question: str, *, required: bool = True, line: str = "") -> None:
        super().__init__()
        self._question, self._required, self._line = question, required, line

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(Text(self._question, style=f"bold {palette.TEXT}"), markup=False)
            yield VerbatimInput(self._line)
            yield Static(id="said", markup=False)

    def on_mount(self) -> None:
        self._set_notice("")

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self._set_notice("")

    def _set_notice(self, message: str) -> None:
        """Shows why the text was not taken, or what the keys do."""
        line_ends = self.query_one(VerbatimInput).value.count("\n")
        keys = "enter send   escape leave"
        if line_ends:
            keys = f"{counted(line_ends + 1, 'line')}   {keys}"
        self.query_one("#said", Static).update(
            Text(message or keys, style=palette.YELLOW if message else palette.QUIET)
        )

    def action_send(self) -> None:
        line = self.query_one(VerbatimInput).value
        if line and line == self._line:
            self.dismiss(None)
            return
        try:
            line = checked_text(line, "the text")
        except InputError as error:
            self._set_notice(f"Not accepted: {error}.")
            return
        if self._required and not line:
            self._set_notice("Type a text, or press escape.")
            return
        self.dismiss(line)


class Confirm(Panel):
    """Asks before an action that cannot be undone; only y confirms."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("y", "yes", "Yes"), Binding("n,escape,enter", "no", "No")]
    help_text = "y confirms. n, enter and escape cancel."

    def __init__(self, question: str, consequence: str) -> None:
        super().__init__()
        self._question, self._consequence = question, consequence

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(Text(self._question, style=f"bold {palette.ORANGE}"), markup=False)
            yield Static(Text(f"{self._consequence}\n", style=palette.TEXT), markup=False)
            yield Static(Text("y yes   n no", style=palette.QUIET), markup=False)

    def action_yes(self) -> None:
        self.dismiss(True)

    def action_no(self) -> None:
        self.dismiss(False)


class ChoicePanel(Panel):
    """Asks for one of up to nine choices by its number. Returns its index, or None."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "Leave")]
    help_text = "Press a number, or escape to cancel."

    def __init__(self, question: str, choices: tuple[str, ...]) -> None:
        super().__init__()
        self._question, self._choices = question, choices

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
        character = event.character or ""
        digit = DIGIT_ROW.get(character, character)  # a digit key of an AZERTY keyboard, without Shift
        number = int(digit) if digit.isdecimal() else 0
        if 1 <= number <= len(self._choices):
            event.stop()
            self.dismiss(number - 1)

"""What a screen of raters needs: messages, saving, panels, and updates from elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from textual.screen import Screen

from harness.dashboard import palette
from harness.dashboard.listening import Refreshing, Rereadable
from harness.dashboard.messages import RoomRead
from harness.dashboard.screens.panels import Panel
from harness.dashboard.widgets.sitting_lines import MessageLine, Trouble
from harness.model.errors import HarnessError, InputError


class SittingScreen(Screen[None]):
    """Shows the desk's view after every key. The desk saves; nothing is kept here."""

    HORIZONTAL_BREAKPOINTS: list[tuple[int, str]] | None = [(0, "-narrow"), (110, "-wide")]  # noqa: RUF012
    AUTO_FOCUS: ClassVar[str | None] = ""
    GONE: ClassVar[str]
    """The refusal when the item of a question is no longer on screen."""

    def __init__(self, room: Rereadable) -> None:
        super().__init__()
        self._sitting_room = room
        self._said, self._colour = "", palette.GREEN

    def on_mount(self) -> None:  # Textual calls the handlers of subclasses first, then this one
        self._refreshing = Refreshing(self._sitting_room, self.post_message)
        self.show()

    def close(self) -> None:
        """Before the app ends: threads post nothing more."""
        self._refreshing.close()

    def show(self) -> None:
        """Draws the desk's view."""
        raise NotImplementedError

    def asked_about(self) -> object:
        """The item that a question would concern now, or None."""
        raise NotImplementedError

    def take_in(self) -> None:
        """The room has read its files again. The item on screen stays while it is still open."""
        raise NotImplementedError

    def _tell(self, said: str, colour: str = palette.YELLOW) -> None:
        self._said, self._colour = said, colour

    def _show_message(self, said: str, *, break_due: bool = False) -> None:
        """The answer to the last key, else the desk's message."""
        said, colour = (self._said, self._colour) if self._said else (said, palette.GREEN)
        self.query_one(MessageLine).show(said, colour, break_due=break_due)

    def _write(self, give: Callable[[], bool]) -> None:
        """Shows a failure; the item stays with its draft."""
        try:
            done = give()
        except HarnessError as error:
            self.app.bell()
            self.query_one(Trouble).show((error.what, error.remedy))
            self.add_class("-troubled")
            return
        self.remove_class("-troubled")
        self.query_one(Trouble).show(None)
        if not done:
            self.app.bell()

    def _ask(self, panel: Panel, take: Callable[[Any], object]) -> None:
        """Applies a panel's answer only to the item that it was opened on."""
        asked = self.asked_about()

        def answered(answer: object) -> None:
            self._said = ""
            if answer is not None:
                if asked is not None and asked == self.asked_about():
                    try:
                        take(answer)
                    except InputError as error:
                        self._tell(str(error))
                else:
                    self._tell(self.GONE)
            self.show()

        self.app.push_screen(panel, answered)

    def on_room_read(self, message: RoomRead) -> None:
        message.stop()
        if message.fault:
            self._tell(f"updates cannot be read: {message.fault}")
        else:
            self.take_in()
        if self.app.screen is self:
            self.show()

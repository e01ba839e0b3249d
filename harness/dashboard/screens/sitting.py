"""What judging and annotating at a desk have in common: messages, writing, questions, news from elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from textual.screen import Screen

from harness.dashboard import palette
from harness.dashboard.listening import Refreshing, Rereadable
from harness.dashboard.messages import RoomRead
from harness.dashboard.screens.panels import Panel
from harness.dashboard.widgets.sitting_lines import MessageLine, Trouble
from harness.model.errors import HarnessError


class SittingScreen(Screen[None]):
    """Shows the desk's view after every key. What is given is written by the desk; nothing is kept here."""

    HORIZONTAL_BREAKPOINTS: list[tuple[int, str]] | None = [(0, "-narrow"), (110, "-wide")]  # noqa: RUF012
    AUTO_FOCUS: ClassVar[str | None] = ""
    GONE: ClassVar[str]
    """What was asked about is no longer in sight."""

    def __init__(self, room: Rereadable) -> None:
        super().__init__()
        self._sitting_room = room
        self._said, self._colour = "", palette.GREEN

    def on_mount(self) -> None:  # Textual calls those of subclasses first, and this one without being asked
        self._refreshing = Refreshing(self._sitting_room, self.post_message)
        self.show()

    def close(self) -> None:
        """Before the app leaves: threads tell nothing any more."""
        self._refreshing.close()

    def show(self) -> None:
        """Draws what the desk says now."""
        raise NotImplementedError

    def asked_about(self) -> object:
        """The item that a question would be about now; None without one."""
        raise NotImplementedError

    def take_in(self) -> None:
        """The room has read what came from elsewhere; what is in sight stays while it is still to be done."""
        raise NotImplementedError

    def _tell(self, said: str, colour: str = palette.YELLOW) -> None:
        self._said, self._colour = said, colour

    def _show_message(self, said: str, *, break_due: bool = False) -> None:
        """What a key was told, else what the desk says."""
        said, colour = (self._said, self._colour) if self._said else (said, palette.GREEN)
        self.query_one(MessageLine).show(said, colour, break_due=break_due)

    def _write(self, give: Callable[[], bool]) -> None:
        """What fails is shown, and the item stays with its draft."""
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
        """What a panel answers is for the item that it was opened on, and for no other."""
        asked = self.asked_about()

        def answered(answer: object) -> None:
            self._said = ""
            if answer is not None:
                if asked is not None and asked == self.asked_about():
                    take(answer)
                else:
                    self._tell(self.GONE)
            self.show()

        self.app.push_screen(panel, answered)

    def on_room_read(self, message: RoomRead) -> None:
        message.stop()
        if message.fault:
            self._tell(f"what has come since cannot be read: {message.fault}")
        else:
            self.take_in()
        if self.app.screen is self:
            self.show()

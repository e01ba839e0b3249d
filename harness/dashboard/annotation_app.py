"""`harness annotate review` on a terminal."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import ClassVar

from textual.binding import Binding, BindingType

from harness.annotation.desk import AnnotationDesk
from harness.annotation.project import AnnotationRoom
from harness.dashboard import palette
from harness.dashboard.key_guard import GuardedApp
from harness.dashboard.rating_app import ASKED_TO_END
from harness.dashboard.screens.annotating import AnnotatingScreen
from harness.model.errors import InputError


class AnnotationApp(GuardedApp):
    """An annotator at a desk. Leaving loses nothing: what a key gives is on the disk before the next page shows.

    ends_with: signals that leave as a key does, so that the terminal is put right; the status is the one of shells.
    """

    TITLE = "voice-harness"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+q,ctrl+c", "leave", "Leave", priority=True, show=False)]

    def __init__(
        self, room: AnnotationRoom, desk: AnnotationDesk, *, ends_with: tuple[signal.Signals, ...] = ()
    ) -> None:
        super().__init__()
        self._ends_with = ends_with
        self.desk = desk
        self._annotating = AnnotatingScreen(room, desk)

    def on_mount(self) -> None:
        for number in self._ends_with:
            if signal.getsignal(number) is signal.SIG_DFL:  # what is ignored, as behind `nohup`, stays ignored
                asyncio.get_running_loop().add_signal_handler(number, self.exit, 128 + number)
        self.register_theme(palette.THEME)
        self.theme = palette.THEME.name
        self.push_screen(self._annotating)

    def on_unmount(self) -> None:
        self._annotating.close()

    def action_leave(self) -> None:
        self.exit(0)


def run_annotation_app(room: AnnotationRoom, desk: AnnotationDesk) -> int:
    """Lets an annotator work until they leave; exit status 0. InputError when the terminal cannot show a screen."""
    if os.environ.get("TERM", "dumb") in ("dumb", ""):
        raise InputError(
            "this terminal cannot show a screen (TERM=dumb)", remedy="harness annotate review --plain works in it"
        )
    status = AnnotationApp(room, desk, ends_with=ASKED_TO_END).run()
    return 0 if status is None else status

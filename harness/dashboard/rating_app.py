"""`harness rate` on a terminal."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType

from harness.dashboard import palette
from harness.dashboard.key_guard import GuardedApp
from harness.dashboard.screens.judging import JudgingScreen
from harness.model.errors import InputError
from harness.model.judgment import RaterKeys
from harness.rating.desk import Desk
from harness.rating.rater_player import RaterPlayer
from harness.rating.rating_room import RatingRoom

ASKED_TO_END = (signal.SIGTERM, signal.SIGHUP)


class RatingApp(GuardedApp):
    """A rater at a desk. Leaving loses nothing: each judgment is on the disk before the next response shows.

    ends_with: signals that leave as a key does, so that the terminal is put right; the status is the one of shells.
    """

    TITLE = "voice-harness"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+q,ctrl+c", "leave", "Leave", priority=True, show=False)]

    def __init__(
        self,
        room: RatingRoom,
        desk: Desk,
        keys: RaterKeys,
        player: RaterPlayer | None,
        *,
        adjudicating: bool = False,
        names: bool = False,
        ends_with: tuple[signal.Signals, ...] = (),
    ) -> None:
        super().__init__()
        self._ends_with = ends_with
        self.desk = desk
        self._judging = JudgingScreen(room, desk, keys, player, adjudicating=adjudicating, names=names)

    async def on_event(self, event: events.Event) -> None:
        """Whatever panel is open, a key says that the rater is there."""
        if isinstance(event, (events.Key, events.Paste, events.MouseEvent, events.AppFocus)):
            self.desk.present()
        await super().on_event(event)

    def on_mount(self) -> None:
        for number in self._ends_with:
            if signal.getsignal(number) is signal.SIG_DFL:  # what is ignored, as behind `nohup`, stays ignored
                asyncio.get_running_loop().add_signal_handler(number, self.exit, 128 + number)
        self.register_theme(palette.THEME)
        self.theme = palette.THEME.name
        self.push_screen(self._judging)

    def on_unmount(self) -> None:
        self._judging.close()

    def action_leave(self) -> None:
        self.exit(0)


def run_rating_app(
    room: RatingRoom,
    desk: Desk,
    keys: RaterKeys,
    player: RaterPlayer | None,
    *,
    adjudicating: bool = False,
    names: bool = False,
) -> int:
    """Lets a rater judge until they leave; exit status 0. InputError when the terminal cannot show a screen.

    player: None leaves all sound out; who opened it closes it. names: an adjudicator sees who the raters are.
    """
    if os.environ.get("TERM", "dumb") in ("dumb", ""):
        raise InputError("this terminal cannot show a screen (TERM=dumb)", remedy="harness rate --plain works in it")
    app = RatingApp(room, desk, keys, player, adjudicating=adjudicating, names=names, ends_with=ASKED_TO_END)
    status = app.run()
    return 0 if status is None else status

"""The app of raters: `harness rate` on a terminal."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType

from harness.base.leaving import ASKED_TO_END, leave_soon
from harness.dashboard import palette
from harness.dashboard.key_guard import GuardedApp
from harness.dashboard.screens.judging import JudgingScreen
from harness.dashboard.screens.sitting import SittingScreen
from harness.model.errors import InputError
from harness.model.judgment import RaterKeys
from harness.rating.desk import Desk
from harness.rating.rater_player import RaterPlayer
from harness.rating.rating_room import RatingRoom


class SittingApp(GuardedApp):
    """Leaving loses nothing: a judgment is on the disk before the next item shows.

    present: called at every sign that the person is there. A signal that asks to end leaves as a key does, which
    restores the terminal. The status is 128 plus the signal, as in shells.
    """

    TITLE = "voice-harness"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+q,ctrl+c", "leave", "Leave", priority=True, show=False)]

    def __init__(
        self,
        sitting: SittingScreen,
        *,
        present: Callable[[], object] = lambda: None,
        ends_with: tuple[signal.Signals, ...] = (),
    ) -> None:
        super().__init__()
        self.sitting, self._present, self._ends_with = sitting, present, ends_with

    async def on_event(self, event: events.Event) -> None:
        """A key shows that the person is there, whatever panel is open."""
        if isinstance(event, (events.Key, events.Paste, events.MouseEvent, events.AppFocus)):
            self._present()
        await super().on_event(event)

    def on_mount(self) -> None:
        for number in self._ends_with:
            if signal.getsignal(number) is not signal.SIG_IGN:  # what is ignored stays ignored, e.g. under `nohup`
                asyncio.get_running_loop().add_signal_handler(number, self._asked_to_end, number)
        self.register_theme(palette.THEME)
        self.theme = palette.THEME.name
        self.push_screen(self.sitting)

    def on_unmount(self) -> None:
        self.sitting.close()

    def _asked_to_end(self, number: int) -> None:
        self.exit(leave_soon(number))

    def action_leave(self) -> None:
        self.exit(0)


def run_rating_app(
    room: RatingRoom, desk: Desk, keys: RaterKeys, player: RaterPlayer | None, *, names: bool = False
) -> int:
    """Lets a rater judge until they leave; exit status 0. InputError when the terminal cannot show a screen.

    player: None for no sound; the caller closes it. names: show raters' names to an adjudicator.
    """
    if os.environ.get("TERM", "dumb") in ("dumb", ""):
        raise InputError("this terminal cannot show a screen (TERM=dumb)", remedy="harness rate --plain works in it")
    screen = JudgingScreen(room, desk, keys, player, names=names)
    return SittingApp(screen, present=desk.present, ends_with=ASKED_TO_END).run() or 0

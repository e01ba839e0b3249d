"""The app of raters: `harness rate` on a terminal."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType

from harness.base.signals import END_SIGNALS, exit_soon
from harness.dashboard import palette
from harness.dashboard.key_guard import GuardedApp
from harness.dashboard.screens.judging import JudgingScreen
from harness.model.errors import InputError
from harness.model.judgment import RaterKeys
from harness.rating.desk import Desk
from harness.rating.rater_player import RaterPlayer
from harness.rating.rating_room import RatingRoom


class SittingApp(GuardedApp):
    """The app of a rater. Leaving it loses nothing: a judgment is on the disk before the next item is shown.

    - player: None for no sound; the caller closes it.
    - names: whether an adjudicator sees the raters' names.
    - end_signals: signals at which the app ends as with a key, which restores the terminal. The exit status is then 128
      plus the signal, as in shells.
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
        names: bool = False,
        end_signals: tuple[signal.Signals, ...] = (),
    ) -> None:
        super().__init__()
        self.room, self.desk, self._end_signals = room, desk, end_signals
        self.sitting = JudgingScreen(room, desk, keys, player, show_names=names)

    async def on_event(self, event: events.Event) -> None:
        """A key shows that the person is there, whatever panel is open."""
        if isinstance(event, (events.Key, events.Paste, events.MouseEvent, events.AppFocus)):
            self.desk.note_presence()
        await super().on_event(event)

    def on_mount(self) -> None:
        for signum in self._end_signals:
            if signal.getsignal(signum) is not signal.SIG_IGN:  # what is ignored stays ignored, e.g. under `nohup`
                loop = asyncio.get_running_loop()
                loop.add_signal_handler(signum, lambda signum: self.exit(exit_soon(signum)), signum)
        self.register_theme(palette.THEME)
        self.theme = palette.THEME.name
        self.push_screen(self.sitting)

    def on_unmount(self) -> None:
        self.sitting.close()

    def action_leave(self) -> None:
        self.exit(self.sitting.exit_status)


def run_rating_app(
    room: RatingRoom, desk: Desk, keys: RaterKeys, player: RaterPlayer | None, *, names: bool = False
) -> int:
    """Lets a rater judge until they leave. Returns the exit status: 0, or 3 if the last judgment is not saved.

    Raises InputError if the terminal cannot show a screen.
    """
    if os.environ.get("TERM", "dumb") in ("dumb", ""):
        raise InputError("this terminal cannot show a screen (TERM=dumb)", remedy="Run: harness rate --plain")
    return SittingApp(room, desk, keys, player, names=names, end_signals=END_SIGNALS).run() or 0

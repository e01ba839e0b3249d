"""The guard for all screens with labelling keys: a key counts only if it was pressed after its item was drawn."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable
from enum import Enum, auto
from functools import partial
from typing import ClassVar

from textual import events
from textual.app import App, SuspendNotSupported
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.screen import Screen

from harness.base.signals import stop_job

REPEAT_S = 0.12
"""If the same key comes again within this time, in seconds, it is held down: keyboards repeat 10 to 40 times a second.
"""
FIRST_REPEAT_S = 0.75
"""A held key has begun to repeat within this time, in s: after 0.2 to 0.66 s. Until then it looks like one press."""
MAX_KEYS = 4096
TOO_FAST = "too fast: that was not on screen yet; press again"


class KeyVerdict(Enum):
    """Whether a key counts. UNSURE: it may be the first repetition of a held key, which is known after REPEAT_S."""

    COUNTS = auto()
    TOO_EARLY = auto()
    UNSURE = auto()


class KeyGuard:
    """Records when keys were pressed, and when the item on screen was drawn.

    All times are on the clock of `event.time`, which is monotonic. The thread that reads the terminal stamps each key,
    so a slow redraw does not change its time.
    """

    def __init__(self) -> None:
        self._keys: deque[tuple[str, float]] = deque(maxlen=MAX_KEYS)
        self.drawn_s: float | None = None
        """When the item on screen was drawn; None until then."""
        self._drawings = 0

    def hear(self, event: events.Key) -> None:
        """Takes every key in the order of pressing, before any screen acts on it."""
        self._keys.append((event.key, event.time))

    def cover(self) -> Callable[[], None]:
        """Records that another item will be drawn. Call the returned function once it is drawn."""
        self.drawn_s = None
        self._drawings += 1
        return partial(self._draw, self._drawings)

    def _draw(self, number: int) -> None:
        if number == self._drawings:
            self.drawn_s = Message().time

    def verdict(self, event: events.Key) -> KeyVerdict:
        pressed_s, may_be_held_since_s = self._press_times(event)
        if self.drawn_s is None or pressed_s <= self.drawn_s:
            return KeyVerdict.TOO_EARLY
        if may_be_held_since_s <= self.drawn_s and Message().time < event.time + REPEAT_S:
            return KeyVerdict.UNSURE
        return KeyVerdict.COUNTS

    def _press_times(self, event: events.Key) -> tuple[float, float]:
        """When the key was pressed, and when it was if it turns out to be held down."""
        keys, this_key = self._keys, (event.key, event.time)
        index = next((n for n in range(len(keys) - 1, -1, -1) if keys[n] == this_key), None)
        if index is None:
            return event.time, event.time
        first = index
        while first and self._gap_s(first) < REPEAT_S:
            first -= 1
        is_last = index == len(keys) - 1
        is_held = first < index or (not is_last and self._gap_s(index + 1) < REPEAT_S)
        earlier = first - 1 if first and self._gap_s(first) < FIRST_REPEAT_S else first
        pressed_s = keys[earlier if is_held else first][1]
        return pressed_s, keys[earlier][1] if is_last else pressed_s

    def _gap_s(self, index: int) -> float:
        """Seconds since the previous key; infinite when that was another key."""
        (before, before_s), (key, key_s) = self._keys[index - 1], self._keys[index]
        return key_s - before_s if before == key else float("inf")


class GuardedApp(App[int]):
    """An app whose screens label by keys. Ctrl-Z stops it, as it stops other programs of a terminal."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+z", "suspend_process", "Stop", priority=True, show=False)]
    STOPPED = "Stopped. Return with: fg"

    def __init__(self) -> None:
        super().__init__()
        self.guard = KeyGuard()
        self._shown_item: object = None

    async def on_event(self, event: events.Event) -> None:
        if isinstance(event, events.Key) and not event.is_forwarded:
            self.guard.hear(event)
        await super().on_event(event)

    def action_suspend_process(self) -> None:
        try:
            with self.suspend():
                sys.stdout.write(f"{self.STOPPED}\n")
                sys.stdout.flush()
                stop_job()
        except SuspendNotSupported:
            self.bell()
        self.cover()

    def on_mount(self) -> None:
        # A panel that opens or closes also changes what is on screen.
        self.screen_change_signal.subscribe(self, lambda _: self.cover(), immediate=True)
        self.cover()

    def in_sight(self, screen: Screen[None], item: object) -> None:
        """Sets the item that a key would label. Call it whenever an item is shown."""
        if self.screen is screen and item != self._shown_item:
            self._shown_item = item
            self.cover()

    def cover(self) -> None:
        """Records that the screen will be drawn anew, so that earlier keys are not meant for it."""
        self.screen.call_after_refresh(self.guard.cover())

    def counts(self, event: events.Key, handle: Callable[[events.Key], object], tell: Callable[[str], object]) -> bool:
        """Whether the screen acts on a key. If that is not known yet, `handle` gets the key again after a moment.

        `tell` gets the reason for a refusal."""
        match self.guard.verdict(event):
            case KeyVerdict.COUNTS:
                return True
            case KeyVerdict.UNSURE:
                self.screen.set_timer(REPEAT_S, partial(handle, event))
            case KeyVerdict.TOO_EARLY:
                self.bell()
                tell(TOO_FAST)
        return False


def guarded_app(screen: Screen[None]) -> GuardedApp:
    """The app of a screen that labels."""
    app = screen.app
    assert isinstance(app, GuardedApp), f"{type(app).__name__} has no guard"
    return app

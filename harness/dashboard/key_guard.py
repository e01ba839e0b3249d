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
"""Number of last keys that are remembered."""
TOO_FAST = "too fast: the screen had just changed; press the key again"


class KeyVerdict(Enum):
    """Whether a key counts.

    - COUNTS: it was pressed after the item was drawn.
    - TOO_EARLY: it was pressed before that, or is held down since then.
    - UNSURE: it may be the first repetition of a held key, which is known after REPEAT_S.
    """

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
        """Name and time of each key, in the order of pressing."""
        self.drawn_s: float | None = None
        """When the item on screen was drawn; None until then."""
        self._last_drawing = 0
        """Number of the last drawing that was announced."""

    def record_key(self, event: events.Key) -> None:
        """Records a key. Call it for every key in the order of pressing, before any screen acts on it."""
        self._keys.append((event.key, event.time))

    def expect_redraw(self) -> Callable[[], None]:
        """Records that another item will be drawn. Call the returned function once it is drawn."""
        self.drawn_s = None
        self._last_drawing += 1
        return partial(self._record_drawing, self._last_drawing)

    def _record_drawing(self, number: int) -> None:
        if number == self._last_drawing:  # else yet another item is due
            self.drawn_s = Message().time

    def verdict(self, event: events.Key) -> KeyVerdict:
        """Whether a key counts for the item on screen. The key must have been recorded."""
        pressed_s, held_since_s = self._press_times(event)
        if self.drawn_s is None or pressed_s <= self.drawn_s:
            return KeyVerdict.TOO_EARLY
        if held_since_s <= self.drawn_s and Message().time < event.time + REPEAT_S:
            return KeyVerdict.UNSURE
        return KeyVerdict.COUNTS

    def _press_times(self, event: events.Key) -> tuple[float, float]:
        """When the key was pressed, and when it was if it turns out to be held down.

        A held key is one press: a first key, a delay of up to FIRST_REPEAT_S, then repetitions with gaps below
        REPEAT_S. A last key after such a delay may be a second press or the first repetition. Only then do the two
        times differ.
        """
        keys = self._keys
        index = self._index(event)
        if index is None:
            return event.time, event.time
        first_repetition = index
        while first_repetition and self._gap_s(first_repetition) < REPEAT_S:
            first_repetition -= 1
        press = first_repetition
        if first_repetition and self._gap_s(first_repetition) < FIRST_REPEAT_S:
            press -= 1
        is_last = index == len(keys) - 1
        is_held = first_repetition < index or (not is_last and self._gap_s(index + 1) < REPEAT_S)
        pressed_s = keys[press if is_held else first_repetition][1]
        held_since_s = keys[press][1] if is_last else pressed_s
        return pressed_s, held_since_s

    def _index(self, event: events.Key) -> int | None:
        """The position of an event in the recorded keys; None if it is no longer remembered."""
        for index in reversed(range(len(self._keys))):
            if self._keys[index] == (event.key, event.time):
                return index
        return None

    def _gap_s(self, index: int) -> float:
        """Seconds since the previous key; infinite if that was another key."""
        previous_key, previous_s = self._keys[index - 1]
        key, key_s = self._keys[index]
        return key_s - previous_s if previous_key == key else float("inf")


class GuardedApp(App[int]):
    """An app whose screens label by keys. Ctrl-Z stops it, as it stops other programs of a terminal."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+z", "suspend_process", "Stop", priority=True, show=False)]
    STOPPED = "Suspended. Return with: fg"

    def __init__(self) -> None:
        super().__init__()
        self.guard = KeyGuard()
        self._shown_item: object = None

    async def on_event(self, event: events.Event) -> None:
        if isinstance(event, events.Key) and not event.is_forwarded:
            self.guard.record_key(event)
        await super().on_event(event)

    def action_suspend_process(self) -> None:
        try:
            with self.suspend():
                sys.stdout.write(f"{self.STOPPED}\n")
                sys.stdout.flush()
                stop_job()
        except SuspendNotSupported:
            self.bell()
        self.expect_redraw()

    def on_mount(self) -> None:
        # A panel that opens or closes also changes what is on screen.
        self.screen_change_signal.subscribe(self, lambda _: self.expect_redraw(), immediate=True)
        self.expect_redraw()

    def set_shown_item(self, screen: Screen[None], item: object) -> None:
        """Sets the item that a key would label. Call it whenever an item is shown. Ignored if `screen` is covered."""
        if self.screen is screen and item != self._shown_item:
            self._shown_item = item
            self.expect_redraw()

    def expect_redraw(self) -> None:
        """Records that the screen will be drawn anew, so that earlier keys are not meant for it."""
        self.screen.call_after_refresh(self.guard.expect_redraw())

    def accepts_key(
        self, event: events.Key, retry: Callable[[events.Key], object], show_notice: Callable[[str], object]
    ) -> bool:
        """Whether the screen may act on a key now.

        If that is not known yet, calls `retry` with the key after a moment. If the key came too early, rings the bell
        and calls `show_notice` with the reason.
        """
        match self.guard.verdict(event):
            case KeyVerdict.COUNTS:
                return True
            case KeyVerdict.UNSURE:
                self.screen.set_timer(REPEAT_S, partial(retry, event))
            case KeyVerdict.TOO_EARLY:
                self.bell()
                show_notice(TOO_FAST)
        return False


def guarded_app(screen: Screen[None]) -> GuardedApp:
    """The app of a screen that labels, which must have a guard."""
    app = screen.app
    assert isinstance(app, GuardedApp), f"{type(app).__name__} has no guard"
    return app

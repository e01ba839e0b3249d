"""The last rows of the session log, in words."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from harness.dashboard import palette
from harness.dashboard.events import EventLine, Tone
from harness.dashboard.widgets.lines import Lines

KEPT = 2000

_COLOURS = {
    Tone.QUIET: palette.QUIET,
    Tone.PLAIN: palette.TEXT,
    Tone.GOOD: palette.GREEN,
    Tone.PERSON: palette.YELLOW,
    Tone.FAULT: palette.RED,
}


class EventLog(Lines):
    """Keeps the last `KEPT` lines, and stays at the end unless somebody has scrolled up."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.border_title = "Events"
        self._events: list[EventLine] = []
        self._at_end = True

    @property
    def count(self) -> int:
        return len(self._events)

    def extend(self, lines: Sequence[EventLine]) -> None:
        """Adds lines in one go."""
        if not lines:
            return
        self._at_end = self.scroll_offset.y >= self.max_scroll_y
        events = list(self._events)
        for line in lines:
            together = line.after(events[-1]) if events else None
            if together is None:
                events.append(line)
            else:
                events[-1] = together
        self._events = events[-KEPT:]
        self.fit()
        self._stay_at_end()

    def on_resize(self) -> None:
        self._stay_at_end()

    def _stay_at_end(self) -> None:
        if self._at_end:
            # The new lines are not laid out yet. Forced: without its scroll bar a list would refuse.
            self.call_after_refresh(self.scroll_end, animate=False, force=True)

    def line(self, index: int, width: int) -> Text:
        event = self._events[index]
        text = Text(f"{event.clock} ", style=palette.RULE if width < 30 else palette.QUIET)
        text.append(event.text, style=_COLOURS[event.tone])
        return text

"""Wake events that matched no stimulus, the latest first, with what they were as far as anybody has said."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import ClassVar

from rich.cells import set_cell_size
from rich.style import Style
from rich.text import Text
from textual.binding import Binding, BindingType
from textual.content import Content

from harness.base.foreign import plain_text
from harness.dashboard import palette
from harness.dashboard.widgets.lines import Lines
from harness.model.record import ReviewWord
from harness.session.figures.names import cut
from harness.wake.reports.figures_text import REVIEW_WORDS
from harness.wake.wake_progress import WakeEvent, WakeProgress

COLOURS = {
    ReviewWord.FALSE_ACCEPT: palette.RED,
    ReviewWord.REAL_PERSON: palette.BLUE,
    ReviewWord.SELF_WAKE: palette.CYAN,
    ReviewWord.STIMULUS_FAULT: palette.VIOLET,
}


def word_of(event: WakeEvent) -> tuple[str, str]:
    """What it was, and the colour of that."""
    if event.word is None:
        return "unreviewed", palette.YELLOW
    by = "" if event.reviewed_by else " (rule)"
    return f"{REVIEW_WORDS[event.word]}{by}", COLOURS[event.word]


class UnmatchedList(Lines):
    """The selection stays with its event while others come in above it: a key is never meant for a newcomer."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(-1)", "Event before", show=False),
        Binding("down", "move(1)", "Next event", show=False),
        Binding("pageup", "move(-10)", "Ten back", show=False),
        Binding("pagedown", "move(10)", "Ten on", show=False),
        Binding("home", "move(-1000000)", "Latest event", show=False),
        Binding("end", "move(1000000)", "Oldest event", show=False),
    ]

    def __init__(self, selected: Callable[[int | None], object], *, id: str | None = None) -> None:
        """selected: takes the number of the selected event, whenever it is shown."""
        super().__init__(id=id)
        self._tell_selected = selected
        self.border_title = "Unmatched wake events"
        self._events: tuple[WakeEvent, ...] = ()
        self._seq: int | None = None

    @property
    def count(self) -> int:
        return max(1, len(self._events))

    @property
    def selected(self) -> WakeEvent | None:
        return next((one for one in self._events if one.seq == self._seq), None)

    def event(self, seq: int) -> WakeEvent | None:
        return next((one for one in self._events if one.seq == seq), None)

    def show(self, wake: WakeProgress, caught_up: bool = True) -> None:
        """caught_up: what comes now is new; before that the selection stays with the latest."""
        if wake.unmatched is self._events:
            return
        grown = len(wake.unmatched) != len(self._events)
        self._events = wake.unmatched
        waiting = sum(one.word is None for one in self._events)
        words = (
            f"Unmatched wake events: {len(self._events)}, {waiting} to review"
            if self._events
            else ("Unmatched wake events: none")
        )
        self.border_title = Content(words)
        if self.selected is None or not caught_up:
            self._seq = next((one.seq for one in self._events if one.word is None), None)
            if self._seq is None and self._events:
                self._seq = self._events[0].seq
        if grown:
            self.fit()
        self._keep_in_sight()

    def action_move(self, by: int) -> None:
        if self._events:
            at = max(0, min(len(self._events) - 1, self._index + by))
            self.select(self._events[at].seq)

    def select(self, seq: int) -> None:
        self._seq = seq
        self._keep_in_sight()

    def select_next(self, after: int) -> None:
        """The next older event that nobody has reviewed, else the latest such one, else none other."""
        at = next((n for n, one in enumerate(self._events) if one.seq == after), 0)
        waiting = [one for one in (*self._events[at + 1 :], *self._events[:at]) if one.word is None]
        if waiting:
            self.select(waiting[0].seq)

    @property
    def _index(self) -> int:
        return next((n for n, one in enumerate(self._events) if one.seq == self._seq), 0)

    def on_resize(self) -> None:
        self._keep_in_sight()

    def _keep_in_sight(self) -> None:
        self._tell_selected(self._seq)
        top, height = self.scroll_offset.y, self.scrollable_content_region.height
        if height and not top <= self._index < top + height:
            self.call_after_refresh(self.scroll_to, y=self._index - height // 2, animate=False)
        self.refresh()

    def line(self, index: int, width: int) -> Text:
        if not self._events:
            return Text("every wake event so far belongs to a stimulus", style=palette.QUIET)
        event = self._events[index]
        chosen = event.seq == self._seq
        wide = width >= 100
        clock = time.strftime("%H:%M:%S", time.localtime(event.wall_s))
        text = Text(f"{'›' if chosen else ' '}{clock} ", style=palette.TEXT if chosen else palette.QUIET)
        text.append(f"{set_cell_size(plain_text(event.device, 20), 20 if wide else 14)} ", style=palette.TEXT)
        offset = f"+{event.offset_s:.2f} s" if event.offset_s is not None else ""
        text.append(f"{offset:>9} ", style=palette.TEXT)
        room = 24 if wide else 12
        where = cut(plain_text(event.trial_id, 200), room, room // 2) if event.trial_id else "no trial"
        text.append(f"{set_cell_size(where, room)} ", style=palette.QUIET)
        score = "" if event.score is None else f" {event.score:.2f}"
        phrase = set_cell_size(plain_text(event.phrase, 20), 14 if wide else 8)
        text.append(f"{phrase}{score:<5} ", style=palette.TEXT)
        word, colour = word_of(event)
        text.append(word, style=colour)
        for shown, what in (
            (not event.exposed, "not exposed"),
            (event.in_vocabulary, "in a wake trial"),
            (wide and event.clip is None, "no sound yet"),
            (wide and bool(event.reviewed_by), f"by {plain_text(event.reviewed_by, 20)}"),
            (wide and bool(event.why), plain_text(event.why, 60)),
        ):
            if shown:
                text.append(f" · {what}", style=palette.QUIET)
        if chosen:
            text.pad_right(max(0, width - text.cell_len))
            text.stylize(Style(bgcolor=palette.SELECTED))
        return text

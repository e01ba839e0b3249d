"""Wake words: devices, rates with their intervals, and events that need a review."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import ClassVar

from rich.cells import set_cell_size
from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content

from harness.base.foreign import plain_text
from harness.dashboard import palette
from harness.dashboard.key_guard import guarded_app
from harness.dashboard.messages import CommandWanted, new_id
from harness.dashboard.rating_words import key_name
from harness.dashboard.screens.panels import Sheet
from harness.dashboard.watch import View
from harness.dashboard.widgets.bars import KeyBar, NoticeLine, RowList, highlight, move_keys
from harness.dashboard.widgets.wake import DeviceBlocks
from harness.dashboard.wording import screen_text
from harness.model.feed import Answered, Review
from harness.model.numbers import fixed, moment
from harness.model.observation import weak_evidence_text
from harness.model.record import ReviewVerdict
from harness.session.wording import cut, short_names
from harness.wake.reports.figures_text import REVIEW_WORDS, review_in_words
from harness.wake.wake_progress import UnmatchedWake, WakeProgress

COLOURS = {
    ReviewVerdict.FALSE_ACCEPT: palette.RED,
    ReviewVerdict.REAL_PERSON: palette.BLUE,
    ReviewVerdict.SELF_WAKE: palette.CYAN,
    ReviewVerdict.STIMULUS_FAULT: palette.VIOLET,
}


def verdict_text(event: UnmatchedWake) -> tuple[str, str]:
    """What a review made of an event, and its colour. (rule): a rule decided it, not a person."""
    origin = "" if event.verdict is None or event.reviewed_by else " (rule)"
    colour = palette.YELLOW if event.verdict is None else COLOURS[event.verdict]
    return f"{review_in_words(event.verdict)}{origin}", colour


NAME_WIDTH, WIDE_NAME_WIDTH = 14, 20
"""Width of the devices' names on a narrow and on a wide screen, in columns."""


class UnmatchedList(RowList):
    """The list of unmatched events. The selection stays with its event while others arrive above it."""

    BINDINGS: ClassVar[list[BindingType]] = move_keys(
        "Previous event", "Next event", "Latest event", ("move(1000000)", "Oldest event")
    )

    def __init__(self, selected: Callable[[int | None], object], *, id: str | None = None) -> None:
        """selected: called with the number of the selected event whenever it is shown."""
        super().__init__(id=id)
        self._report_selected = selected
        self.border_title = "Unmatched wake events"
        self._events: tuple[UnmatchedWake, ...] = ()
        self._names: dict[int, dict[str, str]] = {}
        """Width of a name → device → its name, shortened to that width."""
        self._has_phrases = False
        self._selected_seq: int | None = None

    @property
    def count(self) -> int:
        return max(1, len(self._events))

    @property
    def selected(self) -> UnmatchedWake | None:
        return next((event for event in self._events if event.seq == self._selected_seq), None)

    def show(self, wake: WakeProgress, caught_up: bool = True) -> None:
        """Shows the events. caught_up: whether further events are new; before that, the latest one is selected."""
        if wake.unmatched is self._events:
            return
        has_grown = len(wake.unmatched) != len(self._events)
        self._events = wake.unmatched
        devices = sorted({event.device for event in self._events})
        self._names = {
            width: dict(zip(devices, short_names(devices, width), strict=True))
            for width in (NAME_WIDTH, WIDE_NAME_WIDTH)
        }
        self._has_phrases = any(event.phrase or event.score is not None for event in self._events)
        waiting = sum(event.verdict is None for event in self._events)
        count_text = f"{len(self._events)}, {waiting} to review" if self._events else "none"
        self.border_title = Content(f"Unmatched wake events: {count_text}")
        if self.selected is None or not caught_up:
            self._selected_seq = next((event.seq for event in self._events if event.verdict is None), None)
            if self._selected_seq is None and self._events:
                self._selected_seq = self._events[0].seq
        if has_grown:
            self.fit()
        self._scroll_to_selected()

    def action_move(self, step: int) -> None:
        if self._events:
            index = max(0, min(len(self._events) - 1, self._index + step))
            self.select(self._events[index].seq)

    def select(self, seq: int) -> None:
        self._selected_seq = seq
        self._scroll_to_selected()

    def select_next(self, seq: int) -> None:
        """Selects the next event below that with this number that has no review; after the last, from the top."""
        index = next((n for n, event in enumerate(self._events) if event.seq == seq), 0)
        waiting = [event for event in (*self._events[index + 1 :], *self._events[:index]) if event.verdict is None]
        if waiting:
            self.select(waiting[0].seq)

    @property
    def _index(self) -> int:
        return next((n for n, event in enumerate(self._events) if event.seq == self._selected_seq), 0)

    def on_resize(self) -> None:
        self._scroll_to_selected()

    def _scroll_to_selected(self) -> None:
        self._report_selected(self._selected_seq)
        top, height = self.scroll_offset.y, self.scrollable_content_region.height
        if height and not top <= self._index < top + height:
            self.call_after_refresh(self.scroll_to, y=self._index - height // 2, animate=False)
        self.refresh()

    def line(self, index: int, width: int) -> Text:
        if not self._events:
            return Text("every wake event so far belongs to a stimulus", style=palette.QUIET)
        event = self._events[index]
        is_selected = event.seq == self._selected_seq
        is_wide = width >= 100
        clock = time.strftime("%H:%M:%S", time.localtime(event.wall_s))
        text = Text(f"{'›' if is_selected else ' '}{clock} ", style=palette.TEXT if is_selected else palette.QUIET)
        name_width = WIDE_NAME_WIDTH if is_wide else NAME_WIDTH
        text.append(f"{set_cell_size(self._names[name_width][event.device], name_width)} ", style=palette.TEXT)
        offset = f"+{moment(event.offset_s)}" if event.offset_s is not None else ""
        text.append(f"{offset:>9} ", style=palette.TEXT)
        trial_width = 24 if is_wide else 12
        trial_text = (
            cut(plain_text(event.trial_id, 200), trial_width, trial_width // 2) if event.trial_id else "no trial"
        )
        text.append(f"{set_cell_size(trial_text, trial_width)} ", style=palette.QUIET)
        score = "" if event.score is None else f" {fixed(event.score, 2)}"
        if self._has_phrases:
            phrase = set_cell_size(plain_text(event.phrase, 20), 14 if is_wide else 8)
            text.append(f"{phrase}{score:<5} ", style=palette.TEXT)
        verdict, colour = verdict_text(event)
        text.append(verdict, style=colour)
        for applies, note in (
            (bool(event.inferred), weak_evidence_text(plain_text(event.inferred, 40))),
            (not event.exposed, "not exposed"),
            (event.in_vocabulary, "in a wake trial"),
            (is_wide and event.clip is None, "no sound yet"),
            (is_wide and bool(event.reviewed_by), f"by {plain_text(event.reviewed_by, 20)}"),
            (is_wide and bool(event.why), plain_text(event.why, 60)),
        ):
            if applies:
                text.append(f" · {note}", style=palette.QUIET)
        return highlight(text, width) if is_selected else text


REVIEW_KEYS: tuple[tuple[str, ReviewVerdict], ...] = (
    ("f", ReviewVerdict.FALSE_ACCEPT),
    ("h", ReviewVerdict.REAL_PERSON),
    ("d", ReviewVerdict.SELF_WAKE),
    ("x", ReviewVerdict.STIMULUS_FAULT),
)

KEYS = (
    ("enter", "play"),
    ("f", "false"),
    ("h", "human"),
    ("d", "self"),
    ("x", "fault"),
    ("u", "undo"),
    ("p", "pause"),
    ("w", "run"),
    ("?", "help"),
)
KEYS_WHEN_OVER = (*(key for key in KEYS if key[0] != "p"), ("^q", "leave"))

MIN_EVENT_LINES = 5
"""Least number of lines of the list of events, however many devices there are."""

HELP = screen_text("wake.txt")


class WakeScreen(Sheet):
    """Selects the next event only when the engine has committed a review."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter,space", "replay", "Play the sound around it"),
        Binding("p", "pause", "Pause or continue"),
        Binding("o", "app.question", "The operator's question"),
        Binding("question_mark,f1", "app.help", "Help"),
        Binding("escape,w", "app.close_screen", "The run"),
    ]
    help_text = HELP

    def __init__(self, reviewer: str) -> None:
        super().__init__(reviewer)
        self._seen_seq = 0
        self._saving = False
        self._reviewed_events: list[int] = []
        """Numbers of the events reviewed on this screen, latest last."""

    def compose(self) -> ComposeResult:
        yield from self.session_lines()
        yield DeviceBlocks(id="devices")
        yield UnmatchedList(self._on_select, id="unmatched")
        yield NoticeLine()
        yield KeyBar(KEYS)

    def on_mount(self) -> None:
        self.query_one(UnmatchedList).focus()

    def show(self, view: View) -> None:
        super().show(view)
        self.query_one(DeviceBlocks).show(view, self._lines_for_devices())
        self.query_one(KeyBar).show(KEYS_WHEN_OVER if view.all_played or view.is_over else KEYS)
        caught_up = view.welcome is not None and self._seen_seq >= view.welcome.last_seq
        self.query_one(UnmatchedList).show(view.wake, caught_up)
        self._seen_seq = view.progress.seq

    def _lines_for_devices(self) -> int:
        """Number of lines for the devices: those of the screen minus the least lines of the list."""
        other_widgets = (
            widget
            for widget in self.children
            if not isinstance(widget, DeviceBlocks | UnmatchedList) and widget.display
        )
        return max(
            4, self.size.height - sum(widget.outer_size.height for widget in other_widgets) - 2 - MIN_EVENT_LINES
        )

    def _on_select(self, seq: int | None) -> None:
        guarded_app(self).set_shown_item(self, (WakeScreen, seq))

    def on_key(self, event: events.Key) -> None:
        """Handles the labelling keys. A binding would act later, when another event may be selected."""
        key = key_name(event)
        verdict = dict(REVIEW_KEYS).get(key)
        if verdict is None and key != "u":
            return
        event.stop()
        event.prevent_default()
        if not guarded_app(self).accepts_key(event, self.on_key, self.post_notice):
            return
        if verdict is not None:
            self.action_review(verdict.value)
        else:
            self.action_take_back()

    def action_replay(self) -> None:
        event = self._selected_event()
        if event is not None:
            self.replay(event.clip)

    def action_review(self, value: str) -> None:
        event = self._selected_event()
        verdict = ReviewVerdict(value)
        if event is not None:
            self._save(event.seq, verdict, REVIEW_WORDS[verdict])

    def action_take_back(self) -> None:
        event = self._selected_event()
        if event is not None and event.reviewed_by:
            self._save(event.seq, None, "taken back")
        elif self._reviewed_events:
            self._save(self._reviewed_events[-1], None, "taken back")
        else:
            self.app.bell()
            self.post_notice("this event has no review to withdraw")

    def _selected_event(self) -> UnmatchedWake | None:
        """The selected event. Shows a notice if there is none."""
        event = self.query_one(UnmatchedList).selected
        if event is None:
            self.post_notice("there is no event to review")
        return event

    def _save(self, seq: int, verdict: ReviewVerdict | None, label: str) -> None:
        """Sends a review to the engine, unless it has not answered the previous one. verdict: None takes back a review.

        When it is committed, the next event is selected; after a withdrawal, its event.
        """
        if self._saving:
            # The next event is not on screen yet, so keys are ignored.
            self.app.bell()
            return

        def answered(answer: Answered) -> None:
            self._saving = False
            if not answer.ok or not self.is_attached:
                return
            self._reviewed_events = [event_seq for event_seq in self._reviewed_events if event_seq != seq]
            unmatched = self.query_one(UnmatchedList)
            if verdict is None:
                unmatched.select(seq)
            else:
                self._reviewed_events.append(seq)
                unmatched.select_next(seq)

        self._saving = True
        review = Review(new_id(), self._person, seq, verdict)
        self.post_message(CommandWanted(review, f"event {seq}: {label}", answered))

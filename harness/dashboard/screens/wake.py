"""Wake words as they are counted: devices, figures that narrow, and the events that wait for a review."""

from __future__ import annotations

import uuid
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from harness.dashboard.judging_keys import key_name
from harness.dashboard.key_guard import guarded
from harness.dashboard.messages import CommandWanted, Told
from harness.dashboard.screens.pausing import pause_or_go_on
from harness.dashboard.screens.sheet import Sheet
from harness.dashboard.watch import View
from harness.dashboard.widgets.bars import GoneBanner, KeyBar, NoticeLine, ProgressLine, StateLine, TitleLine
from harness.dashboard.widgets.device_blocks import DeviceBlocks
from harness.dashboard.widgets.state_word import StateWordBanner
from harness.dashboard.widgets.unmatched_list import UnmatchedList
from harness.model.feed import Answered, Replay, Review
from harness.model.record import ReviewWord
from harness.wake.reports.figures_text import REVIEW_WORDS
from harness.wake.wake_progress import WakeEvent

REVIEW_KEYS: tuple[tuple[str, ReviewWord], ...] = (
    ("f", ReviewWord.FALSE_ACCEPT),
    ("h", ReviewWord.REAL_PERSON),
    ("d", ReviewWord.SELF_WAKE),
    ("x", ReviewWord.STIMULUS_FAULT),
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

LEAST_EVENTS = 5
"""Lines of the list of events that no number of devices may take."""

HELP = """\
Wake words

FR        false reject ratio: wake trials without a wake event in their window, of those counted
FA/h      wake events that belong to no stimulus, per hour of ambient sound heard; events that a
          review or a rule has explained (a person, the device's own voice, a fault) are left out
any time  the interval that may be looked at at any time: over the whole run it misses the truth in
          at most 5 % of runs, however often somebody looks. It is wider than the exact one
exact     Clopper–Pearson and Garwood, 95 %: right for one look, at the end
n/a       nothing was heard yet: a rate over nothing is no number, and not 0
the band  the any-time interval as it was, from the first trial to now; the free line is the figure;
          what was above the scale is cut off
≤5 %      a limit of the scenario; "upper" is one on the upper end of the exact interval; "test" is
          the sequential test, which may end the run early; open: more sound may bring it about
heard     sound counts only while the device is proved to listen (it acknowledged audio, answered a
          ping, said so, or woke to a probe); unproven sound is shown, and counts nowhere
clock     bound of the error of a time that the device told
between   ✓ hit  ✗ false reject  ! event without a stimulus  ░ ambient sound  ~ interrupted, counts nowhere

enter     play the sound around the selected event on the bench's monitor
f         it was a false accept           h   a human being said the phrase
d         the device woke itself, or another device did
x         the stimulus was at fault       u   take back the selected review, or your last one
up/down   select an event; home is the latest. tab goes to the devices and back
p         pause or go on                  w   to the run: trials, events, skip, note, abort
"""


class WakeScreen(Sheet):
    """A review is acknowledged when the engine has committed it, and only then the next event is selected."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter,space", "replay", "Play the sound around it"),
        Binding("p", "pause", "Pause or go on"),
        Binding("o", "app.question", "The operator's question"),
        Binding("question_mark,f1", "app.help", "Help"),
        Binding("escape,w", "app.close_screen", "The run"),
    ]
    help_text = HELP

    def __init__(self, by: str) -> None:
        super().__init__()
        self._by = by
        self._view: View | None = None
        self._seen_seq = 0
        self._saving = False
        self._given: list[int] = []

    def compose(self) -> ComposeResult:
        yield TitleLine()
        yield GoneBanner()
        yield StateWordBanner()
        yield StateLine()
        yield ProgressLine()
        yield DeviceBlocks(id="devices")
        yield UnmatchedList(self._selected, id="unmatched")
        yield NoticeLine()
        yield KeyBar(KEYS)

    def on_mount(self) -> None:
        self.query_one(UnmatchedList).focus()

    def show(self, view: View) -> None:
        self._view = view
        self.query_one(TitleLine).show(view)
        self.query_one(GoneBanner).show(view)
        self.query_one(StateWordBanner).show(view)
        self.query_one(StateLine).show(view)
        self.query_one(ProgressLine).show(view)
        self.query_one(DeviceBlocks).show(view, self._room())
        caught_up = view.welcome is not None and self._seen_seq >= view.welcome.last_seq
        self.query_one(UnmatchedList).show(view.wake, caught_up)
        self._seen_seq = view.progress.seq
        self.query_one(NoticeLine).show(view.notice)

    def _room(self) -> int:
        """Lines for the devices: what is left of the screen beside the list's least."""
        others = (one for one in self.children if not isinstance(one, DeviceBlocks | UnmatchedList) and one.display)
        return max(4, self.size.height - sum(one.outer_size.height for one in others) - 2 - LEAST_EVENTS)

    def _selected(self, seq: int | None) -> None:
        guarded(self).in_sight(self, (WakeScreen, seq))

    def on_key(self, event: events.Key) -> None:
        """Keys that label, here and not as bindings: an action runs later, when another event may be selected."""
        word = dict(REVIEW_KEYS).get(key := key_name(event))
        if word is None and key != "u":
            return
        event.stop()
        event.prevent_default()
        if guarded(self).counts(event, self.on_key, lambda said: self.post_message(Told(said))):
            if word is not None:
                self.action_review(word.value)
            else:
                self.action_take_back()

    def action_pause(self) -> None:
        self.post_message(pause_or_go_on(self._view, self._by))

    def action_replay(self) -> None:
        event = self._event()
        if event is None or self._view is None:
            return
        if self._view.welcome is not None and not self._view.welcome.has_monitor:
            self.post_message(Told("this bench has no monitor to replay on (`monitor:` in the bench)"))
        elif event.clip is None:
            self.post_message(Told("the sound around this event is not kept yet, or there was no microphone"))
        else:
            self.post_message(CommandWanted(Replay(_id(), self._by, event.clip.name), "replay"))

    def action_review(self, value: str) -> None:
        event = self._event()
        word = ReviewWord(value)
        if event is not None:
            self._save(event.seq, word, REVIEW_WORDS[word])

    def action_take_back(self) -> None:
        event = self._event()
        if event is not None and event.reviewed_by:
            self._save(event.seq, None, "taken back")
        elif self._given:
            self._save(self._given[-1], None, "taken back")
        else:
            self.app.bell()
            self.post_message(Told("this event has no review to take back"))

    def _event(self) -> WakeEvent | None:
        event = self.query_one(UnmatchedList).selected
        if event is None:
            self.post_message(Told("there is no event to review"))
        return event

    def _save(self, seq: int, word: ReviewWord | None, label: str) -> None:
        if self._saving:
            # The event in sight is not yet the next one: a key given now would be meant for neither.
            self.app.bell()
            return

        def answered(answer: Answered) -> None:
            self._saving = False
            if not answer.ok or not self.is_attached:
                return
            self._given = [one for one in self._given if one != seq]
            events = self.query_one(UnmatchedList)
            if word is None:
                events.select(seq)
            else:
                self._given.append(seq)
                events.select_next(seq)

        self._saving = True
        self.post_message(CommandWanted(Review(_id(), self._by, seq, word), f"event {seq}: {label}", answered))


def _id() -> str:
    return str(uuid.uuid4())

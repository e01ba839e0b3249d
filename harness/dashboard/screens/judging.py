"""Rating: one first response after another. A judgment is on the disk before the next one shows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Vertical
from textual.screen import Screen
from textual.widgets import Static

from harness.base.foreign import plain_text
from harness.dashboard import palette
from harness.dashboard.key_guard import guarded_app
from harness.dashboard.messages import RoomRead, SoundEnded, SoundFailed, SoundRead
from harness.dashboard.rater_threads import ItemSound, ItemSounds, RefreshThread
from harness.dashboard.rating_words import AUTO_PLAY, DIGIT_ROW, NEEDS_SHIFT, AzertyDigitCheck, key_name, offered_keys
from harness.dashboard.screens.panels import ChoicePanel, LinePrompt, Panel, ReadingPanel
from harness.dashboard.widgets.bars import KeyBar, key_words
from harness.dashboard.widgets.judging import Explanation, GuideKeys, JudgedItem, MovingWave, SittingEnd, guide_text
from harness.dashboard.widgets.sitting_lines import DraftLine, MessageLine, SittingProgress, SittingTitle, Trouble
from harness.model.errors import HarnessError, InputError
from harness.model.judgment import NEWER, Category, Flag, RaterAction, RaterKeys, SubFlag
from harness.rating.aid import AidState, AidStep, ending_text
from harness.rating.desk import Desk
from harness.rating.guide import FLAG_TEXTS, GUIDE, LABELS, SUB_FLAG_TEXTS
from harness.rating.items import Item
from harness.rating.rater_player import RaterPlayer
from harness.rating.rater_queue import ReopenableItem
from harness.rating.rating_room import RatingRoom
from harness.rating.view import SittingPhase, SittingView, reopenable_in_words

MIN_HEIGHT_FOR_STEPS = 20
"""If a screen has fewer lines, the answers given so far in the decision aid are left out."""


class AidPanel(Panel):
    """The decision aid. Returns the final state when enter saves it; None after escape or `key`, which opened it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Leave"),
        Binding("backspace", "back", "Back"),
        Binding("enter", "save", "Save"),
    ]
    DEFAULT_CSS = """
    AidPanel { align: center bottom; }
    AidPanel > Vertical { width: 100%; max-width: 100; max-height: 100%; padding: 0 2; overflow-y: auto; }
    """

    def __init__(self, state: AidState, query: str, key: str) -> None:
        super().__init__()
        self._state, self._query, self._key = state, query, key

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(id="aid", markup=False)

    def on_mount(self) -> None:
        self._show_state()

    def on_resize(self) -> None:
        self._show_state()

    def on_key(self, event: events.Key) -> None:
        state = self._state.press(event.character) if event.character else None
        if state is not None:
            event.stop()
            self._state = state
            self._show_state()
        elif key_name(event) == self._key:
            event.stop()
            self.dismiss(None)

    def action_back(self) -> None:
        self._state = self._state.back()
        self._show_state()

    def action_save(self) -> None:
        if self._state.ending is not None:
            self.dismiss(self._state)

    def _show_state(self) -> None:
        """Shows the answers given so far, then the question or the end, then the keys."""
        text = Text(f"“{plain_text(self._query, 60)}”", style=palette.QUIET)
        # A low screen has room for the current answers only.
        steps = self._state.steps if self.app.size.height >= MIN_HEIGHT_FOR_STEPS else ()
        for step in steps:
            text.append("\n")
            text.append_text(_step_line(step))
        text.append("\n\n" if steps else "\n")
        text.append_text(self._end_text() if self._state.ending is not None else self._question())
        text.append("\n\n")
        keys = []
        if self._state.ending is not None:
            keys.append(("enter", "save"))
        if self._state.can_go_back:
            keys.append(("backspace", "back"))
        text.append_text(key_words((*keys, ("escape", "leave without saving")), "   "))
        self.query_one("#aid", Static).update(text)

    def _question(self) -> Text:
        state, question = self._state, self._state.question
        if question is None:
            return Text()
        text = Text(f"Question {state.number} of at most {state.max_questions}  ", style=palette.QUIET)
        text.append(plain_text(question.text), style=f"bold {palette.YELLOW}")
        for answer in question.answers:
            text.append(f"\n  {answer.key} ", style=f"bold {palette.BLUE}")
            text.append(plain_text(answer.text), style=palette.TEXT)
            if answer == state.suggested:
                text.append("  (known)", style=palette.QUIET)
        return text

    def _end_text(self) -> Text:
        ending = self._state.ending
        if ending is None:
            return Text()
        text = Text("Result  ", style=palette.QUIET)
        if ending.category is not None:
            text.append(LABELS[ending.category], style=f"bold {palette.GREEN}")
            if ending.sub_flags:
                words = ", ".join(SUB_FLAG_TEXTS[flag] for flag in ending.sub_flags)
                text.append(f"  ({words})", style=palette.GREEN)
            text.append(f"\n{GUIDE[ending.category].test}", style=palette.QUIET)
        else:
            colour = palette.VIOLET if ending.flag is None else palette.ORANGE
            text.append(ending_text(ending), style=f"bold {colour}")
        return text


def _step_line(step: AidStep) -> Text:
    return Text.assemble(
        f"{plain_text(step.question.topic)}: ",
        (plain_text(step.answer.text), palette.TEXT),
        ("  (known)" if step.by_harness else "", palette.QUIET),
        style=palette.QUIET,
    )


CURSOR_INTERVAL_S = 1 / 15
"""Interval at which the cursor moves in the shape of a sound."""
HEIGHT_CLASSES = [(0, "-tiny"), (16, "-flat"), (23, "-low"), (28, "-tall"), (36, "-high")]
"""Number of lines from which a class of judging.tcss applies."""
MAX_CHOICES = 9
"""Number of earlier responses that are offered at once; a digit selects one."""
ACTIONS_ANYWHERE = {RaterAction.UNDO, RaterAction.GUIDE, RaterAction.QUIT, RaterAction.RELEASE_HELD, *NEWER}
ITEM_ACTIONS = frozenset(RaterAction) - ACTIONS_ANYWHERE
SOUND_ACTIONS = {RaterAction.PLAY, RaterAction.PLAY_SLOWER, RaterAction.PLAY_QUERY, RaterAction.STOP}
WRITING_ACTIONS = ITEM_ACTIONS - SOUND_ACTIONS | {RaterAction.UNDO}
"""Actions that concern the response on screen, which the rater must have seen."""


class JudgingScreen(Screen[None]):
    """Shows the desk's view after every key. The desk saves; nothing is kept here."""

    HORIZONTAL_BREAKPOINTS: list[tuple[int, str]] | None = [(0, "-narrow"), (110, "-wide")]  # noqa: RUF012
    VERTICAL_BREAKPOINTS: list[tuple[int, str]] | None = HEIGHT_CLASSES
    AUTO_FOCUS: ClassVar[str | None] = ""
    CSS_PATH = Path(__file__).with_name("judging.tcss")

    def __init__(
        self, room: RatingRoom, desk: Desk, keys: RaterKeys, player: RaterPlayer | None, *, show_names: bool
    ) -> None:
        super().__init__()
        self._room, self._desk, self._rater_keys = room, desk, keys
        self._player = player
        self._show_names = show_names
        self._auto_play = player is not None
        self._item: Item | None = None
        self._played_id = ""
        """The item whose sound was played last."""
        self._azerty_check = AzertyDigitCheck(keys.category)
        self._message, self._colour = "", palette.GREEN

    def compose(self) -> ComposeResult:
        key = self._rater_keys.actions[RaterAction.TRANSCRIPT]
        yield SittingTitle()
        yield SittingProgress()
        with Container(id="work"):
            with Vertical(id="item"):
                yield JudgedItem(key, show_names=self._show_names)
                yield MovingWave()
                yield Trouble()
                yield DraftLine()
            with Vertical(id="beside"):
                yield GuideKeys(self._rater_keys)
                yield Explanation()
        round_ = self._room.round
        key = self._rater_keys.actions[RaterAction.RELEASE_HELD]
        yield SittingEnd(round_.sessions, key, is_shared=bool(round_.raters))
        yield MessageLine()
        yield KeyBar()

    def on_mount(self) -> None:
        self._sounds = ItemSounds(self._room, self._player, self.post_message)
        self._cursor = self.set_interval(CURSOR_INTERVAL_S, self._move_cursor, pause=True)
        self._refresh_thread = RefreshThread(self._room, self.post_message)
        self.show()

    def close(self) -> None:
        """Ends the threads: they post nothing more. Call it before the app ends."""
        self._refresh_thread.close()
        self._sounds.close()

    # What is shown

    def show(self) -> None:
        """Draws the desk's view. A new item's sound is read, and played with autoplay."""
        view = self._desk.view
        item_id = None if view.item is None else view.item.id
        is_new = item_id != (None if self._item is None else self._item.id)
        self._item = view.item
        guarded_app(self).set_shown_item(self, (item_id, view.explanation is not None))
        self.set_class(view.phase is SittingPhase.FINISHED, "-finished")
        self.set_class(view.explanation is not None, "-explaining")
        title = self._room.round.title or self._room.round.id
        self.query_one(SittingTitle).show(view, title)
        self.query_one(SittingProgress).show(view)
        self.query_one(JudgedItem).show(view)
        self.query_one(DraftLine).show(view)
        self.query_one(Explanation).show(view.explanation)
        if view.phase is SittingPhase.FINISHED:
            self.query_one(SittingEnd).show((view, self._list_waiting() if view.count.held else ()))
        self._show_message(view)
        if is_new:
            self._begin_item(view.item)
        self._show_keys(view)

    def _set_notice(self, message: str, colour: str = palette.YELLOW) -> None:
        self._message, self._colour = message, colour

    def _show_message(self, view: SittingView) -> None:
        """Shows the answer to the last key, else the desk's message."""
        message, colour = (self._message, self._colour) if self._message else (view.message, palette.GREEN)
        self.query_one(MessageLine).show(message, colour, break_due=view.break_due)

    def _begin_item(self, item: Item | None) -> None:
        """Stops the sound of the previous item. Plays the response of this one, or only reads it to draw its shape."""
        self._stop_sound()
        if item is None:
            return
        self.query_one(MovingWave).clear("reading the sound …")
        if self._auto_play:
            self._play(ItemSound.RESPONSE)
        else:
            self._sounds.read(item)

    def _show_keys(self, view: SittingView) -> None:
        playing = self._sounds.playing is not None
        keys = offered_keys(view, self._rater_keys, sounds=self._sounds.has_player, playing=playing)
        self.query_one(KeyBar).show(keys)

    def _list_waiting(self) -> tuple[str, ...]:
        own_items = (item for item in self._room.items if self._desk.item(item.id) is not None)
        return tuple(
            f"{item.query}: {item.effect.check.wanted}" for item in own_items if item.waits_for_effect and item.effect
        )

    # Keys

    def on_key(self, event: events.Key) -> None:
        key = key_name(event)
        meaning = self._meaning(key)
        if meaning is None:
            if key in DIGIT_ROW:
                self._set_notice(NEEDS_SHIFT)
                self.show()
            return
        act, writes_row = meaning
        event.stop()
        event.prevent_default()
        self._message = ""
        if not writes_row or guarded_app(self).accepts_key(event, self.on_key, self._set_notice):
            act()
        self.show()

    def _meaning(self, key: str) -> tuple[Callable[[], object], bool] | None:
        """What a key does, and whether that writes a row; None for a key without a meaning here."""
        category = self._rater_keys.category(key) or self._rater_keys.by_letter(key)
        action = self._rater_keys.action(key)
        if self._desk.view.explanation is not None and action not in (RaterAction.UNDO, RaterAction.QUIT):
            return self._desk.go_on, True
        if category is not None:
            return lambda: self._judge(key, category), True
        if action is not None:
            return lambda: self._carry_out(action), action in WRITING_ACTIONS
        return (self._toggle_auto_play, False) if key == AUTO_PLAY else None

    def _judge(self, key: str, category: Category) -> None:
        question = self._azerty_check.question(key, category)
        if question:
            self._set_notice(question)
        else:
            self._save(lambda: self._desk.judge(category))

    def _carry_out(self, action: RaterAction) -> None:
        if action in ITEM_ACTIONS and self._item is None:
            return
        desk, confidence = self._desk, self._desk.view.draft.confidence or 0
        methods: dict[RaterAction, Callable[[], object]] = {
            RaterAction.PLAY: lambda: self._play(ItemSound.RESPONSE),
            RaterAction.PLAY_SLOWER: lambda: self._play(ItemSound.SLOWER),
            RaterAction.PLAY_QUERY: lambda: self._play(ItemSound.QUERY),
            RaterAction.STOP: self._stop_sound,
            RaterAction.TRANSCRIPT: self._show_transcript,
            RaterAction.UNDO: lambda: self._save(desk.undo),
            RaterAction.EARLIER: lambda: self._save(desk.earlier),
            RaterAction.LATER: lambda: self._save(desk.later),
            RaterAction.FIND: self._find_earlier,
            RaterAction.SKIP: lambda: self._save(desk.skip),
            RaterAction.HOLD: lambda: self._save(desk.hold),
            RaterAction.FLAG: self._choose_flag,
            RaterAction.COMMENT: self._ask_comment,
            RaterAction.CONFIDENCE: lambda: desk.set_confidence(min(3, confidence + 1)),
            RaterAction.SUB_FLAG: self._choose_sub_flag,
            RaterAction.AID: self._open_aid,
            RaterAction.GUIDE: lambda: self.app.push_screen(ReadingPanel(guide_text(self._rater_keys))),
            RaterAction.RELEASE_HELD: desk.release_held,
            RaterAction.QUIT: lambda: self.app.exit(self.exit_status),
        }
        methods[action]()

    @property
    def exit_status(self) -> int:
        """The exit status: 3 if the last judgment is not saved."""
        return 3 if self.has_class("-troubled") else 0

    def _save(self, save: Callable[[], bool]) -> None:
        """Calls a method of the desk that saves a row. Shows a failure; the item then stays with its draft.

        Stops the sound first, since the row says how much was heard.
        """
        self._stop_sound()
        try:
            is_done = save()
        except HarnessError as error:
            self.app.bell()
            self.query_one(Trouble).show((error.what, error.remedy))
            self.add_class("-troubled")
            return
        self.remove_class("-troubled")
        self.query_one(Trouble).show(None)
        if not is_done:
            self.app.bell()

    def on_room_read(self, message: RoomRead) -> None:
        """Shows changes after the room has read its files again. An item on screen that is still open stays."""
        message.stop()
        if message.fault:
            self._set_notice(f"updates cannot be read: {message.fault}")
        else:
            self._room.update(self._desk)
        if self.app.screen is self:
            self.show()

    # Panels

    def _ask(self, panel: Panel, apply: Callable[[Any], object]) -> None:
        """Opens a panel, and applies its answer if the item on which it was opened is still on screen."""
        panel_item = self._desk.view.item

        def on_answer(answer: object) -> None:
            self._message = ""
            if answer is not None:
                apply_to_item(answer)
            self.show()

        def apply_to_item(answer: object) -> None:
            item = self._desk.view.item
            if panel_item is None or item is None or panel_item.id != item.id:
                self._set_notice("that response is no longer on screen; nothing was changed")
                return
            try:
                apply(answer)
            except InputError as error:
                self._set_notice(str(error))

        self.app.push_screen(panel, on_answer)

    def _choose_flag(self) -> None:
        flags = tuple(Flag)
        self._ask(
            ChoicePanel("Put this response aside. Why?", tuple(FLAG_TEXTS[flag] for flag in flags)),
            lambda index: self._save(lambda: self._desk.flag(flags[index])),
        )

    def _choose_sub_flag(self) -> None:
        flags, chosen_flags = tuple(SubFlag), self._desk.view.draft.sub_flags
        words = tuple(f"{'✓' if sub_flag in chosen_flags else ' '} {SUB_FLAG_TEXTS[sub_flag]}" for sub_flag in flags)
        self._ask(
            ChoicePanel("Which sub-flag do you want to set? Choose it again to clear it.", words),
            lambda index: self._desk.toggle_sub_flag(flags[index]),
        )

    def _ask_comment(self) -> None:
        prompt = LinePrompt("Comment, saved with the next judgment", required=False, line=self._desk.view.draft.comment)
        self._ask(prompt, self._desk.set_comment)

    def _open_aid(self) -> None:
        aid = self._desk.begin_aid()
        if self._item is not None and aid is not None:
            panel = AidPanel(aid, self._item.query, self._rater_keys.actions[RaterAction.AID])
            self._ask(panel, lambda state: self._save(lambda: self._desk.conclude(state)))

    def _find_earlier(self) -> None:
        """Asks for words, then which of the responses with them to open again."""

        def on_words(words: str | None) -> None:
            if words is None:
                return
            responses = self._desk.reopenable_items(words)
            if not responses:
                self._set_notice("none of your responses contain these words")
                self.show()
                return
            choices = responses[:MAX_CHOICES]
            more_count = len(responses) - len(choices)
            more = f" ({more_count} more: add words to narrow the search)" if more_count else ""
            lines = tuple(reopenable_in_words(response) for response in choices)
            panel = ChoicePanel(f"Which response do you want to open again?{more}", lines)
            self.app.push_screen(panel, lambda index: on_choice(choices, index))

        def on_choice(choices: Sequence[ReopenableItem], index: int | None) -> None:
            if index is not None:
                self._save(lambda: self._desk.open(choices[index].item.id))
                self.show()

        prompt = LinePrompt("Words from the query, its category or your comment (empty: the latest)", required=False)
        self.app.push_screen(prompt, on_words)

    def _show_transcript(self) -> None:
        """Shows the transcript; at the second press, everything about the item in full."""
        view = self._desk.view
        if not view.draft.transcript_shown:
            self._desk.show_transcript()
            return
        text = Text()
        for label, words in self.query_one(JudgedItem).rows(view):
            text.append(f"{label or 'details'}\n", style=palette.QUIET)
            text.append_text(words)
            text.append("\n\n")
        self.app.push_screen(ReadingPanel(text))

    # Sound

    def _play(self, sound: ItemSound) -> None:
        self._stop_sound()
        if self._item is None:
            return
        if not self._sounds.has_player:
            self._set_notice("there is no sound here; judge the text, or use a computer with a loudspeaker")
            return
        self._played_id = self._item.id
        self._sounds.play(self._item, sound)
        self._cursor.resume()

    def _stop_sound(self) -> None:
        self._add_play(self._sounds.stop())

    def _add_play(self, heard_ms: int | None) -> None:
        """Passes a play to the desk (None: not of the response). Stops the cursor if nothing plays."""
        if heard_ms:
            self._desk.record_play(heard_ms, began=True, item_id=self._played_id)
        if self._sounds.playing is None:
            self._cursor.pause()
            self.query_one(MovingWave).move_cursor("", None)

    def _move_cursor(self) -> None:
        playing = self._sounds.playing
        if playing is not None:
            self.query_one(MovingWave).move_cursor(playing.value, self._sounds.position_s)

    def _toggle_auto_play(self) -> None:
        if not self._sounds.has_player:
            self._set_notice("there is no sound here")
            return
        self._auto_play = not self._auto_play
        manner = "automatically" if self._auto_play else "only when you press its key"
        self._set_notice(f"each response plays {manner}", palette.GREEN)

    def on_sound_read(self, message: SoundRead) -> None:
        message.stop()
        if self._item is not None and message.item_id == self._item.id:
            self.query_one(MovingWave).set_shape(message.peaks, message.length_s)

    def on_sound_ended(self, message: SoundEnded) -> None:
        message.stop()
        self._add_play(self._sounds.end_play(message))
        if message.fault:
            self._set_notice(f"the sound failed: {message.fault}; play again to retry")
        self._redraw()

    def on_sound_failed(self, message: SoundFailed) -> None:
        message.stop()
        self._add_play(self._sounds.end_play(SoundEnded(message.number, "")))
        if self._item is not None and message.item_id == self._item.id:
            problem = f"{message.what}. {message.remedy}".rstrip(". ")
            wave = self.query_one(MovingWave)
            if not wave.has_shape:
                wave.clear("no sound to draw")
            self._set_notice(f"no sound: {problem}")
            self._redraw()

    def _redraw(self) -> None:
        view = self._desk.view
        self._show_message(view)
        self._show_keys(view)

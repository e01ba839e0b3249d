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
from harness.dashboard.rating_words import AUTO_PLAY, DIGIT_ROW, NEEDS_SHIFT, AzertyDigitCheck, key_name, list_offers
from harness.dashboard.screens.panels import ChoicePanel, LinePrompt, Panel, ReadingPanel
from harness.dashboard.widgets.bars import key_words
from harness.dashboard.widgets.judging import Explanation, GuideKeys, JudgedItem, MovingWave, SittingEnd, guide_text
from harness.dashboard.widgets.sitting_lines import (
    DraftLine,
    MessageLine,
    OfferedKeys,
    SittingProgress,
    SittingTitle,
    Trouble,
)
from harness.model.errors import HarnessError, InputError
from harness.model.judgment import NEWER, Category, Flag, RaterAction, RaterKeys, SubFlag
from harness.rating.aid import AidState, AidStep, ending_text
from harness.rating.desk import Desk, SittingPhase, SittingView, found_words
from harness.rating.guide import FLAG_TEXTS, GUIDE, LABELS, SUB_FLAG_TEXTS
from harness.rating.items import Item
from harness.rating.rater_player import RaterPlayer
from harness.rating.rater_queue import ReopenableItem
from harness.rating.rating_room import RatingRoom

LOW = 20
"""If a screen has fewer lines, the answers given so far are left out."""


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
        self._write()

    def on_resize(self) -> None:
        self._write()

    def on_key(self, event: events.Key) -> None:
        state = self._state.press(event.character) if event.character else None
        if state is not None:
            event.stop()
            self._state = state
            self._write()
        elif key_name(event) == self._key:
            event.stop()
            self.dismiss(None)

    def action_back(self) -> None:
        self._state = self._state.back()
        self._write()

    def action_save(self) -> None:
        if self._state.ending is not None:
            self.dismiss(self._state)

    def _write(self) -> None:
        text = Text(f"“{plain_text(self._query, 60)}”", style=palette.QUIET)
        # A low screen has room for the current answers only.
        steps = self._state.steps if self.app.size.height >= LOW else ()
        for step in steps:
            text.append("\n")
            text.append_text(_answer_text(step))
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
        text = Text(f"{state.number} of at most {state.most}  ", style=palette.QUIET)
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
        text = Text("That makes it  ", style=palette.QUIET)
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


def _answer_text(step: AidStep) -> Text:
    return Text.assemble(
        f"{plain_text(step.question.topic)}: ",
        (plain_text(step.answer.text), palette.TEXT),
        ("  (known)" if step.filled else "", palette.QUIET),
        style=palette.QUIET,
    )


CURSOR_S = 1 / 15
# Lines, and classes of judging.tcss.
HEIGHTS = [(0, "-tiny"), (16, "-flat"), (23, "-low"), (28, "-tall"), (36, "-high")]
MAX_FOUND = 9
"""Number of earlier responses that are offered at once; a digit selects one."""
ANYWHERE = {RaterAction.UNDO, RaterAction.GUIDE, RaterAction.QUIT, RaterAction.RELEASE_HELD, *NEWER}
ON_AN_ITEM = frozenset(RaterAction) - ANYWHERE
HEARING = {RaterAction.PLAY, RaterAction.PLAY_SLOWER, RaterAction.PLAY_QUERY, RaterAction.STOP}
WRITING = ON_AN_ITEM - HEARING | {RaterAction.UNDO}
"""Actions that concern the response on screen, which the rater must have seen."""


class JudgingScreen(Screen[None]):
    """Shows the desk's view after every key. The desk saves; nothing is kept here."""

    HORIZONTAL_BREAKPOINTS: list[tuple[int, str]] | None = [(0, "-narrow"), (110, "-wide")]  # noqa: RUF012
    VERTICAL_BREAKPOINTS: list[tuple[int, str]] | None = HEIGHTS
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
        yield OfferedKeys()

    def on_mount(self) -> None:
        self._listening = ItemSounds(self._room, self._player, self.post_message)
        self._cursor = self.set_interval(CURSOR_S, self._move_cursor, pause=True)
        self._refreshing = RefreshThread(self._room, self.post_message)
        self.show()

    def close(self) -> None:
        """Before the app ends: threads post nothing more."""
        self._refreshing.close()
        self._listening.close()

    # What is shown

    def show(self) -> None:
        """Draws the desk's view. A new item's sound is read, and played with autoplay."""
        view = self._desk.view
        new = (view.item and view.item.id) != (self._item and self._item.id)
        self._item = view.item
        guarded_app(self).in_sight(self, (view.item and view.item.id, view.explained is not None))
        self.set_class(view.phase is SittingPhase.FINISHED, "-finished")
        self.set_class(view.explained is not None, "-explaining")
        title = self._room.round.title or self._room.round.id
        self.query_one(SittingTitle).show(view, title)
        self.query_one(SittingProgress).show(view)
        self.query_one(JudgedItem).show(view)
        self.query_one(DraftLine).show(view)
        self.query_one(Explanation).show(view.explained)
        if view.phase is SittingPhase.FINISHED:
            self.query_one(SittingEnd).show((view, self._list_waiting() if view.count.held else ()))
        self._show_message(view)
        if new:
            self._begin_item(view.item)
        self._offer(view)

    def _set_notice(self, message: str, colour: str = palette.YELLOW) -> None:
        self._message, self._colour = message, colour

    def _show_message(self, view: SittingView) -> None:
        """Shows the answer to the last key, else the desk's message."""
        message, colour = (self._message, self._colour) if self._message else (view.said, palette.GREEN)
        self.query_one(MessageLine).show(message, colour, break_due=view.break_due)

    def _begin_item(self, item: Item | None) -> None:
        self._stop_sound()
        if item is None:
            return
        self.query_one(MovingWave).clear("reading the sound …")
        if self._auto_play:
            self._play(ItemSound.RESPONSE)
        else:
            self._listening.read(item)

    def _offer(self, view: SittingView) -> None:
        playing = self._listening.playing is not None
        keys = list_offers(view, self._rater_keys, sounds=self._listening.has_player, playing=playing)
        self.query_one(OfferedKeys).show(keys)

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
        act, writes = meaning
        event.stop()
        event.prevent_default()
        self._message = ""
        if not writes or guarded_app(self).counts(event, self.on_key, self._set_notice):
            act()
        self.show()

    def _meaning(self, key: str) -> tuple[Callable[[], object], bool] | None:
        """What a key does, and whether that writes a row; None for a key without a meaning here."""
        category = self._rater_keys.category(key) or self._rater_keys.by_letter(key)
        action = self._rater_keys.action(key)
        if self._desk.view.explained is not None and action not in (RaterAction.UNDO, RaterAction.QUIT):
            return self._desk.go_on, True
        if category is not None:
            return lambda: self._judge(key, category), True
        if action is not None:
            return lambda: self._act(action), action in WRITING
        return (self._toggle_auto_play, False) if key == AUTO_PLAY else None

    def _judge(self, key: str, category: Category) -> None:
        if question := self._azerty_check.question(key, category):
            self._set_notice(question)
        else:
            self._write(lambda: self._desk.judge(category))

    def _act(self, action: RaterAction) -> None:
        if action in ON_AN_ITEM and self._item is None:
            return
        desk, level = self._desk, self._desk.view.draft.confidence or 0
        methods: dict[RaterAction, Callable[[], object]] = {
            RaterAction.PLAY: lambda: self._play(ItemSound.RESPONSE),
            RaterAction.PLAY_SLOWER: lambda: self._play(ItemSound.SLOWER),
            RaterAction.PLAY_QUERY: lambda: self._play(ItemSound.QUERY),
            RaterAction.STOP: self._stop_sound,
            RaterAction.TRANSCRIPT: self._transcript,
            RaterAction.UNDO: lambda: self._write(desk.undo),
            RaterAction.EARLIER: lambda: self._write(desk.earlier),
            RaterAction.LATER: lambda: self._write(desk.later),
            RaterAction.FIND: self._find,
            RaterAction.SKIP: lambda: self._write(desk.skip),
            RaterAction.HOLD: lambda: self._write(desk.hold),
            RaterAction.FLAG: self._flag,
            RaterAction.COMMENT: self._comment,
            RaterAction.CONFIDENCE: lambda: desk.confidence(min(3, level + 1)),
            RaterAction.SUB_FLAG: self._sub_flag,
            RaterAction.AID: self._aid,
            RaterAction.GUIDE: lambda: self.app.push_screen(ReadingPanel(guide_text(self._rater_keys))),
            RaterAction.RELEASE_HELD: desk.release_held,
            RaterAction.QUIT: lambda: self.app.exit(self.status),
        }
        methods[action]()

    @property
    def status(self) -> int:
        """The exit status: 3 if the last judgment is not saved."""
        return 3 if self.has_class("-troubled") else 0

    def _write(self, give: Callable[[], bool]) -> None:
        """Shows a failure; the item stays with its draft. Stops the sound first: the row says how much was heard."""
        self._stop_sound()
        try:
            is_done = give()
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

    def _ask(self, panel: Panel, take: Callable[[Any], object]) -> None:
        """Applies a panel's answer only to the item that it was opened on."""
        panel_item = self._desk.view.item

        def answered(answer: object) -> None:
            self._message = ""
            now = self._desk.view.item
            if answer is not None:
                if panel_item is not None and now is not None and panel_item.id == now.id:
                    try:
                        take(answer)
                    except InputError as error:
                        self._set_notice(str(error))
                else:
                    self._set_notice("that response is no longer on screen; nothing was done")
            self.show()

        self.app.push_screen(panel, answered)

    def _flag(self) -> None:
        flags = tuple(Flag)
        self._ask(
            ChoicePanel("Put this response aside. Why?", tuple(FLAG_TEXTS[flag] for flag in flags)),
            lambda index: self._write(lambda: self._desk.flag(flags[index])),
        )

    def _sub_flag(self) -> None:
        flags, chosen = tuple(SubFlag), self._desk.view.draft.sub_flags
        words = tuple(f"{'✓' if sub_flag in chosen else ' '} {SUB_FLAG_TEXTS[sub_flag]}" for sub_flag in flags)
        self._ask(
            ChoicePanel("Which sub-flag do you want to set? Choose it again to clear it.", words),
            lambda i: self._desk.toggle(flags[i]),
        )

    def _comment(self) -> None:
        prompt = LinePrompt("Comment, saved with the next judgment", required=False, line=self._desk.view.draft.comment)
        self._ask(prompt, self._desk.comment)

    def _aid(self) -> None:
        if self._item is not None and (aid := self._desk.begin_aid()) is not None:
            panel = AidPanel(aid, self._item.query, self._rater_keys.actions[RaterAction.AID])
            self._ask(panel, lambda state: self._write(lambda: self._desk.conclude(state)))

    def _find(self) -> None:
        """Asks for words, then which of the responses with them to open again."""

        def worded(words: str | None) -> None:
            responses = self._desk.reopenable_items(words or "")
            if words is None:
                return
            if not responses:
                self._set_notice("none of your responses has these words")
                self.show()
                return
            choices = responses[:MAX_FOUND]
            more = f" ({len(responses) - len(choices)} more: give more words)" if len(responses) > len(choices) else ""
            lines = tuple(found_words(response) for response in choices)
            self.app.push_screen(ChoicePanel(f"Which one do you want to open again?{more}", lines), chosen(choices))

        def chosen(choices: Sequence[ReopenableItem]) -> Callable[[int | None], None]:
            def take(index: int | None) -> None:
                if index is not None:
                    self._write(lambda: self._desk.open(choices[index].item.id))
                    self.show()

            return take

        prompt = LinePrompt("Words from the query, its category or your comment (empty: the latest)", required=False)
        self.app.push_screen(prompt, worded)

    def _transcript(self) -> None:
        """Shows everything about the item in full."""
        view = self._desk.view
        if not view.draft.transcript_shown:
            self._desk.show_transcript()
            return
        rows = self.query_one(JudgedItem).rows(view)
        parts = (part for label, words in rows for part in ((f"{label or 'details'}\n", palette.QUIET), words, "\n\n"))
        self.app.push_screen(ReadingPanel(Text.assemble(*parts)))

    # Sound

    def _play(self, sound: ItemSound) -> None:
        self._stop_sound()
        if self._item is None:
            return
        if not self._listening.has_player:
            self._set_notice("there is no sound here; judge the text, or use a computer with a loudspeaker")
            return
        self._listening.play(self._item, sound)
        self._cursor.resume()

    def _stop_sound(self) -> None:
        self._add_play(self._listening.stop())

    def _add_play(self, heard_ms: int | None) -> None:
        if heard_ms:
            self._desk.heard(heard_ms, began=True)
        if self._listening.playing is None:
            self._cursor.pause()
            self.query_one(MovingWave).move("", None)

    def _move_cursor(self) -> None:
        playing = self._listening.playing
        if playing is not None:
            self.query_one(MovingWave).move(playing.value, self._listening.at_s)

    def _toggle_auto_play(self) -> None:
        if not self._listening.has_player:
            self._set_notice("there is no sound here")
            return
        self._auto_play = not self._auto_play
        self._set_notice(
            f"each response plays {'automatically' if self._auto_play else 'only when you press its key'}",
            palette.GREEN,
        )

    def on_sound_read(self, message: SoundRead) -> None:
        message.stop()
        if self._item is not None and message.item_id == self._item.id:
            self.query_one(MovingWave).shape(message.peaks, message.length_s)

    def on_sound_ended(self, message: SoundEnded) -> None:
        message.stop()
        self._add_play(self._listening.ended(message))
        if message.fault:
            self._set_notice(f"the sound failed: {message.fault}; play again to retry")
        self._redraw()

    def on_sound_failed(self, message: SoundFailed) -> None:
        message.stop()
        self._add_play(self._listening.ended(SoundEnded(message.number, "")))
        if self._item is not None and message.item_id == self._item.id:
            problem = f"{message.what}. {message.remedy}".rstrip(". ")
            wave = self.query_one(MovingWave)
            if not wave.drawn:
                wave.clear("no sound to draw")
            self._set_notice(f"no sound: {problem}")
            self._redraw()

    def _redraw(self) -> None:
        view = self._desk.view
        self._show_message(view)
        self._offer(view)

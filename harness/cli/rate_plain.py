"""Rating in lines: an item as labelled lines, a command a line, and each answer says what was saved."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TextIO

from harness.cli.rate_lines import (
    explained_lines,
    found_lines,
    guide_lines,
    item_lines,
    progress,
    status_lines,
    text_lines,
)
from harness.cli.rate_sound import Listening
from harness.cli.rate_words import HELP, Said, Unknown, Word, flag_of, parse, sub_flag_of
from harness.cli.typed_lines import TypedLines
from harness.model.errors import DeviceError, HarnessError, LogError
from harness.model.judgment import Category, RaterKeys
from harness.rating.aid import AidState
from harness.rating.aid_text import lines as aid_lines
from harness.rating.desk import Desk
from harness.rating.rater_player import RaterPlayer
from harness.rating.rating_room import RatingRoom

DONE, WRONG_LINE, NOT_SAVED = 0, 2, 3
SAVE_OR_NOT = "`save` saves this and goes on, `back` goes back, `leave` leaves the aid without saving"
READ_AGAIN_S = 10.0
LONGEST_WAIT_S = 120.0


def sit_plainly(
    room: RatingRoom,
    desk: Desk,
    keys: RaterKeys,
    player: RaterPlayer | None,
    *,
    adjudicating: bool,
    names: bool = False,
    source: TextIO | None = None,
) -> int:
    """A sitting over standard input and output, until `quit` or the end of the input; the exit status.

    A script, which is any input that is no terminal, ends at the first line that cannot be done (status 2), or that
    cannot be saved (3): all lines after it would be about another response. names: an adjudicator sees who
    the raters are.
    """
    lines = TypedLines(source)
    return _Sitting(room, desk, keys, player, lines, adjudicating=adjudicating, names=names).run()


class _Sitting:
    def __init__(
        self,
        room: RatingRoom,
        desk: Desk,
        keys: RaterKeys,
        player: RaterPlayer | None,
        lines: TypedLines,
        *,
        adjudicating: bool,
        names: bool,
    ) -> None:
        self._room, self._desk, self._keys = room, desk, keys
        self._listening = Listening(room, desk, player) if player is not None else None
        self._lines = lines
        self._adjudicating, self._names = adjudicating, names
        self._aid: AidState | None = None
        self._shown: str | None = None
        self._status = DONE
        self._read_at_s = time.monotonic()

    def run(self) -> int:
        try:
            self._lines.hold(self._begin, self._take, self._end)
        finally:
            self._hush()
        return self._status

    def _begin(self) -> None:
        self._lines.say([f"round {self._room.round.id}; `help` lists the commands"])
        self._show()

    def _show(self) -> None:
        """The item in sight, when it is another one than before."""
        view = self._desk.view
        if view.explained is not None:
            self._lines.say(explained_lines(view.explained))
            self._desk.go_on()
            view = self._desk.view
        name = view.item.id if view.item is not None else None
        if name != self._shown:
            self._aid = None
        if name != self._shown or name is None:
            self._lines.say(item_lines(view, self._room.round.transcript, names=self._names))
        self._shown = name

    def _end(self) -> None:
        self._hush()
        if self._aid is not None and self._aid.ending is not None:
            self._lines.say(["what the aid came to was not saved: that takes `save`"])
            self._status = self._status if self._lines.person or self._status else WRONG_LINE
        count = self._desk.view.count
        kept = "the last judgment is not saved, all others are" if self._status == NOT_SAVED else "everything is saved"
        self._lines.say([f"ended: {count.done} of {count.total} done, {progress(self._desk.view)}; {kept}"])

    # Commands

    def _take(self, line: str) -> bool:
        """Does what a line says; False when the sitting is to end."""
        meant: Category | Said | Unknown
        self._desk.present()
        if self._aid is not None and self._in_aid(self._aid, line):
            return self._status == DONE or self._lines.person
        meant = parse(line, self._keys)
        if isinstance(meant, Said) and meant.word is Word.QUIT:
            return False
        try:
            wrong = self._label(meant) if isinstance(meant, Category) else self._do(meant)
        except LogError as error:
            self._lines.complain(f"not saved: {error}")
            self._status = NOT_SAVED
            return self._lines.person
        if wrong:
            self._lines.say([wrong])
            self._status = DONE if self._lines.person else WRONG_LINE
            return self._lines.person
        self._catch_up()
        return True

    def _label(self, category: Category) -> str:
        return self._saves(lambda: self._desk.judge(category))

    def _saves(self, write: Callable[[], bool], *, undone: bool = False) -> str:
        """Writes a row and shows what comes next; what is wrong, "" when nothing is."""
        self._hush()
        before = self._desk.view.item
        if not write():
            return self._desk.view.said or "there is no response to judge"
        said = self._desk.view.said
        about = self._desk.view.item if undone else before
        self._aid = None
        self._lines.say([said if about is None or about.exercise is not None else f"{said} (response {about.id})"])
        self._shown = None
        self._show()
        return ""

    def _opens(self, step: Callable[[], bool]) -> str:
        """Brings another response in sight without a row; what is wrong, "" when nothing is."""
        self._hush()
        if not step():
            return self._desk.view.said
        self._aid = None
        self._show()
        return ""

    def _do(self, said: Said | Unknown) -> str:
        desk = self._desk
        if isinstance(said, Unknown):
            return said.what
        match said.word:
            case Word.UNDO:
                return self._saves(desk.undo, undone=True)
            case Word.EARLIER:
                return self._opens(desk.earlier)
            case Word.LATER:
                return self._opens(desk.later)
            case Word.OPEN:
                return self._opens(lambda: desk.open(said.rest))
            case Word.FIND:
                self._lines.say(found_lines(desk.given(said.rest)))
            case Word.SKIP:
                return self._opens(desk.skip) if desk.view.again else self._saves(desk.skip)
            case Word.HOLD:
                return self._saves(desk.hold)
            case Word.FLAG:
                flag = flag_of(said.rest)
                return flag.what if isinstance(flag, Unknown) else self._saves(lambda: desk.flag(flag))
            case Word.HELD:
                desk.release_held()
                self._show()
            case Word.PLAY | Word.QUERY | Word.SLOW | Word.STOP | Word.WAIT:
                return self._sound(said.word)
            case Word.COMMENT | Word.SURE | Word.SUB | Word.CLAIMS:
                return self._note(said)
            case Word.TEXT:
                if not desk.show_transcript():
                    return desk.view.said
                self._lines.say(text_lines(desk.view, self._room.round.transcript))
            case Word.AID:
                return self._begin_aid()
            case Word.GUIDE:
                self._lines.say(guide_lines(self._keys))
            case Word.STATUS:
                self._read_again()
                self._lines.say(status_lines(desk.view))
            case Word.ITEM:
                self._lines.say(item_lines(desk.view, self._room.round.transcript))
            case _:
                self._lines.say(f"{word.value}: {text}" for word, text in HELP.items())
                self._lines.say(["a category: its key or its name; `guide` lists them"])
        return ""

    def _note(self, said: Said) -> str:
        """What is kept with the judgment that follows."""
        desk = self._desk
        if desk.view.item is None:
            return "there is no response to judge"
        match said.word, said.rest:
            case Word.COMMENT, text:
                desk.comment(text)
                self._lines.say(["comment kept for this response" if text else "comment taken away"])
            case Word.SURE, ("1" | "2" | "3") as level:
                if desk.view.draft.confidence != int(level):
                    desk.confidence(int(level))
                self._lines.say([f"sure {level} kept for this response"])
            case Word.CLAIMS, ("yes" | "no") as answer:
                desk.effect_claimed(answer == "yes")
                self._lines.say([f"kept: it {'says' if answer == 'yes' else 'does not say'} that something was done"])
            case Word.SUB, rest:
                flag = sub_flag_of(rest)
                if isinstance(flag, Unknown):
                    return flag.what
                desk.toggle(flag)
                kept = ", ".join(one.value for one in desk.view.draft.sub_flags)
                self._lines.say([f"sub-flags for this response: {kept or 'none'}"])
            case _:
                return f"write it like this: {HELP[said.word]}"
        return ""

    def _sound(self, word: Word) -> str:
        item, listening = self._desk.view.item, self._listening
        if listening is None:
            return "no sound device is open: you have chosen --silent"
        if item is None:
            return "there is no response to hear"
        try:
            match word:
                case Word.STOP:
                    listening.stop()
                    self._lines.say(["stopped"])
                case Word.WAIT:
                    listening.wait(LONGEST_WAIT_S)
                    self._lines.say(["the sound has ended"])
                case Word.QUERY:
                    self._lines.say([f"playing the query, {listening.query(item):.1f} s"])
                case _:
                    slower = word is Word.SLOW
                    length_s = listening.response(item, slower=slower)
                    self._lines.say([f"playing the response{', slower' if slower else ''}, {length_s:.1f} s"])
        except LogError as error:
            return f"the recording cannot be played: {error}"
        except HarnessError as error:
            where = "; other devices: harness sound list" if isinstance(error, DeviceError) else ""
            return f"nothing can be heard: {error}{where}"
        return ""

    # The decision aid

    def _begin_aid(self) -> str:
        begun = self._desk.begin_aid()
        if begun is None:
            return "there is no response to judge"
        self._ask(begun)
        return ""

    def _in_aid(self, state: AidState, line: str) -> bool:
        """Takes a line as an answer of the aid, or as what is to become of its result; False when it is neither."""
        word = line.lower()
        if word == "back":
            self._ask(state.back())
            return True
        if word == "leave":
            self._aid = None
            self._lines.say(["left the aid; nothing was saved"])
            return True
        if state.question is None:
            return self._at_the_end(state, line)
        after = state.press(word)
        if after is None and state.question.answer(word) is not None:
            after = state.answer(word)
        if after is None:
            return False
        self._ask(after)
        return True

    def _at_the_end(self, state: AidState, line: str) -> bool:
        wrong = ""
        if line.lower() == "save":
            try:
                wrong = self._saves(lambda: self._desk.conclude(state))
            except LogError as error:
                self._lines.complain(f"not saved: {error}")
                self._status = NOT_SAVED
        elif isinstance(parse(line, self._keys), Category):
            # It may be meant for the next response, by who takes this one for saved.
            wrong = f"nothing was saved yet. {SAVE_OR_NOT}"
        else:
            return False
        if wrong:
            self._lines.say([wrong])
            self._status = DONE if self._lines.person else WRONG_LINE
        return True

    def _ask(self, state: AidState) -> None:
        """Asks the next question, or what is to become of what the aid came to."""
        self._aid = state
        self._lines.say(aid_lines(state))
        answers = "answer with a letter; `back` goes back, `leave` leaves the aid, a category labels at once"
        self._lines.say([answers if state.ending is None else SAVE_OR_NOT])

    # Around it

    def _hush(self) -> None:
        if self._listening is not None:
            self._listening.stop()

    def _catch_up(self) -> None:
        """Now and then, and whenever nothing is left, looks for new responses and for evidence."""
        finished = self._desk.view.item is None
        if finished or time.monotonic() - self._read_at_s > READ_AGAIN_S:
            self._read_again()

    def _read_again(self) -> None:
        room, desk = self._room, self._desk
        self._read_at_s = time.monotonic()
        try:
            room.refresh()
        except LogError as error:
            self._lines.complain(f"sessions cannot be read again, saving may fail: {error}")
            return
        desk.refresh(room.items_for(desk.rater, adjudicating=self._adjudicating), room.rows)
        item = desk.view.item
        if item is not None and item.id != self._shown:
            self._show()

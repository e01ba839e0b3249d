"""Rating in lines: commands come in, one a line, and answers go out at once."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import TextIO

from harness.cli.rate_lines import (
    InvalidCommand,
    RateWord,
    TypedCommand,
    ending_line,
    explained_lines,
    flag_of,
    found_lines,
    guide_lines,
    item_lines,
    parse,
    status_lines,
    sub_flag_of,
    text_lines,
)
from harness.cli.streams import demand_reader, safe_stream, standard_output
from harness.model.errors import DeviceError, HarnessError, InputError, LogError
from harness.model.judgment import Category, RaterKeys
from harness.model.numbers import seconds
from harness.rating.aid import AidState, aid_lines
from harness.rating.desk import Desk
from harness.rating.rater_player import ItemPlayer, RaterPlayer
from harness.rating.rating_room import RatingRoom

DONE, WRONG_LINE, NOT_SAVED = 0, 2, 3  # Exit statuses, as for wrong usage and for any fault.
READ_AGAIN_S = 10.0

SAVE_OR_NOT = "`save` saves this, `back` returns to the last question, `leave` leaves the aid without saving"
MAX_WAIT_S = 120.0


def run_plain_sitting(
    room: RatingRoom,
    desk: Desk,
    keys: RaterKeys,
    player: RaterPlayer | None,
    *,
    names: bool = False,
    source: TextIO | None = None,
) -> int:
    """A sitting over standard input and output, until `quit` or the end of the input. Returns the exit status.

    A script (input other than a terminal) ends at the first line that is wrong (status 2) or cannot be saved (3).
    Later lines would apply to another response. `names`: show the raters' names to an adjudicator.
    """
    return _PlainSitting(room, desk, keys, player, source, names=names).run()


class _PlainSitting:
    """A sitting in lines.

    person: whether the lines come from a terminal; then a wrong line does not end the sitting. status: exit status,
    DONE until something is wrong.
    """

    def __init__(
        self,
        room: RatingRoom,
        desk: Desk,
        keys: RaterKeys,
        player: RaterPlayer | None,
        source: TextIO | None,
        *,
        names: bool,
    ) -> None:
        self._read_at_s = time.monotonic()
        self._source = sys.stdin if source is None else source
        reconfigure = getattr(self._source, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")
        self._output = standard_output()
        demand_reader()
        self.person = self._source.isatty()
        self.status = DONE
        self._room, self._desk, self._keys = room, desk, keys
        self._listening = ItemPlayer(room, desk, player) if player is not None else None
        self._names = names
        self._aid: AidState | None = None
        self._shown_item: str | None = None

    def run(self) -> int:
        """Carries out lines until `quit`, the end of the input, or the loss of the reader. Returns the exit status."""
        try:
            with suppress(BrokenPipeError):
                self.say([f"round {self._room.round.id}; `help` lists the commands"])
                self._show()
                for line in self._lines():
                    if not self._execute_line(line):
                        break
                self._end()
        finally:
            self.hush()
        return self.status

    def _lines(self) -> Iterator[str]:
        """Non-empty lines, stripped; a terminal shows a prompt for each."""
        while True:
            if self.person:
                self._output.write("> ")
                self._output.flush()
            line = self._source.readline()
            if not line:
                return
            if line.strip():
                yield line.strip()

    def say(self, lines: Iterable[str]) -> None:
        """Writes lines. They must be escaped already."""
        for line in lines:
            self._output.write(line + "\n")
        self._output.flush()

    def complain(self, problem: str) -> None:
        """Writes a problem to standard error."""
        safe_stream(sys.stderr).write(f"harness: {problem}\n")

    def carry_out(self, do: Callable[[], str]) -> bool:
        """Does what a line says. do: returns what is wrong with the line, "" for nothing. False ends a script."""
        try:
            wrong = do()
        except InputError as error:  # a comment that cannot be kept
            wrong = str(error)
        except LogError as error:
            self.complain(f"not saved: {error}")
            self.status = NOT_SAVED
            return self.person
        if wrong:
            self.say([wrong])
            self.status = DONE if self.person else WRONG_LINE
        return not wrong or self.person

    def refresh_room(self) -> None:
        """Takes in new responses, evidence and judgments of others."""
        self._read_at_s = time.monotonic()
        try:
            self._room.refresh()
            self._room.update(self._desk)
            item = self._desk.view.item
            if item is not None and item.id != self._shown_item:
                self._show()
        except LogError as error:
            self.complain(f"cannot read the sessions again, and saving may fail: {error}")

    def _show(self) -> None:
        """Prints the current item if it has changed."""
        view = self._desk.view
        if view.explained is not None:
            self.say(explained_lines(view.explained))
            self._desk.go_on()
            view = self._desk.view
        name = view.item.id if view.item is not None else None
        if name != self._shown_item:
            self._aid = None
        if name != self._shown_item or name is None:
            self.say(item_lines(view, names=self._names))
        self._shown_item = name

    def _end(self) -> None:
        self.hush()
        if self._aid is not None and self._aid.ending is not None:
            self.say(["the result of the aid was not saved; use `save` next time"])
            self.status = self.status if self.person or self.status else WRONG_LINE
        self.say([ending_line(self._desk.view, saved=self.status != NOT_SAVED)])

    # Commands

    def _execute_line(self, line: str) -> bool:
        """Executes a line; False ends the sitting."""
        self._desk.present()
        if self._aid is not None and self._answer_aid(self._aid, line):
            return self.status == DONE or self.person
        answer = parse(line, self._keys)
        if isinstance(answer, TypedCommand) and answer.word is RateWord.QUIT:
            return False
        return self.carry_out(lambda: self._execute(answer))

    def _execute(self, answer: Category | TypedCommand | InvalidCommand) -> str:
        wrong = (
            self._save_and_show(lambda: self._desk.judge(answer)) if isinstance(answer, Category) else self._do(answer)
        )
        if not wrong and (self._desk.view.item is None or time.monotonic() - self._read_at_s > READ_AGAIN_S):
            self.refresh_room()
        return wrong

    def _save_and_show(self, write: Callable[[], bool], *, undone: bool = False) -> str:
        """Writes a row and shows the next item; returns the error, "" for none."""
        self.hush()
        before = self._desk.view.item
        if before is None and not undone:
            return "there is no response to judge"
        if not write():
            return self._desk.view.said
        self.status = DONE
        message = self._desk.view.said
        about = self._desk.view.item if undone else before
        self._aid = None
        self.say([message if about is None or about.exercise is not None else f"{message} (response {about.id})"])
        self._shown_item = None
        self._show()
        return ""

    def _opens(self, step: Callable[[], bool]) -> str:
        """Shows another response, and writes no row; returns the error, "" for none."""
        self.hush()
        if not step():
            return self._desk.view.said
        self._aid = None
        self._show()
        return ""

    def _do(self, command: TypedCommand | InvalidCommand) -> str:
        desk = self._desk
        if isinstance(command, InvalidCommand):
            return command.what
        match command.word:
            case RateWord.UNDO:
                return self._save_and_show(desk.undo, undone=True)
            case RateWord.EARLIER:
                return self._opens(desk.earlier)
            case RateWord.LATER:
                return self._opens(desk.later)
            case RateWord.OPEN:
                return self._opens(lambda: desk.open(command.rest))
            case RateWord.FIND:
                self.say(found_lines(desk.reopenable_items(command.rest)))
            case RateWord.SKIP:
                return self._opens(desk.skip) if desk.view.again else self._save_and_show(desk.skip)
            case RateWord.HOLD:
                return self._save_and_show(desk.hold)
            case RateWord.FLAG:
                flag = flag_of(command.rest)
                return flag.what if isinstance(flag, InvalidCommand) else self._save_and_show(lambda: desk.flag(flag))
            case RateWord.HELD:
                if not desk.view.count.held:
                    self.say(["no response is held"])
                desk.release_held()
                self._show()
            case RateWord.PLAY | RateWord.QUERY | RateWord.SLOW | RateWord.STOP | RateWord.WAIT:
                return self._sound(command.word)
            case RateWord.COMMENT | RateWord.SURE | RateWord.SUB | RateWord.CLAIMS:
                return self._note(command)
            case RateWord.TEXT:
                if not desk.show_transcript():
                    return desk.view.said
                self.say(text_lines(desk.view))
            case RateWord.AID:
                aid = self._desk.begin_aid()
                if aid is None:
                    return "there is no response to judge"
                self._print_aid_question(aid)
                return ""
            case RateWord.GUIDE:
                self.say(guide_lines(self._keys))
            case RateWord.STATUS:
                self.refresh_room()
                self.say(status_lines(desk.view))
            case RateWord.ITEM:
                self.say(item_lines(desk.view, names=self._names))
            case _:
                hidden = RateWord.TEXT if desk.view.hides_text else None
                self.say(f"{word.word}: {word.help}" for word in RateWord if word is not hidden)
                self.say(["a category: its key or its name; `guide` lists them"])
        return ""

    def _note(self, command: TypedCommand) -> str:
        """Notes for the next judgment; returns the error, "" for none."""
        desk = self._desk
        if desk.view.item is None:
            return "there is no response to judge"
        match command.word, command.rest:
            case RateWord.COMMENT, text:
                desk.comment(text)
                self.say(["comment kept for this response" if text else "comment removed"])
            case RateWord.SURE, ("1" | "2" | "3") as level:
                if desk.view.draft.confidence != int(level):
                    desk.confidence(int(level))
                self.say([f"sure {level} kept for this response"])
            case RateWord.CLAIMS, ("yes" | "no") as answer:
                desk.effect_claimed(answer == "yes")
                self.say([f"kept: it {'says' if answer == 'yes' else 'does not say'} that something was done"])
            case RateWord.SUB, rest:
                flag = sub_flag_of(rest)
                if isinstance(flag, InvalidCommand):
                    return flag.what
                desk.toggle(flag)
                sub_flags = ", ".join(sub_flag.value for sub_flag in desk.view.draft.sub_flags)
                self.say([f"sub-flags for this response: {sub_flags or 'none'}"])
            case _:
                return f"write it like this: {command.word.help}"
        return ""

    def _sound(self, word: RateWord) -> str:
        item, listening = self._desk.view.item, self._listening
        if listening is None:
            return "no sound device is open (--no-sound)"
        if item is None:
            return "there is no response to hear"
        try:
            match word:
                case RateWord.STOP:
                    listening.stop()
                    self.say(["stopped"])
                case RateWord.WAIT:
                    listening.wait(MAX_WAIT_S)
                    self.say(["the sound has ended"])
                case RateWord.QUERY:
                    self.say([f"playing the query, {seconds(listening.query(item))}"])
                case _:
                    slower = word is RateWord.SLOW
                    length_s = listening.response(item, slower=slower)
                    self.say([f"playing the response{', slower' if slower else ''}, {seconds(length_s)}"])
        except LogError as error:
            return f"cannot play the recording: {error}"
        except HarnessError as error:
            hint = "; other devices: harness admin sound list" if isinstance(error, DeviceError) else ""
            return f"cannot play: {error}{hint}"
        return ""

    # The decision aid

    def _answer_aid(self, state: AidState, line: str) -> bool:
        """Takes a line as an answer in the aid, or a decision about its result; False when it is neither."""
        word = line.lower()
        if word == "back":
            self._print_aid_question(state.back())
            return True
        if word == "leave":
            self._aid = None
            self.say(["left the aid; nothing was saved"])
            return True
        if state.question is None:
            return self._finish_aid(state, line)
        after = state.press(word)
        if after is None and state.question.answer(word) is not None:
            after = state.answer(word)
        if after is None:
            return False
        self._print_aid_question(after)
        return True

    def _finish_aid(self, state: AidState, line: str) -> bool:
        if line.lower() == "save":
            self.carry_out(lambda: self._save_and_show(lambda: self._desk.conclude(state)))
        elif isinstance(parse(line, self._keys), Category):
            # The rater may believe that this response is saved, and mean the next one.
            self.carry_out(lambda: f"nothing was saved yet. {SAVE_OR_NOT}")
        else:
            return False
        return True

    def _print_aid_question(self, state: AidState) -> None:
        """Asks the next question, or whether to save the result of the aid."""
        self._aid = state
        self.say(aid_lines(state))
        answers = "answer with a letter; `back` goes back, `leave` leaves the aid, a category's key labels immediately"
        self.say([answers if state.ending is None else SAVE_OR_NOT])

    def hush(self) -> None:
        if self._listening is not None:
            self._listening.stop()

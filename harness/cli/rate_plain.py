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
    exercise_result_lines,
    found_lines,
    guide_lines,
    item_lines,
    parse,
    parse_member,
    status_lines,
    text_lines,
)
from harness.cli.streams import demand_reader, safe_stream, standard_output
from harness.model.errors import DeviceError, HarnessError, InputError, LogError
from harness.model.judgment import Category, Flag, RaterKeys, SubFlag
from harness.model.numbers import seconds
from harness.rating.aid import AidState, aid_lines
from harness.rating.desk import Desk
from harness.rating.rater_player import ItemPlayer, RaterPlayer
from harness.rating.rating_room import RatingRoom

DONE, WRONG_LINE, NOT_SAVED = 0, 2, 3  # Exit statuses, as for wrong usage and for any fault.
SCRIPT_ENDS = "the script ends here, since its later lines would apply to another response"
REFRESH_S = 10.0
"""After this time, the sessions are read again when a line has been carried out."""
SAVE_OR_NOT = "`save` saves this, `back` returns to the last question, `leave` leaves the aid without saving"
MAX_WAIT_S = 120.0
"""How long `wait` waits for the end of the sound."""


class PlainSitting:
    """A sitting over standard input and output, until `quit` or the end of the input.

    A script (input other than a terminal) ends at the first line that is wrong (status 2) or cannot be saved (3).
    Later lines would apply to another response. If there was nothing to settle from the start, a judgment ends
    it with status 0: no response was shown to which it could apply. `names`: show the raters' names to an adjudicator.

    Its commands return what is wrong with the line; "" if nothing is.
    """

    def __init__(
        self,
        room: RatingRoom,
        desk: Desk,
        keys: RaterKeys,
        player: RaterPlayer | None,
        source: TextIO | None = None,
        *,
        names: bool = False,
    ) -> None:
        self._refreshed_at_s = time.monotonic()
        self._source = sys.stdin if source is None else source
        reconfigure = getattr(self._source, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")
        self._output = standard_output()
        demand_reader()
        self._is_person = self._source.isatty()
        self._status = DONE
        self._room, self._desk, self._keys = room, desk, keys
        self._player = ItemPlayer(room, desk, player) if player is not None else None
        self._names = names
        self._began_without_disputes = desk.adjudicating and desk.view.item is None
        self._aid: AidState | None = None
        self._shown_item: str | None = None

    def run(self) -> int:
        """Carries out lines until `quit`, the end of the input, or the loss of the reader. Returns the exit status."""
        try:
            with suppress(BrokenPipeError):
                self._print([f"round {self._room.round.id}; `help` lists the commands"])
                self._show()
                for line in self._read_lines():
                    if not self._execute_line(line):
                        break
                self._end()
        finally:
            self._stop_sound()
        return self._status

    def _read_lines(self) -> Iterator[str]:
        """Non-empty lines, stripped. On a terminal, prints a prompt for each."""
        while True:
            if self._is_person:
                self._output.write("> ")
                self._output.flush()
            line = self._source.readline()
            if not line:
                return
            if line.strip():
                yield line.strip()

    def _print(self, lines: Iterable[str]) -> None:
        """Writes lines. They must be escaped already."""
        for line in lines:
            self._output.write(line + "\n")
        self._output.flush()

    def _print_error(self, problem: str) -> None:
        safe_stream(sys.stderr).write(f"harness: {problem}\n")

    def _carry_out(self, command: Callable[[], str]) -> bool:
        """Carries out a command, prints what is wrong with it, and sets the exit status.

        Returns False if the sitting ends here: a script's line was wrong, or could not be saved.
        """
        try:
            problem = command()
        except InputError as error:  # a comment that cannot be kept
            problem = str(error)
        except LogError as error:
            self._print_error(f"not saved: {error}")
            self._status = NOT_SAVED
            return self._is_person
        if problem:
            self._print([problem] if self._is_person else [problem, SCRIPT_ENDS])
            self._status = DONE if self._is_person else WRONG_LINE
        return not problem or self._is_person

    def _refresh_room(self) -> None:
        """Reads new responses, evidence and judgments of others. Shows the current item if it is another one now."""
        self._refreshed_at_s = time.monotonic()
        try:
            self._room.refresh()
            self._room.update(self._desk)
            item = self._desk.view.item
            if item is not None and item.id != self._shown_item:
                self._show()
        except LogError as error:
            self._print_error(f"cannot read the sessions again, and saving may fail: {error}")

    def _show(self) -> None:
        """Prints the result of an exercise, and then the current item if it has changed or there is none."""
        view = self._desk.view
        if view.explanation is not None:
            self._print(exercise_result_lines(view.explanation))
            self._desk.go_on()
            view = self._desk.view
        item_id = view.item.id if view.item is not None else None
        if item_id != self._shown_item:
            self._aid = None
        if item_id != self._shown_item or item_id is None:
            self._print(item_lines(view, names=self._names))
        self._shown_item = item_id

    def _end(self) -> None:
        """Prints what is done. A script that ends with an unsaved result of the aid has status WRONG_LINE."""
        self._stop_sound()
        if self._aid is not None and self._aid.ending is not None:
            self._print(["the result of the aid was not saved; use `save` next time"])
            if self._status == DONE and not self._is_person:
                self._status = WRONG_LINE
        self._print([ending_line(self._desk.view, saved=self._status != NOT_SAVED)])

    # Commands

    def _execute_line(self, line: str) -> bool:
        """Executes a line. Returns False if the sitting ends with it."""
        self._desk.note_presence()
        if self._aid is not None and self._answer_aid(self._aid, line):
            return self._status == DONE or self._is_person
        answer = parse(line, self._keys)
        if isinstance(answer, TypedCommand) and answer.word is RateWord.QUIT:
            return False
        if isinstance(answer, Category) and self._began_without_disputes and self._desk.view.item is None:
            self._print(["there is nothing to settle"])
            return self._is_person
        return self._carry_out(lambda: self._execute(answer))

    def _execute(self, answer: Category | TypedCommand | InvalidCommand) -> str:
        """Saves a judgment or executes a command. Then refreshes the room if nothing is left, or if it is time."""
        match answer:
            case Category():
                problem = self._save_and_show(lambda: self._desk.judge(answer))
            case TypedCommand():
                problem = self._execute_command(answer)
            case InvalidCommand():
                return answer.problem
        refresh_is_due = time.monotonic() - self._refreshed_at_s > REFRESH_S
        if not problem and (self._desk.view.item is None or refresh_is_due):
            self._refresh_room()
        return problem

    def _save_and_show(self, write: Callable[[], bool], *, undone: bool = False) -> str:
        """Writes a row, prints a confirmation and shows the next item.

        - write: returns whether it wrote; if not, `said` of the desk has the reason.
        - undone: the row takes back another.
        """
        self._stop_sound()
        previous_item = self._desk.view.item
        if previous_item is None and not undone:
            return "there is no response to judge"
        if not write():
            return self._desk.view.message
        self._status = DONE
        message = self._desk.view.message
        item = self._desk.view.item if undone else previous_item
        if item is not None and item.exercise is None:
            message = f"{message} (response {item.id})"
        self._aid = None
        self._print([message])
        self._shown_item = None
        self._show()
        return ""

    def _show_other(self, step: Callable[[], bool]) -> str:
        """Shows another response without writing a row. step: returns whether it moved, as `write` above."""
        self._stop_sound()
        if not step():
            return self._desk.view.message
        self._aid = None
        self._show()
        return ""

    def _execute_command(self, command: TypedCommand) -> str:
        desk = self._desk
        match command.word:
            case RateWord.UNDO:
                return self._save_and_show(desk.undo, undone=True)
            case RateWord.EARLIER:
                return self._show_other(desk.earlier)
            case RateWord.LATER:
                return self._show_other(desk.later)
            case RateWord.OPEN:
                return self._show_other(lambda: desk.open(command.argument))
            case RateWord.FIND:
                self._print(found_lines(desk.reopenable_items(command.argument)))
            case RateWord.SKIP:
                return self._show_other(desk.skip) if desk.view.is_reopened else self._save_and_show(desk.skip)
            case RateWord.HOLD:
                return self._save_and_show(desk.hold)
            case RateWord.FLAG:
                flag = parse_member(command.argument, Flag)
                if isinstance(flag, InvalidCommand):
                    return flag.problem
                return self._save_and_show(lambda: desk.flag(flag))
            case RateWord.HELD:
                if not desk.view.count.held:
                    self._print(["no response is held"])
                desk.release_held()
                self._show()
            case RateWord.PLAY | RateWord.QUERY | RateWord.SLOW | RateWord.STOP | RateWord.WAIT:
                return self._control_sound(command.word)
            case RateWord.COMMENT | RateWord.SURE | RateWord.SUB | RateWord.CLAIMS:
                return self._add_to_draft(command)
            case RateWord.TEXT:
                if not desk.show_transcript():
                    return desk.view.message
                self._print(text_lines(desk.view))
            case RateWord.AID:
                aid = self._desk.begin_aid()
                if aid is None:
                    return "there is no response to judge"
                self._print_aid_question(aid)
                return ""
            case RateWord.GUIDE:
                self._print(guide_lines(self._keys))
            case RateWord.STATUS:
                self._refresh_room()
                self._print(status_lines(desk.view))
            case RateWord.ITEM:
                self._print(item_lines(desk.view, names=self._names))
            case _:
                hidden = RateWord.TEXT if desk.view.hides_text else None
                self._print(f"{word.word}: {word.help}" for word in RateWord if word is not hidden)
                self._print(["a category: its key or its name; `guide` lists them"])
        return ""

    def _add_to_draft(self, command: TypedCommand) -> str:
        """Keeps a comment, a confidence or a flag for the next judgment."""
        desk = self._desk
        if desk.view.item is None:
            return "there is no response to judge"
        match command.word, command.argument:
            case RateWord.COMMENT, text:
                desk.set_comment(text)
                self._print(["comment kept for this response" if text else "comment removed"])
            case RateWord.SURE, ("1" | "2" | "3") as level:
                if desk.view.draft.confidence != int(level):
                    desk.set_confidence(int(level))
                self._print([f"sure {level} kept for this response"])
            case RateWord.CLAIMS, ("yes" | "no") as answer:
                desk.set_effect_claimed(answer == "yes")
                claim = "claims" if answer == "yes" else "does not claim"
                self._print([f"kept: the response {claim} to have done something"])
            case RateWord.SUB, name:
                flag = parse_member(name, SubFlag)
                if isinstance(flag, InvalidCommand):
                    return flag.problem
                desk.toggle_sub_flag(flag)
                sub_flags = ", ".join(sub_flag.value for sub_flag in desk.view.draft.sub_flags)
                self._print([f"sub-flags for this response: {sub_flags or 'none'}"])
            case _:
                return f"use it like this: {command.word.help}"
        return ""

    def _control_sound(self, word: RateWord) -> str:
        """Plays the response or query from the start, stops the sound, or waits for its end."""
        item, player = self._desk.view.item, self._player
        if player is None:
            return "no sound device is open (--no-sound)"
        if item is None:
            return "there is no response to hear"
        try:
            match word:
                case RateWord.STOP:
                    player.stop()
                    self._print(["stopped"])
                case RateWord.WAIT:
                    player.wait(MAX_WAIT_S)
                    self._print(["the sound has ended"])
                case RateWord.QUERY:
                    self._print([f"playing the query, {seconds(player.play_query(item))}"])
                case _:
                    slower = word is RateWord.SLOW
                    length_s = player.play_response(item, slower=slower)
                    self._print([f"playing the response{', slower' if slower else ''}, {seconds(length_s)}"])
        except LogError as error:
            return f"cannot play the recording: {error}"
        except HarnessError as error:
            hint = "; other devices: harness admin sound list" if isinstance(error, DeviceError) else ""
            return f"cannot play: {error}{hint}"
        return ""

    # The decision aid

    def _answer_aid(self, state: AidState, line: str) -> bool:
        """Carries out a line that is an answer in the aid, or a decision about its result. Returns whether it is."""
        answer = line.lower()
        if answer == "back":
            self._print_aid_question(state.back())
            return True
        if answer == "leave":
            self._aid = None
            self._print(["left the aid; nothing was saved"])
            return True
        if state.question is None:
            return self._finish_aid(state, line)
        next_state = state.press(answer)
        if next_state is None and state.question.answer(answer) is not None:
            next_state = state.answer(answer)
        if next_state is None:
            return False
        self._print_aid_question(next_state)
        return True

    def _finish_aid(self, state: AidState, line: str) -> bool:
        """Saves the result of the aid, or refuses a category. Returns False for any other line."""
        if line.lower() == "save":
            self._carry_out(lambda: self._save_and_show(lambda: self._desk.conclude(state)))
        elif isinstance(parse(line, self._keys), Category):
            # The rater may believe that this response is saved, and mean the next one.
            self._carry_out(lambda: f"nothing has been saved yet. {SAVE_OR_NOT}")
        else:
            return False
        return True

    def _print_aid_question(self, state: AidState) -> None:
        """Asks the next question, or whether to save the result of the aid."""
        self._aid = state
        self._print(aid_lines(state, self._keys))
        answers = "answer with a letter; `back` goes back, `leave` leaves the aid, a category's key labels immediately"
        self._print([answers if state.ending is None else SAVE_OR_NOT])

    def _stop_sound(self) -> None:
        if self._player is not None:
            self._player.stop()

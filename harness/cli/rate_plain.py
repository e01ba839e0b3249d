"""Rating in lines: an item as labelled lines, a command a line, and each answer says what was saved."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TextIO

from harness.base.foreign import plain_text
from harness.cli.typed_lines import DONE, NOT_SAVED, WRONG_LINE, TypedSitting
from harness.model.errors import DeviceError, HarnessError, LogError
from harness.model.judgment import Category, Flag, RaterAction, RaterKeys, SubFlag, TranscriptPolicy
from harness.model.numbers import seconds
from harness.model.trial import Recognition
from harness.rating.aid import AidState, aid_lines
from harness.rating.desk import Desk, Explained, SittingPhase, SittingView, effect_words, found_words, given_words
from harness.rating.guide import GUIDE, LABELS, RULES
from harness.rating.items import Item
from harness.rating.rater_player import HeardAloud, RaterPlayer
from harness.rating.rating_room import RatingRoom
from harness.rating.standing import Given

LONGEST = 1000
MOST_FOUND = 50


def item_lines(view: SittingView, policy: TranscriptPolicy, *, names: bool = False) -> Iterator[str]:
    """The current item, or the reason why there is none."""
    item, count = view.item, view.count
    if item is None and view.stopped:
        yield "you get no more responses in this round: too many of your answers differ from the known ones"
        return
    if item is None:
        yield f"nothing is left to judge: {count.done} of {count.total} done, {count.held} held"
        if count.held:
            yield "held responses wait for evidence of the effect; `held` lets you judge them anyway"
        return
    if item.exercise is not None:
        yield f"exercise {view.exercises[0] + 1} of {view.exercises[1]}"
    else:
        yield f"response {view.position} of {count.total}{' again' if view.again else ''}, {progress(view)}"
    yield f"query: {plain_text(item.query, LONGEST)}"
    if item.exercise is None:
        yield f"attempts: {item.attempts}{_waits(item)}"
        yield f"response: {_response(item)}"
        if item.recognition is Recognition.NO:
            yield "recognised: no, the device heard other words"
    if item.effect is not None:
        wanted, known = effect_words(item.effect)
        yield f"wanted effect: {wanted}"
        yield f"effect: {known}"
    if item.note:
        yield f"{'what it did' if item.exercise is not None else 'note'}: {plain_text(item.note, LONGEST)}"
    if item.core_capability:
        yield "core capability: every such device must be able to do this"
    yield from text_lines(view, policy)
    if view.proposal is not None:
        yield f"the classifier says: {view.proposal.words}"
    for number, row in enumerate(item.inputs, 1):
        whose = f" of {plain_text(row.rater, 60)}" if names else ""
        yield f"judgment {number}{whose}: {given_words(row)}"
    if view.own is not None:
        yield f"yours so far: {given_words(view.own)}"
    if view.break_due:
        yield "you have judged for a long time: take a break"


def found_lines(found: Sequence[Given]) -> Iterator[str]:
    """Responses that can be opened again."""
    for one in found[:MOST_FOUND]:
        yield f"{one.item.id}: {found_words(one)}"
    if len(found) > MOST_FOUND:
        yield f"and {len(found) - MOST_FOUND} more; `find` with more words"
    if not found:
        yield "none of your judged responses has these words"


def text_lines(view: SittingView, policy: TranscriptPolicy) -> Iterator[str]:
    """The transcript, where the rater may see it."""
    item = view.item
    if item is None:
        return
    if not view.draft.transcript_shown:
        if view.phase is SittingPhase.TRAINING or policy is TranscriptPolicy.ON_REQUEST:
            yield "transcript: hidden; `text` shows it"
        return
    words = "there is none" if item.transcript is None else plain_text(item.transcript, LONGEST)
    yield f"transcript: {words}"


def progress(view: SittingView) -> str:
    """How much is left, and the time for it at the rater's pace."""
    count = view.count
    parts = [f"{count.left} left"]
    if count.held:
        parts.append(f"{count.held} held")
    if view.left_s is not None:
        parts.append(f"about {max(1, round(view.left_s / 60))} min at your pace")
    return ", ".join(parts)


def status_lines(view: SittingView) -> Iterator[str]:
    """The rater's progress."""
    count = view.count
    yield f"rater: {plain_text(view.rater)}"
    if view.exercises[1]:
        yield f"exercises: {view.exercises[0]} of {view.exercises[1]} done"
    yield (
        f"responses: {count.total}, {count.done} done, {count.left} left, {count.skipped} of them left for the end, "
        f"{count.held} held, {count.flagged} put aside"
    )
    pace = "n/a, nothing is judged yet" if view.pace_s is None else f"{seconds(view.pace_s)} a response"
    yield f"pace: {pace}" + ("" if view.left_s is None else f", about {max(1, round(view.left_s / 60))} min left")
    draft = view.draft
    said = [f"sure {draft.confidence}"] if draft.confidence else []
    said += [flag.value for flag in draft.sub_flags]
    said += [f"comment {plain_text(draft.comment, 200)}"] if draft.comment else []
    if said:
        yield f"kept for the next judgment: {', '.join(said)}"


def explained_lines(explained: Explained) -> Iterator[str]:
    """The answer to an exercise."""
    exercise = explained.exercise
    also = "".join(f" or {LABELS[one]}" for one in exercise.accept)
    verdict = "right" if explained.right else "not so"
    yield f"{verdict}: it is {LABELS[exercise.category]}{also}; you said {LABELS[explained.given]}"
    yield f"why: {plain_text(exercise.why, LONGEST)}"


def guide_lines(keys: RaterKeys) -> Iterator[str]:
    """Categories with their keys, and the rules."""
    for category, text in GUIDE.items():
        yield f"{keys.categories[category]} {LABELS[category]}: {text.short}. {text.test}"
    for rule in RULES:
        yield f"rule: {rule}"


def _waits(item: Item) -> str:
    if not item.waits_s:
        return ""
    waited = ", ".join("unknown" if one is None else seconds(one) for one in item.waits_s)
    return f"; waited {waited}"


def _response(item: Item) -> str:
    parts = ["length unknown" if item.length is None else f"{seconds(item.length.value_s)} long"]
    if item.latency is not None:
        parts.append(f"{seconds(item.latency.value_s)} after the query")
    if item.truncated:
        parts.append("cut at the time limit")
    return ", ".join(parts)


LONGEST_TOLD = 60


class RateWord(Enum):
    """The commands of plain rating. help: what it does; action: a rater's key for it."""

    PLAY = "play", "play the response, from the start", RaterAction.PLAY
    QUERY = "query", "play the query", RaterAction.PLAY_QUERY
    SLOW = "slow", "play the response slower", RaterAction.PLAY_SLOWER
    STOP = "stop", "stop the sound", RaterAction.STOP
    WAIT = "wait", "wait until the sound has ended", None
    TEXT = "text", "show what was said in writing", RaterAction.TRANSCRIPT
    UNDO = "undo", "take back the last judgment; repeat to take back more", RaterAction.UNDO
    EARLIER = "earlier", "open the response that you judged before this one", RaterAction.EARLIER
    LATER = "later", "open the next one, up to the response still to be judged", RaterAction.LATER
    FIND = "find", "find WORDS: list your judged responses with these words, latest first", RaterAction.FIND
    OPEN = "open", "open ID: open one of them", None
    SKIP = "skip", "leave the response for the end; a reopened one stays as it is", RaterAction.SKIP
    HOLD = "hold", "postpone it until the effect is known", RaterAction.HOLD
    HELD = "held", "judge held responses without evidence", RaterAction.RELEASE_HELD
    FLAG = "flag", f"put it aside: flag {' or '.join(one.value for one in Flag)}", RaterAction.FLAG
    COMMENT = "comment", "comment TEXT: saved with the next judgment", RaterAction.COMMENT
    SURE = "sure", "sure 1 (unsure) to 3 (sure)", RaterAction.CONFIDENCE
    SUB = "sub", f"sub FLAG: set or clear a sub-flag: {', '.join(one.value for one in SubFlag)}", RaterAction.SUB_FLAG
    CLAIMS = "claims", "claims yes or claims no: whether the response says that something was done", None
    AID = "aid", "the decision aid: short questions that lead to a category", RaterAction.AID
    GUIDE = "guide", "the categories and the rules", RaterAction.GUIDE
    STATUS = "status", "how far you are", None
    ITEM = "item", "print the response again", None
    HELP = "help", "print this", None
    QUIT = "quit", "leave; everything is saved", RaterAction.QUIT

    def __init__(self, word: str, help_: str, action: RaterAction | None) -> None:
        self.word, self.help, self.action = word, help_, action


_BY_WORD = {one.word: one for one in RateWord}
_BY_ACTION = {one.action: one for one in RateWord if one.action is not None}


@dataclass(frozen=True, slots=True)
class TypedCommand:
    """A command with its arguments."""

    word: RateWord
    rest: str = ""


@dataclass(frozen=True, slots=True)
class NotACommand:
    """Why a line is wrong, with the nearest valid one."""

    what: str


def parse(line: str, keys: RaterKeys) -> Category | TypedCommand | NotACommand:
    """What a line means. A category is written as its whole key, name or label."""
    line = line.strip()
    first, _, rest = line.partition(" ")
    rest = rest.strip()
    if (by_key := keys.category(line)) is not None:
        return by_key
    if (action := keys.action(first)) is not None:
        return TypedCommand(_BY_ACTION[action], rest)
    named = _normal(line)
    for category in Category:
        if named in (category.value, _normal(LABELS[category])):
            return category
    if first.lower() in _BY_WORD:
        return TypedCommand(_BY_WORD[first.lower()], rest)
    return NotACommand(f"'{plain_text(line, LONGEST_TOLD)}' is not a command. {_nearest(line, first)}")


def flag_of(rest: str) -> Flag | NotACommand:
    return next((one for one in Flag if one.value == _normal(rest)), _no_word(rest, [one.value for one in Flag]))


def sub_flag_of(rest: str) -> SubFlag | NotACommand:
    known = [one.value for one in SubFlag]
    return next((one for one in SubFlag if one.value == _normal(rest)), _no_word(rest, known))


def _no_word(rest: str, known: list[str]) -> NotACommand:
    near = difflib.get_close_matches(_normal(rest)[:LONGEST_TOLD], known, n=1, cutoff=0.4)
    return NotACommand((f"Did you mean {near[0]!r}? " if near else "") + f"Write one of: {', '.join(known)}")


def _nearest(line: str, first: str) -> str:
    known = [*_BY_WORD, *(one.value for one in Category)]
    near = difflib.get_close_matches(_normal(line)[:LONGEST_TOLD], known, n=1) or difflib.get_close_matches(
        _normal(first)[:LONGEST_TOLD], known, n=1
    )
    return f"Did you mean {near[0]!r}?" if near else "help lists the commands"


def _normal(text: str) -> str:
    for sign in ".,-":
        text = text.replace(sign, " ")
    return "_".join(text.lower().split())


SAVE_OR_NOT = "`save` saves this, `back` returns to the last question, `leave` leaves the aid without saving"
LONGEST_WAIT_S = 120.0


def sit_plainly(
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
    sitting = _PlainSitting(room, desk, keys, player, source, names=names)
    try:
        return sitting.run()
    finally:
        sitting.hush()


class _PlainSitting(TypedSitting):
    UNREADABLE = "cannot read the sessions again"

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
        super().__init__(source)
        self._room, self._desk, self._keys = room, desk, keys
        self._listening = HeardAloud(room, desk, player) if player is not None else None
        self._names = names
        self._aid: AidState | None = None
        self._shown: str | None = None

    def _begin(self) -> None:
        self.say([f"round {self._room.round.id}; `help` lists the commands"])
        self._show()

    def _show(self) -> None:
        """Prints the current item if it has changed."""
        view = self._desk.view
        if view.explained is not None:
            self.say(explained_lines(view.explained))
            self._desk.go_on()
            view = self._desk.view
        name = view.item.id if view.item is not None else None
        if name != self._shown:
            self._aid = None
        if name != self._shown or name is None:
            self.say(item_lines(view, self._room.round.transcript, names=self._names))
        self._shown = name

    def _end(self) -> None:
        self.hush()
        if self._aid is not None and self._aid.ending is not None:
            self.say(["the result of the aid was not saved; use `save` next time"])
            self.status = self.status if self.person or self.status else WRONG_LINE
        count = self._desk.view.count
        kept = "the last judgment is not saved, all others are" if self.status == NOT_SAVED else "everything is saved"
        self.say([f"ended: {count.done} of {count.total} done, {progress(self._desk.view)}; {kept}"])

    # Commands

    def _take(self, line: str) -> bool:
        """Executes a line; False ends the sitting."""
        self._desk.present()
        if self._aid is not None and self._in_aid(self._aid, line):
            return self.status == DONE or self.person
        meant = parse(line, self._keys)
        if isinstance(meant, TypedCommand) and meant.word is RateWord.QUIT:
            return False
        return self.carry_out(lambda: self._carried_out(meant))

    def _carried_out(self, meant: Category | TypedCommand | NotACommand) -> str:
        wrong = self._saves(lambda: self._desk.judge(meant)) if isinstance(meant, Category) else self._do(meant)
        if not wrong:
            self.catch_up(finished=self._desk.view.item is None)
        return wrong

    def _saves(self, write: Callable[[], bool], *, undone: bool = False) -> str:
        """Writes a row and shows the next item; returns the error, "" for none."""
        self.hush()
        before = self._desk.view.item
        if before is None and not undone:
            return "there is no response to judge"
        if not write():
            return self._desk.view.said
        said = self._desk.view.said
        about = self._desk.view.item if undone else before
        self._aid = None
        self.say([said if about is None or about.exercise is not None else f"{said} (response {about.id})"])
        self._shown = None
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

    def _do(self, said: TypedCommand | NotACommand) -> str:
        desk = self._desk
        if isinstance(said, NotACommand):
            return said.what
        match said.word:
            case RateWord.UNDO:
                return self._saves(desk.undo, undone=True)
            case RateWord.EARLIER:
                return self._opens(desk.earlier)
            case RateWord.LATER:
                return self._opens(desk.later)
            case RateWord.OPEN:
                return self._opens(lambda: desk.open(said.rest))
            case RateWord.FIND:
                self.say(found_lines(desk.given(said.rest)))
            case RateWord.SKIP:
                return self._opens(desk.skip) if desk.view.again else self._saves(desk.skip)
            case RateWord.HOLD:
                return self._saves(desk.hold)
            case RateWord.FLAG:
                flag = flag_of(said.rest)
                return flag.what if isinstance(flag, NotACommand) else self._saves(lambda: desk.flag(flag))
            case RateWord.HELD:
                desk.release_held()
                self._show()
            case RateWord.PLAY | RateWord.QUERY | RateWord.SLOW | RateWord.STOP | RateWord.WAIT:
                return self._sound(said.word)
            case RateWord.COMMENT | RateWord.SURE | RateWord.SUB | RateWord.CLAIMS:
                return self._note(said)
            case RateWord.TEXT:
                if not desk.show_transcript():
                    return desk.view.said
                self.say(text_lines(desk.view, self._room.round.transcript))
            case RateWord.AID:
                begun = self._desk.begin_aid()
                if begun is None:
                    return "there is no response to judge"
                self._ask(begun)
                return ""
            case RateWord.GUIDE:
                self.say(guide_lines(self._keys))
            case RateWord.STATUS:
                self.read_again()
                self.say(status_lines(desk.view))
            case RateWord.ITEM:
                self.say(item_lines(desk.view, self._room.round.transcript))
            case _:
                self.say(f"{one.word}: {one.help}" for one in RateWord)
                self.say(["a category: its key or its name; `guide` lists them"])
        return ""

    def _note(self, said: TypedCommand) -> str:
        """Notes for the next judgment; returns the error, "" for none."""
        desk = self._desk
        if desk.view.item is None:
            return "there is no response to judge"
        match said.word, said.rest:
            case RateWord.COMMENT, text:
                desk.comment(text)
                self.say(["comment kept for this response" if text else "comment taken away"])
            case RateWord.SURE, ("1" | "2" | "3") as level:
                if desk.view.draft.confidence != int(level):
                    desk.confidence(int(level))
                self.say([f"sure {level} kept for this response"])
            case RateWord.CLAIMS, ("yes" | "no") as answer:
                desk.effect_claimed(answer == "yes")
                self.say([f"kept: it {'says' if answer == 'yes' else 'does not say'} that something was done"])
            case RateWord.SUB, rest:
                flag = sub_flag_of(rest)
                if isinstance(flag, NotACommand):
                    return flag.what
                desk.toggle(flag)
                kept = ", ".join(one.value for one in desk.view.draft.sub_flags)
                self.say([f"sub-flags for this response: {kept or 'none'}"])
            case _:
                return f"write it like this: {said.word.help}"
        return ""

    def _sound(self, word: RateWord) -> str:
        item, listening = self._desk.view.item, self._listening
        if listening is None:
            return "no sound device is open (--silent)"
        if item is None:
            return "there is no response to hear"
        try:
            match word:
                case RateWord.STOP:
                    listening.stop()
                    self.say(["stopped"])
                case RateWord.WAIT:
                    listening.wait(LONGEST_WAIT_S)
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
            where = "; other devices: harness sound list" if isinstance(error, DeviceError) else ""
            return f"cannot play: {error}{where}"
        return ""

    # The decision aid

    def _in_aid(self, state: AidState, line: str) -> bool:
        """Takes a line as an answer in the aid, or a decision about its result; False when it is neither."""
        word = line.lower()
        if word == "back":
            self._ask(state.back())
            return True
        if word == "leave":
            self._aid = None
            self.say(["left the aid; nothing was saved"])
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
        if line.lower() == "save":
            self.carry_out(lambda: self._saves(lambda: self._desk.conclude(state)))
        elif isinstance(parse(line, self._keys), Category):
            # The rater may believe that this response is saved, and mean the next one.
            self.carry_out(lambda: f"nothing was saved yet. {SAVE_OR_NOT}")
        else:
            return False
        return True

    def _ask(self, state: AidState) -> None:
        """Asks the next question, or whether to save the result of the aid."""
        self._aid = state
        self.say(aid_lines(state))
        answers = "answer with a letter; `back` goes back, `leave` leaves the aid, a category labels at once"
        self.say([answers if state.ending is None else SAVE_OR_NOT])

    # Around it

    def hush(self) -> None:
        if self._listening is not None:
            self._listening.stop()

    def _take_in(self) -> None:
        """New responses, evidence and judgments of others."""
        self._room.refresh()
        self._room.update(self._desk)
        item = self._desk.view.item
        if item is not None and item.id != self._shown:
            self._show()

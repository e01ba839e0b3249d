"""What a rater writes on a line: a category, or one of the commands; by name or by its key."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from enum import StrEnum

from harness.base.foreign import plain_text
from harness.model.judgment import Category, Flag, RaterAction, RaterKeys, SubFlag
from harness.rating.categories import LABELS

LONGEST_TOLD = 60


class Word(StrEnum):
    """The commands of plain rating."""

    PLAY = "play"
    QUERY = "query"
    SLOW = "slow"
    STOP = "stop"
    WAIT = "wait"
    TEXT = "text"
    UNDO = "undo"
    EARLIER = "earlier"
    LATER = "later"
    FIND = "find"
    OPEN = "open"
    SKIP = "skip"
    HOLD = "hold"
    HELD = "held"
    FLAG = "flag"
    COMMENT = "comment"
    SURE = "sure"
    SUB = "sub"
    CLAIMS = "claims"
    AID = "aid"
    GUIDE = "guide"
    STATUS = "status"
    ITEM = "item"
    HELP = "help"
    QUIT = "quit"


HELP: dict[Word, str] = {
    Word.PLAY: "play the response, from the start",
    Word.QUERY: "play the query",
    Word.SLOW: "play the response slower",
    Word.STOP: "stop the sound",
    Word.WAIT: "wait until the sound has ended",
    Word.TEXT: "show what was said in writing",
    Word.UNDO: "take back the last judgment, again and again",
    Word.EARLIER: "open what you judged before this one, to look at it and change it",
    Word.LATER: "go on from there, up to the response that is to be judged",
    Word.FIND: "find WORDS: lists what you have judged and has these words, the latest first",
    Word.OPEN: "open ID: opens one of them",
    Word.SKIP: "leave the response for the end; what you have opened again stays as it is",
    Word.HOLD: "leave it until it is known what the device did",
    Word.HELD: "judge what is held all the same",
    Word.FLAG: f"put it aside: flag {' or '.join(one.value for one in Flag)}",
    Word.COMMENT: "comment TEXT; it is kept with the judgment that follows",
    Word.SURE: "sure 1 (unsure) to 3 (sure)",
    Word.SUB: f"sub-flag, again takes it back: {', '.join(one.value for one in SubFlag)}",
    Word.CLAIMS: "claims yes or no: whether the response says that something was done",
    Word.AID: "the decision aid: short questions that lead to a category",
    Word.GUIDE: "the categories and the rules",
    Word.STATUS: "how far you are",
    Word.ITEM: "print the response again",
    Word.HELP: "print this",
    Word.QUIT: "leave; everything is saved",
}

_OF_ACTION: dict[RaterAction, Word] = {
    RaterAction.PLAY: Word.PLAY,
    RaterAction.PLAY_QUERY: Word.QUERY,
    RaterAction.PLAY_SLOWER: Word.SLOW,
    RaterAction.STOP: Word.STOP,
    RaterAction.TRANSCRIPT: Word.TEXT,
    RaterAction.UNDO: Word.UNDO,
    RaterAction.EARLIER: Word.EARLIER,
    RaterAction.LATER: Word.LATER,
    RaterAction.FIND: Word.FIND,
    RaterAction.SKIP: Word.SKIP,
    RaterAction.HOLD: Word.HOLD,
    RaterAction.FLAG: Word.FLAG,
    RaterAction.COMMENT: Word.COMMENT,
    RaterAction.CONFIDENCE: Word.SURE,
    RaterAction.SUB_FLAG: Word.SUB,
    RaterAction.AID: Word.AID,
    RaterAction.GUIDE: Word.GUIDE,
    RaterAction.RELEASE_HELD: Word.HELD,
    RaterAction.QUIT: Word.QUIT,
}


@dataclass(frozen=True, slots=True)
class Said:
    """A command, and what stands behind it."""

    word: Word
    rest: str = ""


@dataclass(frozen=True, slots=True)
class Unknown:
    """What is wrong with a line, and the nearest right one."""

    what: str


def parse(line: str, keys: RaterKeys) -> Category | Said | Unknown:
    """What a line means. A category may be written by its key, its name or its label; not in part."""
    line = line.strip()
    first, _, rest = line.partition(" ")
    rest = rest.strip()
    if (by_key := keys.category(line)) is not None:
        return by_key
    if (action := keys.action(first)) is not None:
        return Said(_OF_ACTION[action], rest)
    named = _normal(line)
    for category in Category:
        if named in (category.value, _normal(LABELS[category])):
            return category
    if first.lower() in list(Word):
        return Said(Word(first.lower()), rest)
    return Unknown(f"'{plain_text(line, LONGEST_TOLD)}' is no command. {_nearest(line, first)}")


def flag_of(rest: str) -> Flag | Unknown:
    return next((one for one in Flag if one.value == _normal(rest)), _no_word(rest, [one.value for one in Flag]))


def sub_flag_of(rest: str) -> SubFlag | Unknown:
    known = [one.value for one in SubFlag]
    return next((one for one in SubFlag if one.value == _normal(rest)), _no_word(rest, known))


def _no_word(rest: str, known: list[str]) -> Unknown:
    near = difflib.get_close_matches(_normal(rest)[:LONGEST_TOLD], known, n=1, cutoff=0.4)
    return Unknown((f"Did you mean {near[0]!r}? " if near else "") + f"Write one of: {', '.join(known)}")


def _nearest(line: str, first: str) -> str:
    known = [*(one.value for one in Word), *(one.value for one in Category)]
    near = difflib.get_close_matches(_normal(line)[:LONGEST_TOLD], known, n=1) or difflib.get_close_matches(
        _normal(first)[:LONGEST_TOLD], known, n=1
    )
    return f"Did you mean {near[0]!r}?" if near else "help lists the commands"


def _normal(text: str) -> str:
    for sign in ".,-":
        text = text.replace(sign, " ")
    return "_".join(text.lower().split())

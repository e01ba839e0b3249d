"""Sums, per cent and lengths of time; the last result stays in mind."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from harness.lab.assistant.frame import ToldFrame, frame
from harness.lab.assistant.memory import Memory, Moment, SkillAnswer
from harness.lab.assistant.words import say_number

_N = r"(-?\d+(?:\.\d+)?)"
_OPERATORS = (
    (r"plus|and|added to", "plus"),
    (r"minus|less|take away", "minus"),
    (r"times|multiplied by", "times"),
    (r"divided by|over", "divided by"),
)
_SUM = re.compile(rf"\b{_N} ({'|'.join(pattern for pattern, _ in _OPERATORS)}) {_N}\b")
_UNIT_S = {"second": 1.0, "minute": 60.0, "hour": 3600.0, "day": 86400.0, "week": 604800.0}
_UNITS = "|".join(_UNIT_S)
_HOW_MANY = re.compile(rf"how many ({_UNITS})s? (?:are |is )?(?:there )?in (an?|\d+(?:\.\d+)?) ({_UNITS})s?\b")
_IN_UNITS = re.compile(rf"^(?:and |what about |how about |what is that )*in ({_UNITS})s?$")


@dataclass(frozen=True, slots=True)
class Result:
    """The number that was just said."""

    value: float


@dataclass(frozen=True, slots=True)
class Length:
    """A length of time that was just spoken of, and in which words."""

    seconds: float
    words: str


class Arithmetic:
    """ "What is seven times eight", "15 percent of 80", "how many hours in 3 days"; "add five to that" after it."""

    def answer(self, said: str, memory: Memory, moment: Moment) -> SkillAnswer | None:
        return self._length(said, memory, moment) or self._follow_up(said, memory, moment) or self._sum(said)

    def _sum(self, said: str) -> SkillAnswer | None:
        if found := re.search(rf"\b{_N} percent of {_N}\b", said):
            share, whole = float(found[1]), float(found[2])
            asked = _asked(share, "percent of", whole)
            return _told(f"{say_number(share)} percent of {say_number(whole)} is", share * whole / 100, asked)
        if found := re.search(rf"\bsquare root of {_N}\b", said):
            value = float(found[1])
            asked = _asked(None, "square root of", value)
            if value < 0:
                return SkillAnswer("A negative number has no real square root.", asked)
            return _told(f"The square root of {say_number(value)} is", math.sqrt(value), asked)
        if found := _SUM.search(said):
            left, word, right = float(found[1]), _operator(found[2]), float(found[3])
            return _calculated(left, word, right, _asked(left, word, right))
        return None

    def _follow_up(self, said: str, memory: Memory, moment: Moment) -> SkillAnswer | None:
        last = memory.recall(Result, moment.now_s)
        if last is None:
            return None
        if found := re.fullmatch(rf"(?:and )?(add|subtract|take) {_N} (?:to|from) (?:that|it)", said):
            return _gone_on(last, "plus" if found[1] == "add" else "minus", float(found[2]))
        if found := re.fullmatch(rf"(?:and )?(multiply|divide) (?:that|it) by {_N}", said):
            return _gone_on(last, "times" if found[1] == "multiply" else "divided by", float(found[2]))
        if found := re.fullmatch(rf"(?:and )?(?:that )?(plus|minus|times|divided by) {_N}", said):
            return _gone_on(last, found[1], float(found[2]))
        return None

    def _length(self, said: str, memory: Memory, moment: Moment) -> SkillAnswer | None:
        if found := _HOW_MANY.search(said):
            count = 1.0 if found[2].startswith("a") else float(found[2])
            words = f"{say_number(count)} {found[3]}{'' if count == 1 else 's'}"
            return _converted(Length(count * _UNIT_S[found[3]], words), found[1], ("duration", words))
        length = memory.recall(Length, moment.now_s)
        if length is not None and (found := _IN_UNITS.match(said)):
            return _converted(length, found[1])
        return None


def _operator(word: str) -> str:
    return next(name for pattern, name in _OPERATORS if word in pattern.split("|"))


def _asked(left: float | None, operator: str, right: float) -> ToldFrame:
    first = [] if left is None else [("number", say_number(left))]
    return frame("calculate", *first, ("operator", operator), ("number", say_number(right)))


def _gone_on(last: Result, name: str, right: float) -> SkillAnswer:
    """With the number that was said before, which is no part of what was asked now."""
    return _calculated(last.value, name, right, _asked(None, name, right))


def _calculated(left: float, name: str, right: float, asked: ToldFrame) -> SkillAnswer:
    match name:
        case "plus":
            value = left + right
        case "minus":
            value = left - right
        case "times":
            value = left * right
        case _:
            if right == 0:
                return SkillAnswer("Nothing can be divided by zero.", asked)
            value = left / right
    return _told(f"{say_number(left)} {name} {say_number(right)} is", value, asked)


def _told(sentence: str, value: float, asked: ToldFrame) -> SkillAnswer:
    if not math.isfinite(value) or abs(value) >= 1e15:
        return SkillAnswer("That number is too large for me.", asked)
    return SkillAnswer(f"{sentence} {say_number(value)}.", asked, Result(value))


def _converted(length: Length, unit: str, *named: tuple[str, str]) -> SkillAnswer:
    value = length.seconds / _UNIT_S[unit]
    name = unit if value == 1 else f"{unit}s"
    asked = frame("convert_time", *named, ("unit", unit))
    return SkillAnswer(f"{length.words[0].upper()}{length.words[1:]} is {say_number(value)} {name}.", asked, length)

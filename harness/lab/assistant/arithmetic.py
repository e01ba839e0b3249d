"""Sums and percentages. Also normalises texts for matching: lower case, digits, no punctuation."""

from __future__ import annotations

import math
import re

from harness.lab.assistant.frame import Memory, Moment, ReportedFrame, SkillAnswer, frame
from harness.model.frozen import frozen
from harness.model.numbers import exact

_NUMBER = r"(-?\d+(?:\.\d+)?)"
_OPERATORS = (
    (r"plus|and|added to", "plus"),
    (r"minus|less|take away", "minus"),
    (r"times|multiplied by", "times"),
    (r"divided by|over", "divided by"),
)
_SUM = re.compile(rf"\b{_NUMBER} ({'|'.join(pattern for pattern, _ in _OPERATORS)}) {_NUMBER}\b")


@frozen
class LatestResult:
    """The number in the latest answer, to which a follow-up may refer."""

    value: float


class ArithmeticSkill:
    """ "What is seven times eight", "15 percent of 80"; "add five to that" after it."""

    def answer(self, query: str, memory: Memory, moment: Moment) -> SkillAnswer | None:
        return self._follow_up(query, memory, moment) or self._sum(query)

    def _sum(self, query: str) -> SkillAnswer | None:
        if match := re.search(rf"\b{_NUMBER} percent of {_NUMBER}\b", query):
            share, total = float(match[1]), float(match[2])
            request = _calculation_frame(share, "percent of", total)
            return _result_answer(
                f"{say_number(share)} percent of {say_number(total)} is", share * total / 100, request
            )
        if match := _SUM.search(query):
            left, operator, right = float(match[1]), _operator_name(match[2]), float(match[3])
            return _calculate(left, operator, right, _calculation_frame(left, operator, right))
        return None

    def _follow_up(self, query: str, memory: Memory, moment: Moment) -> SkillAnswer | None:
        last = memory.recall(LatestResult, moment.now_s)
        if last is None:
            return None
        if match := re.fullmatch(rf"(?:and )?(add|subtract|take) {_NUMBER} (?:to|from) (?:that|it)", query):
            return _continued_calculation(last, "plus" if match[1] == "add" else "minus", float(match[2]))
        if match := re.fullmatch(rf"(?:and )?(multiply|divide) (?:that|it) by {_NUMBER}", query):
            return _continued_calculation(last, "times" if match[1] == "multiply" else "divided by", float(match[2]))
        if match := re.fullmatch(rf"(?:and )?(?:that )?(plus|minus|times|divided by) {_NUMBER}", query):
            return _continued_calculation(last, match[1], float(match[2]))
        return None


def _operator_name(word: str) -> str:
    """The name of an operator that was spoken in any of its forms."""
    return next(name for pattern, name in _OPERATORS if word in pattern.split("|"))


def _calculation_frame(left: float | None, operator: str, right: float) -> ReportedFrame:
    """The intent with its slots. left: None if it is the previous result."""
    first = [] if left is None else [("number", say_number(left))]
    return frame("calculate", *first, ("operator", operator), ("number", say_number(right)))


def _continued_calculation(last: LatestResult, operator: str, right: float) -> SkillAnswer:
    """Continues with the previous result, which is not part of the new request."""
    return _calculate(last.value, operator, right, _calculation_frame(None, operator, right))


def _calculate(left: float, operator: str, right: float, request: ReportedFrame) -> SkillAnswer:
    match operator:
        case "plus":
            value = left + right
        case "minus":
            value = left - right
        case "times":
            value = left * right
        case "divided by":
            if right == 0:
                return SkillAnswer("Nothing can be divided by zero.", request)
            value = left / right if math.isfinite(right) else right  # too large, not 0
    return _result_answer(f"{say_number(left)} {operator} {say_number(right)} is", value, request)


def _result_answer(sentence: str, value: float, request: ReportedFrame) -> SkillAnswer:
    if not math.isfinite(value) or abs(value) >= 1e15:  # a float has no more than 15 exact digits
        return SkillAnswer("That number is too large for me.", request)
    return SkillAnswer(f"{sentence} {say_number(value)}.", request, LatestResult(value))


# fmt: off
_SMALL = {word: value for value, word in enumerate(
    ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
     "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"])}
_TENS = {word: 10 * value for value, word in enumerate(
    ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"], start=2)}
# fmt: on
_SCALES = {"hundred": 100, "thousand": 1000, "million": 1_000_000}
_SPELLINGS = (
    (r"[’`]", "'"),
    (r"\ba\.\s?m\b\.?", "am"),
    (r"\bp\.\s?m\b\.?", "pm"),
    (r"\bst\.\s", "saint "),
    (r"(?<=\d),(?=\d{3}\b)", ""),
    (r"(?<=\d)\s*(?:per cent|percent|%)", " percent"),
    (r"\bper cent\b", "percent"),
    (r"(?<=\d)\s*[x×*]\s*(?=\d)", " times "),
    (r"(?<=\d)\s*\+\s*(?=\d)", " plus "),
    (r"(?<=\d)\s*[÷/]\s*(?=\d)", " divided by "),
    (r"(?<=\d)\s*[-−–]\s*(?=\d)", " minus "),
    (r"(?<=[a-z])-(?=[a-z])", " "),
    (r"(?<=\d)(am|pm)\b", r" \1"),
)


def normalised_query(text: str, wake_phrase: str = "") -> str:
    """The text for matching, e.g. "Alexa, what's 7 × 8?" → "what's 7 times 8"."""
    text = text.lower().strip()
    for pattern, spelling in _SPELLINGS:
        text = re.sub(pattern, spelling, text)
    text = re.sub(r"[^a-z0-9'.: ]", " ", text)
    text = re.sub(r"(?<!\d)[.:]|[.:](?!\d)", " ", text)
    words = text.split()
    phrase = wake_phrase.lower().replace("_", " ").split()
    while phrase and words[: len(phrase)] == phrase:
        words = words[len(phrase) :]
    return " ".join(_digits(words))


def say_number(value: float) -> str:
    """A number as spoken: at most four decimals, no trailing zeros."""
    if abs(value) < 1e15 and value == int(value):
        return str(int(value)) if value >= 0 else f"minus {-int(value)}"
    text = exact(round(abs(value), 4), 15)
    return text if value >= 0 else f"minus {text}"


def say_list(names: list[str]) -> str:
    """ "a, b and c"."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _digits(words: list[str]) -> list[str]:
    """The words, with digits in place of number words. "a" stays, and so does "and" outside of a number."""
    tokens: list[str] = []
    position = 0
    while position < len(words):
        value, length = _number_at(words, position)
        if length:
            tokens.append(str(value))
            position += length
        else:
            tokens.append(words[position])
            position += 1
    return tokens


def _number_at(words: list[str], start: int) -> tuple[int, int]:
    """The value of the number words from that position, and how many words they are (0: none).

    total: value of the thousands and millions so far. current: value of the words since the last of these.
    """
    total = current = length = 0
    previous = ""  # the previous number word, so that "one two" stays two numbers
    while start + length < len(words):
        word = words[start + length]
        follows = previous in ("", "scale", "and")
        if word in _SMALL and (follows or (previous == "tens" and 0 < _SMALL[word] < 10)):
            current += _SMALL[word]
            previous = "unit"
        elif word in _TENS and follows:
            current += _TENS[word]
            previous = "tens"
        elif word in _SCALES and previous in ("unit", "tens"):
            if word == "hundred":
                current *= 100
            else:
                total, current = total + current * _SCALES[word], 0
            previous = "scale"
        elif word == "and" and previous == "scale" and _number_continues(words, start + length + 1):
            previous = "and"
        else:
            break
        length += 1
    return total + current, length


def _number_continues(words: list[str], position: int) -> bool:
    return position < len(words) and (words[position] in _SMALL or words[position] in _TENS)

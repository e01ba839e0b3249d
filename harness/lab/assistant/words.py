"""What was recognised, made easy to match: lower case, no punctuation, numbers as digits, no wake phrase in front."""

from __future__ import annotations

import re

# fmt: off
_UNITS = {word: value for value, word in enumerate(
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


def plain(text: str, wake_phrase: str = "") -> str:
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


def number(text: str) -> float:
    """The value of a number as `plain` writes it."""
    return float(text)


def say_number(value: float) -> str:
    """A number as it is to be spoken: at most four decimals, no needless zeros."""
    if value == int(value) and abs(value) < 1e15:
        return str(int(value)) if value >= 0 else f"minus {-int(value)}"
    text = f"{abs(value):.4f}".rstrip("0").rstrip(".")
    return text if value >= 0 else f"minus {text}"


def say_list(things: list[str]) -> str:
    """ "a, b and c"."""
    return things[0] if len(things) == 1 else f"{', '.join(things[:-1])} and {things[-1]}"


def _digits(words: list[str]) -> list[str]:
    """Runs of number words as digits; "a" is left alone, and so is "and" outside a number."""
    out: list[str] = []
    position = 0
    while position < len(words):
        value, length = _number_at(words, position)
        if length:
            out.append(str(value))
            position += length
        else:
            out.append(words[position])
            position += 1
    return out


def _number_at(words: list[str], start: int) -> tuple[int, int]:
    """The value of the number words from there on, and how many words they are (0: none)."""
    total = current = length = 0
    previous = ""  # what the last number word was, so that "one two" stays two numbers
    while start + length < len(words):
        word = words[start + length]
        follows = previous in ("", "scale", "and")
        if word in _UNITS and (follows or (previous == "tens" and 0 < _UNITS[word] < 10)):
            current += _UNITS[word]
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
        elif word == "and" and previous == "scale" and _goes_on(words, start + length + 1):
            previous = "and"
        else:
            break
        length += 1
    return total + current, length


def _goes_on(words: list[str], position: int) -> bool:
    return position < len(words) and (words[position] in _UNITS or words[position] in _TENS)

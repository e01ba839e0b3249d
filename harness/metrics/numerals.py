"""English numerals in a text, written as a person says them."""

from __future__ import annotations

import re

# fmt: off
_ONES = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
         "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"]
# fmt: on
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_SCALES = ((10**9, "billion"), (10**6, "million"), (1000, "thousand"), (100, "hundred"))
_ORDINALS = {
    "one": "first",
    "two": "second",
    "three": "third",
    "five": "fifth",
    "eight": "eighth",
    "nine": "ninth",
    "twelve": "twelfth",
}


def cardinal(number: int) -> str:
    """English words of a number of 0 and more, without "and": 121 is "one hundred twenty one"."""
    if number < 20:
        return _ONES[number]
    if number < 100:
        rest = number % 10
        return _TENS[number // 10 - 2] + (f" {_ONES[rest]}" if rest else "")
    for scale, name in _SCALES:
        if number >= scale:
            head = f"{cardinal(number // scale)} {name}"
            return head + (f" {cardinal(number % scale)}" if number % scale else "")
    raise ValueError(f"not a number of 0 or more: {number}")


def ordinal(number: int) -> str:
    """English words of a place in a row: 21 is "twenty first"."""
    *head, last = cardinal(number).split()
    last = _ORDINALS[last] if last in _ORDINALS else f"{last[:-1]}ieth" if last.endswith("y") else f"{last}th"
    return " ".join([*head, last])


def year(number: int) -> str:
    """A year as it is said: 1990 is "nineteen ninety", 2005 "two thousand five"."""
    if 1100 <= number <= 1999 or 2010 <= number <= 2099:
        rest = number % 100
        low = "hundred" if rest == 0 else cardinal(rest) if rest >= 10 else f"oh {cardinal(rest)}"
        return f"{cardinal(number // 100)} {low}"
    return cardinal(number)


def clock_time(hour: int, minute: int) -> str:
    """A time of day: 7:30 is "seven thirty", 7:05 "seven oh five", 1:00 "one" (o'clock is dropped elsewhere)."""
    if minute == 0:
        return cardinal(hour)
    return f"{cardinal(hour)} {'oh ' if minute < 10 else ''}{cardinal(minute)}"


_SIGNS = (
    (r"(?<=\d)\s*[x×*]\s*(?=\d)", " times "),
    (r"(?<=\d)\s*\+\s*(?=\d)", " plus "),
    (r"(?<=\d)\s*÷\s*(?=\d)", " divided by "),
    (r"(?<=\d)\s+/\s+(?=\d)", " divided by "),
    (r"(?<=\d)\s+[-−]\s+(?=\d)", " minus "),
    (r"\s*=\s*", " equals "),
    (r"(?<=\d)\s*%", " percent "),
    (r"(?<=\d)\s*°\s*c\b", " degrees celsius "),
    (r"(?<=\d)\s*°\s*f\b", " degrees fahrenheit "),
    (r"(?<=\d)\s*°", " degrees "),
    (r"&", " and "),
)


def spell_numerals(text: str) -> str:
    """The text, already in lower case, with every numeral and the signs between numerals as words."""
    text = re.sub(r"(?<=\d),(?=\d{3}\b)", "", text)
    text = re.sub(r"([$£€])\s?(\d+(?:\.\d+)?)", _money, text)
    for pattern, words in _SIGNS:
        text = re.sub(pattern, words, text)
    text = re.sub(r"\b(\d{1,2}):([0-5]\d)\b", _time, text)
    text = re.sub(r"\b(\d{1,12})(?:st|nd|rd|th)\b", lambda found: f" {ordinal(int(found[1]))} ", text)
    text = re.sub(r"\b(\d+)\.(\d+)\b", _decimal, text)
    text = re.sub(r"(?<![\d])[-−](?=\d)", " minus ", re.sub(r"(?<=\w)-(?=\w)", " ", text))
    return re.sub(r"\d+", _whole, text)


def _money(found: re.Match[str]) -> str:
    names = {"$": "dollar", "£": "pound", "€": "euro"}
    name = names[found[1]] + ("" if found[2] == "1" else "s")
    whole, _, cents = found[2].partition(".")
    return f" {whole} {name} {cents} " if len(cents) == 2 else f" {found[2]} {name} "


def _time(found: re.Match[str]) -> str:
    return f" {clock_time(int(found[1]), int(found[2]))} "


def _decimal(found: re.Match[str]) -> str:
    return f" {_whole_words(found[1])} point {' '.join(_ONES[int(digit)] for digit in found[2])} "


def _whole(found: re.Match[str]) -> str:
    return f" {_whole_words(found[0])} "


def _whole_words(digits: str) -> str:
    # A leading zero, or more digits than any number that is said as one, is a telephone number: digit by digit.
    if len(digits) > 12 or (digits[0] == "0" and len(digits) > 1):
        return " ".join(_ONES[int(digit)] for digit in digits)
    return year(int(digits)) if len(digits) == 4 else cardinal(int(digits))

"""English numerals as a person may say them: 845 is eight hundred forty five, eight forty five or eight four five.

Readings are words with single spaces; the first is how a numeral is shown. "And" after hundred and thousand is left out
everywhere. A spoken digit 0 is written "zero", and "oh" in a text counts as the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

# fmt: off
_ONES = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
         "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"]
# fmt: on
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_SCALES = ((10**12, "trillion"), (10**9, "billion"), (10**6, "million"), (1000, "thousand"), (100, "hundred"))
_ORDINALS = {
    "one": "first",
    "two": "second",
    "three": "third",
    "five": "fifth",
    "eight": "eighth",
    "nine": "ninth",
    "twelve": "twelfth",
}
ROMAN_DIGITS = {"I": 1, "V": 5, "X": 10}
MAX_DIGITS = 15
"""Numbers with more digits are not spoken as one number."""


def cardinal(number: int) -> str:
    """English words of a number (0 or greater), without "and": 121 is "one hundred twenty one"."""
    if number < 20:
        return _ONES[number]
    if number < 100:
        units = number % 10
        return _TENS[number // 10 - 2] + (f" {_ONES[units]}" if units else "")
    for scale, name in _SCALES:
        if number >= scale:
            head = f"{cardinal(number // scale)} {name}"
            return head + (f" {cardinal(number % scale)}" if number % scale else "")
    raise ValueError(f"a number must be at least 0, not {number}")


def ordinal(number: int) -> str:
    """English words of an ordinal: 21 is "twenty first"."""
    *head, last = cardinal(number).split()
    regular = f"{last[:-1]}ieth" if last.endswith("y") else f"{last}th"
    return " ".join([*head, _ORDINALS.get(last, regular)])


def clock_time(hour: int, minute: int) -> str:
    """A time of day: 7:30 is "seven thirty", 7:05 "seven oh five", 1:00 "one" (o'clock is dropped elsewhere)."""
    if minute == 0:
        return cardinal(hour)
    return f"{cardinal(hour)} {'oh ' if minute < 10 else ''}{cardinal(minute)}"


def digits(text: str) -> str:
    """The digits of a number, each as a word: `12` gives `one two`."""
    return " ".join(_ONES[int(digit)] for digit in text)


def integer(text: str, *, grouped: bool = False) -> list[str]:
    """Readings of a whole number. grouped: whether it was written with commas, so that it is not a year."""
    if len(text) > MAX_DIGITS or (int(text[0]) == 0 and len(text) > 1):
        # A telephone number, or a code.
        return _without_repeats([digits(text), *_readings_by_pairs(text)])
    number = int(text)
    plain = cardinal(number)
    readings = [plain, *_readings_with_a(plain)]
    if 1100 <= number <= 9999 and number // 100 % 10:
        below_hundred = number % 100
        tail = f" {cardinal(below_hundred)}" if below_hundred else ""
        readings.append(f"{cardinal(number // 100)} hundred{tail}")
    readings += _readings_by_pairs(text)
    if len(text) == 4 and not grouped and (1100 <= number <= 1999 or 2010 <= number <= 2099):
        readings = [
            *(_readings_by_pairs(text) or [f"{cardinal(number // 100)} hundred"]),
            *readings,
        ]  # most likely a year
    return _without_repeats([*readings, digits(text)])


@lru_cache(maxsize=4096)
def number(text: str) -> tuple[str, ...]:
    """Readings of a number as it is written, with commas between its thousands, and a decimal point."""
    whole, point, part = text.replace(",", "").partition(".")
    return tuple(decimals(whole, part) if point else integer(whole, grouped="," in text))


def money(text: str, currency: Sequence[str], scale: str = "") -> list[str]:
    """Readings of an amount.

    - currency: singular and plural of the unit and of its hundredth.
    - scale: such as million; "" for none.
    """
    singular, plural, cent, cents = currency
    text = text.replace(",", "")
    if scale:
        return [f"{amount} {scale} {name}" for amount in number(text) for name in (plural, singular)]
    whole, _, part = text.partition(".")
    if len(part) != 2:
        if text == "1":
            return [f"one {singular}", f"a {singular}"]
        return [f"{amount} {name}" for amount in number(text) for name in (plural, singular)]
    coins = int(part)
    smaller = f"{cardinal(coins)} {cent if coins == 1 else cents}"
    readings = []
    if whole not in ("", "0"):
        for amount in integer(whole, grouped=True):
            units = f"{amount} {singular if whole == '1' else plural}"
            if not coins:
                readings += [units, f"{amount} {singular}"]
                continue
            tail = cardinal(coins)
            readings += [f"{units} {tail}", f"{units} and {smaller}", f"{units} {smaller}", f"{units} and {tail}"]
            readings += [f"{amount} {tail}"] if coins > 9 else [f"{amount} oh {tail}", f"{amount} zero {tail}"]
    else:
        readings = [smaller, f"zero {plural} and {smaller}", f"zero {plural} {smaller}"]
    return [*readings, *(f"{amount} {plural}" for amount in decimals(whole or "0", part))]


def roman(text: str) -> int:
    """The value of a Roman numeral below 40. A smaller digit before a greater one is subtracted."""
    values = [ROMAN_DIGITS[letter] for letter in text]
    return sum(-digit if digit < after else digit for digit, after in zip(values, [*values[1:], 0], strict=True))


def ordinals(number: int) -> list[str]:
    """Readings of an ordinal."""
    word = ordinal(number)
    return [word, *_readings_with_a(word)]


def times(hour: int, minute: int) -> list[str]:
    """Readings of a time on the clock."""
    readings = [clock_time(hour, minute)]
    name, following = cardinal(hour), cardinal(hour % 12 + 1)
    if minute == 0:
        if hour >= 10:
            readings += [f"{name} hundred", f"{name} hundred hours"]
    elif minute < 10:
        readings.append(f"{name} zero {cardinal(minute)}")
    if 0 < hour <= 12 and minute == 30:
        readings += [f"half past {name}", f"half {name}"]
    elif 0 < hour <= 12 and minute:
        away = min(minute, 60 - minute)
        hand = ["quarter", "a quarter", "fifteen"] if away == 15 else [cardinal(away)]
        words, hour_said = (("past", "after"), name) if minute < 30 else (("to", "till", "of", "before"), following)
        readings += [f"{amount} {word} {hour_said}" for amount in hand for word in words]
    if minute == 0 and hour % 12 == 0:
        readings.append("noon" if hour == 12 else "midnight")
    if hour == 0 or hour > 12:
        half = "p" if 12 < hour < 24 else "a"
        short = clock_time(hour % 12 or 12, minute)
        readings += [f"{short} {half} m", f"{short} {half}m"]
    return _without_repeats(readings)


def dates(month: str, day: int) -> list[str]:
    """Readings of a day of a month, in either order."""
    name, plain = ordinal(day), cardinal(day)
    month_first = [f"{month} {name}", f"{month} the {name}", f"{month} {plain}"]
    return [
        *month_first,
        f"the {name} of {month}",
        f"{name} of {month}",
        f"the {name} {month}",
        f"{name} {month}",
        f"{plain} {month}",
    ]


def decimals(before: str, after: str) -> list[str]:
    """Readings of a number with a decimal point. before, after: the digits on both sides of it."""
    tails = [digits(after)]
    if len(after) == 2 and after[0] != "0":
        tails.append(cardinal(int(after)))
    heads = integer(before, grouped=True) if before else ["zero", ""]
    if before == "0":
        heads = ["zero", "", "nought"]
    readings = [f"{head} point {tail}".strip() for tail in tails for head in heads]
    if after == "5" and before not in ("", "0") and len(before) <= MAX_DIGITS:
        readings += [f"{cardinal(int(before))} and a half", f"{cardinal(int(before))} and one half"]
    return _without_repeats(readings)


def fractions(top: int, bottom: int) -> list[str]:
    """Readings of a fraction, such as that of a cup."""
    name = cardinal(top)
    plain = [f"{name} over {cardinal(bottom)}", f"{name} out of {cardinal(bottom)}", f"{name} slash {cardinal(bottom)}"]
    if bottom < 2:
        return plain
    names = {2: ["half"], 4: ["quarter", "fourth"]}.get(bottom, [ordinal(bottom)])
    if top != 1:
        names = ["halves" if noun == "half" else f"{noun}s" for noun in names]
        readings = [f"{name} {noun}" for noun in names]
    else:
        readings = [f"one {noun}" for noun in names] + [f"a {noun}" for noun in names]
        readings += {2: ["half"], 4: ["quarter"]}.get(bottom, [])
    return readings + [f"{reading} {link}" for reading in readings for link in ("of a", "a", "of")] + plain


def decades(text: str) -> list[str]:
    """Readings of a decade (1990s, 90s), also as a number with a unit (30s: thirty seconds)."""
    number = int(text)
    head, tens = divmod(number, 100)
    if tens == 0 and head:
        return [f"{cardinal(number)}s" if head % 10 == 0 else f"{cardinal(head)} hundreds"]
    low_plural = "tens" if tens else "zeros"
    plural = f"{_TENS[tens // 10 - 2][:-1]}ies" if tens >= 20 else low_plural
    return [f"{cardinal(head)} {plural}" if head else plural]


def _readings_by_pairs(text: str) -> list[str]:
    """Readings in pairs of digits: 212 as two twelve, 1905 as nineteen oh five, 123456 as twelve thirty four fifty
    six."""
    if not 3 <= len(text) <= 6 or len(text) == 5:
        return []
    head = text[: len(text) % 2]
    pairs = [text[start : start + 2] for start in range(len(head), len(text), 2)]
    if pairs[-1] == "00" or (not head and pairs[0][0] == "0"):
        return []
    if any(pair == "00" for pair in pairs):
        return []
    words = [f"{'oh ' if pair[0] == '0' else ''}{cardinal(int(pair))}" for pair in pairs]
    reading = " ".join([digits(head), *words] if head else words)
    return [reading, reading.replace("oh ", "zero ")] if "oh " in reading else [reading]


def _readings_with_a(reading: str) -> list[str]:
    """Further readings without "one": one hundred is also "a hundred" and "hundred"; one hundred five is also "a
    hundred five"."""
    words = reading.split(" ")
    if words[0] != "one" or len(words) < 2 or not words[1].startswith(tuple(name for _, name in _SCALES)):
        return []
    reading_with_a = " ".join(["a", *words[1:]])
    return [reading_with_a, words[1]] if len(words) == 2 else [reading_with_a]


def _without_repeats(readings: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(readings))

"""English texts as a person may say them: every usual reading of numerals, times, money, units and abbreviations.

Spellings, abbreviations, units and contractions: see english_words.py. A reading is in lower case; the first is shown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from harness.model.frozen import frozen
from harness.transcripts import numerals
from harness.transcripts.english_words import (
    ABBREVIATIONS,
    AFTER_HAS,
    AFTER_IS,
    AFTER_NUMBERS,
    CALENDAR,
    CODES,
    CONTRACTIONS,
    CURRENCIES,
    ENDINGS,
    FILLERS,
    IN_ADDRESSES,
    MODIFIERS,
    MONTHS,
    NUMBER_WORDS,
    PHRASES,
    SCALES,
    SIGNS,
    UNITS,
    WEEKDAYS,
    spell,
)
from harness.transcripts.readings import Piece, Readings, choice

_PHRASE_STARTS = frozenset(words[0] for words in PHRASES)
# Marks and words that may change the reading of the word before them, even if that word needs no other context.
_JOINERS = frozenset(("-", *(words[1] for words in PHRASES)))
# Words whose reading depends on their neighbours, as does that of single letters and of words with 's.
_BESIDE_OTHERS = frozenset((
    *("oh", "double", "triple", "noon", "midnight", "no", "sq"), *MONTHS, *WEEKDAYS, *UNITS,
))  # fmt: skip
_CHANGED_AFTER_NUMBERS = frozenset(("and", "in"))  # words whose reading is different after a number
_WORD_LETTERS = frozenset("ai")  # letters that are words: "plan A. I think" contains no initials
_SILENT_SIGNS = frozenset(",;?!()")

_TOP_LEVEL_DOMAINS = "com|org|net|edu|gov|io|co|uk|de|fr|es|eu|us|ca|au|tv|app|dev|info|biz|ai|fm|me|ly"
# Repetitions are bounded, so that the time grows only with the length of the text.
_NUMBER = r"\d{1,3}(?:,\d{3}){1,4}(?!,?\d)|\d+"
_TOKEN = re.compile(
    rf"""
    (?P<web>[\w.+-]{{1,64}}@[\w-]+(?:\.[\w-]+)+ | (?:https?://|www\.)[\w-]+(?:\.[\w-]+)+(?:/[\w./-]*\w)?
        | [a-z][\w-]{{0,63}}(?:\.[\w-]{{1,63}}){{0,4}}\.(?:{_TOP_LEVEL_DOMAINS})\b(?:/[\w./-]*\w)?)
    | (?P<date>(?<![\d.,/])\d{{1,2}}(?:/\d{{1,2}}/|\.\d{{1,2}}\.)(?:\d{{4}}|\d\d)(?![\d/]|\.\d))
    | (?P<time>(?<![\d:.])\d{{1,2}}:[0-5]\d(?![\d:]))
    | (?P<decade>(?<![\w.,])'?(?:\d\d)?\d0'?s\b)
    | (?P<ordinal>(?<!\d)(?:\d{{1,3}}(?:,\d{{3}}){{1,4}}|\d{{1,12}})(?:st|nd|rd|th)\b)
    | (?P<height>(?<!\w)\d'\s?\d{{1,2}}(?:"|''|\b))
    | (?P<fraction>(?<![\d/.,])\d{{1,4}}[/⁄]\d{{1,4}}(?![\d/]))
    | (?P<decimal>(?:{_NUMBER})\.\d+(?!\.?\d) | (?<![\w.])\.\d+(?!\.?\d))
    | (?P<number>{_NUMBER})
    | (?P<word>(?:'(?=(?:cause|cuz|til|em|n|tis|twas)\b))?
        (?:[^\W\d_]|[^\x00-\x7f\w\s€£¥₹₩₽₺₪₿¢°‰×÷−–—])+(?:'[^\W\d_]+)*(?:(?<='n)')?)
    | (?P<sign>\S)
    """,
    re.VERBOSE | re.IGNORECASE,
)
_ROMAN = re.compile(r"(?=[IVX]{2})X{0,3}(?:IX|IV|V?I{0,3})")
_BEFORE_ROMAN = frozenset(("war", "part", "chapter", "act", "volume", "episode", "phase", "type", "level", "season"))
_BEFORE_TIMES = frozenset(("at", "by", "until", "till", "before", "after", "from", "around", "the"))
_AM_OR_PM = re.compile(r"[ap] ?(?:\. )?m\b")
_DIMENSIONS = frozenset(("long", "wide", "tall", "high", "deep", "thick"))
_POWERS = {"2": ("square", "squared"), "3": ("cubic", "cubed")}
_SHORT_SCALES = {"k": "thousand", "m": "million", "mn": "million", "bn": "billion", "b": "billion"}


@frozen
class Token:
    """A token of a text.

    - kind: name of the group of _TOKEN that matched.
    - text: raw in lower case.
    - spaced: whether a space precedes it.
    - alone: its readings if they are the same everywhere, except before one of _JOINERS; else None.
    """

    kind: str
    text: str
    raw: str
    spaced: bool
    alone: Readings | None = None


def english_readings(text: str) -> Readings:
    """The pieces of a text that is clean (see spoken_words) and still has its capitals."""
    return token_readings(english_tokens(text))


def token_readings(tokens: Iterable[Token]) -> Readings:
    """The pieces of a text from its tokens."""
    return _EnglishReader([*tokens, _END]).pieces()


def english_tokens(text: str) -> Iterator[Token]:
    """The tokens of a text that is clean."""
    end = 0
    for match in _TOKEN.finditer(text):
        kind, raw = match.lastgroup or "", match[0]
        spaced, end = match.start() > end or not end, match.end()
        # Before a space or the end, it is silent; elsewhere it may be a dot.
        is_full_stop = raw == "." and text[end : end + 1].strip() == ""
        yield Token(kind, raw.lower(), raw, spaced, () if is_full_stop else _readings_alone(kind, raw))


@lru_cache(maxsize=1 << 15)
def _readings_alone(kind: str, raw: str) -> Readings | None:
    """The pieces of a token whatever its neighbours are; None if they depend on them."""
    text = raw.lower()
    if kind == "sign":
        return () if text in _SILENT_SIGNS else None
    if kind != "word" or len(text) == 1 or text in _BESIDE_OTHERS or text.endswith("'s"):
        return None
    pieces = token_readings([Token(kind, text, raw, spaced=True)])
    return pieces if pieces or text in FILLERS else None  # o'clock has no reading, but ends a number


_END = Token("end", "", "", spaced=True)


@dataclass(slots=True)
class _EnglishReader:
    """Reads tokens from left to right, up to _END. Methods `_read_…` add the readings of a token and of those that
    belong to it. Some return whether the token is of their kind; if not, they add nothing.

    - position: index of the next token.
    - numeric: whether a number came last.
    """

    tokens: Sequence[Token]
    position: int = 0
    numeric: bool = False
    out: list[Piece] = field(default_factory=list)

    def pieces(self) -> Readings:
        tokens, out = self.tokens, self.out
        position = 0
        while (token := tokens[position]) is not _END:
            position += 1
            alone = token.alone
            if (
                alone is None
                or tokens[position].text in _JOINERS
                or (self.numeric and token.text in _CHANGED_AFTER_NUMBERS)
            ):
                self.position = position
                _READERS[token.kind](self, token)
                position = self.position
            elif alone:
                out += alone
                self.numeric = token.text in NUMBER_WORDS
        return tuple(out)

    def _peek(self, ahead: int = 0) -> Token:
        return self.tokens[self.position + ahead] if self.position + ahead < len(self.tokens) else _END

    def _previous(self) -> Token:
        """The token before the one that is being read, which is itself the one before `position`."""
        return self.tokens[self.position - 2] if self.position >= 2 else _END

    def _add(self, readings: Iterable[str], *, numeric: bool = False) -> None:
        self.out += _spelled_choice(tuple(readings))
        self.numeric = numeric

    # Numerals

    def _read_date(self, token: Token) -> None:
        """Month and day, in the order or orders that their numbers allow; 12.5.2024 is always in May."""
        first, second, year = re.split("[/.]", token.text)
        # Not digit by digit: 11/2 and 1/12 would have a reading in common.
        heads = [numerals.integer(digits)[0] for digits in (first, first.lstrip("0") or "0")]
        tails = [numerals.integer(digits)[0] for digits in (second, second.lstrip("0") or "0")]
        readings = [f"{head} {sign}{tail}" for sign in ("", "slash ", "point ") for head in heads for tail in tails]
        day, month = (first, second) if "." in token.text or int(first) > 12 else (second, first)
        if (int(day) > 12 or "." in token.text) and 1 <= int(day) <= 31 and 1 <= int(month) <= 12:
            readings = [*numerals.dates(CALENDAR[int(month) - 1], int(day)), *readings]
        self._add(readings)
        full_years = numerals.integer(f"20{year}") if len(year) == 2 else []
        self._add([*full_years, *numerals.integer(year)], numeric=True)

    def _read_time(self, token: Token) -> None:
        hour, minute = map(int, token.text.split(":"))
        if hour > 24:
            minutes = numerals.integer(f"{minute:02}")
            self._add([f"{head} {tail}" for head in numerals.integer(str(hour)) for tail in minutes])
        else:
            self._add(numerals.times(hour, minute), numeric=True)

    def _read_decade(self, token: Token) -> None:
        digits = re.sub(r"\D", "", token.text)
        readings = numerals.decades(digits)
        if "'" not in token.text and len(digits) == 2:
            readings = [*readings, *(f"{reading} seconds" for reading in numerals.integer(digits)[:1])]
        self._add(readings)

    def _read_ordinal(self, token: Token) -> None:
        number = int(token.text[:-2].replace(",", ""))
        if not self._read_day_before_month(number, numerals.ordinals(number)):
            self._add(numerals.ordinals(number))

    def _read_height(self, token: Token) -> None:
        feet, inches = (numerals.cardinal(int(digits)) for digits in re.findall(r"\d+", token.text))
        self._add(f"{feet} {foot} {inches}{unit}" for foot in ("foot", "feet") for unit in ("", " inches", " inch"))

    def _read_fraction(self, token: Token) -> None:
        top, bottom = re.split("[/⁄]", token.text)
        readings = numerals.fractions(int(top), int(bottom))
        follows_whole_number = self.numeric and self._previous().kind == "number" and int(top) < int(bottom)
        if follows_whole_number:  # as in "two and a half"
            readings = [reading for reading in readings if not reading.endswith(("of", " a"))]
            self._add([*(f"and {reading}" for reading in readings), *readings], numeric=True)
            return
        if "/" in token.text and (int(top) >= int(bottom) or int(bottom) > 10):
            in_pairs = [f"{head} {tail}" for head in numerals.integer(top) for tail in numerals.integer(bottom)]
            readings = [*in_pairs, *readings]
        self._add(readings, numeric=True)

    def _read_number(self, token: Token) -> None:
        number_text = self._joined_thousands(token)
        next_token = self._peek()
        if next_token.kind == "sign" and next_token.text in CURRENCIES and not self._amount_follows(1):
            self.position += 1
            self._add(numerals.money(number_text, CURRENCIES[next_token.text]), numeric=True)
            return
        if (code := next_token.text) in CODES:
            self.position += 1
            amounts = numerals.money(number_text, CURRENCIES[CODES[code]])
            self._add([*amounts, *(f"{reading} {code}" for reading in numerals.number(number_text))], numeric=True)
            return
        readings: Sequence[str] = numerals.number(number_text)
        if len(number_text) == 2 and number_text[0] == "0" and not self.numeric and not self._peek().text[:1].isdigit():
            readings = [*readings, *numerals.integer(number_text[1])]  # as in "track 07"
        if number_text.isdigit() and len(number_text) <= 2 and self._read_day_before_month(int(number_text), readings):
            return
        clock = re.fullmatch(r"(\d|1\d|2[0-4])\.([0-5]\d)", number_text)
        if clock and (
            self._previous().text in _BEFORE_TIMES or _AM_OR_PM.match(" ".join(self._peek(i).text for i in range(3)))
        ):
            readings = [*readings, *numerals.times(int(clock[1]), int(clock[2]))]
        self._add(readings, numeric=True)

    def _joined_thousands(self, token: Token) -> str:
        """The token, joined with groups of zeros that follow after a space: `10 000` is one number."""
        value = token.text
        while value.isdigit() and len(value) <= 12 and self._peek().raw == "000" and self._peek().spaced:
            value += "000"
            self.position += 1
        return value

    def _read_day_before_month(self, day: int, readings: Sequence[str]) -> bool:
        """Reads a day before a month, such as 5 January. readings: those of the day alone, which come first."""
        month = MONTHS.get(self._peek().text)
        if month is None or not 1 <= day <= 31:
            return False
        self.position += 1
        self._add([*(f"{reading} {month}" for reading in readings[:1]), *numerals.dates(month, day)], numeric=True)
        return True

    def _read_month(self, token: Token) -> bool:
        """Reads a month, also with the day after it, such as January 5."""
        month, dots = MONTHS.get(token.text), 1 if self._peek().text == "." else 0
        day = self._peek(dots)
        digits = day.text[:-2] if day.kind == "ordinal" else day.text
        if month is None or day.kind not in ("number", "ordinal") or len(digits) > 2 or not 1 <= int(digits) <= 31:
            return False
        self.position += 1 + dots
        readings = numerals.ordinals(int(digits)) if day.kind == "ordinal" else numerals.integer(digits)
        self._add([*(f"{month} {reading}" for reading in readings), *numerals.dates(month, int(digits))], numeric=True)
        return True

    def _amount_follows(self, ahead: int) -> bool:
        """Whether the number of a currency sign follows the sign, as in $5."""
        return self._peek(ahead).kind in ("number", "decimal") and not self._peek(ahead).spaced

    # Words

    def _read_word(self, token: Token) -> None:
        if token.text in _WORD_LETTERS and self._stands_alone():
            self.out.append(token.text)
            return
        if (
            self._read_phrase(token)
            or self._read_letters(token)
            or self._read_hyphenated(token)
            or self._read_month(token)
        ):
            return
        text = token.text
        if text in FILLERS and not (self.numeric and text in UNITS):
            return  # 5 mm is five millimeters, but mm alone is a filler
        if self._read_beside_number(token) or self._read_noon(token) or self._read_possessive(token):
            return
        if _ROMAN.fullmatch(token.raw) or (
            token.raw in numerals.ROMAN_DIGITS and self._previous().text in _BEFORE_ROMAN
        ):
            number = numerals.roman(token.raw)
            self._add([text, numerals.cardinal(number), numerals.ordinal(number), f"the {numerals.ordinal(number)}"])
            return
        readings = [*(self._abbreviation_readings(token) or _plain_word(text))]
        if token.raw.isupper() and 2 <= len(text) <= 5 and readings[0] == text:
            readings.append(" ".join(text))
        self._add(readings, numeric=text in NUMBER_WORDS)

    def _stands_alone(self) -> bool:
        """Whether the neighbours of a letter do not change its reading."""
        next_token = self.tokens[self.position]
        return (
            next_token.kind == "word"
            and next_token.alone is not None
            and next_token.text not in SCALES
            and not self.numeric
            and self._previous().text not in _BEFORE_ROMAN
        )

    def _read_phrase(self, token: Token) -> bool:
        """Reads words that count as one, such as `PHRASES` has them."""
        if token.text not in _PHRASE_STARTS:
            return False
        for length in (3, 2):
            tokens = self.tokens[self.position - 1 : self.position + 2 * length]
            words = [piece.text for piece in tokens[: 2 * length - 1] if piece.text != "-" or piece.spaced][:length]
            if len(words) == length and tuple(words) in PHRASES:
                token_count = 0
                while length:  # hyphens between the words are passed over, but do not count as words
                    if tokens[token_count].text != "-":
                        length -= 1
                    token_count += 1
                self.position += token_count - 1
                self._add([PHRASES[tuple(words)]])
                return True
        return False

    def _read_letters(self, token: Token) -> bool:
        """Reads single letters, such as t v, T.V. or A/C, as letters or as one word."""
        if len(token.text) != 1 or (self.numeric and self._peek().text == "/"):
            return False
        letters, ahead, words_only = [token.text], 0, token.text in _WORD_LETTERS
        is_word = words_only and self._peek().spaced  # unless it is the a of "a m"
        while not (is_word and len(letters) > 2):
            step = self._peek(ahead)
            if step.kind == "sign" and step.text in "./" and not step.spaced:
                next_token = self._peek(ahead + 1)
                initial = step.text == "." and not (words_only and next_token.text in _WORD_LETTERS)
                if next_token.kind != "word" or len(next_token.text) != 1 or (next_token.spaced and not initial):
                    break
                step, ahead = next_token, ahead + 1
            elif step.kind != "word" or len(step.text) != 1 or not step.text.isalpha():
                break
            letters.append(step.text)
            ahead, words_only = ahead + 1, words_only and step.text in _WORD_LETTERS
        if len(letters) < 2 or (is_word and letters != ["a", "m"]):
            return False
        self.position += ahead
        self._add(["".join(letters), " ".join(letters)])
        return True

    def _read_hyphenated(self, token: Token) -> bool:
        """Reads words with hyphens: check-in is check in or checkin."""
        words, ahead = [token.text], 0
        while self._peek(ahead).text == "-" and not self._peek(ahead).spaced:
            next_token = self._peek(ahead + 1)
            if next_token.kind != "word" or next_token.spaced:
                break
            words.append(next_token.text)
            ahead += 2
        numeral = self.numeric or any(word in NUMBER_WORDS for word in words)
        if len(words) < 2 or numeral or not all(map(str.isalpha, words)):
            return False
        self.position += ahead
        self._add([" ".join(words), "".join(words)])
        return True

    def _read_beside_number(self, token: Token) -> bool:
        """Reads words that mean something else beside a number: oh, double, x, and."""
        text, next_token = token.text, self._peek()
        number_follows = next_token.kind in ("number", "decimal", "fraction") or next_token.text in NUMBER_WORDS
        zero_follows = next_token.text in ("oh", "o")
        if text in ("oh", "o") and (self.numeric or number_follows or (zero_follows and self._is_number(1))):
            self._add([text, "zero", "oh"], numeric=True)
            return True
        if text == "and" and self._previous().text in SCALES[:2] and next_token.text in NUMBER_WORDS:
            return True
        if text in ("double", "triple") and next_token.kind == "word" and (number_follows or zero_follows):
            self.position += 1
            times = 2 if text == "double" else 3
            digit = "zero" if zero_follows else next_token.text
            self._add([f"{text} {next_token.text}", " ".join([digit] * times)], numeric=True)
            return True
        if text == "x" and self.numeric and number_follows:
            self._add(["times", "by", "x"])
            return True
        if text == "a" and next_token.text in SCALES:
            self._add(["a", "one"], numeric=True)
            return True
        return False

    def _read_noon(self, token: Token) -> bool:
        """Reads noon as twelve p m too, and midnight as twelve a m."""
        half_of_day = {"noon": "p", "midnight": "a"}.get(token.text)
        if half_of_day is None:
            return False
        names = [token.text, f"{half_of_day}m", f"{half_of_day} m"]
        twelve = self._previous().text in ("12", "twelve", "12:00")
        self._add(names if twelve else [token.text, *(f"twelve {name}" for name in names)])
        return True

    def _read_possessive(self, token: Token) -> bool:
        """Reads 's: Mario's is Mario is if no noun can follow, and Mario has only before been, got and the like."""
        owner = token.text.removesuffix("'s")
        if owner in (token.text, ""):
            return False
        readings, ahead = list(CONTRACTIONS.get(token.text, [f"{owner}s"])), 0
        while ahead < 2 and self._peek(ahead).text in MODIFIERS:
            ahead += 1
        next_token, second = self._peek(ahead), self._peek(ahead + 1)
        if token.text not in CONTRACTIONS and (
            (ahead and next_token.text in ".?!")
            or (next_token.text in AFTER_IS and (second.text != "-" or second.spaced))
        ):
            readings.append(f"{owner} is")
        after = (self._peek(step).text for step in range(3))
        if f"{owner} is" in readings and any(word in AFTER_HAS or word.endswith("ed") for word in after):
            readings.append(f"{owner} has")
        self._add(readings)
        return True

    def _is_number(self, ahead: int) -> bool:
        token = self._peek(ahead)
        return token.kind == "number" or token.text in NUMBER_WORDS

    def _abbreviation_readings(self, token: Token) -> list[str]:
        """Readings of a unit or another abbreviation; empty if it is none."""
        text, next_token = token.text, self._peek()
        dotted = next_token.text == "." and not next_token.spaced
        dots = 1 if dotted else 0
        unit = self._peek(dots).text
        if text == "sq" and unit in UNITS:
            self.position += 1 + dots
            return [f"square {name}" for name in UNITS[unit]]
        raised = next_token.text == "^" and self._peek(1).text in _POWERS
        if text in UNITS and (self.numeric or raised or text not in AFTER_NUMBERS):
            return self._unit_readings([*UNITS[text], text], raised)
        if self.numeric and text == "in" and (dotted or next_token is _END or next_token.text in _DIMENSIONS):
            return ["inches", "inch", "in"]
        if text == "no" and dotted and self._is_number(1):
            begins = self.position == 1 or self._previous().text in (".", "!", "?")
            return ["number", "no"] if begins else ["number"]
        if text in ABBREVIATIONS:
            return list(ABBREVIATIONS[text])
        near_number = (
            next_token.kind in ("number", "ordinal") or dotted or self._previous().kind in ("number", "ordinal")
        )
        if text in MONTHS and MONTHS[text] != text and near_number:
            return [MONTHS[text], text]
        if text in WEEKDAYS and (text not in ("sat", "sun", "wed") or dotted or next_token.text == ","):
            return [WEEKDAYS[text], text]
        return []

    def _unit_readings(self, units: list[str], raised: bool) -> list[str]:
        """Readings of units that are raised or divided: square meters, kilometers per hour."""
        if raised:
            before, after = _POWERS[self._peek(1).text]
            self.position += 2
            units = [*(f"{before} {unit}" for unit in units), *(f"{unit} {after}" for unit in units)]
        if self._peek().text == "/" and not self._peek().spaced and self._peek(1).text in UNITS:
            names = UNITS[self._peek(1).text]
            name = names[1] if len(names) > 1 else names[0]
            self.position += 2
            return [f"{unit} {per} {name}" for unit in units for per in ("per", "an" if name == "hour" else "a")]
        return units

    # Signs

    def _read_sign(self, token: Token) -> None:
        text, next_token = token.text, self._peek()
        number_follows = next_token.kind in ("number", "decimal", "fraction", "time")
        if text in SIGNS:
            self._add(SIGNS[text])
        elif text in CURRENCIES:
            self._read_currency(text)
        elif text == "°":
            self._read_degrees()
        elif text == "#":
            self._add(["number", "hashtag", "hash", "pound"] if number_follows else ["hashtag", "hash", ""])
        elif text == "^" and next_token.text.isdigit() and len(next_token.text) <= 3:
            self._read_power()
        elif text in "×*" and self.numeric:
            self._add(["times", "by"])
        elif text in "-−–—":
            self._read_dash(token, number_follows)
        elif text == "/":
            self._read_slash(token)
        elif text == ":" and self.numeric and number_follows and not next_token.spaced:
            self._add(["", "to", "by"], numeric=True)
        elif text == "." and not token.spaced and not next_token.spaced and next_token.kind in ("word", "number"):
            self._add(["", "dot", "point"], numeric=self.numeric)
        elif text == '"' and self.numeric and not token.spaced and self._previous().kind == "number":
            self._add(["", "inches", "inch"])

    def _read_currency(self, sign: str) -> None:
        if self._peek().kind not in ("number", "decimal"):
            return
        value = self._peek().text
        self.position += 1
        scale = self._peek()
        name = scale.text if scale.text in SCALES[1:] else ""
        if not scale.spaced and scale.text in _SHORT_SCALES:
            name = _SHORT_SCALES[scale.text]
        if name:
            self.position += 1
        self._add(numerals.money(value, CURRENCIES[sign], name), numeric=True)

    def _read_power(self) -> None:
        value = self._peek().text
        self.position += 1
        readings = [_POWERS[value][1]] if value in _POWERS else []
        names = [numerals.cardinal(int(value)), numerals.ordinal(int(value))]
        self._add([*readings, *(f"to the {link}{name}" for name in names for link in ("power of ", ""))], numeric=True)

    def _read_degrees(self) -> None:
        letter = self._peek().text
        names = {"c": ("celsius", "centigrade", "c"), "f": ("fahrenheit", "f")}.get(letter)
        if names is None:
            self._add(["degrees", "degree"])
            return
        self.position += 1
        self._add([f"{degrees} {name}".strip() for name in names for degrees in ("degrees", "degree", "")])

    def _read_dash(self, token: Token, number_follows: bool) -> None:
        next_token = self._peek()
        if not number_follows:
            if self.numeric and self._previous().kind == "number" and token.spaced:
                self._add(["", "minus", "dash"])
            return
        if self.numeric and token.spaced and next_token.spaced:
            self._add(["minus", "to", "take away", "dash"])
        elif not (self.numeric or token.spaced or next_token.spaced) and self._previous().kind == "word":
            readings = ["", "dash", "hyphen"]
            self._add([*readings, "minus"] if len(self._previous().text) == 1 else readings)  # COVID-19, x-5
        elif self.numeric and not token.spaced:
            self._add(["", "to", "dash", "minus", "through", "hyphen"], numeric=True)
        elif not next_token.spaced:
            self._add(["minus", "negative"])

    def _read_slash(self, token: Token) -> None:
        if self.position > 1 and not token.spaced and not self._peek().spaced and self._peek() is not _END:
            self._add(["", "or", "slash", "per", "and"])
        elif self.numeric:
            self._add(["divided by", "over", "slash"])

    def _read_web_address(self, token: Token) -> None:
        for part in re.findall(r"[^\W_\d]+|\d+|[^\w\s]|_", re.sub("^https?://", "", token.text)):
            self._add(numerals.integer(part) if part.isdigit() else IN_ADDRESSES.get(part, [part]))


_READERS: Mapping[str, Callable[[_EnglishReader, Token], None]] = {
    "web": _EnglishReader._read_web_address,
    "date": _EnglishReader._read_date,
    "time": _EnglishReader._read_time,
    "decade": _EnglishReader._read_decade,
    "ordinal": _EnglishReader._read_ordinal,
    "height": _EnglishReader._read_height,
    "fraction": _EnglishReader._read_fraction,
    "decimal": _EnglishReader._read_number,
    "number": _EnglishReader._read_number,
    "word": _EnglishReader._read_word,
    "sign": _EnglishReader._read_sign,
}


@lru_cache(maxsize=1 << 15)
def _spelled_choice(readings: tuple[str, ...]) -> Readings:
    """The pieces of readings, each word as the key of all its spellings (see `spell`)."""
    return choice(" ".join(map(spell, reading.split())) for reading in readings)


def _plain_word(text: str) -> list[str]:
    """Readings of a word that are the same wherever it stands; empty if it is not such a word."""
    readings = CONTRACTIONS.get(text)
    if readings is not None:
        return readings
    if "'" not in text:
        return [text]
    for ending, meanings in ENDINGS.items():
        if text.endswith(ending) and text != ending:
            return [f"{text.removesuffix(ending)} {meaning}" for meaning in meanings]
    return [text.replace("'", "")]

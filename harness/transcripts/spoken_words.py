"""Texts as a person may say them: numerals, times, signs and abbreviations become words, in every usual reading.

English is read by spoken_text.py. Other languages have their numerals, a few also a word list (spoken_de.toml, for
example). In all others, only case, punctuation and invisible characters are removed.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import cache, lru_cache
from importlib import resources
from itertools import chain, pairwise

from harness.model.frozen import frozen
from harness.model.transcript import ENGLISH
from harness.transcripts.english_words import NUMBER_WORDS
from harness.transcripts.readings import Piece, Readings, choice, narrow, plain, split_numbers, with_both_spacings
from harness.transcripts.spoken_text import Token, english_readings, english_tokens, token_readings

Clock = Callable[[int, int], list[str]]
_SIGNS = "€$£¥%‰°#"
_AMOUNT = r"\d{1,3}(?:[.\u0020’']\d{3}){1,4}(?!\d)(?:,\d+)?|\d+(?:[.,]\d+)?"
_NUMERAL_OR_SIGN = re.compile(rf"[\d{_SIGNS}&+=×÷]")
_TOKEN = re.compile(
    rf"""
    (?P<date>(?<![\d.,/])\d{{1,2}}(?:\.\d{{1,2}}\.(?:\d{{4}}|\d\d)?|/\d{{1,2}}/(?:\d{{4}}|\d\d))(?![\d/]))
    | (?P<time>(?<![\d:.,])\d{{1,2}}(?:(?::|\s?h\s?|\s(?:uhr|heures?)\s)[0-5]\d(?![\d:])|\.[0-5]\d(?=\s?(?:uhr|h)\b)))
    | (?P<ordinal>(?<!\d)\d{{1,6}}(?:\.?(?:[oa]|er)\b|(?:ers?|ères?|res?|(?:i?è)?mes?|es?)\b))
    | (?P<fraction>(?<![\d/.,])\d{{1,2}}[/⁄]\d{{1,2}}(?![\d/]|[.,]\d))
    | (?P<number>[€$£¥]?(?:{_AMOUNT}))
    | (?P<sign>[{_SIGNS}&+=×÷]|(?<!\w)[-−](?=\d))
    | (?P<word>[^\s\d{_SIGNS}&+=×÷]+(?:(?<=m\^)[23])?)
    """,
    re.VERBOSE | re.IGNORECASE,
)


@frozen
class _LanguageWords:
    """The words of one language, from its file."""

    point: Sequence[str] = ("",)
    """Words for the decimal mark."""
    one: Sequence[str] = ()
    """Further forms of the numeral 1."""
    before_cents: Sequence[str] = ("",)
    """Words between an amount and its cents: fünf Euro (und) zehn."""
    before_month: Sequence[str] = ("",)
    before_year: Sequence[str] = ("",)
    """Words before the month and the year of a date."""
    months: Sequence[str] = ()
    oclock: Sequence[str] = ()
    """Words after a whole hour."""
    half: Sequence[str] = ()
    """Readings of a number and a half."""
    sharp: Sequence[str] = ()
    """Words that would become other words if ß were written as ss."""
    fillers: Sequence[str] = ()
    currencies: Mapping[str, Sequence[str]] = field(default_factory=dict)
    signs: Mapping[str, Sequence[str]] = field(default_factory=dict)
    units: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Readings of units after numbers."""
    fractions: Mapping[str, Sequence[str]] = field(default_factory=dict)
    capitals: Mapping[str, str] = field(default_factory=dict)
    """Letters for which a capital may stand, since many people leave out its accent."""
    digraphs: Mapping[str, str] = field(default_factory=dict)
    """Letters that stand for others on a keyboard without those, such as ae for ä."""
    endings: Mapping[str, str] = field(default_factory=dict)
    """Full forms of endings that a full stop shortens."""
    same: Mapping[str, str] = field(default_factory=dict)
    """Words that count as others."""
    clock: Clock | None = None
    """Returns the readings of an hour and a minute; None if times have none of their own."""


def can_read_numerals(language: str) -> bool:
    """Whether numerals can be read in a language, such as de."""
    from num2words import CONVERTER_CLASSES  # here, since only texts in other languages than English need it

    return language in CONVERTER_CLASSES and language != "am"  # never ends on 999,999,999


def numeral_readings(text: str, language: str) -> Readings:
    """The pieces of a text that is clean (see `_clean`) and still has its capitals."""
    lexicon = _lexicon(language)
    if text.isupper() and " " in text:
        text = text.lower()  # a text in capitals does not show which letters are said one by one
    text = _INITIALS.sub(r"\1", text)
    if not _NUMERAL_OR_SIGN.search(text):
        return tuple(chain.from_iterable(_word_readings(word, language, False) for word in text.split()))
    out: list[Piece] = []
    after_number = skip = False
    tokens = [(match.lastgroup or "", match[0]) for match in _TOKEN.finditer(text)]
    for (kind, raw), (next_kind, next_raw) in pairwise([*tokens, ("", "")]):
        if skip:  # the token before has read this one
            skip = False
            continue
        if kind == "word":
            out += _word_readings(raw, language, after_number)
            after_number = False
            continue
        token, following = raw.lower(), next_raw.lower()
        if kind == "date":
            parts: list[Sequence[str]] = _date_readings(token, language, lexicon)
        elif kind == "time":
            parts = [_time_readings(token, language, lexicon)]
            skip = plain(following).strip() in ("uhr", "h")
        elif kind == "fraction":
            parts = [_fraction_readings(token, language, lexicon)]
        elif kind == "number":
            readings, skip = _quantity_readings(
                token, next_kind, following, language, lexicon, among_numbers=after_number
            )
            parts = [readings]
        elif kind == "ordinal":
            parts = [_ordinal_token_readings(token, language, lexicon)]
        else:
            parts = [lexicon.signs.get(token, ("",))]
        after_number = kind in ("number", "time") or (after_number and token == "°")
        out += [piece for part in parts for piece in choice(_plain_words(reading, language) for reading in part)]
    return tuple(out)


def _time_readings(token: str, language: str, lexicon: _LanguageWords) -> list[str]:
    hour, minute = map(int, re.findall(r"\d+", token))
    if lexicon.clock:
        return lexicon.clock(hour, minute)
    return [f"{_number_words(hour, language)} {_number_words(minute, language)}"]


def _fraction_readings(token: str, language: str, lexicon: _LanguageWords) -> Sequence[str]:
    top, bottom = re.findall(r"\d+", token)
    return lexicon.fractions.get(f"{top}/{bottom}") or [
        f"{head} {other}"
        for head in _integer_readings(top, language, lexicon)
        for other in _integer_readings(bottom, language, lexicon)
    ]


def _ordinal_token_readings(token: str, language: str, lexicon: _LanguageWords) -> list[str]:
    number = int(re.findall(r"\d+", token)[0])
    readings = _ordinal_readings(number, language)
    if token.endswith("o"):  # 21º may be an ordinal or a temperature
        amounts = _integer_readings(str(number), language, lexicon)
        readings += [f"{amount} {degrees}" for degrees in lexicon.signs.get("°", ()) for amount in amounts]
    return readings


def _quantity_readings(
    token: str, next_kind: str, following: str, language: str, lexicon: _LanguageWords, *, among_numbers: bool
) -> tuple[list[str], bool]:
    """Readings of a number with what belongs to it, and whether they include the next token, `following`.
    among_numbers: whether another number precedes it."""
    value = token.lstrip("€$£¥")
    sign = next((sign for sign in (token[0], following) if sign in lexicon.currencies), "")
    if sign:
        return _money_readings(value, sign, language, lexicon), following == sign
    if lexicon.clock and plain(following).strip() in lexicon.oclock and value.isdigit() and int(value) <= 24:
        bare = _integer_readings(value, language, lexicon)
        # 8 Uhr is not 8.
        return [reading for reading in lexicon.clock(int(value), 0) if reading not in bare], True
    if next_kind == "fraction" and re.fullmatch("1[/⁄]2", following) and lexicon.half and value.isdigit():
        return _and_a_half(value, language, lexicon), True
    return _count_readings(value, following, language, lexicon, among_numbers=among_numbers), False


def _count_readings(
    value: str, following: str, language: str, lexicon: _LanguageWords, *, among_numbers: bool
) -> list[str]:
    """Readings of a number that is neither money nor a time. following: the next token. among_numbers: as in
    `_quantity_readings`."""
    readings = _number_readings(value, language, lexicon)
    if len(value) == 2 and value[0] == "0" and not among_numbers and not following[:1].isdigit():
        return [*readings, *_integer_readings(value[1], language, lexicon)]  # track 07
    if language == "de" and following.startswith(".") and value.isdigit() and len(value) <= 6:
        return [*readings, *_ordinal_readings(int(value), language)]
    return [*readings, "primero"] if language == "es" and value == "1" and following == "de" else readings


@lru_cache(maxsize=1 << 15)
def _word_readings(raw: str, language: str, after_number: bool) -> Readings:
    """The pieces of a token that is not a number. raw: as written."""
    lexicon, token = _lexicon(language), raw.lower()
    bare = " ".join(plain(token).split())
    if bare in lexicon.fillers:
        return ()
    words = bare.split()
    head = next((count for count in (2, 1) if " ".join(words[:count]) in lexicon.units), 0)
    forms = [token]
    if after_number and bare in lexicon.units:
        forms = [*lexicon.units[bare], bare]
    elif after_number and token[0] == "-" and head:  # a 20-mm-Rohr, a 30-km/h-Zone
        forms = [" ".join([name, *words[head:]]) for name in lexicon.units[" ".join(words[:head])]]
    elif raw.isupper() and bare.isalpha() and 2 <= len(bare) <= 5:
        forms = [token, " ".join(bare)]
    forms += [
        bare.removesuffix(end) + whole for end, whole in lexicon.endings.items() if "." in token and bare.endswith(end)
    ]
    if raw[0].isupper():
        forms += [f"{letter}{token[1:]}" for letter in lexicon.capitals.get(token[0], "")]
    for digraph, letter in lexicon.digraphs.items():
        forms += [form.replace(digraph, letter) for form in forms if digraph in form]
    return choice(_plain_words(form, language) for form in forms)


@lru_cache(maxsize=1 << 15)
def _plain_words(text: str, language: str) -> str:
    lexicon = _lexicon(language)
    words = (word if word in lexicon.sharp else word.translate(_LIGATURES) for word in plain(text).split())
    return " ".join(lexicon.same.get(word, word) for word in words)


@lru_cache(maxsize=4096)
def _number_words(number: int, language: str, to: str = "cardinal") -> str:
    from num2words import num2words

    try:
        return str(num2words(number, lang=language, to=to)).lower()
    except (NotImplementedError, AttributeError, TypeError, OverflowError, LookupError):  # gaps in some languages
        return str(number) if to == "cardinal" else _number_words(number, language)


def _split_decimal(text: str) -> tuple[str, str]:
    """The digits before and after the decimal mark: 1.234,5 and 1,5 and 1.5."""
    grouped = re.fullmatch(r"(\d{1,3}(?:[. ’']\d{3})+)(?:,(\d+))?", text)
    if grouped:
        return re.sub(r"\D", "", grouped[1]), grouped[2] or ""
    whole, _, part = text.replace(",", ".").partition(".")
    return whole, part


def _number_readings(text: str, language: str, lexicon: _LanguageWords) -> list[str]:
    digits, part = _split_decimal(text)
    readings = _integer_readings(digits, language, lexicon)
    if not part:
        return readings
    halves = _and_a_half(digits, language, lexicon) if part == "5" else []
    spelled = " ".join(_number_words(int(digit), language) for digit in part)
    # "point oh five", "point one two five": nobody says "point five hundred and twelve".
    tails = [spelled] if int(part[0]) == 0 or len(part) > 2 else [spelled, _number_words(int(part), language)]
    return [*(f"{head} {point} {tail}" for point in lexicon.point for tail in tails for head in readings), *halves]


def _and_a_half(digits: str, language: str, lexicon: _LanguageWords) -> list[str]:
    return [form.format(head) for form in lexicon.half for head in _integer_readings(digits, language, lexicon)]


def _date_readings(text: str, language: str, lexicon: _LanguageWords) -> list[Sequence[str]]:
    """The readings of day, month and year, and of the words between, in their order."""
    day, month, *year = re.findall(r"\d+", text)
    is_date = 1 <= int(day) <= 31 and 1 <= int(month) <= len(lexicon.months)
    if not is_date and year:
        return [_integer_readings(number, language, lexicon) for number in (day, month, *year)]
    if not is_date or (not year and language != "de"):
        return [_number_readings(f"{day}.{month}", language, lexicon)]  # no date: a number at the end of a sentence
    days = [
        _number_words(int(day), language),
        *_ordinal_readings(int(day), language),
        *_date_number_readings(day, language, lexicon),
    ]
    months = [
        lexicon.months[int(month) - 1],
        *_ordinal_readings(int(month), language),
        *_date_number_readings(month, language, lexicon),
    ]
    if not year:
        dates = [f"{day_reading} {month_reading}" for day_reading in days for month_reading in months]
        return [[*dates, *_number_readings(f"{day}.{month}", language, lexicon)]]
    full_years = [f"20{digits}" for digits in year if len(digits) == 2]
    years = [reading for digits in (*full_years, *year) for reading in _integer_readings(digits, language, lexicon)]
    return [days, lexicon.before_month, months, lexicon.before_year, years]


def _date_number_readings(digits: str, language: str, lexicon: _LanguageWords) -> list[str]:
    """The readings of a day or a month, not digit by digit: 1.12. and 11.2. would have one in common."""
    readings = _integer_readings(digits, language, lexicon)
    return readings[:-1] if digits[0] != "0" and len(digits) > 1 else readings


def _integer_readings(digits: str, language: str, lexicon: _LanguageWords) -> list[str]:
    digit_by_digit = " ".join(_number_words(int(digit), language) for digit in digits)
    if len(digits) > 12 or (int(digits[0]) == 0 and len(digits) > 1):
        return [digit_by_digit]
    number = int(digits)
    names = [_number_words(number, language)]
    if len(digits) == 4 and number >= 1100:
        names.append(_year_name(number, language))
    if language == "de":
        names += [name.removeprefix("ein") for name in names if name.startswith(("einhundert", "eintausend"))]
    if language == "fr":
        names += [_number_words(number, other) for other in ("fr_CH", "fr_BE")]
    if 3 <= len(digits) <= 6 and len(digits) != 5:
        cut = len(digits) % 2
        pairs = [digits[start : start + 2] for start in range(cut, len(digits), 2)]
        spoken = [
            _number_words(int(pair), language)
            if pair[0] != "0"
            else " ".join(_number_words(int(digit), language) for digit in pair)
            for pair in pairs
        ]
        by_pairs = [*(_number_words(int(digit), language) for digit in digits[:cut]), *spoken]
        # In French, 4 and 20 together are 80, and 60 and 12 are 72: nobody says 420 and 6012 like that.
        if not any(_plain_words(" ".join(pair), language) in _names_below_100(language) for pair in pairwise(by_pairs)):
            names.append(" ".join(by_pairs))
    last = _number_words(1, language)
    names += [f"{name.removesuffix(last)}{form}" for name in names for form in lexicon.one if name.endswith(last)]
    if language == "es":
        names += [f"{name.removesuffix('uno')}ún" for name in names if name.endswith("veintiuno")]
        names += [re.sub(r"ientos\b", "ientas", name) for name in names if "ientos" in name]
    return [*names, digit_by_digit] if len(digits) > 1 else names


@cache
def _names_below_100(language: str) -> frozenset[str]:
    """What numbers below 100 are called."""
    lexicon = _lexicon(language)
    numbers = (reading for number in range(100) for reading in _integer_readings(str(number), language, lexicon))
    return frozenset(_plain_words(reading, language) for reading in numbers)


def _year_name(number: int, language: str) -> str:
    if language == "fr" and number < 2000:
        rest = number % 100
        return f"{_number_words(number // 100, language)} cent" + (f" {_number_words(rest, language)}" if rest else "")
    return _number_words(number, language, "year")


def _ordinal_readings(number: int, language: str) -> list[str]:
    word = _number_words(number, language, "ordinal")
    if language == "de":
        return [word, *(f"{word}{end}" for end in ("n", "r", "s"))]
    if language == "fr":
        return [word, *{1: ["première"], 2: ["second", "seconde"]}.get(number, [])]
    if language == "es" and word.endswith("o"):
        forms = [word, f"{word[:-1]}a"]
        return [*forms, word[:-1]] if word.endswith(("primero", "tercero")) else forms
    return [word]


def _money_readings(text: str, sign: str, language: str, lexicon: _LanguageWords) -> list[str]:
    singular, plural, cents = lexicon.currencies[sign]
    whole, part = _split_decimal(text)
    if len(part) != 2:
        names = (singular, plural) if text == "1" else (plural,)
        return [f"{amount} {name}" for name in names for amount in _number_readings(text, language, lexicon)]
    units = [
        f"{amount} {singular if whole == '1' else plural}" for amount in _integer_readings(whole, language, lexicon)
    ]
    if int(part) == 0:
        return units
    coins = _number_words(int(part), language)
    amounts = [f"{unit} {word} {coins} {end}" for unit in units for word in lexicon.before_cents for end in ("", cents)]
    return [*amounts, *(f"{amount} {plural}" for amount in _number_readings(text, language, lexicon))]


def _german_times(hour: int, minute: int) -> list[str]:
    name, following = ("ein" if hour == 1 else _number_words(hour, "de")), _number_words(hour % 12 + 1, "de")
    if minute == 0:
        names = [f"{name} uhr", name, _number_words(hour, "de")]
        return [*names, "mitternacht"] if hour % 24 == 0 else names
    minutes = _number_words(minute, "de")
    readings = [f"{name} uhr {minutes}", f"{_number_words(hour, 'de')} {minutes}"]
    bare = _number_words(hour % 12 or 12, "de")
    if minute == 15:
        readings += [f"viertel nach {bare}", f"viertel {following}"]
    elif minute == 30:
        readings.append(f"halb {following}")
    elif minute == 45:
        readings += [f"viertel vor {following}", f"dreiviertel {following}"]
    elif minute < 30:
        readings.append(f"{minutes} nach {bare}")
    else:
        readings.append(f"{_number_words(60 - minute, 'de')} vor {following}")
    return readings


def _french_times(hour: int, minute: int) -> list[str]:
    names = {0: ["zéro heure", "minuit"], 12: ["douze heures", "midi"], 1: ["une heure"]}
    hours = names.get(hour, [f"{_number_words(hour, 'fr')} heures"])
    if hour == 24:
        hours = [*hours, "minuit"]
    if minute == 0:
        return hours
    following = (hour + 1) % 24
    next_hour = names.get(following, [f"{_number_words(following, 'fr')} heures"])
    minutes = _number_words(minute, "fr")
    readings = [f"{name} {minutes}" for name in hours] + [f"{_number_words(hour, 'fr')} {minutes}"]
    endings = {15: ("et quart",), 30: ("et demie", "et demi")}.get(minute, ())
    readings += [f"{name} {ending}" for name in hours for ending in endings]
    if minute > 30:
        rest = "le quart" if minute == 45 else _number_words(60 - minute, "fr")
        readings += [f"{name} moins {rest}" for name in next_hour]
    return readings


def _spanish_times(hour: int, minute: int) -> list[str]:
    def hour_name(number: int) -> str:
        return "una" if number == 1 else _number_words(number, "es")

    name, following = hour_name(hour), hour_name(hour % 12 + 1)
    if minute == 0:
        return [name, f"{name} en punto", f"{name} horas"]
    minutes = _number_words(minute, "es")
    bare = hour_name(hour % 12 or 12)
    readings = [f"{name} {minutes}", f"{name} y {minutes}", f"{bare} y {minutes}"]
    readings += {15: [f"{bare} y cuarto"], 30: [f"{bare} y media"], 45: [f"{following} menos cuarto"]}.get(minute, [])
    if minute > 30:
        readings.append(f"{following} menos {_number_words(60 - minute, 'es')}")
    return readings


_CLOCKS: Mapping[str, Clock] = {"de": _german_times, "fr": _french_times, "es": _spanish_times}
_WORD_LISTS = {language: f"spoken_{language}.toml" for language in _CLOCKS}


@cache
def _lexicon(language: str) -> _LanguageWords:
    """The words of a language from its file; empty for a language without a file, of which only numerals are known."""
    if language not in _WORD_LISTS:
        return _LanguageWords()
    keys = tomllib.loads(resources.files(__package__).joinpath(_WORD_LISTS[language]).read_text("utf-8"))
    return _LanguageWords(**keys, clock=_CLOCKS[language])


_SAME_SIGNS = str.maketrans({"’": "'", "‘": "'", "`": "'", "′": "'", "″": '"', "”": '"', "“": '"', "‑": "-", "‐": "-"})
_LIGATURES = str.maketrans({"ß": "ss", "œ": "oe", "æ": "ae"})
_INITIALS = re.compile(r"(?<!\w)([^\W\d_]\.) (?=[^\W\d_]\.)")  # z. B. is z.B.
# Signs that normalisation would turn into letters: nº 5 and 21 ºC.
_NUMBER_SIGN = re.compile(r"№|\b[nN]\.?\s?[º°](?=\s?\d)")
_DEGREES = re.compile(r"º(?=\s?[CF]\b)")
# Signs that may belong to what follows after a space: 21 º C, n º 5, 5' 10. Searching for the signs first is faster.
_ACROSS_SPACES = re.compile(r"[º°'’‘`′](?:(?<=[º°])|(?<=\d.)(?=\s))")
_RAISED = re.compile("[⁰¹²³⁴-⁹]+")
_ACCENT = re.compile("(?<=[A-Za-z])[\u0300-\u036f]+")
_OTHER_SYMBOLS = re.compile(r"[^\x00-\x7f\w\s€£¥₹₩₽₺₪₿¢°×÷−–—⁄‰]")
# Words that are never half of another one: blue tooth is bluetooth, but now here is not nowhere.
_NEVER_HALF = frozenset((*NUMBER_WORDS, "a", "i", "an", "the", "now"))


def primary_language(language: str) -> str:
    """The language of a BCP 47 tag, without its region."""
    return language.partition("-")[0].lower()


def says_numerals(language: str) -> bool:
    """Whether numerals can be read in a language. If not, digits stay as they are written."""
    return primary_language(language) == ENGLISH or can_read_numerals(primary_language(language))


def spoken_readings(text: str, language: str = ENGLISH) -> Readings:
    """The words of a text, with choices where there are several readings. language: a BCP 47 tag."""
    return spoken_reader(language)(text)


def spoken_reader(language: str) -> Callable[[str], Readings]:
    """The function that reads the texts of a language, as `spoken_readings` does."""
    code = primary_language(language)
    if code == ENGLISH:
        return _english_pieces
    if can_read_numerals(code):
        return lambda text: numeral_readings(_clean(text), code)
    return lambda text: tuple(plain(text).split())


def comparable(pieces: Readings, others: Readings) -> tuple[Readings, Readings]:
    """Both texts, prepared for comparison: with both spellings of words that only one of them writes as two, and
    without readings that cannot match."""
    pieces, others = with_both_spacings(pieces, others, _NEVER_HALF)
    return narrow(pieces, others), narrow(others, pieces)


def _english_pieces(text: str) -> Readings:
    if text.isupper():
        text = text.lower()  # a text in capitals does not show which words are Roman numerals or letters
    if _ACROSS_SPACES.search(text):
        return english_readings(_without_accents(_clean(text)))
    return token_readings(chain.from_iterable(map(_chunk_tokens, text.split())))


@lru_cache(maxsize=1 << 15)
def _chunk_tokens(chunk: str) -> tuple[Token, ...]:
    """The tokens of a chunk between spaces. Cached, since speech has few different words."""
    return tuple(english_tokens(_without_accents(_clean(chunk))))


def _clean(text: str) -> str:
    """The text with one character for each letter, with raised digits after ^, and without invisible characters."""
    if text.isascii():
        return text.replace("`", "'")
    text = _DEGREES.sub("°", _NUMBER_SIGN.sub("#", text))
    text = _RAISED.sub(lambda match: f"^{unicodedata.normalize('NFKC', match[0])}", text)
    return _OTHER_SYMBOLS.sub(_blank_unless_mark, split_numbers(text).translate(_SAME_SIGNS))


def _blank_unless_mark(match: re.Match[str]) -> str:
    return match[0] if unicodedata.category(match[0])[0] == "M" else " "


def _without_accents(text: str) -> str:
    """The text without accents, since English is written with or without them."""
    if text.isascii():
        return text
    return unicodedata.normalize("NFC", _ACCENT.sub("", unicodedata.normalize("NFD", text)))

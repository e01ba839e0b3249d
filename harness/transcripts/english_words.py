"""The English word lists of `spoken`: spellings, abbreviations, units, contractions and symbols, from spoken_en.toml.

That file says what each list is for.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from importlib import resources

_FILE = tomllib.loads(resources.files(__package__).joinpath("spoken_en.toml").read_text("utf-8"))
SCALES = ("hundred", "thousand", "million", "billion", "trillion")
NUMBER_WORDS = frozenset((
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty", "thirty", "forty"),
    *("fifty", "sixty", "seventy", "eighty", "ninety", *SCALES),
))  # fmt: skip
MONTHS: Mapping[str, str] = {**_FILE["months"], **{name: name for name in _FILE["months"].values()}}
CALENDAR = [*dict.fromkeys(_FILE["months"].values())]
FILLERS = frozenset(_FILE["fillers"])
AFTER_NUMBERS = frozenset(_FILE["after_numbers"])
ABBREVIATIONS: Mapping[str, list[str]] = _FILE["abbreviations"]
AFTER_IS = frozenset(_FILE["after_is"].split())
AFTER_HAS = frozenset(_FILE["after_has"].split())
MODIFIERS = frozenset(_FILE["modifiers"].split())
UNITS: Mapping[str, list[str]] = _FILE["units"]
CURRENCIES: Mapping[str, list[str]] = _FILE["currencies"]
CODES: Mapping[str, str] = _FILE["codes"]
WEEKDAYS: Mapping[str, str] = _FILE["weekdays"]
ENDINGS: Mapping[str, list[str]] = _FILE["endings"]
PHRASES: Mapping[tuple[str, ...], str] = {tuple(words.split()): reading for words, reading in _FILE["phrases"].items()}
IN_ADDRESSES = {
    "@": ["at"],
    ".": ["dot", "point"],
    "/": ["slash"],
    "_": ["underscore"],
    "-": ["dash", "hyphen", "minus", ""],
    "+": ["plus"],
    ":": [""],
    "www": ["www", "w w w"],
}
SIGNS = {
    "¢": ["cents", "cent"],
    "%": ["percent"],
    "‰": ["per mille", "permille", "per mil", "per thousand"],
    "&": ["and"],
    "@": ["at"],
    "+": ["plus"],
    "=": ["equals", "is"],
    "÷": ["divided by", "over"],
}


def _contractions() -> dict[str, list[str]]:
    expanded: dict[str, list[str]] = dict(_FILE["contractions"])
    # Many people leave out the apostrophes.
    for word in ("do", "does", "did", "is", "was", "were", "are", "could", "would", "should", "have", "has", "had"):
        expanded[f"{word}nt"] = [f"{word} not"]
    for word in ("i", "you", "we", "they", "could", "would", "should"):
        expanded[f"{word}ve"] = [f"{word} have"]
    return expanded | {"youre": ["you are"], "theyre": ["they are"], "youll": ["you will"], "theyll": ["they will"]}


def _spellings() -> dict[str, str]:
    spellings = {variant: spelling for spelling, variants in _FILE["spellings"].items() for variant in variants}
    after_our = ("", "s", "ed", "ing", "able", "ful", "ite", "ites", "less", "hood", "hoods", "al", "er", "ers", "y")
    spellings |= {f"{stem}our{ending}": f"{stem}or{ending}" for stem in _FILE["our"].split() for ending in after_our}
    after_l = ("ed", "ing", "er", "ers", "or", "ors")
    return spellings | {
        f"{stem}l{ending}": f"{stem}{ending}" for stem in _FILE["doubled_l"].split() for ending in after_l
    }


CONTRACTIONS: Mapping[str, list[str]] = _contractions()
_SPELLINGS = _spellings()
# The s of organise, organisation and analyse, which becomes z. That of "rise" and "wise" stays.
_ISE = re.compile(
    r"(?<=[a-z]{3}i)s(?=(?:e|ed|es|ing|er|ers|ation|ations|able)$)|(?<=[a-z]{2}y)s(?=(?:e|ed|es|ing|er|ers)$)"
)
_ALWAYS_ISE: re.Pattern[str] = re.compile(f"(?:{'|'.join(_FILE['always_ise'].split())})is")


def spell(word: str) -> str:
    """A key that is equal for all spellings of a word: mostly the American spelling, of rare words a form that nobody
    writes."""
    if (spelling := _SPELLINGS.get(word)) is not None:
        return spelling
    if len(word) < 6 or ("is" not in word and "ys" not in word) or _ALWAYS_ISE.match(word):
        return word
    return _ISE.sub("z", word)

"""The English list of the normalisation `spoken`, from spoken_en.toml: spellings, abbreviations, units, contractions.

A reading is what a person may say, in lower case; where there are several, the first is how the words are shown.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from importlib import resources
from typing import Any

_FILE = tomllib.loads(resources.files(__package__).joinpath("spoken_en.toml").read_text("utf-8"))
SCALES = ("hundred", "thousand", "million", "billion", "trillion")
NUMBER_WORDS = frozenset((
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty", "thirty", "forty"),
    *("fifty", "sixty", "seventy", "eighty", "ninety", *SCALES),
))  # fmt: skip
MONTHS: Mapping[str, str] = {
    **_FILE["months"],
    **{name: name for name in (*_FILE["months"].values(), "may")},
}
FILLERS = frozenset(_FILE["fillers"])
AFTER_NUMBERS = frozenset(_FILE["after_numbers"])
ABBREVIATIONS: Mapping[str, list[str]] = _FILE["abbreviations"]
UNITS: Mapping[str, list[str]] = _FILE["units"]
CURRENCIES: Mapping[str, list[str]] = _FILE["currencies"]
CODES: Mapping[str, str] = _FILE["codes"]
WEEKDAYS: Mapping[str, str] = _FILE["weekdays"]
ENDINGS: Mapping[str, list[str]] = _FILE["endings"]
PHRASES: Mapping[tuple[str, ...], str] = {tuple(words.split()): said for words, said in _FILE["phrases"].items()}


def _contractions() -> dict[str, list[str]]:
    found: dict[str, list[str]] = dict(_FILE["contractions"])
    # Many write none of the apostrophes.
    for word in ("do", "does", "did", "is", "was", "were", "are", "could", "would", "should", "have", "has", "had"):
        found[f"{word}nt"] = [f"{word} not"]
    for word in ("i", "you", "we", "they", "could", "would", "should"):
        found[f"{word}ve"] = [f"{word} have"]
    return found | {"youre": ["you are"], "theyre": ["they are"], "youll": ["you will"], "theyll": ["they will"]}


def _spellings() -> dict[str, str]:
    found = {other: kept for kept, others in _FILE["spellings"].items() for other in others}
    ends = ("", "s", "ed", "ing", "able", "ful", "ite", "ites", "less", "hood", "hoods", "al", "er", "ers", "y")
    found |= {f"{stem}our{end}": f"{stem}or{end}" for stem in _FILE["our"].split() for end in ends}
    doubled = ("ed", "ing", "er", "ers", "or", "ors")
    return found | {f"{stem}l{end}": f"{stem}{end}" for stem in _FILE["doubled_l"].split() for end in doubled}


CONTRACTIONS: Mapping[str, list[str]] = _contractions()
_SPELLINGS = _spellings()
_ISE = re.compile(
    r"(?<=[a-z]{3})is(?=(?:e|ed|es|ing|er|ers|ation|ations|able)$)|(?<=[a-z]{2})ys(?=(?:e|ed|es|ing|er|ers)$)"
)
_ALWAYS_ISE: re.Pattern[Any] = re.compile(f"(?:{'|'.join(_FILE['always_ise'].split())})is")


def spelled(word: str) -> str:
    """A word in the one spelling that stands for all of its own."""
    kept = _SPELLINGS.get(word)
    if kept is not None:
        return kept
    if len(word) < 6 or ("is" not in word and "ys" not in word) or _ALWAYS_ISE.match(word):
        return word
    return _ISE.sub(lambda found: f"{found[0][0]}z", word)

"""The guide for raters, from guide.toml: categories, rules, flags and keys.

Source: Dahl & Doran, Response Assessment for Voice Assistant Test, version of 2020-09-20.
"""

from __future__ import annotations

import tomllib
from importlib import resources

from harness.model.effect import EffectEvidence, EffectOutcome
from harness.model.frozen import frozen
from harness.model.judgment import Category, Flag, SubFlag

GUIDELINE_VERSION = "2020-09-20"

KEYS: tuple[tuple[str, Category], ...] = tuple(zip("1234567890-", Category, strict=True))
"""The keys of the categories, from one row of the keyboard."""


@frozen
class GuideExample:
    """A query, the response, and (seen) the observed effect if it matters; else ""."""

    query: str
    response: str
    seen: str = ""


@frozen
class GuideText:
    """The text on a category.

    - short: a description that fits beside key and name in 80 characters.
    - test: the question to ask in case of doubt.
    """

    short: str
    test: str
    examples: tuple[GuideExample, ...]


_FILE = tomllib.loads(resources.files(__package__).joinpath("guide.toml").read_text("utf-8"))
TO_JUDGE = "To judge: harness rate SESSION"
"""The remedy if no response was judged."""
LABELS: dict[Category, str] = {Category(name): text["label"] for name, text in _FILE["categories"].items()}
GUIDE: dict[Category, GuideText] = {
    Category(name): GuideText(
        text["short"], text["test"], tuple(GuideExample(**example) for example in text["examples"])
    )
    for name, text in _FILE["categories"].items()
}
RULES: tuple[str, ...] = tuple(_FILE["rules"])
CUT_OFF = "cut off at the time limit"
OTHER_WORDS = "the device heard other words"
"""Facts about a response, in the words of every screen and page."""
SUB_FLAG_TEXTS: dict[SubFlag, str] = {SubFlag(name): text for name, text in _FILE["sub_flags"].items()}
FLAG_TEXTS: dict[Flag, str] = {Flag(name): text for name, text in _FILE["flags"].items()}
"""The text on each flag: why a response is put aside."""
_EFFECTS = {EffectOutcome(name): text for name, text in _FILE["effects"].items()}


def effect_text(evidence: EffectEvidence) -> str:
    """Whether a wanted effect occurred, in words that do not depend on who observed it."""
    return "not known yet" if evidence.is_open else _EFFECTS[evidence.word]

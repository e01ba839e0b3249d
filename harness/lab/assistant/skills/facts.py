"""A handful of facts, and what no device could know."""

from __future__ import annotations

import re

from harness.lab.assistant.frame import frame
from harness.lab.assistant.memory import Memory, Moment, SkillAnswer

_FACTS: tuple[tuple[str, str, str], ...] = (
    (r"(?=.*\bmoons?\b)(?=.*\bmars\b)(?=.*\bhow many\b)", "number of moons of mars", "Mars has two moons."),
    (r"(?=.*\bmoons?\b)(?=.*\bmars\b)", "moons of mars", "The moons of Mars are Phobos and Deimos."),
    (
        r"(?=.*\blargest\b|.*\bbiggest\b)(?=.*\bplanets\b)",
        "largest planets",
        "The two largest planets are Jupiter and Saturn.",
    ),
    (r"(?=.*\blargest\b|.*\bbiggest\b)(?=.*\bplanet\b)", "largest planet", "The largest planet is Jupiter."),
    (r"(?=.*\bsmallest\b)(?=.*\bplanet\b)", "smallest planet", "The smallest planet is Mercury."),
    (r"(?=.*\bhow many\b)(?=.*\bplanets?\b)", "number of planets", "There are eight planets in the solar system."),
    (r"(?=.*\bcapital\b)(?=.*\bfrance\b)", "capital of france", "The capital of France is Paris."),
    (r"(?=.*\bcapital\b)(?=.*\bnebraska\b)", "capital of nebraska", "The capital of Nebraska is Lincoln."),
    (r"(?=.*\bhow many legs\b)(?=.*\bspider\b)", "legs of a spider", "A spider has eight legs."),
    (r"(?=.*\bboil)(?=.*\bwater\b)", "boiling water", "At sea level, water boils at 100 degrees Celsius."),
)
_UNKNOWABLE = (
    (r"\bwhat colou?r\b.*\bmy\b|\bmy (shirt|hair|socks|eyes)\b", "I can't know that, because I can't see you."),
    (r"\bwhere (did i|are my|is my)\b", "I can't know that, because I was not watching."),
    (r"\b(what|who) am i\b", "I can't know that."),
)


class Facts:
    """ "What are the names of the moons of Mars", "what color is my shirt"."""

    def answer(self, said: str, memory: Memory, moment: Moment) -> SkillAnswer | None:
        for pattern, topic, text in _FACTS:
            if re.search(pattern, said):
                return SkillAnswer(text, frame("ask_fact", ("topic", topic)))
        for pattern, text in _UNKNOWABLE:
            if re.search(pattern, said):
                return SkillAnswer(text, frame("ask_unknowable"))
        return None

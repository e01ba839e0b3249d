"""A handful of facts, and what no device could know."""

from __future__ import annotations

import re

from harness.lab.assistant.memory import Answer, Memory, Moment

_FACTS: tuple[tuple[str, str], ...] = (
    (r"(?=.*\bmoons?\b)(?=.*\bmars\b)(?=.*\bhow many\b)", "Mars has two moons."),
    (r"(?=.*\bmoons?\b)(?=.*\bmars\b)", "The moons of Mars are Phobos and Deimos."),
    (r"(?=.*\blargest\b|.*\bbiggest\b)(?=.*\bplanets\b)", "The two largest planets are Jupiter and Saturn."),
    (r"(?=.*\blargest\b|.*\bbiggest\b)(?=.*\bplanet\b)", "The largest planet is Jupiter."),
    (r"(?=.*\bsmallest\b)(?=.*\bplanet\b)", "The smallest planet is Mercury."),
    (r"(?=.*\bhow many\b)(?=.*\bplanets?\b)", "There are eight planets in the solar system."),
    (r"(?=.*\bcapital\b)(?=.*\bfrance\b)", "The capital of France is Paris."),
    (r"(?=.*\bcapital\b)(?=.*\bnebraska\b)", "The capital of Nebraska is Lincoln."),
    (r"(?=.*\bhow many legs\b)(?=.*\bspider\b)", "A spider has eight legs."),
    (r"(?=.*\bboil)(?=.*\bwater\b)", "At sea level, water boils at 100 degrees Celsius."),
)
_UNKNOWABLE = (
    (r"\bwhat colou?r\b.*\bmy\b|\bmy (shirt|hair|socks|eyes)\b", "I can't know that, because I can't see you."),
    (r"\bwhere (did i|are my|is my)\b", "I can't know that, because I was not watching."),
    (r"\b(what|who) am i\b", "I can't know that."),
)


class Facts:
    """ "What are the names of the moons of Mars", "what color is my shirt"."""

    def answer(self, said: str, memory: Memory, moment: Moment) -> Answer | None:
        for pattern, text in (*_FACTS, *_UNKNOWABLE):
            if re.search(pattern, said):
                return Answer(text)
        return None

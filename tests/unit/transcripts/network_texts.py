"""Random texts with alternatives, optional words, fragments and tags, nested to a depth, for both sides of a pair."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

WORDS = ("a", "b", "c", "d", "ab", "abc", "a-", "ab-", "-b", "-bc", "-")


def pairs(seed: int, count: int, *, depth: int = 2, longest: int = 7, words: Sequence[str] = WORDS) -> list[list[str]]:
    """References and hypotheses, `count` of each; half of the hypotheses have no alternatives, as recognisers write."""
    random = Random(seed)
    references = [text(random, depth, random.randint(0, longest), words) for _ in range(count)]
    hypotheses = [text(random, random.choice((0, depth)), random.randint(0, longest), words) for _ in range(count)]
    return [references, hypotheses]


def text(random: Random, depth: int, count: int, words: Sequence[str]) -> str:
    """A text of `count` words or alternations, written with and without spaces at the braces."""
    content = ""
    for _ in range(count):
        part = _part(random, depth, words)
        glued = content.endswith("}") and random.random() < 0.5
        content += part if glued or not content else f" {part}"
    return content


def _part(random: Random, depth: int, words: Sequence[str]) -> str:
    match random.random():
        case kind if kind < 0.25 and depth:
            count = random.randint(1, 4)
            alternatives = [_alternative(random, depth - 1, words) for _ in range(count)]
            space = random.choice(("", " "))
            return f"{{{space}{random.choice((' / ', '/', ' /')).join(alternatives)}{space}}}"
        case kind if kind < 0.4:
            return f"({random.choice(words)})"
        case kind if kind < 0.45:
            return "@"
        case kind if kind < 0.5:
            return f"{random.choice(words)};tag{random.choice(('', ';', ';more'))}"
        case _:
            return random.choice(words)


def _alternative(random: Random, depth: int, words: Sequence[str]) -> str:
    return "@" if random.random() < 0.2 else text(random, depth, random.randint(1, 3), words)

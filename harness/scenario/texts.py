"""Texts with ${variables}."""

from __future__ import annotations

import re
from collections.abc import Mapping

from harness.base.file_words import MAX_TEXT
from harness.base.findings import Findings, Path, nearest

_DOLLAR = re.compile(r"\$(?:(?P<escaped>\$)|\{(?P<name>[^{}]*)\}|(?P<bare>))")


def filled_in(text: str, variables: Mapping[str, str], found: Findings, at: Path) -> str:
    """The text with its variables replaced and $$ made $; an unknown variable or a lone $ is noted as a problem."""

    def replacement(match: re.Match[str]) -> str:
        if match["escaped"]:
            return "$"
        name = match["name"]
        if name is None:
            found.add(at, "a lone $ in a text", "Write $$ for a dollar sign, or ${name} for a variable")
        elif name not in variables:
            found.add(at, f"no variable is called {name!r}", nearest(name, variables, listed="Variables"))
        else:
            return variables[name]
        return ""

    return _DOLLAR.sub(replacement, text)


def expanded(variables: Mapping[str, str], found: Findings) -> dict[str, str]:
    """The variables with those that they name replaced, in any order. Notes cycles, unknown names and long texts.

    A lone $ in a variable's text stays, as in `price: $5`.
    """
    done: dict[str, str] = {}

    def value(name: str, way: tuple[str, ...]) -> str:
        at = ("variables", name)
        if name in way:
            circle = " → ".join((*way[way.index(name) :], name))
            found.add(("variables", way[-1]), f"a variable stands for itself: {circle}", "Write one of them out")
            return ""
        if name in done:
            return done[name]

        def replacement(match: re.Match[str]) -> str:
            if match["name"] is None:
                return "$"
            if match["name"] not in variables:
                what = f"no variable is called {match['name']!r}"
                found.add(at, what, nearest(match["name"], variables, listed="Variables"))
                return ""
            return value(match["name"], (*way, name))

        text = _DOLLAR.sub(replacement, variables[name])
        if len(text) > MAX_TEXT:
            what = f"the variable becomes {len(text)} characters long; a text has at most {MAX_TEXT}"
            found.add(at, what, "Name fewer variables in it")
            text = ""
        done[name] = text
        return text

    for name in variables:
        value(name, ())
    return done

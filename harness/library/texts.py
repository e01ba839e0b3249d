"""Texts with ${variables}."""

from __future__ import annotations

import re
from collections.abc import Mapping

from harness.library.findings import Findings, Path, nearest

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

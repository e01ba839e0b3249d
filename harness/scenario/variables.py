"""The variables of a scenario: `${name}` in a text is replaced by the variable's text."""

from __future__ import annotations

import re
from collections.abc import Mapping

from harness.base.findings import MAX_TEXT, Findings, KeyPath

_DOLLAR = re.compile(r"\$(?:(?P<escaped>\$)|\{(?P<name>[^{}]*)\}|(?P<bare>))")


def substitute(text: str, variables: Mapping[str, str], findings: Findings, key_path: KeyPath) -> str:
    """The text with its variables replaced and $$ turned into $. Notes unknown variables and a lone $."""

    def replacement(match: re.Match[str]) -> str:
        if match["escaped"]:
            return "$"
        name = match["name"]
        if name is None:
            remedy = "Write $$ for a dollar sign, or ${name} for a variable"
            findings.add(key_path, "the text contains a lone $", remedy)
        elif findings.is_known(key_path, "variable", name, variables, "Variables"):
            return variables[name]
        return ""

    return _DOLLAR.sub(replacement, text)


def expand(variables: Mapping[str, str], findings: Findings) -> dict[str, str]:
    """The variables, with the variables in them replaced in any order. Notes cycles, unknown names and long texts.

    A lone $ in a variable's text stays, as in `price: $5`.
    """
    expanded: dict[str, str] = {}

    def expansion(name: str, open_names: tuple[str, ...]) -> str:
        """The text of a variable. open_names: the variables whose expansion needs this one."""
        key_path = ("variables", name)
        if name in open_names:
            circle = " → ".join((*open_names[open_names.index(name) :], name))
            findings.add(
                ("variables", open_names[-1]),
                f"the variables refer to each other in a circle: {circle}",
                "In one of them, write the text instead of a variable",
            )
            return ""
        if name in expanded:
            return expanded[name]

        def replacement(match: re.Match[str]) -> str:
            if match["name"] is None:
                return "$"
            if not findings.is_known(key_path, "variable", match["name"], variables, "Variables"):
                return ""
            return expansion(match["name"], (*open_names, name))

        text = _DOLLAR.sub(replacement, variables[name])
        if len(text) > MAX_TEXT:
            problem = f"the variable expands to {len(text)} characters; the maximum is {MAX_TEXT}"
            findings.add(key_path, problem, "Use fewer variables in the text of this variable")
            text = ""
        expanded[name] = text
        return text

    for name in variables:
        expansion(name, ())
    return expanded

"""Grammars in JSGF: their words and public rules, with the lines that they stand in.

https://www.w3.org/TR/jsgf/ — what is read here is enough to name a word's line; the search itself reads the file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""(?P<skip>\s+|//[^\n]*|/\*.*?\*/|\{(?:\\.|[^}\\])*\}|/[\d.eE+-]+/)
      |(?P<header>\#JSGF[^;\n]*;?)
      |(?P<rule><[^>]*>)
      |(?P<mark>[=|*+()\[\];])
      |(?P<quoted>"(?:\\.|[^"\\])*")
      |(?P<word>[^\s=|*+()\[\];{}<>"/]+|.)""",
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class GrammarText:
    """name: of the grammar; words: (word, line) for every place of a word in a rule; public: names of public rules,
    without brackets; undefined: (rule, line) for rules that are used, are not built in, and stand nowhere."""

    name: str
    words: tuple[tuple[str, int], ...]
    public: tuple[str, ...]
    imports: bool
    undefined: tuple[tuple[str, int], ...]


def read_grammar(text: str) -> GrammarText:
    """Words, public rules and whether other grammars are imported; never fails (the search tells a broken grammar)."""
    words: list[tuple[str, int]] = []
    public: list[str] = []
    defined: set[str] = {"NULL", "VOID"}
    used: list[tuple[str, int]] = []
    statement: list[str] = []  # of the statement before its "="
    name = ""
    imports = inside = False
    line = 1
    for token in _TOKEN.finditer(text):
        kind, said = token.lastgroup, token[0]
        if said == ";":
            imports = imports or statement[:1] == ["import"]
            if statement[:1] == ["grammar"] and len(statement) > 1:
                name = statement[1]
            statement, inside = [], False
        elif said == "=" and not inside:
            inside = True
            rule = statement[-1].strip("<> ") if statement else ""
            defined.add(rule)
            if statement[:1] == ["public"] and len(statement) > 1:
                public.append(rule)
        elif kind in ("word", "quoted"):
            if inside:
                words += [(word, line) for word in said.strip('"').split()]
            else:
                statement.append(said)
        elif kind == "rule" and inside:
            used.append((said.strip("<> ").removeprefix(f"{name}."), line))
        elif kind == "rule":
            statement.append(said)
        line += said.count("\n")
    undefined = () if imports else tuple((rule, at) for rule, at in used if rule not in defined)
    return GrammarText(name, tuple(words), tuple(public), imports, undefined)

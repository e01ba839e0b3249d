"""Patterns of sentences as they are written: `[please] (turn|switch) on the {device=light} [in the {room}] <now>`."""

from __future__ import annotations

import re

from harness.understanding.grammar import Choice, Maybe, Part, Phrase, Sequence, SlotPart, Text

_TOKEN = re.compile(r"[][()|]|\{[^{}]*\}|<[^<>]*>|[^\s\][()|{}<>]+|\S")
_NAME = r"[A-Za-z0-9_.][A-Za-z0-9_.-]*"
_SLOT = re.compile(rf"\{{\s*({_NAME})\s*(?:=\s*({_NAME})\s*)?\}}")
_PHRASE = re.compile(rf"<\s*({_NAME})\s*>")
_CLOSING = {"[": "]", "(": ")"}
MOST_DEPTH = 12
REMEDY = "Write words, [what may be said], (one|or another), {concept}, {concept=list} and <phrase>"


def parse_pattern(text: str) -> Part:
    """The parts of a pattern; ValueError says what is wrong with it."""
    tokens = _TOKEN.findall(text)
    part, rest = _choice(tokens, 0, MOST_DEPTH)
    if rest < len(tokens):
        raise ValueError(f"{tokens[rest]!r} closes nothing")
    return part


def _choice(tokens: list[str], at: int, depth: int) -> tuple[Part, int]:
    """Up to what closes it, or the end."""
    if depth == 0:
        raise ValueError(f"brackets are nested more than {MOST_DEPTH} deep")
    options: list[Part] = []
    while True:
        option, at = _sequence(tokens, at, depth)
        options.append(option)
        if at < len(tokens) and tokens[at] == "|":
            at += 1
            continue
        return (options[0] if len(options) == 1 else Choice(tuple(options))), at


def _sequence(tokens: list[str], at: int, depth: int) -> tuple[Part, int]:
    parts: list[Part] = []
    words: list[str] = []

    def end_words() -> None:
        if words:
            parts.append(Text(tuple(words)))
            words.clear()

    while at < len(tokens) and tokens[at] not in ("|", "]", ")"):
        token = tokens[at]
        at += 1
        if token in _CLOSING:
            end_words()
            inner, at = _choice(tokens, at, depth - 1)
            if at == len(tokens) or tokens[at] != _CLOSING[token]:
                raise ValueError(f"a {token!r} is not closed")
            at += 1
            parts.append(Maybe(inner) if token == "[" else inner)
        elif slot := _SLOT.fullmatch(token):
            end_words()
            parts.append(SlotPart(slot[1], slot[2] or slot[1]))
        elif phrase := _PHRASE.fullmatch(token):
            end_words()
            parts.append(Phrase(phrase[1]))
        elif token[0] in "{}<>":
            raise ValueError(f"{token!r} is no slot and no phrase")
        else:
            words.append(token)
    end_words()
    if not parts:
        raise ValueError("a part is empty")
    return (parts[0] if len(parts) == 1 else Sequence(tuple(parts))), at

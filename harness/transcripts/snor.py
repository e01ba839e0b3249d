"""Transcriptions in .sro conventions, made into Standard Normal Orthographic Representation.

Source: ATIS Spontaneous Speech Recognition Scoring Conventions (NIST, 1990), seeds/atis-sro-snor.txt.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from operator import itemgetter
from typing import TypeAlias

from harness.model.errors import InputError, Place
from harness.transcripts.sro import (
    NOWHERE,
    EditEnd,
    EditStart,
    Event,
    Marker,
    Pause,
    Token,
    Word,
    refuse_nul,
    split_id,
    tokens,
)

_Slot: TypeAlias = "list[str | _Slot]"
"""Words, and places where the words of edit cues go."""


class Form(StrEnum):
    """What a line is converted to: Lexical SNOR (the official scoring), Expanded SNOR (diagnostics), the old .snr."""

    LEXICAL = "lsn"
    EXPANDED = "esn"
    SNR = "snr"


def convert(line: str, form: Form, place: Place = NOWHERE, *, place_edits: bool = False) -> str:
    """A line of .sro text, with its utterance id if it has one; InputError with line and column.

    place: of the line; columns in errors count from 1. place_edits: the words of `(n words)` go to the marker `(n)`
    before them, instead of staying in place.
    """
    if "\0" in line:
        refuse_nul(line, place)
    text, id_ = split_id(line)
    said = _text(text, form, place, place_edits)
    if not id_:
        return said
    return f"{said} ({id_.upper()})" if said else f"({id_.upper()})"


def words(text: str, form: Form = Form.LEXICAL, place: Place = NOWHERE, *, with_id: bool = True) -> tuple[str, ...]:
    """The words of a text in a form, without the utterance id if it has one; InputError.

    with_id: False for a text whose id was taken off before: a `(word)` at its end is then an error, as elsewhere.
    """
    refuse_nul(text, place)
    return tuple(_text(split_id(text)[0] if with_id else text, form, place, False).split())


def homophone(word: str) -> str:
    """What a word of Expanded SNOR sounds like: `<WHERE>` is WHERE. Every other word is itself."""
    if "<" not in word or ">" not in word:
        return word
    return word.replace("<", "").replace(">", "") or word


def _text(text: str, form: Form, place: Place, place_edits: bool) -> str:
    if not (place_edits and "(" in text):
        known = _KNOWN[form._value_]  # a member's own hash, and its `value`, are slow
        chunks = text.split()
        said: tuple[str | None, ...]
        # itemgetter looks all of them up in one go, but gives no tuple for one.
        said = itemgetter(*chunks)(known) if len(chunks) > 1 else tuple(map(known.__getitem__, chunks))
        if None not in said:
            return " ".join(filter(None, said))
        filled = list(said)
        if _fill_spans(chunks, filled, known):
            return " ".join(filter(None, filled))
    found = tokens(text, place)
    return " ".join(_placed(found, form) if place_edits else filter(None, (_said(one, form) for one in found)))


def _fill_spans(chunks: Sequence[str], said: list[str | None], known: _KnownChunks) -> bool:
    """Fills in what chunks say that a `<a b>` or a `(n a b)` spans; False where they are nested or something is wrong.

    A word in a span of `<…>` says what it says in brackets of its own; in an edit cue, what it says without them.
    """
    span = ""
    for index, chunk in enumerate(chunks):
        one = said[index]
        match span:
            case "<":
                if one is None:
                    one, span = known["<" + chunk], ""
                else:
                    one = known[f"<{chunk}>"]
            case "(" if one is None:
                one, span = known[chunk[:-1]] if chunk.endswith(")") else None, ""
            case "" if one is None:
                if chunk in _CUE_HEADS:
                    one, span = "", "("
                else:
                    one, span = known[chunk + ">"], "<"
            case _:
                pass
        if one is None:
            return False
        said[index] = one
    return not span


class _KnownChunks(dict[str, "str | None"]):
    """What a chunk between spaces says in a form, whatever stands around it; None if its brackets are not all closed.

    Speech has few different words, so that most chunks are looked up; what is kept is bounded.
    """

    MOST = 1 << 16
    LONGEST = 64  # characters: longer chunks are rare, and would make the bound one of chunks, not of memory

    def __init__(self, form: Form) -> None:
        super().__init__()
        self._form = form

    def __missing__(self, chunk: str) -> str | None:
        said: str | None
        try:
            said = " ".join(filter(None, (_said(one, self._form) for one in tokens(chunk))))
        except InputError:
            said = None  # another chunk may close its brackets; if not, the line as a whole tells the place
        if len(chunk) <= self.LONGEST:
            if len(self) >= self.MOST:
                self.clear()
            self[chunk] = said
        return said


_CUE_HEADS = frozenset(f"({number}" for number in range(1, 10))
_KNOWN = {form.value: _KnownChunks(form) for form in Form}


def _placed(found: Iterable[Token], form: Form) -> list[str]:
    """The words with those of every edit cue at the last free marker of its number, or in place without one."""
    root: _Slot = []
    current = root
    around: list[_Slot] = []
    free: dict[int, list[_Slot]] = {}
    for token in found:
        match token:
            case Marker(number):
                slot: _Slot = []
                current.append(slot)
                free.setdefault(number, []).append(slot)
            case EditStart(number):
                around.append(current)
                if free.get(number):
                    current = free[number].pop()
                else:
                    slot = []
                    current.append(slot)
                    current = slot
            case EditEnd():
                current = around.pop()
            case _:
                if said := _said(token, form):
                    current.append(said)
    out: list[str] = []
    left: list[str | _Slot] = [root]
    while left:
        top = left.pop()
        if isinstance(top, str):
            out.append(top)
        else:
            left.extend(reversed(top))
    return out


def _said(token: Token, form: Form) -> str:
    """The token in a form, "" where it has no place in it."""
    match token:
        case Word() as word:
            return _word(word, form)
        case Event(name) if form is Form.EXPANDED:
            return f"[{name.replace('*', '=').upper()}]"
        case Pause() if form is Form.EXPANDED:
            return "PAUSE"
        case _:
            return ""


def _word(word: Word, form: Form) -> str:
    if form is Form.EXPANDED:
        text = f"<{word.text}>" if word.deleted else word.text
        return f"{word.before}{text}{word.after}".replace("*", "=").upper()
    if word.deleted and form is Form.SNR:
        return ""
    bare = f"{word.before}{word.text}{word.after}".replace("*", "")
    return "" if bare.endswith("-") else bare.upper()

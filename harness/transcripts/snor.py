"""Transcriptions in .sro conventions, made into Standard Normal Orthographic Representation.

    <word>            deleted in speech            .               a pause, where it stands alone
    *word*            mispronounced                , ! ? :         marks, which are dropped
    [event]           sound other than speech      (n)             where edited words are meant to go
    (id)              at the end of a line         (n words)       words that belong to the marker (n)

A line is split into parts (brackets and texts between blanks). `_TokenReader` turns them into tokens, with a stack of
the open brackets. Then the tokens are written in a form. Frequent chunks are looked up instead (`_KnownChunks`).

Source: ATIS Spontaneous Speech Recognition Scoring Conventions (NIST, 1990).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from operator import itemgetter
from typing import NamedTuple, TypeAlias

from harness.model.errors import InputError, Place

NOWHERE = Place("<text>", 1)

_PART = re.compile(r"[<>\[\]()]|\s+|[^<>\[\]()\s]+")
_CUE = re.compile(r"\(\s*([1-9])(?=[\s<>\[\]()])\s*(\)?)")
_BRACKET = re.compile(r"[<>\[\]()]")
_MARK_SIGNS = frozenset(":,!?.")
_MARKS = str.maketrans("", "", "".join(_MARK_SIGNS))
_OPENER = {">": "<", "]": "[", ")": "("}
_CLOSER = {opener: closer for closer, opener in _OPENER.items()}
_BESIDE = frozenset("*=-")
"""Characters that may touch a `<word>` from outside without being a word: `<tr>-`, `*<does>*`."""


class SroWord(NamedTuple):
    """A word without its punctuation marks, but still with its stars.

    - deleted: whether it stood in `<…>`.
    - before, after: the characters that touched these brackets from outside.
    """

    text: str
    deleted: bool = False
    before: str = ""
    after: str = ""


class SroEvent(NamedTuple):
    """A non-speech event; its name is one token."""

    name: str


class SroPause(NamedTuple):
    """A pause, written as a full stop between spaces."""


class Marker(NamedTuple):
    """`(n)`: where edited words are meant to go."""

    number: int


class EditStart(NamedTuple):
    """The head of `(n words)`."""

    number: int


class EditEnd(NamedTuple):
    """The end of `(n words)`."""


Token = SroWord | SroEvent | SroPause | Marker | EditStart | EditEnd


def split_id(line: str) -> tuple[str, str]:
    """The text of a line, and its utterance id as written; "" if it has none.

    The id is a final `(X)`, where X is one token of two or more characters.
    """
    bare = line.rstrip()
    if not bare.endswith(")"):
        return line, ""
    start = bare.rfind("(")
    if start < 0:
        return line, ""
    parts = bare[start + 1 : -1].split()
    if len(parts) != 1 or len(parts[0]) < 2 or ")" in parts[0]:
        return line, ""
    return bare[:start], parts[0]


def tokens(text: str, place: Place = NOWHERE) -> list[Token]:
    """The tokens of a text without its utterance id.

    Raises InputError with line and column for brackets that do not match.

    place: where the text begins. Columns in errors count from its column, or from 1 if it has none.
    """
    if _BRACKET.search(text) is None:
        return [_token_of_chunk(chunk) for chunk in text.split() if chunk == "." or not _MARK_SIGNS.issuperset(chunk)]
    return _TokenReader(text, place).tokens()


def _token_of_chunk(chunk: str, deleted: bool = False) -> SroPause | SroWord:
    """The token of a chunk that touches no bracket. It contains more than marks, or is a single full stop."""
    return SroPause() if chunk == "." else SroWord(chunk.translate(_MARKS), deleted)


def refuse_nul(line: str, place: Place) -> None:
    """Raises InputError at a NUL character: the file is not text."""
    position = line.find("\0")
    if position >= 0:
        raise _error(
            "there is a NUL character here", "Remove the character, or check that this is a text file", place, position
        )


def _error(problem: str, remedy: str, place: Place, position: int) -> InputError:
    return InputError(problem, place=Place(place.file, place.line, max(place.column, 1) + position), remedy=remedy)


class _TokenReader:
    """Reads a text part by part. A chunk is the text between two spaces, events or round brackets."""

    def __init__(self, text: str, place: Place) -> None:
        self._text = text
        self._place = place
        self._tokens: list[Token] = []
        self._open: list[tuple[str, int]] = []  # the brackets that are open, each with its position
        self._chunk: list[tuple[str, bool]] = []  # its parts, each with whether it stands in `<…>`
        self._name: list[str] = []  # name of the event that is open
        self._deleted = False
        self._glued = False  # whether the chunk touches what precedes it

    def tokens(self) -> list[Token]:
        text, position = self._text, 0
        while position < len(text):
            match = _PART.match(text, position)
            assert match is not None  # every character belongs to one of the three kinds of part
            position = self._read_part(match.group(), position, match.end())
        self._end_chunk()
        if self._open:
            raise self._not_closed_error("at the end of the line")
        return self._tokens

    def _read_part(self, part: str, position: int, end: int) -> int:
        """Reads the part at `position`, which ends before `end`. Returns the position of the next part."""
        inside_event = bool(self._open) and self._open[-1][0] == "["
        if part in _OPENER:
            self._close_bracket(part, position)
        elif part in _CLOSER:
            if inside_event:
                raise self._not_closed_error(f"before the next {part!r}")
            return self._open_bracket(part, position, end)
        elif inside_event:
            if bare := part.translate(_MARKS).strip():
                self._name.append(bare)
        elif part.isspace():
            self._end_chunk()
        else:
            self._chunk.append((part, self._deleted))
        return end

    def _open_bracket(self, part: str, position: int, end: int) -> int:
        """Reads an opening bracket; a round one with its whole cue. Returns the position of the next part."""
        if part == "<":
            if self._deleted:
                # The error names the `<` that is still open, whatever was opened after it.
                while self._open[-1][0] != "<":
                    self._open.pop()
                raise self._not_closed_error("before the next '<'")
            self._deleted = True
        elif part == "[":
            self._end_chunk(touched=True)
            self._name = []
        else:
            return self._read_cue(position)
        self._open.append((part, position))
        return end

    def _read_cue(self, position: int) -> int:
        cue = _CUE.match(self._text, position)
        if cue is None:
            raise self._cue_error(position)
        number, marker = int(cue[1]), bool(cue[2])
        self._end_chunk(touched=True)
        if marker:
            self._tokens.append(Marker(number))
            self._glued = True
        else:
            self._tokens.append(EditStart(number))
            self._glued = False
            self._open.append(("(", position))
        return cue.end()

    def _close_bracket(self, part: str, position: int) -> None:
        opener = _OPENER[part]
        if not self._open or self._open[-1][0] != opener:
            if any(opener == open_sign for open_sign, _ in self._open):
                raise self._not_closed_error(f"before the {part!r} that encloses it")
            remedy = f"Add the matching {opener!r}, or remove the {part!r}"
            raise _error(f"there is a {part!r} without its {opener!r}", remedy, self._place, position)
        self._open.pop()
        if part == ">":
            self._deleted = False
            return
        if part == ")":
            self._end_chunk()
            self._tokens.append(EditEnd())
        elif self._name:
            self._tokens.append(SroEvent("_".join(self._name)))
        self._glued = True

    def _end_chunk(self, *, touched: bool = False) -> None:
        """Ends the chunk. touched: whether the next part follows without a space."""
        chunk, glued = self._chunk, self._glued or touched
        self._chunk, self._glued = [], False
        if len(chunk) == 1:
            part, deleted = chunk[0]
            if (part == "." and not glued) or not _MARK_SIGNS.issuperset(part):
                self._tokens.append(_token_of_chunk(part, deleted))
        elif chunk:
            self._tokens += _split_words(chunk)

    def _not_closed_error(self, location: str) -> InputError:
        part, position = self._open[-1]
        problem = f"the {part!r} is not closed {location}"
        return _error(problem, f"Add the matching {_CLOSER[part]!r}, or remove the {part!r}", self._place, position)

    def _cue_error(self, position: int) -> InputError:
        """The error for a round bracket that begins neither an edit cue nor the utterance id."""
        end = self._text.find(")", position)
        if end < 0:
            self._open.append(("(", position))
            return self._not_closed_error("at the end of the line")
        remedy = "A cue is (n) or (n words), n from 1 to 9; an id of two or more characters comes last on its line"
        return _error("this bracket is neither an edit cue nor the utterance id", remedy, self._place, position)


def _split_words(chunk: list[tuple[str, bool]]) -> Iterator[SroWord]:
    """The words of a chunk in which `<…>` touches other characters. Letters beside it are words of their own. chunk:
    parts of its text, each with whether it stood in `<…>`."""
    before = ""
    pending: SroWord | None = None  # a deleted word that may get something after it
    for part, deleted in chunk:
        bare = part.translate(_MARKS)
        if not bare:
            continue
        if deleted:
            if pending:
                yield pending
            pending, before = SroWord(bare, True, before), ""
        elif _BESIDE.issuperset(bare):
            if pending:
                pending = pending._replace(after=pending.after + bare)
            else:
                before += bare
        else:
            if pending:
                yield pending
            elif before:
                yield SroWord(before)
            pending, before = None, ""
            yield SroWord(bare)
    if pending:
        yield pending
    elif before:
        yield SroWord(before)


_Slot: TypeAlias = "list[str | _Slot]"
"""A place in the text for the words of an edit cue: words, and further such places."""


class SnorForm(StrEnum):
    """The form to which a line is converted: Lexical SNOR (for official scoring), Expanded SNOR (for diagnostics), or
    the old .snr."""

    LEXICAL = "lsn"
    EXPANDED = "esn"
    SNR = "snr"


def convert(line: str, form: SnorForm, place: Place = NOWHERE, *, place_edits: bool = False) -> str:
    """Converts a line of .sro text, with its utterance id if it has one. Raises InputError with line and column.

    - place: place of the line; columns in errors count from its column.
    - place_edits: whether the words of `(n words)` move to the marker `(n)` before them.
    """
    if "\0" in line:
        refuse_nul(line, place)
    text, id_ = split_id(line)
    converted = _converted_text(text, form, place, place_edits)
    if not id_:
        return converted
    return f"{converted} ({id_.upper()})" if converted else f"({id_.upper()})"


def words(
    text: str, form: SnorForm = SnorForm.LEXICAL, place: Place = NOWHERE, *, with_id: bool = True
) -> tuple[str, ...]:
    """The words of a text in a form, without the utterance id if it has one. Raises InputError.

    with_id: False for a text whose id was already removed. A `(word)` at its end is then an error, as elsewhere.
    """
    refuse_nul(text, place)
    return tuple(_converted_text(split_id(text)[0] if with_id else text, form, place, False).split())


def homophone(word: str) -> str:
    """The spoken form of a word of Expanded SNOR: `<WHERE>` is WHERE. Every other word is unchanged."""
    if "<" not in word or ">" not in word:
        return word
    return word.replace("<", "").replace(">", "") or word


def _converted_text(text: str, form: SnorForm, place: Place, place_edits: bool) -> str:
    """The text, without its utterance id, in a form. Chunks are looked up if possible; else all tokens are read."""
    if not (place_edits and "(" in text):
        chunk_texts = _KNOWN[form._value_]  # hashing an enum member, or reading its `value`, is slow
        chunks = text.split()
        texts: tuple[str | None, ...]
        # itemgetter looks all of them up at once, but does not return a tuple for a single one.
        texts = itemgetter(*chunks)(chunk_texts) if len(chunks) > 1 else tuple(map(chunk_texts.__getitem__, chunks))
        if None not in texts:
            return " ".join(filter(None, texts))
        filled = list(texts)
        if _fill_spans(chunks, filled, chunk_texts):
            return " ".join(filter(None, filled))
    token_list = tokens(text, place)
    return " ".join(
        _place_tokens(token_list, form)
        if place_edits
        else filter(None, (_token_text(token, form) for token in token_list))
    )


def _fill_spans(chunks: Sequence[str], texts: list[str | None], chunk_texts: _KnownChunks) -> bool:
    """Fills in the texts of chunks within a `<a b>` or a `(n a b)`. False if these are nested or anything is wrong.

    A word within a longer `<…>` has the same text as in brackets of its own; in an edit cue, the same as without
    brackets.
    """
    span = ""
    for index, chunk in enumerate(chunks):
        text = texts[index]
        match span:
            case "<":
                if text is None:
                    text, span = chunk_texts["<" + chunk], ""
                else:
                    text = chunk_texts[f"<{chunk}>"]
            case "(" if text is None:
                text, span = chunk_texts[chunk[:-1]] if chunk.endswith(")") else None, ""
            case "" if text is None:
                if chunk in _CUE_HEADS:
                    text, span = "", "("
                else:
                    text, span = chunk_texts[chunk + ">"], "<"
            case _:
                pass
        if text is None:
            return False
        texts[index] = text
    return not span


class _KnownChunks(dict[str, "str | None"]):
    """The text of a chunk between spaces in a form, whatever its neighbours; None if its brackets are not all closed.

    Speech has few different words, so most chunks can be looked up. The number of stored chunks is bounded.
    """

    MAX_CHUNKS = 1 << 16
    MAX_CHUNK_CHARS = 64  # longer chunks are rare; without this limit MAX_CHUNKS would not bound the memory

    def __init__(self, form: SnorForm) -> None:
        super().__init__()
        self._form = form

    def __missing__(self, chunk: str) -> str | None:
        text: str | None
        try:
            text = " ".join(filter(None, (_token_text(token, self._form) for token in tokens(chunk))))
        except InputError:
            text = None  # another chunk may close its brackets; if not, converting the whole line finds the place
        if len(chunk) <= self.MAX_CHUNK_CHARS:
            if len(self) >= self.MAX_CHUNKS:
                self.clear()
            self[chunk] = text
        return text


_CUE_HEADS = frozenset(f"({number}" for number in range(1, 10))
_KNOWN = {form.value: _KnownChunks(form) for form in SnorForm}


def _place_tokens(pieces: Iterable[Token], form: SnorForm) -> list[str]:
    """The words of the tokens. Those of each edit cue move to the last free marker of its number; without a marker,
    they stay in place."""
    root: _Slot = []
    current = root
    enclosing: list[_Slot] = []
    free: dict[int, list[_Slot]] = {}  # by number, the slots of markers that no cue has taken yet
    for token in pieces:
        match token:
            case Marker(number):
                slot: _Slot = []
                current.append(slot)
                free.setdefault(number, []).append(slot)
            case EditStart(number):
                enclosing.append(current)
                if free.get(number):
                    current = free[number].pop()
                else:
                    slot = []
                    current.append(slot)
                    current = slot
            case EditEnd():
                current = enclosing.pop()
            case _:
                if text := _token_text(token, form):
                    current.append(text)
    placed_words: list[str] = []
    stack: list[str | _Slot] = [root]
    while stack:
        word_or_slot = stack.pop()
        if isinstance(word_or_slot, str):
            placed_words.append(word_or_slot)
        else:
            stack.extend(reversed(word_or_slot))
    return placed_words


def _token_text(token: Token, form: SnorForm) -> str:
    """The token in a form; "" if the form leaves it out."""
    match token:
        case SroWord() as word:
            return _word_text(word, form)
        case SroEvent(name) if form is SnorForm.EXPANDED:
            return f"[{name.replace('*', '=').upper()}]"
        case SroPause() if form is SnorForm.EXPANDED:
            return "PAUSE"
        case _:
            return ""


def _word_text(word: SroWord, form: SnorForm) -> str:
    """The word in a form. Expanded SNOR has all words. The others leave out fragments, which end in a hyphen. The old
    .snr leaves out deleted words too."""
    if form is SnorForm.EXPANDED:
        text = f"<{word.text}>" if word.deleted else word.text
        return f"{word.before}{text}{word.after}".replace("*", "=").upper()
    if word.deleted and form is SnorForm.SNR:
        return ""
    bare = f"{word.before}{word.text}{word.after}".replace("*", "")
    return "" if bare.endswith("-") else bare.upper()

"""Reads texts with alternatives `{ a / b / @ }`, words that may be left out `(w)` and tags `w;tag` as word networks.

Source: NIST SCTK 2.4.10, sclite's reading of transcripts. It differs on purpose where sclite crashes or drops words in
silence: unbalanced braces, an alternative without a word, and a brace glued to the end of a word are errors here.
sclite also drops a final `*` and backslashes from words; here they stay, as they do in texts without marks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from harness.model.errors import InputError, Place
from harness.transcripts.readings import Piece, Readings, first, is_single

NOWHERE = Place("<text>", 1)
NOTHING = "@"
MAX_DEPTH = 100
MAX_WORDS = 50_000

_MARKS = "{}();@"
_MARKED = re.compile(r"[{};]|(?<!\S)@(?!\S)|(?<!\S)\(\S+\)(?!\S)")
_TAG = re.compile(r"(?<!\\);")
# Outside of braces a slash is a letter like others; within them it parts alternatives, even inside a word.
_OUTSIDE = re.compile(r"[{}]|[^\s{}]+")
_INSIDE = re.compile(r"[{}/]|[^\s{}/]+")


@dataclass(frozen=True, slots=True)
class Arc:
    """A word on its way from a node to the next.

    written: the word, with its brackets if it may be left out; "@" for nothing. bare: without the brackets. node: where
    the arc starts.
    """

    written: str
    bare: str
    node: int
    optional: bool = False
    nothing: bool = False


@dataclass(frozen=True, slots=True)
class Network:
    """A text as a network of words, from its first to its last.

    Arcs are numbered from 1 in the order of the text; 0 stands for the beginning. entering: of each node the arcs that
    lead to it, in the order of the text, which settles ties; the last node is the end.
    """

    arcs: tuple[Arc, ...]
    entering: tuple[tuple[int, ...], ...]
    place: Place = NOWHERE


def is_plain(text: str) -> bool:
    """True when a text has no mark of a network, so that splitting it at spaces is enough. Cheap."""
    # Signs are looked for one by one since that is many times faster than a search for any of them.
    return not any(sign in text for sign in _MARKS) or _MARKED.search(text) is None


def parse(text: str, normalise: Callable[[str], Readings], place: Place = NOWHERE) -> Network:
    """The network of a text; the words between two marks are normalised together, and may become more, fewer or none.

    An alternative of which nothing is left counts as `@`. place: of the text's first character, columns count from 1.
    InputError with line and column on braces that do not match or are glued to the word before them, alternatives
    without a word, braces within braces deeper than MAX_DEPTH, and more words than MAX_WORDS, all alternatives counted.
    """
    reader = _Reader(text, normalise, place)
    at = 0
    while found := (_INSIDE if reader.depth else _OUTSIDE).search(text, at):
        reader.take(found[0], found.start())
        at = found.end()
    return reader.finished()


def chain(pieces: Sequence[Piece], place: Place = NOWHERE) -> Network:
    """The network of words among which no sign is a mark, and of choices between readings.

    InputError when they are more than MAX_WORDS.
    """
    reader = _Reader("", lambda _: (), place)
    reader.add_pieces(pieces)
    return reader.finished()


def _too_many(place: Place) -> InputError:
    what = f"more than {MAX_WORDS} words, all alternatives counted, in a text with marks or fragments"
    return InputError(what, place=place, remedy="Split the utterance into shorter ones")


@dataclass(slots=True)
class _Alternation:
    """Braces that are open. node: where each alternative starts. ends: the arcs that end the finished ones."""

    node: int
    column: int
    ends: list[int] = field(default_factory=list)
    empty: bool = True


class _Reader:
    """Builds a network token by token. ends: the arcs that lead to where the reader stands, before it is a node."""

    def __init__(self, text: str, normalise: Callable[[str], Readings], place: Place) -> None:
        self._text, self._normalise, self._place = text, normalise, place
        self._arcs: list[Arc] = []
        self._entering: list[tuple[int, ...]] = []
        self._ends: list[int] = [0]
        self._node: int | None = None
        self._open: list[_Alternation] = []
        self._run: tuple[int, int] | None = None

    @property
    def depth(self) -> int:
        return len(self._open)

    def take(self, token: str, start: int) -> None:
        """The next token of the text: a brace, a slash within braces, or a word."""
        match token:
            case "{":
                self._begin(start)
            case "}":
                self._close(start)
            case "/" if self._open:
                self._end_alternative(start)
                self._node = self._open[-1].node
                self._open[-1].empty = True
            case _:
                if self._open:
                    self._open[-1].empty = False
                self._word(token, start)

    def finished(self) -> Network:
        """The whole network; InputError if braces are still open."""
        self._end_run()
        if self._open:
            raise self._error("an alternation `{` is never closed", self._open[-1].column, "Add its `}`")
        self._here()
        return Network(tuple(self._arcs), tuple(self._entering), self._place)

    def _begin(self, start: int) -> None:
        self._end_run()
        before = self._text[start - 1 : start]
        if before and not before.isspace() and before not in ("{}/" if self._open else "}"):
            raise self._error("a `{` is glued to the word before it", start, "Put a space before the `{`")
        if self.depth == MAX_DEPTH:
            what = f"alternations lie more than {MAX_DEPTH} deep in each other"
            raise self._error(what, start, "List the alternatives side by side: { a / b / c }")
        if self._open:
            self._open[-1].empty = False
        self._open.append(_Alternation(self._here(), start))

    def _close(self, start: int) -> None:
        if not self._open:
            self._end_run()
            raise self._error("a `}` closes nothing", start, "Remove it, or add the `{` that it belongs to")
        self._end_alternative(start)
        self._node, self._ends = None, self._open.pop().ends

    def _end_alternative(self, start: int) -> None:
        self._end_run()
        alternation = self._open[-1]
        if alternation.empty:
            raise self._error("an alternative has no word", start, "Write @ for nothing, or remove it")
        if self._node is not None:
            self._add(NOTHING, NOTHING, nothing=True)
        alternation.ends += self._ends

    def _word(self, token: str, start: int) -> None:
        text = _TAG.split(token, maxsplit=1)[0] or token
        optional = len(text) > 2 and text[0] == "(" and text[-1] == ")"
        if not optional and text == token and token != NOTHING:
            self._run = (self._run[0] if self._run else start, start + len(token))
            return
        self._end_run()
        text = text.replace("\\;", ";")
        if text == NOTHING:
            self._add(NOTHING, NOTHING, nothing=True)
        elif not optional:
            self._add_words(text, start)
        else:
            pieces = self._normalised(text, start)
            if not is_single(pieces):
                self.add_pieces(pieces)
                return
            written, bare = first(pieces), first(self._normalised(text[1:-1], start + 1))
            if len(written) != len(bare):
                written = bare
            for word, inner in zip(written, bare, strict=True):
                self._add(word, inner, optional=True)

    def _end_run(self) -> None:
        if self._run:
            start, end = self._run
            self._run = None
            self._add_words(self._text[start:end].replace("\\;", ";"), start)

    def _add_words(self, text: str, start: int) -> None:
        self.add_pieces(self._normalised(text, start))

    def add_pieces(self, pieces: Sequence[Piece]) -> None:
        """Words, and choices between readings as alternatives."""
        for piece in pieces:
            if isinstance(piece, str):
                self._add(piece, piece)
                continue
            node, ends = self._here(), []
            for reading in piece:
                self._node = node
                for word in reading or (NOTHING,):
                    self._add(word, word, nothing=not reading)
                ends += self._ends
            self._node, self._ends = None, ends

    def _normalised(self, text: str, start: int) -> Readings:
        try:
            return self._normalise(text)
        except InputError as error:
            within = max(error.place.column, 1) - 1 if error.place else 0
            raise self._error(error.what, start + within, error.remedy) from error

    def _add(self, written: str, bare: str, *, optional: bool = False, nothing: bool = False) -> None:
        if len(self._arcs) == MAX_WORDS:
            raise _too_many(self._place)
        self._arcs.append(Arc(written, bare, self._here(), optional, nothing))
        self._node, self._ends = None, [len(self._arcs)]

    def _here(self) -> int:
        if self._node is None:
            self._entering.append(tuple(self._ends))
            self._node = len(self._entering) - 1
        return self._node

    def _error(self, what: str, start: int, remedy: str) -> InputError:
        column = max(self._place.column, 1) + start
        return InputError(what, place=Place(self._place.file, self._place.line, column), remedy=remedy)

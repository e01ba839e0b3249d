"""Texts of which a part has several readings, and what two of them have in common.

A piece is a word, or a choice between readings; a reading may have several words, or none.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Sequence, Set
from itertools import chain
from typing import cast

from harness.model.transcript import Rewriting

# An apostrophe or a full stop inside a word binds it ("what's", "a.m."); other punctuation parts words. The sign comes
# first, since a search for it is many times faster than one for what stands before it.
_BINDING = re.compile(r"'(?<=\w')(?=\w)|\.(?<=[^\W\d]\.)(?=[^\W\d])")


def lower(text: str) -> str:
    """In lower case, with one sign for each letter and one apostrophe."""
    return split_numbers(text).lower().replace("’", "'")


def split_numbers(text: str) -> str:
    """With one sign for each letter, numbers in one sign (½, ², ①) apart from what they are glued to.

    Zero-width signs, soft hyphens and marks of direction vanish: they part no words.
    """
    if text.isascii():
        return text
    signs = {sign: unicodedata.category(sign) for sign in set(text)}
    table = {
        ord(sign): "" if category == "Cf" else f" {unicodedata.normalize('NFKC', sign)} "
        for sign, category in signs.items()
        if category in ("Cf", "No")
    }
    return unicodedata.normalize("NFKC", text.translate(table) if table else text)


def plain(text: str) -> str:
    """The words of a text in lower case with spaces or line ends between, any number of them."""
    text = lower(text)
    if "'" in text or "." in text:
        text = _BINDING.sub("", text)
    return text.translate(_MARKS)


def plain_texts(texts: Sequence[str]) -> list[str]:
    """Many texts at once, one for one, as words with single spaces between."""
    joined = plain("\n".join(texts))
    # A line end within a text parts words as a space does.
    lines = joined.split("\n") if joined.count("\n") == len(texts) - 1 else map(plain, texts)
    return [" ".join(line.split()) for line in lines]


class _SignReplacements(dict[int, int | None]):
    """What a sign becomes: punctuation, symbols and controls a space, NUL nothing; a line end stays."""

    def __missing__(self, point: int) -> int:
        sign = self[point] = ord(" ") if unicodedata.category(chr(point))[0] in "PSCZ" else point
        return sign


_MARKS = _SignReplacements({0: None, ord("\n"): ord("\n")})


Words = tuple[str, ...]
Choice = tuple[Words, ...]
Piece = str | Choice
Readings = tuple[Piece, ...]

MOST_STATES = 4096
"""More ways into a text than any that is said has."""


def options(piece: Piece) -> Choice:
    """The readings of a piece; a word has one."""
    return ((piece,),) if isinstance(piece, str) else piece


def choice(readings: Iterable[str]) -> Readings:
    """The pieces of a part that is read in any of these ways; the first is how it is shown."""
    alternatives = tuple(tuple(reading.split()) for reading in dict.fromkeys(readings))
    return alternatives[0] if len(alternatives) == 1 else (alternatives,)


def first(pieces: Readings) -> Words:
    """The words that stand for a text where one reading is shown."""
    if is_single(pieces):
        return cast("Words", pieces)
    return tuple(chain.from_iterable(options(piece)[0] for piece in pieces))


def is_single(pieces: Readings) -> bool:
    """Whether there is only one reading."""
    return tuple not in map(type, pieces)


def without(pieces: Readings, start: Readings) -> Readings | None:
    """The pieces after those that can be read as some reading of `start`; None where they do not begin so."""
    if is_single(start) and is_single(pieces[: len(start)]):
        return pieces[len(start) :] if pieces[: len(start)] == start else None
    ends = {after for after, rest in _reach(pieces, start) if not rest}
    return pieces[max(ends) :] if ends else None


def _reach(pieces: Readings, start: Readings) -> set[tuple[int, Words]]:
    """Where in `pieces` one may be after all of `start`: the number of whole pieces, and words left of a reading."""
    states: set[tuple[int, Words]] = {(0, ())}
    for piece in start:
        states = set(chain.from_iterable(_after(pieces, state, words) for state in states for words in options(piece)))
        if not states or len(states) > MOST_STATES:
            return set()
    return states


def _after(pieces: Readings, state: tuple[int, Words], words: Words) -> set[tuple[int, Words]]:
    """The states that the words lead to."""
    states = {state}
    for word in words:
        next_states: set[tuple[int, Words]] = set()
        for number, rest in _open(pieces, states):
            if rest[0] == word:
                next_states.add((number, rest[1:]))
        states = next_states
    return states


def _open(pieces: Readings, states: Collection[tuple[int, Words]]) -> set[tuple[int, Words]]:
    """The states with a word to come next."""
    open_states: set[tuple[int, Words]] = set()
    waiting = list(states)
    while waiting:
        number, rest = waiting.pop()
        if rest:
            open_states.add((number, rest))
        elif number < len(pieces):
            waiting += [(number + 1, words) for words in options(pieces[number])]
    return open_states


def same(pieces: Readings, others: Readings) -> bool:
    """Whether the two have a reading in common."""
    if is_single(pieces) and is_single(others):
        return pieces == others
    return any(not rest and _may_end(pieces[number:]) for number, rest in _reach(pieces, others))


def _may_end(pieces: Readings) -> bool:
    return all(not isinstance(piece, str) and () in piece for piece in pieces)


def spaced_alike(pieces: Readings, others: Readings, separate_words: Set[str]) -> tuple[Readings, Readings]:
    """Both, with words that one writes as one and the other as two, such as lightbulb, in either way.

    separate_words: words that are never part of another, such as those of numerals.
    """
    return _join(pieces, others, separate_words), _join(others, pieces, separate_words)


def narrow(pieces: Readings, others: Readings) -> Readings:
    """The pieces without the readings, but for the first of each, that have no word in common with the other text."""
    if is_single(pieces):
        return pieces
    other_words = {word for piece in others for reading in options(piece) for word in reading}
    out: list[Piece] = []
    for piece in pieces:
        if isinstance(piece, str):
            out.append(piece)
            continue
        shown, *rest = piece
        remaining = [
            reading
            for reading in rest
            if other_words.issuperset(reading) or not other_words.isdisjoint(set(reading).difference(shown))
        ]
        out += ((shown, *remaining),) if remaining else shown
    return tuple(out)


def resolved_readings(pieces: Readings, words: Words) -> Readings:
    """The pieces with the first reading of each that stands in `words` as it is, else with its first."""
    lengths = {len(reading) for piece in pieces if not isinstance(piece, str) for reading in piece}
    runs: set[Words] = set()
    for length in lengths:
        runs.update(zip(*(words[start:] for start in range(length)), strict=False))
    out: list[str] = []
    for piece in pieces:
        out += next((reading for reading in options(piece) if reading in runs), options(piece)[0])
    return tuple(out)


def _solid(piece: Piece) -> str:
    """A word, also one that may be spelled letter by letter; else ""."""
    if isinstance(piece, str):
        return piece
    shown, other = piece[0], piece[1]
    return shown[0] if len(piece) == 2 and len(shown) == 1 and "".join(other) == shown[0] else ""


def _join(pieces: Readings, others: Readings, separate_words: Set[str]) -> Readings:
    whole = {word for word in set(map(_solid, others)).difference(pieces) if len(word) > 3 and word.isalpha()}
    if not whole:
        return pieces
    out: list[Piece] = []
    for piece in pieces:
        last = out[-1] if out else ""
        if (
            isinstance(piece, str)
            and isinstance(last, str)
            and last + piece in whole
            and not {last, piece} & separate_words
        ):
            out[-1] = ((last, piece), (last + piece,))
        else:
            out.append(piece)
    return tuple(out)


MOST_WAYS = 256
"""Ways through choices that are tried at one place; numerals have a few dozen."""


def rewrite(pieces: Sequence[Piece], rewriting: Rewriting) -> Readings:
    """The words after the list: from left to right, the longest phrase that fits, each word once.

    pieces: words normalised by the rewriting's base, and choices between readings, any of which a phrase may fit. The
    time grows with the number of words and the longest phrase, not with the number of pairs.
    """
    out: list[Piece] = []
    position = 0
    while position < len(pieces):
        piece = pieces[position]
        if phrase := _phrase_at(pieces, position, rewriting):
            meaning, position = phrase
            out += meaning
            continue
        position += 1
        if isinstance(piece, str):
            out.append(piece)
        else:
            out.append(tuple(_words(rewrite(reading, rewriting)) for reading in piece))
    return tuple(out)


def _phrase_at(pieces: Sequence[Piece], position: int, rewriting: Rewriting) -> tuple[tuple[str, ...], int] | None:
    """What the longest phrase counts as that some reading of the next pieces is, and where it ends; None for none."""
    first_words = [words[0] for words in options(pieces[position]) if words and words[0] in rewriting.lengths]
    longest = max((rewriting.lengths[word][0] for word in first_words), default=0)
    best: tuple[int, tuple[str, ...], int] | None = None
    ways: list[tuple[str, ...]] = [()] if longest else []
    while ways and position < len(pieces):
        ways = [
            way + reading for way in ways for reading in options(pieces[position]) if len(way) + len(reading) <= longest
        ][:MOST_WAYS]
        position += 1
        for way in ways:
            meaning = rewriting.meanings.get(way)
            if meaning is not None and (best is None or len(way) > best[0]):
                best = len(way), meaning, position
    return best[1:] if best else None


def _words(pieces: Readings) -> tuple[str, ...]:
    return tuple(piece for piece in pieces if isinstance(piece, str))

"""Texts of which a part has several readings, and what two of them have in common.

A piece is a word, or a choice between readings; a reading may have several words, or none.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Sequence, Set
from itertools import chain, pairwise
from typing import cast

from harness.model.transcript import Rewriting

# An apostrophe or a full stop inside a word belongs to it ("what's", "a.m."); other punctuation separates words. The
# expression begins with the mark itself, since searching for that is many times faster than for what precedes it.
_INNER_MARK = re.compile(r"'(?<=\w')(?=\w)|\.(?<=[^\W\d]\.)(?=[^\W\d])")


def lower(text: str) -> str:
    """The text in lower case, with one character for each letter and one kind of apostrophe."""
    return split_numbers(text).lower().replace("’", "'")


def split_numbers(text: str) -> str:
    """The text with one character for each letter. Numbers in one character (½, ², ①) are spelt out, and separated from
    the words that they touch.

    Zero-width characters, soft hyphens and marks of direction are removed: they do not separate words.
    """
    if text.isascii():
        return text
    table: dict[int, str] = {}
    for character in set(text):
        match unicodedata.category(character):
            case "Cf":  # format characters, such as those of zero width
                table[ord(character)] = ""
            case "No":  # numbers other than digits
                table[ord(character)] = f" {unicodedata.normalize('NFKC', character)} "
    return unicodedata.normalize("NFKC", text.translate(table) if table else text)


def plain(text: str) -> str:
    """The words of a text in lower case, with any number of spaces or line ends between."""
    text = lower(text)
    if "'" in text or "." in text:
        text = _INNER_MARK.sub("", text)
    return text.translate(_REPLACEMENTS)


def plain_texts(texts: Sequence[str]) -> list[str]:
    """The words of many texts, each as one text with single spaces between. Far quicker than one by one."""
    joined = plain("\n".join(texts))
    # A line end within a text separates words as a space does.
    lines = joined.split("\n") if joined.count("\n") == len(texts) - 1 else map(plain, texts)
    return [" ".join(line.split()) for line in lines]


class _CharacterReplacements(dict[int, int | None]):
    """The character that replaces another, for str.translate: punctuation, symbols and controls become a space.

    The first look-up of a character stores its replacement.
    """

    def __missing__(self, point: int) -> int:
        character = self[point] = ord(" ") if unicodedata.category(chr(point))[0] in "PSCZ" else point
        return character


_REPLACEMENTS = _CharacterReplacements({0: None, ord("\n"): ord("\n")})


Words = tuple[str, ...]
Choice = tuple[Words, ...]
Piece = str | Choice
Readings = tuple[Piece, ...]

MAX_STATES = 4096
"""Most states that are followed when two texts are compared; no text that a person says has more."""


def options(piece: Piece) -> Choice:
    """The readings of a piece; a word has one."""
    return ((piece,),) if isinstance(piece, str) else piece


def choice(readings: Iterable[str]) -> Readings:
    """The pieces of a part of a text that has these readings. The first is the one that is shown."""
    alternatives = tuple(tuple(reading.split()) for reading in dict.fromkeys(readings))
    return alternatives[0] if len(alternatives) == 1 else (alternatives,)


def first_reading(pieces: Readings) -> Words:
    """The words of a text in the first reading of each choice, as they are shown."""
    if is_single(pieces):
        return cast("Words", pieces)
    words: list[str] = []
    for piece in pieces:
        words += (piece,) if isinstance(piece, str) else piece[0]
    return tuple(words)


def is_single(pieces: Readings) -> bool:
    """Whether a text has only one reading."""
    return tuple not in map(type, pieces)  # faster than `all` with isinstance


def without_beginning(pieces: Readings, start: Readings) -> Readings | None:
    """The pieces that are left after a beginning that can be read as `start`; None if they do not begin so."""
    if is_single(start) and is_single(pieces[: len(start)]):
        return pieces[len(start) :] if pieces[: len(start)] == start else None
    ends = {after for after, words_left in _reachable_states(pieces, start) if not words_left}
    return pieces[max(ends) :] if ends else None


def _reachable_states(pieces: Readings, start: Readings) -> set[tuple[int, Words]]:
    """The states in `pieces` that are possible after all of `start`. A state is the number of finished pieces, and the
    words that are left of a reading of the next."""
    states: set[tuple[int, Words]] = {(0, ())}
    for piece in start:
        states = set(
            chain.from_iterable(_next_states(pieces, state, words) for state in states for words in options(piece))
        )
        if not states or len(states) > MAX_STATES:
            return set()
    return states


def _next_states(pieces: Readings, state: tuple[int, Words], words: Words) -> set[tuple[int, Words]]:
    """The states to which the words lead from a state; empty if the pieces cannot be read so."""
    states = {state}
    for word in words:
        next_states: set[tuple[int, Words]] = set()
        for number, words_left in _advance_to_words(pieces, states):
            if words_left[0] == word:
                next_states.add((number, words_left[1:]))
        states = next_states
    return states


def _advance_to_words(pieces: Readings, states: Collection[tuple[int, Words]]) -> set[tuple[int, Words]]:
    """The states, advanced until each begins with a word. States at the end of the text are dropped."""
    open_states: set[tuple[int, Words]] = set()
    waiting = list(states)
    while waiting:
        number, words_left = waiting.pop()
        if words_left:
            open_states.add((number, words_left))
        elif number < len(pieces):
            waiting += [(number + 1, words) for words in options(pieces[number])]
    return open_states


def have_common_reading(pieces: Readings, others: Readings) -> bool:
    """Whether two texts have a reading in common."""
    if is_single(pieces) and is_single(others):
        return pieces == others
    return any(not words_left and _may_end(pieces[number:]) for number, words_left in _reachable_states(pieces, others))


def _may_end(pieces: Readings) -> bool:
    """Whether all pieces may be read as nothing."""
    return all(not isinstance(piece, str) and () in piece for piece in pieces)


def with_both_spacings(pieces: Readings, others: Readings, separate_words: Set[str]) -> tuple[Readings, Readings]:
    """Both texts, with both spellings of words that one writes as one word and the other as two, such as lightbulb.

    separate_words: words that are never part of another word, such as those of numerals.
    """
    words, other_words = first_reading(pieces), first_reading(others)
    if not (_writes_as_one(other_words, words) or _writes_as_one(words, other_words)):
        return pieces, others  # as nearly always
    return _join_split_words(pieces, others, separate_words), _join_split_words(others, pieces, separate_words)


def _writes_as_one(words: Words, others: Words) -> bool:
    """Whether one of the words is two words in a row of the other text."""
    joined_pairs = {word + next_word for word, next_word in pairwise(others)}
    return not joined_pairs.isdisjoint(words)


def narrow(pieces: Readings, others: Readings) -> Readings:
    """The pieces without those readings that cannot match the other text better than the first reading of their choice.
    The first reading always stays.

    A reading matches better if it has further words of the other text, or some and fewer words that the other lacks.
    """
    if is_single(pieces):
        return pieces
    choices = [piece for piece in others if not isinstance(piece, str)]
    other_words = {*first_reading(others), *chain.from_iterable(chain.from_iterable(choices))}

    def count_alone(reading: Words) -> int:
        return sum(word not in other_words for word in reading)

    new_pieces: list[Piece] = []
    for piece in pieces:
        if isinstance(piece, str):
            new_pieces.append(piece)
            continue
        shown, *others_of_choice = piece
        remaining = [
            reading
            for reading in others_of_choice
            if other_words.issuperset(reading)
            or not other_words.isdisjoint(set(reading).difference(shown))
            or count_alone(reading) < min(len(reading), count_alone(shown))
        ]
        new_pieces += ((shown, *remaining),) if remaining else shown
    return tuple(new_pieces)


def resolve_readings(pieces: Readings, words: Words) -> Readings:
    """The pieces without choices: of each, the first reading that occurs in `words`; if none does, the first one."""
    lengths = {len(reading) for piece in pieces if not isinstance(piece, str) for reading in piece}
    runs: set[Words] = set()
    for length in lengths:
        runs.update(zip(*(words[start:] for start in range(length)), strict=False))
    words_out: list[str] = []
    for piece in pieces:
        words_out += next((reading for reading in options(piece) if reading in runs), options(piece)[0])
    return tuple(words_out)


def _as_one_word(piece: Piece) -> str:
    """The piece as one word, also if it may be spelled letter by letter; "" if it is not one word."""
    if isinstance(piece, str):
        return piece
    shown, other = piece[0], piece[1]
    return shown[0] if len(piece) == 2 and len(shown) == 1 and "".join(other) == shown[0] else ""


def _join_split_words(pieces: Readings, others: Readings, separate_words: Set[str]) -> Readings:
    """The pieces, with a choice for each two words in a row that `others` writes as one word of at least four
    letters."""
    whole = {word for word in set(map(_as_one_word, others)).difference(pieces) if len(word) > 3 and word.isalpha()}
    if not whole:
        return pieces
    new_pieces: list[Piece] = []
    for piece in pieces:
        last = new_pieces[-1] if new_pieces else ""
        if (
            isinstance(piece, str)
            and isinstance(last, str)
            and last + piece in whole
            and not {last, piece} & separate_words
        ):
            new_pieces[-1] = ((last, piece), (last + piece,))
        else:
            new_pieces.append(piece)
    return tuple(new_pieces)


MAX_READINGS = 256
"""Most ways through choices that are tried at one place; numerals have a few dozen."""


def rewrite(pieces: Sequence[Piece], rewriting: Rewriting) -> Readings:
    """Replaces the phrases of a rewriting list. From left to right, the longest phrase that fits is replaced, and its
    result is not replaced again.

    pieces: words normalised by the base of the rewriting, and choices, of which any reading may fit a phrase. The time
    grows with the number of words and the longest phrase, not with the number of pairs in the list.
    """
    new_pieces: list[Piece] = []
    position = 0
    while position < len(pieces):
        piece = pieces[position]
        if phrase := _phrase_at(pieces, position, rewriting):
            meaning, position = phrase
            new_pieces += meaning
            continue
        position += 1
        if isinstance(piece, str):
            new_pieces.append(piece)
        else:
            new_pieces.append(tuple(_only_words(rewrite(reading, rewriting)) for reading in piece))
    return tuple(new_pieces)


def _phrase_at(pieces: Sequence[Piece], position: int, rewriting: Rewriting) -> tuple[tuple[str, ...], int] | None:
    """The replacement of the longest phrase that some reading of the next pieces fits, and the position after it. None
    if no phrase fits."""
    first_words = [words[0] for words in options(pieces[position]) if words and words[0] in rewriting.lengths]
    longest = max((rewriting.lengths[word][0] for word in first_words), default=0)
    best: tuple[int, tuple[str, ...], int] | None = None
    ways: list[tuple[str, ...]] = [()] if longest else []
    while ways and position < len(pieces):
        ways = [
            way + reading for way in ways for reading in options(pieces[position]) if len(way) + len(reading) <= longest
        ][:MAX_READINGS]
        position += 1
        for way in ways:
            meaning = rewriting.meanings.get(way)
            if meaning is not None and (best is None or len(way) > best[0]):
                best = len(way), meaning, position
    return best[1:] if best else None


def _only_words(pieces: Readings) -> tuple[str, ...]:
    return tuple(piece for piece in pieces if isinstance(piece, str))

"""The utterances of a scoring that only networks can align: with alternatives, fragments, or several readings."""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from harness.model.choices import Marks
from harness.model.errors import InputError, Place
from harness.model.transcript import AlignedWord, Edit, Transcripts
from harness.transcripts import snor
from harness.transcripts.alignment import align, side_by_side
from harness.transcripts.network_text import NOWHERE, Arc, Network, chain, is_plain, parse
from harness.transcripts.readings import Readings, first, is_single, settled
from harness.transcripts.words import Wording, refuse

__all__ = ["MAX_CELLS", "NOWHERE", "Network", "align_networks", "align_readings", "chain", "is_plain", "parse"]

Same = Callable[[str, str], bool]

SUBSTITUTION, MISSING, OPTIONAL, NOTHING, BOTH_NOTHING = 4.0, 3.0, 2.0, 0.001, 1.0
MAX_CELLS = 25_000_000
"""5,000 by 5,000 words: seconds, and some 300 MB."""
MAX_READ = 1_000_000
_ENDLESS = float("inf")


def align_networks(
    reference: Network,
    hypothesis: Network,
    same: Same | None = None,
    *,
    optional_words: bool = False,
    fragments: bool = False,
) -> tuple[AlignedWord, ...]:
    """The words of the cheapest way through both, side by side.

    same: whether two words count as one (None: equality). optional_words: a word `(w)` that was left out is correct
    (sclite's -D); in the hypothesis, one that was added is correct too, with no reference. Without it `(w)` is a word
    whose brackets count. fragments: a fragment `sho-` or `-ow` is correct against a word that begins or ends so
    (sclite's -F). InputError when reference times hypothesis has more than MAX_CELLS pairs of words.
    """
    words = len(reference.arcs), len(hypothesis.arcs)
    if (words[0] + 1) * (words[1] + 1) > MAX_CELLS:
        raise InputError(
            f"{words[0]} by {words[1]} words, all alternatives counted, are too many to align: "
            f"more than {MAX_CELLS:,} pairs",
            place=reference.place,
            remedy="Split the utterance into shorter ones",
        )
    of = _side(reference, optional_words, fragments)
    said = _side(hypothesis, optional_words, fragments)
    return _Alignment(of, said, same).path()


def align_readings(reference: Readings, hypothesis: Readings) -> tuple[AlignedWord, ...]:
    """Texts without marks side by side, in the readings that make it cheapest.

    Of long texts, more than MAX_READ pairs of words, each reading is settled by whether the other text has its words
    side by side anywhere, so that they are aligned as any others.
    """
    if not (is_single(reference) and is_single(hypothesis)):
        of, said = chain(reference), chain(hypothesis)
        if len(of.arcs) * len(said.arcs) <= MAX_READ:
            return align_networks(of, said)
        reference = settled(reference, first(hypothesis))
        hypothesis = settled(hypothesis, first(reference))
    of_words, said_words = first(reference), first(hypothesis)
    return side_by_side(of_words, said_words, align(of_words, said_words))


@dataclass(frozen=True, slots=True)
class _Word:
    """A word as it is compared and shown. absent: the cost of having it on one side only."""

    text: str
    shown: str
    absent: float
    nothing: bool = False
    fragment: bool = False

    @property
    def optional(self) -> bool:
        return self.absent == OPTIONAL


@dataclass(frozen=True, slots=True)
class _Side:
    """A network made ready. words: by number, the 0th being the beginning. nodes: where each word starts."""

    words: list[_Word]
    nodes: list[int]
    entering: tuple[tuple[int, ...], ...]

    def before(self, word: int) -> tuple[int, ...]:
        return self.entering[self.nodes[word]]


def _side(network: Network, optional_words: bool, fragments: bool) -> _Side:
    beginning = _Word("", "", 0.0)
    return _Side(
        [beginning, *(_word(arc, optional_words, fragments) for arc in network.arcs)],
        [0, *(arc.node for arc in network.arcs)],
        network.entering,
    )


def _word(arc: Arc, optional_words: bool, fragments: bool) -> _Word:
    if arc.nothing:
        return _Word(arc.written, arc.written, NOTHING, nothing=True)
    if arc.optional and optional_words:
        # A bracket hides the hyphen of `(-ow)` from sclite, but not that of `(sho-)`.
        return _Word(arc.bare, f"({arc.bare})", OPTIONAL, fragment=fragments and arc.bare.endswith("-"))
    cut = fragments and (arc.written.startswith("-") or arc.written.endswith("-"))
    return _Word(arc.written, arc.written, MISSING, fragment=cut)


def _single(cost: float) -> float:
    return array("f", (cost,))[0]


def _least(costs: Sequence[float], numbers: tuple[int, ...]) -> float:
    return costs[numbers[0]] if len(numbers) == 1 else min([costs[number] for number in numbers])


class _Alignment:
    """The table of costs of two networks: a row for each word of the reference, a column for each of the hypothesis."""

    def __init__(self, of: _Side, said: _Side, same: Same | None) -> None:
        self._of, self._said, self._same = of, said, same
        self._columns: dict[_Word, list[int]] = {}
        for column, word in enumerate(said.words):
            if column:
                self._columns.setdefault(word, []).append(column)
        self._by_text: dict[str, list[_Word]] = {}
        for word in self._columns:
            self._by_text.setdefault(word.text, []).append(word)
        self._loose = same is not None or any(word.fragment for word in (*of.words, *said.words))
        self._rows: list[array[float]] = []
        # The least of each row at each node of the hypothesis.
        self._at_nodes: list[array[float]] = []
        self._absent = [word.absent for word in said.words]
        self._in_line = len(said.entering) == len(said.words) and all(len(numbers) == 1 for numbers in said.entering)
        self._fill()

    def _fill(self) -> None:
        width, nodes = len(self._said.words), len(self._said.entering)
        self._add_row(0.0, [_ENDLESS] * width, [_ENDLESS] * nodes, [0.0] * width, 0.0)
        paired: dict[_Word, list[float]] = {}
        merged: dict[int, tuple[Sequence[float], Sequence[float]]] = {}
        for number, word in enumerate(self._of.words[1:], 1):
            node = self._of.nodes[number]
            entering = self._of.entering[node]
            above: Sequence[float]
            at_nodes: Sequence[float]
            if len(entering) == 1:
                above, at_nodes = self._rows[entering[0]], self._at_nodes[entering[0]]
            else:
                if node not in merged:
                    merged[node] = (
                        array("f", map(min, *(self._rows[row] for row in entering))),
                        array("f", map(min, *(self._at_nodes[row] for row in entering))),
                    )
                above, at_nodes = merged[node]
            if word not in paired:
                paired[word] = self._paired(word)
            self._add_row(above[0] + word.absent, above, at_nodes, paired[word], word.absent)

    def _add_row(
        self, first: float, above: Sequence[float], diagonal: Sequence[float], paired: list[float], absent: float
    ) -> None:
        """A row by the row above it and that row's least at each node. Storing a cost rounds it to single precision."""
        row = array("f", (first,))
        columns = zip(self._said.nodes, above, paired, self._absent, strict=True)
        next(columns)
        if self._in_line:
            # The only word before the next node is the one just seen.
            for node, up, pair, missing in columns:
                cost = diagonal[node] + pair
                up += absent
                if up < cost:
                    cost = up
                left = row[node] + missing
                row.append(left if left < cost else cost)
            self._rows.append(row)
            self._at_nodes.append(row)
            return
        entering = self._said.entering
        at_nodes = array("f", (first,))
        reached = 0
        for node, up, pair, missing in columns:
            if node > reached:
                at_nodes.extend([_least(row, numbers) for numbers in entering[reached + 1 : node + 1]])
                reached = node
            cost = diagonal[node] + pair
            up += absent
            if up < cost:
                cost = up
            left = at_nodes[node] + missing
            row.append(left if left < cost else cost)
        at_nodes.extend([_least(row, numbers) for numbers in entering[reached + 1 :]])
        self._rows.append(row)
        self._at_nodes.append(at_nodes)

    def _paired(self, word: _Word) -> list[float]:
        """The cost of a word of the reference against each of the hypothesis."""
        costs = [SUBSTITUTION] * len(self._said.words)
        for other in self._columns if self._loose else self._by_text.get(word.text, ()):
            cost = self._substitution(word, other)
            if cost != SUBSTITUTION:
                for column in self._columns[other]:
                    costs[column] = cost
        return costs

    def _substitution(self, word: _Word, other: _Word) -> float:
        if word.nothing and other.nothing:
            return BOTH_NOTHING
        return 0.0 if self._equal(word, other) else SUBSTITUTION

    def _equal(self, word: _Word, other: _Word) -> bool:
        if word.fragment or other.fragment:
            for part, whole in ((word.text, other.text), (other.text, word.text)):
                if len(part) > 1 and part.startswith("-"):
                    return whole.endswith(part[1:])
                if len(part) > 1 and part.endswith("-"):
                    return whole.startswith(part[:-1])
        if word.text == other.text:
            return True
        return self._same is not None and not word.nothing and not other.nothing and self._same(word.text, other.text)

    def path(self) -> tuple[AlignedWord, ...]:
        """The way back from the ends, turned round."""
        steps: list[AlignedWord] = []
        row, column = self._first_least(self._of.entering[-1], self._said.entering[-1])
        while row or column:
            last = row, column
            row, column = self._back(row, column)
            step = self._step(last[0] if row != last[0] else 0, last[1] if column != last[1] else 0)
            if step is not None:
                steps.append(step)
        return tuple(reversed(steps))

    def _first_least(self, rows: tuple[int, ...], columns: tuple[int, ...]) -> tuple[int, int]:
        """The first of the cheapest cells, the reference's order before the hypothesis's."""
        if len(rows) == len(columns) == 1:
            return rows[0], columns[0]
        return min(product(rows, columns), key=lambda cell: self._rows[cell[0]][cell[1]])

    def _back(self, row: int, column: int) -> tuple[int, int]:
        """The cell before, on the cheapest way."""
        if not row:
            return self._first_least((0,), self._said.before(column))
        if not column:
            return self._first_least(self._of.before(row), (0,))
        word, other = self._of.words[row], self._said.words[column]
        both = self._first_least(self._of.before(row), self._said.before(column))
        left_out = self._first_least(self._of.before(row), (column,))
        added = self._first_least((row,), self._said.before(column))
        substitution = _single(self._cost(both) + self._substitution(word, other))
        deletion = _single(self._cost(left_out) + word.absent)
        insertion = _single(self._cost(added) + other.absent)
        if substitution <= deletion and substitution <= insertion:
            return both
        return left_out if deletion < insertion else added

    def _cost(self, cell: tuple[int, int]) -> float:
        return self._rows[cell[0]][cell[1]]

    def _step(self, row: int, column: int) -> AlignedWord | None:
        """A step over a word of each side, or of one (0: none of the other); nothing left out is no step."""
        word, other = self._of.words[row], self._said.words[column]
        if not column:
            edit = Edit.CORRECT if word.optional else Edit.DELETION
            return None if word.nothing else AlignedWord(edit, word.shown, "")
        if not row:
            edit = Edit.CORRECT if other.optional else Edit.INSERTION
            return None if other.nothing else AlignedWord(edit, "", other.shown)
        if word.nothing and other.nothing:
            return None
        edit = Edit.CORRECT if self._equal(word, other) else Edit.SUBSTITUTION
        return AlignedWord(edit, word.shown, other.shown)


TextNetworks = Mapping[int, tuple[AlignedWord, ...]]
_FRAGMENT = re.compile(r"(?:^|\s)-\S|\S-(?:\s|$)")


def aligned_networks(
    references: Transcripts,
    hypotheses: Transcripts,
    shown: tuple[Sequence[str], Sequence[str]],
    wording: Wording,
    *,
    optional_words: bool,
    fragments: bool,
) -> TextNetworks:
    """By their row, the pairs that only networks can align, aligned; InputError with a place where one is not closed.

    shown: the normalised texts, which count where no marks are read.
    """
    read = wording.reads_marks
    of = _File(references, shown[0], wording, read[0], Marks.NONE)
    said = _File(hypotheses, shown[1], wording, read[1], Marks.REFERENCE)
    rows: set[int] = set()
    for side in (of, said):
        rows |= _rows(side.texts, lambda text: not is_plain(text)) if side.marked else set()
        rows |= _rows(side.texts, lambda text: _FRAGMENT.search(text) is not None) if fragments else set()
    same = _same_sound if wording.has_homophones else None
    found = _read_apart(of, said, rows) if wording.has_readings else {}
    problems: list[InputError] = []
    for row in sorted(rows):
        try:
            found[row] = align_networks(
                of.network(row), said.network(row), same, optional_words=optional_words, fragments=fragments
            )
        except InputError as error:
            problems.append(error)
    refuse(problems)
    return found


@dataclass(frozen=True, slots=True)
class _File:
    """The texts of one file. marked: whether marks are read in them. unread: how none would be."""

    transcripts: Transcripts
    normalised: Sequence[str]
    wording: Wording
    marked: bool
    unread: Marks

    def readings(self, row: int) -> Readings:
        """Of a text in which no marks are read."""
        if self.wording.has_readings:
            return self.wording.readings(self.transcripts.texts[row])
        return tuple(self.normalised[row].split())

    @property
    def texts(self) -> Sequence[str]:
        return self.transcripts.texts if self.marked else self.normalised

    def network(self, row: int) -> Network:
        place, text = Place(self.transcripts.file, self.transcripts.lines[row]), self.transcripts.texts[row]
        if not self.marked:
            return chain(self.readings(row), place)
        try:
            return parse(text, self.wording.readings, place)
        except InputError as error:
            remedy = f"{error.remedy}; or read no marks here: --marks {self.unread.value}"
            raise InputError(error.what, place=error.place, remedy=remedy) from error


def _read_apart(of: _File, said: _File, marked: set[int]) -> dict[int, tuple[AlignedWord, ...]]:
    """By their row, pairs without marks of which the first readings differ, and others may not, aligned."""
    from harness.transcripts.spoken_words import comparable  # here, since its lists take a while to read

    found: dict[int, tuple[AlignedWord, ...]] = {}
    for row, (words, heard) in enumerate(zip(of.normalised, said.normalised, strict=True)):
        if words != heard and words and heard and row not in marked:
            pieces = comparable(of.readings(row), said.readings(row))
            if not all(map(is_single, pieces)):
                found[row] = align_readings(*pieces)
    return found


def _rows(texts: Sequence[str], found: Callable[[str], bool]) -> set[int]:
    """Rows that a mark is found in; all of them are looked at as one text first, since most files have none."""
    if not found("\n".join(texts)):
        return set()
    return {row for row, text in enumerate(texts) if found(text)}


def _same_sound(word: str, other: str) -> bool:
    return snor.homophone(word) == snor.homophone(other)

"""Aligns texts for which a sequence of words is not enough: with alternatives, fragments or several readings.

Such a text is a network of words, aligned as sclite does it. Marks are alternatives `{ a / b / @ }`, optional words
`(w)` and tags `w;tag`. Unbalanced braces, an alternative without a word, and a brace at the end of a word are errors
here; sclite crashes or drops words. A final `*` and backslashes are parts of a word.

A cell of the table stands for a word of the reference's network and one of the hypothesis's. It holds the least cost of
any path that ends with both. Weights: correct 0, substitution 4, insertion and deletion 3. The weight of an optional
word is 2, of nothing (`@`) 0.001, and of nothing against nothing 1. Ties on the way back go to the first word in the
order of the text, in the reference before the hypothesis. Then a substitution is taken if it costs no more than both
others, and a deletion only if it is cheaper than an insertion. Costs are added in single precision, since ties depend
on it.
Source: NIST SCTK 2.4.10, sclite.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableSequence, Sequence
from dataclasses import dataclass, field
from itertools import product, takewhile

from harness.base.grouping import group_by
from harness.model.errors import InputError, Place
from harness.model.frozen import frozen
from harness.model.transcript import AlignedWord, Edit
from harness.transcripts.alignment import align, side_by_side
from harness.transcripts.readings import Piece, Readings, first_reading, is_single, resolve_readings
from harness.transcripts.snor import NOWHERE

NOTHING = "@"
MAX_DEPTH = 100
"""Most braces that may be open at once."""
MAX_WORDS = 50_000
"""Most words of a network, counting all alternatives."""

_MARKS = "{}();@"
_MARKED = re.compile(r"[{};]|(?<!\S)@(?!\S)|(?<!\S)\(\S+\)(?!\S)")
_TAG = re.compile(r"(?<!\\);")
# Outside of braces a slash is a character like any other; within them it separates alternatives, even inside a word.
_OUTSIDE = re.compile(r"[{}]|[^\s{}]+")
_INSIDE = re.compile(r"[{}/]|[^\s{}/]+")


@frozen
class Arc:
    """A word that leads from one node of a network to the next.

    written: the word, with its brackets if it is optional; "@" for nothing. bare: the word without the brackets. node:
    number of the node where the arc starts.
    """

    written: str
    bare: str
    node: int
    is_optional: bool = False
    is_nothing: bool = False


@frozen
class WordNetwork:
    """A text as a network of words: every way from the first node to the last is a way to read it.

    Arcs are numbered from 1 in the order of the text; 0 stands for the beginning. entering: for each node, the numbers
    of the arcs that lead to it, in the order of the text, which decides ties. The last node is the end. place: where
    the text begins.
    """

    arcs: tuple[Arc, ...]
    entering: tuple[tuple[int, ...], ...]
    place: Place = NOWHERE


def is_plain(text: str) -> bool:
    """Whether a text has no marks of a network, so that splitting it at spaces is enough. Quick."""
    # Searching for one character after the other is many times faster than searching for any of them.
    return not any(mark in text for mark in _MARKS) or _MARKED.search(text) is None


def parse(text: str, normalise: Callable[[str], Readings], place: Place = NOWHERE) -> WordNetwork:
    """The network of a text. The words between two marks are normalised together, and may become more, fewer or none.

    An alternative that becomes empty counts as `@`. place: place of the text's first character; columns count from 1.
    InputError with line and column: unmatched braces, a brace without a space before it, an alternative without a word.
    Also for braces nested deeper than MAX_DEPTH, and for more than MAX_WORDS words in all alternatives.
    """
    builder = _NetworkBuilder(text, normalise, place)
    position = 0
    while match := (_INSIDE if builder.depth else _OUTSIDE).search(text, position):
        builder.add_token(match[0], match.start())
        position = match.end()
    return builder.finish()


def chain(pieces: Sequence[Piece], place: Place = NOWHERE) -> WordNetwork:
    """The network of words and of choices between readings. No character in the words is a mark.

    InputError for more than MAX_WORDS words.
    """
    builder = _NetworkBuilder("", lambda _: (), place)
    builder.add_pieces(pieces)
    return builder.finish()


@dataclass(slots=True)
class _Alternation:
    """Braces that are open. node: node at which every alternative starts. column: where the brace opened. ends: last
    arcs of the finished alternatives. empty: whether the current alternative has no word yet."""

    node: int
    column: int
    ends: list[int] = field(default_factory=list)
    empty: bool = True


class _NetworkBuilder:
    """Builds a network token by token. `add_token` adds the next token; `finish` returns the network."""

    def __init__(self, text: str, normalise: Callable[[str], Readings], place: Place) -> None:
        self._text, self._normalise, self._place = text, normalise, place
        self._arcs: list[Arc] = []
        self._entering: list[tuple[int, ...]] = []
        # Numbers of the arcs that lead to the next node, and that node, once something begins there.
        self._ends: list[int] = [0]
        self._node: int | None = None
        self._open: list[_Alternation] = []
        # Begin and end of the plain words since the last mark, which are normalised together.
        self._run: tuple[int, int] | None = None

    @property
    def depth(self) -> int:
        """Number of open braces."""
        return len(self._open)

    def add_token(self, token: str, start: int) -> None:
        """Adds the next token of the text: a brace, a slash within braces, or a word. start: its index in the text."""
        match token:
            case "{":
                self._open_braces(start)
            case "}":
                self._close_braces(start)
            case "/" if self._open:
                self._end_alternative(start)
                self._node = self._open[-1].node
                self._open[-1].empty = True
            case _:
                if self._open:
                    self._open[-1].empty = False
                self._add_word(token, start)

    def finish(self) -> WordNetwork:
        """The whole network; InputError if braces are still open."""
        self._end_run()
        if self._open:
            raise self._error("an alternation `{` is never closed", self._open[-1].column, "Add the matching `}`")
        self._current_node()
        return WordNetwork(tuple(self._arcs), tuple(self._entering), self._place)

    def _open_braces(self, start: int) -> None:
        self._end_run()
        before = self._text[start - 1 : start]
        if before and not before.isspace() and before not in ("{}/" if self._open else "}"):
            raise self._error("a `{` is attached to the word before it", start, "Put a space before the `{`")
        if self.depth == MAX_DEPTH:
            problem = f"alternations are nested more than {MAX_DEPTH} deep"
            raise self._error(problem, start, "List the alternatives side by side: { a / b / c }")
        if self._open:
            self._open[-1].empty = False
        self._open.append(_Alternation(self._current_node(), start))

    def _close_braces(self, start: int) -> None:
        if not self._open:
            self._end_run()
            raise self._error("a `}` closes nothing", start, "Remove the `}`, or add the matching `{`")
        self._end_alternative(start)
        self._node, self._ends = None, self._open.pop().ends

    def _end_alternative(self, start: int) -> None:
        self._end_run()
        alternation = self._open[-1]
        if alternation.empty:
            raise self._error("an alternative has no word", start, "Use @ for nothing, or remove the alternative")
        if self._node is not None:  # all words of the alternative were normalised away
            self._add(NOTHING, NOTHING, is_nothing=True)
        alternation.ends += self._ends

    def _add_word(self, token: str, start: int) -> None:
        """Adds a word to the run of plain words; one with a mark (`w;tag`, `(w)` or `@`) ends the run."""
        text = _TAG.split(token, maxsplit=1)[0] or token
        is_optional = len(text) > 2 and text[0] == "(" and text[-1] == ")"
        if not is_optional and text == token and token != NOTHING:
            self._run = (self._run[0] if self._run else start, start + len(token))
            return
        self._end_run()
        text = text.replace("\\;", ";")
        if text == NOTHING:
            self._add(NOTHING, NOTHING, is_nothing=True)
        elif not is_optional:
            self.add_pieces(self._normalise_text(text, start))
        else:
            # Normalised with and without its brackets, since only some comparisons count it as optional.
            pieces = self._normalise_text(text, start)
            if not is_single(pieces):
                self.add_pieces(pieces)
                return
            bracketed, bare = first_reading(pieces), first_reading(self._normalise_text(text[1:-1], start + 1))
            if len(bracketed) != len(bare):  # a normalisation has removed or split off the brackets
                bracketed = bare
            for word, inner in zip(bracketed, bare, strict=True):
                self._add(word, inner, is_optional=True)

    def _end_run(self) -> None:
        """Normalises and adds the plain words since the last mark."""
        if self._run:
            start, end = self._run
            self._run = None
            self.add_pieces(self._normalise_text(self._text[start:end].replace("\\;", ";"), start))

    def add_pieces(self, pieces: Sequence[Piece]) -> None:
        """Adds words, and choices between readings as alternatives."""
        for piece in pieces:
            if isinstance(piece, str):
                self._add(piece, piece)
                continue
            node, ends = self._current_node(), []
            for reading in piece:
                self._node = node
                for word in reading or (NOTHING,):
                    self._add(word, word, is_nothing=not reading)
                ends += self._ends
            self._node, self._ends = None, ends

    def _normalise_text(self, text: str, start: int) -> Readings:
        try:
            return self._normalise(text)
        except InputError as error:
            within = max(error.place.column, 1) - 1 if error.place else 0
            raise self._error(error.what, start + within, error.remedy) from error

    def _add(self, word: str, bare: str, *, is_optional: bool = False, is_nothing: bool = False) -> None:
        """Adds an arc from the current node; see `Arc`."""
        if len(self._arcs) == MAX_WORDS:
            problem = f"a text with marks or fragments has more than {MAX_WORDS:,} words, counting all alternatives"
            raise InputError(problem, place=self._place, remedy="Split the utterance into shorter ones")
        self._arcs.append(Arc(word, bare, self._current_node(), is_optional, is_nothing))
        self._node, self._ends = None, [len(self._arcs)]

    def _current_node(self) -> int:
        """The node at which the next arc starts. It is created if the last arcs lead to it."""
        if self._node is None:
            self._entering.append(tuple(self._ends))
            self._node = len(self._entering) - 1
        return self._node

    def _error(self, problem: str, start: int, remedy: str) -> InputError:
        column = max(self._place.column, 1) + start
        return InputError(problem, place=Place(self._place.file, self._place.line, column), remedy=remedy)


IsSame = Callable[[str, str], bool]

SUBSTITUTION, GAP, OPTIONAL, ALONE_NOTHING, BOTH_NOTHING = 4.0, 3.0, 2.0, 0.001, 1.0  # As in sclite.
MAX_CELLS = 25_000_000
"""Most pairs of words of two networks. 5,000 by 5,000 words take seconds, and some 300 MB."""
MAX_CELLS_WITH_READINGS = 1_000_000
"""With more pairs of words, readings are chosen before the texts are aligned."""
_INFINITE = float("inf")


def align_networks(
    reference: WordNetwork,
    hypothesis: WordNetwork,
    is_same: IsSame | None = None,
    *,
    optional_words: bool = False,
    fragments: bool = False,
) -> tuple[AlignedWord, ...]:
    """The words of the cheapest way through both, side by side.

    - is_same: whether two words count as equal; None for plain equality.
    - optional_words: a word `(w)` of the reference that was left out is correct (sclite's -D). In the hypothesis, one
      that was added is correct too, without a reference. If False, `(w)` is a word, and its brackets belong to it.
    - fragments: a fragment `sho-` or `-ow` is correct against a word that begins or ends so (sclite's -F).

    InputError as from `check_cells`.
    """
    check_cells(len(reference.arcs), len(hypothesis.arcs), reference.place)
    reference_side = NetworkSide.of(reference, optional_words, fragments)
    hypothesis_side = NetworkSide.of(hypothesis, optional_words, fragments)
    return NetworkAlignment(reference_side, hypothesis_side, is_same).path()


def check_cells(words: int, others: int, place: Place) -> None:
    """InputError if networks of this many words have more than MAX_CELLS pairs of words."""
    if (words + 1) * (others + 1) > MAX_CELLS:
        pairs = f"{words} by {others} words, counting all alternatives"
        problem = f"{pairs}, are too many to align: more than {MAX_CELLS:,} pairs"
        raise InputError(problem, place=place, remedy="Split the utterance into shorter ones")


def align_readings(reference: Readings, hypothesis: Readings) -> tuple[AlignedWord, ...]:
    """The words of two texts without marks side by side, in the readings that make the alignment cheapest.

    In texts of more than MAX_CELLS_WITH_READINGS pairs of words, readings are chosen first: of each choice, a reading
    that occurs anywhere in the other text.
    """
    if not (is_single(reference) and is_single(hypothesis)):
        if _total_words(reference) * _total_words(hypothesis) <= MAX_CELLS_WITH_READINGS:
            return _align_window(reference, hypothesis)
        reference = resolve_readings(reference, first_reading(hypothesis))
        hypothesis = resolve_readings(hypothesis, first_reading(reference))
    reference_words, hypothesis_words = first_reading(reference), first_reading(hypothesis)
    return side_by_side(reference_words, hypothesis_words, align(reference_words, hypothesis_words))


def _total_words(pieces: Readings) -> int:
    """Number of words of a text in all its readings together. An empty reading counts as one."""
    return sum(1 if isinstance(piece, str) else sum(len(reading) or 1 for reading in piece) for piece in pieces)


def _align_window(reference: Readings, hypothesis: Readings) -> tuple[AlignedWord, ...]:
    """Like `align_networks`, but aligns only the window between the words that both have at their beginning and end.

    A common end is correct word by word, since a step onto equal words never costs more than another. So is a common
    beginning, unless the window begins with an insertion or a deletion. Ties then decide which words before it match.
    All costs except those of nothing are whole numbers, so rounding does not matter.
    """
    if any(() in piece for piece in (*reference, *hypothesis) if not isinstance(piece, str)):
        return align_networks(chain(reference), chain(hypothesis))
    end = _common_words(reversed(reference), reversed(hypothesis))
    window, heard = reference[: len(reference) - end], hypothesis[: len(hypothesis) - end]
    start = _common_words(window, heard)
    steps = align_networks(chain(window[start:]), chain(heard[start:]))
    if start and steps and steps[0].edit in (Edit.DELETION, Edit.INSERTION):
        start, steps = 0, align_networks(chain(window), chain(heard))
    before, after = reference[:start], reference[len(reference) - end :]
    return (*_correct_words(before), *steps, *_correct_words(after))


def _common_words(pieces: Iterable[Piece], others: Iterable[Piece]) -> int:
    """Number of words with which both begin, before the first choice."""
    pairs = zip(pieces, others, strict=False)
    return sum(1 for _ in takewhile(lambda pair: isinstance(pair[0], str) and pair[0] == pair[1], pairs))


def _correct_words(words: Readings) -> Iterator[AlignedWord]:
    return (AlignedWord(Edit.CORRECT, word, word) for word in words if isinstance(word, str))


@frozen
class NetworkWord:
    """A word of a network. text: for comparing. shown: for people. gap_cost: the cost if only one side has the word."""

    text: str
    shown: str
    gap_cost: float
    is_nothing: bool = False
    is_fragment: bool = False

    @property
    def is_optional(self) -> bool:
        return self.gap_cost == OPTIONAL


@frozen
class NetworkSide:
    """A network, prepared for alignment. words: by number; number 0 is the beginning. nodes: node at which each word
    starts. entering: as in WordNetwork."""

    words: list[NetworkWord]
    nodes: list[int]
    entering: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, network: WordNetwork, optional_words: bool, fragments: bool) -> NetworkSide:
        words = [_network_word(arc, optional_words, fragments) for arc in network.arcs]
        return cls([NetworkWord("", "", 0.0), *words], [0, *(arc.node for arc in network.arcs)], network.entering)

    def before(self, word: int) -> tuple[int, ...]:
        """The numbers of the words that may precede a word."""
        return self.entering[self.nodes[word]]


def _network_word(arc: Arc, optional_words: bool, fragments: bool) -> NetworkWord:
    if arc.is_nothing:
        return NetworkWord(arc.written, arc.written, ALONE_NOTHING, is_nothing=True)
    if arc.is_optional and optional_words:
        # sclite does not see the hyphen of `(-ow)` because of the bracket, but does see that of `(sho-)`.
        return NetworkWord(arc.bare, f"({arc.bare})", OPTIONAL, is_fragment=fragments and arc.bare.endswith("-"))
    is_fragment = fragments and (arc.written.startswith("-") or arc.written.endswith("-"))
    return NetworkWord(arc.written, arc.written, GAP, is_fragment=is_fragment)


def _single(cost: float) -> float:
    """The cost, rounded to single precision."""
    return array("f", (cost,))[0]


def _least(costs: Sequence[float], numbers: tuple[int, ...]) -> float:
    """The least of the costs with these numbers."""
    return costs[numbers[0]] if len(numbers) == 1 else min([costs[number] for number in numbers])


Costs = MutableSequence[float]


def _single_precision(costs: Iterable[float]) -> Costs:
    return array("f", costs)


class NetworkAlignment:
    """The table of costs of two networks: a row for each word of the reference, a column for each of the hypothesis."""

    whole_substitutions = True
    """Whether the cost of a substitution is a whole number, if neither word is nothing."""

    def __init__(self, reference: NetworkSide, hypothesis: NetworkSide, is_same: IsSame | None) -> None:
        self._reference, self.hypothesis, self._is_same = reference, hypothesis, is_same
        self.columns = group_by((word, column) for column, word in enumerate(hypothesis.words) if column)
        self._by_text = group_by((word.text, word) for word in self.columns)
        # Whether words with different texts may be equal.
        self._may_equal_another_text = is_same is not None or any(
            word.is_fragment for word in (*reference.words, *hypothesis.words)
        )
        self._rows: list[Costs] = []
        # For each row, the least cost at each node of the hypothesis.
        self._at_nodes: list[Costs] = []
        # Sums of whole numbers need no rounding.
        whole = self.whole_substitutions and all(
            word.gap_cost.is_integer() for word in (*reference.words, *hypothesis.words)
        )
        self._to_costs: Callable[[Iterable[float]], Costs] = list if whole else _single_precision
        self._gap_costs = [word.gap_cost for word in hypothesis.words]
        # Whether the hypothesis has no alternatives, so that each word follows the one before it.
        self._is_linear = len(hypothesis.entering) == len(hypothesis.words) and all(
            len(numbers) == 1 for numbers in hypothesis.entering
        )
        self._fill()

    def _fill(self) -> None:
        """Fills the table. Equal words share their costs of pairing, and nodes their least costs of the rows above."""
        width, nodes = len(self.hypothesis.words), len(self.hypothesis.entering)
        self._add_row(0.0, [_INFINITE] * width, [_INFINITE] * nodes, [0.0] * width, 0.0)
        pairing_costs: dict[NetworkWord, list[float]] = {}
        merged: dict[int, tuple[Sequence[float], Sequence[float]]] = {}
        for number, word in enumerate(self._reference.words[1:], 1):
            node = self._reference.nodes[number]
            entering = self._reference.entering[node]
            above: Sequence[float]
            at_nodes: Sequence[float]
            if len(entering) == 1:
                above, at_nodes = self._rows[entering[0]], self._at_nodes[entering[0]]
            else:
                if node not in merged:
                    merged[node] = (
                        self._to_costs(map(min, *(self._rows[row] for row in entering))),
                        self._to_costs(map(min, *(self._at_nodes[row] for row in entering))),
                    )
                above, at_nodes = merged[node]
            if word not in pairing_costs:
                pairing_costs[word] = self.pairing_costs(word)
            self._add_row(above[0] + word.gap_cost, above, at_nodes, pairing_costs[word], word.gap_cost)

    def _add_row(
        self,
        first_cost: float,
        above: Sequence[float],
        diagonal: Sequence[float],
        pairing_costs: list[float],
        gap_cost: float,
    ) -> None:
        """Adds a row, from the rows above it. Storing a cost rounds it to single precision.

        above: the least costs at each word of the hypothesis. diagonal: those at each of its nodes. gap_cost: the cost
        of leaving out the word of this row.
        """
        row = self._to_costs((first_cost,))
        columns = zip(self.hypothesis.nodes, above, pairing_costs, self._gap_costs, strict=True)
        next(columns)
        if self._is_linear:
            # The only word before the next node is the one just seen.
            for node, up, pair, missing in columns:
                cost = diagonal[node] + pair
                up += gap_cost
                if up < cost:
                    cost = up
                left = row[node] + missing
                row.append(left if left < cost else cost)
            self._rows.append(row)
            self._at_nodes.append(row)
            return
        entering = self.hypothesis.entering
        at_nodes = self._to_costs((first_cost,))
        reached = 0
        for node, up, pair, missing in columns:
            while node > reached:
                reached += 1
                at_nodes.append(_least(row, entering[reached]))
            cost = diagonal[node] + pair
            up += gap_cost
            if up < cost:
                cost = up
            left = at_nodes[node] + missing
            row.append(left if left < cost else cost)
        at_nodes.extend([_least(row, numbers) for numbers in entering[reached + 1 :]])
        self._rows.append(row)
        self._at_nodes.append(at_nodes)

    def pairing_costs(self, word: NetworkWord) -> list[float]:
        """The costs of pairing a word of the reference with each word of the hypothesis."""
        costs = [SUBSTITUTION] * len(self.hypothesis.words)
        for other in self.columns if self._may_equal_another_text else self._by_text.get(word.text, ()):
            cost = self.substitution_cost(word, other)
            if cost != SUBSTITUTION:
                for column in self.columns[other]:
                    costs[column] = cost
        return costs

    def substitution_cost(self, word: NetworkWord, other: NetworkWord) -> float:
        if word.is_nothing and other.is_nothing:
            return BOTH_NOTHING
        return 0.0 if self.are_equal(word, other) else SUBSTITUTION

    def are_equal(self, word: NetworkWord, other: NetworkWord) -> bool:
        """Whether two words count as equal. A fragment only needs to be a beginning or an end of the other word."""
        if word.is_fragment or other.is_fragment:
            for part, whole in ((word.text, other.text), (other.text, word.text)):
                if len(part) > 1 and part.startswith("-"):
                    return whole.endswith(part[1:])
                if len(part) > 1 and part.endswith("-"):
                    return whole.startswith(part[:-1])
        if word.text == other.text:
            return True
        return (
            self._is_same is not None
            and not word.is_nothing
            and not other.is_nothing
            and self._is_same(word.text, other.text)
        )

    def path(self) -> tuple[AlignedWord, ...]:
        """The words side by side: the way back from the ends, in reverse."""
        steps: list[AlignedWord] = []
        row, column = self._cheapest_cell(self._reference.entering[-1], self.hypothesis.entering[-1])
        while row or column:
            last = row, column
            row, column = self._previous_cell(row, column)
            step = self._step(last[0] if row != last[0] else 0, last[1] if column != last[1] else 0)
            if step is not None:
                steps.append(step)
        return tuple(reversed(steps))

    def _cheapest_cell(self, rows: tuple[int, ...], columns: tuple[int, ...]) -> tuple[int, int]:
        """The first of the cheapest cells, by the order of the reference, then that of the hypothesis."""
        if len(rows) == len(columns) == 1:
            return rows[0], columns[0]
        return min(product(rows, columns), key=lambda cell: self._rows[cell[0]][cell[1]])

    def _previous_cell(self, row: int, column: int) -> tuple[int, int]:
        """The previous cell on the cheapest way."""
        if not row:
            return self._cheapest_cell((0,), self.hypothesis.before(column))
        if not column:
            return self._cheapest_cell(self._reference.before(row), (0,))
        word, other = self._reference.words[row], self.hypothesis.words[column]
        pair = self._cheapest_cell(self._reference.before(row), self.hypothesis.before(column))
        left_out = self._cheapest_cell(self._reference.before(row), (column,))
        added = self._cheapest_cell((row,), self.hypothesis.before(column))
        substitution = _single(self._rows[pair[0]][pair[1]] + self.substitution_cost(word, other))
        deletion = _single(self._rows[left_out[0]][left_out[1]] + word.gap_cost)
        insertion = _single(self._rows[added[0]][added[1]] + other.gap_cost)
        if substitution <= deletion and substitution <= insertion:
            return pair
        return left_out if deletion < insertion else added

    def _step(self, row: int, column: int) -> AlignedWord | None:
        """The aligned word for a step over a word of both sides, or of one (0: no word of that side). None if it goes
        over nothing (`@`) only."""
        word, other = self._reference.words[row], self.hypothesis.words[column]
        if not column:
            edit = Edit.CORRECT if word.is_optional else Edit.DELETION
            return None if word.is_nothing else AlignedWord(edit, word.shown, "")
        if not row:
            edit = Edit.CORRECT if other.is_optional else Edit.INSERTION
            return None if other.is_nothing else AlignedWord(edit, "", other.shown)
        if word.is_nothing and other.is_nothing:
            return None
        edit = Edit.CORRECT if self.are_equal(word, other) else Edit.SUBSTITUTION
        return AlignedWord(edit, word.shown, other.shown)


TextNetworks = Mapping[int, tuple[AlignedWord, ...]]
"""The words of some rows (pairs of texts) side by side, by the number of the row."""

"""Transcripts, the words of a reference and a hypothesis set side by side, and the counts that come of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from enum import StrEnum

from harness.model.frozen import frozen

ENGLISH = "en"


class Normalisation(StrEnum):
    """How reference and transcript are made comparable (words only; recorded with every result).

    PLAIN: lower case, punctuation off. SPOKEN: words are the same where a person may say the same for both: "845" is
    "eight forty five", "5 km" five kilometers, "colour" color.
    SNOR: Lexical SNOR, as NIST scores ATIS. EXPANDED_SNOR: with events, pauses, false starts and verbal deletions, for
    scoring files only.
    """

    VERBATIM = "verbatim"
    PLAIN = "plain"
    SPOKEN = "spoken"
    SNOR = "snor"
    EXPANDED_SNOR = "expanded_snor"


MOST_PAIRS = 200


@frozen
class Rewriting:
    """A normalisation with a list: after `base`, the words on the left of a pair count as those on its right.

    The longest phrase that fits comes first, and what was rewritten is not looked at again. At most MOST_PAIRS pairs;
    their words are normalised by `base`, left sides are not empty and are not repeated. id: shown with every result.

    meanings: the pairs, by their left sides. lengths: the lengths of the phrases that begin with a word, longest first.
    """

    id: str
    base: Normalisation
    same: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]
    meanings: Mapping[tuple[str, ...], tuple[str, ...]] = field(init=False, repr=False, compare=False)
    lengths: Mapping[str, tuple[int, ...]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if len(self.same) > MOST_PAIRS:
            raise ValueError(f"{len(self.same)} pairs")
        if not all(words for words, _ in self.same):
            raise ValueError("a pair without words on its left")
        meanings = dict(self.same)
        if len(meanings) < len(self.same):
            raise ValueError("a phrase has two meanings")
        lengths: dict[str, set[int]] = {}
        for words in meanings:
            lengths.setdefault(words[0], set()).add(len(words))
        object.__setattr__(self, "meanings", meanings)
        longest_first = {word: tuple(sorted(word_lengths, reverse=True)) for word, word_lengths in lengths.items()}
        object.__setattr__(self, "lengths", longest_first)


class Edit(StrEnum):
    """What became of a word; the values are the letters of a path."""

    CORRECT = "C"
    SUBSTITUTION = "S"
    DELETION = "D"
    INSERTION = "I"


@frozen
class AlignedWord:
    """One step of an alignment. reference: "" for an insertion. hypothesis: "" for a deletion.

    A word that may be left out and was left out is CORRECT with no hypothesis.
    """

    edit: Edit
    reference: str
    hypothesis: str


@frozen
class WordCounts:
    """Counts that add up. sentences: utterances counted; sentences_with_error: those not all correct."""

    correct: int = 0
    substitutions: int = 0
    deletions: int = 0
    insertions: int = 0
    sentences: int = 0
    sentences_with_error: int = 0

    def __post_init__(self) -> None:
        counts = (self.correct, self.substitutions, self.deletions, self.insertions)
        if min(*counts, self.sentences_with_error) < 0 or self.sentences_with_error > self.sentences:
            raise ValueError(f"word counts cannot be {self}")

    @property
    def words(self) -> int:
        """Words of the reference."""
        return self.correct + self.substitutions + self.deletions

    @property
    def errors(self) -> int:
        return self.substitutions + self.deletions + self.insertions

    @property
    def wer(self) -> float | None:
        """Word errors per reference word, 0 and up, above 1 with many insertions; None over no words."""
        return self.errors / self.words if self.words else None

    def within(self, wer: float) -> bool:
        """At most `wer` errors a reference word; over no words, only no errors at all."""
        return self.errors <= wer * self.words + 1e-9  # more than the rounding of the product

    @classmethod
    def total(cls, counts: Iterable[WordCounts]) -> WordCounts:
        """The sum of many, by columns: adding up one object after another is slow where there are many."""
        rows = [
            (
                count.correct,
                count.substitutions,
                count.deletions,
                count.insertions,
                count.sentences,
                count.sentences_with_error,
            )
            for count in counts
        ]
        return cls(*map(sum, zip(*rows, strict=True)))

    def __add__(self, other: WordCounts) -> WordCounts:
        return WordCounts.total((self, other))


@frozen
class Transcripts:
    """A file of transcripts as columns, one for one: ids are unique, lines count from 1.

    texts are as written, without their id. speakers: "" where the file names none. encoding: of the file as it was
    read. confidences: of the words of each text. times: their begins and ends in seconds, also of those in each
    alternative. Both are () if the file has none. not_scored: words that the file marks as none, such as filled pauses.
    Columns keep hundreds of thousands of utterances cheap.
    """

    file: str
    ids: tuple[str, ...]
    texts: tuple[str, ...]
    lines: tuple[int, ...]
    speakers: tuple[str, ...]
    encoding: str = "utf-8"
    confidences: tuple[tuple[float | None, ...], ...] = ()
    times: tuple[tuple[tuple[float, float], ...], ...] = ()
    not_scored: int = 0

    def __post_init__(self) -> None:
        if not len(self.ids) == len(self.texts) == len(self.lines) == len(self.speakers):
            raise ValueError("columns of different lengths")

    def __len__(self) -> int:
        return len(self.ids)


@frozen
class TimedWord:
    """A word of a time-marked transcript (NIST ctm); seconds from the start of the file. confidence: as written.

    is_scored: False for what is none by its type, such as a filled pause. times: of alternatives, the start and end of
    each word in the order of the text; else ().
    """

    file: str
    channel: str
    start_s: float
    duration_s: float
    text: str
    confidence: float | None
    line: int
    is_scored: bool = True
    times: tuple[tuple[float, float], ...] = ()


@frozen
class Segment:
    """A stretch of a reference with its speaker (NIST stm). labels: subsets that it belongs to.

    ignored: nothing within it is scored.
    """

    file: str
    channel: str
    speaker: str
    start_s: float
    end_s: float
    text: str
    labels: tuple[str, ...]
    ignored: bool
    line: int


@frozen
class ColumnGrouping:
    """One way to part utterances. labels: one for each id, "" for none.

    order: labels that come first, in this order; the others are sorted.
    """

    name: str
    labels: tuple[str, ...]
    order: tuple[str, ...] = ()


@frozen
class Groupings:
    """What a file says of utterances: ids are unique, and each grouping has a label for each of them.

    lines: of the ids; () if they are not known.
    """

    file: str
    ids: tuple[str, ...]
    groupings: tuple[ColumnGrouping, ...]
    lines: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if any(len(grouping.labels) != len(self.ids) for grouping in self.groupings):
            raise ValueError("columns of different lengths")

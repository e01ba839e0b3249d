"""Transcripts, the alignment of the words of reference and hypothesis, and the counts of errors in it."""

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


MAX_PAIRS = 200
"""Most pairs of a rewriting list."""


@frozen
class Rewriting:
    """A normalisation with a list: after `base`, the words on the left of a pair count as those on its right.

    The longest phrase that fits is replaced first, and what was replaced is not searched again. There are at most
    MAX_PAIRS pairs. Their words are normalised by `base`; left sides are unique and not empty.

    - id: name of the list, shown with every result.
    - same: the pairs.
    - meanings: left side of a pair → right side.
    - lengths: first word → lengths, in words, of the left sides that begin with it, longest first.
    """

    id: str
    base: Normalisation
    same: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]
    meanings: Mapping[tuple[str, ...], tuple[str, ...]] = field(init=False, repr=False, compare=False)
    lengths: Mapping[str, tuple[int, ...]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if len(self.same) > MAX_PAIRS:
            raise ValueError(f"{len(self.same)} pairs")
        if not all(words for words, _ in self.same):
            raise ValueError("the left side of a pair has no words")
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
    """What happened to a word in an alignment; the values are the letters in its path."""

    CORRECT = "C"
    SUBSTITUTION = "S"
    DELETION = "D"
    INSERTION = "I"


@frozen
class AlignedWord:
    """One step of an alignment.

    - reference: "" for an insertion.
    - hypothesis: "" for a deletion.

    An optional word that was left out is CORRECT, and its hypothesis is "".
    """

    edit: Edit
    reference: str
    hypothesis: str


@frozen
class WordCounts:
    """Counts of words, which can be added. sentences: number of utterances, sentences_with_error: those with errors."""

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
        """Word errors: substitutions, deletions and insertions."""
        return self.substitutions + self.deletions + self.insertions

    @property
    def wer(self) -> float | None:
        """Word errors per reference word, 0 and up, above 1 with many insertions; None over no words."""
        return self.errors / self.words if self.words else None

    def within(self, wer: float) -> bool:
        """Whether there are at most `wer` errors per reference word; without any words, whether there are no errors."""
        return self.errors <= wer * self.words + 1e-9  # more than the rounding of the product

    @classmethod
    def total(cls, counts: Iterable[WordCounts]) -> WordCounts:
        """The sum of all. It adds column by column, since adding many objects one by one is slow."""
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
    """A file of transcripts as columns, so that hundreds of thousands of utterances need little memory.

    Each column has one value for each utterance.

    - ids: unique.
    - texts: as written, without the id.
    - lines: line numbers, from 1.
    - speakers: "" where the file names none.
    - confidences: of each word of a text.
    - times: start and end of each word in seconds, also of those in alternatives. Both are () if the file has none.
    - encoding: the encoding in which the file was read.
    - not_scored: number of entries that the file marks as not being words, such as filled pauses.
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
    """A word of a time-marked transcript (NIST ctm).

    - start_s: seconds from the start of the file.
    - confidence: as written; None if the file gives none.
    - is_scored: False if its type says that it is not a word, such as a filled pause.
    - times: if the text has alternatives, start and end of each of their words, in the order of the text; else ().
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
    """A part of a reference with its speaker (NIST stm).

    - start_s, end_s: seconds from the start of the file.
    - labels: subsets that it belongs to.
    - ignored: nothing within it is scored.
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
    """One way to group utterances.

    - name: its name, as a heading.
    - labels: the label of each utterance, in the order of the ids; "" for none.
    - order: labels that come first, in this order; the others are sorted.
    """

    name: str
    labels: tuple[str, ...]
    order: tuple[str, ...] = ()


@frozen
class Groupings:
    """How a file groups utterances.

    - ids: unique; each grouping has a label for each of them.
    - lines: line of the file for each id; () if not known.
    """

    file: str
    ids: tuple[str, ...]
    groupings: tuple[ColumnGrouping, ...]
    lines: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if any(len(grouping.labels) != len(self.ids) for grouping in self.groupings):
            raise ValueError("columns of different lengths")

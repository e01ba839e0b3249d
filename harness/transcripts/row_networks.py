"""Pairs of texts that only networks of words can align: with marks, fragments or several readings.

Few pairs have any of these. All others are aligned many at a time, which is far quicker.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from harness.base.text_file import Problems
from harness.model.choices import MarkScope
from harness.model.errors import InputError, Place
from harness.model.frozen import frozen
from harness.model.transcript import AlignedWord, Transcripts
from harness.transcripts import snor
from harness.transcripts.chosen_readings import choose_readings
from harness.transcripts.networks import (
    TextNetworks,
    WordNetwork,
    align_networks,
    align_readings,
    chain,
    is_plain,
    parse,
)
from harness.transcripts.readings import Piece, Readings, is_single
from harness.transcripts.words import WordRules

_FRAGMENT = re.compile(r"(?:^|\s)-\S|\S-(?:\s|$)")


def align_rows_by_networks(
    references: Transcripts,
    hypotheses: Transcripts,
    shown: tuple[Sequence[str], Sequence[str]],
    pieces: tuple[Sequence[Readings] | None, Sequence[Readings] | None],
    word_rules: WordRules,
    *,
    optional_words: bool,
    fragments: bool,
) -> tuple[TextNetworks, tuple[Sequence[str], Sequence[str]]]:
    """Aligns the pairs that only networks can align. Returns their words by row, and the texts with which the others
    are aligned.

    Raises InputError with the place of a mark that is wrong.

    - shown: the normalised texts, which are compared unless marks are read.
    - pieces: the readings of the texts; None if each has only one.
    """
    marks_in_references, marks_in_hypotheses = word_rules.reads_marks
    reference_side = _TextSide(references, shown[0], pieces[0], word_rules, marks_in_references, MarkScope.NONE)
    hypothesis_side = _TextSide(hypotheses, shown[1], pieces[1], word_rules, marks_in_hypotheses, MarkScope.REFERENCE)
    rows: set[int] = set()
    for side in (reference_side, hypothesis_side):
        if side.reads_marks:
            rows |= _marked_rows(side.texts, lambda text: not is_plain(text))
        if fragments:
            rows |= _marked_rows(side.texts, lambda text: _FRAGMENT.search(text) is not None)
    same_sound = _same_sound if word_rules.has_homophones else None
    aligned_by_row: dict[int, tuple[AlignedWord, ...]] = {}
    if word_rules.has_readings:
        aligned_by_row, shown = _align_further_readings(reference_side, hypothesis_side, rows)
    if not rows:
        return aligned_by_row, shown
    problems = Problems(references.file)
    for row in sorted(rows):
        try:
            aligned_by_row[row] = align_networks(
                reference_side.network(row, hypothesis_side),
                hypothesis_side.network(row, reference_side),
                same_sound,
                optional_words=optional_words,
                fragments=fragments,
            )
        except InputError as error:
            problems.add_error(error)
    problems.refuse()
    return aligned_by_row, shown


@frozen
class _TextSide:
    """The texts of one file.

    - pieces: their readings; None if each has only one.
    - reads_marks: whether the marks of networks are read in them.
    - unread: the value of --marks with which they would not be read, for messages.
    """

    transcripts: Transcripts
    normalised: Sequence[str]
    pieces: Sequence[Readings] | None
    word_rules: WordRules
    reads_marks: bool
    unread: MarkScope

    def readings(self, row: int) -> Readings:
        """The readings of a text in which no marks are read."""
        return tuple(self.normalised[row].split()) if self.pieces is None else self.pieces[row]

    @property
    def texts(self) -> Sequence[str]:
        """The texts that may have marks or fragments."""
        return self.transcripts.texts if self.reads_marks else self.normalised

    def network(self, row: int, other: _TextSide) -> WordNetwork:
        """The network of a text, with its marks if they are read.

        Raises InputError with the place of a mark that is wrong.

        other: the side with which it is compared.
        """
        if not self.word_rules.has_readings:
            return self._network(row, lambda pieces: pieces)
        from harness.transcripts.spoken_words import comparable  # here, since its lists take a while to read

        other_pieces: list[Piece] = []  # of all alternatives of the other text

        def collect(pieces: Readings) -> Readings:
            other_pieces.extend(pieces)
            return pieces

        other._network(row, collect)
        return self._network(row, lambda pieces: comparable(pieces, tuple(other_pieces))[0])

    def _network(self, row: int, prepare: Callable[[Readings], Readings]) -> WordNetwork:
        """As `network`. prepare: changes the pieces of the words between two marks before they are added."""
        place, text = Place(self.transcripts.file, self.transcripts.lines[row]), self.transcripts.texts[row]
        if not self.reads_marks:
            pieces = prepare(self.readings(row))
            return chain(self.word_rules.split(pieces) if self.word_rules.has_readings else pieces, place)
        try:
            return parse(text, lambda words: self.word_rules.split(prepare(self.word_rules.readings(words))), place)
        except InputError as error:
            remedy = f"{error.remedy}; or read such signs as text: --marks {self.unread.value}"
            raise InputError(error.what, place=error.place, remedy=remedy) from error


def _align_further_readings(
    reference: _TextSide, hypothesis: _TextSide, marked_rows: set[int]
) -> tuple[dict[int, tuple[AlignedWord, ...]], tuple[Sequence[str], Sequence[str]]]:
    """Chooses the readings of pairs without marks whose first readings differ. Returns all texts in these readings, and
    by row the words of those pairs that only networks can align."""
    from harness.transcripts.spoken_words import comparable  # here, since its lists take a while to read

    references, hypotheses = list(reference.normalised), list(hypothesis.normalised)
    rows: list[int] = []
    pairs: list[tuple[Readings, Readings]] = []
    for row, (reference_text, hypothesis_text) in enumerate(zip(references, hypotheses, strict=True)):
        if reference_text != hypothesis_text and reference_text and hypothesis_text and row not in marked_rows:
            pieces, others = comparable(reference.readings(row), hypothesis.readings(row))
            if not (is_single(pieces) and is_single(others)):
                rows.append(row)
                pairs.append((reference.word_rules.split(pieces), reference.word_rules.split(others)))
    aligned_by_row: dict[int, tuple[AlignedWord, ...]] = {}
    for row, pair, texts in zip(rows, pairs, choose_readings(pairs), strict=True):
        if texts is None:
            aligned_by_row[row] = align_readings(*pair)
        else:
            references[row], hypotheses[row] = texts
    return aligned_by_row, (references, hypotheses)


def _marked_rows(texts: Sequence[str], has_mark: Callable[[str], bool]) -> set[int]:
    """Rows of texts with a mark. All texts are searched as one first, since most files have no marks."""
    if not has_mark("\n".join(texts)):
        return set()
    return {row for row, text in enumerate(texts) if has_mark(text)}


def _same_sound(word: str, other: str) -> bool:
    return snor.homophone(word) == snor.homophone(other)

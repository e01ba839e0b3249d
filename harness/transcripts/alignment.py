"""The words of a hypothesis against those of a reference, aligned as NIST's sclite aligns them.

Weights: correct 0, insertion 3, deletion 3, substitution 4. Of equally cheap ways a substitution (or a match) is taken
if no dearer than both others, a deletion only if it is cheaper than an insertion, an insertion otherwise.
Source: NIST SCTK 2.4.10, sclite.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from harness.model.transcript import AlignedWord, Edit, WordCounts
from harness.transcripts.alignment_diagonals import DELETION, INSERTION, SUBSTITUTION
from harness.transcripts.alignment_long import path_of
from harness.transcripts.word_codes import code_words

_EDITS = {edit.value: edit for edit in Edit}
LONG = 60_000
"""Cells of a table from which on it is quicker to fill it by diagonals."""


def align(reference: Sequence[str], hypothesis: Sequence[str]) -> str:
    """The path from the first words to the last, a letter of `Edit` for each step: `CCSDI`.

    InputError for texts of more words than can be aligned, see alignment_long.py.
    """
    # A step onto equal words is never dearer than another, so a common end is correct word by word.
    pairs = zip(reversed(reference), reversed(hypothesis), strict=False)
    end = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    rows, columns = len(reference) - end, len(hypothesis) - end
    of, said = reference[:rows], hypothesis[:columns]
    path = _align_long(of, said) if rows * columns >= LONG else _align(of, said)
    return path + "C" * end


def _align(reference: Sequence[str], hypothesis: Sequence[str]) -> str:
    rows = [[INSERTION * j for j in range(len(hypothesis) + 1)]]
    for word in reference:
        above = rows[-1]
        corner, left = above[0], above[0] + DELETION
        row = [left]
        for said, up in zip(hypothesis, above[1:], strict=True):
            cost = corner if word == said else corner + SUBSTITUTION
            if up + DELETION < cost:
                cost = up + DELETION
            if left + INSERTION < cost:
                cost = left + INSERTION
            row.append(cost)
            corner, left = up, cost
        rows.append(row)
    i, j = len(reference), len(hypothesis)
    steps: list[str] = []
    while i and j:
        same = reference[i - 1] == hypothesis[j - 1]
        diagonal = rows[i - 1][j - 1] + (0 if same else SUBSTITUTION)
        deleted, inserted = rows[i - 1][j] + DELETION, rows[i][j - 1] + INSERTION
        if diagonal <= deleted and diagonal <= inserted:
            step = "C" if same else "S"
        else:
            step = "D" if deleted < inserted else "I"
        steps.append(step)
        i -= step != "I"
        j -= step != "D"
    return "D" * i + "I" * j + "".join(reversed(steps))


def _align_long(reference: Sequence[str], hypothesis: Sequence[str]) -> str:
    coded = code_words([reference, hypothesis])
    of, said = (coded.codes[start:][:length] for start, length in zip(coded.starts, coded.lengths, strict=True))
    return path_of(of, said)


def count(path: str) -> WordCounts:
    """The counts of one utterance's path."""
    correct = path.count("C")
    return WordCounts(
        correct,
        path.count("S"),
        path.count("D"),
        path.count("I"),
        sentences=1,
        sentences_with_error=correct < len(path),
    )


def side_by_side(reference: Sequence[str], hypothesis: Sequence[str], path: str) -> tuple[AlignedWord, ...]:
    """The words along a path; ValueError when the path is not of these words."""
    of, said = iter(reference), iter(hypothesis)
    steps = tuple(
        AlignedWord(_EDITS[step], "" if step == "I" else next(of, ""), "" if step == "D" else next(said, ""))
        for step in path
    )
    if next(of, None) is not None or next(said, None) is not None:
        raise ValueError("the path is shorter than the words")
    return steps

"""The words of a hypothesis against those of a reference, aligned as NIST's sclite aligns them.

Weights: correct 0, insertion 3, deletion 3, substitution 4. Of equally cheap ways a substitution (or a match) is taken
if no dearer than both others, a deletion only if it is cheaper than an insertion, an insertion otherwise.
Source: NIST SCTK 2.4.10, sclite.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.model.transcript import AlignedWord, Edit, WordCounts

SUBSTITUTION, DELETION, INSERTION = 4, 3, 3


def align(reference: Sequence[str], hypothesis: Sequence[str]) -> str:
    """The path from the first words to the last, a letter of `Edit` for each step: `CCSDI`."""
    rows = [[(INSERTION * j, "I") for j in range(len(hypothesis) + 1)]]
    for i, word in enumerate(reference, 1):
        above = rows[-1]
        row = [(DELETION * i, "D")]
        for j, said in enumerate(hypothesis, 1):
            same = word == said
            diagonal = above[j - 1][0] + (0 if same else SUBSTITUTION)
            deleted, inserted = above[j][0] + DELETION, row[j - 1][0] + INSERTION
            if diagonal <= deleted and diagonal <= inserted:
                row.append((diagonal, "C" if same else "S"))
            else:
                row.append((deleted, "D") if deleted < inserted else (inserted, "I"))
        rows.append(row)
    i, j = len(reference), len(hypothesis)
    steps: list[str] = []
    while i or j:
        step = rows[i][j][1]
        steps.append(step)
        i -= step != "I"
        j -= step != "D"
    return "".join(reversed(steps))


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
        AlignedWord(Edit(step), "" if step == "I" else next(of, ""), "" if step == "D" else next(said, ""))
        for step in path
    )
    if next(of, None) is not None or next(said, None) is not None:
        raise ValueError("the path is shorter than the words")
    return steps

"""The alignment rule as it is stated, cell by cell: slow, and plain enough to be read against sclite's."""

from collections.abc import Sequence


def path_by_table(reference: Sequence[object], hypothesis: Sequence[object]) -> str:
    """Correct 0, insertion 3, deletion 3, substitution 4; see harness/transcripts/alignment.py for the ties."""
    rows = [[(3 * j, "I") for j in range(len(hypothesis) + 1)]]
    for i, word in enumerate(reference, 1):
        row = [(3 * i, "D")]
        for j, hypothesis_word in enumerate(hypothesis, 1):
            diagonal = rows[-1][j - 1][0] + (0 if word == hypothesis_word else 4)
            deleted, inserted = rows[-1][j][0] + 3, row[j - 1][0] + 3
            if diagonal <= deleted and diagonal <= inserted:
                row.append((diagonal, "C" if word == hypothesis_word else "S"))
            else:
                row.append((deleted, "D") if deleted < inserted else (inserted, "I"))
        rows.append(row)
    i, j, steps = len(reference), len(hypothesis), ""
    while i or j:
        step = rows[i][j][1]
        steps = step + steps
        i -= 0 if step == "I" else 1
        j -= 0 if step == "D" else 1
    return steps

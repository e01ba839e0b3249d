"""Which hypothesis belongs to which reference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.model.transcript import Transcripts


@dataclass(frozen=True, slots=True)
class Pairing:
    """References and hypotheses one for one, the text of a missing one empty.

    absent: ids of references without hypothesis. surplus: ids of hypotheses without reference.
    """

    references: Transcripts
    hypotheses: Transcripts
    absent: tuple[str, ...]
    surplus: tuple[str, ...]


def paired(references: Transcripts, hypotheses: Transcripts, *, drop: bool) -> Pairing:
    """By id, in the order of the references. drop: leave references without hypothesis out."""
    if references.ids == hypotheses.ids:
        return Pairing(references, hypotheses, (), ())
    place = dict(zip(hypotheses.ids, range(len(hypotheses)), strict=True))
    places = [place.pop(id_, -1) for id_ in references.ids]
    surplus = tuple(place)
    absent = tuple(id_ for id_, at in zip(references.ids, places, strict=True) if at < 0)
    if drop and absent:
        rows = [row for row, at in enumerate(places) if at >= 0]
        references = _rows(references, rows)
        places = [places[row] for row in rows]
    return Pairing(references, _rows(hypotheses, places, references.ids), absent, surplus)


def _rows(transcripts: Transcripts, rows: Sequence[int], ids: tuple[str, ...] | None = None) -> Transcripts:
    """Some rows of a file, in another order; -1 stands for one that is not there."""
    texts, lines, speakers = (*transcripts.texts, ""), (*transcripts.lines, 0), (*transcripts.speakers, "")
    return Transcripts(
        transcripts.file,
        tuple(transcripts.ids[row] for row in rows) if ids is None else ids,
        tuple(texts[row] for row in rows),
        tuple(lines[row] for row in rows),
        tuple(speakers[row] for row in rows),
        transcripts.encoding,
    )

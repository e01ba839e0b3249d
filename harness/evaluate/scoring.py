"""Hypotheses against references: who is paired with whom, the words side by side, and the counts by speaker.

The same functions serve files of transcripts and what devices heard in a session.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from harness.metrics.alignment import align, count, side_by_side
from harness.model.transcript import AlignedWord, Transcripts, WordCounts

Normalise = Callable[[str], tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class ScoredUtterance:
    """One utterance. missing: the hypotheses have none of its id, so that every word counts as deleted."""

    id: str
    speaker: str
    words: tuple[AlignedWord, ...]
    counts: WordCounts
    missing: bool = False

    @property
    def path(self) -> str:
        """A letter of `Edit` for each step."""
        return "".join(word.edit.value for word in self.words)


@dataclass(frozen=True, slots=True)
class Scoring:
    """A system's hypotheses scored. title: of the system. normalisation: its name, which travels with every figure.

    dropped: references that were left out because they have no hypothesis (only where that was asked for). surplus:
    ids of hypotheses without a reference, which count nowhere.
    """

    title: str
    normalisation: str
    totals: WordCounts
    by_speaker: tuple[tuple[str, WordCounts], ...]
    missing: int
    dropped: int
    surplus: tuple[str, ...]
    _utterances: tuple[ScoredUtterance, ...]

    def __len__(self) -> int:
        return len(self._utterances)

    def utterance(self, index: int) -> ScoredUtterance:
        """In the order of the references."""
        return self._utterances[index]

    def utterances(self) -> Iterator[ScoredUtterance]:
        """In the order of the references."""
        return iter(self._utterances)

    def with_errors(self) -> Iterator[ScoredUtterance]:
        """Those with at least one word error, in the order of the references."""
        return (one for one in self._utterances if one.counts.sentences_with_error)


def score(
    references: Transcripts,
    hypotheses: Transcripts,
    normalise: Normalise,
    normalisation: str,
    *,
    speaker_of: Callable[[str], str] | None = None,
    drop_missing: bool = False,
    title: str = "",
) -> Scoring:
    """Scores `hypotheses` (paired by id) against `references`.

    speaker_of: the speaker of an id, where the file names none. drop_missing: leave a reference without hypothesis
    out, as sclite does, instead of counting all its words as deleted.
    """
    said = dict(zip(hypotheses.ids, hypotheses.texts, strict=True))
    utterances: list[ScoredUtterance] = []
    dropped = 0
    for id_, text, speaker in zip(references.ids, references.texts, references.speakers, strict=True):
        heard = said.pop(id_, None)
        if heard is None and drop_missing:
            dropped += 1
            continue
        of = speaker or (speaker_of(id_) if speaker_of else "")
        utterances.append(_scored(id_, of, normalise(text), () if heard is None else normalise(heard), heard is None))
    speakers: dict[str, WordCounts] = {}
    for one in utterances:
        speakers[one.speaker] = speakers.get(one.speaker, WordCounts()) + one.counts
    return Scoring(
        title=title or hypotheses.file,
        normalisation=normalisation,
        totals=sum(speakers.values(), WordCounts()),
        by_speaker=tuple(sorted(speakers.items())),
        missing=sum(one.missing for one in utterances),
        dropped=dropped,
        surplus=tuple(said),
        _utterances=tuple(utterances),
    )


def _scored(id_: str, speaker: str, reference: Sequence[str], heard: Sequence[str], missing: bool) -> ScoredUtterance:
    path = align(reference, heard)
    return ScoredUtterance(id_, speaker, side_by_side(reference, heard, path), count(path), missing)

"""Hypotheses against references: who is paired with whom, the words side by side, and the counts by speaker.

The same functions serve files of transcripts and what devices heard in a session. Counts are columns, so that
hundreds of thousands of utterances are cheap; words and paths of an utterance are made when they are asked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from harness.model.errors import Place
from harness.model.transcript import AlignedWord, Edit, Transcripts, WordCounts
from harness.transcripts.alignment import Alignments, Groups, WordColumns, count, side_by_side
from harness.transcripts.networks import TextNetworks, aligned_networks
from harness.transcripts.words import Wording, sounded


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


Counted = tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Confusions:
    """Words with how often, most frequent first, equals in the order of their words.

    pairs: (reference, hypothesis) words of substitutions. substituted: the reference words of those.
    falsely_recognised: their hypothesis words.
    """

    pairs: tuple[tuple[tuple[str, str], int], ...]
    inserted: Counted
    deleted: Counted
    substituted: Counted
    falsely_recognised: Counted


def confusions(scoring: Scoring) -> Confusions:
    """Those of every utterance with an error."""
    pairs: Counter[tuple[str, str]] = Counter()
    inserted: Counter[str] = Counter()
    deleted: Counter[str] = Counter()
    substituted: Counter[str] = Counter()
    recognised: Counter[str] = Counter()
    for (reference, hypothesis), times in Counter(scoring.errors()).items():
        if not reference:
            inserted[hypothesis] += times
        elif not hypothesis:
            deleted[reference] += times
        else:
            pairs[reference, hypothesis] = times
            substituted[reference] += times
            recognised[hypothesis] += times
    ordered = tuple(sorted(pairs.items(), key=lambda item: (-item[1], item[0])))
    return Confusions(ordered, *map(_ordered, (inserted, deleted, substituted, recognised)))


def _ordered(counted: Counter[str]) -> Counted:
    return tuple(sorted(counted.items(), key=lambda item: (-item[1], item[0])))


Normalise = Callable[[str], tuple[str, ...]]
AT_ONCE = 4096
"""Paths that are made together: enough to be quick, few enough to be small."""


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

    by_speaker: sorted by name. without_hypothesis: ids of references that the hypotheses lack; `missing` of them count
    as deleted, `dropped` of them were left out (only where that was asked for). surplus: ids of hypotheses without a
    reference, which count nowhere. ids: of the utterances that count, in the order of the references, as columns are.
    groups: the place of each utterance's speaker in by_speaker. queries: a number for what was asked in each utterance,
    where a list says it, as that of an exported session does; None where nothing does.
    """

    title: str
    normalisation: str
    totals: WordCounts
    by_speaker: tuple[tuple[str, WordCounts], ...]
    missing: int
    dropped: int
    without_hypothesis: tuple[str, ...]
    surplus: tuple[str, ...]
    ids: Sequence[str]
    speakers: Sequence[str]
    columns: WordColumns
    groups: Groups
    _absent: frozenset[str]
    _shown: tuple[Sequence[str], Sequence[str]]
    _alignments: Alignments
    _networks: TextNetworks
    queries: Groups | None = None

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def empty_references(self) -> int:
        """Utterances whose reference has no words, so that only insertions can count."""
        return int((self.columns.words == 0).sum())

    def paths(self, rows: Sequence[int]) -> Iterator[str]:
        """The paths of some utterances, without their words, which is far cheaper than the utterances."""
        for begin in range(0, len(rows), AT_ONCE):
            some = rows[begin : begin + AT_ONCE]
            for row, path in zip(some, self._alignments.paths(some), strict=True):
                network = self._networks.get(row)
                yield path if network is None else "".join(word.edit.value for word in network)

    def utterance(self, index: int) -> ScoredUtterance:
        """In the order of the references, from 0."""
        return next(self._made([index]))

    def utterances(self) -> Iterator[ScoredUtterance]:
        """In the order of the references."""
        return self._made(range(len(self)))

    def some(self, rows: Sequence[int]) -> Iterator[ScoredUtterance]:
        """Those of some rows, in their order; far cheaper than one by one."""
        return self._made(rows)

    def with_errors(self) -> Iterator[ScoredUtterance]:
        """Those with at least one word error, in the order of the references."""
        return self._made(np.flatnonzero(self.columns.errors).tolist())

    def errors(self) -> Iterator[tuple[str, str]]:
        """The reference and the hypothesis word of each error, "" for none; far cheaper than those of utterances."""
        references, hypotheses = self._shown
        rows = np.flatnonzero(self.columns.errors).tolist()
        for row, path in zip(rows, self.paths(rows), strict=True):
            network = self._networks.get(row)
            if network is not None:
                yield from (_sides(word) for word in network if word.edit is not Edit.CORRECT)
                continue
            of, said = iter(_split(references[row])), iter(_split(hypotheses[row]))
            for step in path:
                pair = "" if step == "I" else next(of), "" if step == "D" else next(said)
                if step != "C":
                    yield pair

    def _made(self, rows: Sequence[int]) -> Iterator[ScoredUtterance]:
        references, hypotheses = self._shown
        for row, path in zip(rows, self.paths(rows), strict=True):
            words = self._networks.get(row)
            if words is None:
                words = side_by_side(_split(references[row]), _split(hypotheses[row]), path)
            yield ScoredUtterance(self.ids[row], self.speakers[row], words, count(path), self.is_missing(row))

    def is_missing(self, index: int) -> bool:
        """Whether an utterance has no hypothesis, and counts as deleted."""
        return self.ids[index] in self._absent


def score(
    references: Transcripts,
    hypotheses: Transcripts,
    normalise: Normalise,
    normalisation: str,
    *,
    speaker_of: Callable[[str], str] | None = None,
    speakers_of: Callable[[Sequence[str]], Sequence[str]] | None = None,
    drop_missing: bool = False,
    optional_words: bool = False,
    fragments: bool = False,
    title: str = "",
) -> Scoring:
    """Scores `hypotheses` (paired by id) against `references`; InputError where a text cannot be read.

    normalise: with a `Wording` many texts are taken at once, errors have their place, and alternatives are read.
    speaker_of: the speaker of an id, where the file names none; speakers_of: in its place, of many at once.
    drop_missing: leave a reference without hypothesis out, as sclite does, instead of counting all its words as
    deleted. optional_words, fragments: see align_networks.
    """
    pairing = paired(references, hypotheses, drop=drop_missing)
    of, said = pairing.references, pairing.hypotheses
    if isinstance(normalise, Wording):
        shown = normalise.texts(of), normalise.texts(said)
        networks = aligned_networks(of, said, shown, normalise, optional_words=optional_words, fragments=fragments)
        compared = (sounded(shown[0]), sounded(shown[1])) if normalise.has_homophones else shown
    else:
        shown = compared = _normalised(of, normalise), _normalised(said, normalise)
        networks = {}
    if networks:
        compared = _without(compared[0], networks), _without(compared[1], networks)
    alignments = Alignments(*compared, place_of=lambda row: Place(of.file, of.lines[row]))
    columns = _columns(alignments, networks)
    if speakers_of is None:
        speakers_of = partial(_each, speaker_of or _nobody)
    speakers = _speakers(of, speakers_of)
    names, groups = _groups(speakers)
    by_speaker = tuple(zip(names, columns.grouped(groups, len(names)), strict=True))
    return Scoring(
        title=title or hypotheses.file,
        normalisation=normalisation,
        totals=sum((counts for _, counts in by_speaker), WordCounts()),
        by_speaker=by_speaker,
        missing=0 if drop_missing else len(pairing.absent),
        dropped=len(pairing.absent) if drop_missing else 0,
        without_hypothesis=pairing.absent,
        surplus=pairing.surplus,
        ids=of.ids,
        speakers=speakers,
        columns=columns,
        groups=groups,
        _absent=frozenset(() if drop_missing else pairing.absent),
        _shown=shown,
        _alignments=alignments,
        _networks=networks,
    )


def _normalised(transcripts: Transcripts, normalise: Normalise) -> Sequence[str]:
    return [" ".join(normalise(text)) for text in transcripts.texts]


def _without(texts: Sequence[str], networks: TextNetworks) -> Sequence[str]:
    left = list(texts)
    for index in networks:
        left[index] = ""
    return left


def _columns(alignments: Alignments, networks: TextNetworks) -> WordColumns:
    """The counts of all pairs; `alignments` knows nothing of those that networks align."""
    columns = alignments.columns
    for index, words in networks.items():
        edits = [word.edit for word in words]
        columns.correct[index] = edits.count(Edit.CORRECT)
        columns.substitutions[index] = edits.count(Edit.SUBSTITUTION)
        columns.deletions[index] = edits.count(Edit.DELETION)
        columns.insertions[index] = edits.count(Edit.INSERTION)
    return columns


def _speakers(references: Transcripts, speakers_of: Callable[[Sequence[str]], Sequence[str]]) -> Sequence[str]:
    if all(references.speakers):
        return references.speakers
    by_id = speakers_of(references.ids)
    if not any(references.speakers):
        return by_id
    return [named or found for named, found in zip(references.speakers, by_id, strict=True)]


def _groups(speakers: Sequence[str]) -> tuple[list[str], Groups]:
    """The names of speakers in order, and the place of each utterance's among them."""
    names = sorted(set(speakers))
    place = {name: index for index, name in enumerate(names)}
    return names, np.fromiter(map(place.__getitem__, speakers), np.intp, len(speakers))


def _each(speaker_of: Callable[[str], str], ids: Sequence[str]) -> Sequence[str]:
    return list(map(speaker_of, ids))


def _nobody(id_: str) -> str:
    return ""


def _sides(word: AlignedWord) -> tuple[str, str]:
    of = "" if word.edit is Edit.INSERTION else word.reference
    return of, "" if word.edit is Edit.DELETION else word.hypothesis


def _split(text: str) -> list[str]:
    return text.split(" ") if text else []

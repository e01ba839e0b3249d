"""Hypotheses against references: pairing by id, the words side by side, and the counts by speaker.

The same functions serve files of transcripts and what devices heard in a session. Counts are columns, so that hundreds
of thousands of utterances need little memory; words and paths of an utterance are made on demand.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import numpy as np

from harness.model.choices import TextUnit
from harness.model.errors import InputError, Place
from harness.model.frozen import frozen
from harness.model.transcript import AlignedWord, Edit, Transcripts, WordCounts
from harness.statistics.confidence import ConfidenceFigures, confidence_figures
from harness.transcripts.alignment import Alignments, Groups, WordColumns, count, side_by_side
from harness.transcripts.networks import TextNetworks
from harness.transcripts.row_networks import align_rows_by_networks
from harness.transcripts.words import WordRules, with_homophones

Paired = tuple[Transcripts, Transcripts, tuple[str, ...], tuple[str, ...]]
"""The paired references and hypotheses, the ids of references without a hypothesis, and those of hypotheses without a
reference."""


def pair_up(references: Transcripts, hypotheses: Transcripts, *, drop: bool) -> Paired:
    """Pairs transcripts by id. Row k of both results belongs together, in the order of the references.

    A missing hypothesis is an empty text. drop: leave references without a hypothesis out instead.
    """
    if references.ids == hypotheses.ids:
        return references, hypotheses, (), ()
    row_of_id = dict(zip(hypotheses.ids, range(len(hypotheses)), strict=True))
    hypothesis_rows = [row_of_id.pop(id_, -1) for id_ in references.ids]
    surplus = tuple(row_of_id)
    absent = tuple(id_ for id_, row in zip(references.ids, hypothesis_rows, strict=True) if row < 0)
    if drop and absent:
        present = [row for row, hypothesis_row in enumerate(hypothesis_rows) if hypothesis_row >= 0]
        references = _pick_rows(references, present)
        hypothesis_rows = [hypothesis_rows[row] for row in present]
    return references, _pick_rows(hypotheses, hypothesis_rows, references.ids), absent, surplus


def _pick_rows(transcripts: Transcripts, rows: Sequence[int], ids: tuple[str, ...] | None = None) -> Transcripts:
    """The given rows of a file, in the given order; −1 makes an empty row. ids: their ids; None for those of the
    file."""
    # The element at −1 is the empty row.
    texts, lines, speakers = (*transcripts.texts, ""), (*transcripts.lines, 0), (*transcripts.speakers, "")
    times = (*transcripts.times, ())
    return Transcripts(
        transcripts.file,
        tuple(transcripts.ids[row] for row in rows) if ids is None else ids,
        tuple(texts[row] for row in rows),
        tuple(lines[row] for row in rows),
        tuple(speakers[row] for row in rows),
        transcripts.encoding,
        times=tuple(times[row] for row in rows) if transcripts.times else (),
    )


Frequencies = tuple[tuple[str, int], ...]
Words = TypeVar("Words", str, tuple[str, str])
"""A word, or the two words of a substitution."""


@frozen
class Confusions:
    """Words with the number of their errors. The most frequent come first, equally frequent ones in alphabetical order.

    - pairs: (reference word, hypothesis word) of substitutions.
    - substituted: the reference words of these.
    - falsely_recognised: their hypothesis words.
    """

    pairs: tuple[tuple[tuple[str, str], int], ...]
    inserted: Frequencies
    deleted: Frequencies
    substituted: Frequencies
    falsely_recognised: Frequencies


def confusions(scoring: Scoring) -> Confusions:
    """The confusions of all utterances."""
    pairs: Counter[tuple[str, str]] = Counter()
    inserted: Counter[str] = Counter()
    deleted: Counter[str] = Counter()
    substituted: Counter[str] = Counter()
    falsely_recognised: Counter[str] = Counter()
    for (reference, hypothesis), times in Counter(scoring.errors()).items():
        if not reference:
            inserted[hypothesis] += times
        elif not hypothesis:
            deleted[reference] += times
        else:
            pairs[reference, hypothesis] = times
            substituted[reference] += times
            falsely_recognised[hypothesis] += times
    return Confusions(
        pairs=_sort_by_frequency(pairs),
        inserted=_sort_by_frequency(inserted),
        deleted=_sort_by_frequency(deleted),
        substituted=_sort_by_frequency(substituted),
        falsely_recognised=_sort_by_frequency(falsely_recognised),
    )


def _sort_by_frequency(counts: Counter[Words]) -> tuple[tuple[Words, int], ...]:
    """The counts, the most frequent first, equally frequent ones in alphabetical order."""
    return tuple(sorted(counts.items(), key=lambda word_count: (-word_count[1], word_count[0])))


PATHS_PER_CHUNK = 4096
"""Number of paths that are made together: enough to be quick, few enough to need little memory."""


@frozen
class ScoredUtterance:
    """One utterance. missing: whether it has no hypothesis, so that every word counts as deleted."""

    id: str
    speaker: str
    words: tuple[AlignedWord, ...]
    counts: WordCounts
    missing: bool = False


@frozen
class Scoring:
    """The scored hypotheses of a system."""

    title: str
    """Name of the system."""
    normalisation: str
    """Name of the normalisation, shown with every result."""
    totals: WordCounts
    by_speaker: tuple[tuple[str, WordCounts], ...]
    """Name and counts of each speaker, sorted by name."""
    without_hypothesis: tuple[str, ...]
    """Ids of references without a hypothesis."""
    surplus: tuple[str, ...]
    """Ids of hypotheses without a reference, which do not count."""
    ids: Sequence[str]
    speakers: Sequence[str]
    """Id and speaker of each utterance that counts, in the order of the references."""
    columns: WordColumns
    """The counts of each utterance, in the same order. A row is an index into it."""
    groups: Groups
    """For each utterance, the index of its speaker in by_speaker."""
    _missing_ids: frozenset[str]
    _shown_texts: tuple[Sequence[str], Sequence[str]]
    _alignments: Alignments
    _networks: TextNetworks
    queries: Groups | None = None
    """For each utterance, a number for its query, if a list names queries (those of exported sessions do)."""
    unit: TextUnit = TextUnit.WORD
    """The unit that is counted wherever words are named here."""

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def missing(self) -> int:
        """Number of references without a hypothesis whose words count as deleted."""
        return len(self._missing_ids)

    @property
    def dropped(self) -> int:
        """Number of references without a hypothesis that were left out on request."""
        return len(self.without_hypothesis) - len(self._missing_ids)

    @property
    def empty_references(self) -> int:
        """Number of utterances whose reference has no words, so that only insertions can count."""
        return int((self.columns.words == 0).sum())

    def paths(self, rows: Sequence[int]) -> Iterator[str]:
        """The paths of some utterances. Far quicker than making the utterances with their words."""
        for begin in range(0, len(rows), PATHS_PER_CHUNK):
            chunk = rows[begin : begin + PATHS_PER_CHUNK]
            for row, path in zip(chunk, self._alignments.paths(chunk), strict=True):
                network = self._networks.get(row)
                yield path if network is None else "".join(word.edit.value for word in network)

    def with_errors(self) -> list[int]:
        """The rows of utterances with at least one word error."""
        rows: list[int] = np.flatnonzero(self.columns.errors).tolist()
        return rows

    def utterances(self, rows: Sequence[int] | None = None) -> Iterator[ScoredUtterance]:
        """The utterances of the given rows, in their order; None for all. Far quicker than one call for each."""
        references, hypotheses = self._shown_texts
        rows = range(len(self)) if rows is None else rows
        for row, path in zip(rows, self.paths(rows), strict=True):
            words = self._networks.get(row)
            if words is None:
                words = side_by_side(_split(references[row]), _split(hypotheses[row]), path)
            yield ScoredUtterance(self.ids[row], self.speakers[row], words, count(path), self.is_missing(row))

    def errors(self) -> Iterator[tuple[str, str]]:
        """The reference word and the hypothesis word of each error; "" for none. Far quicker than `utterances`."""
        references, hypotheses = self._shown_texts
        rows = self.with_errors()
        for row, path in zip(rows, self.paths(rows), strict=True):
            network = self._networks.get(row)
            if network is not None:
                yield from (_word_pair(word) for word in network if word.edit is not Edit.CORRECT)
                continue
            reference_words, hypothesis_words = iter(_split(references[row])), iter(_split(hypotheses[row]))
            for step in path:
                reference = "" if step == "I" else next(reference_words)
                hypothesis = "" if step == "D" else next(hypothesis_words)
                if step != "C":
                    yield reference, hypothesis

    def is_missing(self, index: int) -> bool:
        """Whether the utterance in a row has no hypothesis, and counts as deleted."""
        return self.ids[index] in self._missing_ids


Aligner = Callable[[Transcripts, Transcripts, tuple[Sequence[str], Sequence[str]]], TextNetworks]
"""A function that returns the words of each row side by side. Arguments: the paired transcripts (references,
hypotheses), and their normalised texts."""


class WordExpansion(dict[str, int]):
    """The number of words that a normalisation makes of each word alone. Computed at the first look-up of a word."""

    def __init__(self, word_rules: WordRules) -> None:
        super().__init__()
        self._word_rules = word_rules

    def __missing__(self, word: str) -> int:
        try:
            self[word] = len(self._word_rules(word))
        except InputError:  # a mark of .sro text that another word closes
            self[word] = 0
        return self[word]

    def keeps_each(self, words: Sequence[str]) -> bool:
        """Whether each word remains one word. If not, nothing shows which of the normalised words came from which,
        even if their number is the same. Marks of alternatives do not count."""
        marks = _ALTERNATIVE_MARKS if "{" in words else ()
        return all(self[word] == 1 for word in words if word not in marks)


_ALTERNATIVE_MARKS = frozenset("{}/@")


def word_confidences(scoring: Scoring, hypotheses: Transcripts, word_rules: WordRules) -> ConfidenceFigures | None:
    """How reliable the confidences of a scoring's words are; None if no word has a confidence from 0 to 1.

    The words of an utterance are left out if the normalisation splits or drops any of them.
    """
    confidences_by_id: dict[str, tuple[float | None, ...]] = {}
    if hypotheses.confidences and scoring.unit is TextUnit.WORD:
        word_expansion = WordExpansion(word_rules)
        confidences_by_id = {
            id_: confidences
            for id_, confidences, text in zip(hypotheses.ids, hypotheses.confidences, hypotheses.texts, strict=True)
            if word_expansion.keeps_each(text.split())
        }
    if not confidences_by_id:
        return None
    scored_confidences: list[float] = []
    correct_flags: list[bool] = []
    left_out = 0
    for utterance in scoring.utterances():
        utterance_flags = [word.edit is Edit.CORRECT for word in utterance.words if word.hypothesis]
        confidences = confidences_by_id.get(utterance.id, ())
        if len(confidences) != len(utterance_flags):
            left_out += len(utterance_flags)
            continue
        for correct, value in zip(utterance_flags, confidences, strict=True):
            if value is None or not 0 <= value <= 1:
                left_out += 1
            else:
                scored_confidences.append(value)
                correct_flags.append(correct)
    return confidence_figures(scored_confidences, correct_flags, left_out) if scored_confidences else None


def score(
    references: Transcripts,
    hypotheses: Transcripts,
    word_rules: WordRules,
    normalisation: str = "",
    *,
    speakers_of: Callable[[Sequence[str]], Sequence[str]] | None = None,
    drop_missing: bool = False,
    optional_words: bool = False,
    fragments: bool = False,
    title: str = "",
    aligner: Aligner | None = None,
) -> Scoring:
    """Scores `hypotheses` (paired by id) against `references`. Raises InputError if a text cannot be read.

    - normalisation: name of the normalisation; "" for that of the word_rules.
    - speakers_of: returns the speakers of ids, if the file names none.
    - drop_missing: leave out references without a hypothesis, as sclite does. If False, all their words are deleted.
    - optional_words, fragments: see align_networks.
    - title: name of the system; "" for that of the file of hypotheses.
    - aligner: aligns the words of all rows; None for sclite's alignment.
    """
    references, outputs, absent, surplus = pair_up(references, hypotheses, drop=drop_missing)
    pieces = word_rules.all_readings(references), word_rules.all_readings(outputs)
    shown = word_rules.texts(references, pieces[0]), word_rules.texts(outputs, pieces[1])
    if aligner is not None:
        networks = aligner(references, outputs, shown)
    else:
        networks, shown = align_rows_by_networks(
            references, outputs, shown, pieces, word_rules, optional_words=optional_words, fragments=fragments
        )
    compared = (with_homophones(shown[0]), with_homophones(shown[1])) if word_rules.has_homophones else shown
    if networks:
        compared = _blank_out(compared[0], networks), _blank_out(compared[1], networks)
    alignments = Alignments(*compared, place_of=lambda row: Place(references.file, references.lines[row]))
    columns = _columns(alignments, networks)
    speakers: Sequence[str] = references.speakers
    if speakers_of is not None and not all(speakers):
        speakers = [
            file_speaker or speaker for file_speaker, speaker in zip(speakers, speakers_of(references.ids), strict=True)
        ]
    names = sorted(set(speakers))
    index_of_name = {name: index for index, name in enumerate(names)}
    groups = np.fromiter(map(index_of_name.__getitem__, speakers), np.intp, len(speakers))
    by_speaker = tuple(zip(names, columns.grouped(groups, len(names)), strict=True))
    return Scoring(
        title=title or hypotheses.file,
        normalisation=normalisation or word_rules.name,
        totals=WordCounts.total(counts for _, counts in by_speaker),
        by_speaker=by_speaker,
        without_hypothesis=absent,
        surplus=surplus,
        ids=references.ids,
        speakers=speakers,
        columns=columns,
        groups=groups,
        _missing_ids=frozenset(() if drop_missing else absent),
        _shown_texts=shown,
        _alignments=alignments,
        _networks=networks,
        unit=word_rules.unit,
    )


def _blank_out(texts: Sequence[str], networks: TextNetworks) -> Sequence[str]:
    """The texts, empty in the rows that networks align, so that they are not aligned twice."""
    remaining = list(texts)
    for index in networks:
        remaining[index] = ""
    return remaining


def _columns(alignments: Alignments, networks: TextNetworks) -> WordColumns:
    """The counts of all pairs: those of `networks` for the rows that it has, else those of `alignments`. Changes the
    columns of `alignments`."""
    columns = alignments.columns
    for index, words in networks.items():
        edits = [word.edit for word in words]
        columns.correct[index] = edits.count(Edit.CORRECT)
        columns.substitutions[index] = edits.count(Edit.SUBSTITUTION)
        columns.deletions[index] = edits.count(Edit.DELETION)
        columns.insertions[index] = edits.count(Edit.INSERTION)
    return columns


def _word_pair(word: AlignedWord) -> tuple[str, str]:
    """The word of the reference and that of the hypothesis; "" for none."""
    reference = "" if word.edit is Edit.INSERTION else word.reference
    return reference, "" if word.edit is Edit.DELETION else word.hypothesis


def _split(text: str) -> list[str]:
    return text.split(" ") if text else []

"""Scored transcripts as one page of HTML that needs nothing else: totals, speakers, confusions, alignments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import combinations, islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.base.foreign import plain_text
from harness.base.pages import filled_page
from harness.base.whole_file import write_atomically
from harness.model.choices import ERROR_RATES, UNIT_NOUNS
from harness.model.frozen import frozen
from harness.model.numbers import percent
from harness.model.transcript import AlignedWord, Edit, WordCounts
from harness.statistics.confidence import DET_TICKS, deviate
from harness.statistics.text import percent_interval, points_interval
from harness.statistics.word_intervals import MIN_QUERIES
from harness.transcripts.groups import MIN_SPEAKERS, compare, compare_by_groups
from harness.transcripts.reports.scoring_json import SourcedScoring
from harness.transcripts.reports.text import NO_SPEAKER, TEST_NAMES, confusions_section, group_scale, sections
from harness.transcripts.scoring import ScoredUtterance, Scoring

MAX_STEPS = 1000
"""Most words of an utterance that are shown, since a line may have a megabyte."""
MAX_WORD_CHARS = 80
_SplitWords = tuple[list[list[AlignedWord]], list[AlignedWord]]
"""The insertions before each word of a reference and after the last; then all other steps."""


@frozen
class AlignedCell:
    """The word of one hypothesis in a column. edit: None if only another hypothesis has a word there."""

    edit: Edit | None = None
    text: str = ""
    same: bool = True
    """Whether a correct word is written exactly as the reference is."""


@frozen
class AlignedColumn:
    """A word of the reference ("" for inserted words) above a cell for each hypothesis."""

    reference: str
    cells: tuple[AlignedCell, ...]

    @property
    def is_lost(self) -> bool:
        """Whether no hypothesis has the word of the reference."""
        return all(cell.edit in (Edit.SUBSTITUTION, Edit.DELETION) for cell in self.cells)

    @property
    def is_deleted(self) -> bool:
        """Whether no hypothesis has any word there."""
        return all(cell.edit is Edit.DELETION for cell in self.cells)


@frozen
class AlignedBlock:
    """Columns to be drawn.

    - labels: names of the hypotheses.
    - left_out: number of columns that are not drawn.
    """

    labels: tuple[str, ...]
    columns: tuple[AlignedColumn, ...]
    left_out: int


def blocks(utterances: Sequence[ScoredUtterance], labels: Sequence[str]) -> list[AlignedBlock]:
    """One block for all utterances if all have the same reference; else one for each. labels: name of the hypothesis of
    each."""
    if len({_reference(utterance.words) for utterance in utterances}) == 1:
        return [_block(utterances, labels)]
    return [_block((utterance,), (label,)) for label, utterance in zip(labels, utterances, strict=True)]


def _block(utterances: Sequence[ScoredUtterance], labels: Sequence[str]) -> AlignedBlock:
    reference = _reference(utterances[0].words)
    split = [_split_insertions(utterance.words) for utterance in utterances]
    gaps = [max(len(inserted[index]) for inserted, _ in split) for index in range(len(reference) + 1)]
    total = len(reference) + sum(gaps)
    return AlignedBlock(
        labels=tuple(plain_text(label, 40) for label in labels),
        columns=tuple(islice(_block_columns(reference, gaps, split), MAX_STEPS)),
        left_out=max(0, total - MAX_STEPS),
    )


def _block_columns(
    reference: Sequence[str], gaps: Sequence[int], split: Sequence[_SplitWords]
) -> Iterator[AlignedColumn]:
    """The columns of hypotheses of one reference. gaps: most words that any of them inserts before each word of the
    reference, and after the last."""
    for index, gap in enumerate(gaps):
        for place in range(gap):
            inserted_words = (inserted[index] for inserted, _ in split)
            yield AlignedColumn(
                "",
                tuple(_aligned_cell(words[place]) if place < len(words) else AlignedCell() for words in inserted_words),
            )
        if index < len(reference):
            yield AlignedColumn(
                _shortened_word(reference[index]), tuple(_aligned_cell(steps[index]) for _, steps in split)
            )


def _reference(words: Sequence[AlignedWord]) -> tuple[str, ...]:
    return tuple(word.reference for word in words if word.edit is not Edit.INSERTION)


def _split_insertions(words: Sequence[AlignedWord]) -> _SplitWords:
    inserted: list[list[AlignedWord]] = [[]]
    steps: list[AlignedWord] = []
    for word in words:
        if word.edit is Edit.INSERTION:
            inserted[-1].append(word)
        else:
            steps.append(word)
            inserted.append([])
    return inserted, steps


def _aligned_cell(word: AlignedWord) -> AlignedCell:
    return AlignedCell(word.edit, _shortened_word(word.hypothesis), word.reference == word.hypothesis)


def _shortened_word(word: str) -> str:
    return plain_text(word, MAX_WORD_CHARS)


MAX_STEPS_OF_PAGE = 150_000
"""Most words that a page shows: about 15 MB, which a browser still opens at once."""


class ShownUtterances:
    """The utterances of all scorings, by id. `ids` has those of the first scoring, then those that only later ones
    have.

    - max_utterances: most utterances to show.
    - steps_each: most words to show of each.
    """

    def __init__(self, scorings: Sequence[Scoring], max_utterances: int, steps_each: int) -> None:
        self._scorings = scorings
        self.ids: Sequence[str] = list(dict.fromkeys(id_ for scoring in scorings for id_ in scoring.ids))
        self._rows = [self._rows_of(scoring) for scoring in scorings]
        errors, words, steps = self._sums_over_systems(steps_each)
        rate = errors / np.maximum(words, 1)
        order = np.lexsort((np.arange(len(errors)), -rate, -errors))
        fitting = int((np.cumsum(steps[order]) <= MAX_STEPS_OF_PAGE).sum())
        self._order = order[: min(max_utterances, max(1, fitting))]
        self.with_errors = int((errors > 0).sum())
        self.shown_with_errors = int((errors[self._order] > 0).sum())

    def __len__(self) -> int:
        return len(self._order)

    @property
    def left_out(self) -> int:
        return len(self.ids) - len(self._order)

    def utterances(self) -> Iterator[tuple[int, str, list[int], list[ScoredUtterance]]]:
        """The utterances to show: those with most errors (of all systems together) first, then by error rate, then in
        the order of the references.

        Yields for each its position in the order of the references (from 0), and its id. Then the indices of the
        systems that have it, and the utterance in each of these systems.
        """
        iterators = [
            scoring.utterances([row for row in rows[self._order].tolist() if row >= 0])
            for scoring, rows in zip(self._scorings, self._rows, strict=True)
        ]
        for position in self._order.tolist():
            system_indices = [index for index, rows in enumerate(self._rows) if rows[position] >= 0]
            yield position, self.ids[position], system_indices, [next(iterators[index]) for index in system_indices]

    def _rows_of(self, scoring: Scoring) -> NDArray[np.intp]:
        """The row of each id in a scoring; −1 if it does not have the id."""
        if len(scoring) == len(self.ids) and list(scoring.ids) == self.ids:
            return np.arange(len(self.ids))
        row = {id_: index for index, id_ in enumerate(scoring.ids)}
        return np.fromiter((row.get(id_, -1) for id_ in self.ids), np.intp, len(self.ids))

    def _sums_over_systems(self, steps_each: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """For each utterance, the numbers of its errors, its words, and its words to be shown, of all systems
        together."""
        errors, words, steps = (np.zeros(len(self.ids), np.int64) for _ in range(3))
        for scoring, rows in zip(self._scorings, self._rows, strict=True):
            present = rows >= 0
            columns = scoring.columns
            errors[present] += columns.errors[rows[present]]
            words[present] += columns.words[rows[present]]
            steps[present] += np.minimum((columns.words + columns.insertions)[rows[present]], steps_each)
        return errors, words, steps


MAX_UTTERANCES = 2000
MAX_IDS = 30
"""Most ids in a note that counts utterances."""
WIDTH = 2400
"""Width of a line, in characters. A page wraps it."""
MAX_NAME_CHARS = 200


def write_html(systems: Sequence[SourcedScoring], path: Path, *, title: str, references: str = "") -> None:
    """Writes the page, completely or not at all. Raises LogError if it cannot be written."""
    write_atomically(path, page(systems, title, references).encode("utf-8"))


def page(
    systems: Sequence[SourcedScoring], title: str, references: str = "", max_utterances: int = MAX_UTTERANCES
) -> str:
    """The page on one or several systems, as HTML; ValueError without any.

    - references: name of the file of references.
    - max_utterances: only this many of the worst utterances are shown; the page states how many are not.
    """
    if not systems:
        raise ValueError("a page needs at least one scoring")
    scorings = [system.scoring for system in systems]
    rows = _system_rows(systems)
    selection = ShownUtterances(scorings, max_utterances, MAX_STEPS)
    utterances = [
        _utterance_row(position, id_, system_indices, utterances_of_id, rows)
        for position, id_, system_indices, utterances_of_id in selection.utterances()
    ]
    return filled_page(
        "harness.transcripts.reports",
        "scoring.html",
        title=plain_text(title, MAX_NAME_CHARS),
        references=plain_text(references, MAX_NAME_CHARS),
        normalisations=list(dict.fromkeys(scoring.normalisation for scoring in scorings)),
        systems=rows,
        system_scale=max(
            system.interval[1] if system.interval else system.scoring.totals.wer or 0.0 for system in systems
        )
        or 1.0,
        titles={section.key: section.title for row in rows for section in row["sections"]},
        comparisons=list(zip(combinations(rows, 2), compare(scorings), strict=True)),
        by_groups=compare_by_groups([(system.scoring, system.groups) for system in systems]),
        min_queries=MIN_QUERIES,
        min_speakers=MIN_SPEAKERS,
        test_names=TEST_NAMES,
        counted_unit=scorings[0].unit,
        unit_noun=UNIT_NOUNS[scorings[0].unit],
        error_rate=ERROR_RATES[scorings[0].unit],
        speakers=sorted({_speaker(name) for scoring in scorings for name, _ in scoring.by_speaker}),
        selection=selection,
        utterances=utterances,
        other_forms=any(_has_other_form(block) for utterance in utterances for block in utterance["blocks"]),
        per_cent=lambda value, digits=2: percent(value, digits),
        percent_interval=partial(percent_interval, digits=2),
        deviate=deviate,
        det_ticks=DET_TICKS,
        points_interval=points_interval,
    )


def _system_rows(systems: Sequence[SourcedScoring]) -> list[dict[str, Any]]:
    """The data of each system in the page. The plots of groups have one scale for all systems."""
    rows = []
    scale = max((group_scale(system.groups) for system in systems if system.groups), default=0.0)
    for number, system in enumerate(systems, 1):
        name = plain_text(system.scoring.title, MAX_NAME_CHARS) or f"system {number}"
        label = "HYP" if len(systems) == 1 else f"{number} {Path(name).stem or name}"
        parts = [*sections(system, WIDTH, MAX_IDS, scale), confusions_section(system.scoring)]
        rows.append({"label": label, "title": name, "scored": system, "sections": parts})
    return rows


def _speaker(name: str) -> str:
    return plain_text(name, 80) or NO_SPEAKER


def _utterance_row(
    position: int,
    id_: str,
    system_indices: Sequence[int],
    utterances: Sequence[ScoredUtterance],
    systems: Sequence[dict[str, Any]],
) -> dict[str, Any]:
    """The data of an utterance in the page; its counts are of all systems together.

    - position: in the order of the references.
    - system_indices: of the systems that have it.

    Its `kinds` has the letters of its errors, M if a hypothesis is missing, and 0 if there are none.
    """
    labels = [systems[index]["label"] for index in system_indices]
    counts = WordCounts.total(utterance.counts for utterance in utterances)
    kinds = {
        "S": counts.substitutions,
        "D": counts.deletions,
        "I": counts.insertions,
        "M": any(utterance.missing for utterance in utterances),
        "0": not counts.errors,
    }
    return {
        "place": position,
        "id": plain_text(id_, MAX_NAME_CHARS),
        "speaker": _speaker(utterances[0].speaker),
        "wer": percent(counts.wer, 0),
        "counts": counts,
        "kinds": "".join(kind for kind, is_present in kinds.items() if is_present),
        "systems": [
            (label, utterance.counts, utterance.missing) for label, utterance in zip(labels, utterances, strict=True)
        ],
        "blocks": blocks(utterances, labels),
    }


def _has_other_form(block: AlignedBlock) -> bool:
    """Whether a correct word is written differently from the reference."""
    cells = (cell for column in block.columns for cell in column.cells)
    return any(cell.edit is Edit.CORRECT and not cell.same for cell in cells)

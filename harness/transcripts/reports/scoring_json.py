"""A scoring as JSON, written piece by piece, since there may be hundreds of thousands of utterances.

Keys keep their order. All text is ASCII, so that no terminal and no encoding can garble it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from harness import __version__
from harness.base.plain_json import Json, picked, to_plain
from harness.model.frozen import frozen
from harness.model.transcript import WordCounts
from harness.statistics.confidence import ConfidenceFigures
from harness.statistics.intervals import Interval
from harness.transcripts.entities import EntityErrors
from harness.transcripts.groups import (
    CrossedScoring,
    GroupedComparison,
    GroupFigures,
    GroupWords,
    SystemComparison,
    interval_unit,
)
from harness.transcripts.scoring import Scoring
from harness.transcripts.talkers import TalkerPair


def counts_of(counts: WordCounts) -> dict[str, int]:
    """The counts by name. `words` counts words of the references."""
    return picked(
        counts, "sentences", "sentences_with_error", "words", "correct", "substitutions", "deletions", "insertions"
    )


def _group_figures(figures: GroupFigures | None) -> Json:
    """The results by groups, as keys of a system. A WER over no words is null, and so is the label of utterances
    without one."""
    figures = figures or GroupFigures((), (), (), (), (), ())
    return {
        "groups": [
            {
                "by": grouping.by,
                "values": [{"value": label or None, **_group_words_json(words)} for label, words in grouping.values],
            }
            for grouping in figures.grouped
        ],
        "crossed": [_cross_json(cross) for cross in figures.crossed],
        "groups_left_out": [{"by": name, "values": labels} for name, labels in figures.left_out],
        "without_group": figures.without_row,
        "groups_of_no_utterance": figures.unmatched_ids,
    }


def _group_words_json(words: GroupWords) -> Json:
    return {
        **counts_of(words.counts),
        "wer": words.counts.wer,
        "interval": words.interval,
        "interval_over": words.unit.value,
    }


def _cross_json(cross: CrossedScoring) -> Json:
    return {
        "by": cross.by,
        "rows": [label or None for label in cross.rows],
        "columns": [label or None for label in cross.columns],
        "cells": [[None if cell is None else _group_words_json(cell) for cell in row] for row in cross.cells],
    }


def _comparison_json(comparison: SystemComparison, groups: Sequence[GroupedComparison]) -> Json:
    grouped = [
        {
            "by": grouping.by,
            "values": [{"value": label or None, **_difference_json(in_group)} for label, in_group in grouping.values],
        }
        for grouping in groups
    ]
    return {
        **picked(comparison, "first", "second"),
        **_difference_json(comparison),
        "tests": [to_plain(test) for test in comparison.tests],
        "groups": grouped,
    }


def _difference_json(comparison: SystemComparison) -> Json:
    return {
        "utterances": comparison.utterances,
        "first_totals": counts_of(comparison.first_counts),
        "second_totals": counts_of(comparison.second_counts),
        **picked(comparison, "first_missing", "second_missing", "difference", "interval", "p", "recognised"),
    }


FORMAT = 1
"""Number of this format; increased when a key changes its meaning."""
_to_json = json.JSONEncoder(ensure_ascii=True, allow_nan=False).encode
UTTERANCES_PER_CHUNK = 2000


@frozen
class SourceFile:
    """A file that was scored. sha256: hash of its bytes, in hexadecimal."""

    file: str
    format: str
    encoding: str
    sha256: str


@frozen
class SourcedScoring:
    """A scoring with its files, and the options with which it was made.

    - interval: 95 % interval of its WER.
    - groups_file, groups, confidence, entities: None without any.
    - talkers: which speaker of the hypothesis is which of the reference, if speakers were paired; else ().
    """

    scoring: Scoring
    reference: SourceFile
    hypothesis: SourceFile
    interval: Interval | None
    like_sclite: bool = False
    optional_words: bool = False
    fragments: bool = False
    groups_file: SourceFile | None = None
    groups: GroupFigures | None = None
    confidence: ConfidenceFigures | None = None
    entities: EntityErrors | None = None
    talkers: tuple[TalkerPair, ...] = ()


def json_chunks(
    systems: Sequence[SourcedScoring],
    comparisons: Sequence[SystemComparison],
    by_groups: Sequence[Sequence[GroupedComparison]] = (),
) -> Iterator[str]:
    """Yields the text of the JSON. For one system, its object; for several, `{"systems": […], "comparisons": […]}`.

    by_groups: for each comparison, the same by groups; () without groups.
    """
    if len(systems) == 1:
        yield from _system_json_lines(systems[0])
    else:
        yield '{"systems": ['
        for index, system in enumerate(systems):
            yield ",\n" if index else "\n"
            yield from _system_json_lines(system)
        groups_of_comparisons = by_groups or [()] * len(comparisons)
        comparison_rows = [
            _comparison_json(comparison, groups)
            for comparison, groups in zip(comparisons, groups_of_comparisons, strict=True)
        ]
        yield f'],\n"comparisons": {_to_json(comparison_rows)}}}'
    yield "\n"


def _system_json_lines(system: SourcedScoring) -> Iterator[str]:
    """The object of a system in pieces, its utterances last."""
    scoring = system.scoring
    head: dict[str, object] = {
        "format": FORMAT,
        "harness": __version__,
        **picked(scoring, "title", "normalisation", "unit"),
        **picked(system, "like_sclite", "optional_words", "fragments", "reference", "hypothesis"),
        "totals": counts_of(scoring.totals),
        "wer": scoring.totals.wer,
        "interval": system.interval,
        "interval_over": interval_unit(scoring).value,
        "speakers": [{"speaker": name, **counts_of(counts), "wer": counts.wer} for name, counts in scoring.by_speaker],
        "missing": scoring.without_hypothesis,
        "missing_counted": scoring.missing,
        "surplus": scoring.surplus,
        "empty_references": scoring.empty_references,
        "confidence": to_plain(system.confidence),
        "entities": to_plain(system.entities),
        "talkers": to_plain(system.talkers),
        "groups_file": to_plain(system.groups_file),
        **_group_figures(system.groups),
    }
    yield "{\n"
    for key, value in head.items():
        yield f"{_to_json(key)}: {_to_json(value)},\n"
    yield '"utterances": ['
    columns = scoring.columns
    count_columns = (columns.correct, columns.substitutions, columns.deletions, columns.insertions)
    utterances = zip(
        scoring.ids, *(column.tolist() for column in count_columns), scoring.paths(range(len(scoring))), strict=True
    )
    rows: list[str] = []
    separator = "\n"
    for id_, correct, substitutions, deletions, insertions, path in utterances:
        rows.append(
            f'{{"id": {_to_json(id_)}, "correct": {correct}, "substitutions": {substitutions}, '
            f'"deletions": {deletions}, "insertions": {insertions}, "path": "{path}"}}'
        )
        if len(rows) == UTTERANCES_PER_CHUNK:
            yield separator + ",\n".join(rows)
            separator = ",\n"
            rows.clear()
    if rows:
        yield separator + ",\n".join(rows)
    yield "\n]}"

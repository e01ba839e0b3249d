"""Whether one system is better than another by chance: the tests of NIST's sc_stats, and the one of word errors."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.model.frozen import frozen
from harness.statistics.significance import Discordance, holm, matched_pairs, mcnemar, signed_ranks
from harness.transcripts.scoring import Scoring

Rows = NDArray[np.intp]
Numbers = NDArray[Any]
SEPARATING_WORDS = 2
"""After this many words in a row that both systems have correct, errors count as independent of the earlier ones, as in
sc_stats."""


class PairedBy(StrEnum):
    """What a test compares.

    WORDS: the difference of the WERs. RECOGNISED: utterances without an error (McNemar's exact test). SEGMENTS: errors
    in stretches between words that both have correct (MAPSSWE). SIGNS: which system has the lower WER in each unit
    (sign test). RANKS: also by how much (Wilcoxon's signed ranks).
    """

    WORDS = "words"
    RECOGNISED = "recognised"
    SEGMENTS = "segments"
    SIGNS = "signs"
    RANKS = "ranks"


@frozen
class PairedTest:
    """Two systems under one test.

    - unit: what is compared, such as utterances.
    - units: number of them.
    - first_better, second_better: number of units in which that system is better; in the others they are equal.
    - p: two-sided; None if nothing differs.
    - adjusted: p after Holm's correction for all pairs of systems.
    """

    by: PairedBy
    unit: str
    units: int
    first_better: int
    second_better: int
    p: float | None
    adjusted: float | None = None


def paired_tests(
    first: Scoring,
    second: Scoring,
    first_rows: Rows,
    second_rows: Rows,
    by_unit: tuple[Numbers, Numbers, str],
    recognised: Discordance,
    p: float | None,
) -> tuple[PairedTest, ...]:
    """Every test of two systems on the utterances in rows `first_rows` of the first and `second_rows` of the second.

    - by_unit: for each unit, errors of the first minus those of the second, and number of reference words; then the
      name of the unit.
    - recognised: numbers of utterances that were recognised without an error.
    - p: p-value of the difference of the WERs.
    """
    errors, words, unit = by_unit
    has_words = words > 0
    rates = errors[has_words] / words[has_words]
    discordant = recognised.only_first, recognised.only_second
    segments = np.array(
        [left - right for left, right in _segments_of(first, second, first_rows, second_rows)], np.int64
    )
    return (
        PairedTest(PairedBy.WORDS, unit, len(errors), *_better_counts(errors), p),
        PairedTest(PairedBy.RECOGNISED, "utterances", recognised.total, *discordant, recognised.p),
        PairedTest(PairedBy.SEGMENTS, "segments", len(segments), *_better_counts(segments), matched_pairs(segments)),
        PairedTest(PairedBy.SIGNS, unit, len(rates), *_better_counts(rates), mcnemar(*_better_counts(rates))),
        PairedTest(PairedBy.RANKS, unit, len(rates), *_better_counts(rates), signed_ranks(rates)),
    )


def adjust_for_pairs(pairs: Sequence[Sequence[PairedTest]]) -> list[tuple[PairedTest, ...]]:
    """The tests of all pairs of systems, with each kind of test corrected for the number of pairs (Holm).

    pairs: for each pair of systems, its tests, always in the same order.
    """
    tests_by_kind = []
    for tests in zip(*pairs, strict=True):
        adjusted_ps = holm([test.p for test in tests])
        tests_by_kind.append([replace(test, adjusted=p) for test, p in zip(tests, adjusted_ps, strict=True)])
    return list(zip(*tests_by_kind, strict=True))


def _better_counts(differences: Numbers) -> tuple[int, int]:
    """Number of units in which the first has fewer errors, and of those in which the second has."""
    return int(np.count_nonzero(differences < 0)), int(np.count_nonzero(differences > 0))


def _segments_of(first: Scoring, second: Scoring, first_rows: Rows, second_rows: Rows) -> Iterator[tuple[int, int]]:
    """As `segment_errors`, of all these utterances. Those that both systems have correct have no segments."""
    wrong = (first.columns.errors[first_rows] > 0) | (second.columns.errors[second_rows] > 0)
    for path, path_of_other in zip(
        first.paths(first_rows[wrong].tolist()), second.paths(second_rows[wrong].tolist()), strict=True
    ):
        yield from segment_errors(path, path_of_other)


def segment_errors(first: str, second: str) -> Iterator[tuple[int, int]]:
    """For each segment with an error, the number of errors in each path. A segment ends after SEPARATING_WORDS words
    that both have correct.

    If alternatives gave the two systems references of different lengths, the whole utterance is one segment.
    Source: Gillick & Cox, ICASSP (1989), 532–535, segmented as by NIST's sc_stats.
    """
    if len(first) - first.count("I") != len(second) - second.count("I"):
        yield len(first) - first.count("C"), len(second) - second.count("C")
        return
    left = right = correct = 0
    steps, insertions = _words_and_insertions(first)
    other_steps, other_insertions = _words_and_insertions(second)
    for step, inserted, step_of_other, inserted_of_other in zip(
        steps, insertions, other_steps, other_insertions, strict=True
    ):
        left, right = left + inserted, right + inserted_of_other
        if inserted or inserted_of_other:
            correct = 0
        if step == step_of_other == "C":
            correct += 1
        else:
            correct = 0
            left += 1 if step in "SD" else 0
            right += 1 if step_of_other in "SD" else 0
        if correct >= SEPARATING_WORDS and (left or right):
            yield left, right
            left = right = 0
    if left or right:
        yield left, right


def _words_and_insertions(path: str) -> tuple[str, list[int]]:
    """The letter of each reference word (C, S or D), with an E for the end. Then the number of words inserted before
    each of them."""
    return path.replace("I", "") + "E", [len(gap) for gap in re.split("[CSD]", path)]

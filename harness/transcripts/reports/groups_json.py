"""Word errors by group as JSON: counts, WER and its interval of each label."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness.model.transcript import WordCounts
from harness.transcripts.groups import Crossed, Grouped, GroupedComparison, GroupFigures, GroupWords
from harness.transcripts.system_comparison import SystemComparison

Json = dict[str, Any]


def counts_of(counts: WordCounts) -> dict[str, int]:
    """The counts by name; words are those of the references."""
    return {
        "sentences": counts.sentences,
        "sentences_with_error": counts.sentences_with_error,
        "words": counts.words,
        "correct": counts.correct,
        "substitutions": counts.substitutions,
        "deletions": counts.deletions,
        "insertions": counts.insertions,
    }


def figures(found: GroupFigures | None) -> Json:
    """The keys of a system; a WER over no words is null, and so is the label of utterances that have none."""
    return {
        "groups": [] if found is None else [_grouped(one) for one in found.grouped],
        "crossed": [] if found is None else [_crossed(one) for one in found.crossed],
        "groups_left_out": [] if found is None else [{"by": by, "values": labels} for by, labels in found.left_out],
        "without_group": () if found is None else found.without_row,
        "groups_of_no_utterance": () if found is None else found.strangers,
    }


def compared(found: Sequence[GroupedComparison]) -> list[Json]:
    """Two systems by each grouping."""
    return [{"by": one.by, "values": [_pair(label, pair) for label, pair in one.values]} for one in found]


def _grouped(one: Grouped) -> Json:
    return {"by": one.by, "values": [{"value": label or None, **_words(words)} for label, words in one.values]}


def _crossed(one: Crossed) -> Json:
    return {
        "by": one.by,
        "rows": [label or None for label in one.rows],
        "columns": [label or None for label in one.columns],
        "cells": [[None if cell is None else _words(cell) for cell in row] for row in one.cells],
    }


def _words(words: GroupWords) -> Json:
    return {
        **counts_of(words.counts),
        "wer": words.counts.wer,
        "interval": words.interval,
        "interval_over": words.unit.value,
    }


def _pair(label: str, pair: SystemComparison) -> Json:
    return {
        "value": label or None,
        "utterances": pair.utterances,
        "first_totals": counts_of(pair.first_counts),
        "second_totals": counts_of(pair.second_counts),
        "first_missing": pair.first_missing,
        "second_missing": pair.second_missing,
        "difference": pair.difference,
        "interval": pair.interval,
        "p": pair.p,
    }

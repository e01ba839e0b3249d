"""Scored intents and slots as JSON, and back for shards to be put together (docs/format-understanding-json.md).

Everything in it comes from counts that add up, and stands sorted: shards put together give the text of the whole, but
for names.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness import __version__
from harness.model.errors import InputError, Place
from harness.understanding.arithmetic.counts import FrameCounts
from harness.understanding.arithmetic.figures import Averages, figures
from harness.understanding.arithmetic.zero_division import ZeroDivision
from harness.understanding.reports.counts_json import (
    Json,
    counts_json,
    rule_json,
    rule_of,
    samples_json,
    system_of,
    zero_json,
    zero_of,
)
from harness.understanding.reports.figure_rows import FigureRow, Reported
from harness.understanding.scoring.counted import SystemCounts

FORMAT = 1
KIND = "understanding"


@dataclass(frozen=True, slots=True)
class ScoreFile:
    """What a JSON file holds: systems, scored alike, with the choices that their figures rest on."""

    name: str
    systems: tuple[SystemCounts, ...]
    zero: ZeroDivision
    labels: tuple[str, ...] | None


def score_json(systems: Sequence[Reported], comparisons: Sequence[Json] = ()) -> str:
    """The text of the JSON, ASCII; ValueError without a system."""
    first = systems[0]
    head: Json = {
        "format": FORMAT,
        "kind": KIND,
        "harness": __version__,
        "rule": rule_json(first.counts.details[0].rule),
        "details": [one.rule.detail.value for one in first.counts.details],
        "zero": zero_json(first.zero),
        "declared_labels": None if first.labels is None else list(first.labels),
        "systems": [_system(one) for one in systems],
        "comparisons": list(comparisons),
    }
    return json.dumps(head, indent=1, ensure_ascii=True, allow_nan=False) + "\n"


def _system(one: Reported) -> Json:
    counts = one.counts
    return {
        "gold": {"file": counts.gold},
        "predicted": {"file": counts.predicted},
        "missing": list(counts.missing),
        "unknown": list(counts.unknown),
        "unannotated": list(counts.unannotated),
        "other_words": list(counts.other_words),
        "intents_predicted": counts.intents_told,
        "slots_predicted": counts.slots_told,
        "scores": [
            {
                "detail": detail.rule.detail.value,
                "figures": {row.key: _figure(row) for row in one.rows if row.detail in (None, detail.rule.detail)},
                "labels": [
                    {"intent": name, "right": of.right, "gold": of.gold, "predicted": of.predicted, **_averages(figure)}
                    for name, of, figure in found.intents.labels
                ],
                "concepts": [
                    {
                        "concept": name,
                        "right": of.right,
                        "gold": of.gold,
                        "predicted": of.predicted,
                        **_averages(figure),
                    }
                    for name, of, figure in found.slots.per_concept or found.slots.per_concept_set
                ],
                "never_predicted": list(found.intents.never_predicted),
                "empty_predictions": found.intents.empty,
                "empty_predictions_right": found.intents.empty_rightly,
                "counts": counts_json(detail.totals),
                "samples": samples_json(detail.samples),
                "groups": {
                    column: [{"label": label, **_group(of, one), "counts": counts_json(of)} for label, of in labels]
                    for column, labels in detail.groups
                },
            }
            for detail, found in zip(counts.details, one.figures, strict=True)
        ],
    }


def _figure(row: FigureRow) -> Json:
    return {"value": row.value, "interval": None if row.interval is None else list(row.interval)}


def _averages(one: Averages) -> Json:
    return {"precision": one.precision, "recall": one.recall, "f1": one.f1}


def _group(counts: FrameCounts, one: Reported) -> Json:
    of = figures(counts, one.zero, one.labels)
    return {
        "emr": of.intents.exact.value,
        "intent_accuracy": of.intents.accuracy,
        "slot_f1": of.slots.micro.f1,
        "f1mh": of.slots.concept_sets.f1,
        "cer": of.slots.cer,
        "sfa": of.slots.frames.value,
    }


def read_score_json(path: Path, name: str) -> ScoreFile:
    """What `harness understanding score --json` wrote; InputError for any other file. name: what a person calls it."""
    place = Place(name)
    remedy = "Name what `harness understanding score --json FILE` wrote"
    try:
        content = path.read_bytes()
    except (OSError, ValueError) as error:
        what = f"the file cannot be read: {getattr(error, 'strerror', None) or error}"
        raise InputError(what, place=place, remedy="Check the path and its rights") from error
    try:
        written: Any = json.loads(content)
        if not isinstance(written, dict) or written.get("kind") != KIND:
            raise InputError("this is no file of scored understanding", place=place, remedy=remedy)
        if written.get("format") != FORMAT:
            what = f"the file has format {written.get('format')!r}, and this version reads {FORMAT}"
            raise InputError(what, place=place, remedy="Score again with this version")
        rules = [rule_of(written["rule"], detail) for detail in written["details"]]
        systems = tuple(system_of(one, rules) for one in written["systems"])
        if not rules or not systems:
            raise ValueError("it holds no scores")
        zero = zero_of(written["zero"])
        labels = written["declared_labels"]
        return ScoreFile(name, systems, zero, None if labels is None else tuple(map(str, labels)))
    except json.JSONDecodeError as error:
        at = Place(name, error.lineno, error.colno)
        raise InputError(f"not JSON: {error.msg}", place=at, remedy="See whether the file was cut off") from error
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError) as error:
        what = f"the file is damaged: {type(error).__name__}: {error}"
        raise InputError(what, place=place, remedy="Score again, or leave it out") from error

"""A cascade as JSON: figures, counts that add up, groups, and every utterance (docs/understanding-figures.md)."""

from __future__ import annotations

import json
from typing import Any

from harness import __version__
from harness.model.understanding import Utterance
from harness.transcripts.groups import interval_of
from harness.transcripts.reports.scoring_json import counts_of
from harness.understanding.reports.cascade import slot_f1
from harness.understanding.reports.counts_json import counts_json, rule_json, zero_json
from harness.understanding.scoring.cascade import Cascade, CascadeGroup, CascadeUtterance, Fate
from harness.understanding.scoring.comparison import Difference

Json = dict[str, Any]
FORMAT = 1
KIND = "understanding cascade"


def cascade_json(of: Cascade) -> str:
    """The text, ASCII."""
    interval = interval_of(of.words)
    found: Json = {
        "format": FORMAT,
        "kind": KIND,
        "harness": __version__,
        "gold": {"file": of.gold},
        "heard": {"file": of.heard},
        "normalisation": of.words.normalisation,
        "rule": {**rule_json(of.rule), "detail": of.rule.detail.value, "places": False},
        "zero": zero_json(of.zero),
        "declared_labels": None if of.labels is None else list(of.labels),
        "utterances": len(of.utterances),
        "without_transcript": list(of.without_transcript),
        "missing_is_silence": of.missing_is_silence,
        "without_gold": list(of.without_gold),
        "unannotated": list(of.unannotated),
        "fates": {fate.value: len(of.of(fate)) for fate in Fate},
        "wer_interval": None if interval is None else list(interval),
        "slot_f1_by_places_on_reference": slot_f1(of),
        "total": _group(of.total),
        "groups": {
            column: [{"label": label, **_group(group)} for label, group in labels] for column, labels in of.groups
        },
        "groups_left_out": dict(of.too_many),
        "frames": [_utterance(one) for one in of.utterances],
    }
    return json.dumps(found, indent=1, ensure_ascii=True, allow_nan=False) + "\n"


def _group(group: CascadeGroup) -> Json:
    return {
        "words": {**counts_of(group.words), "wer": group.words.wer},
        "figures": {figure.value: _difference(one) for figure, one in group.differences.items()},
        "counts": {"reference": counts_json(group.reference), "transcript": counts_json(group.transcript)},
    }


def _difference(one: Difference) -> Json:
    return {
        "reference": one.second,
        "transcript": one.first,
        "difference": one.value,
        "interval": None if one.interval is None else list(one.interval),
        "p": one.p,
    }


def _utterance(one: CascadeUtterance) -> Json:
    return {
        "id": one.id,
        "fate": one.fate.value,
        "said": one.before.gold.text,
        "heard": one.heard.text,
        "word_errors": one.words.errors,
        "words": one.words.words,
        "gold": _frame(one.before.gold),
        "on_reference": _frame(one.before.predicted),
        "on_transcript": _frame(one.after.predicted),
    }


def _frame(utterance: Utterance) -> Json:
    found: Json = {"intents": None if utterance.intents is None else list(utterance.intents)}
    if utterance.tags is not None:
        found["tags"] = list(utterance.tags)
    if utterance.slots is not None:
        found["slots"] = [{"concept": slot.concept, "value": slot.value} for slot in utterance.slots]
    return found

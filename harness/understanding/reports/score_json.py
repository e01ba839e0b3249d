"""Scored intents and slots as JSON, and back for shards to be put together (docs/format-understanding-json.md).

Everything in it comes from counts that add up, and stands sorted: shards put together give the text of the whole, but
for names.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from pathlib import Path
from typing import Any

from harness import __version__
from harness.base.plain_json import plain
from harness.model.errors import InputError, Place
from harness.model.transcript import WordCounts
from harness.model.understanding import Detail
from harness.statistics.intervals import Share
from harness.understanding.counts import FrameCounts, IntentCounts, Matched, Rule, SlotCounts
from harness.understanding.figures import ZeroDivision, figures
from harness.understanding.reports.score_text import FigureRow, Reported
from harness.understanding.scoring import DetailCounts, Groups, Samples, SystemCounts

Json = dict[str, Any]
_DETAIL = "detail"
_EDITS = ("correct", "substitutions", "deletions", "insertions", "sentences", "sentences_with_error")


def counts_json(counts: FrameCounts) -> Json:
    """Lists of three are right, gold and predicted; of four, with the number of utterances behind."""
    return {
        "utterances": counts.utterances,
        "intents": {
            "overlaps": _rows(counts.intents.overlaps),
            "labels": _by_name(counts.intents.labels),
            "confusions": [[*pair, n] for pair, n in sorted(counts.intents.confusions.items())],
        },
        "slots": _slots_json(counts.slots),
        "slots_with_values": _slots_json(counts.valued),
    }


def samples_json(samples: Samples) -> Json:
    """Rows of the counts of an utterance, with the number of utterances that have them behind."""
    return {
        "chunks": _rows(samples.chunks),
        "concepts": _rows(samples.concepts),
        "edits": [[*row, n] for row, n in sorted(samples.edits.items())],
    }


def rule_json(rule: Rule) -> Json:
    """How frames were read, but for the detail."""
    return {name: value for name, value in plain(rule).items() if name != _DETAIL}


def rule_of(written: Any, detail: Any) -> Rule:
    """The rule that was written; ValueError, KeyError or TypeError for what is none."""
    found: Json = {_DETAIL: Detail(detail)}
    for one in fields(Rule):
        if one.name == _DETAIL:
            continue
        given, kind = written[one.name], type(one.default)
        if kind is tuple:
            found[one.name] = tuple(_text(part) for part in _list(given))
        elif issubclass(kind, StrEnum):
            found[one.name] = kind(_text(given))
        else:
            found[one.name] = _flag(given) if kind is bool else _text(given)
    if set(written) != set(found) - {_DETAIL}:
        raise ValueError("the rule says more than this version knows")
    return Rule(**found)


def zero_json(zero: ZeroDivision) -> Json:
    """What 0/0 is."""
    found: Json = plain(zero)
    return found


def zero_of(written: Any) -> ZeroDivision:
    """What was written; KeyError or TypeError for what is none."""
    return ZeroDivision(**{one.name: written[one.name] for one in fields(ZeroDivision)})


def system_of(written: Any, rules: list[Rule]) -> SystemCounts:
    """The counts of one system; ValueError, KeyError or TypeError for what is none."""
    scores = _list(written["scores"])
    if len(scores) != len(rules):
        raise ValueError("there is not one score for each detail")
    return SystemCounts(
        _text(written["gold"]["file"]),
        _text(written["predicted"]["file"]),
        tuple(_detail_of(one, rule) for one, rule in zip(scores, rules, strict=True)),
        _ids(written["missing"]),
        _ids(written["unknown"]),
        _ids(written["unannotated"]),
        _ids(written["other_words"]),
        _flag(written["intents_predicted"]),
        _flag(written["slots_predicted"]),
    )


def _detail_of(written: Any, rule: Rule) -> DetailCounts:
    groups: Groups = tuple(
        (_text(column), tuple((_text(one["label"]), counts_of(one["counts"])) for one in _list(labels)))
        for column, labels in _mapping(written["groups"]).items()
    )
    return DetailCounts(rule, counts_of(written["counts"]), groups, _samples_of(written["samples"]))


def counts_of(written: Any) -> FrameCounts:
    """The counts that were written; ValueError, KeyError or TypeError for what is none."""
    intents = written["intents"]
    confusions = {(_text(gold), _text(said)): _count(n) for gold, said, n in _list(intents["confusions"])}
    return FrameCounts(
        _count(written["utterances"]),
        IntentCounts(_matched_rows(intents["overlaps"]), _names_of(intents["labels"]), confusions),
        _slots_of(written["slots"]),
        _slots_of(written["slots_with_values"]),
    )


def _samples_of(written: Any) -> Samples:
    edits = {(_count(errors), _count(words)): _count(n) for errors, words, n in _list(written["edits"])}
    return Samples(_matched_rows(written["chunks"]), _matched_rows(written["concepts"]), edits)


def _slots_json(counts: SlotCounts) -> Json:
    return {
        "utterances": counts.utterances,
        "placed": counts.placed,
        "chunks": _by_name(counts.chunks),
        "concepts": _by_name(counts.concepts),
        "edits": {key: getattr(counts.edits, key) for key in _EDITS},
        "frames": [counts.frames.count, counts.frames.total],
        "frames_placed": [counts.frames_placed.count, counts.frames_placed.total],
    }


def _slots_of(written: Any) -> SlotCounts:
    return SlotCounts(
        _count(written["utterances"]),
        _count(written["placed"]),
        _names_of(written["chunks"]),
        _names_of(written["concepts"]),
        WordCounts(**{key: _count(written["edits"][key]) for key in _EDITS}),
        Share(*_counts(written["frames"], 2)),
        Share(*_counts(written["frames_placed"], 2)),
    )


def _ids(written: Any) -> tuple[str, ...]:
    return tuple(_text(id_) for id_ in _list(written))


def _by_name(counts: Mapping[str, Matched]) -> Json:
    return {name: list(one) for name, one in sorted(counts.items())}


def _names_of(written: Any) -> dict[str, Matched]:
    return {_text(name): Matched(*_counts(one, 3)) for name, one in _mapping(written).items()}


def _rows(counts: Mapping[Matched, int]) -> list[list[int]]:
    return [[*one, n] for one, n in sorted(counts.items())]


def _matched_rows(written: Any) -> dict[Matched, int]:
    return {Matched(*row[:3]): row[3] for row in (_counts(one, 4) for one in _list(written))}


def _counts(written: Any, number: int) -> list[int]:
    found = [_count(one) for one in _list(written)]
    if len(found) != number:
        raise ValueError(f"{len(found)} counts, where {number} are wanted")
    return found


def _kind(kind: type, what: str) -> Callable[[Any], Any]:
    def checked(written: Any) -> Any:
        if type(written) is not kind:
            raise TypeError(f"{written!r} is no {what}")
        return written

    return checked


_text: Callable[[Any], str] = _kind(str, "text")
_flag: Callable[[Any], bool] = _kind(bool, "true or false")
_list: Callable[[Any], list[Any]] = _kind(list, "list")
_mapping: Callable[[Any], dict[str, Any]] = _kind(dict, "object")


def _count(written: Any) -> int:
    if type(written) is not int or written < 0:
        raise ValueError(f"{written!r} is no count")
    return written


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
                "figures": {row.key: _figure_json(row) for row in one.rows if row.detail in (None, detail.rule.detail)},
                "labels": [
                    {"intent": name, **of._asdict(), **plain(figure)} for name, of, figure in found.intents.labels
                ],
                "concepts": [
                    {"concept": name, **of._asdict(), **plain(figure)}
                    for name, of, figure in found.slots.per_concept or found.slots.per_concept_set
                ],
                "never_predicted": list(found.intents.never_predicted),
                "empty_predictions": found.intents.empty,
                "empty_predictions_right": found.intents.empty_rightly,
                "counts": counts_json(detail.totals),
                "samples": samples_json(detail.samples),
                "groups": {
                    column: [{"label": label, **_group_of(of, one), "counts": counts_json(of)} for label, of in labels]
                    for column, labels in detail.groups
                },
            }
            for detail, found in zip(counts.details, one.figures, strict=True)
        ],
    }


def _figure_json(row: FigureRow) -> Json:
    return {"value": row.value, "interval": None if row.interval is None else list(row.interval)}


def _group_of(counts: FrameCounts, one: Reported) -> Json:
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

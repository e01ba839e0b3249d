"""Scored intents and slots as JSON, and back for merging shards (docs/reference/understanding-json.md).

All contents come from counts that add up, and are sorted. Merged shards give the text of the whole, except for names.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from harness import __version__
from harness.base.plain_json import Json, from_plain, picked, to_plain
from harness.model.errors import InputError, Place
from harness.model.frozen import frozen
from harness.model.transcript import WordCounts
from harness.statistics.intervals import Share
from harness.understanding.counts import FrameCounts, IntentCounts, MatchCounts, Rule, SlotCounts
from harness.understanding.entities import EntityCounts
from harness.understanding.figures import FrameFigures, ZeroDivision
from harness.understanding.reports.score_text import SessionNotes, SystemReport, group_means, group_table
from harness.understanding.scoring import DetailCounts, Groups, Samples, SystemCounts

_DETAIL = "detail"
_EDITS = ("correct", "substitutions", "deletions", "insertions", "sentences", "sentences_with_error")


def counts_json(counts: FrameCounts) -> Json:
    """Counts for JSON. Lists of three numbers are right, gold and predicted. Rows end with a number of utterances."""
    return {
        "utterances": counts.utterances,
        "intents": {
            "overlaps": _rows_json(counts.intents.overlaps),
            "labels": _matches_json(counts.intents.labels),
            "confusions": [[*pair, number] for pair, number in sorted(counts.intents.confusions.items())],
            "unpredicted": counts.intents.unpredicted,
        },
        "slots": _slots_json(counts.slots),
        "slots_with_values": _slots_json(counts.valued),
        "entities": _rows_json(counts.entities),
        "frames_tagged": [counts.frames_tagged.count, counts.frames_tagged.total],
    }


def rule_json(rule: Rule) -> Json:
    """A rule for JSON, without its detail."""
    return {name: value for name, value in to_plain(rule).items() if name != _DETAIL}


def rule_of(entry: Any, detail: Any) -> Rule:
    """A rule from JSON, with a detail. Raises ValueError, KeyError or TypeError if it is not valid."""
    if set(entry) != {field.name for field in fields(Rule)} - {_DETAIL}:
        raise ValueError("the rule does not have the keys that this version reads")
    return from_plain(Rule, {**entry, _DETAIL: detail})


def zero_of(entry: Any) -> ZeroDivision:
    """The values of 0/0 from JSON. Raises KeyError or TypeError if they are not valid."""
    return ZeroDivision(**{field.name: entry[field.name] for field in fields(ZeroDivision)})


def system_of(entry: Any, rules: list[Rule]) -> SystemCounts:
    """The counts of one system from JSON. Raises ValueError, KeyError or TypeError if they are not valid."""
    scores = _list(entry["scores"])
    if len(scores) != len(rules):
        raise ValueError("the numbers of scores and of details differ")
    return SystemCounts(
        gold=_text(entry["gold"]["file"]),
        predicted=_text(entry["predicted"]["file"]),
        details=tuple(_detail_of(score, rule) for score, rule in zip(scores, rules, strict=True)),
        missing=_texts(entry["missing"]),
        unknown=_texts(entry["unknown"]),
        unannotated=_texts(entry["unannotated"]),
        other_words=_texts(entry["other_words"]),
        intents_given=_flag(entry["intents_predicted"]),
        slots_given=_flag(entry["slots_predicted"]),
        surplus_blanks=_texts(entry.get("surplus_blanks", [])),  # files of version 0.2 do not have this key
    )


def _detail_of(entry: Any, rule: Rule) -> DetailCounts:
    groups: Groups = tuple(
        (_text(column), tuple((_text(group["label"]), counts_of(group["counts"])) for group in _list(labels)))
        for column, labels in _mapping(entry["groups"]).items()
    )
    # Older files do not have this key.
    queries = {_text(name): counts_of(counts) for name, counts in _mapping(entry.get("queries", {})).items()}
    totals = replace(counts_of(entry["counts"]), queries=queries)
    return DetailCounts(rule, totals, groups, _samples_of(entry["samples"]))


def counts_of(entry: Any) -> FrameCounts:
    """Counts from JSON. Raises ValueError, KeyError or TypeError if they are not valid."""
    intents = entry["intents"]
    confusions = {
        (_text(gold), _text(prediction)): _checked_count(number)
        for gold, prediction, number in _list(intents["confusions"])
    }
    return FrameCounts(
        _checked_count(entry["utterances"]),
        IntentCounts(
            _rows_of(intents["overlaps"]),
            _matches_of(intents["labels"]),
            confusions,
            _checked_count(intents.get("unpredicted", 0)),  # older files do not have this key
        ),
        _slots_of(entry["slots"]),
        _slots_of(entry["slots_with_values"]),
        dict(map(_entities_of, _list(entry["entities"]))),
        Share(*_checked_counts(entry["frames_tagged"], 2)),
    )


def _entities_of(values: Any) -> tuple[EntityCounts, int]:
    *counts, number = _checked_counts(values, 8)
    entities = EntityCounts(*counts)
    if not entities.word_whole or not entities.character_whole:
        raise ValueError("a sum of distances is divided by 0")
    return entities, number


def _samples_of(entry: Any) -> Samples:
    edits = {
        (_checked_count(errors), _checked_count(words)): _checked_count(number)
        for errors, words, number in _list(entry["edits"])
    }
    return Samples(_rows_of(entry["chunks"]), _rows_of(entry["concepts"]), edits)


def _slots_json(counts: SlotCounts) -> Json:
    return {
        **picked(counts, "utterances", "placed"),
        "chunks": _matches_json(counts.chunks),
        "concepts": _matches_json(counts.concepts),
        "multisets": _rows_json(counts.multisets),
        "edits": picked(counts.edits, *_EDITS),
        "frames": [counts.frames.count, counts.frames.total],
        "frames_placed": [counts.frames_placed.count, counts.frames_placed.total],
    }


def _slots_of(entry: Any) -> SlotCounts:
    return SlotCounts(
        utterances=_checked_count(entry["utterances"]),
        placed=_checked_count(entry["placed"]),
        chunks=_matches_of(entry["chunks"]),
        concepts=_matches_of(entry["concepts"]),
        multisets=_rows_of(entry["multisets"]),
        edits=WordCounts(**{key: _checked_count(entry["edits"][key]) for key in _EDITS}),
        frames=Share(*_checked_counts(entry["frames"], 2)),
        frames_placed=Share(*_checked_counts(entry["frames_placed"], 2)),
    )


def _texts(values: Any) -> tuple[str, ...]:
    return tuple(_text(id_) for id_ in _list(values))


def _matches_json(counts: Mapping[str, MatchCounts]) -> Json:
    return {name: list(matched) for name, matched in sorted(counts.items())}


def _matches_of(entry: Any) -> dict[str, MatchCounts]:
    return {_text(name): MatchCounts(*_checked_counts(row, 3)) for name, row in _mapping(entry).items()}


def _rows_json(counts: Mapping[MatchCounts, int] | Mapping[EntityCounts, int]) -> list[list[int]]:
    return [[*row, number] for row, number in sorted(counts.items())]


def _rows_of(rows: Any) -> dict[MatchCounts, int]:
    return {MatchCounts(*row[:3]): row[3] for row in (_checked_counts(values, 4) for values in _list(rows))}


def _checked_counts(values: Any, number: int) -> list[int]:
    counts = [_checked_count(count) for count in _list(values)]
    if len(counts) != number:
        raise ValueError(f"{len(counts)} counts instead of {number}")
    return counts


def _checker(kind: type, noun: str) -> Callable[[Any], Any]:
    def checked(value: Any) -> Any:
        if type(value) is not kind:
            raise TypeError(f"{value!r} is not {noun}")
        return value

    return checked


_text: Callable[[Any], str] = _checker(str, "a text")
_flag: Callable[[Any], bool] = _checker(bool, "true or false")
_list: Callable[[Any], list[Any]] = _checker(list, "a list")
_mapping: Callable[[Any], dict[str, Any]] = _checker(dict, "an object")


def _checked_count(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"{value!r} is not a count")
    return value


FORMAT = 1
KIND = "understanding"


@frozen
class ScoreFile:
    """The contents of a JSON file: systems scored with the same choices.

    - name: name of the file in messages.
    - labels, outside: as in SystemReport.
    - sessions: None for scores of files.
    """

    name: str
    systems: tuple[SystemCounts, ...]
    zero: ZeroDivision
    labels: tuple[str, ...] | None
    outside: str | None
    sessions: SessionNotes | None = None


def score_json(
    systems: Sequence[SystemReport], comparisons: Sequence[Json] = (), sessions: SessionNotes | None = None
) -> str:
    """The JSON text, in ASCII. ValueError without a system. sessions: None for scores of files."""
    first = systems[0]
    head: Json = {
        "format": FORMAT,
        "kind": KIND,
        "harness": __version__,
        "rule": rule_json(first.counts.details[0].rule),
        "details": [detail.rule.detail.value for detail in first.counts.details],
        "zero": to_plain(first.zero),
        "out_of_scope": first.outside,
        "declared_labels": None if first.labels is None else list(first.labels),
        "systems": [_system_json(system) for system in systems],
        "comparisons": list(comparisons),
    }
    if sessions is not None:
        head["sessions"] = to_plain(sessions)
    return json.dumps(head, indent=1, ensure_ascii=True, allow_nan=False) + "\n"


def _system_json(system: SystemReport) -> Json:
    counts = system.counts
    return {
        "gold": {"file": counts.gold},
        "predicted": {"file": counts.predicted},
        **picked(counts, "missing", "unknown", "unannotated", "other_words", "surplus_blanks"),
        "confidence": to_plain(system.confidence),
        "intents_predicted": counts.intents_given,
        "slots_predicted": counts.slots_given,
        "scores": [
            _detail_json(detail, scores, system) for detail, scores in zip(counts.details, system.figures, strict=True)
        ],
    }


def _detail_json(detail: DetailCounts, scores: FrameFigures, system: SystemReport) -> Json:
    tables = [group_table(column, labels, detail, system) for column, labels in detail.groups]
    return {
        "detail": detail.rule.detail.value,
        "figures": {
            row.key: picked(row, "value", "interval") for row in system.rows if row.detail in (None, detail.rule.detail)
        },
        "labels": [
            {"intent": name, **matches._asdict(), **to_plain(figure)} for name, matches, figure in scores.intents.labels
        ],
        "concepts": [
            {"concept": name, **matches._asdict(), **to_plain(figure)}
            for name, matches, figure in scores.slots.per_concept or scores.slots.per_concept_set
        ],
        "never_predicted": list(scores.intents.never_predicted),
        "empty_predictions": scores.intents.empty,
        "empty_predictions_right": scores.intents.empty_rightly,
        "counts": counts_json(detail.totals),
        "queries": {name: counts_json(counts) for name, counts in sorted(detail.totals.queries.items())},
        "samples": {  # each row has the counts of an utterance, then the number of utterances with these
            "chunks": _rows_json(detail.samples.chunks),
            "concepts": _rows_json(detail.samples.concepts),
            "edits": [[*row, number] for row, number in sorted(detail.samples.edits.items())],
        },
        "groups": {
            column: [
                {**row, "counts": counts_json(group_counts)}
                for row, (_, group_counts) in zip(groups.json(), labels, strict=True)
            ]
            for (column, labels), groups in zip(detail.groups, tables, strict=True)
        },
        "group_means": {column: group_means(groups) for (column, _), groups in zip(detail.groups, tables, strict=True)},
    }


def read_score_json(path: Path, name: str) -> ScoreFile:
    """Reads a file of `harness understand score --json`. InputError for any other file.

    name: name of the file in messages.
    """
    place = Place(name)
    remedy = "Choose a file written by `harness understand score --json FILE`"
    try:
        content = path.read_bytes()
    except (OSError, ValueError) as error:
        problem = f"the file cannot be read: {getattr(error, 'strerror', None) or error}"
        raise InputError(problem, place=place, remedy="Check the path and its permissions") from error
    try:
        document: Any = json.loads(content)
        if not isinstance(document, dict) or document.get("kind") != KIND:
            raise InputError("this file does not contain understanding scores", place=place, remedy=remedy)
        if document.get("format") != FORMAT:
            problem = f"the file has format {document.get('format')!r}, but this version reads {FORMAT}"
            raise InputError(problem, place=place, remedy="Score again with this version")
        rules = [rule_of(document["rule"], detail) for detail in document["details"]]
        systems = tuple(system_of(system, rules) for system in document["systems"])
        if not rules or not systems:
            raise ValueError("it contains no scores")
        zero = zero_of(document["zero"])
        labels = document["declared_labels"]
        outside = document.get("out_of_scope")
        if outside is not None and not isinstance(outside, str):
            raise TypeError("out_of_scope is not a string")
        sessions = from_plain(SessionNotes, document["sessions"]) if "sessions" in document else None
        return ScoreFile(name, systems, zero, None if labels is None else tuple(map(str, labels)), outside, sessions)
    except json.JSONDecodeError as error:
        position = Place(name, error.lineno, error.colno)
        raise InputError(
            f"not JSON: {error.msg}", place=position, remedy="Check whether the file was cut off"
        ) from error
    except KeyError as error:
        problem = f"the file has no key {error}: it is damaged, or an earlier version wrote it"
        raise InputError(problem, place=place, remedy="Score again, or leave out the file") from error
    except (ValueError, TypeError, AttributeError, IndexError, RecursionError) as error:
        problem = f"the file is damaged: {type(error).__name__}: {error}"
        raise InputError(problem, place=place, remedy="Score again, or leave out the file") from error

"""Counts of intents and slots as JSON and back. Keys and rows are sorted: equal counts are equal texts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from enum import StrEnum
from typing import Any

from harness.model.transcript import WordCounts
from harness.model.understanding import Detail
from harness.statistics.intervals import Share
from harness.understanding.arithmetic.counts import FrameCounts, IntentCounts, Matched, SlotCounts
from harness.understanding.arithmetic.rule import Rule
from harness.understanding.arithmetic.zero_division import ZeroDivision
from harness.understanding.scoring.counted import DetailCounts, Groups, Samples, SystemCounts

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
    return {one.name: _plain(getattr(rule, one.name)) for one in fields(Rule) if one.name != _DETAIL}


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
    return {one.name: getattr(zero, one.name) for one in fields(ZeroDivision)}


def zero_of(written: Any) -> ZeroDivision:
    """What was written; KeyError or TypeError for what is none."""
    return ZeroDivision(**{one.name: written[one.name] for one in fields(ZeroDivision)})


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value.value if isinstance(value, StrEnum) else value


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

"""The comparison of two evaluations as lines, CSV and JSON, with warnings if it is unfair."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from harness.base.foreign import plain_text
from harness.base.text_file import safe_csv
from harness.model.numbers import exposure, number, p_is, percent
from harness.offline.figures.comparison import (
    ComparedEvaluation,
    EvaluationComparison,
    FalseAccepts,
    SharedFilesResult,
    SpokenFile,
)
from harness.statistics.comparison import MeasureKind, sentence
from harness.statistics.intervals import Interval
from harness.statistics.significance import Difference
from harness.statistics.text import number_interval, percent_interval

MAX_DIFFERING_NAMED = 5


def lines(comparison: EvaluationComparison) -> Iterator[str]:
    """The comparison in lines. Warnings come first, since they qualify the rest."""
    yield f"A: {plain_text(comparison.first.name)}"
    yield f"B: {plain_text(comparison.second.name)}"
    for warning in warnings_of(comparison):
        yield f"Warning: {plain_text(warning)}"
    if comparison.same_files is not None and comparison.same_files.discordance.total:
        yield from _shared_lines(comparison.same_files)
    if comparison.false_accepts is not None:
        yield from _rate_lines(comparison.false_accepts)


def warnings_of(comparison: EvaluationComparison) -> Iterator[str]:
    """Warnings about names, settings and files that make the comparison unfair."""
    for evaluation, repeats in zip((comparison.first, comparison.second), comparison.repeated_names, strict=True):
        if repeats:
            files = "1 file has" if repeats == 1 else f"{repeats:,} files have"
            yield f"{evaluation.name}: {files} the same name as another one; such files are paired in list order"
    for evaluation in (comparison.first, comparison.second):
        yield from (f"{evaluation.name}: {note}" for note in evaluation.notes)
    yield from _setting_warnings(comparison.first, comparison.second)
    if comparison.same_files is not None:
        yield from _shared_warnings(comparison.same_files)
    rates = comparison.false_accepts
    has_files = comparison.first.ambient is not None and comparison.second.ambient is not None
    if rates is not None and not rates.same_audio and has_files:
        yield "the files in which false accepts are counted differ: the rates are of different audio"


def _setting_warnings(first: ComparedEvaluation, second: ComparedEvaluation) -> Iterator[str]:
    for name in dict.fromkeys([*first.settings, *second.settings]):
        first_value, second_value = first.settings.get(name), second.settings.get(name)
        if first_value is None or second_value is None:
            reporting = second.name if first_value is None else first.name
            yield f"only {reporting} reports {name}: the other may differ"
        elif first_value != second_value:
            yield f"{name} differs: {first_value} and {second_value}"


def _shared_warnings(shared: SharedFilesResult) -> Iterator[str]:
    if not shared.discordance.total:
        yield "no in-vocabulary file is in both: names must be the same in both lists"
    elif shared.only_first or shared.only_second:
        yield (
            f"in-vocabulary files in one evaluation only: {len(shared.only_first):,} in the first, "
            f"{len(shared.only_second):,} in the second; the comparison is over those in both"
        )
    if shared.differing_references:
        count = f"{shared.differing_references:,}"
        yield f"files with different numbers of reference words: {count}; the WER leaves them out"
    if shared.clusters == 1:
        yield "all files are in one cluster, so the spread between clusters is unknown"


def _shared_lines(shared: SharedFilesResult) -> Iterator[str]:
    discordance = shared.discordance
    files = "1 file" if discordance.total == 1 else f"{discordance.total:,} files"
    yield f"On {files} in both:"
    for name, errors, interval in (
        ("A", shared.first_errors, shared.first_interval),
        ("B", shared.second_errors, shared.second_interval),
    ):
        share = f"{percent(errors / discordance.total)}{_interval_text(percent_interval, interval)}"
        yield f"  {name}: {errors:,} wrong, {share}"
    p = "they never differ" if discordance.p is None else f"McNemar's exact {p_is(discordance.p)}"
    yield (
        f"  both right {discordance.both:,}, only A {discordance.only_first:,}, only B {discordance.only_second:,}, "
        f"neither {discordance.neither:,}: {p}"
    )
    if shared.difference is not None:
        units = f"over {shared.clusters:,} clusters" if shared.clusters else "over files"
        yield f"  {_difference_text(shared.difference, MeasureKind.SHARE)}, {units}"
        if shared.clusters:
            yield "  (McNemar's test assumes independent files; if clusters matter, use the line above)"
    if shared.words is not None:
        first, second, words = shared.word_errors
        yield (
            f"  WER: A {percent(first / words)}, B {percent(second / words)} of {words:,} words: "
            f"{_difference_text(shared.words, MeasureKind.WORDS)}"
        )
    for name, first_file, second_file in shared.differing[:MAX_DIFFERING_NAMED]:
        yield f"  differs: {plain_text(name, 120)}  A {_outcome_text(first_file)}, B {_outcome_text(second_file)}"
    if len(shared.differing) > MAX_DIFFERING_NAMED:
        yield f"  and {len(shared.differing) - MAX_DIFFERING_NAMED:,} more; --csv FILE lists all"


def _rate_lines(rates: FalseAccepts) -> Iterator[str]:
    yield "False accepts per hour:"
    for name, (count, hours), interval in (
        ("A", rates.first, rates.first_interval),
        ("B", rates.second, rates.second_interval),
    ):
        rate = f"{number(count / hours)}/h{_interval_text(number_interval, interval)}"
        yield f"  {name}: {count:,} in {exposure(hours)}, {rate}"
    audio = "the same audio" if rates.same_audio else "the audio may differ"
    if rates.poisson_difference is not None:
        yield f"  {_difference_text(rates.poisson_difference, MeasureKind.RATE)} (two Poisson rates; {audio})"
    if rates.difference is not None:
        yield f"  {_difference_text(rates.difference, MeasureKind.RATE)}, over the same files"


def _difference_text(difference: Difference, measure: MeasureKind) -> str:
    text = sentence("A", "B", difference, measure, more_is_better=False)
    return f"{text} (exact)" if difference.exact else text


def _interval_text(as_text: Callable[[Interval], str], interval: Interval | None) -> str:
    return "" if interval is None else f" (95 % interval {as_text(interval)})"


def _outcome_text(spoken_file: SpokenFile) -> str:
    phrase = f" {plain_text(spoken_file.said, 60)!r}" if spoken_file.said else ""
    return ("right" if spoken_file.right else "wrong") + phrase


def differing_csv(comparison: EvaluationComparison) -> Iterator[str]:
    """A row for each file on which the two differ, and for each that only one of them has."""
    yield safe_csv([["file", "a", "b", "a_said", "b_said"]])
    if comparison.same_files is None:
        return
    for name, first, second in comparison.same_files.differing:
        words = ["right" if side.right else "wrong" for side in (first, second)]
        yield safe_csv([[name, *words, first.said, second.said]])
    for name in comparison.same_files.only_first:
        yield safe_csv([[name, "listed", "not listed", "", ""]])
    for name in comparison.same_files.only_second:
        yield safe_csv([[name, "not listed", "listed", "", ""]])


def as_json(comparison: EvaluationComparison) -> dict[str, Any]:
    """The same as plain JSON values: counts, shares 0–1, null without data."""
    document: dict[str, Any] = {
        "a": comparison.first.name,
        "b": comparison.second.name,
        "warnings": list(warnings_of(comparison)),
    }
    shared, rates = comparison.same_files, comparison.false_accepts
    if shared is not None:
        discordance = shared.discordance
        document["same_files"] = {
            "files": discordance.total,
            "right_by_both": discordance.both,
            "right_by_a_alone": discordance.only_first,
            "right_by_b_alone": discordance.only_second,
            "right_by_none": discordance.neither,
            "mcnemar_p": discordance.p,
            "a_wrong": shared.first_errors,
            "a_wrong_95": shared.first_interval,
            "b_wrong": shared.second_errors,
            "b_wrong_95": shared.second_interval,
            "difference": _difference_json(shared.difference),
            "clusters": shared.clusters or None,
            "only_in_a": len(shared.only_first),
            "only_in_b": len(shared.only_second),
        }
        if shared.words is not None:
            first, second, words = shared.word_errors
            document["words"] = {
                "words": words, "a_errors": first, "b_errors": second, "difference": _difference_json(shared.words),
            }  # fmt: skip
    if rates is not None:
        document["false_accepts"] = {
            "a": {"count": rates.first[0], "hours": rates.first[1], "per_hour_95": rates.first_interval},
            "b": {"count": rates.second[0], "hours": rates.second[1], "per_hour_95": rates.second_interval},
            "p": None if rates.poisson_difference is None else rates.poisson_difference.p,
            "same_audio": rates.same_audio,
            "difference_per_hour": _difference_json(rates.difference),
        }
    return document


def _difference_json(difference: Difference | None) -> dict[str, Any] | None:
    if difference is None:
        return None
    return {
        "difference": difference.difference,
        "interval_95": difference.interval,
        "p": difference.p,
        "exact": difference.exact,
    }

"""Two evaluations compared: lines for people, JSON, and the table of files on which they differ."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from harness.base.foreign import plain_text
from harness.base.safe_csv import safe_csv
from harness.offline.figures.compared_files import SpokenFile
from harness.offline.figures.comparison import EvaluationComparison, FalseAccepts, OnSameFiles
from harness.statistics.exact import Interval
from harness.statistics.word_intervals import WerDifference

MOST_NAMED = 5


def lines(found: EvaluationComparison) -> Iterator[str]:
    """What the comparison comes to, warnings first, since they say what the rest is worth."""
    yield f"A: {plain_text(found.first)}"
    yield f"B: {plain_text(found.second)}"
    for warning in found.warnings:
        yield f"Warning: {plain_text(warning)}"
    if found.same_files is not None and found.same_files.discordance.total:
        yield from _same(found.same_files)
    if found.false_accepts is not None:
        yield from _rates(found.false_accepts)


def _same(found: OnSameFiles) -> Iterator[str]:
    both = found.discordance
    yield f"On {both.total:,} files of both:"
    for name, errors, interval in (("A", found.first_errors, found.first), ("B", found.second_errors, found.second)):
        yield f"  {name}: {errors:,} wrong, {100 * errors / both.total:.2f} %{_between(interval, 100, ' %')}"
    p = "they never differ" if both.p is None else f"McNemar's exact p = {both.p:.4g}"
    yield (
        f"  right by both {both.both:,}, by A alone {both.only_first:,}, by B alone {both.only_second:,}, by none "
        f"{both.neither:,}: {p}"
    )
    if found.difference is not None:
        over = f"over {found.clusters:,} clusters" if found.clusters else "over files"
        yield f"  A less B, {over}: {_difference(found.difference, 100, ' %')}"
        if found.clusters:
            yield "  (McNemar's test takes files as independent; where clusters matter go by the line before)"
    if found.words is not None:
        first, second, words = found.word_errors
        yield (
            f"  WER: A {100 * first / words:.3f} %, B {100 * second / words:.3f} % of {words:,} words; A less B "
            f"{_difference(found.words, 100, ' %')}"
        )
    for one in found.differing[:MOST_NAMED]:
        yield f"  differs: {plain_text(one.file, 120)}  A {_word(one.first)}, B {_word(one.second)}"
    if len(found.differing) > MOST_NAMED:
        yield f"  and {len(found.differing) - MOST_NAMED:,} more; all of them by --csv FILE"


def _rates(found: FalseAccepts) -> Iterator[str]:
    yield "False accepts an hour:"
    for name, (count, hours), interval in (
        ("A", found.first, found.interval()),
        ("B", found.second, found.interval(second=True)),
    ):
        yield f"  {name}: {count:,} in {hours:.3f} h, {count / hours:.4g}/h{_between(interval, 1, '/h')}"
    audio = "the same audio" if found.same_audio else "different audio, or audio that is not known to be the same"
    p = "n/a" if found.p is None else f"{found.p:.4g}"
    yield f"  exact conditional p = {p} (two Poisson rates; {audio})"
    if found.difference is not None:
        yield f"  A less B, over the same files: {_difference(found.difference, 1, '/h')}"


def _difference(found: WerDifference, scale: float, unit: str) -> str:
    low, high = (scale * one for one in found.interval)
    exact = "exact " if found.exact else ""
    return f"{scale * found.difference:+.4g}{unit} [{low:+.4g}, {high:+.4g}], {exact}p = {found.p:.4g}"


def _between(interval: Interval | None, scale: float, unit: str) -> str:
    return "" if interval is None else f" [{_end(scale * interval[0])}, {_end(scale * interval[1])}]{unit}"


def _end(value: float) -> str:
    """An end of an interval that is never below 0; tiny ones without an exponent."""
    return "<0.0001" if 0 < value < 1e-4 else f"{value:.4g}"


def _word(found: SpokenFile) -> str:
    said = f" {plain_text(found.said, 60)!r}" if found.said else ""
    return ("right" if found.right else "wrong") + said


def differing_csv(found: EvaluationComparison) -> Iterator[str]:
    """Every file on which the two differ, and every one that only one of them has, a row each."""
    yield safe_csv([["file", "a", "b", "a_said", "b_said"]])
    if found.same_files is None:
        return
    for one in found.same_files.differing:
        words = ["right" if side.right else "wrong" for side in (one.first, one.second)]
        yield safe_csv([[one.file, *words, one.first.said, one.second.said]])
    for name in found.same_files.only_first:
        yield safe_csv([[name, "listed", "not listed", "", ""]])
    for name in found.same_files.only_second:
        yield safe_csv([[name, "not listed", "listed", "", ""]])


def as_json(found: EvaluationComparison) -> dict[str, Any]:
    """The same as plain JSON values: counts, shares 0–1, null over nothing."""
    told: dict[str, Any] = {"a": found.first, "b": found.second, "warnings": list(found.warnings)}
    same, rates = found.same_files, found.false_accepts
    if same is not None:
        both = same.discordance
        told["same_files"] = {
            "files": both.total,
            "right_by_both": both.both,
            "right_by_a_alone": both.only_first,
            "right_by_b_alone": both.only_second,
            "right_by_none": both.neither,
            "mcnemar_p": both.p,
            "a_wrong": same.first_errors,
            "a_wrong_95": same.first,
            "b_wrong": same.second_errors,
            "b_wrong_95": same.second,
            "difference": _difference_json(same.difference),
            "clusters": same.clusters or None,
            "only_in_a": len(same.only_first),
            "only_in_b": len(same.only_second),
        }
        if same.words is not None:
            first, second, words = same.word_errors
            told["words"] = {
                "words": words, "a_errors": first, "b_errors": second, "difference": _difference_json(same.words),
            }  # fmt: skip
    if rates is not None:
        told["false_accepts"] = {
            "a": {"count": rates.first[0], "hours": rates.first[1], "per_hour_95": rates.interval()},
            "b": {"count": rates.second[0], "hours": rates.second[1], "per_hour_95": rates.interval(second=True)},
            "p": rates.p,
            "same_audio": rates.same_audio,
            "difference_per_hour": _difference_json(rates.difference),
        }
    return told


def _difference_json(found: WerDifference | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {"difference": found.difference, "interval_95": found.interval, "p": found.p, "exact": found.exact}

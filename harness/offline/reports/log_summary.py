"""Summarises a log: console lines, intervals, and totals that do not agree with its lines."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from harness.model.frozen import frozen
from harness.model.offline import ListKind
from harness.offline.reports.log import sound_lines
from harness.offline.wake_log import TOTALS, LineSums, WakeLog, computed_totals, differences, summary
from harness.offline.wake_log_reading import entries, has_escaped_names, without_events
from harness.statistics.intervals import Interval, clopper_pearson, garwood, wilson
from harness.statistics.text import number_interval, percent_interval
from harness.statistics.word_intervals import wer_interval


@frozen
class LogSummary:
    """The results of a log, computed from its own lines. Intervals are None without data."""

    log: WakeLog
    """The log without the events of files."""
    summary: str
    """The last line of the console."""
    totals: dict[str, float]
    """Totals by their keys."""
    false_accepts: Interval | None
    """95 % interval of the rate per hour."""
    false_rejects: Interval | None
    """95 % interval of the share 0–1."""
    false_rejects_wilson: Interval | None
    """The same by Wilson's method; None if the log states the interval."""
    word_errors: Interval | None
    """95 % interval of the word error rate, 0–1."""
    rejected: dict[str, int]
    """Number of rejected files by reason."""
    errors: int
    differences: tuple[str, ...]
    """Totals that the log states and that differ from the sum of its lines, in words."""
    stated_rejects: str
    """The interval of false rejects in the words of the log; "" if it can be computed. It cannot if talkers or files
    were clusters, since lines of files do not show these."""
    missed: tuple[str, ...]
    """The first false rejects, in words."""

    @property
    def with_substitutions(self) -> bool:
        """Whether the false-reject ratio covers all errors, as it does with references."""
        return "FR+SBCOUNT" in self.totals


def read_sums(path: Path, name: str) -> tuple[WakeLog, LineSums]:
    """A log without its events, and their sums. Memory does not grow with the log. name: name of the log in errors.

    Raises OSError if it cannot be read, InputError with the line if a line is invalid.
    """
    sums = LineSums()
    log_entries = entries(path, name, escaped=has_escaped_names(path, name))
    return without_events(log_entries, lambda event, _: sums.add(event)), sums


def summarise_log(log: WakeLog, sums: LineSums) -> LogSummary:
    """Summarises a log. sums: from `read_sums`."""
    totals = computed_totals(log, sums)
    hours = log.exposure_hours
    wrong = int(totals.get("FR+SBCOUNT", totals.get("FRCOUNT", 0)))
    files = int(totals.get("TACOUNT", 0)) + wrong
    name = "x-fr+sbratio-interval" if "FR+SBCOUNT" in totals else "x-frratio-interval"
    stated = log.about(name) or ""
    if "Clopper-Pearson" in stated:  # it can be computed
        stated = ""
    # Lines do not show which of them are plays of one file: only the log states intervals over files.
    in_conditions = sum(key == "x-condition" for key, _ in log.info) > 1
    is_stated = bool(stated) or in_conditions
    word_errors = _stated_interval(log.about("x-wer-interval") or "") if in_conditions else None
    if sums.words and not in_conditions:
        word_errors = wer_interval(np.asarray(sums.word_errors), np.asarray(sums.words))
    return LogSummary(
        log=log,
        summary=summary(log, sums),
        totals=totals,
        false_accepts=garwood(int(totals["FACOUNT"]), hours) if hours > 0 else None,
        false_rejects=_stated_interval(stated) if is_stated else clopper_pearson(wrong, files),
        false_rejects_wilson=None if is_stated else wilson(wrong, files),
        word_errors=word_errors,
        rejected=dict(sorted(sums.rejected.items())),
        errors=sums.lines["ERROR"],
        differences=(*differences(log, sums), *_file_differences(log, sums.lines)),
        stated_rejects=stated,
        missed=tuple(sums.missed),
    )


def lines(report: LogSummary) -> Iterator[str]:
    """The summary in lines for people, first those of the console."""
    log = report.log
    partial, shard = log.about("x-partial"), log.about("x-shard")
    if partial is not None:
        yield f"Partial: {partial}."
    if shard is not None:
        yield f"Shard {shard}."
    yield from sound_lines(
        log,
        inv=_has_list(log, "inv", ListKind.INV, ListKind.REFERENCED),
        oov=_has_list(log, "oov", ListKind.OOV, ListKind.LABELLED),
    )
    point = log.about("operating-point")
    if point is not None:
        yield f"Using operating point {point}."
    yield report.summary
    threshold = log.about("x-threshold")
    if threshold is not None:
        yield f"Threshold: {threshold}."
    if report.false_accepts is not None:
        yield f"False accepts: 95 % interval {number_interval(report.false_accepts)} per hour (Garwood)."
    subject = "False rejects and substitutions" if report.with_substitutions else "False rejects"
    if report.stated_rejects:
        yield f"{subject}: {report.stated_rejects}."
    elif report.false_rejects is not None:
        yield f"{subject}: 95 % interval {percent_interval(report.false_rejects)} (Clopper-Pearson)."
    for file in report.missed:
        yield f"Missed: {file}."
    if report.word_errors is not None:
        yield f"WER: 95 % interval {percent_interval(report.word_errors)} (by file)."
    for reason, count in report.rejected.items():
        yield f"Rejected: {count} {reason}."
    if report.errors:
        yield f"Errors: {report.errors}."
    for why in (detail for name, detail in log.info if name == "x-lost-worker"):
        yield f"Lost and replaced: {why}."
    for warning in (detail for name, detail in log.info if name == "x-warning"):
        yield f"Warning: {warning}."
    for difference in report.differences:
        yield f"Mismatch: {difference}."


def as_json(report: LogSummary) -> dict[str, Any]:
    """The summary for programs. A total without data is null. Rates are per hour, ratios and WER in per cent as in the
    log."""
    log = report.log
    reject_ratio = "FR+SBRATIO" if report.with_substitutions else "FRRATIO"
    return {
        "summary": report.summary,
        "partial": log.about("x-partial"),
        "shard": log.about("x-shard"),
        "info": [list(pair) for pair in log.info],
        "seconds": {kind: log.seconds(kind) for kind in ("inv", "oov", "inv/oov")},
        "counts_in_vocabulary": log.counts_in_vocabulary,
        "totals": {key: report.totals.get(key) for key in TOTALS},
        "stated_totals": dict(log.totals),
        "intervals_95": {
            "FARATE": report.false_accepts,
            reject_ratio: _per_cent(report.false_rejects),
            f"{reject_ratio}_wilson": _per_cent(report.false_rejects_wilson),
            "WER": _per_cent(report.word_errors),
        },
        "rejected": report.rejected,
        "errors": report.errors,
        "differences": list(report.differences),
    }


def _file_differences(log: WakeLog, line_counts: Counter[str]) -> Iterator[str]:
    """Differences between the numbers of files that a log of `harness evaluate` states and its lines per file."""
    if log.about("x-task") is None:
        return
    outcomes = sum(line_counts[key] for key in ("INVTA", "INVFR", "CMDTA", "CMDSB", "CMDFR", "STTTA", "STTSB", "STTFR"))
    outcomes -= int(log.about("x-phrases") or 0)
    for name, by_lines in (("inv-files", outcomes), ("rejected-files", line_counts["REJECT"])):
        stated = log.about(name)
        if stated is not None and int(stated) != by_lines:
            yield f"{name} is {stated}, but its lines add up to {by_lines}"


def _has_list(log: WakeLog, kind: str, *list_kinds: ListKind) -> bool:
    """Whether there was a list of these kinds, even if all of its files were rejected. kind: its name in the log's
    lines of hours, `inv` or `oov`."""
    in_lists = any(name == "x-list" and detail.partition(" ")[0] in list_kinds for name, detail in log.info)
    return in_lists or bool(int(log.about(f"{kind}-files") or 0)) or log.seconds(kind) > 0


def _stated_interval(stated: str) -> Interval | None:
    """The interval in a text such as `2.5000 to 91.0000 %, over 2 voices, 95 %`, as shares 0–1. None for another text,
    such as `too few voices …`."""
    ends = re.match(r"([\d.]+) to ([\d.]+) %", stated)
    return None if ends is None else (float(ends[1]) / 100, float(ends[2]) / 100)


def _per_cent(interval: Interval | None) -> list[float] | None:
    return None if interval is None else [100 * end for end in interval]

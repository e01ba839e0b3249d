"""Reads evaluations to compare, from their journals or from logs alone (such as the original tool's), and prints
comparisons."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from harness.base.foreign import plain_text
from harness.base.text_file import safe_csv
from harness.model.errors import InputError
from harness.model.numbers import counted, exact, exposure, number, p_is, percent
from harness.model.offline import Counting, ListKind
from harness.model.transcript import WordCounts
from harness.offline.figures.comparison import (
    AmbientFiles,
    Clusters,
    Evaluated,
    EvaluationComparison,
    FalseAccepts,
    OnSameFiles,
    SpokenFile,
    SpokenFiles,
)
from harness.offline.figures.counts import ACCEPTED, FileVerdict, Key, Tally, judged
from harness.offline.journal import JournalFile
from harness.offline.journal_lines import outcome_of
from harness.offline.reports.log import host_info, label_span
from harness.offline.wake_log import CommandHeard, Happening, LineSums, Missed, Spot, Words, computed
from harness.offline.wake_log_reading import Entry, demand_numbers, entries, entry_at, names_escaped, without_happenings
from harness.statistics.comparison import Counted, sentence
from harness.statistics.intervals import Interval
from harness.statistics.significance import Difference
from harness.statistics.text import number_interval, percent_interval

JOURNAL = ".jsonl"
_SETTINGS = {
    "x-lead-in-ms": "the lead-in (ms)",
    "x-lead-in-ref": "the edge of a detection that must follow the lead-in",
    "x-count-in-vocabulary": "-u",
    "x-refractory-ms": "the refractory time (ms)",
    "x-normalisation": "the normalisation of texts (-n)",
    "x-resample": "--resample",
    "x-tail-s": "--tail (s)",
    "x-continuous": "--continuous",
    "x-processor": "the processor",
    "x-instruction-set": "the instruction set",
    "x-threads": "the number of threads",
}


_LABEL_BITS = 16
"""For the number of a phrase in its recording."""


def journal_of(log: Path) -> Path:
    return log.with_name(log.name + JOURNAL) if log.name else log


def read_evaluated(path: Path, clusters: Clusters | None = None, called: str = "") -> Evaluated:
    """Reads a journal, a log with its journal beside it, or a log alone. InputError for anything else. Names and
    texts stay in the file and are read again on access. called: its name for people, if not `path`."""
    called = called or str(path)
    if path.suffix == JOURNAL:
        return _of_journal(JournalFile(path), path.name, clusters)
    beside = journal_of(path)
    if beside.is_file():
        return _of_journal(JournalFile(beside), path.name, clusters)
    try:
        return _of_log(path, called, clusters)
    except OSError as error:
        raise InputError(f"{called} cannot be read: {error.strerror or error}") from error


def _of_journal(journal: JournalFile, name: str, clusters: Clusters | None) -> Evaluated:
    header = journal.header
    counting, tally = header.counting, Tally(header.counting)
    spoken = SpokenFiles(partial(_of_journal_again, journal.path, counting), clusters)
    ambient = AmbientFiles(clusters)
    for offset, one in zip(journal.offsets, journal.outcomes(), strict=True):
        verdict = tally.add(one.outcome)
        if verdict.rejected is not None:
            continue
        if one.outcome.kind is ListKind.LABELLED:
            for number, (phrase, file) in enumerate(_labelled(verdict, one.listed)):
                spoken.add(phrase, file, int(offset) << _LABEL_BITS | number)
        if one.outcome.kind in (ListKind.OOV, ListKind.LABELLED):
            found = sum(fact.key is Key.OOVFA for fact in verdict.facts)
            ambient.add(one.listed, found, one.outcome.seconds / 3600)
        else:
            spoken.add(one.listed, _spoken(verdict), int(offset) << _LABEL_BITS)
    notes = [] if journal.complete else [f"it is partial, {len(journal):,} of {header.planned:,} files"]
    counts = tally.counts
    if counts.rejected_files:
        notes.append(f"rejected: {counted(counts.rejected_files, 'file')}")
    rule = header.facts.rule
    told = {
        "x-lead-in-ms": exact(counting.lead_in_ms),
        "x-lead-in-ref": counting.lead_in_ref.value,
        "x-count-in-vocabulary": "yes" if counting.count_in_vocabulary else "no",
        "x-refractory-ms": None if rule is None else exact(rule.refractory_samples * 1000 / header.facts.rate_hz),
        "x-normalisation": "plain" if counting.normalise else "verbatim",
        "x-resample": "yes" if header.evaluation.resample else "no",
        "x-tail-s": exact(header.evaluation.tail_s),
        "x-continuous": "yes" if header.evaluation.continuous else "no",
        **dict(host_info(journal.used)),
    }
    return Evaluated(
        name,
        spoken,
        ambient,
        counts.false_accepts(counting),
        counts.exposure_hours(counting),
        {_SETTINGS[key]: value for key, value in told.items() if value is not None},
        counts.has_words,
        tuple(notes),
    )


def _spoken(verdict: FileVerdict) -> SpokenFile:
    fact = next(one for one in verdict.facts if one.key not in (Key.INVFA, Key.INVTX, Key.ERROR))
    words = fact.words or WordCounts()
    return SpokenFile(fact.key in ACCEPTED, words.errors, words.words, fact.spot.phrase if fact.spot else "")


def _labelled(verdict: FileVerdict, file: str) -> list[tuple[str, SpokenFile]]:
    """The phrases that are labelled in a long recording, in order of time, each as a file of its own."""
    facts = [(fact.label, fact) for fact in verdict.facts if fact.label is not None]
    facts.sort(key=lambda one: (one[0].start_s, one[0].end_s, one[0].phrase))
    return [
        (
            phrase_name(file, label_span(label)),
            SpokenFile(fact.key in ACCEPTED, said=fact.spot.phrase if fact.spot else ""),
        )
        for label, fact in facts
    ]


def phrase_name(file: str, label_ms: str) -> str:
    """The name of a phrase in a long recording."""
    return f"{file} at {label_ms} ms"


def _of_journal_again(path: Path, counting: Counting, place: int) -> tuple[str, SpokenFile]:
    """Reads an outcome of a journal again, by the byte at which its line begins, and the number of the phrase."""
    begins, number = place >> _LABEL_BITS, place & ((1 << _LABEL_BITS) - 1)
    try:
        with path.open("rb") as file:
            file.seek(begins)
            one = outcome_of(file.readline())
    except (OSError, ValueError) as error:
        raise _changed(path) from error
    verdict = judged(one.outcome, counting)
    if one.outcome.kind is ListKind.LABELLED:
        return _labelled(verdict, one.listed)[number]
    return one.listed, _spoken(verdict)


def _of_log_again(path: Path, escaped: bool, begins: int) -> tuple[str, SpokenFile]:
    try:
        one = entry_at(path, begins, escaped=escaped)
    except OSError as error:
        raise _changed(path) from error
    found = None if one is None else _spoken_line(one)
    if found is None:
        raise _changed(path)
    return found


def _changed(path: Path) -> InputError:
    return InputError(f"{path} has changed while it was compared", remedy="Compare when its evaluation has ended")


def _spoken_line(one: Entry) -> tuple[str, SpokenFile] | None:
    """The in-vocabulary file whose outcome a line states; None for another line."""
    match one:
        case Spot(key="INVTA"):
            return _name(one), SpokenFile(True, said=one.phrase)
        case CommandHeard():
            return one.file, SpokenFile(one.key == "CMDTA", said=one.phrase)
        case Words():
            errors = one.substitutions + one.additions + one.deletions
            return one.file, SpokenFile(one.key == "STTTA", errors, one.words, one.phrase)
        case Missed():
            words = len(one.reference.split()) if one.key == "STTFR" else 0
            return _name(one), SpokenFile(False, words, words)
        case _:
            return None


def _name(one: Spot | Missed) -> str:
    label_ms = dict(one.extras).get("x-label-ms")
    return one.file if label_ms is None else phrase_name(one.file, label_ms)


def _of_log(path: Path, called: str, clusters: Clusters | None) -> Evaluated:
    escaped = names_escaped(path, called)
    spoken = SpokenFiles(partial(_of_log_again, path, escaped), clusters)
    sums = LineSums()

    def take(one: Happening, begins: int) -> None:
        sums.add(one)
        if (found := _spoken_line(one)) is not None:
            spoken.add(*found, begins)

    log = without_happenings(entries(path, called, escaped=escaped), take)
    demand_numbers(log, called)
    totals = computed(log, sums)
    rejected = sums.lines["REJECT"]
    hours = log.seconds("oov") + (log.seconds("inv/oov") if log.counts_in_vocabulary else 0.0)
    settings = {words: told for key, words in _SETTINGS.items() if (told := log.about(key)) is not None}
    settings.setdefault(_SETTINGS["x-count-in-vocabulary"], "yes" if log.counts_in_vocabulary else "no")
    settings.setdefault(_SETTINGS["x-tail-s"], "0")
    notes = [f"it is partial, {part}"] if (part := log.about("x-partial")) else []
    if rejected:
        notes.append(f"rejected: {counted(rejected, 'file')}")
    return Evaluated(
        Path(called).name,
        spoken,
        None,
        int(totals.get("FACOUNT", sums.lines["OOVFA"])),
        hours / 3600,
        settings,
        "WER_WORDS" in totals,
        tuple(notes),
    )


MOST_NAMED = 5


def lines(found: EvaluationComparison) -> Iterator[str]:
    """The comparison in lines. Warnings come first, since they qualify the rest."""
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
        yield f"  {name}: {errors:,} wrong, {percent(errors / both.total)}{_between(percent_interval, interval)}"
    p = "they never differ" if both.p is None else f"McNemar's exact {p_is(both.p)}"
    yield (
        f"  both right {both.both:,}, only A {both.only_first:,}, only B {both.only_second:,}, neither "
        f"{both.neither:,}: {p}"
    )
    if found.difference is not None:
        over = f"over {found.clusters:,} clusters" if found.clusters else "over files"
        yield f"  {_sentence(found.difference, Counted.SHARE)}, {over}"
        if found.clusters:
            yield "  (McNemar's test assumes independent files; if clusters matter, use the line above)"
    if found.words is not None:
        first, second, words = found.word_errors
        yield (
            f"  WER: A {percent(first / words)}, B {percent(second / words)} of {words:,} words: "
            f"{_sentence(found.words, Counted.WORDS)}"
        )
    for name, first_file, second_file in found.differing[:MOST_NAMED]:
        yield f"  differs: {plain_text(name, 120)}  A {_word(first_file)}, B {_word(second_file)}"
    if len(found.differing) > MOST_NAMED:
        yield f"  and {len(found.differing) - MOST_NAMED:,} more; --csv FILE lists all"


def _rates(found: FalseAccepts) -> Iterator[str]:
    yield "False accepts per hour:"
    for name, (count, hours), interval in (
        ("A", found.first, found.interval()),
        ("B", found.second, found.interval(second=True)),
    ):
        rate = f"{number(count / hours)}/h{_between(number_interval, interval)}"
        yield f"  {name}: {count:,} in {exposure(hours)}, {rate}"
    audio = "the same audio" if found.same_audio else "the audio may differ"
    if found.apart is not None:
        yield f"  {_sentence(found.apart, Counted.RATE)} (two Poisson rates; {audio})"
    if found.difference is not None:
        yield f"  {_sentence(found.difference, Counted.RATE)}, over the same files"


def _sentence(apart: Difference, counted: Counted) -> str:
    return sentence("A", "B", apart, counted, more_is_better=False) + (" (exact)" if apart.exact else "")


def _between(written: Callable[[Interval], str], interval: Interval | None) -> str:
    return "" if interval is None else f" (95 % interval {written(interval)})"


def _word(found: SpokenFile) -> str:
    said = f" {plain_text(found.said, 60)!r}" if found.said else ""
    return ("right" if found.right else "wrong") + said


def differing_csv(found: EvaluationComparison) -> Iterator[str]:
    """A row for each file on which the two differ, and for each that only one of them has."""
    yield safe_csv([["file", "a", "b", "a_said", "b_said"]])
    if found.same_files is None:
        return
    for name, first, second in found.same_files.differing:
        words = ["right" if side.right else "wrong" for side in (first, second)]
        yield safe_csv([[name, *words, first.said, second.said]])
    for name in found.same_files.only_first:
        yield safe_csv([[name, "listed", "not listed", "", ""]])
    for name in found.same_files.only_second:
        yield safe_csv([[name, "not listed", "listed", "", ""]])


def as_json(found: EvaluationComparison) -> dict[str, Any]:
    """The same as plain JSON values: counts, shares 0–1, null without data."""
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
            "p": None if rates.apart is None else rates.apart.p,
            "same_audio": rates.same_audio,
            "difference_per_hour": _difference_json(rates.difference),
        }
    return told


def _difference_json(found: Difference | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {"difference": found.difference, "interval_95": found.interval, "p": found.p, "exact": found.exact}

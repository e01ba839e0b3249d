"""Reads evaluations to compare, from their journals or from logs alone (such as the original tool's)."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from harness.model.errors import InputError
from harness.model.numbers import counted
from harness.model.offline import CountingRules, ListKind, file_number
from harness.model.transcript import WordCounts
from harness.offline.figures.comparison import AmbientFiles, Clusters, ComparedEvaluation, SpokenFile, SpokenFiles
from harness.offline.figures.counts import ACCEPTED, TARGETS, FileVerdict, Tally, judge_file
from harness.offline.journal import JournalFile
from harness.offline.journal_lines import outcome_of
from harness.offline.reports.log import counting_info, host_info, label_span
from harness.offline.wake_log import LineSums, MissedFile, Spot, TranscriptLine, WakeLogEvent, computed_totals
from harness.offline.wake_log_reading import (
    WakeLogLine,
    demand_numbers,
    entries,
    entry_at,
    has_escaped_names,
    without_events,
)

JOURNAL = ".jsonl"
_SETTINGS = {
    "x-lead-in-ms": "the lead-in (ms)",
    "x-lead-in-ref": "the edge of a detection that must follow the lead-in",
    "x-label-tolerance-s": "--label-tolerance (s)",
    "x-count-in-vocabulary": "-u",
    "x-refractory-ms": "the refractory time (ms)",
    "x-normalisation": "the normalisation of texts (-n)",
    "x-resample": "--resample",
    "x-tail-s": "--tail (s)",
    "x-continuous": "--continuous",
    "x-vad": "-a",
    "x-processor": "the processor",
    "x-instruction-set": "the instruction set",
    "x-threads": "the number of threads",
}
"""Settings that make a comparison unfair if they differ: the key of each in a log, and its name for people."""
_LABEL_BITS = 16
"""The low bits of a place hold the number of the phrase in its recording. The others hold the byte at which its line in
the journal begins."""


def journal_of(log: Path) -> Path:
    """The path of the journal beside a log."""
    return log.with_name(log.name + JOURNAL) if log.name else log


def read_evaluated(path: Path, clusters: Clusters | None = None, display_name: str = "") -> ComparedEvaluation:
    """Reads a journal, a log with its journal beside it, or a log alone.

    Raises InputError for anything else. Names and texts stay in the file and are read again on access.

    display_name: its name in messages; "" for its path.
    """
    display_name = display_name or str(path)
    if path.suffix == JOURNAL:
        return _read_journal(JournalFile(path), path.name, clusters)
    journal = journal_of(path)
    if journal.is_file():
        return _read_journal(JournalFile(journal), path.name, clusters)
    try:
        return _read_log(path, display_name, clusters)
    except OSError as error:
        raise InputError(f"{display_name} cannot be read: {error.strerror or error}") from error


def _read_journal(journal: JournalFile, name: str, clusters: Clusters | None) -> ComparedEvaluation:
    """Reads a journal for a comparison: one row for each file, and for each labelled phrase."""
    header = journal.header
    counting, tally = header.counting, Tally(header.counting)
    spoken = SpokenFiles(partial(_reread_journal, journal.path, counting), clusters)
    ambient = AmbientFiles(clusters)
    conditions = len(header.evaluation.conditions)
    for offset, entry in zip(journal.offsets, journal.outcomes(), strict=True):
        verdict = tally.add(entry.outcome)
        if verdict.rejected is not None:
            continue
        kind, cluster = entry.outcome.kind, None
        if conditions > 1:  # a file in all its conditions is one cluster, as in the evaluation's own intervals
            cluster = f"{kind} {file_number(entry.outcome.number, conditions)}"
        if kind is ListKind.LABELLED:
            for label_number, (phrase, file) in enumerate(_labelled_phrases(verdict, entry.listed)):
                place = int(offset) << _LABEL_BITS | label_number
                spoken.add(phrase, file, place, None if cluster is None else f"{cluster} {label_number}")
        elif kind is not ListKind.OOV:
            spoken.add(entry.listed, _spoken_file(verdict), int(offset) << _LABEL_BITS, cluster)
        if len(tally.false_accepts) > len(ambient):  # the file belongs to the rate of false accepts
            ambient.add(entry.listed, tally.false_accepts[-1], tally.exposure_s[-1] / 3600, cluster)
    notes = [] if journal.complete else [f"it is partial, {len(journal):,} of {header.planned:,} files"]
    counts = tally.counts
    if counts.rejected_files:
        notes.append(f"rejected: {counted(counts.rejected_files, 'file')}")
    stated_settings = {"x-tail-s": "0", **dict((*counting_info(header), *host_info(journal.used)))}
    return ComparedEvaluation(
        name=name,
        spoken=spoken,
        ambient=ambient,
        false_accepts=counts.false_accepts(counting),
        hours=counts.exposure_hours(counting),
        settings={name: stated_settings[key] for key, name in _SETTINGS.items() if key in stated_settings},
        has_words=counts.has_words,
        notes=tuple(notes),
    )


def _spoken_file(verdict: FileVerdict) -> SpokenFile:
    """The outcome of an in-vocabulary file that is not a long recording. Exactly one of its facts is its result."""
    [fact] = [fact for fact in verdict.facts if fact.key in TARGETS]
    words = fact.words or WordCounts()
    return SpokenFile(fact.key in ACCEPTED, words.errors, words.words, fact.spot.phrase if fact.spot else "")


def _labelled_phrases(verdict: FileVerdict, file: str) -> list[tuple[str, SpokenFile]]:
    """The labelled phrases of a long recording in order of time. Each is compared like a file of its own."""
    facts = [(fact.label, fact) for fact in verdict.facts if fact.label is not None]
    facts.sort(key=lambda labelled: (labelled[0].start_s, labelled[0].end_s, labelled[0].phrase))
    phrases = []
    for label, fact in facts:
        reported = fact.spot.phrase if fact.spot else ""
        phrases.append((phrase_name(file, label_span(label)), SpokenFile(fact.key in ACCEPTED, said=reported)))
    return phrases


def phrase_name(file: str, label_ms: str) -> str:
    """The name of a phrase in a long recording: the file and the span of its label."""
    return f"{file} at {label_ms} ms"


def _reread_journal(path: Path, counting: CountingRules, place: int) -> tuple[str, SpokenFile]:
    """Name and outcome of a file or phrase of a journal. place: see _LABEL_BITS.

    Raises InputError if the journal has changed.
    """
    line_offset, label_number = place >> _LABEL_BITS, place & ((1 << _LABEL_BITS) - 1)
    try:
        with path.open("rb") as file:
            file.seek(line_offset)
            entry = outcome_of(file.readline())
    except (OSError, ValueError) as error:
        raise _changed_error(path) from error
    verdict = judge_file(entry.outcome, counting)
    if entry.outcome.kind is ListKind.LABELLED:
        return _labelled_phrases(verdict, entry.listed)[label_number]
    return entry.listed, _spoken_file(verdict)


def _reread_log(path: Path, escaped: bool, line_offset: int) -> tuple[str, SpokenFile]:
    """Name and outcome of a file of a log. Raises InputError if the log has changed."""
    try:
        entry = entry_at(path, line_offset, escaped=escaped)
    except OSError as error:
        raise _changed_error(path) from error
    spoken_file = None if entry is None else _spoken_in_line(entry)
    if spoken_file is None:
        raise _changed_error(path)
    return spoken_file


def _changed_error(path: Path) -> InputError:
    return InputError(f"{path} changed while it was being compared", remedy="Compare when its evaluation has ended")


def _spoken_in_line(entry: WakeLogLine) -> tuple[str, SpokenFile] | None:
    """The name and outcome of the in-vocabulary file that a line reports; None for another line."""
    match entry:
        case Spot(key="INVTA"):
            return _phrase_or_file_name(entry), SpokenFile(True, said=entry.phrase)
        case Spot(key="CMDTA" | "CMDSB"):
            return entry.file, SpokenFile(entry.key == "CMDTA", said=entry.phrase)
        case TranscriptLine():
            errors = entry.substitutions + entry.additions + entry.deletions
            return entry.file, SpokenFile(entry.key == "STTTA", errors, entry.words, entry.phrase)
        case MissedFile():
            words = len(entry.reference.split()) if entry.key == "STTFR" else 0
            return _phrase_or_file_name(entry), SpokenFile(False, words, words)
        case _:
            return None


def _phrase_or_file_name(entry: Spot | MissedFile) -> str:
    """The name of the file; for a labelled phrase, its own."""
    label_ms = dict(entry.extras).get("x-label-ms")
    return entry.file if label_ms is None else phrase_name(entry.file, label_ms)


def _read_log(path: Path, display_name: str, clusters: Clusters | None) -> ComparedEvaluation:
    """Reads a log without a journal. Raises OSError if it cannot be read, InputError if it is not a log."""
    escaped = has_escaped_names(path, display_name)
    spoken = SpokenFiles(partial(_reread_log, path, escaped), clusters)
    sums = LineSums()

    def add_event(event: WakeLogEvent, line_offset: int) -> None:
        sums.add(event)
        named_file = _spoken_in_line(event)
        if named_file is not None:
            name, file = named_file
            spoken.add(name, file, line_offset)

    log = without_events(entries(path, display_name, escaped=escaped), add_event)
    demand_numbers(log, display_name)
    totals = computed_totals(log, sums)
    rejected = sums.lines["REJECT"]
    stated_settings = {name: log.about(key) for key, name in _SETTINGS.items()}
    settings = {name: setting for name, setting in stated_settings.items() if setting is not None}
    # Logs of other tools do not say these two.
    settings.setdefault(_SETTINGS["x-count-in-vocabulary"], "yes" if log.counts_in_vocabulary else "no")
    settings.setdefault(_SETTINGS["x-tail-s"], "0")
    part = log.about("x-partial")
    notes = [f"it is partial, {part}"] if part else []
    if rejected:
        notes.append(f"rejected: {counted(rejected, 'file')}")
    return ComparedEvaluation(
        name=Path(display_name).name,
        spoken=spoken,
        ambient=None,
        false_accepts=int(totals.get("FACOUNT", sums.lines["OOVFA"])),
        hours=log.exposure_hours,
        settings=settings,
        has_words="WER_WORDS" in totals,
        notes=tuple(notes),
    )

"""Evaluations as they are compared, from their journals or, as of the original tool, from their logs alone."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from harness.evaluate.offline.comparison import AmbientFile, Evaluated, SpokenFile
from harness.evaluate.offline.counts import Tally
from harness.evaluate.offline.verdicts import ACCEPTED, Key, Verdict
from harness.model.errors import InputError
from harness.model.offline import ListKind
from harness.reports.cells import counted
from harness.reports.wake_log import Command, Missed, Rejected, Spot, WakeLog, Words, computed
from harness.reports.wake_log_text import read
from harness.rig.offline.journal_file import JournalFile, read_journal

JOURNAL = ".jsonl"
_SETTINGS = {
    "x-lead-in-ms": "the lead-in, ms,",
    "x-lead-in-ref": "what of a spot the lead-in is judged by",
    "x-count-in-vocabulary": "-u",
    "x-refractory-ms": "the refractory time, ms,",
    "x-normalisation": "how texts are compared (-n)",
    "x-resample": "--resample",
    "x-continuous": "--continuous",
}


def journal_of(log: Path) -> Path:
    """The journal beside a log, where there is one."""
    return log.with_name(log.name + JOURNAL) if log.name else log


def read_evaluated(path: Path) -> Evaluated:
    """From a journal, from a log with its journal beside it, or from a log alone; InputError for anything else."""
    if path.suffix == JOURNAL:
        return _of_journal(read_journal(path), path.name)
    beside = journal_of(path)
    if beside.is_file():
        return _of_journal(read_journal(beside), path.name)
    try:
        text = path.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from error
    return _of_log(read(text, str(path)), path.name)


def _of_journal(journal: JournalFile, name: str) -> Evaluated:
    header = journal.header
    counting, tally = header.counting, Tally(header.counting)
    spoken: dict[str, SpokenFile] = {}
    ambient: dict[str, AmbientFile] = {}
    for one in journal.outcomes():
        verdict = tally.add(one.outcome)
        if verdict.rejected is not None:
            continue
        if one.outcome.kind is ListKind.OOV:
            found = sum(fact.key is Key.OOVFA for fact in verdict.facts)
            ambient[one.listed] = AmbientFile(found, one.outcome.seconds / 3600)
        else:
            spoken[one.listed] = _spoken(verdict)
    notes = [] if journal.complete else [f"it is partial, {len(journal):,} of {header.planned:,} files"]
    counts = tally.counts
    if counts.rejected_files:
        notes.append(f"rejected: {counted(counts.rejected_files, 'file')}")
    rule = header.facts.rule
    told = {
        "x-lead-in-ms": f"{counting.lead_in_ms:g}",
        "x-lead-in-ref": counting.lead_in_ref.value,
        "x-count-in-vocabulary": "yes" if counting.count_in_vocabulary else "no",
        "x-refractory-ms": None if rule is None else f"{rule.refractory_samples * 1000 / header.facts.rate_hz:g}",
        "x-normalisation": "plain" if counting.normalise else "verbatim",
        "x-resample": "yes" if header.evaluation.resample else "no",
        "x-continuous": "yes" if header.evaluation.continuous else "no",
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


def _spoken(verdict: Verdict) -> SpokenFile:
    fact = next(one for one in verdict.facts if one.key not in (Key.INVFA, Key.INVTX, Key.ERROR))
    said = fact.spot.phrase if fact.spot is not None else ""
    words = fact.words
    return SpokenFile(
        fact.key in ACCEPTED, words.errors if words is not None else 0, words.words if words is not None else 0, said
    )


def _of_log(log: WakeLog, name: str) -> Evaluated:
    spoken: dict[str, SpokenFile] = {}
    ambient: Counter[str] = Counter()
    rejected = 0
    for one in log.happenings:
        match one:
            case Spot(key="INVTA"):
                spoken[one.file] = SpokenFile(True, said=one.phrase)
            case Spot(key="OOVFA"):
                ambient[one.file] += 1
            case Command():
                spoken[one.file] = SpokenFile(one.key == "CMDTA", said=one.phrase)
            case Words():
                errors = one.substitutions + one.additions + one.deletions
                spoken[one.file] = SpokenFile(one.key == "STTTA", errors, one.words, one.phrase)
            case Missed():
                words = len(one.reference.split()) if one.key == "STTFR" else 0
                spoken[one.file] = SpokenFile(False, words, words)
            case Rejected():
                rejected += 1
            case _:
                pass
    totals = computed(log)
    hours = log.seconds("oov") + (log.seconds("inv/oov") if log.counts_in_vocabulary else 0.0)
    settings = {words: found for key, words in _SETTINGS.items() if (found := log.about(key)) is not None}
    settings.setdefault(_SETTINGS["x-count-in-vocabulary"], "yes" if log.counts_in_vocabulary else "no")
    notes = [f"it is partial, {partial}"] if (partial := log.about("x-partial")) else []
    if rejected:
        notes.append(f"rejected: {counted(rejected, 'file')}")
    return Evaluated(
        name,
        spoken,
        None,
        int(totals.get("FACOUNT", sum(ambient.values()))),
        hours / 3600,
        settings,
        "WER_WORDS" in totals,
        tuple(notes),
    )

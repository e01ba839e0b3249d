"""Evaluations as they are compared, from their journals or, as of the original tool, from their logs alone."""

from __future__ import annotations

from pathlib import Path

from harness.base.cells import counted
from harness.model.errors import InputError
from harness.model.offline import Counting, ListKind
from harness.offline.figures.compared_files import AmbientFile, AmbientFiles, Clusters, SpokenFile, SpokenFiles
from harness.offline.figures.comparison import Evaluated
from harness.offline.figures.counts import Tally
from harness.offline.figures.verdicts import ACCEPTED, Key, Verdict, judged
from harness.offline.journal_file import JournalFile, read_journal
from harness.offline.journal_lines import outcome_of
from harness.wake.reports.wake_log import Command, LineSums, Missed, Spot, WakeLog, Words, computed
from harness.wake.reports.wake_log_reading import Entry, Info, Total, demand_numbers, entries, entry_at, names_escaped

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


def read_evaluated(path: Path, clusters: Clusters | None = None, called: str = "") -> Evaluated:
    """From a journal, from a log with its journal beside it, or from a log alone; InputError for anything else.

    Names and texts stay in the file, and are read again from there where they are wanted. called: its name for people,
    where `path` has another.
    """
    called = called or str(path)
    if path.suffix == JOURNAL:
        return _of_journal(read_journal(path), path.name, clusters)
    beside = journal_of(path)
    if beside.is_file():
        return _of_journal(read_journal(beside), path.name, clusters)
    try:
        return _of_log(path, called, clusters)
    except OSError as error:
        raise InputError(f"{called} cannot be read: {error.strerror or error}") from error


def _of_journal(journal: JournalFile, name: str, clusters: Clusters | None) -> Evaluated:
    header = journal.header
    counting, tally = header.counting, Tally(header.counting)
    spoken = SpokenFiles(_JournalAgain(journal.path, counting), clusters)
    ambient = AmbientFiles(clusters)
    for offset, one in zip(journal.index.offsets, journal.outcomes(), strict=True):
        verdict = tally.add(one.outcome)
        if verdict.rejected is not None:
            continue
        if one.outcome.kind is ListKind.OOV:
            found = sum(fact.key is Key.OOVFA for fact in verdict.facts)
            ambient.add(one.listed, AmbientFile(found, one.outcome.seconds / 3600))
        else:
            spoken.add(one.listed, _spoken(verdict), int(offset))
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


class _JournalAgain:
    """Reads an outcome of a journal again, by the byte at which it begins."""

    def __init__(self, path: Path, counting: Counting) -> None:
        self._path, self._counting = path, counting

    def __call__(self, begins: int) -> tuple[str, SpokenFile]:
        try:
            with self._path.open("rb") as file:
                file.seek(begins)
                one = outcome_of(file.readline())
        except (OSError, ValueError) as error:
            raise _changed(self._path) from error
        return one.listed, _spoken(judged(one.outcome, self._counting))


class _LogAgain:
    """The same of a log's line."""

    def __init__(self, path: Path, escaped: bool) -> None:
        self._path, self._escaped = path, escaped

    def __call__(self, begins: int) -> tuple[str, SpokenFile]:
        try:
            one = entry_at(self._path, begins, escaped=self._escaped)
        except OSError as error:
            raise _changed(self._path) from error
        found = None if one is None else _spoken_line(one)
        if found is None:
            raise _changed(self._path)
        return found


def _changed(path: Path) -> InputError:
    return InputError(f"{path} has changed while it was compared", remedy="Compare when its evaluation has ended")


def _spoken_line(one: Entry) -> tuple[str, SpokenFile] | None:
    """The in-vocabulary file whose outcome a line states, if it states one."""
    match one:
        case Spot(key="INVTA"):
            return one.file, SpokenFile(True, said=one.phrase)
        case Command():
            return one.file, SpokenFile(one.key == "CMDTA", said=one.phrase)
        case Words():
            errors = one.substitutions + one.additions + one.deletions
            return one.file, SpokenFile(one.key == "STTTA", errors, one.words, one.phrase)
        case Missed():
            words = len(one.reference.split()) if one.key == "STTFR" else 0
            return one.file, SpokenFile(False, words, words)
        case _:
            return None


def _of_log(path: Path, called: str, clusters: Clusters | None) -> Evaluated:
    """OSError when it cannot be read."""
    escaped = names_escaped(path, called)
    spoken = SpokenFiles(_LogAgain(path, escaped), clusters)
    info: list[tuple[str, str]] = []
    sums = LineSums()
    for begins, one in entries(path, called, escaped=escaped):
        match one:
            case Info():
                info.append((one.name, one.detail))
            case Total():
                pass
            case _:
                sums.add(one)
                found = _spoken_line(one)
                if found is not None:
                    spoken.add(*found, begins)
    log = WakeLog(tuple(info))
    demand_numbers(log, called)
    totals = computed(log, sums)
    rejected = sums.lines["REJECT"]
    hours = log.seconds("oov") + (log.seconds("inv/oov") if log.counts_in_vocabulary else 0.0)
    settings = {words: told for key, words in _SETTINGS.items() if (told := log.about(key)) is not None}
    settings.setdefault(_SETTINGS["x-count-in-vocabulary"], "yes" if log.counts_in_vocabulary else "no")
    notes = [f"it is partial, {partial}"] if (partial := log.about("x-partial")) else []
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

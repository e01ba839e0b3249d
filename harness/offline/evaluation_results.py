"""Evaluations read together: one engine or several on the same recordings, for tables, pictures and pages."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePath

import numpy as np

from harness.base.whole_file import write_atomically
from harness.model.errors import InputError, Place
from harness.model.offline import ListKind, Task, file_number
from harness.model.stimulus import SoundCondition
from harness.model.time import MeasuredDuration
from harness.offline.compared_evaluation import journal_of
from harness.offline.figures.counts import Tally, judge_file
from harness.offline.figures.engines import Ends, EnginesTable, EvaluatedEngine, SpokenKey, engines_table, phrases_in
from harness.offline.figures.figures import figures_of
from harness.offline.figures.groups import Labels, talker_of
from harness.offline.figures.sweep import Sweep
from harness.offline.file_sources import PHRASE_END
from harness.offline.journal import JournalFile
from harness.offline.one_file import spots_in
from harness.offline.reports import det as det_reports
from harness.offline.reports.tables import det_rows, table_json
from harness.offline.request import SweepTarget
from harness.offline.score_cache import ScoreCache
from harness.offline.sweep import sweep_of
from harness.sound.sound_files import UnusableSound, open_sound
from harness.sound.sound_stores import is_address, local_file

MAX_TIMED = 300
"""Number of in-vocabulary files in which the harness looks for the end of speech: enough for a 95th percentile."""
SPEECH_END_ERROR_S = 0.1
"""Error of the speech detector in quiet surroundings; see voice_activity.py."""
Columns = Mapping[str, Labels]


def read_engines(logs: Sequence[Path], warn: Callable[[str], None]) -> list[EvaluatedEngine]:
    """Reads evaluations by their logs or journals. Raises InputError for a log without its journal."""
    return list(_named_engines([_journal_of_log(log) for log in logs], logs, warn))


def _journal_of_log(log: Path) -> JournalFile:
    path = log if log.suffix == ".jsonl" else journal_of(log)
    if not path.is_file():
        raise InputError(
            f"{path.name} is not next to the log",
            place=Place(str(log)),
            remedy="Use a log written by `harness evaluate`",
        )
    return JournalFile(path)


def _named_engines(
    journals: Sequence[JournalFile], logs: Sequence[Path], warn: Callable[[str], None]
) -> Iterator[EvaluatedEngine]:
    """The engines under short names, with their sweeps. An engine without one has the reason in `no_scores`."""
    names = _short_names([journal.header.evaluation.task for journal in journals], logs)
    for journal, log, name in zip(journals, logs, names, strict=True):
        header = journal.header
        sweep, no_scores = None, ""
        cache = score_cache_of(journal, warn)
        try:
            if any(listing.kind is ListKind.REFERENCED for listing in header.lists):
                raise InputError("files with references have no thresholds")
            outcomes = ((entry.outcome, entry.listed) for entry in journal.outcomes())
            sweep = sweep_of(outcomes, header, cache)
        except InputError as error:
            no_scores = error.what
        yield _engine_of(journal, log=log, name=name, sweep=sweep, no_scores=no_scores, cache=cache)


def _engine_of(
    journal: JournalFile, log: Path, name: str, sweep: Sweep | None, no_scores: str, cache: ScoreCache
) -> EvaluatedEngine:
    """Counts an evaluation as it ran. no_scores: why there is no sweep; "" if there is one."""
    header, rule = journal.header, journal.header.facts.rule
    tally = Tally(header.counting, len(header.evaluation.conditions), talker_of(header.talkers))
    phrases = {
        phrase.key: phrase
        for journalled in journal.outcomes()
        for phrase in phrases_in(journalled.outcome, tally.add(journalled.outcome, journalled.listed))
    }

    def missed_at(threshold: float) -> dict[SpokenKey, bool]:
        """Whether each phrase is missed at a threshold. Without a sweep: as the engine ran."""
        if sweep is None or rule is None:
            return {key: phrase.detected_s is None for key, phrase in phrases.items()}
        missed = {}
        for entry in journal.outcomes():
            if entry.outcome.kind is ListKind.OOV or not sweep.wants(entry.outcome):
                continue
            tracks = cache.tracks(header.facts, entry.outcome.sha256) or ()
            outcome = replace(entry.outcome, spots=spots_in(tracks, replace(rule, threshold=threshold)))
            for phrase in phrases_in(outcome, judge_file(outcome, header.counting)):
                missed[phrase.key] = phrase.detected_s is None
        return missed

    return EvaluatedEngine(
        name=name,
        log=log,
        journal=journal,
        results=figures_of(tally, header.counting),
        sweep=sweep,
        no_scores=no_scores,
        phrases=phrases,
        missed_at=missed_at,
    )


def _short_names(tasks: Sequence[Task], logs: Sequence[Path]) -> list[str]:
    """A different name for each evaluation, as short as possible: engine, model, engine and model, or log."""
    full_names = [task.name for task in tasks]
    if len(tasks) == 1:
        return full_names
    engines = [task.engine for task in tasks]
    models = [PurePath(task.model).name or task.engine for task in tasks]
    for names in (engines, models, full_names):
        if len(set(names)) == len(names):
            return names
    return [log.name.removesuffix(".jsonl") for log in logs]


def score_cache_of(journal: JournalFile, warn: Callable[[str], None]) -> ScoreCache:
    """The cache with the scores of an evaluation: in the folder that it used, or beside its journal if that moved."""
    folder = Path(journal.header.evaluation.cache or f"{journal.path.stem}.scores")
    beside_journal = journal.path.parent / folder.name
    if not folder.is_dir() and beside_journal.is_dir():
        folder = beside_journal
    return ScoreCache(folder, warn)


def sound_path(name: str, bases: Iterable[str], condition: SoundCondition | None = None) -> str:
    """Path of a listed file on this computer; its name in the list if it is not found here.

    - name: as the journal has it.
    - bases: folders in which relative names are looked up.
    - condition: the condition whose label was added to the name.
    """
    if condition is not None:
        name = name.removesuffix(f" @ {condition.label()}")
    if name.startswith("/") or is_address(name):
        return local_file(name) or name
    candidates = (str(Path(base) / name) for base in bases)
    return next((candidate for candidate in candidates if Path(candidate).is_file()), name)


def phrase_ends(engine: EvaluatedEngine, columns: Columns) -> tuple[Ends, bool]:
    """Where phrases end, and whether that was stated: by labels, or by the column PHRASE_END of a manifest.

    If it was not, the ends of speech that the harness finds in at most MAX_TIMED recordings, spread evenly over the
    lists. Their times are those of the sound as played, so a changed speed is divided out.
    """
    stated_ends = {
        key: MeasuredDuration(phrase.label.end_s) for key, phrase in engine.phrases.items() if phrase.label is not None
    }
    for index, text in enumerate(columns.get(PHRASE_END, {}).get(ListKind.INV, ())):
        if text:
            stated_ends[ListKind.INV.value, index, -1] = MeasuredDuration(float(text) / _speed(engine, index))
    if stated_ends:
        return stated_ends, True
    header = engine.journal.header
    paths: list[tuple[SpokenKey, str]] = []
    for entry in engine.journal.outcomes():
        kind, number = entry.outcome.kind.value, entry.outcome.number
        if (kind, number, -1) in engine.phrases:
            path = sound_path(entry.listed, header.bases, header.evaluation.condition(number))
            paths.append(((kind, number, -1), path))
    if len(paths) > MAX_TIMED:
        paths = [paths[index] for index in np.linspace(0, len(paths) - 1, MAX_TIMED, dtype=int)]
    measured = {}
    for key, path in paths:
        end_s = _speech_end_s(path)
        if end_s is not None:
            _, number, _ = key
            measured[key] = MeasuredDuration(end_s / _speed(engine, number), SPEECH_END_ERROR_S)
    return measured, False


def _speed(engine: EvaluatedEngine, number: int) -> float:
    """How much faster a file is played than it was recorded."""
    condition = engine.journal.header.evaluation.condition(number)
    return 1.0 if condition is None else condition.channel.speed


def _speech_end_s(path: str) -> float | None:
    """Where speech ends in a recording, in seconds; None if it has none or cannot be read."""
    from harness.engines import voice_activity  # imported here, since it takes a second

    try:
        with open_sound(path, voice_activity.RATE_HZ, resample=True) as sound:
            blocks = list(sound.blocks())
    except (UnusableSound, OSError):
        return None
    span = voice_activity.speech_span(np.concatenate(blocks)) if blocks else None
    return None if span is None else span[1] / voice_activity.RATE_HZ


def table_of(engines: Sequence[EvaluatedEngine], target: SweepTarget | None, columns: Columns) -> EnginesTable:
    """The table of the engines.

    - target: the rate of false accepts at which they are compared.
    - columns: the labels of each column, by kind of list.
    """
    first = engines[0]
    header = first.journal.header
    clustered_by, talker = header.talkers.column, talker_of(header.talkers)
    has_times = any(phrase.detected_s for phrase in first.phrases.values())
    ends, are_stated = phrase_ends(first, columns) if has_times else ({}, False)
    clusters = {}
    conditions = len(header.evaluation.conditions)
    if clustered_by or conditions > 1:
        for (kind, number, label_index), phrase in first.phrases.items():
            if talker:
                cluster = talker(ListKind(kind), number, phrase.label)
            else:
                cluster = f"{kind} {file_number(number, conditions)} {label_index}"
            clusters[kind, number, label_index] = cluster
        clustered_by = clustered_by or "file"
    return engines_table(
        engines, target, ends=ends, ends_are_labels=are_stated, clusters=clusters, clustered_by=clustered_by
    )


def write_joint(prefix: str, engines: Sequence[EvaluatedEngine], table: EnginesTable, *, picture: bool) -> list[str]:
    """Writes PREFIX.csv (every threshold of every engine), .json (the table), and .png and .svg. Returns their
    names."""
    write_atomically(Path(f"{prefix}.csv"), det_rows(engines).encode())
    write_atomically(Path(f"{prefix}.json"), (json.dumps(table_json(table), indent=1) + "\n").encode())
    files = [f"{prefix}.csv", f"{prefix}.json"]
    curves = [
        det_reports.Curve(engine.name, engine.det, engine.as_run)
        for engine in engines
        if engine.det.has_accepts and engine.det.has_rejects
    ]
    if not picture or not curves:
        return files
    for ending in det_reports.ENDINGS:
        files.append(f"{prefix}.{ending}")
        det_reports.draw(Path(files[-1]), f"{len(engines)} engines", curves)
    return files

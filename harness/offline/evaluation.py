"""One evaluation, from its lists to its log."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from enum import IntEnum
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from harness import __version__
from harness.base.text_table import shown
from harness.model.errors import HarnessError, InputError, InputProblems
from harness.model.numbers import counted, number
from harness.model.offline import CountingRules, EngineFacts, EngineKind, Evaluation, FileOutcome, ListedFile, Task
from harness.model.stimulus import SoundCondition
from harness.offline.evaluation_files import EvaluationFiles
from harness.offline.file_sources import CollectedFiles, collect_files, demand_columns
from harness.offline.journal import Journal, JournalFile
from harness.offline.journal_lines import JournalHeader, Shard, Talkers
from harness.offline.lists import CONDITION, Listing, demand_local, read_lists
from harness.offline.pool import WorkerLimits
from harness.offline.request import DeclaredLimits, EvaluationRequest, SweepRequest, log_names
from harness.offline.run import OnOutcome, OpenJournal, RunPace, RunProgress, run, stop_on_signals
from harness.sound.manifests import MANIFESTS, column_of
from harness.statistics.text import number_interval

if TYPE_CHECKING:
    from harness.offline.figures.engines import EnginesTable, EvaluatedEngine
    from harness.offline.figures.figures import Figures
    from harness.offline.figures.groups import FileBreakdown
    from harness.offline.figures.sweep import ChosenPoint, Sweep
    from harness.offline.reports.log import EvaluationRun

TALKERS = ("talker", "speaker", "client_id")
"""Names of columns that are taken for the talkers' column unless the request names one, the first that exists."""


class EvaluationStatus(IntEnum):
    """The exit status of an evaluation. Of several, the largest counts."""

    PASSED = 0
    LIMIT_FAILED = 1
    FAULT = 3
    INTERRUPTED = 130  # 128 + SIGINT, as in shells


class EvaluationScreen(Protocol):
    """Where the lines of an evaluation go. width: space for a table, in characters."""

    @property
    def width(self) -> int: ...

    def print_result(self, line: str) -> None: ...
    def print_event(self, line: str) -> None: ...
    def warn(self, line: str) -> None: ...
    def show_progress(self, progress: RunProgress) -> None: ...
    def clear(self) -> None:
        """Removes the line of progress."""


def listing_of(
    request: EvaluationRequest, warn: Callable[[str], None], conditions: Sequence[SoundCondition] = ()
) -> Listing:
    """Reads lists, places and labels. Raises InputError, also for a column that none of them has."""
    inside = [collect_files(place, request.encoding) for place in request.inside]
    outside = [collect_files(place, request.encoding) for place in request.outside]
    long = _labelled_recordings(request, warn)
    listing = read_lists(
        request.inv,
        oov=request.oov,
        referenced=request.referenced,
        inside=inside,
        outside=outside,
        long=long,
        conditions=conditions,
        encoding=request.encoding,
    )
    if conditions:
        demand_local(listing.files)
    required = [name for names in request.by for name in names]
    columns = (*listing.columns, *listing.label_columns)
    demand_columns(columns, [*required, *filter(None, [request.clustered_by])])
    return listing


def cluster_column_of(request: EvaluationRequest, listing: Listing) -> str:
    """Name of the column whose values are clusters; "" for none."""
    if request.clustered_by is not None:
        return request.clustered_by
    return column_of((*listing.columns, *listing.label_columns), TALKERS) or ""


def talkers_of(request: EvaluationRequest, listing: Listing) -> Talkers:
    """Who says the phrases, according to the columns of the listing."""
    column = cluster_column_of(request, listing)
    return Talkers.of_column(column, listing.columns.get(column, {})) if column else Talkers()


def _labelled_recordings(request: EvaluationRequest, warn: Callable[[str], None]) -> list[CollectedFiles]:
    """The long recordings with their labels."""
    if not request.long:
        return []
    from harness.offline.labels import LabelsOfRecordings

    labels = LabelsOfRecordings(request.labels, request.encoding, request.tier)
    places = [collect_files(place, request.encoding) for place in request.long]
    recordings = [replace(place, labels=labels.labels_of(place)) for place in places]
    if unused := labels.unused():
        warn(f"{counted(len(unused), 'recording')} with labels but not in --long, such as {unused[0]}")
    return recordings


def _development_listing(sweep: SweepRequest, encoding: str | None, conditions: Sequence[SoundCondition]) -> Listing:
    """The files of --dev-inv and --dev-oov, from lists, folders and manifests. InputError."""

    def is_place(name: str) -> bool:
        return os.path.isdir(name) or (name.lower().endswith(MANIFESTS) and os.path.isfile(name))

    return read_lists(
        inv=[name for name in sweep.dev_inv if not is_place(name)],
        oov=[name for name in sweep.dev_oov if not is_place(name)],
        referenced=(),
        inside=[collect_files(name, encoding) for name in sweep.dev_inv if is_place(name)],
        outside=[collect_files(name, encoding) for name in sweep.dev_oov if is_place(name)],
        conditions=conditions,
        encoding=encoding,
    )


class EvaluationRunner:
    """Runs the evaluation, writes its log and prints the results.

    - engine_name: as `-t` gives it.
    - dev_sweep, chosen: after `evaluate`, the sweep of the development lists and the point that was chosen; None
      without.
    """

    def __init__(
        self,
        request: EvaluationRequest,
        engine_name: str,
        evaluation: Evaluation,
        listing: Listing,
        output: EvaluationFiles,
        screen: EvaluationScreen,
        command_line: Sequence[str],
        *,
        sweep: SweepRequest,
        limits: DeclaredLimits,
        verbose: int,
    ) -> None:
        self._request, self._engine_name, self._evaluation, self._output = request, engine_name, evaluation, output
        self._screen, self._command_line = screen, tuple(command_line)
        self._sweep, self._limits, self._verbose = sweep, limits, verbose
        self._listing, self._clustered_by = listing, cluster_column_of(request, listing)
        # Reports errors in development lists now, not after hours.
        self._development: Listing | None = None
        if sweep.has_dev_lists:
            self._development = _development_listing(sweep, request.encoding, evaluation.conditions)
        self._files: Sequence[ListedFile] = self._listing.files
        self._shard: Shard | None = None
        if request.shard is not None:
            from harness.offline.shards import files_of_shard

            self._files, self._shard = files_of_shard(self._files, request.shard)
        self._header: JournalHeader | None = None
        self.dev_sweep: Sweep | None = None
        self.chosen: ChosenPoint | None = None

    def evaluate(self) -> EvaluationStatus:
        """Plays the files, writes the log, and prints the results. After an error, and KeyboardInterrupt, it writes the
        log of the files so far, and raises it."""
        if not self._files:
            raise InputError("this shard has no files", remedy="Use fewer shards")
        on_outcome = self._print_events if self._verbose >= 3 else None
        try:
            self._play(self._evaluation, self._files, self._open_journal, on_outcome)
        except (HarnessError, KeyboardInterrupt):
            self._screen.clear()
            if self._header is not None:
                self._write_partial_log()
            raise
        self._screen.clear()
        return self._report_results()

    def _play(
        self,
        evaluation: Evaluation,
        files: Sequence[ListedFile],
        journal: OpenJournal,
        on_outcome: OnOutcome | None = None,
    ) -> RunPace:
        """Plays files here or on the cluster, until all are done or the user stops the run."""
        request = self._request
        screen = self._screen
        limits = WorkerLimits(hang_after_s=request.hang_after_s)
        with stop_on_signals() as stop:
            if request.cluster:
                from harness.offline.cluster import run_on_cluster

                return run_on_cluster(
                    evaluation, files, journal=journal, stop=stop, on_outcome=on_outcome, on_line=screen.warn,
                    on_progress=screen.show_progress, limits=limits, address=request.cluster,
                    task_s=request.task_hours * 3600,
                )  # fmt: skip
            return run(
                evaluation, files, journal=journal, stop=stop, on_outcome=on_outcome, on_progress=screen.show_progress,
                on_line=screen.warn, limits=limits, jobs=request.jobs,
                # Imports now what is needed later, since that takes longer than to play half an hour of audio.
                while_loading=lambda: import_module("harness.offline.reports.log"),
            )  # fmt: skip

    def _open_journal(self, facts: EngineFacts) -> Journal:
        """Opens the journal once the engine has reported its facts, before audio is read."""
        request = self._request
        request.demand_fit(self._engine_name, facts)
        if self._sweep.is_wanted:
            from harness.offline.sweep import demand_scores

            demand_scores(facts, self._evaluation)
        lead_in_ms = 0.0 if facts.kind is EngineKind.TRANSCRIPT else facts.lead_in_ms
        counting = CountingRules(
            count_in_vocabulary=request.count_in_vocabulary,
            normalise=request.normalise,
            words=request.words,
            lead_in_ms=lead_in_ms,
            lead_in_ref=request.lead_in_ref,
            tolerance_s=request.tolerance_s,
            phrases=self._phrases(facts) if request.long else (),
        )
        header = JournalHeader(
            evaluation=self._evaluation,
            counting=counting,
            facts=facts,
            lists=self._listing.lists,
            planned=len(self._files),
            started_s=time.time(),
            command_line=self._command_line,
            versions=(("voice-harness", __version__),),
            shard=self._shard,
            bases=self._listing.bases,
            talkers=talkers_of(request, self._listing),
        )
        journal = self._output.open_journal(header, resume=request.resume)
        cache = journal.earlier_cache
        if self._sweep.is_wanted and cache and cache != self._evaluation.cache:
            journal.abandon()
            raise InputError(f"the scores so far are in {shown(cache, 200)}", remedy=f"Add --cache {shown(cache, 200)}")
        self._header = header
        if self._verbose:
            from harness.offline.reports.log import writing_line

            self._screen.print_result(writing_line(str(self._output.log)))
        return journal

    def _phrases(self, facts: EngineFacts) -> tuple[str, ...]:
        """The engine's phrases, as compared with labels. Raises InputError if every label is of another phrase."""
        from harness.offline.figures.phrase_matching import comparable_phrase

        engine_phrases = tuple(dict.fromkeys(map(comparable_phrase, facts.phrases)))
        labels = Counter(comparable_phrase(label.phrase) for file in self._listing.files for label in file.labels)
        unknown_phrases = {phrase: count for phrase, count in labels.items() if phrase and phrase not in engine_phrases}
        if engine_phrases and unknown_phrases:
            engine_texts = ", ".join(map(repr, engine_phrases))
            label_texts = ", ".join(f"{phrase!r} ({count})" for phrase, count in unknown_phrases.items())
            if unknown_phrases.keys() == labels.keys():
                raise InputError(
                    "no label matches a phrase of this engine: "
                    f"the labels are for {label_texts}, the engine detects {engine_texts}",
                    remedy="Use the engine's phrase in the labels, or leave the phrase out of all labels",
                )
            self._screen.warn(f"labels of other phrases do not count: {label_texts}; the engine detects {engine_texts}")
        return engine_phrases

    def _print_events(self, outcome: FileOutcome, file: ListedFile) -> None:
        """Prints the lines of the log for one file."""
        from harness.offline.figures.counts import judge_file
        from harness.offline.reports.log import file_events
        from harness.offline.wake_log import event_line

        assert self._header is not None
        for event in file_events(outcome, judge_file(outcome, self._header.counting), file.listed):
            self._screen.print_event(event_line(event))

    def _write_partial_log(self) -> None:
        """Writes the partial log after an error. Another error is a warning; the first one sets the exit status."""
        try:
            self._output.write()
        except HarnessError as another:
            self._screen.warn(f"the partial log could not be written: {another}")
        else:
            self._screen.warn(f"{self._output.log} contains the files evaluated so far; continue with --resume")

    def _report_results(self) -> EvaluationStatus:
        """Writes the log, prints results and warnings, and runs the sweep."""
        from harness.offline.reports.log import limit_failures

        run, figures = self._output.write(self._breakdowns, self._limits)
        self._print_results(run, figures)
        self._print_warnings(run, figures)
        if run.partial:
            self._screen.warn(
                f"interrupted after {run.outcomes} of {run.header.planned} files; the log is partial. "
                "Continue with the same command and --resume"
            )
            return EvaluationStatus.INTERRUPTED
        development_has_faults = self._run_sweep()
        failures = list(limit_failures(self._limits, figures))
        for failure in failures:
            self._screen.warn(failure)
        if development_has_faults or figures.counts.has_faults:
            return EvaluationStatus.FAULT
        return EvaluationStatus.LIMIT_FAILED if failures else EvaluationStatus.PASSED

    def _print_results(self, run: EvaluationRun, figures: Figures) -> None:
        """Prints the summary and the results by groups; with -v also the hours, with -vv the operating points."""
        from harness.offline.reports.log import (
            head_of,
            limit_lines,
            point_lines,
            recording_warnings,
            sound_lines,
            summary_line,
        )
        from harness.offline.reports.tables import group_lines

        screen, request, facts = self._screen, self._request, run.header.facts
        if self._verbose:
            head = head_of(run, figures)
            inv, oov = bool(request.inv or request.inside or request.referenced), bool(request.without_phrase)
            for line in sound_lines(head, inv=inv, oov=oov):
                screen.print_result(line)
        if self._verbose >= 2:
            for line in point_lines(facts.operating_point, [point.number for point in facts.operating_points]):
                screen.print_result(line)
        screen.print_result(summary_line(run, figures))
        for warning in recording_warnings(figures):
            screen.print_result(f"Warning: {warning}.")
        for breakdown in run.breakdowns:
            for line in group_lines(breakdown, screen.width):
                screen.print_result(line)
        for line in limit_lines(self._limits, run, figures):
            screen.print_result(line)

    def _print_warnings(self, run: EvaluationRun, figures: Figures) -> None:
        """Warns of stored scores, faults, rejected files, clusters of false accepts and lost workers."""
        from harness.offline.reports.log import corrected_command, fault_lines, stored_lines

        screen = self._screen
        for line in stored_lines(run):
            screen.warn(line)
        log = shown(str(self._output.log), 200)
        for line in fault_lines(
            figures.counts, "the ERROR lines of the log say", resampling=self._request.resample, log=log
        ):
            screen.warn(line)
        if corrected := corrected_command(run.header, figures.counts):
            screen.warn(f"to evaluate the rejected files too: {corrected}")
        if not (figures.counts.inv_files or figures.counts.oov_files):
            screen.warn("no file was usable")
        if figures.clustered and figures.clustering is not None:
            screen.warn(
                f"false accepts come in clusters (index of dispersion {number(figures.clustering.index)} over files): "
                f"the 95 % interval by file is {number_interval(figures.clustering.interval)} per hour"
            )
        if lost := len(run.lost_workers):
            screen.warn(f"{counted(lost, 'worker')} lost and replaced; see the x-lost-worker lines of {log}")

    def _breakdowns(self, journal: JournalFile) -> Iterator[FileBreakdown]:
        """Results by the columns that `--by` names; without it by condition, if there are several."""
        from harness.offline.figures.groups import breakdown

        conditions = len(self._evaluation.conditions)
        groupings = self._request.by
        if not groupings and conditions:
            groupings = ((CONDITION,),)
        for names in groupings:
            outcomes = (entry.outcome for entry in journal.outcomes())
            columns, counting = self._listing.columns, journal.header.counting
            yield breakdown(outcomes, counting, columns, names, self._clustered_by, conditions)

    def _run_sweep(self) -> bool:
        """Runs the sweep if the options ask for one, and prints its results. Returns whether a development list had a
        fault."""
        if not self._sweep.is_wanted and self._development is None:
            return False
        from harness.offline.reports.det import sweep_lines
        from harness.offline.sweep import SweepRun

        journal = JournalFile(self._output.journal)
        try:
            sweep = SweepRun(self._sweep, journal, self._screen.warn)
        except InputError:
            if self._sweep.is_wanted:
                raise
            return False  # one of several engines has no scores, and so no choice of points; the comparison says why
        has_faults = False
        if self._development is not None:
            talkers = talkers_of(self._request, self._development)
            has_faults = sweep.develop(self._development, self._play, talkers)
        self._screen.clear()
        if prefix := self._sweep.prefix:
            files = sweep.write(prefix)
            target = self._sweep.target
            for line in sweep_lines(files, sweep.thresholds, target, sweep.chosen, sweep.term_weighted):
                self._screen.print_result(line)
            sweep.warn_of_stored_scores()
        self.dev_sweep, self.chosen = sweep.dev_sweep, sweep.chosen
        return has_faults


def _output_problems(outputs: Sequence[EvaluationFiles], request: EvaluationRequest) -> list[InputError]:
    """Why the log cannot be written, or nothing. Reported after mistakes in the input, since those come first for the
    user."""
    try:
        for output in outputs:
            output.check_output(resume=request.resume, force=request.force)
    except InputError as error:
        return [error]
    return []


def _listing_or_problems(
    request: EvaluationRequest,
    warn: Callable[[str], None],
    conditions: Sequence[SoundCondition],
    output_problems: Sequence[InputError],
) -> Listing:
    """The files to play. Raises the problems of the lists together with those of the output."""
    try:
        listing = listing_of(request, warn, conditions)
    except InputError as error:
        if not output_problems:
            raise
        problems = error.problems if isinstance(error, InputProblems) else (error,)
        raise InputProblems([*problems, *output_problems]) from error
    if output_problems:
        raise output_problems[0]
    return listing


class MultiEngineRunner:
    """Evaluates one engine, or several one after the other, and makes their table.

    Raises InputError before any audio is read.

    - pages: whether a page will be written from `engines` and `table`.
    - demand_writable: raises InputError for a file that must not be written.
    - engines, table: after `evaluate`, the results; empty and None if they were not needed.
    """

    def __init__(
        self,
        request: EvaluationRequest,
        engine_names: Sequence[str],
        tasks: Sequence[Task],
        screen: EvaluationScreen,
        command_line: Sequence[str],
        *,
        sweep: SweepRequest,
        limits: DeclaredLimits,
        verbose: int,
        pages: bool,
        demand_writable: Callable[[Path], None],
    ) -> None:
        self._request, self._engine_names, self._screen = request, engine_names, screen
        self._several, self._pages = len(tasks) > 1, pages
        limits.demand_figures(request)
        sweep.check_consistent(request, several=self._several)
        self._logs = [Path(log) for log in log_names(request.log, engine_names, tasks)]
        log = self._logs[0]
        stem = str(log.with_suffix("") if log.name else log)  # a log without a name is refused below
        if self._several:
            stem = (request.log or "engines").removesuffix(".log")
        self._sweep = sweep.beside(f"{stem}.det")
        # Several engines have one sweep together.
        own_sweep = replace(self._sweep, prefix=None) if self._several else self._sweep
        outputs = [EvaluationFiles(log) for log in self._logs]
        log_files = [file for files in outputs for file in files.all]
        for file in (*log_files, *self._sweep.files(log_files)):
            demand_writable(file)
        output_problems = _output_problems(outputs, request)
        needs_scores = (self._several or pages) and not request.referenced and not request.continuous
        evaluations = []
        for task, files in zip(tasks, outputs, strict=True):
            cache = request.cache
            if not cache and (own_sweep.is_wanted or needs_scores):
                cache = f"{files.log}.scores"
            evaluations.append(request.evaluation(task, cache))
        self._listing = _listing_or_problems(request, screen.warn, evaluations[0].conditions, output_problems)
        self._runners = [
            EvaluationRunner(
                request=request,
                engine_name=name,
                evaluation=evaluation,
                listing=self._listing,
                output=files,
                screen=screen,
                command_line=command_line,
                sweep=own_sweep,
                limits=limits,
                verbose=verbose,
            )
            for name, evaluation, files in zip(engine_names, evaluations, outputs, strict=True)
        ]
        self.engines: list[EvaluatedEngine] = []
        self.table: EnginesTable | None = None

    def evaluate(self) -> EvaluationStatus:
        """Runs all; returns the worst of their statuses. The engines are compared unless one was interrupted."""
        statuses = []
        for name, runner in zip(self._engine_names, self._runners, strict=True):
            if self._several:
                self._screen.print_result(f"{shown(name, 200)}:")
            statuses.append(runner.evaluate())
            if statuses[-1] is EvaluationStatus.INTERRUPTED:
                return statuses[-1]
        if self._several or self._pages:
            self._compare()
        return max(statuses)

    def _compare(self) -> None:
        """Makes the table of the engines. With several, it also prints it, and writes their common sweep."""
        # Imported here, since one engine without a page needs none of it, and it takes a quarter of a second.
        from harness.offline.evaluation_results import read_engines, table_of, write_joint
        from harness.offline.reports.tables import engine_lines

        engines = read_engines(self._logs, self._screen.warn)
        target = self._sweep.target
        own_target = None if self._several else target
        self.engines = [
            replace(engine, dev_sweep=runner.dev_sweep, target=own_target, chosen=runner.chosen)
            for engine, runner in zip(engines, self._runners, strict=True)
        ]
        self.table = table_of(self.engines, target, self._listing.columns)
        if not self._several:
            return
        for engine in self.engines:
            if engine.no_scores:
                self._screen.warn(f"{engine.name} is counted only as it ran, without a sweep: {engine.no_scores}")
        for line in engine_lines(self.table, self._screen.width):
            self._screen.print_result(line)
        if prefix := self._sweep.prefix:
            files = write_joint(prefix, self.engines, self.table, picture=not self._sweep.no_picture)
            self._screen.print_result(f"Sweep of {len(self.engines)} engines, in {', '.join(files)}")

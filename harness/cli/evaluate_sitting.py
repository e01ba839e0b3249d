"""One sitting of `harness evaluate`, once all that its command line says has been checked."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from harness import __version__
from harness.base.cells import counted
from harness.cli.evaluate_cluster import runner
from harness.cli.evaluate_files import EvaluationFiles
from harness.cli.evaluate_limits import DeclaredLimits
from harness.cli.evaluate_lists import list_facts
from harness.cli.evaluate_options import Asked
from harness.cli.evaluate_progress import ProgressLine
from harness.cli.evaluate_sweep import SweepAsked
from harness.cli.score_output import print_lines
from harness.cli.verbs import INTERRUPTED
from harness.model.errors import HarnessError, InputError
from harness.model.offline import Counting, EngineFacts, EngineKind, Evaluation, FileOutcome, LeadInRef, ListedFile
from harness.offline.journal import Journal
from harness.offline.journal_lines import JournalHeader, Shard
from harness.offline.lists import Listing
from harness.offline.pool import Limits
from harness.offline.run import stop_when_asked
from harness.offline.shards import PartOfFiles

if TYPE_CHECKING:
    from harness.offline.figures.figures import Figures

LIMIT_FAILED, FAULT = 1, 3


class Sitting:
    """Runs the evaluation, writes its log, says what came of it."""

    def __init__(
        self,
        asked: Asked,
        evaluation: Evaluation,
        lead_in_ref: LeadInRef,
        written: EvaluationFiles,
        listing: Listing,
        sweep: SweepAsked,
        verbose: int,
        *,
        quiet: bool,
    ) -> None:
        self._asked, self._evaluation, self._lead_in_ref = asked, evaluation, lead_in_ref
        self._written, self._listing, self._verbose = written, listing, verbose
        self._sweep = sweep
        self._files: Sequence[ListedFile] = listing.files
        self._shard: Shard | None = None
        if asked.shard is not None:
            part = PartOfFiles(listing.files, asked.shard)
            self._files, self._shard = part, part.shard
        self._progress = ProgressLine(quiet=quiet)
        self._header: JournalHeader | None = None

    def evaluate(self, limits: DeclaredLimits, patience: Limits) -> int:
        """The exit status."""
        if not self._files:
            raise InputError("no file is in this part of the lists", remedy="Ask for fewer parts")
        try:
            with stop_when_asked() as stop:
                runner(self._asked)(
                    self._evaluation,
                    self._files,
                    journal=self._opens,
                    on_outcome=self._tells if self._verbose >= 3 else None,
                    stop=stop,
                    on_progress=self._progress,
                    on_told=self._warns,
                    limits=patience,
                )
        except (HarnessError, KeyboardInterrupt) as error:
            self._progress.clear()
            if self._header is not None:
                self._write_after(error)
            raise
        self._progress.clear()
        return self._told(limits)

    def _opens(self, facts: EngineFacts) -> Journal:
        """The journal, once the engine has said what it is; no audio has been read yet."""
        self._asked.demand_fit(facts)
        if self._sweep:
            from harness.offline.sweep import demand_scores

            demand_scores(facts, self._evaluation)
        asked = self._asked
        lead_in_ms = 0.0 if facts.kind is EngineKind.TRANSCRIPT else facts.lead_in_ms
        header = JournalHeader(
            self._evaluation,
            Counting(asked.count_in_vocabulary, asked.normalise, asked.words, lead_in_ms, self._lead_in_ref),
            facts,
            list_facts(asked, self._listing),
            len(self._files),
            time.time(),
            ("harness", *sys.argv[1:]),
            (("voice-harness", __version__),),
            self._shard,
            tuple(dict.fromkeys(base for bases in self._listing.bases.values() for base in bases)),
        )
        journal = self._written.opened(header, resume=asked.resume)
        self._header = header
        if self._verbose:
            from harness.offline.reports.log import writing_line

            _say(writing_line(str(self._written.log)))
        return journal

    def _tells(self, outcome: FileOutcome, file: ListedFile) -> None:
        """An event a line, as it comes."""
        from harness.offline.figures.counts import judged
        from harness.offline.reports.log import happenings
        from harness.wake.reports.wake_log import line_of

        assert self._header is not None
        verdict = judged(outcome, self._header.counting)
        for happening in happenings(outcome, verdict, file.listed):
            self._progress.tell(line_of(happening))

    def _warns(self, line: str) -> None:
        self._progress.tell(f"harness: {line}")

    def _write_after(self, error: BaseException) -> None:
        """The partial log of what came before an error; a second error is told, and the first decides."""
        try:
            self._written.write()
        except HarnessError as another:
            self._progress.tell(f"harness: the log of what was done could not be written: {another}")
        else:
            self._progress.tell(f"harness: {self._written.log} holds what was done before; --resume goes on")

    def _told(self, limits: DeclaredLimits) -> int:
        """Log and console lines of what was found; the exit status."""
        from harness.cli.evaluate_faults import has_faults
        from harness.offline.reports.log import head_of, point_lines, sound_lines, summary_line

        done, found = self._written.write()
        head, facts = head_of(done, found), done.header.facts
        asked = self._asked
        if self._verbose:
            for line in sound_lines(head, inv=bool(asked.inv or asked.referenced), oov=bool(asked.oov)):
                _say(line)
        if self._verbose >= 2:
            for line in point_lines(facts.operating_point, [one.number for one in facts.operating_points]):
                _say(line)
        _say(summary_line(done, found))
        for line in _hidden(found, resampling=done.header.evaluation.resample):
            self._warns(line)
        if lost := len(done.lost_workers):
            self._warns(f"{counted(lost, 'worker')} lost and replaced: the x-lost-worker lines of the log say how")
        if done.partial:
            self._warns(
                f"interrupted after {done.outcomes} of {done.header.planned} files; the log is partial. "
                "Go on with the same command and --resume"
            )
            return INTERRUPTED
        well = self._sweep.after(asked, self._written.journal, self._written.log, _say, self._warns, self._progress)
        self._progress.clear()
        failures = list(limits.failures(found))
        for failure in failures:
            self._warns(failure)
        if not well or has_faults(found.counts):
            return FAULT
        return LIMIT_FAILED if failures else 0


def _say(line: str) -> None:
    print_lines([line])


def _hidden(found: Figures, *, resampling: bool) -> Iterator[str]:
    """What a summary line hides."""
    from harness.cli.evaluate_faults import fault_lines

    counts = found.counts
    yield from fault_lines(counts, "the ERROR lines of the log say", resampling=resampling)
    if not counts.inv_files and not counts.oov_files:
        yield "no file could be used"
    if found.clustered and found.clustering is not None:
        low, high = found.clustering.interval
        yield (
            f"false accepts come in clusters (index of dispersion {found.clustering.index:.1f} over files): "
            f"by file the 95 % interval is {low:.4g} to {high:.4g} an hour"
        )

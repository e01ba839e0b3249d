"""`harness evaluate`: a wake engine or a recogniser over lists of files."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

import click

from harness import __version__
from harness.cli import INTERRUPTED
from harness.cli.evaluate_files import EvaluationFiles
from harness.cli.evaluate_limits import DeclaredLimits, LimitsOn
from harness.cli.evaluate_lists import list_facts
from harness.cli.evaluate_options import Asked, shard
from harness.cli.evaluate_progress import ProgressLine
from harness.cli.score_options import share
from harness.cli.streams import standard_output
from harness.evaluate.offline.figures import Figures
from harness.evaluate.offline.verdicts import Key, judged
from harness.library.audio_lists import Listing, read_lists
from harness.model.errors import HarnessError, InputError
from harness.model.offline import (
    Counting,
    EngineFacts,
    EngineKind,
    Evaluation,
    FileOutcome,
    LeadInRef,
    ListedFile,
    RejectReason,
)
from harness.reports.cells import counted
from harness.reports.offline.console import head_of, point_lines, sound_lines, summary_line, writing_line
from harness.reports.offline.lines import happenings
from harness.reports.wake_log_text import line_of
from harness.rig.offline.journal import Journal
from harness.rig.offline.journal_header import JournalHeader, Shard
from harness.rig.offline.run import run
from harness.rig.offline.shards import PartOfFiles
from harness.rig.offline.stopping import stop_when_asked

LIMIT_FAILED, FAULT = 1, 3
FAULTS = (
    RejectReason.UNREADABLE,
    RejectReason.REFERENCE,
    RejectReason.ERROR,
    RejectReason.CRASH,
    RejectReason.HANG,
)
"""Rejections for which something is to be mended; the others say what the files are."""


def _numbers(least: float) -> click.FloatRange:
    return click.FloatRange(min=least)


@click.command("evaluate")
@click.option(
    "-t", "task", required=True, metavar="TASK", help="Engine and model (microwakeword:okay_nabu), or a file."
)
@click.option("-i", "inv", multiple=True, metavar="FILE", help="List of in-vocabulary files (false rejects).")
@click.option("-o", "oov", multiple=True, metavar="FILE", help="List of out-of-vocabulary files (false accepts).")
@click.option("-c", "referenced", multiple=True, metavar="FILE", help="CSV list of in-vocabulary and reference files.")
@click.option("-j", "jobs", type=click.IntRange(1, 1024), default=1, show_default=True, help="Worker processes.")
@click.option("-l", "log", metavar="FILE", help="The log; without it TASK.log in the current folder.")
@click.option("-n", "normalise", is_flag=True, help="Compare in lower case, without punctuation.")
@click.option("-s", "settings", multiple=True, metavar="NAME=VALUE", help="A setting of the engine; the last wins.")
@click.option(
    "-f", "files", multiple=True, nargs=2, metavar="NAME FILE", help="A setting of the engine that is a file."
)
@click.option("-u", "count_in_vocabulary", is_flag=True, help="Count false accepts in in-vocabulary files, too.")
@click.option("-w", "words", is_flag=True, help="Word error rate, on the files of -c.")
@click.option("-a", "vad", is_flag=True, help="Cut silence off before a recogniser.")
@click.option("-v", "verbose", count=True, help="More lines; up to -vvv.")
@click.option("--resume", is_flag=True, help="Go on with an evaluation that was cut off.")
@click.option("--force", is_flag=True, help="Replace a log that is there.")
@click.option("--shard", callback=shard, metavar="I/N", help="Only the I-th of N parts; `harness merge` joins them.")
@click.option("--resample", is_flag=True, help="Take files of another sample rate; without it they are rejected.")
@click.option("--continuous", is_flag=True, help="Carry the engine's state over the out-of-vocabulary files.")
@click.option(
    "--lead-in-ref",
    type=click.Choice([one.value for one in LeadInRef]),
    default=LeadInRef.END.value,
    show_default=True,
    help="What of a spot must lie after the lead-in.",
)
@click.option("--cache", default="", metavar="FOLDER", help="Keep scores there, for sweeps and further runs.")
@click.option("--max-fa-per-hour", type=_numbers(0), metavar="X", help="Status 1 with more false accepts an hour.")
@click.option("--max-fr", type=click.FloatRange(0, 100), metavar="PERCENT", help="Status 1 with more false rejects.")
@click.option("--max-wer", callback=share, metavar="X", help="Status 1 with a higher WER (0.08 or 8%).")
@click.option(
    "--limits-on",
    type=click.Choice([one.value for one in LimitsOn]),
    default=LimitsOn.BOUND.value,
    show_default=True,
    help="What limits are on: the upper end of the 95 % interval, or the figure itself.",
)
@click.option("--quiet-progress", is_flag=True, help="No line of progress on a terminal.")
def command(
    task: str,
    inv: tuple[str, ...],
    oov: tuple[str, ...],
    referenced: tuple[str, ...],
    jobs: int,
    log: str | None,
    normalise: bool,
    settings: tuple[str, ...],
    files: tuple[tuple[str, str], ...],
    count_in_vocabulary: bool,
    words: bool,
    vad: bool,
    verbose: int,
    resume: bool,
    force: bool,
    shard: Shard | None,
    resample: bool,
    continuous: bool,
    lead_in_ref: str,
    cache: str,
    max_fa_per_hour: float | None,
    max_fr: float | None,
    max_wer: float | None,
    limits_on: str,
    quiet_progress: bool,
) -> None:
    """Run a wake engine or a recogniser over lists of audio files; write the log, and sum it up in a line.

    At least one of -i, -c and -o is needed. Beside the log stand LOG.json, with exact counts, and LOG.jsonl, which
    --resume goes on with.

    Exit status: 0 done · 1 a declared limit failed · 2 wrong usage or input · 3 an engine or a file failed, and the log
    is complete all the same · 130 interrupted, and the log is partial.
    """
    asked = Asked(
        task, inv, oov, referenced, settings, files, jobs, log, normalise, count_in_vocabulary, words, vad, resume,
        force, continuous, shard,
    )  # fmt: skip
    limits = DeclaredLimits(max_fa_per_hour, max_fr, max_wer, LimitsOn(limits_on))
    asked.demand_sense()
    limits.demand_figures(inv=bool(inv or referenced), oov=bool(oov) or count_in_vocabulary, words=words)
    checked = asked.checked_task()
    evaluation = Evaluation(checked, resample, continuous, vad, hashes=bool(cache), cache=cache)
    written = EvaluationFiles(asked.log_path(checked))
    written.demand_room((*inv, *oov, *referenced), resume=resume, force=force)
    listing = read_lists(inv, oov, referenced)
    sitting = _Sitting(asked, evaluation, LeadInRef(lead_in_ref), written, listing, verbose, quiet=quiet_progress)
    sys.exit(sitting.evaluate(limits))


class _Sitting:
    """One call of the command, once all that it says has been checked."""

    def __init__(
        self,
        asked: Asked,
        evaluation: Evaluation,
        lead_in_ref: LeadInRef,
        written: EvaluationFiles,
        listing: Listing,
        verbose: int,
        *,
        quiet: bool,
    ) -> None:
        self._asked, self._evaluation, self._lead_in_ref = asked, evaluation, lead_in_ref
        self._written, self._listing, self._verbose = written, listing, verbose
        self._files: Sequence[ListedFile] = listing.files
        self._shard: Shard | None = None
        if asked.shard is not None:
            part = PartOfFiles(listing.files, asked.shard)
            self._files, self._shard = part, part.shard
        self._progress = ProgressLine(quiet=quiet)
        self._header: JournalHeader | None = None

    def evaluate(self, limits: DeclaredLimits) -> int:
        """The exit status."""
        if not self._files:
            raise InputError("no file is in this part of the lists", remedy="Ask for fewer parts")
        try:
            with stop_when_asked() as stop:
                run(
                    self._evaluation,
                    self._files,
                    jobs=self._asked.jobs,
                    journal=self._opens,
                    on_outcome=self._tells if self._verbose >= 3 else _tells_nothing,
                    stop=stop,
                    on_progress=self._progress,
                    on_told=lambda line: self._progress.tell(f"harness: {line}"),
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
            _say(writing_line(str(self._written.log)))
        return journal

    def _tells(self, outcome: FileOutcome, file: ListedFile) -> None:
        """An event a line, as it comes."""
        assert self._header is not None
        verdict = judged(outcome, self._header.counting)
        for happening in happenings(outcome, verdict, file.listed):
            self._progress.tell(line_of(happening))

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
        _warn_of(found)
        if done.partial:
            click.echo(
                f"harness: interrupted after {done.outcomes} of {done.header.planned} files; the log is partial. "
                "Go on with the same command and --resume",
                err=True,
            )
            return INTERRUPTED
        failures = list(limits.failures(found))
        for failure in failures:
            click.echo(f"harness: {failure}", err=True)
        if _faults(found):
            return FAULT
        return LIMIT_FAILED if failures else 0


def _say(line: str) -> None:
    stream = standard_output()
    stream.write(line + "\n")
    stream.flush()


def _tells_nothing(outcome: FileOutcome, file: ListedFile) -> None:
    """Below -vvv."""


def _warn_of(found: Figures) -> None:
    """What a summary line hides."""
    counts = found.counts
    if counts.rejected_files:
        reasons = ", ".join(f"{count} {reason.value}" for reason, count in sorted(counts.rejected.items()))
        click.echo(f"harness: {counted(counts.rejected_files, 'file')} rejected: {reasons}", err=True)
    if not counts.inv_files and not counts.oov_files:
        click.echo("harness: no file could be used", err=True)
    if found.clustered and found.clustering is not None:
        low, high = found.clustering.interval
        click.echo(
            f"harness: false accepts come in clusters (index of dispersion {found.clustering.index:.1f} over files): "
            f"by file the 95 % interval is {low:.4g} to {high:.4g} an hour",
            err=True,
        )


def _faults(found: Figures) -> bool:
    counts = found.counts
    return bool(
        counts.count(Key.ERROR)
        or any(counts.rejected.get(reason) for reason in FAULTS)
        or not (counts.inv_files or counts.oov_files)
    )

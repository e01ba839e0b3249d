"""`harness evaluate`: run a wake engine or a recogniser over lists of files."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.base.text_table import shown
from harness.cli.options import (
    EngineOptions,
    FiniteRange,
    argument,
    audio_option,
    engine_options,
    flag,
    option,
    option_group,
    parse_share,
    repeatable,
    verb,
)
from harness.cli.streams import RedrawnLine, is_one_place, print_lines, refuse_overwriting, width
from harness.model.choices import HANG_AFTER_S, TWV_BETA, LimitBasis, TargetBasis
from harness.model.errors import InputError, Place
from harness.model.numbers import fixed, hours
from harness.model.offline import TOLERANCE_S, LeadInRef
from harness.offline.journal_lines import Shard
from harness.offline.request import BESIDE_LOG, TASK_HOURS, DeclaredLimits, EvaluationRequest, PageOptions, SweepRequest

if TYPE_CHECKING:
    from harness.offline.figures.engines import EnginesTable, EvaluatedEngine
    from harness.offline.run import RunProgress

MAX_TASK_H = 24.0


def _parse_shard(ctx: click.Context, param: click.Parameter, value: str | None) -> Shard | None:
    """A callback: the shard that `2/8` names. BadParameter for another text."""
    if value is None:
        return None
    match = re.fullmatch(r"(\d{1,6})/(\d{1,6})", value)
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise click.BadParameter(f"{value!r} is not a shard. Write 1/8 for the first of eight", ctx, param)
    return Shard(int(match[1]), int(match[2]))


def _list_option(help: str, *names: str, former: Sequence[str] = ()) -> Any:
    return repeatable(help, *names, former=former, metavar="FILE")


def _number_option(
    help: str, *names: str, above_0: bool = False, max_value: float | None = None, **attributes: Any
) -> Any:
    """An option for a finite number from 0 to `max_value`. above_0: 0 itself is not allowed."""
    return option(help, *names, type=FiniteRange(0, max_value, min_open=above_0), **attributes)


def _parse_groupings(ctx: click.Context, param: click.Parameter, values: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """A callback: the columns of each value. Several (A,B) are crossed. BadParameter for another text."""
    groupings = [tuple(name.strip() for name in value.split(",")) for value in values]
    for names in groupings:
        if not all(names) or len(set(names)) < len(names):
            raise click.BadParameter(
                f"{','.join(names)!r} is not a list of columns. Write COLUMN, or COLUMN,COLUMN to cross two columns",
                ctx,
                param,
            )
    return tuple(groupings)


def _parse_prefix(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """A callback: the prefix of a sweep's files, without the ending that each of them gets."""
    return None if value is None else re.sub(r"\.(csv|json|png|svg)$", "", value)


_PLACE = "folder, file, quoted pattern, .zip, manifest (.csv, .tsv, .jsonl, .parquet, wav.scp), or - for names on stdin"
_REQUEST_OPTIONS = option_group(
    inside=repeatable(f"Recordings with the wake phrase: {_PLACE}.", "--in", metavar="PLACE"),
    outside=repeatable("Recordings without the wake phrase.", "--out", metavar="PLACE"),
    long=repeatable("Long recordings in which the wake phrases are labelled.", metavar="PLACE"),
    labels=repeatable(
        "Labels for --long: CSV, RTTM, TextGrid or Audacity labels, or a folder of them.",
        "--long-labels",
        former=("--labels",),
        metavar="FILE",
        show_default="next to each recording, with the same name",
    ),
    tier=option("TextGrid tier with the labels.", default="", metavar="NAME", show_default="all"),
    encoding=option("Encoding of manifests and labels.", show_default="UTF-8"),
    tolerance_s=option(
        "Time after a labelled phrase within which its detection counts.",
        "--label-tolerance",
        within=(0, 60),
        default=TOLERANCE_S,
        metavar="SECONDS",
    ),
    conditions=option(
        "YAML file of conditions (noise, room, channel). Every recording is evaluated under each condition.",
        default="",
        metavar="FILE",
    ),
    by=repeatable(
        "Group results by a column of a manifest or of labels, by `folder`, or by several crossed columns. Repeatable.",
        callback=_parse_groupings,
        metavar="COLUMN[,COLUMN]",
    ),
    clustered_by=option(
        "Column that identifies the clusters for intervals.",
        "--cluster-by",
        show_default="talker, speaker or client_id, if there is one",
        metavar="COLUMN",
    ),
    inv=_list_option("List of files with the wake phrase (in-vocabulary).", "-i"),
    oov=_list_option("List of files without the wake phrase (out-of-vocabulary).", former=("-o",)),
    referenced=_list_option(
        "CSV list: audio file and reference transcript file per row; or a manifest with texts.", "-c", "--references"
    ),
    jobs=option("Number of worker processes.", "-j", within=(1, 1024), default=1),
    log=option("Log file.", "-l", metavar="FILE", show_default="TASK.log in the current folder"),
    normalise=flag(
        "Ignore case and punctuation when comparing transcripts.", "-n", "--plain-words", former=("--normalise",)
    ),
    count_in_vocabulary=flag("Also count false accepts in in-vocabulary files.", "-u", "--fa-in-inv"),
    words=flag("Compute the word error rate on the files given with -c.", "-w", "--wer"),
    vad=flag("Remove silence before recognition.", "-a"),
    resume=flag("Resume an interrupted evaluation."),
    force=flag("Overwrite an existing log."),
    shard=option(
        "Run shard I of N only; `harness evaluate merge` joins the shards.", callback=_parse_shard, metavar="I/N"
    ),
    resample=flag("Resample files whose sample rate differs from the system's.", show_default="reject them"),
    continuous=flag("Keep the engine's state from one out-of-vocabulary file to the next."),
    lead_in_ref=option("Edge of a detection that must come after the lead-in.", default=LeadInRef.END),
    tail_s=option(
        "Add silence after each recording with the phrase or a reference, for clips that end with the speech.",
        "--tail",
        within=(0, 10),
        default=0.0,
        metavar="SECONDS",
    ),
    hang_after_s=option(
        "End a worker that runs this much longer than expected for its file.",
        "--hang-after",
        within=(0.1, None),
        default=HANG_AFTER_S,
        metavar="SECONDS",
    ),
    cache=option("Folder in which scores are kept for sweeps and later runs.", default="", metavar="FOLDER"),
    cluster=option("Run on the workers of this Dask scheduler.", default="", metavar="ADDRESS"),
    task_hours=option(
        "Hours of audio per task, with --cluster.", within=(0.01, MAX_TASK_H), default=TASK_HOURS, metavar="H"
    ),
)
_LIMITS = option_group(
    false_accepts_per_hour=_number_option(
        "Exit with status 1 above X false accepts per hour.", "--max-fa-per-hour", metavar="X"
    ),
    false_rejects_percent=_number_option(
        "Exit with status 1 above this share of false rejects.", "--max-fr", metavar="PERCENT", max_value=100
    ),
    wer=option("Exit with status 1 above this WER (0.08 or 8%).", "--max-wer", callback=parse_share, metavar="X"),
    on=option(
        "Compare limits with the estimate, or with bound, the worse end of its 95 % interval.",
        "--limits-on",
        default=LimitBasis.BOUND,
    ),
)
_SWEEP = option_group(
    prefix=option(
        "Count at every threshold, and write PREFIX.csv, .json, .png, .svg (without PREFIX: X.det.* next to X.log).",
        "--sweep", is_flag=False, flag_value=BESIDE_LOG, metavar="[PREFIX]", callback=_parse_prefix,
    ),
    dev_inv=_list_option("In-vocabulary list, folder or manifest for choosing an operating point."),
    dev_oov=_list_option("Out-of-vocabulary list, folder or manifest for choosing an operating point."),
    target_fa_per_hour=_number_option(
        "Recommend the point with the fewest false rejects at no more than X false accepts per hour.", metavar="X"
    ),
    target_fr_percent=_number_option(
        "Recommend the point with the fewest false accepts at no more than PERCENT false rejects.",
        "--target-fr", metavar="PERCENT", max_value=100,
    ),
    target_cost=option(
        "Recommend the cheapest point, given the cost of a false reject, of a false accept, and uses per hour.",
        nargs=3, within=(0, None), metavar="MISS ACCEPT USES",
    ),
    choose_by=option(
        "Compare targets with the estimate, or with bound, the upper end of its 95 % interval.",
        default=TargetBasis.ESTIMATE,
    ),
    twv=flag("Compute term-weighted values: MTWV, and ATWV at the run's threshold."),
    beta=option(
        "Weight of a false accept relative to a false reject.", "--twv-beta", within=(0, None),
        default=TWV_BETA, metavar="B",
    ),
    speech_s=_number_option(
        "Seconds of speech for term-weighted values.", "--twv-speech-s", metavar="S", above_0=True,
        show_default="all audio in which false accepts count",
    ),
    refractory_ms=_number_option(
        "Refractory time for the sweep.", "--sweep-refractory-ms", metavar="MS", max_value=60_000,
        show_default="the run's",
    ),
    no_picture=flag("Skip the PNG and SVG of the curve."),
)  # fmt: skip
_PAGES = option_group(
    report=option(
        "Write an HTML page with results, misses and sounds.",
        "--html",
        former=("--report",),
        default="",
        metavar="FILE",
        writes=True,
    ),
    junit=option("Write JUnit XML for a CI server.", default="", metavar="FILE", writes=True),
    audio=audio_option(),
)


@verb(
    "evaluate",
    sections={
        "Recordings": "long labels tier encoding tolerance_s conditions by clustered_by inv oov referenced resample "
        "tail_s",
        "Counting": "normalise count_in_vocabulary words vad continuous lead_in_ref",
        "Work": "settings files jobs verbose resume force shard hang_after_s cache cluster task_hours quiet",
        "Limits": "wer on",
        "Every threshold": "dev_inv dev_oov target_fa_per_hour target_fr_percent target_cost choose_by twv beta "
        "speech_s refractory_ms no_picture",
        "Pages": "audio",
    },
)
def command(
    *,
    stray: tuple[str, ...] = argument(""),
    engines: EngineOptions = engine_options(
        "Engine and model (microwakeword:okay_nabu), or a model file. Repeat to compare engines.", several=True
    ),
    request: EvaluationRequest = _REQUEST_OPTIONS,
    limits: DeclaredLimits = _LIMITS,
    sweep: SweepRequest = _SWEEP,
    pages: PageOptions = _PAGES,
    verbose: int = option("Print more; up to -vvv.", "-v", count=True),
    quiet: bool = flag("Hide the progress line.", former=("--quiet-progress",)),
) -> None:
    """Run a wake engine or a recogniser over audio files. Write a log, and print a summary line.

    Name folders with --in and --out, long recordings with --long, or lists with -i, --oov and -c. The harness also
    writes LOG.json (exact counts) and LOG.jsonl (the journal that --resume needs).

    Exit status: 0 done · 1 a declared limit failed · 2 wrong usage or input.
    With a log: 3 an engine or a file failed (complete log) · 130 interrupted (partial log).
    """
    _refuse_stray(stray)
    # Before NumPy is imported, whose other threads only wait here, and spin for a while before they do.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    tasks = engines.parse_tasks()

    from harness.offline.evaluation import MultiEngineRunner  # here, since wrong tasks are refused before this import

    lists = (*request.with_phrase, *request.without_phrase, *request.referenced, *request.labels)
    inputs = (*lists, *sweep.dev_inv, *sweep.dev_oov, *filter(None, [request.conditions]))
    for page in pages.files:
        refuse_overwriting(page, inputs)

    def demand_writable(file: Path) -> None:
        """Raises InputError for a file of the evaluation that is one of its inputs, or is a page."""
        refuse_overwriting(str(file), inputs)
        if any(is_one_place(page, str(file)) for page in pages.files):
            problem = "the HTML page or JUnit report would replace this file of the evaluation"
            raise InputError(problem, place=Place(str(file)), remedy="Choose another name for --html or --junit")

    runner = MultiEngineRunner(
        request, engines.tasks, tasks, EvaluationTerminal(quiet=quiet), ("harness", *sys.argv[1:]),
        sweep=sweep, limits=limits, verbose=verbose, pages=bool(pages.files), demand_writable=demand_writable,
    )  # fmt: skip
    exit_status = runner.evaluate()
    if runner.table is not None and pages.files:
        write_pages(runner.engines, runner.table, pages)
    sys.exit(exit_status)


def write_pages(engines: Sequence[EvaluatedEngine], table: EnginesTable, pages: PageOptions) -> None:
    """Writes the page and JUnit, if the options name them, and prints the verdict of the page."""
    from harness.report.evaluation_page import write_evaluations, write_junit
    from harness.report.session_cases import SoundStorage

    if pages.report:
        verdict = write_evaluations(engines, table, Path(pages.report), SoundStorage(pages.audio))
        print_lines([f"{verdict}."])
    if pages.junit:
        write_junit(engines, Path(pages.junit))


def _refuse_stray(names: Sequence[str]) -> None:
    """Raises InputError for names that belong to no option, as of a pattern that the shell has expanded."""
    if not names:
        return
    folder = os.path.commonpath([os.path.dirname(os.path.abspath(name)) for name in names])
    folder_text = shown(os.path.relpath(folder), 100)
    others_text = f", nor do {len(names) - 1} more" if len(names) > 1 else ""
    raise InputError(
        f"{shown(names[0], 100)} does not belong to an option{others_text}",
        remedy=f"Pass the folder, --in {folder_text}, or quote the pattern: --in '{folder_text}/**/*.wav'",
    )


class EvaluationTerminal(RedrawnLine):
    """Prints results on standard output; draws progress and prints remarks on standard error."""

    @property
    def width(self) -> int:
        return width()

    def print_result(self, line: str) -> None:
        print_lines([line])

    def show_progress(self, progress: RunProgress) -> None:
        self.draw(progress_text(progress))

    def warn(self, line: str) -> None:
        self.above(f"harness: {line}")

    def print_event(self, line: str) -> None:
        self.above(line)


def progress_text(progress: RunProgress) -> str:
    """Such as `1,234 of 3,298 files, 61.203 hr, 658.9x RT, 3 rejected, 0:01:12 left`.

    The speed is the recent one, if that is known already.
    """
    parts = [f"{progress.done:,} of {progress.files:,} files", f"{fixed(progress.audio_s / 3600, 3)} hr"]
    rate = progress.recent_rate or progress.rate
    if rate is not None:
        parts.append(f"{fixed(rate, 1)}x RT")
    if progress.rejected:
        parts.append(f"{progress.rejected:,} rejected")
    if progress.errors:
        parts.append(f"{progress.errors:,} with errors")
    if progress.eta_s is not None:
        parts.append(f"{hours(round(progress.eta_s))} left")
    return ", ".join(parts)

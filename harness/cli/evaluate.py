"""`harness evaluate`: run a wake engine or a recogniser over lists of files."""

from __future__ import annotations

import math
import os
import re
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from harness.base.foreign import shown
from harness.cli.options import (
    Command,
    Declared,
    EngineAsked,
    Option,
    WordOf,
    engine_options,
    options_as,
    share,
)  # fmt: skip
from harness.cli.streams import print_lines, refuse_overwriting, safe_stream
from harness.model.choices import HANG_AFTER_S, TWV_BETA, ChosenBy, LimitsOn
from harness.model.offline import LeadInRef
from harness.offline.asked import BESIDE_LOG, DeclaredLimits, EvaluationAsked, SweepAsked, log_name
from harness.offline.journal_lines import Shard

if TYPE_CHECKING:
    from harness.offline.run import RunProgress

LONGEST_TASK_H = 24.0
_CLEAR = "\r\x1b[K"


def _finite(ctx: click.Context, param: click.Parameter, value: float | None) -> float | None:
    if value is not None and not math.isfinite(value):
        raise click.BadParameter(f"{value} is not a finite number", ctx, param)
    return value


def _shard(ctx: click.Context, param: click.Parameter, value: str | None) -> Shard | None:
    """A shard of the lists: 2/8."""
    if value is None:
        return None
    found = re.fullmatch(r"(\d{1,6})/(\d{1,6})", value)
    if found is None or not 1 <= int(found[1]) <= int(found[2]):
        raise click.BadParameter(f"{value!r} is not a shard; write 1/8 for the first of eight", ctx, param)
    return Shard(int(found[1]), int(found[2]))


def _lists(*names: str, help: str) -> Declared:
    return click.option(*names, multiple=True, metavar="FILE", help=help)


def _flag(*names: str, help: str) -> Declared:
    return click.option(*names, is_flag=True, help=help)


def _least_0(*names: str, metavar: str, help: str, open_end: bool = False, most: float | None = None) -> Declared:
    kind = click.FloatRange(0, most, min_open=open_end)
    return click.option(*names, type=kind, callback=_finite, metavar=metavar, help=help)


_ASKED = (
    _lists("-i", "--inv", "inv", help="List of files with the wake phrase (in-vocabulary)."),
    _lists("-o", "--oov", "oov", help="List of files without the wake phrase (out-of-vocabulary)."),
    _lists("-c", "--references", "referenced", help="CSV list: audio file and reference transcript file per row."),
    click.option(
        "-j", "--jobs", "jobs", type=click.IntRange(1, 1024), default=1, show_default=True,
        help="Number of worker processes.",
    ),
    click.option("-l", "--log", "log", metavar="FILE", help="Log file (default: TASK.log in the current folder)."),
    _flag("-n", "--normalise", "normalise", help="Ignore case and punctuation when comparing transcripts."),
    _flag("-u", "--fa-in-inv", "count_in_vocabulary", help="Also count false accepts in in-vocabulary files."),
    _flag("-w", "--wer", "words", help="Compute the word error rate on the files of -c."),
    _flag("-a", "--vad", "vad", help="Remove silence before the recogniser."),
    _flag("--resume", help="Resume an interrupted evaluation."),
    _flag("--force", help="Overwrite an existing log."),
    click.option(
        "--shard", callback=_shard, metavar="I/N", help="Run shard I of N only; `harness merge` joins the shards."
    ),
    _flag("--resample", help="Resample files with another sample rate (default: reject them)."),
    _flag("--continuous", help="Keep the engine's state from one out-of-vocabulary file to the next."),
    click.option(
        "--lead-in-ref", type=WordOf(LeadInRef), default=LeadInRef.END.value, show_default=True,
        help="Which edge of a detection must follow the lead-in.",
    ),
    click.option(
        "--hang-after", "hang_after_s", type=click.FloatRange(min=0.1), callback=_finite, default=HANG_AFTER_S,
        show_default=True, metavar="SECONDS",
        help="End a worker that takes this much longer than its file can explain.",
    ),
    click.option("--cache", default="", metavar="FOLDER", help="Folder that keeps scores for sweeps and later runs."),
    click.option("--cluster", default="", metavar="ADDRESS", help="Run on the workers of this Dask scheduler."),
    click.option(
        "--task-hours", type=click.FloatRange(0.01, LONGEST_TASK_H), default=1.0, show_default=True, metavar="H",
        help="Hours of audio per task, with --cluster.",
    ),
)  # fmt: skip
_LIMITS = (
    _least_0("--max-fa-per-hour", "false_accepts_per_hour", metavar="X",
             help="Exit with status 1 above X false accepts per hour."),
    _least_0("--max-fr", "false_rejects_percent", metavar="PERCENT", most=100,
             help="Exit with status 1 above this share of false rejects."),
    click.option("--max-wer", "wer", callback=share, metavar="X",
                 help="Exit with status 1 above this WER (0.08 or 8%)."),
    click.option(
        "--limits-on", "on", type=WordOf(LimitsOn), default=LimitsOn.BOUND.value, show_default=True,
        help="Compare limits with the upper end of the 95 % interval (bound) or with the estimate.",
    ),
)  # fmt: skip
_SWEEP = (
    click.option(
        "--sweep", "prefix", is_flag=False, flag_value=BESIDE_LOG, default=None, metavar="[PREFIX]",
        help="Count at every threshold; write PREFIX.csv, .json, .png, .svg (default: X.det.* beside X.log).",
    ),
    _lists("--dev-inv", help="In-vocabulary list for choosing an operating point."),
    _lists("--dev-oov", help="Out-of-vocabulary list for choosing an operating point."),
    _least_0("--target-fa-per-hour", metavar="X",
             help="Recommend the point with the fewest false rejects at no more than X false accepts per hour."),
    _least_0("--target-fr", "target_fr_percent", metavar="PERCENT", most=100,
             help="Recommend the point with the fewest false accepts at no more than PERCENT false rejects."),
    click.option(
        "--target-cost", nargs=3, type=click.FloatRange(min=0), metavar="MISS ACCEPT USES",
        help="Recommend the cheapest point, given the cost of a false reject, of a false accept, and uses per hour.",
    ),
    click.option(
        "--choose-by", type=WordOf(ChosenBy), default=ChosenBy.ESTIMATE.value, show_default=True,
        help="Hold targets against the estimate or the upper end of its 95 % interval (bound).",
    ),
    _flag("--twv", help="Compute term-weighted values: MTWV, and ATWV at the run's threshold."),
    click.option("--twv-beta", "beta", type=click.FloatRange(min=0), default=TWV_BETA, show_default=True, metavar="B",
                 help="Weight of a false accept relative to a false reject."),
    _least_0("--twv-speech-s", "speech_s", metavar="S", open_end=True,
             help="Seconds of speech for term-weighted values (default: all audio in which false accepts count)."),
    _least_0("--sweep-refractory-ms", "refractory_ms", metavar="MS", most=60_000,
             help="Refractory time for the sweep (default: the run's)."),
    _flag("--no-picture", help="Skip the PNG and SVG of the curve."),
)  # fmt: skip


@click.command("evaluate", cls=Command)
@engine_options(
    "engine", "Engine and model (microwakeword:okay_nabu), or a task file.", "Set an engine setting from a file."
)
@options_as("asked", EvaluationAsked, *_ASKED)
@options_as("limits", DeclaredLimits, *_LIMITS)
@options_as("sweep", SweepAsked, *_SWEEP)
@click.option("-v", "--verbose", "verbose", count=True, help="Print more; up to -vvv.")
@click.option(
    "--quiet", cls=Option, former=("--quiet-progress",), is_flag=True, help="Hide the progress line on a terminal."
)
def command(
    engine: EngineAsked, asked: EvaluationAsked, limits: DeclaredLimits, sweep: SweepAsked, verbose: int, quiet: bool
) -> None:
    """Run a wake engine or a recogniser over lists of audio files. Write a log, and print a summary line.

    Give at least one of -i, -c and -o. The harness also writes LOG.json (exact counts) and LOG.jsonl (the journal
    that --resume needs).

    Exit status: 0 done · 1 a declared limit failed · 2 wrong usage or input.
    With a log: 3 an engine or a file failed (complete log) · 130 interrupted (partial log).
    """
    limits.demand_figures(asked)
    sweep.demand_sense(asked)
    task = engine.checked()

    from harness.offline.evaluating import EvaluationFiles, EvaluationSitting

    written = EvaluationFiles(Path(asked.log if asked.log is not None else f"{log_name(engine.task, task)}.log"))
    for one in written.all:
        refuse_overwriting(str(one), (*asked.inv, *asked.oov, *asked.referenced))
    written.demand_room(resume=asked.resume, force=asked.force)
    evaluation = asked.evaluation(task, asked.cache or (f"{written.log}.scores" if sweep else ""))
    terminal = EvaluationTerminal(quiet=quiet)
    sitting = EvaluationSitting(
        asked, engine.task, evaluation, written, terminal, ("harness", *sys.argv[1:]),
        sweep=sweep, limits=limits, verbose=verbose,
    )  # fmt: skip
    sys.exit(sitting.evaluate())


def on_terminal(stream: TextIO | None) -> bool:
    """Whether a line on this stream can be redrawn."""
    return stream is not None and stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"


class EvaluationTerminal:
    """Prints results on standard output. Draws a progress line on standard error if that is a terminal; other lines
    appear above it."""

    def __init__(self, *, quiet: bool) -> None:
        self._stream = safe_stream(sys.stderr) if sys.stderr is not None else None
        self._drawn = on_terminal(self._stream) and not quiet
        self._last = ""

    def say(self, line: str) -> None:

        print_lines([line])

    def progress(self, progress: RunProgress) -> None:
        if self._drawn and self._stream is not None:
            width = shutil.get_terminal_size().columns - 1
            self._last = shown(progress_text(progress), max(10, width))
            self._write(_CLEAR + self._last)

    def warn(self, line: str) -> None:
        self.tell(f"harness: {line}")

    def tell(self, line: str) -> None:
        self._write((_CLEAR if self._last else "") + line + "\n" + self._last)

    def clear(self) -> None:
        """Remove the progress line from the screen."""
        if self._last:
            self._write(_CLEAR)
        self._last = ""

    def _write(self, text: str) -> None:
        if self._stream is None:
            return
        try:
            self._stream.write(text)
            self._stream.flush()
        except OSError:
            # The reader is gone (`| head`, a closed terminal). The evaluation continues.
            self._stream = None
            sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 (for the interpreter's last flush)


def progress_text(progress: RunProgress) -> str:
    """`1,234 of 3,298 files, 61.203 hr, 658.9x RT, 3 rejected, 0:01:12 left`."""
    from harness.statistics.text import hours

    parts = [f"{progress.done:,} of {progress.files:,} files", f"{progress.audio_s / 3600:.3f} hr"]
    rate = progress.recent_rate or progress.rate
    if rate is not None:
        parts.append(f"{rate:.1f}x RT")
    if progress.rejected:
        parts.append(f"{progress.rejected:,} rejected")
    if progress.errors:
        parts.append(f"{progress.errors:,} with errors")
    if progress.eta_s is not None:
        parts.append(f"{hours(round(progress.eta_s))} left")
    return ", ".join(parts)

"""`harness evaluate`: a wake engine or a recogniser over lists of files."""

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
from harness.cli.streams import safe_stream
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
        raise click.BadParameter(f"{value} is no limit", ctx, param)
    return value


def _shard(ctx: click.Context, param: click.Parameter, value: str | None) -> Shard | None:
    """A part of the lists: 2/8."""
    if value is None:
        return None
    found = re.fullmatch(r"(\d{1,6})/(\d{1,6})", value)
    if found is None or not 1 <= int(found[1]) <= int(found[2]):
        raise click.BadParameter(f"{value!r} is no part of the lists; write 1/8 for the first of eight", ctx, param)
    return Shard(int(found[1]), int(found[2]))


def _lists(*names: str, help: str) -> Declared:
    return click.option(*names, multiple=True, metavar="FILE", help=help)


def _flag(*names: str, help: str) -> Declared:
    return click.option(*names, is_flag=True, help=help)


def _least_0(*names: str, metavar: str, help: str, open_end: bool = False, most: float | None = None) -> Declared:
    kind = click.FloatRange(0, most, min_open=open_end)
    return click.option(*names, type=kind, callback=_finite, metavar=metavar, help=help)


_ASKED = (
    _lists("-i", "--inv", "inv", help="List of in-vocabulary files (false rejects)."),
    _lists("-o", "--oov", "oov", help="List of out-of-vocabulary files (false accepts)."),
    _lists("-c", "--references", "referenced", help="CSV list of in-vocabulary and reference files."),
    click.option(
        "-j", "--jobs", "jobs", type=click.IntRange(1, 1024), default=1, show_default=True, help="Worker processes."
    ),
    click.option("-l", "--log", "log", metavar="FILE", help="The log; without it TASK.log in the current folder."),
    _flag("-n", "--normalise", "normalise", help="Compare in lower case, without punctuation."),
    _flag("-u", "--fa-in-inv", "count_in_vocabulary", help="Count false accepts in in-vocabulary files, too."),
    _flag("-w", "--wer", "words", help="Word error rate, on the files of -c."),
    _flag("-a", "--vad", "vad", help="Cut silence off before a recogniser."),
    _flag("--resume", help="Go on with an evaluation that was cut off."),
    _flag("--force", help="Replace a log that is there."),
    click.option(
        "--shard", callback=_shard, metavar="I/N", help="Only the I-th of N parts; `harness merge` joins them."
    ),
    _flag("--resample", help="Take files of another sample rate; without it they are rejected."),
    _flag("--continuous", help="Carry the engine's state over the out-of-vocabulary files."),
    click.option(
        "--lead-in-ref", type=WordOf(LeadInRef), default=LeadInRef.END.value, show_default=True,
        help="What of a spot must lie after the lead-in.",
    ),
    click.option(
        "--hang-after", "hang_after_s", type=click.FloatRange(min=0.1), callback=_finite, default=HANG_AFTER_S,
        show_default=True, metavar="SECONDS",
        help="An engine hangs when a file takes this much longer than its length explains.",
    ),
    click.option("--cache", default="", metavar="FOLDER", help="Keep scores there, for sweeps and further runs."),
    click.option("--cluster", default="", metavar="ADDRESS", help="Play on the workers of this Dask scheduler."),
    click.option(
        "--task-hours", type=click.FloatRange(0.01, LONGEST_TASK_H), default=1.0, show_default=True, metavar="H",
        help="Hours of audio in a task of a cluster.",
    ),
)  # fmt: skip
_LIMITS = (
    _least_0("--max-fa-per-hour", "false_accepts_per_hour", metavar="X",
             help="Status 1 with more false accepts an hour."),
    _least_0("--max-fr", "false_rejects_percent", metavar="PERCENT", most=100,
             help="Status 1 with more false rejects."),
    click.option("--max-wer", "wer", callback=share, metavar="X", help="Status 1 with a higher WER (0.08 or 8%)."),
    click.option(
        "--limits-on", "on", type=WordOf(LimitsOn), default=LimitsOn.BOUND.value, show_default=True,
        help="What limits are on: the upper end of the 95 % interval, or the figure itself.",
    ),
)  # fmt: skip
_SWEEP = (
    click.option(
        "--sweep", "prefix", is_flag=False, flag_value=BESIDE_LOG, default=None, metavar="[PREFIX]",
        help="Count at every threshold: PREFIX.csv, .json, .png, .svg; without PREFIX X.det.* beside X.log.",
    ),
    _lists("--dev-inv", help="In-vocabulary list to choose a point on."),
    _lists("--dev-oov", help="Out-of-vocabulary list to choose a point on."),
    _least_0("--target-fa-per-hour", metavar="X",
             help="Recommend the point with fewest false rejects and at most X false accepts an hour."),
    _least_0("--target-fr", "target_fr_percent", metavar="PERCENT", most=100,
             help="Recommend the point with fewest false accepts and at most PERCENT false rejects."),
    click.option(
        "--target-cost", nargs=3, type=click.FloatRange(min=0), metavar="MISS ACCEPT USES",
        help="Recommend the point of least cost: of a false reject, of a false accept, and uses an hour.",
    ),
    click.option(
        "--choose-by", type=WordOf(ChosenBy), default=ChosenBy.ESTIMATE.value, show_default=True,
        help="What must keep a target: the figure, or the upper end of its 95 % interval.",
    ),
    _flag("--twv", help="Term-weighted values: MTWV, and ATWV at the run's own threshold."),
    click.option("--twv-beta", "beta", type=click.FloatRange(min=0), default=TWV_BETA, show_default=True, metavar="B",
                 help="What a false accept weighs against a miss."),
    _least_0("--twv-speech-s", "speech_s", metavar="S", open_end=True,
             help="Seconds of speech for the term-weighted value; else all the time of false accepts."),
    _least_0("--sweep-refractory-ms", "refractory_ms", metavar="MS", most=60_000,
             help="Another refractory time for the sweep than the run's."),
    _flag("--no-picture", help="No PNG and SVG of the curve."),
)  # fmt: skip


@click.command("evaluate", cls=Command)
@engine_options(
    "engine", "Engine and model (microwakeword:okay_nabu), or a file.", "A setting of the engine, from a file."
)
@options_as("asked", EvaluationAsked, *_ASKED)
@options_as("limits", DeclaredLimits, *_LIMITS)
@options_as("sweep", SweepAsked, *_SWEEP)
@click.option("-v", "--verbose", "verbose", count=True, help="More lines; up to -vvv.")
@click.option(
    "--quiet", cls=Option, former=("--quiet-progress",), is_flag=True, help="No line of progress on a terminal."
)
def command(
    engine: EngineAsked, asked: EvaluationAsked, limits: DeclaredLimits, sweep: SweepAsked, verbose: int, quiet: bool
) -> None:
    """Run a wake engine or a recogniser over lists of audio files; write the log, and sum it up in a line.

    At least one of -i, -c and -o is needed. Beside the log stand LOG.json, with exact counts, and LOG.jsonl, which
    --resume goes on with.

    Exit status: 0 done · 1 a declared limit failed · 2 wrong usage or input · 3 an engine or a file failed, and the log
    is complete all the same · 130 interrupted, and the log is partial.
    """
    limits.demand_figures(asked)
    sweep.demand_sense(asked)
    task = engine.checked()

    from harness.cli.streams import refuse_overwriting
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
    """Can a line be drawn anew on it?"""
    return stream is not None and stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"


class EvaluationTerminal:
    """Results go to standard output. A line of progress is drawn on standard error where that is a terminal, never in a
    pipe; other lines there go above it."""

    def __init__(self, *, quiet: bool) -> None:
        self._stream = safe_stream(sys.stderr) if sys.stderr is not None else None
        self._drawn = on_terminal(self._stream) and not quiet
        self._last = ""

    def say(self, line: str) -> None:
        from harness.cli.streams import print_lines

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
        """The line goes; the screen is as if it had not been."""
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
            # Nobody reads there any more (`| head`, a terminal that was closed): no reason to end an evaluation.
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

"""`harness evaluate`: a wake engine or a recogniser over lists of files."""

from __future__ import annotations

import math
import sys

import click

from harness.cli.evaluate_cluster import cluster_options
from harness.cli.evaluate_limits import DeclaredLimits, LimitsOn
from harness.cli.evaluate_options import Asked, shard
from harness.cli.evaluate_sweep import SweepAsked, sweep_options
from harness.cli.options import Command, Option, share
from harness.model.choices import HANG_AFTER_S
from harness.model.offline import Evaluation, LeadInRef
from harness.offline.journal_lines import Shard


def _finite(ctx: click.Context, param: click.Parameter, value: float | None) -> float | None:
    if value is not None and not math.isfinite(value):
        raise click.BadParameter(f"{value} is no limit", ctx, param)
    return value


@click.command("evaluate", cls=Command)
@click.option(
    "-t", "--task", "task", required=True, metavar="TASK", help="Engine and model (microwakeword:okay_nabu), or a file."
)
@click.option(
    "-i",
    "--inv",
    "inv",
    multiple=True,
    metavar="FILE",
    help="List of in-vocabulary files (false rejects).",
)
@click.option(
    "-o",
    "--oov",
    "oov",
    multiple=True,
    metavar="FILE",
    help="List of out-of-vocabulary files (false accepts).",
)
@click.option(
    "-c",
    "--references",
    "referenced",
    multiple=True,
    metavar="FILE",
    help="CSV list of in-vocabulary and reference files.",
)
@click.option(
    "-j",
    "--jobs",
    "jobs",
    type=click.IntRange(1, 1024),
    default=1,
    show_default=True,
    help="Worker processes.",
)
@click.option("-l", "--log", "log", metavar="FILE", help="The log; without it TASK.log in the current folder.")
@click.option("-n", "--normalise", "normalise", is_flag=True, help="Compare in lower case, without punctuation.")
@click.option(
    "-s",
    "--setting",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    help="A setting of the engine; the last wins.",
)
@click.option(
    "-f",
    "--setting-file",
    "files",
    multiple=True,
    nargs=2,
    metavar="NAME FILE",
    help="A setting of the engine, from a file.",
)
@click.option(
    "-u",
    "--fa-in-inv",
    "count_in_vocabulary",
    is_flag=True,
    help="Count false accepts in in-vocabulary files, too.",
)
@click.option("-w", "--wer", "words", is_flag=True, help="Word error rate, on the files of -c.")
@click.option("-a", "--vad", "vad", is_flag=True, help="Cut silence off before a recogniser.")
@click.option("-v", "--verbose", "verbose", count=True, help="More lines; up to -vvv.")
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
@click.option(
    "--hang-after",
    "hang_after_s",
    type=click.FloatRange(min=0.1),
    callback=_finite,
    default=HANG_AFTER_S,
    show_default=True,
    metavar="SECONDS",
    help="An engine hangs when a file takes this much longer than its length explains.",
)
@click.option("--cache", default="", metavar="FOLDER", help="Keep scores there, for sweeps and further runs.")
@click.option(
    "--max-fa-per-hour",
    type=click.FloatRange(min=0),
    callback=_finite,
    metavar="X",
    help="Status 1 with more false accepts an hour.",
)
@click.option(
    "--max-fr",
    type=click.FloatRange(0, 100),
    callback=_finite,
    metavar="PERCENT",
    help="Status 1 with more false rejects.",
)
@click.option("--max-wer", callback=share, metavar="X", help="Status 1 with a higher WER (0.08 or 8%).")
@click.option(
    "--limits-on",
    type=click.Choice([one.value for one in LimitsOn]),
    default=LimitsOn.BOUND.value,
    show_default=True,
    help="What limits are on: the upper end of the 95 % interval, or the figure itself.",
)
@cluster_options
@sweep_options
@click.option(
    "--quiet",
    "quiet_progress",
    cls=Option,
    former=("--quiet-progress",),
    is_flag=True,
    help="No line of progress on a terminal.",
)
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
    hang_after_s: float,
    cache: str,
    max_fa_per_hour: float | None,
    max_fr: float | None,
    max_wer: float | None,
    limits_on: str,
    quiet_progress: bool,
    cluster: str,
    task_hours: float,
    sweep: SweepAsked,
) -> None:
    """Run a wake engine or a recogniser over lists of audio files; write the log, and sum it up in a line.

    At least one of -i, -c and -o is needed. Beside the log stand LOG.json, with exact counts, and LOG.jsonl, which
    --resume goes on with.

    Exit status: 0 done · 1 a declared limit failed · 2 wrong usage or input · 3 an engine or a file failed, and the log
    is complete all the same · 130 interrupted, and the log is partial.
    """
    from harness.cli.evaluate_files import EvaluationFiles
    from harness.cli.evaluate_sitting import Sitting
    from harness.offline.lists import read_lists
    from harness.offline.pool import Limits

    asked = Asked(
        task, inv, oov, referenced, settings, files, jobs, log, normalise, count_in_vocabulary, words, vad, resume,
        force, continuous, shard, cluster, task_hours,
    )  # fmt: skip
    limits = DeclaredLimits(max_fa_per_hour, max_fr, max_wer, LimitsOn(limits_on))
    asked.demand_sense()
    limits.demand_figures(inv=bool(inv or referenced), oov=bool(oov) or count_in_vocabulary, words=words)
    sweep.demand_sense(asked)
    checked = asked.checked_task()
    written = EvaluationFiles(asked.log_path(checked))
    written.demand_room((*inv, *oov, *referenced), resume=resume, force=force)
    cache = sweep.cache(cache, written.log)
    evaluation = Evaluation(checked, resample, continuous, vad, hashes=bool(cache), cache=cache)
    listing = read_lists(inv, oov, referenced)
    sitting = Sitting(asked, evaluation, LeadInRef(lead_in_ref), written, listing, sweep, verbose, quiet=quiet_progress)
    sys.exit(sitting.evaluate(limits, Limits(hang_after_s=hang_after_s)))

"""`harness evaluate --cluster`: where files are played, on this machine or on a cluster's workers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

import click

from harness.cli.evaluate_options import Asked

if TYPE_CHECKING:
    from harness.offline.run import Ran

LONGEST_TASK_H = 24.0
FOR_FIGURES = ("harness.offline.reports.log", "harness.offline.reports.log", "harness.cli.evaluate_faults")
"""Modules of figures and logs, which take longer to import than half an hour of audio takes to play."""


def cluster_options(command: Callable[..., None]) -> Callable[..., None]:
    """The options `cluster` and `task_hours` for a command."""
    task_hours = click.option(
        "--task-hours",
        type=click.FloatRange(0.01, LONGEST_TASK_H),
        default=1.0,
        show_default=True,
        metavar="H",
        help="Hours of audio in a task of a cluster.",
    )
    cluster = click.option(
        "--cluster", default="", metavar="ADDRESS", help="Play on the workers of this Dask scheduler."
    )
    return cluster(task_hours(command))


def runner(asked: Asked) -> Callable[..., Ran]:
    """What plays the files: `run.run`, or `cluster.run_on_cluster`, with what the command line says of it."""
    from harness.offline.run import run

    if not asked.cluster:
        return partial(run, jobs=asked.jobs, while_loading=_import_for_figures)
    from harness.offline.cluster import run_on_cluster

    return partial(run_on_cluster, address=asked.cluster, task_s=asked.task_hours * 3600)


def _import_for_figures() -> None:
    for name in FOR_FIGURES:
        import_module(name)

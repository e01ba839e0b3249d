"""Runs a program of Dask in a process that was forked when Dask was imported already, which takes most of its start.

Imports nothing of ours: a worker may have another version of the harness.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path

import dask.config

PROGRAMS = ("distributed.cli.dask_scheduler", "distributed.cli.dask_worker")


def run(program: str | Sequence[str], arguments: list[str], environment: Mapping[str, str], output: Path) -> None:
    """One of PROGRAMS, in the folder of its output. A command line is executed instead of this process."""
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(output.parent)
    with output.open("wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    if not isinstance(program, str):
        os.execve(program[0], [*program, *arguments], environment)
    sys.path[:0] = environment.get("PYTHONPATH", "").split(os.pathsep)
    dask.config.refresh()  # it holds what the environment said earlier
    import_module(program).main(arguments)

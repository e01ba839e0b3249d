"""`--junit FILE` of the verbs that watch a run: the report is there however they end, and is never an old one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from harness.cli.watching import View, watch
from harness.model.errors import HarnessError, InputError, Place

if TYPE_CHECKING:
    from harness.session.engine.launch import EnginePlace

F = TypeVar("F", bound=Callable[..., object])


def junit_option(command: F) -> F:
    """The option --junit, as `report`."""
    return click.option(
        "--junit",
        "report",
        type=click.Path(path_type=Path),
        help="Write a JUnit report of the whole session to this file, whatever the exit status.",
    )(command)


def demand_watching(report: Path | None, no_watch: bool) -> None:
    """InputError for a report of a run whose end is not waited for."""
    if report is not None and no_watch:
        raise InputError(
            "--junit is written when the run ends, and --no-watch does not wait for that",
            remedy="Write it afterwards: harness export SESSION --junit FILE",
        )


@contextmanager
def until_watched(report: Path | None, name: str) -> Iterator[None]:
    """What comes before the run can be watched: it leaves a report that says that it is not over, or why it never was.

    Nobody reads an old report as that of this run. InputError when none can be written.
    """
    from harness.report import junit

    if report is None:
        yield
        return
    try:
        report.parent.mkdir(parents=True, exist_ok=True)
        junit.write(report, junit.not_begun(name, "the run did not come to its end"))
    except (OSError, HarnessError) as error:
        raise InputError(
            f"the JUnit report cannot be written: {error}", place=Place(str(report)), remedy="Name another file"
        ) from error
    try:
        yield
    except HarnessError as error:
        junit.write(report, junit.not_begun(name, error))
        raise


def watch_to_report(place: EnginePlace, view: View, report: Path | None, *, history: bool = False) -> int:
    """As `watch`, and writes the report of the session when that is over, whatever came of it."""
    try:
        return watch(place, view, history=history)
    finally:
        write_report(report, Path(place.folder))


def write_report(report: Path | None, folder: Path) -> None:
    """The report of the session as it stands; LogFull, LogError."""
    from harness.report import junit

    if report is not None:
        junit.write(report, junit.junit(folder))

"""`harness understanding merge`: scored shards put together."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import click

from harness.cli.options import Command, target_option
from harness.cli.read_once import STDIN, named, readable, refuse_overwriting
from harness.cli.understanding.limits import Limits, limit_options
from harness.cli.understanding.writing import write_reports
from harness.model.errors import InputError, Place

if TYPE_CHECKING:
    from harness.understanding.reports.score_json import ScoreFile
    from harness.understanding.scoring import SystemCounts


@click.command("merge", cls=Command)
@click.argument("files", nargs=-1, required=True, metavar="A.json B.json…")
@target_option("--json", "json_target", "Print JSON and no text.")
@click.option("--html", "html_target", metavar="FILE", help="Write a page; it has no utterances, which JSON lacks.")
@limit_options
def command(files: tuple[str, ...], json_target: str | None, html_target: str | None, limits: Limits) -> None:
    """Add what `harness understanding score --json` wrote of parts of a corpus.

    The figures and intervals are those of all utterances together, to the last digit. Parts must have been scored
    alike: the same rule, labels and 0/0, and as many systems in the same order.

    Exit status: 0 added · 1 a limit does not hold · 2 wrong usage or input · 3 a report cannot be written.
    """
    from harness.understanding.reports.score_json import read_score_json
    from harness.understanding.reports.score_text import Reported

    for target in filter(None, (json_target, html_target)):
        refuse_overwriting(target, files)
    if files.count(STDIN) > 1:
        raise InputError("only one file can come from standard input", remedy="Name the others")
    parts = []
    with ExitStack() as stack:
        for one in files:
            file = stack.enter_context(readable(one))
            try:
                parts.append(read_score_json(file.path, file.name))
            except InputError as error:
                raise named(error, file) from error
    systems = [Reported(one, parts[0].zero, parts[0].labels) for one in _merged(parts)]
    write_reports(systems, json_target=json_target, html_target=html_target)
    limits.demand(systems)


def _merged(parts: list[ScoreFile]) -> list[SystemCounts]:
    from harness.understanding.scoring import added

    first = parts[0]
    for one in parts[1:]:
        if len(one.systems) != len(first.systems):
            what = f"{len(one.systems)} systems were scored, and {len(first.systems)} in {first.name}"
        elif one.zero != first.zero:
            what = f"0/0 was {one.zero.name}, and {first.zero.name} in {first.name}"
        elif one.labels != first.labels:
            what = f"other labels were declared than in {first.name}"
        else:
            continue
        raise InputError(what, place=Place(one.name), remedy="Score all parts alike")
    found = []
    for at in range(len(first.systems)):
        for one in parts[1:]:
            try:
                added([first.systems[at], one.systems[at]])
            except ValueError as error:
                what = f"{error}: it cannot be added to {first.name}"
                raise InputError(what, place=Place(one.name), remedy="Score all parts alike") from error
        found.append(added([one.systems[at] for one in parts]))
    return found

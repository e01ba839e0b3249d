"""`harness rate judgments`: export judgments, and import judgments made elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.base.foreign import plain_text
from harness.base.whole_file import write_atomically
from harness.cli.options import RatedSessionOptions, argument, flag, option, repeatable, sessions_argument, verb
from harness.cli.sessions import ROUND_SUFFIXES, rated_sessions, session_folder
from harness.cli.streams import STREAM, drawn_progress, print_file, refuse_overwriting
from harness.model.choices import JudgmentFormat as Format
from harness.model.errors import InputError, InputProblems
from harness.model.numbers import counted

if TYPE_CHECKING:
    from harness.rating.judgment_import import ImportPlan

MAX_LISTED_REPEATS = 20
"""Up to this many repeated rows are named."""


@click.group("judgments")
def command() -> None:
    """Export the judgments of sessions, and import judgments made elsewhere."""


@verb("export", parent=command)
def export(
    *,
    sessions: tuple[str, ...] = argument("SESSION… | ROUND.yaml", required=True),
    csv_file: str | None = option(
        "Print comma-separated values, for spreadsheets. FILE: write to this file.",
        "--csv",
        suffixes=(".csv",),
        any_word=True,
        metavar="[FILE]",
    ),
    jsonl_file: str | None = option(
        "Write one JSON object per line; - is standard output.", "--jsonl", metavar="FILE", writes=True
    ),
    parquet_file: str | None = option(
        "Write Parquet, with typed columns (needs the extra `parquet`).", "--parquet", metavar="FILE", writes=True
    ),
    in_force: bool = flag("Leave out judgments that were changed or taken back.", "--current", former=("--in-force",)),
    blind: bool = flag("Leave out sessions, trials, devices and conditions; a clip identifies a response."),
) -> None:
    """Write one row per judgment, with the details of its response.

    SESSION: a session's folder, or its name in ./sessions. ROUND.yaml: the sessions of a round, with only its
    judgments. Each file is written completely or not at all.
    """
    from harness.base.typed_table import TypedTable, csv_of, demand_parquet, jsonl_of, parquet_of
    from harness.rating.figures.judged_responses import read_sessions, with_selected_rows
    from harness.rating.reports.judgment_table import count_in_force, judgment_table

    if csv_file == jsonl_file == parquet_file is None:
        raise InputError("no output file is given", remedy="Add --csv FILE, --jsonl FILE or --parquet FILE")
    if parquet_file == STREAM:
        raise InputError("Parquet cannot go to standard output", remedy="Name a file")
    if csv_file == jsonl_file == STREAM:
        raise InputError(
            "only one of CSV and JSON lines can go to standard output", remedy="Write one of the two to a file"
        )
    if parquet_file is not None:
        demand_parquet()
    rated = rated_sessions(RatedSessionOptions(named=sessions, round_id=None, with_programs=False))
    sources = [*sessions, *(str(path) for folder in rated.folders for path in folder.iterdir())]
    for file in filter(None, (csv_file, jsonl_file, parquet_file)):
        refuse_overwriting(file, sources)
    with drawn_progress():
        judged_sessions = with_selected_rows(read_sessions(rated.folders), rated.round_id)
    table = judgment_table(judged_sessions, only_in_force=in_force, blind=blind)
    outputs: list[tuple[str | None, Callable[[TypedTable], bytes]]] = [
        (csv_file, csv_of), (jsonl_file, jsonl_of), (parquet_file, parquet_of)
    ]  # fmt: skip
    for target, encode in outputs:
        if target == STREAM:
            print_file(encode(table))
        elif target is not None:
            write_atomically(Path(target), encode(table))
            rows, count = counted(len(table.rows), "row"), count_in_force(table)
            count_text = f"{counted(count, 'judgment')} {'counts' if count == 1 else 'count'}"
            click.echo(f'Writing {rows} to "{plain_text(target)}"; {count_text}', err=STREAM in (csv_file, jsonl_file))


@verb("import", parent=command, short_help="Import judgments made elsewhere: CSV, JSON lines or Parquet.")
def import_(
    *,
    sessions: tuple[str, ...] = sessions_argument(),
    file: str = argument("FILE"),
    kind: Format | None = option(
        "Format of FILE.",
        "--format",
        former=("--csv=csv", "--jsonl=jsonl", "--parquet=parquet"),
        show_default="by the suffix of FILE",
    ),
    mappings: tuple[str, ...] = repeatable("Read COLUMN as FIELD; repeatable.", "--map", metavar="COLUMN=FIELD"),
    encoding: str | None = option("Encoding of FILE.", show_default="UTF-8"),
    replacing: bool = flag("Replace a rater's earlier judgments of the same responses.", "--replace"),
    skip_bad: bool = flag("Skip invalid rows, and import the others."),
    dry_run: bool = flag("Check everything and write nothing."),
) -> None:
    """Import judgments made elsewhere: CSV, JSON lines or Parquet, checked row by row.

    Nothing is written unless every row is valid, or --skip-bad is given. Importing the same file again adds nothing.
    A row names a rater, a category (its word, key or label) and a response: session and trial, or clip_sha256.
    A row counts in a round if its column round has the name of the round.
    """
    from harness.rating.figures.judged_responses import read_sessions
    from harness.rating.files.reading import format_from_suffix, read_judgments
    from harness.rating.judgment_import import CATEGORY_BY_WORD, ImportPlan

    for name in sessions:
        if name.endswith(ROUND_SUFFIXES):
            raise InputError(
                f"{plain_text(name, 200)} is a round file, but judgments are imported into sessions",
                remedy="Pass the sessions of the round. A row counts in the round that its column `round` names",
            )
    path = Path(file)
    field_by_column = _parse_mappings(mappings)
    with drawn_progress():
        judged_sessions = read_sessions([session_folder(session) for session in sessions])
    judgments = read_judgments(path, kind or format_from_suffix(path), CATEGORY_BY_WORD, field_by_column, encoding)
    plan = ImportPlan(judged_sessions, judgments, path, may_replace=replacing)
    if plan.problems and not skip_bad:
        click.echo(f"harness: {counted(plan.bad_count, 'row')} cannot be imported, so nothing was written", err=True)
        raise InputProblems(plan.problems)
    for problem in plan.problems:
        click.echo(f"left out: {plain_text(str(problem), 2000)}", err=True)
    if judgments.ignored_columns:
        columns = ", ".join(plain_text(name, 60) for name in judgments.ignored_columns[:20])
        click.echo(f"unknown columns, ignored: {columns}", err=True)
    for line, first_line in plan.repeated_lines[:MAX_LISTED_REPEATS]:
        click.echo(f"{plain_text(file)}:{line}: the same row as line {first_line}; counted once", err=True)
    if not dry_run:
        plan.write()
    dry_text = "; nothing was written (--dry-run)" if dry_run else ""
    click.echo(f"{_import_text(plan)}{dry_text}")


def _import_text(plan: ImportPlan) -> str:
    """How many judgments are new, known, repeated or wrong."""
    counts = [counted(len(plan.new_judgments), "new judgment")]
    if plan.replacing_count:
        counts.append(f"{plan.replacing_count} of them replace earlier judgments")
    counts.append(f"{plan.known_count} already there")
    if plan.repeated_lines:
        counts.append(f"{counted(len(plan.repeated_lines), 'repeated row')} counted once")
    if plan.bad_count:
        counts.append(f"{counted(plan.bad_count, 'row')} left out")
    return ", ".join(counts)


def _parse_mappings(mappings: tuple[str, ...]) -> dict[str, str]:
    """The field of each column, from texts COLUMN=FIELD. Raises InputError for another text."""
    field_by_column: dict[str, str] = {}
    for mapping in mappings:
        column, _, field = mapping.rpartition("=")  # a column may have = in its name; without =, it is ""
        if not column or not field:
            raise InputError(f"--map {mapping!r} is not COLUMN=FIELD", remedy="For example: --map coder=rater")
        field_by_column[column] = field
    return field_by_column

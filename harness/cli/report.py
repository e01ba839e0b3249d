"""`harness report`: a page of HTML about sessions, or the sums of a wake-evaluation log."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.base.foreign import shell_word
from harness.base.text_table import shown
from harness.cli.options import A_FILE, argument, audio_option, json_option, option, verb
from harness.cli.sessions import session_folder
from harness.cli.streams import drawn_progress, open_input, print_lines, refuse_overwriting
from harness.model.errors import HarnessError, InputError, Place
from harness.offline.request import PageOptions
from harness.offline.wake_log_reading import demand_numbers

if TYPE_CHECKING:
    from harness.offline.reports.log_summary import LogSummary

DISAGREES = 3  # Exit status, as for any fault.
_JOURNAL = b'{"journal":'


@verb("report", sections={"Evaluations and sounds": "junit audio"})
def command(
    *,
    log: str = argument("SESSION|LOG"),
    more: tuple[str, ...] = argument("[SESSION|LOG]…"),
    output: Path | None = option(
        "Write one HTML page about the sessions or evaluations.", "--html", former=("-o", "--output"), type=A_FILE,
        writes=True,
    ),
    junit: Path | None = option(
        "Evaluations: write JUnit XML for a CI server.", type=A_FILE, writes=True
    ),
    audio: str = audio_option(),
    as_json: bool = json_option("Print one JSON object about a log."),
) -> None:  # fmt: skip
    """Write a self-contained page about sessions or evaluations, or summarise a wake-evaluation log.

    SESSION, with --html: its folder, or its name in ./sessions. Works while the session runs.

    LOG with --html: logs of `harness evaluate`, with LOG.jsonl next to each. Several are compared on one page. Score
    curves need the stored scores: evaluate with --html, --sweep or --cache.

    LOG: a log of `harness evaluate`, of `harness report export --wake-log`, or of the original tool; - for standard
    input. A journal (LOG.jsonl) works too, also while the run continues or after it was killed. Prints the lines
    that the evaluation printed, intervals, and totals that do not add up.

    Exit status: 0 written, or the totals agree with the lines · 2 the input cannot be read · 3 the totals disagree.
    """
    if junit is not None or (output is not None and Path(log).is_file()):
        if as_json:
            raise InputError("--json cannot be combined with --html or --junit", remedy="Choose one")
        _report_evaluations((log, *more), PageOptions(str(output or ""), str(junit or ""), audio))
        return
    if output is not None:
        if as_json:
            raise InputError("--json applies to a log only", remedy="For a session: harness report export --json")
        _report_sessions((log, *more), output, audio)
        return
    if more or _is_session(log):
        raise InputError(
            "a page about sessions must be written to a file",
            remedy=f"Add a file: harness report {' '.join(map(shell_word, (log, *more)))} --html report.html."
            " For a summary here: harness report show SESSION",
        )
    from harness.offline.reports import log_summary

    summary = _summarise_log(log)
    if as_json:
        print_lines([json.dumps(log_summary.as_json(summary), indent=2)])
    else:
        print_lines(map(shown, log_summary.lines(summary)))
    if summary.differences:
        sys.exit(DISAGREES)


def _is_session(name: str) -> bool:
    """Whether the name is that of a folder, or of a session in ./sessions."""
    if Path(name).exists():
        return Path(name).is_dir()
    try:
        session_folder(name)
    except InputError:
        return False
    return True


def _report_sessions(names: tuple[str, ...], output: Path, audio: str) -> None:
    """Writes one page about the sessions, and prints its verdict."""
    from harness.report.session_cases import SoundStorage
    from harness.report.session_page import write_report

    folders = [session_folder(name) for name in names]
    with drawn_progress():
        verdict = write_report(folders, output, SoundStorage(audio))
    click.echo(f"{verdict}.")


def _report_evaluations(logs: tuple[str, ...], pages: PageOptions) -> None:
    """Writes the pages about evaluations.

    Raises InputError for names that are not logs, and for pages that would replace them.
    """
    from harness.cli.evaluate import write_pages
    from harness.offline.evaluation_results import read_engines, table_of

    for log in logs:
        for page in pages.files:
            refuse_overwriting(page, (log, f"{log}.jsonl"))
        if _is_session(log):
            raise InputError(
                f"--junit applies to evaluation logs, but {log} is a session",
                remedy=f"Write the session's results with: harness report export {shell_word(log)} --junit FILE",
            )
        if not Path(log).is_file():
            raise InputError(
                "this is not an evaluation log",
                place=Place(log),
                remedy="Pass only logs that `harness evaluate` wrote, or only sessions",
            )
    engines = read_engines([Path(log) for log in logs], lambda line: click.echo(f"harness: {shown(line)}", err=True))
    write_pages(engines, table_of(engines, None, {}), pages)


def _summarise_log(name: str) -> LogSummary:
    """The summary of a log or journal; with the nearest misses, if its journal is next to it."""
    from harness.offline.reports.log_summary import read_sums, summarise_log

    with open_input(name) as file:
        try:
            with _open_log(file.path) as path:
                log, sums = read_sums(path, file.name)
        except OSError as error:
            raise InputError(
                f"the log cannot be read: {error.strerror or error}",
                place=Place(file.name),
                remedy="Check the path and its permissions",
            ) from error
    if not (log.info or sums.lines or log.totals):
        raise InputError("this log is empty", place=Place(file.name), remedy="Pass an evaluation log")
    demand_numbers(log, file.name)
    summary = summarise_log(log, sums)
    journal = Path(name if name.endswith(".jsonl") else f"{name}.jsonl")
    if sums.missed and journal.is_file():
        return replace(summary, missed=_nearest_misses(journal))
    return summary


def _nearest_misses(path: Path) -> tuple[str, ...]:
    """Lines about the false rejects of a journal that came closest to being accepted, the closest first.

    A line has the highest score, if scores are stored. Warns and returns () if the journal cannot be read.
    """
    from harness.offline.evaluation_results import score_cache_of
    from harness.offline.journal import JournalFile
    from harness.offline.wake_log import MAX_MISSED_NAMES
    from harness.report.evaluation_cases import errors_of, nearest_first

    try:
        journal = JournalFile(path)
        missed, _, _ = errors_of(journal)
        scores = score_cache_of(journal, lambda line: click.echo(f"harness: {line}", err=True))
        return tuple(error.line for error in nearest_first(missed, journal, scores)[:MAX_MISSED_NAMES])
    except HarnessError as error:  # Only the list is missing: the log itself can be read.
        click.echo(f"harness: the highest scores of missed files are not available: {error}", err=True)
        return ()


@contextmanager
def _open_log(path: Path) -> Iterator[Path]:
    """The path of the log itself, or of a temporary log that is written from a journal."""
    from harness.offline.journal import JournalFile
    from harness.offline.reports.log import run_of, write_log

    with path.open("rb") as file:
        is_journal = file.read(len(_JOURNAL)) == _JOURNAL
    if not is_journal:
        yield path
        return
    import tempfile  # slow to import, rarely needed

    journal = JournalFile(path)
    with tempfile.TemporaryDirectory(prefix="harness-report-") as folder:
        log_path = Path(folder) / "log"
        with log_path.open("w", encoding="utf-8", newline="\n") as stream:
            write_log(stream, run_of(journal), journal.outcomes())
        yield log_path

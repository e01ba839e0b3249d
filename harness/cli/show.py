"""`harness report show`: prints the content of a session log."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.base.foreign import plain_text
from harness.cli.options import argument, choose_one, csv_option, flag, json_option, repeatable, verb
from harness.cli.sessions import figures_of, session_folder
from harness.cli.streams import drawn_progress, print_lines, print_pieces, standard_output
from harness.model.choices import Grouping
from harness.model.errors import InputError, nearest
from harness.model.numbers import counted

if TYPE_CHECKING:
    from harness.session.figures.progress import Progress
    from harness.session.log.reader import LogFindings


@verb("show")
def command(
    *,
    session: str = argument(),
    as_json: bool = json_option("Print every row as a line of JSON."),
    as_csv: bool = csv_option("Print one row per trial (and device), for a spreadsheet."),
    trials: bool = flag("Print only the table of trials."),
    wer: bool = flag("Print word errors by voice, level, device and so on."),
    groupings: tuple[str, ...] = repeatable(
        f"With --wer: group by {', '.join(Grouping)}, or a column of a list of recordings. Repeat for several.",
        "--by",
        metavar="NAME",
    ),
    checks: bool = flag(
        "Check rows, clips and files for damage and changes; exit with status 3 if there are any.", "--check"
    ),
) -> None:
    """Print the content of a session log: the table of trials, totals, wake results and limits.

    Works while the session is running.

    SESSION: its folder, or its name in ./sessions.
    """
    from harness.session import summary
    from harness.session.figures.progress import normalisation_of
    from harness.session.figures.trials import heard_in
    from harness.session.log.reader import check, sound_changes
    from harness.session.trial_table import trials_csv

    choose_one(json=as_json, csv=as_csv, trials=trials, wer=wer, check=checks)
    if groupings and not wer:
        raise InputError("--by applies only to --wer", remedy="Add --wer")
    folder = session_folder(session)
    if checks:
        with drawn_progress():
            findings = check(folder)
        sys.exit(print_findings(findings))
    if as_json:
        _print_rows(folder)
        return
    progress, wake = figures_of(folder)
    if as_csv:
        print_pieces([trials_csv(progress, wake).decode()])
    elif wer:
        _demand_groupings(progress, groupings)
        heard = heard_in(progress.trials, wake)
        print_lines(summary.wer_tables(heard, normalisation_of(progress), groupings))
    elif trials:
        print_lines(summary.trial_table(progress.trials, wake=wake))
    else:
        print_lines([
            *_head_lines(progress),
            *sound_changes(folder),
            "",
            *summary.end_of_session(progress, wake, folder),
            *summary.next_steps(progress, folder),
        ])  # fmt: skip


def _print_rows(folder: Path) -> None:
    """Prints each row of the log as a line of JSON, in the form of a message of the feed."""
    from harness.base.codec import encode
    from harness.model.feed import Logged
    from harness.session.engine.feed import MESSAGES  # takes a while to import
    from harness.session.log.reader import LogReader

    stream = standard_output()
    with LogReader(folder) as reader:
        for entry in reader.entries():
            stream.write(encode(MESSAGES, Logged(entry)).decode("utf-8") + "\n")


def _demand_groupings(progress: Progress, groupings: Sequence[str]) -> None:
    """Raises InputError for a grouping that is neither built in nor a condition of a trial."""
    axes = {axis for trial in progress.trials for axis, _ in trial.trial.conditions}
    names = [*Grouping, *sorted(axes - set(Grouping))]
    for name in groupings:
        if name not in names:
            raise InputError(f"--by {name}: trials cannot be grouped by this", remedy=nearest(name, names))


def _head_lines(progress: Progress) -> list[str]:
    """What was run, and when."""
    from harness.session.summary import ran_line
    from harness.session.wording import RowWriter

    started = progress.session
    if started is None:
        return ["the session log contains no plan"]
    title = RowWriter().line(started) or ""
    return [f"session {plain_text(started.session_id, 120)}: {title}", ran_line(progress)]


def print_notes_and_seals(findings: LogFindings) -> None:
    """Prints the notes on a session's log, and the seals that hold."""
    for note in findings.notes:
        click.echo(f"note   {plain_text(note, 400)}")
    for name, end in findings.ends:
        click.echo(f"seal   {name}: row {end.rows}, SHA-256 {end.sha256}")


def print_findings(findings: LogFindings) -> int:
    """Prints the result of a check. Returns the exit status: 3 for damage, else 0."""
    for line in findings.damage:
        click.echo(f"DAMAGE {plain_text(line, 400)}")
    print_notes_and_seals(findings)
    if findings.damage:
        verdict = "damaged"
    elif findings.sealed:
        verdict = "whole"
    else:
        verdict = "undamaged, but only partly sealed" if findings.ends else "undamaged, but not sealed"
    clips_text = "" if findings.clips is None else f" and {counted(findings.clips, 'clip')}"
    click.echo(f"{counted(findings.rows, 'row')}{clips_text}: {verdict}")
    return 3 if findings.damage else 0

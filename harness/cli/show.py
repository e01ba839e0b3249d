"""`harness report show`: prints the content of a session log."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from harness.base.foreign import plain_text
from harness.cli.options import argument, csv_option, flag, json_option, repeatable, verb
from harness.cli.sessions import figures_of, session_folder
from harness.cli.streams import drawn_progress, standard_output
from harness.model.choices import Grouping
from harness.model.errors import InputError, nearest

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
    checking: bool = flag("Check rows, clips and files for damage and changes; status 3 if any.", "--check"),
) -> None:
    """Print the content of a session log: the table of trials, totals, wake results and limits.

    Works while the session is running.

    SESSION: its folder, or its name below ./sessions.
    """
    from harness.session import summary
    from harness.session.figures.progress import normalisation_of
    from harness.session.figures.trials import heard_in
    from harness.session.log.reader import LogReader, check, sound_changes
    from harness.session.trial_table import trials_csv

    if as_json + as_csv + trials + wer + checking > 1:
        raise InputError("--json, --csv, --trials, --wer and --check cannot be combined", remedy="Choose one")
    if groupings and not wer:
        raise InputError("--by applies only to --wer", remedy="Write --wer --by …")
    folder = session_folder(session)
    stream = standard_output()
    if checking:
        with drawn_progress():
            findings = check(folder)
        sys.exit(print_findings(findings))
    if as_json:
        from harness.base.codec import encode
        from harness.model.feed import Logged
        from harness.session.engine.feed import MESSAGES  # takes a while to import

        with LogReader(folder) as reader:
            for entry in reader.entries():
                stream.write(encode(MESSAGES, Logged(entry)).decode("utf-8") + "\n")
        return
    progress, wake = figures_of(folder)
    if as_csv:
        stream.write(trials_csv(progress, wake).decode())
    elif wer:
        heard = heard_in(progress.trials, wake)
        columns = {axis for trial in progress.trials for axis, _ in trial.trial.conditions}
        column_names = [*Grouping, *sorted(columns - set(Grouping))]
        for name in groupings:
            if name not in column_names:
                raise InputError(f"--by {name}: trials cannot be grouped by this", remedy=nearest(name, column_names))
        lines = summary.heard_tables(heard, normalisation_of(progress), groupings)
        stream.write("\n".join(lines) + "\n")
    elif trials:
        stream.write("\n".join(summary.trial_table(progress.trials, wake=wake)) + "\n")
    else:
        lines = [
            *_head_lines(progress),
            *sound_changes(folder),
            "",
            *summary.end_of_session(progress, wake, folder),
            *summary.next_steps(progress, folder),
        ]
        stream.write("\n".join(lines) + "\n")
    stream.flush()


def _head_lines(progress: Progress) -> list[str]:
    from harness.session.summary import ran_line
    from harness.session.wording import RowWriter

    started = progress.session
    if started is None:
        return ["the session log contains no plan"]
    title = RowWriter().line(started) or ""
    return [f"session {plain_text(started.session_id, 120)}: {title}", ran_line(progress)]


def print_findings(findings: LogFindings) -> int:
    """Prints what a check found; the exit status."""
    for line in findings.damage:
        click.echo(f"DAMAGE {plain_text(line, 400)}")
    for line in findings.notes:
        click.echo(f"note   {plain_text(line, 400)}")
    for name, end in findings.ends:
        click.echo(f"seal   {name}: row {end.rows}, SHA-256 {end.sha256}")
    verdict = "damaged"
    if not findings.damage:
        missing_seal = ", but only partly sealed" if findings.ends else ", but not sealed"
        verdict = "whole" if findings.sealed else f"whole{missing_seal}"
    counted_kinds = "rows" if findings.clips is None else f"rows and {findings.clips} clips"
    click.echo(f"{findings.rows} {counted_kinds}: {verdict}")
    return 3 if findings.damage else 0

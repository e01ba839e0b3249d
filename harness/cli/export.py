"""`harness report export`: the results of a session in the forms that other programs read."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.base.foreign import plain_text
from harness.base.whole_file import disk_errors, write_atomically
from harness.cli.options import argument, flag, option, verb
from harness.cli.sessions import figures_of, session_folder
from harness.cli.streams import STREAM, drawn_progress, print_file
from harness.model.errors import HarnessError, InputError, LogError, Place
from harness.model.numbers import counted

if TYPE_CHECKING:
    from harness.report.session import WholeSession

BY_DEVICE = BY_SESSION = ""
"""An option without FILE: files that are named after the device, or after the session."""


@verb("export")
def command(
    *,
    session: str = argument(),
    target: str | None = option(
        "Write the wake-evaluation log to FILE (-: standard output; without FILE: SESSION.DEVICE.log for each device).",
        "--wake-log",
        is_flag=False,
        flag_value=BY_DEVICE,
        metavar="[FILE]",
        writes=True,
    ),
    junit_target: str | None = option(
        "Write a JUnit report to FILE (-: standard output; without FILE: SESSION.junit.xml).",
        "--junit",
        is_flag=False,
        flag_value=BY_SESSION,
        metavar="[FILE]",
        writes=True,
    ),
    metrics_target: str | None = option(
        "Write the results in the Prometheus text format to FILE (-: standard output).",
        "--prometheus",
        metavar="FILE",
        writes=True,
    ),
    csv_target: str | None = option(
        "Print the table of trials. FILE: write to this file.", "--csv", suffixes=(".csv",), metavar="[FILE]"
    ),
    parquet_target: str | None = option(
        "Write the table of trials as Parquet, with typed columns.", "--parquet", metavar="FILE", writes=True
    ),
    events_target: str | None = option(
        "Write every row of the log as a line of JSON (-: standard output).", "--events", metavar="FILE", writes=True
    ),
    trn_folder: str | None = option(
        "Write references, transcripts and conditions to FOLDER, for `harness score` and other scorers.",
        "--trn",
        metavar="FOLDER",
    ),
    words: bool = flag("In wake-evaluation logs, report the words of commands (STT lines and WER)."),
    device: str | None = option("Include only this device."),
    reviewed: bool = flag("Use reviews to decide which events are false accepts."),
    json_target: str | None = option(
        "Print the results as one JSON object. FILE: write to this file.",
        "--json",
        suffixes=(".json", ".jsonl"),
        reported=True,
        metavar="[FILE]",
    ),
) -> None:
    """Write the results of a session for other programs. Works while the session runs.

    SESSION: its folder, or its name in ./sessions. Without a format, wake-evaluation logs are written as
    SESSION.DEVICE.log into the current folder.
    """
    from harness.report.session import read_session
    from harness.report.wake_json import as_json as figures_as_json

    other_targets = (junit_target, metrics_target, csv_target, parquet_target, events_target)
    as_json = json_target is not None
    stdout_count = (json_target, target, *other_targets).count(STREAM)
    to_stderr = stdout_count > 0
    if stdout_count > 1:
        raise InputError("only one output can go to standard output", remedy="Choose a file for each other output")
    if parquet_target == STREAM:
        raise InputError("Parquet cannot go to standard output", remedy="Name a file")
    has_other_format = any(other_targets) or junit_target is not None or trn_folder is not None or as_json
    as_logs = target is not None or not has_other_format
    if words and not as_logs:
        raise InputError("--words applies to wake-evaluation logs only", remedy="Add --wake-log")
    if reviewed and not (as_logs or as_json):
        raise InputError("--reviewed applies to wake-evaluation logs and --json only", remedy="Add --wake-log")
    if device is not None and not (as_logs or as_json or trn_folder is not None):
        raise InputError(
            "--device applies to wake-evaluation logs, --json and --trn only",
            remedy="Remove --device, or add --wake-log",
        )
    folder = session_folder(session)
    if junit_target is not None:
        _export_junit(folder, junit_target, to_stderr=to_stderr)
    if metrics_target is not None:
        _export_metrics(folder, metrics_target, to_stderr=to_stderr)
    if csv_target is not None or parquet_target is not None:
        _export_trials(folder, csv_target, parquet_target, to_stderr=to_stderr)
    if events_target is not None:
        _export_events(folder, events_target, to_stderr=to_stderr)
    if trn_folder is not None:
        _export_transcripts(folder, Path(trn_folder), device, to_stderr=to_stderr)
    if not (as_logs or as_json):
        return
    with drawn_progress():
        figures = read_session(folder)
    for name, count in figures.wake.unaccounted().items():
        raise HarnessError(
            f"the wake events of {name} do not add up: its results lack {count}",
            remedy="Please report this bug; nothing was written",
        )
    devices: tuple[str, ...] = ()
    if target is not None or not as_json or figures.devices or device is not None:
        devices = figures.demand_devices(device)  # --json alone may be of a session without wake results
    if as_logs:
        _export_logs(figures, devices, target or "", words=words, reviewed=reviewed, to_stderr=to_stderr)
    if json_target is not None:
        content = json.dumps(figures_as_json(figures, devices, reviewed=reviewed), ensure_ascii=True) + "\n"
        if json_target == STREAM:
            sys.stdout.write(content)
        else:
            write_atomically(Path(json_target), content.encode())


# Below, to_stderr says where remarks go: to standard error if a result goes to standard output.


def _export_logs(
    figures: WholeSession, devices: Sequence[str], target: str, *, words: bool, reviewed: bool, to_stderr: bool
) -> None:
    """Writes the wake-evaluation log of each device, and prints a summary. target: a file, STREAM or BY_DEVICE.

    Raises HarnessError if a log does not add up when it is read again. Raises InputError for one file and several
    devices.
    """
    from harness.offline.wake_log import differences, summary, write
    from harness.offline.wake_log_reading import read
    from harness.report.wake_log_session import wake_log
    from harness.wake.reports.figures_text import pairs_with_trials
    from harness.wake.wake import comparisons

    if target != BY_DEVICE and len(devices) > 1:
        raise InputError(
            f"one file cannot contain the logs of {len(devices)} devices",
            remedy=f"Choose a device with --device: {', '.join(devices)}",
        )
    command_line = shlex.join(["harness", *sys.argv[1:]])
    for name in devices:
        log = wake_log(figures, name, reviewed=reviewed, command_line=command_line, words=words)
        text = write(log)
        if faults := differences(read(text)):
            raise HarnessError(
                f"the log of {name} does not add up: {'; '.join(faults)}",
                remedy="Please report this bug; nothing was written",
            )
        if target == STREAM:
            sys.stdout.write(text)
            continue
        path = Path(target or f"{_file_name(figures.started.session_id)}.{_file_name(name)}.log")
        _write_log(path, text)
        click.echo(f'Writing log to "{plain_text(str(path))}"', err=to_stderr)
        click.echo(summary(log), err=to_stderr)
    if target != STREAM:
        for line in pairs_with_trials(comparisons(figures.wake, every_pair=True)):
            click.echo(line, err=to_stderr)


def _export_junit(folder: Path, target: str, *, to_stderr: bool) -> None:
    """Writes the JUnit report. target: a file, STREAM or BY_SESSION."""
    from harness.report.junit import junit

    _write(target or f"{_file_name(folder.resolve().name)}.junit.xml", junit(folder), "JUnit report", err=to_stderr)


def _export_metrics(folder: Path, target: str, *, to_stderr: bool) -> None:
    from harness.report.prometheus import prometheus
    from harness.report.session import read_session
    from harness.session.log.reader import later_rows, read_scenario

    with drawn_progress():
        metrics = prometheus(read_session(folder, later_rows(folder)), read_scenario(folder))
    _write(target, metrics.encode(), "metrics", err=to_stderr)


def _export_trials(folder: Path, csv_target: str | None, parquet_target: str | None, *, to_stderr: bool) -> None:
    """Writes the table of trials as CSV, as Parquet, or as both."""
    from harness.base.typed_table import demand_parquet, parquet_of
    from harness.session.trial_table import TRIALS_SCHEMA, trial_table, trials_csv

    if parquet_target is not None:
        demand_parquet()
    figures = figures_of(folder)
    table = trial_table(*figures)
    rows = counted(len(table.rows), "row")
    if csv_target is not None:
        _write(csv_target, trials_csv(*figures), rows, err=to_stderr)
    if parquet_target is not None:
        _write(parquet_target, parquet_of(table, TRIALS_SCHEMA), rows, err=to_stderr)


def _export_events(folder: Path, target: str, *, to_stderr: bool) -> None:
    """Writes a line with the schema, then the rows of the log, then those of judgments and other later rows."""
    from harness.base.codec import EVENTS_SCHEMA, RECORDS
    from harness.session.log.reader import LogReader, rows_beside

    with LogReader(folder) as reader:
        entries = [
            *(("log", entry) for entry in reader.entries()),
            *(("judgments", entry) for entry in rows_beside(folder)),
        ]
    head = {"schema": EVENTS_SCHEMA, "session": folder.resolve().name, "rows": len(entries)}
    lines = [json.dumps(head)]
    for file, entry in entries:
        row = {"file": file, "seq": entry.seq, "run": entry.run, "at_s": entry.at_s, "wall_s": entry.wall_s}
        lines.append(json.dumps(row | RECORDS.dump_python(entry.record, mode="json")))
    content = "".join(line + "\n" for line in lines).encode()
    _write(target, content, counted(len(entries), "row"), err=to_stderr)


def _export_transcripts(session: Path, folder: Path, device: str | None, *, to_stderr: bool) -> None:
    """Writes the files of --trn, and prints how to score them. InputError if nothing was transcribed."""
    from harness.report.trn_export import trn_files
    from harness.session.figures.progress import normalisation_of
    from harness.session.figures.trials import heard_in

    progress, wake = figures_of(session)
    heard = [trial for trial in heard_in(progress.trials, wake) if device in (None, trial.device)]
    if not any(trial.first.heard is not None for trial in heard):
        subject = "no device" if device is None else f"no device named {plain_text(device, 80)!r}"
        raise InputError(
            f"{subject} reported what it heard in this session",
            remedy="See the transcripts: harness report show SESSION --wer",
        )
    with disk_errors(f"{folder} cannot be created"):
        folder.mkdir(parents=True, exist_ok=True)
    files = trn_files(heard)
    for name, content in files.items():
        write_atomically(folder / name, content.encode())
    rule = f"words compared as {plain_text(normalisation_of(progress), 80)}"
    click.echo(f'Writing {", ".join(files)} to "{plain_text(str(folder))}", {rule}', err=to_stderr)
    for attempt in ("first", "final"):
        paths = (str(folder / f"{attempt}{suffix}") for suffix in (".ref.trn", ".trn", ".groups.csv"))
        reference, hypothesis, groups = (plain_text(shlex.quote(path)) for path in paths)
        click.echo(f"  harness score -r {reference} -H {hypothesis} --groups {groups}", err=to_stderr)


def _write(target: str, content: bytes, subject: str, *, err: bool) -> None:
    """Prints a result if the target is STREAM. Otherwise writes that file, and reports this. err: on standard error."""
    if target == STREAM:
        print_file(content)
    else:
        write_atomically(Path(target), content)
        click.echo(f'Writing {subject} to "{plain_text(target)}"', err=err)


def _write_log(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise LogError(
            f"the wake-evaluation log cannot be written: {error.strerror or error}",
            place=Place(str(path)),
            remedy="Choose another file: --wake-log FILE",
        ) from error


def _file_name(text: str) -> str:
    """The text as part of a file's name."""
    return "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in text) or "_"

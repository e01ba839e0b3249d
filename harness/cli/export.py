"""`harness export`: what a session found as a wake-evaluation log, as JUnit, or its wake figures as JSON."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import click

from harness.base.foreign import plain_text
from harness.base.whole_file import disk_errors, write_whole
from harness.cli.options import Command, json_option
from harness.cli.sessions import figures_of, session_folder
from harness.model.errors import HarnessError, InputError, LogError, Place
from harness.wake.reports.wake_log import differences, summary, write
from harness.wake.reports.wake_log_reading import read

STDOUT = "-"
BY_DEVICE = BY_SESSION = ""


@click.command("export", cls=Command)
@click.argument("session")
@click.option(
    "--wake-log",
    "target",
    is_flag=False,
    flag_value=BY_DEVICE,
    default=None,
    metavar="[FILE]",
    help="Write the wake-evaluation log to FILE (- is standard output); without FILE to SESSION.DEVICE.log, one each.",
)
@click.option(
    "--junit",
    "junit_target",
    is_flag=False,
    flag_value=BY_SESSION,
    default=None,
    metavar="[FILE]",
    help="Write a JUnit report to FILE (- is standard output); without FILE to SESSION.junit.xml.",
)
@click.option(
    "--trn",
    "trn_folder",
    metavar="FOLDER",
    help="Write what was heard, what was said, and in which condition, into FOLDER, for `harness score` and others.",
)
@click.option("--words", is_flag=True, help="In wake-evaluation logs: commands by their words (STT lines and WER).")
@click.option("--device", help="Only this device.")
@click.option("--reviewed", is_flag=True, help="Let the reviews say which events are false accepts.")
@json_option("as_json", "The figures as one JSON object on standard output.")
def command(
    session: str,
    target: str | None,
    junit_target: str | None,
    trn_folder: str | None,
    words: bool,
    device: str | None,
    reviewed: bool,
    as_json: bool,
) -> None:
    """Write what a session found: a wake-evaluation log, a JUnit report, transcripts. Works while the session runs.

    SESSION: its folder, or its name below ./sessions. Without --wake-log, --junit, --trn and --json, wake-evaluation
    logs are written as SESSION.DEVICE.log into the current folder.
    """
    from harness.report.session import read_session
    from harness.report.wake_json import as_json as figures_as_json
    from harness.report.wake_log_session import wake_log
    from harness.wake.reports.figures_text import pairs_with_trials
    from harness.wake.wake import comparisons

    if [as_json, target == STDOUT, junit_target == STDOUT].count(True) > 1:
        raise InputError("two of the outputs want standard output", remedy="Give one of them a file name")
    logs = target is not None or (junit_target is None and trn_folder is None and not as_json)
    if words and not logs:
        raise InputError("--words is of wake-evaluation logs, and none is asked for", remedy="Add --wake-log")
    if reviewed and not (logs or as_json):
        raise InputError(
            "--reviewed is of wake-evaluation logs and --json, and neither is asked for", remedy="Add --wake-log"
        )
    if device is not None and not (logs or as_json or trn_folder is not None):
        raise InputError("--device does not choose in a JUnit report", remedy="Leave it out, or add --wake-log")
    folder = session_folder(session)
    if junit_target is not None:
        _junit(folder, junit_target, quiet=as_json or target == STDOUT)
    if trn_folder is not None:
        _trn(folder, Path(trn_folder), device, quiet=as_json or STDOUT in (target, junit_target))
    if not (logs or as_json):
        return
    found = read_session(folder)
    devices = () if as_json and target is None and not found.devices and device is None else found.demand(device)
    if logs:
        if target and len(devices) > 1:
            raise InputError(
                f"one file cannot hold the logs of {len(devices)} devices",
                remedy=f"Name one with --device: {', '.join(devices)}",
            )
        command_line = shlex.join(["harness", *sys.argv[1:]])
        for name in devices:
            log = wake_log(found, name, reviewed=reviewed, command_line=command_line, words=words)
            text = write(log)
            if wrong := differences(read(text)):
                raise HarnessError(
                    f"the log of {name} does not add up: {'; '.join(wrong)}",
                    remedy="Please report this; nothing was written",
                )
            if target == STDOUT:
                sys.stdout.write(text)
                continue
            path = Path(target) if target else Path(f"{_file_name(found.started.session_id)}.{_file_name(name)}.log")
            _write(path, text)
            click.echo(f'Writing log to "{plain_text(str(path))}"', err=as_json)
            click.echo(summary(log), err=as_json)
        if target != STDOUT:
            for line in pairs_with_trials(comparisons(found.wake, every_pair=True)):
                click.echo(line, err=as_json)
    if as_json:
        click.echo(json.dumps(figures_as_json(found, devices, reviewed=reviewed), ensure_ascii=True))


def _junit(folder: Path, target: str, *, quiet: bool) -> None:
    from harness.report import junit

    report = junit.junit(folder)
    if target == STDOUT:
        sys.stdout.buffer.write(report)
        sys.stdout.buffer.flush()
        return
    path = Path(target) if target else Path(f"{_file_name(folder.resolve().name)}.junit.xml")
    junit.write(path, report)
    click.echo(f'Writing JUnit report to "{plain_text(str(path))}"', err=quiet)


def _trn(session: Path, folder: Path, device: str | None, *, quiet: bool) -> None:
    from harness.report.heard_trn import trn_files
    from harness.session.figures.progress import normalisation_of
    from harness.session.figures.trials import heard_in

    progress, wake = figures_of(session)
    heard = [one for one in heard_in(progress.trials, wake) if device in (None, one.device)]
    if not any(one.first.heard is not None for one in heard):
        who = "no device" if device is None else f"no device called {plain_text(device, 80)!r}"
        raise InputError(f"{who} has told what it heard in this session", remedy="Look at it: harness show --wer")
    with disk_errors(f"{folder} cannot be made"):
        folder.mkdir(parents=True, exist_ok=True)
    files = trn_files(heard)
    for name, content in files.items():
        write_whole(folder / name, content.encode())
    words = f"words compared as {plain_text(normalisation_of(progress), 80)}"
    click.echo(f'Writing {", ".join(files)} to "{plain_text(str(folder))}", {words}', err=quiet)
    for name in ("first", "final"):
        written = [str(folder / f"{name}{end}") for end in (".ref.trn", ".trn", ".groups.csv")]
        reference, hypothesis, groups = (plain_text(shlex.quote(path)) for path in written)
        click.echo(f"  harness score -r {reference} -h {hypothesis} --groups {groups}", err=quiet)


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise LogError(
            f"the wake-evaluation log cannot be written: {error.strerror or error}",
            place=Place(str(path)),
            remedy="Name another file: --wake-log FILE",
        ) from error


def _file_name(text: str) -> str:
    return "".join(sign if sign.isalnum() or sign in "-_." else "_" for sign in text) or "_"

"""`harness offline`: a session's stimuli through an engine, against what its devices did live."""

from __future__ import annotations

import json
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.base.foreign import plain_text
from harness.cli.options import Command, csv_option, json_option
from harness.cli.sessions import session_folder
from harness.cli.streams import standard_output
from harness.model.errors import InputError
from harness.model.offline import EngineFacts

if TYPE_CHECKING:
    from harness.offline.figures.session_comparison import DeviceComparison
    from harness.offline.session_stimuli import SessionStimuli

ENGINE_FAULT = 3


@click.command("offline", cls=Command)
@click.argument("session", metavar="SESSION")
@click.option("-t", "--task", "task", required=True, metavar="TASK", help="Engine and model, as in harness evaluate.")
@click.option(
    "-s", "--setting", "settings", multiple=True, metavar="NAME=VALUE", help="A setting of the engine; the last wins."
)
@click.option(
    "-f", "--setting-file", "files", multiple=True, type=(str, str), metavar="NAME FILE", help="A setting, from a file."
)
@click.option("--device", metavar="NAME", help="This device alone; else all that listened.")
@click.option(
    "--continuous",
    is_flag=True,
    help="One engine state over all stimuli as they were played, as a device has heard them.",
)
@json_option("as_json", "All figures and every trial as JSON.")
@csv_option("as_csv", "A row a trial and an ambient event, for a spreadsheet.")
@click.option("--quiet", is_flag=True, help="No progress on standard error.")
def command(
    session: str,
    task: str,
    settings: tuple[str, ...],
    files: tuple[tuple[str, str], ...],
    device: str | None,
    continuous: bool,
    as_json: bool,
    as_csv: bool,
    quiet: bool,
) -> None:
    """Put a session's stimuli through an engine, and compare it with what its devices did live, trial by trial.

    SESSION: a folder, or a name below ./sessions, of a run with wake, command or ambient trials. Where the engine runs
    the device's own model, the difference is what the acoustic path cost.

    Exit status: 0 done · 2 wrong usage or input · 3 the engine failed on a stimulus.
    """
    from harness.engines.offline_loading import load_engine, task_of
    from harness.engines.settings import assigned
    from harness.offline.figures.session_comparison import compare_device
    from harness.offline.session_stimuli import hear, read_stimuli

    if as_json and as_csv:
        raise InputError("--json and --csv exclude each other", remedy="Choose one")
    named = task_of(task, map(assigned, settings), files)
    folder = session_folder(session)
    stimuli = read_stimuli(folder)
    devices = _demand(stimuli, device)
    with closing(load_engine(named)) as engine:
        facts = engine.facts
        heard, failed = hear(engine, stimuli, devices, continuous=continuous, progress=_Told(quiet))
    threshold = facts.rule.threshold if facts.rule is not None else None
    found = [
        compare_device(
            stimuli.figures,
            one,
            heard,
            clips={sha256: clip.name for sha256, clip in stimuli.clips.items()},
            notes=stimuli.notes,
            why_not=failed,
            threshold=threshold,
        )
        for one in devices
    ]
    _write(folder, named.name, facts, found, continuous=continuous, as_json=as_json, as_csv=as_csv)
    if failed:
        sys.exit(ENGINE_FAULT)


def _write(
    folder: Path,
    task: str,
    facts: EngineFacts,
    found: list[DeviceComparison],
    *,
    continuous: bool,
    as_json: bool,
    as_csv: bool,
) -> None:
    from harness.offline.reports import session as reports

    if as_json:
        document = reports.document(folder.name, task, facts, found, continuous=continuous)
        text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    elif as_csv:
        text = reports.table(found)
    else:
        blocks = ("\n".join(reports.lines(one, facts, task, continuous=continuous)) for one in found)
        text = "\n\n".join(blocks) + "\n"
    stream = standard_output()
    stream.write(text)
    stream.flush()


def _demand(stimuli: SessionStimuli, device: str | None) -> tuple[str, ...]:
    if device is None:
        return stimuli.devices
    if device not in stimuli.devices:
        raise InputError(
            f"no device is called {plain_text(device, 80)!r} in this session",
            remedy=f"Its devices: {', '.join(plain_text(one, 80) for one in stimuli.devices)}",
        )
    return (device,)


class _Told:
    """Progress on standard error: a line that is written over on a terminal, none elsewhere."""

    def __init__(self, quiet: bool) -> None:
        self._silent = quiet or not sys.stderr.isatty()
        self._began_s = time.monotonic()

    def __call__(self, done: int, of: int) -> None:
        if self._silent:
            return
        took_s = time.monotonic() - self._began_s
        left = f", {took_s / done * (of - done):.0f} s left" if done else ""
        click.echo(f"\r{done} of {of} stimuli{left}   ", err=True, nl=done == of)

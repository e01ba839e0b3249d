"""`harness devices monitor`: live lines on the left, what the mappings made of them on the right."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from harness.cli.devices.connection import STDIN, chosen_source, connection_options, watching
from harness.cli.options import Command, json_option
from harness.cli.streams import demand_reader, standard_output
from harness.model.errors import InputError

if TYPE_CHECKING:
    from harness.devices.device_monitor import DeviceMonitor, MonitorRow
    from harness.devices.device_sources import DeviceSource

LEFT = 60
AT_ONCE_BYTES = 16 * 4096


@click.command("monitor", cls=Command)
@click.argument("profile")
@connection_options
@click.option("--file", type=click.Path(path_type=Path), help="Lines from a file.")
@click.option("--unmapped", is_flag=True, help="Only lines that no mapping took.")
@click.option(
    "--snippets", type=click.Path(path_type=Path), help="File that samples are added to. Default ID.samples.yaml"
)
@click.option("--plain", is_flag=True, help="Lines instead of a screen; by itself in a pipe.")
@json_option("as_json", "A JSON object for each line.")
def monitor(
    profile: str,
    port: str | None,
    baud: int | None,
    address: str | None,
    topics: tuple[str, ...],
    device: str,
    username: str,
    password_env: str,
    file: Path | None,
    unmapped: bool,
    snippets: Path | None,
    plain: bool,
    as_json: bool,
) -> None:
    """Show what PROFILE makes of a device, live; without --port, --address or --file, of standard input.

    PROFILE is read again whenever it is saved.
    """
    watched = watching(profile, device, port, baud)
    source = chosen_source(
        watched.profile, port=port, baud=baud, address=address, topics=topics, device=device, username=username,
        password_env=password_env, file=file,
    )  # fmt: skip
    if source.name == STDIN and sys.stdin.isatty():
        raise InputError("nothing is named to watch", remedy="Give --port, --address or --file, or pipe lines in")
    source.open()
    try:
        if plain or as_json or source.name == STDIN or not sys.stdout.isatty():
            _plain(watched, source, standard_output(), unmapped=unmapped, as_json=as_json)
        else:
            from harness.dashboard.screens.monitor import run_monitor

            run_monitor(watched, source, snippets or Path(f"{watched.profile.id}.samples.yaml"), unmapped=unmapped)
    finally:
        source.close()


def _plain(watched: DeviceMonitor, source: DeviceSource, stream: TextIO, *, unmapped: bool, as_json: bool) -> None:
    """Prints until the source ends, somebody presses Ctrl-C, or nobody reads any more."""
    demand_reader()
    try:
        with contextlib.suppress(KeyboardInterrupt):
            _follow(watched, source, stream, unmapped=unmapped, as_json=as_json)
        _rows(stream, watched.rest(), unmapped=unmapped, as_json=as_json)
        _note(stream, f"{watched.lines} lines: {watched.mapped} mapped, {watched.unmapped} not", as_json=as_json)
        stream.flush()
    except BrokenPipeError:
        # What is left in the buffer would be written, and refused, once more at the end of the program.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _follow(watched: DeviceMonitor, source: DeviceSource, stream: TextIO, *, unmapped: bool, as_json: bool) -> None:
    from harness.devices.device_sources import heard_from

    told_lost, told_trouble, told_noise = 0, "", False
    while True:
        ended = source.ended  # asked before taking: what came before the end is taken below
        taken = heard_from(source, AT_ONCE_BYTES)
        for heard in taken:
            _rows(stream, watched.take(heard), unmapped=unmapped, as_json=as_json)
        if watched.look(time.monotonic()):
            _note(stream, watched.problem or "the profile was read again", as_json=as_json)
        if source.queue.lost_bytes != told_lost:
            told_lost = source.queue.lost_bytes
            _note(stream, f"{told_lost} bytes came too fast and were left out", as_json=as_json)
        if watched.noise and not told_noise:
            told_noise = True
            _note(stream, watched.noise, as_json=as_json)
        if source.trouble != told_trouble:
            told_trouble = source.trouble
            _note(stream, told_trouble or "it is back", as_json=as_json)
        stream.flush()
        idle = not any(heard.data for heard in taken)
        if ended and idle:
            return
        if idle:
            time.sleep(0.05)


def _rows(stream: TextIO, rows: Iterable[MonitorRow], *, unmapped: bool, as_json: bool) -> None:
    for row in rows:
        if not (unmapped and row.mapped):
            stream.write((json.dumps(asdict(row), ensure_ascii=False) if as_json else _line(row)) + "\n")


def _line(row: MonitorRow) -> str:
    clock = time.strftime("%H:%M:%S", time.localtime(row.wall_s)) + f".{int(row.wall_s * 1000) % 1000:03d}"
    made = f"=> {row.made}" if row.mapped else f"-- {row.why or 'not mapped'}"
    times = f"  ({row.times})" if row.times else ""
    return f"{clock}  {row.said:{LEFT}}  {made}{times}"


def _note(stream: TextIO, text: str, *, as_json: bool) -> None:
    from harness.devices.device_monitor import plain_text_lines

    for line in plain_text_lines(text).splitlines():
        stream.write(json.dumps({"note": line}, ensure_ascii=False) + "\n" if as_json else f"*** {line}\n")

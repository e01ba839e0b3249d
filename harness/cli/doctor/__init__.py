"""`harness doctor`: whether this host can measure: ports, rights, sound, broker, disk, clock, software."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.cli.doctor.check import Level
from harness.cli.options import SHIPPED_FILE, Command, json_option
from harness.model.bench import Bench
from harness.wire.foreign import plain_text

if TYPE_CHECKING:
    from harness.cli.doctor.check import Check

__all__ = ["command"]

_EXIT = {Level.OK: 0, Level.WARN: 1, Level.FAIL: 3}
_COLOURS = {Level.OK: "green", Level.WARN: "yellow", Level.FAIL: "red"}
_LONGEST = 1000


@click.command("doctor", cls=Command)
@click.option("--bench", "bench_file", type=SHIPPED_FILE, help="Also check what this bench needs.")
@click.option(
    "--folder", type=click.Path(path_type=Path), default=Path(), help="Where sessions are kept. Default: here."
)
@json_option("as_json", "One JSON object instead of text.")
def command(bench_file: Path | None, folder: Path, as_json: bool) -> None:
    """Check ports, rights, sound, broker, disk and clock of this host; it plays nothing and opens no port.

    Exit status: 0 all is well · 1 something may disturb a measurement · 3 something does not work.
    """
    from harness.library import load_bench

    bench = load_bench(bench_file) if bench_file is not None else None
    found: list[Check] = []
    for check in _checks(bench, folder):
        found.append(check)
        if not as_json:
            _print(check)
    worst = max((check.level for check in found), key=lambda level: _EXIT[level])
    counts = Counter(check.level for check in found)
    if as_json:
        rows = [check.as_json() for check in found]
        click.echo(json.dumps({"ok": worst is Level.OK, "checks": rows}, ensure_ascii=False, indent=2))
    else:
        click.echo(", ".join(f"{counts[level]} {level.value}" for level in Level))
    sys.exit(_EXIT[worst])


def _checks(bench: Bench | None, folder: Path) -> Iterator[Check]:
    from harness.cli.doctor import host, software, wires

    parts: tuple[Callable[[], Iterator[Check]], ...] = (
        lambda: wires.ports(bench),
        lambda: wires.sound(bench),
        lambda: wires.brokers(bench),
        lambda: host.disk(folder),
        host.clock,
        host.processor,
        software.plug_ins,
        software.extras,
        software.voices,
    )
    for part in parts:
        yield from part()


def _print(check: Check) -> None:
    word = click.style(f"{check.level.value:4}", fg=_COLOURS[check.level])
    click.echo(f"{word}  {check.name:16} {plain_text(check.says, _LONGEST)}")
    if check.remedy and check.level is not Level.OK:
        click.echo(f"      {'':16} {plain_text(check.remedy, _LONGEST)}")

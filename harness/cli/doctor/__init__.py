"""`harness check doctor`: can this host measure? Ports, rights, sound, broker, disk, clock, software, voices."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.base.foreign import plain_text
from harness.base.host_check import Level
from harness.cli.options import SHIPPED_FILE, FiniteRange, argument, flag, json_option, option, verb
from harness.model.bench import Bench
from harness.model.errors import InputError

if TYPE_CHECKING:
    from harness.base.host_check import Check
    from harness.model.bench import Equipment

_EXIT = {Level.OK: 0, Level.WARN: 1, Level.FAIL: 3}
_COLOURS = {Level.OK: "green", Level.WARN: "yellow", Level.FAIL: "red"}
_MAX_LINE_CHARS = 1000


@verb("doctor")
def command(
    *,
    scenario_file: Path | None = argument("[SCENARIO]", type=SHIPPED_FILE, required=False),
    bench_file: Path | None = option("Also check what this bench needs.", "--bench", type=SHIPPED_FILE),
    folder: Path = option(
        "Folder in which sessions are kept.", "--sessions", former=("--folder",), default=Path(), show_default="here"
    ),
    send_test: bool = flag("Also send a test message to each `notify` of the bench."),
    device: str | None = option(
        "Find a voice that wakes this device on the bench; check nothing else.", "--find-voice", metavar="DEVICE"
    ),
    voices: int = option("With --find-voice: maximum number of voices to try.", within=(1, 500), default=24),
    minutes: float = option(
        "With --find-voice: stop after this time.", type=FiniteRange(0, 1440, min_open=True), default=15.0
    ),
    as_json: bool = json_option("Print one JSON object instead of text."),
) -> None:
    """Check this host's ports, permissions, sound, broker, disk and clock. Plays nothing and opens no port.

    If the bench has `checks`, it also connects to every device, plays test sounds through each loudspeaker, and listens
    to the room. With a SCENARIO it compares the disk with what its trials need.

    With --find-voice, each installed voice says the wake phrase three times, until one has woken the device every
    time. The last line is the `probe:` to paste into an ambient trial.

    Exit status: 0 no problems · 1 something may disturb a measurement · 3 something does not work. With
    --find-voice: 0 a voice was found · 1 none was · 3 the device or its connection failed.
    """
    if device is not None:
        if bench_file is None:
            raise InputError("--find-voice needs the bench that the device is on", remedy="Add --bench BENCH")
        from harness.cli.doctor.voice import report_voice

        sys.exit(report_voice(bench_file, device, at_most=voices, minutes=minutes, as_json=as_json))
    from harness.scenario.bench import load_bench

    bench = load_bench(bench_file) if bench_file is not None else None
    if scenario_file is not None and (bench is None or bench.checks is None):
        raise InputError(
            "a scenario can only be checked with a bench that has `checks`",
            remedy="Add --bench BENCH" if bench is None else "Add `checks: {}` to the bench",
        )
    if send_test and (bench is None or not bench.notify):
        raise InputError(
            "--send-test needs a bench with `notify`", remedy="Add --bench BENCH, with `notify` in the bench"
        )
    checks: list[Check] = []
    for check in _run_checks(bench, scenario_file, folder, send_test=send_test):
        checks.append(check)
        if not as_json:
            _print_check(check)
    worst = max((check.level for check in checks), key=lambda level: _EXIT[level])
    counts = Counter(check.level for check in checks)
    if as_json:
        rows = [check.as_json() for check in checks]
        click.echo(json.dumps({"ok": worst is Level.OK, "checks": rows}, ensure_ascii=False, indent=2))
    else:
        click.echo(", ".join(f"{counts[level]} {level.value}" for level in Level))
    sys.exit(_EXIT[worst])


def _run_checks(bench: Bench | None, scenario: Path | None, folder: Path, *, send_test: bool) -> Iterator[Check]:
    """Runs all checks, and yields each result at once. The live ones come last, since they use the other parts."""
    from harness.cli.doctor import checks
    from harness.devices.declared import host_checks

    equipment: list[Equipment] = []
    if bench is not None:
        equipment += (part for device in bench.devices for part, _ in device.equipment)
        equipment += bench.actuators
    sections: tuple[Callable[[], Iterator[Check]], ...] = (
        lambda: host_checks([(part.id, part.driver, part.options) for part in equipment]),
        lambda: checks.sound(bench),
        lambda: checks.disk(folder, bench),
        lambda: checks.notify(bench, send=send_test),
        checks.clock,
        checks.processor,
        checks.plug_ins,
        checks.libraries,
        checks.extras,
        checks.voices,
        lambda: checks.live(bench, scenario, folder),
    )
    for run_section in sections:
        yield from run_section()


def _print_check(check: Check) -> None:
    """Prints a result, and what to do unless all is well."""
    level = click.style(f"{check.level.value:4}", fg=_COLOURS[check.level])
    click.echo(f"{level}  {check.name:16} {plain_text(check.says, _MAX_LINE_CHARS)}")
    if check.remedy and check.level is not Level.OK:
        click.echo(f"      {'':16} {plain_text(check.remedy, _MAX_LINE_CHARS)}")

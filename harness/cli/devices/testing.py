"""`harness devices test`: a profile's samples run through its mappings; and a board watched for a while."""

from __future__ import annotations

import re
import sys
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.cli.devices.connection import chosen_source, connection_options
from harness.model.bench import DeviceProfile
from harness.model.errors import InputError
from harness.wire.foreign import plain_text

if TYPE_CHECKING:
    from harness.rig.device_monitor import DeviceMonitor
    from harness.rig.device_sources import DeviceSource

SHOWN_UNMAPPED = 12
LONGEST = 400


@click.command("test")
@click.argument("profile", required=False)
@click.option("--all", "every", is_flag=True, help="All profiles that a bench can name.")
@click.option(
    "--seconds", type=click.FloatRange(0.5, 86400), default=10.0, show_default=True, help="How long to watch."
)
@connection_options
def test(
    profile: str | None,
    every: bool,
    seconds: float,
    port: str | None,
    baud: int | None,
    address: str | None,
    topics: tuple[str, ...],
    device: str,
    username: str,
    password_env: str,
) -> None:
    """Run the samples of PROFILE (an id or a path); with --port or --address, watch a real device as well.

    Exit status: 0 all is right · 1 a sample differs, or nothing that came is mapped · 2 the profile is wrong.
    """
    from harness.library.profile import profile_paths
    from harness.rig.device_monitor import DeviceMonitor

    if (profile is None) is not every:
        raise InputError("name a profile, or give --all", remedy="See which there are: harness devices list")
    if every and (port or address):
        raise InputError("a device has one profile", remedy="Name it in place of --all")
    loaded = [_load(path) for path in profile_paths(Path()).values()] if every else [_named(str(profile))]
    wrong = [one for one in loaded if not _samples(one)]
    if every:
        samples = sum(len(one.samples) for one in loaded)
        click.echo(f"{len(loaded)} profiles, {samples} samples, {len(wrong)} wrong")
    silent = False
    if port is not None or address is not None:
        (one,) = loaded
        source = chosen_source(
            one, port=port, baud=baud, address=address, topics=topics, device=device, username=username,
            password_env=password_env,
        )  # fmt: skip
        silent = not _watched(DeviceMonitor(one.path, Path(), device), source, seconds)
    if wrong or silent:
        sys.exit(1)


def _load(path: Path) -> DeviceProfile:
    from harness.library.profile import load_profile

    return load_profile(path.name, beside=path.parent)


def _named(profile: str) -> DeviceProfile:
    from harness.library.profile import load_profile

    return load_profile(profile, beside=Path())


def _samples(profile: DeviceProfile) -> bool:
    """Prints the result; whether all are right."""
    from harness.library.profile_samples import check_samples

    results = check_samples(profile)
    right = sum(not one.wrong for one in results)
    if not results:
        click.echo(f"{profile.id}: no samples")
        return True
    click.echo(f"{profile.id}: {right} of {len(results)} samples are right")
    for one in results:
        if one.wrong:
            click.echo(plain_text(f"  {profile.path}:{one.sample.line}:", LONGEST))
            said = (
                [one.sample.topic]
                if one.sample.topic
                else [data.decode(errors="backslashreplace").rstrip("\n") for data in one.sample.lines]
            )
            for line in said:
                click.echo("      said " + plain_text(line, LONGEST))
            for line in one.wrong:
                click.echo("    " + plain_text(line, LONGEST))
    return right == len(results)


def _watched(monitor: DeviceMonitor, source: DeviceSource, seconds: float) -> bool:
    """Watches, prints what was mapped and what was not; whether anything was."""
    from harness.rig.device_sources import CHUNK_BYTES, heard_from

    click.echo(f"watching {plain_text(source.name)} for {seconds:g} s")
    made: Counter[str] = Counter()
    unmapped: Counter[str] = Counter()
    source.open()
    try:
        limit_s = time.monotonic() + seconds
        while time.monotonic() < limit_s and not source.ended:
            time.sleep(0.05)
            for heard in heard_from(source, 64 * CHUNK_BYTES):
                for row in monitor.take(heard):
                    if row.mapped:
                        made[row.made] += 1
                    else:
                        unmapped[_shape(row.said)] += 1
    finally:
        source.close()
    click.echo(f"  {monitor.lines} lines: {monitor.mapped} mapped, {monitor.unmapped} not")
    if source.trouble:
        click.echo(f"  {plain_text(source.trouble, LONGEST)}")
    for heading, counts in (("made", made), ("not mapped (numbers as #)", unmapped)):
        if counts:
            click.echo(f"  {heading}:")
        for text, count in counts.most_common(SHOWN_UNMAPPED):
            click.echo(f"    {count:6} × {plain_text(text, LONGEST)}")
    if not monitor.lines:
        click.echo("  nothing came: is the rate right, and does the device write to this port?")
    return monitor.mapped > 0


def _shape(line: str) -> str:
    """The line with its numbers as #, so that lines of one kind are counted together."""
    return re.sub(r"\d+", "#", line)

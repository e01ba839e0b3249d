"""`harness devices test`: a profile's samples run through its mappings; and a board watched for a while."""

from __future__ import annotations

import math
import re
import sys
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.base.foreign import plain_text
from harness.cli.devices.connection import chosen_source, connection_options, watching
from harness.model.bench import DeviceProfile
from harness.model.errors import DeviceError, InputError

if TYPE_CHECKING:
    from harness.devices.device_monitor import DeviceMonitor
    from harness.devices.device_sources import DeviceSource

SHOWN_UNMAPPED = 12
_NOISE = re.compile(r"^(\(\d+ bytes that are no text):.*", re.DOTALL)
TRY_S = 1.0
TRIED_BYTES = 32
SURE = 0.98
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
    from harness.devices.profiles.profile import profile_paths

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
        monitor = watching(one.path, device, port, baud)
        silent = not _watched(monitor, source, seconds)
        if port is not None:
            _tell_held_back(monitor)
            if monitor.noise:
                _try_rates(port, baud or one.console.baud)
    if wrong or silent:
        sys.exit(1)


def _load(path: Path) -> DeviceProfile:
    from harness.devices.profiles.profile import load_profile

    return load_profile(path.name, beside=path.parent)


def _named(profile: str) -> DeviceProfile:
    from harness.devices.profiles.profile import load_profile

    return load_profile(profile, beside=Path())


def _samples(profile: DeviceProfile) -> bool:
    """Prints the result; whether all are right."""
    from harness.devices.profiles.samples import check_samples

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
    from harness.devices.device_sources import CHUNK_BYTES, heard_from

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
    if monitor.noise:
        click.echo(f"  {monitor.noise}")
    elif not monitor.lines:
        click.echo("  nothing came: is the rate right, and does the device write to this port?")
    return monitor.mapped > 0


def _tell_held_back(monitor: DeviceMonitor) -> None:
    """What the adapter holds back, as lines with a board time show it."""
    held_s = monitor.held_back_s
    if held_s is None:
        click.echo("  times: too few lines with a board time to say what the adapter holds back (`hold_back_ms`)")
        return
    most_ms = math.ceil(held_s * 1000)
    click.echo(
        f"  times: lines came up to {most_ms} ms later than the promptest one; on a bench: hold_back_ms: {most_ms}"
    )


def _try_rates(port: str, wrong: int) -> None:
    """Listens at the other common rates, a moment each, and says which one makes text."""
    from harness.devices.device_sources import first_bytes
    from harness.devices.serial.port import RATES, READABLE, text_share

    click.echo("  trying other rates:")
    best = 0.0, 0
    for rate in (one for one in RATES if one != wrong):
        try:
            data = first_bytes(port, rate, TRY_S)
        except DeviceError as error:
            click.echo(f"    {rate:8}: {plain_text(str(error), LONGEST)}")
            continue
        share = text_share(data)
        click.echo(f"    {rate:8}: {len(data)} bytes" + (f", {share:.0%} of them text" if data else ""))
        if len(data) >= TRIED_BYTES:
            best = max(best, (share, rate))
        if best[0] >= SURE:
            break
    if best[0] >= READABLE:
        click.echo(f"  at {best[1]} it is text: --baud {best[1]}, and `baud: {best[1]}` in the profile or on the bench")
    else:
        click.echo("  none of them makes text: see the board's documentation, and its wiring (TX, RX, ground, levels)")


def _shape(line: str) -> str:
    """The line with its numbers as #, so that lines of one kind are counted together."""
    return re.sub(r"\d+", "#", _NOISE.sub(r"\1)", line))

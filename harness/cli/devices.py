"""`harness admin devices`: lists device profiles, runs their samples, and shows what a profile makes of a device."""

from __future__ import annotations

import contextlib
import json
import math
import os
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, TextIO

import click

from harness.base.foreign import plain_text
from harness.base.places import shipped_folder
from harness.base.plain_json import picked
from harness.base.progress import tracked
from harness.cli.discover import discover
from harness.cli.earcons import learn_earcon
from harness.cli.options import argument, flag, json_option, option, repeatable, verb
from harness.cli.orders import move, power
from harness.cli.streams import demand_reader, drawn_progress, standard_output
from harness.model.errors import DeviceError, InputError
from harness.model.frozen import frozen
from harness.model.numbers import counted, exact, percent

if TYPE_CHECKING:
    from harness.devices.device_monitor import DeviceMonitor, MonitorRow
    from harness.devices.device_sources import DeviceSource, HasRate, StreamSource
    from harness.model.bench import DeviceProfile

STDIN = "standard input"
SHOWN_UNMAPPED = 12
TRY_S = 1.0
TRIED_BYTES = 32
SURE = 0.98
MAX_TEXT_CHARS = 400
LEFT = 60
AT_ONCE_BYTES = 16 * 4096
_KINDS = ("wake", "transcript", "intent", "response", "status", "listening")


@click.group("devices")
def command() -> None:
    """Find devices, list and test device profiles, watch how they map output, and try stands and switches."""


command.add_command(discover)
command.add_command(learn_earcon)
command.add_command(move)
command.add_command(power)


@verb("list", parent=command)
def list_profiles(*, as_json: bool = json_option("Print a JSON list instead of a table.")) -> None:
    """List the profiles that a bench can name. The exit status is 2 if one is invalid."""
    from harness.devices.profiles.profile import load_profile, profile_paths

    profiles: list[DeviceProfile] = []
    problems: list[str] = []
    with drawn_progress():
        for path in tracked(profile_paths(Path()).values(), "Reading profiles"):
            try:
                profiles.append(load_profile(path.name, beside=path.parent))
            except InputError as error:
                problems += str(error).splitlines()
    if as_json:
        click.echo(json.dumps([_row(profile) for profile in profiles], ensure_ascii=False, indent=2))
    else:
        _print(profiles)
    for line in problems:
        click.echo(plain_text(line, 2000), err=True)
    if problems:
        sys.exit(2)


def _print(profiles: list[DeviceProfile]) -> None:
    from harness.base.text_table import Column, text_table

    rows = []
    for profile in profiles:
        letters = "".join(kind[0].upper() if kind in profile.reports else "-" for kind in _KINDS)
        phrases = ", ".join(profile.wake_phrases) or "none"
        transport = f"{profile.transport}+sound" if profile.audio else profile.transport
        rows.append((profile.id, transport, letters, plain_text(phrases), plain_text(profile.title)))
    columns = [Column(title, left=True) for title in ("id", "transport", "reports", "wake phrases", "title")]
    for line in text_table(columns, rows, 1000):
        click.echo(line)
    click.echo(
        "\nreports: W wake, T transcript, I intent, R response, S status, L listening."
        " +sound: the device also accepts sound over its connection."
    )


def _row(profile: DeviceProfile) -> dict[str, object]:
    return {
        **picked(profile, "id", "title", "transport"),
        **picked(profile.console, "framing", "baud"),
        "reports": sorted(profile.reports),
        "audio": profile.audio.dialogue.value if profile.audio else None,
        **picked(profile, "wake_phrases", "language"),
        "samples": len(profile.samples),
        **picked(profile, "note", "path"),
    }


@frozen
class DeviceReach:
    """How to reach a device: the keys of its connection; device and topics for messages only."""

    port: str | None = option("Serial port, or a URL such as socket://host:port.", metavar="DEV")
    baud: int | None = option("Baud rate of the port.", within=(300, 12_000_000), show_default="the profile's")
    address: str | None = option(
        "Address of the device or its MQTT broker, or `lab` for the virtual lab's.", metavar="HOST[:PORT]"
    )
    driver: str = option("Driver.", metavar="NAME", default="", show_default="the driver that has these keys")
    keys: tuple[str, ...] = repeatable("Set another key of the connection; repeatable.", "--set", metavar="KEY=VALUE")
    topics: tuple[str, ...] = repeatable(
        "Topic to subscribe to; repeatable.", "--topic", show_default="the profile's topics"
    )
    device: str = option("Value of {device} in topics.", default="", show_default="the profile's id")
    username: str = option("User name for the broker. See --password-env.", default="")
    password_env: str = option("Environment variable that holds the password.", metavar="NAME", default="")

    @property
    def connection_keys(self) -> dict[str, object]:
        """Keys of a connection; {} without one that locates a device. InputError for a --set without a value."""
        options = {name: getattr(self, name) for name in ("port", "baud", "address", "username", "password_env")}
        keys: dict[str, object] = {name: value for name, value in options.items() if value}
        for assignment in self.keys:
            key, equals, value = assignment.partition("=")
            if not equals:
                raise InputError(
                    f"--set {assignment!r} has no value",
                    remedy="Write --set KEY=VALUE, with a key of the bench's connection",
                )
            keys[key] = value
        return {} if keys.keys() <= {"baud", "username", "password_env"} else keys

    def source(self, profile: DeviceProfile) -> DeviceSource | None:
        """The source, not open yet; None when no device is named. InputError for a wrong key or value."""
        from harness.devices.declared import driver_taking, options_of, source_of

        keys = self.connection_keys
        if not self.driver and not keys:
            return None
        driver = self.driver or driver_taking(keys, profile)
        return source_of(driver, options_of(driver, keys), profile, self.device, self.topics)

    def watching(self, profile: str, source: DeviceSource | None) -> DeviceMonitor:
        """A monitor of an open source. If that has a baud rate, it states the same time errors as a session."""
        from harness.devices.device_monitor import DeviceMonitor
        from harness.devices.device_sources import HasRate

        if isinstance(source, HasRate):
            return DeviceMonitor(profile, Path(), self.device, baud=source.baud, hold_back_s=source.hold_back_s)
        return DeviceMonitor(profile, Path(), self.device)


@verb("test", parent=command)
def test(
    *,
    profile: str | None = argument(required=False),
    every: bool = flag("Test all profiles that a bench can name.", "--all"),
    seconds: float = option("How long to watch the device, s.", within=(0.5, 86400), default=10.0),
    reach: DeviceReach,
) -> None:
    """Run the samples of PROFILE (an id or a path). With --port, --address or --driver, also watch a real device.

    Exit status: 0 all samples pass · 1 a sample fails, or the device sends nothing that is mapped · 2 the profile is
    invalid.
    """
    from harness.devices.device_sources import HasRate
    from harness.devices.profiles.profile import load_profile, profile_paths

    if (profile is None) is not every:
        raise InputError(
            "either a profile or --all is required", remedy="List the profiles: harness admin devices list"
        )
    if every and (reach.connection_keys or reach.driver):
        raise InputError("--all cannot watch a device", remedy="Name the profile of the device instead of --all")
    if every:
        with drawn_progress():
            paths = tracked(profile_paths(Path()).values(), "Reading profiles")
            loaded = [load_profile(path.name, beside=path.parent) for path in paths]
    else:
        loaded = [load_profile(str(profile), beside=Path())]
    wrong = [loaded_profile for loaded_profile in loaded if not _samples(loaded_profile)]
    if every:
        samples = sum(len(loaded_profile.samples) for loaded_profile in loaded)
        click.echo(f"{counted(len(loaded), 'profile')}, {counted(samples, 'sample')}, {len(wrong)} failed")
    silent = False
    if (source := reach.source(loaded[0])) is not None:
        click.echo(f"watching {plain_text(source.name)} for {exact(seconds)} s")
        source.open()
        watched = reach.watching(loaded[0].path, source)
        silent = not _watch_source(watched, source, seconds)
        if isinstance(source, HasRate):
            _print_held_back(watched, source.hold_back_s)
            if watched.noise and not watched.has_frames:
                _try_rates(source)
    if wrong or silent:
        sys.exit(1)


def _samples(profile: DeviceProfile) -> bool:
    """Prints the result. Returns True if all samples pass."""
    from harness.devices.profiles.samples import check_samples

    results = check_samples(profile)
    right = sum(not check.wrong for check in results)
    if not results:
        click.echo(f"{profile.id}: no samples")
        return True
    click.echo(f"{profile.id}: {right} of {len(results)} samples pass")
    for check in results:
        if check.wrong:
            click.echo(plain_text(f"  {profile.path}:{check.sample.line}:", MAX_TEXT_CHARS))
            lines = [data.decode(errors="backslashreplace").rstrip("\n") for data in check.sample.lines]
            for line in [check.sample.topic] if check.sample.topic else lines:
                click.echo("     input " + plain_text(line, MAX_TEXT_CHARS))
            for line in check.wrong:
                click.echo("    " + plain_text(line, MAX_TEXT_CHARS))
    return right == len(results)


def _watch_source(watched: DeviceMonitor, source: DeviceSource, seconds: float) -> bool:
    """Watches an open source and closes it. Prints what was mapped and what was not. True if any current event was."""
    from harness.devices.device_monitor import shape_of
    from harness.devices.device_sources import CHUNK_BYTES, HasRate, take_outputs

    mapped: Counter[str] = Counter()
    unmapped: Counter[str] = Counter()
    retained: Counter[str] = Counter()
    try:
        limit_s = time.monotonic() + seconds
        ended = False
        while not ended:
            time.sleep(0.05)
            # Asked before the last reading, which takes what arrived until then.
            ended = source.ended or time.monotonic() >= limit_s
            for output in take_outputs(source, 64 * CHUNK_BYTES):
                for row in watched.feed(output):
                    if row.retained:
                        retained[row.made or shape_of(row.said)] += 1
                    elif row.mapped:
                        mapped[row.made] += 1
                    else:
                        unmapped[shape_of(row.said)] += 1
    finally:
        source.close()
    click.echo(f"  {watched.counts}")
    if source.trouble:
        click.echo(f"  {plain_text(source.trouble, MAX_TEXT_CHARS)}")
    for heading, counts in (
        ("mapped to", mapped),
        ("not mapped (numbers as #)", unmapped),
        ("retained: the broker stored these earlier, and a session does not count them", retained),
    ):
        if counts:
            click.echo(f"  {heading}:")
        for text, count in counts.most_common(SHOWN_UNMAPPED):
            click.echo(f"    {count:6} × {plain_text(text, MAX_TEXT_CHARS)}")
    if watched.noise:
        click.echo(f"  {watched.noise}")
    elif not watched.lines and not source.trouble:
        if isinstance(source, HasRate):
            click.echo("  no data received. Check the baud rate, and that the device writes to this port.")
        else:
            click.echo("  the device sent nothing. Check that it is on, and that it sends data here.")
    return watched.mapped > 0


def _print_held_back(watched: DeviceMonitor, hold_back_s: float) -> None:
    """Prints how much later than the fastest line others arrived, by their device times.

    hold_back_s: the value that a session uses without the key `hold_back_ms`. Late lines show that it is too short.
    Early lines never show that it is too long, since all of them may be late.
    """
    from harness.model.bench import ClockKind, Framing

    profile = watched.profile
    if profile.console.framing is Framing.VH:
        return
    if not profile.console.time and all(rule.clock is ClockKind.NONE for rule in profile.lines):
        click.echo("  times: the profile has no `time`, which is needed to measure `hold_back_ms`")
        return
    if watched.held_back_s is None:
        click.echo("  times: too few lines with a device time to measure `hold_back_ms`. Watch longer: --seconds 60")
        return
    most_ms = math.ceil(watched.held_back_s * 1000)
    if watched.held_back_s > hold_back_s:
        advice = f"On the bench, write hold_back_ms: {most_ms}"
    else:
        advice = f"The default, `hold_back_ms: {exact(hold_back_s * 1000)}`, covers this"
    click.echo(f"  times: lines arrived up to {most_ms} ms later than the fastest one. {advice}")


def _try_rates(source: HasRate) -> None:
    """Listens briefly at each other common rate, and prints which one gives text."""
    from harness.devices.wire.console import MIN_TEXT_SHARE, text_share

    click.echo("  trying other rates:")
    best = 0.0, 0
    for rate, data in source.at_other_rates(TRY_S):
        if isinstance(data, DeviceError):
            click.echo(f"    {rate:8}: {plain_text(str(data), MAX_TEXT_CHARS)}")
            continue
        share = text_share(data)
        click.echo(f"    {rate:8}: {len(data)} bytes" + (f", {percent(share, 0)} of them text" if data else ""))
        if len(data) >= TRIED_BYTES:
            best = max(best, (share, rate))
        if best[0] >= SURE:
            break
    if best[0] >= MIN_TEXT_SHARE:
        click.echo(
            f"  at {best[1]} baud, the data is text. Give --baud {best[1]},"
            f" and write `baud: {best[1]}` in the profile or on the bench."
        )
    else:
        click.echo(
            "  no baud rate gives text. Check the board's documentation and the wiring (TX, RX, ground, levels)."
        )


@verb(
    "monitor",
    parent=command,
    sections={
        "Connection": "port baud address driver keys topics username password_env",
        "Output": "unmapped snippets plain as_json",
    },
)
def monitor(
    *,
    profile: str = argument(),
    reach: DeviceReach,
    file: Path | None = option("Read lines from this file, not from a device.", "--from", former=("--file",)),
    unmapped: bool = flag("Show only unmapped lines."),
    snippets: Path | None = option("File to add samples to.", show_default="ID.samples.yaml next to PROFILE"),
    plain: bool = flag("Print lines instead of a screen (default when there is no terminal)."),
    as_json: bool = json_option("Print one JSON object per line."),
) -> None:
    """Show live how PROFILE maps each line of a device. When you save PROFILE, the monitor reloads it.

    Without --port, --address, --driver or --from, the lines come from standard input.
    """
    from harness.devices.device_sources import file_source
    from harness.devices.profiles.profile import load_profile

    source = reach.source(load_profile(profile, beside=Path()))
    if file is not None and source is not None:
        raise InputError("more than one source is named", remedy="Use only one of --port, --address and --from")
    if source is None:
        source = file_source(file) if file is not None else _standard_input()
    if source.name == STDIN and sys.stdin.isatty():
        raise InputError("no source of lines is named", remedy="Give --port, --address or --from, or pipe lines in")
    source.open()
    try:
        watched = reach.watching(profile, source)
        if plain or as_json or source.name == STDIN or not sys.stdout.isatty():
            _plain(watched, source, standard_output(), unmapped=unmapped, as_json=as_json)
        else:
            from harness.dashboard.screens.monitor import run_monitor

            run_monitor(watched, source, snippets or samples_file(watched.profile), unmapped=unmapped)
    finally:
        source.close()


def samples_file(profile: DeviceProfile) -> Path:
    """Where the monitor collects samples: beside the profile, or in the current folder for a shipped one."""
    from harness.base.findings import SAMPLES

    path = Path(profile.path)
    name = profile.id + SAMPLES
    return Path(name) if path.parent == shipped_folder("devices") else path.with_name(name)


def _standard_input() -> StreamSource:
    """Standard input as an unbuffered source. A thread blocked in a buffered one would keep the program from ending."""
    from harness.devices.device_sources import StreamSource

    def opened() -> BinaryIO:
        return os.fdopen(os.dup(sys.stdin.fileno()), "rb", buffering=0)

    return StreamSource(STDIN, opened)


def _plain(watched: DeviceMonitor, source: DeviceSource, stream: TextIO, *, unmapped: bool, as_json: bool) -> None:
    """Prints until the source ends, the user presses Ctrl-C, or the reader of the output closes it."""
    demand_reader()

    def show(rows: Iterable[MonitorRow]) -> None:
        for row in rows:
            if not (unmapped and row.mapped):
                stream.write((json.dumps(asdict(row), ensure_ascii=False) if as_json else _line(row)) + "\n")

    def note(text: str) -> None:
        from harness.devices.device_monitor import plain_text_lines

        for line in plain_text_lines(text).splitlines():
            stream.write(json.dumps({"note": line}, ensure_ascii=False) + "\n" if as_json else f"*** {line}\n")

    with contextlib.suppress(BrokenPipeError):
        with contextlib.suppress(KeyboardInterrupt):
            for update in _follow_source(watched, source):
                if isinstance(update, str):
                    note(update)
                else:
                    show(update)
                stream.flush()
        show(watched.remaining_rows())
        note(watched.counts)
        stream.flush()


def _follow_source(watched: DeviceMonitor, source: DeviceSource) -> Iterator[list[MonitorRow] | str]:
    """Prints rows and remarks as they arrive, until the source ends."""
    from harness.devices.device_sources import take_outputs

    told_lost, told_trouble, told_noise = 0, "", False
    while True:
        ended = source.ended  # read before taking rows, so that none before the end is missed
        outputs = take_outputs(source, AT_ONCE_BYTES)
        yield [row for output in outputs for row in watched.feed(output)]
        if watched.reload_if_changed(time.monotonic()):
            yield watched.problem or "the profile was reloaded"
        if source.queue.lost_bytes != told_lost:
            told_lost = source.queue.lost_bytes
            yield f"{told_lost} bytes arrived too fast and were dropped"
        if watched.noise and not told_noise:
            told_noise = True
            yield watched.noise
        if source.trouble != told_trouble:
            told_trouble = source.trouble
            yield told_trouble or "the source is back"
        if not any(output.data for output in outputs):
            if ended:
                return
            time.sleep(0.05)


def _line(row: MonitorRow) -> str:
    clock = time.strftime("%H:%M:%S", time.localtime(row.wall_s)) + f".{int(row.wall_s * 1000) % 1000:03d}"
    meaning = f"=> {row.made}" if row.mapped else f"-- {row.why or 'not mapped'}"
    times = f"  ({row.times})" if row.times else ""
    return f"{clock}  {row.said:{LEFT}}  {meaning}{times}"

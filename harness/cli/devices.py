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
from typing import TYPE_CHECKING, TextIO

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
from harness.model.numbers import counted, exact, local_time, percent

if TYPE_CHECKING:
    from harness.devices.device_monitor import DeviceMonitor, MonitorRow
    from harness.devices.device_sources import DeviceSource, HasRate, StreamSource
    from harness.model.bench import DeviceProfile

STDIN = "standard input"
MAX_LISTED = 12
"""Up to this many different meanings, or shapes of unmapped lines, are listed."""
TRY_RATE_S = 1.0
"""How long to listen at each other baud rate."""
MIN_TRIED_BYTES = 32
"""A baud rate at which fewer bytes arrive is not judged."""
CERTAIN_TEXT_SHARE = 0.98
"""If this share of the bytes is text, no further baud rate is tried."""
MAX_TEXT_CHARS = 400
LINE_COLUMNS = 60
MAX_BYTES_PER_READ = 16 * 4096
_KINDS = ("wake", "transcript", "intent", "response", "status", "listening")
"""The reports of a device, in the order of their letters in the table of profiles."""


@click.group("devices")
def command() -> None:
    """Find devices, list and test device profiles, watch how they map output, and try stands and switches."""


command.add_command(discover)
command.add_command(learn_earcon)
command.add_command(move)
command.add_command(power)


@verb("list", parent=command)
def list_profiles(*, as_json: bool = json_option("Print a JSON list instead of a table.")) -> None:
    """List the profiles that a bench can use. The exit status is 2 if a profile is invalid."""
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
        click.echo(json.dumps([_profile_json(profile) for profile in profiles], ensure_ascii=False, indent=2))
    else:
        _print_profiles(profiles)
    for line in problems:
        click.echo(plain_text(line, 2000), err=True)
    if problems:
        sys.exit(2)


def _print_profiles(profiles: list[DeviceProfile]) -> None:
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


def _profile_json(profile: DeviceProfile) -> dict[str, object]:
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
    device: str = option("Value for {device} in topics.", default="", show_default="the profile's id")
    username: str = option("User name for the broker. See --password-env.", default="")
    password_env: str = option("Environment variable that holds the password.", metavar="NAME", default="")

    @property
    def connection_keys(self) -> dict[str, object]:
        """Keys of a connection; {} without one that locates a device. InputError for a --set without a value."""
        names = ("port", "baud", "address", "username", "password_env")
        keys: dict[str, object] = {name: getattr(self, name) for name in names if getattr(self, name)}
        for assignment in self.keys:
            key, equals, value = assignment.partition("=")
            if not equals:
                raise InputError(
                    f"--set {assignment!r} has no value",
                    remedy="Use --set KEY=VALUE, with a key of the bench's connection",
                )
            keys[key] = value
        return {} if keys.keys() <= {"baud", "username", "password_env"} else keys

    def source(self, profile: DeviceProfile) -> DeviceSource | None:
        """The source, not open yet; None when no device is named. Raises InputError for a wrong key or value."""
        from harness.devices.declared import driver_with_keys, options_of, source_of

        keys = self.connection_keys
        if not self.driver and not keys:
            return None
        driver = self.driver or driver_with_keys(keys, profile)
        return source_of(driver, options_of(driver, keys), profile, self.device, self.topics)

    def make_monitor(self, profile: str, source: DeviceSource) -> DeviceMonitor:
        """A monitor of an open source. If that has a baud rate, the monitor states the same time errors as a session.

        profile: an id or a path, from which the monitor reloads it.
        """
        from harness.devices.device_monitor import DeviceMonitor
        from harness.devices.device_sources import HasRate

        if isinstance(source, HasRate):
            return DeviceMonitor(profile, Path(), self.device, baud=source.baud, hold_back_s=source.hold_back_s)
        return DeviceMonitor(profile, Path(), self.device)


@verb("test", parent=command)
def test(
    *,
    profile: str | None = argument(required=False),
    every: bool = flag("Test all profiles that a bench can use.", "--all"),
    seconds: float = option("How long to watch the device, s.", within=(0.5, 86400), default=10.0),
    reach: DeviceReach,
) -> None:
    """Run the samples of PROFILE (an id or a path). With --port, --address or --driver, also watch a real device.

    Exit status: 0 all samples pass · 1 a sample fails, or the device sends nothing that is mapped · 2 the profile is
    invalid.
    """
    from harness.devices.device_sources import HasRate
    from harness.devices.profiles.profile import load_profile, profile_paths

    if every == (profile is not None):  # both or neither
        raise InputError(
            "either a profile or --all is required", remedy="List the profiles: harness admin devices list"
        )
    if every and (reach.connection_keys or reach.driver):
        raise InputError("--all cannot watch a device", remedy="Pass the profile of the device instead of --all")
    if every:
        with drawn_progress():
            paths = tracked(profile_paths(Path()).values(), "Reading profiles")
            loaded = [load_profile(path.name, beside=path.parent) for path in paths]
    else:
        loaded = [load_profile(str(profile), beside=Path())]
    failed_count = sum(not _run_samples(loaded_profile) for loaded_profile in loaded)
    if every:
        sample_count = sum(len(loaded_profile.samples) for loaded_profile in loaded)
        click.echo(f"{counted(len(loaded), 'profile')}, {counted(sample_count, 'sample')}, {failed_count} failed")
    is_mapped = True
    if (source := reach.source(loaded[0])) is not None:
        click.echo(f"watching {plain_text(source.name)} for {exact(seconds)} s")
        source.open()
        device_monitor = reach.make_monitor(loaded[0].path, source)
        is_mapped = _watch_source(device_monitor, source, seconds)
        if isinstance(source, HasRate):
            _print_held_back(device_monitor, source.hold_back_s)
            if device_monitor.noise and not device_monitor.has_frames:
                _try_rates(source)
    if failed_count or not is_mapped:
        sys.exit(1)


def _run_samples(profile: DeviceProfile) -> bool:
    """Runs the samples of a profile, and prints the result. Returns whether all of them pass."""
    from harness.devices.profiles.samples import check_samples

    checks = check_samples(profile)
    if not checks:
        click.echo(f"{profile.id}: no samples")
        return True
    failed_checks = [check for check in checks if check.wrong]
    click.echo(f"{profile.id}: {len(checks) - len(failed_checks)} of {len(checks)} samples pass")
    for check in failed_checks:
        click.echo(plain_text(f"  {profile.path}:{check.sample.line}:", MAX_TEXT_CHARS))
        lines = [data.decode(errors="backslashreplace").rstrip("\n") for data in check.sample.lines]
        for line in [check.sample.topic] if check.sample.topic else lines:
            click.echo("     input " + plain_text(line, MAX_TEXT_CHARS))
        for line in check.wrong:
            click.echo("    " + plain_text(line, MAX_TEXT_CHARS))
    return not failed_checks


def _watch_source(device_monitor: DeviceMonitor, source: DeviceSource, duration_s: float) -> bool:
    """Watches an open source, closes it, and prints what was mapped and what was not.

    Returns whether any event was mapped, apart from those that a broker had retained.
    """
    from harness.devices.device_monitor import shape_of
    from harness.devices.device_sources import CHUNK_BYTES, take_outputs

    mapped: Counter[str] = Counter()
    unmapped: Counter[str] = Counter()
    retained: Counter[str] = Counter()
    try:
        deadline_s = time.monotonic() + duration_s
        ended = False
        while not ended:
            time.sleep(0.05)
            # Asked before the last reading, which takes what arrived until then.
            ended = source.ended or time.monotonic() >= deadline_s
            outputs = take_outputs(source, 64 * CHUNK_BYTES)
            rows = [row for output in outputs for row in device_monitor.feed(output)]
            if ended:
                rows += device_monitor.remaining_rows()
            for row in rows:
                if row.retained:
                    retained[row.made or shape_of(row.said)] += 1
                elif row.mapped:
                    mapped[row.made] += 1
                else:
                    unmapped[shape_of(row.said)] += 1
    finally:
        source.close()
    click.echo(f"  {device_monitor.counts}")
    if source.trouble:
        click.echo(f"  {plain_text(source.trouble, MAX_TEXT_CHARS)}")
    _print_counts("mapped to", mapped)
    _print_counts("not mapped (# stands for a number)", unmapped)
    _print_counts("retained: the broker stored these messages earlier; a session does not count them", retained)
    _print_silence(device_monitor, source)
    return device_monitor.mapped > 0


def _print_counts(heading: str, counts: Counter[str]) -> None:
    if counts:
        click.echo(f"  {heading}:")
    for text, count in counts.most_common(MAX_LISTED):
        click.echo(f"    {count:6} × {plain_text(text, MAX_TEXT_CHARS)}")


def _print_silence(device_monitor: DeviceMonitor, source: DeviceSource) -> None:
    """Prints what to check if the device sent nothing, or nothing that is text."""
    from harness.devices.device_sources import HasRate

    if device_monitor.noise:
        click.echo(f"  {device_monitor.noise}")
    elif not device_monitor.lines and not source.trouble:
        if isinstance(source, HasRate):
            problem, advice = "no data received", "Check the baud rate, and that the device writes to this port."
        else:
            problem, advice = "the device sent nothing", "Check that the device is on and sends data here."
        if device_monitor.bytes and not device_monitor.retained:
            problem = f"{counted(device_monitor.bytes, 'byte')} received, but no line of text"
        click.echo(f"  {problem}. {advice}")


def _print_held_back(device_monitor: DeviceMonitor, hold_back_s: float) -> None:
    """Prints how much later than the fastest line others arrived, by their device times.

    hold_back_s: the value that a session uses without the key `hold_back_ms`. Late lines show that it is too short.
    Early lines never show that it is too long, since all of them may be late.
    """
    from harness.model.bench import ClockKind, Framing

    profile = device_monitor.profile
    if profile.console.framing is Framing.VH:
        return
    if not profile.console.time and all(rule.clock is ClockKind.NONE for rule in profile.lines):
        click.echo("  times: the profile has no `time`, which is needed to measure `hold_back_ms`")
        return
    if device_monitor.held_back_s is None:
        click.echo("  times: too few lines with a device time to measure `hold_back_ms`. Watch longer: --seconds 60")
        return
    max_ms = math.ceil(device_monitor.held_back_s * 1000)
    if device_monitor.held_back_s > hold_back_s:
        advice = f"In the bench, write `hold_back_ms: {max_ms}`"
    else:
        advice = f"The default, `hold_back_ms: {exact(hold_back_s * 1000)}`, covers this"
    click.echo(f"  times: lines arrived up to {max_ms} ms later than the fastest one. {advice}")


def _try_rates(source: HasRate) -> None:
    """Listens briefly at each other common rate, and prints which one gives text."""
    from harness.devices.wire.console import MIN_TEXT_SHARE, text_share

    click.echo("  trying other baud rates:")
    best_share, best_rate = 0.0, 0
    for rate, data in source.at_other_rates(TRY_RATE_S):
        if isinstance(data, DeviceError):
            click.echo(f"    {rate:8}: {plain_text(str(data), MAX_TEXT_CHARS)}")
            continue
        share = text_share(data)
        share_text = f", {percent(share, 0)} of them text" if data else ""
        click.echo(f"    {rate:8}: {len(data)} bytes{share_text}")
        if len(data) >= MIN_TRIED_BYTES:
            best_share, best_rate = max((best_share, best_rate), (share, rate))
        if best_share >= CERTAIN_TEXT_SHARE:
            break
    if best_share >= MIN_TEXT_SHARE:
        click.echo(
            f"  at {best_rate} baud, the data is text. Use --baud {best_rate},"
            f" and write `baud: {best_rate}` in the profile or the bench."
        )
    else:
        click.echo(
            "  no baud rate yields text. Check the board's documentation and the wiring (TX, RX, ground, levels)."
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
        raise InputError(
            "more than one source of lines is specified", remedy="Use only one of --port, --address and --from"
        )
    if source is None:
        source = file_source(file) if file is not None else _standard_input()
    if source.name == STDIN and sys.stdin.isatty():
        raise InputError("no source of lines is specified", remedy="Use --port, --address or --from, or pipe lines in")
    source.open()
    try:
        device_monitor = reach.make_monitor(profile, source)
        if plain or as_json or source.name == STDIN or not sys.stdout.isatty():
            _print_updates(device_monitor, source, standard_output(), unmapped=unmapped, as_json=as_json)
        else:
            from harness.dashboard.screens.monitor import run_monitor

            run_monitor(device_monitor, source, snippets or samples_file(device_monitor.profile), unmapped=unmapped)
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

    return StreamSource(STDIN, lambda: os.fdopen(os.dup(sys.stdin.fileno()), "rb", buffering=0))


def _print_updates(
    device_monitor: DeviceMonitor, source: DeviceSource, stream: TextIO, *, unmapped: bool, as_json: bool
) -> None:
    """Prints until the source ends, the user presses Ctrl-C, or the reader of the output closes it.

    unmapped: leave out mapped rows.
    """
    from harness.devices.device_monitor import plain_text_lines

    demand_reader()

    def print_rows(rows: Iterable[MonitorRow]) -> None:
        for row in rows:
            if not (unmapped and row.mapped):
                line = json.dumps(asdict(row), ensure_ascii=False) if as_json else _row_text(row)
                stream.write(f"{line}\n")

    def print_remark(text: str) -> None:
        for line in plain_text_lines(text).splitlines():
            stream.write(json.dumps({"note": line}, ensure_ascii=False) + "\n" if as_json else f"*** {line}\n")

    with contextlib.suppress(BrokenPipeError):
        with contextlib.suppress(KeyboardInterrupt):
            for update in _follow_source(device_monitor, source):
                if isinstance(update, str):
                    print_remark(update)
                else:
                    print_rows(update)
                stream.flush()
        print_rows(device_monitor.remaining_rows())
        print_remark(device_monitor.counts)
        stream.flush()


def _follow_source(device_monitor: DeviceMonitor, source: DeviceSource) -> Iterator[list[MonitorRow] | str]:
    """Yields rows and remarks as they arrive, until the source ends. A remark is made when its subject changes."""
    from harness.devices.device_sources import take_outputs

    last_lost_bytes, last_trouble, noise_is_stated = 0, "", False
    while True:
        ended = source.ended  # read before taking rows, so that none before the end is missed
        outputs = take_outputs(source, MAX_BYTES_PER_READ)
        yield [row for output in outputs for row in device_monitor.feed(output)]
        if device_monitor.reload_if_changed(time.monotonic()):
            yield device_monitor.problem or "the profile was reloaded"
        if source.queue.lost_bytes != last_lost_bytes:
            last_lost_bytes = source.queue.lost_bytes
            yield f"{last_lost_bytes} bytes arrived too fast and were dropped"
        if device_monitor.noise and not noise_is_stated:
            noise_is_stated = True
            yield device_monitor.noise
        if source.trouble != last_trouble:
            last_trouble = source.trouble
            yield last_trouble or "the source is available again"
        if not any(output.data for output in outputs):
            if ended:
                return
            time.sleep(0.05)


def _row_text(row: MonitorRow) -> str:
    """The time, the device's line, and what the profile makes of it or why it is not mapped."""
    clock = local_time(row.wall_s)
    meaning = f"=> {row.made}" if row.mapped else f"-- {row.why or 'not mapped'}"
    times = f"  ({row.times})" if row.times else ""
    return f"{clock}  {row.said:{LINE_COLUMNS}}  {meaning}{times}"

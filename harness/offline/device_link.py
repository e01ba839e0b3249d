"""Sends sound to a device over its wire, and collects what the device reports."""

from __future__ import annotations

import fcntl
import hashlib
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path

import numpy as np
import numpy.typing as npt

from harness.base.clocks import HostClock
from harness.base.places import runtime_folder
from harness.base.plugins import Group, load
from harness.devices.declared import Abilities, About, DescribesDevice, abilities, driver_with_keys, far_end, options_of
from harness.devices.profiles.profile import load_profile
from harness.model.bench import Bench, DeviceProfile
from harness.model.errors import DeviceError, EngineError, HarnessError, InputError
from harness.model.frozen import frozen
from harness.model.numbers import exact
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

CONNECTION_SETTINGS = ("port", "usb", "baud", "address", "encoding", "pace")
"""Settings that are keys of a connection in a bench (docs/how-to/serial-boards.md, docs/how-to/mqtt-devices.md)."""
PLACE_SETTINGS = {"port", "usb", "address"}
"""Those of them that say where a device is."""
LOCK_WAIT_S = 2.0
"""Longest wait for a device that another evaluation uses. It may be just ending."""
_LOCK_RETRY_S = 0.05


@frozen
class ReachableDevice:
    """A device and its connection.

    - driver: name of the driver's entry point.
    - options: an instance of the driver's `Options`.
    """

    id: str
    driver: str
    options: object
    profile: DeviceProfile

    @property
    def abilities(self) -> Abilities:
        return abilities(self.driver, self.options, self.profile)


def task_devices(model: str, settings: Mapping[str, str]) -> tuple[ReachableDevice, ...]:
    """The devices that a task names, in its order. Opens no connection.

    Raises InputError for a task that names no usable device, and InputProblems for a bench or profile with mistakes.
    Raises PluginError if a driver cannot be loaded.
    """
    assignments = {name: value for name, value in settings.items() if name in CONNECTION_SETTINGS and value}
    file, hash_sign, ids = model.partition("#")
    if hash_sign:
        bench = load_bench(file)
        names = [name.strip() for name in ids.split(",") if name.strip()]
        if not names or len(set(names)) != len(names):
            raise InputError(
                f"{model!r} names no device, or lists one twice",
                remedy=f"Use {file}#ID, where ID is a device of the bench: {_device_ids(bench)}",
            )
        return tuple(_bench_device(bench, name, assignments) for name in names)
    profile = load_profile(model, beside=Path.cwd())
    places = PLACE_SETTINGS & assignments.keys()
    if not places:
        raise InputError(
            f"the profile {profile.id!r} does not say how to reach the device",
            remedy="Set port=/dev/… or usb=…, or address=host:port of a broker; or use a bench: device:bench.yaml#ID",
        )
    driver = driver_with_keys(places, profile)
    return (_check_injects(ReachableDevice(profile.id, driver, options_of(driver, assignments), profile)),)


def _bench_device(bench: Bench, name: str, assignments: Mapping[str, str]) -> ReachableDevice:
    """A device of a bench. assignments: settings of the task that override its connection."""
    try:
        device = bench.device(name)
    except KeyError:
        raise InputError(
            f"{bench.path} has no device {name!r}", remedy=f"Use one of its devices: {_device_ids(bench)}"
        ) from None
    connection = device.connection
    if connection is None:
        raise InputError(f"{name!r} of {bench.path} has no connection", remedy="Evaluate this device live: harness run")
    bench_options = {field.name: getattr(connection.options, field.name) for field in fields(connection.options)}  # type: ignore[arg-type]
    options = options_of(connection.driver, assignments, bench_options) if assignments else connection.options
    return _check_injects(ReachableDevice(name, connection.driver, options, device.profile))


def _check_injects(device: ReachableDevice) -> ReachableDevice:
    """The device itself. Raises InputError if it does not take sound over its connection."""
    if not device.abilities.injects:
        raise InputError(
            f"{device.id!r} does not accept sound over its connection ({device.driver})",
            remedy="If the device supports injection, set `injection` in its connection or `audio` in its profile. "
            "Otherwise, evaluate it through the air: harness run",
        )
    return device


@contextmanager
def lock_free_device(devices: tuple[ReachableDevice, ...]) -> Iterator[ReachableDevice]:
    """A device that no other evaluation uses, locked until the end.

    Raises InputError after LOCK_WAIT_S without one. The lock of a dead process is free, so a worker that replaces
    another finds its device.
    """
    device, lock = _await_lock(devices)
    try:
        yield device
    finally:
        os.close(lock)


def _await_lock(devices: tuple[ReachableDevice, ...]) -> tuple[ReachableDevice, int]:
    """The first device that can be locked, and the descriptor of its lock."""
    deadline_s = time.monotonic() + LOCK_WAIT_S
    while True:
        for device in devices:
            lock = _try_lock(device)
            if lock is not None:
                return device, lock
        if time.monotonic() >= deadline_s:
            count = len(devices)
            names = ", ".join(device.id for device in devices)
            raise InputError(
                f"another process already uses {names}: a device processes one file at a time",
                remedy=f"Use -j {count}, or name more devices: bench.yaml#a,b",
            )
        time.sleep(_LOCK_RETRY_S)


def _try_lock(device: ReachableDevice) -> int | None:
    """The descriptor of the device's lock; None if another process has it. The lock belongs to the far end of the
    connection, so that two names for one device are one."""
    folder = runtime_folder() / "devices"
    folder.mkdir(exist_ok=True)
    name = hashlib.sha256(far_end(device.driver, device.options, device.id).encode()).hexdigest()[:24]
    file = os.open(folder / f"{name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        return None
    return file


def _device_ids(bench: Bench) -> str:
    return ", ".join(device.id for device in bench.devices)


NO_PROGRESS_S = 60.0
"""A device that acknowledges nothing for this long has hung. Drivers notice most hangs sooner."""
BACK_WITHIN_S = 20.0
"""Longest wait for a lost link."""
RESTART_WITHIN_S = 10.0
"""Longest wait for a restart. For this long after it, the device may refuse sound and settings."""
RESTART_RETRY_S = 2.0
"""A restart is sent again after this time without a report."""
_RETRY_S = 0.005
"""Pause before a refused sound or setting is sent again."""
PlayedSound = tuple[StimulusStarted, StimulusEnded, tuple[Wake, ...]]
"""Start and end of a sound, and the wake events in order of arrival."""
_PCM16 = 32768.0


class DeviceLink:
    """Sends sound to one device. Every fault is an EngineError.

    Call it from one thread only; the driver's own threads pass in observations. Positions are seconds on the device's
    audio line: all sound that it has been given, joined end to end.

    rate_hz: sample rate of the sound.
    """

    def __init__(self, reached: ReachableDevice) -> None:
        self.id = reached.id
        self.abilities = reached.abilities
        self._changed = threading.Condition()
        self._observations: list[Observation] = []
        self._plays = 0
        self._loss_reason = ""
        self._settling_until_s = 0.0
        self._scratch = tempfile.TemporaryDirectory(prefix="harness-device-")
        kind = load(Group.DRIVERS, reached.driver)
        surroundings = BenchSurroundings(HostClock(), "system", 0, Path(self._scratch.name), reached.profile)
        self._driver = kind(reached.id, reached.options, surroundings)
        try:
            self._driver.open(self._record)
        except HarnessError:
            self._scratch.cleanup()
            raise
        audio = reached.profile.audio
        self.rate_hz = self.about().rate_hz or (audio.rate_hz if audio is not None else 16_000)

    def about(self) -> About:
        """What the device reported about itself; empty if it does not."""
        return self._driver.about() if isinstance(self._driver, DescribesDevice) else About()

    def close(self) -> None:
        """Closes the driver, and deletes its temporary files. May be called twice."""
        self._driver.close()
        self._scratch.cleanup()

    def await_link(self) -> None:
        """Waits until a lost link is back. Raises DeviceError if it does not come back within BACK_WITHIN_S."""
        is_back = self._wait_for(lambda: not self._loss_reason, BACK_WITHIN_S)
        if not is_back:
            raise DeviceError(
                f"{self.id} is gone: {self._loss_reason}",
                remedy="Reconnect the device (docs/how-to/serial-boards.md), then continue with --resume",
            )

    def restart(self) -> None:
        """Restarts the device with cleared state. Returns when the device has reported its start.

        Raises EngineError if it does not within RESTART_WITHIN_S.
        """
        earlier_count = self._observation_count()
        deadline_s = time.monotonic() + RESTART_WITHIN_S
        while time.monotonic() < deadline_s:
            try:
                self._driver.restart()
            except DeviceError as error:
                raise self._error(f"cannot be restarted: {error.what}", error.remedy) from error
            # The report may be lost on a noisy line.
            if self._wait_for(lambda: any(map(_is_start, self._since(earlier_count))), RESTART_RETRY_S):
                self._settling_until_s = time.monotonic() + RESTART_WITHIN_S
                return
        raise self._error(f"did not restart within {exact(RESTART_WITHIN_S)} s", "Reset the device by hand")

    def set_sensitivity(self, value: int) -> None:
        """Sets the sensitivity, 0–100. A restart clears it. Raises EngineError if the device refuses it."""
        while True:
            try:
                self._driver.set_operating_point(value)
                return
            except DeviceError as error:
                if time.monotonic() >= self._settling_until_s:
                    raise self._error(f"does not accept the sensitivity: {error.what}", error.remedy) from error
                time.sleep(_RETRY_S)

    def play(self, samples: npt.NDArray[np.int16]) -> PlayedSound:
        """Plays sound of shape (n,), n > 0, at rate_hz. Returns when the device has acknowledged the last sample and
        reported all events up to it.

        Raises EngineError if it did not hear all of it, restarted, or dropped events.
        """
        waveform = Waveform((samples / _PCM16).astype(np.float32), self.rate_hz)
        lost_events_before = self.about().lost_events
        while True:
            earlier_count = self._observation_count()
            ended = self._play_once(waveform, earlier_count)
            observations = self._since(earlier_count)
            starts = (observation for observation in observations if isinstance(observation, StimulusStarted))
            started = next(starts, None)
            if ended is not None and ended.complete and started is not None:
                break
            # Just after a restart a device is not ready for a moment. It then has heard nothing of this sound.
            if started is not None or time.monotonic() >= self._settling_until_s:
                raise self._error(*_cut_off_reason(observations, self._loss_reason))
            time.sleep(_RETRY_S)
        self._settling_until_s = 0.0
        if any(map(_is_start, observations)):
            raise self._error("restarted in the middle of a file", "Check the device's power supply and console")
        if self.about().lost_events != lost_events_before:
            raise self._error("has dropped events: its event buffer is full", "Send sound in real time")
        wakes = tuple(observation for observation in observations if isinstance(observation, Wake))
        with self._changed:
            self._observations.clear()
        return started, ended, wakes

    def _play_once(self, waveform: Waveform, earlier_count: int) -> StimulusEnded | None:
        """Plays a sound and returns its end; None if the device refuses it because it has just restarted.
        earlier_count: number of earlier observations."""
        self._plays += 1
        play_id = f"offline.{self._plays}"
        try:
            self._driver.play(play_id, waveform)
        except DeviceError as error:
            if time.monotonic() < self._settling_until_s:
                return None
            raise self._error(f"does not accept sound: {error.what}", error.remedy) from error

        def ended() -> StimulusEnded | None:
            endings = (
                observation for observation in self._since(earlier_count) if isinstance(observation, StimulusEnded)
            )
            return next((ending for ending in endings if ending.play_id == play_id), None)

        progress = self._progress_count(earlier_count)
        while not self._wait_for(lambda: ended() is not None, NO_PROGRESS_S):
            if self._progress_count(earlier_count) == progress:
                self._driver.stop()
                raise self._error(
                    f"hangs: it has acknowledged nothing for {exact(NO_PROGRESS_S)} s", "Reset the device"
                )
            progress = self._progress_count(earlier_count)
        return ended()

    def _progress_count(self, earlier_count: int) -> int:
        """Number of observations, after the first earlier_count, that prove that the device takes sound."""
        signs = ListeningProved | StimulusStarted
        return sum(isinstance(observation, signs) for observation in self._since(earlier_count))

    def _record(self, observation: Observation) -> None:
        """Called on the driver's threads."""
        with self._changed:
            match observation:
                case LinkLost(what=reason):
                    self._loss_reason = reason
                case LinkBack():
                    self._loss_reason = ""
                case _:
                    pass
            self._observations.append(observation)
            self._changed.notify_all()

    def _observation_count(self) -> int:
        with self._changed:
            return len(self._observations)

    def _since(self, earlier_count: int) -> list[Observation]:
        with self._changed:
            return self._observations[earlier_count:]

    def _wait_for(self, holds: Callable[[], bool], limit_s: float) -> bool:
        with self._changed:
            return self._changed.wait_for(holds, limit_s)

    def _error(self, problem: str, remedy: str = "") -> EngineError:
        return EngineError(f"{self.id} {problem}", remedy=remedy)


def _is_start(observation: Observation) -> bool:
    return isinstance(observation, Status) and observation.state is DeviceState.STARTED


def _cut_off_reason(observations: list[Observation], lost: str) -> tuple[str, str]:
    """Why a sound was cut off, from the observations during it, and the remedy. lost: why the link is down now; "" if
    it is up."""
    for observation in observations:
        match observation:
            case LinkLost(what=reason):
                return f"was lost in the middle of a file: {reason}", "Reconnect the device; the file is tried again"
            case Status(state=DeviceState.STARTED):
                return "restarted in the middle of a file", "Check the device's power supply and console"
            case Status(state=DeviceState.GONE, detail=detail):
                return f"is gone: {detail}", "Reconnect the device; the file is tried again"
            case _:
                pass
    if lost:
        return f"is gone: {lost}", "Reconnect the device (docs/how-to/serial-boards.md)"
    lines = [observation.text for observation in observations if isinstance(observation, LogLine)]
    return f"did not hear a whole file: {lines[-1] if lines else 'no reason reported'}", "Check the device's console"

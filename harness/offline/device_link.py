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
from typing import Protocol

import numpy as np
import numpy.typing as npt
from pydantic import TypeAdapter, ValidationError

from harness.base.places import runtime_folder
from harness.base.plugins import Group, load
from harness.devices.mqtt.options import MessageFraming, MqttOptions
from harness.devices.profiles.profile import load_profile
from harness.devices.serial.device import SerialDevice
from harness.devices.serial.options import SerialOptions
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
from harness.session.clock import HostClock
from harness.session.engine.assemble import BenchSurroundings

CONNECTION = ("port", "usb", "baud", "address", "encoding", "pace")
"""Settings that are keys of a connection (docs/boards.md, docs/boards-mqtt.md)."""
WIRES = ("serial", "mqtt")
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
    def address(self) -> str:
        """What no two devices have in common: its port, its adapter, or its broker and name there."""
        named = [str(getattr(self.options, key, "")) for key in ("port", "usb", "address", "topic_device")]
        return "|".join((self.driver, *named, self.id if self.driver == "mqtt" else ""))

    @property
    def framed(self) -> bool:
        """Whether it speaks our own framing: then it can be restarted, and told how sensitive to be."""
        match self.options:
            case SerialOptions():
                return self.options.framed(self.profile)
            case MqttOptions():
                return self.options.framing_of(self.profile) is MessageFraming.VH
            case _:
                return False


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
    driver = "mqtt" if "address" in given else "serial"
    if not {"port", "usb", "address"} & given.keys():
        raise InputError(
            f"the profile {profile.id!r} does not say where the device is",
            remedy="Set port=/dev/… or usb=…, or address=host:port of a broker; or name a bench: device:bench.yaml#ID",
        )
    return (_able(Reached(profile.id, driver, _options(driver, {}, given), profile)),)


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
    options = _options(connection.driver, own, given) if given else connection.options
    return _able(Reached(name, connection.driver, options, device.profile))


def _options(driver: str, own: Mapping[str, object], given: Mapping[str, str]) -> object:
    """Options of a driver with texts in place of some."""
    kind = load(Group.DRIVERS, driver)
    known = {one.name for one in fields(kind.Options)}
    if strange := sorted(given.keys() - known):
        raise InputError(f"a {driver} connection has no {strange[0]!r}", remedy=f"It has: {', '.join(sorted(known))}")
    try:
        return TypeAdapter(kind.Options).validate_python({**own, **given})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise InputError(f"{where} cannot be {given.get(where)!r}: {first['msg']}") from error


def _able(one: Reached) -> Reached:
    """Itself; InputError for a device that takes no sound over a wire."""
    if one.driver not in WIRES:
        raise InputError(
            f"{one.id!r} is reached by the driver {one.driver!r}, over which no file can be given to it",
            remedy=f"Files are put into a device over: {', '.join(WIRES)}. Through the air: harness run",
        )
    by_profile = getattr(one.options, "injection_of", None)
    if by_profile is not None:
        takes = str(by_profile(one.profile)) != "none"
    else:
        dialogue = getattr(one.options, "dialogue", None)
        takes = dialogue is not None and dialogue(one.profile) is not None
    if not takes:
        raise InputError(
            f"{one.id!r} takes no sound over its connection",
            remedy="Set `injection` of its connection, or `audio` of its profile (docs/boards.md), if it does",
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
    name = hashlib.sha256(one.address.encode()).hexdigest()[:24]
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


class WiredDriver(Protocol):
    """What the drivers of wires have in common."""

    id: str

    def open(self, sink: Callable[[Observation], None]) -> None: ...
    def close(self) -> None: ...
    def play(self, play_id: str, waveform: Waveform) -> None: ...
    def stop(self) -> None: ...
    def set_operating_point(self, value: int, /) -> None: ...
    def restart(self) -> None: ...


class DeviceLink:
    """One device. Not thread-safe; the driver's threads tell it what they see. EngineError for what goes wrong.

    rate_hz: at which it is given sound. restarts: it can be asked to begin anew. Positions are seconds on its audio
    line: all that it was given.
    """

    def __init__(self, reached: Reached) -> None:
        self.id = reached.id
        self.restarts = reached.framed
        self._changed = threading.Condition()
        self._seen: list[Observation] = []
        self._plays = 0
        self._lost = ""
        self._settling_until_s = 0.0
        self._scratch = tempfile.TemporaryDirectory(prefix="harness-device-")
        kind = load(Group.DRIVERS, reached.driver)
        surroundings = BenchSurroundings(HostClock(), "system", 0, Path(self._scratch.name), reached.profile)
        self._driver: WiredDriver = kind(reached.id, reached.options, surroundings)
        try:
            self._driver.open(self._take)
        except HarnessError:
            self._scratch.cleanup()
            raise
        self.rate_hz = self._rate(reached.profile)

    @property
    def firmware(self) -> str:
        """As it greeted us; "" of a device that says nothing of it."""
        framed = self._driver.framed if isinstance(self._driver, SerialDevice) else None
        return framed.hello.firmware if framed is not None and framed.hello is not None else ""

    @property
    def phrases(self) -> tuple[str, ...]:
        """Wake phrases, as it greeted us; () of a device that says nothing of them."""
        framed = self._driver.framed if isinstance(self._driver, SerialDevice) else None
        return framed.hello.wake_phrases if framed is not None and framed.hello is not None else ()

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
        missing = self._missing()
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
        if self._missing() != missing:
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

    def _missing(self) -> int:
        framed = self._driver.framed if isinstance(self._driver, SerialDevice) else None
        return framed.order.missing if framed is not None else 0

    def _rate(self, profile: DeviceProfile) -> int:
        told = self._driver.peer.rate_hz if isinstance(self._driver, SerialDevice) else None
        return told or (profile.audio.rate_hz if profile.audio is not None else 16_000)

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

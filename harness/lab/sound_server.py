"""The virtual lab's sound server: a private PulseAudio daemon whose null sinks act as the air of a room.

Runs as root or as an ordinary user, without dbus and without systemd. All of its files are in one folder. Clients must
run at 48 kHz: with another rate, the resampler would change samples.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from importlib import resources
from pathlib import Path
from typing import Any

from harness.base.child_process import ChildProcess, wait_until
from harness.model.errors import InputError, LabError, did_you_mean
from harness.model.frozen import frozen


class Mouth(StrEnum):
    """A source of sound. The value is the name of the sink to play to."""

    NEAR = "spk_h"
    """The harness's loudspeaker close to the device."""
    FAR = "spk_far"
    """The harness's loudspeaker at the other end of the room."""
    DEVICE = "spk_d"
    NOISE = "noise_d"
    """Noise at the device's microphone only, so that it does not hide the response from the harness."""


class Ear(StrEnum):
    """A microphone. The value is the name of the null sink whose monitor is recorded."""

    HARNESS = "ear_h"
    DEVICE = "ear_d"


MONITOR_SINK = "monitor"
"""Headphones at the bench: a sink that no microphone hears."""

REACHED_EARS: dict[Mouth, tuple[Ear, ...]] = {
    Mouth.NEAR: (Ear.HARNESS, Ear.DEVICE),
    Mouth.FAR: (Ear.HARNESS, Ear.DEVICE),
    Mouth.DEVICE: (Ear.HARNESS, Ear.DEVICE),
    Mouth.NOISE: (Ear.DEVICE,),
}
"""The ears that each mouth reaches."""


@frozen
class Room:
    """Path gains in dB (≤ 0) by mouth and ear; 0 dB if a path is not named. Only levels, no reflections."""

    name: str
    gains_db: Mapping[tuple[Mouth, Ear], float]

    def gain_db(self, mouth: Mouth, ear: Ear) -> float:
        """The gain of a path. Raises KeyError if there is no such path."""
        if ear not in REACHED_EARS[mouth]:
            raise KeyError(f"{mouth} does not reach {ear}")
        return self.gains_db.get((mouth, ear), 0.0)


def _rooms() -> Iterator[Room]:
    for name, mouths in tomllib.loads(resources.files(__package__).joinpath("rooms.toml").read_text("utf-8")).items():
        paths = ((mouth, ear, gain_db) for mouth, ears in mouths.items() for ear, gain_db in ears.items())
        yield Room(name, {(Mouth(mouth), Ear(ear)): float(gain_db) for mouth, ear, gain_db in paths})


ROOMS: dict[str, Room] = {room.name: room for room in _rooms()}


def named_room(name: str) -> Room:
    """The room of that name; otherwise InputError with a list of rooms."""
    if name in ROOMS:
        return ROOMS[name]
    suggestion = did_you_mean(name, ROOMS)
    raise InputError(f"the room {name!r} does not exist", remedy=f"{suggestion}Rooms: {', '.join(ROOMS)}")


RATE_HZ = 48000
"""Sample rate at which sound passes bit-exact; PulseAudio resamples every other rate."""
START_LIMIT_S = 10.0
_UNITY = 0x10000
"""PulseAudio's volume of 0 dB. Its scale is cubic in the amplitude."""
_SOCKET_PATH_BYTES = 107
"""Longest path of a Unix socket in bytes: 108 with the zero at its end (unix(7))."""
_PACKAGES = "Install them: apt-get install pulseaudio pulseaudio-utils libasound2-plugins"

PCMS: dict[str, tuple[str, str]] = {
    "harness_speaker": ("playback", Mouth.NEAR.value),
    "harness_speaker_far": ("playback", Mouth.FAR.value),
    "harness_monitor": ("playback", MONITOR_SINK),
    "harness_mic": ("capture", f"{Ear.HARNESS.value}.monitor"),
    "dut_speaker": ("playback", Mouth.DEVICE.value),
    "dut_mic": ("capture", f"{Ear.DEVICE.value}.monitor"),
    "lab_noise": ("playback", Mouth.NOISE.value),
}
"""Name of a sound device as PortAudio shows it → direction, sink or source."""


class LabSoundServer:
    """One daemon, whose files are in `folder` (created, mode 0700). All methods raise LabError with a remedy."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self.pid: int | None = None
        self._child: ChildProcess | None = None
        self._readers: list[ChildProcess] = []
        room = ROOMS["anechoic"]
        self._gains_db: dict[tuple[Mouth, Ear], float | None] = {
            (mouth, ear): room.gain_db(mouth, ear) for mouth, ears in REACHED_EARS.items() for ear in ears
        }

    def environment(self) -> dict[str, str]:
        """Environment variables with which PortAudio and Pulse clients find only this server."""
        folder = self.folder
        return {
            "ALSA_CONFIG_PATH": str(folder / "asound.conf"),
            "PULSE_SERVER": f"unix:{folder / 'native'}",
            "PULSE_RUNTIME_PATH": str(folder / "run"),
            "PULSE_STATE_PATH": str(folder / "state"),
            "PULSE_CLIENTCONFIG": str(folder / "client.conf"),
            "PULSE_COOKIE": str(folder / "cookie"),
            "JACK_NO_START_SERVER": "1",
        }

    def start(self) -> dict[str, str]:
        """Starts the daemon and returns `environment()` once it answers. A daemon of this folder is left running."""
        if self.running():
            return self.environment()
        self._end_children()
        # Ends the daemon of a lost lab. It would run without a user, and could be mistaken for this one.
        for process in Path("/proc").iterdir():
            if process.name.isdigit() and self._is_ours(int(process.name)):
                self.adopt(int(process.name))
                self.stop()
        for program in ("pulseaudio", "pactl", "parec"):
            if shutil.which(program) is None:
                raise LabError(f"the program {program} is not installed", remedy=_PACKAGES)
        self._write_files()
        self._child = ChildProcess(
            ["pulseaudio", "-n", "-F", str(self.folder / "lab.pa")],
            stdin=subprocess.DEVNULL,
            stdout=None,
            stderr=self.folder / "sound_server.log",
            environment=self._own_environment(),
        )
        self.pid = self._child.pid
        self._await(self._answers, "it does not answer")
        # Starts one permanent reader per monitor. Without it, a recorder's first sample comes 1.5 s late. The latency
        # of the reader decides how much an ear renders at once. With blocks of 10 ms, a sound takes 30 ms from call
        # to delivery instead of 70, for 1 % of a core.
        for sink in (*Ear, MONITOR_SINK):
            reader = [*_READER, f"--device={sink}.monitor"]
            null = subprocess.DEVNULL
            self._readers.append(
                ChildProcess(reader, stdin=null, stdout=null, stderr=null, environment=self._own_environment())
            )
        self._await(lambda: len(self._list("source-outputs")) >= len(self._readers), "its readers did not start")
        for (mouth, ear), gain_db in self._gains_db.items():
            self._apply_gain(mouth, ear, gain_db)
        # Only now may others connect: a client that connects before the readers would get other latencies.
        self._pactl("load-module", _PROTOCOL, *_WITHOUT_COOKIE, f"socket={self.folder / 'native'}")
        return self.environment()

    def adopt(self, pid: int) -> None:
        """Takes over a daemon that another process started on this folder, to configure and stop it."""
        if not self._is_ours(pid):
            raise LabError(
                f"process {pid} is not the sound server of {self.folder}", remedy="Start the lab: harness admin lab up"
            )
        self.pid = pid
        self._child = None

    def running(self) -> bool:
        """Whether the daemon's process exists. It may be frozen."""
        if self._child is not None:
            return self._child.alive
        return self.pid is not None and self._is_ours(self.pid)

    def stop(self, limit_s: float = 2.0) -> None:
        """Ends the daemon by its pid, by force after the limit. Does nothing if none is running."""
        if self.running() and self.pid is not None:
            for signal_number, patience_s in ((signal.SIGTERM, limit_s), (signal.SIGKILL, 2.0)):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self.pid, signal_number)
                    # A frozen daemon receives the first signal only when it runs again.
                    os.kill(self.pid, signal.SIGCONT)
                if wait_until(lambda: not self.running(), patience_s):
                    break
            else:
                raise LabError(f"the sound server (process {self.pid}) does not stop")
        self._end_children()
        self.pid = None

    def use_room(self, room: Room) -> None:
        """Sets the gain of every path. The gains are kept when this object starts the server again."""
        for mouth, ears in REACHED_EARS.items():
            for ear in ears:
                self.set_path_gain(mouth, ear, room.gain_db(mouth, ear))

    def set_path_gain(self, mouth: Mouth | str, ear: Ear | str, gain_db: float | None) -> None:
        """Sets the level of a mouth at an ear, in dB ≤ 0; None mutes the path. Takes effect within about 50 ms."""
        if gain_db is not None and not gain_db <= 0:
            raise LabError(f"a path's gain must be at most 0 dB, not {gain_db}")
        self._apply_gain(Mouth(mouth), Ear(ear), gain_db)
        self._gains_db[Mouth(mouth), Ear(ear)] = gain_db

    def _apply_gain(self, mouth: Mouth, ear: Ear, gain_db: float | None) -> None:
        """Sets volume and mute of a path in the daemon."""
        sink_input = str(self._sink_input_index(mouth, ear))
        if gain_db is not None:
            volume = round(_UNITY * 10 ** (gain_db / 60))
            self._pactl("set-sink-input-volume", sink_input, str(volume))
        self._pactl("set-sink-input-mute", sink_input, "1" if gain_db is None else "0")

    def _sink_input_index(self, mouth: Mouth, ear: Ear) -> int:
        """Index of the sink input through which a mouth's combine sink plays into an ear."""
        sinks = {sink["index"]: sink for sink in self._list("sinks")}
        owner = next((str(sink["owner_module"]) for sink in sinks.values() if sink["name"] == mouth.value), None)
        for sink_input in self._list("sink-inputs"):
            ear_sink = sinks.get(sink_input["sink"], {})
            if str(sink_input["owner_module"]) == owner and ear_sink.get("name") == ear.value:
                return int(sink_input["index"])
        raise LabError(
            f"the sound server has no path from {mouth} to {ear}",
            remedy="Restart the lab: harness admin lab down, then harness admin lab up",
        )

    def _list(self, kind: str) -> list[dict[str, Any]]:
        """The daemon's objects of a kind, as `pactl list` has them."""
        objects: list[dict[str, Any]] = json.loads(self._pactl("-f", "json", "list", kind))
        return objects

    def _pactl(self, *arguments: str, limit_s: float = 3.0) -> str:
        """Runs pactl, and returns its output. Raises LabError if the daemon does not answer in time, or refuses."""
        try:
            result = subprocess.run(
                ["pactl", *arguments],
                env=self._own_environment(),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=limit_s,
                check=True,
                text=True,
            )
        except subprocess.TimeoutExpired as error:
            raise LabError(
                "the sound server does not answer",
                remedy="Restart the lab: harness admin lab down, then harness admin lab up",
            ) from error
        except subprocess.CalledProcessError as error:
            raise LabError(f"the sound server rejected {' '.join(arguments)}: {error.stderr.strip()}") from error
        return result.stdout

    def _own_environment(self) -> dict[str, str]:
        # LC_ALL: numbers with a point, and messages in English. HOME is not needed and may not be writable.
        return {
            **os.environ,
            **self.environment(),
            "PULSE_SERVER": f"unix:{self.folder / 'own'}",
            "PULSE_CONFIG": str(self.folder / "daemon.conf"),
            "DBUS_SESSION_BUS_ADDRESS": f"unix:path={self.folder / 'no-dbus'}",  # does not exist
            "LC_ALL": "C",
        }

    def _await(self, condition: Callable[[], bool], problem: str) -> None:
        """Waits until a condition holds. Otherwise stops the daemon, and raises LabError with its last output.

        problem: what is wrong, if there is no output.
        """
        deadline_s = time.monotonic() + START_LIMIT_S
        while time.monotonic() < deadline_s and self.running():
            with contextlib.suppress(LabError):
                if condition():
                    return
            time.sleep(0.01)
        last_output = self._child.last_error_line() if self._child is not None else ""
        self.stop()
        raise LabError(
            f"the sound server did not start: {last_output or problem}",
            remedy=f"Read {self.folder / 'sound_server.log'}",
        )

    def _answers(self) -> bool:
        # The last line of lab.pa creates the monitor: everything before it is then ready.
        exists = (self.folder / "own").exists()
        return exists and MONITOR_SINK in {sink["name"] for sink in self._list("sinks")}

    def _end_children(self) -> None:
        # Readers end when the daemon does, also in a lab that another process started.
        for child in (*self._readers, self._child):
            if child is not None:
                child.end()
        self._readers.clear()
        self._child = None

    def _is_ours(self, pid: int) -> bool:
        """Whether that process is a daemon that was started on this folder, and not a zombie."""
        try:
            arguments = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            return False
        # A zombie has no command line.
        return arguments[0].endswith(b"pulseaudio") and os.fsencode(self.folder / "lab.pa") in arguments

    def _write_files(self) -> None:
        """Writes all configuration files, and removes what an earlier daemon left."""
        if len(os.fsencode(self.folder / "native")) > _SOCKET_PATH_BYTES:
            raise LabError(
                f"the path {self.folder} is too long for a socket", remedy="Set HARNESS_LAB to a shorter path"
            )
        if len(str(self.folder).split()) > 1:  # PulseAudio separates addresses of servers by blanks
            raise LabError(
                f"the path {self.folder} contains a space", remedy="Set HARNESS_LAB to a path without spaces"
            )
        for folder in (self.folder, self.folder / "run", self.folder / "state"):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder.chmod(0o700)
        for name in ("native", "own", "sound_server.log"):
            (self.folder / name).unlink(missing_ok=True)
        for name, lines in (
            ("lab.pa", self._script()),
            ("daemon.conf", _DAEMON),
            ("client.conf", ("autospawn = no", "enable-shm = no", f"cookie-file = {self.folder / 'cookie'}")),
            ("asound.conf", _alsa()),
        ):
            (self.folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")

    def _script(self) -> tuple[str, ...]:
        """The lines of lab.pa, which make the sinks of the room."""
        lines = [" ".join(("load-module", _PROTOCOL, *_WITHOUT_COOKIE, f"socket={self.folder / 'own'}"))]
        sound = f"rate={RATE_HZ} channels=1 channel_map=mono"
        # norewinds: without it, streams stall for 1.6 s when they start.
        lines += [f"load-module module-null-sink sink_name={ear} {sound} format=s16le norewinds=1" for ear in Ear]
        for mouth, ears in REACHED_EARS.items():
            slaves = ",".join(ears)
            combine = f"load-module module-combine-sink sink_name={mouth} slaves={slaves} {sound}"
            lines.append(f"{combine} adjust_time=0 resample_method=trivial")
        lines.append(f"load-module module-null-sink sink_name={MONITOR_SINK} {sound} format=s16le norewinds=1")
        return tuple(lines)


_PROTOCOL = "module-native-protocol-unix"
_WITHOUT_COOKIE = ("auth-anonymous=1", "auth-cookie-enabled=0")
"""Options that allow clients without a cookie: only the owner may enter the folder of the socket."""

_READER = ("parec", f"--rate={RATE_HZ}", "--channels=1", "--format=s16le", "--latency-msec=10")

_DAEMON = (
    "daemonize = no",
    "use-pid-file = no",
    "exit-idle-time = -1",
    "flat-volumes = no",
    "enable-shm = no",
    "enable-memfd = no",
    "rlimit-rttime = -1",
    "default-sample-format = s16le",
    f"default-sample-rate = {RATE_HZ}",
    f"alternate-sample-rate = {RATE_HZ}",
    "default-sample-channels = 1",
    "default-channel-map = mono",
)


def _alsa() -> tuple[str, ...]:
    """The lines of ALSA's configuration: one named PCM for each device, in one direction only.

    PortAudio then lists speakers without inputs.
    """
    lines = []
    for name, (direction, device) in PCMS.items():
        lines.append(f"pcm.{name} {{ type asym {direction}.pcm {{ type pulse device {device} }} }}")
    # PortAudio aborts without a default.
    lines.append('pcm.!default { type asym playback.pcm "harness_speaker" capture.pcm "harness_mic" }')
    return tuple(lines)

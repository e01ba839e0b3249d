"""The virtual lab as a whole: starts and stops sound server, broker and reference assistant together."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from harness.base.child_process import (
    KnownProcess,
    last_line,
    process_of_pid,
    python_command,
    read_process,
    save_process,
    start_detached,
)
from harness.base.places import lab_folder
from harness.base.whole_file import write_atomically
from harness.devices.mqtt.broker import HOST
from harness.lab.assistant.settings import AssistantSettings, read_settings
from harness.lab.sound_server import ROOMS, LabSoundServer, Room, named_room
from harness.model.choices import ASSISTANT as ASSISTANT
from harness.model.choices import BROKER as BROKER
from harness.model.choices import LAB_PARTS as PARTS
from harness.model.choices import SOUND as SOUND
from harness.model.errors import InputError, LabError
from harness.model.frozen import frozen
from harness.model.numbers import exact, seconds

DEFAULT_ROOM = "living_room"
_READY_LIMIT_S = 60.0
_STALE_S = 5.0  # Five heartbeats of the assistant.
_POLL_S = 0.05


@frozen
class PartStatus:
    """One line of `harness admin lab status`.

    - pid, uptime_s: None for a part that is not running.
    - health: its state in words.
    - healthy: whether that is as it should be.
    """

    name: str
    pid: int | None
    uptime_s: float | None
    health: str
    healthy: bool


class Lab:
    """The lab whose files are in one folder. All methods raise LabError or InputError with a remedy."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder if folder is not None else lab_folder()
        self.started: tuple[str, ...] = ()
        """The parts that the latest `up` started."""
        self._server: LabSoundServer | None = None

    def log_path(self, part: str) -> Path:
        """The log file of that part."""
        return self.folder / f"{_stem(part)}.log"

    def up(self, settings_path: Path | None = None, room: str | None = None) -> bool:
        """Starts the parts that are not running. Returns False if all were. If it fails, nothing is left behind.

        If a part has died, only that part starts again, with the same room, port and settings. A session that uses
        the lab continues. Raises InputError if the lab runs with other settings or another room than requested.
        """
        lab_room = named_room(room or DEFAULT_ROOM)
        settings = AssistantSettings() if settings_path is None else read_settings(settings_path)
        with self._lock():
            self.started = ()
            state = self._state()
            self._await_killed_parts()
            missing = tuple(part for part in PARTS if not self._is_alive(part))
            if state is not None and missing != PARTS:
                self._refuse_other_settings(state, settings_path, room)
                if not missing:
                    return False
                saved_path = state.get("settings")
                settings_path = Path(str(saved_path)) if saved_path else None
                lab_room = named_room(str(state["room"]))
                if settings_path is not None and ASSISTANT in missing:
                    settings = read_settings(settings_path)
            else:
                self._end_all()
                state, missing = {}, PARTS
            try:
                self._start_parts(missing, state, settings, settings_path, lab_room)
                self.started = missing
            except BaseException:
                # Also for Ctrl-C: a lab runs as a whole or not at all.
                self._end_all()
                raise
        return True

    def down(self) -> tuple[str, ...]:
        """Ends the parts of this lab. Returns those that were running."""
        if not self.folder.exists():
            return ()
        with self._lock():
            return self._end_all()

    def status(self) -> tuple[PartStatus, ...]:
        """The current health of every part."""
        return tuple(self._status(part) for part in PARTS)

    def fingerprint(self) -> bytes:
        """A value that differs between starts of the lab; b"" while it is not running."""
        try:
            return self._state_path.read_bytes()
        except FileNotFoundError:
            return b""

    @property
    def _state_path(self) -> Path:
        return self.folder / "lab.json"

    @contextlib.contextmanager
    def _lock(self) -> Iterator[None]:
        """Makes the folder, and locks it for a block. Raises LabError if another command has locked it."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if self.folder.stat().st_uid != os.getuid():
            raise LabError(f"{self.folder} belongs to another user", remedy="Set HARNESS_LAB to a folder that you own")
        with (self.folder / "lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise LabError(
                    "another command is starting or stopping this lab", remedy="Wait until that command has finished"
                ) from error
            yield

    def _start_parts(
        self,
        parts: Sequence[str],
        state: Mapping[str, object],
        settings: AssistantSettings,
        settings_path: Path | None,
        room: Room,
    ) -> None:
        """Starts parts. state: content of the state file of a lab that lost these parts; {} to start a whole lab."""
        environment = LabSoundServer(self.folder).environment()
        if SOUND in parts:
            self._start_sound(room)
        port = state.get("mqtt_port", 0)
        if BROKER in parts or not isinstance(port, int):
            port = self._start_broker(port if isinstance(port, int) else 0)
        device, settings_sha256 = state.get("device", settings.device), state.get("settings_sha256")
        if ASSISTANT in parts:
            self._start_assistant(port, settings_path, environment)
            device = settings.device
            settings_sha256 = None if settings_path is None else _sha256(settings_path)
        lab_state = {
            "environment": environment,
            "mqtt_host": HOST,
            "mqtt_port": port,
            "pids": {part: process.pid for part in PARTS if (process := self._started_process(part)) is not None},
            "room": room.name,
            "device": device,
            "settings": None if settings_path is None else str(settings_path.resolve()),
            "settings_sha256": settings_sha256,
        }
        write_atomically(self._state_path, json.dumps(lab_state, indent=1).encode())

    def _start_assistant(self, port: int, settings_path: Path | None, environment: Mapping[str, str]) -> None:
        """Starts the assistant, and waits until it listens. environment: variables that name the sound server."""
        self._assistant_path.unlink(missing_ok=True)
        arguments = python_command(
            "harness.lab.assistant", "--state", str(self._assistant_path), "--mqtt", f"{HOST}:{port}"
        )
        if settings_path is not None:
            arguments += ["--settings", str(settings_path.resolve())]
        self._start(ASSISTANT, arguments, {**os.environ, **environment})
        self._await(ASSISTANT, lambda: self._assistant_status().get("state") == "idle", _READY_LIMIT_S)

    def _start_sound(self, room: Room) -> None:
        """Starts the sound server, and sets the gains of the room."""
        if self._server is not None:
            self._server.stop()  # it died; this waits for its readers to end
        server = self._server = LabSoundServer(self.folder)
        try:
            server.start()
            if server.pid is None:
                raise LabError("the sound server did not report its process number")
            self._save_pid(SOUND, server.pid)
        except BaseException:
            # There is no pid file yet, so another command would not find the process.
            server.stop()
            raise
        server.use_room(room)

    def _state(self) -> Mapping[str, object] | None:
        """Content of the state file; None if it is missing or damaged."""
        try:
            state = json.loads(self._state_path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return state if isinstance(state, dict) and state.get("room") in ROOMS else None

    @staticmethod
    def _refuse_other_settings(state: Mapping[str, object], settings_path: Path | None, room: str | None) -> None:
        """Raises InputError if settings or a room named by the user differ from those of the running lab.

        Another lab would spoil a measurement.
        """
        remedy = "Stop the lab first: harness admin lab down. Or run a second lab: set HARNESS_LAB to another folder"
        if settings_path is not None and _sha256(settings_path) != state.get("settings_sha256"):
            current_settings = state.get("settings") or "the default settings"
            if current_settings == str(settings_path.resolve()):
                current_settings = "the earlier content of this file"
            raise InputError(
                f"{settings_path}: the virtual lab is already running with {current_settings}", remedy=remedy
            )
        if room is not None and room != state.get("room"):
            raise InputError(f"the virtual lab is already running with room {state.get('room')!r}", remedy=remedy)

    def _start_broker(self, port: int) -> int:
        """Starts the broker. port: 0 takes a free one. Returns the port."""
        port_file = self.folder / "broker.port"
        port_file.unlink(missing_ok=True)
        self._start(
            BROKER,
            python_command("harness.devices.mqtt.broker", "--outlive", str(port_file), f"{HOST}:{port}"),
            os.environ,
        )
        self._await(BROKER, port_file.exists, 15.0)
        return int(port_file.read_text(encoding="ascii"))

    def _start(self, part: str, arguments: Sequence[str], environment: Mapping[str, str]) -> None:
        self.log_path(part).unlink(missing_ok=True)
        self._save_pid(part, start_detached(arguments, environment, self.log_path(part)))

    def _await(self, part: str, ready: Callable[[], bool], limit_s: float) -> None:
        """Waits until a part is ready. Raises LabError if it exits, or is not ready in time."""
        deadline_s = time.monotonic() + limit_s
        while not ready():
            if not self._is_alive(part) or time.monotonic() > deadline_s:
                detail = self._last_line(part)
                problem = (
                    "exited immediately" if not self._is_alive(part) else f"was not ready after {exact(limit_s)} s"
                )
                raise LabError(f"the {part} {problem}: {detail}", remedy=f"Read {self.log_path(part)}")
            time.sleep(_POLL_S)

    def _save_pid(self, part: str, pid: int) -> None:
        """Writes the pid file of a part. Raises LabError if its process is gone already."""
        process = process_of_pid(pid)
        if process is None:
            raise LabError(
                f"the {part} exited immediately: {self._last_line(part)}", remedy=f"Read {self.log_path(part)}"
            )
        save_process(self._pid_path(part), process)

    def _end_all(self) -> tuple[str, ...]:
        """Ends all parts. Returns those that were running. Raises LabError if one does not stop."""
        self._state_path.unlink(missing_ok=True)
        ended_parts: list[str] = []
        server, self._server = self._server, None
        if server is not None:
            if server.running():
                ended_parts.append(SOUND)
            server.stop()
        for part in reversed(PARTS):
            process = self._started_process(part)
            if process is not None and process.alive():
                if not process.end():
                    raise LabError(f"the {part} (process {process.pid}) does not stop")
                ended_parts.append(part)
            self._pid_path(part).unlink(missing_ok=True)
        self._assistant_path.unlink(missing_ok=True)
        return tuple(part for part in PARTS if part in ended_parts)

    def _status(self, part: str) -> PartStatus:
        process = self._started_process(part)
        if process is None or not process.alive():
            return PartStatus(part, None, None, "not running" if process is None else "exited unexpectedly", False)
        health, healthy = self._health(part)
        return PartStatus(part, process.pid, process.uptime_s(), health, healthy)

    def _health(self, part: str) -> tuple[str, bool]:
        """The state of a running part in words, and whether that is as it should be."""
        if part == SOUND:
            return self._sound_server_health()
        if part == BROKER:
            return self._broker_health()
        return self._assistant_health()

    def _sound_server_health(self) -> tuple[str, bool]:
        environment = {**os.environ, **LabSoundServer(self.folder).environment()}
        try:
            process = subprocess.run(["pactl", "info"], env=environment, capture_output=True, timeout=1.5, check=False)
        except (OSError, subprocess.TimeoutExpired):
            return "does not answer", False
        return ("answers", True) if process.returncode == 0 else ("refuses", False)

    def _broker_health(self) -> tuple[str, bool]:
        try:
            port = int((self.folder / "broker.port").read_text(encoding="ascii"))
            with socket.create_connection((HOST, port), timeout=1.0):
                return f"{HOST}:{port}", True
        except (OSError, ValueError):
            return "does not answer", False

    def _assistant_health(self) -> tuple[str, bool]:
        status = self._assistant_status()
        heartbeat_s = status.get("at_s")
        if not isinstance(heartbeat_s, float):
            return "no heartbeat yet", False
        age_s = time.monotonic() - heartbeat_s
        if age_s > _STALE_S:
            return f"frozen, last heartbeat {seconds(age_s)} ago", False
        return str(status.get("state")), True

    @property
    def _assistant_path(self) -> Path:
        return self.folder / "assistant.json"

    def _assistant_status(self) -> dict[str, object]:
        """What the assistant last wrote about itself; {} if there is nothing, or it is damaged."""
        try:
            status = json.loads(self._assistant_path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return status if isinstance(status, dict) else {}

    def _pid_path(self, part: str) -> Path:
        return self.folder / f"{_stem(part)}.pid"

    def _started_process(self, part: str) -> KnownProcess | None:
        return read_process(self._pid_path(part))

    def _is_alive(self, part: str) -> bool:
        process = self._started_process(part)
        return process is not None and process.alive()

    def _await_killed_parts(self) -> None:
        """Waits for parts that were just killed: their process or port may still exist, but they are not running."""
        for part in PARTS:
            process = self._started_process(part)
            if process is not None:
                process.await_exit()

    def _last_line(self, part: str) -> str:
        """The last line of a part's log, for an error."""
        path = self.log_path(part)
        return (last_line(path.read_bytes()) if path.exists() else "") or "it printed nothing"


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _stem(part: str) -> str:
    return part.replace(" ", "_")

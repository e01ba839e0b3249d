"""A broker of our own for benches that have none: a process beside us, for as long as a driver needs it."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import threading
import time
from pathlib import Path

from harness.devices.mqtt.options import host_and_port
from harness.model.errors import DeviceError

_PROGRAM = "harness.devices.mqtt.broker"
_REMEDY = "Install the extra: pip install 'voice-harness[broker]'"
_START_LIMIT_S = 20.0
_END_LIMIT_S = 1.0
_POLL_S = 0.02


class EmbeddedBroker:
    """A broker process of this process, shared by all who lease it for the same `listen`; ends with the last of them.

    One that dies is started again at the same port, by `revive`.
    """

    _running: dict[str, EmbeddedBroker] = {}  # noqa: RUF012  the brokers of this process
    _lock = threading.Lock()

    def __init__(self, listen: str, folder: Path, login: tuple[str, ...] = ()) -> None:
        self.host, self.port = host_and_port(listen, free=True)
        self._listen = listen
        self._login = login
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self._leases = 0

    @classmethod
    def lease(cls, listen: str, folder: Path, login: tuple[str, ...] = ()) -> EmbeddedBroker:
        """One that runs; DeviceError when it cannot. folder: for its address and its log, of the first who leases.

        login: a user and the environment variable that holds the password; () lets everybody in.
        """
        if importlib.util.find_spec("amqtt") is None:
            raise DeviceError(
                "the embedded broker is not installed", remedy="Install the extra: pip install 'voice-harness[broker]'"
            )
        with cls._lock:
            broker = cls._running.get(listen)
            if broker is not None and broker._login != login:
                raise DeviceError(
                    f"two connections share the embedded broker at {listen}, with different users",
                    remedy="Give both the same `username` and `password_env`",
                )
            if broker is None:
                broker = cls(listen, folder, login)
                broker._start()
                broker._await()
                cls._running[listen] = broker
            broker._leases += 1
            return broker

    def give_back(self) -> None:
        """Ends it when nobody else has it; within about 1 s."""
        with self._lock:
            self._leases -= 1
            if self._leases > 0:
                return
            self._running.pop(self._listen, None)
            self._end()

    def revive(self) -> None:
        """Starts it again when it has died, without waiting for it."""
        with self._lock:
            if self._leases > 0 and (self._process is None or self._process.poll() is not None):
                self._end()
                self._start()

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None else None

    @property
    def _port_file(self) -> Path:
        return self._folder / "broker.port"

    @property
    def _log_path(self) -> Path:
        return self._folder / "broker.log"

    def _start(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        self._port_file.unlink(missing_ok=True)
        arguments = [sys.executable, "-m", _PROGRAM, str(self._port_file), f"{self.host}:{self.port}", *self._login]
        with self._log_path.open("ab") as log:
            # A group of its own: Ctrl-C at the terminal is for the engine, which then ends us.
            self._process = subprocess.Popen(
                arguments, stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True
            )

    def _await(self) -> None:
        """Until clients may come; its address is then in a file `broker.address` of the folder."""
        deadline_s = time.monotonic() + _START_LIMIT_S
        process = self._process
        while not self._port_file.exists():
            if process is None or process.poll() is not None or time.monotonic() > deadline_s:
                self._end()
                raise DeviceError(f"the embedded broker did not start: {self._last_line()}", remedy=self._advice())
            time.sleep(_POLL_S)
        self.port = int(self._port_file.read_text(encoding="ascii"))
        (self._folder / "broker.address").write_text(f"{self.host}:{self.port}\n", encoding="ascii")

    def _advice(self) -> str:
        return f"Choose another `listen`, or read {self._log_path}"

    def _last_line(self) -> str:
        lines = self._log_path.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return lines[-1].removeprefix("broker: ") if lines else "it said nothing"

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if process.stdin is not None:
            process.stdin.close()
        process.terminate()
        try:
            process.wait(_END_LIMIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

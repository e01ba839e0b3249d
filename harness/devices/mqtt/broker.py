"""The embedded broker: amqtt in its own process, for benches and labs without a broker. It stores nothing on disk.

As a program: `python -m harness.devices.mqtt.broker [--outlive] PORT_FILE HOST:PORT [USER PASSWORD_ENV]`. It ends
on SIGTERM. Without --outlive it also ends with its standard input, that is, with the process that started it.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from harness.base.child_process import ChildProcess, python_command
from harness.base.whole_file import write_atomically
from harness.devices import tcp
from harness.model.errors import DeviceError

_PROGRAM = "harness.devices.mqtt.broker"
_START_LIMIT_S = 20.0
_END_LIMIT_S = 1.0  # A driver closes within 2 s (`ports.Driver`).


class EmbeddedBroker:
    """A broker process, shared by all connections with the same `listen`; it ends with the last of them.

    `revive` restarts a dead one at the same port.
    """

    _running: dict[str, EmbeddedBroker] = {}  # noqa: RUF012  the brokers of this process
    _lock = threading.Lock()

    def __init__(self, listen: str, folder: Path, login: tuple[str, ...] = ()) -> None:
        """Does not start it: `acquire` does."""
        from harness.devices.mqtt.options import host_and_port  # here: the broker's own process needs no options

        self.host, self.port = host_and_port(listen, free=True)
        self._listen = listen
        self._login = login
        self._folder = folder
        self._process: ChildProcess | None = None
        self._user_count = 0

    @classmethod
    def acquire(cls, listen: str, folder: Path, login: tuple[str, ...] = ()) -> EmbeddedBroker:
        """A running broker, which must be released. Raises DeviceError when it cannot start.

        - folder: folder for its address and log; that of the first connection is used.
        - login: a user and the environment variable with the password; () admits everybody.
        """
        if importlib.util.find_spec("amqtt") is None:
            raise _not_installed()
        with cls._lock:
            broker = cls._running.get(listen)
            if broker is not None and broker._login != login:
                raise DeviceError(
                    f"two connections to the embedded broker at {listen} name different users",
                    remedy="Use the same `username` and `password_env` for both connections",
                )
            if broker is None:
                broker = cls(listen, folder, login)
                broker._start()
                broker._wait_until_ready()
                cls._running[listen] = broker
            broker._user_count += 1
            return broker

    def release(self) -> None:
        """Ends the broker within about 1 s, unless another connection uses it."""
        with self._lock:
            self._user_count -= 1
            if self._user_count > 0:
                return
            self._running.pop(self._listen, None)
            self._end()

    def revive(self) -> None:
        """Restarts the broker if it has died, without waiting until it runs."""
        with self._lock:
            if self._user_count > 0 and (self._process is None or not self._process.alive):
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
        self._port_file.unlink(missing_ok=True)  # `_wait_until_ready` would take an earlier broker's for this one's
        host = f"[{self.host}]" if ":" in self.host else self.host
        arguments = python_command(_PROGRAM, str(self._port_file), f"{host}:{self.port}", *self._login)
        self._process = ChildProcess(arguments, stdout=None, stderr=self._log_path)

    def _wait_until_ready(self) -> None:
        """Waits until clients can connect. Then the file `broker.address` in the folder has its address."""
        assert self._process is not None
        if why := self._process.await_ready(self._port_file.exists, _START_LIMIT_S):
            self._end()
            raise DeviceError(
                f"the embedded broker {why.replace('broker: ', '', 1)}",  # `run` begins its line with that
                remedy=f"Change `listen`, or read {self._log_path}",
            )
        self.port = int(self._port_file.read_text(encoding="ascii"))
        (self._folder / "broker.address").write_text(f"{self.host}:{self.port}\n", encoding="ascii")

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.end(_END_LIMIT_S)


HOST = "127.0.0.1"

_ANONYMOUS_PLUGIN = "amqtt.plugins.authentication.AnonymousAuthPlugin"
_LOGIN_PLUGIN = "harness.devices.mqtt.broker_login.SingleLogin"


def _not_installed() -> DeviceError:
    from harness.base.plugins import pip_install  # here, since it takes long to import

    return DeviceError("the embedded broker is not installed", remedy=f"Install it: {pip_install('broker')}")


async def serve(
    port_file: Path, port: int = 0, host: str = HOST, *, until_input_ends: bool = False, login: Sequence[str] = ()
) -> None:
    """Serves until SIGTERM, and writes the port to the file when clients can connect.

    - port: 0 takes a free one.
    - until_input_ends: whether it also ends when standard input ends.
    - login: a user and the environment variable with the password; () admits everybody. Raises DeviceError when amqtt
      is not installed or the port is taken.
    """
    try:
        from amqtt.broker import Broker
        from amqtt.errors import BrokerError
    except ImportError as error:
        raise _not_installed() from error
    plugins: dict[str, dict[str, object]]
    if login:
        user, password_env = login
        plugins = {_LOGIN_PLUGIN: {"username": user, "password_env": password_env}}
    else:
        plugins = {_ANONYMOUS_PLUGIN: {"allow_anonymous": True}}
    try:
        with contextlib.ExitStack() as stack:
            if not port:
                # Held until the broker listens: no other program that asks for a free port gets this one.
                placeholder = stack.enter_context(socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET))
                placeholder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                placeholder.bind((host, 0))
                port = int(placeholder.getsockname()[1])
            listener = {"type": "tcp", "bind": f"{host}:{port}"}
            broker = Broker({"listeners": {"default": listener}, "plugins": plugins})
            await broker.start()
    except (BrokerError, OSError) as error:
        raise DeviceError(f"the broker cannot listen on {host}:{port}: {error.__cause__ or error}") from error
    write_atomically(port_file, str(port).encode())
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for signal_number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(signal_number, stop.set)
    if until_input_ends:
        threading.Thread(target=_stop_when_input_ends, args=(loop, stop), daemon=True).start()
    await stop.wait()
    # A slow client must not keep the broker from ending.
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(broker.shutdown(), _END_LIMIT_S)


def _stop_when_input_ends(loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
    """Runs in a thread of its own. The input's content is ignored."""
    while os.read(sys.stdin.fileno(), 4096):
        pass
    with contextlib.suppress(RuntimeError):  # the loop has already ended
        loop.call_soon_threadsafe(stop.set)


def run(
    port_file: Path, port: int, host: str = HOST, *, until_input_ends: bool = False, login: Sequence[str] = ()
) -> int:
    """Runs the broker. Returns the exit status; errors go to standard error."""
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(name)s: %(message)s")
    try:
        asyncio.run(serve(port_file, port, host, until_input_ends=until_input_ends, login=login))
    except DeviceError as error:
        sys.stderr.write(f"broker: {error}\n")
        return error.exit_code
    return 0


def main(arguments: list[str]) -> None:
    """Runs the broker as a program, and ends the process with its exit status. arguments: as in the module's text."""
    outlive = arguments[0] == "--outlive"
    path, address, *login = arguments[1:] if outlive else arguments
    host, port = tcp.host_and_port(address, free=True)
    # Threads that wait for input would delay a normal exit.
    status = run(Path(path), port, host, until_input_ends=not outlive, login=login)
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    main(sys.argv[1:])

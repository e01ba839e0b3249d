"""A broker of our own, amqtt on its own in a process, for benches and labs that have none. It keeps nothing on disk.

As a program: `python -m harness.devices.mqtt.broker ADDRESS_FILE HOST:PORT [USER PASSWORD_ENV]`. It ends with SIGTERM,
or when its standard input ends: with whoever started it, however that died.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from harness.devices.mqtt.options import host_and_port
from harness.model.errors import DeviceError

HOST = "127.0.0.1"
_END_LIMIT_S = 1.0
_ANYBODY = "amqtt.plugins.authentication.AnonymousAuthPlugin"
_LOGIN = "harness.devices.mqtt.broker_login.OneLogin"
_REMEDY = "Install the extra: pip install 'voice-harness[broker]'"


async def serve(
    port_file: Path, port: int = 0, host: str = HOST, *, while_input: bool = False, login: Sequence[str] = ()
) -> None:
    """Until SIGTERM; the port is written to the file when clients may come. port 0: a free one.

    while_input: until the end of standard input as well. login: a user and the environment variable that holds the
    password; without them everybody may come. DeviceError when amqtt is not installed or the port is taken.
    """
    try:
        from amqtt.broker import Broker
        from amqtt.errors import BrokerError
    except ImportError as error:
        raise DeviceError("the embedded broker is not installed", remedy=_REMEDY) from error
    port = port or _free_port(host)
    plugins: dict[str, dict[str, object]]
    if login:
        user, password_env = login
        plugins = {_LOGIN: {"username": user, "password_env": password_env}}
    else:
        plugins = {_ANYBODY: {"allow_anonymous": True}}
    configuration = {"listeners": {"default": {"type": "tcp", "bind": f"{host}:{port}"}}, "plugins": plugins}
    broker = Broker(configuration)
    try:
        await broker.start()
    except (BrokerError, OSError) as error:
        raise DeviceError(f"no broker can listen at {host}:{port}: {error.__cause__ or error}") from error
    fresh = port_file.with_suffix(".new")
    fresh.write_text(str(port), encoding="ascii")
    fresh.replace(port_file)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    if while_input:
        threading.Thread(target=_until_input_ends, args=(loop, stop), daemon=True).start()
    await stop.wait()
    # A client that is being waited for must not keep us up.
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(broker.shutdown(), _END_LIMIT_S)


def _until_input_ends(loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
    while os.read(sys.stdin.fileno(), 4096):
        pass
    with contextlib.suppress(RuntimeError):  # the loop has ended by itself
        loop.call_soon_threadsafe(stop.set)


def _free_port(host: str) -> int:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


def run(port_file: Path, port: int, host: str = HOST, *, while_input: bool = False, login: Sequence[str] = ()) -> int:
    """The exit status; what went wrong is on standard error."""
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(name)s: %(message)s")
    try:
        asyncio.run(serve(port_file, port, host, while_input=while_input, login=login))
    except DeviceError as error:
        sys.stderr.write(f"broker: {error}\n")
        return error.exit_code
    return 0


def main(arguments: list[str]) -> None:
    host, port = host_and_port(arguments[1], free=True)
    # Threads that wait for input would keep a normal exit waiting.
    status = run(Path(arguments[0]), port, host, while_input=True, login=arguments[2:4])
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    main(sys.argv[1:])

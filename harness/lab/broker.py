"""The lab's own MQTT broker: amqtt on the loopback, in a process of its own; no persistence."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys
from pathlib import Path

from harness.model.errors import LabError

HOST = "127.0.0.1"


async def serve(port_file: Path, port: int = 0) -> None:
    """Until SIGTERM; the port is written to the file when clients may come. port 0: a free one."""
    try:
        from amqtt.broker import Broker
    except ImportError as error:
        raise LabError(
            "the embedded broker is not installed", remedy="Install the extra: pip install 'voice-harness[lab]'"
        ) from error
    port = port or _free_port()
    configuration = {
        "listeners": {"default": {"type": "tcp", "bind": f"{HOST}:{port}"}},
        "plugins": {"amqtt.plugins.authentication.AnonymousAuthPlugin": {"allow_anonymous": True}},
    }
    broker = Broker(configuration)
    await broker.start()
    fresh = port_file.with_suffix(".new")
    fresh.write_text(str(port), encoding="ascii")
    fresh.replace(port_file)
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await stop.wait()
    # A client that is being waited for must not keep the lab up.
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(broker.shutdown(), 1.0)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def main(port_file: Path, port: int) -> None:
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(name)s: %(message)s")
    try:
        asyncio.run(serve(port_file, port))
    except LabError as error:
        sys.stderr.write(f"broker: {error}\n")
        os._exit(error.exit_code)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0)

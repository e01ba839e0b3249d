"""A port of this host that leads to another one, as `ssh -L` does."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit


@contextmanager
def tunnel(url: str) -> Iterator[str]:
    """The address of the near end. Bytes pass unchanged, so requests name the near end's port."""
    port = urlsplit(url).port
    assert port is not None
    with socket.create_server(("127.0.0.1", 0)) as near:
        threading.Thread(target=_accept, args=(near, port), daemon=True).start()
        yield f"http://127.0.0.1:{near.getsockname()[1]}"
        near.shutdown(socket.SHUT_RDWR)


def _accept(near: socket.socket, port: int) -> None:
    while True:
        try:
            client, _ = near.accept()
        except OSError:
            return
        try:
            far = socket.create_connection(("127.0.0.1", port))
        except OSError:  # the site is down
            client.close()
            continue
        for source, target in ((client, far), (far, client)):
            threading.Thread(target=_pass, args=(source, target), daemon=True).start()


def _pass(source: socket.socket, target: socket.socket) -> None:
    with source:
        with suppress(OSError):
            while part := source.recv(65536):
                target.sendall(part)
        with suppress(OSError):
            target.shutdown(socket.SHUT_RDWR)

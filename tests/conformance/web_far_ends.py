"""Web socket servers as devices: one in this process that can go away, and one in a process that can be frozen."""

from __future__ import annotations

import subprocess
import sys
import threading
from contextlib import suppress
from http import HTTPStatus

from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response
from websockets.sync.server import Server, ServerConnection, serve

from tests.conformance.far_end import FarEnd
from tests.ports import free_port
from tests.seen import until

PROGRAM = """\
import sys
from websockets.sync.server import serve

def handle(link):
    link.send("up")
    for message in link:
        link.send(message)

serve(handle, "127.0.0.1", int(sys.argv[1])).serve_forever()
"""


class WebServer(FarEnd):
    """A server on the loopback that sends the same to all who are connected. token: what clients must bring."""

    def __init__(self, token: str = "") -> None:
        self.heard: list[str | bytes] = []
        self.token = token
        self._lock = threading.Lock()
        self._peers: list[ServerConnection] = []
        self._server: Server | None = None
        self.port = free_port()
        self.mend()

    @property
    def url(self) -> str:
        return f"ws://127.0.0.1:{self.port}/core"

    def mend(self) -> None:
        self._server = serve(self._handle, "127.0.0.1", self.port, process_request=self._admit, close_timeout=0.5)
        threading.Thread(target=self._accept, args=(self._server,), daemon=True).start()

    def lose(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            server.shutdown()
        with self._lock:
            peers, self._peers = self._peers, []
        for peer in peers:
            peer.close(1001)

    def say(self, message: str | bytes) -> None:
        """Waits for somebody who hears it: a client may be connected before this end knows of it."""
        until(lambda: self._peers, otherwise="nobody connected")
        with self._lock:
            peers = list(self._peers)
        for peer in peers:
            peer.send(message)

    def say_raw(self, data: bytes) -> None:
        """Bytes that need not be valid frames."""
        until(lambda: self._peers, otherwise="nobody connected")
        with self._lock:
            for peer in self._peers:
                peer.socket.sendall(data)

    def _accept(self, server: Server) -> None:
        with suppress(OSError):  # shut down before it began
            server.serve_forever()

    def _admit(self, link: ServerConnection, request: Request) -> Response | None:
        if self.token and request.headers.get("Authorization") != f"Bearer {self.token}":
            return link.respond(HTTPStatus.UNAUTHORIZED, "no\n")
        return None

    def _handle(self, link: ServerConnection) -> None:
        with self._lock:
            if self._server is None:
                return
            self._peers.append(link)
        try:
            for message in link:
                self.heard.append(message)
        except ConnectionClosed:
            pass
        finally:
            with self._lock:
                if link in self._peers:
                    self._peers.remove(link)


def echo_program(port: int) -> subprocess.Popen[bytes]:
    """Sends `up`, and whatever it receives."""
    return subprocess.Popen([sys.executable, "-c", PROGRAM, str(port)])

"""Far ends that print lines: a program that can be made to fail, and a TCP server that can go away."""

from __future__ import annotations

import contextlib
import socket
import sys
import threading
from pathlib import Path
from types import TracebackType

from tests.ports import free_port
from tests.seen import until

PROGRAM = """\
import os, sys, time
folder = sys.argv[1]
if os.path.exists(folder + "/down"):
    sys.exit("the device is offline")
said = open(folder + "/said")
said.seek(0, os.SEEK_END)
print("ready to hear", flush=True)
while not os.path.exists(folder + "/down"):
    sys.stdout.write(said.read())
    sys.stdout.flush()
    time.sleep(0.005)
sys.exit("the device is offline")
"""


class Program:
    """A program that repeats what is said in a file, and ends while `down` is there."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        (folder / "said").touch()
        (folder / "far_end.py").write_text(PROGRAM, encoding="utf-8")
        self.command = (sys.executable, "-u", str(folder / "far_end.py"), str(folder))

    def say(self, line: str) -> None:
        with (self._folder / "said").open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")

    def lose(self) -> None:
        (self._folder / "down").touch()

    def mend(self) -> None:
        (self._folder / "down").unlink()


class Server:
    """A TCP server on the loopback that says the same to all who are connected."""

    def __init__(self) -> None:
        self.heard: list[bytes] = []
        self._lock = threading.Lock()
        self._peers: list[socket.socket] = []
        self._listening: socket.socket | None = None
        self.port = free_port()
        self.mend()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def mend(self) -> None:
        self._listening = listening = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self._accept, args=(listening,), daemon=True).start()

    def say(self, line: str) -> None:
        """Waits for somebody who hears it: a client may be connected before this end knows of it."""
        until(lambda: self._peers, otherwise="nobody connected")
        for peer in list(self._peers):
            with contextlib.suppress(OSError):
                peer.sendall(f"{line}\n".encode())

    def lose(self) -> None:
        with self._lock:
            listening, self._listening = self._listening, None
            peers, self._peers = self._peers, []
        if listening is not None:
            listening.shutdown(socket.SHUT_RDWR)
            listening.close()
        for peer in peers:
            with contextlib.suppress(OSError):
                peer.shutdown(socket.SHUT_RDWR)
            peer.close()

    def __enter__(self) -> Server:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.lose()

    def _accept(self, listening: socket.socket) -> None:
        while True:
            try:
                peer, _ = listening.accept()
            except OSError:
                return
            with self._lock:
                if self._listening is not listening:
                    peer.close()
                    return
                self._peers.append(peer)
            threading.Thread(target=self._hear, args=(peer,), daemon=True).start()

    def _hear(self, peer: socket.socket) -> None:
        with peer, contextlib.suppress(OSError):
            while data := peer.recv(4096):
                self.heard.append(data)
        with self._lock:  # else `say` would take it for somebody who hears
            self._peers = [other for other in self._peers if other is not peer]

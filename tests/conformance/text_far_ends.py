"""Far ends that print lines: a program that can be made to fail, and a TCP server that can go away."""

from __future__ import annotations

import contextlib
import socket
import sys
from pathlib import Path

from tests.conformance.far_end import TcpFarEnd
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


class Server(TcpFarEnd):
    """A TCP server on the loopback that says the same to all who are connected."""

    def __init__(self) -> None:
        self.heard: list[bytes] = []
        super().__init__()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def say(self, line: str) -> None:
        """Waits for somebody who hears it: a client may be connected before this end knows of it."""
        until(lambda: self._peers, otherwise="nobody connected")
        for peer in list(self._peers):
            with contextlib.suppress(OSError):
                peer.sendall(f"{line}\n".encode())

    def _serve(self, peer: socket.socket) -> None:
        with peer, contextlib.suppress(OSError):
            while data := peer.recv(4096):
                self.heard.append(data)
        with self._lock:  # else `say` would take it for somebody who hears
            self._peers = [other for other in self._peers if other is not peer]

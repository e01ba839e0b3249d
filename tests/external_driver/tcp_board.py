"""A board for the TCP line driver, with the panel's ear: python -m tests.external_driver.tcp_board PORT_FILE"""

from __future__ import annotations

import contextlib
import os
import socketserver
import sys
import threading
from pathlib import Path

from tests.conformance.panel_board import Ear


class Board:
    """One for all connections, which all see every line."""

    def __init__(self) -> None:
        self.ear, self.heard = Ear(), 0
        self.lock = threading.RLock()
        self.seen_by: list[socketserver.StreamRequestHandler] = []

    def say(self, line: str) -> None:
        with self.lock:
            for client in self.seen_by:
                with contextlib.suppress(OSError):
                    client.wfile.write(f"{line}\n".encode())


BOARD = Board()


class Connection(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        with BOARD.lock:
            BOARD.seen_by.append(self)
            self.wfile.write(b"lamp firmware 1.2\n")
        try:
            while line := self.rfile.readline():
                self.take(line.decode().split())
        except OSError:
            pass
        finally:
            BOARD.seen_by.remove(self)

    def take(self, words: list[str]) -> None:
        match words:
            case ["AUDIO", size]:
                pcm = self.rfile.read(int(size))
                with BOARD.lock:
                    for sample, frames in BOARD.ear.take(pcm):
                        BOARD.say(f"woke at {sample / 16:.0f} ms, {min(100, 60 + frames)} %")
                    BOARD.heard += len(pcm) // 2
                    BOARD.say(f"heard {BOARD.heard}")
            case ["RESET"]:
                BOARD.ear, BOARD.heard = Ear(), 0
                BOARD.say("boot: reset")
            case ["END"]:
                os._exit(0)
            case _:
                BOARD.say(f"what is {' '.join(words)}?")


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True


if __name__ == "__main__":
    with Server(("127.0.0.1", 0), Connection) as server:
        part = Path(sys.argv[1]).with_suffix(".part")
        part.write_text(str(server.server_address[1]), encoding="ascii")
        part.rename(sys.argv[1])
        server.serve_forever()

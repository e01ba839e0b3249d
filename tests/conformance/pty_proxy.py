"""The cable between a board and the harness: a pty of its own in front of the board's far end, with faults on request.

A process of its own, so that bytes are passed on in time whatever the test does. Commands are lines on its standard
input, each answered with `ok`:

    corrupt RATE SEED   change each byte in either direction with this probability (0: no more)
    lose RATE SEED      leave bytes out
    flood COUNT SEED    COUNT random bytes towards the harness
    unplug · replug     the pty closed and its link removed · another pty, and the link again
"""

from __future__ import annotations

import os
import select
import socket
import stat
import sys
import termios
import tty

import numpy as np

READ = 65536
KEPT = 262144  # bytes that wait for a harness that does not read; beyond them the line loses what comes


class Cable:
    def __init__(self, far: str, link: str) -> None:
        self.link = link
        self._connection: socket.socket | None = None
        if stat.S_ISSOCK(os.stat(far).st_mode):
            self._connection = socket.socket(socket.AF_UNIX)
            self._connection.connect(far)
            self.board = self._connection.fileno()
        else:
            self.board = os.open(far, os.O_RDWR | os.O_NOCTTY)
            tty.setraw(self.board)
        os.set_blocking(self.board, False)
        self.master = self.slave = -1
        self.to_board = bytearray()
        self.to_host = bytearray()
        self._corrupt = self._lose = 0.0
        self._random = np.random.default_rng(0)

    def plug(self) -> None:
        self.master, self.slave = os.openpty()
        tty.setraw(self.slave)  # stays open: without it, reading fails whenever the harness has the port closed
        os.set_blocking(self.master, False)
        fresh = f"{self.link}.new"
        os.symlink(os.ttyname(self.slave), fresh)
        os.replace(fresh, self.link)

    def unplug(self) -> None:
        if self.master < 0:
            return
        os.unlink(self.link)
        os.close(self.master)
        os.close(self.slave)
        self.master = self.slave = -1
        self.to_board.clear()
        self.to_host.clear()

    def command(self, words: list[str]) -> None:
        match words:
            case ["corrupt", rate, seed]:
                self._corrupt, self._random = float(rate), np.random.default_rng(int(seed))
            case ["lose", rate, seed]:
                self._lose, self._random = float(rate), np.random.default_rng(int(seed))
            case ["flood", count, seed]:
                self.to_host += np.random.default_rng(int(seed)).bytes(int(count))
            case ["unplug"]:
                self.unplug()
            case ["replug"]:
                self.plug()
            case _:
                raise SystemExit(f"no such command: {words}")

    def _worn(self, received: bytes) -> bytes:
        """What such a line makes of it."""
        if self._corrupt == 0 and self._lose == 0:
            return received
        sound = np.frombuffer(received, np.uint8).copy()
        struck = np.flatnonzero(self._random.random(sound.size) < self._corrupt)
        sound[struck] ^= self._random.integers(1, 256, struck.size, np.uint8)
        return sound[self._random.random(sound.size) >= self._lose].tobytes()

    def run(self) -> None:
        commands = b""
        while True:
            reading, writing = [0, self.board], []
            if self.master >= 0:
                if len(self.to_board) < READ:
                    reading.append(self.master)
                if self.to_host:
                    writing.append(self.master)
            if self.to_board:
                writing.append(self.board)
            ready, free, _ = select.select(reading, writing, [])
            if self.board in ready:
                received = _read(self.board)
                if received == b"":
                    return  # the board is gone, and its port with it
                if received and self.master >= 0 and len(self.to_host) < KEPT:
                    self.to_host += self._worn(received)
                    free.append(self.master)
            if self.master in ready:
                self.to_board += self._worn(_read(self.master) or b"")
                free.append(self.board)
            if self.master in free:
                _write(self.master, self.to_host)
            if self.board in free:
                _write(self.board, self.to_board)
            if 0 in ready:
                read = os.read(0, READ)
                if not read:
                    return  # whoever started it is gone
                *lines, commands = (commands + read).split(b"\n")
                for line in lines:
                    self.command(line.decode().split())
                    os.write(1, b"ok\n")


def _read(source: int) -> bytes | None:
    """None: nothing yet, as of a port that was flushed since it had some; b"": its end."""
    try:
        return os.read(source, READ)
    except BlockingIOError:
        return None
    except OSError:
        return b""


def _write(sink: int, waiting: bytearray) -> None:
    try:
        while waiting:
            del waiting[: os.write(sink, waiting)]
    except BlockingIOError:
        return
    except OSError:
        waiting.clear()


def main() -> None:
    far, link = sys.argv[1:]
    cable = Cable(far, link)
    cable.plug()
    os.write(1, b"ok\n")
    try:
        cable.run()
    finally:
        cable.unplug()


if __name__ == "__main__":
    try:
        main()
    except (OSError, termios.error) as error:
        raise SystemExit(f"the cable broke: {error}") from error

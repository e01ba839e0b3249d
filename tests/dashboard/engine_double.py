"""An engine's side of the socket that a test writes: real socket, real codec, rows as the test says."""

from __future__ import annotations

import contextlib
import socket
import threading
from pathlib import Path
from types import TracebackType
from typing import TypeVar

import numpy as np
import soundfile

from harness.base.codec import decode, encode
from harness.model.feed import (
    Answered,
    Command,
    Hello,
    Judge,
    Logged,
    Message,
    Meters,
    Review,
    StateChanged,
    StateWord,
    Welcome,
)
from harness.model.record import Clip, EventReviewed, JudgmentGiven, Record
from harness.session.engine.feed import COMMANDS, MESSAGES
from tests.unit.session.figures.rows import Rows

C = TypeVar("C", bound=Command)
START_S = 500.0


def write_clip(folder: Path, name: str, seconds: float = 1.2) -> Clip:
    """A FLAC of three bursts, so that its shape can be seen."""
    rate = 16000
    t = np.arange(int(rate * seconds)) / rate
    samples = (0.5 * np.sin(2 * np.pi * 220 * t) * np.abs(np.sin(3 * np.pi * t / seconds)) ** 2).astype(np.float32)
    (folder / "clips").mkdir(parents=True, exist_ok=True)
    soundfile.write(folder / "clips" / name, samples, rate, format="FLAC")
    return Clip(name, f"sha of {name}", rate, len(samples), 0.0)


class EngineDouble:
    """Serves one client. answers: what a command is answered with; judgments and reviews are logged."""

    def __init__(self, folder: Path, rows: Rows, *, has_monitor: bool = True) -> None:
        self.folder = folder
        self.named = str(folder)
        self.socket_path = folder / "engine.sock"
        self.rows = rows
        self.state = StateChanged(StateWord.LISTENING, START_S)
        self.has_monitor = has_monitor
        self.received: list[Command] = []
        self.refuse: str | None = None
        self.silent = False
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(self.socket_path))
        self._listener.listen(1)
        self._connection: socket.socket | None = None
        self._lock = threading.RLock()
        self._greeted = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> EngineDouble:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.die()
        self._thread.join(5)

    def die(self) -> None:
        """The connection ends without a goodbye."""
        for link in (self._connection, self._listener):
            if link is not None:
                with contextlib.suppress(OSError):
                    link.shutdown(socket.SHUT_RDWR)
                link.close()

    def send(self, *messages: Message) -> None:
        assert self._greeted.wait(30)
        assert self._connection is not None
        with self._lock:
            self._connection.sendall(b"".join(encode(MESSAGES, message) + b"\n" for message in messages))

    def log(self, *records: Record) -> None:
        """Commits rows and tells the client."""
        with self._lock:
            self.send(*(Logged(self.rows.add(record, 1.0)) for record in records))

    def say(self, word: StateWord, **more: object) -> None:
        self.state = StateChanged(word, START_S, **more)  # type: ignore[arg-type]
        self.send(self.state)

    def commands(self, kind: type[C]) -> list[C]:
        return [message for message in self.received if isinstance(message, kind)]

    def _serve(self) -> None:
        try:
            self._connection, _ = self._listener.accept()
            with self._connection.makefile("rb") as stream:
                for line in stream:
                    self._take(decode(COMMANDS, line))
        except (OSError, ValueError):
            return  # The test has ended the connection.

    def _take(self, command: Command) -> None:
        self.received.append(command)
        if isinstance(command, Hello):
            with self._lock:
                self._greeted.set()
                self.send(
                    Welcome("s1", self.named, 1, len(self.rows.entries), self.state, "0.1.0", self.has_monitor),
                    *(Logged(entry) for entry in self.rows.entries),
                    Meters(-23.0, -41.0, -58.0),
                )
            return
        if self.silent:
            return
        if isinstance(command, Judge) and self.refuse is None:
            self.log(JudgmentGiven(command.judgment))
        if isinstance(command, Review) and self.refuse is None:
            self.log(EventReviewed(command.event_seq, command.word, command.by))
        self.send(Answered(command.id, self.refuse is None, self.refuse or ""))

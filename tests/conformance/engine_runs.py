"""Engines in processes of their own over the in-process sound path, for tests."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from harness.model.feed import Answered, Command, Goodbye, Hello, Logged, Message, StateChanged, StateWord
from harness.model.record import Record
from harness.session.engine.feed import EngineClient
from harness.session.engine.launch import EnginePlace, find, start_engine
from harness.session.engine.prepare import prepare
from tests.known import known
from tests.seen import until
from tests.written_sessions import records, rows

__all__ = ["HARNESS", "HERE", "Runs", "Watcher", "kill", "play_out", "records", "rows", "wait_for", "watching"]

HERE = Path(__file__).parent / "in_process"
HARNESS = (sys.executable, "-c", "from harness.cli import main; main()")
R = TypeVar("R", bound=Record)


def wait_for(predicate: Callable[[], bool], within_s: float = 60.0, event: str = "it") -> None:
    until(predicate, within_s, f"{event} did not happen")


class Runs:
    """Sessions of one test. Every engine that is still there at the end is ended."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folders: list[Path] = []

    def prepare(self, scenario: str | Path, bench: str | Path = "bench.yaml", **choices: Any) -> Path:
        """choices: as of `prepare`."""
        folder = prepare(HERE / scenario, HERE / bench, self.root / "sessions", **choices)
        self.folders.append(folder)
        return folder

    def close(self) -> None:
        for folder in self.folders:
            place = find(folder)
            if place is not None:
                kill(place)


def kill(place: EnginePlace, number: signal.Signals = signal.SIGKILL) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(place.pid, number)
    wait_for(lambda: not place.alive, event="the engine's end")


def watching(*arguments: str | Path) -> subprocess.Popen[str]:
    """`harness … --plain` in a process of its own."""
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [*HARNESS, *map(str, arguments), "--plain"], stdin=pipe, stdout=pipe, stderr=pipe, text=True
    )


@dataclass
class Watcher:
    """A client that keeps the messages of its engine. arrivals: each with the moment at which it came."""

    place: EnginePlace
    since_seq: int = 0
    meters: bool = False
    arrivals: list[tuple[float, Message]] = field(default_factory=list)
    closed: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        hello = Hello("test", self.since_seq, attended=False, meters=self.meters)
        self.client = EngineClient(Path(self.place.socket), hello, self._receive, self.closed.append)

    def _receive(self, message: Message) -> None:
        self.arrivals.append((time.monotonic(), message))

    @property
    def messages(self) -> list[Message]:
        return [message for _, message in list(self.arrivals)]

    def records(self, kind: type[R], after_s: float = 0.0) -> list[tuple[float, R]]:
        """The rows of that kind, each with the moment at which it came."""
        return [
            (at_s, m.entry.record)
            for at_s, m in list(self.arrivals)
            if at_s >= after_s and isinstance(m, Logged) and isinstance(m.entry.record, kind)
        ]

    def ask(self, command: Command) -> Answered:
        """Sends it and waits for its answer."""
        self.client.send(command)
        answers: list[Answered] = []

        def answered() -> bool:
            command_id = getattr(command, "id", "")
            answers.extend(m for m in self.messages if isinstance(m, Answered) and m.command_id == command_id)
            return bool(answers)

        wait_for(answered, event=f"the answer to {command}")
        return answers[0]

    def reached(self, word: StateWord, after_s: float = 0.0) -> float | None:
        """When that state was first reported after a moment; None if it was not."""
        for at_s, message in list(self.arrivals):
            if at_s > after_s and isinstance(message, StateChanged) and message.word is word:
                return at_s
        return None

    def wait(self, word: StateWord, after_s: float = 0.0, within_s: float = 90.0) -> float:
        wait_for(lambda: self.reached(word, after_s) is not None, within_s, f"the state {word.value}")
        return known(self.reached(word, after_s))

    def wait_row(self, kind: type[Record], within_s: float = 90.0) -> None:
        wait_for(lambda: bool(self.records(kind)), within_s, f"a row {kind.__name__}")

    def goodbye(self, within_s: float = 180.0) -> Goodbye:
        wait_for(lambda: bool(self.closed), within_s, "the goodbye")
        last = self.messages[-1]
        assert isinstance(last, Goodbye), (last, self.closed)
        return last


def play_out(folder: Path, within_s: float = 300.0) -> Goodbye:
    """Runs a session to its end; what the engine says then. An engine that nobody connects to waits a minute first."""
    place = start_engine(folder)
    goodbye = Watcher(place, len(rows(folder))).goodbye(within_s)
    wait_for(lambda: not place.alive, event="the engine's end")
    return goodbye

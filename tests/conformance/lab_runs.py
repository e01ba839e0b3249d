"""Sessions in a virtual lab of their own: real sound, a real assistant, engines in processes of their own."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from harness.lab.lab import Lab
from harness.model.feed import Goodbye, Hello, Logged, Message, StateChanged, StateWord
from harness.model.record import AttemptFinished, AttemptStarted, Entry, TrialFinished
from harness.session.engine.feed import EngineClient
from harness.session.engine.launch import EnginePlace, find, start_engine
from harness.session.engine.prepare import prepare
from tests.conformance.engine_runs import kill, rows, wait_for

SCENARIO = Path(__file__).parent / "lab" / "queries.yaml"
BENCH = SCENARIO.with_name("bench.yaml")


@dataclass
class Watcher:
    """A client that keeps what it is told, each with the moment at which it came."""

    place: EnginePlace
    since_seq: int = 0
    told: list[tuple[float, Message]] = field(default_factory=list)
    closed: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        hello = Hello("test", self.since_seq, attended=False)
        self.client = EngineClient(Path(self.place.socket), hello, self._take, self.closed.append)

    def _take(self, message: Message) -> None:
        self.told.append((time.monotonic(), message))

    def reached(self, word: StateWord, after_s: float = 0.0) -> float | None:
        """When that state was told after a moment; None when it was not."""
        return next(
            (at_s for at_s, m in list(self.told) if at_s > after_s and isinstance(m, StateChanged) and m.word is word),
            None,
        )

    def wait(self, word: StateWord, after_s: float = 0.0, within_s: float = 30.0) -> float:
        wait_for(lambda: self.reached(word, after_s) is not None, within_s, f"the state {word.value}")
        at_s = self.reached(word, after_s)
        assert at_s is not None
        return at_s

    def wait_row(self, kind: type, within_s: float = 30.0) -> None:
        wait_for(
            lambda: any(isinstance(m, Logged) and isinstance(m.entry.record, kind) for _, m in list(self.told)),
            within_s,
            f"a row {kind.__name__}",
        )

    def goodbye(self, within_s: float = 60.0) -> Goodbye:
        wait_for(lambda: bool(self.closed), within_s, "the goodbye")
        last = self.told[-1][1]
        assert isinstance(last, Goodbye), (last, self.closed)
        return last


class LabRuns:
    """Sessions of one test in one lab; every engine that is left at the end is ended."""

    def __init__(self, root: Path, lab: Lab) -> None:
        self.root = root
        self.lab = lab
        self.folders: list[Path] = []

    def prepare(self, scenario: Path = SCENARIO, bench: Path = BENCH) -> Path:
        folder = prepare(scenario, bench, self.root / "sessions")
        self.folders.append(folder)
        return folder

    def start(self, folder: Path) -> Watcher:
        since = len(rows(folder))
        return Watcher(start_engine(folder), since)

    def close(self) -> None:
        for folder in self.folders:
            place = find(folder)
            if place is not None:
                kill(place, signal.SIGKILL)


@contextmanager
def lab_of_its_own(settings: Path | None = None) -> Iterator[Lab]:
    """A lab that is up, found by whatever this process starts. settings: of its assistant."""
    short = Path(tempfile.mkdtemp(prefix="vh-", dir="/tmp"))  # a socket's path has 107 bytes at most
    before = {name: os.environ.get(name) for name in ("HARNESS_LAB", "HARNESS_RUNTIME")}
    os.environ.update(HARNESS_LAB=str(short / "lab"), HARNESS_RUNTIME=str(short / "run"))
    lab = Lab()
    try:
        lab.up(settings)
        yield lab
    finally:
        lab.down()
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        shutil.rmtree(short, ignore_errors=True)


def verdicts(entries: list[Entry]) -> list[TrialFinished]:
    return [entry.record for entry in entries if isinstance(entry.record, TrialFinished)]


def starts(entries: list[Entry], trial_id: str) -> list[tuple[float, AttemptStarted]]:
    """Attempts of a trial with the wall clock's time of their row."""
    return [
        (entry.wall_s, entry.record)
        for entry in entries
        if isinstance(entry.record, AttemptStarted) and entry.record.trial_id == trial_id
    ]


def last_rows(entries: list[Entry], trial_id: str) -> dict[int, AttemptFinished]:
    """attempt → the row that stands."""
    return {
        entry.record.attempt: entry.record
        for entry in entries
        if isinstance(entry.record, AttemptFinished) and entry.record.trial_id == trial_id
    }

"""Engines in processes of their own over the in-process sound path, for tests."""

import contextlib
import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.model.record import Entry
from harness.session.engine.launch import EnginePlace, find
from harness.session.engine.prepare import prepare
from harness.session.log.reader import LogReader

HERE = Path(__file__).parent / "in_process"


def wait_for(predicate: Callable[[], bool], within_s: float = 20.0, what: str = "it") -> None:
    deadline = time.monotonic() + within_s
    while not predicate():
        assert time.monotonic() < deadline, f"{what} did not happen within {within_s} s"
        time.sleep(0.01)


class Runs:
    """Sessions of one test. Every engine that is still there at the end is ended."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folders: list[Path] = []

    def prepare(self, scenario: str, bench: str = "bench.yaml") -> Path:
        folder = prepare(HERE / scenario, HERE / bench, self.root / "sessions")
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
    wait_for(lambda: not place.alive, what="the engine's end")


def rows(folder: Path) -> list[Entry]:
    with LogReader(folder) as reader:
        return list(reader.entries())


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Runs]:
    with tempfile.TemporaryDirectory(prefix="vh") as short:  # a socket's path must be short
        monkeypatch.setenv("HARNESS_RUNTIME", short)
        made = Runs(tmp_path)
        yield made
        made.close()

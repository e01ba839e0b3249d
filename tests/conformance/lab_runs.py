"""Sessions in a virtual lab of their own: real sound, a real assistant, engines in processes of their own."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness.lab.lab import Lab
from harness.model.record import AttemptFinished, AttemptStarted, Entry, TrialFinished
from harness.session.engine.launch import start_engine
from tests.conformance.engine_runs import Runs, Watcher, rows
from tests.written_sessions import records

SCENARIO = Path(__file__).parent / "lab" / "queries.yaml"
BENCH = SCENARIO.with_name("bench.yaml")


class LabRuns(Runs):
    """Sessions of one test in one lab; every engine that is left at the end is ended."""

    def __init__(self, root: Path, lab: Lab) -> None:
        super().__init__(root)
        self.lab = lab

    def prepare(self, scenario: str | Path = SCENARIO, bench: str | Path = BENCH, **choices: Any) -> Path:
        return super().prepare(scenario, bench, **choices)

    def start(self, folder: Path) -> Watcher:
        since = len(rows(folder))
        return Watcher(start_engine(folder), since)


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
    return records(entries, TrialFinished)


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

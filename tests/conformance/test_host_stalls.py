"""A run beside a host that stands still for a moment: the engine's process group is stopped, and continues."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.lab.lab import Lab
from harness.model.feed import StateWord
from harness.model.observation import HostStalled
from harness.model.record import Observed
from harness.session.figures.progress import SessionFigures
from harness.session.summary import disturbance_lines
from tests.conformance.engine_runs import rows
from tests.conformance.lab_runs import LabRuns, last_rows
from tests.written_sessions import records

pytestmark = [pytest.mark.sound, pytest.mark.speech]

STOPPED_S = 0.8


@pytest.fixture
def runs(lab: Lab, tmp_path: Path) -> Iterator[LabRuns]:
    lab.up()
    lab_runs = LabRuns(tmp_path, lab)
    yield lab_runs
    lab_runs.close()


def test_host_stall_is_logged_with_its_attempt(runs: LabRuns) -> None:
    folder = runs.prepare()
    watcher = runs.start(folder)
    watcher.wait(StateWord.PLAYING, 0.0, 60.0)
    group = os.getpgid(watcher.place.pid)
    assert group != os.getpgid(0)
    os.killpg(group, signal.SIGSTOP)
    time.sleep(STOPPED_S)  # what is tested is that time
    os.killpg(group, signal.SIGCONT)
    watcher.goodbye()
    entries = rows(folder)
    stalls = [row for row in records(entries, Observed) if isinstance(row.observation, HostStalled)]
    longest = max(stalls, key=lambda row: row.observation.lasted_s)  # type: ignore[union-attr]
    assert isinstance(longest.observation, HostStalled)
    assert longest.observation.lasted_s >= STOPPED_S - 0.05
    assert longest.observation.source == "host"
    assert (longest.trial_id, longest.attempt) == ("time.r1", 1)
    assert "the host stalled for" in last_rows(entries, "time.r1")[1].disturbed
    figures = SessionFigures()
    for entry in entries:
        figures.add(entry)
    progress = figures.snapshot()
    assert progress.totals.disturbed.count >= 1
    assert any(line.startswith("time.r1, attempt 1: the host stalled") for line in disturbance_lines(progress))

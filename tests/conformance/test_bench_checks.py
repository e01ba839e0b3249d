"""Checks of a bench with real sound: noise that rises pauses the run, with its reason, and quiet resumes it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from harness.cli import group
from harness.lab.lab import Lab
from harness.model.feed import Goodbye
from harness.model.record import AttemptStarted, BenchChecked, Paused, Resumed
from harness.model.stimulus import Waveform
from harness.session.pauses import CHECKS_BY
from harness.sound.playback import Playback
from tests.conformance.engine_runs import rows, wait_for
from tests.conformance.lab_runs import BENCH, LabRuns, verdicts
from tests.written_sessions import records

pytestmark = [pytest.mark.sound, pytest.mark.speech, pytest.mark.usefixtures("host_keeps_time")]

CHECKS = """
on_fault: {retry_after_s: 5, retries: 100}
max_noise_floor_dbfs: -45
checks: {every_min: 60}
"""


@pytest.fixture
def bench(tmp_path: Path) -> Path:
    path = tmp_path / "bench.yaml"
    profile = BENCH.parent / "devices" / "kitchen.yaml"
    text = BENCH.read_text(encoding="utf-8")
    path.write_text(text.replace("profile: kitchen", f"profile: {profile}") + CHECKS, encoding="utf-8")
    return path


def test_doctor_measures_the_devices_and_the_sound_of_the_bench(lab: Lab, bench: Path, tmp_path: Path) -> None:
    result = CliRunner().invoke(group, ["doctor", "--bench", str(bench), "--sessions", str(tmp_path), "--json"])
    checks = {
        check["says"].partition(":")[0] + " " + check["name"]: check for check in json.loads(result.stdout)["checks"]
    }
    for name in ("assistant devices", "near devices", "microphone devices", "near loudspeakers", "near loop_delay"):
        assert checks[name]["level"] == "ok", checks[name]
    assert "heard 5 of 5 test sounds" in checks["near loudspeakers"]["says"]


def test_noise_pauses_the_run_and_quiet_resumes_it(lab: Lab, bench: Path, tmp_path: Path) -> None:
    runs = LabRuns(tmp_path, lab)
    noise = np.random.default_rng(1).standard_normal(48_000 * 600).astype(np.float32) * 0.05
    fan = Playback("harness_speaker", "virtual_lab", on_fault=lambda stamp, problem: None)
    fan.open()
    try:
        fan.play("fan", Waveform(noise, 48_000))
        watcher = runs.start(runs.prepare(bench=bench))
        wait_for(lambda: bool(watcher.records(Paused)), 120, "the pause")
        assert watcher.records(AttemptStarted) == []
        fan.stop()
        wait_for(lambda: any(isinstance(message, Goodbye) for message in watcher.messages), 240, "the end")
        entries = rows(runs.folders[0])
    finally:
        fan.close()
        runs.close()
    (paused,) = records(entries, Paused)
    assert paused.by == CHECKS_BY
    assert "noise_floor: microphone: the noise floor is -" in paused.reason
    assert records(entries, Resumed) == [Resumed("checks: the bench passes its checks again")]
    floors = [row.level for row in records(entries, BenchChecked) if row.check == "noise_floor"]
    assert (floors[0], floors[-1]) == ("fail", "ok")
    assert len(verdicts(entries)) == 1

"""`harness doctor --find-voice`: a voice that wakes a device every time, looked for as a session plays."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from harness.cli import group
from harness.model.errors import InputError
from harness.scenario.scenario import load_scenario
from tests.conformance.engine_runs import HERE, Runs
from tests.files import file_with

BENCH = HERE / "wake_bench.yaml"


def look(*arguments: str | Path) -> tuple[int, dict[str, Any]]:
    result = CliRunner().invoke(group, ["doctor", "--json", *map(str, arguments)], catch_exceptions=False)
    return result.exit_code, json.loads(result.stdout)


def deaf(folder: Path, miss_share: float) -> Path:
    """The bench with a device that misses more, and whose false accepts hide none of it."""
    text = BENCH.read_text().replace("profile: device.yaml", f"profile: {HERE / 'device.yaml'}")
    text = text.replace("wake_miss_share: 0.3, false_accepts_per_hour: 60", f"wake_miss_share: {miss_share}")
    return file_with(folder / "bench.yaml", text)


def test_the_first_voice_that_wakes_it_every_time_can_be_pasted(runs: Runs, tmp_path: Path) -> None:
    status, report = look("--bench", deaf(tmp_path, 0.7), "--find-voice", "shelf")
    *others, last = report["voices"]
    assert (status, report["found"], last["heard"], last["said"]) == (0, True, 3, 3)
    assert others, "the first voice woke it at once: nothing was looked for"
    assert all(voice["heard"] < voice["said"] == 3 for voice in others)
    assert len({(voice["engine"], voice["name"]) for voice in report["voices"]}) == len(report["voices"])
    assert 0 < last["delay_s"] < 1
    soak = file_with(
        tmp_path / "soak.yaml",
        f"scenario: soak\ntrials:\n- kind: ambient\n  hours: 1\n  sources: [{{noise: pink}}]\n  {report['probe']}\n",
    )
    (template,) = load_scenario(soak).trials
    assert template.ambient is not None
    assert template.ambient.probe is not None
    assert template.ambient.probe.voice is not None
    assert (template.ambient.probe.voice.engine, template.ambient.probe.voice.name) == (last["engine"], last["name"])


def test_no_voice_wakes_a_deaf_device(runs: Runs, tmp_path: Path) -> None:
    status, report = look("--bench", deaf(tmp_path, 1.0), "--find-voice", "shelf", "--voices", "2")
    assert (status, report["found"], report["probe"]) == (1, False, "")
    assert [(voice["heard"], voice["said"], voice["delay_s"]) for voice in report["voices"]] == [(0, 3, None)] * 2


def test_find_voice_refuses_missing_bench_or_unknown_device(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="needs the bench"):
        look("--find-voice", "shelf")
    with pytest.raises(InputError, match="no device 'shelv'"):
        look("--bench", BENCH, "--find-voice", "shelv")

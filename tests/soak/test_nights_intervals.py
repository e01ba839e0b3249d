"""What intervals and sequential tests state, over many nights whose truth is known. HARNESS_INTERVAL_NIGHTS: how many.

A night is played as every run is; only the devices are drawn.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from harness.model.record import EndReason
from harness.scenario.bench import load_bench
from harness.scenario.scenario import load_scenario
from harness.session.plan import plan
from harness.session.simulated.facts import DeviceTraits
from harness.session.simulated.night import LengthRenderer, PlayedNight, SimulatedNight, simulate_bench
from harness.sound.stimuli.renderer import renderer
from tests.files import file_with

NIGHTS = int(os.environ.get("HARNESS_INTERVAL_NIGHTS", "1000"))
BENCH = simulate_bench(load_bench(Path(__file__).parents[2] / "scenarios" / "benches" / "virtual_lab.yaml"))
LENGTHS = LengthRenderer(renderer())
VOICES = {f"v{number}": f"{{engine: espeak, name: en-gb, pitch: {30 + 5 * number}}}" for number in range(10)}
MISSED = 0.15
"""Mean over all voices; each of them has a share of its own."""
PER_HOUR = 12.0

pytestmark = pytest.mark.soak


def played(folder: Path, scenario: str, like: DeviceTraits, seed: int) -> PlayedNight:
    path = file_with(folder / "night.yaml", scenario)
    night = SimulatedNight(load_scenario(path), BENCH, like, LENGTHS, seed).play()
    assert night.finished is EndReason.COMPLETED
    return night


def character(**drawn: object) -> DeviceTraits:
    plain = {"mishears": 0.0, "silent": 0.0, "doubles": 0.0, "edge": 0.0, "false_per_hour": 0.0, "very_late": 0.0}
    return DeviceTraits(**{**plain, **drawn})  # type: ignore[arg-type]


def least(share: float, nights: int) -> float:
    """What a share that is truly so large reaches in all but one of 10,000 rounds."""
    return share - 3.72 * math.sqrt(share * (1 - share) / nights)


def test_intervals_of_false_rejects_cover_voices_that_differ(tmp_path: Path) -> None:
    voices = "\n".join(f"  {name}: {keys}" for name, keys in VOICES.items())
    scenario = f"""\
scenario: voices
voices:
{voices}
defaults: {{voice: v0, between_trials_s: 0.5}}
trials: [{{id: call, kind: wake, repeat: 8, devices: [assistant]}}]
matrix: {{axes: {{voice: [{", ".join(VOICES)}]}}}}
"""
    path = file_with(tmp_path / "plan.yaml", scenario)
    speakers = sorted({trial.speaker for trial in plan(load_scenario(path), BENCH)})
    assert len(speakers) == len(VOICES)
    covered = 0
    for seed in range(NIGHTS):
        chance = Random(f"voices {seed}")
        wakes = {speaker: 1 - chance.betavariate(MISSED * 6, (1 - MISSED) * 6) for speaker in speakers}
        device = played(tmp_path, scenario, character(wakes_of=wakes), seed).wake.devices[0]
        assert device.false_rejects.share.total == 80
        assert device.false_rejects.interval is not None
        low, high = device.false_rejects.interval
        covered += low <= MISSED <= high
    sys.stdout.write(f"false rejects over voices: {covered} of {NIGHTS} intervals cover the truth" + "\n")
    assert covered / NIGHTS >= least(0.93, NIGHTS)


def test_intervals_of_false_accepts_cover_their_rate(tmp_path: Path) -> None:
    scenario = """\
scenario: soak
voices: {cass: {engine: flite, name: slt}}
defaults: {voice: cass, between_trials_s: 0.5}
trials: [{id: soak, kind: ambient, hours: 0.5, segment_s: 60, devices: [assistant], sources: [{noise: pink}]}]
"""
    covered = 0
    for seed in range(NIGHTS):
        device = played(tmp_path, scenario, character(false_per_hour=PER_HOUR), seed).wake.devices[0]
        assert device.after_review.interval is not None
        low, high = device.after_review.interval
        covered += low <= PER_HOUR <= high
    sys.stdout.write(f"false accepts per hour: {covered} of {NIGHTS} intervals cover the truth" + "\n")
    assert covered / NIGHTS >= least(0.95, NIGHTS)


def test_intervals_of_latency_cover_its_median(tmp_path: Path) -> None:
    scenario = """\
scenario: latency
voices: {cass: {engine: flite, name: slt}}
defaults: {voice: cass, between_trials_s: 0.5, reprompt: {context_wait_s: 2, response_timeout_s: 8}}
stimuli: [{id: time, text: what time is it}]
trials: [{id: ask, query: time, repeat: 30, device: assistant}]
"""
    covered = 0
    median_s = 1.1  # uniform from 0.6 to 1.6
    for seed in range(NIGHTS):
        latency = played(tmp_path, scenario, character(wakes=1.0, latency_s=1.0), seed).totals.latency
        assert latency.total == 30
        assert latency.p50 is not None
        assert latency.p50.low_s is not None
        assert latency.p50.high_s is not None
        covered += latency.p50.low_s <= median_s <= latency.p50.high_s
    sys.stdout.write(f"median latency: {covered} of {NIGHTS} intervals cover the truth" + "\n")
    assert covered / NIGHTS >= least(0.95, NIGHTS)


def decisions(folder: Path, missed: float, per_hour: float) -> Iterator[dict[str, bool]]:
    scenario = """\
scenario: tests
voices: {cass: {engine: flite, name: slt}}
defaults: {voice: cass, between_trials_s: 0.5}
trials:
  - {id: call, kind: wake, repeat: 150, devices: [assistant]}
  - {id: soak, kind: ambient, hours: 1.5, segment_s: 60, devices: [assistant], sources: [{noise: pink}]}
stopping:
  false_rejects: {good: 0.05, bad: 0.2, alpha: 0.1, beta: 0.1}
  false_accepts: {good: 3, bad: 12, alpha: 0.1, beta: 0.1}
"""
    for seed in range(NIGHTS // 2):
        like = character(wakes=1 - missed, false_per_hour=per_hour)
        yield dict(played(folder, scenario, like, seed).wake.devices[0].decisions)


@pytest.mark.parametrize(("missed", "per_hour", "good"), [(0.05, 3.0, True), (0.2, 12.0, False)], ids=["good", "bad"])
def test_sequential_tests_keep_their_error_rates(tmp_path: Path, missed: float, per_hour: float, good: bool) -> None:
    nights = list(decisions(tmp_path, missed, per_hour))
    for name in ("false_rejects", "false_accepts"):
        wrong = sum(night.get(name) is (not good) for night in nights)
        sys.stdout.write(f"{name}, {'good' if good else 'bad'} device: {wrong} of {len(nights)} decided wrongly" + "\n")
        assert wrong / len(nights) <= 0.1 + 3.72 * math.sqrt(0.1 * 0.9 / len(nights))
        assert sum(name in night for night in nights) >= 0.9 * len(nights)

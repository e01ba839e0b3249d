"""Plans that the product plays in simulated time."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.model.errors import HarnessError
from harness.model.record import EndReason
from harness.scenario.bench import load_bench
from harness.scenario.compatibility import check_compatibility
from harness.scenario.scenario import load_scenario
from harness.session.simulated.facts import DeviceTraits
from harness.session.simulated.night import FAULTS, LengthRenderer, PlayedNight, SimulatedNight, simulate_bench
from harness.sound.stimuli.renderer import renderer

ROOT = Path(__file__).parents[3]
SCENARIOS = [
    *sorted(path.relative_to(ROOT) for path in (ROOT / "scenarios").glob("*.yaml")),
    Path("scenarios/examples/barge_in.yaml"),  # the microphone must hear the device before the phrase
]
BENCHES = sorted(path.relative_to(ROOT) for path in (ROOT / "scenarios" / "benches").glob("*.yaml"))
GOOD = DeviceTraits(wakes=1.0, mishears=0.0, silent=0.0, doubles=0.0, edge=0.0, false_per_hour=0.0, very_late=0.0)
LENGTHS = LengthRenderer(renderer())


def night(scenario: Path, bench: Path, seed: int = 1, like: DeviceTraits = GOOD, faults: float = 0.0) -> PlayedNight:
    return SimulatedNight(
        load_scenario(scenario), simulate_bench(load_bench(bench)), like, LENGTHS, seed, faults
    ).play()


def fits(scenario: Path, bench: Path) -> bool:
    try:
        check_compatibility(load_scenario(ROOT / scenario), load_bench(ROOT / bench))
    except HarnessError:
        return False
    return True


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda path: path.stem)
def test_shipped_scenarios_run_to_their_end_with_a_good_device(scenario: Path) -> None:
    bench = next(bench for bench in BENCHES if fits(scenario, bench))
    played = night(ROOT / scenario, ROOT / bench)
    assert played.finished is EndReason.COMPLETED
    assert played.totals.finished == played.totals.planned > 0
    assert not played.spoiled
    assert played.totals.recognised.count == played.totals.recognised.total
    assert sum(device.missed for device in played.wake.devices) == 0


DEMO = ROOT / "scenarios" / "demo.yaml", ROOT / "scenarios" / "benches" / "virtual_lab.yaml"


def test_equal_seeds_are_equal_nights() -> None:
    like = DeviceTraits()
    first, equal, other = (night(*DEMO, seed=seed, like=like, faults=60.0) for seed in (3, 3, 4))
    assert first == equal
    assert first.duration_s != other.duration_s


def test_every_kind_of_fault_happens_and_every_trial_comes_to_its_end() -> None:
    nights = [night(*DEMO, seed=seed, faults=400.0) for seed in range(6)]
    assert set().union(*(played.faults for played in nights)) == set(FAULTS)
    assert all(played.totals.finished == played.totals.planned for played in nights)
    assert sum(played.spoiled.total() for played in nights) > 0


def test_a_device_that_never_wakes_recognises_nothing_and_takes_longer() -> None:
    deaf = night(*DEMO, like=DeviceTraits(wakes=0.0))
    assert deaf.totals.recognised.count == 0
    assert deaf.duration_s > 1.5 * night(*DEMO).duration_s


def test_people_say_what_they_are_asked_to(tmp_path: Path) -> None:
    path = tmp_path / "people.yaml"
    path.write_text(
        "scenario: people\nvoices: {ann: {talker: ann, language: en-GB}}\ndefaults: {voice: ann}\n"
        "stimuli: [{id: time, text: what time is it}]\ntrials: [{id: ask, query: time, repeat: 3}]\n"
    )
    played = night(path, DEMO[1])
    assert played.totals.recognised.count == played.totals.recognised.total == 3

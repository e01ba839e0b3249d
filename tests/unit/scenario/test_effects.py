"""Effect checks in scenarios, and whether a bench can say what became of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harness.model.effect import EffectCheck, StateWanted
from harness.model.errors import UnmetNeed
from harness.model.scenario import Scenario
from harness.scenario.bench import load_bench
from harness.scenario.scenario import load_scenario
from harness.scenario.together import check_together
from harness.session.plan import plan

ROOT = Path(__file__).parents[3]
BENCH = """
bench: b
loudspeakers: {near: {driver: in_process}}
microphone: {same_as: near}
devices: {one: {profile: PROFILE, connection: {driver: in_process}}}
"""


def written(folder: Path, effect: str, device: str = "one") -> Scenario:
    path = folder / "s.yaml"
    text = "scenario: s\nvariables: {thing: milk}\nstimuli: [{id: q, text: add milk}]\ntrials:\n  - query: q\n"
    path.write_text(f"{text}    device: {device}\n    effect: {effect}\n", encoding="utf-8")
    return load_scenario(path)


def test_the_page_on_effects_has_a_right_example(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "effects.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    (tmp_path / "timers.yaml").write_text(example, encoding="utf-8")
    timer, alarm, lamp = (trial.effect for trial in load_scenario(tmp_path / "timers.yaml").trials)
    assert timer == EffectCheck("a timer of ten minutes runs", (StateWanted("timer", "10 minutes"),))
    assert alarm is not None
    assert lamp is not None
    assert (alarm.later, alarm.at, lamp.later, lamp.question) == (True, "01:00", False, "is the lamp on?")


@pytest.mark.parametrize(
    ("state", "wanted"),
    [
        ("{list: null}", StateWanted("list")),
        ("{list: ~}", StateWanted("list")),
        ('{list: ""}', StateWanted("list", "")),
        ('{list: "${thing}"}', StateWanted("list", "milk")),
        ('{list: "12:30"}', StateWanted("list", "12:30")),
        ("{list: no}", StateWanted("list", "no")),
    ],
)
def test_values_of_state(tmp_path: Path, state: str, wanted: StateWanted) -> None:
    (trial,) = written(tmp_path, f"{{wanted: milk, state: {state}}}").trials
    assert trial.effect == EffectCheck("milk", (wanted,))


@pytest.mark.parametrize(
    ("profile", "effect", "met"),
    [
        ("reference_assistant", "{wanted: x, state: {list: milk}}", True),
        ("vh_board", "{wanted: x, state: {list: milk}}", False),
        ("vh_board", '{wanted: x, state: {list: milk}, question: "is it?"}', True),
        ("vh_board", '{wanted: x, question: "is it?"}', True),
    ],
)
def test_state_wants_a_device_that_tells_it_or_somebody_to_ask(
    tmp_path: Path, profile: str, effect: str, met: bool
) -> None:
    scenario = written(tmp_path, effect)
    (tmp_path / "b.yaml").write_text(BENCH.replace("PROFILE", profile), encoding="utf-8")
    bench = load_bench(tmp_path / "b.yaml")
    if met:
        check_together(scenario, bench)
        (planned,) = plan(scenario, bench)
        assert planned.effect == scenario.trials[0].effect
        return
    with pytest.raises(UnmetNeed, match="wants the state of 'one', which reports none") as refused:
        check_together(scenario, bench)
    assert refused.value.place is not None
    assert refused.value.place.line == 7
    assert "question" in refused.value.remedy

"""The pages on our files name every key, and their examples are right."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from harness.cli.json_schema import json_schema
from harness.devices.profiles.profile import load_profile
from harness.devices.profiles.samples import check_samples
from harness.model.choices import FileKind
from harness.model.effect import EffectCheck, StateWanted
from harness.model.judgment import Category, RaterKeys
from harness.rating.files.rounds import load_rater_keys, load_training, read_round
from harness.scenario.bench import load_bench
from harness.scenario.scenario import load_scenario

DOCS = Path(__file__).parents[3] / "docs"


def keys(schema: Any) -> set[str]:
    found: set[str] = set()
    if isinstance(schema, dict):
        if not str(schema.get("title")).startswith("driver test_"):
            found |= set(schema.get("properties", {}))
            found = found.union(*(keys(value) for value in schema.values()))
    elif isinstance(schema, list):
        found = found.union(*(keys(value) for value in schema))
    return found


def examples(page: str) -> list[str]:
    return re.findall(r"```yaml\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.parametrize(
    ("kind", "page"),
    [
        (FileKind.SCENARIO, "scenario.md"),
        (FileKind.BENCH, "bench.md"),
        (FileKind.DEVICE, "devices.md"),
        (FileKind.ROUND, "round.md"),
        (FileKind.TRAINING, "round.md"),
        (FileKind.GOLD, "round.md"),
        (FileKind.RATER_KEYS, "round.md"),
        (FileKind.GRAMMAR, "understanders.md"),
        (FileKind.LABEL_SET, "format-labels.md"),
    ],
)
def test_every_key_is_named(kind: FileKind, page: str) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    missing = {key for key in keys(json_schema(kind)) if f"`{key}`" not in text}
    assert not missing


def test_the_examples_are_right(tmp_path: Path) -> None:
    (tmp_path / "recordings").mkdir()
    (tmp_path / "scenarios").mkdir()
    soundfile.write(tmp_path / "recordings" / "what_time.wav", np.full(800, 0.1, np.float32), 16000)
    (scenario,) = examples("scenario.md")
    bench, device = examples("bench.md")
    for name, text in (("scenario", scenario), ("bench", bench), ("device", device)):
        (tmp_path / "scenarios" / f"{name}.yaml").write_text(text, encoding="utf-8")
    assert len(load_scenario(tmp_path / "scenarios" / "scenario.yaml").trials) == 2
    assert len(load_bench(tmp_path / "scenarios" / "bench.yaml").devices) == 2
    assert load_profile("device", beside=tmp_path / "scenarios").id == "lamp_kit"


def test_the_example_of_a_device_is_right(tmp_path: Path) -> None:
    (example,) = examples("devices.md")
    (tmp_path / "door_panel.yaml").write_text(example, encoding="utf-8")
    profile = load_profile("door_panel.yaml", beside=tmp_path)
    assert profile.id == "door_panel"
    assert [one.wrong for one in check_samples(profile) if one.wrong] == []


def test_the_examples_of_a_round_are_right(tmp_path: Path) -> None:
    (tmp_path / "rounds").mkdir()
    for session in ("2025-11-20-kitchen", "2026-03-02-kitchen"):
        (tmp_path / "sessions" / session).mkdir(parents=True)
        (tmp_path / "sessions" / session / "log.sqlite").touch()
    names = ("round", "training", "known", "keys")
    for name, text in zip(names, examples("round.md"), strict=True):
        (tmp_path / "rounds" / f"{name}.yaml").write_text(text, encoding="utf-8")
    read = read_round(tmp_path / "rounds" / "round.yaml")
    assert (len(read.exercises) > 20, len(read.sessions), len(read.gold)) == (True, 1, 1)
    assert len(load_training(tmp_path / "rounds" / "training.yaml")) == 2
    assert load_rater_keys(tmp_path / "rounds" / "keys.yaml").category("2") is Category.CORRECT


def test_every_default_key_of_raters_is_in_the_table() -> None:
    text = (DOCS / "round.md").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    for action, key in RaterKeys().actions.items():
        (row,) = [one for one in rows if f"`{action.value}`" in one.split("|")[1] and one.count("|") == 3]
        words = [name.strip("`") for name in row.split("|")[1].split()]
        assert row.split("|")[2].strip().split(", ")[words.index(action.value)] == key


def test_the_example_of_effects_is_right(tmp_path: Path) -> None:
    (example,) = examples("effects.md")
    (tmp_path / "timers.yaml").write_text(example, encoding="utf-8")
    timer, alarm, lamp = (trial.effect for trial in load_scenario(tmp_path / "timers.yaml").trials)
    assert timer == EffectCheck("a timer of ten minutes runs", (StateWanted("timer", "10 minutes"),))
    assert alarm is not None
    assert lamp is not None
    assert (alarm.later, alarm.at, lamp.later, lamp.question) == (True, "01:00", False, "is the lamp on?")


def test_every_profile_is_in_the_table() -> None:
    text = (DOCS / "devices.md").read_text(encoding="utf-8")
    ours = {path.stem for path in (DOCS.parent / "devices").glob("*.yaml")} - {"reference_assistant"}
    assert not {name for name in ours - {"reference_assistant_black_box"} if f"`{name}`" not in text}

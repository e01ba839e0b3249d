"""A path that does not exist gets the most similar one: beside it, or a scenario or profile of that name."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.base.places import YAML, similar_path
from harness.cli import group
from harness.model.errors import InputError


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mylab").mkdir()
    for name in ("mylab/kitchen.yaml", "mylab/take_1.wav", "a.yaml", "scenarios/hall/dor_panel.yaml"):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).touch()


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("mylab/kichen.yaml", "Did you mean 'mylab/kitchen.yaml'?"),
        ("mylab/kitchen.yml", "Did you mean 'mylab/kitchen.yaml'?"),
        ("mylab/kitchen", "Did you mean 'mylab/kitchen.yaml'?"),
        ("mylab/take_1.yaml", "Check the path"),
        ("door_panel.yaml", "Did you mean 'scenarios/hall/dor_panel.yaml'?"),
        ("vh_bord.yaml", "Did you mean 'devices/vh_board.yaml'?"),
        ("z.yaml", "Check the path"),
        ("gone/zzz.yaml", "Check the path: the folder 'gone' does not exist either"),
        ("gone/reprompts.yaml", "Did you mean 'scenarios/examples/reprompts.yaml'?"),
    ],
)
def test_a_missing_yaml_file_suggests_a_similar_one(name: str, remedy: str) -> None:
    assert similar_path(Path(name), YAML) == remedy


def test_a_missing_file_or_folder_suggests_a_similar_one() -> None:
    assert similar_path(Path("mylab/take1.wav")) == "Did you mean 'mylab/take_1.wav'?"
    assert similar_path(Path("mylap")) == "Did you mean 'mylab'?"
    assert similar_path(Path("no\0name/x")) == "Check the path: the folder 'no\\x00name' does not exist either"


@pytest.mark.parametrize(
    "line",
    [
        "evaluate mix gone --background gone -o mylab",
        "understand split gone.jsonl -o mylab",
        "understand generate gone.yaml -o mylab",
        "understand annotate new mylab --data gone --labels gone.yaml",
    ],
)
def test_inputs_are_checked_before_the_output_path(line: str) -> None:
    result = CliRunner().invoke(group, line.split())
    assert isinstance(result.exception, InputError)
    assert str(result.exception).startswith("gone")


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("run kichen.yaml --bench a.yaml", "kichen.yaml: there is no such file. Did you mean 'kitchen.yaml'?"),
        ("evaluate -t openwakeword:alexa --in record", "there is no such file or folder. Did you mean 'recorded'?"),
        ("score -r reff.trn -H b.trn", "there is no such file. Did you mean 'ref.trn'?"),
        ("report trend mylap", "does not exist. Did you mean 'mylab'?"),
        ("report show s2", "s2 is not a session. Did you mean 's1'? The newest in ./sessions: s1"),
    ],
)
def test_commands_suggest_a_similar_path(line: str, hint: str) -> None:
    Path("recorded").mkdir()
    Path("sessions/s1").mkdir(parents=True)
    for name in ("kitchen.yaml", "ref.trn", "b.trn", "sessions/s1/log.sqlite"):
        Path(name).touch()
    result = CliRunner().invoke(group, line.split())
    assert hint in f"{result.exception}{result.output}"

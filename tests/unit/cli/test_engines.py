"""`harness engines` on the real engines, and on one that cannot be imported."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from harness import __version__
from harness.base.plugins import Group, names
from harness.cli.engines import command
from harness.engines.offline_loading import find_in_catalogue
from harness.model.errors import EngineError, InputError, PluginError
from tests.command import succeeded

LOUD = f"process:{sys.executable} {Path(__file__).parents[2] / 'data' / 'engines' / 'loud_engine.py'}"


def shown(*arguments: str) -> str:
    result = succeeded(CliRunner().invoke(command, arguments, catch_exceptions=False))
    return result.output


@pytest.fixture
def broken_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """An installed engine whose module needs what is not there."""
    (tmp_path / "their_engine.py").write_text("import a_package_that_is_not_there\n")
    folder = tmp_path / "their_engine-3.1.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: their-engine\nVersion: 3.1\n")
    (folder / "entry_points.txt").write_text("[harness.offline_engines]\ntheirs = their_engine:Engine\n")
    monkeypatch.syspath_prepend(tmp_path)
    return "theirs"


@pytest.mark.parametrize("columns", [80, 120, 160])
def test_the_table_is_no_wider_than_the_terminal(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    text = shown()
    title, *lines = text.splitlines()
    assert title.split("  ")[0] == "engine"
    assert ("version" in title) == (columns > 130)
    engines = [line.split()[0] for line in lines if not line.startswith(" ")]
    assert sorted(engines) == list(names(Group.OFFLINE_ENGINES))
    assert max(map(len, lines)) <= columns
    assert all(line == line.rstrip() for line in lines)
    assert "\x1b" not in text


def test_an_engine_that_cannot_be_imported_is_marked_and_hides_no_other(
    broken_engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "500")
    (line,) = [line for line in shown().splitlines() if line.startswith(broken_engine)]
    assert "not here" in line
    assert "a_package_that_is_not_there" in line
    assert "Install the missing library" in line
    with pytest.raises(PluginError, match=r"cannot be used here.*a_package_that_is_not_there"):
        shown(broken_engine)


def test_json_has_the_same_engines_as_the_table(broken_engine: str) -> None:
    entries = {entry["name"]: entry for entry in json.loads(shown("--json"))}
    assert set(entries) == set(names(Group.OFFLINE_ENGINES))
    assert entries[broken_engine]["missing"]
    phrase = entries["pocketsphinx"]
    assert phrase["kind"] == "wake"
    assert phrase["operating_points"][9] == {"number": 10, "threshold": 1e-30}
    threshold = next(setting for setting in phrase["settings"] if setting["name"] == "kws-threshold")
    assert (threshold["low"], threshold["high"], threshold["default"]) == (-300, 1, "1e-30")


def test_details_of_an_engine_list_settings_and_operating_points() -> None:
    text = shown("microwakeword")
    for setting in find_in_catalogue("microwakeword").settings:
        assert f"\n{setting.name} " in text
    header = next(line for line in text.splitlines() if line.startswith("operating point "))
    assert header.split()[2:] == ["alexa", "hey_jarvis", "hey_mycroft", "okay_nabu"]
    tenth = next(line for line in text.splitlines() if line.startswith("10 "))
    assert [float(cell) for cell in tenth.split()[1:]] == [0.9, 0.97, 0.95, 0.85]


def test_an_audio_understander_is_described() -> None:
    assert f"version  voice-harness {__version__}" in shown("ctc").splitlines()


def test_a_model_is_loaded_with_settings_and_described() -> None:
    text = shown(f"{LOUD} --scores", "-s", "operating-point=10", "-s", "refractory-ms=500")
    for line in ("loaded       loud_engine 1.0", "threshold    0.1 (operating point 10)", "refractory   500 ms"):
        assert line in text.splitlines()
    loaded = json.loads(shown(f"{LOUD} --kind command", "--json"))["loaded"]
    assert [(engine["kind"], engine["rate_hz"]) for engine in loaded] == [("command", 16000)]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (["microwakewort"], PluginError, "Did you mean 'microwakeword'"),
        (["ctc:no_such"], InputError, "the folder contains no model"),
        (["microwakeword:no_such"], InputError, "okay_nabu"),
        (["pocketsphinx:frobnicatorx"], InputError, "does not contain: frobnicatorx"),
        (["livekit"], PluginError, r"'livekit' was removed.*process:python3 examples/livekit_engine\.py"),
        (["livekit:house.onnx"], PluginError, r"'livekit' was removed.*process:python3 examples/livekit_engine\.py"),
        (["process:true"], EngineError, "ended with status 0 before its hello"),
        (["no_such.onnx", "-s", "threshold=1"], InputError, "the model file no_such.onnx does not exist"),
        (["microwakeword", "-s", "threshold=1"], InputError, "needs the model"),
        (["-s", "threshold=1"], InputError, "needs the model"),
        (["microwakeword:alexa", "-s", "threshold"], InputError, "is not a setting"),
        (["faster_whisper:tiny.en", "-s", "language="], InputError, "language cannot be '': it must not be empty"),
        (["microwakeword:alexa", "-s", "treshold=1"], InputError, "Did you mean 'threshold'"),
    ],
)
def test_wrong_arguments_are_refused(arguments: list[str], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        CliRunner().invoke(command, arguments, catch_exceptions=False)


def test_operating_points_of_a_named_model_replace_those_of_its_engine() -> None:
    result = succeeded(CliRunner().invoke(command, ['pocketsphinx:"hey jarvis"'], catch_exceptions=False))
    assert [line for line in result.output.splitlines() if line.startswith("operating point  ")][:1] == [
        'operating point  "hey jarvis"'
    ]
    assert sum(line.startswith("10 ") for line in result.output.splitlines()) == 1

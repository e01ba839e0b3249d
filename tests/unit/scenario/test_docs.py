"""Reference, pages and examples are right; every file of broken/ is refused in the right line, with a remedy."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any, get_args, get_type_hints

import numpy as np
import pytest
import soundfile
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ConfigDict, TypeAdapter

from harness.base.findings import Keys
from harness.cli import group
from harness.cli.validate import command
from harness.devices.profiles.profile import load_profile
from harness.devices.profiles.samples import check_samples
from harness.model.effect import EffectCheck, StateWanted
from harness.model.errors import InputError
from harness.model.judgment import Category, RaterKeys
from harness.rating.files.rounds import load_rater_keys, load_training, read_round
from harness.scenario.bench import load_bench
from harness.scenario.scenario import load_scenario, planned_trials
from tests.files import file_with

DOCS = Path(__file__).parents[3] / "docs"


def examples(page: str) -> list[str]:
    return re.findall(r"```yaml\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL)


def test_the_reference_is_generated_from_this_code() -> None:
    root = DOCS.parent
    checked = subprocess.run(
        [sys.executable, root / "setup" / "reference.py", "--check"], capture_output=True, text=True
    )
    assert checked.returncode == 0, checked.stderr


def test_the_examples_of_the_reference_are_valid(tmp_path: Path) -> None:
    (tmp_path / "recordings").mkdir()
    (tmp_path / "scenarios").mkdir()
    soundfile.write(tmp_path / "recordings" / "what_time.wav", np.full(800, 0.1, np.float32), 16000)
    (scenario,) = examples("reference/scenario.md")
    (bench,) = examples("reference/bench.md")
    for name, text in (("scenario", scenario), ("bench", bench)):
        (tmp_path / "scenarios" / f"{name}.yaml").write_text(text, encoding="utf-8")
    assert len(load_scenario(tmp_path / "scenarios" / "scenario.yaml").trials) == 2
    assert len(load_bench(tmp_path / "scenarios" / "bench.yaml").devices) == 2


def test_the_example_of_a_device_is_valid(tmp_path: Path) -> None:
    for page, device in (("reference/device-profiles.md", "lamp"), ("how-to/add-a-device-profile.md", "door_panel")):
        (example,) = examples(page)
        (tmp_path / f"{device}.yaml").write_text(example, encoding="utf-8")
        profile = load_profile(f"{device}.yaml", beside=tmp_path)
        assert profile.id == device
        assert [check.wrong for check in check_samples(profile) if check.wrong] == []


def test_the_examples_of_a_round_are_valid(tmp_path: Path) -> None:
    (tmp_path / "rounds").mkdir()
    for session in ("2025-11-20-kitchen", "2026-03-02-kitchen"):
        (tmp_path / "sessions" / session).mkdir(parents=True)
        (tmp_path / "sessions" / session / "log.sqlite").touch()
    names = ("round", "training", "known", "keys")
    for name, text in zip(names, examples("reference/rounds.md"), strict=True):
        (tmp_path / "rounds" / f"{name}.yaml").write_text(text, encoding="utf-8")
    read = read_round(tmp_path / "rounds" / "round.yaml")
    assert (len(read.exercises) > 20, len(read.sessions), len(read.gold)) == (True, 1, 1)
    assert len(load_training(tmp_path / "rounds" / "training.yaml")) == 2
    assert load_rater_keys(tmp_path / "rounds" / "keys.yaml").category("2") is Category.CORRECT


def test_every_default_key_of_raters_is_in_the_table() -> None:
    text = (DOCS / "reference/keys-rater-keys.md").read_text(encoding="utf-8")
    for action, key in RaterKeys().actions.items():
        (row,) = [line for line in text.splitlines() if line.startswith(f"| `{action.value}` |")]
        assert row.endswith(f"| Default `{key}`. |")


def test_the_example_of_a_light_is_valid(tmp_path: Path) -> None:
    page = (DOCS / "how-to/watch-a-light.md").read_text(encoding="utf-8")
    profile, *_ = re.findall(r'```yaml title="speaker.yaml"\n(.*?)```', page, re.DOTALL)
    (tmp_path / "speaker.yaml").write_text(profile, encoding="utf-8")
    (ring,) = load_profile("speaker.yaml", beside=tmp_path).thresholds
    assert [state.name for state in ring.states] == ["dark", "blue", "red"]


def test_the_example_of_effects_is_valid(tmp_path: Path) -> None:
    (example,) = examples("how-to/check-effects.md")
    (tmp_path / "timers.yaml").write_text(example, encoding="utf-8")
    timer, alarm, lamp = (trial.effect for trial in load_scenario(tmp_path / "timers.yaml").trials)
    assert timer == EffectCheck("a timer of ten minutes runs", (StateWanted("timer", "10 minutes"),))
    assert alarm is not None
    assert lamp is not None
    assert (alarm.later, alarm.at, lamp.later, lamp.question) == (True, "01:00", False, "is the lamp on?")


def test_the_examples_of_rooms_are_valid(tmp_path: Path) -> None:
    (tmp_path / "responses").mkdir()
    for name in ("kitchen_1m.wav", "kitchen_3m.wav"):
        soundfile.write(tmp_path / "responses" / name, np.full(800, 0.1, np.float32), 16000)
    planned = []
    for number, example in enumerate(examples("how-to/simulate-rooms.md")):
        (tmp_path / f"{number}.yaml").write_text(example, encoding="utf-8")
        planned.append(planned_trials(load_scenario(tmp_path / f"{number}.yaml")))
    assert planned == [(20, 12), (20, 2)]


ROOT = Path(__file__).parents[3]
EXAMPLES = sorted((ROOT / "scenarios" / "examples").glob("*.yaml"))
PROCEDURES = sorted((ROOT / "scenarios" / "procedures").glob("*.yaml"))


@pytest.mark.parametrize("example", EXAMPLES + PROCEDURES, ids=lambda path: path.stem)
def test_an_example_is_valid_on_its_bench(example: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    text = example.read_text(encoding="utf-8")
    command_line = re.search(
        rf"^#   harness run scenarios/{example.parent.name}/{example.name} --bench (\S+)", text, re.MULTILINE
    )
    assert command_line, "its first comment says how to run it"
    result = CliRunner().invoke(group, ["validate", str(example), command_line[1]])
    assert result.exit_code == 0, result.output
    assert re.search(r" = [0-9]+ (planned|trials?)\b", result.output)


def test_there_is_an_example_for_each_usual_job() -> None:
    assert len(EXAMPLES) >= 12


BROKEN = Path(__file__).parent / "broken"
FILES = sorted(path.stem for path in BROKEN.glob("*.yaml"))


def expected(path: Path) -> list[tuple[int, str, str]]:
    rows: list[tuple[int, str, str]] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.startswith("# ") or line.count(" | ") != 2:
            break
        number, message, remedy = line.removeprefix("# ").split(" | ")
        rows.append((int(number), message, remedy))
    return rows


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """broken/ beside a few sounds, and a file outside that nobody may reach."""
    root = tmp_path_factory.mktemp("library")
    folder = root / "broken"
    shutil.copytree(BROKEN, folder)
    sounds = folder / "sounds"
    sounds.mkdir()
    soundfile.write(sounds / "tone.wav", np.full(800, 0.1, np.float32), 16000)
    soundfile.write(root / "outside.wav", np.full(800, 0.1, np.float32), 16000)
    (root / "test_broken.py").write_text("outside\n", encoding="utf-8")
    (sounds / "words.wav").write_text("no sound\n", encoding="utf-8")
    (sounds / "escape.wav").symlink_to(root / "outside.wav")
    return folder


def test_enough_broken_examples_exist() -> None:
    assert len(FILES) >= 40


@pytest.mark.parametrize("name", FILES)
def test_broken_file_is_refused_with_place_and_remedy(name: str, folder: Path) -> None:
    path = folder / f"{name}.yaml"
    mistakes = expected(path)
    assert mistakes

    plain = CliRunner().invoke(command, [str(path)])
    assert plain.exit_code == 2
    assert isinstance(plain.exception, SystemExit)
    assert "Traceback" not in plain.output
    assert str(path) in plain.stderr

    problems = json.loads(CliRunner().invoke(command, ["--json", str(path)]).stdout)["problems"]
    for line, message, remedy in mistakes:
        fitting = [
            problem
            for problem in problems
            if problem["line"] == line and message in problem["what"] and remedy in problem["remedy"]
        ]
        assert fitting, (line, message, remedy, problems)
        assert all(problem["file"] == str(path) and problem["column"] for problem in fitting)
    assert len(problems) == len(mistakes), problems
    assert all(problem["remedy"] for problem in problems)
    places = [(problem["file"], problem["line"], problem["column"]) for problem in problems]
    assert places == sorted(places)


@pytest.mark.parametrize("name", ["key_unknown", "syntax_alias", "recording_is_no_sound"])
def test_the_command_itself_ends_with_2_and_no_traceback(name: str, folder: Path) -> None:
    harness = [sys.executable, "-c", "from harness.cli import main; main()", "validate", str(folder / f"{name}.yaml")]
    result = subprocess.run(harness, capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 2
    assert f"{name}.yaml:" in result.stderr
    assert "Traceback" not in result.stderr
    assert not result.stdout


VOICE = {"engine": "espeak", "name": "en-us", "rate_wpm": 160}
SCENARIO: dict[str, Any] = {
    "scenario": "s",
    "needs": ["microphone"],
    "assets": {"here": "."},
    "variables": {"city": "Lincoln"},
    "voices": {"ann": VOICE},
    "defaults": {"voice": "ann", "noise": {"kind": "pink", "snr_db": 3}, "reprompt": {"max_attempts": 2}},
    "stimuli": [{"id": "q", "text": "hello ${city}", "alternatives": ["hi"]}],
    "trials": [{"id": "t", "query": "q", "repeat": 2, "close_dialogue": {"say": "bye"}}],
    "matrix": {
        "axes": {"voice": ["ann", VOICE], "gap_ms": [1, 2], "noise": [None]},
        "exclude": [{"gap_ms": 1, "voice": "ann"}],
    },
    "limits": {"max_inconclusive": 1},
}
BENCH: dict[str, Any] = {
    "bench": "b",
    "labels": {"a": "b"},
    "loudspeakers": {"near": {"driver": "test_speaker", "sound_device": "x", "rooms": ["hall"]}},
    "microphone": {"driver": "test_ears"},
    "monitor": {"same_as": "near"},
    "devices": {"one": {"profile": "reference_assistant", "connection": {"same_as": "near"}}},
}
PROFILE: dict[str, Any] = {
    "device": "d",
    "wake_phrases": ["hey"],
    "reports": ["status"],
    "close_dialogue": {"say": "bye"},
    "mappings": [
        {"topic": "t", "kind": "status", "fields": {"state": "/s"}, "values": {"a": "idle"}, "when": {"/x": 1}},
        {"topic": "t", "match": "a (?P<text>.*)", "kind": "log", "fields": {"text": "{text}"}, "score_scale": 2},
    ],
    "console": {"baud": 9600, "time": "(?P<time>x)", "clock": "ms", "framing": "lines", "log_lines_per_s": 1.5},
    "frames": {"head": "F4", "length_at": 1, "body_from": 2, "tail": "FB", "checksum": "sum8"},
    "audio": {"dialogue": "vh", "rate_hz": 16000},
    "lines": [
        {"match": "(?P<time>x)", "clock": "s", "kind": "wake", "values": {"a": "b"}, "fields": {"phrase": "{time}"}},
        {"match": "a", "kind": "intent", "more": ["(?P<name>x)"], "until": "b", "when": {"name": "x"}, "within_s": 2},
        {"match": "a", "kind": "wake", "more": ["(?P<phrase>x)(?P<score>y)"], "block": {"threshold": 0.5}},
    ],
    "samples": [
        {"lines": ["a"], "gives": [{"kind": "wake", "phrase": "x", "score": 0.5}]},
        {"topic": "t", "payload": {"a": 1}, "gives": [{"kind": "intent", "slots": {"a": "b"}}]},
    ],
}
LOADERS: list[tuple[dict[str, Any], Callable[[Path], object]]] = [
    (SCENARIO, load_scenario),
    (BENCH, load_bench),
    (PROFILE, lambda path: load_profile(path, beside=path.parent)),
]
VALUES = st.sampled_from([
    None, True, 0, -1, 0.5, 10**17, "", "x", "near", "ann", "q", "a:b", "../..", "$", "${x}", [], {}, [[]], [None],
    {"a": None}, {"": ""}, [{}], [1, "a"], {"driver": []}, {"same_as": 1}, {"say": 1}, "x" * 2000,
    {"driver": "test_lost"},
])  # fmt: skip


def paths(value: Any) -> list[tuple[str | int, ...]]:
    steps: list[tuple[str | int, Any]] = []
    if isinstance(value, dict):
        steps = list(value.items())
    elif isinstance(value, list):
        steps = list(enumerate(value))
    return [(), *((step, *rest) for step, inner in steps for rest in paths(inner))]


def replaced(value: Any, path: tuple[str | int, ...], new: object) -> Any:
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = replaced(value[path[0]], path[1:], new)
    return copy


@pytest.mark.parametrize(("document", "load"), LOADERS, ids=["scenario", "bench", "profile"])
def test_the_unmutated_file_is_valid(document: dict[str, Any], load: Callable[[Path], object], tmp_path: Path) -> None:
    path = file_with(tmp_path / "x.yaml", json.dumps(document))
    load(path)


@pytest.mark.parametrize(("document", "load"), LOADERS, ids=["scenario", "bench", "profile"])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(choice=st.data())
def test_any_value_anywhere_is_read_or_refused(
    document: dict[str, Any], load: Callable[[Path], object], choice: st.DataObject
) -> None:
    text = document
    for _ in range(choice.draw(st.integers(1, 3))):
        text = replaced(text, choice.draw(st.sampled_from(paths(text)[1:])), choice.draw(VALUES))
    with tempfile.TemporaryDirectory() as folder:
        path = file_with(Path(folder) / "x.yaml", json.dumps(text))
        try:
            assert load(path) is not None
        except InputError as error:
            message = str(error)
            assert str(path) in message or "the device profile" in message
            assert "Traceback" not in message


def choices_of_keys() -> Iterator[tuple[str, Any, StrEnum]]:
    """Each key whose values are words: its name, its type and a word."""
    classes = list(Keys.__subclasses__())
    for keys in classes:
        classes.extend(keys.__subclasses__())
        for name, annotation in get_type_hints(keys, include_extras=True).items():
            for part in (annotation, *get_args(annotation)):
                if isinstance(part, type) and issubclass(part, StrEnum):
                    yield f"{keys.__name__}.{name}", annotation, next(iter(part))


def test_a_key_takes_its_words_as_a_file_has_them() -> None:
    choices = list(choices_of_keys())
    assert len(choices) > 30
    for name, annotation, word in choices:
        read = TypeAdapter(annotation, config=ConfigDict(strict=True)).validate_python(word.value)
        assert read is word, name

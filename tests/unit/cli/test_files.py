"""`harness init`, `validate` and `schema`, as a user types them."""

from __future__ import annotations

import json
import os
import pty
import shlex
import sys
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from harness.cli import FORMER, group
from harness.cli.command import Option
from harness.cli.json_schema import json_schema
from harness.cli.run import print_undecidable
from harness.model.choices import FileKind
from harness.model.errors import InputError
from tests.command import harness, succeeded
from tests.unit.cli.walking import commands

SCENARIO = "scenario: s\nneeds: [NEED]\nstimuli: [{id: q, text: hello}]\ntrials: [{query: q, repeat: 3}]\n"
BENCH = """\
bench: b
loudspeakers: {near: {driver: in_process}}
microphone: {same_as: near}
devices: {one: {profile: reference_assistant_black_box}}
"""


def test_init_writes_valid_files_and_never_overwrites(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    assert harness("init", folder).exit_code == 0
    checked = succeeded(harness("validate", folder))
    assert "4 trials × 1 cell = 4 planned" in checked.stdout
    (folder / "bench.yaml").write_text("mine", encoding="utf-8")
    (folder / "scenario.yaml").unlink()
    repeated = harness("init", folder)
    assert isinstance(repeated.exception, InputError)
    assert repeated.exception.exit_code == 2
    assert (folder / "bench.yaml").read_text(encoding="utf-8") == "mine"
    assert not (folder / "scenario.yaml").exists()


def test_init_writes_a_valid_profile_for_a_board(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    succeeded(harness("init", folder, "--board", "door_panel", "--port", "/dev/tty: odd"))
    assert sorted(path.name for path in folder.iterdir()) == ["bench.yaml", "door_panel.yaml", "scenario.yaml"]
    checked = succeeded(harness("validate", folder))
    assert "20 wake + 6 ambient = 26 trials and 4 probes" in checked.stdout
    assert "would be skipped" not in checked.stdout
    tested = harness("devices", "test", folder / "door_panel.yaml")
    assert "2 of 2 samples pass" in tested.stdout
    for wrong in ("Door", "scenario", "near", "../x", "123", "1e5", "null"):
        refused = harness("init", tmp_path / "other", "--board", wrong)
        assert isinstance(refused.exception, InputError)
        assert not (tmp_path / "other").exists()


@pytest.mark.parametrize(
    ("kind", "profile", "connection", "planned"),
    [
        ("virtual_lab", None, "{driver: mqtt, address: lab}", "4 trials × 1 cell = 4 planned"),
        ("sound", "assistant", None, "4 trials × 1 cell = 4 planned"),
        ("serial", "board", "{driver: serial, port: /dev/ttyUSB0}", "20 wake + 6 ambient = 26 trials and 4 probes"),
        ("mqtt", "device", "{driver: mqtt, address: localhost}", "20 wake + 6 ambient = 26 trials and 4 probes"),
        ("esphome", None, "{driver: esphome, address: voice-pe.local}", "20 wake + 6 ambient = 26 trials and 4 probes"),
        (
            "wyoming",
            None,
            'address: "0.0.0.0:10600", server: localhost:10700}',
            "20 wake + 6 ambient = 26 trials and 4 probes",
        ),
        (
            "ovos",
            None,
            '{driver: websocket, url: "ws://localhost:8181/core"}',
            "20 wake + 6 ambient = 26 trials and 4 probes",
        ),
        (
            "home_assistant",
            None,
            'url: "http://homeassistant.local:8123"}',
            "20 wake + 6 ambient = 26 trials and 4 probes",
        ),
        (
            "rhasspy",
            None,
            "address: localhost:12183, topic_device: default",
            "20 wake + 6 ambient = 26 trials and 4 probes",
        ),
        ("command", "device", 'command: "adb logcat -v epoch -T 1"}', "20 wake + 6 ambient = 26 trials and 4 probes"),
    ],
)
def test_init_writes_what_each_kind_of_bench_needs(
    kind: str, profile: str | None, connection: str | None, planned: str, tmp_path: Path
) -> None:
    assert harness("init", tmp_path, "--bench-kind", kind).exit_code == 0
    assert {path.name for path in tmp_path.iterdir()} == {"bench.yaml", "scenario.yaml", f"{profile or 'bench'}.yaml"}
    bench = (tmp_path / "bench.yaml").read_text(encoding="utf-8")
    assert connection in bench if connection else "connection" not in bench
    assert ("microphone:" in bench) == (kind in ("virtual_lab", "sound"))
    checked = succeeded(harness("validate", tmp_path))
    assert planned in checked.stdout
    assert "would be skipped" not in checked.stdout
    if kind in ("serial", "mqtt", "command"):
        assert "samples pass" in harness("devices", "test", tmp_path / f"{profile}.yaml").stdout


@pytest.mark.parametrize(
    ("options", "connection"),
    [
        (("--address", "10.0.0.2:1883"), '{driver: mqtt, address: "10.0.0.2:1883"}'),
        (("--address", "broker.lab:1883", "--board", "lamp"), "{driver: mqtt, address: broker.lab:1883}"),
        (("--port", "socket://host:4000"), '{driver: serial, port: "socket://host:4000"}'),
        (("--port", "on"), '{driver: serial, port: "on"}'),
        (("--esphome", "10.0.0.2:6054", "--key-env", "PE"), 'esphome, address: "10.0.0.2:6054", key_env: PE}'),
        (("--wyoming", "10.0.0.3"), 'server: "10.0.0.3:10700"}'),
        (("--wyoming", "[2001:db8::9]:10700"), 'server: "[2001:db8::9]:10700"}'),
        (("--wyoming", "[2001:db8::9]"), 'server: "[2001:db8::9]:10700"}'),
        (("--esphome", "[2001:db8::9]"), 'address: "[2001:db8::9]"}'),
        (("--home-assistant", "[2001:db8::9]"), 'url: "http://[2001:db8::9]:8123"}'),
        (("--ovos", "ovos.local"), '{driver: websocket, url: "ws://ovos.local:8181/core"}'),
        (("--rhasspy", "10.0.0.5"), '{driver: mqtt, address: "10.0.0.5:12183", topic_device: default'),
        (("--rhasspy", "pi.local:1883"), "address: pi.local:1883"),
        (("--home-assistant", "10.0.0.4"), '{driver: home_assistant, url: "http://10.0.0.4:8123"}'),
        (("--home-assistant", "https://ha.example"), '{driver: home_assistant, url: "https://ha.example"}'),
        (("--command", "true"), '{driver: command, command: "true"}'),
        (("--command", "sh -c 'echo \"ü\"'"), '{driver: command, command: "sh -c \'echo \\"ü\\"\'"}'),
    ],
)
def test_an_option_implies_the_kind_of_bench(options: tuple[str, ...], connection: str, tmp_path: Path) -> None:
    assert harness("init", tmp_path, *options).exit_code == 0
    assert connection in (tmp_path / "bench.yaml").read_text(encoding="utf-8")
    assert harness("validate", tmp_path).exit_code == 0


@pytest.mark.parametrize(
    "kind", ["sound", "serial", "mqtt", "command", "esphome", "wyoming", "ovos", "home_assistant", "rhasspy"]
)
def test_init_takes_the_wake_phrase_of_the_device(kind: str, tmp_path: Path) -> None:
    assert harness("init", tmp_path, "--bench-kind", kind, "--phrase", "ok lampe").exit_code == 0
    text = "".join(path.read_text(encoding="utf-8") for path in tmp_path.iterdir())
    assert "wake_phrases: [ok lampe]" in text
    assert "hey computer" not in text
    assert harness("validate", tmp_path).exit_code == 0
    if kind in ("serial", "mqtt", "command"):
        profile = tmp_path / ("board.yaml" if kind == "serial" else "device.yaml")
        assert "samples pass" in harness("devices", "test", profile).stdout


@pytest.mark.parametrize("phrase", ["on", "87%", " ", "a: b", "x]", "it's"])
def test_a_phrase_that_yaml_would_read_otherwise_is_refused(phrase: str, tmp_path: Path) -> None:
    refused = harness("init", tmp_path / "new", "--bench-kind", "serial", "--phrase", phrase)
    assert isinstance(refused.exception, InputError)
    assert not (tmp_path / "new").exists()


def test_an_option_of_another_kind_of_bench_is_refused(tmp_path: Path) -> None:
    for options in (
        ("sound", "--port", "x"),
        ("serial", "--address", "x"),
        ("virtual_lab", "--board", "lamp"),
        ("wyoming", "--key-env", "KEY"),
        ("esphome", "--ovos", "x"),
    ):
        refused = harness("init", tmp_path / "new", "--bench-kind", *options)
        assert isinstance(refused.exception, InputError)
        assert "does not apply" in refused.exception.what
    assert not (tmp_path / "new").exists()


def test_options_of_two_kinds_of_bench_are_refused_by_their_names(tmp_path: Path) -> None:
    refused = harness("init", tmp_path / "new", "--home-assistant", "x", "--board", "lamp", "--key-env", "KEY")
    assert isinstance(refused.exception, InputError)
    assert refused.exception.what == "--key-env and --home-assistant apply to different kinds of bench"
    assert not (tmp_path / "new").exists()


def test_a_key_variable_that_cannot_be_is_not_called_an_address(tmp_path: Path) -> None:
    refused = harness("init", tmp_path / "new", "--esphome", "host", "--key-env", "\x1b")
    assert isinstance(refused.exception, InputError)
    assert "name of an environment variable" in refused.exception.what


@pytest.mark.parametrize(
    "options",
    [
        ("--wyoming", "ws://host"),
        ("--wyoming", "host:0"),
        ("--wyoming", "host:70000"),
        ("--esphome", "two words"),
        ("--ovos", "host/core"),
        ("--home-assistant", "ws://host"),
        ("--ovos", ""),
        ("--port", " "),
        ("--command", ""),
        ("--command", "echo 'open"),
        ("--command", "echo \x1b[31m"),
        ("--esphome", "host", "--key-env", "\x1b"),
    ],
)
def test_init_refuses_an_impossible_device_and_writes_nothing(options: tuple[str, ...], tmp_path: Path) -> None:
    refused = harness("init", tmp_path / "new", *options)
    assert isinstance(refused.exception, InputError)
    assert "\x1b" not in str(refused.exception)
    assert not (tmp_path / "new").exists()


def test_the_log_of_a_program_is_followed_as_written(tmp_path: Path) -> None:
    assert harness("init", tmp_path, "--command", "sh -c 'echo wake word hey computer 87%; sleep 9'").exit_code == 0
    (line,) = [line for line in (tmp_path / "device.yaml").read_text("utf-8").splitlines() if "devices monitor" in line]
    words = shlex.split(line.removeprefix("#").replace("devices monitor", "devices test"))[1:]
    watched = succeeded(
        harness(*(str(tmp_path / word) if word == "device.yaml" else word for word in words), "--seconds", "5")
    )
    assert "1 line: 1 mapped" in watched.stdout


@pytest.mark.parametrize(
    ("answers", "options"),
    [
        ("\n", ("--bench-kind", "virtual_lab")),
        ("2\nBad Name\nscenario\n\n87%\nhey panel\n", ("--bench-kind", "sound", "--phrase", "hey panel")),
        ("3\ndoor\n/dev/ttyACM1\n\n", ("--board", "door", "--port", "/dev/ttyACM1")),
        ("5\npe\n10.0.0.2\nPE_KEY\nokay nabu\n", ("--board", "pe", "--esphome", "10.0.0.2", "--key-env", "PE_KEY")),
        ("6\n\n10.0.0.3\nhej dörr\n", ("--phrase", "hej dörr", "--wyoming", "10.0.0.3")),
        ("9\nphone\nadb logcat\nhey phone\n", ("--phrase", "hey phone", "--board", "phone", "--command", "adb logcat")),
        ("11\n4\nlamp\na b:0\nbroker.lab\n\n", ("--board", "lamp", "--address", "broker.lab")),
    ],
)
def test_on_a_terminal_init_asks_and_every_answer_is_an_option(
    answers: str, options: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = pty.openpty()
    os.write(ours, answers.encode())
    with (
        open(theirs, encoding="utf-8") as stdin,
        open(theirs, "w", encoding="utf-8", closefd=False) as shown,
        monkeypatch.context() as patched,
    ):
        for name, stream in (("stdin", stdin), ("stdout", shown), ("stderr", shown)):
            patched.setattr(sys, name, stream)
        assert not group.main(["init", str(tmp_path / "asked")], "harness", standalone_mode=False)
    os.close(ours)
    assert harness("init", tmp_path / "given", *options).exit_code == 0
    texts = [{path.name: path.read_bytes() for path in (tmp_path / folder).iterdir()} for folder in ("asked", "given")]
    assert texts[0] == texts[1]


def test_the_projects_own_files_are_valid() -> None:
    root = Path(__file__).parents[3]
    succeeded(harness("validate", root / "scenarios", root / "devices"))


def test_shipped_grammars_and_label_sets_are_found_in_any_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    grammar, label_set = "scenarios/understanding/clock.yaml", "scenarios/labels/generated.yaml"
    sizes = ("--train", "20", "--dev", "5", "--test", "5")
    succeeded(harness("understand", "generate", grammar, *sizes, "--output", "data"))
    succeeded(harness("understand", "annotate", "new", "hall", "--data", "data/train", "--labels", label_set))
    counted = succeeded(harness("understand", "distribution", "data", "--labels", label_set))
    assert "set_timer" in counted.stdout


def test_a_scenario_and_a_bench_are_checked_together(tmp_path: Path) -> None:
    scenario, bench = tmp_path / "s.yaml", tmp_path / "b.yaml"
    bench.write_text(BENCH, encoding="utf-8")
    scenario.write_text(SCENARIO.replace("NEED", "monitor"), encoding="utf-8")
    skipped = succeeded(harness("validate", scenario, bench))
    assert "would be skipped" in skipped.stdout
    assert "monitor" in skipped.stdout
    unknown = SCENARIO.replace("NEED", "").replace("query: q", "query: q, device: two")
    scenario.write_text(unknown, encoding="utf-8")
    assert harness("validate", scenario).exit_code == 0
    refused = harness("validate", scenario, bench)
    assert refused.exit_code == 2
    assert f"{scenario}:4:" in refused.stderr
    assert "Devices: one" in refused.stderr


@pytest.mark.parametrize(
    ("begins", "words"),
    [
        ("harness init mylab ", ("--bench-kind", "sound")),
        ("harness init --board door_panel", ("--board", "door_panel", "--port", "/dev/ttyUSB0")),
    ],
)
def test_the_readme_has_the_next_steps_of_init(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, begins: str, words: tuple[str, ...]
) -> None:
    readme = (Path(__file__).parents[3] / "README.md").read_text(encoding="utf-8").replace(".venv/bin/", "")
    lines = iter(readme[readme.index(begins) :].splitlines()[1:])
    monkeypatch.chdir(tmp_path)
    _, steps = harness("init", *words, "mylab").stdout.split("Next:\n")
    for step in steps.splitlines():
        assert any(line.startswith(step.strip()) for line in lines), step


def test_init_for_the_virtual_lab_ends_with_a_run_that_starts_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    _, steps = harness("init", "mylab").stdout.split("Next:\n")
    assert [step.strip() for step in steps.splitlines()] == [
        "harness check mylab",
        "harness check rehearse mylab/scenario.yaml --bench mylab/bench.yaml",
        "harness run mylab/scenario.yaml --bench mylab/bench.yaml --yes",
    ]


@pytest.mark.parametrize(("folder", "argument"), [("sound", "./sound"), ("my lab", "'my lab'")])
def test_the_next_steps_of_init_work_for_a_folder_of_any_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str, argument: str
) -> None:
    monkeypatch.chdir(tmp_path)
    _, steps = harness("init", "--board", "mine", "--port", "/dev/ttyUSB0", folder).stdout.split("Next:\n")
    check = f"harness check {argument}"
    assert check in [step.strip() for step in steps.splitlines()]
    assert harness(*shlex.split(check)[1:]).exit_code == 0
    monitor = steps.splitlines()[0].strip()
    assert shlex.split(monitor)[4] == f"{folder}/mine.yaml"


def test_init_scenario_for_a_black_box_needs_no_person(tmp_path: Path) -> None:
    assert harness("init", "--bench-kind", "sound", tmp_path).exit_code == 0
    scenario, bench = tmp_path / "scenario.yaml", tmp_path / "bench.yaml"
    rehearse = ("rehearse", scenario, "--bench", bench, "--runs", "20", "--nights", "1")
    assert "person" not in harness("validate", tmp_path).stdout
    decided = succeeded(harness(*rehearse))
    assert "min_answered_share" in decided.stdout
    assert "person" not in decided.stdout


def test_a_plan_that_is_too_short_for_a_percentile_is_named(tmp_path: Path) -> None:
    assert harness("init", "--bench-kind", "sound", tmp_path).exit_code == 0
    scenario = tmp_path / "scenario.yaml"
    text = scenario.read_text(encoding="utf-8").replace("# max_latency_p95_ms", "max_latency_p95_ms")
    scenario.write_text(text, encoding="utf-8")
    note = "max_latency_p95_ms cannot pass with 4 trials: p95 needs 20. Raise `repeat`"
    assert f"{scenario}: note: {note}" in harness("validate", tmp_path).stdout
    scenario.write_text(text.replace("repeat: 2", "repeat: 18"), encoding="utf-8")
    assert "cannot pass" not in harness("validate", tmp_path).stdout


def test_rehearsal_does_not_count_on_decisions_by_a_person(tmp_path: Path) -> None:
    scenario, bench = tmp_path / "s.yaml", tmp_path / "b.yaml"
    scenario.write_text(SCENARIO.replace("NEED", "") + "limits: {min_recognised_share: 0.5}\n", encoding="utf-8")
    bench.write_text(BENCH.replace("same_as: near", "driver: in_process"), encoding="utf-8")
    rehearse = ("rehearse", scenario, "--bench", bench, "--runs", "20", "--nights", "1")
    note = "3 of 3 trials need a person to say whether one understood"
    assert note in harness("validate", scenario, bench).stdout
    attended = succeeded(harness(*rehearse))
    assert "if answered" in attended.stdout
    assert note in attended.stdout
    bench.write_text(f"{bench.read_text('utf-8')}operator: absent\n", encoding="utf-8")
    assert "the operator is absent" in harness("validate", scenario, bench).stdout
    alone = harness(*rehearse)
    assert alone.exit_code == 1
    assert "nothing in this plan produces a result for it" in alone.stdout
    unasked = scenario.read_text("utf-8").replace("query: q", "query: q, evidence: none")
    scenario.write_text(unasked, encoding="utf-8")
    assert "min_recognised_share cannot be decided" in harness("validate", scenario, bench).stdout
    assert harness(*rehearse).exit_code == 1


@pytest.mark.parametrize(
    ("options", "dashboard", "noted"),
    [((), True, False), ((), False, True), (("--unattended",), True, True), (("--attended",), False, False)],
)
def test_a_run_says_at_its_start_that_nobody_will_answer(
    options: tuple[str, ...], dashboard: bool, noted: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scenario, bench = tmp_path / "s.yaml", tmp_path / "b.yaml"
    scenario.write_text(SCENARIO.replace("NEED", "") + "limits: {max_latency_p95_ms: 900}\n", encoding="utf-8")
    bench.write_text(BENCH.replace("same_as: near", "driver: in_process"), encoding="utf-8")
    result = harness("run", scenario, "--bench", bench, "--sessions", tmp_path / "sessions", "--prepare", *options)
    print_undecidable(Path(result.stdout.strip()), has_dashboard=dashboard)
    notes = capsys.readouterr().err
    assert ("3 of 3 trials need a person" in notes) is noted
    assert "note: max_latency_p95_ms cannot pass with 3 trials" in notes


def test_a_language_without_numerals_is_stated(tmp_path: Path) -> None:
    scenario, bench = tmp_path / "s.yaml", tmp_path / "b.yaml"
    scenario.write_text(SCENARIO.replace("NEED", ""), encoding="utf-8")
    bench.write_text(BENCH, encoding="utf-8")
    assert "cannot be read" not in harness("validate", scenario, bench).stdout
    maltese = "defaults: {voice: {engine: espeak, name: mt, language: mt}}\nstimuli"
    scenario.write_text(scenario.read_text("utf-8").replace("stimuli", maltese, 1), encoding="utf-8")
    assert "numerals cannot be read in mt" in harness("validate", scenario, bench).stdout
    as_written = "recognised: {normalisation: plain}\nstimuli"
    scenario.write_text(scenario.read_text("utf-8").replace("stimuli", as_written, 1), encoding="utf-8")
    assert "cannot be read" not in harness("validate", scenario, bench).stdout


def test_a_list_that_is_read_in_english_is_stated_for_other_languages(tmp_path: Path) -> None:
    scenario, bench = tmp_path / "s.yaml", tmp_path / "b.yaml"
    (tmp_path / "german.yaml").write_text("normalisation: german\nbase: spoken\nsame: [[halb 8, 7 uhr 30]]\n", "utf-8")
    list_used = "recognised: {normalisation: german.yaml}\nstimuli"
    scenario.write_text(SCENARIO.replace("NEED", "").replace("stimuli", list_used, 1), encoding="utf-8")
    bench.write_text(BENCH, encoding="utf-8")
    assert "are read in English" not in harness("validate", scenario, bench).stdout
    german = "defaults: {voice: {engine: espeak, name: de, language: de}}\nstimuli"
    scenario.write_text(scenario.read_text("utf-8").replace("stimuli", german, 1), encoding="utf-8")
    note = "numerals in 'german' are read in English: write them as words in de"
    assert note in harness("validate", scenario, bench).stdout


def test_json_lists_planned_and_skipped_files(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(SCENARIO.replace("NEED", ""), encoding="utf-8")
    (tmp_path / "compose.yml").write_text("services: {web: {image: x}}\n", encoding="utf-8")
    (tmp_path / "typo.yaml").write_text("scenaro: s\n", encoding="utf-8")
    result = harness("validate", "--json", tmp_path)
    assert result.exit_code == 2
    report = json.loads(result.stdout)
    assert report["files"] == [
        {"file": str(tmp_path / "s.yaml"), "kind": "scenario", "id": "s", "trials": 3, "cells": 1, "planned": 3}
    ]
    assert report["left_alone"] == [str(tmp_path / "compose.yml")]
    assert [(p["file"], p["line"], p["column"]) for p in report["problems"]] == [(str(tmp_path / "typo.yaml"), 1, 1)]
    assert "'scenario'" in report["problems"][0]["remedy"]


def test_json_lists_grammars(tmp_path: Path) -> None:
    path = tmp_path / "g.yaml"
    path.write_text("grammar: tea\nintents: [{intent: ask, say: [tea please]}]\n", encoding="utf-8")
    report = json.loads(harness("validate", "--json", tmp_path).stdout)
    assert report["files"] == [{"file": str(path), "kind": "grammar", "id": "tea"}]


def test_positions_do_not_multiply_what_the_bench_injects(tmp_path: Path) -> None:
    texts = {
        "s.yaml": "scenario: s\ntrials: [{kind: wake, repeat: 2}]\nmatrix: {axes: {position: [near, far]}}\n",
        "box.yaml": "device: box\nwake_phrases: [computer]\nreports: [wake]\n",
        "b.yaml": "bench: b\n"
        "loudspeakers: {a: {driver: in_process, position: near}, b: {driver: in_process, position: far}}\n"
        "devices: {box: {profile: box, connection: {driver: in_process, injection: true}}}\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert "scenario s: 2 wake = 2 trials" in harness("validate", tmp_path).stdout
    report = json.loads(harness("validate", "--json", tmp_path).stdout)
    assert report["files"][0]["planned"] == 2


def test_an_empty_folder_and_a_missing_file_are_problems(tmp_path: Path) -> None:
    result = harness("validate", tmp_path, tmp_path / "none.yaml")
    assert result.exit_code == 2
    assert "2 problems in 2 files" in result.stderr


def test_file_content_is_escaped_before_it_reaches_the_terminal(tmp_path: Path) -> None:
    path = tmp_path / "\x1b]0;x\x07.yaml"
    path.write_text("scenario: s\n", encoding="utf-8")
    result = harness("validate", path)
    assert result.exit_code == 2
    assert "\x1b" not in result.output
    assert "\x07" not in result.output


def _objects(schema: Any) -> list[dict[str, Any]]:
    objects: list[dict[str, Any]] = []
    if isinstance(schema, dict):
        objects += [schema] if "properties" in schema else []
        for value in schema.values():
            objects += _objects(value)
    elif isinstance(schema, list):
        for value in schema:
            objects += _objects(value)
    return objects


@pytest.mark.parametrize("kind", FileKind)
def test_every_key_of_a_schema_is_described_and_none_else_is_allowed(kind: FileKind) -> None:
    schema = json_schema(kind)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert next(iter(schema["properties"])) == kind.value
    for node in _objects(schema):
        assert node["additionalProperties"] is False
        for key, value in node["properties"].items():
            assert value.get("description"), key


def test_a_bench_schema_knows_the_options_of_installed_drivers() -> None:
    branches = {branch["title"]: branch for branch in json_schema(FileKind.BENCH)["$defs"]["EquipmentKeys"]["anyOf"]}
    assert branches["driver in_process"]["properties"]["driver"]["const"] == "in_process"
    assert "speed" in branches["driver in_process"]["properties"]
    assert branches["driver loudspeaker"]["required"] == ["driver", "sound_device"]


def test_a_scenario_schema_has_closed_sets() -> None:
    schema = json_schema(FileKind.SCENARIO)
    assert schema["$defs"]["Evidence"]["enum"] == ["auto", "device", "operator", "none"]
    assert "espeak" in schema["$defs"]["VoiceKeys"]["properties"]["engine"]["enum"]


def test_schemas_are_printed_or_written(tmp_path: Path) -> None:
    printed = json.loads(harness("schema", "--kind", "device").stdout)
    assert printed == json_schema(FileKind.DEVICE)
    of_rating = {"round", "training", "gold", "rater_keys"}
    kinds = {"scenario", "bench", "conditions", "device", "normalisation", "label_set", "grammar"} | of_rating
    assert set(json.loads(harness("schema").stdout)) == kinds
    assert harness("schema", "--output", tmp_path / "schemas").exit_code == 0
    names = {path.name for path in (tmp_path / "schemas").iterdir()}
    assert names == {f"{kind}.schema.json" for kind in kinds}


WRITTEN = [
    (words, option)
    for words, command in commands(group)
    if not words.startswith(tuple(f"harness {name}" for name in FORMER))
    for option in command.params
    if isinstance(option, Option) and {"--html", "--junit", "--json", "--csv", "--parquet", "--jsonl"} & {*option.opts}
]


@pytest.mark.parametrize(("words", "option"), WRITTEN, ids=lambda value: getattr(value, "name", value))
def test_an_option_that_writes_a_file_refuses_a_missing_folder_before_work_begins(words: str, option: Option) -> None:
    if option.name == "report" and words.startswith("harness run"):  # a CI job finds its report whatever happens
        assert not option.writes
        return
    refusal = "no/such/file.json: the folder no/such does not exist. Create it: mkdir -p no/such"
    with pytest.raises(InputError) as refused:
        option.type_cast_value(click.Context(click.Command(words)), "no/such/file.json")
    assert str(refused.value) == refusal


def test_written_pages_and_replaced_files_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("r.trn").write_text("a b (u1)\n")
    words = ["score", "-r", "r.trn", "-H", "r.trn", "--html", "page.html", "--json", "score.json"]
    first, second = (CliRunner().invoke(group, words) for _ in range(2))
    assert first.exit_code == 0
    assert sorted(first.stderr.splitlines()) == ["harness: wrote page.html", "harness: wrote score.json"]
    assert sorted(second.stderr.splitlines()) == ["harness: replaced page.html", "harness: replaced score.json"]
    wrong = CliRunner().invoke(group, ["score", "-r", "gone.trn", "-H", "r.trn", "--html", "page.html"])
    assert "replaced" not in wrong.stderr
    fresh = CliRunner().invoke(group, ["score", "-r", "gone.trn", "-H", "r.trn", "--html", "none.html"])
    assert "wrote" not in fresh.stderr

"""Memory trials in scenario files, and whether a bench can run them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.base import plugins
from harness.cli import validate
from harness.model.bench import Bench, ObservationKind, OperatorPresence
from harness.model.errors import InputProblems, UnmetNeed
from harness.model.scenario import Evidence, MemorySpec, Scenario, TrialKind
from harness.scenario.bench import load_bench
from harness.scenario.scenario import load_scenario, planned_of, planned_trials
from harness.scenario.together import check_together
from harness.scenario.trials import wait_notes
from harness.session.plan import plan

SCENARIOS = Path(__file__).parents[3] / "scenarios"
HEAD = """\
scenario: memory
variables: {sum: sixty one}
stimuli:
  - {id: product, text: what is seven times eight}
  - {id: add_five, text: add five to that}
trials:
  - id: memory
    kind: memory
    repeat: 6
    query: product
    follow_up: add_five
"""
BODY = """\
    waits_s: [2, 4.5, 8]
    shows: ["${sum}"]
    forgets: [sorry]
"""
FIRST = HEAD.count("\n") + 1
"""The line of `waits_s`."""


def read(folder: Path, text: str) -> Scenario:
    path = folder / "memory.yaml"
    path.write_text(text, encoding="utf-8")
    return load_scenario(path)


def problems(folder: Path, text: str) -> list[tuple[int, str]]:
    with pytest.raises(InputProblems) as refused:
        read(folder, text)
    return [(one.place.line if one.place else 0, one.what) for one in refused.value.problems]


def test_a_memory_trial_is_read(tmp_path: Path) -> None:
    read_back = read(tmp_path, HEAD + BODY)
    (trial,) = read_back.trials
    assert (trial.kind, trial.query, trial.repeat) == (TrialKind.MEMORY, "product", 6)
    assert trial.memory == MemorySpec("add_five", (2.0, 4.5, 8.0), ("sixty one",), ("sorry",))
    assert planned_of(trial, read_back.matrix) == 2 * 3 * 6
    twice = read(tmp_path, HEAD + BODY + "matrix: {axes: {gap_ms: [100, 300]}}\n")
    assert planned_trials(twice) == (2 * 3 * 6, 2)
    assert len(plan(twice, load_bench(SCENARIOS / "benches" / "virtual_lab.yaml"))) == 2 * 3 * 6 * 2


def test_waits_in_equal_ratios(tmp_path: Path) -> None:
    text = (HEAD + BODY).replace("[2, 4.5, 8]", "{from: 1, to: 60, count: 5}")
    (trial,) = read(tmp_path, text).trials
    assert trial.memory is not None
    assert trial.memory.waits_s == (1.0, 2.8, 7.7, 21.6, 60.0)


@pytest.mark.parametrize(
    ("written", "replaced", "line", "what"),
    [
        ("waits_s: [2, 4.5, 8]", "waits_s: [2, 4, 2]", FIRST, "the wait of 2 s is there twice"),
        ("waits_s: [2, 4.5, 8]", "waits_s: [2]", FIRST, "one wait cannot say"),
        ("waits_s: [2, 4.5, 8]", "waits_s: [2, 3601]", FIRST, "3601 is too large"),
        ("waits_s: [2, 4.5, 8]", "waits_s: [2, -1]", FIRST, "-1 is too small"),
        ("waits_s: [2, 4.5, 8]", "waits_s: {from: 8, to: 2, count: 3}", FIRST, "the waits go from 8 s to 2 s"),
        ("waits_s: [2, 4.5, 8]", "waits_s: {from: 1, to: 1.2, count: 9}", FIRST, "9 waits lie closer together"),
        ("waits_s: [2, 4.5, 8]", "waits_s: {from: 1, count: 9}", FIRST, "the key 'to' is missing"),
        ("waits_s: [2, 4.5, 8]", "waits_s: {form: 1, to: 8, count: 9}", FIRST, "there is no key 'form' here"),
        ('    shows: ["${sum}"]\n', "", FIRST - 5, "the key 'shows' is missing"),
        ('shows: ["${sum}"]', "shows: []", FIRST + 1, "a list is empty"),
        ("forgets: [sorry]", "forgets: [Sixty One]", FIRST + 2, "'Sixty One' cannot both show memory"),
        ("follow_up: add_five", "follow_up: add_fife", FIRST - 1, "no stimulus is called 'add_fife'"),
        ("follow_up: add_five", "follow_up: product", FIRST - 1, "the follow-up is the query itself"),
        ("repeat: 6", "close_dialogue: {say: cancel}", FIRST - 3, "'close_dialogue' has no meaning"),
        ("repeat: 6", "effect: {wanted: a sum, question: is it said}", FIRST - 3, "'effect' has no meaning"),
        ("repeat: 6", "phrase: alexa", FIRST - 3, "'phrase' has no meaning"),
        ("repeat: 6", "devices: [box]", FIRST - 3, "'devices' has no meaning"),
        ("kind: memory", "kind: query", FIRST - 1, "'follow_up' has no meaning in a trial of kind query"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(written: str, replaced: str, line: int, what: str, tmp_path: Path) -> None:
    assert written in HEAD + BODY
    found = problems(tmp_path, (HEAD + BODY).replace(written, replaced))
    assert any(at == line and what in said for at, said in found), found


def test_waits_that_cannot_be_kept_are_told_beforehand(tmp_path: Path) -> None:
    assert list(wait_notes(read(tmp_path, HEAD + BODY))) == []
    (note,) = wait_notes(read(tmp_path, (HEAD + BODY).replace("4.5", "1, 0")))
    assert "keeps no wait below 1.1 s (0, 1)" in note
    path = tmp_path / "memory.yaml"
    found = CliRunner().invoke(validate.command, [str(path)])
    assert (found.exit_code, note in found.output) == (0, True)
    assert json.loads(CliRunner().invoke(validate.command, [str(path), "--json"]).output)["notes"][0]["what"] == note
    quick = (HEAD + BODY).replace("4.5", "1").replace("repeat: 6", "reprompt: {end_silence_ms: 500}")
    assert list(wait_notes(read(tmp_path, quick))) == []


@pytest.fixture
def lab() -> Bench:
    return load_bench(SCENARIOS / "benches" / "virtual_lab.yaml")


def test_the_probe_that_comes_with_the_harness_runs_in_the_virtual_lab(lab: Bench) -> None:
    check_together(load_scenario(SCENARIOS / "memory.yaml"), lab)


def test_somebody_must_know_whether_the_prime_was_understood(tmp_path: Path, lab: Bench) -> None:
    probe = read(tmp_path, HEAD + BODY.replace("forgets", "device: black_box\n    forgets"))
    check_together(probe, lab)  # an operator may be there
    alone = replace(lab, operator=OperatorPresence.ABSENT)
    with pytest.raises(UnmetNeed, match="understood the prime"):
        check_together(probe, alone)
    (trial,) = probe.trials
    check_together(replace(probe, trials=(replace(trial, evidence=Evidence.NONE),)), alone)


def test_somebody_must_hear_when_the_answer_ends_and_know_what_it_was(
    tmp_path: Path, lab: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    probe = read(tmp_path, HEAD + BODY)
    with pytest.raises(UnmetNeed, match="no microphone hears it"):
        check_together(probe, replace(lab, microphone=None))
    device = lab.devices[0]
    silent = replace(device, profile=replace(device.profile, reports=frozenset({ObservationKind.TRANSCRIPT})))
    monkeypatch.setattr(plugins, "names", lambda group: ("ours",))
    check_together(probe, replace(lab, devices=(silent,)))
    monkeypatch.setattr(plugins, "names", lambda group: ())
    check_together(probe, lab)  # the device tells what it answers
    with pytest.raises(UnmetNeed, match="nothing can tell what"):
        check_together(probe, replace(lab, devices=(silent,)))

"""People who speak at the bench: how they are written, and what they cannot do."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.model.bench import Bench
from harness.model.errors import InputProblems
from harness.model.stimulus import TALKER, VoiceSpec
from harness.model.trial import Trial
from harness.scenario.bench import load_bench
from harness.scenario.compatibility import check_compatibility
from harness.scenario.scenario import load_scenario
from harness.session.engine.prepare import plan_session
from harness.session.plan import plan

BENCH = """
bench: desk
title: Desk
loudspeakers: {near: {driver: in_process, position: near}}
microphone: {driver: in_process}
devices: {dut: {profile: reference_assistant, connection: {driver: in_process}}}
"""
PEOPLE = """
scenario: people
title: People
voices: {ann: {talker: ann, language: de-DE}, anna: {engine: espeak, name: en-gb}}
defaults: {voice: ann}
stimuli: [{id: time, text: what time is it}, {id: more, text: and in Rome}]
trials:
  - {id: time, query: time}
  - {id: call, kind: wake, route: loudspeaker}
"""
LEVELS = "matrix: {axes: {voice: [ann, anna], level_dbfs: [-26, -36]}, exclude: [{voice: ann, level_dbfs: -36}]}"


def on_bench(folder: Path, people: str = PEOPLE, bench: str = BENCH) -> tuple[tuple[Trial, ...], Bench]:
    (folder / "b.yaml").write_text(bench)
    (folder / "s.yaml").write_text(people)
    scenario, test_bench = load_scenario(folder / "s.yaml"), load_bench(folder / "b.yaml")
    check_compatibility(scenario, test_bench)
    plan_session(scenario, test_bench)
    return plan(scenario, test_bench), test_bench


def test_a_person_may_replace_a_loudspeaker(tmp_path: Path) -> None:
    silent = BENCH.replace("loudspeakers: {near: {driver: in_process, position: near}}\n", "")
    trials, _ = on_bench(tmp_path, bench=silent)
    assert {trial.recipe.voice for trial in trials} == {VoiceSpec(TALKER, "ann", language="de-DE")}
    assert [(trial.talker, trial.players, trial.speaker) for trial in trials] == [
        ("ann", ("talker:ann",), "talker:ann")
    ] * 2


def test_a_matrix_mixes_people_and_voices_at_places_of_their_own(tmp_path: Path) -> None:
    places = "matrix: {axes: {voice: [ann], position: [mark_2], distance_m: [1, 3], angle_deg: [30]}}"
    trials, _ = on_bench(tmp_path, PEOPLE + places)
    assert [dict(trial.conditions)["distance_m"] for trial in trials] == ["1", "3"] * 2
    trials, _ = on_bench(tmp_path, PEOPLE + LEVELS)
    assert [trial.talker for trial in trials] == ["ann", "", ""] * 2


@pytest.mark.parametrize(
    ("old", "instead", "refusal"),
    [
        ("talker: ann", "talker: ann, engine: espeak", "a talker has no `engine`"),
        ("talker: ann", "talker: Ann Lee", "is not a talker's name"),
        ("route: loudspeaker}", "route: injection}", "over the connection"),
        ("defaults: {", "defaults: {noise: {kind: pink, snr_db: 10}, ", "the noise can be played only with"),
        ("defaults: {", "rooms: {box: {size_m: [6, 5, 3], rt60_s: 0.4, device_m: [2, 2, 1]}}\ndefaults: {room: box, ",
         "the trial is in a simulated room"),
        ("trials:", "matrix: {axes: {level_dbfs: [-26, -36]}}\ntrials:", "varies level_dbfs, which a person cannot"),
        ("trials:", "matrix: {axes: {voice: [ann, anna], position: [mark_2]}}\ntrials:", "no loudspeaker at position"),
        ("{id: call, kind: wake, route: loudspeaker}", "{id: a, kind: ambient, hours: 1, sources: [{texts: [hello]}]}",
         "cannot speak in the ambient trial"),
        ("{id: time, query: time}", "{id: m, kind: memory, query: time, follow_up: more, waits_s: [2, 4], shows: [x]}",
         "a person cannot time the waits"),
    ],
)  # fmt: skip
def test_tasks_that_a_talker_cannot_do_are_refused(tmp_path: Path, old: str, instead: str, refusal: str) -> None:
    injecting = BENCH.replace("{driver: in_process}}}", "{driver: in_process, injection: true}}}")
    with pytest.raises(InputProblems, match=refusal):
        on_bench(tmp_path, PEOPLE.replace(old, instead), injecting if "injection" in instead else BENCH)


@pytest.mark.parametrize(
    ("old", "instead", "refusal"),
    [
        ("title: Desk", "title: Desk\noperator: absent", "'ann' speaks in 'time', but the operator is absent"),
        ("microphone: {driver: in_process}\n", "", "the bench has no microphone"),
    ],
)
def test_a_bench_without_an_operator_or_a_microphone_is_refused(
    tmp_path: Path, old: str, instead: str, refusal: str
) -> None:
    with pytest.raises(InputProblems, match=refusal):
        on_bench(tmp_path, bench=BENCH.replace(old, instead))

"""Scenario files that are right, and what becomes of them."""

from __future__ import annotations

import hashlib
import itertools
from pathlib import Path

import numpy as np
import pytest
import soundfile

from harness.base import strict_yaml
from harness.base.findings import Findings
from harness.model.errors import InputError, InputProblems, Place
from harness.model.scenario import CloseDialogue, Limits, Need, Normalisation, Order, RecognitionRule, RepromptRule
from harness.model.stimulus import ImpulseResponse, NoiseKind, NoiseSpec, Recording, SpokenText, VoiceSpec
from harness.scenario.assets import length_notes
from harness.scenario.bench import load_bench
from harness.scenario.compatibility import check_compatibility
from harness.scenario.matrix import cells
from harness.scenario.scenario import load_scenario, planned_trials
from harness.scenario.variables import expand, substitute
from harness.session.plan import plan
from tests.files import file_with

WHOLE = """\
scenario: kitchen_basics
title: Kitchen questions
tags: [smoke]
seed: 7
needs: [loudspeaker, microphone]
assets: {prompts: ../recordings}
variables: {city: Lincoln}
voices:
  ann: {engine: espeak, name: en-gb+f3, rate_wpm: 160, pitch: 50, language: en-GB}
defaults:
  voice: ann
  noise: {kind: pink, snr_db: 20}
  reprompt: {max_attempts: 4, context_wait_s: 6}
  close_dialogue: {wait_s: 9}
recognised: {normalisation: plain, wer: 0.1}
stimuli:
  - {id: time, text: "what time is it in ${city}, for 5$$", alternatives: ["the time in ${city}"]}
  - {id: rec, recording: "prompts:time.wav", transcript: what time is it}
trials:
  - id: t_time
    query: time
    repeat: 2
    evidence: none
    reprompt: {max_attempts: 1}
    close_dialogue: {say: "bye ${city}"}
  - {query: rec, note: no}
matrix:
  axes:
    position: [near, far]
    voice: [ann, {engine: flite, name: slt}]
    noise: [null, {kind: white, snr_db: 10}]
  exclude: [{voice: ann, position: far}, {noise: null, voice: {engine: flite, name: slt}}]
  order: shuffled
limits: {min_recognised_share: 0.9, max_latency_p95_ms: 3000, max_inconclusive: 0}
"""
SMALL = "scenario: small\nstimuli: [{id: q, text: hello}]\ntrials: [{query: q}]\n"
ANN = VoiceSpec("espeak", "en-gb+f3", 160, 50, "en-GB")


@pytest.fixture
def scenario_file(tmp_path: Path) -> Path:
    (tmp_path / "recordings").mkdir()
    soundfile.write(tmp_path / "recordings" / "time.wav", np.full(800, 0.1, np.float32), 16000)
    path = tmp_path / "scenarios" / "kitchen.yaml"
    path.parent.mkdir()
    path.write_text(WHOLE, encoding="utf-8")
    return path


def test_a_whole_scenario_is_read_with_names_resolved(scenario_file: Path) -> None:
    scenario = load_scenario(scenario_file)
    assert (scenario.id, scenario.title, scenario.tags, scenario.seed) == (
        "kitchen_basics",
        "Kitchen questions",
        ("smoke",),
        7,
    )
    assert scenario.needs == (Need.LOUDSPEAKER, Need.MICROPHONE)
    assert scenario.path == str(scenario_file)
    assert scenario.sha256 == hashlib.sha256(WHOLE.encode()).hexdigest()
    time_, recorded = scenario.queries
    assert time_.utterance == SpokenText("what time is it in Lincoln, for 5$")
    assert time_.reference == "what time is it in Lincoln, for 5$"
    assert time_.alternatives == ("the time in Lincoln",)
    assert recorded.utterance == Recording(str(scenario_file.parent.parent.resolve() / "recordings" / "time.wav"))
    assert recorded.reference == "what time is it"
    assert scenario.defaults.voice == ANN
    assert scenario.defaults.noise == NoiseSpec(NoiseKind.PINK, 20.0)
    assert scenario.defaults.reprompt == RepromptRule(max_attempts=4, context_wait_s=6.0)
    assert scenario.defaults.close_dialogue == CloseDialogue(wait_s=9.0)
    assert scenario.recognised.normalisation is Normalisation.PLAIN
    assert scenario.limits == Limits(min_recognised_share=0.9, max_latency_p95_ms=3000.0, max_inconclusive=0)


def test_recordings_whose_length_is_assumed_are_notes(scenario_file: Path) -> None:
    path = scenario_file.parent.parent / "recordings" / "time.wav"
    assert list(length_notes(load_scenario(scenario_file))) == []
    sound = np.linspace(-0.1, 0.1, 8000, dtype=np.float32)
    soundfile.write(path, sound, 16000, subtype="PCM_16")
    content = bytearray(path.read_bytes())
    content[40:44] = (0x80000000).to_bytes(4, "little")
    path.write_bytes(content)
    (note,) = length_notes(load_scenario(scenario_file))
    assert note == "'time.wav': the header declares no length, so all that follows is read as sound"


def test_the_matrix_keeps_the_order_of_its_axes_and_leaves_out_what_is_excluded(scenario_file: Path) -> None:
    scenario = load_scenario(scenario_file)
    position, voice, noise = scenario.matrix.axes
    assert (position.name, position.labels) == ("position", ("near", "far"))
    assert (voice.values[0], voice.labels) == (ANN, ("ann", "flite:slt"))
    assert noise.values == (None, NoiseSpec(NoiseKind.WHITE, 10.0))
    assert noise.labels == ("quiet", "white 10 dB")
    assert scenario.matrix.order is Order.SHUFFLED
    expected = [
        (("position", p), ("voice", v), ("noise", n))
        for p, v, n in itertools.product(position.labels, voice.labels, noise.labels)
        if not (v == "ann" and p == "far") and not (n == "quiet" and v == "flite:slt")
    ]
    assert list(cells(scenario.matrix)) == expected
    assert planned_trials(scenario) == (3, 4)


def test_a_small_scenario_has_the_defaults_of_the_model(tmp_path: Path) -> None:
    path = file_with(tmp_path / "small.yaml", SMALL)
    scenario = load_scenario(path)
    assert scenario.title == "small"
    assert scenario.defaults.voice == VoiceSpec()
    assert scenario.defaults.reprompt == RepromptRule()
    assert scenario.recognised.normalisation is Normalisation.SPOKEN
    assert planned_trials(scenario) == (1, 1)


def test_extra_assets_win_over_those_of_the_file(scenario_file: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    soundfile.write(elsewhere / "time.wav", np.full(800, 0.1, np.float32), 16000)
    scenario = load_scenario(scenario_file, extra_assets={"prompts": elsewhere})
    assert scenario.queries[1].utterance == Recording(str(elsewhere.resolve() / "time.wav"))


def test_a_recording_without_a_sample_is_refused(scenario_file: Path) -> None:
    soundfile.write(scenario_file.parent.parent / "recordings" / "time.wav", np.zeros(0, np.float32), 16000)
    with pytest.raises(InputProblems, match="contains no sound"):
        load_scenario(scenario_file)


def test_a_pipe_as_a_recording_does_not_block(tmp_path: Path) -> None:
    import os

    os.mkfifo(tmp_path / "pipe.wav")
    os.mkfifo(tmp_path / "pipe.yaml")
    path = file_with(tmp_path / "s.yaml", SMALL.replace("text: hello", "recording: pipe.wav, transcript: hello"))
    with pytest.raises(InputProblems, match="is not a file"):
        load_scenario(path)
    with pytest.raises(InputError, match="not a file"):
        load_scenario(tmp_path / "pipe.yaml")


def test_an_sro_says_what_should_be_heard(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    text = """\
scenario: sro
variables: {place: Dallas}
recognised: {normalisation: snor}
stimuli:
  - id: day
    text: "what day is it in ${place}"
    sro: "[uh] <What> !day (1) . is it in ${place}, (1 what date) (bb00e1sx)"
  - {id: rec, recording: tone.wav, sro: "show me tr- *Ol* transportation"}
trials: [{query: day}, {query: rec}]
limits: {max_first_attempt_wer: 1.5, max_final_wer: 0.1}
"""
    soundfile.write(path.with_name("tone.wav"), np.full(800, 0.1, np.float32), 16000)
    path.write_text(text, encoding="utf-8")
    scenario = load_scenario(path)
    day, rec = scenario.queries
    assert (day.utterance, day.reference) == (
        SpokenText("what day is it in Dallas"),
        "WHAT DAY IS IT IN DALLAS WHAT DATE",
    )
    assert rec.reference == "SHOW ME OL TRANSPORTATION"
    assert scenario.recognised == RecognitionRule(Normalisation.SNOR)
    assert (scenario.limits.max_first_attempt_wer, scenario.limits.max_final_wer) == (1.5, 0.1)
    path.write_text(text.replace("normalisation: snor", "normalisation: plain"), encoding="utf-8")
    assert load_scenario(path).queries == scenario.queries


def test_a_normalisation_file_is_read_with_the_scenario(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    words = file_with(
        path.with_name("lamps.yaml"), "normalisation: lamps\nbase: plain\nsame: [[light bulb, lightbulb]]\n"
    )
    path.write_text(SMALL + "recognised: {normalisation: lamps.yaml, wer: 0.2}\n", encoding="utf-8")
    rule = load_scenario(path).recognised
    assert (rule.name, rule.normalisation, rule.wer) == ("lamps", Normalisation.PLAIN, 0.2)
    assert rule.rewriting is not None
    assert rule.rewriting.same == ((("light", "bulb"), ("lightbulb",)),)
    words.write_text("normalisation: lamps\nbase: plane\nsame: [[light bulb, lightbulb]]\n", encoding="utf-8")
    with pytest.raises(InputProblems) as refused:
        load_scenario(path)
    (problem,) = refused.value.problems
    assert problem.place == Place(str(words), 2, 7)


def test_a_word_list_that_removes_a_whole_wording_is_refused(tmp_path: Path) -> None:
    # Else a device that heard nothing would have recognised it.
    path = tmp_path / "s.yaml"
    path.with_name("lamps.yaml").write_text(
        'normalisation: lamps\nbase: plain\nsame: [[hello, ""]]\n', encoding="utf-8"
    )
    path.write_text(SMALL + "recognised: {normalisation: lamps.yaml}\n", encoding="utf-8")
    with pytest.raises(InputProblems) as refused:
        load_scenario(path)
    assert [problem.what for problem in refused.value.problems] == ["no words remain under 'lamps'"]


def test_only_an_sro_has_an_utterance_id(tmp_path: Path) -> None:
    path = file_with(
        tmp_path / "s.yaml",
        SMALL.replace("text: hello", 'text: "hello (you)", alternatives: ["hi (1 you)"]')
        + "recognised: {normalisation: snor}\n",
    )
    with pytest.raises(InputProblems) as refused:
        load_scenario(path)
    (problem,) = refused.value.problems
    assert problem.what == "under 'snor', (you) would be read as an utterance id, and only `sro` may contain one"


def test_a_misspelt_normalisation_is_reported(tmp_path: Path) -> None:
    path = file_with(tmp_path / "s.yaml", SMALL + "recognised: {normalisation: spokn}\n")
    with pytest.raises(InputProblems) as refused:
        load_scenario(path)
    assert refused.value.problems[0].remedy.startswith("Did you mean 'spoken'? Known: verbatim, ")


VARIABLES = """\
variables:
  wish: "the weather in ${place} for $5 or $$6"
  place: "${city}, ${state}"
  city: Lincoln
  state: Nebraska
"""


def read(text: str) -> tuple[dict[str, str], Findings]:
    tree = strict_yaml.parse(text.encode(), "s.yaml")
    findings = Findings("s.yaml", tree)
    values = tree.plain()
    assert isinstance(values, dict)
    variables = values["variables"]
    assert isinstance(variables, dict)
    return expand({name: str(value) for name, value in variables.items()}, findings), findings


def test_variables_may_name_others_in_any_order() -> None:
    variables, findings = read(VARIABLES)
    assert variables["wish"] == "the weather in Lincoln, Nebraska for $5 or $6"
    assert substitute("what is ${wish}", variables, findings, ()) == f"what is {variables['wish']}"
    assert not findings.problems


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        (
            "  a: 'x ${b}'\n  b: 'y ${c}'\n  c: 'z ${b}'",
            "s.yaml:4:6: the variables refer to each other in a circle: b → c → b.",
        ),
        ("  a: 'x ${a}'", "s.yaml:2:6: the variables refer to each other in a circle: a → a."),
        ("  city: York\n  place: 'in ${ctiy}'", "s.yaml:3:10: there is no variable 'ctiy'. Did you mean 'city'?"),
    ],
)
def test_unexpandable_variables_are_reported_with_their_place(lines: str, problem: str) -> None:
    _, findings = read(f"variables:\n{lines}\n")
    (error,) = findings.problems
    assert str(error).startswith(problem)


def test_exponential_variable_expansion_is_stopped() -> None:
    lines = "\n".join(f"  v{number}: '${{v{number + 1}}}${{v{number + 1}}}'" for number in range(60))
    _, findings = read(f"variables:\n{lines}\n  v60: ha\n")
    assert "expands to" in str(findings.problems[0])


SCENARIO = (
    "scenario: said\ntrials:\n  - {id: call, kind: wake, repeat: 3, recordings: lists/said.csv, level: as_recorded}\n"
)
BENCH = "bench: one\ndevices:\n  box: {profile: box, connection: {driver: in_process, injection: true}}\n"
PROFILE = "device: box\nwake_phrases: [alexa]\nreports: [wake]\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "lists").mkdir()
    for name in ("a.wav", "b.wav"):
        rng = np.random.default_rng(1)
        soundfile.write(tmp_path / "lists" / name, 0.1 * rng.standard_normal(16_000), 16_000)
    with soundfile.SoundFile(tmp_path / "lists" / "c.flac", "w", 16_000, 1) as file:
        file.comment = "close talk; phrase_end_ms=640"
        file.write(0.1 * np.random.default_rng(2).standard_normal(16_000))
    (tmp_path / "said.yaml").write_text(SCENARIO)
    (tmp_path / "bench.yaml").write_text(BENCH)
    (tmp_path / "box.yaml").write_text(PROFILE)
    return tmp_path


def listed(folder: Path, text: str) -> None:
    (folder / "lists" / "said.csv").write_text(text, encoding="utf-8")


def test_trials_know_their_recording_its_talker_and_where_its_phrase_ends(folder: Path) -> None:
    listed(folder, "recording,talker,phrase_end_ms,distance\na.wav,ann,870,1 m\nb.wav,ben,,3 m\nc.flac,ann,,\n")
    trials = plan(load_scenario(folder / "said.yaml"), load_bench(folder / "bench.yaml"), 1)
    by_recording = {trial.recording: trial for trial in trials}
    ends = {
        name: trial.recipe.query.phrase_end_s
        for name, trial in by_recording.items()
        if isinstance(trial.recipe.query, Recording)
    }
    assert ends == {"a.wav": 0.87, "b.wav": None, "c.flac": 0.64}
    assert by_recording["b.wav"].conditions == (("talker", "ben"), ("distance", "3 m"))
    assert [by_recording[name].speaker for name in ("a.wav", "b.wav", "c.flac")] == ["ann", "ben", "ann"]
    assert all(trial.recipe.as_recorded for trial in trials)


def test_tables_of_common_voice_and_kaldi_are_lists(folder: Path) -> None:
    (folder / "lists" / "clips").mkdir()
    for name in ("a.wav", "b.wav"):
        (folder / "lists" / name).rename(folder / "lists" / "clips" / name)
    table = "client_id\tpath\tsentence\tup_votes\tage\nc1\ta.mp3\tHe said hi.\t2\ttwenties\nc2\tb.wav\tStop.\t0\t\n"
    (folder / "lists" / "said.tsv").write_text(table, encoding="utf-8")
    (folder / "lists" / "wav.scp").write_text("u1 clips/a.wav\nu2 clips/b.wav\n", encoding="utf-8")
    (folder / "lists" / "utt2spk").write_text("u1 c1\nu2 c2\n", encoding="utf-8")
    for name, traits in (("said.tsv", [("talker", "c1"), ("age", "twenties")]), ("wav.scp", [("talker", "c1")])):
        (folder / "said.yaml").write_text(SCENARIO.replace("said.csv", name))
        (trial,) = load_scenario(folder / "said.yaml").trials
        assert [Path(path).name for path in trial.recordings] == ["a.wav", "b.wav"]
        assert trial.recording_facts[0].traits == tuple(traits)
    (folder / "lists" / "wav.scp").write_text("u1 sox x.wav - |\n", encoding="utf-8")
    with pytest.raises(InputProblems) as refused:
        load_scenario(folder / "said.yaml")
    assert "lists/wav.scp:1: the sound of 'u1' comes from a command" in str(refused.value)


def test_a_list_saved_by_a_spreadsheet_is_read(folder: Path) -> None:
    listed(folder, "\ufeffsep=;\r\nrecording;phrase_end_ms;distance\r\na.wav;870,5;1 m\r\n")
    (trial,) = load_scenario(folder / "said.yaml").trials
    assert trial.recording_facts[0].phrase_end_s == 0.8705
    (folder / "lists" / "said.csv").write_bytes(b"recording,talker\na.wav,J\xf6rg\n")
    with pytest.raises(InputProblems) as refused:
        load_scenario(folder / "said.yaml")
    assert "lists/said.csv:2:8: byte 0xf6 is not UTF-8. Save the file as UTF-8" in str(refused.value)
    assert "--encoding" not in str(refused.value)  # validate and run have no such option


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("file,talker\na.wav,ann\n", 1, "no column 'recording'; found file, talker"),
        ("recording,voice\na.wav,ann\n", 1, "the same name as a matrix axis"),
        ("recording,Talker\na.wav,ann\n", 1, "the column name 'Talker' is not valid"),
        ("recording,phrase_end_ms\na.wav,soon\n", 2, "phrase_end_ms 'soon' is not a time"),
        ("recording,phrase_end_ms\na.wav,2000\n", 2, "ends at 2 s, but 'a.wav' is 1.000 s long"),
        ("recording,phrase_end_ms\na.wav,870\na.wav,640\n", 3, "an earlier row has other values for 'a.wav'"),
        ("recording,talker\n\na.wav,ann,1\n", 3, "the row has 3 cells, but the header has 2"),
        ("recording\nd.wav\n", 2, "there is no file 'lists/d.wav'"),
        ("recording\n", 0, "the list contains no recordings"),
    ],
)
def test_a_mistake_in_a_list_is_refused_at_its_line(folder: Path, text: str, line: int, message: str) -> None:
    listed(folder, text)
    with pytest.raises(InputProblems) as refused:
        load_scenario(folder / "said.yaml")
    problem = refused.value.problems[0]
    assert message in problem.what
    assert problem.place is not None
    assert Path(problem.place.file).name == "said.csv"
    assert problem.place.line == line


def test_as_recorded_applies_to_recordings_only(folder: Path) -> None:
    listed(folder, "recording\na.wav\n")
    (folder / "said.yaml").write_text(
        "scenario: said\ntrials:\n  - {id: a, kind: wake, level: as_recorded}\n"
        "  - {id: b, kind: wake, recordings: lists, level: as_recorded, level_dbfs: -20}\n"
    )
    with pytest.raises(InputProblems) as refused:
        load_scenario(folder / "said.yaml")
    assert [problem.what for problem in refused.value.problems] == [
        "`level: as_recorded` needs `recordings`",
        "the trial has both `level` and `level_dbfs`",
    ]


ROOMS = """\
scenario: far_field
rooms:
  den: {size_m: [6, 4, 2.6], rt60_s: 0.4, device_m: [0.5, 2, 1], device_pattern: cardioid}
  hall: {impulse_responses: [{recording: hall.wav, distance_m: 2}, {recording: hall.wav, distance_m: 4}]}
defaults: {room: den, angle_deg: 10}
trials: [{kind: wake}]
matrix:
  axes: {room: [den, hall], distance_m: [1, 2, 4], angle_deg: [0, 10]}
  exclude: [{room: hall, angle_deg: 10}, {room: hall, distance_m: 1}]
"""


@pytest.mark.parametrize(("exclude", "refused"), [("", True), ("exclude: [{room: null, distance_m: 2}]", False)])
def test_a_distance_without_a_room_is_played_once(folder: Path, exclude: str, refused: bool) -> None:
    den = "rooms: {den: {size_m: [6, 4, 2.6], rt60_s: 0.4, device_m: [0.5, 2, 1]}}"
    matrix = f"matrix:\n  axes: {{room: [null, den], distance_m: [1, 2]}}\n  {exclude}"
    ambient = "{kind: ambient, hours: 1, sources: [{noise: pink}]}"
    path = folder / "rooms.yaml"
    path.write_text(f"scenario: rooms\n{den}\ntrials: [{{kind: wake}}, {ambient}]\n{matrix}\n", encoding="utf-8")
    scenario, bench = load_scenario(path), load_bench(folder / "bench.yaml")
    if refused:
        with pytest.raises(InputProblems, match=r"rooms.yaml:5:.*without a room, distance_m makes no difference"):
            check_compatibility(scenario, bench)
    else:
        check_compatibility(scenario, bench)


def test_a_talker_stands_in_the_rooms_of_the_matrix(folder: Path) -> None:
    path = file_with(folder / "far_field.yaml", ROOMS)
    soundfile.write(folder / "hall.wav", np.full(800, 0.1, np.float32), 16000)
    trials = plan(load_scenario(path), load_bench(folder / "bench.yaml"))
    placements = [trial.recipe.placement for trial in trials]
    assert [placement.label() for placement in placements if placement] == [
        *(f"den {distance} m {angle}°" for distance in (1, 2, 4) for angle in (0, 10)),
        "hall 2 m 0°",
        "hall 4 m 0°",
    ]
    assert all(placement is not None and not placement.problem for placement in placements)
    assert trials[0].conditions == (("room", "den"), ("distance_m", "1"), ("angle_deg", "0"))
    assert trials[-1].id == "wake.rm-hall.d4.a0.r1"
    assert placements[-1] is not None
    assert placements[-1].room.recorded == (ImpulseResponse(str(folder / "hall.wav"), 4.0, 0.0),)

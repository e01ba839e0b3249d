"""Lists of recordings in wake trials: where phrases end, who speaks, and how that reaches the trials."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile

from harness.model.errors import InputProblems
from harness.model.stimulus import Recording
from harness.scenario.bench import load_bench
from harness.scenario.scenario import load_scenario
from harness.session.plan import plan

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
    said = {trial.recording: trial for trial in trials}
    ends = {
        name: trial.recipe.query.phrase_end_s
        for name, trial in said.items()
        if isinstance(trial.recipe.query, Recording)
    }
    assert ends == {"a.wav": 0.87, "b.wav": None, "c.flac": 0.64}
    assert said["b.wav"].conditions == (("talker", "ben"), ("distance", "3 m"))
    assert [said[name].speaker for name in ("a.wav", "b.wav", "c.flac")] == ["ann", "ben", "ann"]
    assert all(trial.recipe.as_recorded for trial in trials)


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("file,talker\na.wav,ann\n", 1, "no column 'recording'; found file, talker"),
        ("recording,voice\na.wav,ann\n", 1, "like an axis of the matrix"),
        ("recording,Talker\na.wav,ann\n", 1, "wrong column name: 'Talker'"),
        ("recording,phrase_end_ms\na.wav,soon\n", 2, "phrase_end_ms 'soon' is not a time"),
        ("recording,phrase_end_ms\na.wav,2000\n", 2, "ends at 2 s, and 'a.wav' is 1.000 s long"),
        ("recording,talker\n\na.wav,ann,1\n", 3, "the row has 3 cells, the header 2"),
        ("recording\nd.wav\n", 2, "there is no file 'lists/d.wav'"),
        ("recording\n", 0, "the list has no recordings"),
    ],
)
def test_a_mistake_in_a_list_is_refused_at_its_line(folder: Path, text: str, line: int, what: str) -> None:
    listed(folder, text)
    with pytest.raises(InputProblems) as refused:
        load_scenario(folder / "said.yaml")
    problem = refused.value.problems[0]
    assert what in problem.what
    assert problem.place is not None
    assert Path(problem.place.file).name == "said.csv"
    assert problem.place.line == line


def test_as_recorded_is_about_recordings_only(folder: Path) -> None:
    listed(folder, "recording\na.wav\n")
    (folder / "said.yaml").write_text(
        "scenario: said\ntrials:\n  - {id: a, kind: wake, level: as_recorded}\n"
        "  - {id: b, kind: wake, recordings: lists, level: as_recorded, level_dbfs: -20}\n"
    )
    with pytest.raises(InputProblems) as refused:
        load_scenario(folder / "said.yaml")
    assert [problem.what for problem in refused.value.problems] == [
        "as_recorded needs recordings",
        "the trial has both level and level_dbfs",
    ]

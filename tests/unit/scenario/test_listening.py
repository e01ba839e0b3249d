"""Wake, command and ambient trials in scenario files, and whether a bench can run them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile

from harness.model.bench import Bench
from harness.model.errors import InputProblems, UnmetNeed
from harness.model.scenario import (
    AmbientSource,
    Limits,
    OnUndecided,
    Route,
    Scenario,
    SequentialTest,
    Stopping,
    TrialKind,
    WakeSettings,
)
from harness.model.stimulus import NoiseKind, VoiceSpec
from harness.scenario.bench import load_bench
from harness.scenario.compatibility import check_compatibility
from harness.scenario.scenario import load_scenario, trial_count

WAKE = """\
scenario: wake
assets: {tv: ../recordings}
variables: {who: Ann}
voices:
  ann: {name: en-gb}
defaults: {voice: ann}
stimuli: [{id: time, text: what time is it}]
trials:
  - {id: call, kind: wake, repeat: 2}
  - {id: said, kind: wake, recordings: "tv:said", lead_in_s: 0.5, tail_s: 3, phrase: "hey ${who}", devices: [box]}
  - {id: ask, kind: command, query: time, route: loudspeaker, gap_ms: 90}
  - id: soak
    kind: ambient
    hours: 0.5
    segment_s: 30
    level_dbfs: -40
    sources:
      - {recordings: ["tv:*.wav"], share: 3}
      - {noise: white}
      - {id: talk, texts: ["good morning, ${who}"]}
      - {id: gossip, texts: [she has left him], voices: [{engine: flite, name: slt}]}
matrix:
  axes: {gap_ms: [100, 200, 300], voice: [ann, {engine: flite, name: slt}], noise: [null, {kind: pink, snr_db: 3}]}
wake: {refractory_s: 3, window_after_s: 1.5, count_in_vocabulary: true}
stopping: {false_accepts: {good: 0.1, bad: 0.5, alpha: 0.01}, on_undecided: pass}
limits: {max_false_reject_share: 0.1, max_false_accepts_upper_per_hour: 2, min_exposure_hours: 0.4}
"""
BENCH = """\
bench: two
loudspeakers: {near: {driver: in_process}}
devices:
  box: {profile: box, connection: {driver: in_process}}
  wired: {profile: box, connection: {driver: in_process, injection: true}}
  mute: {profile: box}
"""
BOX = "device: box\nwake_phrases: [computer]\nreports: [wake]\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "recordings" / "said").mkdir(parents=True)
    for name, seconds in (("b.wav", 2.0), ("a.wav", 1.0), ("said/two.wav", 0.5), ("said/one.wav", 0.5)):
        soundfile.write(tmp_path / "recordings" / name, 0.1 * (-1.0) ** np.arange(seconds * 8000), 8000)
    (tmp_path / "recordings" / "said" / "notes.txt").write_text("not a sound", encoding="utf-8")
    scenarios = tmp_path / "scenarios"
    scenarios.mkdir()
    (scenarios / "wake.yaml").write_text(WAKE.replace("gap_ms: 90", "").replace(", }", "}"), encoding="utf-8")
    (scenarios / "bench.yaml").write_text(BENCH, encoding="utf-8")
    (scenarios / "box.yaml").write_text(BOX, encoding="utf-8")
    return scenarios


def written(folder: Path, trials: str, more: str = "") -> Scenario:
    path = folder / "other.yaml"
    path.write_text(f"scenario: other\n{more}trials:\n{trials}", encoding="utf-8")
    return load_scenario(path)


@pytest.fixture
def bench(folder: Path) -> Bench:
    return load_bench(folder / "bench.yaml")


def test_an_opening_with_a_speaking_device_needs_a_microphone(folder: Path, bench: Bench) -> None:
    trials = "  - {id: call, kind: wake, devices: [box], opening: {say: tell me a story, pause_s: 3%s}}\n"
    with pytest.raises(InputProblems, match="asks whether the device is heard, but the bench has no microphone"):
        check_compatibility(written(folder, trials % ""), bench)
    check_compatibility(written(folder, trials % ", sounds: false"), bench)


def test_a_wake_scenario_is_read(folder: Path) -> None:
    scenario = load_scenario(folder / "wake.yaml")
    call, recorded_call, ask, soak = scenario.trials
    recordings = folder.parent.resolve() / "recordings"
    assert (call.kind, call.query, call.lead_in_s, call.tail_s, call.route) == (
        TrialKind.WAKE,
        "",
        3.0,  # the refractory time
        1.5,
        Route.AUTO,
    )
    assert recorded_call.recordings == (str(recordings / "said/one.wav"), str(recordings / "said/two.wav"))
    assert (recorded_call.phrase, recorded_call.lead_in_s, recorded_call.tail_s, recorded_call.devices) == (
        "hey Ann",
        0.5,
        3.0,
        ("box",),
    )
    assert (ask.kind, ask.query, ask.route) == (TrialKind.COMMAND, "time", Route.LOUDSPEAKER)
    assert soak.ambient is not None
    assert (soak.ambient.hours, soak.ambient.segment_s, soak.level_dbfs) == (0.5, 30.0, -40.0)
    tv, hiss, talk, gossip = soak.ambient.sources
    files = tuple(str(recordings / name) for name in ("a.wav", "b.wav"))
    assert tv == AmbientSource("recordings", files, share=3.0, durations_s=(1.0, 2.0))
    assert hiss == AmbientSource("white", noise=NoiseKind.WHITE)
    assert (talk.texts, talk.voices) == (("good morning, Ann",), (VoiceSpec(name="en-gb"),)), "the default voice"
    assert gossip.voices == (VoiceSpec("flite", "slt"),)
    assert scenario.wake == WakeSettings(refractory_s=3.0, window_after_s=1.5, count_in_vocabulary=True)
    assert scenario.stopping == Stopping(SequentialTest(0.1, 0.5, 0.01, 0.05), on_undecided=OnUndecided.PASS)
    assert scenario.limits == Limits(
        max_false_reject_share=0.1, max_false_accepts_upper_per_hour=2.0, min_exposure_hours=0.4
    )


def test_each_kind_is_multiplied_by_the_axes_that_concern_it(folder: Path) -> None:
    scenario = load_scenario(folder / "wake.yaml")
    assert [trial_count(trial, scenario.matrix) for trial in scenario.trials] == [2 * 2 * 2, 2, 3 * 2 * 2, 60]


def test_an_ambient_trial_may_fix_what_the_matrix_varies_for_others(folder: Path) -> None:
    matrix = "matrix: {axes: {level_dbfs: [-20, -30]}}\n"
    soak = "  - {id: s, kind: ambient, hours: 1, level_dbfs: -40, sources: [{noise: pink}]}\n"
    assert written(folder, soak, matrix).trials[0].level_dbfs == -40.0
    with pytest.raises(InputProblems, match="the trial sets `level_dbfs`"):
        written(folder, "  - {id: a, kind: wake, level_dbfs: -40}\n", matrix)


def test_injecting_connections_are_distinguished(bench: Bench) -> None:
    assert [device.connection.injects for device in bench.devices if device.connection] == [False, True]


def test_what_is_injected_needs_no_loudspeaker(folder: Path, bench: Bench) -> None:
    silent = replace(bench, loudspeakers=())
    wired = written(folder, "  - {id: a, kind: wake, devices: [wired]}\n", "needs: [injection]\n")
    check_compatibility(wired, silent)
    for trial in ("{id: a, kind: wake}", "{id: a, kind: wake, devices: [wired], route: loudspeaker}"):
        with pytest.raises(UnmetNeed, match="'loudspeaker'"):
            check_compatibility(written(folder, f"  - {trial}\n"), silent)


@pytest.mark.parametrize(
    ("trial", "message"),
    [
        ("{id: a, kind: wake, devices: [box], route: injection}", "whose connection \\(in_process\\) cannot inject"),
        ("{id: a, kind: wake, devices: [mute]}", "'mute', which reports none"),
        ("{id: a, kind: wake, route: injection}", "injects sound into 'box'"),
    ],
)
def test_impossible_trial_is_an_unmet_need_with_its_line(trial: str, message: str, folder: Path, bench: Bench) -> None:
    with pytest.raises(UnmetNeed, match=message) as unmet:
        check_compatibility(written(folder, f"  - {trial}\n"), bench)
    assert unmet.value.place is not None
    assert unmet.value.place.line == 3


def test_wake_trial_needs_a_device_that_reports_wake_events(folder: Path) -> None:
    (folder / "box.yaml").write_text(BOX.replace("reports: [wake]\n", ""), encoding="utf-8")
    with pytest.raises(UnmetNeed, match="no device on the bench 'two' reports any"):
        check_compatibility(written(folder, "  - {id: a, kind: wake}\n"), load_bench(folder / "bench.yaml"))


def test_mistakes_are_reported_with_their_lines(folder: Path, bench: Bench) -> None:
    trials = """\
  - {id: a, kind: wake, devices: [box, boxx]}
  - id: b
    kind: ambient
    hours: 1
    sources:
      - texts:
        - a quiet evening
        - the "Computer" is on
"""
    with pytest.raises(InputProblems) as refused:
        check_compatibility(written(folder, trials), bench)
    first, second = refused.value.problems
    assert first.place is not None
    assert second.place is not None
    assert (first.place.line, "Did you mean 'box'" in first.remedy) == (3, True)
    assert (second.place.line, second.what) == (
        10,
        "an ambient text contains the wake phrase 'computer': waking to it would be correct",
    )


@pytest.mark.parametrize(
    ("probe", "phrase"),
    [("", "ok lamp"), (", probe: {every_s: 60, phrase: other}", "hey lamp")],
    ids=["second", "probe"],
)
def test_an_ambient_text_may_hold_no_phrase_to_which_its_devices_wake(probe: str, phrase: str, folder: Path) -> None:
    (folder / "box.yaml").write_text(BOX.replace("computer", "hey lamp, ok lamp"), encoding="utf-8")
    sources = f"sources: [{{texts: [well {phrase} then]}}]{probe}"
    with pytest.raises(InputProblems, match=f"contains the wake phrase '{phrase}'"):
        check_compatibility(
            written(folder, f"  - {{id: a, kind: ambient, hours: 1, {sources}}}\n"), load_bench(folder / "bench.yaml")
        )


def test_a_file_whose_name_has_brackets_is_not_a_pattern(folder: Path) -> None:
    recordings = folder.parent / "recordings" / "said"
    for name in ("one[1].wav", "one1.wav"):
        (recordings / name).write_bytes((recordings / "one.wav").read_bytes())
    (recordings / "list.csv").write_text("recording,talker\none[1].wav,ann\none1.wav,ben\n", encoding="utf-8")
    trial = "  - {id: a, kind: wake, recordings: 'tv:said/list.csv'}\n"
    (listed,) = written(folder, trial, "assets: {tv: ../recordings}\n").trials
    assert [Path(path).name for path in listed.recordings] == ["one[1].wav", "one1.wav"]
    assert [dict(facts.traits)["talker"] for facts in listed.recording_facts] == ["ann", "ben"]


def test_devices_that_wake_to_different_phrases_need_a_phrase(folder: Path) -> None:
    (folder / "lamp.yaml").write_text("device: lamp\nwake_phrases: [hey lamp]\nreports: [wake]\n", encoding="utf-8")
    (folder / "bench.yaml").write_text(
        BENCH.replace("mute: {profile: box}", "lamp: {profile: lamp, connection: {driver: in_process}}"),
        encoding="utf-8",
    )
    bench = load_bench(folder / "bench.yaml")
    with pytest.raises(
        InputProblems, match="have different wake phrases \\(box: computer, wired: computer, lamp: hey lamp"
    ):
        check_compatibility(written(folder, "  - {id: a, kind: wake}\n"), bench)
    check_compatibility(written(folder, "  - {id: a, kind: wake, phrase: computer}\n"), bench)
    check_compatibility(written(folder, "  - {id: a, kind: wake, devices: [lamp]}\n"), bench)

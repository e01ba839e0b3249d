"""A session's folder is made whole or not at all; `validate` refuses what a run refuses, in the same words."""

from __future__ import annotations

import hashlib
import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile

from harness.base.host_check import Level
from harness.base.processor import host_facts
from harness.cli.doctor.checks import sound
from harness.model.bench import OperatorPresence
from harness.model.errors import HarnessError, InputError, InputProblems, LogError, UnmetNeed
from harness.model.record import SessionStarted
from harness.scenario.bench import load_bench
from harness.scenario.scenario import load_scenario
from harness.session.engine.assemble import assemble, clock_of, equipment_of, read_resolved, with_typed_options
from harness.session.engine.prepare import plan_session, prepare, sound_path
from harness.session.log.reader import LogReader, check
from tests.command import harness
from tests.files import file_with

INPUTS = Path(__file__).parents[3] / "conformance" / "in_process"
DEVICES = Path(__file__).parents[4] / "devices"


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_the_folder_holds_all_that_a_resume_needs(tmp_path: Path) -> None:
    folder = prepare(INPUTS / "sixty.yaml", INPUTS / "bench.yaml", tmp_path)
    (entry,) = LogReader(folder).entries()
    started = entry.record
    assert isinstance(started, SessionStarted)
    assert (entry.run, started.session_id, len(started.trials)) == (0, folder.name, 60)
    assert started.scenario_sha256 == sha256(INPUTS / "sixty.yaml") == sha256(folder / "inputs" / "scenario.yaml")
    assert started.bench_sha256 == sha256(folder / "inputs" / "bench.yaml")
    assert (folder / "inputs" / "profiles" / "in_process_device.yaml").is_file()
    assert started.sound_path == "inside this process ×50, no real sound"
    assert {"voice-harness", "python", "sqlite", "voice espeak"} <= {name for name, _ in started.versions}
    summary = json.loads((folder / "session.json").read_text())
    assert (summary["session"], summary["seed"], summary["trials"]) == (folder.name, 3, 60)
    assert summary["host"] == dict(started.host) == dict(host_facts())
    assert check(folder).damage == ()
    assert [path.name for path in tmp_path.iterdir()] == [folder.name]


def test_scenario_and_bench_come_back_as_they_were_read(tmp_path: Path) -> None:
    folder = prepare(INPUTS / "three.yaml", INPUTS / "bench.yaml", tmp_path)
    resolved = read_resolved(folder)
    assert resolved.scenario == load_scenario(INPUTS / "three.yaml")
    assert with_typed_options(resolved.bench) == load_bench(INPUTS / "bench.yaml")


def test_operator_presence_and_seed_can_be_overridden(tmp_path: Path) -> None:
    folder = prepare(INPUTS / "three.yaml", INPUTS / "bench.yaml", tmp_path, seed=99, operator=OperatorPresence.PRESENT)
    resolved = read_resolved(folder)
    assert (resolved.scenario.seed, resolved.bench.operator) == (99, OperatorPresence.PRESENT)


def test_sessions_of_one_second_get_folders_of_their_own(tmp_path: Path) -> None:
    """Also those that are made at once."""
    with ThreadPoolExecutor(6) as pool:
        folders = set(pool.map(lambda _: prepare(INPUTS / "three.yaml", INPUTS / "bench.yaml", tmp_path), range(12)))
    assert len(folders) == 12
    assert set(tmp_path.iterdir()) == folders
    for folder in folders:
        (entry,) = LogReader(folder).entries()
        assert isinstance(entry.record, SessionStarted)
        assert entry.record.session_id == folder.name


@pytest.mark.parametrize(
    ("scenario", "bench", "error", "words"),
    [
        ("wrong.yaml", "bench.yaml", InputProblems, "tine"),
        ("none.yaml", "bench.yaml", InputError, "no such file"),
        ("three.yaml", "none.yaml", InputError, "no such file"),
        ("three.yaml", "three.yaml", InputError, "bench"),
        ("skip.yaml", "bench.yaml", UnmetNeed, "monitor"),
    ],
)
def test_invalid_session_is_refused_and_leaves_nothing(
    tmp_path: Path, scenario: str, bench: str, error: type[HarnessError], words: str
) -> None:
    with pytest.raises(error, match=words):
        prepare(INPUTS / scenario, INPUTS / bench, tmp_path / "sessions")
    assert not (tmp_path / "sessions").exists()


def test_an_unwritable_place_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LogError, match="cannot be created"):
        prepare(INPUTS / "three.yaml", INPUTS / "bench.yaml", tmp_path / "file" / "sessions")


@pytest.mark.parametrize("damage", ["", "{}", '{"scenario": 1, "bench": 2}'])
def test_a_damaged_resolved_file_is_reported(tmp_path: Path, damage: str) -> None:
    folder = prepare(INPUTS / "three.yaml", INPUTS / "bench.yaml", tmp_path)
    (folder / "resolved.json").write_text(damage)
    with pytest.raises(LogError, match="is damaged"):
        read_resolved(folder)


BENCH = """
bench: b
loudspeakers:
  near: {driver: in_process, speed: %s}
microphone: {%s}
devices:
  unit: {profile: device.yaml, connection: {driver: in_process, speed: 4}}
"""


def bench_file(folder: Path, speed: float, microphone: str) -> Path:
    (folder / "device.yaml").write_bytes((INPUTS / "device.yaml").read_bytes())
    (folder / "bench.yaml").write_text(BENCH % (speed, microphone))
    return folder / "bench.yaml"


def test_equipment_with_several_roles_has_one_driver(tmp_path: Path) -> None:
    bench = load_bench(bench_file(tmp_path, 4, "same_as: near"))
    clock = clock_of(bench)
    drivers = assemble(bench, clock, 1, tmp_path / "scratch")
    assert clock.speed == 4
    assert set(drivers) == {equipment.id for equipment in equipment_of(bench)}
    assert len(drivers) == 2
    assert sound_path(bench) == "inside this process ×4, no real sound"


SILENT = """\
bench: b
loudspeakers: {front: {driver: in_process}}
devices: {board: {profile: device.yaml, connection: {driver: tcp, address: "127.0.0.1:7313"}}}
"""
LAMP = """\
device: device
wake_phrases: [hey lamp]
reports: [wake]
transport: tcp
lines: [{match: '^woke', kind: wake}]
"""
SOAK = """\
scenario: soak
needs: [wake_events]
trials: [{id: soak, kind: ambient, hours: 0.003, segment_s: 10.8, sources: [{noise: pink}]}]
"""


def test_a_real_board_hears_nothing_of_a_loudspeaker_inside_this_process(tmp_path: Path) -> None:
    for name, text in (("device", LAMP), ("bench", SILENT), ("soak", SOAK)):
        (tmp_path / f"{name}.yaml").write_text(text, encoding="utf-8")
    bench = load_bench(tmp_path / "bench.yaml")
    unheard = "board hears nothing: the bench's loudspeakers are simulated in this process"
    started = plan_session(load_scenario(tmp_path / "soak.yaml"), bench)
    assert started.sound_path == f"inside this process ×1, no real sound; {unheard}"
    assert [(check.level, check.says) for check in sound(bench)] == [
        (Level.WARN, unheard),
        (Level.OK, "the bench needs no sound device"),
    ]


def test_different_speeds_are_refused(tmp_path: Path) -> None:
    bench = bench_file(tmp_path, 4, "driver: in_process, speed: 2")
    with pytest.raises(InputError, match="different speeds"):
        prepare(INPUTS / "three.yaml", bench, tmp_path / "sessions")


def test_real_equipment_does_not_run_faster(tmp_path: Path) -> None:
    bench = load_bench(bench_file(tmp_path, 4, "same_as: near"))
    speaker = bench.loudspeakers[0]
    mixed = replace(bench, loudspeakers=(speaker, replace(speaker, id="far", driver="loudspeaker", options=object())))
    with pytest.raises(InputError, match="'far' is real"):
        clock_of(mixed)


HERMES = """\
bench: hermes
operator: absent
loudspeakers:
  room: {driver: mqtt, address: "127.0.0.1:1", topic_device: default, injection: hermes_play_bytes}
devices:
  kitchen:
    profile: PROFILE
    connection: {driver: mqtt, address: "127.0.0.1:1", topic_device: default}
"""
CALLS = "scenario: calls\nneeds: [wake_events]\ntrials: [{id: call, kind: wake, phrase: alexa}]\n"


@pytest.mark.parametrize(
    ("dialogue", "player", "route"),
    [
        ("hermes_audio_frame", "kitchen", "kitchen gets its sound over its mqtt connection"),
        ("hermes_play_bytes", "room", "kitchen hears the loudspeaker, since its mqtt connection does not accept sound"),
    ],
)
def test_playback_through_a_device_is_no_injection(tmp_path: Path, dialogue: str, player: str, route: str) -> None:
    shipped = (DEVICES / "hermes_rhasspy.yaml").read_text(encoding="utf-8")
    assert "{dialogue: hermes_audio_frame," in shipped
    topics = {"hermes_play_bytes": "playBytes/{id}"}.get(dialogue, "audioFrame")
    profile = shipped.replace("hermes_audio_frame", dialogue).replace("audioFrame'", f"{topics}'")
    (tmp_path / "mine.yaml").write_text(profile.replace("device: hermes_rhasspy", "device: mine"), encoding="utf-8")
    (tmp_path / "bench.yaml").write_text(HERMES.replace("PROFILE", "mine"), encoding="utf-8")
    (tmp_path / "calls.yaml").write_text(CALLS, encoding="utf-8")
    folder = prepare(tmp_path / "calls.yaml", tmp_path / "bench.yaml", tmp_path / "sessions")
    (entry,) = LogReader(folder).entries()
    assert isinstance(entry.record, SessionStarted)
    assert [trial.loudspeaker for trial in entry.record.trials] == [player]
    assert entry.record.sound_path.endswith(route)


CHIMING = """\
bench: chiming
loudspeakers: {near: {driver: in_process}}
microphone: {driver: microphone, sound_device: default}
devices:
  kitchen: {profile: reference_assistant_black_box, earcons: kitchen/chimes.yaml}
  bath: {profile: reference_assistant_black_box, earcons: bath/chimes.yaml}
"""


def chiming_bench(folder: Path) -> Path:
    """A bench with a simulated loudspeaker and a real microphone, whose devices have files of the same names."""
    for device, tone_hz in (("kitchen", 440), ("bath", 1000)):
        sounds = folder / device / "sounds"
        sounds.mkdir(parents=True)
        (folder / device / "chimes.yaml").write_text(f"earcons: {device}\nwake: sounds/wake.wav\n")
        samples = 0.3 * np.sin(2 * np.pi * tone_hz * np.arange(RATE_HZ // 4) / RATE_HZ)
        soundfile.write(sounds / "wake.wav", samples, RATE_HZ)
    (folder / "bench.yaml").write_text(CHIMING)
    return folder / "bench.yaml"


def test_chimes_of_each_device_are_in_the_folder(tmp_path: Path) -> None:
    bench = chiming_bench(tmp_path)
    (tmp_path / "calls.yaml").write_text(CALLS)
    copies = prepare(tmp_path / "calls.yaml", bench, tmp_path / "sessions") / "inputs" / "earcons"
    assert {path.name: sha256(path) for path in copies.iterdir()} == {
        f"{device}.{ending}": sha256(tmp_path / device / original)
        for device in ("kitchen", "bath")
        for ending, original in (("earcons.yaml", "chimes.yaml"), ("wake.wav", "sounds/wake.wav"))
    }


def test_sound_of_a_partly_simulated_bench_is_described(tmp_path: Path) -> None:
    bench = load_bench(chiming_bench(tmp_path))
    assert sound_path(bench) == "inside this process ×1, and this host's sound devices"


REHEARSED_BENCH = Path(__file__).parents[3] / "conformance" / "in_process" / "bench.yaml"
RATE_HZ = 16_000
TONE = (0.3 * np.sin(2 * np.pi * 440 * np.arange(RATE_HZ) / RATE_HZ)).astype(np.float32)
SCENARIO = """
scenario: recorded
title: Recordings
needs: [loudspeaker, microphone, transcripts]
stimuli:
"""


def written(folder: Path, *stimuli: str, trial: str = "") -> Path:
    """A scenario that plays each of these stimuli, given as their keys beside the id."""
    lines = [f"  - {{id: s{number}, {keys}}}" for number, keys in enumerate(stimuli)]
    trials = [f"  - {{id: t{number}, query: s{number}{trial}}}" for number in range(len(stimuli))]
    return file_with(folder / "scenario.yaml", SCENARIO + "\n".join([*lines, "trials:", *trials, ""]))


def recording(folder: Path, name: str, samples: np.ndarray, rate_hz: int = RATE_HZ, share: float = 1) -> str:
    path = folder / name
    soundfile.write(path, samples, rate_hz, subtype="FLOAT" if name.endswith("wav") else None)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    return f"recording: {name}, transcript: hello"


def refused(scenario: Path, tmp_path: Path) -> set[str]:
    """What is wrong by `validate`, alone and with a bench, and before a run: the same. Nothing is left behind."""
    with pytest.raises(InputError) as caught:
        prepare(scenario, REHEARSED_BENCH, tmp_path / "sessions")
    assert not (tmp_path / "sessions").exists()
    error = caught.value
    at_run = {str(problem) for problem in (error.problems if isinstance(error, InputProblems) else [error])}
    for paths in ([scenario], [scenario, REHEARSED_BENCH]):
        result = harness("validate", *paths)
        assert result.exit_code == 2, result.output
        assert at_run <= set(result.stderr.splitlines())
    return at_run


@pytest.mark.parametrize(
    ("name", "samples", "rate_hz", "share", "message"),
    [
        ("nan.wav", np.append(TONE, np.float32("nan")), RATE_HZ, 1, "invalid samples"),
        ("inf.wav", np.append(TONE, np.float32("inf")), RATE_HZ, 1, "invalid samples"),
        ("silent.wav", TONE * 0, RATE_HZ, 1, "is silent"),
        ("many.wav", np.repeat(TONE[:, None], 96, axis=1), RATE_HZ, 1, "96 channels"),
        ("slow.wav", TONE, 1, 1, "a rate of 1 Hz"),
        ("half.wav", TONE, RATE_HZ, 0.5, "truncated"),
        ("half.flac", TONE, RATE_HZ, 0.5, "lost sync"),
    ],
)
def test_a_recording_that_cannot_be_played_is_refused_by_both(
    tmp_path: Path, name: str, samples: np.ndarray, rate_hz: int, share: float, message: str
) -> None:
    scenario = written(tmp_path, recording(tmp_path, name, samples, rate_hz, share))
    (line,) = refused(scenario, tmp_path)
    assert f"'{name}'" in line
    assert message in line
    assert line.startswith(f"{scenario}:6:"), "where it is named"


@pytest.mark.parametrize(
    ("voice", "message"),
    [
        ("{engine: flite, name: sltt}", "Did you mean slt"),
        ("{engine: espeak, name: en-uss}", "en-us"),
        ("{engine: flite, name: slt, pitch: 3}", "Remove `pitch`"),
    ],
)
def test_a_voice_that_cannot_speak_is_refused_by_both(tmp_path: Path, voice: str, message: str) -> None:
    scenario = written(tmp_path, "text: what time is it", trial=f", voice: {voice}")
    (line,) = refused(scenario, tmp_path)
    assert line.startswith(str(scenario))
    assert message in line


def test_a_probe_whose_voice_cannot_speak_is_refused_by_both(tmp_path: Path) -> None:
    soak = "{kind: ambient, hours: 0.01, sources: [{noise: pink}], probe: {every_s: 60, voice: {name: en-uss}}}"
    scenario = file_with(tmp_path / "scenario.yaml", f"scenario: soak\ntrials:\n  - {soak}\n")
    (line,) = refused(scenario, tmp_path)
    assert "en-us" in line


def test_language_is_checked_only_with_a_bench(tmp_path: Path) -> None:
    scenario = written(tmp_path, "text: wie spät ist es", trial=", voice: {engine: espeak, name: de}")
    assert harness("validate", scenario).exit_code == 0
    result = harness("validate", scenario, REHEARSED_BENCH)
    assert result.exit_code == 2
    assert "Set `language: de`" in result.output


def test_all_unreadable_recordings_are_named_at_once(tmp_path: Path) -> None:
    names = [f"{number}.flac" for number in range(6)]
    noise = np.random.default_rng(1).uniform(-0.3, 0.3, RATE_HZ).astype(np.float32)
    stimuli = [recording(tmp_path, name, noise, share=0.6 if int(name[0]) % 2 else 1) for name in names]
    assert len(refused(written(tmp_path, *stimuli), tmp_path)) == 3
    result = harness("sound", "recordings", tmp_path)
    assert result.exit_code == 2
    lines = result.output.splitlines()
    assert [Path(line.partition(":")[0]).name for line in lines[:-1]] == names[1::2]
    assert lines[-1] == "6 recordings, 3 cannot be played"
    report = json.loads(harness("sound", "recordings", "--json", tmp_path).output)
    assert (report["files"], [Path(refusal["file"]).name for refusal in report["refused"]]) == (6, names[1::2])
    assert harness("sound", "recordings", tmp_path / "0.flac").output == "1 recording, 0 cannot be played\n"
    gone = harness("sound", "recordings", tmp_path / "gone.flac")
    assert (gone.exit_code, "the recording does not exist" in gone.output) == (2, True)


@pytest.mark.parametrize("axes", ["level_dbfs: [-26, -3]", "noise: [null, {kind: white, level_dbfs: -3}]"])
def test_the_loudest_stimulus_is_rendered_before_a_run(tmp_path: Path, axes: str) -> None:
    scenario = written(tmp_path, "text: what time is it")
    scenario.write_text(f"{scenario.read_text()}matrix: {{axes: {{{axes}}}}}\n")
    with pytest.raises(InputError, match="would clip") as refusal:
        prepare(scenario, REHEARSED_BENCH, tmp_path / "sessions")
    assert str(refusal.value) in harness("validate", scenario, REHEARSED_BENCH).stderr
    assert str(refusal.value).startswith(f"{scenario}: ")

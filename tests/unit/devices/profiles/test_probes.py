"""Profiles and their samples; probes and proofs of listening, as files declare them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile

from harness.devices.profiles.profile import load_profile, unescape
from harness.devices.profiles.samples import check_samples
from harness.model.bench import ObservationKind
from harness.model.errors import InputError, InputProblems
from harness.model.observation import DeviceState
from harness.model.scenario import ProbeSpec
from harness.model.stimulus import VoiceSpec
from harness.scenario.scenario import load_scenario
from tests.files import file_with
from tests.known import known

SOAK = """\
scenario: soak
voices: {cass: {engine: flite, name: slt}}
variables: {who: you}
trials:
  - {id: soak, kind: ambient, hours: 1, segment_s: 30, sources: [{noise: pink}], probe: PROBE}
"""
LAMP = """\
device: lamp
wake_phrases: [hey lamp]
reports: [wake, status, listening]
listening_states: [idle, dialogue_open]
lines:
  - {match: '^WAKE', kind: wake}
  - {match: '^alive', kind: listening}
  - {match: '^state (?P<state>\\w+)', kind: status}
samples:
  - {lines: [alive 17], gives: [{kind: listening}]}
  - {lines: [dead], gives: []}
"""


def written(tmp_path: Path, name: str, text: str) -> Path:
    return file_with(tmp_path / f"{name}.yaml", text)


def problems(tmp_path: Path, scenario: str) -> str:
    with pytest.raises(InputProblems) as caught:
        load_scenario(written(tmp_path, "soak", scenario))
    return str(caught.value)


@pytest.mark.parametrize(
    ("probe", "spec"),
    [
        (
            '{every_s: 120, phrase: "hey ${who}", voice: cass, level_dbfs: -20, tail_s: 6}',
            ProbeSpec(120.0, "hey you", VoiceSpec("flite", "slt"), -20.0, 6.0),
        ),
        ("{every_s: 30}", ProbeSpec(30.0)),
        (
            "{every_s: 60, voice: {engine: espeak, name: en-us+f3, rate_wpm: 150}}",
            ProbeSpec(60.0, voice=VoiceSpec("espeak", "en-us+f3", 150)),
        ),
    ],
)
def test_a_probe_may_use_any_voice(tmp_path: Path, probe: str, spec: ProbeSpec) -> None:
    (template,) = load_scenario(written(tmp_path, "soak", SOAK.replace("PROBE", probe))).trials
    assert known(template.ambient).probe == spec
    assert known(template.ambient).sources


def test_a_probe_may_be_a_recording(tmp_path: Path) -> None:
    recording = tmp_path / "said.wav"
    soundfile.write(recording, np.sin(np.arange(16_000) / 8).astype(np.float32) / 4, 16_000)
    soundfile.write(tmp_path / "silence.wav", np.zeros(16_000, np.float32), 16_000)
    probe = "{every_s: 60, recording: said.wav, phrase: hey lamp}"
    (template,) = load_scenario(written(tmp_path, "soak", SOAK.replace("PROBE", probe))).trials
    assert known(template.ambient).probe == ProbeSpec(60.0, "hey lamp", recording=str(recording))
    for probe, says in {
        "{every_s: 60, recording: sad.wav}": "there is no file 'sad.wav'",
        "{every_s: 60, recording: silence.wav}": "silen",
        "{every_s: 60, recording: said.wav, voice: cass}": "`voice` does not apply to recordings",
        "{every_s: 60, voice: cas}": "there is no voice 'cas'",
    }.items():
        assert says in problems(tmp_path, SOAK.replace("PROBE", probe))


@pytest.mark.parametrize(
    ("scenario", "says"),
    [
        (SOAK.replace("PROBE", "{every_s: 20}"), "soak.yaml:5:"),
        (
            SOAK.replace("PROBE", "{every_s: 20}"),
            "probes are played between segments, so not more often than every 30 s",
        ),
        ("scenario: soak\ntrials: [{id: one, kind: probe}]\n", "'probe'"),
        (
            "scenario: soak\ntrials: [{id: one, kind: wake, probe: {every_s: 60}}]\n",
            "'probe' does not apply to trials of kind wake",
        ),
    ],
)
def test_a_probe_lies_between_segments_of_ambient_sound(tmp_path: Path, scenario: str, says: str) -> None:
    assert says in problems(tmp_path, scenario)


def test_a_profile_says_what_proves_that_it_listens(tmp_path: Path) -> None:
    profile = load_profile(written(tmp_path, "lamp", LAMP), beside=tmp_path)
    assert profile.listening_states == {DeviceState.IDLE, DeviceState.DIALOGUE_OPEN}
    assert ObservationKind.LISTENING in profile.reports
    assert [result.wrong for result in check_samples(profile)] == [(), ()]


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (
            "kind: listening}\n  - {match: '^state",
            "kind: listening, fields: {text: x}}\n  - {match: '^state",
            "no field 'text'",
        ),
        ("  - {match: '^state (?P<state>\\w+)', kind: status}\n", "", "needs a rule of kind status"),
        ("[idle, dialogue_open]", "[idle, dozing]", "dozing"),
        ("  - {match: '^alive', kind: listening}\n", "", "lists 'listening', but no rule gives it"),
    ],
)
def test_invalid_probes_and_profiles_are_reported(tmp_path: Path, old: str, new: str, says: str) -> None:
    assert old in LAMP
    text = LAMP.replace(old, new)
    if "kind: status" in old:
        text = text.replace("reports: [wake, status, listening]", "reports: [wake, listening]")
    with pytest.raises(InputProblems) as caught:
        load_profile(written(tmp_path, "lamp", text), beside=tmp_path)
    assert says in str(caught.value)


DEVICES = Path(__file__).parents[4] / "devices"
IDS = sorted(path.stem for path in DEVICES.glob("*.yaml"))
OURS = {"reference_assistant", "reference_assistant_black_box", "vh_board", "vh_board_console", "vh_board_mqtt"}

LAMP_FILE = r"""
device: lamp
wake_phrases: [hey lamp]
reports: [wake]
lines:
  - {match: '^WAKE (?P<phrase>\w+) (?P<score>\d+)$', kind: wake, score_scale: 100}
samples:
"""


def write(folder: Path, sample: str) -> Path:
    return file_with(folder / "lamp.yaml", LAMP_FILE + sample)


def test_profiles_cover_at_least_sixteen_real_sources() -> None:
    assert len(set(IDS) - OURS) >= 16


@pytest.mark.parametrize("name", IDS)
def test_each_profile_is_valid_and_passes_its_samples(name: str) -> None:
    profile = load_profile(f"{name}.yaml", beside=DEVICES)
    assert profile.id == name
    assert [result.wrong for result in check_samples(profile) if result.wrong] == []
    if name not in OURS:
        assert profile.samples
        kinds = {str(event["kind"]) for sample in profile.samples for event in sample.gives}
        assert {kind.value for kind in profile.reports} <= kinds


@pytest.mark.parametrize(
    ("sample", "part"),
    [
        ("- {lines: [WAKE lamp 80], gives: [{kind: wake, phrase: lamp, score: 0.7}]}", "score: 0.8"),
        ("- {lines: [WAKE lamp 80], gives: [{kind: wake, phrase: lamp}]}", "score: 0.8"),
        ("- {lines: [WAKE lamp 80], gives: []}", "wanted nothing"),
        ("- {lines: [sleep], gives: [{kind: wake}]}", "got nothing"),
        ("- {lines: [WAKE lamp 80], gives: [{kind: status, state: idle}]}", "kind: status"),
    ],
)
def test_a_sample_with_another_result_fails(tmp_path: Path, sample: str, part: str) -> None:
    (result,) = check_samples(load_profile(write(tmp_path, sample), beside=Path()))
    assert part in " ".join(result.wrong)
    assert result.sample.line == LAMP_FILE.count("\n") + 1


def test_escapes_of_a_sample_are_bytes() -> None:
    assert unescape(r"\e[0mü\x00\xff \d \\e") == b"\x1b[0m" + "ü".encode() + b"\x00\xff \\d \\\x1b"


def test_a_transport_that_was_removed_is_refused_with_its_replacement(tmp_path: Path) -> None:
    (tmp_path / "lamp.yaml").write_text("device: lamp\ntransport: network_bursts\n")
    with pytest.raises(InputError, match=r"lamp.yaml:2:12: the driver 'network_bursts' was removed. Learn the device"):
        load_profile("lamp", beside=tmp_path)


def test_the_transport_follows_from_the_rules(tmp_path: Path) -> None:
    sample = "- {lines: [WAKE lamp 80], gives: [{kind: wake, phrase: lamp, score: 0.8}]}"
    profile = load_profile(write(tmp_path, sample), beside=Path())
    assert profile.transport == "serial"
    assert profile.reports == {ObservationKind.WAKE}
    assert load_profile("reference_assistant", beside=tmp_path).transport == "mqtt"
    assert load_profile("reference_assistant_black_box", beside=tmp_path).transport == "none"

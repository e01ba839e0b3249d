"""Probes and proofs of listening, as files declare them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile

from harness.devices.profiles.profile import load_profile
from harness.devices.profiles.samples import check_samples
from harness.model.bench import ObservationKind
from harness.model.errors import InputProblems
from harness.model.observation import DeviceState
from harness.model.scenario import ProbeSpec
from harness.model.stimulus import VoiceSpec
from harness.scenario.scenario import load_scenario

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
    path = tmp_path / f"{name}.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def problems(tmp_path: Path, probe: str) -> str:
    with pytest.raises(InputProblems) as caught:
        load_scenario(written(tmp_path, "soak", SOAK.replace("PROBE", probe)))
    return str(caught.value)


def test_a_probe_in_full_and_in_short(tmp_path: Path) -> None:
    probe = '{every_s: 120, phrase: "hey ${who}", voice: cass, level_dbfs: -20, tail_s: 6}'
    (template,) = load_scenario(written(tmp_path, "soak", SOAK.replace("PROBE", probe))).trials
    assert template.ambient is not None
    assert template.ambient.probe == ProbeSpec(120.0, "hey you", VoiceSpec("flite", "slt"), -20.0, 6.0)
    (template,) = load_scenario(written(tmp_path, "soak", SOAK.replace("PROBE", "{every_s: 30}"))).trials
    assert template.ambient is not None
    assert template.ambient.probe == ProbeSpec(30.0)
    assert template.ambient.sources


def test_a_probe_has_any_voice_or_a_recording(tmp_path: Path) -> None:
    said = tmp_path / "said.wav"
    soundfile.write(said, np.sin(np.arange(16_000) / 8).astype(np.float32) / 4, 16_000)
    soundfile.write(tmp_path / "silence.wav", np.zeros(16_000, np.float32), 16_000)
    for probe, spec in {
        "{every_s: 60, voice: {engine: espeak, name: en-us+f3, rate_wpm: 150}}": ProbeSpec(
            60.0, voice=VoiceSpec("espeak", "en-us+f3", 150)
        ),
        "{every_s: 60, recording: said.wav, phrase: hey lamp}": ProbeSpec(60.0, "hey lamp", recording=str(said)),
    }.items():
        (template,) = load_scenario(written(tmp_path, "soak", SOAK.replace("PROBE", probe))).trials
        assert template.ambient is not None
        assert template.ambient.probe == spec
    assert "there is no file 'sad.wav'" in problems(tmp_path, "{every_s: 60, recording: sad.wav}")
    assert "silen" in problems(tmp_path, "{every_s: 60, recording: silence.wav}")
    both = problems(tmp_path, "{every_s: 60, recording: said.wav, voice: cass}")
    assert "a recording has a voice of its own" in both
    assert "no voice is called 'cas'" in problems(tmp_path, "{every_s: 60, voice: cas}")


def test_probes_lie_between_segments(tmp_path: Path) -> None:
    said = problems(tmp_path, "{every_s: 20}")
    assert "probes lie between segments, and a segment lasts 30 s" in said
    assert "soak.yaml:5:" in said


def test_a_probe_is_no_kind_that_somebody_writes(tmp_path: Path) -> None:
    text = "scenario: soak\ntrials: [{id: one, kind: probe}]\n"
    with pytest.raises(InputProblems) as caught:
        load_scenario(written(tmp_path, "soak", text))
    assert "'probe'" in str(caught.value)


def test_a_probe_belongs_to_ambient_sound(tmp_path: Path) -> None:
    text = "scenario: soak\ntrials: [{id: one, kind: wake, probe: {every_s: 60}}]\n"
    with pytest.raises(InputProblems, match="'probe' has no meaning in a trial of kind wake"):
        load_scenario(written(tmp_path, "soak", text))


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
        ("  - {match: '^state (?P<state>\\w+)', kind: status}\n", "", "no mapping yields a status"),
        ("[idle, dialogue_open]", "[idle, dozing]", "dozing"),
        ("  - {match: '^alive', kind: listening}\n", "", "no mapping yields 'listening'"),
    ],
)
def test_what_cannot_be_is_told(tmp_path: Path, old: str, new: str, says: str) -> None:
    assert old in LAMP
    text = LAMP.replace(old, new)
    if "kind: status" in old:
        text = text.replace("reports: [wake, status, listening]", "reports: [wake, listening]")
    with pytest.raises(InputProblems) as caught:
        load_profile(written(tmp_path, "lamp", text), beside=tmp_path)
    assert says in str(caught.value)

"""The profiles of devices/ and their samples; and that a sample can fail."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.devices.profiles.profile import load_profile, unescaped
from harness.devices.profiles.samples import check_samples
from harness.model.bench import ObservationKind

DEVICES = Path(__file__).parents[4] / "devices"
IDS = sorted(path.stem for path in DEVICES.glob("*.yaml"))
OURS = {"reference_assistant", "reference_assistant_black_box", "vh_board", "vh_board_console", "vh_board_mqtt"}

LAMP = r"""
device: lamp
wake_phrases: [hey lamp]
reports: [wake]
lines:
  - {match: '^WAKE (?P<phrase>\w+) (?P<score>\d+)$', kind: wake, score_scale: 100}
samples:
"""


def write(folder: Path, sample: str) -> Path:
    path = folder / "lamp.yaml"
    path.write_text(LAMP + sample, encoding="utf-8")
    return path


def test_there_are_at_least_sixteen_real_sources() -> None:
    assert len(set(IDS) - OURS) >= 16


@pytest.mark.parametrize("name", IDS)
def test_a_profile_is_right_and_gives_what_its_samples_say(name: str) -> None:
    profile = load_profile(f"{name}.yaml", beside=DEVICES)
    assert profile.id == name
    assert [one.wrong for one in check_samples(profile) if one.wrong] == []
    if name not in OURS:
        assert profile.samples
        kinds = {str(one["kind"]) for sample in profile.samples for one in sample.gives}
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
def test_a_sample_that_gives_something_else_is_wrong(tmp_path: Path, sample: str, part: str) -> None:
    (result,) = check_samples(load_profile(write(tmp_path, sample), beside=Path()))
    assert part in " ".join(result.wrong)
    assert result.sample.line == LAMP.count("\n") + 1


def test_escapes_of_a_sample_are_bytes() -> None:
    assert unescaped(r"\e[0mü\x00\xff \d \\e") == b"\x1b[0m" + "ü".encode() + b"\x00\xff \\d \\\x1b"


def test_the_transport_follows_from_the_rules(tmp_path: Path) -> None:
    sample = "- {lines: [WAKE lamp 80], gives: [{kind: wake, phrase: lamp, score: 0.8}]}"
    profile = load_profile(write(tmp_path, sample), beside=Path())
    assert profile.transport == "serial"
    assert profile.reports == {ObservationKind.WAKE}
    assert load_profile("reference_assistant", beside=tmp_path).transport == "mqtt"
    assert load_profile("reference_assistant_black_box", beside=tmp_path).transport == "none"

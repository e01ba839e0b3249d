"""Profiles that take the line rules of others."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.devices.profiles.profile import load_profile
from harness.devices.profiles.samples import check_samples
from harness.model.errors import HarnessError

SHARED = """\
device: shared
wake_phrases: []
reports: [wake]
lines:
  - {match: 'WOKE (?P<phrase>\\w+)', kind: wake}
  - {match: 'A', kind: wake, more: ['B']}
"""
TAKING = """\
device: taking
wake_phrases: []
reports: [wake]
lines_of: [shared]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shared.yaml").write_text(SHARED)
    return tmp_path


def test_own_rules_come_first_and_shared_ones_follow(folder: Path) -> None:
    rules = "lines:\n  - {match: 'WOKE alexa', kind: status, fields: {state: idle}}\n"
    samples = """\
samples:
  - lines: [WOKE alexa, WOKE jarvis]
    gives: [{kind: status, state: idle}, {kind: wake, phrase: jarvis}]
"""
    (folder / "taking.yaml").write_text(TAKING + rules + samples)
    profile = load_profile("taking", beside=folder)
    assert [source.id for source in profile.lines_of] == ["shared"]
    assert not any(result.wrong for result in check_samples(profile))
    assert profile.transport == "serial"


def test_messages_of_a_topic_are_lines(folder: Path) -> None:
    samples = """\
samples:
  - {topic: 'taking/log', payload: WOKE alexa, gives: [{kind: wake, phrase: alexa}]}
  - {topic: 'taking/log', payload: A, gives: []}
"""
    (folder / "taking.yaml").write_text(TAKING + "console: {topic: '{device}/log'}\n" + samples)
    profile = load_profile("taking", beside=folder)
    assert profile.transport == "mqtt"
    assert not any(result.wrong for result in check_samples(profile))


@pytest.mark.parametrize(
    ("shared", "says"),
    [
        (None, r"taking\.yaml:4:\d+: .*'shared' does not exist"),
        (SHARED + "lines_of: [taking]\n", r"shared\.yaml:7:1: .*'taking' takes lines from this profile"),
        ("device: shared\nwake_phrases: []\nlines: [{match: '(', kind: wake}]\n", r"shared\.yaml:3:\d+: "),
    ],
)
def test_invalid_shared_rules_are_refused(folder: Path, shared: str | None, says: str) -> None:
    path = folder / "shared.yaml"
    path.unlink() if shared is None else path.write_text(shared)
    (folder / "taking.yaml").write_text(TAKING)
    with pytest.raises(HarnessError, match=says):
        load_profile("taking", beside=folder)


def test_shared_rules_for_json_lines_follow_own_rules(folder: Path) -> None:
    (folder / "shared.yaml").write_text(
        SHARED + "mappings:\n  - {type: woke, kind: wake}\n  - {type: said, kind: transcript, fields: {text: /text}}\n"
    )
    rules = "mappings:\n  - {type: woke, kind: log, fields: {text: /type}}\n"
    samples = """\
samples:
  - lines: ['{"type": "woke"}', '{"type": "said", "text": "hello"}']
    gives: [{kind: log, text: woke}, {kind: transcript, text: hello}]
"""
    taking = TAKING.replace("reports: [wake]", "reports: [wake, transcript]")
    (folder / "taking.yaml").write_text(taking + rules + samples)
    assert not any(result.wrong for result in check_samples(load_profile("taking", beside=folder)))

"""Every family of assistants reports that it understood nothing as evidence."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.devices.profiles.profile import load_profile
from harness.devices.wire.console import Console
from harness.devices.wire.mappings import for_device, observations
from harness.model.bench import ObservationKind
from harness.model.observation import Intent
from harness.model.time import Stamp

WYOMING = '{"type": "error", "data": {"text": "No text recognized", "code": "stt-no-text-recognized"}}'
ESPHOME = "[20:39:24][E][voice_assistant:830]: Error: stt-no-text-recognized - No text recognized"


@pytest.mark.parametrize(
    ("profile", "line"),
    [
        ("wyoming_events", WYOMING),
        ("wyoming_server", WYOMING),
        ("home_assistant", '{"type": "error", "data": {"code": "stt-no-text-recognized", "message": "No text"}}'),
        ("esphome_voice", ESPHOME),
        ("esphome_voice_assistant", ESPHOME),
        ("esphome_micro_wake_word", ESPHOME),
        ("esphome_assistant", "assistant.error=stt-no-text-recognized"),
        ("ovos_bus", '{"type": "recognizer_loop:speech.recognition.unknown", "data": {}, "context": {}}'),
    ],
)
def test_no_understanding_in_a_line_is_reported(profile: str, line: str) -> None:
    console = Console(load_profile(profile, beside=Path()), "device")
    (intent,) = console.feed(line.encode() + b"\n", Stamp(1.0))
    assert intent == Intent("device", intent.at, "")


def test_a_profile_reports_intents_if_only_a_rule_of_no_understanding_gives_them(tmp_path: Path) -> None:
    path = tmp_path / "box.yaml"
    path.write_text(
        "device: box\ntitle: Box\nwake_phrases: [hey box]\nreports: [intent]\n"
        "lines:\n  - {kind: not_understood, match: '^nothing$'}\n"
    )
    assert ObservationKind.INTENT in load_profile(path.name, beside=tmp_path).reports


@pytest.mark.parametrize(
    ("profile", "topic", "payload"),
    [
        ("hermes_rhasspy", "hermes/nlu/intentNotRecognized", b'{"input": "", "siteId": "default"}'),
        ("esphome_voice_assistant_mqtt", "kitchen/debug", ESPHOME.encode()),
    ],
)
def test_no_understanding_in_a_message_is_reported(profile: str, topic: str, payload: bytes) -> None:
    rules = for_device(load_profile(profile, beside=Path()).mappings, "kitchen")
    (intent,) = observations(rules, topic, payload, Stamp(1.0), "device")
    assert intent == Intent("device", Stamp(1.0), "")

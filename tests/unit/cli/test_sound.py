"""`harness sound` as far as it needs no sound device."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.cli import group
from harness.model.errors import InputError
from harness.sound import sound_devices


def test_without_sound_devices_the_lab_is_started_only_if_it_is_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HARNESS_LAB", str(tmp_path))
    monkeypatch.setattr(sound_devices, "sound_devices", lambda _server: ())
    result = CliRunner().invoke(group, ["sound", "list"])
    assert result.stdout.endswith("For the virtual lab: harness admin lab up, then --sound-server virtual_lab\n")
    state = {"environment": {}, "mqtt_host": "127.0.0.1", "mqtt_port": 1883, "pids": {}}
    (tmp_path / "lab.json").write_text(json.dumps(state), encoding="utf-8")
    result = CliRunner().invoke(group, ["sound", "list"])
    assert result.stdout.endswith("For the virtual lab: --sound-server virtual_lab\n")


def test_two_damaged_recordings_of_one_name_are_not_rescued_into_one_file(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "x.wav").write_bytes(b"RIFF")
    arguments = ["sound", "recordings", str(tmp_path / "a"), str(tmp_path / "b"), "--rescue", str(tmp_path / "out")]
    with pytest.raises(InputError, match=r"several recordings would be rescued as x\.wav\.flac"):
        CliRunner().invoke(group, arguments, catch_exceptions=False)
    assert not (tmp_path / "out").exists()

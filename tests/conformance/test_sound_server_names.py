"""Sinks and sources of PulseAudio by their own names, through ALSA's plug-in `pulse`."""

from __future__ import annotations

import pytest

from harness.lab.sound_server import LabSoundServer
from harness.sound.path_check import chirp, find
from harness.sound.sound_devices import sound_devices
from tests.conformance.sound_path import play, player, recorder

pytestmark = pytest.mark.sound


def test_a_sink_and_a_source_are_listed_and_used_by_name(
    lab_sound: LabSoundServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in lab_sound.environment().items():
        if name.startswith("PULSE"):
            monkeypatch.setenv(name, value)
    names = {one.name for one in sound_devices("system")}
    assert {"pulse", "ear_d", "spk_h", "ear_d.monitor"} <= names
    sent = chirp()
    with recorder("ear_d.monitor", "system") as (_, ring, _), player("ear_d", "system") as (playback, told):
        at, _ = play(playback, told, sent)
        sound, _ = ring.cut(at.at_s - 0.5, at.at_s + 0.9)
    assert find(sound.samples, sent.samples).correlation > 0.9

"""Sinks and sources of PulseAudio by their own names, through ALSA's plug-in `pulse`."""

from __future__ import annotations

import pytest

from harness.lab.sound_server import LabSoundServer
from harness.sound.capture import Capture, Ring
from harness.sound.path_check import chirp, find
from harness.sound.playback import Playback
from harness.sound.sound_devices import sound_devices
from tests.conformance.sound_path import Told, until

pytestmark = pytest.mark.sound


def test_a_sink_and_a_source_are_listed_and_used_by_name(
    lab_sound: LabSoundServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in lab_sound.environment().items():
        if name.startswith("PULSE"):
            monkeypatch.setenv(name, value)
    names = {one.name for one in sound_devices("system")}
    assert {"pulse", "ear_d", "spk_h", "ear_d.monitor"} <= names
    told, ring, known = Told(), Ring(30.0), chirp()
    capture = Capture("ear_d.monitor", "system", on_block=ring.put, on_fault=told.fault, on_back=told.backs.append)
    playback = Playback(
        "ear_d",
        "system",
        on_started=lambda play_id, at: told.started.append((play_id, at)),
        on_ended=lambda play_id, at, complete: told.ended.append((play_id, at, complete)),
        on_fault=told.fault,
        on_back=told.backs.append,
        on_overrun=told.overrun,
    )
    capture.open()
    try:
        playback.open()
        playback.play("known", known)
        until(lambda: len(told.ended) == 1, 5.0, "the end of the play")
        at = told.started[0][1]
        sound, _ = ring.cut(at.at_s - 0.5, at.at_s + 0.9)
    finally:
        playback.close()
        capture.close()
    assert find(sound.samples, known.samples).correlation > 0.9

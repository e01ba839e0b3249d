"""Sinks and sources of PulseAudio by their own names, through ALSA's plug-in `pulse`."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from harness.devices.loudspeaker import Loudspeaker, LoudspeakerOptions
from harness.lab.sound_server import LabSoundServer
from harness.model.observation import StimulusEnded
from harness.sound.path_check import chirp, find
from harness.sound.sound_devices import sound_devices
from tests.conformance.sound_path import OnTheLab, noise, play, player, recorder
from tests.seen import until

pytestmark = [pytest.mark.sound, pytest.mark.usefixtures("host_keeps_time")]


def test_a_sink_and_a_source_are_listed_and_used_by_name(
    lab_sound: LabSoundServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in lab_sound.environment().items():
        if name.startswith("PULSE"):
            monkeypatch.setenv(name, value)
    names = {device.name for device in sound_devices("system")}
    assert {"pulse", "ear_d", "spk_h", "ear_d.monitor"} <= names
    sent = chirp()
    with recorder("ear_d.monitor", "system") as (_, ring, _), player("ear_d", "system") as (playback, events):
        stamp, _ = play(playback, events, sent)
        sound, _ = ring.cut(stamp.at_s - 0.5, stamp.at_s + 0.9)
    assert find(sound.samples, sent.samples).correlation > 0.9


@dataclass(frozen=True, slots=True)
class OnTheSystem(OnTheLab):
    sound_server: str = "system"


def test_each_loudspeaker_of_one_device_has_its_own_output(
    lab_sound: LabSoundServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name, value in lab_sound.environment().items():
        if name.startswith("PULSE"):
            monkeypatch.setenv(name, value)
    sides = "front-left,front-right,rear-left,rear-right"  # what ALSA takes four channels for
    sink = f"module-null-sink sink_name=interface rate=48000 channels=4 channel_map={sides} format=s16le norewinds=1"
    load = ["pactl", "load-module", *sink.split()]
    module = subprocess.run(load, check=True, capture_output=True, text=True).stdout.strip()
    listen = ["parec", "--device=interface.monitor", "--rate=48000", "--format=s16le", "--raw"]
    listen += ["--channels=4", f"--channel-map={sides}"]
    recording = tmp_path / "outputs.raw"
    ended: list[str] = []
    options = (LoudspeakerOptions("interface", output=number, outputs=4) for number in (2, 3))
    speakers = [Loudspeaker(f"out{option.output}", option, OnTheSystem(tmp_path)) for option in options]
    with recording.open("wb") as file:
        child = subprocess.Popen(listen, stdout=file)
    try:
        until(lambda: recording.stat().st_size > 0, 20.0, "the recording")
        for speaker in speakers:
            speaker.open(
                lambda observation: ended.append(observation.source) if isinstance(observation, StimulusEnded) else None
            )
            speaker.play("play", noise(0.5))
            until(lambda: len(ended) > speakers.index(speaker), 20.0, "the end")  # noqa: B023  called at once
        size = recording.stat().st_size
        until(lambda: recording.stat().st_size > size + 4 * 48000, 20.0, "what was on its way")
    finally:
        for speaker in speakers:
            speaker.close()
        child.terminate()
        child.wait()
        subprocess.run(["pactl", "unload-module", module], check=True)
    heard = np.fromfile(recording, "<i2")
    outputs = heard[: len(heard) // 4 * 4].reshape(-1, 4)
    assert [bool(outputs[:, number].any()) for number in range(4)] == [False, True, True, False]
    second, third = (np.flatnonzero(outputs[:, number]) for number in (1, 2))
    assert second.max() < third.min()

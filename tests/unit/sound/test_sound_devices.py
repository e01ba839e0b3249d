"""Finding a device by what a person calls it."""

from __future__ import annotations

import pytest

from harness.devices.loudspeaker import LoudspeakerOptions
from harness.model.bench import Bench, Equipment
from harness.model.errors import Place, SoundError
from harness.sound.sound_devices import SoundDevice, find, find_part, server_devices

DEVICES = (
    SoundDevice(0, "HDA Intel PCH: ALC257 Analog (hw:0,0)", 2, 2, 44100),
    SoundDevice(1, "USB Audio Device: - (hw:1,0)", 0, 2, 48000),
    SoundDevice(2, "speaker", 0, 2, 48000),
    SoundDevice(3, "speaker far", 0, 2, 48000),
    SoundDevice(4, "mic", 1, 0, 48000),
)


@pytest.mark.parametrize(
    ("name", "plays", "index"),
    [("speaker", True, 2), ("far", True, 3), ("usb audio", True, 1), ("ALC257", False, 0), ("mic", False, 4)],
)
def test_exact_names_come_first_then_the_only_one_that_contains_it(name: str, plays: bool, index: int) -> None:
    assert find(DEVICES, name, plays=plays).index == index


def test_a_name_of_several_devices_is_asked_back() -> None:
    with pytest.raises(SoundError, match="matches 2 playback devices") as caught:
        find(DEVICES, "SPEAK", plays=True)
    assert "'speaker far'" in caught.value.remedy


@pytest.mark.parametrize("name", ["speeker", "mic", ""])
def test_a_wrong_name_lists_those_that_would_do(name: str) -> None:
    with pytest.raises(SoundError, match="the playback device") as caught:
        find(DEVICES, name, plays=True)
    assert "'speaker far'" in caught.value.remedy
    assert "'mic'" not in caught.value.remedy
    assert caught.value.remedy.startswith("Did you mean 'speaker'?") is (name == "speeker")


def test_without_any_device_the_sound_server_is_suspected() -> None:
    with pytest.raises(SoundError, match="'default' does not exist, and there is no other") as caught:
        find(DEVICES[4:], "default", plays=True)
    assert "pactl info" in caught.value.remedy


@pytest.mark.parametrize(
    ("sound_server", "remedy"),
    [("system", "set `sound_server: virtual_lab` in the bench file"), ("virtual_lab", "harness admin lab down")],
)
def test_without_any_device_the_remedy_fits_the_sound_server_of_the_bench(sound_server: str, remedy: str) -> None:
    speaker = Equipment("near", "sound", LoudspeakerOptions("default"), Place("bench.yaml", 8, 3))
    bench = Bench("b", "b", "bench.yaml", "b" * 64, (), (speaker,), None, sound_server=sound_server)
    with pytest.raises(SoundError, match="there is no other") as caught:
        find_part(DEVICES[4:], speaker, bench)
    assert remedy in caught.value.remedy
    assert "--sound-server" not in caught.value.remedy
    with pytest.raises(SoundError) as of_child:
        find(DEVICES[4:], "default", plays=True, sound_server=sound_server)
    assert of_child.value.remedy == caught.value.remedy


def test_sinks_and_sources_of_a_sound_server_have_their_own_names_and_are_reached_through_pulse() -> None:
    ways = [SoundDevice(0, "hw:0,0", 2, 2, 44100), SoundDevice(3, "pulse", 32, 32, 48000)]
    sink, source = server_devices(ways, ["alsa_output.usb-Speaker"], ["alsa_input.usb-Microphone"])
    assert find([*ways, sink, source], "usb-Speaker", plays=True) == sink
    assert (sink.index, sink.server_name, sink.inputs) == (3, "alsa_output.usb-Speaker", 0)
    assert find([*ways, sink, source], "usb-Microphone", plays=False) == source
    assert server_devices(ways[:1], ["a"], ["b"]) == [], "without the plug-in there is no way to them"

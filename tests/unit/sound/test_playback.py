"""Plays and their ends, from the packets of a sound child."""

from __future__ import annotations

import numpy as np
import pytest

from harness.model.errors import SoundError
from harness.model.stimulus import Waveform
from harness.model.time import Stamp
from harness.sound import supervised_stream as module
from harness.sound.child import Packet, PacketKind
from harness.sound.playback import Playback
from harness.sound.supervised_stream import BROKEN, SupervisedStream

FRAMES = 480


def test_plays_that_are_lost_while_an_end_is_reported_end_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SupervisedStream, "is_open", True)
    monkeypatch.setattr(SupervisedStream, "send", lambda stream, packet: True)
    ended: list[tuple[str, bool]] = []

    def on_ended(play_id: str, stamp: Stamp, complete: bool) -> None:
        ended.append((play_id, complete))
        if play_id == "a":
            playback.faulted(stamp, "the sound server has died")

    playback = Playback("speaker", "system", on_ended=on_ended, on_fault=lambda stamp, problem: None)
    playback.opened(Packet(PacketKind.OPENED), False)
    for number, play_id in enumerate("abc"):
        playback.play(play_id, Waveform(np.zeros(FRAMES, np.float32), 48000))
        for kind, sample in ((PacketKind.STARTED, FRAMES * number), (PacketKind.ENDED, FRAMES * (number + 1))):
            playback.received(Packet(kind, number + 1, 1, sample))
    for number in range(60):
        moment_s = 50.0 + number * FRAMES / 48000
        playback.received(Packet(PacketKind.TICK, 0, FRAMES, number * FRAMES, moment_s, 0.01))
    assert ended == [("a", True), ("b", False), ("c", False)]


def test_an_error_that_ends_the_thread_of_a_running_stream_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(stream: SupervisedStream, lost: bool) -> None:
        stream._start_running(Packet(PacketKind.OPENED), lost)
        raise ZeroDivisionError

    monkeypatch.setattr(SupervisedStream, "_run_child", fail)
    faults: list[str] = []
    playback = Playback("speaker", "system", on_fault=lambda stamp, problem: faults.append(problem))
    with pytest.raises(ZeroDivisionError):
        playback._stream._watch()
    assert faults == [BROKEN]


@pytest.mark.parametrize(
    ("sound_server", "command"),
    [("system", "harness admin sound list"), ("virtual_lab", "harness admin sound list --sound-server virtual_lab")],
)
def test_a_device_that_takes_no_sound_is_named_with_the_command_that_lists_others(
    sound_server: str, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def open_only(stream: SupervisedStream, lost: bool) -> tuple[str, bool]:
        stream._start_running(Packet(PacketKind.OPENED), lost)
        stream._closing.wait()
        return "", True

    monkeypatch.setattr(SupervisedStream, "_run_child", open_only)
    monkeypatch.setattr(module, "SETTLE_LIMIT_S", 0.01)
    monkeypatch.setattr(module, "environment_of", lambda sound_server: {})
    with pytest.raises(SoundError, match="'speaker' was opened, but it did not accept sound within") as caught:
        Playback("speaker", sound_server, on_fault=lambda stamp, problem: None).open()
    assert caught.value.remedy.endswith(f": {command}")

"""A rater's player on a real sound server: what is played arrives, and the position keeps time with it."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import soxr

from harness.lab.sound_server import LabSoundServer
from harness.model.errors import SoundError
from harness.model.stimulus import Waveform
from harness.rating.rater_player import RaterPlayer, open_player
from harness.sound.level import rms_dbfs
from tests.conformance.sound_path import RATE_HZ, noise, recorder
from tests.seen import until
from tests.unit.sound.spoken import speech

pytestmark = [pytest.mark.sound, pytest.mark.usefixtures("host_keeps_time")]
SPEECH_RATE_HZ = 16000
AGREES_WITHIN_S = 0.06
"""Position and recording: a buffer of 20 ms, a poll of 5 ms, the lab's own 9 ms, and what a busy host adds."""


@contextmanager
def opened_player(device: str | None = "harness_speaker") -> Iterator[RaterPlayer]:
    player = open_player(device)
    try:
        yield player
    finally:
        player.close()


def test_the_response_arrives_and_the_position_agrees_with_what_was_heard(lab_sound: LabSoundServer) -> None:
    samples = soxr.resample(speech("mars has two moons"), RATE_HZ, SPEECH_RATE_HZ).astype(np.float32)
    sound = Waveform(samples, SPEECH_RATE_HZ)
    done: list[tuple[float, bool]] = []
    positions_s: list[tuple[float, float]] = []
    with recorder() as (_, ring, _), opened_player() as player:
        player.play(sound, lambda heard_s, whole: done.append((heard_s, whole)))

        def has_ended() -> bool:
            asked_s = time.monotonic()
            position_s = player.position_s
            answered_s = time.monotonic()
            # If the host ran something else between both readings, the pair is too inexact to compare.
            if position_s is not None and position_s > 0 and answered_s - asked_s < 0.01:
                positions_s.append((answered_s, position_s))
            return bool(done)

        until(has_ended, 20.0, "the end")
        assert done == [(sound.duration_s, True)]
        assert player.position_s is None
        recording, recording_start_s = ring.cut(positions_s[0][0] - 0.3, positions_s[-1][0] + 0.1)
    sent = soxr.resample(sound.samples, SPEECH_RATE_HZ, RATE_HZ)
    is_long_enough = len(recording.samples) > len(sent)
    correlation = np.correlate(recording.samples, sent, mode="valid") if is_long_enough else np.zeros(1)
    offset = int(np.argmax(np.abs(correlation)))
    received = recording.samples[offset : offset + len(sent)]
    assert np.corrcoef(received, sent)[0, 1] > 0.98, "what arrived is not what was played"
    began_s = recording_start_s + offset / RATE_HZ
    errors = [position_s - (at_s - began_s) for at_s, position_s in positions_s]
    assert len(errors) > 50
    # The player's process reports blocks as they are played. While other tests keep both processors busy, a report may
    # come some blocks late, and the readings until then with it.
    late = [error for error in errors if abs(error) >= AGREES_WITHIN_S]
    assert len(late) < 0.05 * len(errors), (min(errors), max(errors))
    positions = [position_s for _, position_s in positions_s]
    assert positions == sorted(positions)


def test_stop_ends_playback_and_reports_how_much_was_heard(lab_sound: LabSoundServer) -> None:
    done: list[tuple[float, bool]] = []
    with opened_player() as player:
        player.play(noise(20.0), lambda heard_s, whole: done.append((heard_s, whole)))
        until(lambda: (player.position_s or 0) > 0.4, 20.0, "half a second of it")
        player.stop()
        until(lambda: bool(done), 20.0, "the end")
        (heard_s, whole), *_ = done
        assert 0.4 <= heard_s < 1.2
        assert not whole
        player.stop()
        player.play(noise(0.2), lambda heard_s, whole: done.append((heard_s, whole)))
        until(lambda: len(done) == 2, 20.0, "the next sound")
        assert done[1] == (0.2, True)


def test_another_sound_takes_the_place_of_the_first(lab_sound: LabSoundServer) -> None:
    done: list[tuple[str, bool]] = []
    with opened_player() as player:
        player.play(noise(20.0), lambda _, whole: done.append(("first", whole)))
        until(lambda: (player.position_s or 0) > 0.1, 20.0, "the first")
        player.play(noise(0.3), lambda _, whole: done.append(("second", whole)))
        until(lambda: len(done) == 2, 20.0, "both ends")
    assert done == [("first", False), ("second", True)]


def test_a_lost_server_is_reported_and_reopened_by_the_next_play(lab_sound: LabSoundServer) -> None:
    done: list[bool] = []
    with opened_player() as player:
        player.play(noise(20.0), lambda _, whole: done.append(whole))
        until(lambda: (player.position_s or 0) > 0.1, 20.0, "the sound")
        assert lab_sound.pid is not None
        os.kill(lab_sound.pid, signal.SIGKILL)
        try:
            until(lambda: done == [False], 20.0, "the loss")
            assert player.fault
            until(lambda: player.child_pid is None, 20.0, "the child's end")
            with pytest.raises(SoundError):
                player.play(noise(0.2))
            until(lambda: not lab_sound.running(), 20.0, "the end of the server")
        finally:
            lab_sound.start()
        player.play(noise(0.2), lambda _, whole: done.append(whole))
        until(lambda: done == [False, True], 20.0, "the sound after it")
        assert player.fault == ""


def test_the_default_output_of_the_lab_is_one_that_no_device_hears(lab_sound: LabSoundServer) -> None:
    with recorder("dut_mic") as (_, ring, _), opened_player(None) as player:
        done: list[bool] = []
        began_s = time.monotonic()
        player.play(noise(0.3), lambda _, whole: done.append(whole))
        until(lambda: bool(done), 20.0, "the end")
        sound, _ = ring.cut(began_s, time.monotonic() - 0.05)
    assert not sound.samples.any()


def test_the_hosts_own_output_needs_no_name(lab_sound: LabSoundServer) -> None:
    """In the lab the default is the speaker that a microphone hears."""
    player = RaterPlayer("", "virtual_lab")
    done: list[bool] = []
    try:
        with recorder() as (_, ring, _):
            began_s = time.monotonic()
            player.play(noise(0.5), lambda _, whole: done.append(whole))
            until(lambda: bool(done), 20.0, "the end")
            sound, _ = ring.cut(began_s, time.monotonic())
        assert rms_dbfs(sound.samples) > -40
    finally:
        player.close()


def test_an_unknown_device_is_refused_with_the_nearest_name(lab_sound: LabSoundServer) -> None:
    with opened_player("harness_speeker") as player, pytest.raises(SoundError) as caught:
        player.play(noise(0.2))
    assert "harness_speaker" in caught.value.remedy
    assert player.child_pid is None


def test_playing_without_a_lab_names_the_remedy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HARNESS_LAB", str(tmp_path))
    with opened_player(None) as player, pytest.raises(SoundError) as caught:
        player.play(noise(0.2))
    assert "harness admin lab up" in caught.value.remedy

"""The microphone driver in the virtual room: what is played really travels."""

from __future__ import annotations

import os
import signal
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.base.clocks import HostClock
from harness.devices.microphone import Microphone, MicrophoneOptions
from harness.lab.sound_server import LabSoundServer
from harness.model.bench import DeviceProfile
from harness.model.observation import (
    LinkBack,
    LinkLost,
    Observation,
    Overrun,
    SpeechEnded,
    SpeechStarted,
    StimulusHeard,
)
from harness.model.stimulus import Waveform
from tests.conformance.sound_path import LAB, RATE_HZ, player, until
from tests.unit.sound.spoken import speech

pytestmark = pytest.mark.sound


@dataclass(frozen=True, slots=True)
class Bench:
    folder: Path
    clock: HostClock
    sound_server: str = LAB
    seed: int = 0
    profile: DeviceProfile | None = None


def test_query_and_answer_travel(lab_sound: LabSoundServer, tmp_path: Path) -> None:
    seen: list[Observation] = []
    query = Waveform(speech("What time is it?"), RATE_HZ)
    answer = Waveform(speech("It is half past nine.", "flite:slt"), RATE_HZ)
    mic = Microphone("mic", MicrophoneOptions("harness_mic"), Bench(tmp_path, HostClock()))
    mic.open(seen.append)
    try:
        with player("harness_speaker") as (ours, said), player("dut_speaker") as (device, answered):
            ours.play("query", query)
            until(lambda: bool(said.started), 2, "the query starts")
            leaves_s = said.started[0][1].at_s
            mic.own_sound("query", query, leaves_s)
            until(lambda: bool(said.ended), 5, "the query ends")
            device.play("answer", answer)
            until(lambda: any(isinstance(one, SpeechEnded) for one in seen), 8, "the end of the answer is heard")
            begins_s = answered.started[0][1].at_s
        heard = [one for one in seen if isinstance(one, StimulusHeard)]
        starts = [one for one in seen if isinstance(one, SpeechStarted)]
        assert len(heard) == 1
        assert heard[0].at.at_s == pytest.approx(leaves_s, abs=0.05)
        # What a busy host lost of it is told.
        lost = said.overruns or any(isinstance(one, Overrun) for one in seen)
        assert heard[0].correlation > 0.9 or lost
        assert starts[0].at.at_s == pytest.approx(begins_s, abs=0.08)
        clip, start_s = mic.cut(starts[0].at.at_s, starts[0].at.at_s + 0.5)
        assert start_s == pytest.approx(starts[0].at.at_s, abs=1 / RATE_HZ)
        assert len(clip.samples) == pytest.approx(RATE_HZ / 2, abs=2)
        assert mic.noise_floor_dbfs() is not None
    finally:
        mic.close()
    assert not any(thread.name == "mic-hearing" for thread in threading.enumerate())


def test_a_frozen_server_is_told_and_hearing_goes_on_when_it_is_back(lab_sound: LabSoundServer, tmp_path: Path) -> None:
    seen: list[Observation] = []
    answer = Waveform(speech("It is half past nine.", "flite:slt"), RATE_HZ)
    mic = Microphone("mic", MicrophoneOptions("harness_mic"), Bench(tmp_path, HostClock()))
    mic.open(seen.append)
    assert lab_sound.pid is not None
    try:
        os.kill(lab_sound.pid, signal.SIGSTOP)
        try:
            until(lambda: any(isinstance(one, LinkLost) for one in seen), 2, "the loss is told")
        finally:
            os.kill(lab_sound.pid, signal.SIGCONT)
        until(lambda: any(isinstance(one, LinkBack) for one in seen), 4, "the return is told")
        assert [type(one) for one in seen if isinstance(one, LinkLost | LinkBack)] == [LinkLost, LinkBack]
        assert mic.level_dbfs() is not None
        with player("dut_speaker") as (device, answered):
            device.play("answer", answer)
            until(lambda: any(isinstance(one, SpeechEnded) for one in seen), 8, "an answer afterwards")
            begins_s = answered.started[0][1].at_s
        starts = [one for one in seen if isinstance(one, SpeechStarted)]
        assert starts[0].at.at_s == pytest.approx(begins_s, abs=0.08)
    finally:
        mic.close()


def test_a_query_that_is_stopped_is_not_the_devices(lab_sound: LabSoundServer, tmp_path: Path) -> None:
    seen: list[Observation] = []
    query = Waveform(speech("Hey computer, what is twelve plus thirty?"), RATE_HZ)
    mic = Microphone("mic", MicrophoneOptions("harness_mic"), Bench(tmp_path, HostClock()))
    mic.open(seen.append)
    try:
        with player("harness_speaker") as (ours, said):
            ours.play("query", query)
            until(lambda: bool(said.started), 2, "the query starts")
            mic.own_sound("query", query, said.started[0][1].at_s)
            begun_s = time.monotonic()
            until(lambda: time.monotonic() - begun_s > 1.0, 2, "half of the query")
            ours.stop()
            until(lambda: bool(said.ended), 2, "its end")
            over_s = said.started[0][1].at_s + len(query.samples) / RATE_HZ + 1.5
            until(lambda: time.monotonic() > over_s, 6, "the time in which the rest would be told")
        assert not said.ended[0][2]
        assert not any(isinstance(one, SpeechStarted) for one in seen)
    finally:
        mic.close()

"""The microphone driver in the virtual room: what is played really travels."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from harness.devices.microphone import Microphone, MicrophoneOptions
from harness.lab.sound_server import LabSoundServer
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
from tests.conformance.sound_path import RATE_HZ, OnTheLab, play, player
from tests.known import known
from tests.seen import until
from tests.unit.sound.spoken import speech

pytestmark = [pytest.mark.sound, pytest.mark.usefixtures("host_keeps_time")]
Seen = TypeVar("Seen", bound=Observation)


def answer() -> Waveform:
    return Waveform(speech("It is half past nine.", "flite:slt"), RATE_HZ)


@pytest.fixture
def observations() -> list[Observation]:
    return []


@pytest.fixture
def mic(lab_sound: LabSoundServer, tmp_path: Path, observations: list[Observation]) -> Iterator[Microphone]:
    """The driver, open; what it observes is added to `observations`."""
    microphone = Microphone("mic", MicrophoneOptions("harness_mic"), OnTheLab(tmp_path))
    microphone.open(observations.append)
    yield microphone
    microphone.close()
    assert not any(thread.name == "mic-hearing" for thread in threading.enumerate())


def of_kind(observations: list[Observation], kind: type[Seen]) -> list[Seen]:
    return [observation for observation in observations if isinstance(observation, kind)]


def test_query_and_answer_travel(mic: Microphone, observations: list[Observation]) -> None:
    query = Waveform(speech("What time is it?"), RATE_HZ)
    with player("harness_speaker") as (ours, events), player("dut_speaker") as (device, answered):
        ours.play("query", query)
        until(lambda: bool(events.started), 30, "the query starts")
        leaves_s = events.started[0][1].at_s
        mic.own_sound("query", query, leaves_s)
        until(lambda: bool(events.ended), 30, "the query ends")
        begins, _ = play(device, answered, answer())
        until(lambda: bool(of_kind(observations, SpeechEnded)), 30, "the end of the answer is heard")
    (heard,) = of_kind(observations, StimulusHeard)
    starts_s = of_kind(observations, SpeechStarted)[0].at.at_s
    assert heard.at.at_s == pytest.approx(leaves_s, abs=0.05)
    # Sound that a busy host lost is reported. The rest of the query is then masked for up to 0.35 s after its end.
    lost = events.overruns or of_kind(observations, Overrun)
    assert heard.correlation > 0.9 or lost
    assert -0.08 <= starts_s - begins.at_s <= (0.35 if lost else 0.08)
    clip, start_s = mic.cut(starts_s, starts_s + 0.5)
    assert start_s == pytest.approx(starts_s, abs=1 / RATE_HZ)
    assert len(clip.samples) == pytest.approx(RATE_HZ / 2, rel=0.001)  # as fast as its clock
    assert mic.noise_floor_dbfs() is not None


def test_frozen_sound_server_is_reported_and_hearing_resumes(
    lab_sound: LabSoundServer, mic: Microphone, observations: list[Observation]
) -> None:
    os.kill(known(lab_sound.pid), signal.SIGSTOP)
    try:
        until(lambda: bool(of_kind(observations, LinkLost)), 30, "the loss is reported")
    finally:
        os.kill(known(lab_sound.pid), signal.SIGCONT)
    until(lambda: bool(of_kind(observations, LinkBack)), 20, "the return is reported")
    assert [type(observation) for observation in observations if isinstance(observation, LinkLost | LinkBack)] == [
        LinkLost,
        LinkBack,
    ]
    assert mic.level_dbfs() is not None
    with player("dut_speaker") as (device, answered):
        begins, _ = play(device, answered, answer())
        until(lambda: bool(of_kind(observations, SpeechEnded)), 30, "an answer afterwards")
    assert of_kind(observations, SpeechStarted)[0].at.at_s == pytest.approx(begins.at_s, abs=0.08)


def test_interrupted_query_is_not_taken_for_device_speech(mic: Microphone, observations: list[Observation]) -> None:
    query = Waveform(speech("Hey computer, what is twelve plus thirty?"), RATE_HZ)
    with player("harness_speaker") as (ours, events):
        ours.play("query", query)
        until(lambda: bool(events.started), 30, "the query starts")
        leaves_s = events.started[0][1].at_s
        mic.own_sound("query", query, leaves_s)
        until(lambda: time.monotonic() > leaves_s + 1.0, 30, "half of the query")
        ours.stop()
        until(lambda: bool(events.ended), 30, "its end")
        over_s = leaves_s + len(query.samples) / RATE_HZ + 1.5
        until(lambda: time.monotonic() > over_s, 6, "the time in which the rest would be told")
    assert not events.ended[0][2]
    assert not of_kind(observations, SpeechStarted)

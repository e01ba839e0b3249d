"""The loudspeaker driver against a real sound server."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import numpy as np
import pytest

from harness.base.ports import Stimulates
from harness.devices.loudspeaker import Loudspeaker, LoudspeakerOptions
from harness.lab.sound_server import LabSoundServer
from harness.model.errors import DeviceError
from harness.model.observation import LinkBack, LinkLost, Observation, Overrun, StimulusEnded, StimulusStarted
from harness.sound.level import rms_dbfs
from tests.conformance.sound_path import OnTheLab, noise, recorder
from tests.known import known
from tests.seen import until

pytestmark = [pytest.mark.sound, pytest.mark.usefixtures("host_keeps_time")]


def of_kind(observations: list[Observation], kind: type) -> list[Observation]:
    return [observation for observation in observations if isinstance(observation, kind)]


def test_loudspeaker_plays_reports_and_survives_server_restart(lab_sound: LabSoundServer, tmp_path: Path) -> None:
    observations: list[Observation] = []
    speaker = Loudspeaker("near", LoudspeakerOptions("harness_speaker", gain_db=-6.0), OnTheLab(tmp_path))
    assert isinstance(speaker, Stimulates)
    assert speaker.level_dbfs() is None
    with pytest.raises(DeviceError, match="not open"):
        speaker.play("early", noise(0.1))
    speaker.open(observations.append)
    try:
        with recorder() as (_, ring, heard):
            speaker.play("one", noise(0.5))
            until(lambda: bool(of_kind(observations, StimulusEnded)), 20.0, "the end")
            started, ended = (
                observation for observation in observations if isinstance(observation, StimulusStarted | StimulusEnded)
            )
            assert isinstance(started, StimulusStarted)
            assert isinstance(ended, StimulusEnded)
            assert (started.source, started.play_id, ended.complete) == ("near", "one", True)
            sound, _ = ring.cut(started.at.at_s + 0.1, started.at.at_s + 0.4)
            level_dbfs, lost = rms_dbfs(sound.samples), heard.overruns or of_kind(observations, Overrun)
            assert level_dbfs == pytest.approx(rms_dbfs(noise(0.5).samples) - 6.0, abs=0.3) or lost
        speaker.play("two", noise(20.0))
        until(lambda: len(of_kind(observations, StimulusStarted)) == 2, 20.0, "the second start")
        assert lab_sound.pid is not None
        os.kill(lab_sound.pid, signal.SIGKILL)
        until(lambda: bool(of_kind(observations, LinkLost)), 20.0, "the loss")
        until(lambda: len(of_kind(observations, StimulusEnded)) == 2, 20.0, "the end of the cut sound")
        assert not getattr(of_kind(observations, StimulusEnded)[1], "complete")  # noqa: B009  of any observation
        until(lambda: not lab_sound.running(), 20.0, "the end of the server")
        lab_sound.start()
        until(lambda: bool(of_kind(observations, LinkBack)), 20.0, "the return")
    finally:
        if not lab_sound.running():
            lab_sound.start()
        speaker.close()
    count = len(observations)
    speaker.stop()
    assert len(observations) == count


def test_a_device_that_is_not_there_is_refused_with_a_remedy(lab_sound: LabSoundServer, tmp_path: Path) -> None:
    speaker = Loudspeaker("near", LoudspeakerOptions("harness_speeker"), OnTheLab(tmp_path))
    with pytest.raises(DeviceError) as caught:
        speaker.open(lambda observation: None)
    assert "harness_speaker" in caught.value.remedy
    speaker.close()


def test_silence_has_no_level(lab_sound: LabSoundServer, tmp_path: Path) -> None:
    speaker = Loudspeaker("near", LoudspeakerOptions("harness_speaker"), OnTheLab(tmp_path))
    speaker.open(lambda observation: None)
    try:
        level_dbfs = known(speaker.level_dbfs())
        assert level_dbfs == rms_dbfs(np.zeros(1, dtype=np.float32))
    finally:
        speaker.close()

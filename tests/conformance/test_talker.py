"""A talker in the virtual lab: a voice that speaks from the loudspeaker when the prompt is shown."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from harness.lab.sound_server import LabSoundServer
from harness.model.stimulus import Waveform
from harness.scenario.assets import read_list
from harness.sound import recordings
from tests.conformance.sound_path import RATE_HZ, play, player
from tests.known import known
from tests.unit.sound.spoken import speech

pytestmark = [pytest.mark.sound, pytest.mark.speech, pytest.mark.usefixtures("host_keeps_time")]
RECORD = "from harness.cli import main; main()"


def test_recorded_talker_utterances_survive_an_early_end(lab_sound: LabSoundServer, tmp_path: Path) -> None:
    prompts, folder = tmp_path / "prompts.txt", tmp_path / "people"
    prompts.write_text("What time is it?\nSet a timer, please.\n")
    command = [sys.executable, "-c", RECORD, "sound", "record", str(prompts), "-o", str(folder), "--talker", "ann"]
    command += ["--microphone", "harness_mic", "--sound-server", "virtual_lab", "--wait", "20"]
    for number, text in enumerate(("What time is it?", "Set a timer, please."), 1):
        sound = Waveform(speech(text, "flite:slt"), RATE_HZ)
        talker = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert talker.stdout is not None
        try:
            with player() as (ours, events):
                assert text in known(next((line for line in talker.stdout if "Say:" in line), None))
                play(ours, events, sound)
            assert f"ann_000{number}.wav" in talker.stdout.readline()
        finally:
            talker.kill()
            talker.communicate()
        path, facts, _ = read_list(folder / "list.csv")[-1]
        recording = recordings.read(str(folder / path))
        # The speech in the stimulus ends where it is last loud.
        loud = np.flatnonzero(np.abs(sound.samples) > 0.02 * np.abs(sound.samples).max())
        spoken_s = (loud[-1] - loud[0]) / RATE_HZ
        assert recording.duration_s == pytest.approx(spoken_s + 0.6, abs=0.25)
        assert known(facts.phrase_end_s) == pytest.approx(recording.duration_s - 0.3, abs=0.01)
    result = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0
    assert result.stdout.startswith("0 recorded, 0 missing")

"""`harness admin calibrate`: benches that have a calibration already, and microphones that hear something else."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from harness.cli.calibrate import command
from harness.model.errors import InputError, InputProblems, SoundError
from harness.model.stimulus import Waveform
from harness.scenario.bench import load_bench
from harness.sound.calibration import RATE_HZ, calibration_sound, is_tone, read_calibration
from tests.files import file_with

DEVICE = Path(__file__).parents[2] / "conformance" / "in_process" / "device.yaml"
BENCH = """\
bench: room
loudspeakers:
  near: {{driver: in_process, speed: {speed}{near}}}
microphone: {{driver: in_process, speed: {speed}{microphone}}}
devices:
  unit: {{profile: {device}, connection: {{driver: in_process, speed: {speed}}}}}
"""


def bench(folder: Path, near: str = "", microphone: str = "", more: str = "", speed: int = 50) -> Path:
    text = BENCH.format(device=DEVICE, near=near, microphone=microphone, speed=speed)
    return file_with(folder / "bench.yaml", text + more)


def calibrate(path: Path, name: str, *options: str) -> str:
    return CliRunner().invoke(command, [str(path), name, *options], catch_exceptions=False).output


def test_a_bench_with_expired_calibrations_can_be_calibrated(tmp_path: Path) -> None:
    calibrate(bench(tmp_path), "near", "--meter-reading", "68")
    near = tmp_path / "near.calibration.yaml"
    expired = near.read_text().replace(read_calibration(near).expires_on, "2020-02-29")
    near.write_text(expired)
    (tmp_path / "mic.yaml").write_text(expired.replace('"near"', '"microphone"'))
    path = bench(tmp_path, ", calibration: near.calibration.yaml", ", calibration: mic.yaml", "level_tolerance_db: 1\n")
    with pytest.raises(InputProblems, match="expired on 2020-02-29"):
        load_bench(path)
    output = calibrate(path, "near", "--meter-reading", "70")
    assert "near.calibration.yaml: 0 dBFS = 96.0 dB(A) SPL" in output
    assert "the bench, under near" not in output
    near.unlink()
    assert "near.calibration.yaml: 0 dBFS = 97.0 dB(A) SPL" in calibrate(path, "near", "--meter-reading", "71")


def test_a_bench_that_names_another_file_is_to_be_changed(tmp_path: Path) -> None:
    calibrate(bench(tmp_path), "near", "--meter-reading", "68")
    (tmp_path / "near.calibration.yaml").rename(tmp_path / "old.yaml")
    output = calibrate(bench(tmp_path, ", calibration: old.yaml"), "near", "--meter-reading", "70")
    assert "Change in the bench, under near: `calibration: near.calibration.yaml`" in output


def test_a_microphone_that_hears_no_calibration_sound_is_refused(tmp_path: Path) -> None:
    path = bench(tmp_path, speed=5)  # the 60 s of sound last 12 s: a host that stands still does not miss them
    assert "0 dBFS = 94.0 dB(A) SPL" in calibrate(path, "microphone", "--meter-reading", "68")
    with pytest.raises(InputError, match="does not hear the tone of a sound calibrator"):
        calibrate(path, "microphone", "--calibrator", "--meter-reading", "94")
    elsewhere = bench(tmp_path, microphone=", air: hall", speed=5)
    with pytest.raises(SoundError, match="the sound at the microphone is 0 dB above the room's noise"):
        calibrate(elsewhere, "microphone", "--meter-reading", "68")


@pytest.mark.parametrize(("hertz", "is_heard"), [(1000.0, True), (250.0, True), (50.0, False)])
def test_a_calibrator_is_told_from_hum_and_noise(hertz: float, is_heard: bool) -> None:
    noise = calibration_sound("pink noise", -40.0, 5.0).samples
    tone = np.float32(0.1) * np.sin(2 * np.pi * hertz * np.arange(len(noise)) / RATE_HZ).astype(np.float32)
    assert is_tone(Waveform(noise + tone, RATE_HZ)) is is_heard
    assert not is_tone(Waveform(noise, RATE_HZ))

"""`harness sound` as a person uses it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from harness.cli.calibrate import command as calibrate
from harness.cli.sound import command
from harness.lab.sound_server import LabSoundServer
from harness.model.errors import SoundError
from harness.sound.calibration import read_calibration
from harness.sound.equaliser import CENTRES_HZ, parse
from tests.command import succeeded
from tests.files import file_with

pytestmark = [pytest.mark.sound, pytest.mark.usefixtures("host_keeps_time")]
IN_LAB = ("--sound-server", "virtual_lab")


def test_devices_are_listed(lab_sound: LabSoundServer) -> None:
    result = succeeded(CliRunner().invoke(command, ["list", *IN_LAB]))
    assert "harness_speaker_far" in result.output
    devices = json.loads(CliRunner().invoke(command, ["list", *IN_LAB, "--json"]).output)
    assert {"name", "inputs", "outputs", "rate_hz", "index", "server_name"} == set(devices[0])


def test_a_path_that_carries_sound_is_measured(lab_sound: LabSoundServer) -> None:
    words = ["check", "--speaker", "harness_speaker", "--microphone", "dut_mic", "--count", "3", *IN_LAB, "--json"]
    result = succeeded(CliRunner().invoke(command, words))
    report = json.loads(result.output)
    assert report["ok"]
    assert report["heard"] == 3
    assert report["best_correlation"] > 0.999
    assert 20 < report["round_trip_ms"]["p50"] < 120
    assert report["level_dbfs"]["p50"] == pytest.approx(-9.3, abs=0.3)
    assert abs(report["path_ms"]["p50"]) <= report["stamp_error_ms"] + 1


def test_silent_path_exits_with_status_3_and_not_heard(lab_sound: LabSoundServer) -> None:
    words = ["check", "--speaker", "harness_monitor", "--microphone", "dut_mic", "--count", "1", *IN_LAB]
    result = CliRunner().invoke(command, words)
    assert result.exit_code == 3
    assert "NOT HEARD" in result.output


def test_wrong_device_name_suggests_the_nearest(lab_sound: LabSoundServer) -> None:
    words = ["check", "--speaker", "harness_speeker", "--microphone", "dut_mic", *IN_LAB]
    result = CliRunner().invoke(command, words)
    assert isinstance(result.exception, SoundError)
    assert "Did you mean 'harness_speaker'?" in str(result.exception)


BENCH = """\
bench: lab
sound_server: virtual_lab
loudspeakers: {near: {driver: loudspeaker, sound_device: harness_speaker}}
microphone: {driver: microphone, sound_device: dut_mic}
devices: {unit: {profile: reference_assistant_black_box}}
"""


def test_the_microphone_is_calibrated_by_a_loudspeaker_and_a_meter(lab_sound: LabSoundServer, tmp_path: Path) -> None:
    bench = file_with(tmp_path / "bench.yaml", BENCH)
    result = CliRunner().invoke(calibrate, [str(bench), "microphone", "--meter-reading", "68"], catch_exceptions=False)
    assert "under microphone: `calibration: microphone.calibration.yaml`" in result.output
    calibration = read_calibration(tmp_path / "microphone.calibration.yaml")
    assert calibration.spl_at_0_dbfs == pytest.approx(94.0, abs=0.3)  # the path has no loss
    silent = CliRunner().invoke(calibrate, [str(bench), "microphone", "--calibrator", "--meter-reading", "94"])
    assert "which is silence" in str(silent.exception)
    refused = CliRunner().invoke(calibrate, [str(bench), "near", "--calibrator"])
    assert "applies only to the microphone" in str(refused.exception)


def test_the_response_of_a_loudspeaker_is_measured_and_levelled(
    lab_sound: LabSoundServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.cli.calibrate.EQUALISE_S", 8.0)
    bench = file_with(tmp_path / "bench.yaml", BENCH)
    flat = CliRunner().invoke(calibrate, [str(bench), "near", "--equalise"], catch_exceptions=False)
    assert max(abs(level) for level in responses(flat.output)) < 0.5  # the path of the lab changes nothing
    assert 'under near: equaliser: "125:' in flat.output
    coloured = "125:-12 500:0 2000:0 6300:-9"
    bench.write_text(BENCH.replace("harness_speaker}", f'harness_speaker, equaliser: "{coloured}"}}'))
    result = CliRunner().invoke(calibrate, [str(bench), "near", "--equalise"], catch_exceptions=False)
    assert "This response includes the bench's equaliser" in result.output
    levels = responses(result.output)
    expected = np.interp(np.log(CENTRES_HZ), *np.array([(np.log(hz), gain) for hz, gain in parse(coloured)]).T)
    assert levels == pytest.approx(list(expected - expected.mean()), abs=0.5)
    refused = CliRunner().invoke(calibrate, [str(bench), "microphone", "--equalise"])
    assert "choose a loudspeaker" in str(getattr(refused.exception, "remedy", ""))


def responses(output: str) -> list[float]:
    levels = [float(line.split()[2]) for line in output.splitlines() if line.endswith(" dB") and " Hz " in line]
    assert len(levels) == len(CENTRES_HZ)
    return levels

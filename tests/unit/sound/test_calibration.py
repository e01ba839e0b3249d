"""Levels in dB SPL: from a reading to a file, to a plan, and to the level of what is played."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile
from click.testing import CliRunner

from harness.cli.calibrate import command
from harness.model.calibration import Calibration
from harness.model.errors import InputError, InputProblems
from harness.model.record import AttemptStarted
from harness.model.scenario import Scenario
from harness.model.stimulus import Waveform
from harness.scenario.bench import load_bench
from harness.scenario.scenario import load_scenario
from harness.scenario.together import check_together
from harness.session.engine.assemble import sound_path
from harness.session.levels import LevelRule
from harness.session.plan import plan
from harness.sound.calibration import RATE_HZ, CalibrationKeys, noise_of, read_calibration, write_calibration
from harness.sound.level import active_speech_level, rms_dbfs
from harness.sound.stimuli.renderer import renderer
from tests.known import known

DEVICE = Path(__file__).parents[2] / "conformance" / "in_process" / "device.yaml"
BENCH = """\
bench: room
loudspeakers:
  near: {{driver: in_process, speed: 50{near}}}
  far: {{driver: in_process, speed: 50}}
microphone: {{driver: in_process, speed: 50}}
devices:
  unit: {{profile: {device}, connection: {{driver: in_process, speed: 50}}}}
"""
SCENARIO = """\
scenario: levels
voices:
  cass: {{engine: flite, name: slt}}
defaults: {{voice: cass{defaults}}}
trials:
  - {{id: call, kind: wake}}
{more}
"""
SOAK = "  - {{id: soak, kind: ambient, hours: 0.02, sources: [{{noise: pink}}]{}}}\n"


def bench(folder: Path, near: str = ", calibration: near.calibration.yaml") -> Path:
    path = folder / "bench.yaml"
    path.write_text(BENCH.format(device=DEVICE, near=near))
    return path


def calibrate(folder: Path, *options: str) -> str:
    """Calibrates `near`; what was said."""
    done = CliRunner().invoke(command, [str(bench(folder, "")), "near", *options], catch_exceptions=False)
    assert done.exit_code == 0
    return done.output


def scenario(folder: Path, defaults: str = "", more: str = "") -> Scenario:
    path = folder / "levels.yaml"
    path.write_text(SCENARIO.format(defaults=defaults, more=more))
    return load_scenario(path)


@pytest.mark.parametrize("signal", ["pink noise", "1 kHz"])
@pytest.mark.parametrize("level_dbfs", [-40.0, -26.0, -20.0])
def test_what_is_played_has_the_level_that_it_says(signal: str, level_dbfs: float) -> None:
    sound = noise_of(signal, level_dbfs, 5)
    middle = sound.samples[sound.rate_hz : -sound.rate_hz]
    assert rms_dbfs(middle) == pytest.approx(level_dbfs, abs=0.3)


def test_noise_that_would_clip_is_refused_with_the_highest_level() -> None:
    with pytest.raises(InputError, match="Use at most") as refused:
        noise_of("pink noise", 0, 5)
    highest = float(known(refused.value.remedy).split()[3])
    assert np.abs(noise_of("pink noise", highest, 5).samples).max() <= 1


def test_levels_asked_for_are_levels_played_from_0_to_minus_40_dbfs(tmp_path: Path) -> None:
    gain_db = 93.7  # from dBFS to dB SPL, as a room with a loudspeaker has
    said = calibrate(tmp_path, "--level", "-26", "--reading", f"{-26 + gain_db:.1f}", "--at", "1 m", "--max-spl", "95")
    assert "near.calibration.yaml: 0 dBFS = 93.7 dB(A) SPL at 1 m" in said
    assert "`calibration: near.calibration.yaml`" in said
    asked = [54, 60, 66.5, 72, 78]
    levels = scenario(tmp_path, more=f"matrix: {{axes: {{level_spl: {asked}}}}}")
    room = load_bench(bench(tmp_path))
    check_together(levels, room)
    trials = plan(levels, room)
    for trial, spl in zip(trials, asked, strict=True):
        assert dict(trial.conditions) == {"level_spl": f"{spl:g}"}
        played = active_speech_level(renderer().render(trial.recipe).waveform)
        assert known(played).level_dbfs + gain_db == pytest.approx(spl, abs=0.5)
    assert "near: 0 dBFS = 93.7 dB(A) SPL at 1 m, measured on 20" in sound_path(room, trials)


@pytest.mark.parametrize(
    ("near", "defaults", "more", "what"),
    [
        ("", ", level_spl: 65", "", "'near' cannot play 65 dB SPL: it is not calibrated"),
        (None, ", level_spl: 100", "", "'near' cannot play 100 dB SPL: 100 dB is above its full scale"),
        (None, ", level_spl: 91", "", "91.0 dB is above its max_spl of 90 dB"),
        (None, ", level_dbfs: -2", "", "'near' cannot play -2 dBFS: 91.7 dB is above its max_spl of 90 dB"),
        (None, "", "matrix: {axes: {level_spl: [60, 91]}}", "91.0 dB is above"),
        (None, ", level_spl: 60", "matrix: {axes: {position: [near, far]}}", "'far' cannot play 60 dB SPL"),
        (None, ", level_spl: 80, noise: {kind: pink, snr_db: -15}", "", "95.1 dB with its noise is above"),
        (None, ", level_spl: 80", "matrix: {axes: {noise: [null, {kind: pink, snr_db: -15}]}}", "95.1 dB with its"),
        (None, "", SOAK.format(", level_dbfs: -2") + "matrix: {axes: {position: [far]}}", "91.7 dB is above"),
        (None, "", SOAK.format(", probe: {every_s: 60, level_dbfs: -2}"), "91.7 dB is above"),
        (None, "", "  - {id: as, kind: wake, recordings: loud.wav, level: as_recorded}", "93.5 dB is above"),
    ],
)
def test_a_level_that_the_bench_cannot_give_is_refused(
    tmp_path: Path, near: str | None, defaults: str, more: str, what: str
) -> None:
    calibrate(tmp_path, "--reading", "67.7", "--max-spl", "90")
    soundfile.write(tmp_path / "loud.wav", np.tile([0.97, -0.97], 24_000), 48_000)
    asked = scenario(tmp_path, defaults, more)
    room = load_bench(bench(tmp_path) if near is None else bench(tmp_path, near))
    with pytest.raises(InputProblems, match="cannot play") as refused:
        check_together(asked, room)
    (problem,) = refused.value.problems
    assert what in problem.what
    assert known(problem.place).line


def test_an_expired_calibration_is_refused_for_levels_in_db_spl_only(tmp_path: Path) -> None:
    calibrate(tmp_path, "--reading", "67.7")
    path = tmp_path / "near.calibration.yaml"
    path.write_text(path.read_text().replace(read_calibration(path).expires_on, "2020-02-29"))
    check_together(scenario(tmp_path), load_bench(bench(tmp_path)))
    with pytest.raises(InputProblems, match="expired on 2020-02-29"):
        check_together(scenario(tmp_path, ", level_spl: 60"), load_bench(bench(tmp_path)))


def test_noise_far_below_the_speech_does_not_count_against_the_ceiling(tmp_path: Path) -> None:
    calibrate(tmp_path, "--reading", "67.7", "--max-spl", "70")
    check_together(scenario(tmp_path, ", level_spl: 70, noise: {kind: pink, snr_db: 25}"), load_bench(bench(tmp_path)))


def test_probes_are_as_loud_as_the_defaults_say(tmp_path: Path) -> None:
    calibrate(tmp_path, "--reading", "67.7")
    probed = scenario(tmp_path, ", level_spl: 60", SOAK.format(", probe: {every_s: 60}"))
    trials = plan(probed, load_bench(bench(tmp_path)))
    assert {round(trial.recipe.level_dbfs, 1) for trial in trials} == {round(60 - 93.7, 1)}


@pytest.mark.parametrize(("old", "new"), [("near", "far"), ("in_process", "USB Audio")])
def test_a_calibration_of_another_loudspeaker_is_refused(tmp_path: Path, old: str, new: str) -> None:
    calibrate(tmp_path, "--reading", "67.7")
    path = tmp_path / "near.calibration.yaml"
    path.write_text(path.read_text().replace(f'"{old}"', f'"{new}"'))
    with pytest.raises(InputProblems, match=f"its calibration was measured with .*'{new}'"):
        check_together(scenario(tmp_path), load_bench(bench(tmp_path)))


def test_recordings_at_their_own_level_need_no_calibration(tmp_path: Path) -> None:
    soundfile.write(tmp_path / "said.wav", np.tile([0.1, -0.1], 24_000), 48_000)
    text = SCENARIO.format(defaults=", level_spl: 60", more="")
    path = tmp_path / "levels.yaml"
    path.write_text(text.replace("kind: wake", "kind: wake, recordings: said.wav, level: as_recorded"))
    own, room = load_scenario(path), load_bench(bench(tmp_path, ""))
    check_together(own, room)
    assert len(plan(own, room)) == 1


@pytest.mark.parametrize("option", ["--reading", "--level", "--max-spl"])
def test_what_is_not_a_number_is_refused_before_anything_is_played(tmp_path: Path, option: str) -> None:
    done = CliRunner().invoke(command, [str(bench(tmp_path, "")), "near", option, "nan"])
    assert done.exit_code == 2
    assert "is not a number" in done.output
    assert not list(tmp_path.glob("*.calibration.yaml"))


def test_both_levels_at_once_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputProblems, match="there is also a level_dbfs"):
        scenario(tmp_path, ", level_spl: 60, level_dbfs: -26")
    with pytest.raises(InputProblems, match="there is also an axis level_dbfs"):
        scenario(tmp_path, more="matrix: {axes: {level_spl: [60], level_dbfs: [-26]}}")


@pytest.mark.parametrize(
    ("old", "new"), [("67.7", "200"), ('"A"', '"B"'), ('expires_on: "', 'expires_on: "x'), ("max_spl", "most")]
)
def test_a_damaged_file_is_refused_with_its_line(tmp_path: Path, old: str, new: str) -> None:
    calibrate(tmp_path, "--reading", "67.7")
    path = tmp_path / "near.calibration.yaml"
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(InputProblems) as refused:
        load_bench(bench(tmp_path))
    assert all("near.calibration.yaml:" in str(one.place) for one in refused.value.problems)


def test_hostile_places_are_text(tmp_path: Path) -> None:
    calibrate(tmp_path, "--reading", "67.7", "--at", 'a "b": {c} \\ # d')
    assert read_calibration(tmp_path / "near.calibration.yaml").at == 'a "b": {c} \\ # d'


@pytest.mark.parametrize("place", ["", " ", "a\x1b[31m", "a\nb", "x" * 61])
def test_a_place_that_no_file_can_hold_is_refused(tmp_path: Path, place: str) -> None:
    done = CliRunner().invoke(command, [str(bench(tmp_path, "")), "near", "--reading", "60", "--at", place])
    assert done.exit_code == 2
    assert not list(tmp_path.glob("*.calibration.yaml"))


def test_only_a_loudspeaker_that_is_there_is_calibrated(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no loudspeaker 'left'"):
        CliRunner().invoke(command, [str(bench(tmp_path, "")), "left", "--reading", "60"], catch_exceptions=False)


LEVELS = """\
bench: room
level_tolerance_db: 1
loudspeakers:
  near: {{driver: in_process, speed: 50, calibration: near.calibration.yaml}}
microphone: {{driver: in_process, speed: 50{microphone}}}
devices:
  unit: {{profile: {device}, connection: {{driver: in_process, speed: 50}}}}
"""


def test_levels_are_compared_only_if_the_microphone_is_calibrated_at_the_same_place(tmp_path: Path) -> None:
    calibrate(tmp_path, "--reading", "68")
    path = tmp_path / "bench.yaml"
    path.write_text(LEVELS.format(device=DEVICE, microphone=""))
    with pytest.raises(InputProblems) as refused:
        load_bench(path)
    (problem,) = refused.value.problems
    assert (problem.place and problem.place.line, problem.what) == (
        2,
        "the level of 'microphone' is not known: it is not calibrated",
    )
    assert "harness calibrate" in problem.remedy
    keys = CalibrationKeys(
        calibration="microphone",
        sound_device="in_process",
        signal="1 kHz",
        level_dbfs=-20.0,
        reading_db=94.0,
        weighting="Z",
        at="1 m",
        measured_on="2026-11-24",
        expires_on="2126-11-24",
    )
    path.write_text(LEVELS.format(device=DEVICE, microphone=", calibration: mic.yaml"))
    write_calibration(tmp_path / "mic.yaml", keys)
    with pytest.raises(InputProblems, match="different places"):
        load_bench(path)
    write_calibration(tmp_path / "mic.yaml", keys.model_copy(update={"at": "the device"}))
    assert LevelRule.of(load_bench(path)) is not None


def test_a_level_with_noise_that_is_excluded_is_not_refused(tmp_path: Path) -> None:
    calibrate(tmp_path, "--reading", "68", "--max-spl", "90")
    axes = "level_spl: [60, 88], noise: [null, {kind: pink, snr_db: 0}]"
    refused = scenario(tmp_path, more=f"matrix: {{axes: {{{axes}}}}}")
    room = load_bench(bench(tmp_path))
    with pytest.raises(InputProblems, match="with its noise is above its max_spl"):
        check_together(refused, room)
    excluded = "exclude: [{level_spl: 88, noise: {kind: pink, snr_db: 0}}]"
    check_together(scenario(tmp_path, more=f"matrix: {{axes: {{{axes}}}, {excluded}}}"), room)


class Ear:
    """A microphone in a room of a given gain: it hears what leaves 20 ms later, over a noise floor."""

    id = "microphone"

    def __init__(self, played: Waveform, gain_db: float, floor_dbfs: float = -90.0) -> None:
        self._played, self._gain, self._floor_dbfs = played, 10 ** (gain_db / 20), floor_dbfs

    def cut(self, start_s: float, end_s: float) -> tuple[Waveform, float]:
        rate = self._played.rate_hz
        chance = np.random.default_rng(1)
        heard = chance.standard_normal(round((end_s - start_s) * rate)) * 10 ** (self._floor_dbfs / 20)
        at = round((10.02 - start_s) * rate)  # the sound left at 10 s
        low, high = max(0, at), min(len(heard), at + len(self._played.samples))
        heard[low:high] += self._gain * self._played.samples[low - at : high - at]
        return Waveform(heard.astype(np.float32), rate), start_s

    def own_sound(self, play_id: str, waveform: Waveform, starts_at_s: float) -> None:
        raise NotImplementedError

    def level_dbfs(self) -> float | None:
        return None

    def noise_floor_dbfs(self) -> float | None:
        return self._floor_dbfs


ROW = AttemptStarted("call", 1, 1, "p1", "sha", 0.5, 1.5, 2.0, None)
NEAR = Calibration("", "", "near", "", 100.0, "A", "the device", "2026-11-24", "2126-11-24", 120.0)


@pytest.mark.parametrize("level", [-40.0, -26.0, -13.0])
@pytest.mark.parametrize("gain_db", [-12.0, 0.0])
def test_the_level_heard_is_the_level_asked_for_in_a_room_of_known_gain(level: float, gain_db: float) -> None:
    rule = LevelRule(replace(NEAR, spl_at_0_dbfs=100.0 - gain_db), {"near": NEAR}, 1.0)
    said = np.zeros(2 * RATE_HZ, np.float32)
    said[RATE_HZ // 2 : RATE_HZ * 3 // 2] = noise_of("pink noise", level, 1.0).samples  # its ramps are quieter
    sound = Waveform(said, RATE_HZ)
    found = rule.measure(ROW, "near", sound, 10.0, Ear(sound, gain_db))
    assert found is not None
    assert found.off_db == pytest.approx(0.0, abs=0.2)
    assert not rule.refusal(found)
    quieter = rule.measure(ROW, "near", sound, 10.0, Ear(sound, gain_db - 3.0))
    assert quieter is not None
    assert quieter.off_db == pytest.approx(-3.0, abs=0.2)
    assert rule.refusal(quieter).startswith("level_off: near gave")
    silent = rule.measure(ROW, "near", sound, 10.0, Ear(sound, -120.0))
    assert silent is not None
    assert rule.refusal(silent) == "level_off: the microphone did not hear near"

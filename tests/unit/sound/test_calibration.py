"""Levels in dB SPL: from a reading to a file, to a plan, and to the level of what is played."""

from __future__ import annotations

import math
import os
import select
import threading
import tty
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import soundfile
from click.testing import CliRunner

from harness.cli.calibrate import command
from harness.devices.serial.commands import SerialCommandOptions, read_numbers
from harness.model.bench import Bench, Equipment
from harness.model.calibration import Calibration, short_calibration
from harness.model.errors import DeviceError, InputError, InputProblems
from harness.model.record import AttemptStarted
from harness.model.scenario import Scenario, TrialKind
from harness.model.stimulus import Opening, Role, Waveform
from harness.scenario.bench import load_bench
from harness.scenario.compatibility import check_compatibility
from harness.scenario.scenario import load_scenario
from harness.session.engine.prepare import sound_path
from harness.session.levels import LevelRule
from harness.session.plan import plan
from harness.sound.calibration import (
    RATE_HZ,
    CalibrationKeys,
    calibration_sound,
    read_calibration,
    why_unfit,
    write_calibration,
)
from harness.sound.level import a_weighting_of, active_speech_level, rms_dbfs
from harness.sound.stimuli.renderer import renderer
from tests.files import file_with
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
GAINS = "matrix: {axes: {gain_db: [3]}}"
NEAR_TALKER = """\
rooms: {box: {size_m: [5, 4, 2.5], rt60_s: 0, device_m: [2.5, 2, 1.5]}}
matrix: {axes: {distance_m: [0.25, 1]}}
"""
OPENED = "matrix: {{axes: {{opening: [null, {{say: play, pause_s: 5, {}}}]}}}}"


def bench(folder: Path, near: str = ", calibration: near.calibration.yaml") -> Path:
    return file_with(folder / "bench.yaml", BENCH.format(device=DEVICE, near=near))


def calibrate(folder: Path, *options: str) -> str:
    """Calibrates `near`; what was said."""
    result = CliRunner().invoke(command, [str(bench(folder, "")), "near", *options], catch_exceptions=False)
    assert result.exit_code == 0
    return result.output


def scenario(folder: Path, defaults: str = "", more: str = "") -> Scenario:
    path = file_with(folder / "levels.yaml", SCENARIO.format(defaults=defaults, more=more))
    return load_scenario(path)


@pytest.mark.parametrize("signal", ["pink noise", "1 kHz"])
@pytest.mark.parametrize("level_dbfs", [-40.0, -26.0, -20.0])
def test_played_sound_has_its_stated_level(signal: str, level_dbfs: float) -> None:
    sound = calibration_sound(signal, level_dbfs, 5)
    middle = sound.samples[sound.rate_hz : -sound.rate_hz]
    assert rms_dbfs(middle) == pytest.approx(level_dbfs, abs=0.3)


def test_noise_that_would_clip_is_refused_with_the_highest_level() -> None:
    with pytest.raises(InputError, match="Use at most") as refused:
        calibration_sound("pink noise", 0, 5)
    highest = float(known(refused.value.remedy).split()[3])
    assert np.abs(calibration_sound("pink noise", highest, 5).samples).max() <= 1


def test_levels_asked_for_are_levels_played_from_0_to_minus_40_dbfs(tmp_path: Path) -> None:
    gain_db = 93.7  # from dBFS to dB SPL, as a room with a loudspeaker has
    output = calibrate(
        tmp_path, "--level-dbfs", "-26", "--meter-reading", f"{-26 + gain_db:.1f}", "--at", "1 m", "--max-spl", "95"
    )
    assert "near.calibration.yaml: 0 dBFS = 93.7 dB(A) SPL at 1 m" in output
    assert "`calibration: near.calibration.yaml`" in output
    levels_spl = [54, 60, 66.5, 72, 78]
    levels = scenario(tmp_path, more=f"matrix: {{axes: {{level_spl: {levels_spl}}}}}")
    room = load_bench(bench(tmp_path))
    check_compatibility(levels, room)
    trials = plan(levels, room)
    for trial, spl in zip(trials, levels_spl, strict=True):
        assert dict(trial.conditions) == {"level_spl": f"{spl:g}"}
        played = active_speech_level(renderer().render(trial.recipe).waveform)
        assert known(played).level_dbfs + gain_db == pytest.approx(spl, abs=0.5)
    assert "near: 0 dBFS = 93.7 dB(A) SPL at 1 m, measured on 20" in sound_path(room, trials)
    expires_on = known(room.loudspeakers[0].calibration).expires_on
    parts = sound_path(room, trials).split("; ")
    assert [short_calibration(part) for part in parts] == [
        *[""] * (len(parts) - 1),
        f"near 93.7 dB(A) until {expires_on}",
    ]


@pytest.mark.parametrize(
    ("near", "defaults", "more", "message"),
    [
        ("", ", level_spl: 65", "", "'near' cannot play 65 dB SPL: it is not calibrated"),
        (None, ", level_spl: 100", "", "'near' cannot play 100 dB SPL: 100 dB is above its full scale"),
        (None, ", level_spl: 91", "", "91.0 dB is above its max_spl of 90 dB"),
        (None, ", level_dbfs: -2", "", "'near' cannot play -2 dBFS: 91.7 dB is above its max_spl of 90 dB"),
        (None, "", "matrix: {axes: {level_spl: [60, 91]}}", "91.0 dB is above"),
        (None, ", level_spl: 60", "matrix: {axes: {position: [near, far]}}", "'far' cannot play 60 dB SPL"),
        (None, ", level_spl: 80, noise: {kind: pink, snr_db: -15}", "", "95.1 dB with its noise is above"),
        (None, ", level_spl: 80", "matrix: {axes: {noise: [null, {kind: pink, snr_db: -15}]}}", "95.1 dB with its"),
        (None, ", noise: {kind: pink, level_spl: 93}", "", "'near' cannot play noise at 93 dB SPL: 93.0 dB is above"),
        (None, ", level_spl: 88, noise: {kind: pink, level_spl: 87}", "", "90.5 dB with its noise is above"),
        ("", ", noise: {kind: pink, level_spl: 60}", "", "'near' cannot play noise at 60 dB SPL: it is not calibrated"),
        (None, ", level_spl: 80", "matrix: {axes: {gain_db: [0, 12]}}", "92.0 dB with its gain is above its max_spl"),
        (None, ", level_dbfs: -9, noise: {kind: pink, snr_db: 0}", GAINS, "90.7 dB with its noise and gain is above"),
        (
            None,
            ", level_spl: 80, room: box",
            NEAR_TALKER,
            "cannot play 80 dB SPL from a talker this close: 92.0 dB is above",
        ),
        (None, "", OPENED.format("level_dbfs: -2"), "'near' cannot play -2 dBFS: 91.7 dB is above"),
        (None, "", OPENED.format("level_spl: 91"), "'near' cannot play 91 dB SPL: 91.0 dB is above"),
        (None, "", SOAK.format(", level_dbfs: -2") + "matrix: {axes: {position: [far]}}", "91.7 dB is above"),
        (None, "", SOAK.format(", probe: {every_s: 60, level_dbfs: -2}"), "91.7 dB is above"),
        (None, "", "  - {id: as, kind: wake, recordings: loud.wav, level: as_recorded}", "93.5 dB is above"),
    ],
)
def test_a_level_that_the_bench_cannot_give_is_refused(
    tmp_path: Path, near: str | None, defaults: str, more: str, message: str
) -> None:
    calibrate(tmp_path, "--meter-reading", "67.7", "--max-spl", "90")
    soundfile.write(tmp_path / "loud.wav", np.tile([0.97, -0.97], 24_000), 48_000)
    loud_scenario = scenario(tmp_path, defaults, more)
    room = load_bench(bench(tmp_path) if near is None else bench(tmp_path, near))
    with pytest.raises(InputProblems, match="cannot play") as refused:
        check_compatibility(loud_scenario, room)
    (problem,) = refused.value.problems
    assert message in problem.what
    assert known(problem.place).line


def test_an_expired_calibration_is_refused_for_levels_in_db_spl_only(tmp_path: Path) -> None:
    calibrate(tmp_path, "--meter-reading", "67.7")
    path = tmp_path / "near.calibration.yaml"
    path.write_text(path.read_text().replace(read_calibration(path).expires_on, "2020-02-29"))
    check_compatibility(scenario(tmp_path), load_bench(bench(tmp_path)))
    with pytest.raises(InputProblems, match="expired on 2020-02-29"):
        check_compatibility(scenario(tmp_path, ", level_spl: 60"), load_bench(bench(tmp_path)))


def test_noise_far_below_the_speech_does_not_count_against_the_ceiling(tmp_path: Path) -> None:
    calibrate(tmp_path, "--meter-reading", "67.7", "--max-spl", "70")
    check_compatibility(
        scenario(tmp_path, ", level_spl: 70, noise: {kind: pink, snr_db: 25}"), load_bench(bench(tmp_path))
    )


def test_probes_are_as_loud_as_the_defaults_say(tmp_path: Path) -> None:
    calibrate(tmp_path, "--meter-reading", "67.7")
    probed = scenario(tmp_path, ", level_spl: 60", SOAK.format(", probe: {every_s: 60}"))
    trials = plan(probed, load_bench(bench(tmp_path)))
    assert {round(trial.recipe.level_dbfs, 1) for trial in trials} == {round(60 - 93.7, 1)}


def test_noise_and_openings_have_levels_of_their_own_in_db_spl(tmp_path: Path) -> None:
    calibrate(tmp_path, "--meter-reading", "67.7")
    axes = "noise: [{kind: pink, level_spl: 55}, {kind: white, level_spl: 55}], level_spl: [55, 65]"
    more = f"matrix: {{axes: {{{axes}, opening: [{{pause_s: 1}}]}}}}"
    trials = plan(scenario(tmp_path, ", level_spl: 60", more), load_bench(bench(tmp_path)))
    assert [dict(trial.conditions)["noise"] for trial in trials[::2]] == ["pink 55 dB SPL", "white 55 dB SPL"]
    offset_db = a_weighting_of(calibration_sound("pink noise", -40, 4))  # of what the meter read
    for trial in trials:
        assert known(trial.recipe.opening).level_dbfs == pytest.approx(60 - 93.7)
        sound = renderer().render(replace(trial.recipe, opening=None)).waveform
        lead_in = Waveform(sound.samples[: round(0.4 * sound.rate_hz)], sound.rate_hz)
        by_meter = rms_dbfs(lead_in.samples) + a_weighting_of(lead_in) - offset_db + 93.7
        assert by_meter == pytest.approx(55, abs=0.5), dict(trial.conditions)


@pytest.mark.parametrize(("weighting", "kind"), [("A", "pink"), ("A", "white"), ("Z", "pink")])
def test_a_meter_shows_the_level_of_ambient_noise(tmp_path: Path, weighting: str, kind: str) -> None:
    calibrate(tmp_path, "--meter-reading", "67.7", "--weighting", weighting)
    ambient = SOAK.format("").replace("pink", kind)
    trials = plan(scenario(tmp_path, ", level_spl: 60", ambient), load_bench(bench(tmp_path)))
    sound = renderer().render(next(trial for trial in trials if trial.kind is TrialKind.AMBIENT).recipe).waveform
    by_meter = rms_dbfs(sound.samples) + 93.7
    if weighting == "A":
        by_meter += a_weighting_of(sound) - a_weighting_of(calibration_sound("pink noise", -40, 4))
    assert by_meter == pytest.approx(60, abs=0.1)


CORNERS = BENCH.replace(
    "speed: 50}}\nmicrophone",
    "speed: 50, position: left, calibration: near.calibration.yaml}}\n"
    "  right: {{driver: in_process, speed: 50, position: right}}\nmicrophone",
)
FROM_LEFT = "matrix: {axes: {noise: [{kind: pink, snr_db: 6, positions: [left, right]}]}}"


def in_corners(folder: Path) -> Bench:
    """A calibrated loudspeaker for speech, and one for noise in each of two corners."""
    path = file_with(folder / "bench.yaml", CORNERS.format(device=DEVICE, near=", calibration: near.calibration.yaml"))
    for line, name, gain_db in (("  far:", "far", 85.0), ("  right:", "right", 97.0)):
        calibration = CalibrationKeys.model_validate(
            NEAR_KEYS | {"calibration": name, "reading_db": gain_db - 26, "weighting": "A"}
        )
        write_calibration(folder / f"{name}.yaml", calibration)
        text = path.read_text().replace(", calibration: near.calibration.yaml}\n  right", "}\n  right")
        start = text.index(line)
        end = text.index("}", start)
        path.write_text(f"{text[:end]}, calibration: {name}.yaml{text[end:]}")
    return load_bench(path)


def test_noise_from_other_loudspeakers_has_its_ratio_at_the_device(tmp_path: Path) -> None:
    calibrate(tmp_path, "--meter-reading", "67.7", "--max-spl", "90")
    room = in_corners(tmp_path)
    noisy_scenario = scenario(tmp_path, ", level_spl: 60", FROM_LEFT)
    check_compatibility(noisy_scenario, room)
    (trial,) = plan(noisy_scenario, room)
    assert trial.noise_players == ("far", "right")
    assert dict(trial.conditions) == {"noise": "pink 6 dB from left and right"}
    rendered = renderer().render(trial.recipe)
    by_id = {loudspeaker.id: known(loudspeaker.calibration) for loudspeaker in room.loudspeakers}
    powers = [10 ** (by_id[id].spl(rms_dbfs(sound.samples)) / 10) for id, sound in rendered.beside.items()]
    assert powers[0] == pytest.approx(powers[1], rel=0.01)
    assert 10 * np.log10(sum(powers)) == pytest.approx(60 - 6, abs=0.1)
    left, right = (sound.samples for sound in rendered.beside.values())
    assert abs(np.corrcoef(left, right)[0, 1]) < 0.05
    assert len(left) == len(rendered.waveform.samples)
    heard, speech = known(rendered.as_heard).samples, rendered.waveform.samples
    assert rms_dbfs(heard - speech) == pytest.approx(known(trial.recipe.level_dbfs) - 6, abs=0.1)
    for opening in (Opening(1.0), Opening(1.0, say="play a song", then="stop")):
        with_opening = renderer().render(replace(trial.recipe, opening=opening))
        phrase = next(part for part in with_opening.parts if part.role is Role.QUERY)
        begins = phrase.start_sample - rendered.parts[0].start_sample
        assert not with_opening.beside["far"].samples[:begins].any()
        assert np.array_equal(with_opening.beside["far"].samples[begins:][: len(left)], left)
    # The microphone was calibrated with the same noise.
    rule = LevelRule(replace(NEAR, weighting_db=by_id["near"].weighting_db), by_id, 1.0)
    begins_s, ends_s = known(rendered.span_s(Role.QUERY))
    row = replace(ROW, query_start_s=begins_s, query_end_s=ends_s)
    ear = Ear(known(rendered.as_heard), 93.7 - 100)
    level = known(rule.measure(row, "near", rendered.waveform, 10.0, ear, rendered.beside))
    assert known(level.off_db) == pytest.approx(0, abs=0.5)


@pytest.mark.parametrize(
    ("noise", "more", "message"),
    [
        ("snr_db: 6, positions: [rear]", "", "no loudspeaker at 'rear'"),
        ("snr_db: 6, positions: [left]", "  - {query: q, evidence: none}", "apply only to wake and command trials"),
        ("level_spl: 80, positions: [left]", "", "'far' cannot play noise at -5.0 dBFS: 80.0 dB is above its max_spl"),
    ],
)
def test_noise_that_other_loudspeakers_cannot_play_is_refused(
    tmp_path: Path, noise: str, more: str, message: str
) -> None:
    calibrate(tmp_path, "--meter-reading", "67.7", "--max-spl", "90")
    room = in_corners(tmp_path)
    text = SCENARIO.format(defaults=f", noise: {{kind: pink, {noise}}}", more=f"{more}\nstimuli: [{{id: q, text: hi}}]")
    (tmp_path / "levels.yaml").write_text(text)
    with pytest.raises(InputProblems) as refused:
        check_compatibility(load_scenario(tmp_path / "levels.yaml"), room)
    assert message in str(refused.value)


def test_the_stored_stimulus_has_the_noise_at_its_ratio_when_loudspeakers_play_one_recording(tmp_path: Path) -> None:
    calibrate(tmp_path, "--meter-reading", "67.7", "--max-spl", "90")
    soundfile.write(tmp_path / "fan.wav", calibration_sound("pink noise", -30, 4).samples, RATE_HZ)
    from_left = FROM_LEFT.replace("kind: pink", "kind: recording, recording: fan.wav")
    (trial,) = plan(scenario(tmp_path, ", level_spl: 60", from_left), in_corners(tmp_path))
    rendered = renderer().render(trial.recipe)
    noise = known(rendered.as_heard).samples - rendered.waveform.samples
    assert rms_dbfs(noise) == pytest.approx(trial.recipe.level_dbfs - 6, abs=0.1)


def test_noise_of_an_expired_calibration_is_refused(tmp_path: Path) -> None:
    calibrate(tmp_path, "--meter-reading", "67.7", "--max-spl", "90")
    in_corners(tmp_path)
    path = tmp_path / "right.yaml"
    path.write_text(path.read_text().replace("2126-11-24", "2020-02-29"))
    with pytest.raises(
        InputProblems, match="'right' at the device is not known: its calibration expired on 2020-02-29"
    ):
        check_compatibility(scenario(tmp_path, ", level_spl: 60", FROM_LEFT), load_bench(tmp_path / "bench.yaml"))


def test_noise_of_other_loudspeakers_in_dbfs_does_not_count_for_the_one_that_speaks(tmp_path: Path) -> None:
    calibrate(tmp_path, "--meter-reading", "67.7", "--max-spl", "90")
    noisy_scenario = scenario(tmp_path, ", level_dbfs: -20, noise: {kind: pink, level_dbfs: -7, positions: [left]}")
    room = in_corners(tmp_path)
    loud_room = replace(room, loudspeakers=(replace_max_spl(room.loudspeakers[0], 80.0), *room.loudspeakers[1:]))
    check_compatibility(noisy_scenario, loud_room)


def replace_max_spl(speaker: Equipment, max_spl: float) -> Equipment:
    return replace(speaker, calibration=replace(known(speaker.calibration), max_spl=max_spl))


def test_calibration_applies_only_to_its_gain_and_equaliser(tmp_path: Path) -> None:
    def speaker(options: str) -> Equipment:
        path = tmp_path / "room.yaml"
        device = f"devices: {{unit: {{profile: {DEVICE}}}}}"
        path.write_text(
            f"bench: b\nloudspeakers: {{near: {{driver: loudspeaker, sound_device: A{options}}}}}\n{device}"
        )
        return load_bench(path).loudspeakers[0]

    measured = replace(NEAR, loudspeaker="near", sound_device="A", settings="gain_db -6")
    assert not why_unfit(speaker(", gain_db: -6"), measured, None)
    assert "measured with gain_db -6, but the bench has none" in why_unfit(speaker(""), measured, None)
    assert "but the bench has gain_db -6, equaliser 125:-3" in why_unfit(
        speaker(', gain_db: -6, equaliser: "125:-3"'), measured, None
    )
    assert not why_unfit(speaker(""), replace(measured, settings=None), None)  # written before they were kept


@pytest.mark.parametrize(("old", "new"), [("near", "far"), ("in_process", "USB Audio")])
def test_a_calibration_of_another_loudspeaker_is_refused(tmp_path: Path, old: str, new: str) -> None:
    calibrate(tmp_path, "--meter-reading", "67.7")
    path = tmp_path / "near.calibration.yaml"
    path.write_text(path.read_text().replace(f'"{old}"', f'"{new}"'))
    with pytest.raises(InputProblems, match=f"its calibration was measured with .*'{new}'"):
        check_compatibility(scenario(tmp_path), load_bench(bench(tmp_path)))


def test_recordings_at_their_own_level_need_no_calibration(tmp_path: Path) -> None:
    soundfile.write(tmp_path / "said.wav", np.tile([0.1, -0.1], 24_000), 48_000)
    text = SCENARIO.format(defaults=", level_spl: 60", more="")
    path = file_with(
        tmp_path / "levels.yaml", text.replace("kind: wake", "kind: wake, recordings: said.wav, level: as_recorded")
    )
    session_scenario, room = load_scenario(path), load_bench(bench(tmp_path, ""))
    check_compatibility(session_scenario, room)
    assert len(plan(session_scenario, room)) == 1


@pytest.mark.parametrize("meter_command", ["", "L?"])
def test_a_meter_on_a_serial_port_is_read(tmp_path: Path, meter_command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.cli.calibrate.SETTLE_S", 0.0)
    monkeypatch.setattr("harness.cli.calibrate.METER_S", 1.5)
    far, near = os.openpty()
    tty.setraw(near)
    stop = threading.Event()

    def measure() -> None:
        while not stop.wait(0.1):
            if not meter_command or (select.select([far], [], [], 0)[0] and b"L?" in os.read(far, 100)):
                os.write(far, b"12:45:07 LAS 67,9 dB\r\n")

    meter = threading.Thread(target=measure)
    meter.start()
    try:
        options = ["--meter", os.ttyname(near), "--meter-ask", meter_command]
        words = CliRunner().invoke(command, [str(bench(tmp_path, "")), "near", *options], catch_exceptions=False).output
    finally:
        stop.set()
        meter.join()
    assert "Meter: 67.9 dB, the median of" in words
    assert read_calibration(tmp_path / "near.calibration.yaml").spl_at_0_dbfs == pytest.approx(93.9)
    with pytest.raises(DeviceError, match=r"no reading from 30 to 130 in 0.1 s; it sent nothing"):
        read_numbers(SerialCommandOptions(port=os.ttyname(near)), "", 0.1, 30, 130)


@pytest.mark.parametrize("option", ["--meter-reading", "--level-dbfs", "--max-spl"])
def test_non_numeric_reading_is_refused_before_playback(tmp_path: Path, option: str) -> None:
    result = CliRunner().invoke(command, [str(bench(tmp_path, "")), "near", option, "nan"])
    assert result.exit_code == 2
    assert "is not a finite number" in result.output
    assert not list(tmp_path.glob("*.calibration.yaml"))


@pytest.mark.parametrize("option", [["--meter-ask", "L?"], ["--meter-baud", "19200"]])
def test_options_of_a_meter_are_refused_without_one(tmp_path: Path, option: list[str]) -> None:
    with pytest.raises(InputError, match=f"{option[0]} needs --meter"):
        CliRunner().invoke(command, [str(bench(tmp_path, "")), "near", *option], catch_exceptions=False)


@pytest.mark.parametrize(
    "option", [["--meter-reading", "60"], ["--meter", "/dev/ttyUSB0"], ["--calibrator"], ["--weighting", "C"]]
)
def test_options_of_a_meter_are_refused_with_equalise(tmp_path: Path, option: list[str]) -> None:
    with pytest.raises(InputError, match=f"--equalise.* {option[0]}.* cannot be combined"):
        CliRunner().invoke(command, [str(bench(tmp_path, "")), "near", "--equalise", *option], catch_exceptions=False)


def test_both_levels_at_once_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputProblems, match="`defaults` has both `level_dbfs` and `level_spl`"):
        scenario(tmp_path, ", level_spl: 60, level_dbfs: -26")
    with pytest.raises(InputProblems, match="the matrix has both `level_dbfs` and `level_spl`"):
        scenario(tmp_path, more="matrix: {axes: {level_spl: [60], level_dbfs: [-26]}}")


@pytest.mark.parametrize(
    ("old", "new"), [("67.7", "200"), ('"A"', '"B"'), ('expires_on: "', 'expires_on: "x'), ("max_spl", "most")]
)
def test_a_damaged_file_is_refused_with_its_line(tmp_path: Path, old: str, new: str) -> None:
    calibrate(tmp_path, "--meter-reading", "67.7")
    path = tmp_path / "near.calibration.yaml"
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(InputProblems) as refused:
        load_bench(bench(tmp_path))
    assert all("near.calibration.yaml:" in str(problem.place) for problem in refused.value.problems)


def test_calibration_place_is_stored_as_plain_text(tmp_path: Path) -> None:
    calibrate(tmp_path, "--meter-reading", "67.7", "--at", 'a "b": {c} \\ # d')
    assert read_calibration(tmp_path / "near.calibration.yaml").at == 'a "b": {c} \\ # d'


@pytest.mark.parametrize("place", ["", " ", "a\x1b[31m", "a\nb", "x" * 61])
def test_a_place_that_no_file_can_hold_is_refused(tmp_path: Path, place: str) -> None:
    result = CliRunner().invoke(command, [str(bench(tmp_path, "")), "near", "--meter-reading", "60", "--at", place])
    assert result.exit_code == 2
    assert not list(tmp_path.glob("*.calibration.yaml"))


def test_only_a_loudspeaker_that_is_there_is_calibrated(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no loudspeaker 'left'"):
        CliRunner().invoke(command, [str(bench(tmp_path, "")), "left", "--meter-reading", "60"], catch_exceptions=False)


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
    calibrate(tmp_path, "--meter-reading", "68")
    path = file_with(tmp_path / "bench.yaml", LEVELS.format(device=DEVICE, microphone=""))
    with pytest.raises(InputProblems) as refused:
        load_bench(path)
    (problem,) = refused.value.problems
    assert (problem.place and problem.place.line, problem.what) == (
        2,
        "the level of 'microphone' is not known: it is not calibrated",
    )
    assert "harness admin calibrate" in problem.remedy
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
    calibrate(tmp_path, "--meter-reading", "68", "--max-spl", "90")
    axes = "level_spl: [60, 88], noise: [null, {kind: pink, snr_db: 0}]"
    refused = scenario(tmp_path, more=f"matrix: {{axes: {{{axes}}}}}")
    room = load_bench(bench(tmp_path))
    with pytest.raises(InputProblems, match="with its noise is above its max_spl"):
        check_compatibility(refused, room)
    excluded = "exclude: [{level_spl: 88, noise: {kind: pink, snr_db: 0}}]"
    check_compatibility(scenario(tmp_path, more=f"matrix: {{axes: {{{axes}}}, {excluded}}}"), room)


class Ear:
    """A microphone in a room of a given gain: it hears what leaves 20 ms later, over a noise floor."""

    id = "microphone"

    def __init__(self, played: Waveform, gain_db: float, floor_dbfs: float = -90.0, hum_dbfs: float = -120.0) -> None:
        self._played, self._gain, self._floor_dbfs = played, 10 ** (gain_db / 20), floor_dbfs
        self._hum = math.sqrt(2) * 10 ** (hum_dbfs / 20)

    def cut(self, start_s: float, end_s: float) -> tuple[Waveform, float]:
        rate = self._played.rate_hz
        chance = np.random.default_rng(1)
        heard = chance.standard_normal(round((end_s - start_s) * rate)) * 10 ** (self._floor_dbfs / 20)
        heard += self._hum * np.sin(2 * np.pi * 51 * np.arange(len(heard)) / rate)
        start = round((10.02 - start_s) * rate)  # the sound left at 10 s
        low, high = max(0, start), min(len(heard), start + len(self._played.samples))
        heard[low:high] += self._gain * self._played.samples[low - start : high - start]
        return Waveform(heard.astype(np.float32), rate), start_s

    def own_sound(self, play_id: str, waveform: Waveform, starts_at_s: float) -> None:
        raise NotImplementedError

    def level_dbfs(self) -> float | None:
        return None

    def noise_floor_dbfs(self) -> float | None:
        return self._floor_dbfs


ROW = AttemptStarted("call", 1, 1, "p1", "sha", 0.5, 1.5, 2.0, None)
NEAR_KEYS: dict[str, object] = {
    "sound_device": "in_process",
    "signal": "pink noise",
    "level_dbfs": -26.0,
    "at": "the device",
    "measured_on": "2026-11-24",
    "expires_on": "2126-11-24",
    "max_spl": 78.0,
}
NEAR = Calibration("", "", "near", "", 100.0, "A", "the device", "2026-11-24", "2126-11-24", 120.0)


@pytest.mark.parametrize(
    ("signal", "weighting", "reading_db"), [("1 kHz", "A", 94.0), ("pink noise", "Z", 94.0), ("pink noise", "A", 92.65)]
)
def test_levels_agree_however_the_microphone_was_calibrated(
    tmp_path: Path, signal: str, weighting: str, reading_db: float
) -> None:
    """In this room, a full scale of 100 dB without weighting; pink noise then reads 1.35 dB less in dB(A)."""
    calibrations: list[Calibration] = []
    for name, how in (
        ("near", {"weighting": "A", "reading_db": 98.65 - 26}),
        ("microphone", {"signal": signal, "weighting": weighting, "level_dbfs": -6.0, "reading_db": reading_db}),
    ):
        keys = CalibrationKeys.model_validate(NEAR_KEYS | {"calibration": name} | how)
        write_calibration(tmp_path / f"{name}.yaml", keys)
        calibrations.append(read_calibration(tmp_path / f"{name}.yaml"))
    samples = np.zeros(2 * RATE_HZ, np.float32)
    samples[RATE_HZ // 2 : RATE_HZ * 3 // 2] = signal_of(-20.0)
    sound = Waveform(samples, RATE_HZ)
    rule = LevelRule(calibrations[1], {"near": calibrations[0]}, 1.0)
    assert known(rule.measure(ROW, "near", sound, 10.0, Ear(sound, 0.0))).off_db == pytest.approx(0.0, abs=0.1)


def signal_of(level: float) -> npt.NDArray[np.float32]:
    """A second of pink noise; above -13 dBFS, where its peaks would clip, of a square wave, which goes up to 0 dBFS."""
    if level <= -13.0:
        return calibration_sound("pink noise", level, 1.0).samples
    place = np.arange(RATE_HZ) % (RATE_HZ // 500)
    return np.where(place < RATE_HZ // 1000, 1, -1).astype(np.float32) * np.float32(10 ** (level / 20))


@pytest.mark.parametrize("level", [-40.0, -26.0, -13.0, -10.0, -6.0, -3.0, 0.0])
@pytest.mark.parametrize("gain_db", [-12.0, 0.0])
def test_the_level_heard_is_the_level_asked_for_in_a_room_of_known_gain(level: float, gain_db: float) -> None:
    rule = LevelRule(replace(NEAR, spl_at_0_dbfs=100.0 - gain_db), {"near": NEAR}, 1.0)
    samples = np.zeros(2 * RATE_HZ, np.float32)
    samples[RATE_HZ // 2 : RATE_HZ * 3 // 2] = signal_of(level)  # the ramps of noise are quieter
    sound = Waveform(samples, RATE_HZ)
    reading = known(rule.measure(ROW, "near", sound, 10.0, Ear(sound, gain_db)))
    assert reading.off_db == pytest.approx(0.0, abs=0.2)
    assert not rule.refusal(reading)
    rumbling = Ear(sound, gain_db, hum_dbfs=level + gain_db - 3.0)
    assert known(rule.measure(ROW, "near", sound, 10.0, rumbling)).off_db == pytest.approx(0.0, abs=0.2)
    quieter = known(rule.measure(ROW, "near", sound, 10.0, Ear(sound, gain_db - 3.0)))
    assert quieter.off_db == pytest.approx(-3.0, abs=0.2)
    assert rule.refusal(quieter).startswith("level_off: near gave")
    assert rule.measure(ROW, "near", sound, 10.0, Ear(sound, -120.0), asked_dbfs=level + 21) is None  # a quiet passage
    silent = known(rule.measure(ROW, "near", sound, 10.0, Ear(sound, -120.0)))
    assert rule.refusal(silent) == "level_off: the microphone did not hear near"

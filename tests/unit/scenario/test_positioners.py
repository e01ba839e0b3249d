"""The stands of a bench: how they are written, what is refused, and which trials move them."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.model.errors import InputError, InputProblems
from harness.model.positioners import Positioner, PowerSwitch, filled
from harness.scenario.bench import load_bench
from harness.scenario.compatibility import check_compatibility
from harness.scenario.scenario import load_scenario
from harness.session.plan import plan

BENCH = """\
bench: desk
loudspeakers: {front: {driver: in_process}}
devices: {lamp: {profile: lamp}}
stands:
  table: {driver: serial_commands, port: /dev/ttyUSB7, moves: angle, move: "ANGLE {value:.1f}", done: "^OK",
    low: -90, high: 90, home: 0}
  lift: {driver: serial_commands, port: /dev/ttyUSB7, moves: height_m, low: 0.5, high: 1.8}
  slider: {driver: manual, moves: reach_m}
"""
SCENARIO = """\
scenario: s
stimuli: [{id: q, text: hello}]
trials: [{query: q, evidence: none}]
matrix: {axes: {device_settings: [{angle: 45, height_m: 1.25}, {angle: -30}, {}]}}
"""


def written(folder: Path, bench: str = BENCH, scenario: str = SCENARIO) -> tuple[Path, Path]:
    (folder / "lamp.yaml").write_text("device: lamp\nwake_phrases: [hey lamp]\n", encoding="utf-8")
    (folder / "bench.yaml").write_text(bench, encoding="utf-8")
    (folder / "s.yaml").write_text(scenario, encoding="utf-8")
    return folder / "bench.yaml", folder / "s.yaml"


def test_stands_of_one_controller_share_its_connection(tmp_path: Path) -> None:
    bench = load_bench(written(tmp_path)[0])
    table, lift, slider = bench.stands
    assert table == Positioner("table", "table", "angle", "ANGLE {value:.1f}", "^OK", low=-90, high=90, home=0)
    assert (lift.connection, slider.connection) == ("table", "slider")
    assert [actuator.id for actuator in bench.actuators] == ["table", "slider"]


def test_conditions_that_move_a_stand_are_its_places(tmp_path: Path) -> None:
    bench_file, scenario_file = written(tmp_path)
    scenario, bench = load_scenario(scenario_file), load_bench(bench_file)
    check_compatibility(scenario, bench)
    trials = plan(scenario, bench)
    assert [trial.stands for trial in trials] == [(("table", "45"), ("lift", "1.25")), (("table", "-30"),), ()]
    assert not any(trial.settings for trial in trials)


ANGLES = SCENARIO.replace("device_settings: [{angle: 45, height_m: 1.25}, {angle: -30}, {}]", "angle_deg: [0, -30, 45]")
ANGLE_BENCH = BENCH.replace("moves: angle,", "moves: angle_deg,")
ROOM = "rooms: {box: {size_m: [6, 5, 3], rt60_s: 0.4, device_m: [2, 2, 1]}}\ndefaults: {room: box}\n"


def test_an_angle_belongs_to_a_stand_or_a_simulated_room(tmp_path: Path) -> None:
    bench = load_bench(written(tmp_path, ANGLE_BENCH, ANGLES)[0])
    real = load_scenario(tmp_path / "s.yaml")
    check_compatibility(real, bench)
    assert [trial.stands for trial in plan(real, bench)] == [(("table", angle),) for angle in ("0", "-30", "45")]
    in_room = ANGLES.replace("stimuli:", f"{ROOM}stimuli:")
    simulated = load_scenario(written(tmp_path, ANGLE_BENCH, in_room)[1])
    check_compatibility(simulated, bench)
    assert not any(trial.stands for trial in plan(simulated, bench))


def test_an_angle_that_nothing_brings_about_is_refused(tmp_path: Path) -> None:
    bench = load_bench(written(tmp_path, BENCH, ANGLES)[0])
    with pytest.raises(InputProblems, match="the scenario has no room, and the bench has no stand for it"):
        check_compatibility(load_scenario(tmp_path / "s.yaml"), bench)
    bench = load_bench(written(tmp_path, ANGLE_BENCH, ANGLES.replace("45", "91"))[0])
    with pytest.raises(InputProblems, match="'table' of the bench cannot move there: 91"):
        check_compatibility(load_scenario(tmp_path / "s.yaml"), bench)


def test_nobody_moves_a_stand_by_hand_where_the_operator_is_absent(tmp_path: Path) -> None:
    absent = BENCH.replace("bench: desk", "bench: desk\noperator: absent")
    bench_file, scenario_file = written(tmp_path, absent, SCENARIO.replace("angle: -30", "reach_m: 1"))
    with pytest.raises(InputProblems, match="the operator moves the stand 'slider' by hand, but is absent"):
        check_compatibility(load_scenario(scenario_file), load_bench(bench_file))


def test_a_place_beyond_the_end_of_a_stand_is_refused_before_a_sound(tmp_path: Path) -> None:
    bench_file, scenario_file = written(tmp_path, scenario=SCENARIO.replace("angle: 45", "angle: 91"))
    with pytest.raises(InputProblems, match=r"'table' of the bench cannot move there: 91 is not between -90"):
        check_compatibility(load_scenario(scenario_file), load_bench(bench_file))


@pytest.mark.parametrize(
    ("old", "instead", "refusal"),
    [
        ("high: 90", "high: -91", "`low` is -90, but `high` is -91"),
        ("home: 0", "home: 180", "`home` is 180, which is not between -90 and 90"),
        ("{value:.1f}", "{value:.1q}", "does not fit the number"),
        ('done: "^OK"', 'done: "(OK"', "done is not a regular expression"),
        ("moves: reach_m", "moves: height_m", "two stands move 'height_m'"),
        ("moves: reach_m", "moves: level_dbfs", "'level_dbfs' is an axis that no stand can move"),
        ("driver: manual", "driver: in_process", "the driver 'in_process' does not accept commands"),
        ("slider:", "lamp:", "'lamp' is the name of a stand and of another part of the bench"),
        ("moves: reach_m", "moves: reach_m, hight: 3", "there is no key 'hight' here"),
        (
            "driver: manual",
            "driver: mqtt_commands, address: a, topic: go, failed: ERR",
            "8:58: `failed` has no effect, since `done_topic` is empty",
        ),
        (
            "driver: manual",
            "driver: serial_commands, port: /dev/ttyX, failed: ERR",
            "`failed` has no effect, since `done` is empty",
        ),
        (
            "driver: manual",
            "driver: scpi, resource: 'A::B', ask: '', done: x",
            "`done` has no effect, since `ask` is empty",
        ),
        (
            "driver: manual",
            "driver: mqtt_commands, address: a, topic: go, done_topic: at/#/x",
            "done_topic: 'at/#/x' is not an MQTT filter",
        ),
        (
            "profile: lamp",
            "profile: lamp, connection: {driver: mqtt, address: a, topic_device: +}",
            "'+' is not a single",
        ),
    ],
)
def test_wrong_stands_are_refused(tmp_path: Path, old: str, instead: str, refusal: str) -> None:
    bench_file, _ = written(tmp_path, BENCH.replace(old, instead))
    with pytest.raises(InputProblems) as caught:
        load_bench(bench_file)
    assert refusal in str(caught.value)


def test_other_braces_in_a_template_are_kept() -> None:
    assert filled('{"angle": {value:.1f}, "id": {n}}', "30") == '{"angle": 30.0, "id": {n}}'
    assert filled(r"^\d{2} {value}$", "1.5", escaped=True) == r"^\d{2} 1\.5$"
    with pytest.raises(InputError, match="does not fit"):
        filled("{value:d}", "1.5")


POWER = """\
bench: desk
on_fault: {power_cycles: 2}
loudspeakers: {front: {driver: in_process}}
devices: {lamp: {profile: lamp}, bulb: {profile: lamp}}
power:
  lamp: {driver: serial_commands, port: /dev/ttyUSB7, on: "1 ON", off: "1 OFF", on_done: "^1 ON", boot_s: 20}
  bulb: {driver: serial_commands, port: /dev/ttyUSB7, on: ON, off: OFF}
"""
CYCLED = SCENARIO.partition("matrix:")[0].replace("evidence: none", "evidence: none, power_cycle: every 5")


def test_the_power_of_devices_is_switched_by_one_relay_board(tmp_path: Path) -> None:
    bench_file, scenario_file = written(tmp_path, POWER, CYCLED)
    bench, scenario = load_bench(bench_file), load_scenario(scenario_file)
    check_compatibility(scenario, bench)
    lamp, bulb = bench.power
    assert lamp == PowerSwitch("lamp", "power.lamp", "1 ON", "1 OFF", "^1 ON", boot_s=20.0)
    assert (bulb.connection, bulb.on, bulb.off) == ("power.lamp", "ON", "OFF")
    assert bench.on_fault is not None
    assert bench.on_fault.power_cycles == 2
    assert [trial.power_cycle for trial in plan(scenario, bench)] == [5]


@pytest.mark.parametrize(
    ("old", "instead", "refusal"),
    [
        ("  lamp: {driver", "  lump: {driver", "the bench has no device 'lump'"),
        ("serial_commands, port: /dev/ttyUSB7, on: ON, off: OFF", "tcp, address: '::1:1'", "does not accept commands"),
        ('"^1 ON"', '"(1 ON"', "on_done is not a regular expression"),
        (POWER[POWER.index("power:") :], "", "the bench has no power switch"),
    ],
)
def test_wrong_switches_are_refused(tmp_path: Path, old: str, instead: str, refusal: str) -> None:
    bench_file, _ = written(tmp_path, POWER.replace(old, instead))
    with pytest.raises(InputProblems) as caught:
        load_bench(bench_file)
    assert refusal in str(caught.value)


def test_a_device_without_a_switch_is_not_power_cycled(tmp_path: Path) -> None:
    bench_file, scenario_file = written(tmp_path, POWER.replace("  lamp: {driver", "  # lamp: {driver"), CYCLED)
    with pytest.raises(InputProblems, match="power-cycles 'lamp', but the bench has no power switch"):
        check_compatibility(load_scenario(scenario_file), load_bench(bench_file))


@pytest.mark.parametrize("wrong", ["often", "every 0", "3", "every"])
def test_invalid_power_cycle_is_refused(tmp_path: Path, wrong: str) -> None:
    _, scenario_file = written(tmp_path, POWER, CYCLED.replace("every 5", wrong))
    with pytest.raises(InputProblems, match="`power_cycle` must be `never`, `trial` or `every N`"):
        load_scenario(scenario_file)

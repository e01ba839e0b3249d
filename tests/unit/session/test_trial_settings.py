"""Stands are moved before the trials that need them, as rarely as the order allows, and a run answers meanwhile."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from harness.base.clocks import HostClock, ScaledClock
from harness.devices.orders import Manual, ManualOptions, PositionerSetting, Simulated, SimulatedOptions
from harness.model.feed import Abort, Resume
from harness.model.positioners import Positioner
from harness.model.record import EndReason, FaultMet, Paused, SettingsNoted, SettingsStage, TrialFinished
from harness.model.scenario import Axis, Matrix, Order
from harness.model.trial import Outcome
from harness.session.plan import plan
from tests.unit.session.house import SPEED, House
from tests.unit.session.material import Here, MemoryLog, bench, scenario

pytestmark = pytest.mark.usefixtures("simulated_time")

PLACES = tuple((("angle", str(angle)),) for angle in (0, 90, 45))
AXIS = Axis("device_settings", PLACES, tuple(f"angle={angle}" for ((_, angle),) in PLACES))


def turned(driver: Any = None, matrix: Matrix | None = None, **keys: Any) -> tuple[House, Simulated]:
    """Four queries at three angles, and the turntable."""
    clock = ScaledClock(SPEED, HostClock())
    turntable = Simulated("table", SimulatedOptions(per_s=90.0), Here(clock))
    stand = Positioner("table", "table", "angle", **keys)
    test_bench = replace(bench(), stands=(stand,))
    matrix = matrix or Matrix((AXIS,), order=Order.SHUFFLED, seed=3, group_by=("device_settings",))
    trials = plan(scenario(4, matrix=matrix), test_bench)
    stands = {"table": PositionerSetting(stand, driver or turntable, clock)}
    return House(trials, MemoryLog(clock), clock, stands=stands), turntable


def placed(run: House, stage: SettingsStage = SettingsStage.TRIAL) -> list[str]:
    return [dict(row.settings)["angle"] for row in run.log.of(SettingsNoted) if row.of is stage]


def test_a_stand_moves_once_for_each_group_and_then_goes_home() -> None:
    run, turntable = turned(home=10.0)
    run.played()
    assert run.reason is EndReason.COMPLETED
    assert placed(run) == ["0", "90", "45"]
    assert placed(run, SettingsStage.RESTORED) == ["10"]
    assert turntable.position == 10.0
    rows = [entry.record for entry in run.log.rows]
    for row in rows:
        if isinstance(row, TrialFinished):
            settings = [record for record in rows[: rows.index(row)] if isinstance(record, SettingsNoted)]
            trial = next(trial for trial in run.trials if trial.id == row.trial_id)
            assert settings[-1].settings[0][1] == dict(trial.stands)["table"]


def test_a_stand_without_a_home_stays_where_it_is() -> None:
    run, turntable = turned()
    run.played()
    assert turntable.position == 45.0
    assert not placed(run, SettingsStage.RESTORED)


def test_a_trial_is_not_measured_at_a_place_that_its_stand_did_not_reach() -> None:
    run, _ = turned(within_s=0.7)  # 45 degrees take half a second, 90 a whole one
    run.played()
    assert run.reason is EndReason.COMPLETED
    positions = {trial.id: dict(trial.stands)["table"] for trial in run.trials}
    assert {positions[row.trial_id]: row.outcome for row in run.log.of(TrialFinished)} == {
        "0": Outcome.RESPONDED,
        "90": Outcome.INTERRUPTED,
        "45": Outcome.RESPONDED,
    }
    assert all("table: set angle to 90: not done within 0.7 s" in row.what for row in run.log.of(FaultMet))
    (cause,) = {row.cause for row in run.log.of(TrialFinished) if row.outcome is Outcome.INTERRUPTED}
    assert cause.startswith("not_set_up: table")


def test_the_operator_moves_a_stand_by_hand_and_resumes() -> None:
    run, _ = turned(driver=Manual("table", ManualOptions(), Here(ScaledClock(1.0, HostClock()))), home=0.0)
    with run.running():
        for number in (1, 2, 3):
            run.until(lambda number=number: len(run.log.of(Paused)) == number)
            assert run.ask(Resume(str(number), "ann")) == (True, "")
    assert run.reason is EndReason.COMPLETED
    assert [row.reason for row in run.log.of(Paused)] == [
        f"table: set angle to {angle}, then resume" for angle in (0, 90, 45)
    ]
    assert placed(run) == ["0", "90", "45"]
    assert not placed(run, SettingsStage.RESTORED)


def test_an_abort_stops_a_movement() -> None:
    run, turntable = turned(within_s=3600.0)
    turntable._options = SimulatedOptions(per_s=0.001)
    with run.running():
        run.until(lambda: any("angle" in state.reason for state in run.states))
        run.until(lambda: turntable.orders and turntable.orders[-1].value == "90")
        run.conductor.enqueue(Abort("a", "ann"))
    assert run.reason is EndReason.ABORTED
    assert placed(run) == ["0"]
    assert run.log.of(TrialFinished)[-1].outcome is Outcome.ABORTED

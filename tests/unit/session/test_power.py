"""Power cycles between trials and after faults: as often as asked, never more than allowed, and never left off."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from harness.base import threads
from harness.devices.in_process.driver import InProcess
from harness.devices.orders import DevicePower
from harness.model.bench import OnFault
from harness.model.errors import DeviceError
from harness.model.feed import Abort, Pause, Resume, StateWord
from harness.model.positioners import BenchOrder, PowerSwitch
from harness.model.record import (
    AttemptStarted,
    EndReason,
    FaultMet,
    Paused,
    PowerSwitched,
    RerunAsked,
    Resumed,
    TrialFinished,
)
from harness.model.scenario import Defaults
from harness.model.trial import LIFE_CHECK, Outcome
from harness.session.plan import plan
from harness.session.resumption import Resumption
from tests.unit.session.house import House, house
from tests.unit.session.material import bench, scenario
from tests.unit.session.test_liveness import kill_after, revive

pytestmark = pytest.mark.usefixtures("simulated_time")

SWITCH = PowerSwitch("dut", "relay", off_s=2.0, boot_s=30.0)


class Relay:
    """Cuts the link of the house's device with its power, and brings it back.

    dead: its device boots no more. fails: orders that it does not answer. boots: called when the power comes.
    """

    def __init__(self) -> None:
        self.device: InProcess | None = None
        self.orders: list[str] = []
        self.dead = False
        self.fails: set[str] = set()
        self.boots: Callable[[], None] = lambda: None

    def carry_out(self, order: BenchOrder, given_up: threading.Event) -> None:
        self.orders.append(order.text)
        if order.text == "ON":
            self.boots()
        if order.text in self.fails:
            self.fails.discard(order.text)
            raise DeviceError(f"{order.words}: no answer")
        if self.device is None:
            return
        if order.text == "OFF":
            self.device.lose_link("no power")
        elif not self.dead:
            self.device.mend_link()


def powered(count: int = 4, power_cycle: int = 0, switch: PowerSwitch = SWITCH, **changes: Any) -> tuple[House, Relay]:
    relay = Relay()
    run = house(count, power={"dut": DevicePower(switch, relay)}, **changes)
    run = House(
        tuple(replace(trial, power_cycle=power_cycle) for trial in run.trials),
        run.log,
        run.clock,
        power={"dut": DevicePower(switch, relay)},
        **{name: value for name, value in changes.items() if name != "speed"},
    )
    relay.device = run.drivers[2]
    return run, relay


def cuts(run: House) -> list[PowerSwitched]:
    return [row for row in run.log.of(PowerSwitched) if not row.on]


def outcomes(run: House) -> dict[str, Outcome]:
    rows = run.log.of(TrialFinished)
    return {row.trial_id: row.outcome for row in rows if not row.trial_id.startswith(LIFE_CHECK)}


def test_a_device_boots_before_every_other_trial() -> None:
    run, relay = powered(4, power_cycle=2)
    run.played()
    assert run.reason is EndReason.COMPLETED
    assert relay.orders == ["OFF", "ON"] * 2
    assert [row.reason for row in cuts(run)] == [f"before {run.trials[number].id}" for number in (0, 2)]
    assert set(outcomes(run).values()) == {Outcome.RESPONDED}
    rows = [entry.record for entry in run.log.rows]
    assert all(row.answered_s is not None for row in run.log.of(PowerSwitched) if row.on)
    for row in cuts(run):  # nothing is played between power off and the device's answer
        after = rows[rows.index(row) :]
        back = next(number for number, record in enumerate(after) if isinstance(record, PowerSwitched) and record.on)
        assert not any(isinstance(record, AttemptStarted) for record in after[:back])


def test_nothing_is_switched_while_a_person_has_paused_the_run() -> None:
    run, relay = powered(2, power_cycle=1)
    with run.running():
        run.until(lambda: run.saw(StateWord.PLAYING))
        assert run.ask(Pause("p1", "ann", "at the device")) == (True, "")
        run.until(lambda: run.states[-1].word is StateWord.PAUSED)
        threads.sleep(60.0)
        assert relay.orders == ["OFF", "ON"]
        assert run.ask(Resume("p2", "ann")) == (True, "")
    assert relay.orders == ["OFF", "ON"] * 2
    assert set(outcomes(run).values()) == {Outcome.RESPONDED}


def test_a_device_that_shows_nothing_is_given_its_whole_time() -> None:
    run, relay = powered(1, power_cycle=1)
    relay.device = None
    run.played()
    (back,) = [row for row in run.log.of(PowerSwitched) if row.on]
    assert back.answered_s is None
    (cut,) = [entry for entry in run.log.rows if entry.record in cuts(run)]
    restored = next(entry for entry in run.log.rows if entry.record == back)
    assert restored.at_s - cut.at_s >= SWITCH.off_s + SWITCH.boot_s


def pull_the_plug(run: House, play: int) -> None:
    """The device hangs at the n-th sound, until its power is switched."""
    sounds, plays = run.speaker.play, [0]

    def lost(play_id: str, waveform: Any) -> None:
        plays[0] += 1
        sounds(play_id, waveform)
        if plays[0] == play:
            run.drivers[2].lose_link("it hangs")

    run.speaker.play = lost  # type: ignore[method-assign]


def test_a_device_that_hangs_is_power_cycled_and_its_trial_is_played_again() -> None:
    run, _ = powered(3, on_fault=OnFault(20.0, 3, power_cycles=2))
    pull_the_plug(run, 2)
    run.played()
    assert run.reason is EndReason.COMPLETED
    assert set(outcomes(run).values()) == {Outcome.RESPONDED}
    (rerun,) = run.log.of(RerunAsked)
    takes = {(row.trial_id, row.take): row.outcome for row in run.log.of(TrialFinished)}
    assert takes[rerun.trial_id, 1] is Outcome.INTERRUPTED
    assert [row.outcome for row in run.log.of(TrialFinished)].count(Outcome.RESPONDED) == 3
    assert [(row.on, row.after_fault) for row in run.log.of(PowerSwitched)] == [(False, True), (True, True)]
    assert run.log.of(Resumed) == [Resumed("on_fault: dut power cycled")]


def test_a_device_that_stays_dead_is_power_cycled_only_so_often() -> None:
    run, relay = powered(2, on_fault=OnFault(20.0, 3, power_cycles=2), speed=200.0)
    pull_the_plug(run, 1)
    relay.dead = True
    run.played()
    assert run.reason is EndReason.STOPPED
    assert len(cuts(run)) == 2
    assert any("no answer within 30 s after power on" in row.what for row in run.log.of(FaultMet))
    assert Outcome.RESPONDED not in outcomes(run).values()


def test_a_lost_loudspeaker_does_not_cost_the_device_its_power() -> None:
    run, _ = powered(2, on_fault=OnFault(20.0, 10_000, power_cycles=5))
    run.speaker.lose_link("unplugged")
    with run.running():
        run.until(lambda: run.log.of(Paused))
        run.speaker.mend_link()
    assert run.reason is EndReason.COMPLETED
    assert not cuts(run)


def test_a_silent_device_is_power_cycled_before_anybody_is_called() -> None:
    run, relay = powered(6, life_check_after=2, on_fault=OnFault(power_cycles=1), speed=100.0)
    relay.boots = lambda: revive(run)
    with run.running():
        kill_after(run, 1)
    assert run.reason is EndReason.COMPLETED
    assert [row.reason for row in cuts(run)] == ["no sign of life"]
    assert not run.log.of(Paused)
    assert set(outcomes(run).values()) == {Outcome.RESPONDED}


def test_an_abort_while_the_power_is_off_switches_it_on() -> None:
    run, relay = powered(2, power_cycle=1, switch=replace(SWITCH, off_s=36_000.0))
    with run.running():
        run.until(lambda: "OFF" in relay.orders)
        run.conductor.enqueue(Abort("a", "ann"))
    assert run.reason is EndReason.ABORTED
    assert relay.orders == ["OFF", "ON"]
    assert [(row.on, row.reason) for row in run.log.of(PowerSwitched)][-1] == (True, "the run ends")


def test_a_switch_that_does_not_answer_ends_the_trial_with_the_power_on() -> None:
    run, relay = powered(2, power_cycle=1)
    relay.fails = {"OFF"}
    run.played()
    assert relay.orders == ["OFF", "ON", "OFF", "ON"]
    assert [row.outcome for row in run.log.of(TrialFinished)] == [Outcome.INTERRUPTED, Outcome.RESPONDED]
    assert run.log.of(TrialFinished)[0].cause.startswith("not_set_up: dut: switch its power off: no answer")


def test_resume_knows_devices_left_without_power() -> None:
    run, _ = powered(1)
    run.log.append(PowerSwitched("dut", False, "before t00.r1"))
    assert Resumption.of(run.log.entries()).unpowered == {"dut"}
    run.log.append(PowerSwitched("dut", True, "the run begins"))
    assert Resumption.of(run.log.entries()).unpowered == set()


def test_the_defaults_are_about_trials_with_speech() -> None:
    trials = plan(scenario(2, defaults=Defaults(power_cycle=20)), bench())
    assert {trial.power_cycle for trial in trials} == {20}

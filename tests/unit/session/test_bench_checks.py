"""The checks of a bench, alone and between the trials of a run, with a driver's own sound in simulated time."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.base import threads
from harness.base.host_check import Check, Level
from harness.model.bench import AfterRetries, Bench, Heartbeat, MessageMapping, ObservationKind, OnFault
from harness.model.bench_checks import BenchChecks, CheckName, CheckPolicy
from harness.model.calibration import Calibration
from harness.model.observation import ListeningProved, Proof
from harness.model.record import AttemptStarted, BenchChecked, EndReason, FaultMet, Paused, Resumed, TrialFinished
from harness.model.stimulus import Waveform
from harness.model.time import Stamp
from harness.model.trial import Outcome
from harness.session import bench_checks
from harness.session.bench_checks import BenchCheck, estimated_gb
from harness.session.figures.progress import SessionFigures
from harness.session.pauses import CHECKS_BY
from harness.session.summary import check_lines
from tests.unit.session.house import House, house
from tests.unit.session.material import PROFILE, bench, trial

pytestmark = pytest.mark.usefixtures("simulated_time")

ONLY = {name.value: CheckPolicy.OFF for name in CheckName}


def one_room(**changes: Any) -> Bench:
    """The bench that a house has: one loudspeaker."""
    plain = bench()
    return replace(plain, loudspeakers=plain.loudspeakers[:1], **changes)


def checked(run: House, checks: BenchChecks, test_bench: Bench | None = None) -> BenchCheck:
    drivers: Any = {driver.id: driver for driver in run.drivers}
    return BenchCheck(test_bench or one_room(), checks, drivers, run.clock, Path("/"))


def looked(
    checks: BenchChecks, test_bench: Bench | None = None, spoil: Callable[[House], object] = lambda run: None
) -> Any:
    """What the checks find on open drivers without a run, by their names."""
    run = house(1)
    checking = checked(run, checks, test_bench)
    for driver in run.drivers:
        driver.open(checking.observe)
    try:
        spoil(run)
        by_name: dict[str, list[Check]] = {}
        for check in checking.run([], threads.event()):
            by_name.setdefault(check.name, []).append(check)
        return by_name
    finally:
        for driver in run.drivers:
            driver.close()


def running(count: int, checks: BenchChecks, limit_dbfs: float = -60.0, **changes: Any) -> House:
    """A house whose run makes the checks. The stage is frozen, so its conductor is built with them."""
    holder: list[BenchCheck] = []

    class Late:
        """Stands in until the drivers exist, which the house makes itself."""

        every_s = checks.every_min * 60 if checks.every_min else float("inf")

        def observe(self, observation: Any) -> None:
            holder[0].observe(observation)

        def run(self, trials: Any, given_up: threading.Event) -> list[Check]:
            return holder[0].run(trials, given_up)

    run = house(count, checks=Late(), **changes)
    holder.append(checked(run, checks, one_room(max_noise_floor_dbfs=limit_dbfs)))
    return run


def test_a_bench_in_order_passes_and_each_result_says_what_was_measured() -> None:
    checks = looked(BenchChecks(clock=CheckPolicy.OFF), one_room(max_noise_floor_dbfs=-60.0))
    assert {check.level for results in checks.values() for check in results} == {Level.OK}
    assert [check.says for check in checks["devices"]] == [
        "speaker: connected",
        "mic: connected",
        "dut_link: connected",
    ]
    assert checks["noise_floor"][0].says == "mic: the noise floor is -72.0 dBFS; the bench allows at most -60 dBFS"
    assert checks["loudspeakers"][0].says.startswith("speaker: mic heard 5 of 5 test sounds, ")
    assert "over 5 (at most 20 allowed)" in checks["loop_delay"][0].says
    assert re.match(r"\d+\.\d GB are free at /; \d+\.\d GB are required", checks["disk"][0].says)


def test_a_loudspeaker_that_is_not_heard_is_named_and_its_delay_is_not_a_number() -> None:
    def mute(run: House) -> None:
        play = run.speaker.play
        run.speaker.play = lambda id, sound: play(id, Waveform(sound.samples * 0, sound.rate_hz))  # type: ignore[method-assign]

    checks = looked(BenchChecks(), spoil=mute)
    (loudspeaker,), (delay,) = checks["loudspeakers"], checks["loop_delay"]
    assert (loudspeaker.level, delay.level) == (Level.FAIL, Level.WARN)
    assert loudspeaker.says == "speaker: mic heard 0 of 5 test sounds"
    assert delay.says == "speaker: n/a, 0 of 5 test sounds were heard"
    assert "harness check sound" in loudspeaker.remedy


def test_a_lost_device_and_a_missing_heartbeat_are_told_apart() -> None:
    beat = Heartbeat(MessageMapping("x/y", ObservationKind.LISTENING), within_s=10.0)
    plain = one_room()
    (dut,) = plain.devices
    test_bench = replace(plain, devices=(replace(dut, profile=replace(PROFILE, heartbeat=beat)),))
    devices = BenchChecks(**{**ONLY, "devices": CheckPolicy.REFUSE})

    silent = looked(devices, test_bench)["devices"][-1]
    assert (silent.level, silent.says) == (Level.FAIL, "dut_link: no heartbeat in 10 s")

    def proves(run: House) -> None:
        run.drivers[2]._emit(ListeningProved("dut_link", Stamp(run.clock.now_s()), Proof.HEARTBEAT))

    assert looked(devices, test_bench, proves)["devices"][-1].says == "dut_link: connected, heartbeat seen"
    lost = looked(devices, test_bench, lambda run: run.drivers[2].lose_link("the plug is pulled"))["devices"][-1]
    assert (lost.level, lost.says) == (Level.FAIL, "dut_link: lost (the plug is pulled)")
    assert lost.remedy.endswith("bench.yaml:1:1)")


def test_a_calibration_that_expires_and_a_clock_that_is_set_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = one_room()
    assert plain.microphone is not None
    calibration = Calibration(
        "c", "0" * 64, "mic", "in_process", 94.0, "A", "1 m", "2020-01-01", "2020-06-01", 100.0, weighting_db=-1.4
    )
    test_bench = replace(plain, microphone=replace(plain.microphone, calibration=calibration))
    checks_on = BenchChecks(**{**ONLY, "calibration": CheckPolicy.REFUSE, "noise_floor": CheckPolicy.WARN})
    checks = looked(checks_on, test_bench)
    assert [(check.level, check.says) for check in checks["calibration"]] == [
        (Level.FAIL, "mic: its calibration expired on 2020-06-01")
    ]
    assert checks["noise_floor"][0].says == "mic: the noise floor is -72.0 dBFS, 23.4 dB SPL (unweighted)"
    offsets = iter([0.0, 2.5])
    monkeypatch.setattr(bench_checks, "wall_offset_s", lambda: next(offsets))
    monkeypatch.setattr(bench_checks, "kernel_clock", lambda: (True, 0.01))
    (clock,) = looked(BenchChecks(**{**ONLY, "clock": CheckPolicy.WARN}))["clock"]
    assert (clock.level, "moved by 2500 ms" in clock.says) == (Level.WARN, True)


def test_the_disk_must_hold_the_trials_that_are_left() -> None:
    assert estimated_gb([]) == 0
    assert estimated_gb([trial()] * 1000) == pytest.approx(1000 * (96_000 * 30 + 20_000) / 1e9)
    disk = BenchChecks(**{**ONLY, "disk": CheckPolicy.REFUSE})
    (full,) = looked(disk, one_room(min_free_gb=1e9))["disk"]
    assert full.level is Level.FAIL


NOISE = BenchChecks(**{**ONLY, "noise_floor": CheckPolicy.REFUSE}, every_min=1.0)


def test_noise_pauses_a_run_with_its_reason_and_quiet_resumes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    run, floor = running(2, NOISE, on_fault=OnFault(20.0, 1000)), [-41.0]
    monkeypatch.setattr(run.mic, "noise_floor_dbfs", lambda: floor[0])
    with run.running():
        run.until(lambda: len(run.log.of(BenchChecked)) >= 2)
        assert run.log.of(AttemptStarted) == []
        floor[0] = -70.0
    (paused,) = run.log.of(Paused)
    assert paused.by == CHECKS_BY
    assert paused.reason.startswith(
        "noise_floor: mic: the noise floor is -41.0 dBFS; the bench allows at most -60 dBFS"
    )
    assert run.log.of(Resumed) == [Resumed("checks: the bench passes its checks again")]
    assert {row.outcome for row in run.log.of(TrialFinished)} == {Outcome.RESPONDED}
    figures = SessionFigures()
    for entry in run.log.entries():
        figures.add(entry)
    refusals = sum(row.level == "fail" for row in run.log.of(BenchChecked))
    first, second = check_lines(figures.snapshot())
    assert first.endswith(f" {refusals} refusals")
    assert f"noise_floor: {refusals} of {len(run.log.of(BenchChecked))} not ok; last: mic: the noise floor" in second


def test_checks_are_repeated_between_trials_and_never_within_one() -> None:
    sound = BenchChecks(**{**ONLY, "loudspeakers": CheckPolicy.REFUSE}, every_min=0.5)
    run = running(8, sound, speed=20.0).played()
    assert run.reason is EndReason.COMPLETED
    assert {row.outcome for row in run.log.of(TrialFinished)} == {Outcome.RESPONDED}
    rows = run.log.of(BenchChecked)
    assert len(rows) >= 2
    assert {row.level for row in rows} == {"ok"}
    under_way = False
    for entry in run.log.rows:
        under_way = isinstance(entry.record, AttemptStarted) or (
            under_way and not isinstance(entry.record, TrialFinished)
        )
        assert not (under_way and isinstance(entry.record, BenchChecked))


@pytest.mark.parametrize(("policy", "ends"), [(AfterRetries.END, EndReason.STOPPED), (AfterRetries.SKIP, "completed")])
def test_after_the_last_retry_the_policy_decides(
    policy: AfterRetries, ends: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = running(1, NOISE, on_fault=OnFault(5.0, 2, policy), speed=100.0)
    monkeypatch.setattr(run.mic, "noise_floor_dbfs", lambda: -41.0)
    run.played()
    assert run.reason == ends
    assert len(run.log.of(BenchChecked)) == 3  # the first, and two retries
    faults = [row for row in run.log.of(FaultMet) if row.source == CHECKS_BY]
    assert len(faults) == (policy is AfterRetries.END)


def test_a_warning_does_not_pause() -> None:
    run = running(1, replace(NOISE, noise_floor=CheckPolicy.WARN), limit_dbfs=-90.0).played()
    assert [row.level for row in run.log.of(BenchChecked)] == ["warn"]
    assert run.log.of(Paused) == []


@pytest.mark.usefixtures("simulated_time")
def test_the_loop_delay_is_checked_without_the_check_of_loudspeakers() -> None:
    checks = looked(BenchChecks(**{**ONLY, "loop_delay": CheckPolicy.REFUSE}))
    assert list(checks) == ["loop_delay"]

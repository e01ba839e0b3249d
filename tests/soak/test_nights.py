"""Simulated days without anybody: ten kinds of faults, and every attempt that counts is what the device really did.

HARNESS_SOAK_HOURS says how many simulated hours (8 unless named).
"""

from __future__ import annotations

import os
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from harness.base import threads
from harness.base.clocks import HostClock
from harness.devices.in_process import driver as in_process
from harness.devices.in_process.device import Doing, InProcessOptions, SimpleDevice
from harness.devices.in_process.driver import FLOOR_DBFS, InProcess
from harness.model.bench import OnFault
from harness.model.errors import DeviceError
from harness.model.record import AttemptFinished, AttemptStarted, EndReason, Paused, Resumed, TrialFinished
from harness.model.stimulus import Waveform
from harness.model.trial import Outcome
from harness.session.plan import plan
from tests.unit.session.house import House
from tests.unit.session.material import MemoryLog, bench, scenario

HOURS = float(os.environ.get("HARNESS_SOAK_HOURS", "8"))
TRIALS_AN_HOUR = 400
FAULT_EVERY_S = 240.0
LONGEST_S = 1800.0
KINDS = ("speaker", "mic", "dut_link", "refused", "cut", "restart", "disk", "full", "noise", "power")


class PowerCut(Exception):
    """The host loses its power at a row of the log."""


class Witness(SimpleDevice):
    """A device that notes what it really did, and when."""

    did: list[tuple[float, Doing]]
    now_s: Callable[[], float]

    def take(self, waveform_sha: str) -> Doing | None:
        doing = super().take(waveform_sha)
        if doing is not None:
            type(self).did.append((type(self).now_s(), doing))
        return doing


class Night:
    """A lab whose equipment fails, and whose host loses its power and starts again. Times are simulated."""

    def __init__(self, trials: int, seed: int) -> None:
        self.clock = HostClock()
        self.log = MemoryLog(self.clock, self._room)
        self.trials = plan(scenario(trials), bench())
        self.count: Counter[str] = Counter()
        self._random = random.Random(seed)
        self._over = threads.event()
        self._refused = 0
        self._cut_power = self._full = self._loud = False
        self._short = ""
        self._run: House | None = None

    def last(self) -> EndReason | None:
        """Runs, and resumes after each power cut, to the end."""
        with self._faults():
            while True:
                run = House(
                    self.trials,
                    self.log,
                    self.clock,
                    options=InProcessOptions(wake_miss_share=0.05, mishear_share=0.1, late_share=0.02),
                    on_fault=OnFault(retry_after_s=60.0, retries=60),
                    short_of_room=lambda: self._short,
                    max_noise_floor_dbfs=-50.0,
                )
                run.speaker.play = self._refusing(run.speaker.play)  # type: ignore[method-assign]
                run.mic.noise_floor_dbfs = lambda: -35.0 if self._loud else FLOOR_DBFS  # type: ignore[method-assign]
                try:
                    with run.running():
                        self._run = run
                        while run.reason is None and run.error is None:
                            threads.sleep(0.5)
                        self._run = None
                except PowerCut:
                    continue
                return run.reason

    @contextmanager
    def _faults(self) -> Iterator[None]:
        thread = threads.thread(self._fail)
        thread.start()
        try:
            yield
        finally:
            self._over.set()
            thread.join()

    def _fail(self) -> None:
        left: list[str] = []
        while not self._wait(self._random.expovariate(1 / FAULT_EVERY_S)):
            left = left or self._random.sample(KINDS, len(KINDS))
            run = self._run
            if run is None:
                continue
            kind, lasts_s = left.pop(), min(LONGEST_S, self._random.expovariate(1 / 120.0))
            self.count[kind] += 1
            match kind:
                case "refused":
                    self._refused = self._random.randint(1, 12)
                case "cut":
                    run.speaker.stop()
                case "restart":
                    run.drivers[2].restart()
                case "power":
                    self._cut_power = True
                case "disk":
                    self._short = "disk: short"
                    self._wait(lasts_s)
                    self._short = ""
                case "full":
                    self._full = True
                    self._wait(lasts_s)
                    self._full = False
                case "noise":
                    self._loud = True
                    self._wait(lasts_s)
                    self._loud = False
                case _:
                    self._lose(next(one for one in run.drivers if one.id == kind), lasts_s)

    def _lose(self, driver: InProcess, lasts_s: float) -> None:
        driver.lose_link("the plug is pulled")
        self._wait(lasts_s)
        driver.mend_link()

    def _wait(self, duration_s: float) -> bool:
        return self._over.wait(duration_s)

    def _room(self) -> bool:
        if self._cut_power:
            self._cut_power = False
            raise PowerCut
        return not self._full

    def _refusing(self, play: Callable[[str, Waveform], None]) -> Callable[[str, Waveform], None]:
        def refuse_or_play(play_id: str, waveform: Waveform) -> None:
            if self._refused:
                self._refused -= 1
                raise DeviceError("the sound server is busy")
            play(play_id, waveform)

        return refuse_or_play


@pytest.mark.soak
@pytest.mark.usefixtures("simulated_time")
def test_nights_without_anybody(monkeypatch: pytest.MonkeyPatch) -> None:
    night = Night(max(10, round(HOURS * TRIALS_AN_HOUR)), seed=1)
    monkeypatch.setattr(Witness, "did", [], raising=False)
    monkeypatch.setattr(Witness, "now_s", night.clock.now_s, raising=False)
    monkeypatch.setattr(in_process, "SimpleDevice", Witness)
    begun_s = night.clock.now_s()
    reason = night.last()
    hours = (night.clock.now_s() - begun_s) / 3600
    takes = Counter(row.outcome for row in night.log.of(TrialFinished))
    sys.stdout.write(f"{hours:.1f} simulated hours; faults: {dict(night.count)}; takes: {dict(takes)}\n")
    assert reason is EndReason.COMPLETED
    last = {row.trial_id: row.outcome for row in night.log.of(TrialFinished)}
    assert set(last) == {trial.id for trial in night.trials}
    assert Outcome.INTERRUPTED not in last.values()
    if HOURS >= 8:
        assert set(night.count) == set(KINDS)
        assert night.count.total() >= 50
    # A pause that a power cut ends has no end of its own.
    assert 0 <= len(night.log.of(Paused)) - len(night.log.of(Resumed)) <= night.count["power"]
    attempts = counted(night.log)
    sys.stdout.write(f"{len(attempts)} attempts count\n")
    assert len(attempts) >= len(night.trials)
    wrong = []
    for begun_s, ended_s, told_s, verdict in attempts:
        did = [(at_s, doing.transcript) for at_s, doing in Witness.did if begun_s <= at_s <= told_s]
        if [heard for at_s, heard in did if at_s <= ended_s] != [verdict.heard]:
            wrong.append((begun_s, ended_s, told_s, did, verdict))
    assert not wrong, f"{len(wrong)} of {len(attempts)} attempts differ from what the device did: {wrong}"


def counted(log: MemoryLog) -> list[tuple[float, float, float, AttemptFinished]]:
    """Begin, first and last verdict of each attempt that counts. A late answer gives an attempt another verdict."""
    begun: dict[tuple[str, int, int], float] = {}
    ended: dict[tuple[str, int, int], float] = {}
    told: dict[tuple[str, int, int], float] = {}
    verdicts: dict[tuple[str, int, int], AttemptFinished] = {}
    for entry in log.rows:
        row = entry.record
        if isinstance(row, AttemptStarted):
            begun[row.trial_id, row.take, row.attempt] = entry.at_s
        elif isinstance(row, AttemptFinished):
            key = row.trial_id, row.take, row.attempt
            ended.setdefault(key, entry.at_s)
            told[key] = entry.at_s
            verdicts[key] = row
    counts = {key: row for key, row in verdicts.items() if row.outcome is not Outcome.INTERRUPTED}
    return [(begun[key], ended[key], told[key], row) for key, row in counts.items()]

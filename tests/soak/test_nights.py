"""Simulated days without anybody: devices are lost and come back, sounds are refused, the disk fills.

HARNESS_SOAK_DAYS says how many (1 unless named; a day takes about a quarter of an hour).
"""

from __future__ import annotations

import os
import random
import sys
import threading
from collections import Counter

import pytest

from harness.devices.in_process.driver import InProcess
from harness.model.bench import OnFault
from harness.model.errors import DeviceError
from harness.model.record import EndReason, Paused, Resumed, TrialFinished
from harness.model.stimulus import Waveform
from harness.model.trial import Outcome
from tests.unit.session.house import House, house

DAYS = float(os.environ.get("HARNESS_SOAK_DAYS", "1"))
SPEED = 100.0
TRIALS_AN_HOUR = 400
FAULT_EVERY_S = 300.0
LONGEST_S = 1800.0


class Faults:
    """Injects one fault after another until the run ends; times are simulated."""

    def __init__(self, run: House, seed: int) -> None:
        self._run = run
        self._random = random.Random(seed)
        self._over = threading.Event()
        self._refused = 0
        self.short_of_room = ""
        self.count: Counter[str] = Counter()
        self._play = run.speaker.play
        run.speaker.play = self._play_or_refuse  # type: ignore[method-assign]
        self._thread = threading.Thread(target=self._work, daemon=True)

    def __enter__(self) -> Faults:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _work(self) -> None:
        while not self._wait(self._random.expovariate(1 / FAULT_EVERY_S)):
            lasts_s = min(LONGEST_S, self._random.expovariate(1 / 120.0))
            kind = self._random.choice(("speaker", "mic", "dut_link", "refused", "disk"))
            self.count[kind] += 1
            if kind == "refused":
                self._refused = self._random.randint(1, 12)
            elif kind == "disk":
                self.short_of_room = "disk: short"
                self._wait(lasts_s)
                self.short_of_room = ""
            else:
                driver = next(one for one in self._run.drivers if one.id == kind)
                self._lose(driver, lasts_s)

    def _lose(self, driver: InProcess, lasts_s: float) -> None:
        driver.lose_link("the plug is pulled")
        self._wait(lasts_s)
        driver.mend_link()

    def _wait(self, duration_s: float) -> bool:
        return self._over.wait(duration_s / SPEED)

    def _play_or_refuse(self, play_id: str, waveform: Waveform) -> None:
        if self._refused:
            self._refused -= 1
            raise DeviceError("the sound server is busy")
        self._play(play_id, waveform)


@pytest.mark.soak
@pytest.mark.timeout(int(DAYS * 7200) + 300)
def test_days_without_anybody() -> None:
    run = house(
        max(10, round(DAYS * 24 * TRIALS_AN_HOUR)),
        speed=SPEED,
        on_fault=OnFault(retry_after_s=60.0, retries=60),
        short_of_room=lambda: faults.short_of_room,
    )
    faults = Faults(run, seed=1)
    begun_s = run.clock.now_s()
    with run.running(), faults:
        run.until(lambda: run.reason is not None, within_s=DAYS * 7200 + 240)
    hours = (run.clock.now_s() - begun_s) / 3600
    last = {row.trial_id: row.outcome for row in run.log.of(TrialFinished)}
    takes = Counter(row.outcome for row in run.log.of(TrialFinished))
    sys.stdout.write(f"{hours:.1f} simulated hours; faults: {dict(faults.count)}; takes: {dict(takes)}\n")
    assert run.reason is EndReason.COMPLETED
    assert set(last) == {trial.id for trial in run.trials}
    assert set(last.values()) == {Outcome.RESPONDED}
    assert len(run.log.of(Paused)) == len(run.log.of(Resumed))

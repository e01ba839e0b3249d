"""A photodiode on a serial line: a board that prints numbers, switched at known times, read through the real driver."""

from __future__ import annotations

import os
import threading
import time
import tty
from dataclasses import replace
from pathlib import Path

import pytest

from harness.devices.profiles.profile import load_profile
from harness.devices.serial.device import SerialDevice
from harness.devices.serial.options import SerialOptions
from harness.model.observation import LinkLost, Status, Wake
from tests.seen import Around, Seen

SWITCHES = 30


class Sensor:
    """Prints the level of a lamp every 5 ms."""

    def __init__(self) -> None:
        self.near, far = os.openpty()
        tty.setraw(far)
        self._far = far
        self.port = os.ttyname(far)
        self.lit = False
        self.shown: list[tuple[float, float]] = []  # when each switch went onto the line: before and after, host time
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._print, daemon=True)
        self._thread.start()

    def _print(self) -> None:
        number, was = 0, self.lit
        while not self._stop.wait(0.005):
            number += 1
            lit = self.lit
            # Noise, and a flash of one reading now and then.
            level = (700 if lit else 60) + number * 37 % 90 + (500 if number % 61 == 0 else 0)
            before_s = time.monotonic()
            os.write(self.near, f"A0={level} A1=3\r\n".encode())
            if lit != was:
                self.shown.append((before_s, time.monotonic()))
            was = lit

    def close(self) -> None:
        self._stop.set()
        self._thread.join(5)
        os.close(self.near)
        os.close(self._far)


@pytest.mark.usefixtures("host_keeps_time")
def test_times_of_a_sensor_lie_within_their_errors(tmp_path: Path) -> None:
    profile = load_profile("light_sensor", beside=tmp_path)
    light, *_ = profile.thresholds
    quick = replace(light, states=tuple(replace(state, min_s=0.03) for state in light.states))
    sensor, observations = Sensor(), Seen()
    options = SerialOptions(port=sensor.port, hold_back_ms=1.0)
    driver = SerialDevice("sensor", options, Around(tmp_path, replace(profile, thresholds=(quick,))))
    try:
        driver.open(observations)
        observations.wait(lambda: observations.of(Status), 30, "the first state")
        for number in range(SWITCHES):
            sensor.lit = not sensor.lit
            observations.wait(lambda number=number: len(observations.of(Wake, Status)) > number + 1, 30, "a change")  # type: ignore[misc]
    finally:
        driver.close()
        sensor.close()
    changes = observations.of(Wake, Status)[1:]
    assert [type(change) for change in changes] == [Wake, Status] * (SWITCHES // 2)
    within = [
        change.at.at_s - change.at.error_s <= after_s and change.at.at_s + change.at.error_s >= before_s
        for change, (before_s, after_s) in zip(changes, sensor.shown, strict=True)
    ]
    assert sum(within) >= 0.99 * SWITCHES, [
        (change.at, shown_s) for change, shown_s in zip(changes, sensor.shown, strict=True)
    ]
    assert not observations.of(LinkLost)

"""Boards of log lines and text streams in simulated time: the drivers themselves, on a port that is simulated.

A board notes when it wrote what. Every stated time must contain that moment, whatever its clock and its line do.
"""

from __future__ import annotations

import errno
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from harness.base import threads
from harness.base.simulated_threads import SimulatedThreads
from harness.devices.outlet import BROKEN
from harness.devices.serial.options import FramingChoice, SerialOptions
from harness.devices.text_streams import FarEnd, TextStream, TextStreamOptions
from harness.devices.wire.console import Console
from harness.model.bench import ClockKind, ConsoleSettings, DeviceProfile, LineMapping, ObservationKind
from harness.model.observation import DeviceState, LinkBack, LinkLost, ListeningProved, LogLine, Status, Unread, Wake
from tests.nights.ports import SimulatedPort, SimulatedSerial, SimulatedText
from tests.seen import Around, Seen

PROFILE = DeviceProfile(
    "box",
    "A box",
    "box.yaml",
    "0",
    ("alexa",),
    lines=(
        LineMapping(r"^I \(\d+\) heard (?P<phrase>\w+) (?P<score>[\d.]+)", ObservationKind.WAKE),
        LineMapping(r"^rst:(?P<detail>\w+)", ObservationKind.STATUS, (("state", "started"),)),
        LineMapping(r"^I \(\d+\) listening", ObservationKind.LISTENING),
    ),
    console=ConsoleSettings(time=r"^I \((?P<time>\d+)\) ", clock=ClockKind.MS),
)
NO_CLOCK = replace(PROFILE, console=ConsoleSettings())


class Box:
    """Writes lines with a clock of its own. wrote_s: when it heard something."""

    def __init__(self, world: SimulatedThreads, *, drift: float = 0.0) -> None:
        self.port = SimulatedPort(world, self)
        self.wrote_s: list[float] = []
        self.taken = b""
        self._world, self._drift = world, drift
        self._booted_s = world.monotonic() - 12.3

    def takes(self, data: bytes) -> None:
        self.taken += data

    def line(self, text: str, at_s: float) -> bytes:
        return b"I (%d) %s\r\n" % ((at_s - self._booted_s) * (1 + self._drift) * 1000, text.encode())

    def hears(self, at_s: float, *, late_s: float = 0.0) -> bytes:
        """It writes a line, which leaves it late."""
        self.wrote_s.append(at_s)
        line = self.line("heard alexa 0.93", at_s)
        self.port.send(line, at_s + late_s)
        return line

    def jumps(self, by_s: float) -> None:
        self._booted_s -= by_s

    def restarts(self, at_s: float) -> None:
        self._booted_s = at_s
        self.port.send(b"rst:POWERON\r\n", at_s)


@contextmanager
def serial(box: Box, profile: DeviceProfile = PROFILE, **options: Any) -> Iterator[tuple[SimulatedSerial, Seen]]:
    chosen = SerialOptions(port="simulated", framing=FramingChoice.NONE, **options)
    driver, observations = SimulatedSerial("box", chosen, Around(profile=profile), box.port), Seen()
    driver.open(observations)
    yield driver, observations
    driver.close()


@contextmanager
def text(box: Box, **options: Any) -> Iterator[tuple[TextStream, Seen]]:
    driver, observations = SimulatedText("box", TextStreamOptions(**options), Around(profile=PROFILE), box.port), Seen()
    driver.open(observations)
    yield driver, observations
    driver.close()


def contained(observations: Seen, wrote_s: list[float]) -> list[float]:
    """The stated errors, after each stated time was found to contain the true one."""
    wakes = observations.of(Wake)
    assert len(wakes) == len(wrote_s)
    for wake, true_s in zip(wakes, wrote_s, strict=True):
        assert abs(wake.at.at_s - true_s) <= wake.at.error_s + 1e-6, (wake, true_s)
    return [wake.at.error_s for wake in wakes]


@pytest.mark.parametrize("drift", [0.0, 80e-6, -150e-6, 0.004, -0.03])
def test_stated_errors_cover_an_hour_of_clock_drift(simulated_time: SimulatedThreads, drift: float) -> None:
    box, chance = Box(simulated_time, drift=drift), Random(1)
    with serial(box) as (_, observations):
        for _ in range(600):
            threads.sleep(chance.uniform(0.5, 12.0))
            box.hears(simulated_time.monotonic(), late_s=chance.uniform(0.0, 0.016))
        threads.sleep(1.0)
    errors_s = contained(observations, box.wrote_s)
    assert max(errors_s[100:]) < 0.07
    assert len(observations.of(LogLine)) == 0


def test_a_restart_is_reported_and_the_clock_is_learned_again(simulated_time: SimulatedThreads) -> None:
    box = Box(simulated_time)
    with serial(box) as (_, observations):
        for number in range(60):
            threads.sleep(3.0)
            if number % 20 == 10:
                box.restarts(simulated_time.monotonic())
                threads.sleep(1.0)
            # Only a clock that was learned anew knows when a late line was written.
            box.hears(simulated_time.monotonic(), late_s=0.5 if number % 20 == 13 else 0.01)
        threads.sleep(1.0)
    contained(observations, box.wrote_s)
    assert [status.state for status in observations.of(Status)] == [DeviceState.STARTED] * 3
    assert not observations.of(LinkLost)


def test_late_split_repeated_and_damaged_lines_are_handled(simulated_time: SimulatedThreads) -> None:
    box = Box(simulated_time)
    with serial(box) as (_, observations):
        for _ in range(40):
            threads.sleep(1.0)
            box.hears(simulated_time.monotonic())
        threads.sleep(1.0)
        late_s = simulated_time.monotonic()
        box.hears(late_s, late_s=0.7)
        threads.sleep(2.0)
        halved_s = simulated_time.monotonic()
        box.wrote_s.append(halved_s)
        line = box.line("heard alexa 0.93", halved_s)
        box.port.send(line[:9], halved_s)
        box.port.send(line[9:], halved_s + 0.4)
        threads.sleep(2.0)
        repeated_s = simulated_time.monotonic()
        line = box.hears(repeated_s)
        box.port.send(line, repeated_s + 0.2)
        box.wrote_s.append(repeated_s)
        threads.sleep(2.0)
        contained(observations, box.wrote_s)
        # Half a line that is lost takes the next one with it, and both stand in the log.
        now_s = simulated_time.monotonic()
        box.port.send(line[:9] + box.line("heard alexa 0.91", now_s), now_s)
        box.port.send(b"x" * 70_000 + b"\n", now_s)
        threads.sleep(10.0)
    assert len(observations.of(Wake)) == len(box.wrote_s)
    joined, long = observations.of(LogLine)
    assert joined.text == "I (57299)I (59299) heard alexa 0.91"
    assert long.text.endswith("(the line is too long: 70000 bytes)")
    assert [unread.count for unread in observations.of(Unread)] == [1]


@pytest.mark.parametrize("by_s", [0.06, 0.3, 0.5, 1.5, -0.06, -0.3, -0.5, -1.5])
def test_stated_errors_cover_a_clock_that_jumps_or_stops(simulated_time: SimulatedThreads, by_s: float) -> None:
    box = Box(simulated_time, drift=80e-6)
    with serial(box) as (_, observations):
        for number in range(60):
            if number == 30:
                box.jumps(by_s)
            threads.sleep(3.0)
            box.hears(simulated_time.monotonic())
        threads.sleep(1.0)
    errors_s = contained(observations, box.wrote_s)
    assert max(*errors_s[10:30], *errors_s[45:]) < 0.04


@pytest.mark.parametrize("profile", [PROFILE, NO_CLOCK], ids=["clock", "no clock"])
def test_lines_survive_host_stalls_and_splitting(simulated_time: SimulatedThreads, profile: DeviceProfile) -> None:
    box = Box(simulated_time)
    with serial(box, profile) as (_, observations):
        for number in range(40):
            threads.sleep(3.0)
            if number % 10 == 5:
                simulated_time.call_at(simulated_time.monotonic() + 0.03, lambda: simulated_time.stall(4.0))
                simulated_time.call_at(simulated_time.monotonic() + 0.5, lambda: box.hears(simulated_time.monotonic()))
            elif number % 10 == 8:
                halved_s = simulated_time.monotonic()
                box.wrote_s.append(halved_s)
                line = box.line("heard alexa 0.93", halved_s)
                box.port.send(line[:9], halved_s)
                box.port.send(line[9:], halved_s + 0.4)
            else:
                box.hears(simulated_time.monotonic())
        threads.sleep(1.0)
    errors_s = contained(observations, box.wrote_s)
    assert sorted(errors_s)[20] < 0.1


def test_merged_lines_do_not_spoil_the_learned_clock(simulated_time: SimulatedThreads) -> None:
    box = Box(simulated_time)
    with serial(box) as (_, observations):
        for number in range(60):
            threads.sleep(3.0)
            if number == 30:
                joined_s = simulated_time.monotonic()
                box.port.send(box.line("hea", joined_s)[:-2], joined_s)
            elif number == 31:
                box.port.send(box.line("heard alexa 0.93", joined_s + 3.0), joined_s + 3.0)
            else:
                box.hears(simulated_time.monotonic(), late_s=0.3 if number in (20, 40) else 0.0)
        threads.sleep(1.0)
    errors_s = contained(observations, box.wrote_s)
    assert max(errors_s[45:]) < 0.04


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("opener", [serial, text])
def test_an_error_that_ends_the_drivers_thread_is_a_lost_link(
    simulated_time: SimulatedThreads, monkeypatch: pytest.MonkeyPatch, opener: Any
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError

    box = Box(simulated_time)
    with opener(box) as (_, observations):
        monkeypatch.setattr(Console, "feed", fail)
        box.hears(simulated_time.monotonic())
        threads.sleep(1.0)
        for thread in threading.enumerate():
            if thread.name in ("serial box", "text box"):  # it reports its error after it has handed over
                threading.Thread.join(thread, 60.0)
        assert [lost.what for lost in observations.of(LinkLost)] == [BROKEN]


def test_heartbeats_are_reported_about_every_5_s_and_at_once_after_a_restart(simulated_time: SimulatedThreads) -> None:
    box = Box(simulated_time)
    with serial(box) as (_, observations):
        for number in range(60):
            threads.sleep(2.0)
            if number == 31:
                box.restarts(simulated_time.monotonic())
            box.port.send(box.line("listening", simulated_time.monotonic()), simulated_time.monotonic())
        threads.sleep(20.0)  # it hangs
    beats_s = [proved.at.at_s - 1000 for proved in observations.of(ListeningProved)]
    assert beats_s[:3] == pytest.approx([2.0, 8.0, 14.0], abs=0.1)
    assert any(abs(beat_s - 64.0) < 0.1 for beat_s in beats_s)
    assert beats_s[-1] <= 120.1


def test_a_text_stream_is_opened_again_whatever_the_system_refused_meanwhile(
    simulated_time: SimulatedThreads, monkeypatch: pytest.MonkeyPatch
) -> None:
    box, refused = Box(simulated_time), [OSError(errno.EMFILE, "too many open files")]
    with text(box) as (driver, observations):
        connect = driver.connect

        def connect_later() -> FarEnd:
            if refused:
                raise refused.pop()
            return connect()

        monkeypatch.setattr(driver, "connect", connect_later)
        box.port.unplug()
        threads.sleep(1.0)
        box.port.plug()
        threads.sleep(5.0)
        assert (len(observations.of(LinkLost)), len(observations.of(LinkBack)), refused) == (1, 1, [])


def test_a_text_stream_that_falls_silent_is_lost_until_a_line_comes(simulated_time: SimulatedThreads) -> None:
    box = Box(simulated_time)
    with text(box, silence_limit_s=10.0, restart_line="reset") as (driver, observations):
        for _ in range(5):
            threads.sleep(4.0)
            box.hears(simulated_time.monotonic())
        silent_s = simulated_time.monotonic()
        threads.sleep(60.0)
        (lost,) = observations.of(LinkLost)
        assert lost.at.at_s == pytest.approx(silent_s + 10.0, abs=0.2)
        assert not observations.of(LinkBack)
        box.hears(simulated_time.monotonic())
        threads.sleep(0.5)
        assert len(observations.of(LinkBack)) == 1
        driver.restart()
        threads.sleep(0.5)
        assert box.taken == b"reset\n"
        box.port.unplug()
        threads.sleep(1.0)
        assert len(observations.of(LinkLost)) == 2
    contained(observations, box.wrote_s)

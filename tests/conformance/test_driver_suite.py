"""The suite that every driver passes, each against its real far end. A new driver is one row in driver_rows.py."""

from __future__ import annotations

import dataclasses
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.base.plugins import Group, load, names
from harness.base.ports import Driver, Stimulates
from harness.devices.declared import takes_orders
from harness.lab.sound_server import LabSoundServer
from harness.model.errors import DeviceError
from harness.model.observation import LinkBack, LinkLost, StimulusEnded, StimulusStarted
from tests.conformance.driver_rows import APART, PLAYING, ROWS, Row, driver_of, hum, opened
from tests.known import known
from tests.seen import Seen, until

pytestmark = [pytest.mark.sound, pytest.mark.usefixtures("host_keeps_time")]

CLOSE_LIMIT_S = 10.0
LONG_S = 90.0
"""No test waits so long for something to happen while a sound plays."""


@pytest.fixture(params=list(ROWS))
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def row(name: str, tmp_path: Path, lab_sound: LabSoundServer) -> Iterator[Row]:
    with ROWS[name](tmp_path, lab_sound) as driver_row:
        yield driver_row


of_players = pytest.mark.parametrize("name", PLAYING)


def closed_in_time(driver: Driver) -> None:
    began_s = time.monotonic()
    driver.close()
    assert time.monotonic() - began_s < CLOSE_LIMIT_S


def nothing_more(observations: Seen, for_s: float = 0.5) -> None:
    """Nothing is told for a while: there is no event to wait for."""
    count = len(observations.all)
    deadline = time.monotonic() + for_s
    while time.monotonic() < deadline:
        assert len(observations.all) == count, f"reported after close: {observations.all[count:]}"
        time.sleep(0.01)


def ended(observations: Seen, play_id: str) -> StimulusEnded | None:
    return next((end for end in observations.of(StimulusEnded) if end.play_id == play_id), None)


def started(observations: Seen, play_id: str) -> StimulusStarted | None:
    return next((start for start in observations.of(StimulusStarted) if start.play_id == play_id), None)


def playing(driver: Driver, observations: Seen) -> Stimulates:
    """It has begun to play `one`, which is long."""
    player = stimulates(driver)
    player.play("one", hum(LONG_S))
    observations.wait(lambda: started(observations, "one"), 20.0, "the start")
    return player


def provoked(row: Row, driver: Driver, observations: Seen) -> None:
    count = len(observations.all)
    row.provoke(driver)
    observations.wait(lambda: len(observations.all) > count, 30, "a word of it")


def stimulates(driver: Driver) -> Stimulates:
    assert isinstance(driver, Stimulates)
    return driver


def play_whole(driver: Driver, observations: Seen, play_id: str, seconds: float = 0.4) -> None:
    stimulates(driver).play(play_id, hum(seconds))
    observations.wait(lambda: ended(observations, play_id), 15, f"the end of {play_id}")
    assert known(ended(observations, play_id)).complete


def test_every_installed_driver_has_its_row() -> None:
    reached = {name for name in names(Group.DRIVERS) if not takes_orders(name)}
    assert {driver_of(row) for row in ROWS} == reached  # stands and switches: test_positioners.py, test_power.py
    for name in names(Group.DRIVERS):
        options = load(Group.DRIVERS, name).Options
        assert dataclasses.is_dataclass(options)
        assert options.__dataclass_params__.frozen  # type: ignore[attr-defined]


def test_a_row_covers_every_ability_of_its_driver(name: str, row: Row) -> None:
    assert isinstance(row.make(), Stimulates) == (name in PLAYING)
    assert (row.absent is not None) == (name in APART)


def test_constructing_does_no_io(row: Row, tmp_path: Path) -> None:
    def held() -> tuple[object, ...]:
        return len(os.listdir("/proc/self/fd")), set(threading.enumerate()), sorted(tmp_path.rglob("*"))

    def made() -> bool:
        before = held()
        driver = row.make()
        assert driver.id == "it"
        after = held()
        closed_in_time(driver)
        return before == after

    until(made, 20.0, "it opens files or starts threads")  # a far end that is still starting opens some, too


@pytest.mark.parametrize("name", APART)
def test_an_absent_far_end_is_refused_with_a_remedy_and_leaves_nothing_behind(row: Row) -> None:
    driver, observations, before = known(row.absent)(), Seen(), set(threading.enumerate())
    with pytest.raises(DeviceError) as caught:
        driver.open(observations)
    assert caught.value.remedy
    closed_in_time(driver)
    observations.wait(lambda: not set(threading.enumerate()) - before, 20.0, "the end of its threads")
    nothing_more(observations, 0.1)


def test_a_driver_can_be_closed_twice_and_reopened(row: Row) -> None:
    observations, before = Seen(), set(threading.enumerate())
    driver = row.make()
    for _ in range(2):
        driver.open(observations)
        provoked(row, driver, observations)
        closed_in_time(driver)
        closed_in_time(driver)
        observations.wait(lambda: not set(threading.enumerate()) - before, 20.0, "the end of its threads")


def test_no_observations_arrive_after_close(row: Row) -> None:
    observations = Seen()
    with opened(row, observations) as driver:
        row.provoke(driver)
        closed_in_time(driver)
        nothing_more(observations)


def test_a_driver_closes_while_its_far_end_is_gone(row: Row) -> None:
    observations = Seen()
    with opened(row, observations) as driver:
        row.lose(driver)
        try:
            closed_in_time(driver)
        finally:
            row.mend(driver)
        nothing_more(observations)


def test_link_loss_and_return_are_each_reported_once(row: Row) -> None:
    observations = Seen()
    with opened(row, observations) as driver:
        row.lose(driver)
        try:
            observations.wait(lambda: observations.of(LinkLost), 30, "the loss")
        finally:
            row.mend(driver)
        observations.wait(lambda: observations.of(LinkBack), 30, "the return")
        assert [type(observation) for observation in observations.of(LinkLost, LinkBack)] == [LinkLost, LinkBack]
        (lost,) = observations.of(LinkLost)
        assert lost.what
        provoked(row, driver, observations)


def test_stamps_lie_between_start_and_end_of_the_session(row: Row) -> None:
    observations, before_s = Seen(), time.monotonic()
    with opened(row, observations) as driver:
        if isinstance(driver, Stimulates):
            play_whole(driver, observations, "one")
        provoked(row, driver, observations)
    after_s = time.monotonic()
    for observation in observations.all:
        assert observation.source == "it"
        assert before_s - observation.at.error_s <= observation.at.at_s <= after_s + observation.at.error_s, observation
        assert observation.at.error_s < 1.0


@of_players
def test_a_sound_begins_and_ends(row: Row) -> None:
    observations = Seen()
    with opened(row, observations) as driver:
        for play_id in ("one", "two"):
            play_whole(driver, observations, play_id)
    order = [
        (type(observation), observation.play_id)
        for observation in observations.all
        if isinstance(observation, StimulusStarted | StimulusEnded)
    ]
    assert order == [(StimulusStarted, "one"), (StimulusEnded, "one"), (StimulusStarted, "two"), (StimulusEnded, "two")]
    for play_id in ("one", "two"):
        first, last = known(started(observations, play_id)), known(ended(observations, play_id))
        if first.audio_s is not None and last.audio_s is not None:
            assert last.audio_s - first.audio_s == pytest.approx(0.4, abs=0.01)
        if row.on_air:
            assert last.at.at_s - first.at.at_s == pytest.approx(0.4, abs=0.05)


@of_players
def test_two_sounds_never_mix(row: Row) -> None:
    observations = Seen()
    with opened(row, observations) as driver:
        player = playing(driver, observations)
        if row.queues:
            player.play("two", hum(0.2))
        else:
            with pytest.raises(DeviceError, match="already"):
                player.play("two", hum(0.2))
        player.stop()
        observations.wait(lambda: ended(observations, "one"), 20.0, "the end of the first")
        second = started(observations, "two")
        assert second is None or second.at.at_s >= known(ended(observations, "one")).at.at_s


@of_players
def test_a_stop_ends_a_sound_at_once(row: Row) -> None:
    observations = Seen()
    with opened(row, observations) as driver:
        stimulates(driver).stop()
        assert not observations.of(StimulusEnded)
        player = playing(driver, observations)
        stopped_s = time.monotonic()
        player.stop()
        observations.wait(lambda: ended(observations, "one"), 20.0, "the end")
        end = known(ended(observations, "one"))
        assert not end.complete
        assert end.at.at_s - stopped_s <= 0.05 + end.at.error_s
        player.stop()
        play_whole(driver, observations, "two")
        assert len(observations.of(StimulusEnded)) == 2


@of_players
def test_link_loss_cuts_playback_and_next_sound_is_complete(row: Row) -> None:
    observations = Seen()
    with opened(row, observations) as driver:
        playing(driver, observations)
        row.lose(driver)
        try:
            observations.wait(
                lambda: ended(observations, "one") and observations.of(LinkLost), 30, "the loss and the end"
            )
            assert not known(ended(observations, "one")).complete
        finally:
            row.mend(driver)
        observations.wait(lambda: observations.of(LinkBack), 30, "the return")
        play_whole(driver, observations, "two")


@of_players
def test_a_driver_closes_while_it_plays(row: Row) -> None:
    observations, before = Seen(), set(threading.enumerate())
    with opened(row, observations) as driver:
        playing(driver, observations)
        closed_in_time(driver)
        nothing_more(observations)
        observations.wait(lambda: not set(threading.enumerate()) - before, 20.0, "the end of its threads")


@of_players
def test_closed_driver_refuses_to_play(row: Row) -> None:
    driver = row.make()
    for _ in range(2):
        player = stimulates(driver)
        with pytest.raises(DeviceError):
            player.play("one", hum(0.1))
        player.stop()
        assert player.level_dbfs() is None
        driver.open(Seen())
        driver.close()
